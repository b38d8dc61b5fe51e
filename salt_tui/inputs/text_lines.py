"""Lines of text files that people bring, plain or compressed with gzip, read one after the other."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO, cast

from salt_tui.usage_error import UsageError

LONGEST_LINE = 64 * 1024**2
"""Characters of a line; a longer one is no row of a table, and would be held in memory whole."""

STDIN = Path("-")
"""The name under which standard input is read."""

_GZIP = b"\x1f\x8b"


@contextmanager
def readable(file: Path) -> Iterator[None]:
    """Turn what reading raises into one line.

    Raises:
        UsageError: no such file, a pipe that has a name, not UTF-8, or a damaged gzip file.
    """
    refuse_named_pipe(file)
    try:
        yield
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UsageError(f"{file}: damaged gzip file ({error})") from error
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}") from error


def refuse_named_pipe(file: Path) -> None:
    """Raise `UsageError` for a pipe that has a name: opening it waits for somebody who writes, perhaps for ever.

    Standard input, and what a shell substitutes for ``<(command)``, are open already.
    """
    if Path(os.path.realpath(file)).is_fifo():
        raise UsageError(f"{file}: a pipe that has a name, and perhaps nobody writes to it; give a file")


def text_lines(file: Path, *, newline: str) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file with their ends; a byte order mark at its beginning is dropped.

    A file is taken for gzip by its first two bytes, whatever its name.

    Args:
        file: plain or compressed with gzip; `STDIN` for standard input.
        newline: as in `open`: ``"\n"`` ends lines there alone, ``""`` at every line end; nothing is translated.

    Raises:
        UsageError: it cannot be read, or has a line of more than `LONGEST_LINE` characters.
    """
    with readable(file), _opened(file, newline) as text:
        number = 1
        try:
            while line := text.readline(LONGEST_LINE + 1):
                if len(line) > LONGEST_LINE:
                    raise UsageError(f"{file}:{number}: a line longer than {LONGEST_LINE:,} characters")
                yield line
                number += 1
        except UnicodeDecodeError as error:
            # Bytes are decoded some thousands at a time, so the place inside them says nothing.
            # What came through a pipe is gone: the rest of it would be counted as if it were the whole.
            place = _broken_line(file, newline) if file != STDIN and file.is_file() else None
            where = f"in line {number} or after it" if place is None else f"in line {place}"
            raise UsageError(f"{file}: not UTF-8 text ({error.reason}, {where})") from error


def _broken_line(file: Path, newline: str) -> int | None:
    """Read a file again and return its first line that is not UTF-8; None where a line is too long to tell."""
    with opened_bytes(file) as binary:
        number = 1
        while line := binary.readline(LONGEST_LINE):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                before = line[: error.start]
                return number + (before.count(b"\r") if newline == "" else 0)
            if not line.endswith(b"\n"):
                return None
            number += line[:-2].count(b"\r") + 1 if newline == "" else 1
    return None


@contextmanager
def opened_bytes(file: Path) -> Iterator[IO[bytes]]:
    """Give the bytes of a file, or of standard input, unpacked where it is compressed with gzip."""
    with open(0, "rb", closefd=False) if file == STDIN else file.open("rb") as raw:
        compressed = raw.peek(2)[:2] == _GZIP
        with gzip.GzipFile(fileobj=raw) if compressed else raw as binary:
            yield cast(IO[bytes], binary)


@contextmanager
def _opened(file: Path, newline: str) -> Iterator[TextIO]:
    with opened_bytes(file) as binary:
        yield io.TextIOWrapper(binary, encoding="utf-8-sig", newline=newline)
