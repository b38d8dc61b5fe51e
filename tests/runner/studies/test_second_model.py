"""Another model reads stored answers: scripted ones for counts and refusals, quantisations of salt-nano for real."""

from __future__ import annotations

import json
import math
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from salt_tui.engine.model_registry import load_registry
from salt_tui.engine.models import resolve_model
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import RunRequest
from salt_tui.runner.studies.kind import StudyResult
from salt_tui.runner.studies.plan import OptionValue
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study, read_study_plan
from salt_tui.runner.studies.registry import study_kind
from salt_tui.runner.studies.second_model import INFINITE
from salt_tui.store.queries import open_queries
from salt_tui.usage_error import UsageError
from scoring.signals import SECOND
from tests.conftest import ScriptedModel
from tests.runner.studies.test_samples import SIGNALS, TASKS, computed, make_run, resume_study, rows

QUANTISE = """
import ctypes, sys
import llama_cpp
parameters = llama_cpp.llama_model_quantize_default_params()
parameters.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0
parameters.nthread = 1
sys.exit(llama_cpp.llama_model_quantize(sys.argv[1].encode(), sys.argv[2].encode(), ctypes.byref(parameters)))
"""


def look(database: Path, model: Path, stop_after: int | None = None) -> list[object]:
    options: dict[str, OptionValue] = {"model": str(model)}
    asked = StudyRequest("second-model", "1", options)
    return computed(lambda emit: prepare_study(asked, database, emit), stop_after)


def found(database: Path) -> StudyResult:
    with open_queries(database) as queries:
        study = queries.study_record(queries.find_work("1.1"))
        return study_kind("second-model").result(queries, study, read_study_plan(database, study))


@pytest.fixture
def model(scripted_model: ScriptedModel) -> Path:
    return scripted_model(*TASKS, limit=2, seconds_per_step=0.0005)


@pytest.fixture
def other(model: Path, tmp_path: Path) -> Path:
    """Write a model with the same vocabulary that is surer of every token but one, where it would say another."""
    script = json.loads(model.read_text())
    for reply in script["replies"]:
        reply["tokens"] = [[text, value / 2] for text, value, *_ in reply["tokens"]]
    first = script["replies"][0]["tokens"]
    first[2] = [first[2][0], -2.0, None, [[first[4][0], -0.25]]]
    path = tmp_path / "other.scripted.json"
    path.write_text(json.dumps({**script, "seconds_per_step": 0.02}))
    return path


def test_every_unit_and_token_gets_what_the_second_model_says(model: Path, other: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(model, database)
    look(database, other)
    tokens, kl = rows(
        database,
        "SELECT count(*), (SELECT count(*) FROM signal WHERE name = 'kl_lower_bound' AND kind = 'token') FROM token"
        " JOIN generation ON generation.id = token.generation WHERE role = 'answer'",
    )[0]
    assert tokens == kl
    units = rows(database, "SELECT count(*) FROM unit WHERE token_start IS NOT NULL")[0][0]
    counts = rows(database, "SELECT name, count(*) FROM signal WHERE kind <> 'token' GROUP BY name")
    assert dict(counts) == dict.fromkeys(SECOND, units)
    halves = rows(
        database,
        "SELECT unit.logprob_sum, signal.value FROM signal JOIN unit ON unit.generation = signal.generation"
        ' AND unit.kind = signal.kind AND unit."index" = signal."index" JOIN generation ON generation.id ='
        " unit.generation JOIN problem ON problem.id = generation.problem"
        " WHERE name = 'second_logprob_sum' AND unit.kind = 'atom' AND task = 'dna_translation'",
    )
    assert all(second == pytest.approx(first / 2, rel=1e-6) for first, second in halves)
    table = [dict(zip(found(database).columns, row, strict=True)) for row in found(database).rows]
    assert [row["first_apart"] for row in table] == [3, None, None, None]
    assert table[0]["said"] != table[0]["second_says"]
    assert any("1 of 2 answers part" in note for note in found(database).notes)


def test_an_infinite_divergence_is_infinite_and_no_dash(
    model: Path, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    make_run(model, database)
    look(database, other)
    first = "(SELECT min(id) FROM signal WHERE name = 'kl_lower_bound')"
    with sqlite3.connect(database) as connection:
        connection.execute(f"UPDATE signal SET value = NULL, reason = ? WHERE id = {first}", (INFINITE,))
    result = found(database)
    assert [row[-1] == math.inf for row in result.rows] == [True, False, False, False]
    assert any(note.startswith("KL is infinite at 1 token: ") for note in result.notes)
    with sqlite3.connect(database) as connection:
        last = "(SELECT max(id) FROM generation WHERE role = 'walk')"
        connection.execute(f"UPDATE generation SET stop_reason = 'context' WHERE id = {last}")
    assert "1 answer was not walked to the end and parts nowhere before; not counted." in found(database).notes
    assert run_command_line(["report", "1.1", "--format", "json", "--db", str(database)]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["mean_kl"] == "Infinity"
    assert run_command_line(["report", "1.1", "--db", str(database)]) == 0
    assert sum("∞" in line for line in capsys.readouterr().out.splitlines()) == 1


def test_stopped_and_resumed_gives_the_same_and_another_file_is_refused(
    model: Path, other: Path, tmp_path: Path
) -> None:
    whole, halves = tmp_path / "whole.db", tmp_path / "halves.db"
    for database in (whole, halves):
        make_run(model, database)
    look(whole, other)
    assert look(halves, other, stop_after=1)[-1].state == "interrupted"
    kept = other.read_text()
    other.write_text(kept + " ")
    with pytest.raises(UsageError, match=r"study 1\.1 cannot be resumed: .* is another model than it was"):
        resume_study(halves)
    other.write_text(kept)
    resume_study(halves)
    assert rows(halves, SIGNALS) == rows(whole, SIGNALS)


def test_another_vocabulary_and_no_model_are_refused(model: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(model, database)
    script = json.loads(model.read_text())
    longer, changed = tmp_path / "longer.scripted.json", tmp_path / "changed.scripted.json"
    longer.write_text(json.dumps({**script, "pieces": ["a new piece"]}))
    script["replies"][0]["tokens"][0][0] = "a new piece"
    changed.write_text(json.dumps(script))
    with pytest.raises(UsageError, match=r"another vocabulary than the run's model \(\d+ tokens, not \d+\)"):
        look(database, longer)
    with pytest.raises(UsageError, match="another vocabulary than the run's model"):
        look(database, changed)
    with pytest.raises(UsageError, match=r"needs another model: -m NAME or -m FILE\.gguf"):
        prepare_study(StudyRequest("second-model", "1", {}), database, lambda event: None)
    assert rows(database, "SELECT count(*) FROM study") == [(0,)]


def test_the_same_model_is_said_to_add_nothing(model: Path, other: Path, tmp_path: Path) -> None:
    said = {}
    for name, second in (("same", model), ("other", other)):
        database = tmp_path / f"{name}.db"
        make_run(model, database)
        look(database, second)
        said[name] = " ".join(found(database).notes)
    assert "The second model is the one that wrote the answers: the same model adds nothing." in said["same"]
    assert "Atoms: " not in said["same"], "nothing is compared with itself"
    assert "adds nothing" not in said["other"]
    assert "Atoms: " in said["other"]


@pytest.mark.model
def test_the_same_file_says_the_same_to_the_last_bit_and_a_quantisation_does_not(tmp_path: Path) -> None:
    database, smaller = tmp_path / "x.db", tmp_path / "q4.gguf"
    nano = resolve_model("nano", load_registry()).path
    computed(lambda emit: prepare_run(RunRequest("nano", ("words_collection",), "trivial", 3, 1), database, emit))
    look(database, nano)
    same = rows(
        database,
        "SELECT first.log_probability = second.log_probability AND first.entropy = second.entropy, count(*)"
        " FROM generation JOIN token AS second ON second.generation = generation.id JOIN token AS first"
        " ON first.generation = generation.parent AND first.position = second.position"
        " WHERE role = 'walk' GROUP BY 1",
    )
    assert [row[0] for row in same] == [1]
    assert rows(database, "SELECT DISTINCT value FROM signal WHERE name = 'kl_lower_bound'") == [(0.0,)]
    assert "None of 3 answers parts anywhere." in found(database).notes
    done = subprocess.run([sys.executable, "-c", QUANTISE, nano, smaller], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    look(database, smaller)
    largest = rows(
        database,
        "SELECT max(value) FROM signal JOIN study ON study.id = signal.study"
        " WHERE name = 'kl_lower_bound' AND study.number = 2",
    )[0][0]
    assert largest > 1e-6
