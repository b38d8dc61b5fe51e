"""`policy` as a user calls it: what it says, what it keeps, and what it decides."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from salt_tui.store.queries import open_queries
from salt_tui.store.records import SignalRecord, Work
from salt_tui.store.store import open_store
from scoring.policy import NO_THRESHOLD
from tests.stored_runs import EIGHT_TASKS, store_run

NAMES = {
    "function", "map", "thresholds", "bands", "holds", "coverage", "error", "utility", "n_fit", "n_shown", "reasons",
}  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("policy") / "x.db"
    store_run(path, tasks=EIGHT_TASKS[:2], answers=60, atoms=10)
    return path


def data_of(capsys: pytest.CaptureFixture[str], database: Path, *arguments: str) -> dict[str, Any]:
    assert run_command_line(["policy", "1", "--db", str(database), "--json", *arguments]) == 0
    data = json.loads(capsys.readouterr().out)
    assert isinstance(data, dict)
    return data


def test_a_promise_is_tested_on_answers_that_did_not_choose(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, database, "--risk", ".35,.45", "--function", "max_probability")
    assert set(data) == NAMES
    assert (data["holds"], data["function"], data["map"]) == (True, "max_probability", "none")
    assert (data["n_fit"], data["n_shown"]) == (40, 80)
    trust, check = data["bands"]
    assert (trust["name"], check["name"]) == ("trust", "check")
    assert trust["wrong"] / trust["trusted"] == trust["error"] == data["error"] < trust["bound"] <= 0.35
    # Missing units of the 800 are in no band.
    assert trust["trusted"] / trust["coverage"] == pytest.approx(check["trusted"] / check["coverage"])
    assert 0.5 < trust["coverage"] == data["coverage"] < check["coverage"] <= 1.0
    assert trust["delta"] == pytest.approx(0.05)
    assert data == data_of(capsys, database, "--risk", ".35,.45", "--function", "max_probability")


def test_a_saved_policy_decides_as_its_thresholds_say(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, scores = tmp_path / "policy.json", tmp_path / "scores.csv"
    data = data_of(capsys, database, "--risk", ".35,.45", "--function", "perplexity", "-o", str(file))
    limits = [-float(value) for value in data["thresholds"]]
    with open_queries(database) as queries:
        values = queries.unit_columns(1, "atom", ["perplexity"]).confidences["perplexity"].tolist()
    with scores.open("w", newline="") as out:
        csv.writer(out).writerows([["perplexity", "note"], *([repr(value), ""] for value in values), ["", "no score"]])
    assert run_command_line(["policy", "--apply", str(file), str(scores)]) == 0
    expected = ["trust" if v < limits[0] else "check" if v < limits[1] else "withhold" for v in values]
    assert capsys.readouterr().out.split() == [*expected, "withhold"]
    assert {"trust", "check"} <= set(expected)


def test_a_map_goes_with_its_policy(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, scores = tmp_path / "policy.json", tmp_path / "scores.csv"
    data = data_of(
        capsys, database, "--rewards", "1,-1,0,0", "--function", "logprob_sum", "--calibrator", "platt", "-o", str(file)
    )
    assert (data["thresholds"], data["map"], data["holds"]) == ([0.5], "platt", None)
    assert data["utility"] > max(data["utility_trust_all"], data["utility_trust_none"])
    scores.write_text("logprob_sum\n-0.01\n-30\n")
    assert run_command_line(["policy", "--apply", str(file), str(scores)]) == 0
    assert capsys.readouterr().out.split() == ["trust", "withhold"]


def test_an_export_of_atoms_has_the_signal_that_a_policy_chose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database, file, atoms = tmp_path / "x.db", tmp_path / "policy.json", tmp_path / "atoms.csv"
    store_run(database, tasks=EIGHT_TASKS[:2], answers=12, atoms=6)
    with open_queries(database) as queries:
        answers = [answer.generation for answer in queries.answers(1) if answer.generation is not None]
    with open_store(database) as store:
        store.claim(Work(1))
        values = {(answer, place): answer / 100 + place / 1000 for answer in answers for place in range(6)}
        del values[answers[0], 0]
        records = [SignalRecord(answer, "atom", place, "own", value) for (answer, place), value in values.items()]
        store.add_signals(Work(1), [*records, SignalRecord(answers[0], "atom", 0, "own", None, "not said")])
        store.release(Work(1), "finished")
    assert run_command_line(["export", "1", "--db", str(database), "-o", str(atoms)]) == 0
    with atoms.open(newline="") as table:
        rows = list(csv.DictReader(table))
    for row in rows:
        value = values.get((int(row["generation"]), int(row["index"])))
        assert row["own"] == ("" if value is None else repr(value))
    data_of(capsys, database, "--rewards", "1,-1,0,0", "--function", "own", "-o", str(file))
    assert run_command_line(["policy", "--apply", str(file), str(atoms)]) == 0
    decisions = capsys.readouterr().out.split()
    assert len(decisions) == len(rows)


def test_scores_that_are_fitted_on_the_run_are_chosen_only_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=EIGHT_TASKS[:2], answers=12, atoms=6)
    with open_queries(database) as queries:
        columns = queries.unit_columns(1, "atom")
    places = zip(columns.generation.tolist(), columns.index.tolist(), strict=True)
    known = [
        ((answer, "atom", index), right) for (answer, index), right in zip(places, columns.status == 0, strict=True)
    ]
    with open_store(database) as store:
        store.claim(Work(1))
        store.add_signals(Work(1), [SignalRecord(*at, "combined_forest", float(right)) for at, right in known])
        store.release(Work(1), "finished")
    assert data_of(capsys, database, "--rewards", "1,-1,0,0")["function"] != "combined_forest"
    assert run_command_line(
        ["policy", "1", "--db", str(database), "--rewards", "1,-1,0,0", "--function", "combined_forest"]
    ) == 0  # fmt: skip
    said = " ".join(capsys.readouterr().out.split())
    assert "read by combined_forest" in said
    assert "fitted anew in each run: this policy is for units of this run" in said


def test_what_cannot_be_promised_is_said_and_not_kept(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.json"
    assert run_command_line(["policy", "1", "--db", str(database), "--risk", ".001", "-o", str(file)]) == 1, (
        "a script must notice"
    )
    captured = capsys.readouterr()
    assert "cannot be promised: 80 answers with a trusted unit, and 2302 are needed" in captured.out
    assert "policy.json was not written: cannot be promised" in captured.err
    assert not file.exists()
    data = data_of(capsys, database, "--risk", ".05", "--function", "mean_entropy")
    assert data["holds"] is False
    assert data["reasons"] == {"holds": NO_THRESHOLD}


def test_sentences_name_the_promise_and_what_it_rests_on(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["policy", "1", "--db", str(database), "--risk", ".5", "--exact"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "90 % sure: in the mean over answers, at most 50 % of an answer's trusted atoms are wrong." in text
    assert "Nothing is promised of single tasks" in text


def test_that_trusting_nothing_earns_more_is_said_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=EIGHT_TASKS[:2], answers=12, atoms=10, seed=1)
    said = {}
    for rewards in ("1,-30,0,0", "1,-.1,0,0"):
        data = data_of(capsys, database, "--rewards", rewards)
        earned = max(data["utility"], data["utility_trust_all"])
        assert run_command_line(["policy", "1", "--db", str(database), "--rewards", rewards]) == 0
        text = " ".join(capsys.readouterr().out.split())
        said[rewards] = text.startswith("Trust nothing: with these rewards that earns .000 a unit")
        assert said[rewards] is (earned < data["utility_trust_none"])
    assert said == {"1,-30,0,0": True, "1,-.1,0,0": False}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "either --risk"),
        (["--risk", ".1", "--rewards", "1,-1,0,0"], "either --risk"),
        (["--risk", "2"], "shares between 0 and 1"),
        (["--risk", ".2,.1"], "the second is larger"),
        (["--risk", ".1", "--calibrator", "plat"], "platt"),
        (["--rewards", "1,1,0,0"], "--rewards 1,1,0,0"),
        (["--rewards", "1,-1,0,0", "--exact"], "leave --confidence and --exact out"),
    ],
)
def test_options_that_cannot_be_meant(
    database: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run_command_line(["policy", "1", "--db", str(database), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"kind": "salt-tui policy", "format": 1, "thresholds": [0.1, 0.2]}',
        *(
            f'{{"kind": "salt-tui policy", "format": 1, "function": "score", "lower_is_confident": false, "map": null,'
            f' "thresholds": [{threshold}]}}'
            for threshold in ("1" + "0" * 400, "NaN", "Infinity", "true", '"0.5"', "[]")
        ),
    ],
)
def test_files_that_hold_no_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    file, scores = tmp_path / "policy.json", tmp_path / "scores.csv"
    file.write_text(text)
    scores.write_text("score\n.5\n")
    assert run_command_line(["policy", "--apply", str(file), str(scores)]) == 2
    captured = capsys.readouterr()
    assert "policy.json" in captured.err
    assert captured.out == ""
