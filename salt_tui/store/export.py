"""One run as a file for other programs: ``.csv`` (atoms), ``.jsonl`` (answers), ``.db`` (a database of its own).

Every export is written under a temporary name beside its target and put in place when it is complete.
"""

from __future__ import annotations

import base64
import csv
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from salt_tui.store import migrations
from salt_tui.store.errors import StoreError, explain
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import UnitRecord
from salt_tui.store.results import StoredAnswer, StoredToken
from salt_tui.store.schema import CONFIDENCE_COLUMNS

_COPIED_WITH_RUN = (
    ("model", "id = (SELECT model FROM source.run WHERE id = :run)"),
    ("vocabulary", "model = (SELECT model FROM source.run WHERE id = :run)"),
    ("run", "id = :run"),
    ("problem", "run = :run"),
    ("generation", "problem IN (SELECT id FROM source.problem WHERE run = :run)"),
)
_COPIED_WITH_GENERATION = ("token", "unit", "probe", "intervention")


def export_run(database: Path | str, run: int, target: Path | str, *, overwrite: bool = False) -> None:
    """Write one run to a file; its suffix names the format.

    Args:
        database: the file to read.
        run: the run's number.
        target: ``.csv``, one row per atom with the columns of ``atom_view``; ``.jsonl``, one answer per line with its
            units and tokens; ``.db``, a database with only this run, which every command can open.
        overwrite: replace a target that exists.

    Raises:
        StoreError: an unknown suffix, a target that exists or cannot be written, no such run; the target is then as
            it was before.
    """
    database, target = Path(database).expanduser(), Path(target).expanduser()
    write = _WRITERS.get(target.suffix.lower())
    if write is None:
        raise StoreError(f"cannot tell the format of {target}: its name must end in {', '.join(_WRITERS)}")
    if target.is_dir():
        raise StoreError(f"{target} is a folder; give a file name")
    if target.exists():
        if target.samefile(database):
            raise StoreError(f"{target} is the database itself; choose another name")
        if not overwrite:
            raise StoreError(f"{target} exists; choose another name or overwrite it")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}.new")
    with open_queries(database) as queries:
        queries.run_record(run)
        try:
            write(queries, run, temporary)
            if overwrite:
                temporary.replace(target)
            else:
                _put_in_place(temporary, target)
        except sqlite3.Error as error:
            raise explain(error, target) from error
        except OSError as error:
            raise StoreError(f"{target} cannot be written ({error.strerror}); nothing was left behind") from error
        finally:
            for suffix in ("", "-journal"):
                temporary.with_name(temporary.name + suffix).unlink(missing_ok=True)


def _put_in_place(temporary: Path, target: Path) -> None:
    try:
        target.hardlink_to(temporary)
    except FileExistsError as error:
        raise StoreError(f"{target} appeared meanwhile; choose another name or overwrite it") from error
    except OSError:
        temporary.rename(target)  # a file system without hard links


def _write_csv(queries: Queries, run: int, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        columns, rows = queries.atom_rows(run)
        writer.writerow(columns)
        writer.writerows(rows)


def _write_jsonl(queries: Queries, run: int, path: Path) -> None:
    record = queries.run_record(run)
    with path.open("w", encoding="utf-8") as file, queries.snapshot():
        for answer in queries.answers(run):
            units = [] if answer.generation is None else queries.units(answer.generation)
            tokens = [] if answer.generation is None else queries.tokens(answer.generation)
            line = {
                "run": run,
                "model": record.model.name,
                **_answer(answer),
                "units": [_unit(unit) for unit in units],
                "tokens": [_token(token) for token in tokens],
            }
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")


def _answer(answer: StoredAnswer) -> dict[str, Any]:
    values = asdict(answer)
    problem = values.pop("problem")
    reply = values.pop("reply")
    return {**problem, **values, **_bytes("reply", reply)}


def _unit(unit: UnitRecord) -> dict[str, Any]:
    values = asdict(unit)
    del values["confidences"]
    return {**values, **dict(zip(CONFIDENCE_COLUMNS, unit.confidences, strict=True))}


def _token(token: StoredToken) -> dict[str, Any]:
    record = token.record
    return {
        "position": record.position,
        "id": record.id,
        **_bytes("text", token.piece),
        "byte_start": record.start,
        "byte_end": record.end,
        "log_probability": record.log_probability,
        "entropy": record.entropy,
        "alternatives": list(zip(record.alternatives, record.alternative_log_probabilities, strict=True)),
        "forced": record.forced,
    }


def _bytes(name: str, value: bytes | None) -> dict[str, str | None]:
    """Return bytes as text where they are whole characters, else as text with U+FFFD and beside it in base64."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name: value.decode(errors="replace"), f"{name}_base64": base64.b64encode(value).decode()}


def _write_database(queries: Queries, run: int, path: Path) -> None:
    with closing(sqlite3.connect(path.absolute().as_uri(), uri=True, isolation_level=None)) as connection:
        migrations.apply(connection)
        connection.execute("ATTACH ? AS source", (f"{queries.path.absolute().as_uri()}?mode=ro",))
        connection.execute("BEGIN IMMEDIATE")
        for table, condition in _copies():
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM source.{table} WHERE {condition}", {"run": run})
        connection.execute(
            "UPDATE run SET state = iif(state = 'running', 'interrupted', state), lease_pid = NULL,"
            " lease_host = NULL, lease_process_start = NULL, lease_heartbeat = NULL"
        )
        connection.execute("COMMIT")


def _copies() -> Iterator[tuple[str, str]]:
    yield from _COPIED_WITH_RUN
    for table in _COPIED_WITH_GENERATION:
        yield table, "generation IN (SELECT id FROM main.generation)"


_WRITERS: dict[str, Callable[[Queries, int, Path], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
    ".db": _write_database,
}
