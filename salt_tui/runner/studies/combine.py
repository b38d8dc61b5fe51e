"""All scores of a run put together: is a combination better than the best of them, and what does each add?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from salt_tui.runner.jobs import Job
from salt_tui.runner.studies.against_tokens import compare_with_tokens, labelled_units, token_functions, verdict
from salt_tui.runner.studies.kind import StudyKind, StudyOption, StudyResult, StudySetting
from salt_tui.runner.studies.plan import Options, StudyPlan
from salt_tui.store.queries import Queries
from salt_tui.store.records import SignalRecord, UnitKind, Work
from salt_tui.store.results import StoredStudy
from salt_tui.usage_error import UsageError
from scoring.combined import Model, ScoredTable, combine, folds_of, mean_auroc, what_each_adds

MODELS: dict[str, Model] = {"combined_logistic": "logistic", "combined_forest": "forest"}
UNITS: dict[UnitKind, str] = {"generation": "answers", "line": "lines", "atom": "atoms"}
NOT_FITTED = "all units of the answers to train on are right, or all are wrong"


def _check(options: Options) -> None:
    if int(options["seed"]) < 0:
        raise UsageError(f"--seed {options['seed']}: a number, at least 0")


def _jobs(setting: StudySetting) -> Sequence[Job]:
    """There is nothing for a model to do."""
    return ()


def _names(queries: Queries, study: StoredStudy, kind: UnitKind) -> tuple[str, ...]:
    """Return the scores that there were when the study began: functions of tokens, and signals but combined ones."""
    signals = [
        f"{signal.name}@{signal.work}"
        for signal in queries.signal_names(study.work.run)
        if kind in signal.kinds
        and not signal.is_of_tokens
        and signal.name not in MODELS
        and _earlier(signal.work, study)
    ]
    return (*token_functions(queries, study.work.run), *signals)


def _earlier(work: Work, study: StoredStudy) -> bool:
    return work.number is None or work.number < (study.work.number or 0)


def _table(queries: Queries, study: StoredStudy, kind: UnitKind) -> tuple[ScoredTable, NDArray[np.int64]]:
    """Return the labelled units of a kind, and the place of each in its answer."""
    names = _names(queries, study, kind)
    tasks = labelled_units(queries, study.work.run, kind, names)
    scores = {name: np.concatenate([task.scores[name] for task in tasks]) for name in names}
    table = ScoredTable(
        scores={name: column for name, column in scores.items() if not np.isnan(column).all()},
        correct=np.concatenate([task.correct for task in tasks]),
        group=np.concatenate([task.generation for task in tasks]),
        task=np.concatenate([np.full(task.correct.size, code) for code, task in enumerate(tasks)]),
    )
    return table, np.concatenate([task.index for task in tasks])


def _signals(queries: Queries, study: StoredStudy, plan: StudyPlan) -> Iterator[Sequence[SignalRecord]]:
    seed = int(plan.options["seed"])
    for kind in UNITS:
        table, index = _table(queries, study, kind)
        fold = folds_of(table.group, np.random.default_rng(seed))
        for name, model in MODELS.items():
            values = combine(table, model, fold, seed)
            yield [
                SignalRecord(int(generation), kind, int(place), name, None, NOT_FITTED)
                if np.isnan(value)
                else SignalRecord(int(generation), kind, int(place), name, float(value))
                for generation, place, value in zip(table.group, index, values, strict=True)
            ]


def _result(queries: Queries, study: StoredStudy, plan: StudyPlan) -> StudyResult:
    seed, run, work = int(plan.options["seed"]), study.work.run, study.work
    rows: list[tuple[str | int | float | None, ...]] = []
    notes = [
        "AUROC: mean over tasks, of combined scores inside folds. Adds: by how much the AUROC of the logistic model"
        " falls when a score is left out; scores that say the same add nothing beside each other."
    ]
    given = {signal.name for signal in queries.signal_names(run) if signal.work == work}
    for kind, plural in UNITS.items() if given else ():
        table, _ = _table(queries, study, kind)
        fold = folds_of(table.group, np.random.default_rng(seed))
        combined = tuple(f"{name}@{work}" for name in MODELS)
        tasks = labelled_units(queries, run, kind, combined)
        for name in combined:
            values = np.concatenate([task.scores[name] for task in tasks])
            rows.append((kind, name.partition("@")[0], mean_auroc(values, table.correct, table.task, fold), None))
        adds = what_each_adds(table, fold, tuple(table.scores))
        alone = {name: mean_auroc(column, table.correct, table.task, None) for name, column in table.scores.items()}
        order = sorted(adds.items(), key=lambda item: -1.0 if item[1] is None else item[1], reverse=True)
        rows += [(kind, name, alone[name], value) for name, value in order]
        notes.append(verdict(compare_with_tokens(queries, run, kind, combined, fold), combined, "combining", plural))
    return StudyResult(("unit", "score", "auroc", "adds"), tuple(rows), tuple(notes))


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
    concludes=tuple(f"the {model} model of {plural}" for plural in UNITS.values() for model in MODELS.values()),
    measures="what each score adds to the others, by leaving it out",
)
