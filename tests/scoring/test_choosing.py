"""The best function of a kind of unit is chosen on some answers and judged on others."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.choosing import FIXED_FUNCTION, NO_FUNCTION, UnitComparison, judge_units
from scoring.conclusions import Alternatives
from scoring.value import NO_TASKS, TOO_FEW_ANSWERS_OF_A_CLASS
from tests.scoring.measured import evaluate_metrics
from tests.scoring.simulated import noise, with_better_one


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def renamed(task: Alternatives, good: str) -> Alternatives:
    scores = {good if name == "better" else name: column for name, column in task.scores.items()}
    return Alternatives(task.task, task.correct, task.generation, scores)


def test_each_unit_is_judged_by_its_own_function() -> None:
    """Atoms are told apart by one function, lines by another; both are found and judged alike."""
    draw = generator()
    units = {
        kind: [renamed(with_better_one(str(number), 20, draw, 3, 1.0), good) for number in range(3)]
        for kind, good in (("atom", "for atoms"), ("line", "for lines"))
    }
    found = judge_units(units, generator(2))
    assert next(iter(found.units["atom"].chosen)) == "for atoms"
    assert found.units["atom"].chosen["for atoms"] == 1.0
    assert next(iter(found.units["line"].chosen)) == "for lines"
    for unit in found.units.values():
        assert unit.auroc.value == pytest.approx(0.76, abs=0.03)  # Φ(1/√2)
        assert unit.interval.low is not None
        assert unit.interval.low < 0.76 < (unit.interval.high or 0.0)
    assert found.verdict is not None
    assert set(found.verdict.best) == {"atom", "line"}
    assert (found.fixed, found.tasks, found.answers) == (None, ("0", "1", "2"), 60)


def test_choosing_on_noise_promises_nothing() -> None:
    """The best of nine functions on the same answers lies above one half; judged apart it does not."""
    values, same_answers = [], []
    for seed in range(12):
        draw = generator(seed)
        tasks = [noise(str(number), 12, draw, units=10) for number in range(2)]
        found = judge_units({"atom": tasks}, draw, splits=40, draws=20)
        values.append(found.units["atom"].auroc.value)
        same_answers.append(
            max(
                np.mean(
                    [
                        evaluate_metrics(task.scores[name], task.correct, probability=False)["auroc"].value
                        for task in tasks
                    ]
                )
                for name in tasks[0].scores
            )
        )
    assert np.mean(values) == pytest.approx(0.5, abs=0.02)
    assert np.mean(same_answers) > 0.53


def test_below_ten_answers_the_function_is_fixed() -> None:
    draw = generator()
    tasks = [noise(str(number), 9, draw) for number in range(3)]
    found = judge_units({"atom": tasks}, draw)
    assert found.fixed == FIXED_FUNCTION
    assert dict(found.units["atom"].chosen) == {FIXED_FUNCTION: 1.0}
    assert found.verdict is None
    each = [evaluate_metrics(t.scores[FIXED_FUNCTION], t.correct, probability=False)["auroc"].value for t in tasks]
    assert found.units["atom"].auroc.value == pytest.approx(np.mean(each))
    without = [Alternatives(t.task, t.correct, t.generation, {"x": t.scores["mean_entropy"]}) for t in tasks]
    assert judge_units({"atom": without}, draw).units["atom"].auroc.reason == f"no {FIXED_FUNCTION}"


def test_without_any_values_nothing_is_judged_and_the_reason_is_said() -> None:
    task = noise("t", 12, generator())
    empty = Alternatives("t", task.correct, task.generation, {FIXED_FUNCTION: np.full(task.correct.size, np.nan)})
    found = judge_units({"atom": [empty]}, generator())
    assert (found.tasks, found.tasks_left_out) == ((), {"t": NO_FUNCTION})
    assert found.units["atom"].auroc.value is None
    no_lines = Alternatives("t", np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64), {FIXED_FUNCTION: np.zeros(0)})
    found = judge_units({"atom": [task], "line": [no_lines]}, generator())
    assert found.tasks_left_out == {"t": TOO_FEW_ANSWERS_OF_A_CLASS}


def test_a_task_enters_where_every_unit_has_both_classes() -> None:
    draw = generator()
    good, other = noise("good", 12, draw), noise("other", 12, draw)
    one_class = Alternatives("other", np.ones_like(other.correct), other.generation, other.scores)
    found = judge_units({"atom": [good, other], "line": [good, one_class]}, draw)
    assert found.tasks == ("good",)
    assert found.tasks_left_out == {"other": TOO_FEW_ANSWERS_OF_A_CLASS}
    missing = judge_units({"atom": [good, other], "line": [good]}, draw)
    assert missing.tasks_left_out == {"other": "no line"}
    nothing = judge_units({"atom": [one_class]}, draw)
    assert nothing.units["atom"].auroc.reason == nothing.units["atom"].interval.reason == NO_TASKS


def test_units_of_one_answer_stay_together_in_all_kinds() -> None:
    """Whole answers: one unit each, of the same numbers as the atoms; a half always holds both classes."""
    draw = generator()
    atoms = noise("a", 12, draw)
    right = np.array([True, False] * 6)
    whole = Alternatives("a", right, np.arange(12), {name: draw.random(12) for name in ("x", FIXED_FUNCTION)})
    found = judge_units({"atom": [atoms], "generation": [whole]}, draw)
    assert found.answers == 12
    assert found.units["generation"].auroc.value is not None


def test_the_same_generator_judges_the_same() -> None:
    tasks = {"atom": [noise("a", 12, generator(3))]}
    first, second = (judge_units(tasks, generator(4)) for _ in range(2))
    assert isinstance(first, UnitComparison)
    assert first == second
