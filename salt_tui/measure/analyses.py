"""The analyses of a run beyond its usual questions: what whole answers, finer units and other labels would show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from salt_tui.measure.draws import generator_of
from salt_tui.measure.parts import PARTS, read_parts
from salt_tui.measure.rates import Rates
from salt_tui.measure.rows import ReportRow, RowChoice, measure_rows
from salt_tui.measure.task_scores import RAW, raw_scores, task_units
from salt_tui.store.queries import Queries
from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from scoring.alignment import AlignmentTooLargeError, align
from scoring.analyses_answers import (
    AlignmentEffect,
    ByTask,
    PrecisionRecallCorrelation,
    alignment_effect,
    precision_recall_correlation,
    redundancy_by_task,
)
from scoring.analyses_confidence import ConfidenceDensities, LabelNoise, confidence_densities, label_noise
from scoring.answer_status import LEFT_OUT
from scoring.calibration_error import error_by_bin_count
from scoring.confidence import HEADLINE_FUNCTION
from scoring.scored_units import ScoredUnits
from scoring.value import NOTHING_GENERATED, Value, undefined

TOO_LARGE = "an answer too large to align"

_CORRECT, _MISSING, _REDUNDANT = (UNIT_STATUSES.index(status) for status in ("correct", "missing", "redundant"))


@dataclass(frozen=True, slots=True)
class RunAnalyses:
    """What a report adds when it is asked for everything; of raw `HEADLINE_FUNCTION` where a function is needed.

    Attributes:
        precision_recall: do precision and recall of answers say the same?
        redundancy: how much is written that was not asked for, by task.
        alignment: what labelling by alignment changes.
        densities: where right and wrong atoms stand, all tasks together.
        label_noise: what wrong labels would do to the AUROC, all tasks together.
        errors: ECE by number of bins, all tasks together.
        parts: tokens and characters as units.
        parts_left_out: atoms that could not be cut into parts.
    """

    precision_recall: PrecisionRecallCorrelation
    redundancy: ByTask
    alignment: AlignmentEffect
    densities: ConfidenceDensities
    label_noise: LabelNoise
    errors: Mapping[int, Value]
    parts: tuple[ReportRow, ...]
    parts_left_out: int


def analyse_run(queries: Queries, run: int, atoms: UnitColumns, rates: Rates, draws: int) -> RunAnalyses:
    """Measure what takes the texts and tokens of all answers.

    Args:
        queries: the database.
        run: its number.
        atoms: its atoms with `HEADLINE_FUNCTION`.
        rates: of these.
        draws: resamples for the intervals of parts; 0 for none.
    """
    scores = [raw_scores(atoms, task_units(atoms, task), HEADLINE_FUNCTION) for task in atoms.task_names]
    confidence = np.concatenate([np.zeros(0), *(score.ranking for score in scores)])
    correct = np.concatenate([np.zeros(0, dtype=np.bool_), *(score.correct for score in scores)])
    parts = read_parts(queries, run)
    choice = RowChoice({HEADLINE_FUNCTION: (RAW,)}, draws=draws)
    return RunAnalyses(
        precision_recall=_precision_recall(atoms),
        redundancy=redundancy_by_task({task: found.counts for task, found in rates.tasks.items()}),
        alignment=_alignment(queries, run, rates),
        densities=confidence_densities(confidence, correct),
        label_noise=label_noise(confidence, correct, generator_of("label noise")),
        errors=error_by_bin_count(ScoredUnits.from_columns(confidence, correct)),
        parts=tuple(row for kind in PARTS for row in measure_rows(parts.columns[kind], choice)),
        parts_left_out=parts.left_out,
    )


def _precision_recall(atoms: UnitColumns) -> PrecisionRecallCorrelation:
    numbers, answer = np.unique(atoms.generation, return_inverse=True)

    def count(chosen: np.ndarray) -> np.ndarray:
        return np.bincount(answer, weights=chosen, minlength=numbers.size)

    right = count(atoms.status == _CORRECT)
    generated, wanted = count(atoms.status != _MISSING), count(atoms.status != _REDUNDANT)
    task = np.zeros(numbers.size, dtype=np.int64)
    task[answer] = atoms.task
    rows = zip(right.tolist(), generated.tolist(), wanted.tolist(), strict=True)
    pairs = [(hits / whole if whole else None, hits / asked if asked else None) for hits, whole, asked in rows]
    names = [atoms.task_names[code] for code in task.tolist()]
    return precision_recall_correlation([pair[0] for pair in pairs], [pair[1] for pair in pairs], names)


def _alignment(queries: Queries, run: int, rates: Rates) -> AlignmentEffect:
    """Align every answer that counts and pool over the answers of a task."""
    hits: dict[str, int] = dict.fromkeys(rates.tasks, 0)
    columns: dict[str, int] = dict.fromkeys(rates.tasks, 0)
    too_large: set[str] = set()
    for answer in queries.answers(run):
        if answer.generation is None or answer.answer_status is None or answer.answer_status in LEFT_OUT:
            continue
        units = queries.units(answer.generation, "atom")
        given = [unit.text for unit in units if unit.text is not None]
        wanted = [unit.reference for unit in units if unit.reference is not None]
        try:
            alignment = align(given, wanted)
        except AlignmentTooLargeError:
            too_large.add(answer.problem.task)
            continue
        hits[answer.problem.task] += alignment.correct
        columns[answer.problem.task] += alignment.generated + (alignment.skipped if given else 0)
    aligned = {
        task: undefined(TOO_LARGE)
        if task in too_large
        else Value(hits[task] / columns[task])
        if columns[task]
        else undefined(NOTHING_GENERATED)
        for task in rates.tasks
    }
    return alignment_effect({task: found.counts.precision for task, found in rates.tasks.items()}, aligned)
