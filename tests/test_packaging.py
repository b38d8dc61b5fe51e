"""The wheel, installed into an environment of its own, is complete and is ours."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("salt_tui", "tasks", "scoring")


def run(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command outside the checkout, without what the developer's shell adds to Python."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def build(kind: str, source: Path, target: Path) -> Path:
    """Build a wheel or an sdist with the installed hatchling: no network."""
    done = run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", target, cwd=source)
    assert done.returncode == 0, done.stderr
    (built,) = target.iterdir()
    return built


def contents(wheel: Path) -> set[str]:
    """Return the names in a wheel, its metadata left out."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout."""
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The ``bin`` folder of a new environment that holds the wheel; dependencies come from the running one."""
    home = tmp_path_factory.mktemp("environment")
    made = run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    assert made.returncode == 0, made.stderr
    python = home / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    installed = run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=home)
    assert installed.returncode == 0, installed.stderr
    packages = next((home / "lib").glob("python*/site-packages"))
    # A folder named in a .pth file is searched last; its own .pth files, such as an editable install, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python.parent


def test_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel):
    expected = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert contents(wheel) == expected | {"salt_tui/models.toml"}


def test_wheel_from_the_source_archive_is_the_same(wheel, tmp_path):
    archive = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(archive) as source:
        source.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    assert contents(build("wheel", unpacked, tmp_path / "wheel")) == contents(wheel)
    assert (unpacked / "constraints.txt").is_file()
    assert (unpacked / "tests" / "test_packaging.py").is_file()


def test_tasks_scoring_and_models_are_ours(environment, tmp_path):
    code = (
        "import json, salt_tui, tasks, scoring, salt_tui.paths as paths;"
        "print(json.dumps([salt_tui.__file__, tasks.__file__, scoring.__file__, str(paths.shipped_models_file())]))"
    )
    done = run(environment / "python", "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    files = [Path(name) for name in json.loads(done.stdout)]
    assert all(path.is_relative_to(environment.parent) for path in files), files
    assert files[-1].read_bytes() == (ROOT / "models.toml").read_bytes()


def test_both_ways_to_start_work_from_another_folder(environment, tmp_path):
    module = run(environment / "python", "-m", "salt_tui", "--help", cwd=tmp_path)
    script = run(environment / "salt-tui", "--help", cwd=tmp_path)
    assert (module.returncode, module.stderr) == (0, "")
    assert "run" in module.stdout
    assert module.stdout == script.stdout


def test_tasks_and_models_are_listed_from_another_folder(environment, tmp_path):
    home = {"SALT_TUI_HOME": str(tmp_path / "home")}
    tasks = run(environment / "salt-tui", "tasks", "list", "--json", cwd=tmp_path, **home)
    models = run(environment / "salt-tui", "models", "list", "--json", cwd=tmp_path, **home)
    assert "kronecker_product" in {task["name"] for task in json.loads(tasks.stdout)}
    assert "smollm2" in models.stdout
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["tasks", "scoring"])
def test_somebody_elses_module_is_noticed_in_one_line(environment, tmp_path, name):
    (tmp_path / f"{name}.py").write_text("raise SystemExit('imported somebody else')\n", encoding="utf-8")
    done = run(environment / "python", "-m", "salt_tui", "tasks", "list", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert f"{name}.py" in line
    assert run(environment / "salt-tui", "tasks", "list", cwd=tmp_path).returncode == 0
