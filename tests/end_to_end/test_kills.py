"""`kill -9` at random moments of everything that writes; afterwards the file holds what it holds without a kill.

`make test` kills each once or twice, `make soak` at the moments that docs/reliability.md counts.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from tests.end_to_end.stored_state import rows, stored_state, until
from tests.end_to_end.studied_run import ASKED, STUDIES, write_models

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

PROGRAM = [sys.executable, "-m", "salt_tui"]
QUIET = ["--display", "none"]
SLOW = ("samples", "combine")
"""Studies that `make test` does not kill here: the first it kills in `cli/test_study.py`, the other takes long."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is killed, and how the work goes on.

    Attributes:
        first: the command that is killed, without the database.
        again: the command that goes on; the same command where it begins anew.
        begun: a question that is not 0 once something was stored.
    """

    first: list[str]
    again: list[str]
    begun: str


def command(words: Iterable[str], database: Path) -> list[str]:
    return [*words, "--db", str(database)]


def succeeds(words: list[str]) -> None:
    assert run_command_line(words) == 0, words


def checked(database: Path) -> None:
    succeeds(["db", "check", str(database)])


def kill_after(words: list[str], seconds: float, begun: Callable[[], None] = lambda: None) -> bool:
    """Start the program, wait until it has begun and then some seconds, kill it; return whether it was at work."""
    process = subprocess.Popen([*PROGRAM, *words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        begun()
        time.sleep(seconds)
        at_work = process.poll() is None
    finally:
        process.kill()
        process.wait()
    return at_work


def lasted(words: list[str]) -> float:
    """Run the program to its end in a process of its own and return the seconds."""
    before = time.monotonic()
    subprocess.run([*PROGRAM, *words], check=True, capture_output=True)
    return time.monotonic() - before


def fault_of(kind: str, model: Path, other: Path) -> Fault:
    if kind == "run":
        words = ["run", "-m", str(model), *ASKED, *QUIET]
        return Fault(words, ["resume", "1", *QUIET], "SELECT count(*) FROM run")
    words = ["study", kind, "1", *STUDIES[kind], *(["-m", str(other)] if kind == "second-model" else ()), *QUIET]
    return Fault(words, ["resume", "1.1", *QUIET], "SELECT count(*) FROM study")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_models(tmp_path_factory.mktemp("models"), seconds_per_step=0.003)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory, models: tuple[Path, Path]) -> Path:
    """Make a place for a file with a whole run; filled by the first test that needs it."""
    return tmp_path_factory.mktemp("answered") / "x.db"


@pytest.fixture
def run_of_six(answered: Path, models: tuple[Path, Path]) -> Path:
    if not answered.exists():
        succeeds(command(["run", "-m", str(models[0]), *ASKED, *QUIET], answered))
    return answered


@pytest.mark.parametrize(("kind", "times"), [
    *((kind, 1) for kind in ("run", *STUDIES) if kind not in SLOW),
    *(pytest.param(kind, 20 if kind == "run" else 5, marks=pytest.mark.soak) for kind in ("run", *STUDIES)),
])  # fmt: skip
def test_killed_and_resumed_a_run_and_a_study_are_those_that_were_not(
    kind: str, times: int, models: tuple[Path, Path], run_of_six: Path, tmp_path: Path
) -> None:
    moments = random.Random(f"{kind} {times}")
    fault = fault_of(kind, *models)
    whole = tmp_path / "whole.db"
    if kind != "run":
        shutil.copy(run_of_six, whole)
    before = time.monotonic()
    succeeds(command(fault.first, whole))
    seconds = time.monotonic() - before
    state = stored_state(whole)
    at_work = 0
    for number in range(times):
        database = tmp_path / f"{number}.db"
        if kind != "run":
            shutil.copy(run_of_six, database)
        words = command(fault.first, database)
        at_work += kill_after(
            words, moments.uniform(0.0, 0.6 * seconds), lambda file=database: until(file, fault.begun)
        )
        checked(database)
        again = command(fault.again, database)
        if times > 2 and number % 2:
            kill_after(again, moments.uniform(0.4, 1.0) * seconds)
            checked(database)
        succeeds(again)
        checked(database)
        assert stored_state(database) == state
        database.unlink()
    assert at_work >= times // 4  # at least as many kills hit a program that was not done


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "suffix", [".db", pytest.param(".csv", marks=pytest.mark.soak), pytest.param(".jsonl", marks=pytest.mark.soak)]
)
def test_a_killed_export_leaves_no_half_file(suffix: str, times: int, run_of_six: Path, tmp_path: Path) -> None:
    moments = random.Random(times)
    source, target = tmp_path / "large.db", tmp_path / f"out{suffix}"
    shutil.copy(run_of_six, source)
    enlarge(source, 10_000 * times)
    words = command(["export", "1", "-o", str(target), "--force"], source)
    seconds = lasted(words)
    whole = target.read_bytes()
    target.unlink()
    at_work = 0
    for _ in range(times):
        at_work += kill_after(words, moments.uniform(0.3, 1.0) * seconds)
        if target.exists():
            assert suffix == ".db" or target.read_bytes() == whole
            if suffix == ".db":
                assert stored_state(target) == stored_state(source)
    assert at_work >= times // 4
    succeeds(words)
    assert suffix == ".db" or target.read_bytes() == whole
    if suffix == ".db":
        assert stored_state(target) == stored_state(source)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_a_killed_deletion_has_deleted_all_or_nothing(times: int, run_of_six: Path, models, tmp_path: Path) -> None:
    moments = random.Random(times)
    original = tmp_path / "two.db"
    shutil.copy(run_of_six, original)
    enlarge(original, 10_000 * times)
    succeeds(command(["run", "-m", str(models[0]), *ASKED, *QUIET], original))
    both = stored_state(original)
    alone = [row for row in both if row[1] == 2]
    database = tmp_path / "x.db"
    words = command(["db", "delete", "1", "--yes"], database)
    shutil.copy(original, database)
    seconds = lasted(words)
    assert stored_state(database) == alone
    at_work = 0
    for _ in range(times):
        for left in tmp_path.glob("x.db*"):
            left.unlink()
        shutil.copy(original, database)
        at_work += kill_after(words, moments.uniform(0.3, 1.0) * seconds)
        assert stored_state(database) in (both, alone)
        checked(database)
        code = run_command_line(words)
        if code:
            # The run was gone already; the next deletion removes what was left of it.
            assert code == 2
            succeeds(command(["db", "delete", "2", "--yes"], database))
            assert rows(database, "SELECT count(*) FROM token") == [(0,)]
            continue
        assert stored_state(database) == alone
        assert rows(database, "SELECT count(*) FROM run") == [(1,)]
    assert at_work >= times // 4


MIGRATE = """
import sys
from salt_tui.store import migrations
from tests.store.test_migrations import add_tags_beside_views
known = (*migrations.MIGRATIONS, add_tags_beside_views)
migrations.MIGRATIONS = known
migrations.apply.__defaults__ = (known,)
from salt_tui.store.queries import open_queries
open_queries(sys.argv[1]).close()
"""


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_a_killed_migration_is_whole_or_has_not_begun(times: int, run_of_six: Path, tmp_path: Path) -> None:
    moments = random.Random(times)
    original, database = tmp_path / "old.db", tmp_path / "x.db"
    shutil.copy(run_of_six, original)
    enlarge(original, 20_000 * times)
    schema = "SELECT name, sql FROM sqlite_master ORDER BY name"
    old = rows(original, schema)
    before, units = stored_state(original), rows(original, "SELECT * FROM unit")
    shutil.copy(original, database)
    words = [sys.executable, "-c", MIGRATE, str(database)]
    begun = time.monotonic()
    subprocess.run(words, check=True)
    seconds = time.monotonic() - begun
    new, migrated = rows(database, schema), rows(database, "SELECT * FROM problem")
    for _ in range(times):
        for left in tmp_path.glob("x.db*"):
            left.unlink()
        shutil.copy(original, database)
        process = subprocess.Popen(words)
        time.sleep(moments.uniform(0.3, 1.0) * seconds)
        process.kill()
        process.wait()
        found = rows(database, schema)
        assert found in (old, new)
        if found == old:
            assert stored_state(database) == before
        subprocess.run(words, check=True)
        assert rows(database, schema) == new
        assert rows(database, "SELECT * FROM problem") == migrated
        assert rows(database, "SELECT * FROM unit") == units
        assert rows(database, "PRAGMA integrity_check") == [("ok",)]
        assert rows(database, "PRAGMA foreign_key_check") == []


def enlarge(database: Path, scores: int) -> None:
    """Give a run so many scores from elsewhere, so that copying, deleting and checking its rows takes a while."""
    connection = sqlite3.connect(database)
    with connection:
        connection.execute(
            "WITH RECURSIVE place (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM place WHERE number < ? - 1)"
            ' INSERT INTO signal (run, generation, kind, "index", name, value)'
            " SELECT 1, (SELECT min(id) FROM generation), 'token', number, 'mine', number * 0.5 FROM place",
            (scores,),
        )
    connection.close()
