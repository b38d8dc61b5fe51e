"""The GGUF header reader against files that the ``gguf`` package wrote."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import constants
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.engine.gguf_header import FILE_TYPES, TENSOR_TYPES, HeaderError, read_header

pytestmark = pytest.mark.quick

MAGIC = b"GGUF"


def write(path: Path, **settings: object) -> Path:
    """Write a small model with two tensors, a vocabulary and some metadata."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Tiny")
    writer.add_context_length(2048)
    if "file_type" in settings:
        writer.add_file_type(int(str(settings["file_type"])))
    writer.add_float32("llama.rope.freq_base", 0.5)
    writer.add_bool("tokenizer.ggml.add_bos_token", True)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["a", "b" * 300, "<s>"])
    writer.add_token_scores([0.0, -1.0, -2.0])
    writer.add_chat_template("{{ messages }}")
    writer.add_tensor("embedding", np.zeros((4, 32), np.float32))
    writer.add_tensor("output", np.zeros((2, 34), np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_reads_what_the_writer_wrote(tmp_path: Path) -> None:
    header = read_header(write(tmp_path / "a.gguf", file_type=15))
    assert (header.architecture, header.trained_context, header.quantisation) == ("llama", 2048, "Q4_K_M")
    assert header.template == "{{ messages }}"
    assert header.metadata["llama.rope.freq_base"] == 0.5
    assert header.metadata["tokenizer.ggml.add_bos_token"] is True
    assert header.integer("tokenizer.ggml.add_bos_token") is None
    assert header.array_lengths == {"tokenizer.ggml.tokens": 3, "tokenizer.ggml.scores": 3}
    assert [(one.name, one.shape, one.type, one.size) for one in header.tensors] == [
        ("embedding", (32, 4), "F32", 512),
        ("output", (32, 2), "Q8_0", 68),
    ]
    assert header.parameters == 4 * 32 + 2 * 32


def test_tensors_end_where_the_file_does_up_to_padding(tmp_path: Path) -> None:
    header = read_header(write(tmp_path / "a.gguf"))
    assert 0 <= header.file_bytes - header.end_of_tensors < 32


def test_quantisation_falls_back_to_the_type_of_most_bytes(tmp_path: Path) -> None:
    assert read_header(write(tmp_path / "a.gguf")).quantisation == "F32"


def test_types_are_those_of_the_gguf_package() -> None:
    assert {number: (name, *sizes) for number, (name, *sizes) in TENSOR_TYPES.items()} == {
        int(kind): (kind.name, *sizes) for kind, sizes in constants.GGML_QUANT_SIZES.items()
    }
    named = [kind for kind in constants.LlamaFileType if kind.name != "GUESSED"]
    expected = {int(kind): kind.name.removeprefix("MOSTLY_").removeprefix("ALL_") for kind in named}
    assert expected == FILE_TYPES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello, I am a text\n", "it holds text"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"ggjt\x03\x00\x00\x00" + bytes(100), "convert it"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "89 50 4e 47"),
        (MAGIC, "truncated"),
        (MAGIC + struct.pack("<IQQ", 1, 0, 0), "version 1"),
        (MAGIC + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (MAGIC + struct.pack("<IQQ", 3, 0, 1), "truncated"),
        (MAGIC + struct.pack("<IQQ", 3, 1 << 60, 0), "truncated"),
        (MAGIC + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 77), "type 77"),
        (MAGIC + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<QcIIQ", 1, b"k", 9, 8, 1 << 62), "truncated"),
        (MAGIC + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<QcIIQ", 1, b"k", 9, 4, 1 << 62), "truncated"),
    ],
)
def test_what_is_no_gguf_is_said_in_words(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(content)
    with pytest.raises(HeaderError, match=message):
        read_header(path)


def test_deeply_nested_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    nested = struct.pack("<IQ", 9, 1) * 5000
    path.write_bytes(MAGIC + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<QcI", 1, b"k", 9) + nested)
    with pytest.raises(HeaderError, match="nested"):
        read_header(path)


@given(st.data())
def test_damaged_bytes_give_a_header_or_a_header_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp()
    whole = folder / "whole.gguf"
    content = bytearray((whole if whole.exists() else write(whole)).read_bytes())
    cut = data.draw(st.integers(0, len(content)))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] = data.draw(st.integers(0, 255))
    damaged = folder / "damaged.gguf"
    damaged.write_bytes(content[:cut])
    outcome: object
    try:
        outcome = read_header(damaged).file_bytes
    except HeaderError as error:
        outcome = str(error)
    assert outcome == cut or str(outcome).isprintable()


def test_a_large_vocabulary_is_stepped_over(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    entry = struct.pack("<Q5s", 5, b"token")
    start = MAGIC + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<QcIIQ", 1, b"k", 9, 8, 262_144)
    path.write_bytes(start + entry * 262_144)
    header = read_header(path)
    assert header.array_lengths == {"k": 262_144}
