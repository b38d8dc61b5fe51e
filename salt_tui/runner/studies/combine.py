"""All scores of a run put together: is a combination better than the best of them, and what does each add?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from salt_tui.number_text import number
from salt_tui.runner.jobs import Job
from salt_tui.runner.studies.against_tokens import (
    UNITS,
    LabelledUnits,
    compare_scores,
    labelled_units,
    token_functions,
    verdict,
)
from salt_tui.runner.studies.kind import StudyKind, StudyOption, StudyResult, StudySetting
from salt_tui.runner.studies.plan import Options, StudyPlan
from salt_tui.store.queries import Queries
from salt_tui.store.records import SignalRecord, UnitKind, Work
from salt_tui.store.results import SignalName, StoredStudy
from salt_tui.usage_error import UsageError
from scoring.combined import Model, ScoredTable, combine, folds_of, what_each_adds
from scoring.conclusions import Conclusion

MODELS: dict[str, Model] = {"combined_logistic": "logistic", "combined_forest": "forest"}
NOT_FITTED = "all units of the answers to train on are right, or all are wrong"

_EXPLAINED = (
    "AUROC: of combined scores and of each score alone, over the same units: those that have all scores, in the tasks"
    " that can be compared; pairs count inside folds. Adds: by how much the AUROC of the logistic model falls when a"
    " score is left out; scores that say the same add nothing beside each other."
    " A report gives another AUROC: over all folds together, where combined scores of two folds are on two scales. It"
    " never names them best."
)
_YARDSTICK = "logprob_sum"
_BEST_ALONE = ("the best single score", "beats")


def _check(options: Options) -> None:
    if int(options["seed"]) < 0:
        raise UsageError(f"--seed {options['seed']}: a number, at least 0")


def _jobs(setting: StudySetting) -> Sequence[Job]:
    """There is nothing for a model to do."""
    return ()


def _read(queries: Queries, run: int) -> tuple[str, ...]:
    """Return the signals of the run and of its finished studies, but combined ones: others are not complete."""
    complete = {study.work for study in queries.studies(run) if study.state == "finished"} | {Work(run)}
    return tuple(_named(signal) for signal in _combinable(queries, run) if signal.work in complete)


def _combinable(queries: Queries, run: int) -> list[SignalName]:
    return [
        signal
        for signal in queries.signal_names(run)
        if not signal.is_of_tokens and signal.name not in MODELS and set(signal.kinds) & set(UNITS)
    ]


def _named(signal: SignalName) -> str:
    return f"{signal.name}@{signal.work}"


@dataclass(frozen=True, slots=True)
class _Units:
    """The covered units of one kind, with all scores.

    Attributes:
        table: what is fitted and applied.
        tasks: the same units by task.
        generation, index: the answer of each unit and its place there, shape ``(n,)``.
        fold: of each unit.
    """

    table: ScoredTable
    tasks: tuple[LabelledUnits, ...]
    generation: NDArray[np.int64]
    index: NDArray[np.int64]
    fold: NDArray[np.int64]


def _units(queries: Queries, study: StoredStudy, plan: StudyPlan, kind: UnitKind) -> _Units:
    """Read the units of the answers that the study covers, with the scores that its plan names."""
    run = study.work.run
    given = {_named(signal): signal for signal in _combinable(queries, run)}
    signals = [name for name in plan.signals if name in given and kind in given[name].kinds]
    covered = {
        answer.generation
        for answer in queries.answers(run)
        if answer.generation is not None and answer.problem.position in plan.answers.get(answer.problem.task, ())
    }
    tasks = labelled_units(queries, run, kind, (*token_functions(queries, run), *signals), covered)
    scores = {name: np.concatenate([task.scores[name] for task in tasks]) for name in tasks[0].scores}
    table = ScoredTable(
        scores={name: column for name, column in scores.items() if not np.isnan(column).all()},
        correct=np.concatenate([task.correct for task in tasks]),
        group=np.concatenate([task.generation for task in tasks]),
        task=np.concatenate([np.full(task.correct.size, code) for code, task in enumerate(tasks)]),
    )
    fold = folds_of(table.group, np.random.default_rng(int(plan.options["seed"])))
    return _Units(table, tuple(tasks), table.group, np.concatenate([task.index for task in tasks]), fold)


def _gone(queries: Queries, study: StoredStudy, plan: StudyPlan) -> list[str]:
    """Return the scores of the plan that are no longer there."""
    given = {_named(signal) for signal in _combinable(queries, study.work.run)}
    return [name for name in plan.signals if name not in given]


def _signals(queries: Queries, study: StoredStudy, plan: StudyPlan) -> Iterator[Sequence[SignalRecord]]:
    if gone := _gone(queries, study, plan):
        if study.state == "finished":
            return  # what it said cannot be computed again, and stays
        raise UsageError(f"{study.work.title} combines {gone[0]}, which is no longer there: begin a new one")
    seed = int(plan.options["seed"])
    for kind in UNITS:
        units = _units(queries, study, plan, kind)
        for name, model in MODELS.items():
            values = combine(units.table, model, units.fold, seed)
            yield [
                SignalRecord(int(generation), kind, int(place), name, None, NOT_FITTED)
                if np.isnan(value)
                else SignalRecord(int(generation), kind, int(place), name, float(value))
                for generation, place, value in zip(units.generation, units.index, values, strict=True)
            ]


def _result(queries: Queries, study: StoredStudy, plan: StudyPlan) -> StudyResult:
    run, work = study.work.run, study.work
    rows: list[tuple[str | int | float | None, ...]] = []
    notes = [*_left_out(queries, study, plan)]
    own = {signal.name: signal for signal in queries.signal_names(run) if signal.work == work}
    for kind, plural in UNITS.items():
        combined = tuple(f"{name}@{work}" for name, signal in own.items() if kind in signal.kinds)
        if not combined:
            continue
        units = _units(queries, study, plan, kind)
        covered = set(units.generation.tolist())
        found = labelled_units(queries, run, kind, combined, covered)
        tasks = [
            replace(task, scores={**{name: task.scores[name] for name in units.table.scores}, **more.scores})
            for task, more in zip(units.tasks, found, strict=True)
        ]
        conclusion = compare_scores(tasks, units.fold)
        notes.append(verdict(conclusion, combined, "combining", plural, _BEST_ALONE))
        if conclusion.reason is not None:
            continue
        notes += _beside_the_yardstick(conclusion, plural)
        alone = tuple(units.table.scores)
        adds = what_each_adds(units.table, units.fold, alone, _counted(tasks, conclusion))
        rows += [(kind, name.partition("@")[0], _auroc(conclusion, name), None) for name in combined]
        order = sorted(alone, key=lambda name: -1.0 if (value := adds[name]) is None else value, reverse=True)
        rows += [(kind, name, _auroc(conclusion, name), adds[name]) for name in order]
    explained = (_EXPLAINED,) if rows else ()
    return StudyResult(("unit", "score", "auroc", "adds"), tuple(rows), (*explained, *notes))


def _counted(tasks: Sequence[LabelledUnits], conclusion: Conclusion) -> NDArray[np.bool_]:
    """Return which units were compared, in the order of the tasks, shape ``(n,)``."""
    parts = []
    for task in tasks:
        kept = np.full(task.correct.size, task.task in conclusion.tasks)
        for name in conclusion.means:
            kept &= ~np.isnan(task.scores[name])
        parts.append(kept)
    return np.concatenate(parts)


def _auroc(conclusion: Conclusion, name: str) -> float | None:
    mean = conclusion.means.get(name)
    return None if mean is None else mean.value


def _beside_the_yardstick(conclusion: Conclusion, plural: str) -> list[str]:
    """Say whether anything is better than the logarithm of the joint probability, which costs nothing."""
    if _YARDSTICK not in conclusion.means:
        return []
    beaten = conclusion.excluded.get(_YARDSTICK)
    if beaten is None:
        return [f"{plural.capitalize()}: that anything ranks better than {_YARDSTICK} cannot be said from this run."]
    return [
        f"{plural.capitalize()}: {beaten.better} ranks better than {_YARDSTICK}, by {number(beaten.difference)}"
        f" ± {number(beaten.half_width)}."
    ]


def _left_out(queries: Queries, study: StoredStudy, plan: StudyPlan) -> Iterator[str]:
    """Say which scores of the run were not combined, and which were and are gone."""
    others = [
        _named(signal)
        for signal in _combinable(queries, study.work.run)
        if _named(signal) not in plan.signals and (signal.work.number or 0) < (study.work.number or 0)
    ]
    if others:
        yield f"Not combined, because they were not complete when this study began: {', '.join(others)}."
    if gone := _gone(queries, study, plan):
        yield f"Combined, but no longer there, so that what the others add is not what it was: {', '.join(gone)}."


COMBINE = StudyKind(
    name="combine",
    summary="All scores of a run put together by a logistic model and a forest; needs no model.",
    options=(StudyOption("seed", ("--seed",), 0, "Draws the folds and the forest."),),
    needs=(),
    check=_check,
    jobs=_jobs,
    grows_context=False,
    signals=_signals,
    result=_result,
    computed_by="no model",
    reads=_read,
    concludes=tuple(f"the {model} model of {plural}" for plural in UNITS.values() for model in MODELS.values()),
    measures="what each score adds to the others, by leaving it out",
)
