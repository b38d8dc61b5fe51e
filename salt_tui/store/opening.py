"""Opening the file: what it is, who made it, and a connection with the settings that every reader and writer needs."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Literal

from salt_tui.store import left_journal, migrations, schema
from salt_tui.store.connection import Mode, connect
from salt_tui.store.errors import StoreError, explain
from salt_tui.store.placing import complete_file, remove_unfinished, standing
from salt_tui.visible_text import visible

BUSY_TIMEOUT = 5.0
"""Seconds to wait for another program's write lock."""

MEMORY, URI = ":memory:", "file:"
"""Names that mean a database in memory and an address elsewhere; a file called so would be a surprise."""

Kind = Literal["absent", "empty", "ours", "foreign"]


_LOOKS, _BETWEEN_LOOKS = 10, 0.02
"""How often a file that seems damaged is looked at, and the seconds between: copying a log takes milliseconds."""


def identify(path: Path) -> Kind:
    """Say what a path holds without locking, changing or creating anything.

    SQLite reads the header, never ``open``: closing any other descriptor of a file drops all locks that this process
    has on it, and another program would then take the file from under a run.

    Raises:
        StoreError: a folder, a device, pipe or socket, a file that cannot be read, a file that is no database, or a
            name with a meaning of its own to SQLite.
    """
    if path.parts[:1] == (MEMORY,) or str(path).startswith(URI):
        raise StoreError(
            f"{path} is no file name: SQLite takes {MEMORY} and {URI}... for something else; choose another with --db"
        )
    try:
        found = standing(path)
        if found == "folder":
            raise StoreError(f"{path} is a folder, not a database; give a file name with --db")
        if found == "special":
            raise StoreError(f"{path} is a device, pipe or socket; it was left as it is; choose a file with --db")
        if found in ("absent", "empty"):
            return found
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}); choose another file with --db") from error
    try:
        found_id = _settled_application_id(path)
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_NOTADB:
            raise StoreError(
                f"{path} is not a database; it was left as it is; choose another file with --db"
            ) from error
        raise explain(error, path) from error
    except UnicodeDecodeError as error:
        # SQLite quotes a damaged schema in its message, and that is no text.
        raise StoreError(
            f"{path} is damaged (its schema is no text); restore a copy or choose another file with --db"
        ) from error
    return "ours" if found_id == schema.APPLICATION_ID else "foreign"


def _settled_application_id(path: Path) -> int:
    """Return the id in the header of a file, looking again while another program copies its log into it.

    The log may be gone a moment after the file was read half copied.  A file that is damaged stays so, and raises.
    """
    for _ in range(_LOOKS - 1):
        try:
            return _read_application_id(path)
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
                raise
            time.sleep(_BETWEEN_LOOKS)
    return _read_application_id(path)


def _read_application_id(path: Path) -> int:
    with closing(connect(path, "ro&immutable=1", BUSY_TIMEOUT)) as connection:
        return _application_id(connection, path)


def _application_id(connection: sqlite3.Connection, path: Path) -> int:
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error as error:
        log = Path(f"{os.path.realpath(path)}-wal")
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT or standing(log) != "file":
            raise
        # While the log is copied into the file, or after a full disk stopped that, the file alone is shorter than its
        # header says.  Opening it for work reads the log as well, and then finds what is really damaged.
        connection.execute("PRAGMA writable_schema = ON")
    found: int = connection.execute("PRAGMA application_id").fetchone()[0]
    return found


def connect_writer(path: Path, busy_timeout: float = BUSY_TIMEOUT) -> sqlite3.Connection:
    """Open a file for writing, creating it and its folder, and bring its schema up to date.

    Raises:
        StoreError: one line that says why the file cannot be used and what to do.
    """
    kind = identify(path)
    _refuse_foreign(path, kind)
    _need_writable_folder(path)
    remove_unfinished(Path(os.path.realpath(path)).parent)
    try:
        if kind != "ours":
            _create(path)
        else:
            left_journal.refuse_foreign(path)
        connection = connect(path, "rw", busy_timeout)
    except sqlite3.Error as error:
        raise explain(error, path) from error
    try:
        _check_version(connection, path)
        _migrate(connection, path)
        connection.execute("PRAGMA foreign_keys = ON")
        # In WAL mode NORMAL loses nothing when the program dies and cannot corrupt the file when the power fails;
        # at worst the last commits before a power cut are gone, and resume computes them again.
        journal = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        connection.execute(f"PRAGMA synchronous = {'NORMAL' if journal == 'wal' else 'FULL'}")
    except sqlite3.Error as error:
        connection.close()
        raise explain(error, path) from error
    except StoreError:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring a schema up to date; where tables are not those of their version, a migration may fail in any way."""
    try:
        migrations.apply(connection)
    except sqlite3.Error:
        raise
    except Exception as error:
        detail = visible(" ".join(str(error).split()), 100)
        raise StoreError(
            f"{path} cannot be brought up to date ({type(error).__name__}: {detail}); its tables are not those of its"
            " version; it was left as it was; restore a copy or choose another file with --db"
        ) from error


def connect_reader(path: Path, busy_timeout: float = BUSY_TIMEOUT) -> sqlite3.Connection:
    """Open an existing file of ours for reading only; never creates one, and changes nothing but an older schema.

    Raises:
        StoreError: one line that says why the file cannot be read and what to do.
    """
    kind = identify(path)
    if kind == "empty":
        raise StoreError(f"{path} is empty: `salt-tui run` makes a database of it, --db names another")
    if kind == "absent":
        raise StoreError(f"there is no database at {path}; `salt-tui run` makes one, --db names another")
    _refuse_foreign(path, kind)
    # A log of another file would be read as if it were this one's, by every question alike.
    left_journal.refuse_foreign(path, reading=True)
    mode = _reading_mode(Path(os.path.realpath(path)))
    try:
        connection, older = _open_for_reading(path, mode, busy_timeout)
    except sqlite3.Error as error:
        if mode != "rw" or getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_IOERR_SHMSIZE:
            raise explain(error, path) from error
        # The disk is full: what is in the file can be read all the same, and nobody can write to it.
        mode = "ro&immutable=1"
        try:
            connection, older = _open_for_reading(path, mode, busy_timeout)
        except sqlite3.Error as failure:
            raise explain(failure, path) from failure
    if not older:
        return connection
    connection.close()
    if mode == "ro&immutable=1":
        raise StoreError(
            f"{path} was written by an older salt-tui, and its folder cannot be written; copy it and use the copy"
        )
    connect_writer(path, busy_timeout).close()
    return connect_reader(path, busy_timeout)


def _open_for_reading(path: Path, mode: Mode, busy_timeout: float) -> tuple[sqlite3.Connection, bool]:
    """Open a database of ours and say whether its schema is an older one; raises `StoreError`, `sqlite3.Error`."""
    connection = connect(path, mode, busy_timeout)
    try:
        connection.execute("PRAGMA query_only = ON")
        _check_version(connection, path)
        return connection, migrations.version(connection) < len(migrations.MIGRATIONS)
    except BaseException:
        connection.close()
        raise


def _reading_mode(real: Path) -> Mode:
    """Return how a file is opened for reading; SQLite keeps files beside a WAL database even then.

    A connection that may write takes them away again when it is the last one, and is told by ``query_only`` to write
    nothing else.  A journal that is there already is another program's: in use, or left by one that was killed, and
    perhaps of another file.  It stays as it is.
    """
    journals = [real.with_name(f"{real.name}{suffix}") for suffix in ("-wal", "-journal")]
    if any(standing(journal) not in ("absent", "empty") for journal in journals):
        return "ro"
    # Where no file can be made beside it, no program can write either.
    return "rw" if os.access(real.parent, os.W_OK) else "ro&immutable=1"


def _refuse_foreign(path: Path, kind: Kind) -> None:
    if kind == "foreign":
        raise StoreError(f"{path} is a database of something else; it was left as it is; choose another with --db")


def _need_writable_folder(path: Path) -> None:
    folder = Path(os.path.realpath(path)).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the folder {folder} cannot be made ({error.strerror}); choose another place with --db"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(f"the folder {folder} cannot be written; choose another place with --db")
    if path.exists() and not os.access(path, os.W_OK):
        raise StoreError(f"{path} cannot be written; change its permissions or choose another place with --db")


def need_usable(path: Path) -> None:
    """See that `connect_writer` would find a database of ours or a place for one; makes nothing.

    Raises:
        StoreError: one line that says why the file cannot be used and what to do.
    """
    _refuse_foreign(path, identify(path))
    folder = Path(os.path.realpath(path)).parent
    there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if not there.is_dir() or (there != folder and not os.access(there, os.W_OK | os.X_OK)):
        why = "Permission denied" if there.is_dir() else f"{there} is no folder"
        raise StoreError(f"the folder {folder} cannot be made ({why}); choose another place with --db")
    if there == folder:
        _need_writable_folder(path)


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    found, known = migrations.version(connection), len(migrations.MIGRATIONS)
    if found > known:
        raise StoreError(
            f"{path} was written by a newer salt-tui (schema {found}, this one knows {known}); update salt-tui"
        )
    if not migrations.is_of_this_text(connection):
        raise StoreError(
            f"{path} was made by another development version of salt-tui, whose tables differ from this one's; it was"
            " left as it is; move it away or choose another file with --db, and run again"
        )


def _create(path: Path) -> None:
    """Make the file complete under another name first, so that a path never shows a half-made database."""
    try:
        with (
            complete_file(path, replaced=("empty",), database=True) as temporary,
            closing(sqlite3.connect(temporary, isolation_level=None)) as connection,
        ):
            migrations.apply(connection)
            connection.execute("PRAGMA journal_mode = WAL")
    except FileExistsError:
        # Another program made it in the meantime; what it made is looked at like any other file.
        _refuse_foreign(path, identify(path))
    except OSError as error:
        raise StoreError(f"{path} cannot be made ({error.strerror}); choose another place with --db") from error
