"""Rows of a report against metrics computed from the stored units directly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from salt_tui.measure.course import course_of_answers, mean_confidences
from salt_tui.measure.rates import measure_rates
from salt_tui.measure.row_selection import RowSelection, select_rows
from salt_tui.measure.rows import MAPS, ReportRow, RowChoice, measure_rows
from salt_tui.measure.run_report import measure_report, report_run
from salt_tui.measure.slices import slice_parts
from salt_tui.reports.json_report import report_data, row_data
from salt_tui.store.queries import open_queries
from salt_tui.store.records import SignalRecord, Work
from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import TOKEN_SIGNALS, UNIT_STATUSES
from salt_tui.store.store import open_store
from salt_tui.usage_error import UsageError
from scoring.confidence import CONFIDENCE_FUNCTIONS
from scoring.metrics import METRICS
from tests.scoring.measured import evaluate_metrics
from tests.stored_runs import EIGHT_TASKS, store_run

HEADLINE = {"max_probability": ("none",)}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "x.db"
    store_run(path, answers=6, atoms=10)
    return path


@pytest.fixture(scope="module")
def atoms(database: Path) -> UnitColumns:
    with open_queries(database) as queries:
        return queries.unit_columns(1, "atom")


def in_confidence(columns: UnitColumns, task: str) -> np.ndarray:
    codes = [UNIT_STATUSES.index(status) for status in ("correct", "wrong", "redundant")]
    return np.isin(columns.status, codes) & (columns.task == columns.task_names.index(task))


@pytest.mark.parametrize("function", ["max_probability", "perplexity", "mean_entropy"])
def test_a_raw_row_is_the_mean_over_tasks_of_the_metrics(atoms: UnitColumns, function: str) -> None:
    (row,) = measure_rows(atoms, RowChoice({function: ("none",)}, draws=0))
    entry = CONFIDENCE_FUNCTIONS[function]
    by_task = {}
    for task in EIGHT_TASKS:
        here = in_confidence(atoms, task)
        scores = atoms.confidences[function][here] * (1 if entry.higher_is_confident else -1)
        by_task[task] = evaluate_metrics(
            scores, atoms.status[here] == 0, atoms.generation[here], probability=not entry.needs_calibration
        )
    for name in METRICS:
        expected = [values[name].value for values in by_task.values() if values[name].value is not None]
        mean = row.values[name].mean.value
        assert mean is None if not expected else mean == pytest.approx(np.mean(expected), abs=1e-12)
    assert row.n == sum(int(in_confidence(atoms, task).sum()) for task in EIGHT_TASKS)
    assert row.units_left_out == {"abstained": atoms.status.size - row.n}


def test_everything_is_a_row_per_function_and_map_and_intervals_hold_their_quantiles(atoms: UnitColumns) -> None:
    choice = RowChoice({"max_probability": MAPS}, draws=200)
    rows = measure_rows(atoms, choice)
    assert [row.calibrator for row in rows] == list(MAPS)
    for row in rows:
        interval = row.intervals["auroc"]
        assert interval.low is not None
        assert interval.high is not None
        assert interval.low < row.values["auroc"].mean.value < interval.high
    # Strictly rising maps rank as the raw scores do; their intervals too, from the same draws.
    by_name = {row.calibrator: row for row in rows}
    assert by_name["temperature"].values["auroc"] == by_name["none"].values["auroc"]
    assert by_name["temperature"].intervals["auroc"] == by_name["none"].intervals["auroc"]
    assert by_name["isotonic"].values["ece"].mean.value < by_name["none"].values["ece"].mean.value
    assert measure_rows(atoms, choice) == rows  # nothing is left to chance


def test_slices_take_their_units_only_and_maps_from_the_whole_run(database: Path, atoms: UnitColumns) -> None:
    choice = RowChoice({"max_probability": ("isotonic",)}, ("accuracy", "ece", "auroc"), draws=0)
    with open_queries(database) as queries:
        for column in ("task", "difficulty", "line", "position", "index", "status", "tokens", "max_probability"):
            parts = slice_parts(queries, 1, atoms, column)
            rows = measure_rows(atoms, choice, parts)
            assert sum(row.n for row in rows) == measure_rows(atoms, choice)[0].n, column
            assert len({row.part for row in rows}) == len(parts)
        by_task = measure_rows(atoms, choice, slice_parts(queries, 1, atoms, "task"))
    whole = measure_rows(atoms, choice)[0]
    for row in by_task:
        assert row.values["ece"].mean == whole.tasks[row.part or ""].values["ece"]


def test_lines_are_sliced_by_columns_of_the_answer_and_others_are_named(database: Path) -> None:
    with open_queries(database) as queries:
        lines = queries.unit_columns(1, "line")
        assert [part.label for part in slice_parts(queries, 1, lines, "difficulty")] == ["hard", "easy"]
        with pytest.raises(UsageError, match="did you mean difficulty"):
            slice_parts(queries, 1, lines, "dificulty")
        with pytest.raises(UsageError, match="lines have no such column"):
            slice_parts(queries, 1, lines, "token_start")


def report_rows(database: Path, selection: RowSelection) -> tuple[ReportRow, ...]:
    return measure_report(database, "1", selection).rows


@pytest.mark.parametrize(
    ("statuses", "n", "reason"),
    [
        (["correct"] * 4, 12, "one class"),
        (["wrong"] * 4, 12, "one class"),
        (["abstained"] * 3, 0, "no units"),
        (["missing"] * 3, 0, "no units"),
    ],
)
def test_degenerate_runs_have_reasons_and_no_numbers(tmp_path: Path, statuses: list[str], n: int, reason: str) -> None:
    store_run(tmp_path / "x.db", tasks=EIGHT_TASKS[:1], answers=3, statuses=statuses)
    selection = select_rows((), (), (), by=None, draws=20, full=True)
    rows = report_rows(tmp_path / "x.db", selection)
    assert len(rows) == 3 * (len(CONFIDENCE_FUNCTIONS) + len(TOKEN_SIGNALS)) * len(MAPS)
    headline = next(row for row in rows if (row.function, row.calibrator) == ("max_probability", "none"))
    assert headline.n == n
    data = row_data(headline)
    assert data["auroc"] is None
    assert data["reasons"]["auroc"] == reason
    for row in rows:
        for name, mean in row.values.items():
            assert mean.mean.value is not None or row_data(row)["reasons"][name]


def test_units_without_confidence_are_left_out_and_counted(tmp_path: Path) -> None:
    store_run(tmp_path / "x.db", tasks=EIGHT_TASKS[:1], answers=2, statuses=["correct", "wrong"], tokenless=True)
    rows = report_rows(tmp_path / "x.db", select_rows(("atom",), (), (), by=None, draws=10, full=False))
    assert {row.n for row in rows} == {0}
    assert {row.units_left_out["no confidence"] for row in rows} == {4}
    selection = select_rows((), (), (), by=None, draws=10, full=False)
    assert measure_report(tmp_path / "x.db", "latest", selection).says == {}


def test_one_answer_has_values_without_intervals_and_no_maps(tmp_path: Path) -> None:
    store_run(tmp_path / "x.db", tasks=EIGHT_TASKS[:1], answers=1, atoms=20)
    rows = report_rows(
        tmp_path / "x.db", select_rows(("atom",), ("max_probability",), (), by=None, draws=9, full=False)
    )
    raw, *mapped = rows
    assert raw.values["auroc"].mean.value is not None
    assert row_data(raw)["intervals"]["auroc"] is None
    assert {row_data(row)["reasons"]["ece"] for row in mapped} == {"fewer than two generations"}


def test_the_course_of_answers_goes_down_and_intervals_hold_precision(database: Path, atoms: UnitColumns) -> None:
    course = course_of_answers(atoms)
    assert course.correctness.mean[0] > course.correctness.mean[-1]
    assert sum(sum(curve.units) for curve in course.correctness.tasks.values()) == atoms.status.size
    report = report_run(database, "1")
    rates = measure_rates(atoms)
    for task in report.tasks:
        interval = rates.interval("precision", task.task)
        assert interval.low <= task.values["precision"].value <= interval.high
    mean = rates.intervals["precision"]
    assert mean.low < report.mean["precision"].mean.value < mean.high
    assert set(mean_confidences(atoms)) == set(EIGHT_TASKS)


def test_the_usual_rows_say_how_many_there_are_beside_them(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=EIGHT_TASKS[:1], answers=3, atoms=8)
    selection = select_rows((), (), (), by=None, draws=0, full=False)
    report = measure_report(database, "1", selection)
    rows = report.rows
    everything = 3 * (len(CONFIDENCE_FUNCTIONS) + len(TOKEN_SIGNALS)) * len(MAPS)
    assert len(rows) + report.rows_left_out == everything
    data = report_data(report)
    assert data["rows_left_out"]["count"] == report.rows_left_out
    assert {row["calibrator"] for row in data["rows"]} == set(MAPS)
    assert {row["function"] for row in data["rows"]} == {*CONFIDENCE_FUNCTIONS, *TOKEN_SIGNALS}


def test_many_calibrated_atoms_have_no_calibration_error() -> None:
    size = 200_000
    generator = np.random.default_rng(1)
    confidence = generator.random(size)
    columns = UnitColumns(
        kind="atom",
        task_names=("a", "b"),
        task=np.repeat([0, 1], size // 2),
        generation=np.arange(size) // 50,
        position=np.zeros(size, dtype=np.int64),
        index=np.arange(size) % 50,
        line=np.zeros(size, dtype=np.int64),
        status=(generator.random(size) > confidence).astype(np.int64),
        confidences={"max_probability": confidence},
    )
    (row,) = measure_rows(columns, RowChoice(HEADLINE, draws=0))
    assert row.values["ece"].mean.value < 0.01


def test_micro_auroc_of_one_answer_has_no_interval(tmp_path: Path) -> None:
    store_run(tmp_path / "x.db", tasks=EIGHT_TASKS[:1], answers=3, atoms=3, seed=7)
    with open_queries(tmp_path / "x.db") as queries:
        columns = queries.unit_columns(1, "atom")
    (row,) = measure_rows(columns, RowChoice(HEADLINE, draws=9))
    assert [task.inside.generations for task in row.tasks.values()] == [1]
    assert row.values["auroc_micro"].mean.value is not None
    assert row_data(row)["intervals"]["ece"] is not None
    assert row_data(row)["intervals"]["auroc_micro"] is None


def test_a_signal_of_a_study_or_from_elsewhere_is_a_function_like_any_other(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=EIGHT_TASKS[:2], answers=4, atoms=10)
    with open_queries(database) as queries:
        columns = queries.unit_columns(1, "atom")
    with open_store(database) as store:
        work = Work(1)
        store.claim(work)
        told = [
            SignalRecord(int(generation), "atom", int(index), "cluster_entropy", float(status != 0))
            for generation, index, status in zip(columns.generation, columns.index, columns.status, strict=True)
        ]
        store.add_signals(work, told)
        store.release(work, "finished", None)
    report = measure_report(database, "1", select_rows((), (), (), by=None, draws=100, full=False))
    assert report.summary.header.studies == ()
    row = report.row("atom", "cluster_entropy", "none")
    assert row is not None
    assert row.values["auroc"].mean.value == 1.0, "less entropy of the samples is more confidence"
    assert row.values["ece"].mean.value is None, "an entropy is no probability"
    assert report.row("line", "cluster_entropy", "none") is None, "nothing was asked about lines"
    assert report.finding("function").best == ("cluster_entropy",)
    with pytest.raises(UsageError, match="did you mean cluster_entropy"):
        measure_report(database, "1", select_rows((), ("cluster_entrop",), (), by=None, draws=0, full=False))
