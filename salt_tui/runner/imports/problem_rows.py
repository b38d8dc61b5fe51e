"""Rows of ``tasks export``, read back: each has to be the problem that its id names, with its right answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from salt_tui.inputs.question_files import check_dependencies
from salt_tui.runner.asked_problems import generated_record, own_record
from salt_tui.runner.request import MAXIMUM_SHOTS, method_of
from salt_tui.similar_names import message_of
from salt_tui.store.records import Message, ProblemRecord
from salt_tui.usage_error import UsageError
from tasks.own_problems import FILE_PREFIX, KEYS, RowError, read_problem
from tasks.prompts import conversation
from tasks.registry import get_task
from tasks.task import DIFFICULTIES, ParameterError, Problem, ProblemTextError, Task, quoted

LONGEST_MESSAGES = 1_000_000
"""Characters of a conversation."""

_OWN_NAME = re.compile(re.escape(FILE_PREFIX) + r"[A-Za-z0-9_.-]{1,60}")
_ROLES = ("system", "user", "assistant")


class RowProblemError(ValueError):
    """A row whose problem cannot be what it says; one line."""


def problem_of_row(row: Mapping[str, Any], position: int) -> tuple[ProblemRecord, int]:
    """Return the problem of a row as it is stored, and how many worked examples stood before it.

    A generated problem is solved again from its text, an own one is checked as a row of its file was; so a row can
    neither bring a wrong reference nor the problem of another id.

    Args:
        row: of ``tasks export``.
        position: among the rows of its task, from 0.

    Raises:
        RowProblemError: says which field is wrong.
    """
    if "reply" in row and "id" not in row:
        raise RowProblemError(
            "a row of `salt-tui export`, whose run is stored already: `salt-tui export RUN -o FILE.db` gives it a file"
            " of its own, `salt-tui score` labels such rows"
        )
    name = _text(row, "task")
    if name.startswith(FILE_PREFIX):
        return _own(row, name, position)
    try:
        return _generated(row, get_task(name), position)
    except (ParameterError, ProblemTextError, UsageError) as error:
        raise RowProblemError(message_of(error)) from error


def _generated(row: Mapping[str, Any], task: Task, position: int) -> tuple[ProblemRecord, int]:
    difficulty, method = _text(row, "difficulty"), method_of(_text(row, "method"))
    if difficulty not in DIFFICULTIES:
        raise RowProblemError(f"'difficulty' is {difficulty[:40]!r}; there are {', '.join(DIFFICULTIES)}")
    seed, shots = _whole(row, "seed", 2**64 - 1), _whole(row, "shots", MAXIMUM_SHOTS)
    problem = Problem(task.name, _text(row, "problem"), _text(row, "reference"), difficulty, seed)
    if problem.id != _text(row, "id"):
        raise RowProblemError(
            f"'id' is {row['id'][:40]!r}, and that of this 'problem' is {problem.id}; leave both as"
            " `salt-tui tasks export` wrote them"
        )
    if task.solve(problem.text) != problem.reference:
        raise RowProblemError(
            f"'reference' is {quoted(problem.reference)}, which is not the right answer to problem {problem.id}; leave"
            " it as `salt-tui tasks export` wrote it"
        )
    record = generated_record(problem, position, method)
    asked = _messages(row)
    usual = tuple(Message(turn.role, turn.content) for turn in conversation(task, problem, method, shots))
    return _with_messages(record, () if asked == usual else asked), shots


def _own(row: Mapping[str, Any], name: str, position: int) -> tuple[ProblemRecord, int]:
    if not _OWN_NAME.fullmatch(name):
        raise RowProblemError(f"'task' is {name[:40]!r}; {FILE_PREFIX} and a name of letters, digits, '_', '.' or '-'")
    try:
        problem = read_problem(_row_of_file(row))
        check_dependencies(problem)
    except RowError as error:
        raise RowProblemError(str(error)) from error
    if problem.content_id != _text(row, "id"):
        raise RowProblemError(
            f"'id' is {row['id'][:40]!r}, and that of these turns, reference, choices and columns is"
            f" {problem.content_id}; leave all of them as `salt-tui tasks export` wrote them"
        )
    asked = _messages(row)
    shots = sum(message.role == "assistant" for message in asked) - sum(
        turn.role == "assistant" for turn in problem.turns
    )
    return own_record(problem, name, position, asked), max(0, shots)


def _row_of_file(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of the file that an exported problem was."""
    kind, reference, choices = _text(row, "kind"), _text(row, "reference"), row.get("choices") or []
    columns = row.get("columns") or {}
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        raise RowProblemError("'choices' is no list of texts")
    if not isinstance(columns, dict) or not all(isinstance(value, str) for value in columns.values()):
        raise RowProblemError("'columns' is no object of texts")
    taken = [name for name in columns if name in KEYS]
    if taken:
        raise RowProblemError(f"'columns' holds {taken[0]!r}, which is no column")
    made: dict[str, Any] = {"id": row.get("name"), "kind": kind, "messages": row.get("turns"), **columns}
    try:
        if kind == "json":
            made["reference"] = json.loads(reference)
        elif kind == "numbers":
            made["reference"] = [json.loads(word) for word in reference.split()]
        elif kind in ("words", "lines"):
            made["reference"] = reference.split() if kind == "words" else reference.split("\n")
        else:
            made["reference"] = [reference, *choices] if kind == "text" else reference
    except (ValueError, RecursionError) as error:
        raise RowProblemError(f"'reference' is not of kind {kind}: {error}") from error
    return {**made, "choices": choices} if kind == "choice" else made


def _messages(row: Mapping[str, Any]) -> tuple[Message, ...]:
    value = row.get("messages") or []
    if not isinstance(value, list):
        raise RowProblemError("'messages' is no list")
    found = []
    for message in value:
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise RowProblemError(f"'messages' holds what is no object with a role of {', '.join(_ROLES)}")
        if not isinstance(message.get("content"), str):
            raise RowProblemError("'messages' holds a message whose content is no text")
        found.append(Message(message["role"], message["content"].encode("utf-8", "replace").decode()))
    if sum(len(message.content) for message in found) > LONGEST_MESSAGES:
        raise RowProblemError(f"'messages' are longer than {LONGEST_MESSAGES:,} characters")
    return tuple(found)


def _with_messages(record: ProblemRecord, messages: tuple[Message, ...]) -> ProblemRecord:
    return replace(record, messages=messages) if messages else record


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value:
        raise RowProblemError(f"{name!r} is {'missing' if value is None else 'no text' if value != '' else 'empty'}")
    return value


def _whole(row: Mapping[str, Any], name: str, most: int) -> int:
    value = row.get(name)
    if type(value) is not int or not 0 <= value <= most:
        raise RowProblemError(f"{name!r} is {'missing' if value is None else 'no whole number from 0'}")
    return value
