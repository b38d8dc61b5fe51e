"""What may be concluded: the set that cannot be told apart from the best, checked where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.conclusions import (
    CONCLUDING,
    NEVER_DRAWN,
    TOO_FEW_ALTERNATIVES,
    Alternatives,
    Conclusion,
    conclude,
    draw_answers,
)
from scoring.metrics import METRICS
from scoring.value import TOO_FEW_ANSWERS_OF_A_CLASS, TOO_FEW_PAIRS
from tests.scoring.measured import evaluate_metrics
from tests.scoring.simulated import noise, with_better_one


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def task(
    name: str, correct: list[int], generation: list[int], scores: dict[str, list[float]], fold: list[int] | None = None
) -> Alternatives:
    return Alternatives(
        name,
        np.array(correct, dtype=bool),
        np.array(generation),
        {key: np.array(column, dtype=float) for key, column in scores.items()},
        None if fold is None else np.array(fold),
    )


# Ten answers of a right and a wrong unit each.
CORRECT = [1, 0] * 10
ANSWERS = [number // 2 for number in range(20)]
PERFECT = [0.9, 0.1] * 10
WRONG_WAY = [0.1, 0.9] * 10
CONSTANT = [0.5] * 20


def test_a_perfect_function_is_the_only_best_one_and_the_others_say_by_what_they_are_beaten() -> None:
    found = conclude(
        [task("a", CORRECT, ANSWERS, {"flat": CONSTANT, "good": PERFECT, "bad": WRONG_WAY})], "auroc", generator()
    )
    assert found.best == ("good",)
    assert found.winner == ("good",)
    assert {name: value.value for name, value in found.means.items()} == {"good": 1.0, "flat": 0.5, "bad": 0.0}
    assert list(found.means) == ["good", "flat", "bad"]
    assert found.excluded["bad"].better == "good"
    assert found.excluded["bad"].difference == 1.0
    assert found.leading == found.excluded["flat"]
    assert (found.answers, found.units, found.tasks) == (10, 20, ("a",))


@pytest.mark.parametrize("metric", ["brier", "nll"])
def test_lower_is_better_for_losses(metric: str) -> None:
    found = conclude([task("a", CORRECT, ANSWERS, {"bad": WRONG_WAY, "good": PERFECT})], metric, generator())
    assert found.best == ("good",)
    expected = evaluate_metrics(PERFECT, CORRECT)[metric].value
    assert found.means["good"].value == pytest.approx(expected)


def test_alternatives_that_agree_on_every_unit_are_one() -> None:
    scores = {"p": PERFECT, "again": PERFECT, "log": [np.log(p) for p in PERFECT], "flat": CONSTANT}
    found = conclude([task("a", CORRECT, ANSWERS, scores)], "auroc", generator())
    assert found.same == (("p", "again", "log"),)
    assert found.winner == ("p", "again", "log")


def test_alternatives_are_one_where_the_caller_knows() -> None:
    """Rounding ties two sums of log-probabilities and not their exponentials."""
    nearly = [*PERFECT[:-2], 0.1, 0.1]
    scores = {"logprob_sum": PERFECT, "joint_probability": nearly}
    found = conclude(
        [task("a", CORRECT, ANSWERS, scores)], "auroc", generator(), same=[["logprob_sum", "joint_probability"]]
    )
    assert found.same == (("logprob_sum", "joint_probability"),)
    assert found.best == ("logprob_sum", "joint_probability")
    assert found.leading is None


def test_an_infinite_loss_loses_and_two_tie() -> None:
    sure = [1.0, 0.0] * 10
    mistaken = [1.0, 0.0] * 9 + [0.0, 1.0]
    found = conclude(
        [task("a", CORRECT, ANSWERS, {"inf 1": mistaken, "flat": CONSTANT, "inf 2": mistaken, "sure": sure})],
        "nll",
        generator(),
    )
    assert found.means["inf 1"].value == found.means["inf 2"].value == np.inf
    assert found.excluded["inf 1"].difference == np.inf
    assert found.best == ("sure",)
    both = conclude([task("a", CORRECT, ANSWERS, {"inf 1": mistaken, "inf 2": mistaken})], "nll", generator())
    assert both.best == ("inf 1", "inf 2")
    assert not both.excluded


def test_one_task_of_infinite_loss_makes_the_mean_infinite() -> None:
    mistaken = [1.0, 0.0] * 9 + [0.0, 1.0]
    fine = task("a", CORRECT, ANSWERS, {"x": PERFECT, "y": CONSTANT})
    broken = task("b", CORRECT, ANSWERS, {"x": mistaken, "y": CONSTANT})
    found = conclude([fine, broken], "nll", generator())
    assert found.means["x"].value == np.inf
    assert found.best == ("y",)


def test_tasks_enter_that_hold_each_class_in_two_answers() -> None:
    good = task("good", CORRECT, ANSWERS, {"x": PERFECT, "y": CONSTANT})
    one_wrong = task("one wrong", [1] * 19 + [0], ANSWERS, {"x": PERFECT, "y": CONSTANT})
    found = conclude([good, one_wrong], "auroc", generator())
    assert found.tasks == ("good",)
    assert found.tasks_left_out == {"one wrong": TOO_FEW_ANSWERS_OF_A_CLASS}
    none = conclude([one_wrong], "brier", generator())
    assert (none.best, none.reason) == ((), "no tasks")


def test_inside_folds_thirty_pairs_are_needed_and_only_those_count() -> None:
    folds = [number // 4 for number in range(20)]
    scores = {"x": PERFECT, "y": CONSTANT}
    few = conclude([task("a", CORRECT, ANSWERS, scores, folds)], "auroc", generator())
    assert few.tasks_left_out == {"a": TOO_FEW_PAIRS}  # five folds of four pairs
    halves = [number // 10 for number in range(20)]
    # Ranked right inside both halves, wrong between them.
    apart = [0.9, 0.8] * 5 + [0.5, 0.1] * 5
    found = conclude([task("a", CORRECT, ANSWERS, {"x": apart, "y": CONSTANT}, halves)], "auroc", generator())
    assert found.means["x"].value == 1.0


def test_units_without_a_value_of_one_are_left_out_for_all_and_an_alternative_that_lacks_most_is() -> None:
    holes = [float("nan"), float("nan"), *PERFECT[2:]]
    mostly = [float("nan")] * 12 + PERFECT[12:]
    found = conclude(
        [task("a", CORRECT, ANSWERS, {"flat": CONSTANT, "holes": holes, "mostly": mostly})], "auroc", generator()
    )
    assert found.left_out == {"mostly": "has a value for 8 of 20 units"}
    assert (found.units, found.units_left_out) == (18, 2)
    assert found.best == ("holes",)


def test_fewer_than_two_alternatives_are_no_question() -> None:
    found = conclude([task("a", CORRECT, ANSWERS, {"x": PERFECT})], "auroc", generator())
    assert (found.best, found.winner, found.reason) == ((), (), TOO_FEW_ALTERNATIVES)
    assert conclude([], "auroc", generator()).reason == TOO_FEW_ALTERNATIVES


@pytest.mark.parametrize("metric", sorted(set(METRICS) - set(CONCLUDING)))
def test_other_metrics_name_nothing(metric: str) -> None:
    with pytest.raises(ValueError, match="names no best alternative"):
        conclude([task("a", CORRECT, ANSWERS, {"x": PERFECT, "y": CONSTANT})], metric, generator())


def test_resamples_hold_one_answer_less_and_both_classes() -> None:
    """Two answers with right units and two with wrong ones: half of the resamples of three would lack a class."""
    few = task("a", [1, 1, 0, 0], [10, 11, 12, 13], {"x": [0.4, 0.3, 0.2, 0.1]})
    weights, redrawn = draw_answers(few, "auroc", 400, generator())
    assert weights is not None
    assert (weights.sum(axis=1) == 3).all()
    assert ((weights[:, :2].sum(axis=1) > 0) & (weights[:, 2:].sum(axis=1) > 0)).all()
    assert 60 <= redrawn <= 220  # a quarter of the resamples, and those of the repetitions
    lonely = task("a", [1, 0], [0, 1], {"x": [0.4, 0.3]})
    assert draw_answers(lonely, "auroc", 10, generator())[0] is None
    assert NEVER_DRAWN


def test_the_same_generator_concludes_the_same() -> None:
    tasks = [noise(str(number), 10, generator(3)) for number in range(3)]
    assert conclude(tasks, "auroc", generator(5)) == conclude(tasks, "auroc", generator(5))


def share(concluded: list[Conclusion], wanted: tuple[str, ...] | None = None) -> float:
    return float(np.mean([bool(one.winner) if wanted is None else one.winner == wanted for one in concluded]))


def on_noise(answers: int, sets: int) -> list[Conclusion]:
    found = []
    for seed in range(sets):
        draw = generator(seed)
        tasks = [noise(str(number), answers, draw) for number in range(8)]
        found.append(conclude(tasks, "auroc", draw))
    return found


def better_ones(answers: int, sets: int) -> list[Conclusion]:
    found = []
    for seed in range(sets):
        draw = generator(seed)
        tasks = [with_better_one(str(number), answers, draw) for number in range(8)]
        found.append(conclude(tasks, "auroc", draw))
    return found


@pytest.mark.slow
def test_noise_has_no_winner_and_a_better_function_is_found() -> None:
    """A small part of the simulations below."""
    for answers in (5, 20):
        noisy = on_noise(answers, 20)
        assert share(noisy) <= 0.05
        assert np.mean([bool(one.excluded) for one in noisy]) <= 0.2
    assert share(better_ones(20, 10), ("better",)) >= 0.8
