"""Every command that reads or writes a database, with the arguments that tests give, from the registries of formats.

A command, format or figure that is new is tried without a change here, or `test_every_command_is_tried` names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from salt_tui.cli import whole_command
from salt_tui.exports.formats import EXPORT_FORMATS
from salt_tui.figures.registry import FIGURES
from salt_tui.reports.comparison import COMPARISON_FORMATS
from salt_tui.reports.formats import REPORT_FORMATS
from salt_tui.runner.studies.registry import STUDY_KINDS

QUIET = ["--display", "none"]
OUT = "{folder}/out"
"""Where files are written; a test fills in the folder."""

MAKE_A_FILE = ("run", "tour", "import")
"""Commands that take a database and read no run of it: they make one."""

READING: dict[str, list[list[str]]] = {
    "runs": [[], ["--json"]],
    "report": [
        *(["1", "--draws", "0", "--format", name] for name in REPORT_FORMATS),
        *(["1.1", "--format", name] for name in ("table", "json")),
        ["1", "--draws", "0", "--by", "task", "--analyses"],
        ["1", "--draws", "0", "--full", "--unit", "line"],
    ],
    "show": [["1", "{answer}"], ["1", "{answer}", "--json"], ["1.1", "{answer}"]],
    "compare": [["1", "2", "--format", name] for name in COMPARISON_FORMATS],
    "export": [
        *(["1", "-o", f"{OUT}{suffix}", "--force"] for suffix in EXPORT_FORMATS),
        *(["1.1", "-o", f"{OUT}{suffix}", "--force"] for suffix in EXPORT_FORMATS),
        ["1", "-o", f"{OUT}.csv", "--force", "--excel-safe"],
        ["1", "-o", "-", "--format", "csv"],
    ],
    "plot": [[name, "1", "-o", f"{OUT}.svg"] for name, kind in FIGURES.items() if name != "compare"]
    + [["compare", "1", "2", "-o", f"{OUT}.svg"]],
    "policy": [["1", "--risk", ".5"], ["1", "--risk", ".5", "--json"], ["1", "--rewards", "1,-1,0,0"]],
    "probe": [["1"], ["1", "--json"]],
}
"""Commands that change nothing in the file."""

WRITING: dict[str, list[list[str]]] = {
    "db rescore": [["1"], ["1", "--json"]],
    "db delete": [["2", "--yes"], ["1.1", "--yes"]],
    "signals add": [["1", "{folder}/scores.csv", "--name", "mine"]],
    "signals remove": [["1", "mine"]],
    "resume": [["1", *QUIET], ["1", *QUIET, "--json"]],
    "edit": [["2", "{answer}", "--fix", "1", *QUIET]],
    **{
        f"study {name}": [["2", *(["-m", "{model}"] if name == "second-model" else ()), *QUIET]]
        for name in STUDY_KINDS
        if name != "manual"
    },
}
"""Commands that write; those that compute need the run's model."""


def commands_with_a_database() -> Iterator[str]:
    """Yield the names of all commands that take a database."""

    def walk(group: Any, path: tuple[str, ...]) -> Iterator[str]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from walk(command, (*path, name))
            elif any("--db" in parameter.opts for parameter in command.params):
                yield " ".join((*path, name))

    yield from walk(whole_command(), ())


def command_lines(examples: dict[str, list[list[str]]]) -> list[list[str]]:
    """Return whole commands, without the database."""
    return [[*name.split(), *words] for name, several in examples.items() for words in several]
