"""Runs a function call in a second Python process with a limit on time and memory.

One worker (`tasks.code_worker`) serves all calls of a process: it is started by the first call, replaced when it had
to be stopped, and closed at exit.  Starting it costs about 20 ms, a call about 0.1 ms.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

TIME_LIMIT_SECONDS = 5.0
MEMORY_LIMIT_MEBIBYTES = 512


class ExecutionError(RuntimeError):
    """A call that gave no answer: it raised, took too long or too much memory, or returned another kind of value."""


class CodeExecutor:
    """Runs calls one at a time in one worker; safe to share between threads."""

    def __init__(self, seconds: float = TIME_LIMIT_SECONDS, mebibytes: int = MEMORY_LIMIT_MEBIBYTES) -> None:
        """Set the limits; nothing is started yet.

        Args:
            seconds: limit on the wall-clock time of one call.
            mebibytes: limit on the address space of the worker, on platforms that can limit it.
        """
        self._seconds = seconds
        self._mebibytes = mebibytes
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def printed(self, source: str, name: str, arguments: str) -> str:
        """Return what ``print`` shows for the value that a call returns.

        Args:
            source: text that defines the function.
            name: the function's name.
            arguments: its positional arguments as a Python tuple literal, such as ``([2, 7], 9)``.

        Raises:
            ExecutionError: if there is no such value; the message names the function and the reason.
        """
        request = json.dumps({"source": source, "name": name, "arguments": arguments})
        with self._lock:
            reply = self._exchange(request, name)
        if "error" in reply:
            raise ExecutionError(f"{name}{arguments[:40]}: {reply['error'][:200]}")
        return reply["printed"]

    def close(self) -> None:
        """Stop the worker; the next call starts another."""
        with self._lock:
            self._stop()

    def _exchange(self, request: str, name: str) -> dict[str, str]:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(self._seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            process.stdin.write(request + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:  # the worker closed its end; said below
            line = ""
        finally:
            timer.cancel()
        if line.endswith("\n"):
            reply: dict[str, str] = json.loads(line)
            return reply
        self._stop()
        if expired.is_set():
            raise ExecutionError(f"{name}: stopped after {self._seconds:g} s")
        raise ExecutionError(f"{name}: the worker process ended with code {process.returncode}")

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is not None:
            self._stop()
        if self._process is None:
            worker = Path(__file__).with_name("code_worker.py")
            # -P keeps this folder's module names off the worker's path, -S spares it the site packages.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-S", str(worker), str(self._mebibytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
            )
            atexit.register(self.close)
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        atexit.unregister(self.close)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # unsent bytes of a request whose worker is gone
                    pipe.close()


EXECUTOR = CodeExecutor()
"""The executor that the task uses; it starts nothing until its first call."""
