"""Questions about a stored answer in the same conversation: how they are put, and what is read from the replies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from salt_tui.engine.engine import Engine
from salt_tui.engine.events import Chosen, Token
from salt_tui.engine.requests import Choice, Forced, Free, Generate, Segment
from salt_tui.runner.events import AnswerFinished, AnswerStarted, TokenArrived
from salt_tui.runner.jobs import Ending, JobName, Output, ReplyEvent
from salt_tui.runner.prompting import EncodedProblem
from salt_tui.store.records import GenerationEnd, SignalRecord, TokenRecord, UnitKind
from scoring.verbalised import HALF, p_true, read_probability

NO_NUMBER = "no number"
"""The reason of a unit for which the model did not say a number from 0 to 1."""

NO_LABEL = "neither label is possible"
NOT_ASKED = "it could not be asked"

NUMBER_TOKENS = 8
"""As many as ``0.9999`` takes where every character is a token, and some."""

SPELLINGS = ((b"True", b" True", b"true", b" true"), (b"False", b" False", b"false", b" false"))
"""Of the label for right and of the one for wrong; the first wins a tie."""

PARTS: dict[UnitKind, str] = {"atom": "parts", "line": "lines"}

_LABEL_OF_ALL = "Is the answer above entirely correct? Reply with one word: True or False."
_LABEL_OF_EACH = (
    "Is each of them correct? Reply with one line for each: its number, a colon and one word, True or False."
)
_NUMBER_OF_ALL = (
    "How likely is it, from 0 to 1, that the answer above is entirely correct? Reply with the number and nothing else."
)
_NUMBER_OF_EACH = (
    "How likely is it, from 0 to 1, that each of them is correct? Reply with one line for each: its number, a colon and"
    " how likely it is, and nothing else."
)


def question_text(reads: str, kind: UnitKind, units: Sequence[str]) -> str:
    """Return the turn that asks about a whole answer, or about all units of a kind at once.

    Args:
        reads: ``label`` or ``number``.
        kind: of the units.
        units: their texts; white space in them is folded, so that each stands on one line.
    """
    if kind == "generation":
        return _LABEL_OF_ALL if reads == "label" else _NUMBER_OF_ALL
    listed = "\n".join(f"{number}: {' '.join(unit.split())}" for number, unit in enumerate(units, 1))
    asked = _LABEL_OF_EACH if reads == "label" else _NUMBER_OF_EACH
    return f"The {PARTS[kind]} of the answer above, numbered:\n\n{listed}\n\n{asked}"


def label_choice(engine: Engine) -> Choice:
    """Return the choice between the labels: spellings with the same ids once, none that begins with another."""
    groups: dict[tuple[int, ...], int] = {}
    for group, spellings in enumerate(SPELLINGS):
        for spelling in spellings:
            groups.setdefault(engine.tokenize(spelling), group)
    kept = {
        ids: group
        for ids, group in groups.items()
        if not any(other != ids and ids[: len(other)] == other for other in groups)
    }
    return Choice(tuple(kept), tuple(kept.values()))


@dataclass(frozen=True, slots=True)
class QuestionJob:
    """One question: a turn after an answer, and a reply of which only labels or numbers are the model's to choose.

    Attributes:
        name: what it is about; its parent is the answer.
        signal: what the values are called.
        kind: of the units that are asked about.
        units: their places among the units of the kind, in order.
        answer: how the answer was asked.
        said: ids of the answer that stay, which several questions share.
        turn: ids of the turn up to where the reply begins.
        marks: ids that stand before each unit's value.
        choice: between labels; None where a number is said.
        forked: the turn, too, is shared with other questions.
        pieces: bytes of every token id.
    """

    name: JobName
    signal: str
    kind: UnitKind
    units: tuple[int, ...]
    answer: EncodedProblem
    said: tuple[int, ...]
    turn: tuple[int, ...]
    marks: tuple[tuple[int, ...], ...]
    choice: Choice | None
    forked: bool
    pieces: tuple[bytes, ...]

    @property
    def trunk(self) -> int:
        """How many tokens of the reply are shared with other questions about the answer."""
        return len(self.said) + (len(self.turn) if self.forked else 0)

    @property
    def prompt(self) -> EncodedProblem:
        """All that stands before what is stored of the question: the conversation so far."""
        return EncodedProblem(
            (*self.answer.prompt, *self.said, *(self.turn if self.forked else ())), self.answer.preamble
        )

    def request(self, key: int) -> Generate:
        """Return what the engine is asked."""
        return Generate(
            key=key,
            prompt=self.answer.prompt,
            preamble=self.answer.preamble,
            segments=tuple(self._segments()),
            trunk=self.trunk,
        )

    def _segments(self) -> Iterator[Segment]:
        before = (*self.said, *self.turn)
        for mark in self.marks:
            yield Forced((*before, *mark))
            # A model that ends its reply early has said nothing about the other units: they are asked all the same.
            yield self.choice or Free(NUMBER_TOKENS, (b"\n",), past_end=True)
            before = ()

    def begin(self, output: Output, attempt: int) -> QuestionAttempt:
        """Begin to read the reply."""
        name = self.name
        output.emit(AnswerStarted(output.generation, name.task, name.position, attempt, (), name.role, name.number))
        return QuestionAttempt(self, output)


class QuestionAttempt:
    """Stores the reply of one question, and what it says about each unit.

    Args:
        job: the question.
        output: where everything goes.
    """

    def __init__(self, job: QuestionJob, output: Output) -> None:
        self._job = job
        self._output = output
        self._reply = bytearray()
        self._tokens = 0
        self._read = 0
        self._number: bytearray | None = None
        # Nobody looks at what else could have stood in place of a turn.
        self._turn = len(job.said) + len(job.turn)

    def take(self, event: ReplyEvent) -> None:
        """Take the next token, or how a choice came out."""
        if isinstance(event, Chosen):
            self._take_choice(event)
        elif isinstance(event, Token):
            self._take_token(event)

    def _take_choice(self, event: Chosen) -> None:
        choice = self._job.choice
        assert choice is not None
        by_group: tuple[list[float], list[float]] = [], []
        for group, log_probability in zip(choice.groups, event.log_probabilities, strict=True):
            assert log_probability is not None  # the kind needs the whole vocabulary
            by_group[group].append(log_probability)
        value, mass = p_true(*by_group)
        self._say(value, NO_LABEL if value is None else mass_remark(mass))

    def _take_token(self, token: Token) -> None:
        assert token.id is not None  # the kind needs forced tokens, so ids
        piece = self._job.pieces[token.id]
        start = len(self._reply)
        self._reply += piece
        spoken = token.position >= self._turn
        record = TokenRecord(
            position=self._tokens,
            id=token.id,
            start=start,
            end=len(self._reply),
            log_probability=token.log_probability,
            entropy=token.entropy,
            alternatives=token.alternatives if spoken else (),
            alternative_log_probabilities=token.alternative_log_probabilities if spoken else (),
            forced=token.forced,
        )
        self._tokens += 1
        self._output.store.add_tokens(self._output.generation, [record])
        self._output.emit(TokenArrived(self._output.generation, record.position))
        if self._job.choice is None:
            self._take_number(token, piece)

    def _take_number(self, token: Token, piece: bytes) -> None:
        if token.forced:
            self._end_number()
            return
        if self._number is None:
            self._number = bytearray()
        if not token.end:
            self._number += piece

    def _end_number(self) -> None:
        if self._number is not None:
            value = read_probability(self._number.decode("utf-8", "replace"))
            self._number = None
            self._say(value, NO_NUMBER if value is None else None)

    def _say(self, value: float | None, reason: str | None) -> None:
        job, output = self._job, self._output
        parent = job.name.parent
        assert parent is not None
        signal = SignalRecord(parent, job.kind, job.units[self._read], job.signal, value, reason)
        self._read += 1
        output.store.add_signals(output.work, [signal])

    def end(self, ending: Ending) -> None:
        """End the reply; units that it does not reach have no value."""
        job, output = self._job, self._output
        self._end_number()
        why = f"{NOT_ASKED}: {ending.message or ending.stop_reason}"
        while self._read < len(job.units) and ending.stop_reason != "cancelled":
            self._say(None, why)
        output.store.end_generation(
            output.generation,
            GenerationEnd(
                reply=bytes(self._reply),
                stop_reason=ending.stop_reason,
                extraction=None,
                answer_status=None,
                error=ending.message if ending.stop_reason in {"failed", "context"} else None,
                prompt_seconds=ending.prompt_seconds,
                decode_seconds=ending.decode_seconds,
            ),
        )
        name = job.name
        output.emit(
            AnswerFinished(
                generation=output.generation,
                task=name.task,
                position=name.position,
                answer_status={"failed": "failed", "cancelled": "cancelled", "context": "context_full"}.get(
                    ending.stop_reason, "complete"
                ),
                correct=0,
                generated=0,
                reference=0,
                tokens=self._tokens,
                role=name.role,
                number=name.number,
            )
        )


_REMARK = "the labels have {share} of the probability"


def mass_remark(mass: float) -> str:
    """Return what is remarked about a value that rests on labels with so much probability, 0 to 1."""
    doubtful = ", less than half" if mass < HALF else ""
    return _REMARK.format(share=repr(float(f"{mass:.6g}"))) + doubtful


def mass_of(remark: str) -> float:
    """Return the probability of both labels that `mass_remark` wrote."""
    return float(remark.removeprefix(_REMARK.partition("{")[0]).partition(" ")[0])
