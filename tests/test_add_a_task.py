"""`docs/add_a_task.md` is done as written, in a copy of the repository: code, registry, tests, commands, changelog."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.registry import TASKS

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "add_a_task.md").read_text(encoding="utf-8")
COPIED = ("salt_tui", "tasks", "scoring", "tests", "tools", "docs")


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder whose own packages come first, as they do for somebody who stands in a checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | variables
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def replace_once(file: Path, old: str, new: str) -> None:
    """Replace a text that must stand in a file exactly once."""
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file.name} holds {text.count(old)} times {old!r}"
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def _not_done_here() -> None:
    if "running_sums" in TASKS:
        pytest.skip("what the page says has been done in this checkout")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository in which everything that the page says has been done."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *ROOT.glob("*.txt"), ROOT / "Makefile", ROOT / "LICENSE"]:
        shutil.copy(file, folder / file.name)
    module, import_line, entries, golden, tests = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (folder / "tasks" / "running_sums.py").write_text(module, encoding="utf-8")
    (folder / "tests" / "tasks" / "test_running_sums.py").write_text(tests, encoding="utf-8")
    before, added, after = re.findall(r"^ +(\w+\(\),)$", entries, re.MULTILINE)
    registry = folder / "tasks" / "registry.py"
    replace_once(registry, f"{before}\n        {after}\n", f"{before}\n        {added}\n        {after}\n")
    replace_once(registry, "from tasks.task import", f"{import_line}from tasks.task import")
    contract = folder / "tests" / "tasks" / "test_contract.py"
    replace_once(contract, '    "words_collection":', f'{golden}    "words_collection":')
    replace_once(folder / "CHANGELOG.md", "- Tasks: ", "- Tasks: Running Sums, ")
    return folder


def test_the_new_task_passes_its_tests_and_those_of_all_tasks(checkout: Path) -> None:
    tests = ["tests/tasks/test_running_sums.py", "tests/tasks/test_contract.py", "tests/test_documentation.py"]
    done = run(checkout, "-m", "pytest", "-p", "no:cacheprovider", *tests, "-k", "running_sums or documentation")
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed.group(1)) > 80


def test_the_new_code_is_in_style(checkout: Path) -> None:
    files = ["tasks/running_sums.py", "tasks/registry.py", "tests/tasks/test_running_sums.py"]
    for command in (["ruff", "format", "--check"], ["ruff", "check"], ["mypy", "--no-incremental", "-p", "tasks"]):
        done = run(checkout, "-m", *command, *([] if command[0] == "mypy" else files))
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_commands_of_the_page_find_the_new_task(checkout: Path, tmp_path: Path) -> None:
    commands = [shlex.split(line) for line in PAGE.splitlines() if line.startswith(".venv/bin/python -m salt_tui ")]
    shown = [run(checkout, *words[1:]) for words in commands if words[3] == "tasks"]
    assert len(shown) == 2
    for done in shown:
        assert (done.returncode, done.stderr) == (0, "")
        assert "write the sum of it and all integers before it" in done.stdout
    (evaluation,) = [words[1:] for words in commands if words[3] == "run"]
    database = str(tmp_path / "x.db")
    done = run(checkout, *evaluation, "-m", "nano", "--limit", "1", "--db", database, "--display", "none", "--json")
    assert done.returncode == 0, done.stderr
    assert '"running_sums"' in done.stdout


def test_pictures_drawn_anew_hold_the_new_task(checkout: Path) -> None:
    (line,) = [line for line in PAGE.splitlines() if line.startswith("SALT_TUI_WRITE_GOLDENS=1 ")]
    assignment, _, *arguments = shlex.split(line)
    name, _, value = assignment.partition("=")
    drawn = run(checkout, *arguments, **{name: value})
    assert drawn.returncode == 0, drawn.stdout
    compared = run(checkout, *arguments, "-k", "plain")
    assert compared.returncode == 0, compared.stdout
    pictures = (checkout / "tests" / "app" / "goldens").iterdir()
    assert any("running_sums" in picture.read_text(encoding="utf-8", errors="replace") for picture in pictures)
