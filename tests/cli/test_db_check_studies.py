"""`db check` on studies: what follows from stored rows is computed again, and whatever was edited is named."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from salt_tui.runner.loop import Loop
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from tests.end_to_end.studied_run import ASKED, STUDIES, write_models

pytestmark = pytest.mark.process

QUESTIONS = '{"id": 1, "kind": "choice", "prompt": "Which?", "reference": "A", "choices": ["one", "two"]}\n'


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a place for a run with every kind of study, and one of choices; filled by the first test that needs it."""
    return tmp_path_factory.mktemp("studied") / "x.db"


@pytest.fixture
def database(stored: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "y.db"
    if not stored.exists():
        model, other = write_models(stored.parent)
        questions = stored.with_name("questions.jsonl")
        questions.write_text(QUESTIONS)
        script = json.loads(model.read_text())
        script["pieces"] = ["A", "B"]
        script["replies"].append({"match": "Which?", "tokens": [["A", -0.25, 0.5, [["B", -1.5]]]]})
        for path in (model, other):
            path.write_text(json.dumps(script))
        asked = [["--tasks", f"file:{questions}"], ASKED]
        for words in reversed(asked):
            code = run_command_line(["run", "-m", str(model), *words, "--db", str(stored), "--display", "none"])
            assert code == 0
        for kind, options in STUDIES.items():
            if kind == "combine":
                continue
            second = ["-m", str(other)] if kind == "second-model" else []
            words = ["study", kind, "1", *options, *second, "--db", str(stored), "--display", "none"]
            assert run_command_line(words) == 0
    shutil.copy(stored, copy)
    return copy


def check(database: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict]]:
    capsys.readouterr()
    code = run_command_line(["db", "check", str(database), "--json"])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, json.loads(captured.out)["differences"]


def test_what_studies_stored_fits_together(database, capsys):
    assert check(database, capsys) == (0, [])


def of(kind: str) -> str:
    return f"(SELECT id FROM study WHERE kind = '{kind}')"


ONE = f"id = (SELECT min(id) FROM signal WHERE study = {of('samples')} AND name = '{{}}' AND kind = 'atom')"
VECTOR = f"id = (SELECT min(id) FROM activation WHERE study = {of('activations')} AND kind = 'atom')"
EDITS = {
    "agreement": (f"UPDATE signal SET value = 0.123 WHERE {ONE.format('agreement')}", "1.1", "agreement of atom 1"),
    "entropy": (
        f"UPDATE signal SET value = NULL, reason = 'x' WHERE {ONE.format('cluster_entropy')}",
        "1.1",
        "cluster_entropy of atom 1",
    ),
    "signal gone": (f"DELETE FROM signal WHERE {ONE.format('agreement')}", "1.1", "rows of agreement of atoms"),
    "signal more": (
        "INSERT INTO signal (run, study, generation, kind, \"index\", name, value) VALUES"
        f" (1, {of('samples')}, 1, 'atom', 999, 'agreement', 0.5)",
        "1.1",
        "rows of agreement of atoms",
    ),
    "sample": (
        f"DELETE FROM generation WHERE id = (SELECT min(id) FROM generation WHERE study = {of('samples')})",
        "1.1",
        "agreement of atom",
    ),
    "broadcast": (
        "UPDATE signal SET value = 0.4321 WHERE name = 'verbalised' OR name = 'p_true' AND kind = 'generation'",
        "1.2",
        "p_true_broadcast of line 1",
    ),
    "no probability": (
        "UPDATE signal SET value = 7 WHERE name = 'p_true' AND kind = 'generation'",
        "1.2",
        "a value of p_true of generations",
    ),
    "vector short": (
        f"UPDATE activation SET vector = x'0000' WHERE {VECTOR}",
        "1.4",
        "width of activation of atom 1, layer 1, producing",
    ),
    "vector infinite": (
        f"UPDATE activation SET vector = CAST(x'007c' || substr(vector, 3) AS BLOB) WHERE {VECTOR}",
        "1.4",
        "activation of atom 1, layer 1, producing",
    ),
    "scale infinite": (
        f"UPDATE activation SET scale = 9e999 WHERE {VECTOR}",
        "1.4",
        "activation of atom 1, layer 1, producing",
    ),
    "vector gone": (f"DELETE FROM activation WHERE {VECTOR}", "1.4", "activation of atom 1, layer 1, producing"),
    "vectors gone": (
        "DELETE FROM activation WHERE kind = 'atom' AND \"index\" = 2 AND generation = 1",
        "1.4",
        "activations of atom 3",
    ),
    "vector of nothing": (
        f"UPDATE activation SET \"index\" = 999 WHERE {VECTOR}",
        "1.4",
        "activation of atom 1000",
    ),
    "outcome": (
        "UPDATE intervention SET outcome = 1 - outcome WHERE direction = 'baseline'",
        "1.5",
        "outcome of baseline at atom",
    ),
    "letter": ("UPDATE signal SET value = 0.9 WHERE name = 'choice_A'", None, "choice_probability of atom"),
    "letters": ("UPDATE signal SET value = 0.9 WHERE name = 'choice_B'", None, "sum of the letters' probabilities"),
    "token signal": (
        "INSERT INTO signal (run, generation, kind, \"index\", name, value) VALUES (1, 1, 'atom', 0, 'mean_rank', 1)",
        None,
        "signals",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", EDITS)
def test_what_was_edited_about_answers_is_named(kind, database, capsys):
    statement, study, what = EDITS[kind]
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA foreign_keys = ON")
    with connection:
        assert connection.execute(statement).rowcount > 0
    connection.close()
    code, found = check(database, capsys)
    assert code == 1
    assert any(one["study"] == study and one["what"].startswith(what) for one in found), found[:5]
    assert {one["study"] for one in found} == {study}, "nothing else is named"


def test_a_study_says_of_a_rescored_unit_that_it_is_another(database, capsys):
    with sqlite3.connect(database) as connection:
        connection.execute(
            "UPDATE unit SET token_end = token_end - 1 WHERE generation = 1 AND kind = 'line' AND token_end > 1"
        )
    connection.close()
    assert run_command_line(["db", "rescore", "1", "--db", str(database)]) == 0
    assert check(database, capsys) == (0, [])


@pytest.mark.soak
def test_a_combined_score_is_fitted_again(database, capsys):
    # Not as a command: what each score adds takes seconds and is not what is checked.
    ready = prepare_study(StudyRequest("combine", "1", {}), database, lambda event: None)
    Loop(ready, lambda event: None, threading.Event()).run()
    ready.close()
    assert check(database, capsys) == (0, [])
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE signal SET value = 1 - value WHERE name = 'combined_forest' AND kind = 'line'")
        connection.execute("UPDATE signal SET value = 0.5 WHERE name = 'second_max_probability' AND kind = 'atom'")
    connection.close()
    _, found = check(database, capsys)
    assert {one["study"] for one in found} == {"1.6"}
    assert {"combined_forest of line 1", "combined_logistic of atom 1"} <= {one["what"] for one in found}
