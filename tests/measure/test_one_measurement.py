"""Live, Reliability and the report show the same digits, because they are measured by the same functions."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from salt_tui.app.run_session import RunSession
from salt_tui.measure import confidence_view as views
from salt_tui.measure.rates import measure_rates
from salt_tui.measure.row_selection import select_rows
from salt_tui.measure.rows import RowChoice, measure_rows
from salt_tui.measure.run_report import measure_report
from salt_tui.measure.running import METRICS, Measured
from salt_tui.measure.task_scores import RAW
from salt_tui.store.queries import open_queries
from tests.stored_runs import EIGHT_TASKS, store_run


def live_numbers(session: RunSession) -> Measured:
    """Read the run to its end as the screen does, 30 times a second."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        session.pull()
        session.measure()
        session.wait_for_measurement(10)
        if session.measured is not None and not session.waiting_for:
            return session.measured
        time.sleep(0.01)
    raise AssertionError("the run was not measured")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("one") / "x.db"
    store_run(path, answers=8, atoms=12)
    return path


@pytest.mark.parametrize("kind", ["atom", "line"])
@pytest.mark.parametrize("function", ["max_probability", "mean_entropy"])
def test_live_shows_the_digits_of_the_report(database: Path, kind: str, function: str) -> None:
    session = RunSession.stored(1, database)
    session.state.map.kind, session.state.map.function = kind, function
    with open_queries(database) as queries:
        columns = queries.unit_columns(1, "line" if kind == "line" else "atom", (function,))
    rates = measure_rates(columns)
    (row,) = measure_rows(columns, RowChoice({function: (RAW,)}, tuple(METRICS.values())))
    live = live_numbers(session)
    assert live.values["precision"] == rates.means["precision"].mean
    assert live.intervals["precision"] == (rates.intervals["precision"].low, rates.intervals["precision"].high)
    for name, metric in METRICS.items():
        assert live.values[name].value == row.values[metric].mean.value, name
        interval = row.intervals.get(metric)
        assert live.intervals.get(name) == (
            None if interval is None or interval.low is None else (interval.low, interval.high)
        ), name
    for task in EIGHT_TASKS[:3]:
        session.state.map.task = task
        live, alone = live_numbers(session), rates.tasks[task].rates["precision"].interval
        assert live.intervals["precision"] == (alone.low, alone.high)
        interval = row.tasks[task].intervals["auroc"]
        assert live.values["auroc_macro"] == row.tasks[task].values["auroc"]
        assert live.intervals["auroc_macro"] == (interval.low, interval.high)
    session.close()


@pytest.mark.parametrize("name", [RAW, "isotonic", "platt"])
@pytest.mark.parametrize(("kind", "function"), [("atom", "max_probability"), ("line", "logprob_sum")])
def test_a_view_of_confidence_has_the_digits_of_the_report(database: Path, kind: str, function: str, name: str) -> None:
    with open_queries(database) as queries:
        columns = queries.unit_columns(1, "line" if kind == "line" else "atom", (function,))
    (row,) = measure_rows(columns, RowChoice({function: (name,)}, draws=0))
    view = views.confidence_view(columns, views.ViewChoice(kind, function, name))
    assert view.n == row.n
    assert view.answers == row.answers
    for metric in views.METRICS:
        assert view.values[metric] == row.values[metric], metric
    for task, cell in row.tasks.items():
        alone = views.confidence_view(columns, views.ViewChoice(kind, function, name, task=task))
        assert alone.n == cell.n
        assert alone.values["ece"].mean.value == cell.values["ece"].value
        if alone.bins is not None:
            gap = float((alone.bins.counts * np.abs(alone.bins.gaps)).sum() / alone.bins.counts.sum())
            assert gap == cell.values["ece"].value, "the bins drawn are those of ECE"


def test_a_view_of_all_tasks_pools_as_the_analyses_of_the_report_do(database: Path) -> None:
    report = measure_report(database, "1", select_rows([], [], [], by=None, draws=0, full=False, analyses=True))
    assert report.analyses is not None
    with open_queries(database) as queries:
        columns = queries.unit_columns(1, "atom", ("max_probability",))
    for count, error in report.analyses.errors.items():
        view = views.confidence_view(columns, views.ViewChoice("atom", "max_probability", bins=count))
        assert view.densities == report.analyses.densities
        assert view.bins is not None
        assert float((view.bins.counts * np.abs(view.bins.gaps)).sum() / view.bins.counts.sum()) == error.value


def test_confidences_that_differ_in_the_ninth_digit_are_ranked_alike_by_both(tmp_path: Path) -> None:
    """Right at log-probability -1.2e-8, wrong at -2.4e-8: single precision would tie them."""
    from salt_tui.app.answer_cells import AnswerCells
    from salt_tui.app.live_columns import live_columns
    from salt_tui.measure.running import measure_running
    from scoring.confidence import unit_confidences

    answer = AnswerCells(1, "maze", 0, "complete")
    for status, value in (("correct", -1.2e-8), ("wrong", -2.4e-8)):
        answer.units["atom"].add(status, 0, list(unit_confidences([value], [0.0]).values()))
    measured = measure_running(live_columns([answer], "atom", "max_probability"), "max_probability")
    assert measured.values["auroc_macro"].value == 1.0
    assert np.diff(measured.ordered["maze"])[0] > 0.0
