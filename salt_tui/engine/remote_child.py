"""The child process that asks a server instead of computing.

It is a child for the same reasons as llama.cpp's: one mechanism, a key that no other part of the program holds, and a
network that may hang without the screen doing so.  An event loop in a thread of its own has the requests in flight;
the main thread starts them, and hands on what they report.

What lies with one request ends its sequence as failed.  What lies with the server, so that every other request would
meet it too, ends the work (`EngineStopped`): answers that were never computed are not answers that failed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import queue
import random
import threading
import traceback
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from salt_tui import __version__
from salt_tui.engine import wire
from salt_tui.engine.choices import choose_option
from salt_tui.engine.engine import NextTurn
from salt_tui.engine.errors import ContextError, EngineError, ModelError
from salt_tui.engine.events import ALTERNATIVES, Chosen, EngineNotice, EngineStopped, LoadProgress, SequenceEnded, Token
from salt_tui.engine.model_info import Build, Capabilities, ContextInfo, Device, Exactness, ModelInfo, Speed
from salt_tui.engine.options import ContextOptions, LoadOptions, check_width
from salt_tui.engine.remote_client import (
    FIRST_WAIT,
    Client,
    CutError,
    LaterError,
    RefusedError,
    ServerError,
    Waits,
)
from salt_tui.engine.remote_probe import Probe, look, without_log_probabilities
from salt_tui.engine.remote_requests import (
    AnswerError,
    Chunk,
    ServedModel,
    body,
    fixed_fields,
    identity_of,
    path_of,
    stop_reason,
)
from salt_tui.engine.remote_server import Server
from salt_tui.engine.requests import ChatTurn, Choice, Free, Generate, Sampling, Segment, Spelled
from salt_tui.engine.serve import Outlet, main
from salt_tui.engine.token_alignment import AlignmentError, PlacedToken, TokenAligner
from salt_tui.visible_text import visible

MOST_REQUESTS = 64
"""At once."""

FRUITLESS_REQUESTS = 3
"""So many requests in a row that the server failed at, each tried again and again, end the work."""

_STEP_SECONDS = 0.1

_Result = TypeVar("_Result")


@dataclass(slots=True)
class _Flight:
    """A sequence in flight."""

    request: Generate
    aligner: TokenAligner = field(default_factory=TokenAligner)
    reported: int = 0
    placed: int = 0
    gaps: int = 0
    task: asyncio.Task[None] | None = None
    over: bool = False


class RemoteBackend:
    """A `Backend` that asks a server."""

    def __init__(self, waits: Waits) -> None:
        """Start without a server; `load` names it.

        Args:
            waits: how long to wait before trying again.
        """
        self._waits = waits
        self._server: Server | None = None
        self._client: Client | None = None
        self._probe: Probe | None = None
        self._width = 0
        self._waiting: deque[Generate] = deque()
        self._running: dict[int, _Flight] = {}
        self._happened: queue.SimpleQueue[Callable[[Outlet], None]] = queue.SimpleQueue()
        self._fruitless = 0
        self._stopped = False
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="requests in flight", daemon=True).start()

    def build(self) -> Build:
        """Describe the child."""
        versions = {"salt-tui": __version__} | ({} if self._client is None else self._client.versions)
        devices = () if self._server is None else (Device("server", self._server.address, "server", None, None),)
        return Build("remote", versions, False, devices, "asks a server")

    def load(self, options: LoadOptions, progress: Callable[[LoadProgress], None]) -> ModelInfo:
        """See that the server has the model and gives log-probabilities; raises `ModelError`."""
        server = options.server
        if server is None:
            raise ModelError(f"{options.path}: no server is named")
        key = os.environ.get(server.key_env, "").strip() if server.key_env else ""
        if server.key_env and not key:
            raise ModelError(f"the environment variable {server.key_env} holds no key")
        self._server, self._width = server, 0
        self._fruitless, self._stopped = 0, False
        self._client = Client(server, key or None, self._waits, self._notice)
        progress(LoadProgress(0.1))
        try:
            served = self._await(self._client.served())
            progress(LoadProgress(0.3))
            probe = self._probe = self._await(look(self._client, server))
        except (ServerError, CutError, LaterError, RefusedError, AnswerError, AlignmentError) as error:
            raise ModelError(f"{server.address}: {error}") from None
        progress(LoadProgress(1.0))
        return self._info(server, served, probe)

    def _info(self, server: Server, served: ServedModel, probe: Probe) -> ModelInfo:
        warnings = list(server.warnings)
        if probe.raw is False:
            warnings.append(
                "the server's log-probabilities change with the temperature: at other temperatures than 1 they are not"
                " the model's own"
            )
        if probe.samplers == "standard":
            warnings.append("the server takes no top-k, min-p and repetition penalty: its own apply")
        if probe.alternatives < ALTERNATIVES:
            warnings.append(f"the server lists {probe.alternatives} alternatives of a token, not {ALTERNATIVES}")
        owner = "" if served.owner in {None, "me"} else visible(str(served.owner), 20)
        sent = fixed_fields(server)
        return ModelInfo(
            description=f"served{owner and f' by {owner}'} at {server.address}",
            architecture=None,
            name=server.model,
            quantisation=None,
            parameters=served.parameters,
            file_bytes=served.file_bytes,
            vocabulary_size=served.vocabulary_size,
            trained_context=served.context,
            layers=0,
            gpu_layers=0,
            template=None,
            thinking_open=False,
            warnings=tuple(warnings),
            build=self.build(),
            capabilities=Capabilities("top_k", 0, 0, vocabulary=False, forced=False, cut=False),
            identity=identity_of(server, served, probe.answered),
            sent={"path": path_of(server), "fields": sent, "samplers": probe.samplers, "before_sampling": probe.raw},
        )

    def vocabulary(self) -> tuple[bytes, ...]:
        """Refuse: a server gives no ids."""
        raise EngineError("a server gives no token ids, so it has no vocabulary")

    def encode(self, conversations: Sequence[Sequence[ChatTurn]]) -> list[tuple[int, ...]]:
        """Refuse: a server gives no ids."""
        raise EngineError("a server gives no token ids: it is asked conversations")

    def tokenize(self, text: bytes) -> tuple[int, ...]:
        """Refuse: a server gives no ids."""
        raise EngineError("a server gives no token ids")

    def next_turn(self, reply: Sequence[int], turn: ChatTurn) -> NextTurn:
        """Refuse: a server gives no ids."""
        raise EngineError("a server gives no token ids")

    def define_set(self, name: str, ids: Sequence[int]) -> None:
        """Refuse: a server gives no ids."""
        raise EngineError("a server gives no token ids")

    def open_context(self, options: ContextOptions) -> ContextInfo:
        """Take over the width; raises `ContextError`."""
        check_width(options.width)
        if options.width > MOST_REQUESTS:
            raise ContextError(f"-np {options.width}: a server is asked at most {MOST_REQUESTS} requests at once")
        self._width = options.width
        return ContextInfo(
            width=options.width,
            context=None,
            batch=options.batch,
            micro_batch=options.micro_batch,
            threads=options.threads or 1,
            gpu_layers=0,
            flash_attention=False,
            key_type=options.key_type,
            value_type=options.value_type,
            exactness=Exactness({}, False),
        )

    def measure(self, request: wire.Measure) -> Speed:
        """Refuse: nothing is computed here."""
        raise EngineError("a server's steps cannot be timed from here")

    def submit(self, request: Generate) -> None:
        """Queue a sequence."""
        self._waiting.append(request)

    def step(self, outlet: Outlet) -> bool:
        """Start what fits into the width, and hand on what happened."""
        while self._waiting and not self._stopped and len(self._running) < max(1, self._width):
            self._start(self._waiting.popleft(), outlet)
        if self._stopped or not (self._running or self._waiting):
            return False
        try:
            self._happened.get(timeout=_STEP_SECONDS)(outlet)
            while True:
                self._happened.get_nowait()(outlet)
        except queue.Empty:
            return True

    def interrupt(self, key: int | None) -> None:
        """Let the main thread look for a cancel now."""
        self._happened.put(lambda outlet: None)

    def cancel(self, key: int | None, outlet: Outlet) -> None:
        """End one sequence, or all; their connections are closed."""
        for number in [number for number in self._running if key is None or number == key]:
            flight = self._running.pop(number)
            flight.over = True
            self._loop.call_soon_threadsafe(self._break_off, flight)
            outlet.ended(SequenceEnded(number, "cancelled"))
        for request in [request for request in self._waiting if key is None or request.key == key]:
            self._waiting.remove(request)
            outlet.ended(SequenceEnded(request.key, "cancelled"))

    # --- one sequence, in the main thread -----------------------------------------------------------------------

    def _start(self, request: Generate, outlet: Outlet) -> None:
        segment = request.segments[0]
        refused = None
        if not self._width:
            refused = "no context is open"
        elif len(request.segments) > 1 or not isinstance(segment, Free | Spelled) or request.readouts:
            refused = "a server can only be asked for a whole reply"
        elif not request.conversation:
            refused = "a server is asked conversations, not token ids"
        elif isinstance(segment, Free) and (segment.stop or segment.past_end):
            refused = "a server cannot be asked to go on past an end"
        elif self._probe is not None and self._probe.samplers == "standard" and _needs_more(request.sampling):
            refused = "the server takes no top-k and min-p"
        elif any("\ud800" <= character < "\ue000" for turn in request.conversation for character in turn.content):
            refused = "the prompt holds half a character, which has no bytes"
        if refused is not None:
            outlet.ended(SequenceEnded(request.key, "failed", refused))
            return
        flight = self._running[request.key] = _Flight(request)
        asyncio.run_coroutine_threadsafe(self._fly(flight), self._loop)

    def _report(self, flight: _Flight, report: Callable[[Outlet], None]) -> None:
        """Hand something of a sequence to the main thread, which drops what belongs to one that is over."""
        self._happened.put(lambda outlet: None if flight.over else report(outlet))

    def _end(self, flight: _Flight, ended: SequenceEnded) -> None:
        def report(outlet: Outlet) -> None:
            flight.over = True
            del self._running[flight.request.key]
            outlet.ended(ended)

        self._report(flight, report)

    def _stop(self, message: str) -> None:
        """End everything: the server cannot be asked any more."""

        def report(outlet: Outlet) -> None:
            if self._stopped:
                return
            self._stopped = True
            for flight in self._running.values():
                flight.over = True
                self._loop.call_soon_threadsafe(self._break_off, flight)
            self._running.clear()
            self._waiting.clear()
            outlet.stopped(EngineStopped(message))

        self._happened.put(report)

    def _notice(self, text: str) -> None:
        self._happened.put(lambda outlet: outlet.notice(EngineNotice(text)))

    # --- one sequence, in the event loop ------------------------------------------------------------------------

    def _await(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    @staticmethod
    def _break_off(flight: _Flight) -> None:
        if flight.task is not None:
            flight.task.cancel()

    async def _fly(self, flight: _Flight) -> None:
        assert self._server is not None
        flight.task = asyncio.current_task()
        if flight.over:
            return
        key = flight.request.key
        where = self._server.address
        try:
            await self._ask(flight)
        except (AnswerError, AlignmentError) as error:
            self._end(flight, SequenceEnded(key, "failed", f"{where}: {error}"))
        except RefusedError as error:
            self._end(flight, SequenceEnded(key, "context" if error.about_context else "failed", f"{where}: {error}"))
        except (LaterError, CutError) as error:
            self._fruitless += 1
            if (isinstance(error, LaterError) and error.for_all) or self._fruitless >= FRUITLESS_REQUESTS:
                self._stop(f"{where}: {error}")
            else:
                self._end(flight, SequenceEnded(key, "failed", f"{where}: {error}"))
        except ServerError as error:
            self._stop(f"{where}: {error}")
        except Exception as error:
            traceback.print_exc()
            self._end(flight, SequenceEnded(key, "failed", f"the engine failed ({type(error).__name__}): see its log"))

    async def _ask(self, flight: _Flight) -> None:
        request, segment = flight.request, flight.request.segments[0]
        assert self._server is not None
        assert self._client is not None
        assert self._probe is not None
        limit = segment.max_tokens if isinstance(segment, Free) else 1
        asked = body(self._server, request.conversation, limit, request.sampling, self._probe.samplers)
        finish: str | None = None
        text = over = False
        first: list[PlacedToken] = []
        async with contextlib.aclosing(self._client.ask(asked, limit)) as answers:
            async for chunk in answers:
                self._refuse_another_model(chunk)
                finish, text = chunk.finish or finish, text or bool(chunk.text)
                tokens = chunk.tokens[: limit - flight.reported]
                flight.reported += len(tokens)
                first += self._place(flight, flight.aligner.add(chunk.text.encode(), tokens), segment)
                if over := len(tokens) < len(chunk.tokens):
                    # The server does not keep to the limit.
                    finish = "length"
                    break
        if finish is None:
            raise CutError(
                "the stream ended before the answer did (llama-cpp-python's server needs --interrupt_requests false, or"
                " -np 1)"
            )
        if text and not flight.reported:
            raise without_log_probabilities()
        reason, message = stop_reason(finish, flight.reported, flight.gaps, limit)
        if reason != "failed" and not over:
            first += self._place(flight, flight.aligner.finish(stopped=reason == "end"), segment)
        self._fruitless = 0
        if isinstance(segment, Spelled) and reason != "failed":
            self._choose(flight, segment, first)
            return
        self._end(flight, SequenceEnded(request.key, reason, message))

    def _refuse_another_model(self, chunk: Chunk) -> None:
        """Refuse an answer of another model than the one that was looked at."""
        assert self._probe is not None
        model, first = chunk.model, self._probe.answered
        if model is not None and first is not None and model != first:
            raise ServerError(f'the server answers with the model "{model}" now, it was "{first}"')

    def _place(self, flight: _Flight, placed: list[PlacedToken], segment: Segment) -> list[PlacedToken]:
        """Report tokens of a free reply; those of a choice are only returned."""
        if not isinstance(segment, Free):
            return placed
        tokens = []
        for token in placed:
            tokens.append(_token(flight.request.key, flight.placed, token))
            flight.placed += 1
            flight.gaps += token.log_probability is None
        if tokens:

            def report(outlet: Outlet) -> None:
                for token in tokens:
                    outlet.tokens([token])

            self._report(flight, report)
        return []

    def _choose(self, flight: _Flight, choice: Spelled, placed: list[PlacedToken]) -> None:
        """Read a choice from the list of the first token; where it holds no option, the token itself is the reply."""
        key = flight.request.key
        said = next((token for token in placed if token.log_probability is not None), None)
        if said is None:
            self._end(flight, SequenceEnded(key, "failed", "the server gave no log-probabilities for the choice"))
            return
        listed = dict(reversed(list(zip(said.alternatives, said.alternative_log_probabilities, strict=True))))
        assert said.log_probability is not None
        listed.setdefault(said.piece, said.log_probability)
        values = tuple(listed.get(option) for option in choice.options)
        seen = [place for place, value in enumerate(values) if value is not None]
        if not seen:
            token = _token(key, 0, said)
            self._report(flight, lambda outlet: outlet.tokens([token]))
            self._end(flight, SequenceEnded(key, "done", None))
            return
        groups = choice.groups or tuple(range(len(choice.options)))
        known = Choice(tuple((place,) for place in seen), tuple(groups[place] for place in seen), choice.sampled)
        draw = random.Random(flight.request.sampling.seed).random
        chosen = seen[choose_option(known, [values[place] or 0.0 for place in seen], draw)]
        value = values[chosen]
        assert value is not None
        reading = Chosen(key, 0, values, chosen)
        alternatives = said.alternatives, said.alternative_log_probabilities
        token = Token(key, 0, None, value, None, *alternatives, True, False, choice.options[chosen])
        self._report(flight, lambda outlet: outlet.reading(reading))
        self._report(flight, lambda outlet: outlet.tokens([token]))
        self._end(flight, SequenceEnded(key, "done"))


def _token(key: int, position: int, placed: PlacedToken) -> Token:
    names, logs = placed.alternatives, placed.alternative_log_probabilities
    return Token(key, position, None, placed.log_probability, None, names, logs, False, placed.end, placed.piece)


def _needs_more(sampling: Sampling) -> bool:
    return sampling.temperature > 0 and bool(sampling.top_k or sampling.min_p)


def _backend(arguments: Sequence[str]) -> RemoteBackend:
    parser = argparse.ArgumentParser()
    parser.add_argument("--first-wait", type=float, default=FIRST_WAIT)
    return RemoteBackend(Waits(parser.parse_args(arguments).first_wait, random.Random(os.getpid())))


if __name__ == "__main__":
    main(_backend)
