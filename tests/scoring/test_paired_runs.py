"""Two runs on the same problems: by hand, at the edges, and how often the test and the intervals are wrong."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from scoring.paired_runs import (
    BASE_IS_ZERO,
    COMPARED,
    CONFIDENCE_METRICS,
    NO_DIFFERENCE,
    TOO_FEW_DIFFERING,
    PairedMetric,
    PairedTask,
    RunOnTask,
    compare_runs,
    metrics_one_by_one,
)
from scoring.value import NO_SPREAD, NO_TASKS, NOT_A_PROBABILITY, ONE_CLASS
from tests.scoring.measured import evaluate_metrics


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def run(right: list[int], units: int = 1, confidence: list[list[float]] | None = None) -> RunOnTask:
    """Problems of so many units, the first ones right; a confidence per unit."""
    hits = np.array(right, dtype=np.float64)
    sizes = np.full(hits.size, float(units))
    correct = np.array([place < count for count in right for place in range(units)], dtype=bool)
    values = np.array(confidence, dtype=float).ravel() if confidence is not None else np.full(correct.size, 0.5)
    return RunOnTask(hits, sizes, sizes, correct, values, np.repeat(np.arange(hits.size), units))


def precision(first: list[int], second: list[int], units: int = 1) -> PairedMetric:
    task = PairedTask("a", run(first, units), run(second, units))
    return compare_runs([task], generator(), metrics=["precision"])["precision"]


def test_six_problems_that_all_change_reach_two_in_sixty_four() -> None:
    found = precision([0] * 6, [1] * 6)
    assert found.p_value.value == pytest.approx(2 / 64)
    assert (found.exact, found.differing) == (True, 6)
    assert found.mean.difference.value == 1.0
    assert found.relative_change.reason == BASE_IS_ZERO
    assert found.mean.interval.reason == NO_SPREAD


def test_five_differing_problems_are_refused_however_many_there_are() -> None:
    found = precision([0] * 5 + [1] * 20, [1] * 25)
    assert found.p_value.reason == TOO_FEW_DIFFERING
    assert found.differing == 5


def test_every_swap_is_counted() -> None:
    """Seven problems of three units: the share of sign patterns whose mean change is as large."""
    first, second = [0, 1, 1, 2, 0, 3, 1], [3, 3, 2, 1, 2, 1, 2]
    changes = np.array(second) - np.array(first)
    sums = [abs(np.dot(signs, changes)) for signs in product((-1, 1), repeat=7)]
    expected = np.mean([total >= abs(changes.sum()) - 1e-12 for total in sums])
    found = precision(first, second, units=3)
    assert found.p_value.value == pytest.approx(expected)
    assert found.relative_change.value == pytest.approx((14 - 8) / 8)
    assert found.mean.first.value == pytest.approx(8 / 21)


def test_the_mean_over_tasks_counts_each_task_equally() -> None:
    tasks = [PairedTask("a", run([1, 1]), run([1, 0])), PairedTask("b", run([0] * 8), run([1] * 4 + [0] * 4))]
    found = compare_runs(tasks, generator(), metrics=["recall"])["recall"]
    assert found.mean.difference.value == pytest.approx((-0.5 + 0.5) / 2)
    assert found.mean.problems_needed.reason == NO_DIFFERENCE
    assert found.tasks["b"].difference.value == 0.5
    assert found.tasks["b"].problems == 8


def test_problems_needed_and_what_can_be_detected_follow_from_the_spread() -> None:
    first, second = [0] * 10, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    found = precision(first, second).tasks["a"]
    error = (0.3 * 0.7 / 9) ** 0.5
    assert found.detectable.value == pytest.approx(2.8 * error, rel=0.06)
    assert found.problems_needed.value == pytest.approx(10 * (2.8 * error / 0.3) ** 2, rel=0.12)
    assert not found.too_small


def test_a_change_may_be_too_small_to_matter() -> None:
    """One unit of 400 in each of two of sixty problems."""
    first = [200] * 60
    second = [201, 201, *first[2:]]
    found = precision(first, second, units=400).tasks["a"]
    assert found.too_small
    assert found.interval.high is not None
    assert found.interval.high < 0.001


def test_confidence_metrics_are_those_of_each_run() -> None:
    draw = generator(3)
    tasks = [PairedTask(name, random_run(draw, 8, 0.6), random_run(draw, 8, 0.4)) for name in "ab"]
    found = compare_runs(tasks, generator())
    assert tuple(found) == COMPARED
    for name in ("brier", "auroc", "ece"):
        for task in tasks:
            for side, source in (("first", task.first), ("second", task.second)):
                expected = evaluate_metrics(source.confidence, source.correct)[name].value
                assert getattr(found[name].tasks[task.task], side).value == pytest.approx(expected)
    worse = found["ece"]
    assert worse.mean.first.value is not None
    assert worse.relative_change.value == pytest.approx(
        (worse.mean.first.value - (worse.mean.second.value or 0.0)) / worse.mean.first.value
    )
    assert worse.mean.problems_needed.reason is not None


def random_run(draw: np.random.Generator, problems: int, rate: float, units: int = 12) -> RunOnTask:
    owner = np.repeat(np.arange(problems), units)
    of_problems = np.clip(draw.normal(rate, 0.2, problems), 0.0, 1.0)
    correct = draw.random(owner.size) < of_problems[owner]
    confidence = np.clip(0.5 + 0.2 * correct + draw.normal(0.0, 0.2, owner.size), 0.0, 1.0)
    right = np.bincount(owner, weights=correct, minlength=problems)
    sizes = np.full(problems, float(units))
    return RunOnTask(right, sizes, sizes, correct, confidence, owner)


def test_what_has_no_value_is_left_out_and_says_why() -> None:
    one_class = PairedTask("one class", run([1] * 4), run([1, 0, 1, 0]))
    found = compare_runs([one_class], generator(), probability=False)
    assert found["auroc"].tasks["one class"].difference.reason == ONE_CLASS
    assert found["auroc"].mean.difference.reason == NO_TASKS
    assert found["brier"].p_value.reason == found["ece"].mean.difference.reason == NOT_A_PROBABILITY
    assert compare_runs([], generator())["precision"].mean.difference.reason == NO_TASKS
    with pytest.raises(ValueError, match="compared in"):
        compare_runs([], generator(), metrics=["mce"])
    with pytest.raises(ValueError, match="same problems"):
        PairedTask("a", run([1]), run([1, 1]))


def test_the_same_run_twice_does_not_differ() -> None:
    one = random_run(generator(), 12, 0.5)
    for metric in compare_runs([PairedTask("a", one, one)], generator()).values():
        assert metric.mean.difference.value == 0.0
        assert metric.differing == 0
        assert metric.p_value.reason == TOO_FEW_DIFFERING


def paired(draw: np.random.Generator, problems: int, better_by: float, tasks: int) -> list[PairedTask]:
    """Two runs whose problems are hard alike."""
    made = []
    for task in range(tasks):
        rate = draw.beta(2.0, 2.0, problems)
        pair = [np.clip(rate + shift, 0.0, 1.0) for shift in (0.0, better_by)]
        runs = [run(draw.binomial(10, chances).tolist(), 10) for chances in pair]
        made.append(PairedTask(str(task), *runs))
    return made


@pytest.mark.parametrize(("problems", "tasks"), [(12, 1), (8, 3)])
def test_equal_runs_are_told_apart_in_one_of_twenty_and_a_better_one_is_seen(problems: int, tasks: int) -> None:
    draw = generator(problems)
    sets = 80
    found = [
        compare_runs(paired(draw, problems, 0.0, tasks), draw, metrics=["precision"], draws=300, swaps=400)["precision"]
        for _ in range(sets)
    ]
    p_values = np.array([one.p_value.value for one in found])
    assert (p_values <= 0.05).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / sets)
    covered = [(one.mean.interval.low or 0.0) <= 0.0 <= (one.mean.interval.high or 0.0) for one in found]
    assert np.mean(covered) >= 0.92 - 3 * np.sqrt(0.92 * 0.08 / sets)
    better = compare_runs(paired(draw, 40, 0.3, tasks), draw, metrics=["precision"], swaps=400)["precision"]
    assert better.p_value.value is not None
    assert better.p_value.value < 0.01
    assert not better.exact


def test_a_task_is_clear_after_correction_for_the_number_of_tasks() -> None:
    # Seven of ten problems gain two units of ten: t = 4.58, past the 2.26 of one task, short of the 4.78 of 50.
    changed = PairedTask("a", run([5] * 10, 10), run([7, 7, 7, 7, 7, 7, 7, 5, 5, 5], 10))
    equal = [PairedTask(str(number), run([5, 6], 10), run([6, 5], 10)) for number in range(49)]
    alone = compare_runs([changed], generator(), metrics=["precision"])["precision"]
    assert alone.tasks["a"].clear
    assert alone.mean.clear
    among = compare_runs([changed, *equal], generator(), metrics=["precision"])["precision"]
    assert (among.tasks["a"].interval.low or 0.0) > 0.0
    assert not among.tasks["a"].clear


def test_a_mean_is_clear_only_where_interval_and_swaps_say_so() -> None:
    # All four problems of a task lose alike, so it adds no variance: the interval is that of the other task alone.
    alike = PairedTask("a", run([1] * 4), run([0] * 4))
    mixed = PairedTask("b", run([1, 0, 1, 0, 1, 0, 1, 0, 1, 0]), run([1, 1, 1, 0, 1, 0, 1, 0, 1, 1]))
    metric = compare_runs([alike, mixed], generator(), metrics=["precision"])["precision"]
    assert (metric.mean.interval.high or 0.0) < 0.0
    assert metric.p_value.value is not None
    assert metric.p_value.value > 0.05
    assert not metric.mean.clear


def test_a_run_without_confidences_is_compared_in_its_shares_only() -> None:
    tasks = [PairedTask("a", random_run(generator(), 8, 0.5), random_run(generator(2), 8, 0.5))]
    found = {metric.name: metric for metric in metrics_one_by_one(tasks, generator(), without="no tokens in B")}
    assert found["recall"] == compare_runs(tasks, generator())["recall"]
    assert {found[name].mean.difference.reason for name in CONFIDENCE_METRICS} == {"no tokens in B"}
