"""What each package really loads, seen from a fresh interpreter, and the contracts of pyproject.toml."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCREENS = {"textual", "rich", "typer"}
HEAVY_SCIENCE = {"scipy", "sklearn", "statsmodels", "pandas"}
STORAGE = {"sqlite3", "sqlite_utils"}

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
"""
REPORT = """
import json, sys
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def loaded(code: str, *arguments: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds after running code."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code + REPORT, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(("package", "other"), [("tasks", "scoring"), ("scoring", "tasks")])
def test_leaves_load_nothing_above_or_beside_them(package, other):
    names = loaded(IMPORT_ALL, package)
    assert package in names
    assert not names & ({other, "salt_tui", "llama_cpp"} | SCREENS | STORAGE | HEAVY_SCIENCE)


def test_scoring_needs_numpy_alone():
    before = loaded("import numpy")
    outside = {name for name in loaded(IMPORT_ALL, "scoring") - before if name not in sys.stdlib_module_names}
    assert outside == {"scoring"}


def test_help_loads_neither_numpy_nor_a_screen_nor_a_model_nor_a_database():
    code = "from salt_tui.cli import run_command_line\nassert run_command_line(['--help']) == 0\n"
    names = loaded(code)
    assert "typer" in names
    assert not names & ({"numpy", "textual", "llama_cpp", "tasks", "scoring"} | STORAGE | HEAVY_SCIENCE)


@pytest.mark.parametrize("package", ["salt_tui.runner", "salt_tui.store", "salt_tui.display", "salt_tui.commands"])
def test_the_parent_never_loads_llama_cpp(package):
    names = loaded(IMPORT_ALL, package)
    assert "salt_tui" in names
    assert not names & ({"llama_cpp", "textual"} | HEAVY_SCIENCE)


def test_the_interface_of_the_engine_loads_nothing_foreign():
    names = loaded("import salt_tui.engine.engine, salt_tui.engine.wire, salt_tui.engine.process\n")
    assert not names & ({"llama_cpp", "tasks", "scoring"} | SCREENS | STORAGE)


def test_contracts_hold():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " 0 broken" in done.stdout
