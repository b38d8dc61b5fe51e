"""Labelling answers that a file holds, without a model: ``salt-tui score``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from salt_tui.inputs.json_lines import read_rows
from salt_tui.similar_names import message_of
from salt_tui.usage_error import UsageError
from scoring.alignment import RELEASE_SCORES, AlignmentTooLargeError, align
from scoring.answer_status import answer_status
from scoring.correctness import UnitCounts
from scoring.labels import UnitStatus, label_units
from scoring.value import Value
from tasks.answer import Extraction, parse_answer, split_reference
from tasks.answer_form import ReferenceUnits
from tasks.registry import task_for_release_name
from tasks.release import release_answer, release_extraction, release_units
from tasks.task import FENCE, Task, UnknownNameError


@dataclass(frozen=True, slots=True)
class AnswerLabels:
    """The labels of one stored answer.

    Attributes:
        statuses: of the units, in order; with alignment, redundant units stand where they were written.
        answer_status: as in a run; ``no_answer`` comes with a reason.
        no_answer: why no answer was found; None where one was.
        redundant, missing: counts.
    """

    statuses: tuple[UnitStatus, ...]
    answer_status: str
    no_answer: str | None
    precision: Value
    recall: Value
    redundant: int
    missing: int


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """How answers are labelled.

    Attributes:
        unit: ``atom``, ``line`` or ``generation``.
        aligned: Needleman-Wunsch instead of strict by index.
        compat: find and split answers, and align, as the published release does.
    """

    unit: str
    aligned: bool
    compat: bool


def label_file(file: Path, options: LabelOptions) -> Iterator[AnswerLabels]:
    """Label every row of a JSON lines file with ``task``, ``response``, ``reference`` and perhaps ``delimiter``.

    One's own exports of answers are such files: they call the response ``reply``, null where none was computed.

    Raises:
        UsageError: the file or a row of it cannot be read, names no task, or is too large to align; names file and
            line.
    """
    for place, row in read_rows(file, required=("task", "reference"), optional=("response", "reply", "delimiter")):
        response = row.get("response", row.get("reply"))
        if response is None and row.get("reply", "") is not None:
            problem = "not a text" if "response" in row else "missing (exports call it 'reply')"
            raise UsageError(f"{place}: 'response' is {problem}")
        try:
            task = task_for_release_name(row["task"])
            labels = label_answer(task, response or "", row["reference"], row.get("delimiter") or None, options)
        except (UnknownNameError, AlignmentTooLargeError) as error:
            raise UsageError(f"{place}: {message_of(error)}") from error
        yield labels


def label_answer(
    task: Task, response: str, reference: str, delimiter: str | None, options: LabelOptions
) -> AnswerLabels:
    """Label one answer that ended by itself.

    Args:
        task: splits and normalises.
        response: the whole reply.
        reference: the right answer, without fences.
        delimiter: what separates atoms on a line, not empty; None as the task says.
        options: how.

    Raises:
        AlignmentTooLargeError: with alignment, for more than `scoring.alignment.MOST_CELLS` pairs of units.
    """
    if options.compat:
        extraction = release_extraction(response)
        wanted = release_units(task, reference, delimiter)
        given = release_units(task, release_answer(response), delimiter)
    else:
        parsed = parse_answer(task, response.encode())
        extraction = parsed.extraction
        wanted = _units(task, reference, delimiter)
        texts = [unit.text for unit in parsed.of_kind("generation")]
        given = _units(task, texts[0] if texts else "", delimiter)
    status = answer_status("end", extraction)
    why = _why_none(response, extraction, options) if status == "no_answer" else None
    return _labels(_of_unit(given, options.unit), _of_unit(wanted, options.unit), status, why, options)


def labels_data(labels: AnswerLabels) -> dict[str, Any]:
    """Return the JSON object of one row."""
    reasons = _reasons({"precision": labels.precision, "recall": labels.recall})
    if labels.no_answer is not None:
        reasons["answer_status"] = labels.no_answer
    return {
        "statuses": list(labels.statuses),
        "answer_status": labels.answer_status,
        "precision": labels.precision.value,
        "recall": labels.recall.value,
        "redundant": labels.redundant,
        "missing": labels.missing,
        "reasons": reasons,
    }


def _reasons(values: Mapping[str, Value]) -> dict[str, str]:
    return {name: value.reason for name, value in values.items() if value.reason is not None}


def _units(task: Task, text: str, delimiter: str | None) -> ReferenceUnits:
    units = split_reference(task, text)
    if delimiter is None or not delimiter.strip():
        return units
    separator = delimiter.strip()
    split = (line.split(separator) for line in re.split("[\n\r]", text))
    lines = [line for pieces in split if (line := [task.normalise(piece) for piece in pieces if piece.strip()])]
    atoms = tuple(atom for line in lines for atom in line)
    return ReferenceUnits(
        atoms=atoms,
        lines=tuple(separator.join(line) for line in lines),
        generation=separator.join(atoms),
        atom_lines=tuple(index for index, line in enumerate(lines) for _ in line),
    )


def _why_none(response: str, extraction: Extraction, options: LabelOptions) -> str:
    """Say in a few words why `label_answer` found no answer."""
    fenced = re.search(r"\*{4,}", response) is not None
    if options.compat:
        return "no fenced text without a word that voids it" if fenced else "nothing written"
    if extraction == "thinking_only":
        return "nothing outside the thinking"
    return "no text after a fence" if fenced else f"no fence: the answer is wanted between two lines of {FENCE}"


def _of_unit(units: ReferenceUnits, unit: str) -> tuple[str, ...]:
    if unit == "atom":
        return units.atoms
    if unit == "line":
        return units.lines
    return (units.generation,) if units.generation else ()


def _labels(
    given: tuple[str, ...], wanted: tuple[str, ...], status: str, why: str | None, options: LabelOptions
) -> AnswerLabels:
    if options.aligned:
        alignment = align(given, wanted, **(RELEASE_SCORES if options.compat else {}))
        statuses, precision, recall = alignment.statuses, alignment.precision, alignment.recall
    else:
        statuses = label_units(given, wanted)
        counts = UnitCounts.of(statuses)
        precision, recall = counts.precision, counts.recall
    return AnswerLabels(
        statuses, status, why, precision, recall, statuses.count("redundant"), statuses.count("missing")
    )
