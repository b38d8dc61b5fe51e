"""The job of a replay: a stored answer's beginning, changed or not, and what the model writes then."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from salt_tui.engine.events import AsideTaken, Token
from salt_tui.engine.requests import Aside, Forced, Free, Generate, Sampling, Segment
from salt_tui.runner.answering import AnswerAttempt, ReplyReading, begin_answer
from salt_tui.runner.events import TextWritten
from salt_tui.runner.jobs import Ending, JobName, Output, ReplyEvent
from salt_tui.runner.prompting import EncodedProblem
from salt_tui.runner.replays.design import Direction
from salt_tui.runner.replays.prefix_edits import ForcedPrefix
from salt_tui.store.records import GenerationEnd, InterventionRecord, ProblemRecord, TokenRecord
from scoring.answer_status import LEFT_OUT
from scoring.labels import UnitStatus

NO_ATOM = "no atom at the target"
NOT_COMPUTED = "not computed"


@dataclass(frozen=True, slots=True)
class BranchDesign:
    """What is changed and what is asked about, apart from how the tokens come out.

    Attributes:
        answer: row of the stored answer; the branch forks from it, or from another branch of it.
        target: index of the atom that is written anew.
        variant: its name among the branches of the target.
        direction: one of `InterventionRecord`'s.
        edits: new text by index of the atom.
        treatment_global, treatment_local: change of the fraction of right atoms.
        correct_before, correct_before_local: that fraction in the unchanged prefix.
    """

    answer: int
    target: int
    variant: str
    direction: Direction
    edits: tuple[tuple[int, str], ...]
    treatment_global: float
    treatment_local: float | None
    correct_before: float
    correct_before_local: float | None


@dataclass(frozen=True, slots=True)
class BranchJob:
    """Replays one prefix.

    Attributes:
        name: what it is about.
        problem: what was asked.
        prompt: its ids, those of the answer.
        prefix: what the reply begins with.
        stored: tokens of the text that it forks from; the first `ForcedPrefix.kept` are not computed again but copied.
        gold: tokens of the right atom at the target; empty where P(gold) is not asked for.
        endings: name of the set of ids that end that atom.
        max_tokens: limit on what the model writes.
        whole: the rest of the answer is wanted, not only the target.
        sampling: how the answer chose its tokens, with the same seed.
        reading: how to read the reply.
        design: stored beside the branch.
        chunked: the prefix is evaluated in chunks, as a prompt is; its tokens then have no log-probabilities of their
            own.
    """

    name: JobName
    problem: ProblemRecord
    prompt: EncodedProblem
    prefix: ForcedPrefix
    stored: Sequence[TokenRecord]
    gold: tuple[int, ...]
    endings: str
    max_tokens: int
    whole: bool
    sampling: Sampling
    reading: ReplyReading
    design: BranchDesign
    chunked: bool = False

    def request(self, key: int) -> Generate:
        """Return what the engine is asked: the prefix, the right atom tried beside it, then free text.

        What comes before the first edit is a trunk, which replays of one answer share; of a chunked one all of the
        prefix is.
        """
        segments: list[Segment] = [Forced(self.prefix.ids)]
        if self.gold:
            segments.append(Aside(self.gold, self.endings))
        segments.append(Free(self.max_tokens))
        return Generate(
            key=key,
            prompt=self.prompt.prompt,
            preamble=self.prompt.preamble,
            segments=tuple(segments),
            sampling=self.sampling,
            trunk=len(self.prefix.ids) if self.chunked else self.prefix.kept,
            chunked=self.chunked,
        )

    def begin(self, output: Output, attempt: int) -> BranchAttempt:
        """Begin with the tokens that are copied, and with those that a chunk holds."""
        answer = begin_answer(self.name, self.problem, self.reading, output, attempt, whole=self.whole)
        for record in self.stored[: self.prefix.kept]:
            answer.take(_copied(output.generation, record))
        if self.chunked:
            for position in range(self.prefix.kept, len(self.prefix.ids)):
                answer.take(_in_a_chunk(output.generation, position, self.prefix.ids[position]))
        return BranchAttempt(self, answer, output)


class BranchAttempt:
    """Stores a branch as it comes, and its design and outcome with its end.

    Args:
        job: what is computed.
        answer: reads and stores tokens and units.
        output: where everything goes.
    """

    def __init__(self, job: BranchJob, answer: AnswerAttempt, output: Output) -> None:
        self._job = job
        self._answer = answer
        self._output = output
        self._gold: float | None = None

    def take(self, event: ReplyEvent) -> None:
        """Take the next token, or what was found about the right atom."""
        if isinstance(event, Token):
            self._answer.take(event)
            if self._job.whole and not event.forced:
                text = event.spoken(self._job.reading.vocabulary)
                self._output.emit(TextWritten(self._output.generation, text))
        elif isinstance(event, AsideTaken):
            self._gold = math.fsum(event.log_probabilities) + (event.log_mass or 0.0)

    def end(self, ending: Ending) -> None:
        """Store design and outcome with the branch's end, in one transaction."""
        job = self._job
        end = self._answer.finish(ending)
        statuses = self._answer.atom_statuses
        outcome, reason = _outcome(statuses, job.design.target, end)
        gold = self._gold
        if gold is not None and not math.isfinite(gold):
            gold = None
        design = job.design
        record = InterventionRecord(
            generation=self._output.generation,
            answer=design.answer,
            target=design.target,
            variant=design.variant,
            direction=design.direction,
            edits=design.edits,
            treatment_global=design.treatment_global,
            treatment_local=design.treatment_local,
            length=design.target,
            correct_before=design.correct_before,
            correct_before_local=design.correct_before_local,
            outcome=outcome,
            log_probability_reference=gold,
            reason=reason,
        )
        self._output.store.add_interventions(self._output.work, [record])
        self._answer.close(end)


def _outcome(statuses: Mapping[int, UnitStatus], target: int, end: GenerationEnd) -> tuple[bool | None, str | None]:
    """Y, or why there is none; a target without an atom is wrong and says so."""
    if end.answer_status in LEFT_OUT:
        return None, end.error or NOT_COMPUTED
    if target not in statuses:
        return False, NO_ATOM
    return statuses[target] == "correct", None


def _copied(generation: int, record: TokenRecord) -> Token:
    assert record.id is not None  # engines without ids cannot be forced
    return Token(
        key=generation,
        position=record.position,
        id=record.id,
        log_probability=record.log_probability,
        entropy=record.entropy or 0.0,
        alternatives=tuple(one for one in record.alternatives if isinstance(one, int)),
        alternative_log_probabilities=record.alternative_log_probabilities,
        forced=True,
        end=False,
    )


def _in_a_chunk(generation: int, position: int, token: int) -> Token:
    """Return a token without numbers: a chunk gives those that follow its last token only."""
    return Token(
        key=generation,
        position=position,
        id=token,
        log_probability=None,
        entropy=None,
        alternatives=(),
        alternative_log_probabilities=(),
        forced=True,
        end=False,
    )
