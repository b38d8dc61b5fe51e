"""What the published release does differently: its names, its problem rows and its way of finding an answer.

``--compat`` uses this to reproduce the release's figures.  It differs from `tasks.answer` in five ways: a
reply without a fence is graded whole; a region that contains one of `RELEASE_WORDS` is dropped; a complete pair of
fences beats a fence that is never closed, even a later one; every asterisk and one outer bracket are removed; inner
spaces are removed where atoms are not separated by spaces.  Thinking is not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tasks.answer import Extraction
from tasks.answer_form import ReferenceUnits
from tasks.code import solve_release
from tasks.code_functions import RELEASE_FUNCTIONS
from tasks.splitting import WhitespaceSplitter
from tasks.task import ProblemTextError, Task

RELEASE_WORDS: tuple[str, ...] = (
    "answer",
    "answer:",
    "can not conclude",
    "can't conclude",
    "cannot conclude",
    "end",
    "final",
    "final answer",
    "final answer is:",
    "final output:",
    "final:",
    "hence",
    "input",
    "invalid",
    "output",
    "output:",
    "the answer is",
    "the final answer is:",
    "the output is:",
    "therefore",
    "these",
    "thus",
    "with",
    "without",
)
"""A region that contains one of these anywhere, in any case, even inside another word, is no answer there."""

_FENCE = re.compile(r"\*{4,}")


def release_answer(reply: str) -> str:
    """Return the text that the release grades, without its fences; empty when it finds none.

    The last complete pair of fences with an acceptable text wins, then an unclosed last fence.  A reply without any
    fence is graded whole, whatever it says.
    """
    return _find(reply)[0]


def release_extraction(reply: str) -> Extraction:
    """Return how `release_answer` found its text: ``none`` for a blank one; a reply graded whole is ``fenced``."""
    return _find(reply)[1]


def _find(reply: str) -> tuple[str, Extraction]:
    fences = list(_FENCE.finditer(reply))
    if not fences:
        return reply, "fenced" if _without_asterisks(reply) else "none"
    for opening, closing in reversed(list(zip(fences[0::2], fences[1::2], strict=False))):
        if _is_acceptable(text := reply[opening.end() : closing.start()]):
            return text, "fenced"
    if len(fences) % 2 == 1 and _is_acceptable(text := reply[fences[-1].end() :]):
        return text, "unclosed"
    return "", "none"


def release_units(task: Task, text: str, delimiter: str | None = None) -> ReferenceUnits:
    """Split a reference, or what `release_answer` found, as the release does, in the form in which it compares units.

    Args:
        task: says how a line splits into atoms when there is no delimiter.
        text: the answer without fences.
        delimiter: what separates atoms on a line; None takes a space for tasks whose atoms are separated by white
            space, and the task's own splitting for the others.

    Returns:
        No units for a blank text.
    """
    if delimiter is None and isinstance(task.splitter(), WhitespaceSplitter):
        delimiter = " "
    clean = _without_asterisks(text)
    lines = [line.strip() for line in clean.split("\n") if line.strip()]
    atoms: list[str] = []
    atom_lines: list[int] = []
    for index, line in enumerate(lines):
        found = _split_line(task, line) if delimiter is None else line.split(delimiter)
        found = [atom.strip() for atom in found if atom.strip()]
        atoms += found
        atom_lines += [index] * len(found)
    if atoms and atoms[0].startswith("[") and not atoms[0].endswith("]"):
        atoms[0] = atoms[0][1:]
    if atoms and atoms[-1].endswith("]") and not atoms[-1].startswith("["):
        atoms[-1] = atoms[-1][:-1]
    return ReferenceUnits(
        atoms=tuple(_comparable(atom, delimiter) for atom in atoms),
        lines=tuple(_comparable(line, delimiter) for line in lines),
        generation=_comparable(clean, delimiter),
        atom_lines=tuple(atom_lines),
    )


def solve_release_row(task: Task, row: Mapping[str, object]) -> str:
    """Return the reference of a row of the release's files, to the character.

    Args:
        task: the task that the row belongs to.
        row: ``input``; for the code task also ``task``, the function's name; for Words Collection ``subject_set``,
            without which the input has to be a text of our own.

    Raises:
        ProblemTextError: if a field is missing or of the wrong kind, or the input is not a problem of the task.
    """
    text = row.get("input")
    if not isinstance(text, str):
        raise ProblemTextError("the row has no text in 'input'")
    if task.name == "code" and isinstance(row.get("task"), str) and row["task"] in RELEASE_FUNCTIONS:
        return solve_release(str(row["task"]), text)
    if task.name == "words_collection" and "subject_set" in row:
        members = row["subject_set"]
        if not isinstance(members, list) or not all(isinstance(member, str) for member in members):
            raise ProblemTextError("'subject_set' is not a list of words")
        return _collect_release_words(text, frozenset(members))
    reference = task.solve(text)
    # The release's texts and references of this task both end in a line end.
    return f"{reference}\n" if task.name == "first_order_logic" and text.endswith("\n") else reference


def _collect_release_words(text: str, members: frozenset[str]) -> str:
    """List the members in order: digits for numbers, single letters for capital letters, else whole words.

    Multi-word members never match there, because words are compared one by one.
    """
    if members and all(member.isdigit() for member in members):
        words = re.findall(r"\d+", text)
    elif members and all(len(member) == 1 and member.isupper() for member in members):
        words = list(text)
    else:
        words = re.findall(r"\w+", text.lower())
    return " ".join(word for word in words if word in members)


def _is_acceptable(text: str) -> bool:
    lower = text.lower()
    return bool(_without_asterisks(text)) and not any(word in lower for word in RELEASE_WORDS)


def _without_asterisks(text: str) -> str:
    return text.replace("*", "").strip()


def _split_line(task: Task, line: str) -> list[str]:
    splitter = task.splitter()
    spans = splitter.feed(line) + splitter.finish()
    return [line[span.start : span.end] for span in spans]


def _comparable(unit: str, delimiter: str | None) -> str:
    return unit if delimiter == " " else unit.replace(" ", "")
