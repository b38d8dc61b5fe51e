"""Exports as tables: parquet beside CSV, and a row per token."""

from __future__ import annotations

import csv
from dataclasses import replace

import pyarrow.parquet
import pytest

from salt_tui.exports.export import export_work
from salt_tui.exports.formats import ExportOptions
from salt_tui.store.queries import open_queries
from salt_tui.store.records import Work
from salt_tui.store.store import StoreError


def as_text(value):
    return "" if value is None else value.hex() if isinstance(value, bytes) else str(value)


@pytest.mark.parametrize("tokens", [False, True])
def test_parquet_holds_the_cells_of_csv_with_types(path, filled, tmp_path, tokens):
    options = ExportOptions(tokens=tokens)
    for suffix in ("csv", "parquet"):
        export_work(path, Work(filled), tmp_path / f"run.{suffix}", options=options)
    with (tmp_path / "run.csv").open(newline="") as file:
        wanted = list(csv.DictReader(file))
    found = pyarrow.parquet.read_table(tmp_path / "run.parquet").to_pylist()
    assert [{name: as_text(cell) for name, cell in row.items()} for row in found] == wanted
    types = {name: type(cell) for row in found for name, cell in row.items() if cell is not None}
    assert types["run"] is int
    assert types["log_probability" if tokens else "max_probability"] is float


def test_a_row_per_token_has_bytes_and_alternatives(path, filled, tmp_path):
    export_work(path, Work(filled), tmp_path / "run.parquet", options=ExportOptions(tokens=True))
    rows = pyarrow.parquet.read_table(tmp_path / "run.parquet").to_pylist()
    with open_queries(path) as queries:
        stored = [
            token
            for answer in queries.answers(filled)
            if answer.generation
            for token in queries.tokens(answer.generation)
        ]
    assert [(row["id"], row["log_probability"], row["bytes"]) for row in rows] == [
        (token.record.id, token.record.log_probability, token.piece) for token in stored
    ]
    assert rows[0]["alternatives"].startswith('[["A", -0.25]')


def test_a_value_of_another_type_is_named(path, create, begin, finish, atom, tmp_path, monkeypatch):
    run = create(count=1)
    finish(begin(run), [replace(atom(0), text="x")])
    from salt_tui.store.queries import Queries

    names, rows = [], []
    with open_queries(path) as queries:
        columns, found = queries.atom_rows(run)
        names, rows = columns, [list(row) for row in found]
    rows[0][names.index("max_probability")] = "much"
    monkeypatch.setattr(Queries, "atom_rows", lambda self, number: (names, iter(rows)))
    with pytest.raises(StoreError, match="column max_probability holds what is no double"):
        export_work(path, Work(run), tmp_path / "run.parquet")
    assert not (tmp_path / "run.parquet").exists()


@pytest.mark.parametrize("suffix", ["jsonl", "db"])
def test_rows_per_token_are_for_tables(path, filled, tmp_path, suffix):
    with pytest.raises(StoreError, match=r"--tokens is for \.csv and \.parquet"):
        export_work(path, Work(filled), tmp_path / f"run.{suffix}", options=ExportOptions(tokens=True))
