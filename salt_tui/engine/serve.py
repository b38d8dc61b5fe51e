"""The loop of a child process: reads requests, drives a `Backend`, writes what happens.

The reader is a thread of its own, so that a cancel reaches a long evaluation and the end of the parent ends the
child at once, whatever it computes.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Protocol

from salt_tui.engine import wire
from salt_tui.engine.engine import NextTurn
from salt_tui.engine.errors import ContextError, EngineError, ModelError
from salt_tui.engine.events import (
    EngineNotice,
    EngineStopped,
    LoadProgress,
    PromptProgress,
    Reading,
    SequenceEnded,
    Token,
)
from salt_tui.engine.model_info import Build, ContextInfo, ModelInfo, Speed
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.requests import ChatTurn, Generate

_NICENESS = 10
"""Added in the child: the screen stays smooth beside full cores (measured: worst gap 37 ms instead of 137)."""

_READ_BYTES = 1 << 16
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Outlet(Protocol):
    """Where a backend puts what happens."""

    def tokens(self, tokens: Sequence[Token]) -> None:
        """Report the tokens of one step, at most one per slot."""
        ...

    def reading(self, reading: Reading) -> None:
        """Report what was read from a row of logits, before the token that is taken from it."""
        ...

    def progress(self, progress: PromptProgress) -> None:
        """Report how far a prompt is evaluated."""
        ...

    def ended(self, ended: SequenceEnded) -> None:
        """Report the end of a sequence, after its last token."""
        ...

    def notice(self, notice: EngineNotice) -> None:
        """Report one line that the user must see."""
        ...

    def stopped(self, stopped: EngineStopped) -> None:
        """Report that nothing can be computed any more."""
        ...


class Backend(Protocol):
    """What a child computes with.  All calls come from the main thread but `interrupt`.

    A method that raises `ModelError`, `ContextError` or `EngineError` gives the parent that error; any other
    exception outside `step` becomes an `EngineError`, inside `step` it ends the child.
    """

    def build(self) -> Build:
        """See `Engine.build`."""
        ...

    def load(self, options: LoadOptions, progress: Callable[[LoadProgress], None]) -> ModelInfo:
        """See `Engine.load`."""
        ...

    def vocabulary(self) -> tuple[bytes, ...]:
        """See `Engine.vocabulary`."""
        ...

    def encode(self, conversations: Sequence[Sequence[ChatTurn]]) -> list[tuple[int, ...]]:
        """See `Engine.encode`."""
        ...

    def tokenize(self, text: bytes) -> tuple[int, ...]:
        """See `Engine.tokenize`."""
        ...

    def next_turn(self, reply: Sequence[int], turn: ChatTurn) -> NextTurn:
        """See `Engine.next_turn`."""
        ...

    def define_set(self, name: str, ids: Sequence[int]) -> None:
        """See `Engine.define_set`."""
        ...

    def open_context(self, options: ContextOptions) -> ContextInfo:
        """See `Engine.open_context`."""
        ...

    def measure(self, request: wire.Measure) -> Speed:
        """See `EngineProcess.measure`."""
        ...

    def submit(self, request: Generate) -> None:
        """Queue a sequence; what is wrong with it is reported by `Outlet.ended`, in the next `step`."""
        ...

    def step(self, outlet: Outlet) -> bool:
        """Do one unit of work (one chunk of a prompt, or one token in every slot); False when there is none."""
        ...

    def interrupt(self, key: int | None) -> None:
        """Hurry: a `cancel` with this key is about to come.  Called from the reader's thread."""
        ...

    def cancel(self, key: int | None, outlet: Outlet) -> None:
        """End one sequence, or all, reporting each as cancelled; an unknown key is ignored."""
        ...


class _PipeOutlet:
    """Writes to the parent; a parent that is gone ends the child."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, message: wire.Message) -> None:
        try:
            wire.write_all(self._descriptor, wire.to_bytes(message))
        except BrokenPipeError:
            os._exit(0)

    def tokens(self, tokens: Sequence[Token]) -> None:
        if tokens:
            self.send(wire.TokenStep(tuple(tokens)))

    def reading(self, reading: Reading) -> None:
        self.send(reading)

    def progress(self, progress: PromptProgress) -> None:
        self.send(progress)

    def ended(self, ended: SequenceEnded) -> None:
        self.send(ended)

    def notice(self, notice: EngineNotice) -> None:
        self.send(notice)

    def stopped(self, stopped: EngineStopped) -> None:
        self.send(stopped)


def main(make_backend: Callable[[Sequence[str]], Backend]) -> None:
    """Serve the parent until it closes its end of the pipe.

    Args:
        make_backend: called after the process has been made quiet, with the arguments left on the command line.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    _die_with_parent()
    parser = argparse.ArgumentParser(description="Engine of salt-tui; started by it, not by hand.")
    parser.add_argument("--requests", type=int, required=True, metavar="FD")
    parser.add_argument("--replies", type=int, required=True, metavar="FD")
    arguments, rest = parser.parse_known_args()
    serve(make_backend(rest), arguments.requests, arguments.replies)


def _die_with_parent() -> None:
    """Ask Linux to kill this process with the thread that started it, also when it is suspended and cannot read.

    Elsewhere a child that is suspended when its parent is killed stays suspended.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def serve(backend: Backend, requests: int, replies: int) -> None:
    """Answer the requests of a pipe until it ends, then end the process."""
    inbox: queue.SimpleQueue[wire.Message] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, inbox, backend), name="requests", daemon=True).start()
    outlet = _PipeOutlet(replies)
    busy = False
    while True:
        while True:
            try:
                message = inbox.get(block=not busy)
            except queue.Empty:
                break
            busy = True  # look for work after every message
            _handle(backend, message, outlet)
        busy = backend.step(outlet)


def _read(descriptor: int, inbox: queue.SimpleQueue[wire.Message], backend: Backend) -> None:
    """Put requests into the inbox; interrupt a running evaluation on a cancel; end with the parent."""
    frames = wire.FrameBuffer()
    while data := os.read(descriptor, _READ_BYTES):
        for message in frames.feed(data):
            if isinstance(message, wire.Cancel):
                backend.interrupt(message.key)
            inbox.put(message)
    sys.stderr.flush()
    # Not sys.exit: the main thread may be deep inside a long evaluation.
    os._exit(0)


def _handle(backend: Backend, message: wire.Message, outlet: _PipeOutlet) -> None:
    if isinstance(message, wire.Cancel):
        backend.cancel(message.key, outlet)
        return
    if isinstance(message, Generate):
        backend.submit(message)
        return
    try:
        outlet.send(_answer(backend, message, outlet))
    except ModelError as error:
        outlet.send(wire.Failure("model", str(error)))
    except ContextError as error:
        outlet.send(wire.Failure("context", str(error)))
    except EngineError as error:
        outlet.send(wire.Failure("engine", str(error)))
    except Exception as error:
        traceback.print_exc()
        outlet.send(wire.Failure("unexpected", f"the engine failed ({type(error).__name__}: {error})"))


def _answer(backend: Backend, message: wire.Message, outlet: _PipeOutlet) -> wire.Reply:
    match message:
        case wire.DescribeBuild():
            return backend.build()
        case LoadOptions():
            return backend.load(message, outlet.send)
        case wire.ListVocabulary():
            return wire.Vocabulary(backend.vocabulary())
        case wire.Encode():
            return wire.TokenSequences(tuple(backend.encode(message.conversations)))
        case wire.Tokenize():
            return wire.TokenSequences((backend.tokenize(message.text),))
        case wire.ContinueConversation():
            return backend.next_turn(message.reply, message.turn)
        case wire.DefineSet():
            backend.define_set(message.name, message.ids)
            return wire.Accepted()
        case ContextOptions():
            return backend.open_context(message)
        case wire.Measure():
            return backend.measure(message)
    raise EngineError(f"the engine cannot answer {type(message).__name__}: please report it")
