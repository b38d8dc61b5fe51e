"""The loop: hand jobs to the engine, hand on what comes back, keep the store's clock, survive crashes.

One thread does all of it.  Rows are flushed when the oldest is `FLUSH_SECONDS` old; a generation's end is written at
once, in one transaction.  Nothing here depends on the order in which sequences end, nor on what a job is for.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from salt_tui.engine.engine import Engine
from salt_tui.engine.errors import EngineError
from salt_tui.engine.events import EngineDied, EngineNotice, EngineStopped, Event, PromptProgress, SequenceEnded
from salt_tui.engine.process import describe_death
from salt_tui.runner.errors import RunFailedError
from salt_tui.runner.events import AnswerRetried, NoProgress, Notice, PromptEvaluated, RunEnded
from salt_tui.runner.heartbeat import Heartbeat
from salt_tui.runner.jobs import Attempt, Emit, Ending, Job, Output
from salt_tui.runner.provenance import Provenance
from salt_tui.runner.watchdog import AnswerWatch, Watchdog
from salt_tui.store.records import GenerationKey, GenerationStart, RunState, Work
from salt_tui.store.store import Store, StoreError

FLUSH_SECONDS = 0.18
"""With what a transaction takes, an atom is on disk within a quarter of a second.  Every transaction takes a core from
llama.cpp's threads, which wait for each other."""

GATHER_SECONDS = 0.05
"""Pause between two looks at the pipe while nothing ends, for the same reason: no wake-up for every token.  Screens
show something new 20 times a second; durations are this exact."""

ATTEMPTS = 2
"""A job during which the engine died is tried this often in all."""

FRUITLESS_CRASHES = 3
"""So many crashes without a job in between that the engine computed to its end stop the work."""


@dataclass(frozen=True, slots=True)
class ReadyWork:
    """Everything the loop needs: a claimed run or study, an opened engine, and the jobs that are left.

    Attributes:
        work: the run or study.
        store: open, holds the lease.
        engine: with an open context; None where there is nothing for one to compute, so no job.
        width: sequences computed at once.
        jobs: in the order in which they are begun.
        attempts: number of the attempt at which an earlier process left a job, by the job's key.
        computed: jobs that were computed to their end before.
        provenance: None where nobody will read the numbers.
        conclude: computes and stores what all jobs together give, once they are done; it is told what to call every
            few seconds.
        keeps_engine: the engine belongs to somebody who goes on with it.
    """

    work: Work
    store: Store
    engine: Engine | None
    width: int
    jobs: tuple[Job, ...]
    attempts: Mapping[GenerationKey, int]
    computed: int
    provenance: Provenance | None
    conclude: Callable[[Callable[[], None]], None] | None = None
    keeps_engine: bool = False

    def close(self) -> None:
        """End the engine, or what it still computes where it is kept, and close the store."""
        if self.engine is not None and self.keeps_engine:
            self.engine.cancel()
        elif self.engine is not None:
            self.engine.close()
        self.store.close()


@dataclass(slots=True)
class _Flight:
    """A job in the engine's hands."""

    job: Job
    attempt: Attempt
    number: int
    submitted: float
    started: bool = False
    prompt_started: float | None = None
    prompt_done: int = 0
    prompt_total: int = 0
    first_event: float | None = None


class Loop:
    """Computes the jobs of a run or study to their end.

    Args:
        ready: what to compute.
        emit: takes every event; must not raise and must be quick.
        stop: set it from any thread to stop; the run is then resumable.
        clock: seconds, monotonic, for the silence of the engine.
    """

    def __init__(
        self,
        ready: ReadyWork,
        emit: Emit,
        stop: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ready = ready
        self._store = ready.store
        self._emit = emit
        self._stop = stop
        self._waiting: deque[tuple[Job, int]] = deque(
            (job, max(1, ready.attempts.get(job.name.key, 1))) for job in ready.jobs
        )
        self._flights: dict[int, _Flight] = {}
        self._fruitless_crashes = 0
        self._computed = ready.computed
        self._cancelled = 0
        self._failure: str | None = None
        self._heartbeat = Heartbeat(ready.store, ready.work)
        self._watchdog = Watchdog(clock)
        self._suspended = False

    def run(self) -> str:
        """Work until everything is done or `stop` is set; return the state the run was left in.

        It is left ``failed``, with the reason in the last event and in the store, when the engine cannot go on and
        when nothing could be computed.  What is stored stays and the run is resumable.

        Raises:
            StoreError: the database cannot be written.
        """
        engine = self._ready.engine
        if engine is not None:
            engine.call_while_waiting(AnswerWatch(self._emit, "the model to be loaded again", self._heartbeat.beat))
        try:
            while (self._waiting or self._flights) and not self._stop.is_set():
                self._fill()
                events = self._engine.events(self._patience())
                for event in events:
                    self._handle(event)
                self._watch(progressed=bool(events))
                self._flush_when_due()
                if events and not any(isinstance(event, SequenceEnded | EngineDied) for event in events):
                    self._stop.wait(min(GATHER_SECONDS, self._patience()))
            state, message = self._outcome()
            if state == "finished" and self._ready.conclude is not None:
                self._ready.conclude(self._heartbeat.beat)
        except (EngineError, RunFailedError) as error:
            return self._end("failed", str(error))
        except BaseException as error:
            # A second Ctrl+C breaks off, which is no failure.
            state = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            # A full disk refuses this too; closing the store then frees the run for this process, its end for others.
            with contextlib.suppress(StoreError):
                self._store.release(self._ready.work, state, str(error) or None)
            raise
        finally:
            # The engine may outlive the run and its lease.
            if engine is not None:
                engine.call_while_waiting(None)
        return self._end(state, message)

    # --- from other threads -------------------------------------------------------------------------------------

    def suspend(self) -> None:
        """Let the engine stop where it stands; what has arrived is stored and the lease is kept alive meanwhile."""
        self._suspended = True
        if self._ready.engine is not None:
            self._ready.engine.suspend()

    def wake(self) -> None:
        """Let a suspended engine go on; without effect on one that computes."""
        self._watchdog.begin()
        self._suspended = False
        if self._ready.engine is not None:
            self._ready.engine.wake()

    def cancel(self, generation: int) -> None:
        """Stop one job; it ends as ``cancelled`` and the others go on."""
        self._engine.cancel(generation)

    @property
    def _engine(self) -> Engine:
        assert self._ready.engine is not None  # only work without jobs has none
        return self._ready.engine

    # --- to the engine ------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        if not self._flights:
            self._watchdog.begin()
        # Twice the width: a slot that ends finds its successor waiting and never idles for a round trip.
        while self._waiting and len(self._flights) < 2 * self._ready.width:
            self._submit(*self._waiting.popleft())

    def _submit(self, job: Job, number: int) -> None:
        generation = self._begin(job, number)
        self._engine.submit(job.request(generation))

    def _begin(self, job: Job, number: int) -> int:
        name, prompt = job.name, job.prompt
        start = GenerationStart(
            problem=name.problem,
            prompt_tokens=prompt.prompt or None,
            preamble=prompt.preamble,
            attempt=number,
            role=name.role,
            parent=name.parent,
            number=name.number,
        )
        generation = self._store.begin_generation(self._ready.work, start)
        attempt = job.begin(Output(self._ready.work, self._store, self._emit, generation), number)
        self._flights[generation] = _Flight(job, attempt, number, time.monotonic())
        return generation

    # --- from the engine ----------------------------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        if isinstance(event, EngineDied):
            self._recover(describe_death(event))
            return
        if isinstance(event, EngineStopped):
            raise RunFailedError(event.message)
        if isinstance(event, EngineNotice):
            self._emit(Notice(event.text))
            return
        flight = self._flights.get(event.key)
        if flight is None:
            return
        flight.started = True
        if isinstance(event, SequenceEnded):
            self._take_end(event.key, flight, event)
        elif isinstance(event, PromptProgress):
            flight.prompt_started = flight.prompt_started or time.monotonic()
            flight.prompt_done, flight.prompt_total = event.done, event.total
            self._emit(PromptEvaluated(event.key, event.done, event.total))
        else:
            flight.first_event = flight.first_event or time.monotonic()
            flight.attempt.take(event)

    def _take_end(self, generation: int, flight: _Flight, event: SequenceEnded) -> None:
        if event.stop_reason == "failed" and flight.number < ATTEMPTS:
            del self._flights[generation]
            self._emit(Notice(f"{flight.job.name.in_words()} failed, tried again: {event.message}"))
            self._retry(generation, flight.job, flight.number + 1)
            return
        # A job that was given up, refused or cancelled says nothing for the engine.
        if flight.first_event is not None and event.stop_reason not in {"failed", "cancelled"}:
            self._fruitless_crashes = 0
        self._finish(generation, flight, event)

    def _finish(self, generation: int, flight: _Flight, event: SequenceEnded) -> None:
        now = time.monotonic()
        begun = flight.prompt_started or flight.submitted
        decoded = flight.first_event or now
        del self._flights[generation]
        flight.attempt.end(Ending(event.stop_reason, event.message, decoded - begun, now - decoded))
        if event.stop_reason == "failed":
            self._failure = event.message or "the engine failed and did not say why"
        elif event.stop_reason == "cancelled":
            self._cancelled += 1
        else:
            self._computed += 1

    # --- crashes and silence ------------------------------------------------------------------------------------

    def _recover(self, cause: str) -> None:
        self._store.flush()
        self._fruitless_crashes += 1
        lost, self._flights = self._flights, {}
        if self._fruitless_crashes >= FRUITLESS_CRASHES:
            times = f"{FRUITLESS_CRASHES} times without finishing an answer"
            raise RunFailedError(f"{cause}; {times}; {self._engine.log_path} says more")
        begun = sum(flight.started for flight in lost.values())
        self._emit(Notice(f"{cause}; it is started again and {begun} answers are tried again"))
        self._engine.restart()
        self._refuse_another_model()
        self._watchdog.begin()
        for generation, flight in lost.items():
            number = flight.number + flight.started
            if number > ATTEMPTS:
                self._give_up(flight, cause)
            else:
                self._retry(generation, flight.job, number)

    def _give_up(self, flight: _Flight, cause: str) -> None:
        """Store the job as failed, without what its last attempt had."""
        generation = self._begin(flight.job, flight.number)
        self._finish(generation, self._flights[generation], SequenceEnded(generation, "failed", cause))

    def _retry(self, generation: int, job: Job, number: int) -> None:
        self._emit(AnswerRetried(generation, number))
        self._submit(job, number)

    def _refuse_another_model(self) -> None:
        provenance = self._ready.provenance
        if provenance is not None and not provenance.model.is_unchanged(self._heartbeat.beat):
            raise RunFailedError("the engine had to load the model again, and its file holds another model by now")

    def _watch(self, *, progressed: bool) -> None:
        if progressed or self._suspended or not self._flights:
            self._watchdog.progressed() if progressed else self._watchdog.begin()
            return
        if self._watchdog.gives_up():
            self._recover(f"the engine made no progress for {self._watchdog.silence():.0f} s")
        elif self._watchdog.has_something_to_say():
            self._emit(NoProgress(self._waiting_for(), self._watchdog.silence()))

    def _waiting_for(self) -> str:
        """Name what the engine should be at: the oldest jobs, as many as it computes at once."""
        oldest = list(self._flights.values())[: self._ready.width]
        first = oldest[0]
        name = first.job.name.in_words()
        if first.first_event is not None:
            what = f"the next token of {name}"
        elif first.prompt_started is not None:
            what = f"the prompt of {name} ({first.prompt_done}/{first.prompt_total} tokens evaluated)"
        else:
            what = f"the beginning of {name}"
        return what if len(oldest) == 1 else f"{what} and {len(oldest) - 1} more"

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

    # --- the end ------------------------------------------------------------------------------------------------

    def _outcome(self) -> tuple[RunState, str | None]:
        if self._waiting or self._flights:
            return "interrupted", None
        if self._cancelled:
            answers = "1 answer was" if self._cancelled == 1 else f"{self._cancelled} answers were"
            return "interrupted", f"{answers} cancelled; resuming computes what was cancelled"
        if self._failure is not None and not self._computed:
            return "failed", f"nothing could be computed: {self._failure}"
        return "finished", None

    def _mark_when_model_was_written_to(self) -> None:
        provenance = self._ready.provenance
        if provenance is None or not provenance.model.was_written_to(self._heartbeat.beat):
            return
        reason = "another model was written into the model's file while it was in use"
        changed = provenance.store_as_not_exact(self._store, self._ready.work, reason)
        self._emit(Notice(changed.warnings[-1]))

    def _end(self, state: RunState, message: str | None) -> str:
        self._store.flush()
        self._mark_when_model_was_written_to()
        work = self._ready.work
        self._store.release(work, state, message)
        self._emit(RunEnded(work.run, state, message, work.number))
        return state
