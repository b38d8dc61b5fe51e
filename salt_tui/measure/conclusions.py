"""Which function and which map are best on a run, as far as its answers can tell: the columns that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from salt_tui.measure.draws import generator_of
from salt_tui.measure.task_scores import RAW, calibrated_scores, raw_scores, task_units
from salt_tui.store.results import UnitColumns
from scoring.choosing import UnitComparison, judge_units
from scoring.conclusions import Alternatives, Conclusion, conclude
from scoring.confidence import SAME_ORDER
from scoring.cross_fitting import DEFAULT_SEED
from scoring.signals import FITTED_PER_FOLD, confidence_entry, is_fitted_anew

QUESTIONS = 3
"""Function, map and unit: the questions of a report that name something best share its error rate of 5 %."""

FUNCTION_METRIC = "auroc"
MAP_METRIC = "brier"
"""Better calibrated is concluded from Brier alone: noise and base rates win on binned errors."""


def conclude_functions(
    columns: UnitColumns, functions: Sequence[str], draws: int, step: Callable[[], object] = lambda: None
) -> Conclusion:
    """Return the confidence functions that cannot be told apart from the best one in AUROC.

    Those that are fitted per fold are left out: ranking over pooled folds says nothing about them.

    Args:
        columns: units of one granularity with these functions.
        functions: their names.
        draws: resamples.
        step: called before each piece of work of some tenths of a second; stops it by raising.
    """
    found = conclude(
        list(_functions(columns, _on_one_scale(functions))),
        FUNCTION_METRIC,
        _generator(columns.kind, "function"),
        questions=QUESTIONS,
        draws=draws,
        same=SAME_ORDER,
        step=step,
    )
    per_fold = {name: FITTED_PER_FOLD for name in functions if is_fitted_anew(name)}
    return replace(found, left_out={**found.left_out, **per_fold}) if per_fold else found


def conclude_maps(
    columns: UnitColumns,
    function: str,
    maps: Sequence[str],
    draws: int,
    step: Callable[[], object] = lambda: None,
) -> Conclusion:
    """Return the calibration maps, raw scores among them, that cannot be told apart from the best one in Brier.

    Args:
        columns: units of one granularity with the function.
        function: a confidence function that is a probability.
        maps: their names, `RAW` among them.
        draws: resamples; maps are not fitted again in them.
        step: called before each piece of work of some tenths of a second; stops it by raising.
    """
    return conclude(
        list(_maps(columns, function, maps, step)),
        MAP_METRIC,
        _generator(columns.kind, "map"),
        questions=QUESTIONS,
        draws=draws,
        step=step,
    )


def judge_kinds(columns: Mapping[str, UnitColumns]) -> UnitComparison:
    """Return how well kinds of units are ranked, each by the function of its columns that is best on other answers.

    Functions that are fitted per fold are not chosen.

    Args:
        columns: by kind.
    """
    kinds = {
        kind: [_with_answer_numbers(found, entry) for entry in _functions(found, _on_one_scale(found.confidences))]
        for kind, found in columns.items()
    }
    return judge_units(kinds, generator_of(f"{DEFAULT_SEED} {' '.join(kinds)}"), questions=QUESTIONS)


def _on_one_scale(functions: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in functions if not is_fitted_anew(name))


def _with_answer_numbers(columns: UnitColumns, entry: Alternatives) -> Alternatives:
    """Return the units with the numbers of their answers, which are the same in every kind."""
    return replace(entry, generation=columns.generation[task_units(columns, entry.task).rows])


def _generator(kind: str, question: str) -> np.random.Generator:
    return generator_of(f"{DEFAULT_SEED} {kind} {question}")


def _functions(columns: UnitColumns, functions: Sequence[str]) -> Iterator[Alternatives]:
    for task in columns.task_names:
        units = task_units(columns, task)
        scores = {
            name: confidence_entry(name, columns.lower_is_confident).oriented(columns.confidences[name][units.rows])
            for name in functions
        }
        yield Alternatives(task, units.correct, units.generation, scores)


def _maps(
    columns: UnitColumns, function: str, maps: Sequence[str], step: Callable[[], object]
) -> Iterator[Alternatives]:
    for task in columns.task_names:
        step()
        raw = raw_scores(columns, task_units(columns, task), function)
        mapped = {name: calibrated_scores(raw, name).confidence for name in dict.fromkeys((RAW, *maps))}
        scores = {name: values for name, values in mapped.items() if values is not None}
        yield Alternatives(task, raw.correct, raw.generation, scores)
