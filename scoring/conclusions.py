"""What may be concluded about which of several alternatives is best: confidence functions, maps, estimators.

The result is a set: the alternatives that cannot be told apart from the best one.  All pairs are compared at once by
a bootstrap over answers, so that on answers where no alternative is better than another, at most one report in twenty
excludes one wrongly, however many alternatives there are.  Uncorrected tests of pairs, as in SALT appendix G.1, name a
winner on pure noise in 77 to 90 % of data sets (300 simulated ones, eight tasks).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.benchmark_intervals import draw_generations, resampled_metrics
from scoring.metrics import METRICS
from scoring.ranking_inside_folds import FEWEST_PAIRS
from scoring.scored_units import FloatArray, IntArray
from scoring.value import NO_TASKS, TOO_FEW_ANSWERS_OF_A_CLASS, TOO_FEW_ANSWERS_OF_BOTH, TOO_FEW_PAIRS, Value

CONCLUDING: tuple[str, ...] = ("auroc", "auroc_micro", "brier", "nll")
"""The metrics that may name a best alternative.

Not ECE, MCE, ACE and smooth ECE: of two perfectly calibrated functions the one that says the base rate for every unit
"won" on ECE in 65 % of simulated data sets.  Which is better calibrated is concluded from Brier.
"""

ERROR_RATE = 0.05
"""How often a report may exclude an alternative wrongly, shared over its questions."""

DRAWS = 1000
MOST_REDRAWS = 200
ROUNDING = 1e-12
FEWEST_ANSWERS_PER_CLASS = 2
SMALLEST_SHARE = 0.5
"""An alternative with a value for fewer of the units is left out of a comparison, instead of the units."""

TOO_FEW_ALTERNATIVES = "fewer than two alternatives"
NEVER_DRAWN = "resamples hardly ever hold both classes"


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The units of one task with what every alternative says about them.

    Attributes:
        task: its name.
        correct: shape ``(n,)``.
        generation: the answer of each unit, any whole numbers, shape ``(n,)``.
        scores: per alternative a column of shape ``(n,)``, higher is more confident, NaN where it has no value; in
            [0, 1] for metrics that need probabilities.
        fold: of each unit, for alternatives of which some are maps that are not strictly rising, shape ``(n,)``:
            AUROC then counts pairs inside folds only, for all alternatives alike.
    """

    task: str
    correct: NDArray[np.bool_]
    generation: IntArray
    scores: Mapping[str, FloatArray]
    fold: IntArray | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better one alternative is than another, as mean over tasks.

    Attributes:
        better: the better one.
        worse: the other.
        difference: at least 0, in the unit of the metric; infinite where only one mean is.
        standard_error: of the difference, over resamples of answers.
        half_width: the simultaneous interval of all differences is difference ± half_width.
    """

    better: str
    worse: str
    difference: float
    standard_error: float
    half_width: float

    @property
    def told_apart(self) -> bool:
        """Whether the interval excludes 0."""
        return self.difference > self.half_width


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Which alternatives cannot be told apart from the best.

    Attributes:
        metric: the question's metric.
        means: every compared alternative's mean over the tasks, best first.
        best: those that no other one beats, best mean first; all of them where nothing can be told apart.
        excluded: for each other one, the alternative that beats it most clearly.
        same: alternatives that cannot differ in this metric on these units; each such group counts as one.
        leading: the best mean against the best one of another group; None with one group.
        left_out: alternatives that were not compared, with the reason.
        tasks: the tasks that entered.
        tasks_left_out: the other tasks, with the reason.
        answers: number of answers in the tasks that entered.
        units: number of units there.
        units_left_out: units without a value of some compared alternative.
        draws: resamples.
        redrawn: resamples that were drawn again because a class was missing in a task.
        reason: why nothing was compared; `best` is empty then.
    """

    metric: str
    means: Mapping[str, Value]
    best: tuple[str, ...]
    excluded: Mapping[str, Difference]
    same: tuple[tuple[str, ...], ...]
    leading: Difference | None
    left_out: Mapping[str, str]
    tasks: tuple[str, ...]
    tasks_left_out: Mapping[str, str]
    answers: int
    units: int
    units_left_out: int
    draws: int
    redrawn: int
    reason: str | None = None

    @property
    def winner(self) -> tuple[str, ...]:
        """The one best alternative, with those that cannot differ from it; empty unless all others are excluded."""
        if not self.excluded or not self.best:
            return ()
        alike = next((group for group in self.same if self.best[0] in group), self.best[:1])
        return self.best if set(self.best) == set(alike) else ()


@dataclass(frozen=True, slots=True)
class Resampled:
    """The means over tasks of every alternative, as measured and in every resample.

    Attributes:
        names: of the alternatives.
        means: shape ``(alternatives,)``; ``inf`` for an infinite loss.
        draws: shape ``(draws, alternatives)``; the same answers are drawn for all.
    """

    names: tuple[str, ...]
    means: FloatArray
    draws: FloatArray


def conclude(
    tasks: Sequence[Alternatives],
    metric: str,
    generator: np.random.Generator,
    *,
    questions: int = 1,
    draws: int = DRAWS,
    same: Sequence[Sequence[str]] = (),
    step: Callable[[], object] = lambda: None,
) -> Conclusion:
    """Return the alternatives that cannot be told apart from the best (multiple comparisons with the best).

    Answers are drawn inside tasks, n − 1 of n, for all alternatives alike.  The statistic is the mean over tasks, each
    task equal.  An alternative is excluded if another one is better by q · se of their difference, where q is the
    quantile of max |D* − D| / se over all pairs and resamples.  Maps and probes are not fitted again in resamples, so
    the conclusion is about the maps as fitted here.

    A task enters if at least two of its answers hold a right and at least two a wrong unit (for ``auroc_micro``: two
    that hold both), and, where folds are given and the metric is ``auroc``, at least 30 pairs inside folds.  An
    infinite loss makes the mean infinite: it is beaten by every finite one and ties with another infinite one.

    Args:
        tasks: the same alternatives in every task, or NaN; a column may be missing in a task.
        metric: one of `CONCLUDING`.
        generator: the only source of chance.
        questions: how many questions the report answers; they share the error rate of 5 %.
        draws: number of resamples.
        same: groups of alternatives known not to differ in this metric, such as ``perplexity`` and
            ``log_perplexity`` in AUROC.  Alternatives that agree in every resample are found without this.
        step: called before each alternative of each task is resampled; stops the work by raising.

    Raises:
        ValueError: for a metric that may not name a best alternative.
    """
    if metric not in CONCLUDING:
        raise ValueError(f"{metric} names no best alternative; {', '.join(CONCLUDING)} do")
    names = tuple(dict.fromkeys(name for task in tasks for name in task.scores))
    left_out = incomplete(tasks, names)
    names = tuple(name for name in names if name not in left_out)
    means, drawn, entered = [], [], []
    tasks_left_out: dict[str, str] = {}
    answers = units = missing = redrawn = 0
    for task in tasks:
        complete = complete_units(task, names)
        problem = why_not(complete, metric) if names else TOO_FEW_ALTERNATIVES
        if problem is None:
            weights, repeated = draw_answers(complete, metric, draws, generator)
            problem = None if weights is not None else NEVER_DRAWN
        if problem is not None or weights is None:
            tasks_left_out[task.task] = problem or NEVER_DRAWN
            continue
        values = _measured(complete, names, metric, weights, step)
        means.append(values[0])
        drawn.append(values[1:])
        entered.append(task.task)
        redrawn += repeated
        answers += weights.shape[1]
        units += complete.correct.size
        missing += task.correct.size - complete.correct.size
    reason = TOO_FEW_ALTERNATIVES if len(names) < 2 else None if entered else NO_TASKS
    verdict = Verdict({}, (), {}, (), None)
    if entered and names:
        resampled = Resampled(names, np.mean(means, axis=0), np.mean(drawn, axis=0))
        verdict = tell_apart(resampled, bool(METRICS[metric].higher_is_better), ERROR_RATE / questions, same)
    return Conclusion(
        metric=metric,
        means=verdict.means,
        best=() if reason else verdict.best,
        excluded=verdict.excluded,
        same=verdict.same,
        leading=verdict.leading,
        left_out=left_out,
        tasks=tuple(entered),
        tasks_left_out=tasks_left_out,
        answers=answers,
        units=units,
        units_left_out=missing,
        draws=draws,
        redrawn=redrawn,
        reason=reason,
    )


def draw_answers(
    task: Alternatives, metric: str, draws: int, generator: np.random.Generator
) -> tuple[FloatArray | None, int]:
    """Return n − 1 of a task's n answers, drawn with replacement, and how many resamples were drawn again.

    The weights have shape ``(draws, n)``, columns in ascending order of the answers' numbers.  With n of n drawn the
    spread is too small by (n − 1)/n: at five answers a task 9 % of simulated reports named a false winner, against
    3 %.  A resample in which the metric is undefined is drawn again; None when that goes on for 200 rounds.
    """
    pairs = _pair_classes(task, metric)
    count = pairs[0][0].size
    weights = draw_generations(count, draws, generator, count - 1)
    redrawn = 0
    for _ in range(MOST_REDRAWS):
        defined = np.zeros(draws)
        for right, wrong in pairs:
            defined += (weights @ right) * (weights @ wrong)
        bad = np.flatnonzero(defined == 0.0)
        if not bad.size:
            return weights, redrawn
        redrawn += bad.size
        weights[bad] = draw_generations(count, bad.size, generator, count - 1)
    return None, redrawn


def _pair_classes(task: Alternatives, metric: str) -> list[tuple[FloatArray, FloatArray]]:
    """Return what a resample must hold: right and wrong units per answer, one entry per fold.

    Each entry has a number per answer, twice; the metric is defined where some entry has both drawn.
    """
    answers, owner = np.unique(task.generation, return_inverse=True)

    def per_answer(chosen: NDArray[np.bool_]) -> FloatArray:
        return np.bincount(owner, weights=chosen, minlength=answers.size).astype(np.float64)

    right, wrong = per_answer(task.correct), per_answer(~task.correct)
    if metric == "auroc_micro":
        both = ((right > 0) & (wrong > 0)).astype(np.float64)
        return [(both, both)]
    if metric == "auroc" and task.fold is not None:
        folds = [task.fold == code for code in np.unique(task.fold)]
        return [(per_answer(task.correct & fold), per_answer(~task.correct & fold)) for fold in folds]
    if metric == "auroc":
        return [(right, wrong)]
    return [(right + wrong, right + wrong)]


def incomplete(tasks: Sequence[Alternatives], names: Sequence[str]) -> dict[str, str]:
    """Return the alternatives that lack a value for too many units, with the reason."""
    total = sum(task.correct.size for task in tasks)
    left_out = {}
    for name in names:
        known = sum(int((~np.isnan(task.scores[name])).sum()) for task in tasks if name in task.scores)
        if known < SMALLEST_SHARE * total or not known:
            left_out[name] = f"has a value for {known} of {total} units"
    return left_out


def complete_units(task: Alternatives, names: Sequence[str]) -> Alternatives:
    """Return the units for which every alternative has a value; none where an alternative has no column."""
    kept = np.ones(task.correct.size, dtype=bool)
    for name in names:
        kept &= ~np.isnan(task.scores[name]) if name in task.scores else False
    return Alternatives(
        task.task,
        task.correct[kept],
        task.generation[kept],
        {name: task.scores[name][kept] for name in names if name in task.scores},
        None if task.fold is None else task.fold[kept],
    )


def why_not(task: Alternatives, metric: str) -> str | None:
    """Return why a task cannot enter a comparison; None where it can."""
    right, wrong = np.unique(task.generation[task.correct]), np.unique(task.generation[~task.correct])
    if metric == "auroc_micro":
        few = np.intersect1d(right, wrong).size < FEWEST_ANSWERS_PER_CLASS
        return TOO_FEW_ANSWERS_OF_BOTH if few else None
    if min(right.size, wrong.size) < FEWEST_ANSWERS_PER_CLASS:
        return TOO_FEW_ANSWERS_OF_A_CLASS
    if metric == "auroc" and task.fold is not None:
        pairs = sum(right.sum() * wrong.sum() for right, wrong in _pair_classes(task, metric))
        return TOO_FEW_PAIRS if pairs < FEWEST_PAIRS else None
    return None


def _measured(
    task: Alternatives, names: Sequence[str], metric: str, weights: FloatArray, step: Callable[[], object]
) -> FloatArray:
    """Return the metric of every alternative, shape ``(1 + draws, alternatives)``; the first row is of all answers."""
    owner = np.unique(task.generation, return_inverse=True)[1].astype(np.int64)
    rows = np.concatenate([np.ones((1, weights.shape[1])), weights])
    columns = []
    for name in names:
        step()
        found = resampled_metrics(
            task.scores[name],
            task.correct,
            owner,
            rows,
            probability=METRICS[metric].needs_probability,
            names=(metric,),
            fold=task.fold,
        )
        columns.append(found[metric])
    return np.column_stack(columns)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What comparing all pairs gives; the attributes are those of `Conclusion`."""

    means: dict[str, Value]
    best: tuple[str, ...]
    excluded: dict[str, Difference]
    same: tuple[tuple[str, ...], ...]
    leading: Difference | None


def tell_apart(
    resampled: Resampled, higher_is_better: bool, error_rate: float = ERROR_RATE, same: Sequence[Sequence[str]] = ()
) -> Verdict:
    """Compare all pairs of alternatives at once; see `conclude`.

    Args:
        resampled: means of at least one alternative.
        higher_is_better: the direction of the metric.
        error_rate: how often some alternative may be excluded wrongly, in (0, 1).
        same: groups of alternatives known not to differ.
    """
    sign = 1.0 if higher_is_better else -1.0
    names, means, draws = resampled.names, sign * resampled.means, sign * resampled.draws
    order = sorted(range(len(names)), key=lambda number: -means[number])  # stable: first of equal ones
    groups = _groups(resampled, same, order)
    finite = [group[0] for group in groups if np.isfinite(means[group[0]])]
    firsts, seconds = np.triu_indices(len(finite), 1)
    # Ordered by mean, so every difference is at least 0.
    chosen = np.array(finite, dtype=np.intp)
    differences = means[chosen[firsts]] - means[chosen[seconds]]
    deviations = draws[:, chosen[firsts]] - draws[:, chosen[seconds]] - differences
    errors = np.sqrt((deviations**2).mean(axis=0))
    ratios = np.divide(np.abs(deviations), errors, out=np.zeros_like(deviations), where=errors > ROUNDING)
    quantile = float(np.quantile(ratios.max(axis=1), 1.0 - error_rate)) if firsts.size else 0.0

    known = {
        (int(chosen[first]), int(chosen[second])): Difference(
            names[chosen[first]], names[chosen[second]], float(gap), float(error), float(quantile * error)
        )
        for first, second, gap, error in zip(firsts, seconds, differences, errors, strict=True)
    }
    # A mean with an infinite loss in it is worse than any other by more than can be measured.
    known |= {
        (finite[0], group[0]): Difference(names[finite[0]], names[group[0]], np.inf, 0.0, 0.0)
        for group in groups
        if finite and group[0] not in finite
    }
    excluded: dict[str, Difference] = {}
    for group in groups:
        beaten = [gap for (_, worse), gap in known.items() if worse == group[0] and gap.told_apart]
        if beaten:
            clearest = max(beaten, key=lambda gap: gap.difference - gap.half_width)
            excluded |= {names[member]: clearest for member in group}
    leading = known.get((groups[0][0], groups[1][0])) if len(groups) > 1 else None
    return Verdict(
        {names[number]: Value(float(sign * means[number])) for number in order},
        tuple(names[number] for number in order if names[number] not in excluded),
        excluded,
        tuple(tuple(names[member] for member in group) for group in groups if len(group) > 1),
        leading,
    )


def _groups(resampled: Resampled, same: Sequence[Sequence[str]], order: Sequence[int]) -> list[list[int]]:
    """Return the alternatives that cannot differ together, in the order of their means."""
    place = {name: number for number, group in enumerate(same) for name in group}
    groups: list[list[int]] = []
    for number in order:
        for group in groups:
            first = group[0]
            known = place.get(resampled.names[number], -1) == place.get(resampled.names[first], -2)
            if known or (_equal(resampled.means, number, first) and _equal(resampled.draws.T, number, first)):
                group.append(number)
                break
        else:
            groups.append([number])
    return groups


def _equal(values: FloatArray, first: int, second: int) -> bool:
    return bool(np.isclose(values[first], values[second], rtol=0.0, atol=ROUNDING).all())
