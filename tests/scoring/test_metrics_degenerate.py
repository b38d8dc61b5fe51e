"""Input at the edges: a value or a reason, never a warning, never NaN, never 0 for undefined."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from scoring.metrics import METRICS, metrics_record
from scoring.scored_units import RowError, ScoredUnits
from scoring.value import (
    NO_CORRECT_UNIT,
    NO_GROUP_WITH_BOTH_CLASSES,
    NO_GROUPS,
    NO_UNITS,
    ONE_CLASS,
    Value,
    undefined,
)
from tests.scoring.measured import evaluate_metrics


@pytest.fixture(autouse=True)
def _warnings_are_errors() -> Iterator[None]:
    """Turn everything numpy could print on a user's screen into a failure."""
    with warnings.catch_warnings(), np.errstate(divide="raise", invalid="raise", over="raise"):
        warnings.simplefilter("error")
        yield


SATURATED = np.array([1.0, 1.0, 1.0, 0.99999994, 0.5, 0.25, 0.0, 1.0], dtype=np.float32)
TABLES = {
    "one right": ([0.7], [1]),
    "one wrong": ([0.7], [0]),
    "all right": ([0.2, 0.4, 0.9], [1, 1, 1]),
    "all wrong": ([0.2, 0.4, 0.9], [0, 0, 0]),
    "constant": ([0.5] * 6, [1, 0, 1, 0, 0, 1]),
    "constant 0": ([0.0] * 4, [1, 0, 1, 0]),
    "constant 1": ([1.0] * 4, [1, 0, 1, 0]),
    "two values": ([0.3, 0.8] * 4, [0, 1, 0, 1, 1, 1, 0, 0]),
    "fewer than bins": ([0.1, 0.5, 0.9], [0, 1, 1]),
    "separable": ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]),
    "separable the wrong way": ([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0]),
    "exactly 0 and 1, right": ([0.0, 1.0, 0.0, 1.0], [0, 1, 0, 1]),
    "exactly 0 and 1, wrong": ([0.0, 1.0, 0.0, 1.0], [1, 0, 1, 0]),
    "saturated float32": (SATURATED, [1, 1, 0, 1, 1, 0, 0, 1]),
    "smallest doubles": ([5e-324, 1e-308, 1.0 - 2**-53, 1.0], [1, 0, 1, 1]),
}
every_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@every_table
@pytest.mark.parametrize("grouped", [False, True])
def test_a_table_gives_numbers_or_reasons(table: tuple[list[float], list[int]], grouped: bool) -> None:
    """All metrics, with and without generations, and the JSON object made of them."""
    confidence, correct = table
    groups = [f"answer {index // 2}" for index in range(len(correct))] if grouped else None
    values = evaluate_metrics(confidence, correct, groups)
    for name, value in values.items():
        if value.value is not None:
            assert METRICS[name].minimum <= value.value <= METRICS[name].maximum
    record = json.loads(json.dumps(metrics_record(len(correct), values), allow_nan=False))
    assert record["n"] == len(correct)
    assert set(record["reasons"]) == {name for name in METRICS if record[name] is None}


def test_no_rows_leave_everything_undefined() -> None:
    """Every metric names the same reason."""
    for groups in (None, []):
        assert set(evaluate_metrics([], [], groups).values()) == {undefined(NO_UNITS)}


def test_one_class_leaves_ranking_undefined() -> None:
    """AUROC and PRR need both classes; AUPRC a right unit; AURC and EURO neither."""
    wrong = evaluate_metrics(*TABLES["all wrong"], ["a", "a", "a"])
    assert wrong["auroc"] == wrong["prr"] == undefined(ONE_CLASS)
    assert wrong["auprc"] == undefined(NO_CORRECT_UNIT)
    assert wrong["auroc_micro"] == undefined(NO_GROUP_WITH_BOTH_CLASSES)
    assert wrong["aurc"] == Value(1.0)
    right = evaluate_metrics(*TABLES["all right"])
    assert (right["auprc"], right["aurc"]) == (Value(1.0), Value(0.0))
    assert right["auroc_micro"] == undefined(NO_GROUPS)
    assert right["euro_auc"].value == pytest.approx(0.5)


def test_chance_is_half_only_where_it_was_measured() -> None:
    """A constant confidence ranks like a coin: 0.5 measured, not a stand-in for undefined."""
    values = evaluate_metrics(*TABLES["constant"])
    assert (values["auroc"], values["prr"]) == (Value(0.5), Value(0.0))
    assert values["ece"] == Value(0.0)


def test_a_sure_mistake_has_no_finite_log_loss() -> None:
    """Infinite, in JSON a word; certainty that is right costs nothing."""
    wrong = evaluate_metrics(*TABLES["exactly 0 and 1, wrong"])
    assert wrong["nll"] == Value(math.inf)
    assert metrics_record(4, wrong)["nll"] == "Infinity"
    assert "nll" not in metrics_record(4, wrong)["reasons"]
    assert evaluate_metrics(*TABLES["exactly 0 and 1, right"])["nll"] == Value(0.0)
    assert evaluate_metrics(*TABLES["constant 1"])["nll"] == Value(math.inf)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("probability", [True, False])
def test_a_confidence_that_is_not_finite_names_its_row(bad: float, probability: bool) -> None:
    """The first such row, whether or not probabilities are claimed."""
    with pytest.raises(RowError, match=r"^row 2: confidence is (nan|inf|-inf)") as error:
        evaluate_metrics([0.1, 0.2, bad, bad], [1, 0, 1, 0], probability=probability)
    assert error.value.row == 2


@pytest.mark.parametrize("bad", [-0.001, 1.0000001, 37.0])
def test_a_confidence_outside_the_unit_interval_names_its_row(bad: float) -> None:
    """Where a probability is claimed; the message says so."""
    with pytest.raises(RowError, match=r"^row 1: confidence is .*, outside \[0, 1\]$"):
        evaluate_metrics([0.1, bad], [1, 0])


@pytest.mark.parametrize("metric", [m for m in METRICS.values() if m.needs_probability], ids=lambda m: m.name)
def test_a_metric_that_needs_probabilities_says_so(metric: object) -> None:
    """Also when it is called by itself."""
    with pytest.raises(ValueError, match=r"needs confidences in \[0, 1\], got 2\.0"):
        metric.function(ScoredUnits.from_columns([0.5, 2.0], [1, 0]))  # type: ignore[attr-defined]


@pytest.mark.parametrize("bad", [2, -1, 0.5, math.nan])
def test_an_outcome_other_than_0_and_1_names_its_row(bad: float) -> None:
    """Half right is not an outcome."""
    with pytest.raises(RowError, match=r"^row 1: correct is"):
        evaluate_metrics([0.1, 0.2, 0.3], [1, bad, 0])


@pytest.mark.parametrize(
    ("confidence", "correct", "groups"),
    [([0.1], [1, 0], None), ([0.1, 0.2], [1, 0], ["a"]), ([[0.1]], [[1]], None)],
)
def test_columns_of_different_lengths_are_refused(
    confidence: list[float], correct: list[int], groups: list[str] | None
) -> None:
    """Nothing is cut or repeated silently."""
    with pytest.raises(ValueError, match=r"column|rows"):
        evaluate_metrics(confidence, correct, groups)
