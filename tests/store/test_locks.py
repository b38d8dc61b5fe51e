"""Locks across processes: looking at a file must not give away the locks of a run that writes to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from salt_tui.store.opening import identify
from salt_tui.store.queries import open_queries
from salt_tui.store.store import open_store

ANOTHER_WRITER = "import sys; from salt_tui.store.store import open_store; open_store(sys.argv[1]).close()"


@pytest.mark.process
def test_a_writer_keeps_its_file_while_this_process_looks_and_another_one_writes(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    with open_store(database):
        identify(database)
        open_queries(database).close()
        subprocess.run([sys.executable, "-c", ANOTHER_WRITER, str(database)], check=True, timeout=60)
        # A process that closes the last connection deletes the log; it was not the last.
        assert database.with_name("x.db-wal").exists()
