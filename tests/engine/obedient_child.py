"""A child that does what the prompt's first token says: answers, crashes, hangs or chatters.  Not a test itself."""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

from salt_tui.engine import serve
from salt_tui.engine.engine import NextTurn
from salt_tui.engine.errors import ContextError, ModelError
from salt_tui.engine.events import LoadProgress, PromptProgress, SequenceEnded, Token
from salt_tui.engine.model_info import Build, Capabilities, ContextInfo, Exactness, ModelInfo
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.requests import ChatTurn, Free, Generate

ANSWER, SEGFAULT, KILL, HANG, RAISE, SLOW = range(6)


class ObedientBackend:
    """Loads anything but ``missing``; counts its loads in the description."""

    def __init__(self) -> None:
        """Say something on both streams, as C libraries do."""
        print("hello on stdout", flush=True)
        print("hello on \x1b[31mstderr", file=sys.stderr, flush=True)
        self._queue: deque[Generate] = deque()
        self._loaded = ""

    def build(self) -> Build:
        """Describe nothing."""
        return Build("obedient", {"nice": str(os.nice(0))}, False, (), str(os.getsid(0)))

    def load(self, options: LoadOptions, progress: Callable[[LoadProgress], None]) -> ModelInfo:
        """Load, fail or crash, as the path says."""
        if options.path == "missing":
            raise ModelError("missing: no such model")
        if options.path == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        progress(LoadProgress(0.5))
        self._loaded = options.path
        able = Capabilities("vocabulary", 0, 0, vocabulary=True, forced=False, cut=False)
        return ModelInfo(options.path, "", None, None, 1, 1, 3, 1, 1, 0, None, False, (), self.build(), able, None)

    def vocabulary(self) -> tuple[bytes, ...]:
        """Return three pieces."""
        return (b"a", b"\xff", b"")

    def encode(self, conversations: Sequence[Sequence[ChatTurn]]) -> list[tuple[int, ...]]:
        """Return lengths."""
        return [tuple(len(turn.content) for turn in turns) for turns in conversations]

    def tokenize(self, text: bytes) -> tuple[int, ...]:
        """Fail in an unforeseen way on empty text."""
        return (100 // len(text),)

    def next_turn(self, reply: Sequence[int], turn: ChatTurn) -> NextTurn:
        """Append nothing."""
        return NextTurn(len(reply), ())

    def define_set(self, name: str, ids: Sequence[int]) -> None:
        """Say so in the log."""
        print(f"set {name} {sorted(ids)}", file=sys.stderr, flush=True)

    def open_context(self, options: ContextOptions) -> ContextInfo:
        """Refuse width 5."""
        if options.width == 5:
            raise ContextError("-np 5 is no valid width")
        return ContextInfo(options.width, 9, 9, 9, 9, 0, True, "f16", "f16", Exactness({}, None))

    def submit(self, request: Generate) -> None:
        """Queue."""
        self._queue.append(request)

    def step(self, outlet: serve.Outlet) -> bool:
        """Obey the first of the queue."""
        if not self._queue:
            return False
        request = self._queue[0]
        order = request.prompt[0]
        if order == SEGFAULT:
            os.kill(os.getpid(), signal.SIGSEGV)
        if order == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if order == HANG:
            outlet.progress(PromptProgress(request.key, 0, 1))
            time.sleep(1000)
        if order == RAISE:
            raise RuntimeError("as told")
        if order == SLOW:
            outlet.progress(PromptProgress(request.key, 0, 1))
            time.sleep(0.005)
            return True
        self._queue.popleft()
        (segment,) = request.segments
        assert isinstance(segment, Free)
        for position in range(segment.max_tokens):
            outlet.tokens([Token(request.key, position, 1, -0.5, 0.25, (1, 0), (-0.5, -1.0), False, False)])
        outlet.ended(SequenceEnded(request.key, "length"))
        return True

    def interrupt(self, key: int | None) -> None:
        """Nothing runs long here."""

    def cancel(self, key: int | None, outlet: serve.Outlet) -> None:
        """Drop from the queue."""
        for request in list(self._queue):
            if key in (None, request.key):
                self._queue.remove(request)
                outlet.ended(SequenceEnded(request.key, "cancelled"))


if __name__ == "__main__":
    serve.main(lambda arguments: ObedientBackend())
