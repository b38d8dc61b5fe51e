"""Figures as files: every kind, the report's digits in them, the same bytes again, and what cannot be drawn."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from salt_tui.cli import run_command_line
from salt_tui.figures.errors import FigureError
from salt_tui.figures.measured import FigureOptions
from salt_tui.figures.registry import FIGURES, save_figure
from salt_tui.measure.row_selection import select_rows
from salt_tui.measure.run_report import measure_report
from salt_tui.reports.text_tables import interval_text, number
from tests.stored_runs import store_run

pytestmark = pytest.mark.quick

DRAWS = 20
FEW = FigureOptions(draws=DRAWS)
OF_RUN = [name for name, kind in FIGURES.items() if kind.subject == "run"]


def texts(file: Path) -> str:
    """Return every letter of an SVG file."""
    return " ".join(ElementTree.fromstring(file.read_bytes()).itertext())


@pytest.mark.parametrize("kind", OF_RUN)
def test_a_figure_says_what_it_is_of_and_is_the_same_again(kind: str, database: Path, tmp_path: Path) -> None:
    first, again = tmp_path / "a.svg", tmp_path / "b.svg"
    save_figure(kind, database, "1", first, FEW)
    save_figure(kind, database, "1", again, FEW)
    assert first.read_text().splitlines() == again.read_text().splitlines()
    shown = texts(first)
    assert "run 1" in shown
    assert "tiny, llama 1M Q4_1" in shown
    assert "24 answers" in shown
    assert "glyph" not in first.read_text(), "letters have become outlines"
    assert not re.search(r"<dc:date>", first.read_text())
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_numbers_are_those_of_the_report(database: Path, tmp_path: Path) -> None:
    report = measure_report(database, "1", select_rows((), (), (), by=None, draws=DRAWS, full=False))
    save_figure("functions", database, "1", tmp_path / "f.svg", FEW)
    shown = texts(tmp_path / "f.svg")
    for row in report.rows:
        if row.granularity == "atom" and row.calibrator == "none":
            mean = row.values["auroc"].mean
            assert f"{number(mean.value)} {interval_text(row.intervals.get('auroc'))}".strip() in shown
    assert report.conclusions is not None
    assert shown.count("●") == len(report.conclusions.functions.best) + 1  # and in the note
    save_figure("position", database, "1", tmp_path / "p.svg", FEW)
    shown = texts(tmp_path / "p.svg")
    assert [number(value) in shown for value in report.course.correctness.mean] == [True] * 10
    save_figure("prior", database, "1", tmp_path / "h.svg", FEW)
    shown = texts(tmp_path / "h.svg")
    assert all(number(value) in shown for value in report.course.history.mean if value is not None)
    assert "maze: a right atom needs the earlier moves" in " ".join(shown.split())


def test_one_task_alone(database: Path, tmp_path: Path) -> None:
    save_figure("heatmap", database, "1", tmp_path / "m.svg", FigureOptions(task="maze", function="mean_entropy"))
    shown = texts(tmp_path / "m.svg")
    assert "maze: 8 answers, 96 cells" in shown
    assert "dna_translation" not in shown
    assert "rank" in shown, "an entropy is no probability"


@pytest.mark.parametrize("ending", ["pdf", "png"])
def test_other_formats(ending: str, database: Path, tmp_path: Path) -> None:
    target = tmp_path / f"f.{ending}"
    save_figure("prior", database, "1", target)
    content = target.read_bytes()
    save_figure("prior", database, "1", target)
    assert target.read_bytes() == content
    if ending == "pdf":
        assert content.startswith(b"%PDF")
        assert b"/Subtype /Type42" in content or b"/CIDFontType2" in content
        assert b"/Subtype /Type3" not in content
        assert b"CreationDate" not in content
    else:
        assert content.startswith(b"\x89PNG")


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    hostile = "$\\frac{1}{0}$ <b>&\x1b[31m\u202e"
    store_run(database, tasks=(hostile, "maze"), answers=3, atoms=4)
    save_figure("prior", database, "1", tmp_path / "f.png", FEW)
    for kind in OF_RUN:
        save_figure(kind, database, "1", tmp_path / "f.svg", FEW)
        shown = texts(tmp_path / "f.svg")
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        if kind != "functions":
            assert "$\\frac{1}{0}$ <b>&" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["posision", "1", "-o", "f.svg"], "no figure 'posision'; there are"),
        (["posision", "1", "-o", "f.svg"], "did you mean position?"),
        (["position", "1"], "needs -o FILE.png, .svg or .pdf"),
        (["position", "1", "-o", "f.jpg"], "a figure's file ends in .png, .svg, .pdf"),
        (["position", "1", "-o", "no/f.svg"], "there is no folder no"),
        (["position", "7", "-o", "f.svg"], "there is no run '7'"),
        (["position", "1", "-o", "f.svg", "--task", "maz"], "did you mean maze?"),
        (["heatmap", "1", "-o", "f.svg", "--function", "mean_entropi"], "did you mean mean_entropy?"),
        (["position", "1", "2", "-o", "f.svg"], "this figure is of one run"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(
    words: list[str],
    says: str,
    database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["plot", *words, "--db", str(database)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert list(tmp_path.glob("*.svg")) == []


def test_without_matplotlib_the_extra_is_named(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert run_command_line(["plot", "prior", "1", "-o", str(tmp_path / "f.svg"), "--db", str(database)]) == 2
    assert capsys.readouterr().err == "salt-tui: figures need matplotlib: pip install 'saltbench-tui[plots]'\n"


def test_nothing_to_draw_is_said_with_its_reason(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=("maze",), answers=2, atoms=4, statuses=["missing"] * 4)
    store_run(database, tasks=("maze",), answers=2, atoms=4, statuses=["correct"] * 4)
    with pytest.raises(FigureError, match="nothing to draw: no atom that has a right counterpart"):
        save_figure("position", database, "1", tmp_path / "f.svg")
    save_figure("position", database, "2", tmp_path / "f.svg")
    assert (tmp_path / "f.svg").exists()


def test_the_kinds_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["plot", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(kind in shown for kind in FIGURES)
