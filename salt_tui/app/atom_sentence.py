"""One sentence about the unit under the cursor: the text twin of a cell, for readers and screen readers."""

from __future__ import annotations

from dataclasses import dataclass

from salt_tui.app.right_tokens import Parting
from salt_tui.app.shade_scale import shade_scale
from salt_tui.app.text_rows import fit
from salt_tui.number_text import confidence_text
from salt_tui.visible_text import visible
from scoring.signals import confidence_entry

TEXT_CELLS = 20
"""Cells of an atom that are shown: some are thousands long, and the verdict must stay on the screen."""

TOP_TENTH = 0.9
UNSURE = 0.5


@dataclass(frozen=True, slots=True)
class DescribedUnit:
    """What there is to say about a unit.

    Attributes:
        answer: number of the problem in its task, 0-based.
        kind: ``atom`` or ``line``.
        index, line, column: 0-based; the column is the place in its line.
        text: what the model said, None for nothing.
        reference: what is right, None where nothing is.
        status: its label.
        function: name of the confidence function.
        value: by that function, None where it is undefined.
        surer_than: share of the units of the same task with strictly less confidence, None where unknown.
        parting: where it parts from what is right, None where that is not known.
    """

    task: str
    answer: int
    kind: str
    index: int
    line: int
    column: int
    text: str | None
    reference: str | None
    status: str
    function: str
    value: float | None
    surer_than: float | None
    parting: Parting | None = None


def heading(unit: DescribedUnit) -> str:
    """Say which unit it is, with numbers from one as people count."""
    place = f"line {unit.line + 1}" if unit.kind == "line" else f"row {unit.line + 1} column {unit.column + 1}"
    number = "" if unit.kind == "line" else f" · atom {unit.index + 1}"
    return f"{visible(unit.task, 24)} · answer {unit.answer + 1}{number} · {place}"


def sentence(unit: DescribedUnit, rank: tuple[int, int] | None = None) -> str:
    """Say the verdict, what was said, how near the model came to what is right, and how sure it was.

    Args:
        unit: what is described.
        rank: its place among the surest errors and how many are listed, None where it was not looked up there.
    """
    said, right = _quoted(unit.text), _quoted(unit.reference)
    what = {
        "correct": f"said {said}",
        "wrong": _wrong(said, right, unit.parting),
        "redundant": f"said {said}, where the answer should have ended",
        "missing": f"nothing said, right is {right}",
        "abstained": f"said {said} instead of {right}",
    }[unit.status]
    verdict = _verdict(unit)
    if rank is not None:
        number, count = rank
        of_redundant = ", redundant" if unit.status == "redundant" else ""
        verdict = f"no. {number} of the surest errors{', the last listed' if number == count else ''}{of_redundant}"
    return " ".join(filter(None, (f"{verdict}: {what}.", _confidence(unit))))


def _wrong(said: str, right: str, parting: Parting | None) -> str:
    """Say what should have been said, and the probabilities where the two part."""
    if parting is None or not parting.right.listed:
        return f"said {said}, right is {right}"
    probability, wanted = confidence_text(parting.probability), parting.right
    if wanted.probability is None:
        near = "not the likeliest" if wanted.listed == 1 else f"not among the {wanted.listed} likeliest"
        if parting.whole:
            return f"said {said} with {probability}, right is {right}, {near}"
        return f"said {said}, right is {right}, {near} at {_quoted(parting.said)} ({probability})"
    near = f"{confidence_text(wanted.probability)} (rank {wanted.rank})"
    if parting.whole:
        return f"said {said} with {probability}, right is {right} with {near}"
    return f"said {said}, right is {right}: {_quoted(parting.said)} had {probability}, {_quoted(wanted.text)} {near}"


def _quoted(text: str | None) -> str:
    return "–" if text is None else f"“{fit(visible(text, 2 * TEXT_CELLS), TEXT_CELLS)}”"


def _verdict(unit: DescribedUnit) -> str:
    verdict = "right" if unit.status == "correct" else unit.status
    if unit.status in {"wrong", "redundant"} and unit.surer_than is not None and unit.surer_than >= TOP_TENTH:
        return "confidently wrong" if unit.status == "wrong" else "redundant, confidently wrong"
    unsure = unit.value is not None and shade_scale(unit.function).place(unit.value) < UNSURE
    return "right but unsure" if unit.status == "correct" and unsure else verdict


def _confidence(unit: DescribedUnit) -> str:
    if unit.value is None:
        return ""
    direction = "" if confidence_entry(unit.function).higher_is_confident else " (lower is surer)"
    words = [f"{unit.function} {confidence_text(unit.value)}{direction}"]
    if unit.surer_than is not None:
        # An atom that came after the last measurement can be surer than all that were measured, never than itself.
        words.append(f"surer than {min(99, int(unit.surer_than * 100))} % of its task")
    return f"{', '.join(words)}."
