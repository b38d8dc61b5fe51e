"""A program on a pseudo-terminal of its own: type keys, read the screen.  For tests and for the screenshots."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import pyte

_ADOPT = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
_READ_BYTES = 1 << 16

_UNKNOWN = re.compile(rb"\x1b\[[<>=?][0-9;]*[uqpm]|\x1b\[\?[0-9;]*\$p|\x1bP[^\x1b]*\x1b\\|\x1b_[^\x1b]*\x1b\\")
"""Questions and modes of modern terminals, which pyte would print as text."""

_COLOUR = re.compile(r"(?:^|;)([39][0-7]|4[0-7]|10[0-7]|[34]8;5;\d+|[34]8;2;\d+;\d+;\d+)(?=;|$)")

ESCAPE_SECONDS = 0.3

KEYS = {
    "enter": "\r", "escape": "\x1b", "tab": "\t", "space": " ", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C",
    "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F", "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "ctrl+c": "\x03",
    "ctrl+p": "\x10", "ctrl+r": "\x12", "ctrl+z": "\x1a", "ctrl+q": "\x11", "backspace": "\x7f",
}  # fmt: skip


class TerminalDriver:
    """Runs a program on a terminal of ``columns`` by ``rows`` cells.

    Attributes:
        begun: when the program was started, in monotonic seconds.
        arrived: when it last wrote anything.

    Args:
        arguments: for this interpreter, e.g. ``["-m", "salt_tui"]``.
        environment: of the program.
        columns: of the terminal.
        rows: of the terminal.
        folder: to start the program in.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        columns: int = 80,
        rows: int = 24,
        folder: Path | None = None,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        self.resize(columns, rows)
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-ISc", _ADOPT, sys.executable, *arguments],
            stdin=slave, stdout=slave, stderr=slave, env=dict(environment), start_new_session=True, cwd=folder,
        )  # fmt: skip
        os.close(slave)
        self.ended_output = False
        self.arrived = self.begun
        self._written = bytearray()

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def settings(self) -> list[object]:
        """Return the terminal's modes, to see whether a program restored them."""
        return list(termios.tcgetattr(self._master))

    @property
    def written(self) -> str:
        """Everything that the program has written, escape sequences included."""
        return self._written.decode("utf-8", "replace")

    def colours(self) -> set[str]:
        """Return the codes of all colours that were asked for: ``31``, ``48;5;7``, ``38;2;1;2;3``."""
        found: set[str] = set()
        for codes in re.findall(r"\x1b\[([0-9;]*)m", self.written):
            found.update(_COLOUR.findall(codes))
        return found

    def process_state(self) -> str:
        """Return the letter that the kernel gives the program's state: ``S`` sleeps, ``T`` is stopped."""
        return Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]

    # --- keys ---------------------------------------------------------------------------------------------------

    def type_key(self, key: str) -> None:
        """Type one key by name, another as it is, and return at once."""
        os.write(self._master, KEYS.get(key, key).encode())

    def press(self, *keys: str) -> None:
        """Type keys and leave the program a moment after each."""
        for key in keys:
            self.type_key(key)
            # An escape that is followed at once begins a sequence.
            pause = time.monotonic() + (ESCAPE_SECONDS if key == "escape" else 0.02)
            while time.monotonic() < pause:
                self.read(max(0.0, pause - time.monotonic()))

    # --- the screen ---------------------------------------------------------------------------------------------

    def read(self, seconds: float) -> bool:
        """Take what the program writes within a time and draw it; return whether there was anything."""
        data = self._take(seconds)
        self._written += data
        self._stream.feed(_UNKNOWN.sub(b"", data))
        return bool(data)

    def skip(self, seconds: float) -> None:
        """Take what the program writes in a time and do not draw it: drawing here costs as much as the program."""
        until = time.monotonic() + seconds
        while not self.ended_output and (left := until - time.monotonic()) > 0:
            self._take(left)

    def _take(self, seconds: float) -> bytes:
        if self.ended_output or not select.select([self._master], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self._master, _READ_BYTES)
        except OSError:
            data = b""
        self.arrived = time.monotonic()
        self.ended_output = not data
        return data

    @property
    def lines(self) -> list[str]:
        """The screen, one text per row."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    def wait_for(self, wanted: str | Callable[[str], bool], seconds: float = 30.0) -> float:
        """Read until a text stands on the screen, or a condition on it holds; return the seconds that took.

        Raises:
            AssertionError: it does not come in time; the message shows the screen.
        """
        begun = time.monotonic()
        holds = wanted if callable(wanted) else lambda text: wanted in text
        while not holds(self.text):
            if time.monotonic() - begun > seconds or (self.ended_output and not self.read(0)):
                raise AssertionError(f"{wanted!r} did not come within {seconds} s:\n{self.text}")
            self.read(0.05)
        return time.monotonic() - begun

    def settle(self, quiet: float = 0.15, seconds: float = 2.0) -> None:
        """Read until nothing was written for a moment: keys typed before a focus has moved go to the old one."""
        deadline = time.monotonic() + seconds
        while self.read(quiet) and time.monotonic() < deadline:
            pass

    # --- the end ------------------------------------------------------------------------------------------------

    def wait_for_end(self, seconds: float = 30.0) -> int:
        """Read until the program ends and return its exit code."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.02)
        while self.read(0):
            pass
        if self.process.poll() is None:
            raise AssertionError(f"the program did not end within {seconds} s:\n{self.text}")
        return self.process.wait()

    def hang_up(self) -> None:
        """Close the terminal, as a window is closed."""
        os.close(self._master)
        self._master = -1
        self.ended_output = True

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the program by force where it still runs, and close the terminal."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self._master >= 0:
            os.close(self._master)
