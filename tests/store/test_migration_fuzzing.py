"""Files in any state, opened by a program that knows a second schema: migrated whole, or refused and left alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from salt_tui.store import migrations
from salt_tui.store.queries import open_queries
from salt_tui.store.store import StoreError, open_store
from tests.examples import examples
from tests.store.conftest import make_model, make_problem, make_run
from tests.store.test_migrations import add_tags_beside_views

pytestmark = pytest.mark.slow

CLAIMS_THE_SECOND = "INSERT INTO schema_version VALUES (2, 'add_tags_beside_views', 'now', NULL)"
STATES = (
    "DELETE FROM schema_version",
    "UPDATE schema_version SET version = -1",
    "UPDATE schema_version SET version = 99",
    "UPDATE schema_version SET schema_hash = NULL",
    "UPDATE schema_version SET schema_hash = '\x1b[2J'",
    "UPDATE schema_version SET name = 'add_tags_beside_views'",
    "DROP TABLE schema_version",
    "ALTER TABLE schema_version DROP COLUMN schema_hash",
    CLAIMS_THE_SECOND,
    "DROP TABLE unit",
    "DROP VIEW atom_view",
    "DROP VIEW run_summary",
    "DROP INDEX run_model",
    "CREATE TABLE tag (x)",
    "CREATE TABLE half (x)",
    "CREATE VIEW broken AS SELECT nothing FROM nowhere",
    "CREATE TRIGGER t AFTER UPDATE ON run BEGIN SELECT RAISE(ABORT, 'no'); END",
    "ALTER TABLE run ADD COLUMN title TEXT",
    "ALTER TABLE run DROP COLUMN note",
    "UPDATE problem SET run = 99",
    "PRAGMA application_id = 0",
    "PRAGMA user_version = 7",
    "PRAGMA journal_mode = DELETE",
)


def rows(path: Path, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def everything(path: Path) -> object:
    """Return all that a file holds, or its bytes where SQLite cannot read it."""
    try:
        names = [row[0] for row in rows(path, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        held = {name: sorted(rows(path, f'SELECT * FROM "{name}"'), key=repr) for name in names}
        return rows(path, "SELECT name, sql FROM sqlite_master ORDER BY name"), held
    except sqlite3.Error:
        return path.read_bytes()


@pytest.fixture(scope="module", autouse=True)
def second_version():
    """Let the program know a second version, once for all examples."""
    known = (*migrations.MIGRATIONS, add_tags_beside_views)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations.apply, "__defaults__", (known,))
        patch.setattr(migrations, "MIGRATIONS", known)
        yield


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Return a file of the first version."""
    path = tmp_path_factory.mktemp("first") / "x.db"
    with pytest.MonkeyPatch.context() as patch:
        first = migrations.MIGRATIONS[:1]
        patch.setattr(migrations.apply, "__defaults__", (first,))
        patch.setattr(migrations, "MIGRATIONS", first)
        with open_store(path) as store:
            store.create_run(make_model(), (b"x",), make_run(), [make_problem(0)])
    return path


def place(folder: Path, content: bytes) -> Path:
    for left in folder.glob("y.db*"):
        left.unlink()
    path = folder / "y.db"
    path.write_bytes(content)
    return path


def opened(path: Path, opener) -> str | None:
    """Open a file; return why not, in one visible line, or None."""
    why = None
    try:
        opener(path).close()
    except StoreError as error:
        why = str(error)
    if why is not None:
        assert why.isprintable()
        assert str(path) in why
    return why


FAMILIAR = settings(
    max_examples=examples(40),  # each writes and reads whole files
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@given(st.lists(st.sampled_from(STATES), min_size=1, max_size=3), st.sampled_from([open_store, open_queries]))
@example(["CREATE TABLE tag (x)"], open_store)
@example(["ALTER TABLE run ADD COLUMN title TEXT"], open_queries)
@example([CLAIMS_THE_SECOND], open_store)
@FAMILIAR
def test_a_file_of_any_schema_is_migrated_whole_or_left_as_it_is(original, tmp_path, states, opener):
    path = place(tmp_path, original.read_bytes())
    connection = sqlite3.connect(path, isolation_level=None)
    for state in states:
        try:
            connection.execute(state)
        except sqlite3.Error:
            continue  # one state may leave nothing for the next
    connection.close()
    before = everything(path)
    why = opened(path, opener)
    if why is not None:
        assert everything(path) == before, why
        return
    versions = rows(path, "SELECT version FROM schema_version ORDER BY version")
    assert versions[-1] == (2,)
    if CLAIMS_THE_SECOND not in states:
        assert rows(path, "SELECT title FROM run") == [("tiny 1",)]
        assert rows(path, "SELECT wording FROM problem") == [("text",)]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=40)), max_size=4),
    st.floats(0, 1.2),
    st.sampled_from([open_store, open_queries]),
)
@FAMILIAR
def test_a_file_of_any_bytes_is_opened_or_refused_in_one_line(original, tmp_path, edits, length, opener):
    content = bytearray(original.read_bytes())
    for share, data in edits:
        start = int(share * (len(content) - len(data)))
        content[start : start + len(data)] = data
    path = place(tmp_path, bytes(content[: int(length * len(content))]) if length <= 1 else bytes(content))
    opened(path, opener)
