"""What may stand at the path: nothing, ours, something else, something broken, something newer."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from salt_tui.store import migrations, opening, schema
from salt_tui.store.queries import open_queries
from salt_tui.store.store import StoreError, open_store

OPENERS = [open_store, open_queries]


def one_line(caught):
    return "\n" not in str(caught.value) and "Traceback" not in str(caught.value)


def test_a_new_file_is_complete_marked_and_alone_in_its_new_folder(tmp_path):
    path = tmp_path / "deep" / "er" / "x y?#%.db"
    open_store(path).close()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert path.read_bytes()[68:72] == b"SALT"
    connection = sqlite3.connect(path)
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    assert tables >= {
        "run", "model", "vocabulary", "problem", "generation", "token", "unit", "study", "signal", "activation",
        "intervention", "schema_version", "atom_view", "reliability_view", "run_summary",
    }  # fmt: skip
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("SELECT version, name FROM schema_version").fetchall() == [(1, "create_first_schema")]
    connection.close()


def test_the_writer_has_foreign_keys_wal_and_a_timeout(path):
    connection = opening.connect_writer(path, busy_timeout=1.5)
    settings = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("foreign_keys", "busy_timeout")]
    connection.close()
    assert settings == [1, 1500]


def test_an_empty_file_is_taken_as_new(path):
    path.touch()
    with pytest.raises(StoreError, match="is empty: `salt-tui run` makes a database of it"):
        open_queries(path)
    open_store(path).close()
    with open_queries(path) as queries:
        assert queries.list_runs() == []


def test_reading_leaves_nothing_beside_the_file(path, store, create):
    create()
    store.close()
    content = path.read_bytes()
    for _ in range(2):
        with open_queries(path) as one, open_queries(path) as other:
            assert len(one.list_runs()) == len(other.list_runs()) == 1
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                one._connection.execute("DELETE FROM run")
        assert [entry.name for entry in path.parent.iterdir() if entry.name.startswith(path.name)] == [path.name]
    assert path.read_bytes() == content


def test_reading_beside_a_writer_takes_nothing_away(path, store, create):
    create()
    with open_queries(path) as queries:
        assert len(queries.list_runs()) == 1
    create()
    with open_queries(path) as queries:
        assert len(queries.list_runs()) == 2
    store.close()
    with open_queries(path) as queries:
        assert len(queries.list_runs()) == 2


def test_a_file_on_a_full_disk_is_read_and_not_written(path, store, create, monkeypatch):
    create()
    store.close()
    whole = opening.connect

    def without_room(place, mode, timeout):
        if mode == "ro&immutable=1":
            return whole(place, mode, timeout)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_IOERR_SHMSIZE, "SQLITE_IOERR_SHMSIZE"
        raise error

    monkeypatch.setattr(opening, "connect", without_room)
    with open_queries(path) as queries:
        assert len(queries.list_runs()) == 1
    with pytest.raises(StoreError, match=r"the disk that holds .*x\.db is full") as caught:
        open_store(path)
    assert one_line(caught)


def test_opening_again_changes_nothing(path):
    open_store(path).close()
    before = path.read_bytes()
    open_store(path).close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("opener", OPENERS)
def test_a_database_of_something_else_is_never_touched(path, opener):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE run (id)")
    connection.commit()
    connection.close()
    before, modified = path.read_bytes(), path.stat().st_mtime_ns
    with pytest.raises(StoreError, match="something else") as caught:
        opener(path)
    assert one_line(caught)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, modified)
    assert [entry.name for entry in path.parent.iterdir() if entry.name.startswith("x.db")] == ["x.db"]


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("content", [b"hello, I am a text\n", b"\0" * 4096, b"SQLite"])
def test_a_file_that_is_no_database_is_left_alone(path, opener, content):
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a database") as caught:
        opener(path)
    assert one_line(caught)
    assert path.read_bytes() == content


@pytest.mark.parametrize("opener", OPENERS)
def test_a_folder_is_refused(tmp_path, opener):
    with pytest.raises(StoreError, match="is a folder") as caught:
        opener(tmp_path)
    assert one_line(caught)


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_file_is_left_as_it_is(tmp_path, monkeypatch, time_limit, make_special, opener, linked):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    name = special = Path("special")
    make_special(special)
    if linked:
        name = Path("link")
        name.symlink_to(special)
    before = special.stat()
    with pytest.raises(StoreError, match="is a device, pipe or socket; it was left as it is") as caught:
        opener(name)
    assert one_line(caught)
    after = special.stat()
    assert (after.st_ino, after.st_mode, after.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)
    assert name.is_symlink() == linked


@pytest.mark.parametrize("content", [None, b""])
def test_a_link_stays_a_link_and_the_database_is_where_it_leads(path, content):
    far = path.parent / "far"
    far.mkdir()
    real = far / "real.db"
    if content is not None:
        real.write_bytes(content)
    path.symlink_to(real)
    open_store(path).close()
    with open_queries(path) as queries:
        assert queries.list_runs() == []
    assert path.is_symlink()
    assert real.read_bytes()[68:72] == b"SALT"
    assert [entry.name for entry in path.parent.iterdir() if entry.name.startswith(".")] == []


@pytest.mark.parametrize("opener", OPENERS)
def test_links_in_a_circle_and_names_too_long_are_one_line(path, opener):
    path.symlink_to(path)
    for name in (path, path.with_name("n" * 256)):
        with pytest.raises(StoreError, match="cannot be read") as caught:
            opener(name)
        assert one_line(caught)
        assert str(caught.value).startswith(str(name))


def test_the_longest_name_can_be_made(path):
    name = path.with_name("n" * 245)  # SQLite needs room for -journal
    open_store(name).close()
    assert [entry.name for entry in path.parent.iterdir()] == [name.name]


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("name", [":memory:", "file:x.db", "file:x/y.db", "file::memory:?cache=shared"])
def test_names_that_mean_something_else_to_sqlite_are_refused(tmp_path, monkeypatch, opener, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="is no file name") as caught:
        opener(name)
    assert one_line(caught)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreError, match="folder"):
        opener(".")


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_new_database_is_not_put_beside_the_journal_of_one_that_is_gone(path, suffix, empty):
    left = path.with_name(path.name + suffix)
    left.write_bytes(b"frames of a database that was removed")
    if empty:
        path.touch()
    with pytest.raises(StoreError, match="belongs to another database") as caught:
        open_store(path)
    assert one_line(caught)
    assert left.read_bytes() == b"frames of a database that was removed"
    assert path.exists() == empty
    left.unlink()
    open_store(path).close()


def test_what_appears_while_the_database_is_made_is_kept(path, monkeypatch):
    apply = migrations.apply

    def slow(connection):
        applied = apply(connection)
        path.write_text("precious")
        return applied

    monkeypatch.setattr(migrations, "apply", slow)
    with pytest.raises(StoreError, match="not a database"):
        open_store(path)
    assert path.read_text() == "precious"
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("opener", OPENERS)
def test_a_newer_schema_is_refused(path, opener):
    open_store(path).close()
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO schema_version VALUES (99, 'from_the_future', '2030', NULL)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match=r"newer salt-tui \(schema 99, this one knows 1\)") as caught:
        opener(path)
    assert one_line(caught)


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize(
    "change", ["UPDATE schema_version SET schema_hash = 'x'", "ALTER TABLE schema_version DROP COLUMN schema_hash"]
)
def test_a_file_of_another_development_version_is_refused_and_left_as_it_is(path, opener, change):
    open_store(path).close()
    connection = sqlite3.connect(path)
    connection.execute(change)
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"another development version .* move it away or choose another") as caught:
        opener(path)
    assert one_line(caught)
    assert path.read_bytes() == before


@pytest.mark.parametrize("opener", OPENERS)
def test_a_damaged_file_is_one_line(path, opener):
    open_store(path).close()
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    with pytest.raises(StoreError) as caught:
        opener(path)
    assert one_line(caught)


def test_a_reader_never_creates_a_file_and_cannot_write(path, tmp_path):
    with pytest.raises(StoreError, match="no database at"):
        open_queries(path)
    assert not path.exists()
    open_store(path).close()
    with open_queries(path) as queries, pytest.raises(sqlite3.OperationalError, match="readonly"):
        queries._connection.execute("DELETE FROM run")


def test_a_file_in_the_way_of_the_folder_is_one_line(path):
    path.write_text("a file")
    with pytest.raises(StoreError, match="cannot be made") as caught:
        open_store(path / "y.db")
    assert one_line(caught)


READ_ONLY = """
import json, os, sys
import sqlite_utils
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import open_queries
from salt_tui.store.store import open_store
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
answers = []
for opener, name in ((open_store, "new.db"), (open_store, "old.db"), (open_queries, "old.db")):
    try:
        with opener(sys.argv[1] + "/" + name) as opened:
            answers.append(str(len(opened.list_runs())))
    except StoreError as error:
        answers.append(str(error))
print(json.dumps(answers))
"""


@pytest.mark.process
def test_a_folder_without_write_permission_is_one_line_and_can_be_read():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        open_store(folder / "old.db").close()
        folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(folder)], capture_output=True, text=True, check=False
        )
        folder.chmod(0o755)
        left = [entry.name for entry in folder.iterdir()]
    assert done.returncode == 0, done.stderr
    new, old, read = json.loads(done.stdout)
    assert new == old == f"the folder {folder} cannot be written; choose another place with --db"
    assert read == "0"
    assert left == ["old.db"]


def test_every_confidence_function_has_a_column(path):
    connection = opening.connect_writer(path)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(unit)")]
    connection.close()
    assert tuple(columns[-9:]) == schema.CONFIDENCE_COLUMNS


def test_a_file_whose_log_was_copied_in_half_is_ours_and_whole(path, tmp_path, model, run_record, problem):
    # What a full disk leaves, and what another program sees while the log is being copied: page 1 is new already.
    store = open_store(path)
    store.create_run(
        model(), tuple(bytes([value]) for value in range(256)), run_record(), [problem(n) for n in range(200)]
    )
    for name in ("x.db", "x.db-wal"):
        shutil.copy(tmp_path / name, tmp_path / name.replace("x", "half"))
    store.close()
    half = tmp_path / "half.db"
    with half.open("r+b") as file:
        file.write(path.read_bytes()[:4096])
    assert half.stat().st_size < path.stat().st_size
    assert opening.identify(half) == "ours"
    with open_store(half) as opened:
        assert len(opened.pending_problems(1)) == 200
    half.write_bytes(path.read_bytes()[:4096])
    with pytest.raises(StoreError, match="is damaged"):
        opening.identify(half)


def test_a_folder_before_two_dots_need_not_exist(tmp_path):
    path = tmp_path / "missing" / ".." / "x.db"
    open_store(path).close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.db"]
    with open_queries(path) as queries:
        assert queries.list_runs() == []
