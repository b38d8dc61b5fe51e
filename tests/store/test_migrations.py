"""The machinery of migrations, exercised by a made-up second version: a new column, a new table, a filled value."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from salt_tui.store import migrations, opening
from salt_tui.store.queries import open_queries
from salt_tui.store.store import StoreError, open_store


def add_tags(database):
    """Add a table that refers to runs, and rebuild ``run`` with a column that is filled from another."""
    database.execute(
        "CREATE TABLE tag (run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE, name TEXT NOT NULL) STRICT"
    )
    database.execute("ALTER TABLE run ADD COLUMN title TEXT")
    database.execute("UPDATE run SET title = model_name || ' ' || id")
    database["problem"].transform(rename={"text": "wording"}, drop=set())


def fail(database):
    """Do half of something."""
    database.execute("CREATE TABLE half (x)")
    database.execute("SELECT nonsense")


def break_a_key(database):
    """Leave a row that refers to nothing."""
    database.execute("INSERT INTO vocabulary VALUES (99, 0, x'00')")


VIEWS = ("atom_view", "reliability_view", "run_summary")


def add_tags_beside_views(database):
    """Do as `add_tags`; a table that a view reads is rebuilt between dropping and making the view."""
    texts = [database.execute("SELECT sql FROM sqlite_master WHERE name = ?", (view,)).fetchone()[0] for view in VIEWS]
    for view in VIEWS:
        database.execute(f"DROP VIEW {view}")
    add_tags(database)
    for text in texts:
        database.execute(text)


@pytest.fixture
def second_version(monkeypatch):
    """Let the program know a second version."""
    known = (*migrations.MIGRATIONS, add_tags_beside_views)
    monkeypatch.setattr(migrations, "MIGRATIONS", known)
    monkeypatch.setattr(migrations.apply, "__defaults__", (known,))


@pytest.fixture
def first_version(path, model, run_record, problem):
    """Store a run under the first version and return the file's path."""
    with open_store(path) as store:
        store.create_run(model(), (b"x",), run_record(), [problem(0)])
    return path


def rows(path, statement):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def schema(path):
    return rows(path, "SELECT name, sql FROM sqlite_master ORDER BY name")


@pytest.mark.parametrize("opener", [open_store, open_queries])
def test_an_older_file_is_brought_up_to_date_by_whoever_opens_it(first_version, second_version, opener):
    opener(first_version).close()
    assert rows(first_version, "SELECT title FROM run") == [("tiny 1",)]
    assert rows(first_version, "SELECT wording FROM problem") == [("text",)]
    assert rows(first_version, "SELECT count(*) FROM tag") == [(0,)]
    versions = rows(first_version, "SELECT version, name, schema_hash IS NULL FROM schema_version ORDER BY version")
    assert versions == [(1, "create_first_schema", 0), (2, "add_tags_beside_views", 1)]
    before = first_version.read_bytes()
    opener(first_version).close()
    assert first_version.read_bytes() == before
    with open_store(first_version) as store:
        assert store._connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


@pytest.mark.parametrize(("migration", "error"), [(fail, "nonsense"), (break_a_key, "broke a foreign key")])
def test_a_migration_that_fails_leaves_no_trace(first_version, migration, error):
    connection = opening.connect_writer(first_version)
    known = (*migrations.MIGRATIONS, add_tags_beside_views)
    assert migrations.apply(connection, known) == ["add_tags_beside_views"]
    assert migrations.apply(connection, known) == []
    before = schema(first_version)
    with pytest.raises(sqlite3.Error, match=error):
        migrations.apply(connection, (*known, migration))
    assert schema(first_version) == before
    assert len(rows(first_version, "SELECT * FROM schema_version")) == 2
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    connection.close()


def test_a_failed_update_is_one_line_and_the_file_stays_as_it_was(first_version, monkeypatch):
    known = (*migrations.MIGRATIONS, fail)
    monkeypatch.setattr(migrations, "MIGRATIONS", known)
    monkeypatch.setattr(migrations.apply, "__defaults__", (known,))
    before = schema(first_version)
    for opener in (open_store, open_queries):
        with pytest.raises(StoreError, match="nonsense") as caught:
            opener(first_version)
        assert "\n" not in str(caught.value)
    assert schema(first_version) == before


def test_two_that_open_at_once_update_it_once(first_version, second_version):
    begin = threading.Barrier(4)
    failed = []

    def work(opener):
        begin.wait()
        try:
            opener(first_version).close()
        except Exception as error:
            failed.append(error)

    threads = [
        threading.Thread(target=work, args=(opener,)) for opener in (open_store, open_queries, open_store, open_queries)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert rows(first_version, "SELECT title FROM run") == [("tiny 1",)]
    assert len(rows(first_version, "SELECT * FROM schema_version")) == 2


def test_a_new_file_passes_through_every_version(path, second_version):
    open_store(path).close()
    assert [row[0] for row in rows(path, "SELECT version FROM schema_version ORDER BY version")] == [1, 2]


def test_an_older_file_in_a_folder_that_cannot_be_written_says_what_to_do(first_version, second_version, monkeypatch):
    monkeypatch.setattr(opening.os, "access", lambda place, mode: False)
    with pytest.raises(StoreError, match=r"older salt-tui, .* copy it and use the copy"):
        open_queries(first_version)
