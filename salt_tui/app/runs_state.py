"""The list of stored runs: its rows, its filter, what may be done to a run; no drawing here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.cells import cell_len

from salt_tui.app.atom_sentence import fit
from salt_tui.app.live_lines import two_rows
from salt_tui.app.terminal import DESIGN_WIDTH
from salt_tui.store.records import RESUMABLE, Work
from salt_tui.store.results import RunListing
from salt_tui.store.store import open_store
from salt_tui.visible_text import visible

WIDTHS = {
    "run": 4, "model": 12, "tasks": 9, "level": 8, "answers": 9, "atoms": 7, "prec.": 5, "state": 11, "begun": 5
}  # fmt: skip
"""Cells of each column; with a space after each and a scroll bar they fit `DESIGN_WIDTH`."""

LEFT_OUT_WHEN_NARROW = ("level", "atoms")
LONGEST_MODEL = 48
SHORTEST_MODEL = 8
LONGEST_WORD = 24
"""Cells that a row may leave empty because the next word is too long for them."""


def column_widths(width: int) -> dict[str, int]:
    """Return the columns and their cells for a screen of a width; the name of the model takes what is over."""
    shown = {name: cells for name, cells in WIDTHS.items() if width >= DESIGN_WIDTH or name not in LEFT_OUT_WHEN_NARROW}
    over = width - 1 - sum(shown.values()) - len(shown)
    shown["model"] = min(LONGEST_MODEL, max(6, shown["model"] + over))
    return shown


def run_cells(run: RunListing, now: datetime | None = None) -> dict[str, str]:
    """Return one row by column, uncut.

    Args:
        run: the run.
        now: the time, with a zone, from which today is told; None asks the clock.
    """
    return {
        "run": str(run.run),
        "model": visible(run.model),
        "tasks": visible(run.tasks[0]) if len(run.tasks) == 1 else f"{len(run.tasks)} tasks",
        "level": level(run),
        "answers": f"{run.answers_done}/{run.answers}",
        "atoms": f"{run.atoms:,}" if run.atoms < 1_000_000 else f"{run.atoms / 1e6:.1f} M",
        "prec.": "–" if run.precision is None else f"{run.precision:.2f}",
        "state": run.state,
        "begun": begun(run.created_at, now),
    }


def level(run: RunListing) -> str:
    """Return the difficulty, with the method where it is not the usual one."""
    return visible(run.difficulty if run.method == "regular" else f"{run.difficulty} {run.method}", LONGEST_WORD)


def details(run: RunListing, width: int, rows: int) -> str:
    """Say what the cells of a run have no room for, in at most so many rows: whole names, time, exactness, an error.

    What is too long loses the names of the tasks first, then the end of the model's name.
    """
    exact = {True: "exact", False: "NOT EXACT", None: "exactness not checked"}[run.exact]
    moment = _local(run.created_at)
    when = visible(run.created_at, 20) if moment is None else f"{moment:%Y-%m-%d %H:%M}"
    model, message = visible(run.model), visible(run.message or "")
    facts = (level(run), run.state, exact, when)
    room = rows * width - (rows - 1) * LONGEST_WORD
    text = " · ".join(part for part in (model, *facts, visible(", ".join(run.tasks)), message) if part)
    if cell_len(text) > room:
        tail = " · ".join((*facts, f"{len(run.tasks)} task{'' if len(run.tasks) == 1 else 's'}"))
        model = fit(model, max(SHORTEST_MODEL, room - cell_len(tail) - 3))
        text = " · ".join(part for part in (model, tail, message) if part)
    return two_rows(text, width) if rows > 1 else fit(text, width)


def begun(created_at: str, now: datetime | None = None) -> str:
    """Return the local time of a run made today, else month and day; the text itself where it is no time."""
    moment = _local(created_at)
    if moment is None:
        return visible(created_at, 16)
    today = (datetime.now(UTC) if now is None else now).astimezone().date()
    return f"{moment:%H:%M}" if moment.date() == today else f"{moment:%m-%d}"


def _local(created_at: str) -> datetime | None:
    try:
        return datetime.fromisoformat(created_at).astimezone()
    except ValueError:
        return None


def matching(runs: Sequence[RunListing], words: str) -> list[RunListing]:
    """Return the runs of which every word occurs in number, model, tasks, level, method or state."""
    wanted = words.casefold().split()
    return [run for run in runs if all(word in _haystack(run) for word in wanted)]


def _haystack(run: RunListing) -> str:
    parts = (str(run.run), run.model, *run.tasks, run.difficulty, run.method, run.state)
    return " ".join(parts).casefold()


def consequence(run: RunListing) -> str:
    """Say what deleting a run destroys."""
    return f"{run.answers_done} answers and {run.atoms:,} atoms of {run.model} are gone for good."


def why_not(what: str, run: int, state: str) -> str:
    """Say in one line why a run is not resumed (``resume``), or not stopped (``stop``).

    Args:
        what: what was asked for.
        run: its number.
        state: as stored, or the phase of a run that is shown.
    """
    if state == "finished":
        return f"run {run} is finished: {'nothing is left to do' if what == 'resume' else 'there is nothing to stop'}"
    if state in RESUMABLE:
        return f"run {run} has stopped: " + ("wait a moment" if what == "resume" else "there is nothing to stop")
    if state in {"reading", "unreadable"}:
        return f"run {run} is being read" if state == "reading" else f"run {run} cannot be read"
    if what == "resume":
        return f"run {run} is being computed: it can be resumed once it has stopped"
    return f"run {run} is computed by another process: stop it there"


def delete(database: Path, run: int) -> None:
    """Delete a run; raises `StoreError`, also where a live process computes it."""
    with open_store(database) as store:
        store.delete_work(Work(run))
