"""Scores put together without a model: what is stored, that it goes on after a kill, and what is said."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from salt_tui.engine.model_registry import load_registry
from salt_tui.engine.models import resolve_entry
from salt_tui.runner.events import Notice, RunEnded
from salt_tui.runner.studies.combine import MODELS
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study, read_study_plan
from salt_tui.runner.studies.registry import study_kind
from salt_tui.store.queries import open_queries
from salt_tui.store.records import SignalRecord, Work
from salt_tui.store.schema import UNIT_STATUSES
from salt_tui.store.store import open_store
from salt_tui.usage_error import UsageError
from tests.runner.studies.test_samples import computed, resume_study, rows
from tests.stored_runs import store_run

VALUES = 'SELECT kind, name, generation, "index", value FROM signal WHERE study IS NOT NULL ORDER BY 1, 2, 3, 4'


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Store a run with a signal that knows every verdict."""
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


def test_a_score_that_knows_is_found_and_needs_no_model(database: Path) -> None:
    said = combine(database)
    assert len(said) == 6
    assert said[0] == "fitting the logistic model of answers, 1 of 6"
    assert said[-1] == "fitting the forest model of atoms, 6 of 6"
    with open_queries(database) as queries:
        study = queries.study_record(queries.find_work("1.1"))
        result = study_kind("combine").result(queries, study, read_study_plan(database, study))
        columns = queries.unit_columns(1, "atom", [*MODELS])
        names = [signal for signal in queries.signal_names(1) if signal.work == study.work]
    assert {name.name: set(name.kinds) for name in names} == {name: {"atom", "line", "generation"} for name in MODELS}
    for values in columns.confidences.values():
        assert np.isnan(values).sum() == (columns.status == UNIT_STATUSES.index("abstained")).sum()
        assert (np.nanmin(values) >= 0.0) & (np.nanmax(values) <= 1.0)
    table = {(unit, score): (auroc, adds) for unit, score, auroc, adds in result.rows}
    assert table["atom", "combined_logistic"][0] > 0.95
    assert table["atom", "oracle@1"][0] == 1.0
    assert table["atom", "oracle@1"][1] > 0.01
    assert ("line", "oracle@1") not in table
    assert result.notes[-1].startswith("Atoms: combining beats the tokens, AUROC")


def test_what_a_kill_left_is_computed_again_alike_and_later_studies_do_not_count(database: Path) -> None:
    combine(database)
    before = rows(database, VALUES)
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM signal WHERE study IS NOT NULL AND kind = 'atom'")
        connection.execute("UPDATE study SET state = 'interrupted', finished_at = NULL")
    resume_study(database)
    assert rows(database, VALUES) == before
    combine(database, seed=1)
    with open_queries(database) as queries:
        study = queries.study_record(queries.find_work("1.2"))
        result = study_kind("combine").result(queries, study, read_study_plan(database, study))
    assert not any("combined" in str(score) and "@" in str(score) for _, score, _, _ in result.rows)


def test_a_seed_below_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="--seed -1: a number, at least 0"):
        study_kind("combine").complete({"seed": -1})
