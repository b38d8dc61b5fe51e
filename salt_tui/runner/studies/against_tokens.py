"""Do the scores of a study rank right above wrong units better than what the tokens of the answers say anyway?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from salt_tui.number_text import number
from salt_tui.store.queries import Queries
from salt_tui.store.records import UnitKind
from salt_tui.store.schema import TOKEN_SIGNALS, UNIT_STATUSES
from scoring.conclusions import Alternatives, Conclusion, conclude
from scoring.confidence import CONFIDENCE_FUNCTIONS, SAME_ORDER
from scoring.signals import confidence_entry

UNITS: dict[UnitKind, str] = {"generation": "answers", "line": "lines", "atom": "atoms"}
"""The units that have scores, and what several of them are called."""

_SEED = 0
_GENERATED = ("correct", "wrong", "redundant")


def token_functions(queries: Queries, run: int) -> tuple[str, ...]:
    """Return the functions of tokens that the answers of a run have; imported answers may have no tokens."""
    given = {signal.name for signal in queries.signal_names(run) if signal.is_of_tokens}
    return (*CONFIDENCE_FUNCTIONS, *(name for name in TOKEN_SIGNALS if name in given))


@dataclass(frozen=True, slots=True)
class LabelledUnits:
    """The generated units of one task.

    Attributes:
        task: its name.
        correct: shape ``(n,)``.
        generation, index: the answer of each unit and its place there, shape ``(n,)``.
        scores: by name, higher is more confident, NaN where there is none, shape ``(n,)``.
    """

    task: str
    correct: NDArray[np.bool_]
    generation: NDArray[np.int64]
    index: NDArray[np.int64]
    scores: dict[str, NDArray[np.float64]]


def labelled_units(
    queries: Queries, run: int, kind: UnitKind, names: tuple[str, ...], answers: Collection[int] | None = None
) -> list[LabelledUnits]:
    """Return the generated units of a run by task, with their scores.

    Args:
        queries: of the file.
        run: number of the run.
        kind: of the units.
        names: confidence functions, and signals as the store names them.
        answers: generations whose units are wanted; None for all.
    """
    columns = queries.unit_columns(run, kind, names)
    counted = np.isin(columns.status, [UNIT_STATUSES.index(status) for status in _GENERATED])
    if answers is not None:
        counted &= np.isin(columns.generation, np.fromiter(answers, dtype=np.int64))
    tasks = []
    for code, task in enumerate(columns.task_names):
        rows = counted & (columns.task == code)
        scores = {
            name: confidence_entry(name, columns.lower_is_confident).oriented(columns.confidences[name][rows])
            for name in names
        }
        right = columns.status[rows] == UNIT_STATUSES.index("correct")
        tasks.append(LabelledUnits(task, right, columns.generation[rows], columns.index[rows], scores))
    return tasks


def compare_with_tokens(queries: Queries, run: int, kind: UnitKind, names: tuple[str, ...]) -> Conclusion:
    """Return which of a study's scores and the functions of tokens cannot be told apart from the best, in AUROC.

    Args:
        queries: of the file.
        run: number of the run.
        kind: of the units.
        names: of the study's signals, as the store names them.
    """
    return compare_scores(labelled_units(queries, run, kind, (*names, *token_functions(queries, run))))


def compare_scores(tasks: Sequence[LabelledUnits], fold: NDArray[np.int64] | None = None) -> Conclusion:
    """Return which scores cannot be told apart from the best, in AUROC.

    Args:
        tasks: units with all scores that are compared.
        fold: of each unit, in the order of the tasks, where some scores were fitted on other folds: pairs then count
            inside folds only, for all alike.
    """
    compared, start = [], 0
    for units in tasks:
        own = None if fold is None else fold[start : start + units.correct.size]
        start += units.correct.size
        compared.append(Alternatives(units.task, units.correct, units.generation, units.scores, own))
    return conclude(compared, "auroc", np.random.default_rng(_SEED), same=SAME_ORDER)


THE_TOKENS = ("the tokens", "beat")


def verdict(
    conclusion: Conclusion,
    names: tuple[str, ...],
    asked: str,
    plural: str,
    against: tuple[str, str] = THE_TOKENS,
) -> str:
    """Say in one sentence whether a study's scores beat the others, mostly the functions of tokens.

    Args:
        conclusion: of both.
        names: of the study's signals.
        asked: what the study did, as the subject of a sentence, e.g. ``asking``.
        plural: of the units, e.g. ``atoms``.
        against: what the other scores are, and the verb that goes with it.
    """
    if conclusion.reason is not None:
        reasons = "; ".join(dict.fromkeys(conclusion.tasks_left_out.values())) or conclusion.reason
        return f"{plural.capitalize()}: cannot be said, {reasons}."
    base = f"n {conclusion.units:,} in {conclusion.answers} answers"
    own = [name for name in conclusion.means if name in names]
    others = [name for name in conclusion.means if name not in names]
    left_out = "; ".join(
        f"{name.partition('@')[0]} {reason}" for name, reason in conclusion.left_out.items() if name in names
    )
    if not own:
        return f"{plural.capitalize()}: cannot be said, {left_out or 'there is no value'}."
    values = " against ".join(f"{_auroc(conclusion, name)} of {name}" for name in (own[0], *others[:1]))
    best = [name in names for name in conclusion.best]
    if all(best):
        how = f"{asked} beats {against[0]}"
    elif not any(best):
        how = f"{against[0]} {against[1]} {asked}"
    else:
        how = f"{asked} and {against[0]} cannot be told apart"
    compared = f"{plural.capitalize()}: {how}, AUROC {values} ({base})."
    return f"{compared} Not compared: {left_out}." if left_out else compared


def _auroc(conclusion: Conclusion, name: str) -> str:
    value = conclusion.means[name].value
    return "undefined" if value is None else number(value)
