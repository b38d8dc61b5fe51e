"""`models pull`: against a hub on loopback that can be cut, refused, wrong or another one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from tests.hub_server import Hub, served

NANO = Path(__file__).parents[2] / "salt_tui" / "nano" / "salt-nano.gguf"
PLACE = "hf:org/name/sub/m.gguf"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("SALT_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("time.sleep", lambda _seconds: None)  # the client waits between its tries
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 50_000)
    found = Hub(NANO.read_bytes())
    with served(found) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield found


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "home" / "data" / "models"


def pull(*more: str, name: str = PLACE) -> int:
    return run_command_line(["models", "pull", name, *more])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_model_is_fetched_checked_and_usable(hub: Hub, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pull("--json") == 0
    captured = capsys.readouterr()
    path = models / "sub" / "m.gguf"
    assert json.loads(captured.out) == {"name": PLACE, "path": str(path), "file_bytes": len(hub.content)}
    assert path.read_bytes() == hub.content
    assert names(models) == ["m.gguf"]
    assert "fetching sub/m.gguf: 100 %" in captured.err
    assert pull() == 0  # it is there: checked, not fetched
    assert hub.starts == [0]
    assert run_command_line(["models", "check", str(path)]) == 0


def test_what_was_cut_goes_on_where_it_ended(hub: Hub, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub.cut_after = 120_000
    assert pull() == 0
    assert (models / "sub" / "m.gguf").read_bytes() == hub.content
    assert len(hub.starts) > 1
    assert hub.starts == sorted(hub.starts)


def test_a_connection_that_brings_nothing_ends_with_one_line(
    hub: Hub, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.cut_after = 0
    assert pull() == 1
    captured = capsys.readouterr()
    assert "what came is kept, fetching again goes on from there" in captured.err
    assert len(captured.err.splitlines()) == 1
    hub.cut_after = None
    assert pull() == 0


def test_an_ended_program_leaves_what_the_next_one_goes_on_with(
    hub: Hub, models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from salt_tui.engine import model_download

    def stop(progress: model_download.DownloadProgress) -> None:
        if progress.done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model_download.fetch(model_download.HubModel("org/name", ("sub/m.gguf",)), stop)
    assert [name.endswith(".part") for name in names(models)] == [True]
    assert pull() == 0
    assert hub.starts[-1] >= 100_000
    assert (models / "sub" / "m.gguf").read_bytes() == hub.content


def test_another_content_on_the_hub_begins_anew(hub: Hub, models: Path) -> None:
    other = models / "sub" / "m.gguf.0123456789ab.part"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"half of another")
    assert pull() == 0
    assert hub.starts == [0]
    assert (models / "sub" / "m.gguf").read_bytes() == hub.content


def test_a_wrong_checksum_leaves_nothing(hub: Hub, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub.tag = "0" * 64
    assert pull() == 1
    assert "another SHA-256 than the hub says" in capsys.readouterr().err
    assert names(models) == []


def test_a_file_that_is_no_model_is_named(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.content = b"<html>not found</html>"
    assert pull() == 2
    assert "m.gguf is not a GGUF file" in capsys.readouterr().err


def test_another_file_of_that_name_stays(hub: Hub, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = models / "sub" / "m.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mine")
    assert pull() == 2
    assert "move it away" in capsys.readouterr().err
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("status", "error", "code", "words"),
    [
        (404, "RepoNotFound", 2, "no such repository"),
        (404, "EntryNotFound", 2, "no such file"),
        (403, "GatedRepo", 2, "accept it on the hub"),
        (500, "", 1, "the hub answered 500"),
        (503, "", 1, "the hub answered 503"),
    ],
)
def test_a_refusal_is_one_line(
    hub: Hub, models: Path, capsys: pytest.CaptureFixture[str], status: int, error: str, code: int, words: str
) -> None:
    hub.status, hub.error = status, error
    assert pull() == code
    captured = capsys.readouterr()
    assert words in captured.err
    assert len(captured.err.splitlines()) == 1
    assert names(models) == []


def test_a_hub_that_is_not_there(hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert pull() == 1
    captured = capsys.readouterr()
    assert "the hub cannot be reached" in captured.err
    assert len(captured.err.splitlines()) == 1


def test_too_little_room_is_said_before(
    hub: Hub, models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: type("Usage", (), {"free": 1_000_000})())
    assert pull() == 2
    assert "of the disk are free" in capsys.readouterr().err
    assert hub.starts == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hf:org/name", "write hf:OWNER/REPOSITORY/FILE.gguf"),
        ("hf:org/name/../../x.gguf", "write hf:OWNER/REPOSITORY/FILE.gguf"),
        ("hf:org/name/m.bin", "write hf:OWNER/REPOSITORY/FILE.gguf"),
        ("hf:/etc/x.gguf", "write hf:OWNER/REPOSITORY/FILE.gguf"),
        ("nanno", "did you mean nano?"),
        ("nano", "does not come from the hub"),
        ("\x1b[2J", "no model is called"),
    ],
)
def test_a_name_that_cannot_be_fetched(hub: Hub, capsys: pytest.CaptureFixture[str], name: str, words: str) -> None:
    assert pull(name=name) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert "\x1b" not in captured.err
    assert hub.starts == []
