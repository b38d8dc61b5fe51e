"""The list of stored runs: its rows, its filter, what may be done to a run; no drawing here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from salt_tui.store.results import RunListing
from salt_tui.store.store import open_store
from salt_tui.visible_text import visible

DESIGN_WIDTH = 80

WIDTHS = {
    "run": 4, "model": 12, "tasks": 9, "level": 8, "answers": 9, "atoms": 7, "right": 5, "state": 11, "begun": 5
}  # fmt: skip
"""Cells of each column; with a space after each and a scroll bar they fit `DESIGN_WIDTH`."""

LEFT_OUT_WHEN_NARROW = ("level", "atoms")
LONGEST_MODEL = 48


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
        "model": visible(run.model, LONGEST_MODEL),
        "tasks": run.tasks[0] if len(run.tasks) == 1 else f"{len(run.tasks)} tasks",
        "level": level(run),
        "answers": f"{run.answers_done}/{run.answers}",
        "atoms": f"{run.atoms:,}" if run.atoms < 1_000_000 else f"{run.atoms / 1e6:.1f} M",
        "right": f"{run.correct / run.atoms:.2f}" if run.atoms else "–",
        "state": run.state,
        "begun": begun(run.created_at, now),
    }


def level(run: RunListing) -> str:
    """Return the difficulty, with the method where it is not the usual one."""
    return run.difficulty if run.method == "regular" else f"{run.difficulty} {run.method}"


def cut(text: str, cells: int) -> str:
    """Return a text that fits, with … for what it lost."""
    return visible(text, cells)


def details(run: RunListing) -> str:
    """Say what the cells of a run have no room for: whole names, the day and time, exactness, why it ended."""
    exact = {True: "exact", False: "NOT EXACT", None: "exactness not checked"}[run.exact]
    moment = _local(run.created_at)
    when = run.created_at if moment is None else f"{moment:%Y-%m-%d %H:%M}"
    parts = (run.model, level(run), ", ".join(run.tasks), when, run.state, exact, run.message or "")
    return visible(" · ".join(part for part in parts if part), 400)


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


def delete(database: Path, run: int) -> None:
    """Delete a run; raises `StoreError`, also where a live process computes it."""
    with open_store(database) as store:
        store.delete_run(run)
