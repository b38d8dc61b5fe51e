"""The list of stored runs: its rows, its filter, what may be done to a run; no drawing here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from salt_tui.store.results import RunListing
from salt_tui.store.store import open_store
from salt_tui.visible_text import visible

COLUMNS = ("run", "model", "tasks", "level", "answers", "atoms", "right", "state", "begun")


def run_cells(run: RunListing) -> tuple[str, ...]:
    """Return one row, a text per column of `COLUMNS`."""
    tasks = run.tasks[0] if len(run.tasks) == 1 else f"{len(run.tasks)} tasks"
    state = run.state if run.exact is not False else f"{run.state}, not exact"
    return (
        str(run.run),
        visible(run.model, 16),
        visible(tasks, 14),
        visible(run.difficulty if run.method == "regular" else f"{run.difficulty} {run.method}", 10),
        f"{run.answers_done}/{run.answers}",
        f"{run.atoms:,}",
        f"{run.correct / run.atoms:.2f}" if run.atoms else "–",
        visible(state, 21),
        begun(run.created_at),
    )


def begun(created_at: str) -> str:
    """Return the local day and time at which a run was made; the text itself where it is no time."""
    try:
        return f"{datetime.fromisoformat(created_at).astimezone():%m-%d %H:%M}"
    except ValueError:
        return visible(created_at, 16)


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
