"""``docs/database.md`` names every table, view and column, and its queries run and give the right numbers."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from salt_tui.store.records import SignalRecord, Work

DOCUMENT = (Path(__file__).parents[2] / "docs" / "database.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", DOCUMENT, flags=re.DOTALL)


@pytest.fixture
def connection(path, filled):
    opened = sqlite3.connect(path)
    yield opened
    opened.close()


def sections():
    """Return the text under each heading of the third level, up to the next heading."""
    parts = re.split(r"^#{2,3} ", DOCUMENT, flags=re.MULTILINE)
    return {part.partition("\n")[0].strip(): part for part in parts}


def test_every_table_view_and_column_is_described(connection):
    found = sections()
    names = [
        row[0]
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        if not row[0].startswith("sqlite_")
    ]
    assert len(names) == 16
    missing = []
    for name in names:
        described = set(re.findall(r"`\"?([a-z0-9_]+)\"?`", found.get(name, "")))
        if name == "atom_view":
            described |= set(re.findall(r"^\| `([a-z_]+)` \| .* (?:lower|higher) \|$", DOCUMENT, flags=re.MULTILINE))
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
        missing += [f"{name}.{column}" for column in columns - described]
    assert missing == []


def test_every_enumeration_is_described(connection):
    statements = [row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table'") if row[0]]
    values = {
        value
        for sql in statements
        for part in re.findall(r" IN\s*\(([^)]*)\)", sql)
        for value in re.findall(r"'(\w+)'", part)
    }
    assert len(values) > 25
    assert sorted(value for value in values if f"`{value}`" not in DOCUMENT) == []


def test_there_are_at_least_three_queries_and_all_run(connection):
    assert len(QUERIES) >= 3
    for query in QUERIES:
        assert connection.execute(query).description


def test_the_surest_wrong_atoms_come_first(connection):
    rows = connection.execute(QUERIES[0]).fetchall()
    assert [row[-1] for row in rows] == [1.0, 0.97, 0.95, 0.9]


def test_the_calibration_error_is_the_one_counted_by_hand(connection):
    # Bins: 0.2 correct; 0.9 wrong; 0.95 wrong and 1.0 correct together.  (0.8 + 0.9 + 2 · 0.475) / 4.
    ((run, task, atoms, ece),) = connection.execute(QUERIES[1]).fetchall()
    assert (run, task, atoms) == (1, "dna", 4)
    assert ece == pytest.approx((0.8 + 0.9 + 2 * 0.475) / 4)


def test_two_runs_are_compared_by_problem(connection, create, begin, finish, atom):
    second = create(count=1)
    finish(begin(second), [atom(0), atom(1), atom(2)])
    assert connection.execute(QUERIES[2]).fetchall() == [("dna", "dna0", 1, 3)]


def test_a_run_without_atoms_counts_as_none_right(connection, create, begin, finish):
    second = create(count=1)
    finish(begin(second), [])
    assert connection.execute(QUERIES[2]).fetchall() == [("dna", "dna0", 1, 0)]


def test_an_answer_reads_token_by_token(connection):
    rows = connection.execute(QUERIES[3]).fetchall()
    assert [(position, piece, round(probability, 3)) for position, piece, probability, _ in rows] == [
        (0, b"A", 0.779), (1, b"A", 0.779), (2, b"A", 0.779),
    ]  # fmt: skip


def test_a_signal_stands_beside_the_confidence_of_its_atom(connection, store, filled):
    store.release(Work(filled), "interrupted")
    store.add_signals(
        Work(filled), [SignalRecord(1, "atom", index, "agreement", value / 4) for index, value in ((0, 1), (1, 3))]
    )
    assert connection.execute(QUERIES[4]).fetchall() == [
        ("dna", 0, 0, "correct", 0.2, 0.25),
        ("dna", 0, 1, "wrong", 0.9, 0.75),
    ]
