"""Figures as files: every kind, the report's digits in them, the same bytes again, and what cannot be drawn."""

from __future__ import annotations

import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from salt_tui.cli import run_command_line
from salt_tui.figures.comparison_figure import draw_compare
from salt_tui.figures.errors import FigureError
from salt_tui.figures.measured import FigureOptions, Measured
from salt_tui.figures.registry import FIGURES, save_figure
from salt_tui.figures.rendering import render
from salt_tui.figures.second_model_figure import shares_along
from salt_tui.measure.interventions import measure_interventions
from salt_tui.measure.row_selection import select_rows
from salt_tui.measure.run_report import measure_report
from salt_tui.measure.two_runs import RunName, compare_two
from salt_tui.number_text import number, signed
from salt_tui.reports.text_tables import interval_text
from salt_tui.store.partings import Parting
from salt_tui.store.queries import open_queries
from salt_tui.usage_error import UsageError
from tests.stored_runs import store_run

pytestmark = [pytest.mark.quick, pytest.mark.slow]

DRAWS = 20
FEW = FigureOptions(draws=DRAWS)
OF_RUN = [name for name, kind in FIGURES.items() if kind.subject == "run"]


def texts(file: Path) -> str:
    """Return every letter of an SVG file."""
    return " ".join(ElementTree.fromstring(file.read_bytes()).itertext())


@pytest.mark.parametrize("kind", OF_RUN)
def test_a_figure_says_what_it_is_of_and_is_the_same_again(kind: str, measured: Measured, tmp_path: Path) -> None:
    content = render(FIGURES[kind].draw(measured), "svg")
    assert render(FIGURES[kind].draw(measured), "svg").decode().splitlines() == content.decode().splitlines()
    (tmp_path / "f.svg").write_bytes(content)
    shown = texts(tmp_path / "f.svg")
    assert "run 1" in shown
    assert "tiny, llama 1M Q4_1" in shown
    assert "36 answers" in shown
    assert b"glyph" not in content, "letters have become outlines"
    assert b"<dc:date>" not in content
    numbers = {
        "position": measured.course.correctness.mean,
        "prior": measured.course.history.mean,
        "functions": [
            row.values["auroc"].mean.value
            for row in measured.report.rows
            if row.granularity == "atom" and row.calibrator == "none"
        ],
    }
    assert all(number(value) in shown for value in numbers.get(kind, ()) if value is not None)
    if kind in ("position", "prior"):
        assert "maze: a right atom needs the earlier moves" in " ".join(shown.split())
    if kind == "functions":
        assert measured.report.conclusions is not None
        assert shown.count("●") == len(measured.report.conclusions.functions.best) + 1  # and in the note


def test_reliability_says_n_share_and_ece_of_the_report(database: Path, tmp_path: Path) -> None:
    options = FigureOptions(function="logprob_sum", calibrator="isotonic", draws=0)
    save_figure("reliability", database, "1", tmp_path / "f.svg", options)
    shown = texts(tmp_path / "f.svg")
    selection = select_rows(("atom",), ("logprob_sum",), ("isotonic",), by=None, draws=0, full=False)
    (row,) = measure_report(database, "1", selection).rows
    for found in (row, *row.tasks.values()):
        right, error = (found.values[name] for name in ("accuracy", "ece"))
        values = [getattr(value, "mean", value).value for value in (right, error)]
        assert f"n {found.n}, right {number(values[0])}, ECE {number(values[1])}" in shown
    with pytest.raises(FigureError, match="logprob_sum is not a probability and needs a map; --map isotonic makes it"):
        save_figure("euro", database, "1", tmp_path / "g.svg", FigureOptions(function="logprob_sum"))


def test_two_runs_beside_each_other(database: Path, tmp_path: Path) -> None:
    save_figure("compare", database, ("1", "2"), tmp_path / "c.svg")
    shown = texts(tmp_path / "c.svg")
    pair = compare_two(RunName(database, "1"), RunName(database, "2"))
    for metric in pair.metrics.values():
        for found in (*metric.tasks.values(), metric.mean):
            if found.difference.value is not None:
                assert f"{signed(found.difference.value)} {interval_text(found.interval)}".strip() in shown
    assert "36 problems answered by both" in shown
    figure = Figure()
    draw_compare(Measured(database, ("1", "2"), FEW)).fill(figure)
    bottom, top = figure.axes[0].get_ylim()
    assert top < -0.5, "the first row's marker is cut"
    assert bottom > len(pair.tasks) + 0.5, "the axis strikes through the words of the last row"
    with pytest.raises(FigureError, match="compare is of two runs, such as"):
        save_figure("compare", database, "1", tmp_path / "d.svg")


@pytest.mark.parametrize("name", ["1", "1.1"])
def test_interventions_carry_caveat_slopes_and_counts(name: str, database: Path, tmp_path: Path) -> None:
    save_figure("interventions", database, name, tmp_path / "i.svg", FEW)
    shown = " ".join(texts(tmp_path / "i.svg").split())
    with open_queries(database) as queries:
        findings = measure_interventions(queries, [queries.find_work("1.1")], DRAWS)
    (task,) = findings.tasks
    for found in task.outcomes.values():
        for contrast in found.contrasts:
            slope = contrast.slope
            assert f"slope {number(slope.value.value, 2)} {interval_text(slope.interval, 2)}, p" in shown
    assert "study 1.1: maze: 144 replays of 36 targets in 12 problems" in shown
    assert "maze: flipping may change the right answer" in shown
    if name == "1":
        save_figure("length", database, name, tmp_path / "l.svg", FEW)
        shown = " ".join(texts(tmp_path / "l.svg").split())
        assert "an association, not an effect" in shown
        assert "controlled: κ" in shown
        assert "extrapolated" in shown


def test_interventions_in_chunks_say_so_below_the_figure(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "x.db"
    copy.write_bytes(database.read_bytes())
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("""UPDATE study SET plan = '{"options": {"chunked": true}}' WHERE kind = 'interventions'""")
    for path, said in ((database, False), (copy, True)):
        drawing = FIGURES["interventions"].draw(Measured(path, ("1.1",), FEW))
        assert ("Chunked, not exact: the texts" in " ".join(drawing.notes)) is said


@pytest.mark.usefixtures("_few_trees")
def test_probes_by_layer_size_dimension_and_map(database: Path, tmp_path: Path) -> None:
    measured = Measured(database, ("1",), FEW)
    report = measured.probes
    shown = {}
    for kind in ("probe-layers", "sample-complexity", "intrinsic-dimension", "probe-maps"):
        (tmp_path / "p.svg").write_bytes(render(FIGURES[kind].draw(measured), "svg"))
        shown[kind] = " ".join(texts(tmp_path / "p.svg").split())
        assert "Probes on 36 answers" in shown[kind]
    best = report.by_layer[report.best_layer]["euro_auc"].value
    assert f"layer {report.best_layer}: {number(best)}" in shown["probe-layers"]
    sizes = [size.means["euro_auc"].value for size in report.sizes if size.means["euro_auc"].value is not None]
    assert all(number(value) in shown["sample-complexity"] for value in sizes)
    assert "36 vectors of 6 numbers" in shown["intrinsic-dimension"]
    assert all(name in shown["probe-maps"] for name in report.estimators if "+" not in name)


def test_where_a_second_model_parts_from_the_answers(database: Path, tmp_path: Path) -> None:
    save_figure("second-model", database, "1", tmp_path / "s.svg")
    shown = " ".join(texts(tmp_path / "s.svg").split())
    # The n-th answer of a task goes elsewhere from its n-th of four tokens on: four of twelve, at 4 + 3 + 2 + 1 tokens.
    assert shown.count("4 of 12 part") == 3
    assert "read 36 answers, 144 tokens; at 30 another token was its likeliest one." in shown
    save_figure("second-model", database, "1.3", tmp_path / "one.svg", FigureOptions(task="maze"))
    shown = " ".join(texts(tmp_path / "one.svg").split())
    assert "read 12 answers, 48 tokens; at 10 " in shown
    assert "mean of tasks" not in shown
    with pytest.raises(FigureError, match="--task code: this study has dna_translation, maze, kronecker_product"):
        save_figure("second-model", database, "1.3", tmp_path / "no.svg", FigureOptions(task="code"))


def test_shares_of_tokens_apart_by_place() -> None:
    five, two = Parting("maze", 0, 5, (0, 4), b"a", b"b", None), Parting("maze", 1, 2, (1,), b"a", b"b", 0.1)
    # Two tokens fall into the first and the third fifth.
    assert shares_along([five, two]) == [1 / 2, 0.0, 1 / 2, 0.0, 1.0]
    assert shares_along([two])[0] == 0.0
    assert np.isnan(shares_along([two])[1])


def test_cells_without_a_confidence_are_counted(tmp_path: Path) -> None:
    store_run(tmp_path / "x.db", tasks=("maze",), answers=3, atoms=4, statuses=["correct", "wrong"] * 2, tokenless=True)
    save_figure("heatmap", tmp_path / "x.db", "1", tmp_path / "h.svg")
    assert "12 of them have no max_probability" in texts(tmp_path / "h.svg")


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("interventions", "2", "run 2 has no study of kind interventions: `salt-tui study interventions 2` makes one"),
        ("length", "1.2", "study 1.2 is of kind activations; this figure is of interventions"),
        ("probe-layers", "2", "run 2 has no activations"),
    ],
)
def test_a_study_that_is_not_there_is_named(kind: str, name: str, says: str, database: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        save_figure(kind, database, name, tmp_path / "f.svg")


def test_one_task_alone(database: Path, tmp_path: Path) -> None:
    save_figure("heatmap", database, "1", tmp_path / "m.svg", FigureOptions(task="maze", function="mean_entropy"))
    shown = texts(tmp_path / "m.svg")
    assert "maze: 12 answers, 36 cells" in shown
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
    save_figure("prior", database, "1", tmp_path / "f.png")
    for kind in ("risk-coverage", "heatmap"):
        save_figure(kind, database, "1", tmp_path / "f.svg")
        shown = texts(tmp_path / "f.svg")
        assert "\x1b" not in shown
        assert "\u202e" not in shown
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
        (["interventions", "1", "-o", "f.svg", "--draws", "-3"], "--draws -3: a number from 0"),
        (["interventions", "1", "-o", "f.svg", "--task", "code"], "nothing to draw: study 1.1 has maze"),
        (["probe-maps", "1", "-o", "f.svg", "--positions", "foo"], "--positions foo: there are producing and own"),
        (["reliability", "1", "-o", "f.svg", "--map", "isotonik"], "did you mean isotonic?"),
        (["compare", "1", "1", "-o", "f.svg"], "run 1 is compared with itself"),
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
