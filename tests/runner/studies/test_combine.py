"""Scores put together without a model: what is stored, that it goes on after a kill, and what is said."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from salt_tui.engine.model_registry import load_registry
from salt_tui.engine.models import resolve_entry
from salt_tui.number_text import number
from salt_tui.runner.events import Notice, RunEnded
from salt_tui.runner.studies.against_tokens import labelled_units
from salt_tui.runner.studies.combine import MODELS
from salt_tui.runner.studies.kind import StudyResult
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study, read_study_plan
from salt_tui.runner.studies.registry import study_kind
from salt_tui.store.queries import open_queries
from salt_tui.store.records import SignalRecord, StudyRecord, Work
from salt_tui.store.schema import UNIT_STATUSES
from salt_tui.store.store import open_store
from salt_tui.usage_error import UsageError
from scoring.combined import folds_of
from tests.runner.studies.test_samples import computed, resume_study, rows
from tests.stored_runs import store_run

VALUES = 'SELECT kind, name, generation, "index", value FROM signal WHERE study IS NOT NULL ORDER BY 1, 2, 3, 4'
COMBINED = VALUES.replace("study IS NOT NULL", "name LIKE 'combined%'")


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store a run with a signal that knows every verdict."""
    # What is stored and said needs no more trees and functions, and time does.
    monkeypatch.setattr("scoring.combined.TREES", 20)
    functions = ("max_probability", "logprob_sum", "mean_entropy")
    monkeypatch.setattr("salt_tui.runner.studies.combine.token_functions", lambda queries, run: functions)
    path = tmp_path / "x.db"
    store_run(path, tasks=("maze", "code"), answers=6, atoms=10)
    known = rows(path, "SELECT generation, \"index\", status = 'correct' FROM unit WHERE kind = 'atom'")
    with sqlite3.connect(path) as connection:
        entry = resolve_entry("nano", load_registry().entries["nano"]).to_json()
        connection.execute("UPDATE run SET model_entry = ?", (entry,))
    with open_store(path) as store:
        store.add_signals(
            Work(1), [SignalRecord(answer, "atom", index, "oracle", right) for answer, index, right in known]
        )
    return path


def combine(database: Path, **options: int) -> list[str]:
    events = computed(lambda emit: prepare_study(StudyRequest("combine", "1", options), database, emit))
    assert isinstance(events[-1], RunEnded)
    assert events[-1].state == "finished"
    return [event.text for event in events if isinstance(event, Notice)]


def found(database: Path, name: str) -> StudyResult:
    with open_queries(database) as queries:
        study = queries.study_record(queries.find_work(name))
        return study_kind("combine").result(queries, study, read_study_plan(database, study))


def signals_again(database: Path, name: str) -> list[tuple[object, ...]]:
    """Compute the signals of a stored study once more; return them as `COMBINED` does."""
    with open_queries(database) as queries:
        study = queries.study_record(queries.find_work(name))
        again = [
            (record.kind, record.name, record.generation, record.index, record.value)
            for batch in study_kind("combine").signals(queries, study, read_study_plan(database, study))
            for record in batch
        ]
    return sorted(again)


def test_a_score_that_knows_is_found_and_needs_no_model(database: Path) -> None:
    said = combine(database)
    assert len(said) == 6
    assert said[0] == "fitting the logistic model of answers, 1 of 6"
    assert said[-1] == "fitting the forest model of atoms, 6 of 6"
    result = found(database, "1.1")
    with open_queries(database) as queries:
        columns = queries.unit_columns(1, "atom", [*MODELS])
        names = [signal for signal in queries.signal_names(1) if signal.work.study is not None]
    assert {name.name: set(name.kinds) for name in names} == {name: {"atom", "line", "generation"} for name in MODELS}
    for values in columns.confidences.values():
        assert np.isnan(values).sum() == (columns.status == UNIT_STATUSES.index("abstained")).sum()
        assert (np.nanmin(values) >= 0.0) & (np.nanmax(values) <= 1.0)
    table = {(unit, score): (auroc, adds) for unit, score, auroc, adds in result.rows}
    assert table["atom", "combined_logistic"][0] > 0.95
    assert table["atom", "oracle@1"][0] == 1.0
    assert table["atom", "oracle@1"][1] > 0.01
    assert ("line", "oracle@1") not in table
    # Within folds the signal that knows everything cannot be beaten.
    assert result.notes[-2].startswith("Atoms: combining and the best single score cannot be told apart, AUROC")
    assert result.notes[-1].startswith("Atoms: oracle@1 ranks better than logprob_sum, by .")
    assert not any("Not combined" in note for note in result.notes)


def test_the_table_has_the_numbers_of_the_sentence_and_undefined_ones_where_nothing_is_compared(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        # One right atom in all answers of a task: the task cannot be compared, and did count in a mean of its own.
        maze = "(SELECT id FROM generation WHERE problem IN (SELECT id FROM problem WHERE task = 'maze'))"
        connection.execute(f"UPDATE unit SET status = 'wrong' WHERE generation IN {maze}")
        connection.execute(
            "UPDATE unit SET status = 'correct' WHERE kind = 'atom' AND \"index\" = 0 AND generation ="
            f" (SELECT min(generation) FROM unit WHERE generation IN {maze})"
        )
    combine(database)
    result = found(database, "1.1")
    table = {(unit, score): (auroc, adds) for unit, score, auroc, adds in result.rows}
    assert not any(unit == "generation" for unit, _ in table)
    assert any(note.startswith("Answers: cannot be said, ") for note in result.notes)
    sentence = next(note for note in result.notes if note.startswith("Atoms: combining"))
    first, second = re.findall(r"([\d.]+) of ([\w@.]+)", sentence)[:2]
    for value, name in (first, second):
        assert value == number(table["atom", name.removesuffix("@1.1")][0])
    assert "in 6 answers" in sentence
    with open_queries(database) as queries:
        units = labelled_units(queries, 1, "atom", ("logprob_sum", "combined_logistic@1.1"))
    code = next(task for task in units if task.task == "code")
    fold = folds_of(np.concatenate([task.generation for task in units]), np.random.default_rng(0))
    own = np.concatenate([np.full(task.correct.size, task.task == "code") for task in units])
    for name, column in code.scores.items():
        right, wrong = column[code.correct], column[~code.correct]
        pairs = fold[own][code.correct][:, None] == fold[own][~code.correct]
        above = (right[:, None] > wrong) + 0.5 * (right[:, None] == wrong)
        assert table["atom", name.removesuffix("@1.1")][0] == pytest.approx(above[pairs].mean())


def test_scores_of_a_study_that_is_not_finished_are_left_out_and_named(database: Path) -> None:
    with open_store(database) as store:
        work = store.create_study(1, StudyRecord("verbalised", "{}", "hash", "{}", "hash", True, ()))
        store.claim(work)
        said = rows(database, "SELECT generation, \"index\" FROM unit WHERE kind = 'atom'")
        store.add_signals(work, [SignalRecord(answer, "atom", index, "p_true", 0.5) for answer, index in said[:70]])
        store.release(work, "interrupted")
    combine(database)
    before = rows(database, COMBINED)
    left_out = "Not combined, because they were not complete when this study began: p_true@1.1."
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE study SET state = 'finished', finished_at = created_at WHERE number = 1")
    # What it read stands in its plan: what is finished later changes nothing.
    result = found(database, "1.2")
    assert left_out in result.notes
    assert not any(score == "p_true@1.1" for _, score, _, _ in result.rows)
    assert signals_again(database, "1.2") == before
    combine(database)
    assert any(score == "p_true@1.1" for _, score, _, _ in found(database, "1.3").rows)


def test_answers_that_come_later_are_not_combined(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        latest = connection.execute("SELECT max(id) FROM generation").fetchone()[0]
        kept = connection.execute(
            "SELECT answer_status, stop_reason FROM generation WHERE id = ?", (latest,)
        ).fetchone()
        connection.execute(
            "UPDATE generation SET answer_status = 'cancelled', stop_reason = 'cancelled' WHERE id = ?", (latest,)
        )
    combine(database)
    before = rows(database, COMBINED)
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE generation SET answer_status = ?, stop_reason = ? WHERE id = ?", (*kept, latest))
    assert latest not in {row[2] for row in before}
    assert signals_again(database, "1.1") == before


def test_a_score_that_is_gone_is_named_and_stops_what_was_interrupted(database: Path) -> None:
    combine(database)
    with open_store(database) as store:
        store.remove_signals(1, "oracle")
    assert any("no longer there" in note and note.endswith(": oracle@1.") for note in found(database, "1.1").notes)
    assert signals_again(database, "1.1") == []
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE study SET state = 'interrupted', finished_at = NULL")
    with pytest.raises(UsageError, match=r"study 1\.1 combines oracle@1, which is no longer there: begin a new one"):
        signals_again(database, "1.1")


def test_what_a_kill_left_is_computed_again_alike_and_later_studies_do_not_count(database: Path) -> None:
    combine(database)
    before = rows(database, VALUES)
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM signal WHERE study IS NOT NULL AND kind = 'atom'")
        connection.execute("UPDATE study SET state = 'interrupted', finished_at = NULL")
    resume_study(database)
    assert rows(database, VALUES) == before
    combine(database, seed=1)
    rows_of_second = found(database, "1.2").rows
    assert not any("combined" in str(score) and "@" in str(score) for _, score, _, _ in rows_of_second)


def test_a_seed_below_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="--seed -1: a number, at least 0"):
        study_kind("combine").complete({"seed": -1})
