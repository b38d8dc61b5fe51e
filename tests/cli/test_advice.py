"""What messages tell people to type is typed: each advice is made to appear, taken out of the message and executed."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import salt_tui
from salt_tui.cli import run_command_line, whole_command
from salt_tui.store.records import Work
from salt_tui.store.store import StoreError, open_store
from tests.conftest import ScriptedModel

pytestmark = pytest.mark.process

SOURCES = Path(salt_tui.__file__).parent
COMMAND = re.compile(r"salt-tui((?: [a-z][a-z-]*)+)")
QUIET = ["--display", "none"]
ASKED = ["--tasks", "dna_translation", "--difficulty", "trivial", "--limit", "2", "--seed", "1"]

NAMED = {
    "show": "tests/cli/test_study.py",
    "run": "needs a model and problems of one's own; every test of the command line runs it",
    "doctor": "tests/end_to_end/test_nano.py",
    "policy": "tests/cli/test_policy.py",
    "probe": "tests/cli/test_probe.py",
    "replay": "tests/cli/test_replay.py",
    "db check": "tests/cli/test_db_check.py",
    "study": "tests/cli/test_study.py",
    "study combine": "tests/runner/studies/test_combine.py",
    "study samples": "tests/cli/test_study.py",
    "study second-model": "tests/runner/studies/test_second_model.py",
    "study verbalised": "tests/runner/studies/test_verbalised.py",
    "models check": "tests/engine/test_models.py",
    "models pull": "needs the network; tests of the command use a server of their own",
    "import": "tests of imports",
    "export": "tests/cli/test_own_exports.py",
}
"""Commands that messages name without arguments, and where they are run."""


class Place:
    """A folder with a model and a database, and what the program says there."""

    def __init__(self, folder: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.database = folder / "x.db"
        self.folder = folder
        self.model = model
        self._capsys = capsys

    def says(self, *words: str, code: int = 0) -> str:
        """Run a command on the database and return all that it says."""
        self._capsys.readouterr()
        assert run_command_line([*words, "--db", str(self.database)]) == code, self._capsys.readouterr().err
        captured = self._capsys.readouterr()
        return captured.out + captured.err

    def run(self) -> None:
        """Store a run of two answers."""
        self.says("run", "-m", str(self.model), *ASKED, *QUIET)

    def follow(self, said: str, beginning: str) -> str:
        """Execute the command of a message that begins so, as it stands there; return what it says."""
        found = re.search(rf"salt-tui ({beginning}[^`\n;]*)", said)
        assert found is not None, said
        words = shlex.split(found[1])
        self._capsys.readouterr()
        words += (
            []
            if "--db" in words or words[:2] in (["models", "list"], ["tasks", "check"])
            else ["--db", str(self.database)]
        )
        assert run_command_line(words) == 0, (words, self._capsys.readouterr().err)
        captured = self._capsys.readouterr()
        return captured.out + captured.err


def resume(place: Place) -> None:
    script = json.loads(place.model.read_text())
    script["replies"] = [{**reply, "crash": {"after": 0, "signal": 9, "times": 2}} for reply in script["replies"]]
    place.model.write_text(json.dumps(script))
    said = place.says("run", "-m", str(place.model), *ASKED, "--limit", "1", *QUIET, code=1)
    assert "nothing could be computed: the engine died (SIGKILL); go on with: salt-tui resume 1" in said
    assert "· finished" in place.follow(said, "resume")


def activations(place: Place) -> None:
    place.run()
    place.follow(place.says("probe", "1", code=2), "study activations 1")
    place.follow(place.says("probe", "1", "--unit", "atom", code=2), "study activations 1 --unit atom")


def figure(place: Place) -> None:
    place.run()
    said = place.says("plot", "length", "1", "-o", str(place.folder / "x.svg"), code=2)
    assert "salt-tui study interventions 1" in said


def signals(place: Place) -> None:
    place.run()
    table = place.folder / "scores.csv"
    table.write_text("task,position,index,score\ndna_translation,0,0,0.5\ndna_translation,1,0,0.25\n")
    add = ["signals", "add", "1", str(table), "--name", "mine"]
    place.follow(place.says(*add), "report 1 --unit")
    place.follow(place.says(*add, code=2), "signals remove 1 mine")
    place.says(*add)


def study(place: Place) -> None:
    place.run()
    said = place.says("study", "samples", "1", "-k", "2", "--temp", "0.7", *QUIET)
    assert "agreement" in place.follow(said, "report 1")


def delete(place: Place) -> None:
    place.run()
    assert "dna_translation" in place.follow(place.says("db", "delete", "latest", "--yes", code=2), "runs")


def no_such_run(place: Place) -> None:
    place.run()
    with open_store(place.database) as store, pytest.raises(StoreError) as caught:
        store.claim(Work(9))
    assert "dna_translation" in place.follow(str(caught.value), "report latest")


def models(place: Place) -> None:
    said = place.says("run", "-m", "no-such-model", *ASKED, *QUIET, code=2)
    assert "smollm2" in place.follow(said, "models list")


def problems(place: Place) -> None:
    bad = place.folder / "bad.jsonl"
    bad.write_text("{}\n{}\n{}\n")
    said = place.says("run", "-m", str(place.model), "--tasks", f"file:{bad}", *QUIET, code=2)
    assert "2 more, all in `salt-tui tasks check`" in said
    assert run_command_line(["tasks", "check", str(bad)]) == 2


SCENARIOS: dict[str, Callable[[Place], None]] = {
    "resume": resume,
    "study activations": activations,
    "study interventions": figure,
    "signals remove": signals,
    "report": study,
    "runs": delete,
    "report latest": no_such_run,
    "models list": models,
    "tasks check": problems,
}
"""By the command that is advised."""


@pytest.mark.parametrize("advice", SCENARIOS)
def test_advice_can_be_followed(
    advice: str, scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SCENARIOS[advice](Place(tmp_path, scripted_model("dna_translation", limit=2), capsys))


def commands() -> Iterator[str]:
    def walk(group: object, path: tuple[str, ...]) -> Iterator[str]:
        for name, command in getattr(group, "commands", {}).items():
            yield " ".join((*path, name))
            yield from walk(command, (*path, name))

    yield from walk(whole_command(), ())


def texts() -> Iterator[tuple[str, str]]:
    """Yield every text of the program that is no docstring, what is put into it left open."""
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documents = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if id(node) in documents | inside:
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.name, node.value
            elif isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
                yield path.name, "".join(map(str, parts))


def test_every_command_that_a_message_names_is_there_and_tried() -> None:
    known = set(commands())
    tried = {*SCENARIOS, *NAMED}
    named = 0
    for file, text in texts():
        for found in COMMAND.finditer(text):
            words = found[1].split()
            name = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in known), None)
            if name is None:
                continue  # words about the program, not a command of it
            named += 1
            if text[found.end() :].startswith("`"):
                continue  # the bare name: it has to be there, what to give it stands elsewhere
            assert name in tried or name.split()[0] in tried, f"{file}: {text[:100]!r} names {name!r}: try it here"
    assert named > 15
