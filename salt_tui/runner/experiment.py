"""The loop of a run: hand problems to the engine, turn what comes back into scored rows, survive crashes.

One thread does all of it.  Rows are flushed when the oldest is `FLUSH_SECONDS` old; a generation's end is written at
once, in one transaction.  Nothing here depends on the order in which sequences end.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from salt_tui.engine.engine import (
    Engine,
    EngineDied,
    EngineError,
    Event,
    Generate,
    PromptProgress,
    Sampling,
    SequenceEnded,
    StopReason,
    Token,
)
from salt_tui.engine.process import describe_death
from salt_tui.runner.errors import RunFailedError
from salt_tui.runner.events import (
    AnswerFinished,
    AnswerRetried,
    AnswerStarted,
    AtomScored,
    Notice,
    PromptEvaluated,
    RunEnded,
    RunEvent,
    TokenArrived,
    UnitsWithdrawn,
)
from salt_tui.runner.heartbeat import Heartbeat
from salt_tui.runner.live_answer import LiveAnswer, ScoredChanges
from salt_tui.runner.plan import RunPlan, SamplingPlan
from salt_tui.runner.prompting import EncodedProblem
from salt_tui.store.records import GenerationEnd, PendingProblem, RunState, UnitRecord
from salt_tui.store.store import Store, StoreError
from scoring.answer_status import LEFT_OUT, answer_status
from scoring.confidence import CONFIDENCE_FUNCTIONS
from tasks.answer import ReferenceUnits, split_reference
from tasks.draws import derive_seed
from tasks.registry import get_task

FLUSH_SECONDS = 0.18
"""With what a transaction takes, an atom is on disk within a quarter of a second.  Every transaction takes a core from
llama.cpp's threads, which wait for each other."""

GATHER_SECONDS = 0.05
"""Pause between two looks at the pipe while nothing ends, for the same reason: no wake-up for every token.  Screens
show something new 20 times a second; durations are this exact."""

ATTEMPTS = 2
"""An answer during which the engine died is tried this often in all."""

FRUITLESS_CRASHES = 3
"""So many crashes without an answer in between that the engine computed to its end stop the run."""


@dataclass(frozen=True, slots=True)
class ReadyRun:
    """Everything the loop needs: a stored run, an opened engine, and the prompts of its open problems."""

    run: int
    plan: RunPlan
    store: Store
    engine: Engine
    vocabulary: tuple[bytes, ...]
    thinking_open: bool
    pending: tuple[PendingProblem, ...]
    prompts: dict[int, EncodedProblem]
    """By row id of the problem."""


@dataclass(slots=True)
class _Flight:
    """An answer in the engine's hands."""

    problem: PendingProblem
    reference: ReferenceUnits
    answer: LiveAnswer
    attempt: int
    submitted: float
    started: bool = False
    prompt_started: float | None = None
    first_token: float | None = None


class Experiment:
    """Runs one ready run to its end.

    Args:
        ready: what to run.
        emit: takes every event; must not raise and must be quick.
        stop: set it from any thread to stop; the run is then resumable.
    """

    def __init__(self, ready: ReadyRun, emit: Callable[[RunEvent], None], stop: threading.Event) -> None:
        self._ready = ready
        self._store = ready.store
        self._engine = ready.engine
        self._emit = emit
        self._stop = stop
        self._waiting: deque[tuple[PendingProblem, int]] = deque(
            (problem, max(1, problem.attempt)) for problem in ready.pending
        )
        self._flights: dict[int, _Flight] = {}
        self._limits = {task.task: task.max_tokens for task in ready.plan.tasks}
        self._fruitless_crashes = 0
        self._heartbeat = Heartbeat(ready.store, ready.run)

    def run(self) -> str:
        """Work until everything is done or `stop` is set; return the state the run was left in.

        An engine that cannot go on leaves it ``failed``, with the reason in the last event and in the store; what is
        stored stays and the run is resumable.

        Raises:
            StoreError: the database cannot be written.
        """
        self._engine.call_while_waiting(self._heartbeat.beat)
        try:
            while (self._waiting or self._flights) and not self._stop.is_set():
                self._fill()
                events = self._engine.events(self._patience())
                for event in events:
                    self._handle(event)
                self._flush_when_due()
                if events and not any(isinstance(event, SequenceEnded | EngineDied) for event in events):
                    self._stop.wait(min(GATHER_SECONDS, self._patience()))
        except (EngineError, RunFailedError) as error:
            return self._end("failed", str(error))
        except BaseException as error:
            # A second Ctrl+C breaks off, which is no failure.
            state: RunState = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            # A full disk refuses this too; closing the store then frees the run for this process, its end for others.
            with contextlib.suppress(StoreError):
                self._store.release(self._ready.run, state, str(error) or None)
            raise
        finally:
            # The engine may outlive the run and its lease.
            self._engine.call_while_waiting(None)
        return self._end("interrupted" if self._waiting or self._flights else "finished", None)

    # --- to the engine ------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        # Twice the width: a slot that ends finds its successor waiting and never idles for a round trip.
        while self._waiting and len(self._flights) < 2 * self._ready.plan.width:
            problem, attempt = self._waiting.popleft()
            self._submit(problem, attempt)

    def _submit(self, problem: PendingProblem, attempt: int) -> None:
        encoded = self._ready.prompts[problem.id]
        generation = self._store.begin_generation(problem.id, encoded.prompt, encoded.preamble, attempt)
        record = problem.problem
        reference = split_reference(get_task(record.task), record.reference)
        self._flights[generation] = _Flight(
            problem=problem,
            reference=reference,
            answer=self._new_answer(record.task, reference),
            attempt=attempt,
            submitted=time.monotonic(),
        )
        lines = [0] * len(reference.lines)
        for line in reference.atom_lines:
            lines[line] += 1
        self._emit(AnswerStarted(generation, record.task, record.position, attempt, tuple(lines)))
        self._engine.submit(
            Generate(
                key=generation,
                prompt=encoded.prompt,
                preamble=encoded.preamble,
                max_tokens=self._limits[record.task],
                sampling=_sampling(self._ready.plan.sampling, record.content_id),
            )
        )

    # --- from the engine ----------------------------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        if isinstance(event, EngineDied):
            self._recover(event)
            return
        flight = self._flights.get(event.key)
        if flight is None:
            return
        flight.started = True
        if isinstance(event, Token):
            self._take_token(event.key, flight, event)
        elif isinstance(event, PromptProgress):
            flight.prompt_started = flight.prompt_started or time.monotonic()
            self._emit(PromptEvaluated(event.key, event.done, event.total))
        else:
            self._take_end(event.key, flight, event)

    def _take_token(self, generation: int, flight: _Flight, token: Token) -> None:
        flight.first_token = flight.first_token or time.monotonic()
        record, changes = flight.answer.add(token)
        self._store.add_tokens(generation, [record])
        self._emit(TokenArrived(generation, record.position))
        self._store_changes(generation, flight, changes)

    def _store_changes(self, generation: int, flight: _Flight, changes: ScoredChanges) -> None:
        if changes.withdrawn:
            self._store.withdraw_units(generation, flight.answer.revision)
            self._emit(UnitsWithdrawn(generation, flight.answer.revision))
        if changes.units:
            self._store.add_units(generation, changes.units)
            for unit in changes.units:
                if unit.kind != "generation":
                    self._emit(_scored(generation, flight.problem.problem.task, unit))

    def _take_end(self, generation: int, flight: _Flight, event: SequenceEnded) -> None:
        if event.stop_reason == "failed" and flight.attempt < ATTEMPTS:
            del self._flights[generation]
            self._emit(Notice(f"answer {flight.problem.problem.position + 1} failed, tried again: {event.message}"))
            self._retry(generation, flight.problem, flight.attempt + 1)
            return
        # An answer that was given up, refused or cancelled says nothing for the engine.
        if flight.first_token is not None and event.stop_reason not in {"failed", "cancelled"}:
            self._fruitless_crashes = 0
        self._finish(generation, flight, event.stop_reason, event.message)

    def _finish(self, generation: int, flight: _Flight, stop_reason: StopReason, message: str | None) -> None:
        answer = flight.answer
        status = answer_status(stop_reason, answer.extraction)
        changes = answer.finish(cut=stop_reason != "end", count_missing=status not in LEFT_OUT)
        # Ending changes the extraction of a reply whose last characters were ambiguous.
        status = answer_status(stop_reason, answer.extraction)
        self._store_changes(generation, flight, changes)
        now = time.monotonic()
        begun = flight.prompt_started or flight.submitted
        decoded = flight.first_token or now
        self._store.end_generation(
            generation,
            GenerationEnd(
                reply=answer.reply,
                stop_reason=stop_reason,
                extraction=answer.extraction,
                answer_status=status,
                error=message if stop_reason in {"failed", "context"} else None,
                prompt_seconds=decoded - begun,
                decode_seconds=now - decoded,
            ),
        )
        del self._flights[generation]
        record = flight.problem.problem
        self._emit(
            AnswerFinished(
                generation=generation,
                task=record.task,
                position=record.position,
                answer_status=status,
                correct=answer.correct_atoms,
                generated=answer.generated_atoms,
                reference=len(flight.reference.atoms),
                tokens=answer.tokens,
            )
        )

    # --- crashes ------------------------------------------------------------------------------------------------

    def _recover(self, death: EngineDied) -> None:
        self._store.flush()
        self._fruitless_crashes += 1
        lost, self._flights = self._flights, {}
        cause = describe_death(death)
        if self._fruitless_crashes >= FRUITLESS_CRASHES:
            times = f"{FRUITLESS_CRASHES} times without finishing an answer"
            raise RunFailedError(f"{cause}; {times}; {self._engine.log_path} says more")
        begun = sum(flight.started for flight in lost.values())
        self._emit(Notice(f"{cause}; it is started again and {begun} answers are tried again"))
        self._engine.restart()
        for generation, flight in lost.items():
            attempt = flight.attempt + flight.started
            if attempt > ATTEMPTS:
                self._give_up(generation, flight, cause)
            else:
                self._retry(generation, flight.problem, attempt)

    def _give_up(self, generation: int, flight: _Flight, cause: str) -> None:
        encoded = self._ready.prompts[flight.problem.id]
        self._store.begin_generation(flight.problem.id, encoded.prompt, encoded.preamble, flight.attempt)
        blank = self._new_answer(flight.problem.problem.task, flight.reference)
        self._flights[generation] = replace(flight, answer=blank)
        self._finish(generation, self._flights[generation], "failed", cause)

    def _new_answer(self, task: str, reference: ReferenceUnits) -> LiveAnswer:
        ready = self._ready
        return LiveAnswer(get_task(task), reference, ready.vocabulary, thinking_open=ready.thinking_open)

    def _retry(self, generation: int, problem: PendingProblem, attempt: int) -> None:
        self._emit(AnswerRetried(generation, attempt))
        self._submit(problem, attempt)

    # --- the store's clock --------------------------------------------------------------------------------------

    def _patience(self) -> float:
        oldest = self._store.oldest_unwritten
        if oldest is None:
            return FLUSH_SECONDS
        return max(0.0, FLUSH_SECONDS - (time.monotonic() - oldest))

    def _flush_when_due(self) -> None:
        oldest = self._store.oldest_unwritten
        if oldest is not None and time.monotonic() - oldest >= FLUSH_SECONDS:
            self._store.flush()
        self._heartbeat.beat()

    def _end(self, state: RunState, message: str | None) -> str:
        self._store.flush()
        self._store.release(self._ready.run, state, message)
        self._emit(RunEnded(self._ready.run, state, message))
        return state


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


def _sampling(plan: SamplingPlan, content_id: str) -> Sampling:
    """Give each problem a generator of its own, so that its tokens do not depend on the others."""
    return Sampling(
        temperature=plan.temperature,
        top_k=plan.top_k,
        top_p=plan.top_p,
        min_p=plan.min_p,
        seed=derive_seed("sampler", plan.seed, content_id),
    )
