"""`db delete`, `export --excel-safe`, and the look at the disk before a run."""

from __future__ import annotations

import json
import shutil
import sqlite3
from types import SimpleNamespace

import pytest

from salt_tui.cli import run_command_line
from salt_tui.csv_rows import write_csv
from salt_tui.store.queries import open_queries
from salt_tui.store.records import Work
from salt_tui.store.store import open_store
from tests.stored_runs import store_run


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "x.db"
    store_run(path, tasks=("maze",), answers=2, atoms=3)
    store_run(path, tasks=("maze",), answers=2, atoms=3)
    return path


def runs(database):
    with open_queries(database) as queries:
        return [listing.run for listing in queries.list_runs()]


def test_a_run_is_deleted_only_by_its_number_and_when_it_is_meant(database, capsys):
    assert run_command_line(["db", "delete", "1", "--db", str(database)]) == 2
    assert "2 finished answers would be gone for good; say --yes" in capsys.readouterr().err
    assert run_command_line(["db", "delete", "latest", "--yes", "--db", str(database)]) == 2
    assert runs(database) == [2, 1]
    assert run_command_line(["db", "delete", "1", "--yes", "--db", str(database)]) == 0
    assert runs(database) == [2]
    assert run_command_line(["db", "delete", "1", "--yes", "--db", str(database)]) == 2


def test_a_run_that_is_being_computed_is_not_deleted(database, capsys):
    with open_store(database) as store:
        store.claim(Work(1))
        assert run_command_line(["db", "delete", "1", "--yes", "--db", str(database)]) == 2
    assert "is being computed" in capsys.readouterr().err
    assert runs(database) == [2, 1]


def test_formulas_are_texts_for_a_spreadsheet_that_asks_for_it(database, tmp_path, capsys):
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE unit SET text = '=1+2' WHERE \"index\" = 0")
        connection.execute("UPDATE unit SET text = '-x' WHERE \"index\" = 1")
    connection.close()
    for options, cells in (([], (",=1+2,", ",-x,")), (["--excel-safe"], (",'=1+2,", ",'-x,"))):
        target = tmp_path / "atoms.csv"
        assert run_command_line(["export", "1", "-o", str(target), "--force", "--db", str(database), *options]) == 0
        text = target.read_text()
        assert all(cell in text for cell in cells)
        assert ",'-0." not in text
    assert run_command_line(["export", "1", "-o", str(tmp_path / "a.db"), "--excel-safe", "--db", str(database)]) == 2
    assert not (tmp_path / "a.db").exists()


def test_numbers_stay_numbers(tmp_path):
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as file:
        write_csv(file, [["a"], [-1.5], ["+1"], ["@x"], [None]], excel_safe=True)
    assert path.read_text() == "a\n-1.5\n'+1\n'@x\n\"\"\n"


@pytest.mark.process
def test_a_run_that_the_disk_has_no_room_for_is_not_begun(tmp_path, scripted_model, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    model = scripted_model("dna_translation")
    words = ["run", "-m", str(model), "--tasks", "dna_translation", "--difficulty", "trivial", "--limit", "3"]
    database = tmp_path / "x.db"
    assert run_command_line([*words, "--seed", "1", "--db", str(database), "--display", "none"]) == 2
    captured = capsys.readouterr()
    assert "the run is not begun: it will write about" in captured.err
    assert captured.err.count("\n") == 1
    assert not database.exists(), "and nothing is left of it"


@pytest.mark.process
def test_nor_is_a_study_an_export_or_an_import(tmp_path, scripted_model, monkeypatch, capsys):
    model, database = scripted_model("dna_translation"), tmp_path / "x.db"
    asked = ["--tasks", "dna_translation", "--difficulty", "trivial", "--limit", "3", "--seed", "1"]
    written = ["--db", str(database), "--display", "none"]
    assert run_command_line(["run", "-m", str(model), *asked, *written]) == 0
    answers = tmp_path / "answers.jsonl"
    assert run_command_line(["tasks", "export", "maze", "--limit", "1", "-o", str(answers)]) == 0
    row = json.loads(answers.read_text())
    answers.write_text(json.dumps({**row, "response": "****\nU D\n****"}))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10))
    for words in (
        ["study", "samples", "1", "-k", "5", "--temp", "0.7", *written],
        ["study", "activations", "1", *written],
        ["export", "1", "-o", str(tmp_path / "out.db"), "--db", str(database)],
        ["import", str(answers), "--db", str(database)],
    ):
        capsys.readouterr()
        assert run_command_line(words) == 2, words
        captured = capsys.readouterr()
        assert "is not begun: it will write about" in captured.err, words
        assert captured.err.splitlines()[-1].startswith("salt-tui: ")
    with open_queries(database) as queries:
        assert [listing.studies for listing in queries.list_runs()] == [()]
    assert sorted(path.name for path in tmp_path.glob("*out*")) == []
