"""An edited branch beside the answer that it forks from, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp
from typing import Any

from salt_tui.palette import GLYPHS
from salt_tui.reports.text_tables import number
from salt_tui.reports.wrapping import wrapped
from salt_tui.store.queries import Queries
from salt_tui.store.records import InterventionRecord, UnitRecord, Work
from salt_tui.visible_text import visible


def branch_lines(queries: Queries, study: Work, width: int) -> Iterator[str]:
    """Yield what the newest edit of a study changed: both texts with marks, and the target before and after.

    Args:
        queries: of the database.
        study: of kind ``manual`` with an edited branch.
        width: columns of a line.
    """
    record, baseline = newest_edit(queries, study)
    said, replayed = (_atoms(queries, one) for one in (record.answer, record.generation))
    edited = {index for index, _ in record.edits}
    yield from wrapped(f"original  {_text(said, frozenset())}", width, " " * 10)
    yield from wrapped(f"{record.variant:<9} {_text(replayed, frozenset(edited))}", width, " " * 10)
    yield ""
    target = record.target + 1
    was, now = _right(said, record.target), _right(replayed, record.target)
    yield f"Right from atom {target} on: {was} as it was, {now} now."
    if record.log_probability_reference is not None:
        before = None if baseline is None else baseline.log_probability_reference
        yield (
            f"Atom {target}: the right one had a probability of {number(None if before is None else exp(before), 3)},"
            f" now {number(exp(record.log_probability_reference), 3)}."
        )
    yield f"Atom {target}: {_atom(said, record.target)} → {_atom(replayed, record.target)}."


def branch_data(queries: Queries, study: Work) -> dict[str, Any]:
    """Return the newest edit of a study as JSON; positions of atoms are counted from 1."""
    record, baseline = newest_edit(queries, study)
    before = None if baseline is None else baseline.log_probability_reference
    after = record.log_probability_reference
    return {
        "study": str(study),
        "branch": record.variant,
        "generation": record.generation,
        "edits": [[index + 1, text] for index, text in record.edits],
        "target": record.target + 1,
        "probability_gold_before": None if before is None else exp(before),
        "probability_gold": None if after is None else exp(after),
        "right": record.outcome,
        "original": [unit.text for unit in _atoms(queries, record.answer)],
        "replayed": [unit.text for unit in _atoms(queries, record.generation)],
        "statuses": [unit.status for unit in _atoms(queries, record.generation)],
    }


def newest_edit(queries: Queries, study: Work) -> tuple[InterventionRecord, InterventionRecord | None]:
    """Return the newest edited branch of a study, and the branch of its target behind the unchanged text."""
    records = queries.interventions(study)
    record = max((one for one in records if one.edits), key=lambda one: one.generation)
    place = record.answer, record.target
    bases = [one for one in records if not one.edits and (one.answer, one.target) == place]
    return record, bases[0] if bases else None


def _atoms(queries: Queries, generation: int) -> list[UnitRecord]:
    return [unit for unit in queries.units(generation, "atom") if unit.text is not None]


def _text(atoms: Sequence[UnitRecord], edited: frozenset[int]) -> str:
    """Atoms with their marks; edited ones stand in brackets."""
    shown = []
    for unit in atoms:
        text = f"{visible(unit.text or '')}{'' if unit.status == 'correct' else GLYPHS[unit.status]}"
        shown.append(f"[{text}]" if unit.index in edited else text)
    return " ".join(shown)


def _right(atoms: Sequence[UnitRecord], target: int) -> str:
    later = [unit for unit in atoms if unit.index >= target]
    return f"{sum(unit.status == 'correct' for unit in later)} of {len(later)}"


def _atom(atoms: Sequence[UnitRecord], index: int) -> str:
    found = [unit for unit in atoms if unit.index == index]
    return f"{visible(found[0].text or '')} ({found[0].status})" if found else "no atom"
