"""Problems of one's own: rows of a JSONL file, checked one by one, and the conversations that ask them.

A row holds ``id``, ``kind``, ``prompt`` or ``messages``, ``reference`` and for a choice ``choices``; with ``"example":
true`` it is a worked example instead of a problem.  Every other key is a column by which results can be sliced.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tasks.answer_form import AnswerForm
from tasks.json_leaves import JsonTextError, read_json
from tasks.own_forms import LETTERS, OWN_KINDS, OwnKind, own_form
from tasks.prompts import DEFAULT_SHOTS, FENCE_INSTRUCTIONS, fenced
from tasks.task import ParameterError, Turn, quoted

FILE_PREFIX = "file:"
"""Begins the name of a task that is a file."""

KEYS = ("id", "kind", "prompt", "messages", "reference", "choices", "example")
"""Keys with a meaning of their own."""

PROMPT_VERSION = 1
"""Raised whenever the words about how to answer change; part of a run's plan."""

LONGEST_TEXT = 200_000
"""Characters of a prompt with all its messages, or of a reference."""

MOST_COLUMNS = 50
LONGEST_COLUMN = 1_000
"""Characters of the name or of the value of a column."""

_ROLES = ("system", "user", "assistant")
_UNSAFE = re.compile(r"\*{4,}|</?think>")
_OTHER_SCRIPT = re.compile(r"(?=[^\x00-\x7f])\w")

_ASKED: dict[OwnKind, str] = {
    "choice": "Answer with the letter of the right option, and nothing else.",
    "json": "Answer with one JSON value.",
    "numbers": "Answer with numbers, separated by spaces.",
    "words": "Answer with words, separated by spaces.",
    "lines": "Answer with one item a line.",
    "text": "Answer in plain text, and write nothing but the answer.",
}


class RowError(Exception):
    """A row that is no problem; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class OwnProblem:
    """A problem of one's own.

    Attributes:
        id: as the file names it.
        kind: what is asked.
        turns: the conversation up to the question, as the file has it; the last turn is the user's.
        reference: the right answer as text: a letter, JSON, numbers or words with spaces between, lines, a text.
        choices: the options of a choice, in order; for ``text`` further right texts.
        columns: every other key of the row with its value as text, in the order of the file.
        is_example: shown with its answer before the problems, and not asked.
    """

    id: str
    kind: OwnKind
    turns: tuple[Turn, ...]
    reference: str
    choices: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    is_example: bool

    @property
    def form(self) -> AnswerForm:
        """How its answer is found, split and judged."""
        return own_form(self.kind, self.reference, self.choices, dict(self.columns))

    @property
    def question(self) -> str:
        """The last turn as it is asked; the options of a choice stand below it, each with its letter."""
        text = self.turns[-1].content
        if self.kind != "choice":
            return text
        options = (f"{letter}. {choice}" for letter, choice in zip(LETTERS, self.choices, strict=False))
        return "\n".join([text, "", *options])

    @property
    def content_id(self) -> str:
        """Sixteen hexadecimal digits of a SHA-256: equal questions with equal answers have equal ids."""
        turns = [[turn.role, turn.content] for turn in self.turns]
        content = [self.kind, turns, self.reference, self.choices, self.columns]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class OwnTask:
    """The problems of one file.

    Attributes:
        name: in stored runs and reports, ``file:`` and the name of the file.
        problems: in the order of the file.
        examples: the worked examples, in the order of the file.
    """

    name: str
    problems: tuple[OwnProblem, ...]
    examples: tuple[OwnProblem, ...]

    def most_examples(self, shots: int | None) -> int:
        """Return how many worked examples stand before a problem, at most over the kinds."""
        counts = Counter(example.kind for example in self.examples)
        return min(max(counts.values(), default=0), DEFAULT_SHOTS if shots is None else shots)

    def conversation(self, problem: OwnProblem, shots: int | None) -> tuple[Turn, ...]:
        """Return the turns that ask a problem: how to answer, the examples of its kind, the question.

        A system turn of the problem's own comes first, and the words about the answer after it.

        Args:
            problem: one of the file's.
            shots: worked examples; None takes all of the kind, at most `tasks.prompts.DEFAULT_SHOTS`.

        Raises:
            ParameterError: the file has fewer examples of the kind.
        """
        examples = [example for example in self.examples if example.kind == problem.kind]
        if shots is not None and shots > len(examples):
            has = f"the file has {len(examples)} of kind {problem.kind}"
            raise ParameterError(f"{self.name}: {shots} worked examples asked for, {has}")
        asked = _ASKED[problem.kind]
        if problem.form.fenced:
            asked = f"{asked} {FENCE_INSTRUCTIONS['regular']}"
        turns = problem.turns
        if turns[0].role == "system":
            asked, turns = f"{turns[0].content}\n\n{asked}", turns[1:]
        shown = [
            turn
            for example in examples[: DEFAULT_SHOTS if shots is None else shots]
            for turn in (*_asking(example), Turn("assistant", right_reply(example)))
        ]
        return (Turn("system", asked), *shown, *turns[:-1], Turn("user", problem.question))


def read_problem(row: Mapping[str, Any]) -> OwnProblem:
    """Check a row and return its problem.

    Raises:
        RowError: naming the key and what is wrong with it.
    """
    kind = _kind(row.get("kind"))
    turns = _turns(row)
    choices: tuple[str, ...] = ()
    if kind == "choice":
        choices = _choices(row.get("choices"))
        reference = _letter(row.get("reference"), choices)
    elif "choices" in row:
        raise RowError(f"'choices' is for kind choice, not {kind}")
    elif kind == "text":
        reference, *further = _texts(row.get("reference"))
        choices = tuple(further)
    elif kind == "json":
        reference = _json_reference(row)
    else:
        reference = _list_reference(kind, row.get("reference"))
    columns = _columns(row)
    _check_columns(kind, dict(columns), (reference, *choices))
    if len(reference) + sum(map(len, choices)) > LONGEST_TEXT:
        raise RowError(f"'reference' is longer than {LONGEST_TEXT:,} characters")
    if kind not in ("choice", "text") and (found := _UNSAFE.search(reference)):
        raise RowError(f"'reference' holds {found.group()}, which marks where an answer stands")
    return OwnProblem(_identifier(row.get("id")), kind, turns, reference, choices, columns, _is_example(row))


def right_reply(problem: OwnProblem) -> str:
    """Return the reply that a worked example shows, as long as a right answer is."""
    return fenced(problem.reference) if problem.form.fenced else problem.reference


def _asking(problem: OwnProblem) -> tuple[Turn, ...]:
    turns = problem.turns[1:] if problem.turns[0].role == "system" else problem.turns
    return (*turns[:-1], Turn("user", problem.question))


def _identifier(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise RowError("'id' is wanted, a text or a whole number")
    if len(str(value)) > LONGEST_COLUMN:
        raise RowError(f"'id' is longer than {LONGEST_COLUMN:,} characters")
    return str(value)


def _kind(value: object) -> OwnKind:
    for kind in OWN_KINDS:
        if kind == value:
            return kind
    given = quoted(value) if isinstance(value, str) else "missing" if value is None else "no text"
    raise RowError(f"'kind' is {given}; there are {', '.join(OWN_KINDS)}")


def _is_example(row: Mapping[str, Any]) -> bool:
    value = row.get("example", False)
    if not isinstance(value, bool):
        raise RowError("'example' is true or false")
    return value


def _turns(row: Mapping[str, Any]) -> tuple[Turn, ...]:
    if ("prompt" in row) == ("messages" in row):
        raise RowError("either 'prompt' or 'messages' is wanted")
    if "prompt" in row:
        turns: tuple[Turn, ...] = (Turn("user", _text("prompt", row["prompt"])),)
    else:
        turns = _messages(row["messages"])
    if sum(len(turn.content) for turn in turns) > LONGEST_TEXT:
        raise RowError(f"the prompt is longer than {LONGEST_TEXT:,} characters")
    return turns


def _messages(value: object) -> tuple[Turn, ...]:
    if not isinstance(value, list) or not value:
        raise RowError("'messages' is a list of objects with role and content")
    turns = []
    for place, message in enumerate(value):
        where = f"'messages', {place + 1}"
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise RowError(f"{where}: an object with a role of {', '.join(_ROLES)} is wanted")
        turns.append(Turn(message["role"], _text(f"{where}: content", message.get("content"))))
    roles = [turn.role for turn in turns if turn.role != "system"]
    if any(turn.role == "system" for turn in turns[1:]) or any(
        role != ("user", "assistant")[place % 2] for place, role in enumerate(roles)
    ):
        raise RowError("'messages': perhaps a system turn first, then user and assistant in turns")
    if turns[-1].role != "user":
        raise RowError("'messages': the last one is the user's")
    return tuple(turns)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise RowError(f"{name if name.startswith(chr(39)) else repr(name)} is wanted, a text that is not blank")
    return value


def _choices(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 2 <= len(value) <= len(LETTERS):
        raise RowError(f"'choices' is a list of 2 to {len(LETTERS)} texts")
    choices = tuple(_text(f"'choices', {place + 1}", choice) for place, choice in enumerate(value))
    if len({" ".join(choice.split()) for choice in choices}) < len(choices):
        raise RowError("'choices' holds a text twice")
    return choices


def _letter(value: object, choices: tuple[str, ...]) -> str:
    reference = _text("reference", value)
    letters = LETTERS[: len(choices)]
    by_text = letters[choices.index(reference)] if reference in choices else None
    by_letter = reference if len(reference) == 1 and reference in letters else None
    if by_text and by_letter and by_text != by_letter:
        raise RowError(f"'reference' {quoted(reference)} is a letter and the text of another choice: write its letter")
    if by_text is None and by_letter is None:
        raise RowError(f"'reference' {quoted(reference)} is neither a letter from A to {letters[-1]} nor a choice")
    return by_letter or by_text or ""


def _texts(value: object) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not texts:
        raise RowError("'reference' is a text or a list of texts")
    return [_text("reference", text) for text in texts]


def _json_reference(row: Mapping[str, Any]) -> str:
    if "reference" not in row:
        raise RowError("'reference' is wanted, a JSON value")
    reference = json.dumps(row["reference"], ensure_ascii=False)
    try:
        read_json(reference)
    except JsonTextError as error:
        raise RowError(f"'reference': {error}") from error
    return reference


def _list_reference(kind: OwnKind, value: object) -> str:
    if not isinstance(value, list) or not value:
        raise RowError(f"'reference' is a list of {kind}")
    items = []
    for item in value:
        if kind == "numbers":
            # A whole number is finite, and may be too large for the doubles that `isfinite` takes.
            if type(item) is not int and not (isinstance(item, float) and math.isfinite(item)):
                raise RowError(f"'reference': {quoted(str(item))} is no number")
            items.append(repr(item))
        else:
            text = _text("reference", item).strip()
            if (kind == "words" and len(text.split()) > 1) or len(text.splitlines()) > 1:
                raise RowError(f"'reference': {quoted(text)} is more than one of {kind}")
            items.append(text)
    return ("\n" if kind == "lines" else " ").join(items)


def _columns(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    columns = []
    for name, value in row.items():
        if name in KEYS:
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(name) > LONGEST_COLUMN or len(text) > LONGEST_COLUMN:
            raise RowError(f"{quoted(name)}: a column has at most {LONGEST_COLUMN:,} characters")
        if value is not None:
            columns.append((name, text))
    if len(columns) > MOST_COLUMNS:
        raise RowError(f"{len(columns)} columns; at most {MOST_COLUMNS}")
    return tuple(columns)


def _check_columns(kind: OwnKind, columns: dict[str, str], references: Sequence[str]) -> None:
    """Check the columns that say how the answer is judged."""
    if kind == "json":
        if "tolerance" in columns and not _is_number(columns["tolerance"], 0.0, math.inf):
            raise RowError("'tolerance' is a number of at least 0")
        if columns.get("unordered", "false") not in ("true", "false"):
            raise RowError("'unordered' is true or false")
    if kind == "text":
        match = columns.get("match", "rouge_l")
        if match not in ("rouge_l", "exact"):
            raise RowError("'match' is rouge_l or exact")
        if "threshold" in columns and not _is_number(columns["threshold"], 0.0, 1.0):
            raise RowError("'threshold' is a number from 0 to 1")
        other = next((found for text in references if (found := _OTHER_SCRIPT.search(text))), None)
        if match == "rouge_l" and other is not None:
            raise RowError(f'\'reference\' holds {other.group()}, and ROUGE-L reads a–z and 0–9 only: "match": "exact"')


def _is_number(text: str, low: float, high: float) -> bool:
    try:
        value = float(Decimal(text))
    except (ArithmeticError, ValueError):
        return False
    return math.isfinite(value) and low <= value <= high
