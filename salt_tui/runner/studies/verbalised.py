"""Ask the model about its own answer, in the same conversation: is it right, and how likely is it right?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from salt_tui.engine.requests import ChatTurn, Choice
from salt_tui.runner.jobs import Job, JobName
from salt_tui.runner.studies.against_tokens import UNITS, compare_with_tokens, verdict
from salt_tui.runner.studies.kind import StudyKind, StudyOption, StudyResult, StudySetting
from salt_tui.runner.studies.plan import CoveredAnswer, Options, StudyPlan
from salt_tui.runner.studies.questions import (
    NO_NUMBER,
    PARTS,
    QuestionJob,
    label_choice,
    mass_of,
    question_text,
)
from salt_tui.store.queries import Queries
from salt_tui.store.records import SignalRecord, UnitKind
from salt_tui.store.results import StoredStudy
from salt_tui.usage_error import UsageError
from scoring.verbalised import HALF

FUNCTIONS = ("p_true", "p_true_independent", "verbalised")
BROADCAST = ("p_true", "verbalised")
"""What is asked of a whole answer and then said of each of its units, a control without resolution."""


def _chosen(options: Options) -> tuple[tuple[str, ...], tuple[UnitKind, ...]]:
    functions, units = (tuple(str(options[name]).replace(" ", "").split(",")) for name in ("functions", "unit"))
    return functions, cast(tuple[UnitKind, ...], units)


def _check(options: Options) -> None:
    functions, units = _chosen(options)
    for flag, names, known in (("--functions", functions, FUNCTIONS), ("--unit", units, UNITS)):
        for name in names:
            if name not in known:
                raise UsageError(f"{flag} {name}: there are {', '.join(known)}")
    if functions == ("p_true_independent",) and units == ("generation",):
        raise UsageError("p_true_independent is asked of lines and atoms; of a whole answer it is p_true")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What all questions of a study share."""

    setting: StudySetting
    choice: Choice

    def questions(self, answer: CoveredAnswer) -> Iterator[Job]:
        """Yield the questions about one answer; their order is that of the options."""
        setting = self.setting
        functions, kinds = _chosen(setting.options)
        reply = tuple(token.record.id for token in setting.queries.tokens(answer.generation))
        said = tuple(number for number in reply if number is not None)
        numbers = itertools.count()
        for kind in kinds:
            units = {
                unit.index: unit.text
                for unit in setting.queries.units(answer.generation, kind)
                if unit.text is not None
            }
            if not units:
                continue
            whole = kind == "generation"
            marks = [b"" if whole else f"\n{place}:".encode() for place in range(1, len(units) + 1)]
            ids = tuple(setting.engine.tokenize(mark) if mark else () for mark in marks)
            for reads, names in (("label", ("p_true", "p_true_independent")), ("number", ("verbalised",))):
                asked = [name for name in names if name in functions and (name != "p_true_independent" or not whole)]
                if not asked:
                    continue
                turn = setting.engine.next_turn(said, ChatTurn("user", question_text(reads, kind, [*units.values()])))
                for name in asked:
                    together = name != "p_true_independent"
                    for places in [tuple(range(len(units)))] if together else [(p,) for p in range(len(units))]:
                        yield QuestionJob(
                            name=JobName(
                                answer.problem_id,
                                answer.problem.task,
                                answer.problem.position,
                                role="question",
                                parent=answer.generation,
                                number=next(numbers),
                            ),
                            signal=name,
                            kind=kind,
                            units=tuple([*units][place] for place in places),
                            answer=answer.prompt,
                            said=said[: len(said) - turn.dropped],
                            turn=turn.tokens,
                            marks=tuple(ids[place] for place in places),
                            choice=self.choice if reads == "label" else None,
                            forked=not together,
                            pieces=setting.reading.vocabulary,
                        )


def _jobs(setting: StudySetting) -> Sequence[Job]:
    """Return all questions, those about as many answers as are computed at once in turns.

    The first question about an answer computes what all of them share, and the others wait for it: with one answer
    after the other all slots but one would idle.
    """
    asked = _Asked(setting, label_choice(setting.engine))
    jobs: list[Job] = []
    for start in range(0, len(setting.answers), setting.run.width):
        block = [list(asked.questions(answer)) for answer in setting.answers[start : start + setting.run.width]]
        jobs += [job for turn in itertools.zip_longest(*block) for job in turn if job is not None]
    return jobs


def _signals(queries: Queries, study: StoredStudy, plan: StudyPlan) -> Iterator[Sequence[SignalRecord]]:
    """Say of each unit what was said of its whole answer; what was asked of the units is stored already."""
    functions, kinds = _chosen(plan.options)
    if "generation" not in kinds:
        return
    run, work = study.work.run, study.work
    for name in BROADCAST:
        if name not in functions:
            continue
        for whole in queries.signals(run, f"{name}@{work}", "generation") if _exists(queries, study, name) else []:
            yield [
                SignalRecord(whole.generation, kind, unit.index, f"{name}_broadcast", whole.value, whole.reason)
                for kind in PARTS
                for unit in queries.units(whole.generation, kind)
                if unit.text is not None
            ]


def _exists(queries: Queries, study: StoredStudy, name: str) -> bool:
    return any(signal.name == name and signal.work == study.work for signal in queries.signal_names(study.work.run))


def _result(queries: Queries, study: StoredStudy, plan: StudyPlan) -> StudyResult:
    """Count what was said and what was not, and compare it with the tokens."""
    run, work = study.work.run, study.work
    rows: list[tuple[str | int | float | None, ...]] = []
    notes = [
        "No number: the reply did not begin with a number from 0 to 1; it has no value. Doubtful: True and False have"
        " less than half of the probability together."
    ]
    given = {signal.name: signal for signal in queries.signal_names(run) if signal.work == work}
    for kind in UNITS:
        names = tuple(f"{name}@{work}" for name, signal in given.items() if kind in signal.kinds)
        if not names:
            continue
        conclusion = compare_with_tokens(queries, run, kind, names)
        doubted: dict[str, str] = {}
        for name in names:
            records = queries.signals(run, name, kind)
            counts, shown = _counts(records), name.partition("@")[0]
            mean = conclusion.means.get(name)
            rows.append((shown, kind, *counts, None if mean is None else mean.value))
            if counts[2] and counts[2] > HALF * (counts[0] - counts[1]):
                doubted[name] = f"{counts[2]:,} of {counts[0]:,} values of {shown}"
        believed = tuple(name for name in names if name not in doubted)
        if doubted:
            notes.append(
                f"{UNITS[kind].capitalize()}: doubtful are {', '.join(doubted.values())}; nothing is concluded from"
                " these functions."
            )
        if believed:
            if doubted:
                conclusion = compare_with_tokens(queries, run, kind, believed)
            notes.append(verdict(conclusion, believed, "asking", UNITS[kind]))
    columns = ("function", "unit", "asked", "no_number", "doubtful", "mean_label_mass", "auroc")
    return StudyResult(columns, tuple(rows), tuple(notes))


def _counts(records: Sequence[SignalRecord]) -> tuple[int, int, int | None, float | None]:
    """Return how many units, how many without a number, how many doubtful, and the mean mass of the labels."""
    masses = [mass_of(record.reason) for record in records if record.value is not None and record.reason]
    mean = sum(masses) / len(masses) if masses else None
    doubtful = sum(mass < HALF for mass in masses) if masses else None
    return len(records), sum(record.reason == NO_NUMBER for record in records), doubtful, mean


VERBALISED = StudyKind(
    name="verbalised",
    summary="Questions about each answer: is it right, and how likely? True or False, and a number.",
    options=(
        StudyOption("functions", ("--functions",), "p_true,verbalised", f"Of {', '.join(FUNCTIONS)}."),
        StudyOption("unit", ("--unit",), ",".join(UNITS), "Of what is asked."),
    ),
    needs=("statistics", "vocabulary", "forced"),
    check=_check,
    jobs=_jobs,
    grows_context=True,
    signals=_signals,
    result=_result,
)
