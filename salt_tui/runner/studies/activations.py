"""What the model's layers held while it wrote: activations, averaged over the tokens of a unit, to train probes on.

The stored tokens of an answer are walked, forced, through the model that said them.  The state of layer j is the output
of its block (the residual stream), the last one before the final norm or, by an option, behind it (ACUTE section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from salt_tui.engine.events import Activations, Token
from salt_tui.engine.requests import Forced, Generate
from salt_tui.runner.events import AnswerFinished, AnswerStarted, TokenArrived
from salt_tui.runner.jobs import Ending, Job, JobName, Output, ReplyEvent
from salt_tui.runner.prompting import EncodedProblem
from salt_tui.runner.studies.kind import StudyKind, StudyOption, StudyResult, StudySetting
from salt_tui.runner.studies.plan import CoveredAnswer, Options, StudyPlan
from salt_tui.store.disk_space import room_for
from salt_tui.store.queries import Queries
from salt_tui.store.records import ActivationRecord, GenerationEnd, SignalRecord, UnitKind
from salt_tui.store.results import StoredStudy
from salt_tui.usage_error import UsageError

KINDS: tuple[UnitKind, ...] = ("generation", "line", "atom")
EVERY_LAYER = "all"

_POSITIONS = 2
"""Vectors stored of each unit and layer: where its tokens were produced, and at the tokens themselves."""

_BYTES_A_NUMBER = 2
_BYTES_A_ROW = 100
"""SQLite's own, for the columns beside the vector and two entries of indices; measured on 100,000 rows."""


@dataclass(frozen=True, slots=True)
class PooledUnit:
    """A unit of an answer, with the tokens of the reply it was written in: from ``start`` up to, without, ``end``."""

    kind: UnitKind
    index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class WalkJob:
    """Walks the tokens of one answer and pools what the layers held.

    Attributes:
        name: what it is about.
        prompt: as the answer was asked.
        answer: generation of the answer.
        tokens: ids of the reply, at least one.
        units: to pool.
        layers: numbers of the layers, from 1, ascending; the model's last one stands last.
        width: of one layer's state.
        post_norm: the last layer's state is that behind the final norm.
    """

    name: JobName
    prompt: EncodedProblem
    answer: int
    tokens: tuple[int, ...]
    units: tuple[PooledUnit, ...]
    layers: tuple[int, ...]
    width: int
    post_norm: bool

    def request(self, key: int) -> Generate:
        """Return the walk: every token, and one more, whose producing state is the last token's own."""
        blocks = [layer - 1 for layer in self.layers]
        if self.post_norm:
            blocks[-1] += 1
        return Generate(
            key=key,
            prompt=self.prompt.prompt,
            preamble=self.prompt.preamble,
            segments=(Forced((*self.tokens, self.tokens[-1])),),
            layers=tuple(blocks),
        )

    def begin(self, output: Output, attempt: int) -> WalkAttempt:
        """Begin to pool."""
        name = self.name
        output.emit(AnswerStarted(output.generation, name.task, name.position, attempt, (1,), name.role, name.number))
        return WalkAttempt(self, output)

    @property
    def stored_bytes(self) -> int:
        """What its vectors will take on disk, about."""
        row = self.width * _BYTES_A_NUMBER + _BYTES_A_ROW
        return len(self.units) * len(self.layers) * _POSITIONS * row


@dataclass(slots=True)
class _Pool:
    """The sum over the tokens of a unit so far, and the state before its first token."""

    unit: PooledUnit
    first: NDArray[np.float32]
    total: NDArray[np.float64]


@dataclass(slots=True)
class WalkAttempt:
    """Pools the states of one walk as they come: what is kept is one sum for each unit that has begun."""

    job: WalkJob
    output: Output
    _open: list[_Pool] = field(default_factory=list)
    _records: list[ActivationRecord] = field(default_factory=list)
    _seen: int = 0

    def take(self, event: ReplyEvent) -> None:
        """Take the states that produced a token, which are those at the token before."""
        if isinstance(event, Token):
            self.output.emit(TokenArrived(self.output.generation, event.position))
        if not isinstance(event, Activations):
            return
        position = event.position
        state = np.frombuffer(event.values, dtype="<f4").reshape(len(self.job.layers), -1)
        still: list[_Pool] = []
        for pool in self._open:
            if pool.unit.end == position:
                self._close(pool, state)
            else:
                pool.total += state
                still.append(pool)
        self._open = still
        for unit in self.job.units:
            if unit.start == position:
                self._open.append(_Pool(unit, state, state.astype(np.float64)))
        self._seen += 1

    def end(self, ending: Ending) -> None:
        """Store the pools of a walk that came to its end, all together."""
        output, name = self.output, self.job.name
        complete = ending.stop_reason in {"end", "done"} and self._seen == len(self.job.tokens) + 1
        if complete:
            output.store.add_activations(output.work, self._records)
        failed = ending.stop_reason in {"failed", "context"}
        output.store.end_generation(
            output.generation,
            GenerationEnd(
                reply=b"",  # the tokens stand with the answer
                stop_reason=ending.stop_reason,
                extraction=None,
                answer_status=None,
                error=ending.message if failed else None,
                prompt_seconds=ending.prompt_seconds,
                decode_seconds=ending.decode_seconds,
            ),
        )
        output.emit(
            AnswerFinished(
                generation=output.generation,
                task=name.task,
                position=name.position,
                answer_status="complete" if complete else "failed",
                correct=0,
                generated=0,
                reference=0,
                tokens=len(self.job.tokens),
                role=name.role,
                number=name.number,
            )
        )

    def _close(self, pool: _Pool, after: NDArray[np.float32]) -> None:
        """Keep a pool whose unit is over; the tokens' own states are the producing ones, one token later."""
        unit = pool.unit
        count = unit.end - unit.start
        producing = pool.total / count
        own = producing + (after.astype(np.float64) - pool.first) / count
        for place, layer in enumerate(self.job.layers):
            for positions, vectors in (("producing", producing), ("own", own)):
                self._records.append(
                    ActivationRecord(
                        generation=self.job.answer,
                        kind=unit.kind,
                        index=unit.index,
                        layer=layer,
                        positions="producing" if positions == "producing" else "own",
                        vector=vectors[place].astype(np.float32),
                    )
                )


def _kinds(options: Options) -> tuple[UnitKind, ...]:
    asked = [part.strip() for part in str(options["unit"]).split(",")]
    unknown = [part for part in asked if part not in KINDS]
    if unknown:
        raise UsageError(f"--unit {unknown[0]}: one or several of {', '.join(KINDS)}, with commas")
    return tuple(kind for kind in KINDS if kind in asked)


def _layers(options: Options, depth: int | None = None) -> tuple[int, ...]:
    """Return the layers that are asked for and the last one, ascending; without the model's depth ``all`` is empty.

    The last layer is always there: similarities compare with it, and it says how deep the model is.
    """
    text = str(options["layers"]).strip()
    if text == EVERY_LAYER:
        return tuple(range(1, (depth or 0) + 1))
    try:
        layers = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise UsageError(f"--layers {text}: all, or numbers of layers with commas, such as 8,16,24") from None
    beyond = [layer for layer in layers if layer < 1 or (depth is not None and layer > depth)]
    if beyond:
        least_most = "from 1" if depth is None else f"1 to {depth}"
        raise UsageError(f"--layers {text}: layer {beyond[0]} is not there; layers are counted {least_most}")
    return layers if depth is None else tuple(sorted({*layers, depth}))


def _check(options: Options) -> None:
    _kinds(options)
    _layers(options)


def _jobs(setting: StudySetting) -> Sequence[Job]:
    kinds = _kinds(setting.options)
    layers = _layers(setting.options, setting.info.capabilities.activation_layers)
    found = []
    for answer in setting.answers:
        tokens = setting.queries.token_ids(answer.generation)
        units = _units(setting.queries, answer, kinds)
        if not tokens or not units:
            continue
        problem = answer.problem
        found.append(
            WalkJob(
                name=JobName(answer.problem_id, problem.task, problem.position, role="walk", parent=answer.generation),
                prompt=answer.prompt,
                answer=answer.generation,
                tokens=tokens,
                units=units,
                layers=layers,
                width=setting.info.capabilities.activation_width,
                post_norm=bool(setting.options["post_norm"]),
            )
        )
    return found


def _units(queries: Queries, answer: CoveredAnswer, kinds: Sequence[UnitKind]) -> tuple[PooledUnit, ...]:
    """Return the units that were written, in the order of their beginnings; missing ones have no tokens."""
    found = [
        PooledUnit(unit.kind, unit.index, unit.token_start, unit.token_end)
        for unit in queries.units(answer.generation)
        if unit.kind in kinds
        and unit.token_start is not None
        and unit.token_end is not None
        and unit.token_end > unit.token_start
    ]
    return tuple(sorted(found, key=lambda unit: (unit.start, unit.kind, unit.index)))


def _announce(setting: StudySetting, jobs: Sequence[Job]) -> str:
    """Say what will be written to the disk.

    Raises:
        UsageError: the disk has less room.
    """
    size = sum(job.stored_bytes for job in jobs if isinstance(job, WalkJob))
    return f"{len(jobs):,} answers to walk: {room_for(size, setting.queries.path, 'a study of kind activations')}"


def _signals(queries: Queries, study: StoredStudy, plan: StudyPlan) -> Iterator[Sequence[SignalRecord]]:
    """Say nothing about the answers: a probe does, once it is trained."""
    return iter(())


def _result(queries: Queries, study: StoredStudy, plan: StudyPlan) -> StudyResult:
    """Count what is stored, by kind of unit."""
    layers = queries.activation_layers(study.work)
    width = 0
    rows: list[tuple[str | int | float | None, ...]] = []
    for kind in _kinds(plan.options):
        units = 0
        for layer in layers[:1]:
            for record in queries.activations(study.work, kind, layer):
                units, width = units + 1, record.vector.size
        rows.append((kind, units, len(layers), width))
    note = f"salt-tui probe {study.work.run} trains probes on them and says how well they do."
    return StudyResult(("unit", "units", "layers", "width"), tuple(rows), (note,))


ACTIVATIONS = StudyKind(
    name="activations",
    summary="What the model's layers held while it wrote each unit, to train probes on.",
    options=(
        StudyOption("unit", ("--unit",), "generation", "generation, line, atom, or several with commas."),
        StudyOption(
            "layers", ("--layers",), EVERY_LAYER, "all, or numbers from 1 with commas, such as 8,16,24; and the last."
        ),
        StudyOption("post_norm", ("--post-norm",), False, "Take the last layer behind the final norm, not before it."),
    ),
    needs=("activations", "forced"),
    check=_check,
    jobs=_jobs,
    grows_context=True,
    signals=_signals,
    result=_result,
    announce=_announce,
)
