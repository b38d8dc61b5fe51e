"""`replay` as a user calls it: numbers, files, resuming after a kill, exactness on a real model."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from salt_tui.app.studies_state import row_of_study
from salt_tui.cli import run_command_line
from salt_tui.engine.models import load_registry, resolve_model
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import open_queries
from salt_tui.store.records import Work
from salt_tui.store.store import open_store
from tests.conftest import ScriptedModel

TASK = "dna_translation"
DESIGN = (
    "SELECT task, position, target, variant, direction, edits, treatment_global, treatment_local, length,"
    " correct_before, correct_before_local, outcome, log_probability_reference, reason FROM intervention"
    " JOIN generation ON generation.id = intervention.generation JOIN problem ON problem.id = generation.problem"
    " ORDER BY 1, 2, generation.number"
)
TOKENS = (
    "SELECT position, parent, number, token.position, token.id, log_probability, entropy, forced FROM token"
    " JOIN generation ON generation.id = token.generation JOIN problem ON problem.id = generation.problem"
    " WHERE role = 'branch' ORDER BY 1, 3, 4"
).replace("SELECT position", "SELECT problem.position")


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(database) as connection:
        return connection.execute(query).fetchall()


def make_run(model: Path | str, database: Path, *more: str, difficulty: str = "medium", limit: int = 2) -> None:
    assert run_command_line(
        ["run", "-m", str(model), "--tasks", TASK, "--difficulty", difficulty, "--limit", str(limit), "--seed", "1",
         "--db", str(database), "--display", "none", *more]
    ) == 0  # fmt: skip


def replay(database: Path, *more: str) -> list[str]:
    return ["replay", "latest", "--targets", "2", "--variants", "3", "--db", str(database), "--display", "none", *more]


@pytest.fixture
def medium(scripted_model: ScriptedModel) -> Path:
    return scripted_model(TASK, limit=2, difficulty="medium")


def test_replay_stores_designs_and_says_what_they_give(
    medium: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    make_run(medium, database)
    capsys.readouterr()
    assert run_command_line(replay(database, "--json")) == 0
    data = json.loads(capsys.readouterr().out)
    assert {name: data[name] for name in ("study", "kind", "state", "jobs", "done", "baseline_identical")} == {
        "study": "1.1", "kind": "interventions", "state": "finished", "jobs": 16, "done": 16,
        "baseline_identical": True,
    }  # fmt: skip
    assert len(data["rows"]) == 16
    assert [row["direction"] for row in data["rows"][:2]] == ["baseline", "correction"]
    assert all(row["target"] >= 11 and row["length"] == row["target"] - 1 for row in data["rows"])
    assert all(row["outcome"] in (0, 1) and 0 <= row["probability_gold"] <= 1 for row in data["rows"])
    shapes = {(one["outcome"], one["treatment"], one["adjusted"]) for one in data["contrasts"]}
    assert len(shapes) == len(data["contrasts"]) == 8
    assert {(one["outcome"], one["controlled"]) for one in data["length"]} == {
        (outcome, controlled) for outcome in ("outcome", "probability") for controlled in (True, False)
    }
    assert {curve["kind"] for curve in data["curves"]} == {"global", "local", "length"}
    for command in (["report", "1.1"], ["resume", "1.1"]):
        assert run_command_line([*command, "--db", str(database)]) == 0
        text = capsys.readouterr().out
        assert "All 4 unchanged replays gave the stored answer again, bit for bit." in text
        assert "problems are too few for an interval (2, from 10 on there is one)" in " ".join(text.split())
    # The branch holds the whole text before its target, edited atoms included, and opens like an answer.
    assert run_command_line(["show", "1.1", f"{TASK}:1", "--db", str(database)]) == 0
    assert re.search(r"branch 8 \(corr\w+ 3\) of answer 1 of dna_translation, study 1.1: ", capsys.readouterr().out)


def test_an_edit_replaces_the_tokens_of_its_atom_and_keeps_all_others(medium: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(medium, database)
    assert run_command_line(replay(database)) == 0
    (answer, branch, target, edits), *_ = [
        row
        for row in rows(database, "SELECT answer, generation, target, edits FROM intervention WHERE edits <> '[]'")
        if json.loads(row[3])[0][0] < 5
    ]
    new = dict(json.loads(str(edits)))
    said, replayed = (
        [text for (text,) in rows(database, f"SELECT text FROM unit WHERE generation = {one} AND kind = 'atom'"
                                            f" AND \"index\" < {target} ORDER BY \"index\"")]
        for one in (answer, branch)
    )  # fmt: skip
    assert replayed == [new.get(index, text) for index, text in enumerate(said)]
    forced = rows(database, f"SELECT count(*) FROM token WHERE generation = {branch} AND NOT forced")
    assert forced > [(0,)]
    assert rows(database, f"SELECT count(*) FROM unit WHERE generation = {branch} AND status = 'missing'") == [(0,)]


def test_a_killed_experiment_gives_the_same_numbers_after_resuming(
    scripted_model: ScriptedModel, tmp_path: Path
) -> None:
    model = scripted_model(TASK, limit=2, difficulty="medium", seconds_per_step=0.01)
    whole, killed = tmp_path / "whole.db", tmp_path / "killed.db"
    for database in (whole, killed):
        make_run(model, database)
    assert run_command_line(replay(whole)) == 0
    process = subprocess.Popen([sys.executable, "-m", "salt_tui", *replay(killed)])
    while rows(killed, "SELECT count(*) FROM intervention") < [(5,)]:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    half = rows(killed, "SELECT count(*) FROM intervention JOIN generation ON id = generation WHERE ended_at IS NULL")
    assert half == [(0,)]
    assert run_command_line(["resume", "latest", "--db", str(killed), "--display", "none"]) == 0
    assert rows(killed, "SELECT state, exact FROM study") == [("finished", 1)]
    assert rows(killed, DESIGN) == rows(whole, DESIGN)
    assert rows(killed, TOKENS) == rows(whole, TOKENS)
    assert len(rows(whole, DESIGN)) == 16


def test_a_chunked_experiment_is_a_study_of_its_own_kind_that_says_everywhere_that_it_is_not_exact(
    medium: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    make_run(medium, database)
    assert run_command_line(replay(database)) == 0
    capsys.readouterr()
    assert run_command_line([*replay(database, "--json"), "--chunked"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["study"], data["exact"], data["chunked"]) == ("1.2", False, True)
    assert {row["chunked"] for row in data["rows"]} == {1}
    found = rows(database, "SELECT exact, warnings, plan_hash FROM study ORDER BY number")
    assert [row[0] for row in found] == [1, 0]
    assert "not exact: the text before a target was evaluated in chunks" in str(found[1][1])
    assert found[0][2] != found[1][2]
    # The same design; nothing walked has numbers of its own, nothing is missing, and the file is sound.
    exact, chunked = (
        rows(database, DESIGN.replace("ORDER BY", f"WHERE intervention.study = {study} ORDER BY")) for study in (1, 2)
    )
    assert [row[:11] for row in exact] == [row[:11] for row in chunked]
    assert [row[11:] for row in exact] == [row[11:] for row in chunked]  # a script has the same numbers in chunks
    edited = "SELECT count(*) FROM token JOIN intervention USING (generation) WHERE forced AND token.log_probability"
    assert rows(database, f"{edited} IS NULL AND study = 1") == [(0,)]
    assert rows(database, f"{edited} IS NULL AND study = 2 AND edits <> '[]'") > [(0,)]
    assert rows(database, f"{edited} IS NULL AND study = 2 AND edits = '[]'") == [(0,)]
    assert run_command_line(["db", "check", str(database)]) == 0
    capsys.readouterr()
    for command in (["report", "1.2"], ["resume", "1.2"]):
        assert run_command_line([*command, "--db", str(database)]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "study 1.2: interventions of run 1, finished, 16/16 done, not exact" in text
        assert "study 1.2, chunked and not exact: 16 replays" in text
        assert "The 4 unchanged replays gave the stored answers all the same." in text
    assert run_command_line(["report", "1", "--db", str(database), "--format", "html"]) == 0
    assert capsys.readouterr().out.count("Chunked, not exact") >= 2
    assert run_command_line(["runs", "--db", str(database)]) == 0
    assert [line.count("finished, not exact") for line in capsys.readouterr().out.splitlines()[-2:]] == [0, 1]
    with open_queries(database) as queries:
        assert ["not exact" in row_of_study(study) for study in queries.studies(1)] == [False, True]
    target = tmp_path / "x.csv"
    assert run_command_line(["export", "1.2", "-o", str(target), "--db", str(database)]) == 0
    assert "edits,chunked,treatment_global" in target.read_text().splitlines()[0]


def test_interventions_on_several_runs_are_measured_together(
    medium: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    for run in ("1", "2"):
        make_run(medium, database)
        assert run_command_line([*replay(database)[:1], run, *replay(database)[2:]]) == 0
    capsys.readouterr()
    assert run_command_line(["report", "1.1,2.1", "--db", str(database), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["studies"] == ["study 1.1", "study 2.1"]
    assert len(data["rows"]) == 32
    assert {one["models"] for one in data["contrasts"]} == {2}
    assert run_command_line(["report", "1.1,2.1", "--db", str(database)]) == 0
    assert "prefix interventions, study 1.1, study 2.1: 32 replays" in capsys.readouterr().out
    assert run_command_line(["report", "1.1,1.1", "--db", str(database)]) == 2
    assert "only studies of interventions on different runs are measured together" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dose", "0,2"], "--dose 0,2: shares between 0 and 1"),
        (["--dose", "0"], "--dose 0: shares between 0 and 1, at least one above 0"),
        (["--dose", "a"], "--dose a: shares between 0 and 1, separated by commas"),
        (["--answers", "0"], "--answers 0: at least 1"),
        ([], "nothing can be replayed: a target needs 10 atoms before it (2 answers with fewer than 11 atoms)"),
    ],
)
def test_what_cannot_be_replayed_is_one_line(
    scripted_model: ScriptedModel,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    database = tmp_path / "x.db"
    make_run(scripted_model(TASK, limit=2), database, difficulty="trivial")
    capsys.readouterr()
    assert run_command_line(replay(database, *arguments)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert rows(database, "SELECT count(*) FROM study") == [(0,)]


@pytest.mark.model
@pytest.mark.parametrize("temperature", ["0", "0.9"])
def test_chunks_move_log_probabilities_a_little_and_draws_not_at_all(
    temperature: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    model = resolve_model("nano", load_registry()).path
    make_run(model, database, "-np", "4", "--temp", temperature, "--sampler-seed", "3", limit=2)
    found = []
    for mode in ([], ["--chunked"]):
        capsys.readouterr()
        assert run_command_line([*replay(database, "--json"), *mode]) == 0
        found.append(json.loads(capsys.readouterr().out))
    exact, chunked = found
    assert 0.0 < chunked["baselines"]["largest_difference"] < 0.1  # F32: rounding only
    assert exact["baselines"]["largest_difference"] == 0.0
    # Positions and draws count the prefix, so where rounding decides nothing the same is written.
    assert chunked["baselines"]["other_text"] <= 1
    for one, other in zip(exact["rows"], chunked["rows"], strict=True):
        assert one["edits"] == other["edits"]
        assert other["probability_gold"] == pytest.approx(one["probability_gold"], abs=0.02)


@pytest.mark.model
@pytest.mark.parametrize("temperature", ["0", "0.9"])
def test_the_unchanged_replay_of_every_answer_is_the_stored_one_bit_for_bit(
    temperature: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    model = resolve_model("nano", load_registry()).path
    make_run(model, database, "-np", "4", "--temp", temperature, "--sampler-seed", "3", limit=4)
    capsys.readouterr()
    assert run_command_line([*replay(database, "--json"), "--answers", "4", "--targets", "3"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["baseline_identical"] is True
    assert data["baselines"]["replays"] >= 9
    # An edit that changes nothing that matters would leave P(gold) where it was; these change it.
    golds = {row["probability_gold"] for row in data["rows"]}
    assert len(golds) > len(data["rows"]) / 2
    # P(gold) and Y agree where the model is sure, greedy or not.
    sure = [row for row in data["rows"] if row["probability_gold"] > 0.999]
    assert all(row["outcome"] == 1 for row in sure)


def test_an_edit_shows_what_the_model_writes_then_and_edits_form_one_study(
    medium: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    make_run(medium, database)
    capsys.readouterr()
    answer = ["edit", "latest", f"{TASK}:1", "--db", str(database), "--display", "none"]
    assert run_command_line([*answer, "--set", "3=AAA", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["study"], first["branch"], first["edits"], first["target"]) == ("1.1", "b1", [[3, "AAA"]], 4)
    assert first["replayed"][:3] == [*first["original"][:2], "AAA"]
    assert 0 <= first["probability_gold"] <= 1
    assert first["probability_gold_before"] is not None
    assert run_command_line([*answer, "--corrupt-random", "2", "--target", "9", "--name", "mine"]) == 0
    text = capsys.readouterr().out
    assert "original  " in text
    assert "mine      " in text
    assert text.count("[") == 2
    assert "Atom 9: the right one had a probability of" in text
    right = rows(
        database,
        "SELECT \"index\" + 1 FROM unit WHERE generation = 1 AND kind = 'atom' AND status = 'correct' LIMIT 1",
    )[0][0]
    assert run_command_line([*answer, "--fix", str(right)]) == 2
    assert capsys.readouterr().err == f"salt-tui: atom {right} is right already\n"
    # The same target needs its unchanged replay once; the last atom can be edited too.
    assert run_command_line([*answer, "--set", "4=AAA", "--target", "9"]) == 0
    assert run_command_line([*answer, "--set", f"{len(first['original'])}=AAA"]) == 0
    assert rows(database, "SELECT kind, state, exact FROM study") == [("manual", "finished", 1)]
    assert rows(database, "SELECT count(*) FROM intervention WHERE edits = '[]'") == [(2,)]
    names = rows(database, "SELECT variant FROM intervention WHERE edits <> '[]' ORDER BY generation")
    assert names == [("b1",), ("mine",), ("b3",), ("b4",)]
    capsys.readouterr()
    assert run_command_line(["report", "1.1", "--db", str(database)]) == 0
    assert "3=AAA" in capsys.readouterr().out
    target = tmp_path / "edits.csv"
    assert run_command_line(["export", "1.1", "-o", str(target), "--db", str(database)]) == 0
    assert len(target.read_text().splitlines()) == 1 + 6


def test_an_edit_that_was_killed_leaves_nothing_half_done(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    make_run(scripted_model(TASK, limit=2, difficulty="medium", seconds_per_step=0.02), database)
    edit = ["edit", "latest", f"{TASK}:1", "--db", str(database), "--display", "none"]
    process = subprocess.Popen([sys.executable, "-m", "salt_tui", *edit, "--set", "1=AAA"])
    written = (
        "SELECT count(*) FROM token JOIN generation ON generation.id = generation WHERE role = 'branch' AND forced = 0"
    )
    while rows(database, written) < [(3,)]:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run_command_line([*edit, "--set", "2=AAA"]) == 0
    assert rows(database, "SELECT count(*) FROM generation WHERE stop_reason IS NULL") == [(0,)]
    assert rows(database, "SELECT variant FROM intervention WHERE edits <> '[]'") == [("b1",)]
    assert run_command_line(["db", "check", str(database)]) == 0


def test_an_edit_can_start_from_a_branch_and_branches_form_a_tree(
    medium: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    make_run(medium, database)
    edit = ["edit", "latest", f"{TASK}:1", "--db", str(database), "--display", "none"]
    assert run_command_line([*edit, "--set", "2=AAA", "--name", "root"]) == 0
    capsys.readouterr()
    assert run_command_line([*edit, "--from", "root", "--set", "5=[b]X", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert (second["branch"], second["edited_from"], second["edits"]) == ("b2", "root", [[5, "[b]X"]])
    # The first edit stands in the text that the second one started from and in what came of it.
    assert (second["original"][1], second["replayed"][1], second["replayed"][4]) == ("AAA", "AAA", "[b]X")
    assert second["original"][4] != "[b]X"
    assert second["probability_gold_before"] is not None
    assert run_command_line([*edit, "--from", "b2", "--set", "7=CCC"]) == 0
    assert run_command_line([*edit, "--set", "3=GGG"]) == 0
    capsys.readouterr()
    assert run_command_line(["report", "1.1", "--db", str(database), "--format", "json"]) == 0
    tree = [(row["branch"], row["edited_from"]) for row in json.loads(capsys.readouterr().out)["rows"]]
    assert tree == [("root", "answer"), ("b2", "root"), ("b3", "b2"), ("b4", "answer")]
    parents = "SELECT variant, parent FROM intervention JOIN generation ON id = generation WHERE edits <> '[]'"
    found = dict(rows(database, parents))
    generations = dict(rows(database, "SELECT variant, generation FROM intervention WHERE edits <> '[]'"))
    assert found == {"root": 1, "b2": generations["root"], "b3": generations["b2"], "b4": 1}
    # Tokens before the edit are those of the branch, forced or not, with their numbers.
    kept = rows(
        database,
        "SELECT count(*) FROM token AS a JOIN token AS b USING (position, id, log_probability, entropy)"
        f" WHERE a.generation = {generations['root']} AND b.generation = {generations['b2']}",
    )[0][0]
    assert kept >= 4
    assert run_command_line(["show", "1.1", f"{TASK}:1", "--db", str(database)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"branch \d+ \(b3\) of answer 1 of dna_translation, study 1.1: ", shown)
    assert "branch 1 (as it was, atom 3) of answer 1 of dna_translation, study 1.1: " in shown
    assert "edited from branch b2: 7=CCC; the model wrote on from atom 8" in shown
    assert "edited from the answer: 2=AAA; the model wrote on from atom 3" in shown
    for arguments, message in (
        (["--from", "nothing", "--set", "3=GGG"], "--from nothing: the answer has no branch of that name; it has root"),
        (["--set", "3=GGG", "--name", "root"], "--name root: the run has a branch of that name"),
        (["--set", "3=GGG", "--name", "a\nb"], "--name a\\nb: a name has no line breaks"),
        (["--set", "3=GGG", "--name", "x" * 25], "a name has at most 24 characters"),
        (["--from", "root", "--set", "2=AAA"], "atom 2 is as asked already"),
    ):
        assert run_command_line([*edit, *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    study = Work(1, 1, 1)
    with open_store(database) as store, pytest.raises(StoreError, match="has a branch 'b2' already"):
        store.rename_branch(study, generations["b3"], "b2")
    with open_store(database) as store:
        store.rename_branch(study, generations["b3"], "mine")
        store.delete_branch(study, generations["b4"])
    with open_queries(database) as queries:
        assert [(one.name, one.depth) for one in queries.edited_branches(study)] == [
            ("root", 0),
            ("b2", 1),
            ("mine", 2),
        ]
    assert run_command_line([*edit, "--set", "4=TTT"]) == 0
    with open_store(database) as store:
        store.delete_branch(study, generations["root"])
        with pytest.raises(StoreError, match="has no branch"):
            store.delete_branch(study, generations["b2"])
    with open_queries(database) as queries:
        assert [one.name for one in queries.edited_branches(study)] == ["b4"]
    assert run_command_line(["db", "check", str(database)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([f"{TASK}:1"], "nothing is edited"),
        ([f"{TASK}:9", "--fix", "1"], "the run has no finished answer of that name"),
        ([f"{TASK}:1", "--fix", "x"], "--fix x: numbers of atoms, counted from 1"),
        ([f"{TASK}:1", "--set", "x=GAC"], "--set x=GAC: NUMBER=TEXT"),
        ([f"{TASK}:1", "--fix", "all"], "--target says before which atom"),
        ([f"{TASK}:1", "--set", "5=AAA", "--target", "3"], "edited atoms stand before the target"),
        ([f"{TASK}:1", "--set", "2=AAA CCC"], "--set 2=AAA CCC: it is 2 atoms, not one"),
        ([f"{TASK}:1", "--set", "2=AAA\nCCC"], "an atom has no line breaks and no control characters"),
        ([f"{TASK}:1", "--set", "2=AAA****"], "**** would end the answer"),
        ([f"{TASK}:1", "--set", "2= "], "NUMBER=TEXT"),
        ([f"{TASK}:1", "--fix", "999"], "there is no atom 999: the answer has "),
        ([f"{TASK}:1", "--fix", "all", "--target", "999"], "--target 999: at most "),
    ],
)
def test_an_edit_that_cannot_be_meant_is_one_line(
    medium: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    database = tmp_path / "x.db"
    make_run(medium, database)
    capsys.readouterr()
    assert run_command_line(["edit", "latest", *arguments, "--db", str(database), "--display", "none"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert rows(database, "SELECT count(*) FROM study") == [(0,)]
