"""Options and arguments that several commands take, and the values that one may have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class DisplayMode(StrEnum):
    """How a run reports while it works."""

    APP = "app"
    RICH = "rich"
    PLAIN = "plain"
    NONE = "none"


class ReportFormat(StrEnum):
    """How a report is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"
    LATEX = "latex"
    HTML = "html"


class ComparisonFormat(StrEnum):
    """How a comparison is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"
    LATEX = "latex"
    HTML = "html"


class UnitChoice(StrEnum):
    """What is labelled."""

    ATOM = "atom"
    LINE = "line"
    GENERATION = "generation"


class FlashAttention(StrEnum):
    """Values of ``-fa``."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


Database = Annotated[Path | None, typer.Option("--db", help="SQLite file; default: SALT_TUI_DB or the data folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else.")]
DisplayOption = Annotated[DisplayMode | None, typer.Option("--display", help="Default: rich on a terminal.")]
ReportedArgument = Annotated[str, typer.Argument(metavar="[RUN|RUN.K|latest]", help="A run, or a study of it.")]
WorkArgument = Annotated[
    str, typer.Argument(metavar="[RUN|RUN.K|latest]", help="A run, or a study of it; latest: the newest unfinished.")
]


def names_in(text: str) -> tuple[str, ...]:
    """Return the names of a list that commas join; none for an empty text."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
