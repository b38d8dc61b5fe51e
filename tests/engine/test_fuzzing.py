"""What other programs and people write: model files' headers, frames of the pipe, models.toml.  One line or a value."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.commands.failures import shortened
from salt_tui.engine import wire
from salt_tui.engine.errors import EngineError, ModelError
from salt_tui.engine.gguf_header import HeaderError, read_header
from salt_tui.engine.model_registry import load_registry
from tests.engine.test_gguf_header import write

NUMBERS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
TYPES = st.sampled_from(
    ["Generate", "Token", "ModelInfo", "Vocabulary", "Activations", "SequenceEnded", "Encode", "Build", "Nothing"]
)
KEYS = st.sampled_from(["path", "repository", "file", "kind", "context", "template_options", "caveat", "x"])


def said(error: Exception, name: str = "") -> None:
    """Assert that a message as it is shown is one visible line that names what it is about."""
    text = shortened(str(error))
    assert text
    assert text.isprintable()
    assert name in text


@given(st.lists(st.tuples(st.integers(4, 400), NUMBERS, st.sampled_from("BHIQ")), min_size=1, max_size=4))
def test_headers_with_numbers_of_any_size(tmp_path_factory: pytest.TempPathFactory, edits: list) -> None:
    folder = tmp_path_factory.getbasetemp()
    whole = folder / "whole.gguf"
    content = bytearray((whole if whole.exists() else write(whole)).read_bytes())
    for place, value, kind in edits:
        size = struct.calcsize(kind)
        place = min(place, len(content) - size)
        content[place : place + size] = struct.pack(f"<{kind}", value % 2 ** (8 * size))
    damaged = folder / "mutated.gguf"
    damaged.write_bytes(content)
    try:
        assert read_header(damaged).file_bytes == len(content)
    except HeaderError as error:
        said(error)


def frames(data: bytes) -> None:
    try:
        wire.FrameBuffer().feed(data)
    except EngineError as error:
        said(error)


@given(st.sampled_from(b"JTVAZ"), st.binary(max_size=200))
def test_frames_with_any_payload(kind: int, payload: bytes) -> None:
    frames(struct.pack("<IB", len(payload), kind) + payload)


@given(TYPES, st.dictionaries(st.sampled_from(["key", "prompt", "segments", "id", "text", "x"]), JSON, max_size=4))
def test_messages_with_any_fields(name: str, content: dict[str, object]) -> None:
    payload = json.dumps({"type": name, **content}).encode()
    frames(struct.pack("<IB", len(payload), ord("J")) + payload)


@given(JSON)
def test_messages_that_are_anything(content: object) -> None:
    payload = json.dumps(content).encode()
    frames(struct.pack("<IB", len(payload), ord("J")) + payload)


@given(st.binary(max_size=60))
def test_any_bytes_from_the_pipe(data: bytes) -> None:
    frames(data)


VALUES = st.one_of(
    st.text(max_size=12),
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.floats(),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(0, 3), max_size=2),
)


def toml(value: object) -> str:
    """Write a value as TOML, well enough for this file."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return {"inf": "inf", "-inf": "-inf", "nan": "nan"}.get(str(value), repr(value))
    return json.dumps(value)


def registry(path: Path) -> None:
    try:
        assert load_registry(user=path).entries
    except ModelError as error:
        said(error, path.name)


@given(st.dictionaries(st.text("abz-_. \x1b\n", min_size=1, max_size=5), st.dictionaries(KEYS, VALUES), max_size=3))
def test_models_toml_with_any_tables(tmp_path_factory: pytest.TempPathFactory, tables: dict) -> None:
    path = tmp_path_factory.getbasetemp() / "tables.toml"
    lines = []
    for name, table in tables.items():
        lines.append(f"[{json.dumps(name)}]")
        lines += [f"{key} = {toml(value)}" for key, value in table.items()]
    text = "\n".join(lines)
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    registry(path)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_models_toml_with_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(data)
    registry(path)
