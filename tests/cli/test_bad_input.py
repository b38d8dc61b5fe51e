"""Bad input: one line that says what, where and what to do, the right exit code, nothing half-written."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from tasks.code_execution import ExecutionError
from tests.conftest import ScriptedModel
from tests.stored_runs import store_run


@pytest.fixture
def model(scripted_model: ScriptedModel) -> Path:
    return scripted_model("kronecker_product")


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_command_line(list(arguments))
    captured = capsys.readouterr()
    talk = [line for line in captured.err.splitlines() if not line.startswith("loading ")]
    assert len(talk) == 1, captured.err
    assert "Traceback" not in captured.err
    return code, talk[0], captured.out


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (("--tasks", "kroneker_product"), "kronecker_product"),
        (("--difficulty", "esy"), "trivial, easy, medium, hard, paper"),
        (("--limit", "0"), "at least 1"),
        (("--limit", "many"), "--limit many: a whole number is needed (salt-tui run --help)"),
        (("--seed", "4.5"), "--seed 4.5: a whole number is needed"),
        # Stored, they could not be read again, and the run not be resumed.
        (("--seed", str(2**63)), "at most 63 bits"),
        (("--sampler-seed", str(-(2**63))), "at most 63 bits"),
        (("--top-k", str(2**63)), "at most 63 bits"),
        (("-n", str(2**63)), "at most 63 bits"),
        (("--temp", "hot"), "--temp hot: a number is needed"),
        (("-np", "5"), "1, 2, 3 or a multiple of 4"),
        (("-np", "0"), "1, 2, 3 or a multiple of 4"),
        (("-c", "3"), "at least"),
        (("-n", "0"), "at least 1"),
        (("-ngl", "some"), "auto, all"),
        (("-ngl", "-1"), "auto, all"),
        (("--temp", "-1"), "at least 0"),
        (("--top-p", "0"), "above 0"),
        (("--method", "magic"), "regular, cot"),
        (("--shots", "99"), "0 to"),
        (("--param", "sise=4"), "size"),
        (("--param", "size=0..4000"), "4..1000"),
        (("--param", "size"), "key=value"),
        (("--nonsense",), "--nonsense"),
        (("-fa", "maybe"), "-fa maybe: 'maybe' is not one of 'auto', 'on', 'off'"),
        (("-ub", "1024"), "-ub"),
        (("--tasks", ","), "--tasks"),
    ],
)
def test_run_options(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], named: str
) -> None:
    database = tmp_path / "x.db"
    arguments = ("run", "-m", str(model), "--tasks", "kronecker_product", "--difficulty", "trivial")
    code, line, output = outcome(capsys, *arguments, "--db", str(database), *more)
    assert code == 2
    assert named in line
    assert output == ""
    assert not database.exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("nothing.gguf", None),
        ("empty.gguf", b""),
        ("text.gguf", b"hello, I am a model\n" * 50),
        ("[red]bold[[1, 2] name.gguf", b"GGUF"),
    ],
)
def test_model_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    code, line, _ = outcome(capsys, "run", "-m", str(path), "--tasks", "all", "--db", str(tmp_path / "x.db"))
    assert code == 2
    assert name in line
    assert not (tmp_path / "x.db").exists()


@pytest.mark.parametrize("shots", ["17", "99", "-1"])
def test_tasks_show_takes_as_many_examples_as_run(shots: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, line, output = outcome(capsys, "tasks", "show", "maze", "--shots", shots)
    assert (code, output) == (2, "")
    assert f"--shots {shots}: 0 to 16" in line


def test_a_program_that_cannot_be_executed_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*arguments: object) -> None:
        raise ExecutionError("two_sum([1], 2): took more than 5 seconds")

    monkeypatch.setattr("salt_tui.commands.tasks.solve_problems", failing)
    code, line, output = outcome(capsys, "tasks", "solve", "code", str(tmp_path / "x.txt"))
    assert (code, output) == (1, "")
    assert line == "salt-tui: two_sum([1], 2): took more than 5 seconds"


def test_a_folder_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, line, _ = outcome(capsys, "run", "-m", str(tmp_path), "--db", str(tmp_path / "x.db"))
    assert code == 2
    assert "folder" in line or "directory" in line


def test_a_misspelt_key_in_the_users_models_names_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    (config / "models.toml").write_text('[mine]\npath = "x.gguf"\ncontex = 4096\n')
    code, line, _ = outcome(capsys, "run", "-m", "mine", "--db", str(tmp_path / "x.db"))
    assert code == 2
    assert "contex" in line
    assert "context" in line.replace("contex ", "", 1)


def test_a_database_of_something_else_is_left_alone(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "other.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE song (title TEXT)")
    before = database.read_bytes()
    code, line, _ = outcome(capsys, "run", "-m", str(model), "--db", str(database))
    assert code == 2
    assert "other.db" in line
    assert database.read_bytes() == before


@pytest.mark.parametrize("command", ["report", "resume", "export"])
def test_commands_on_a_missing_database(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    database = tmp_path / "none.db"
    more = ("1", "-o", str(tmp_path / "x.csv")) if command == "export" else ()
    code, line, _ = outcome(capsys, command, *more, "--db", str(database))
    assert code == 2
    assert "none.db" in line
    assert not database.exists()


def test_unknown_run_and_unknown_export_format(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(tmp_path / "x.db")
    arguments = ("--tasks", "kronecker_product", "--difficulty", "trivial", "--limit", "1", "--db", database)
    run_command_line(["run", "-m", str(model), *arguments, "--display", "none"])
    capsys.readouterr()
    assert outcome(capsys, "report", "99", "--db", database)[0] == 2
    assert outcome(capsys, "report", "abc", "--db", database)[0] == 2
    code, line, _ = outcome(capsys, "export", "1", "-o", str(tmp_path / "x.xlsx"), "--db", database)
    assert code == 2
    assert ".csv" in line


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('{"task": "dna_translation", "response": "x", "reference": "y"}\nnot json\n', ":2"),
        ('{"task": "dna_translation", "response": "x"}\n', "reference"),
        ('{"task": "dna", "response": "x", "reference": "y"}\n', "dna_translation"),
        ("[1, 2]\n", ":1"),
        ('{"task": "dna_translation", "response": 3, "reference": "y"}\n', "response"),
    ],
)
def test_score_names_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, named: str) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(content)
    code, line, output = outcome(capsys, "score", str(file), "--json")
    assert code == 2
    assert named in line
    assert output == ""


def test_hostile_names_reach_the_terminal_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, line, _ = outcome(capsys, "run", "-m", "\x1b]0;x\x07\u202e.gguf", "--db", str(tmp_path / "x.db"))
    assert code == 2
    assert not any(character in line for character in "\x1b\x07\u202e")


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "--db", "~nosuchuser/x.db"),
        ("resume", "--db", "~nosuchuser/x.db"),
        ("run", "--tasks", "maze", "-m", "MODEL", "--db", "~nosuchuser/x.db"),
        ("run", "-m", "~nosuchuser/x.gguf"),
        ("models", "check", "~nosuchuser/x.gguf"),
        ("bench", "-m", "~nosuchuser/x.gguf"),
        ("export", "1", "-o", "~nosuchuser/x.csv", "--db", "DATABASE"),
    ],
)
def test_a_home_folder_that_is_not_known_is_one_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=["maze"], answers=1, atoms=2)
    places = {"MODEL": str(model), "DATABASE": str(database)}
    code, line, output = outcome(capsys, *(places.get(argument, argument) for argument in arguments))
    assert (code, output) == (2, "")
    assert "'~nosuchuser/x." in line
    assert line.endswith("begins with a home folder that is not known; write the whole path")


@pytest.mark.parametrize("name", ["SALT_TUI_HOME", "SALT_TUI_DB"])
def test_an_unknown_home_folder_in_the_environment_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv(name, "~nosuchuser/x.db")
    code, line, _ = outcome(capsys, "report")
    assert code == 2
    assert line.startswith("salt-tui: '~nosuchuser/x.db' begins with a home folder")


def test_an_unknown_home_folder_in_the_users_models_names_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    (config / "models.toml").write_text('[mine]\npath = "~nosuchuser/x.gguf"\n')
    code, line, _ = outcome(capsys, "models", "list")
    assert code == 2
    assert f"{config / 'models.toml'}: [mine]: '~nosuchuser/x.gguf' begins" in line


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("run", "--tasks", "maze", "--json"), "does not take --json;"),
        (("resume", "--json"), "does not take --json;"),
        (("resume", "-t", "2", "--allow-environment-change"), "does not take --allow-environment-change, -t;"),
    ],
)
def test_what_the_app_would_drop_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], named: str
) -> None:
    for opens in ("open_app", "open_on_stored_run"):
        monkeypatch.setattr(f"salt_tui.app.launch.{opens}", lambda *arguments, **more: 0)
    assert run_command_line([arguments[0], "--display", "app"]) == 0
    code, line, output = outcome(capsys, *arguments, "--display", "app")
    assert (code, output) == (2, "")
    assert f"--display app {named}" in line


def test_score_json_has_the_stable_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "answers.jsonl"
    row = {"task": "DNAProblem", "response": "********\nTAA DK GGG CCC\n********", "reference": "TAA TGT GGG"}
    file.write_text(json.dumps(row) + "\n")
    assert run_command_line(["score", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [
        {
            "statuses": ["correct", "abstained", "correct", "redundant"],
            "answer_status": "complete",
            "precision": 0.5,
            "recall": 2 / 3,
            "redundant": 1,
            "missing": 0,
            "reasons": {},
        }
    ]
