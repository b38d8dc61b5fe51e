"""The running numbers are those of the batch metrics, and say what they rest on."""

from __future__ import annotations

import numpy as np
import pytest

from salt_tui.app.live_state import LiveState
from salt_tui.app.running_metrics import Choice, RunningMeasurement, copy_units, measure
from scoring.metrics import evaluate_metrics
from tests.app.unit_events import answer_events, scored, started, state_of

ATOMS = Choice("atom", "max_probability", None)


def state() -> LiveState:
    return state_of(
        started("maze", "code"),
        *answer_events(1, 0, ["·×··", "+-"]),
        *answer_events(2, 1, ["××·?"]),
        *answer_events(3, 2, ["·×"], status="cancelled"),
        *answer_events(4, 0, ["·×", "··"], task="code"),
        *answer_events(5, 1, ["···"], task="code"),
    )


def test_one_task_has_the_values_of_the_batch_metrics() -> None:
    answers = [answer for answer in state().map.answers if answer.task == "maze"]
    tasks, left_out = copy_units(answers, "atom", "max_probability")
    measured = measure(tasks, left_out, "max_probability")
    confidence = [0.95, 0.85, 0.75, 0.65, 0.55, 0.95, 0.85, 0.75]
    correct = [True, False, True, True, False, False, False, True]
    batch = evaluate_metrics(confidence, correct, [1] * 5 + [2] * 3)
    assert measured.values["ece"].value == pytest.approx(batch["ece"].value, abs=1e-6)
    assert measured.values["auroc_macro"].value == pytest.approx(batch["auroc"].value)
    assert measured.values["auroc_micro"].value == pytest.approx(batch["auroc_micro"].value)
    assert measured.values["precision"].value == pytest.approx(4 / 9)
    assert (measured.units, measured.answers, measured.left_out, measured.micro) == (8, 2, 1, 2)


def test_the_mean_gives_every_task_the_same_weight() -> None:
    tasks, left_out = copy_units(state().map.answers, "atom", "max_probability")
    measured = measure(tasks, left_out, "max_probability")
    assert measured.values["precision"].value == pytest.approx((4 / 9 + 6 / 7) / 2)
    low, high = measured.intervals["precision"]
    assert low <= (4 / 9 + 6 / 7) / 2 <= high


def test_a_function_that_is_no_probability_has_a_ranking_and_no_ece() -> None:
    tasks, left_out = copy_units(state().map.answers, "atom", "perplexity")
    measured = measure(tasks, left_out, "perplexity")
    by_probability = measure(*copy_units(state().map.answers, "atom", "max_probability"), "max_probability")
    assert measured.values["ece"].reason == "needs calibration"
    assert measured.values["auroc_macro"].value == pytest.approx(by_probability.values["auroc_macro"].value)


def test_nothing_measured_is_undefined_with_a_reason() -> None:
    measured = measure({}, 0, "max_probability")
    assert measured.units == 0
    assert {value.value for value in measured.values.values()} == {None}
    assert measured.intervals == {}
    assert measured.surer_than("maze", 0.5, "max_probability") is None


def test_the_share_of_less_sure_units_respects_the_direction() -> None:
    measured = measure(*copy_units(state().map.answers, "atom", "perplexity"), "perplexity")
    surest, least = (float(np.float32(1 / probability)) for probability in (0.95, 0.55))  # as cells hold them
    assert measured.surer_than("maze", least, "perplexity") == 0.0
    assert measured.surer_than("maze", surest, "perplexity") == 7 / 9
    assert measured.surer_than("code", surest, "perplexity") == 5 / 7
    assert measured.surer_than("other", surest, "perplexity") is None


def test_units_that_are_as_sure_are_not_less_sure() -> None:
    events = [scored(1, index, 0, "×", 0.5) for index in range(4)]
    tied = state_of(started(), *answer_events(1, 0, [], status=None), *events)
    measured = measure(*copy_units(tied.map.answers, "atom", "max_probability"), "max_probability")
    assert measured.surer_than("maze", 0.5, "max_probability") == 0.0


def test_it_measures_again_only_after_a_rest_and_at_once_for_another_choice() -> None:
    now = 0.0
    measurement = RunningMeasurement(lambda: now)
    atom_map = state().map
    measurement.update(atom_map.answers, atom_map.version, ATOMS)
    measurement.wait(10)
    first = measurement.result(ATOMS)
    assert first is not None
    assert measurement.failure is None
    measurement.update(atom_map.answers[:1], atom_map.version + 1, ATOMS)
    measurement.wait(10)
    assert measurement.result(ATOMS) is first
    one_task = Choice("atom", "max_probability", "code")
    measurement.update(atom_map.answers, atom_map.version + 1, one_task)
    measurement.wait(10)
    assert measurement.result(ATOMS) is None
    found = measurement.result(one_task)
    assert found is not None
    assert found.answers == 2
    now = 1.0
    measurement.update(atom_map.answers[:1], atom_map.version + 2, one_task)
    measurement.wait(10)
    assert measurement.result(one_task) is not found
