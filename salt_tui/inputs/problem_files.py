"""Solving problem texts that a file holds: ``salt-tui tasks solve``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from salt_tui.inputs.json_lines import read_rows
from salt_tui.inputs.text_lines import LONGEST_LINE, text_lines
from salt_tui.usage_error import UsageError
from tasks.registry import task_for_release_name
from tasks.release import solve_release_row
from tasks.task import ProblemTextError


def solve_problems(name: str, file: Path) -> Iterator[str]:
    """Yield the reference of every problem in a file, in order.

    Args:
        name: of the task, ours or the release's.
        file: JSON lines with ``input`` (and what the release adds), or one problem as plain text; plain or gzip.

    Raises:
        UnknownNameError: for the name.
        UsageError: the file or a row cannot be read, or is no problem of the task; names file and line.
    """
    task = task_for_release_name(name)
    # Read once: what stands in a pipe is gone after that.
    lines = text_lines(file, newline="\n")
    begun: list[str] = []
    for line in lines:
        begun.append(line)
        if line.strip():
            break
    else:
        raise UsageError(f"{file} is empty")
    lines = chain(begun, lines)
    # No problem text begins with a brace, so a damaged first row is not taken for one.
    if not begun[-1].lstrip().startswith("{"):
        try:
            yield task.solve(_whole_text(file, lines))
        except ProblemTextError as error:
            raise UsageError(f"{file}: {error}") from error
        return
    for place, row in read_rows(file, required=("input",), lines=lines):
        try:
            yield solve_release_row(task, row)
        except ProblemTextError as error:
            raise UsageError(f"{place}: {error}") from error


def _whole_text(file: Path, read: Iterable[str]) -> str:
    """Return a text as it would be read from a terminal: every kind of line end is one line feed."""
    lines, size = [], 0
    for line in read:
        lines.append(line)
        size += len(line)
        if size > LONGEST_LINE:
            raise UsageError(f"{file}: a problem longer than {LONGEST_LINE:,} characters")
    return "".join(lines).replace("\r\n", "\n").replace("\r", "\n")
