"""``salt-tui runs``: the stored runs and their studies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from salt_tui.commands.failures import DONE
from salt_tui.measure.header import run_header
from salt_tui.paths import database_path
from salt_tui.reports.json_report import header_data
from salt_tui.reports.text_tables import TextTable, number
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.results import RunListing, StudyListing
from salt_tui.visible_text import visible


def list_runs(database: Path | None, *, json_output: bool) -> int:
    """Print all runs, newest first, each with its studies."""
    with open_queries(database or database_path()) as queries, queries.snapshot():
        listings = queries.list_runs()
        if json_output:
            data = {"runs": [_listing_data(queries, listing) for listing in listings]}
            print(json.dumps(data, ensure_ascii=False, allow_nan=False))
            return DONE
    if not listings:
        print("no runs; `salt-tui run` makes one")
        return DONE
    for line in _table(listings).as_text():
        print(line)
    return DONE


def _listing_data(queries: Queries, listing: RunListing) -> dict[str, Any]:
    return {
        **header_data(run_header(queries.run_record(listing.run), queries.path)),
        "answers_done": listing.answers_done,
        "precision": listing.precision,
        "note": listing.note,
        "studies": [
            {"study": str(study.work), "kind": study.kind, "state": study.state, "exact": study.exact}
            for study in listing.studies
        ],
    }


def _state(listing: RunListing | StudyListing) -> str:
    return f"{visible(listing.state)}, not exact" if listing.exact is False else visible(listing.state)


def _table(listings: list[RunListing]) -> TextTable:
    rows: list[tuple[str, ...]] = []
    told = any(listing.statistics != "vocabulary" for listing in listings)
    for listing in listings:
        temperature = (listing.sampling or {}).get("temperature", 0)
        tasks = listing.tasks[0] if len(listing.tasks) == 1 else f"{len(listing.tasks)} tasks"
        rows.append(
            (
                str(listing.run),
                visible(listing.model, 28),
                _state(listing),
                listing.created_at[:16].replace("T", " "),
                visible(listing.difficulty, 10),
                visible(listing.method, 8),
                f"{temperature:g}",
                visible(tasks, 20),
                f"{listing.answers_done}/{listing.answers}",
                number(listing.precision),
                *([listing.statistics.replace("_", "-")] if told else []),
            )
        )
        rest = [""] * (7 if told else 6)
        rows += [
            (f"{study.work}", f"  {study.kind}", _state(study), study.created_at[:16].replace("T", " "), *rest)
            for study in listing.studies
        ]
    heads = ("run", "model", "state", "created", "difficulty", "method", "temp", "tasks", "answers", "precision")
    return TextTable("", (*heads, *(("statistics",) if told else ())), tuple(rows), left=8)
