"""Labelling answers that a file holds, without a model: ``salt-tui score``."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias

from salt_tui.inputs.brought_tokens import LOST, TOP_K, BroughtToken, BroughtTokensError
from salt_tui.inputs.json_lines import read_rows
from salt_tui.similar_names import message_of
from salt_tui.usage_error import UsageError
from scoring.alignment import RELEASE_SCORES, AlignmentTooLargeError, align
from scoring.answer_status import answer_status
from scoring.confidence import OF_ENTROPY, unit_confidences
from scoring.correctness import UnitCounts
from scoring.labels import UnitStatus, label_units
from scoring.value import Value
from tasks.answer import AnswerUnit, Extraction, parse_answer, split_reference
from tasks.answer_form import ReferenceUnits
from tasks.registry import task_for_release_name
from tasks.release import release_answer, release_extraction, release_units
from tasks.task import FENCE, Task, UnknownNameError

NO_RANGES = "with a delimiter of its own, or --compat, units have no byte ranges"

MISSING = "missing"

TokenReader: TypeAlias = Callable[[str, Mapping[str, Any]], Sequence[BroughtToken]]
"""Returns the tokens of a response from its row; raises `BroughtTokensError`."""


@dataclass(frozen=True, slots=True)
class UnitConfidence:
    """The confidence functions of one unit.

    Attributes:
        values: by function; empty where all are undefined.
        reason: why they are.
    """

    values: Mapping[str, float | None]
    reason: str | None


@dataclass(frozen=True, slots=True)
class AnswerLabels:
    """The labels of one stored answer.

    Attributes:
        statuses: of the units, in order; with alignment, redundant units stand where they were written.
        answer_status: as in a run; ``no_answer`` comes with a reason.
        no_answer: why no answer was found; None where one was.
        redundant, missing: counts.
        confidences: of the units, in the order of ``statuses``; None where no tokens were given, or no ranges found.
        no_confidences: why tokens were given in vain; None else.
    """

    statuses: tuple[UnitStatus, ...]
    answer_status: str
    no_answer: str | None
    precision: Value
    recall: Value
    redundant: int
    missing: int
    confidences: tuple[UnitConfidence, ...] | None = None
    no_confidences: str | None = None


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


def label_file(file: Path, options: LabelOptions, read_tokens: TokenReader) -> Iterator[AnswerLabels]:
    """Label every row of a JSON lines file with ``task``, ``response``, ``reference`` and perhaps ``delimiter``.

    One's own exports of answers are such files: they call the response ``reply``, null where none was computed.  A row
    may bring the tokens of the answer.

    Args:
        file: plain or gzip, or standard input.
        options: how rows are labelled.
        read_tokens: finds the tokens that a row brings.

    Raises:
        UsageError: the file or a row of it cannot be read, names no task, is too large to align, or has tokens of
            another text; names file and line.
    """
    for place, row in read_rows(file, required=("task", "reference"), optional=("response", "reply", "delimiter")):
        response = row.get("response", row.get("reply"))
        if response is None and row.get("reply", "") is not None:
            problem = "not a text" if "response" in row else "missing (exports call it 'reply')"
            raise UsageError(f"{place}: 'response' is {problem}")
        try:
            task = task_for_release_name(row["task"])
            tokens = read_tokens(response or "", row)
            labels = label_answer(task, response or "", row["reference"], row.get("delimiter") or None, options, tokens)
        except (UnknownNameError, AlignmentTooLargeError, BroughtTokensError) as error:
            raise UsageError(f"{place}: {message_of(error)}") from error
        yield labels


def label_answer(
    task: Task,
    response: str,
    reference: str,
    delimiter: str | None,
    options: LabelOptions,
    tokens: Sequence[BroughtToken] = (),
) -> AnswerLabels:
    """Label one answer that ended by itself.

    Args:
        task: splits and normalises.
        response: the whole reply.
        reference: the right answer, without fences.
        delimiter: what separates atoms on a line, not empty; None as the task says.
        options: how.
        tokens: of the response, with their bytes joined equal to it; none where they are not known.

    Raises:
        AlignmentTooLargeError: with alignment, for more than `scoring.alignment.MOST_CELLS` pairs of units.
    """
    units: tuple[AnswerUnit, ...] = ()
    if options.compat:
        extraction = release_extraction(response)
        wanted = release_units(task, reference, delimiter)
        given = release_units(task, release_answer(response), delimiter)
    else:
        parsed = parse_answer(task, response.encode())
        extraction = parsed.extraction
        wanted = _units(task, reference, delimiter)
        units = parsed.units
        texts = [unit.text for unit in parsed.of_kind("generation")]
        given = _units(task, texts[0] if texts else "", delimiter)
    status = answer_status("end", extraction)
    why = _why_none(response, extraction, options) if status == "no_answer" else None
    labels = _labels(_of_unit(given, options.unit), _of_unit(wanted, options.unit), status, why, options)
    if not tokens:
        return labels
    if options.compat or (delimiter is not None and delimiter.strip()):
        return replace(labels, no_confidences=NO_RANGES)
    measured = iter(_confidences([unit for unit in units if unit.kind == options.unit], tokens))
    nothing = UnitConfidence({}, MISSING)
    found = tuple(nothing if status == "missing" else next(measured) for status in labels.statuses)
    return replace(labels, confidences=found)


def labels_data(labels: AnswerLabels) -> dict[str, Any]:
    """Return the JSON object of one row."""
    reasons = _reasons({"precision": labels.precision, "recall": labels.recall})
    if labels.no_answer is not None:
        reasons["answer_status"] = labels.no_answer
    if labels.no_confidences is not None:
        reasons["confidences"] = labels.no_confidences
    units = labels.confidences
    if units and any(unit.values.get(name, 0.0) is None for unit in units for name in OF_ENTROPY):
        reasons |= dict.fromkeys(sorted(OF_ENTROPY), TOP_K)
    given = (
        {}
        if units is None
        else {
            "confidences": [unit.values or None for unit in units],
            "confidence_reasons": [unit.reason for unit in units],
        }
    )
    return {
        "statuses": list(labels.statuses),
        "answer_status": labels.answer_status,
        "precision": labels.precision.value,
        "recall": labels.recall.value,
        "redundant": labels.redundant,
        "missing": labels.missing,
        **given,
        "reasons": reasons,
    }


def _reasons(values: Mapping[str, Value]) -> dict[str, str]:
    return {name: value.reason for name, value in values.items() if value.reason is not None}


def _confidences(units: Sequence[AnswerUnit], tokens: Sequence[BroughtToken]) -> Iterator[UnitConfidence]:
    """Yield the confidences of units from the tokens whose bytes overlap each."""
    ends = list(accumulate(len(token.piece) for token in tokens))
    starts = [end - len(token.piece) for end, token in zip(ends, tokens, strict=True)]
    for unit in units:
        members = [
            tokens[place]
            for place in range(bisect_right(ends, unit.start), bisect_left(starts, unit.end))
            if tokens[place].piece
        ]
        # A gap without bytes beside a unit may have been a part of it.
        near = tokens[bisect_left(ends, unit.start) : bisect_right(starts, unit.end)]
        logs = [token.log_probability for token in members]
        if None in logs or any(not token.piece and token.log_probability is None and not token.end for token in near):
            yield UnitConfidence({}, LOST)
        else:
            yield UnitConfidence(unit_confidences(logs, [token.entropy for token in members]), None)


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
