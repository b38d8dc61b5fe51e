"""Policies: bounds by hand, what is refused, and how often a promise fails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from scoring.decision_utility import Rewards
from scoring.policy import (
    NO_CANDIDATE,
    NO_THRESHOLD,
    TOO_FEW_PROBLEMS,
    NoPolicy,
    Policy,
    PolicyUnits,
    Promise,
    RewardPolicy,
    promise_policy,
    reward_policy,
)
from scoring.risk_bounds import STAKES, betting_growth, fewest_answers, pooled_bound


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_as_many_answers_as_a_promise_needs_when_none_is_wrong() -> None:
    assert fewest_answers(0.05, 0.1) == 45
    assert fewest_answers(0.1, 0.05) == 29
    assert fewest_answers(0.5, 0.25) == 2
    needed = fewest_answers(0.05, 0.1)
    assert pooled_bound(np.zeros(needed), np.full(needed, 7.0), 0.1) <= 0.05
    assert pooled_bound(np.zeros(needed - 1), np.full(needed - 1, 7.0), 0.1) > 0.05


def test_one_unit_an_answer_is_clopper_and_pearsons_bound() -> None:
    wrong = array(*[1.0] * 3, *[0.0] * 57)
    assert pooled_bound(wrong, np.ones(60), 0.1) == pytest.approx(stats.beta.ppf(0.9, 4, 57))


def test_units_of_one_answer_count_less() -> None:
    """E = 0, 1, 2 of T = 4: p = .25, v = 1.5·2/144, n* = 12 limited to .1875/v·(z/t)²."""
    effective = min(12.0, 0.1875 / (1.5 * 2 / 144) * (stats.norm.ppf(0.9) / stats.t.ppf(0.9, 2)) ** 2)
    expected = stats.beta.ppf(0.9, 0.25 * effective + 1, 0.75 * effective)
    assert pooled_bound(array(0, 1, 2), array(4, 4, 4), 0.1) == pytest.approx(expected)
    assert pooled_bound(array(1), array(4), 0.1) == 1.0
    assert pooled_bound(array(4, 4), array(4, 4), 0.1) == 1.0


def test_the_bet_takes_the_stake_that_grows_most() -> None:
    safe = betting_growth(np.zeros(20), 0.1)
    assert safe.stake == pytest.approx(0.9 / 0.9)
    assert safe.growth == pytest.approx(20 * np.log(1.1))
    risky = betting_growth(array(*[0.0] * 9, 1.0), 0.1)
    assert risky.stake == pytest.approx(STAKES[0] / 0.9)
    assert risky.growth < 0.0


def run_of(
    problems: int, draw: np.random.Generator, units: int = 8, level: float = 1.0, tasks: int = 2
) -> tuple[PolicyUnits, np.ndarray]:
    """Return units whose chance of being right rises with a score, and that chance."""
    problem = np.repeat(np.arange(problems), units)
    score = draw.normal(0.0, 1.0, problem.size) + draw.normal(0.0, 0.5, problems)[problem]
    chance = 1.0 / (1.0 + np.exp(-(level + 2.5 * score + draw.normal(0.0, 0.5, problems)[problem])))
    correct = draw.random(problem.size) < chance
    scores = {"logprob_sum": score, "mean_entropy": draw.exponential(1.0, problem.size)}
    return PolicyUnits(correct, problem, problem % tasks, scores), chance


def test_the_informative_function_is_chosen_and_kept_apart_from_testing() -> None:
    units, _ = run_of(400, np.random.default_rng(1))
    found = promise_policy(units, [Promise(0.1, 0.1)], np.random.default_rng(2))
    assert isinstance(found, Policy)
    assert (found.scale.function, found.scale.map) == ("logprob_sum", "none")
    band = found.bands[0]
    assert band.bound is not None
    assert band.pooled_error <= band.bound <= 0.1
    assert 0.2 <= band.coverage <= 0.7
    assert found.choosing + found.testing == 400
    assert found.choosing == pytest.approx(133, abs=2)
    decided = found.decide(units.scores["logprob_sum"])
    assert set(decided.tolist()) == {0, 1}
    assert (decided == 0).mean() == pytest.approx(band.coverage, abs=0.05)
    assert found.decide(np.array([np.nan]))[0] == 1


def test_two_promises_make_bands_of_which_the_second_is_wider() -> None:
    units, _ = run_of(500, np.random.default_rng(3))
    promises = [Promise(0.05, 0.1), Promise(0.2, 0.1)]
    found = promise_policy(units, promises, np.random.default_rng(4), maps=["none", "isotonic"])
    assert isinstance(found, Policy)
    assert found.bands[1].threshold <= found.bands[0].threshold
    assert found.bands[1].coverage >= found.bands[0].coverage
    assert [band.promise.delta for band in found.bands] == [0.05, 0.05]
    assert set(found.decide(units.scores[found.scale.function]).tolist()) == {0, 1, 2}


def test_what_cannot_be_promised_says_why() -> None:
    few, _ = run_of(40, np.random.default_rng(5))
    found = promise_policy(few, [Promise()], np.random.default_rng(6))
    assert isinstance(found, NoPolicy)
    assert found.reason.startswith("cannot be promised: ")
    assert found.reason.endswith("and 45 are needed")
    assert found.brief.endswith(" answers, 45 needed")
    hopeless, _ = run_of(200, np.random.default_rng(7), level=-9.0)
    assert promise_policy(hopeless, [Promise()], np.random.default_rng(8)) == NoPolicy(NO_THRESHOLD)
    one, _ = run_of(1, np.random.default_rng(9))
    assert promise_policy(one, [Promise()], np.random.default_rng(10)) == NoPolicy(TOO_FEW_PROBLEMS)
    blank = PolicyUnits(few.correct, few.problem, few.task, {"logprob_sum": np.full(few.correct.size, np.nan)})
    assert promise_policy(blank, [Promise()], np.random.default_rng(11)) == NoPolicy(NO_CANDIDATE)


def test_promises_that_make_no_sense_are_refused() -> None:
    units, _ = run_of(10, np.random.default_rng(12))
    draw = np.random.default_rng(13)
    with pytest.raises(ValueError, match="one or two"):
        promise_policy(units, [], draw)
    with pytest.raises(ValueError, match="larger alpha"):
        promise_policy(units, [Promise(0.1), Promise(0.1)], draw)
    with pytest.raises(ValueError, match="exact"):
        promise_policy(units, [Promise(0.1, exact=True), Promise(0.2)], draw)
    with pytest.raises(ValueError, match="alpha is between"):
        Promise(1.0)


def test_rewards_choose_a_calibrated_scale_that_beats_trusting_all_and_none() -> None:
    units, _ = run_of(300, np.random.default_rng(14))
    rewards = Rewards(1.0, -3.0, 0.0, 0.0)
    found = reward_policy(units, rewards, np.random.default_rng(15), maps=["platt", "isotonic"])
    assert isinstance(found, RewardPolicy)
    assert found.scale.function == "logprob_sum"
    assert found.threshold == 0.75
    assert found.mean_reward > max(found.trust_all, found.trust_none)
    assert found.trust_none == 0.0
    raw = reward_policy(units, rewards, np.random.default_rng(15))
    assert raw == NoPolicy(NO_CANDIDATE)


@pytest.mark.parametrize("maps", [["beta"], ["temperature"], ["beta", "platt"]])
def test_a_map_of_probabilities_is_not_fitted_on_what_may_be_none(maps: list[str]) -> None:
    """An entropy of all choosing units may be below 1, and that of a testing unit above."""
    units, _ = run_of(60, np.random.default_rng(3))
    draw = np.random.default_rng(4)
    entropy = 0.9 - 0.5 * units.correct * draw.random(units.correct.size)
    entropy[0] = 1.5
    only = PolicyUnits(units.correct, units.problem, units.task, {"mean_entropy": entropy})
    for seed in range(5):
        found = reward_policy(only, Rewards(1.0, -3.0, 0.0, 0.0), np.random.default_rng(seed), maps=maps)
        promised = promise_policy(only, [Promise(0.5, 0.5)], np.random.default_rng(seed), maps=maps)
        for one in (found, promised):
            assert one == NoPolicy(NO_CANDIDATE) if "platt" not in maps else not isinstance(one, NoPolicy)


def failures(sets: int, problems: int, promise: Promise, units: int = 8) -> tuple[float, float]:
    """Return how often a promise fails in truth, and how often one is made."""
    population, chance = run_of(40_000, np.random.default_rng(99), units)
    failed = made = 0
    for seed in range(sets):
        draw = np.random.default_rng(seed)
        found = promise_policy(run_of(problems, draw, units)[0], [promise], draw)
        if not isinstance(found, Policy):
            continue
        made += 1
        trusted = found.decide(population.scores[found.scale.function]) == 0
        risk = float((1.0 - chance[trusted]).mean())
        if promise.exact:
            held = np.bincount(population.problem, weights=trusted)
            wrong = np.bincount(population.problem, weights=trusted * (1.0 - chance))
            risk = float((wrong[held > 0] / held[held > 0]).mean())
        failed += risk > promise.alpha
    return failed / sets, made / sets


@pytest.mark.parametrize("exact", [False, True])
def test_a_promise_fails_as_seldom_as_it_says_and_is_made_where_it_can_be(exact: bool) -> None:
    """A small part of the simulation below."""
    failed, made = failures(40, 300, Promise(0.1, 0.1, exact))
    assert failed <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 40)
    assert made >= 0.8


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("exact", "room"), [(True, 3 * np.sqrt(0.1 * 0.9 / 1000)), (False, 0.05)])
@pytest.mark.parametrize("problems", [150, 300])
def test_promises_in_a_thousand_data_sets(exact: bool, room: float, problems: int) -> None:
    failed, made = failures(1000, problems, Promise(0.1, 0.1, exact))
    assert failed <= 0.1 + room
    assert made >= 0.8 or problems < 300
