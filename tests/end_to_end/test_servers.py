"""Models on servers, from the command line to the file: what is stored, what is said, what a fault leaves behind."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from salt_tui.engine.models import load_registry, resolve_model
from salt_tui.paths import log_directory, user_models_file
from tests.engine.scripted_server import Answer, Asked, ScriptedServer, fails, said

pytestmark = pytest.mark.process

KEY = "sk-test-0123456789"
CHOICE = [
    {
        "id": str(number),
        "kind": "choice",
        "prompt": f"{number}. Pick {letter}.",
        "choices": ["x", "y", "z"],
        "reference": letter,
    }
    for number, letter in enumerate("ABCABCABCA")
]
CALL = {
    "id": "call", "kind": "json", "prompt": "Call set with name é and level 3.",
    "reference": {"tool": "set", "name": "é", "level": 3},
}  # fmt: skip


ATOMS = {'"set"': False, '"é"': True, "4": False}
"""Of the answer to the call, and whether they touch what the server lost."""


@pytest.fixture
def questions(tmp_path: Path) -> str:
    """Write ten questions with choices and one tool call; return them as ``--tasks`` takes them."""
    names = []
    for name, rows in (("letters", CHOICE), ("calls", [CALL])):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        names.append(f"file:{path}")
    return ",".join(names)


def knows(asked: Asked, number: int = 0) -> Answer:
    """Answer as a model that knows everything and loses the halves of a character."""
    if "Call set" in asked.last:
        pieces = ['********\n{"tool": "set", "name": "', "\ufffd", "\ufffd", '", "level": ', "4", "}\n********"]
        text = '********\n{"tool": "set", "name": "é", "level": 4}\n********'
        return answered(text, pieces)
    letter = asked.last.split("Pick ")[1][0]
    top = {letter: -0.25, f" {letter}": -3.0, "Z": -4.0, "B" if letter == "A" else "A": -2.0}
    return said(letter, finish="length", top=top)


def answered(text: str, pieces: list[str]) -> Answer:
    from tests.engine.scripted_server import chunk, entry, event

    return Answer([event(chunk(text, [entry(piece, -0.125) for piece in pieces])), event(chunk(None, None, "stop"))])


def set_up(server: ScriptedServer, **more: str) -> None:
    user_models_file().parent.mkdir(parents=True, exist_ok=True)
    user_models_file().write_text(server.entry(**more))


def rows(database: Path, question: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        return connection.execute(question).fetchall()


def run(database: Path, tasks: str, *more: str) -> list[str]:
    return ["run", "-m", "served", "--tasks", tasks, "--limit", "10", "--seed", "1", "--db", str(database), *more]


def test_own_questions_are_answered_over_http_and_nothing_holds_the_key(
    questions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    monkeypatch.setenv("A_KEY", KEY)
    with ScriptedServer(knows) as server:
        set_up(server, key_env="A_KEY")
        assert run_command_line(run(database, questions, "--json", "-np", "2")) == 0
    captured = capfd.readouterr()
    found = json.loads(captured.out)
    assert (found["header"]["statistics"], found["header"]["exact"]) == ("top_k", False)
    assert found["header"]["model_sha256"] is None
    assert found["header"]["model_identity"].startswith(f"remote:{server.url.removeprefix('http://')}|m|")
    assert found["tasks"]["file:letters"]["precision"] == 1.0
    assert found["tasks"]["file:calls"]["correct"] == 2
    # The letter among those listed; one that is not listed is undefined, with the reason.
    signals = dict(
        rows(database, "SELECT name, count(value) FROM signal JOIN generation ON generation.id = generation GROUP BY 1")
    )
    assert signals == {"choice_probability": 20, "choice_mass": 10, "choice_A": 10, "choice_B": 7, "choice_C": 3}
    # The atom with the lost character has no confidence, the others have.
    atoms = rows(database, "SELECT text, max_probability FROM atom_view WHERE task = 'file:calls'")
    assert {text: confidence is None for text, confidence in atoms} == ATOMS
    assert rows(database, "SELECT DISTINCT statistics, entropy IS NULL, id IS NULL FROM atom_view, token") == [
        ("top_k", 1, 1)
    ]
    assert run_command_line(["db", "check", str(database)]) == 0
    assert run_command_line(["show", "1", "file:letters:1", "--db", str(database)]) == 0
    assert "0. Pick A." in capfd.readouterr().out
    everything = [*tmp_path.rglob("*"), *log_directory().rglob("*")]
    held = [path for path in everything if path.is_file() and KEY.encode() in path.read_bytes()]
    assert held == []
    assert KEY not in captured.out + captured.err


def test_a_run_of_which_nothing_could_be_computed_fails_and_goes_on_when_the_server_is_back(
    questions: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    broken = True

    def behave(asked: Asked, number: int) -> Answer:
        return fails(503, "overloaded", Retry_After="0") if broken else knows(asked)

    with ScriptedServer(behave) as server:
        set_up(server)
        assert run_command_line(run(database, questions, "--display", "plain")) == 1
        said_so = capfd.readouterr().err
        assert "answers 503 (overloaded); tried 8 times" in said_so
        assert "tried again in 0.0 s" in said_so
        assert rows(database, "SELECT state FROM run") == [("failed",)]
        assert rows(database, "SELECT count(*) FROM generation WHERE stop_reason IS NOT NULL") == [(0,)]
        broken = False
        assert run_command_line(["resume", "1", "--db", str(database), "--display", "none"]) == 0
    assert rows(database, "SELECT state FROM run") == [("finished",)]
    assert rows(database, "SELECT count(*) FROM generation WHERE stop_reason IN ('end', 'done')") == [(11,)]


@pytest.mark.parametrize(
    ("keys", "lines"),
    [
        ({"model": "n"}, 'no model is served as "n"'),
        ({"key_env": "NOT_SET_ANYWHERE"}, "set the environment variable NOT_SET_ANYWHERE"),
    ],
)
def test_a_model_that_cannot_be_asked_leaves_nothing_behind(
    keys: dict[str, str], lines: str, questions: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with ScriptedServer(knows, models={"data": [{"id": "m"}]}) as server:
        set_up(server, **keys)
        assert run_command_line(run(tmp_path / "x.db", questions)) == 2
    error = capfd.readouterr().err
    assert lines in error
    assert "Traceback" not in error
    assert not (tmp_path / "x.db").exists() or rows(tmp_path / "x.db", "SELECT count(*) FROM run") == [(0,)]


@pytest.mark.soak
def test_a_killed_run_goes_on_where_it_was(questions: str, tmp_path: Path) -> None:
    """With another key and nothing asked twice that was finished."""
    database = tmp_path / "x.db"
    with ScriptedServer(lambda asked, number: Answer([0.3, *knows(asked).parts])) as server:
        set_up(server)
        program = subprocess.Popen(
            [sys.executable, "-m", "salt_tui", *run(database, questions, "--display", "none", "-np", "1")],
            env={**os.environ, "PYTHONPATH": os.getcwd()},
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if database.exists() and len(server.asked) > 4:
                break
            time.sleep(0.05)
        program.send_signal(signal.SIGKILL)
        program.wait()
        (finished,) = rows(database, "SELECT count(*) FROM generation WHERE stop_reason IS NOT NULL")[0]
        assert finished >= 2
        before = len(server.asked)
        assert run_command_line(["resume", "latest", "--db", str(database), "--display", "none"]) == 0
        assert len(server.asked) - before == 11 - finished
    assert run_command_line(["db", "check", str(database)]) == 0


# --- a real server ----------------------------------------------------------------------------------------------


@pytest.fixture
def llama_server(tmp_path: Path, unused_port: int) -> Iterator[Callable[..., str]]:
    """Start llama-cpp-python's server with a model; return its base address once it answers."""
    started: list[subprocess.Popen[bytes]] = []

    def start(model: Path, *more: str) -> str:
        command = [sys.executable, "-m", "llama_cpp.server", "--model", str(model), "--model_alias", "m"]
        command += ["--logits_all", "true", "--interrupt_requests", "false", "--n_ctx", "1024"]
        command += ["--n_threads", "1", "--n_threads_batch", "1", "--port", str(unused_port), *more]
        with (tmp_path / "server.log").open("wb") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log))
        deadline = time.monotonic() + 90
        import httpx2

        while time.monotonic() < deadline:
            assert started[-1].poll() is None, (tmp_path / "server.log").read_text()[-2000:]
            try:
                if httpx2.get(f"http://127.0.0.1:{unused_port}/v1/models", trust_env=False).status_code == 200:
                    return f"http://127.0.0.1:{unused_port}/v1"
            except httpx2.HTTPError:
                time.sleep(0.1)
        raise AssertionError("the server did not start")

    yield start
    for server in started:
        server.kill()
        server.wait()


@pytest.fixture
def unused_port() -> int:
    import socket

    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


TOKENS = (
    "SELECT task, problem.position, token.position, coalesce(token.bytes, vocabulary.bytes), token.log_probability"
    " FROM token JOIN generation ON generation.id = token.generation JOIN problem ON problem.id = generation.problem"
    " JOIN run ON run.id = problem.run"
    " LEFT JOIN vocabulary ON vocabulary.model = run.model AND vocabulary.id = token.id"
    " WHERE run = {run} AND byte_end > byte_start ORDER BY 1, 2, 3"
)


def test_the_same_model_on_a_server_says_the_same(llama_server: Callable[..., str], tmp_path: Path) -> None:
    """In 32 bits throughout and cut alike: the same tokens, log-probabilities to 1e-3, so the same verdicts."""
    database = tmp_path / "x.db"
    model = resolve_model("nano", load_registry()).path
    assert model is not None
    url = llama_server(model, "--type_k", "0", "--type_v", "0")
    user_models_file().parent.mkdir(parents=True, exist_ok=True)
    user_models_file().write_text(f'[served]\nurl = "{url}"\nmodel = "m"\n')
    asked = ["--tasks", "kronecker_product,maze", "--difficulty", "trivial", "--limit", "3", "--seed", "1", "-n", "40"]
    asked += ["--db", str(database), "--display", "none"]
    assert run_command_line(["run", "-m", "served", *asked]) == 0
    local = ["-np", "1", "-fa", "off", "-ctk", "f32", "-ctv", "f32", "-t", "1"]
    assert run_command_line(["run", "-m", "nano", *asked, *local]) == 0
    served, here = (rows(database, TOKENS.format(run=number)) for number in (1, 2))
    assert [token[:4] for token in served] == [token[:4] for token in here]
    assert len(served) > 40
    assert max(abs(one[4] - other[4]) for one, other in zip(served, here, strict=True)) < 1e-3
    verdicts = 'SELECT task, position, "index", text, status FROM atom_view WHERE run = {} ORDER BY 1, 2, 3'
    assert rows(database, verdicts.format(1)) == rows(database, verdicts.format(2))
    # What the list of 20 bounds from below is what the vocabulary has.
    from salt_tui.store.queries import open_queries

    with open_queries(database) as queries:
        bounds = {(one.generation, one.index): one.value for one in queries.signals(1, "entropy_lower_bound", "atom")}
    entropies = rows(database, 'SELECT "index", mean_entropy FROM atom_view WHERE run = 2 ORDER BY generation, "index"')
    assert len(bounds) == len([entropy for _, entropy in entropies if entropy is not None])
    pairs = zip(bounds.values(), (entropy for _, entropy in entropies if entropy is not None), strict=True)
    assert all(bound <= entropy + 1e-3 for bound, entropy in pairs)


@pytest.mark.soak
@pytest.mark.model
def test_what_is_stored_of_the_bundled_model_is_what_its_server_says(
    llama_server: Callable[..., str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Quantised, other prompt cuts move it: it is compared with the server's own words, asked without a stream."""
    import httpx2

    database = tmp_path / "x.db"
    model = resolve_model("smollm2", load_registry()).path
    assert model is not None
    url = llama_server(model)
    user_models_file().parent.mkdir(parents=True, exist_ok=True)
    user_models_file().write_text(f'[served]\nurl = "{url}"\nmodel = "m"\n')
    asked = ["--tasks", "words_collection", "--difficulty", "trivial", "--limit", "2", "--seed", "1", "-n", "24"]
    assert run_command_line(["run", "-m", "served", *asked, "--db", str(database), "--display", "none"]) == 0
    capfd.readouterr()
    assert run_command_line(["show", "1", "words_collection:1", "--db", str(database), "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)
    body = {"model": "m", "messages": shown["messages"], "temperature": 0.0, "repeat_penalty": 1.0, "max_tokens": 24}
    body |= {"logprobs": True, "top_logprobs": 20}
    whole = httpx2.post(f"{url}/chat/completions", json=body, timeout=120, trust_env=False).json()["choices"][0]
    said_by_server = whole["logprobs"]["content"]
    stored = rows(database, TOKENS.format(run=1).replace("ORDER", "AND problem.position = 0 ORDER"))
    assert "".join(token[3].decode() for token in stored) == shown["reply"] == whole["message"]["content"]
    for token, one in zip(stored, said_by_server, strict=False):
        assert token[3].decode() == one["token"]
        assert token[4] == pytest.approx(one["logprob"], abs=1e-4)
