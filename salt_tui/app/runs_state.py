"""The list of stored runs: its rows, its filter, what may be done to a run; no drawing here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.cells import cell_len

from salt_tui.app.live_lines import short
from salt_tui.app.terminal import DESIGN_WIDTH
from salt_tui.app.text_rows import broken, fit
from salt_tui.measure.header import statistics_words
from salt_tui.measure.running import RunningUnits, measure_running
from salt_tui.measure.two_runs import RunName
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import open_queries
from salt_tui.store.records import RESUMABLE, Work
from salt_tui.store.results import RunListing
from salt_tui.store.store import open_store
from salt_tui.visible_text import visible
from scoring.confidence import HEADLINE_FUNCTION

WIDTHS = {
    "run": 5, "model": 12, "tasks": 8, "level": 8, "answers": 7, "atoms": 7, "right": 5, "asked": 5, "AUROC": 5,
    "state": 11, "begun": 5,
}  # fmt: skip
"""Cells of each column; with a space after each and a scroll bar the ones that are shown fit the screen."""

SHOWN_FROM = {"atoms": 100, "level": DESIGN_WIDTH, "tasks": 70}
"""Columns of the screen from which on a column is shown, for those that are not always."""

ORDERS = ("newest", "model", "right", "asked", "AUROC", "atoms", "state")
"""What the list can be sorted by."""

MARK = "*"
LONGEST_MODEL = 48
SHORTEST_MODEL = 8
LONGEST_WORD = 24
"""Cells that a row may leave empty because the next word is too long for them."""


@dataclass(frozen=True, slots=True)
class RunNumbers:
    """What is measured of a run beside its list: means over tasks, by ``max_probability``; None where undefined."""

    recall: float | None
    auroc: float | None


def measure_run(database: Path, run: int) -> RunNumbers:
    """Measure a run as its report does; a million atoms take seconds.  Raises `StoreError`."""
    with open_queries(database) as queries:
        columns = queries.unit_columns(run, "atom", (HEADLINE_FUNCTION,))
    measured = measure_running(RunningUnits(columns, 0), HEADLINE_FUNCTION, draws=0)
    return RunNumbers(measured.values["recall"].value, measured.values["auroc_macro"].value)


def column_widths(width: int) -> dict[str, int]:
    """Return the columns and their cells for a screen of a width; the name of the model takes what is over."""
    shown = {name: cells for name, cells in WIDTHS.items() if width >= SHOWN_FROM.get(name, 0)}
    over = width - 1 - sum(shown.values()) - len(shown)
    shown["model"] = min(LONGEST_MODEL, max(6, shown["model"] + over))
    return shown


def run_cells(
    run: RunListing, now: datetime | None = None, numbers: RunNumbers | None = None, *, marked: bool = False
) -> dict[str, str]:
    """Return one row by column, uncut.

    Args:
        run: the run.
        now: the time, with a zone, from which today is told; None asks the clock.
        numbers: what was measured of it, None while nothing was.
        marked: whether it is marked.
    """
    return {
        "run": f"{MARK if marked else ' '}{run.run}",
        "model": visible(run.model),
        "tasks": visible(run.tasks[0]) if len(run.tasks) == 1 else f"{len(run.tasks)} tasks",
        "level": level(run),
        "answers": f"{run.answers_done}/{run.answers}",
        "atoms": f"{run.atoms:,}" if run.atoms < 1_000_000 else f"{run.atoms / 1e6:.1f} M",
        "right": _share(run.precision),
        "asked": "…" if numbers is None else _share(numbers.recall),
        "AUROC": "…" if numbers is None else _share(numbers.auroc),
        "state": run.state,
        "begun": begun(run.created_at, now),
    }


def _share(value: float | None) -> str:
    return "–" if value is None else short(value)


def ordered(runs: Sequence[RunListing], numbers: Mapping[int, RunNumbers], order: str) -> list[RunListing]:
    """Return runs in one of `ORDERS`: the greatest number first, undefined ones last, equals newest first."""

    def key(run: RunListing) -> tuple[bool, float]:
        measured = numbers.get(run.run)
        value = {
            "right": run.precision,
            "asked": None if measured is None else measured.recall,
            "AUROC": None if measured is None else measured.auroc,
            "atoms": float(run.atoms),
        }[order]
        return value is None, 0.0 if value is None else -value

    newest = sorted(runs, key=lambda run: -run.run)
    if order == "model":
        return sorted(newest, key=lambda run: run.model.casefold())
    if order == "state":
        return sorted(newest, key=lambda run: run.state)
    return newest if order == "newest" else sorted(newest, key=key)


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
    facts = (level(run), run.state, exact + statistics_words(run.statistics, ", "), when)
    room = rows * width - (rows - 1) * LONGEST_WORD
    note = visible(run.note or "")
    text = " · ".join(part for part in (note, model, *facts, visible(", ".join(run.tasks)), message) if part)
    if cell_len(text) > room:
        tail = " · ".join((*facts, f"{len(run.tasks)} task{'' if len(run.tasks) == 1 else 's'}"))
        model = fit(model, max(SHORTEST_MODEL, room - cell_len(tail) - 3))
        text = " · ".join(part for part in (fit(note, room // 2), model, tail, message) if part)
    return broken(text, width, rows)


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
    parts = (str(run.run), run.model, *run.tasks, run.difficulty, run.method, run.state, run.note or "")
    return " ".join(parts).casefold()


def consequence(runs: Sequence[RunListing]) -> str:
    """Say what deleting runs destroys."""
    answers, atoms = sum(run.answers_done for run in runs), sum(run.atoms for run in runs)
    of = runs[0].model if len(runs) == 1 else f"runs {', '.join(str(run.run) for run in runs)}"
    return f"{answers} answers and {atoms:,} atoms of {of} are gone for good."


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


def delete(database: Path, runs: Sequence[int]) -> None:
    """Delete runs; raises `StoreError`, also where a live process computes one."""
    with open_store(database) as store:
        for run in runs:
            store.delete_work(Work(run))


def set_note(database: Path, run: int, note: str) -> None:
    """Replace the note of a run; an empty one is none.  Raises `StoreError`."""
    with open_store(database) as store:
        store.set_note(run, note.strip() or None)


def own_run(run: int, database: Path) -> RunName:
    """Return the name of a run of the file that the app shows."""
    return RunName(database, str(run))


def named_run(text: str, database: Path) -> RunName:
    """Return the run that was typed: its number, ``latest`` or ``FILE.db:N``.

    Raises:
        StoreError: there is none; says which there are.
    """
    typed = text.strip()
    if not typed:
        raise StoreError("type the number of a run, or FILE.db:N for one of another file")
    name = RunName.of(typed, database)
    with open_queries(name.database) as queries:
        # Two spellings of one file are one file, so that a run is never compared with itself.
        place = database if is_same_file(queries.path, database) else queries.path
        return RunName(place, str(queries.find_run(name.run)))


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same place."""
    return one.expanduser().resolve() == other.expanduser().resolve()
