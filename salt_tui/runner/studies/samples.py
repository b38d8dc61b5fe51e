"""Further samples of each problem: do they agree with the answer, and with each other?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from salt_tui.runner.answering import AnswerJob, seeded_sampling
from salt_tui.runner.asked_problems import form_of
from salt_tui.runner.jobs import Job, JobName
from salt_tui.runner.plan import SamplingPlan
from salt_tui.runner.request import check_sampling
from salt_tui.runner.studies.against_tokens import UNITS, compare_with_tokens, verdict
from salt_tui.runner.studies.kind import StudyKind, StudyOption, StudyResult, StudySetting
from salt_tui.runner.studies.plan import Options, StudyPlan
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import Queries
from salt_tui.store.records import SignalKind, SignalRecord, UnitKind, UnitRecord
from salt_tui.store.results import StoredAnswer, StoredStudy
from salt_tui.usage_error import UsageError
from scoring.agreement import (
    AnswerTexts,
    Units,
    aligned_agreement,
    answer_agreement,
    cluster_entropy,
    majority_units,
    unit_agreement,
    unit_cluster_entropy,
)
from scoring.answer_status import LEFT_OUT
from tasks.answer import split_reference
from tasks.answer_form import AnswerForm
from tasks.draws import derive_seed

MOST_SAMPLES = 1000
NO_SAMPLE = "no sample could be computed"
"""The reason of signals of an answer all of whose samples failed or did not fit."""


def _sampling(options: Options) -> SamplingPlan:
    return SamplingPlan(
        temperature=float(options["temperature"]),
        top_k=int(options["top_k"]),
        top_p=float(options["top_p"]),
        min_p=float(options["min_p"]),
        seed=int(options["sampler_seed"]),
    )


def _check(options: Options) -> None:
    samples = int(options["samples"])
    if not 1 <= samples <= MOST_SAMPLES:
        raise UsageError(f"-k {samples}: 1 to {MOST_SAMPLES} samples")
    check_sampling(_sampling(options))
    if not float(options["temperature"]) and samples > 1:
        raise UsageError("--temp 0: all samples would be equal; choose a temperature above 0")


def _jobs(setting: StudySetting) -> Sequence[Job]:
    """Return all samples of one answer after those of the one before, which shares its prompt."""
    sampling = _sampling(setting.options)
    return [
        AnswerJob(
            name=JobName(
                answer.problem_id,
                answer.problem.task,
                answer.problem.position,
                role="sample",
                parent=None,
                number=number,
            ),
            problem=answer.problem,
            prompt=answer.prompt,
            max_tokens=answer.max_tokens,
            sampling=seeded_sampling(sampling, derive_seed("sample", sampling.seed, answer.problem.content_id, number)),
            reading=setting.reading,
        )
        for answer in setting.answers
        for number in range(int(setting.options["samples"]))
    ]


def _signals(queries: Queries, study: StoredStudy, plan: StudyPlan) -> Iterator[Sequence[SignalRecord]]:
    for answer, samples in _sampled_answers(queries, study, plan):
        yield list(_answer_signals(queries, answer, samples, aligned=bool(plan.options["aligned"])))


def _answer_signals(
    queries: Queries, answer: StoredAnswer, samples: Sequence[AnswerTexts], *, aligned: bool
) -> Iterator[SignalRecord]:
    assert answer.generation is not None  # only answers that were finished are covered
    generation = answer.generation
    own = _texts(form_of(answer.problem), queries.units(generation))
    whole = ("agreement", "cluster_entropy")
    names = (*whole, "agreement_aligned") if aligned else whole
    by_kind: tuple[tuple[SignalKind, Units], ...] = ("atom", own.atoms), ("line", own.lines)
    for kind, texts in by_kind:
        if not samples:
            for index, text in enumerate(texts):
                for name in names if text is not None else ():
                    yield SignalRecord(generation, kind, index, name, None, NO_SAMPLE)
            continue
        others = [sample.atoms if kind == "atom" else sample.lines for sample in samples]
        values = {
            "agreement": unit_agreement(texts, others),
            "cluster_entropy": unit_cluster_entropy(texts, others),
        }
        if aligned:
            values["agreement_aligned"] = aligned_agreement(texts, others)
        for name, column in values.items():
            for index, value in enumerate(column):
                if value is not None:
                    yield SignalRecord(generation, kind, index, name, value)
    if own.generation is None:
        return
    if not samples:
        for name in whole:
            yield SignalRecord(generation, "generation", 0, name, None, NO_SAMPLE)
        return
    yield SignalRecord(generation, "generation", 0, "agreement", answer_agreement(own, samples))
    entropy = cluster_entropy([sample.generation for sample in samples])
    yield SignalRecord(generation, "generation", 0, "cluster_entropy", entropy)


def _result(queries: Queries, study: StoredStudy, plan: StudyPlan) -> StudyResult:
    """Compare the majority answers with the run's answers, task by task."""
    counts: dict[str, list[int]] = {}
    agreements: dict[str, list[float]] = {}
    for answer, samples in _sampled_answers(queries, study, plan):
        if not samples:
            continue
        assert answer.generation is not None  # only answers that were finished are covered
        form, task = form_of(answer.problem), answer.problem.task
        reference = split_reference(form, answer.problem.reference).atoms
        atoms = queries.units(answer.generation, "atom")
        written = sum(unit.text is not None for unit in atoms)
        right = sum(unit.status == "correct" for unit in atoms)
        others = [sample.atoms for sample in samples]
        majority = majority_units(others)
        voted = sum(text is not None for text in majority)
        found = counts.setdefault(task, [0, 0, 0, 0, 0])
        for place, value in enumerate((1, right, written, _correct(form, majority, reference), voted)):
            found[place] += value
        shares = unit_agreement(_texts(form, atoms).atoms, others)
        agreements.setdefault(task, []).extend(share for share in shares if share is not None)
    rows: list[tuple[str | int | float | None, ...]] = []
    for name, (answers, correct, generated, majority_correct, majority_generated) in counts.items():
        given = agreements[name]
        rows.append(
            (
                name,
                answers,
                _share(correct, generated),
                _share(majority_correct, majority_generated),
                math.fsum(given) / len(given) if given else None,
            )
        )
    samples_each, work = int(plan.options["samples"]), study.work
    notes = [
        f"The majority answer is made of {samples_each} samples of each problem, unit by unit. Precision is the share"
        " of right atoms among those written."
    ]
    signals = [signal for signal in queries.signal_names(work.run) if signal.work == work]
    for kind, plural in UNITS.items():
        names = tuple(f"{signal.name}@{work}" for signal in signals if kind in signal.kinds)
        if names:
            notes.append(verdict(compare_with_tokens(queries, work.run, kind, names), names, "sampling", plural))
    columns = ("task", "answers", "precision", "majority_precision", "agreement")
    return StudyResult(columns, tuple(rows), tuple(notes))


def _sampled_answers(
    queries: Queries, study: StoredStudy, plan: StudyPlan
) -> Iterator[tuple[StoredAnswer, tuple[AnswerTexts, ...]]]:
    """Yield the covered answers with those of their samples that count, in the order of their numbers."""
    samples: dict[int, list[tuple[int, int]]] = {}
    for sample in queries.generations(study.work, role="sample"):
        if sample.answer_status is not None and sample.answer_status not in LEFT_OUT:
            samples.setdefault(sample.problem_id, []).append((sample.number, sample.id))
    for answer in queries.answers(study.work.run):
        problem = answer.problem
        if problem.position not in plan.answers.get(problem.task, ()):
            continue
        if answer.generation is None or answer.stop_reason is None:
            raise StoreError(
                f"{queries.path}: {study.work.title} is about answer {problem.position + 1} of {problem.task}, which is"
                " not there; restore a copy of the file"
            )
        form = form_of(problem)
        yield (
            answer,
            tuple(
                _texts(form, queries.units(generation)) for _, generation in sorted(samples.get(answer.problem_id, ()))
            ),
        )


def _texts(form: AnswerForm, units: Sequence[UnitRecord]) -> AnswerTexts:
    """Return the units that were written, normalised, at their indices."""
    texts = {(unit.kind, unit.index): form.normalise(unit.text) for unit in units if unit.text is not None}

    def by_index(kind: UnitKind) -> tuple[str | None, ...]:
        last = max((index for of, index in texts if of == kind), default=-1)
        return tuple(texts.get((kind, index)) for index in range(last + 1))

    return AnswerTexts(by_index("atom"), by_index("line"), texts.get(("generation", 0)))


def _correct(form: AnswerForm, units: Units, reference: Sequence[str]) -> int:
    """Count the units that are as good as the reference at their index."""
    pairs = zip(units, reference, strict=False)
    return sum(unit is not None and (unit == right or form.is_right("atom", unit, right)) for unit, right in pairs)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


SAMPLES = StudyKind(
    name="samples",
    summary="Further samples of each problem: agreement with the answer, and a majority answer.",
    options=(
        StudyOption("samples", ("-k",), 8, "Samples of each problem."),
        StudyOption("temperature", ("--temp",), 0.7, "Above 0; higher makes samples differ more."),
        StudyOption("top_k", ("--top-k",), 0, "0 keeps all."),
        StudyOption("top_p", ("--top-p",), 1.0, "1 keeps all."),
        StudyOption("min_p", ("--min-p",), 0.0, "0 keeps all."),
        StudyOption("sampler_seed", ("--sampler-seed",), 0, "Draws the tokens."),
        StudyOption("aligned", ("--aligned",), False, "Also the agreement with aligned units instead of by index."),
    ),
    needs=(),
    check=_check,
    jobs=_jobs,
    grows_context=False,
    signals=_signals,
    result=_result,
)
