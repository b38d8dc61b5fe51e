"""`study`, `runs` and `show` as a user calls them, and a study that is killed and resumed."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from tests.conftest import ScriptedModel

TASKS = ("kronecker_product", "dna_translation")
SIGNALS = (
    'SELECT task, position, kind, signal."index", name, value FROM signal'
    " JOIN generation ON generation.id = signal.generation JOIN problem ON problem.id = generation.problem"
    " ORDER BY 1, 2, 3, 4, 5"
)


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(database) as connection:
        return connection.execute(query).fetchall()


def sampled_model(scripted_model: ScriptedModel, seconds_per_step: float = 0.0) -> Path:
    """Return a model that answers each problem in two ways, of which the seed draws one."""
    path = scripted_model(*TASKS, limit=2, seconds_per_step=seconds_per_step)
    script = json.loads(path.read_text())
    script["replies"] += [
        {**reply, "tokens": [token for token in reply["tokens"] if token[0] != reply["tokens"][2][0]]}
        for reply in script["replies"]
    ]
    path.write_text(json.dumps(script))
    return path


def make_run(model: Path, database: Path) -> None:
    tasks = ",".join(TASKS)
    assert run_command_line(
        ["run", "-m", str(model), "--tasks", tasks, "--difficulty", "trivial", "--limit", "2", "--seed", "1",
         "--db", str(database), "--display", "none"]
    ) == 0  # fmt: skip


def study(database: Path, *more: str) -> list[str]:
    return ["study", "samples", "latest", "-k", "3", "--db", str(database), "--display", "none", *more]


def test_a_study_prints_what_it_found_and_is_listed_shown_and_reported(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    make_run(sampled_model(scripted_model), database)
    capsys.readouterr()
    assert run_command_line(study(database, "--json")) == 0
    data = json.loads(capsys.readouterr().out)
    assert {name: data[name] for name in ("study", "kind", "run", "state", "jobs", "done")} == {
        "study": "1.1", "kind": "samples", "run": 1, "state": "finished", "jobs": 12, "done": 12,
    }  # fmt: skip
    assert data["signals"] == ["agreement", "cluster_entropy"]
    assert {row["task"] for row in data["rows"]} == set(TASKS)
    assert run_command_line(["runs", "--db", str(database), "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert listed["studies"] == [{"study": "1.1", "kind": "samples", "state": "finished", "exact": True}]
    assert (listed["run"], listed["difficulty"], listed["answers"], listed["width"]) == (1, "trivial", 4, 4)
    assert run_command_line(["report", "1.1", "--format", "json", "--db", str(database)]) == 0
    assert json.loads(capsys.readouterr().out) == data
    assert run_command_line(["report", "1.1", "--db", str(database)]) == 0
    assert "majority precision" in capsys.readouterr().out
    assert run_command_line(["resume", "1.1", "--db", str(database), "--json"]) == 0
    again = capsys.readouterr()
    assert json.loads(again.out) == data
    assert "study 1.1 is finished, nothing to do" in again.err
    assert run_command_line(["show", "1", "dna_translation:2", "--db", str(database), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["atoms"][0]["confidences"].keys() >= {"max_probability", "agreement", "cluster_entropy"}
    assert run_command_line(["show", "1.1", "dna_translation:2", "--db", str(database)]) == 0
    text = capsys.readouterr().out
    assert text.count("of answer 2 of dna_translation, study 1.1: complete") == 3


def test_a_killed_study_gives_the_same_numbers_after_resuming(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    model = sampled_model(scripted_model, seconds_per_step=0.02)
    whole, killed = tmp_path / "whole.db", tmp_path / "killed.db"
    for database in (whole, killed):
        make_run(model, database)
    assert run_command_line(study(whole)) == 0
    process = subprocess.Popen([sys.executable, "-m", "salt_tui", *study(killed)])
    finished = "SELECT count(*) FROM generation WHERE role = 'sample' AND stop_reason IS NOT NULL"
    while rows(killed, finished) < [(3,)]:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert rows(killed, SIGNALS) == []
    assert run_command_line(["resume", "latest", "--cache-mb", "-1", "--db", str(killed)]) == 2
    assert run_command_line(["resume", "latest", "--cache-mb", "0", "--db", str(killed), "--display", "none"]) == 0
    assert rows(killed, "SELECT state, exact FROM study") == [("finished", 1)]
    assert rows(killed, SIGNALS) == rows(whole, SIGNALS)
    assert len(rows(whole, SIGNALS)) > 20


def test_an_answer_is_shown_with_prompt_marks_reference_and_confidences(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    make_run(scripted_model(*TASKS, limit=2), database)
    capsys.readouterr()
    assert run_command_line(["show", "latest", "kronecker_product:1", "--db", str(database)]) == 0
    text = capsys.readouterr().out
    for part in ("answer 1 of kronecker_product, run 1: complete", "-- prompt, ", "-- reply", "-- reference",
                 "max_probability"):  # fmt: skip
        assert part in text
    (reference,) = rows(database, "SELECT reference FROM problem WHERE task = 'kronecker_product' AND position = 0")[0]
    assert str(reference).splitlines()[0] in text
    for wrong in ("kronecker_product:0", "kronecker_product:3", "maze:1", "kronecker_product", "1"):
        assert run_command_line(["show", "latest", wrong, "--db", str(database)]) == 2
        assert "it has kronecker_product:1 to kronecker_product:2, dna_translation:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["study", "samples", "7"], "there is no run '7'"),
        (["study", "samples", "latest", "-k", "0"], "-k 0: 1 to 1000 samples"),
        (["study", "combine", "latest", "--seed", str(2**63)], f"--seed {2**63}: a whole number of at most 63 bits"),
        (["study", "samples", "latest", "--display", "app"], "--display app shows runs"),
        (["study", "samples", "1.1"], "has no study 1.1"),
        (["report", "1.1"], "has no study 1.1"),
        (["resume", "1.1"], "has no study 1.1"),
        (["resume", "1", "--cache-mb", "64"], "--cache-mb is for studies, and run 1 is none: leave it out"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    scripted_model: ScriptedModel,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    database = tmp_path / "x.db"
    make_run(scripted_model(*TASKS, limit=1), database)
    capsys.readouterr()
    assert run_command_line([*arguments, "--db", str(database)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_list_without_runs_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "x.db"
    assert run_command_line(["runs", "--db", str(database)]) == 2
    assert str(database) in capsys.readouterr().err


def test_signals_are_confidence_functions_of_every_report(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    make_run(sampled_model(scripted_model), database)
    report = ["report", "1", "--draws", "0", "--format", "json", "--db", str(database)]
    assert run_command_line([*report, "--function", "agreement"]) == 2
    assert "--function agreement: there are perplexity" in capsys.readouterr().err
    assert run_command_line(study(database)) == 0
    assert run_command_line([*report, "--function", "agremeent"]) == 2
    assert "did you mean agreement?" in capsys.readouterr().err
    capsys.readouterr()
    assert run_command_line(report) == 0
    functions = {row["function"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert functions > {"agreement", "cluster_entropy", "max_probability"}
    assert run_command_line([*report, "--function", "agreement", "--calibrator", "none", "--unit", "atom"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    # AUROC from the rows of the database: the share of pairs in which the right atom has more agreement, ties half.
    scored: dict[object, tuple[list[float], list[float]]] = {}
    for task, right, value in rows(
        database,
        "SELECT task, status = 'correct', value FROM signal JOIN unit ON unit.generation = signal.generation"
        ' AND unit.kind = signal.kind AND unit."index" = signal."index"'
        " JOIN generation ON generation.id = unit.generation JOIN problem ON problem.id = generation.problem"
        " WHERE name = 'agreement' AND signal.kind = 'atom' AND status <> 'abstained'",
    ):
        assert isinstance(value, float)
        scored.setdefault(task, ([], []))[bool(right)].append(value)
    shares = [
        sum((good > bad) + (good == bad) / 2 for good in right for bad in wrong) / (len(right) * len(wrong))
        for wrong, right in scored.values()
    ]
    assert row["auroc"] == pytest.approx(sum(shares) / len(shares))
    assert run_command_line(study(database)) == 0  # two studies give it: the name alone is not enough
    assert run_command_line([*report, "--function", "agreement@1.1", "--calibrator", "none", "--unit", "atom"]) == 0
    assert run_command_line([*report, "--function", "agreement"]) == 2
    assert "agreement@1.1, " in capsys.readouterr().err


def test_a_study_is_exported_as_a_table_of_signals_as_lines_and_as_a_database(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database, copied = tmp_path / "x.db", tmp_path / "copy.db"
    make_run(sampled_model(scripted_model), database)
    for _ in range(2):
        assert run_command_line(study(database)) == 0
    for name in ("s.csv", "s.jsonl", "copy.db"):
        assert run_command_line(["export", "1.2", "-o", str(tmp_path / name), "--db", str(database)]) == 0
    assert "study 1.2 is in" in capsys.readouterr().err
    header, *lines = (tmp_path / "s.csv").read_text().splitlines()
    assert header == "run,study,task,position,kind,index,name,score,reason"
    assert len(lines) == len(rows(database, "SELECT 1 FROM signal JOIN study ON study.id = study WHERE number = 2"))
    generations = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [(item["role"], item["number"]) for item in generations] == [("sample", number) for number in range(3)] * 4
    assert all(item["units"] and item["tokens"] and item["study"] == "1.2" for item in generations)
    assert rows(copied, "SELECT number, state FROM study") == [(2, "finished")]
    assert rows(copied, "SELECT count(*) FROM generation WHERE role = 'sample'") == [(12,)]
    assert run_command_line(["report", "1.2", "--db", str(copied)]) == 0
