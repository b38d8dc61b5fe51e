"""Probes of a run: the stored activations of its units, every estimator of ACUTE on them, and what may be concluded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from salt_tui.measure.confidence_view import UNITS
from salt_tui.measure.draws import generator_of
from salt_tui.measure.task_scores import task_units
from salt_tui.store.queries import Queries
from salt_tui.store.records import UnitKind, Work
from salt_tui.store.stored_values import Place
from salt_tui.usage_error import UsageError
from scoring.calibrators import CALIBRATORS
from scoring.conclusions import Alternatives, Conclusion, conclude, why_not
from scoring.probe_estimators import SEARCH, ForestSettings
from scoring.probe_features import IntrinsicDimension, intrinsic_dimensions
from scoring.probes import (
    FULL,
    Estimate,
    ProbeUnits,
    Progress,
    SampleSize,
    UnseenTask,
    across_tasks,
    baseline_estimates,
    layer_metrics,
    probe_estimates,
    sample_complexity,
    silent,
)
from scoring.scored_units import IntArray
from scoring.value import Value

MOST_NUMBERS = 400_000_000
"""Of activations held in memory at once, 1.6 GB; beyond it whole answers are drawn."""

FEWEST_ANSWERS = 10

CONCLUDED = "brier"
"""Better calibrated is concluded from Brier alone."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The units of a study of activations.

    Attributes:
        study: that holds the vectors.
        kind: of the units.
        positions: ``producing`` or ``own``.
        units: with their vectors.
        generation: number of the answer of each, shape ``(n,)``.
        index: of each in its answer, shape ``(n,)``.
        task: code of the task of each, shape ``(n,)``.
        tasks: names by code.
        problems: hashes of the problems, by the codes of ``units.problem``.
        notes: sentences about what was left out.
        post_norm: the last layer's vectors are from behind the final norm.
    """

    study: Work
    kind: UnitKind
    positions: str
    units: ProbeUnits
    generation: IntArray
    index: IntArray
    task: IntArray
    tasks: tuple[str, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    post_norm: bool = False

    @property
    def answers(self) -> int:
        """Number of answers that hold a unit."""
        return int(np.unique(self.generation).size)


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """Everything that is said about probes of a run.

    Attributes:
        subject: what they were trained on.
        estimators: of the joint probability, of activations, and these with each calibration map.
        conclusion: which of those without a map cannot be told apart from the best by Brier score.
        best_layer: number of the layer whose forest has the largest EURO area alone, out of fold.
        by_layer: metrics of each layer alone.
        sizes: metrics by number of training answers, on the best layer.
        dimensions: how many components hold a layer's variance.
        unseen: how the best layer carries to tasks that it was not trained on.
    """

    subject: Subject
    estimators: Mapping[str, Estimate]
    conclusion: Conclusion
    best_layer: int
    by_layer: Mapping[int, Mapping[str, Value]]
    sizes: tuple[SampleSize, ...]
    dimensions: tuple[IntrinsicDimension, ...]
    unseen: tuple[UnseenTask, ...]


def find_study(queries: Queries, name: str) -> Work:
    """Return the newest study of activations of a run, or the one that is named.

    Raises:
        UsageError: there is none; how to make one.
    """
    work = queries.find_work(name)
    found = [study.work for study in queries.studies(work.run) if study.kind == "activations"]
    if work.study is not None:
        found = [study for study in found if study == work]
    if not found:
        raise UsageError(
            f"{work.title} has no activations; `salt-tui study activations {work.run}` reads them from its answers"
        )
    return found[-1]


def read_subject(
    queries: Queries, study: Work, kind: UnitKind, positions: str, layers: tuple[int, ...] = ()
) -> Subject:
    """Read the units of a run that have a verdict, a probability and vectors.

    Args:
        queries: of the file.
        study: of activations.
        kind: of the units.
        positions: ``producing`` or ``own``.
        layers: to read; empty for all that are stored.

    Raises:
        UsageError: the study has no such units or layers.
    """
    stored = tuple(queries.activation_layers(study))
    wanted = layers or stored
    lacking = [layer for layer in wanted if layer not in stored]
    columns = queries.unit_columns(study.run, kind, ["joint_probability"])
    if lacking or not stored:
        raise UsageError(f"{study.title} holds no vectors of layer {lacking[0] if lacking else 1}")
    rows = [task_units(columns, task).rows for task in columns.task_names]
    kept: IntArray = np.sort(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)
    kept = kept[~np.isnan(columns.confidences["joint_probability"][kept])]
    keys = {(int(columns.generation[row]), int(columns.index[row])): row for row in kept}
    first: dict[tuple[int, int], int] = {}
    width = 0
    for record in queries.activations(study, kind, wanted[0], positions):
        width = record.vector.size
        if (record.generation, record.index) in keys:
            first[record.generation, record.index] = len(first)
    if not first:
        raise UsageError(
            f"{study.title} holds no vectors of kind {kind}; `salt-tui study activations {study.run} --unit {kind}`"
            " reads them"
        )
    chosen, notes = _those_that_fit(first, len(wanted) * width)
    place = {key: number for number, key in enumerate(chosen)}
    pools = np.empty((len(wanted), len(place), width), dtype=np.float32)
    for number, layer in enumerate(wanted):
        for record in queries.activations(study, kind, layer, positions):
            at = place.get((record.generation, record.index))
            if at is not None:
                pools[number, at] = record.vector
    taken = np.array([keys[key] for key in chosen])
    hashes = {
        answer.generation: f"{answer.problem.task} {answer.problem.content_id}" for answer in queries.answers(study.run)
    }
    of_units = [hashes[generation] for generation, _ in chosen]
    problems = tuple(dict.fromkeys(of_units))
    codes = {problem: code for code, problem in enumerate(problems)}
    return Subject(
        study=study,
        kind=kind,
        positions=positions,
        units=ProbeUnits(
            pools=pools,
            layers=wanted,
            depth=stored[-1],
            probability=columns.confidences["joint_probability"][taken],
            correct=columns.status[taken] == 0,
            problem=np.array([codes[problem] for problem in of_units]),
        ),
        generation=columns.generation[taken],
        index=columns.index[taken],
        task=columns.task[taken],
        tasks=columns.task_names,
        problems=problems,
        notes=notes,
        post_norm=Place(queries.path, study.title).read("plan", queries.study_record(study).record.plan, _post_norm),
    )


def _post_norm(plan: str) -> bool:
    """Read from a study's plan whether its last layer is that behind the final norm."""
    return bool(json.loads(plan).get("options", {}).get("post_norm", False))


def report_probes(
    subject: Subject,
    *,
    settings: ForestSettings = FULL,
    search: ForestSettings = SEARCH,
    progress: Progress = silent,
) -> ProbeReport:
    """Train and judge every estimator; the same numbers for the same units.

    Args:
        subject: at least `FEWEST_ANSWERS` answers, right and wrong units.
        settings: of the forests that are reported.
        search: of those by which layers are compared and of the curves.
        progress: told what is computed next.

    Raises:
        UsageError: too few answers, or too few right or wrong units.
    """
    units = subject.units
    if subject.answers < FEWEST_ANSWERS:
        raise UsageError(f"{subject.answers} answers have vectors; a probe needs at least {FEWEST_ANSWERS}")
    if units.correct.all() or not units.correct.any():
        which = "right" if units.correct.all() else "wrong"
        raise UsageError(f"all {units.correct.size} units are {which}; a probe needs right and wrong ones")
    left_out = [why_not(task, CONCLUDED) for task in _alternatives(subject, {})]
    if all(left_out):
        right = int(units.correct.sum())
        raise UsageError(
            f"{right} of {units.correct.size} {UNITS[subject.kind]} {'is' if right == 1 else 'are'} right, and no task"
            " has two answers with a right and two with a wrong one; a probe needs one that has"
        )
    progress("estimators of the probability alone")
    try:
        plain = baseline_estimates(units, generator_of("probe"))
    except ValueError as error:  # a fold without right or without wrong units
        raise UsageError(f"too few units to judge a probe: {error}") from error
    forests = probe_estimates(
        units, generator_of("probe"), settings=settings, search=search, maps=tuple(CALIBRATORS), progress=progress
    )
    by_layer = layer_metrics(units, generator_of("probe layers"), search, progress)
    place = max(range(len(units.layers)), key=lambda number: by_layer[units.layers[number]]["euro_auc"].value or 0.0)
    progress("what may be concluded")
    compared = {name: estimate for name, estimate in (plain | forests).items() if "+" not in name}
    return ProbeReport(
        subject=subject,
        estimators=plain | forests,
        conclusion=conclude(_alternatives(subject, compared), CONCLUDED, generator_of("probe conclusion")),
        best_layer=units.layers[place],
        by_layer=by_layer,
        sizes=sample_complexity(units, place, generator_of("probe sizes"), settings=search, progress=progress),
        dimensions=intrinsic_dimensions(units.pools, units.layers),
        unseen=across_tasks(units, subject.task, place, generator_of("probe tasks"), search, progress),
    )


def _those_that_fit(
    first: Mapping[tuple[int, int], int], numbers_a_unit: int
) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    """Return the units of as many whole answers, in a drawn order, as memory holds, and a note where not all do."""
    most = max(1, MOST_NUMBERS // max(1, numbers_a_unit))
    if len(first) <= most:
        return list(first), ()
    answers: NDArray[np.int64] = np.array(sorted({generation for generation, _ in first}), dtype=np.int64)
    held: dict[int, int] = {}
    for generation, _ in first:
        held[generation] = held.get(generation, 0) + 1
    kept: set[int] = set()
    total = 0
    for answer in generator_of("probe answers").permutation(answers).tolist():
        if total + held[answer] > most:
            break
        kept.add(answer)
        total += held[answer]
    note = f"{total:,} of {len(first):,} units, those of {len(kept):,} answers drawn at random, fit in memory."
    return [key for key in first if key[0] in kept], (note,)


def _alternatives(subject: Subject, estimators: Mapping[str, Estimate]) -> list[Alternatives]:
    found = []
    for code, task in enumerate(subject.tasks):
        own = subject.task == code
        if own.any():
            scores = {name: estimate.confidence[own] for name, estimate in estimators.items()}
            found.append(Alternatives(task, subject.units.correct[own], subject.generation[own], scores))
    return found
