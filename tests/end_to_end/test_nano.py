"""The tiny model that comes with the program does what its card promises, and the tour shows it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from salt_tui.engine.gguf_header import read_header
from salt_tui.engine.models import load_registry, resolve_model
from tasks.registry import TASKS

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

LARGEST_BYTES = 6_000_000
COMMAND = (sys.executable, "-m", "salt_tui")


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def model() -> Path:
    return resolve_model("nano", load_registry()).path


def test_the_file_is_small_and_says_what_it_is_for(model: Path) -> None:
    assert model.stat().st_size <= LARGEST_BYTES
    header = read_header(model)
    assert header.architecture == "llama"
    assert "no benchmark entry" in str(header.metadata["general.description"])
    assert "no benchmark entry" in model.with_name("CARD.md").read_text()
    assert "salt-nano (tests)" in run("models", "list").stdout
    assert "never a benchmark entry" in run("models", "check", "nano").stdout


def test_easy_problems_have_right_and_wrong_atoms(tmp_path: Path) -> None:
    done = run(
        "run", "-m", "nano", "--difficulty", "easy", "--limit", 20, "--seed", 1, "-np", 16, "--json",
        "--db", tmp_path / "x.db",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert any("never a benchmark entry" in warning for warning in data["warnings"])
    tasks: dict[str, Any] = data["tasks"]
    assert set(tasks) == set(TASKS)
    assert all(0 < task["correct"] < task["atoms"] for task in tasks.values())
    assert sum(0.4 <= task["precision"] <= 0.95 for task in tasks.values()) >= 5
    answers = sum(task["answers"] for task in tasks.values())
    complete = sum(task["statuses"].get("complete", 0) for task in tasks.values())
    assert complete >= 0.95 * answers


def test_thirty_codons_have_right_and_wrong_ones(tmp_path: Path) -> None:
    done = run(
        "run", "-m", "nano", "--tasks", "dna_translation", "--difficulty", "medium", "--param", "codons=30",
        "--limit", 20, "--seed", 1, "-np", 16, "--json", "--db", tmp_path / "x.db",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    codons: dict[str, Any] = json.loads(done.stdout)["tasks"]["dna_translation"]
    assert 0.5 * codons["atoms"] < codons["correct"] < codons["atoms"]


def test_the_tour_shows_map_mistake_and_reliability(tmp_path: Path) -> None:
    database = tmp_path / "tour.db"
    done = run("tour", "--db", database)
    assert done.returncode == 0, done.stderr
    steps = re.split(r"^\d/5  ", done.stdout, flags=re.MULTILINE)
    assert len(steps) == 6
    _, _, heatmap, mistake, reliability, edit = steps
    assert all(name[:14] in heatmap for name in TASKS)
    assert "×" in heatmap
    assert "·" in heatmap
    assert re.search(r"it said “.+”, (right is “.+”|where the answer should have ended)\.", " ".join(mistake.split()))
    assert re.search(r"^\.8–1\.0 +\d+ ", reliability, flags=re.MULTILINE)
    assert re.search(r"^  edited +\[", edit, flags=re.MULTILINE)
    assert re.search(r"Atom 5: the right one had a probability of [\d.]+, now [\d.]+\.", edit)
    assert f"salt-tui --db {database}" in edit
    listed = run("report", "--db", database, "--format", "json", "--draws", 0)
    counted = sum(task["atoms"] for task in json.loads(listed.stdout)["tasks"].values())
    bins = [int(line.split()[1]) for line in reliability.splitlines() if re.match(r"^\.\d–", line)]
    assert sum(bins) == counted


def test_a_tour_fits_a_narrow_terminal(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "tour", "--db", str(tmp_path / "tour.db")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "60"},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines if not line.startswith("  salt-tui ")) <= 60
    assert any(line.endswith("overconfident by") for line in lines)


def test_a_tour_that_is_stopped_can_be_gone_on_with(tmp_path: Path) -> None:
    database = tmp_path / "tour.db"
    process = subprocess.Popen(
        [*COMMAND, "tour", "--db", str(database)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not database.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=60)
    assert process.returncode == 130
    assert len(talk.splitlines()) == 1
    assert "interrupted" in talk


def test_a_tour_into_something_else_is_one_line(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("mine\n")
    done = run("tour", "--db", text)
    assert done.returncode == 2
    assert "notes.txt" in done.stderr
    assert text.read_text() == "mine\n"


def test_a_killed_study_of_samples_gives_the_same_numbers(tmp_path: Path) -> None:
    signals = (
        'SELECT task, position, kind, signal."index", name, value FROM signal'
        " JOIN generation ON generation.id = signal.generation JOIN problem ON problem.id = generation.problem"
        " ORDER BY 1, 2, 3, 4, 5"
    )
    tokens = (
        "SELECT task, problem.position, number, token.position, token.id, log_probability, entropy, alternatives"
        " FROM token JOIN generation ON generation.id = token.generation"
        " JOIN problem ON problem.id = generation.problem WHERE role = 'sample' ORDER BY 1, 2, 3, 4"
    )
    whole, killed = tmp_path / "whole.db", tmp_path / "killed.db"
    made = run("run", "-m", "nano", "--tasks", "words_collection,maze", "--difficulty", "trivial", "--limit", 2,
               "--seed", 3, "--db", whole, "--display", "none")  # fmt: skip
    assert made.returncode == 0, made.stderr
    shutil.copy(whole, killed)
    study = ("study", "samples", "1", "-k", 12, "--temp", 0.8, "--aligned", "--display", "none", "--db")
    assert run(*study, whole).returncode == 0
    with subprocess.Popen([*COMMAND, *map(str, study), str(killed)]) as process:
        while not rows(killed, "SELECT 1 FROM generation WHERE role = 'sample' AND stop_reason IS NOT NULL LIMIT 1"):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert rows(killed, "SELECT state FROM study") == [("running",)]
    assert rows(killed, signals) == []
    resumed = run("resume", "latest", "--db", killed, "--display", "none", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["state"] == "finished"
    assert rows(killed, tokens) == rows(whole, tokens)
    assert rows(killed, signals) == rows(whole, signals)
    assert len(rows(whole, signals)) > 50


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(database) as connection:
        return connection.execute(query).fetchall()
