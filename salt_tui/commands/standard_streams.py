"""Standard streams that cannot surprise: closed, full, without a reader, or in an encoding without our glyphs."""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import re
import sys
from contextlib import suppress
from typing import TextIO

from salt_tui.commands.failures import DONE, report_failure

_ESCAPE = "salt-tui-escape"

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Control characters but tab and line feed, and what has no width or turns text."""


class OutputStream(io.TextIOWrapper):
    r"""A stdout whose errors say that they are its own, and through which no data acts on a terminal.

    What a file holds is printed as it is into files and pipes.  On a terminal, signs that would move the cursor, change
    colours, or hide or turn text are spelled ``\uXXXX``, so that JSON stays JSON.
    """

    def write(self, text: str, /) -> int:
        """Write; raises `OSError` with a file name."""
        if self.isatty():
            text = _ACTING.sub(_spelled, text)
        try:
            return super().write(text)
        except OSError as error:
            raise _named(error) from error

    def flush(self) -> None:
        """Flush; raises `OSError` with a file name."""
        try:
            super().flush()
        except OSError as error:
            raise _named(error) from error


class TalkStream(io.TextIOWrapper):
    """A stderr whose loss stops nothing: what cannot be written any more is dropped."""

    def write(self, text: str, /) -> int:
        """Write what can be written."""
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        """Flush what can be flushed."""
        with suppress(OSError):
            super().flush()


def styled_output() -> TextIO:
    """Return a stdout for lines that the program itself colours."""
    return sys.__stdout__ or sys.stdout if isinstance(sys.stdout, OutputStream) else sys.stdout


def prepare_streams() -> None:
    r"""Open closed standard streams on the null device, and spell out what their encodings lack as ``\uXXXX``.

    A closed descriptor would be given to the next file that is opened, such as the database, and ``print`` would send
    talk to stdout.  The spelling is that of JSON, so that an object stays one in every encoding.
    """
    # Data for a stdout that was closed must not seem written: the null device takes it only where it may be read.
    for descriptor, mode in enumerate((os.O_RDWR, os.O_RDONLY, os.O_RDWR)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)  # takes the lowest number that is free
    codecs.register_error(_ESCAPE, _escaped)
    # The former objects go on as `sys.__stdout__` and `sys.__stderr__`, on which Textual draws.
    sys.stdout = _stream(OutputStream, sys.stdout, 1)
    sys.stderr = _stream(TalkStream, sys.stderr, 2)


def finish_output(code: int) -> int:
    """Write what stdout still buffers and return the exit code: 1 instead of 0 where that failed.

    A reader that has left (``| head``) is no failure.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would try again, and complain, when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if code == DONE and not isinstance(error, BrokenPipeError):
            return report_failure(error)
    return code


def _stream(kind: type[io.TextIOWrapper], former: TextIO | None, descriptor: int) -> io.TextIOWrapper:
    if not isinstance(former, io.TextIOWrapper):
        raw = io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False))
        return kind(raw, encoding="utf-8", errors=_ESCAPE, line_buffering=True)
    former.reconfigure(errors=_ESCAPE)
    return kind(
        former.buffer,
        encoding=former.encoding,
        errors=_ESCAPE,
        line_buffering=former.line_buffering,
        write_through=former.write_through,
    )


def _spelled(found: re.Match[str]) -> str:
    return json.dumps(found.group())[1:-1]


def _named(error: OSError) -> OSError:
    return OSError(error.errno, "closed" if error.errno == errno.EBADF else error.strerror, "standard output")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
