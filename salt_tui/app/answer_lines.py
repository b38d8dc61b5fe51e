"""What the Answer screen says in lines: about a token, about an atom, and about the whole answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from salt_tui.app.answer_document import AnswerDocument
from salt_tui.app.live_lines import HEIGHTS
from salt_tui.app.right_tokens import Candidate, shown_bytes, where_it_parts
from salt_tui.app.task_ranks import TaskRanks
from salt_tui.app.text_rows import fit
from salt_tui.number_text import confidence_text
from salt_tui.store.records import UnitRecord
from salt_tui.visible_text import visible
from scoring.confidence import CONFIDENCE_FUNCTIONS

_BAR = "▇"
_LEAST_BAR = "▏"
_LONGEST_TEXT = 9
SAID, RIGHT = "●", "✓"


def title_line(document: AnswerDocument, answers: int, width: int) -> str:
    """Say which answer it is, how much of it is right, and how it ended."""
    said = sum(atom.text is not None for atom in document.atoms)
    right = sum(atom.status == "correct" for atom in document.atoms)
    asked = sum(atom.status != "redundant" for atom in document.atoms)
    of = f" of {answers}" if answers else ""
    name = f" {visible(document.problem.task, 24)} · answer {document.problem.position + 1}"
    branch = source = ""
    if document.branch is not None:
        branch = f" · {visible(document.branch.name)}"
        source = f", edited from {visible(document.branch.parent_name or 'the answer')}"
    status = f" · {(document.status or 'open').replace('_', ' ')}"
    first = first_error(document)
    where = "" if first is None else f" · first error {first + 1}"
    scores = f" · right {right}/{said} · asked {right}/{asked}"
    # What goes without saying, or stands below too, is left out first; the two scores stay longest.
    forms = (
        f"{name}{of}{branch}{source}{where}{scores}{status}",
        f"{name}{of}{branch}{source}{where}{scores}{'' if document.status == 'complete' else status}",
        f"{name}{branch}{source}{where}{scores}{status}",
        f"{name}{branch}{source}{scores}{status}",
        f"{name}{branch}{source}{scores}",
        f"{name}{branch}{scores}",
    )
    return next((form for form in forms if cell_len(form) <= width), fit(forms[-1], width))


def first_error(document: AnswerDocument) -> int | None:
    """Return the first atom that is not right; None where all are."""
    return next((number for number, atom in enumerate(document.atoms) if atom.status != "correct"), None)


def token_lines(document: AnswerDocument, number: int, rows: int, width: int) -> list[str]:
    """Say what a token is and what else could have come, likeliest first, in so many rows.

    The last row is the likeliest right one where that would stand below it.
    """
    if not document.tokens:
        return ["no token was said"]
    token = document.tokens[number]
    record = token.record
    identity = "" if record.id is None else f" · id {record.id}"
    entropy = "not known" if record.entropy is None else f"{record.entropy:.3f} nats"
    forced = " · forced" if record.forced else ""
    head = [
        f"token {number + 1} of {len(document.tokens)}{identity}{forced}",
        f"“{shown_bytes(token.piece)}” = {token.piece.hex(' ') or 'no bytes'}",
        f"entropy {entropy}",
    ]
    candidates = list(document.candidates(number))
    room = max(1, rows - len(head))
    right = next((candidate for candidate in candidates[room:] if candidate.right), None)
    if right is not None and not any(candidate.right for candidate in candidates[:room]):
        candidates[room - 1] = right
    shown = candidates[:room]
    text = min(_LONGEST_TEXT, max((cell_len(_quoted(candidate.text)) for candidate in shown), default=1))
    return [fit(line, width) for line in (*head, *(_bar_line(candidate, text, width) for candidate in shown))][:rows]


def _bar_line(candidate: Candidate, cells: int, width: int) -> str:
    marks = f"{SAID if candidate.said else ' '}{RIGHT if candidate.right else ' '}"
    room = max(1, width - cells - 12)
    full = round(candidate.probability * room)
    bar = _BAR * full or (_LEAST_BAR if candidate.probability > 0 else "")
    text = set_cell_size(fit(_quoted(candidate.text), cells), cells)
    return f"{text} {bar:<{room}} {confidence_text(candidate.probability):>6} {marks}"


def _quoted(text: str) -> str:
    """Put a text in quotation marks whose blanks would not be seen without them."""
    return text if text and text == text.strip() else f"“{text}”"


def atom_line(document: AnswerDocument, number: int, width: int) -> str:
    """Say what the atom of a token is, what it and the right one are, and how near the model came to that."""
    atom = document.atom_of(number) if document.tokens else None
    right = document.right_token(number) if document.tokens else None
    if atom is None:
        return fit("between atoms", width)
    unit = document.atoms[atom]
    parts = [f"atom {atom + 1} {'right' if unit.status == 'correct' else unit.status}", _said_and_right(unit)]
    if right is not None:
        if right.rank is None:
            parts += [f"the right token is not among the {right.listed} stored"] if right.listed else []
        elif document.tokens[number].piece and document.candidates(number)[right.rank - 1].said:
            parts.append(_still_right(document, unit, number))
        else:
            parts.append(f"the right token had {confidence_text(right.probability or 0.0)}, rank {right.rank}")
    return fit("; ".join(parts), width)


def _still_right(document: AnswerDocument, unit: UnitRecord, number: int) -> str:
    """Say that a token is right, and of the last one of an atom that ends too early what should have followed."""
    parting = where_it_parts(unit, document.tokens)
    if parting is None or unit.token_end is None or not parting.position == unit.token_end == number + 1:
        return "this token goes on with what is right"
    right = parting.right
    if right.probability is None:
        return f"it ends too early: what is right is not among the {right.listed} stored of the next token"
    return f"it ends too early: the right next token had {confidence_text(right.probability)}, rank {right.rank}"


def _said_and_right(unit: UnitRecord) -> str:
    said = "–" if unit.text is None else f"“{fit(visible(unit.text, 40), 20)}”"
    right = "–" if unit.reference is None else f"“{fit(visible(unit.reference, 40), 20)}”"
    return {
        "correct": f"said {said}",
        "wrong": f"said {said}, right is {right}",
        "redundant": f"said {said} behind the end",
        "missing": f"right is {right}",
        "abstained": f"said {said} instead of {right}",
    }[unit.status]


def confidence_lines(document: AnswerDocument, atom: int | None, ranks: TaskRanks | None, width: int) -> list[str]:
    """Return every confidence and signal of an atom with its rank in the task, 1 for the surest."""
    if atom is None:
        return []
    unit, task = document.atoms[atom], document.problem.task
    parts = []
    for name, value in zip(CONFIDENCE_FUNCTIONS, unit.confidences, strict=True):
        parts.append(_ranked(name, value, None if ranks is None or value is None else ranks.rank(task, name, value)))
    for signal in document.signals:
        if unit.index in signal.values:
            parts.append(_ranked(signal.name, signal.values[unit.index], signal.ranks.get(unit.index)))
    return flow(parts, width)


def _ranked(name: str, value: float | None, rank: tuple[int, int] | None) -> str:
    if value is None:
        return f"{name} –"
    return f"{name} {confidence_text(value)}" + ("" if rank is None else f" ({rank[0]}/{rank[1]})")


def flow(parts: Sequence[str], width: int) -> list[str]:
    """Put parts beside each other, as many as fit in a row."""
    rows: list[str] = []
    for part in parts:
        if rows and len(rows[-1]) + 2 + len(part) <= width:
            rows[-1] += f"  {part}"
        else:
            rows.append(part)
    return [fit(row, width) for row in rows]


def course_line(document: AnswerDocument, number: int, width: int) -> str:
    """Draw the probability and the entropy of the tokens around one, a higher bar for more of either."""
    room = max(4, (width - len(" p  entropy ")) // 2 - 1)
    start = max(0, min(number - room // 2, len(document.tokens) - room))
    around = document.tokens[start : start + room]
    probabilities = "".join(
        " " if token.record.log_probability is None else _height(math.exp(token.record.log_probability))
        for token in around
    )
    largest = max((token.record.entropy or 0.0 for token in document.tokens), default=0.0)
    entropies = "".join(
        " " if token.record.entropy is None else _height(token.record.entropy / largest if largest else 0.0)
        for token in around
    )
    return fit(f"p {probabilities}  entropy {entropies}", width)


def _height(share: float) -> str:
    return HEIGHTS[min(int(share * len(HEIGHTS)), len(HEIGHTS) - 1)]
