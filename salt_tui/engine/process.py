"""The parent's handle of an engine in a child process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeVar

import salt_tui
from salt_tui.engine import wire
from salt_tui.engine.engine import NextTurn
from salt_tui.engine.errors import ContextError, EngineError, ModelError
from salt_tui.engine.events import (
    EngineDied,
    EngineNotice,
    EngineStopped,
    Event,
    LoadProgress,
    PromptProgress,
    Reading,
    SequenceEnded,
)
from salt_tui.engine.model_info import Build, ContextInfo, ModelInfo, Speed
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.prompt_limits import END_SIGNAL, LAST_SECONDS
from salt_tui.engine.requests import ChatTurn, Generate, check_request
from salt_tui.paths import ENGINE_LOG_PREFIX
from salt_tui.visible_text import visible

LLAMA_COMMAND: tuple[str, ...] = (sys.executable, "-P", "-m", "salt_tui.engine.llama_child")
"""Starts the child that computes with llama.cpp."""

_LOGS_KEPT = 20
_TAIL_BYTES = 1 << 13
_TAIL_LINES = 8
_CLOSE_SECONDS = 0.8  # `Engine.close` promises two seconds
_READ_BYTES = 1 << 18
_WAITING_SECONDS = 1.0

_Answer = TypeVar("_Answer")
_ERRORS: dict[str, type[EngineError]] = {"model": ModelError, "context": ContextError, "engine": EngineError}


class EngineProcess:
    """An `Engine` whose work is done by a child process that speaks `salt_tui.engine.wire`.

    No thread is started: `events` and the calls that wait for an answer read the pipe themselves.
    """

    def __init__(self, command: Sequence[str], log_path: Path) -> None:
        """Start the child.

        Args:
            command: program and arguments; ``--requests FD --replies FD`` is added.
            log_path: what the child, and those that replace it, print is appended here; of the logs beside it the
                newest 20 are kept.

        Raises:
            EngineError: when the log cannot be written or the program cannot be started.
        """
        self._command = tuple(command)
        self._log_path = log_path
        self._write_lock = threading.Lock()
        self._load_options: LoadOptions | None = None
        self._context_options: ContextOptions | None = None
        self._sets: dict[str, tuple[int, ...]] = {}
        self._closed = self._dead = False
        self._while_waiting: Callable[[], None] | None = None
        self._start()

    # --- the interface ------------------------------------------------------------------------------------------

    @property
    def log_path(self) -> str:
        """The file that everything the child prints goes to."""
        return str(self._log_path)

    @property
    def process_id(self) -> int:
        """The child's process id."""
        return self._process.pid

    def call_while_waiting(self, call: Callable[[], None] | None) -> None:
        """Call this at least once a second while a method waits for its answer; it may raise to stop the waiting."""
        self._while_waiting = call

    def build(self) -> Build:
        """Describe the engine's build and devices, without a model."""
        return self._ask(wire.DescribeBuild(), Build)

    def load(self, options: LoadOptions, progress: Callable[[LoadProgress], None] | None = None) -> ModelInfo:
        """Load a model; raises `ModelError`."""
        try:
            info = self._ask(options, ModelInfo, progress)
        except _ChildGoneError as error:
            if error.exit_code == -END_SIGNAL:
                raise ModelError(f"{options.path}: {_TOO_LONG}") from error
            raise ModelError(f"{options.path}: {error}, while loading it") from error
        self._load_options, self._context_options = options, None
        self._sets.clear()
        return info

    def vocabulary(self) -> tuple[bytes, ...]:
        """The bytes of every token id, special tokens spelled out, as the model's own detokeniser gives them."""
        return self._ask(wire.ListVocabulary(), wire.Vocabulary).pieces

    def encode(self, conversations: Sequence[Sequence[ChatTurn]]) -> list[tuple[int, ...]]:
        """Render conversations by the template, generation prompt added, and tokenise each."""
        request = wire.Encode(tuple(tuple(turns) for turns in conversations))
        return list(self._ask_for_prompt(request, wire.TokenSequences).sequences)

    def tokenize(self, text: bytes) -> tuple[int, ...]:
        """Tokenise bytes that continue a text: nothing added, special tokens not parsed.

        Raises:
            EngineError: for bytes that are not UTF-8.
            ModelError: no tokens spell exactly these bytes.
        """
        return self._ask_for_prompt(wire.Tokenize(text), wire.TokenSequences).sequences[0]

    def next_turn(self, reply: Sequence[int], turn: ChatTurn) -> NextTurn:
        """Continue a conversation after a reply by the template; see `Engine.next_turn`."""
        return self._ask_for_prompt(wire.ContinueConversation(tuple(reply), turn), NextTurn)

    def define_set(self, name: str, ids: Sequence[int]) -> None:
        """Name a set of token ids for readouts; kept over a restart."""
        self._ask(wire.DefineSet(name, tuple(ids)), wire.Accepted)
        self._sets[name] = tuple(ids)

    def open_context(self, options: ContextOptions) -> ContextInfo:
        """Make the context, replacing an earlier one, and check its exactness; raises `ContextError`."""
        try:
            info = self._ask(options, ContextInfo)
        except _ChildGoneError as error:
            raise ContextError(f"{error}, while making the context") from error
        self._context_options = options
        return info

    def measure(self, prompt_tokens: int, steps: int) -> Speed:
        """Time the open context, on which nothing may be running: a prompt, and steps of all slots.

        Raises:
            EngineError: no context is open, something is running, or the engine has no speed of its own.
        """
        return self._ask(wire.Measure(prompt_tokens, steps), Speed)

    def submit(self, request: Generate) -> None:
        """Queue a sequence; at most ``width`` run at once, the others wait in order of submission.

        Raises:
            ValueError: for a request that can never be computed.
        """
        check_request(request)
        self._refuse_when_gone()
        self._send(request)

    def events(self, timeout: float) -> list[Event]:
        """Return what happened, waiting at most ``timeout`` seconds for the first event; empty when nothing did."""
        if not self._dead:
            self._receive(0.0 if self._events else timeout)
        events = list(self._events)
        self._events.clear()
        return events

    def cancel(self, key: int | None = None) -> None:
        """Stop one sequence, or all; each ends with a `SequenceEnded` within a second, inside long prompts too."""
        if not self._closed:
            self._send(wire.Cancel(key))

    def suspend(self) -> None:
        """Stop the child where it stands (SIGSTOP); nothing is lost and no number changes.  From any thread."""
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let a suspended child go on; without effect on a running one.  From any thread."""
        self._process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Start a new child after `EngineDied`, loaded and opened as before; raises `EngineError`."""
        load, context, sets = self._load_options, self._context_options, dict(self._sets)
        self.close()
        self._start()
        if load is not None:
            self.load(load)
        for name, ids in sets.items():
            self.define_set(name, ids)
        if context is not None:
            # Checked before: here it would only keep a crashed run waiting.
            self.open_context(replace(context, check="none"))

    def close(self) -> None:
        """End the child within two seconds, by force if need be; may be called twice."""
        with self._write_lock:
            if self._closed:
                return
            self._closed = self._dead = True
            os.close(self._requests)  # the child ends when this pipe does
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_CLOSE_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            # A process inside a driver may take its time to die; it is not waited for.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_CLOSE_SECONDS)
        os.close(self._replies)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    # --- the child ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        log = _open_log(self._log_path)
        self._log_start = log.tell()
        child_requests, self._requests = os.pipe()
        self._replies, child_replies = os.pipe()
        for descriptor in (self._requests, child_replies):
            wire.enlarge_pipe(descriptor)
        command = [*self._command, "--requests", str(child_requests), "--replies", str(child_replies)]
        try:
            with log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(child_requests, child_replies),
                    env=_environment(),
                    start_new_session=True,  # Ctrl+C is the parent's to handle
                )
        except OSError as error:
            os.close(self._requests)
            os.close(self._replies)
            raise EngineError(f"the engine cannot be started: {error}") from error
        finally:
            os.close(child_requests)
            os.close(child_replies)
        self._frames = wire.FrameBuffer()
        self._events: deque[Event] = deque()
        self._answers: deque[wire.Reply | LoadProgress] = deque()
        self._poll = select.poll()
        self._poll.register(self._replies, select.POLLIN)
        self._closed = self._dead = False

    def _send(self, request: wire.Request) -> None:
        data = wire.to_bytes(request)
        # A broken pipe is a dead child, which the next read reports with its exit code.
        with self._write_lock, contextlib.suppress(BrokenPipeError):
            if not self._closed:
                wire.write_all(self._requests, data)

    def _refuse_when_gone(self) -> None:
        if self._closed:
            raise EngineError("the engine is closed")
        if self._dead and not self._events:
            raise EngineError("the engine has died: restart it")

    def _ask_for_prompt(self, request: wire.Request, kind: type[_Answer]) -> _Answer:
        """Ask for tokens; a template or tokenizer that has to be ended by force is the model's fault."""
        try:
            return self._ask(request, kind)
        except _ChildGoneError as error:
            if error.exit_code == -END_SIGNAL:
                raise ModelError(_TOO_LONG) from error
            raise

    def _ask(
        self, request: wire.Request, kind: type[_Answer], progress: Callable[[LoadProgress], None] | None = None
    ) -> _Answer:
        """Send a request and wait for its answer; events that come before it are kept for `events`."""
        self._refuse_when_gone()
        self._send(request)
        while True:
            while self._answers:
                answer = self._answers.popleft()
                if isinstance(answer, LoadProgress):
                    if progress is not None:
                        progress(answer)
                elif isinstance(answer, wire.Failure) and answer.error == "unexpected":
                    raise EngineError(f"{answer.message}; {self._log_path} says more")
                elif isinstance(answer, wire.Failure):
                    raise _ERRORS[answer.error](answer.message)
                elif isinstance(answer, kind):
                    return answer
                else:
                    raise EngineError(f"the engine answered with {type(answer).__name__}: please report it")
            if self._dead:
                died = self._events[-1]
                assert isinstance(died, EngineDied)
                raise _ChildGoneError(died)
            self._receive(_WAITING_SECONDS)
            if self._while_waiting is not None:
                self._while_waiting()

    def _receive(self, timeout: float) -> bool:
        """Read what the pipe holds, waiting up to ``timeout`` seconds; True when something came."""
        if not self._poll.poll(timeout * 1000):
            return False
        data = os.read(self._replies, _READ_BYTES)
        if not data:
            self._dead = True
            self._events.append(self._autopsy())
            return False
        for message in self._frames.feed(data):
            if isinstance(message, wire.TokenStep):
                self._events.extend(message.tokens)
            elif isinstance(message, PromptProgress | SequenceEnded | Reading | EngineNotice | EngineStopped):
                self._events.append(message)
            elif isinstance(message, LoadProgress | wire.Reply):
                self._answers.append(message)
            else:
                raise EngineError(f"the engine sent {type(message).__name__}: please report it")
        return True

    def _autopsy(self) -> EngineDied:
        # The pipe is closed a moment before the process can be waited for.
        deadline = time.monotonic() + _CLOSE_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        if self._process.poll() is None:
            self._process.kill()
        return EngineDied(self._process.wait(), read_log_tail(self._log_path, self._log_start))


class _ChildGoneError(EngineError):
    """The child died before it answered."""

    def __init__(self, died: EngineDied) -> None:
        super().__init__(describe_death(died))
        self.exit_code = died.exit_code


_TOO_LONG = (
    f"the chat template or the tokenizer takes more than {LAST_SECONDS:g} s of processor time for one prompt; set "
    '"template" for this model in models.toml, "none" for plain prompts'
)


_ILLEGAL_INSTRUCTION = "llama.cpp uses instructions that fail on this machine: see SIGILL in docs/performance.md"


def describe_death(died: EngineDied) -> str:
    """Return one line that says how the child ended, with its last words."""
    if died.exit_code < 0:
        try:
            how = signal.Signals(-died.exit_code).name
        except ValueError:
            how = f"signal {-died.exit_code}"
    else:
        how = f"exit code {died.exit_code}"
    words = f"; last words: {died.log_tail[-1]}" if died.log_tail else ""
    # Seen on a virtual machine that offers AMX and loses its registers when threads change.
    advice = f"; {_ILLEGAL_INSTRUCTION}" if died.exit_code == -signal.SIGILL else ""
    return f"the engine died ({how}{words}){advice}"


def read_log_tail(path: Path, start: int = 0) -> tuple[str, ...]:
    """Return the last lines of a log from byte ``start`` on, control characters escaped; empty when unreadable."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(start, size - _TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return ()
    lines = [line for line in text.split("\n") if line.strip()]
    return tuple(visible(line) for line in lines[-_TAIL_LINES:])


def _open_log(path: Path) -> BinaryIO:
    """Open a log for appending; when it is new, remove the oldest beside it that no child writes any more.

    Raises:
        EngineError: it cannot be opened; the message names it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.open("ab")
    except OSError as error:
        raise EngineError(
            f"the engine's log cannot be written: {visible(str(error))}; SALT_TUI_HOME names another place"
        ) from error
    log.seek(0, os.SEEK_END)
    with contextlib.suppress(OSError):  # no locks on this file system
        # The child inherits the open file and with it the lock, which ends with the last of its holders.
        fcntl.flock(log, fcntl.LOCK_SH)
    if not log.tell():
        for old in sorted(path.parent.glob(f"{ENGINE_LOG_PREFIX}*.log"))[:-_LOGS_KEPT]:
            with contextlib.suppress(OSError), old.open("rb") as unused:  # removed meanwhile, or still written
                fcntl.flock(unused, fcntl.LOCK_EX | fcntl.LOCK_NB)
                old.unlink()
    return log


def _environment() -> dict[str, str]:
    """Return the child's environment, in which it finds this very package.

    ``-P`` keeps the working directory off the path, so a checkout that is not installed has to be named.
    """
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    root = str(Path(salt_tui.__file__).resolve().parent.parent)
    if root not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
    return environment
