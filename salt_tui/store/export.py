"""One run as a file for other programs: ``.csv`` (atoms), ``.jsonl`` (answers), ``.db`` (a database of its own).

Every export is written under a temporary name beside its target and put in place when it is complete.
"""

from __future__ import annotations

import base64
import errno
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from salt_tui.paths import expanded
from salt_tui.store import migrations
from salt_tui.store.csv_rows import write_csv
from salt_tui.store.errors import StoreError, StoreFailure, explain
from salt_tui.store.placing import Standing, complete_file, standing
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import UnitRecord
from salt_tui.store.results import StoredAnswer, StoredToken
from salt_tui.store.schema import CONFIDENCE_COLUMNS

_WAY_OUT = "choose another name or overwrite it with --force"
_FAILED_AT_WORK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""What a disk says that would take the file at another time; everything else is wrong with the place itself."""

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
    database, target = expanded(database, StoreError), expanded(target, StoreError)
    suffix = target.suffix.lower()
    write = _WRITERS.get(suffix)
    if write is None:
        raise StoreError(f"cannot tell the format of {target}: its name must end in {', '.join(_WRITERS)}")
    try:
        _refuse_target(target, database, overwrite=overwrite)
        with open_queries(database) as queries:
            queries.run_record(run)
            replaced: tuple[Standing, ...] = ("empty", "file") if overwrite else ()
            with complete_file(target, replaced, database=suffix == ".db") as temporary:
                write(queries, run, temporary)
    except FileExistsError as error:
        raise StoreError(f"{target} appeared meanwhile; {_WAY_OUT}") from error
    except sqlite3.Error as error:
        raise explain(error, target) from error
    except OSError as error:
        kind = StoreFailure if error.errno in _FAILED_AT_WORK else StoreError
        raise kind(f"{target} cannot be written ({error.strerror}); nothing was left behind") from error


def _refuse_target(target: Path, database: Path, *, overwrite: bool) -> None:
    found = standing(target)
    if found == "folder":
        raise StoreError(f"{target} is a folder; give a file name")
    if found == "special":
        raise StoreError(f"{target} is a device, pipe or socket; it was left as it is; give a file name")
    if found == "absent":
        return
    if database.exists() and target.samefile(database):
        raise StoreError(f"{target} is the database itself; choose another name")
    if not overwrite:
        raise StoreError(f"{target} exists; {_WAY_OUT}")


def _write_csv(queries: Queries, run: int, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        columns, rows = queries.atom_rows(run)
        write_csv(file, chain([columns], rows))


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
    # Most readers of JSON keep 53 bits of a number; a seed has 64.
    problem["seed"] = str(problem["seed"])
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
