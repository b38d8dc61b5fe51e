"""Tables of ``models.toml`` for models on servers: what they say, and that no key gets into them."""

from __future__ import annotations

from pathlib import Path

import pytest

from salt_tui.engine.errors import ModelError
from salt_tui.engine.model_registry import load_registry
from salt_tui.engine.models import ResolvedModel, list_models, resolve_model, resolve_stored
from salt_tui.engine.remote_server import Server, checked_url

pytestmark = pytest.mark.quick


def read(folder: Path, *lines: str):
    path = folder / "models.toml"
    path.write_text('default = "a"\n[a]\n' + "\n".join(lines))
    return load_registry(path, folder / "none.toml")


def test_an_entry_is_resolved_without_asking_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = read(
        tmp_path, 'url = "https://host.example/v1/"', 'model = "org/m"', 'key_env = "A_KEY"', 'kind = "base"',
        "request = { reasoning_format = \"none\", nested = { on = true } }",
    )  # fmt: skip
    with pytest.raises(ModelError, match="set the environment variable A_KEY"):
        resolve_model("a", known)
    monkeypatch.setenv("A_KEY", "secret-value")
    model = resolve_model("a", known)
    request = {"reasoning_format": "none", "nested": {"on": True}}
    assert model.entry.server == Server("https://host.example/v1", "org/m", "A_KEY", True, request)
    assert (model.engine, model.path, model.files, model.kind) == ("remote", None, (), "base")
    assert model.place == "https://host.example/v1"
    text = model.to_json()
    assert "secret-value" not in text
    assert resolve_stored(ResolvedModel.from_json(text)) == model
    (row,) = list_models(known)
    assert (row.available, row.path, row.file_bytes, row.server) == (True, None, None, "host.example/v1")


@pytest.mark.parametrize(("kind", "found"), [("chat", "instruct"), ("reasoning", "reasoning"), ("base", "base")])
def test_kinds(tmp_path: Path, kind: str, found: str) -> None:
    known = read(tmp_path, 'url = "http://127.0.0.1:1"', 'model = "m"', f'kind = "{kind}"')
    model = resolve_model("a", known)
    assert model.kind == found
    assert model.entry.server is not None
    assert model.entry.server.completions == (kind == "base")
    assert model.entry.url == "http://127.0.0.1:1/v1"


SECRET = "sk-very-secret"


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        ((f'url = "https://me:{SECRET}@host/v1"', 'model = "m"'), "no user, password or query"),
        ((f'url = "https://host/v1?api_key={SECRET}"', 'model = "m"'), "no user, password or query"),
        ((f'url = "https://host/v1#{SECRET}"', 'model = "m"'), "no user, password or query"),
        ((f'url = "{SECRET}"', 'model = "m"'), "must be an http or https address"),
        (('url = "ftp://host/v1"', 'model = "m"'), "must be an http or https address"),
        (('url = "http://host:99999999/v1"', 'model = "m"'), "is no address"),
        (('url = "http://ho st/v1"', 'model = "m"'), "must be an http or https address"),
        (('url = "http://host/v1"',), 'url needs "model"'),
        (('url = "http://host/v1"', 'model = "m"', f'key_env = "{SECRET}"'), "the name of an environment variable"),
        (('url = "http://host/v1"', 'model = "m"', "context = 5"), '"context" goes with a file'),
        (('url = "http://host/v1"', 'model = "m"', 'template = "x"'), '"template" goes with a file'),
        (('url = "http://host/v1"', 'model = "m"', "request = { stream = false }"), 'may not hold "stream"'),
        (('url = "http://host/v1"', 'model = "m"', "request = { when = 2026-01-01 }"), "texts, numbers"),
        (('url = "http://host/v1"', 'model = "m"', "request = 3"), '"request" must be a table'),
        (
            ('url = "http://host/v1"', 'model = "m"', f'request = {{ a = [{{ "API-Key" = "{SECRET}" }}] }}'),
            'may not hold "API-Key"',
        ),
        (('url = "http://host/v1"', 'model = "m"', 'path = "a.gguf"'), "not path and url"),
        (('path = "a.gguf"', 'key_env = "A"'), '"key_env" goes with url'),
        (('url = "http://host/v1"', 'model = "m"', 'kind = "talk"'), "chat, instruct, reasoning, base"),
        (('url = "http://host/v1"', 'model = "m"', 'api_key = "x"'), 'unknown key "api_key"'),
    ],
)
def test_what_cannot_be_meant_is_refused_without_repeating_a_key(
    tmp_path: Path, lines: tuple[str, ...], match: str
) -> None:
    with pytest.raises(ModelError, match=match) as error:
        read(tmp_path, *lines)
    assert SECRET not in str(error.value)
    assert str(error.value).isprintable()


def test_an_address_after_m_is_not_repeated(tmp_path: Path) -> None:
    known = read(tmp_path, 'url = "http://host/v1"', 'model = "m"')
    with pytest.raises(ModelError, match="needs a name") as error:
        resolve_model(f"https://me:{SECRET}@host/v1", known)
    assert SECRET not in str(error.value)


def test_a_key_that_would_go_unencrypted_over_a_network_is_a_warning() -> None:
    assert "unencrypted" in Server("http://host.example/v1", "m", "A_KEY").warnings[0]
    for url in ("https://host.example/v1", "http://127.0.0.1:8000/v1", "http://[::1]:8000/v1", "http://localhost/v1"):
        assert Server(checked_url(url), "m", "A_KEY").warnings == ()
    assert Server("http://host.example/v1", "m").warnings == ()
