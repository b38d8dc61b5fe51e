"""Another model reads the stored answers: how sure it would have been, and where it would have gone elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from salt_tui.engine.events import ReadoutTaken, Token
from salt_tui.engine.requests import Forced, Generate, Readout
from salt_tui.runner.events import AnswerFinished, AnswerStarted, TokenArrived
from salt_tui.runner.jobs import Ending, Job, JobName, Output, ReplyEvent
from salt_tui.runner.prompting import EncodedProblem
from salt_tui.runner.studies.against_tokens import UNITS, compare_with_tokens, verdict
from salt_tui.runner.studies.kind import StudyKind, StudyOption, StudyResult, StudySetting
from salt_tui.runner.studies.plan import CoveredAnswer, Options, StudyPlan
from salt_tui.store.partings import INFINITE, KL, read_partings
from salt_tui.store.queries import Queries
from salt_tui.store.records import GenerationEnd, SignalRecord, TokenRecord, UnitKind
from salt_tui.store.results import StoredStudy, StoredToken
from salt_tui.usage_error import UsageError
from scoring.confidence import unit_confidences
from scoring.signals import SECOND
from scoring.two_models import kl_lower_bound

NOT_WALKED = "the second model did not come to it"


@dataclass(frozen=True, slots=True)
class WalkedUnit:
    """A unit of the answer and the places of its tokens."""

    kind: UnitKind
    index: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SecondWalkJob:
    """Walks the tokens of one answer through the second model.

    Attributes:
        name: what it is about; its parent is the answer.
        prompt: as the answer was asked.
        tokens: ids of the answer, at least one.
        listed: per token the ids that the first model's list holds, the chosen one among them; -1 behind the last.
        log_probabilities: the first model's, of these.
        units: whose confidences are wanted.
        pieces: bytes of every token id.
    """

    name: JobName
    prompt: EncodedProblem
    tokens: tuple[int, ...]
    listed: NDArray[np.int32]
    log_probabilities: NDArray[np.float64]
    units: tuple[WalkedUnit, ...]
    pieces: tuple[bytes, ...]

    def known(self, position: int) -> tuple[int, ...]:
        """Return the ids whose probabilities the first model stored at a position."""
        row = self.listed[position]
        return tuple(row[row >= 0].tolist())

    def request(self, key: int) -> Generate:
        """Return what the engine is asked: every token forced, and what it gives to the tokens of the other's list."""
        return Generate(
            key=key,
            prompt=self.prompt.prompt,
            preamble=self.prompt.preamble,
            segments=(Forced(self.tokens),),
            readouts=tuple(Readout(place, self.known(place), rest=True) for place in range(len(self.tokens))),
        )

    def begin(self, output: Output, attempt: int) -> SecondWalkAttempt:
        """Begin to read."""
        name = self.name
        output.emit(AnswerStarted(output.generation, name.task, name.position, attempt, (), name.role, name.number))
        return SecondWalkAttempt(self, output)


@dataclass(slots=True)
class SecondWalkAttempt:
    """Stores the walk, and what the second model says of tokens and units."""

    job: SecondWalkJob
    output: Output
    _reply: bytearray = field(default_factory=bytearray)
    _log_probabilities: list[float | None] = field(default_factory=list)
    _entropies: list[float | None] = field(default_factory=list)

    def take(self, event: ReplyEvent) -> None:
        """Take what the model gives to the listed tokens, or the next token."""
        if isinstance(event, ReadoutTaken):
            self._take_readout(event)
        elif isinstance(event, Token):
            self._take_token(event)

    def _take_readout(self, event: ReadoutTaken) -> None:
        job = self.job
        first = job.log_probabilities[event.position, : len(event.log_probabilities)]
        value = kl_lower_bound(
            first.tolist(),
            [_as_stored(number) for number in event.log_probabilities],
            -inf if event.rest is None else event.rest,
        )
        finite = value < inf
        answer = job.name.parent
        assert answer is not None
        signal = SignalRecord(
            answer, "token", event.position, KL, value if finite else None, None if finite else INFINITE
        )
        self.output.store.add_signals(self.output.work, [signal])

    def _take_token(self, token: Token) -> None:
        start = len(self._reply)
        self._reply += token.spoken(self.job.pieces)
        record = TokenRecord(
            position=token.position,
            id=token.id,
            start=start,
            end=len(self._reply),
            log_probability=token.log_probability,
            entropy=token.entropy,
            alternatives=token.alternatives,
            alternative_log_probabilities=token.alternative_log_probabilities,
            forced=token.forced,
        )
        self._log_probabilities.append(token.log_probability)
        self._entropies.append(token.entropy)
        self.output.store.add_tokens(self.output.generation, [record])
        self.output.emit(TokenArrived(self.output.generation, token.position))

    def end(self, ending: Ending) -> None:
        """Say how sure the second model is of each unit, and end the walk."""
        job, output, name = self.job, self.output, self.job.name
        if ending.stop_reason != "cancelled":
            output.store.add_signals(output.work, [signal for unit in job.units for signal in self._unit(unit)])
        failed = ending.stop_reason in {"failed", "context"}
        output.store.end_generation(
            output.generation,
            GenerationEnd(
                reply=bytes(self._reply),
                stop_reason=ending.stop_reason,
                extraction=None,
                answer_status=None,
                error=ending.message if failed else None,
                prompt_seconds=ending.prompt_seconds,
                decode_seconds=ending.decode_seconds,
            ),
        )
        status = {"failed": "failed", "cancelled": "cancelled", "context": "context_full"}
        output.emit(
            AnswerFinished(
                generation=output.generation,
                task=name.task,
                position=name.position,
                answer_status=status.get(ending.stop_reason, "complete"),
                correct=0,
                generated=0,
                reference=0,
                tokens=len(self._log_probabilities),
                role=name.role,
                number=name.number,
            )
        )

    def _unit(self, unit: WalkedUnit) -> Iterator[SignalRecord]:
        answer = self.job.name.parent
        assert answer is not None
        if unit.members[-1] >= len(self._log_probabilities):
            for name in SECOND:
                yield SignalRecord(answer, unit.kind, unit.index, name, None, NOT_WALKED)
            return
        values = unit_confidences(
            [self._log_probabilities[member] for member in unit.members],
            [self._entropies[member] for member in unit.members],
        )
        for name, function in SECOND.items():
            yield SignalRecord(answer, unit.kind, unit.index, name, values[function])


def _as_stored(value: float) -> float:
    """Round a log-probability as those of the first model's list were: through 32 bits, then to seven digits."""
    return float(f"{float(np.float32(value)):.7g}")


def _check(options: Options) -> None:
    if not str(options["model"]).strip():
        raise UsageError("a study of kind second-model needs another model: -m NAME or -m FILE.gguf")


def _jobs(setting: StudySetting) -> Sequence[Job]:
    return [job for answer in setting.answers if (job := _walk(setting, answer)) is not None]


def _walk(setting: StudySetting, answer: CoveredAnswer) -> SecondWalkJob | None:
    tokens = setting.queries.tokens(answer.generation)
    ids = tuple(token.record.id for token in tokens if token.record.id is not None)
    if not ids or len(ids) < len(tokens):
        return None
    longest = max(len(token.record.alternatives) for token in tokens) + 1
    listed = np.full((len(ids), longest), -1, dtype=np.int32)
    logs = np.full((len(ids), longest), np.nan)
    for place, token in enumerate(tokens):
        known, values = _listed(token)
        listed[place, : len(known)], logs[place, : len(values)] = known, values
    name = JobName(
        answer.problem_id,
        answer.problem.task,
        answer.problem.position,
        role="walk",
        parent=answer.generation,
    )
    units = tuple(_units(setting.queries, answer.generation, tokens))
    return SecondWalkJob(name, answer.prompt, ids, listed, logs, units, setting.reading.vocabulary)


def _listed(token: StoredToken) -> tuple[list[int], list[float]]:
    """Return the tokens whose probabilities are stored at a place, the chosen one among them."""
    record = token.record
    known = [number for number in record.alternatives if isinstance(number, int)]
    values = list(record.alternative_log_probabilities)
    if record.id is not None and record.id not in known and record.log_probability is not None:
        known.append(record.id)
        values.append(_as_stored(record.log_probability))
    return known, values


def _units(queries: Queries, generation: int, tokens: Sequence[StoredToken]) -> Iterator[WalkedUnit]:
    for unit in queries.units(generation):
        if unit.token_start is None or unit.token_end is None:
            continue
        span = range(unit.token_start, unit.token_end)
        # A token without bytes belongs to no unit.
        members = tuple(place for place in span if tokens[place].record.end > tokens[place].record.start)
        if members:
            yield WalkedUnit(unit.kind, unit.index, members)


def _signals(queries: Queries, study: StoredStudy, plan: StudyPlan) -> Iterator[Sequence[SignalRecord]]:
    """All that there is was stored with the walks."""
    return iter(())


def _result(queries: Queries, study: StoredStudy, plan: StudyPlan) -> StudyResult:
    """Say where the second model would have gone elsewhere first, answer by answer."""
    run, work = study.work.run, study.work
    given = {signal.name: signal for signal in queries.signal_names(run) if signal.work == work}
    rows: list[tuple[str | int | float | None, ...]] = []
    parted: dict[str, list[bool]] = {}
    infinite = broken_off = 0
    for found in read_partings(queries, work):
        infinite += found.infinite
        if found.apart or found.complete:
            parted.setdefault(found.task, []).append(bool(found.apart))
        else:
            broken_off += found.ended
        first = found.apart[0] + 1 if found.apart else None
        said, other = (None if text is None else text.decode("utf-8", "replace") for text in (found.said, found.other))
        rows.append((found.task, found.position + 1, found.tokens, first, said, other, found.mean_kl))
    notes = [
        f"First apart: the first token, counted from 1, that the second model ({study.model.name}) would not have"
        " chosen; then what the answer has there and what it would have said. KL: mean over tokens, in nats, of a lower"
        " bound of the divergence."
    ]
    if infinite:
        where = "1 token" if infinite == 1 else f"{infinite:,} tokens"
        notes.append(f"KL is infinite at {where}: the second model rules out what the first allows there.")
    if broken_off:
        left_out = "1 answer was" if broken_off == 1 else f"{broken_off} answers were"
        notes.append(f"{left_out} not walked to the end and part{'s' * (broken_off == 1)} nowhere before; not counted.")
    if parted and not any(map(any, parted.values())):
        notes.append(f"None of {sum(map(len, parted.values()))} answers parts anywhere.")
    else:
        notes += [f"{task}: {sum(some)} of {len(some)} answers part somewhere." for task, some in parted.items()]
    same = study.model.identity == queries.run_record(run).model.identity
    if same:
        notes.append("The second model is the one that wrote the answers: the same model adds nothing.")
    for kind, plural in UNITS.items():
        names = tuple(f"{name}@{work}" for name, signal in given.items() if kind in signal.kinds)
        if names and not same:
            conclusion = compare_with_tokens(queries, run, kind, names)
            notes.append(verdict(conclusion, names, "the second model", plural))
    columns = ("task", "answer", "tokens", "first_apart", "said", "second_says", "mean_kl")
    return StudyResult(columns, tuple(rows), tuple(notes))


SECOND_MODEL = StudyKind(
    name="second-model",
    summary="Another model with the same vocabulary reads each answer: how sure it is, and where it would differ.",
    options=(StudyOption("model", ("-m",), "", "Name from models.toml or a GGUF file; needed."),),
    needs=("statistics", "vocabulary", "forced"),
    check=_check,
    jobs=_jobs,
    grows_context=True,
    signals=_signals,
    result=_result,
    computed_by="another model",
)
