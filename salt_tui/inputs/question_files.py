"""Reading files with problems of one's own: ``run --tasks file:questions.jsonl`` and ``salt-tui tasks check``.

A file is read line by line and never held whole, so that a stream without an end is refused like any other mistake.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from salt_tui.inputs.text_lines import opened_bytes, readable
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from tasks.own_problems import FILE_PREFIX, OwnProblem, OwnTask, RowError, read_problem
from tasks.task import quoted

MOST_ROWS = 100_000
LONGEST_LINE = 1_000_000
MOST_BYTES = 256_000_000
"""Of a line and of a file; its problems are held in memory."""

MOST_FAULTS = 1_000
"""Bad rows that are named before reading stops."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class RowFault:
    """What is wrong with a row.

    Attributes:
        line: its number in the file, from 1.
        what: in one line.
    """

    line: int
    what: str


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file with problems of one's own, and what is wrong with it.

    Attributes:
        task: the problems of the good rows.
        rows: rows that were read, good and bad.
        faults: of the bad rows, in order.
    """

    task: OwnTask
    rows: int
    faults: tuple[RowFault, ...]


def read_questions(file: Path) -> OwnTask:
    """Return the problems of a file.

    Raises:
        UsageError: the file cannot be read, holds no problem, or a row is bad; names the first.
    """
    checked = check_questions(file)
    if checked.faults:
        first, *others = checked.faults
        more = f"; {len(others)} more, all in `salt-tui tasks check`" if others else ""
        raise UsageError(f"{_shown(file)}:{first.line}: {first.what}{more}")
    return checked.task


def check_questions(file: Path) -> CheckedFile:
    """Read a file and name every bad row.

    Raises:
        UsageError: the file cannot be read.
    """
    problems: list[OwnProblem] = []
    faults: list[RowFault] = []
    lines: dict[str, dict[str, int]] = {"id": {}, "content": {}}
    rows = last = 0
    for last, line in _lines(file, faults):
        rows += 1
        if rows > MOST_ROWS:
            faults.append(RowFault(last, f"more than {MOST_ROWS:,} rows; nothing after this one was read"))
            break
        try:
            problem = read_problem(_object(line))
            check_dependencies(problem)
            _check_repeats(problem, last, lines)
            problems.append(problem)
        except RowError as error:
            faults.append(RowFault(last, visible(str(error))))
        if len(faults) >= MOST_FAULTS:
            faults.append(RowFault(last, f"{MOST_FAULTS:,} bad rows; nothing after this one was read"))
            break
    asked = tuple(problem for problem in problems if not problem.is_example)
    if not asked and not faults:
        faults.append(RowFault(max(1, last), "the file holds no problem"))
    examples = tuple(problem for problem in problems if problem.is_example)
    return CheckedFile(OwnTask(task_name(file), asked, examples), rows, tuple(faults))


def task_name(file: Path) -> str:
    """Return the name of the task that a file is: ``file:`` and the file's name in plain characters."""
    return FILE_PREFIX + (_UNUSUAL.sub("_", file.name.removesuffix(".jsonl"))[:_LONGEST_NAME] or "problems")


def _lines(file: Path, faults: list[RowFault]) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of every line that is not blank; too long a line or file is a fault and ends it."""
    with readable(file), opened_bytes(file) as stream:
        number = size = 0
        while line := stream.readline(LONGEST_LINE + 1):
            number, size = number + 1, size + len(line)
            if len(line) > LONGEST_LINE or size > MOST_BYTES:
                what = f"a line longer than {LONGEST_LINE:,}" if size <= MOST_BYTES else f"more than {MOST_BYTES:,}"
                faults.append(RowFault(number, f"{what} bytes; nothing after it was read"))
                return
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield number, line


def _object(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise RowError(f"not UTF-8 text ({error.reason} at byte {error.start})") from error
    except RecursionError as error:
        raise RowError("not JSON: nested too deeply") from error
    except ValueError as error:
        raise RowError(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise RowError(f"a JSON object is wanted, not {type(row).__name__}")
    return row


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in pairs:
        name = _plain(name)
        if name in row:
            raise RowError(f"the key {name[:40]!r} stands here twice")
        row[name] = _plain(value)
    return row


def _plain(value: Any) -> Any:
    """Replace half a surrogate pair, which JSON can write and UTF-8 cannot, by U+FFFD."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


def _no_constant(text: str) -> None:
    raise RowError(f"{text} is no JSON value")


def check_dependencies(problem: OwnProblem) -> None:
    """Refuse a problem whose judging needs what is not installed; raises `RowError`."""
    exact = dict(problem.columns).get("match") == "exact"
    if problem.kind == "text" and not exact and importlib.util.find_spec("rouge_score") is None:
        raise RowError('ROUGE-L needs rouge-score: pip install \'saltbench-tui[text]\'; or "match": "exact"')


def _check_repeats(problem: OwnProblem, line: int, lines: dict[str, dict[str, int]]) -> None:
    first = lines["id"].setdefault(problem.id, line)
    if first != line:
        raise RowError(f"'id' {quoted(problem.id)} is that of line {first}")
    first = lines["content"].setdefault(problem.content_id, line)
    if first != line:
        raise RowError(f"asks the same as line {first}")


def _shown(file: Path) -> str:
    return visible(str(file))
