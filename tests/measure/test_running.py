"""The running numbers are those of the batch metrics, and say what they rest on."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

import pytest

from salt_tui.app.answer_cells import AnswerCells
from salt_tui.app.live_columns import live_columns
from salt_tui.app.live_state import LiveState
from salt_tui.measure.running import Choice, Measured, RunningMeasurement, RunningUnits, measure_running, measure_tasks
from tests.app.unit_events import answer_events, scored, started, state_of
from tests.scoring.measured import evaluate_metrics

pytestmark = pytest.mark.quick

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


def measured_of(answers: Sequence[AnswerCells], function: str = "max_probability") -> Measured:
    return measure_running(live_columns(answers, "atom", function), function)


def reader(answers: Sequence[AnswerCells]) -> Callable[[Choice], RunningUnits]:
    return lambda choice: live_columns(answers, choice.kind, choice.function)


def test_one_task_has_the_values_of_the_batch_metrics() -> None:
    answers = [answer for answer in state().map.answers if answer.task == "maze"]
    measured = measured_of(answers)
    confidence = [0.95, 0.85, 0.75, 0.65, 0.55, 0.95, 0.85, 0.75]
    correct = [True, False, True, True, False, False, False, True]
    batch = evaluate_metrics(confidence, correct, [1] * 5 + [2] * 3)
    assert measured.values["ece"].value == pytest.approx(batch["ece"].value, abs=1e-6)
    assert measured.values["auroc_macro"].value == pytest.approx(batch["auroc"].value)
    assert measured.values["auroc_micro"].value == pytest.approx(batch["auroc_micro"].value)
    assert measured.values["precision"].value == pytest.approx(4 / 9)
    assert (measured.units, measured.answers, measured.left_out, measured.micro) == (8, 2, 1, 2)


def test_the_mean_gives_every_task_the_same_weight() -> None:
    measured = measured_of(state().map.answers)
    assert measured.values["precision"].value == pytest.approx((4 / 9 + 6 / 7) / 2)
    low, high = measured.intervals["precision"]
    assert low <= (4 / 9 + 6 / 7) / 2 <= high


def test_a_function_that_is_no_probability_has_a_ranking_and_no_ece() -> None:
    measured = measured_of(state().map.answers, "perplexity")
    by_probability = measured_of(state().map.answers)
    assert measured.values["ece"].reason == "needs calibration"
    assert measured.values["auroc_macro"].value == pytest.approx(by_probability.values["auroc_macro"].value)


def test_nothing_measured_is_undefined_with_a_reason() -> None:
    measured = measured_of([])
    assert measured.units == 0
    assert {value.value for value in measured.values.values()} == {None}
    assert measured.intervals == {}
    assert measured.surer_than("maze", 0.5, "max_probability") is None


def test_the_share_of_less_sure_units_respects_the_direction() -> None:
    measured = measured_of(state().map.answers, "perplexity")
    surest, least = (math.exp(-math.log(0.95 - 0.1 * place)) for place in (0, 4))
    assert measured.surer_than("maze", least, "perplexity") == 0.0
    assert measured.surer_than("maze", surest, "perplexity") == 6 / 8, "of two that are as sure, without the abstained"
    assert measured.surer_than("code", surest, "perplexity") == 5 / 7
    assert measured.surer_than("other", surest, "perplexity") is None


def test_abstained_units_are_none_that_another_is_surer_than() -> None:
    """As in `salt_tui.measure.reliability`: they have no confidence that counts."""
    abstained = state_of(started(), *answer_events(1, 0, ["×?·"]))
    measured = measured_of(abstained.map.answers)
    assert measured.surer_than("maze", math.exp(math.log(0.95)), "max_probability") == 1 / 2


def test_answers_without_an_atom_that_was_said_are_not_counted_as_in_the_report() -> None:
    empty = state_of(started(), *answer_events(1, 0, ["·×"]), *answer_events(2, 1, ["--"]), *answer_events(3, 2, ["·"]))
    measured = measured_of(empty.map.answers)
    assert (measured.units, measured.answers, measured.micro) == (3, 2, 1)


def test_there_is_no_interval_from_a_single_answer() -> None:
    few = state_of(started(), *answer_events(1, 0, ["·×·"]), *answer_events(2, 1, ["···"]), *answer_events(3, 2, ["·"]))
    measured = measured_of(few.map.answers)
    assert measured.values["auroc_micro"].value is not None
    assert set(measured.intervals) == {"precision", "recall", "ece"}, "one answer holds wrong atoms"
    few.apply(deque(answer_events(4, 3, ["×·"])))
    measured = measured_of(few.map.answers)
    assert set(measured.intervals) == {"precision", "recall", "ece", "auroc_macro", "auroc_micro"}
    one = measured_of(few.map.answers[:1])
    assert one.intervals == {}


def test_every_task_has_its_precision_whichever_is_measured() -> None:
    measurement = RunningMeasurement()
    measurement.update(reader(state().map.answers), 1, Choice("atom", "max_probability", "code"))
    measurement.wait(10)
    numbers = measurement.tasks("atom", "max_probability")
    assert {task: found.precision.value for task, found in numbers.items()} == {"maze": 4 / 9, "code": 6 / 7}
    for task, found in numbers.items():
        one = measured_of([answer for answer in state().map.answers if answer.task == task])
        assert (found.precision, found.recall, found.ece) == (
            one.values["precision"], one.values["recall"], one.values["ece"]
        )  # fmt: skip
        assert len(found.along) == 10
    assert measurement.tasks("line", "max_probability") == measurement.tasks("atom", "mean_entropy") == {}


def test_the_course_of_a_task_is_the_share_of_right_atoms_by_place() -> None:
    written = state_of(started(), *answer_events(1, 0, ["·" * 5 + "×" * 5]), *answer_events(2, 1, ["·" * 9 + "×"]))
    units = live_columns(written.map.answers, "atom", "max_probability")
    assert measure_tasks(units, "max_probability")["maze"].along == (1.0,) * 5 + (0.5,) * 4 + (0.0,)


def test_what_is_measured_last_is_known_to_be_the_newest_and_an_ended_run_does_not_rest() -> None:
    now = 0.0
    measurement = RunningMeasurement(lambda: now)
    answers = state().map.answers
    assert not measurement.is_newest(1, ATOMS)
    measurement.update(reader(answers[:1]), 1, ATOMS)
    measurement.wait(10)
    assert measurement.is_newest(1, ATOMS)
    assert not measurement.is_newest(2, ATOMS)
    measurement.update(reader(answers), 2, ATOMS)
    measurement.wait(10)
    assert not measurement.is_newest(2, ATOMS), "it rests"
    measurement.update(reader(answers), 2, ATOMS, rest=False)
    measurement.wait(10)
    assert measurement.is_newest(2, ATOMS)


def test_units_that_are_as_sure_are_not_less_sure() -> None:
    events = [scored(1, index, 0, "×", 0.5) for index in range(4)]
    tied = state_of(started(), *answer_events(1, 0, [], status=None), *events)
    measured = measured_of(tied.map.answers)
    assert measured.surer_than("maze", 0.5, "max_probability") == 0.0


def test_it_measures_again_only_after_a_rest_and_at_once_for_another_choice() -> None:
    now = 0.0
    measurement = RunningMeasurement(lambda: now)
    atom_map = state().map
    measurement.update(reader(atom_map.answers), atom_map.version, ATOMS)
    measurement.wait(10)
    first = measurement.result(ATOMS)
    assert first is not None
    assert measurement.failure is None
    measurement.update(reader(atom_map.answers[:1]), atom_map.version + 1, ATOMS)
    measurement.wait(10)
    assert measurement.result(ATOMS) is first
    one_task = Choice("atom", "max_probability", "code")
    measurement.update(reader(atom_map.answers), atom_map.version + 1, one_task)
    measurement.wait(10)
    assert measurement.result(ATOMS) is None
    found = measurement.result(one_task)
    assert found is not None
    assert found.answers == 2
    now = 1.0
    measurement.update(reader(atom_map.answers[:1]), atom_map.version + 2, one_task)
    measurement.wait(10)
    assert measurement.result(one_task) is not found
