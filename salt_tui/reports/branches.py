"""An edited branch beside the text that it forks from, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp
from typing import Any

from salt_tui.palette import GLYPHS
from salt_tui.reports.text_tables import number
from salt_tui.reports.wrapping import wrapped
from salt_tui.store.queries import Queries
from salt_tui.store.records import UnitRecord, Work
from salt_tui.store.results import EditedBranch
from salt_tui.visible_text import visible


def branch_lines(queries: Queries, study: Work, width: int) -> Iterator[str]:
    """Yield what the newest edit of a study changed: both texts with marks, and the target before and after.

    Args:
        queries: of the database.
        study: of kind ``manual`` with an edited branch.
        width: columns of a line.
    """
    branch = newest_edit(queries, study)
    record = branch.record
    said, replayed = (_atoms(queries, one) for one in (branch.parent, record.generation))
    edited = {index for index, _ in record.edits}
    before, name = visible(branch.parent_name or "original"), visible(branch.name)
    indent = max(len(before), len(name), len("original")) + 2
    yield from wrapped(f"{before:<{indent}}{_text(said, frozenset())}", width, " " * indent)
    yield from wrapped(f"{name:<{indent}}{_text(replayed, frozenset(edited))}", width, " " * indent)
    yield ""
    target = record.target + 1
    was, now = _right(said, record.target), _right(replayed, record.target)
    yield f"Right from atom {target} on: {was} as it was, {now} now."
    if record.log_probability_reference is not None:
        unchanged = branch.unchanged_log_probability
        yield (
            f"Atom {target}: the right one had a probability of"
            f" {number(None if unchanged is None else exp(unchanged), 3)},"
            f" now {number(exp(record.log_probability_reference), 3)}."
        )
    yield f"Atom {target}: {_atom(said, record.target)} → {_atom(replayed, record.target)}."


def branch_data(queries: Queries, study: Work) -> dict[str, Any]:
    """Return the newest edit of a study as JSON; positions of atoms are counted from 1."""
    branch = newest_edit(queries, study)
    record = branch.record
    before, after = branch.unchanged_log_probability, record.log_probability_reference
    return {
        "study": str(study),
        "branch": branch.name,
        "edited_from": branch.parent_name,
        "generation": record.generation,
        "edits": [[index + 1, text] for index, text in record.edits],
        "target": record.target + 1,
        "probability_gold_before": None if before is None else exp(before),
        "probability_gold": None if after is None else exp(after),
        "right": record.outcome,
        "original": [unit.text for unit in _atoms(queries, branch.parent)],
        "replayed": [unit.text for unit in _atoms(queries, record.generation)],
        "statuses": [unit.status for unit in _atoms(queries, record.generation)],
    }


def newest_edit(queries: Queries, study: Work) -> EditedBranch:
    """Return the branch of a study that was edited last."""
    return max(queries.edited_branches(study), key=lambda branch: branch.record.generation)


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
