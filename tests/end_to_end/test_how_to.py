"""docs/how_to.md from its first command to its last, with the tiny model in place of the reader's files."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from salt_tui.engine.model_registry import load_registry
from salt_tui.engine.models import resolve_model

PAGE = Path(__file__).parents[2] / "docs" / "how_to.md"


def blocks() -> list[tuple[str, str]]:
    """Return language and text of every fenced block, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def test_every_command_of_the_page_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("q4.gguf", "q8.gguf"):
        shutil.copy(resolve_model("nano", load_registry()).path, tmp_path / name)
    seen = 0
    for language, text in blocks():
        if language == "python":
            (tmp_path / "snippet.py").write_text(text, encoding="utf-8")
            runpy.run_path(str(tmp_path / "snippet.py"))
            assert capsys.readouterr().out.startswith("q4 0.")
            continue
        if language == "toml":
            (tmp_path / "models.toml").write_text(text, encoding="utf-8")
            assert load_registry(user=tmp_path / "models.toml").entries["big"].server is not None
            continue
        assert language == "sh"
        for line in text.splitlines():
            command, _, target = line.partition(" > ")
            program, *arguments = shlex.split(command)
            assert program == "salt-tui"
            assert run_command_line(arguments) == 0, line
            printed = capsys.readouterr().out
            if target:
                (tmp_path / target).write_text(printed, encoding="utf-8")
                assert printed, line
            seen += 1
    assert seen >= 15
    lines = (tmp_path / "later.csv").read_text(encoding="utf-8").count("\n") - 1
    assert (tmp_path / "calibrated.txt").read_text(encoding="utf-8").count("\n") == lines
    assert (tmp_path / "comparison.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert r"\begin{tabular}" in (tmp_path / "tables.tex").read_text(encoding="utf-8")
