"""The documentation names everything there is, and only that; tracked files name no registry and no machine."""

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import salt_tui
from salt_tui.cli import whole_command
from salt_tui.commands.failures import DONE, FAILED, INTERRUPTED, USAGE
from salt_tui.palette import GLYPHS
from scoring.confidence import CONFIDENCE_FUNCTIONS
from tasks.registry import TASKS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND_LINE = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def page_name(page: Path) -> str:
    """Return the readable part of a test's name."""
    return page.relative_to(ROOT).as_posix()


def commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with its full name; Typer has parser classes of its own."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


COMMANDS = dict(commands(whole_command()))


def code_lines(text: str) -> list[str]:
    """Return the lines of the fenced code blocks of a page."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines()]


def section(command: str) -> str:
    """Return the section of the command line's page on a command."""
    heading = command.partition(" ")[0]
    found = re.search(rf"^## `salt-tui {heading}\b.*?(?=^## |\Z)", COMMAND_LINE, flags=re.MULTILINE | re.DOTALL)
    assert found, f"docs/command_line.md has no section on salt-tui {heading}"
    return found.group()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name):
    text = section(name)
    assert name.rpartition(" ")[2] in text
    missing = [
        option
        for parameter in COMMANDS[name].params
        if parameter.param_type_name == "option"
        for option in parameter.opts
        if option != "--help" and not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text)
    ]
    assert missing == []
    assert COMMANDS[name].help


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_commands_in_code_blocks_can_be_parsed(page):
    for line in code_lines(page.read_text(encoding="utf-8")):
        words = shlex.split(line.partition(" > ")[0], comments=True)
        if not words or Path(words[0]).name != "salt-tui":
            continue
        name = next((name for name in COMMANDS if words[1 : 1 + name.count(" ") + 1] == name.split()), None)
        assert name or len(words) == 1, line
        if name:
            arguments = words[1 + name.count(" ") + 1 :]
            assert COMMANDS[name].make_context(name, arguments).params, line


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_make_targets_in_code_blocks_exist(page):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    used = {line.split()[1] for line in code_lines(page.read_text(encoding="utf-8")) if line.startswith("make ")}
    assert used <= targets


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert broken == []


def test_readme_explains_every_mark():
    for status, glyph in GLYPHS.items():
        assert f"| `{glyph}` | {status} |" in README


def test_readme_names_confidence_functions_rates_and_exit_codes():
    assert [name for name in CONFIDENCE_FUNCTIONS if f"`{name}`" not in README] == []
    for rate in ("precision", "recall", "redundancy", "ECE", "AUROC"):
        assert f"**{rate}**" in README
    for page in (README, COMMAND_LINE):
        codes = re.search(r"Exit codes: (.*?)\.", page, flags=re.DOTALL)
        assert {int(code) for code in re.findall(r"\d+", codes.group(1))} == {DONE, FAILED, USAGE, INTERRUPTED}


def test_every_environment_variable_is_documented():
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "salt_tui").rglob("*.py"))
    variables = set(re.findall(r"SALT_TUI_[A-Z]+", sources))
    assert {"SALT_TUI_DB", "SALT_TUI_HOME"} <= variables
    assert [name for name in variables if f"`{name}`" not in COMMAND_LINE] == []


def test_changelog_names_every_task():
    text = " ".join((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").lower().split())
    assert [task.title for task in TASKS.values() if task.title.lower() not in text] == []


def test_changelog_tells_of_this_version():
    assert f"## {salt_tui.__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_readme_builds_the_pinned_llama_cpp():
    (pin,) = [line for line in project()["dependencies"] if line.startswith("llama-cpp-python")]
    builds = [line for line in code_lines(README) if line.startswith("CMAKE_ARGS")]
    assert [line.split()[0] for line in builds] == [
        f'CMAKE_ARGS="-DGGML_{backend}=on"' for backend in ("CUDA", "METAL", "VULKAN")
    ]
    assert all(line.endswith(f" {pin}") for line in builds)


def test_every_dependency_is_pinned():
    needed = [*project()["dependencies"], *(name for extra in ("demo", "test") for name in extras()[extra])]
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE))
    assert [name for name in needed if re.match(r"[\w-]+", name).group().lower() not in pins] == []


def project() -> dict[str, list[str]]:
    """Return the project table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def extras() -> dict[str, list[str]]:
    """Return the optional dependencies."""
    return project()["optional-dependencies"]


def tracked_texts() -> Iterator[tuple[str, str]]:
    """Yield name and text of every tracked file."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    for name in filter(None, listing.stdout.split("\0")):
        if (ROOT / name).is_file():
            yield name, (ROOT / name).read_text(encoding="utf-8", errors="replace")


def test_nothing_cites_a_page_that_readers_do_not_have():
    # Written in pieces, so that this file holds none of them.
    pages = "|".join(f"{name}[.]md" for name in ("spec", "design", "screens", "style", "engine_notes", "found"))
    cited = re.compile(rf"\b(?:{'sp' + 'ec'}|{'des' + 'ign'}) (?:section )?[0-9]|\b(?:{pages})\b|\b{'see' + 'ds'}/")
    found = [f"{name}: {match.group()}" for name, text in tracked_texts() for match in cited.finditer(text)]
    assert found == []


def test_no_registry_and_no_machine_in_tracked_files():
    # Written in pieces, so that this file holds none of them.
    hosts = (("py" + "pi", "org"), ("pythonhosted", "org"), ("np" + "mjs", "org"), ("debian", "org"), ("crates", "io"))
    folders = ("work", "root", "opt" + "/pypi", "home" + r"/[a-z]\w*", "Users")
    forbidden = re.compile(
        "|".join(
            [rf"\b{name}\.{domain}\b" for name, domain in hosts]
            + [rf"(?<![\w.~$}}-])/{folder}/" for folder in folders]
            + ["file:" + "//", "index-" + "url", "find-" + "links"]
        )
    )
    found = [f"{name}: {match.group()}" for name, text in tracked_texts() for match in forbidden.finditer(text)]
    assert found == []
