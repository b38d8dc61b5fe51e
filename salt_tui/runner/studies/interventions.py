"""Prefix interventions: atoms of stored answers changed, the next one written anew (SALT section 5.1, appendix B.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from salt_tui.runner.jobs import Job
from salt_tui.runner.replays.branches import BranchDesign, BranchJob
from salt_tui.runner.replays.design import (
    DEFAULT_ANSWERS,
    DEFAULT_DOSES,
    DEFAULT_TARGETS,
    DEFAULT_VARIANTS,
    FIRST_TARGET,
    DesignOptions,
    plan_design,
)
from salt_tui.runner.replays.prefix_edits import EditError
from salt_tui.runner.replays.sources import SPARE_TOKENS, ReplaySources
from salt_tui.runner.studies.kind import StudyKind, StudyOption, StudyResult, StudySetting
from salt_tui.runner.studies.plan import Options, StudyPlan
from salt_tui.store.queries import Queries
from salt_tui.store.records import SignalRecord
from salt_tui.store.results import StoredStudy
from salt_tui.usage_error import UsageError

CHUNKED = "the text before a target was evaluated in chunks, not token by token as it was written"
"""Why a chunked experiment is not exact."""


def design_options(options: Options) -> DesignOptions:
    """Read the options of a study.

    Raises:
        UsageError: a value that cannot be meant.
    """
    for name in ("answers", "targets", "variants"):
        if int(options[name]) < 1:
            raise UsageError(f"--{name} {options[name]}: at least 1")
    text = str(options["dose"])
    try:
        doses = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--dose {text}: shares between 0 and 1, separated by commas") from None
    if not all(0.0 <= dose <= 1.0 for dose in doses) or not any(doses):
        raise UsageError(f"--dose {text}: shares between 0 and 1, at least one above 0")
    return DesignOptions(
        answers=int(options["answers"]),
        targets=int(options["targets"]),
        variants=int(options["variants"]),
        doses=tuple(sorted(set(doses))),
        seed=int(options["seed"]),
    )


def _inexact(options: Options) -> str | None:
    # A plan of a time before the option has none.
    return CHUNKED if options.get("chunked") else None


def _check(options: Options) -> None:
    design_options(options)


def _jobs(setting: StudySetting) -> Sequence[Job]:
    """Return the branches in the order in which they share most: see `_in_order`."""
    sources = ReplaySources(setting.queries, setting.engine, setting.info, setting.reading, setting.run)
    answers = [answer for answer in setting.answers if answer.problem.answer_kind == "generated"]
    if not answers:
        raise UsageError("problems of your own cannot be replayed: nothing says what a wrong atom of theirs is")
    read = {answer.generation: sources.read(answer) for answer in answers}
    design = plan_design([source.replayable() for source in read.values()], design_options(setting.options))
    if not design.targets:
        reasons = "; ".join(f"{count} answers with {reason}" for reason, count in design.left_out.items())
        raise UsageError(
            f"nothing can be replayed: a target needs {FIRST_TARGET - 1} atoms before it ({reasons});"
            " longer answers come from a higher --difficulty"
        )
    chunked = _inexact(setting.options) is not None
    jobs: list[BranchJob] = []
    numbers: dict[int, int] = {}
    for target in design.targets:
        source = read[target.generation]
        for variant in target.variants:
            number = numbers.get(target.generation, 0)
            numbers[target.generation] = number + 1
            try:
                prefix = source.editor.before(target.index, dict(variant.edits))
            except EditError:
                # This vocabulary cannot write the edit exactly; the target has its other variants.
                continue
            jobs.append(
                sources.job(
                    source,
                    prefix,
                    BranchDesign(
                        answer=target.generation,
                        target=target.index,
                        variant=f"{variant.direction} {variant.number}" if variant.number else "baseline",
                        direction=variant.direction,
                        edits=variant.edits,
                        treatment_global=variant.treatment_global,
                        treatment_local=variant.treatment_local,
                        correct_before=target.correct_before,
                        correct_before_local=target.correct_before_local,
                    ),
                    number,
                    whole=False,
                    chunked=chunked,
                )
            )
    return jobs if chunked else _in_order(jobs, setting.run.width)


def _in_order(jobs: Sequence[BranchJob], width: int) -> list[BranchJob]:
    """Put the unchanged prefixes of as many answers as are computed at once before all their variants.

    The trunk of an answer's last unchanged prefix holds the trunks of all its other branches, which wait for it: one
    answer after the other would leave all slots but one idle meanwhile.
    """
    answers = list(dict.fromkeys(job.design.answer for job in jobs))
    ordered: list[BranchJob] = []
    for start in range(0, len(answers), width):
        group = set(answers[start : start + width])
        mine = [job for job in jobs if job.design.answer in group]
        bases = [job for job in mine if not job.design.edits]
        last = {job.design.answer: job.design.target for job in bases}
        ordered.extend(sorted(bases, key=lambda job: job.design.target != last[job.design.answer]))
        ordered.extend(job for job in mine if job.design.edits)
    return ordered


def _announce(setting: StudySetting, jobs: Sequence[Job]) -> str:
    """Say how many replays there are and, at the pace of the run's own answers, how long they will take."""
    branches = [job for job in jobs if isinstance(job, BranchJob)]
    targets = {(job.design.answer, job.design.target) for job in branches}
    shared: dict[int, int] = {}
    walked = chunks = 0
    for job in branches:
        answer, prefix = job.design.answer, job.prefix
        walked += 2 * len(job.gold) + SPARE_TOKENS
        if job.chunked:
            shared[answer] = len(job.prompt.prompt)
            chunks += len(prefix.ids)
        else:
            shared[answer] = max(shared.get(answer, 0), 0 if job.design.edits else prefix.kept)
            walked += len(prefix.ids) - prefix.kept
    if chunks:
        chunks += sum(shared.values())
    else:
        walked += sum(shared.values())
    text = f"{len(jobs):,} replays of {len(targets):,} targets in {len(shared)} answers"
    text += f", about {walked:,} tokens" + (f" and {chunks:,} in chunks" if chunks else "")
    asked = dict.fromkeys(answer.problem.task for answer in setting.answers)
    if none := [task for task in asked if task not in {job.name.task for job in branches}]:
        text += f", none of {' or '.join(none)}"
    seconds = _seconds(setting, walked, chunks)
    return text if seconds is None else f"{text}; at the pace of the run {_in_words(seconds)}"


def _seconds(setting: StudySetting, walked: int, chunks: int) -> float | None:
    """Return how long so many steps and tokens in chunks take at the pace of the run; None where that is not known."""
    stored = [setting.queries.answer(answer.generation) for answer in setting.answers]
    decoded = sum(answer.decode_seconds or 0.0 for answer in stored)
    evaluated = sum(answer.prompt_seconds or 0.0 for answer in stored)
    if not decoded or (chunks and not evaluated):
        return None
    prompts = [answer.prompt for answer in setting.answers]
    # What prompts share was evaluated once.
    preambles = {prompt.prompt[: prompt.preamble]: prompt.preamble for prompt in prompts}
    tokens = sum(preambles.values()) + sum(len(prompt.prompt) - prompt.preamble for prompt in prompts)
    steps = sum(answer.tokens for answer in stored) * setting.run.width
    return walked * decoded / steps + (chunks * evaluated / tokens if chunks else 0.0)


def _in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _signals(queries: Queries, study: StoredStudy, plan: StudyPlan) -> Iterator[Sequence[SignalRecord]]:
    """Interventions say nothing about single units of the answers."""
    return iter(())


def _result(queries: Queries, study: StoredStudy, plan: StudyPlan) -> StudyResult:
    """What is found needs regressions: `salt_tui.measure.interventions`."""
    return StudyResult((), ())


INTERVENTIONS = StudyKind(
    name="interventions",
    summary="Change atoms of stored answers, right or wrong, and see whether the next one is right.",
    options=(
        StudyOption("answers", ("--answers",), DEFAULT_ANSWERS, "Most answers of a task to replay."),
        StudyOption("targets", ("--targets",), DEFAULT_TARGETS, "Most atoms of an answer that are written anew."),
        StudyOption("variants", ("--variants",), DEFAULT_VARIANTS, "Changed beginnings of a target, at most."),
        StudyOption(
            "dose",
            ("--dose",),
            ",".join(f"{dose:g}" for dose in DEFAULT_DOSES),
            "Shares of the atoms to change, in the last ten and before them, all combinations.",
        ),
        StudyOption("seed", ("--seed",), 1, "Draws answers, targets and what is changed."),
        StudyOption("chunked", ("--chunked",), False, "Evaluate changed texts in chunks: sooner, and not exact."),
    ),
    needs=("statistics", "vocabulary", "forced"),
    check=_check,
    jobs=_jobs,
    grows_context=True,
    signals=_signals,
    result=_result,
    announce=_announce,
    inexact=_inexact,
)
