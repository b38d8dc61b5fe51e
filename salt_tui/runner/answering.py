"""The first kind of job: ask a problem, score the reply while it streams.  Samples are further answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from salt_tui.engine.events import Chosen, Token
from salt_tui.engine.requests import Choice, Free, Generate, Sampling, Spelled
from salt_tui.runner.asked_problems import choice_signals, form_of, letter_choice, spelled_choice
from salt_tui.runner.events import AnswerFinished, AnswerStarted, AtomScored, TokenArrived, UnitsWithdrawn
from salt_tui.runner.jobs import Ending, JobName, Output, ReplyEvent
from salt_tui.runner.live_answer import LiveAnswer, ScoredChanges
from salt_tui.runner.plan import SamplingPlan
from salt_tui.runner.prompting import EncodedProblem
from salt_tui.store.records import GenerationEnd, ProblemRecord, UnitRecord
from scoring.answer_status import LEFT_OUT, AnswerStatus, StopReason, answer_status
from scoring.confidence import CONFIDENCE_FUNCTIONS
from scoring.labels import UnitStatus
from tasks.answer import split_reference
from tasks.answer_form import ReferenceUnits
from tasks.draws import derive_seed


@dataclass(frozen=True, slots=True)
class ReplyReading:
    """What must be known of a model to read its replies.

    Attributes:
        vocabulary: bytes of every token id.
        thinking_open: prompts end inside an open ``<think>``.
    """

    vocabulary: tuple[bytes, ...]
    thinking_open: bool


@dataclass(frozen=True, slots=True)
class AnswerJob:
    """Asks one problem and scores the reply.

    Attributes:
        name: what it is about.
        problem: what is asked.
        prompt: its ids.
        max_tokens: limit on the tokens of the reply.
        sampling: how tokens are chosen, with a seed of the problem's own.
        reading: how to read the reply.
    """

    name: JobName
    problem: ProblemRecord
    prompt: EncodedProblem
    max_tokens: int
    sampling: Sampling
    reading: ReplyReading

    def request(self, key: int) -> Generate:
        """Return what the engine is asked: free text up to the limit, or one of the letters of a choice."""
        return Generate(
            key=key,
            prompt=self.prompt.prompt,
            preamble=self.prompt.preamble,
            segments=(self._choice() or Free(self.max_tokens),),
            sampling=self.sampling,
            conversation=self.prompt.conversation,
        )

    def begin(self, output: Output, attempt: int) -> AnswerAttempt:
        """Begin to read the reply."""
        return begin_answer(self.name, self.problem, self.reading, output, attempt, choice=self._choice())

    def _choice(self) -> Choice | Spelled | None:
        if self.problem.answer_kind != "choice":
            return None
        sampled = self.sampling.temperature > 0
        if not self.reading.vocabulary:
            return spelled_choice(len(self.problem.choices), sampled=sampled)
        return letter_choice(self.reading.vocabulary, len(self.problem.choices), sampled=sampled)


def begin_answer(
    name: JobName,
    problem: ProblemRecord,
    reading: ReplyReading,
    output: Output,
    attempt: int,
    *,
    choice: Choice | Spelled | None = None,
    whole: bool = True,
) -> AnswerAttempt:
    """Announce an attempt to answer a problem and begin to read it.

    Args:
        name: of the job.
        problem: what is asked.
        reading: how to read the reply.
        output: where everything goes.
        attempt: its number.
        choice: what the reply is chosen among; None where it is free.
        whole: the reply is to hold the whole answer, so that what it lacks is missing.
    """
    form = form_of(problem)
    reference = split_reference(form, problem.reference)
    lines = [0] * max(1, len(reference.lines))
    for line in reference.atom_lines:
        lines[line] += 1
    output.emit(
        AnswerStarted(
            generation=output.generation,
            task=name.task,
            position=name.position,
            attempt=attempt,
            reference_lines=tuple(lines),
            role=name.role,
            number=name.number,
            question=problem.text,
            reference=problem.reference,
        )
    )
    answer = LiveAnswer(form, reference, reading.vocabulary, thinking_open=reading.thinking_open)
    return AnswerAttempt(name, reference, answer, output, choice, whole=whole)


def finish_answer(answer: LiveAnswer, stop_reason: StopReason, *, whole: bool) -> tuple[ScoredChanges, AnswerStatus]:
    """End an answer; return its last units, the missing ones too, and its status.

    Args:
        answer: all tokens of the reply were added.
        stop_reason: why they ended.
        whole: reference units that the reply does not reach are missing.
    """
    status = answer_status(stop_reason, answer.extraction)
    changes = answer.finish(cut=stop_reason not in {"end", "done"}, count_missing=whole and status not in LEFT_OUT)
    # Ending changes the extraction of a reply whose last characters were ambiguous.
    return changes, answer_status(stop_reason, answer.extraction)


class AnswerAttempt:
    """Stores and announces tokens and units of one reply as they come.

    Args:
        name: of the job.
        reference: units of the right answer.
        answer: reads the reply.
        output: where everything goes.
        choice: what the reply is chosen among; None where it is free.
        whole: reference atoms that the reply does not reach are missing.
    """

    def __init__(
        self,
        name: JobName,
        reference: ReferenceUnits,
        answer: LiveAnswer,
        output: Output,
        choice: Choice | Spelled | None,
        *,
        whole: bool,
    ) -> None:
        self._name = name
        self._reference = reference
        self._answer = answer
        self._output = output
        self._choice = choice
        self._whole = whole

    @property
    def atom_statuses(self) -> Mapping[int, UnitStatus]:
        """Labels of the atoms that are complete, by index."""
        return self._answer.atom_statuses

    def take(self, event: ReplyEvent) -> None:
        """Take the next token, or how a choice came out; an answer asks for nothing else."""
        if isinstance(event, Chosen) and self._choice is not None and self._name.role == "answer":
            signals = choice_signals(self._output.generation, self._choice, event)
            self._output.store.add_signals(self._output.work, signals)
        if not isinstance(event, Token):
            return
        output = self._output
        record, changes = self._answer.add(event)
        output.store.add_tokens(output.generation, [record])
        output.emit(TokenArrived(output.generation, record.position))
        self._store_changes(changes)

    def end(self, ending: Ending) -> None:
        """End the reply."""
        self.close(self.finish(ending))

    def finish(self, ending: Ending) -> GenerationEnd:
        """Add the last units and the missing ones; return what is stored at the end, with the answer's status."""
        answer, stop_reason = self._answer, ending.stop_reason
        changes, status = finish_answer(answer, stop_reason, whole=self._whole)
        self._store_changes(changes)
        return GenerationEnd(
            reply=answer.reply,
            stop_reason=stop_reason,
            extraction=answer.extraction,
            answer_status=status,
            error=ending.message if stop_reason in {"failed", "context"} else None,
            prompt_seconds=ending.prompt_seconds,
            decode_seconds=ending.decode_seconds,
        )

    def close(self, end: GenerationEnd) -> None:
        """Store the end, in one transaction with all that is written before it, and announce it."""
        answer, output = self._answer, self._output
        output.store.end_generation(output.generation, end)
        # A replay is cut behind its target on purpose.
        replayed = not self._whole and end.answer_status == "truncated"
        output.emit(
            AnswerFinished(
                generation=output.generation,
                task=self._name.task,
                position=self._name.position,
                answer_status="replayed" if replayed else end.answer_status or "",
                correct=answer.correct_atoms,
                generated=answer.generated_atoms,
                reference=len(self._reference.atoms),
                tokens=answer.tokens,
                role=self._name.role,
                number=self._name.number,
            )
        )

    def _store_changes(self, changes: ScoredChanges) -> None:
        output = self._output
        if changes.withdrawn:
            output.store.withdraw_units(output.generation, self._answer.revision)
            output.emit(UnitsWithdrawn(output.generation, self._answer.revision))
        if changes.units:
            output.store.add_units(output.generation, changes.units)
            for unit in changes.units:
                if unit.kind != "generation":
                    output.emit(_scored(output.generation, self._name.task, unit))


def answer_sampling(plan: SamplingPlan, content_id: str) -> Sampling:
    """Give each problem a generator of its own, so that its tokens do not depend on the others.

    Args:
        plan: how tokens are chosen.
        content_id: of the problem.
    """
    return seeded_sampling(plan, derive_seed("sampler", plan.seed, content_id))


def seeded_sampling(plan: SamplingPlan, seed: int) -> Sampling:
    """Return how one sequence chooses its tokens.

    Args:
        plan: temperature and what cuts the distribution.
        seed: of the sequence's own generator.
    """
    return Sampling(temperature=plan.temperature, top_k=plan.top_k, top_p=plan.top_p, min_p=plan.min_p, seed=seed)


def _scored(generation: int, task: str, unit: UnitRecord) -> AtomScored:
    confidences = {
        name: value for name, value in zip(CONFIDENCE_FUNCTIONS, unit.confidences, strict=True) if value is not None
    }
    return AtomScored(
        generation=generation,
        task=task,
        kind=unit.kind,
        index=unit.index,
        line=unit.line if unit.line is not None else 0,
        text=unit.text,
        reference=unit.reference,
        status=unit.status,
        confidences=confidences,
    )
