"""One page without a network: sentences, tables, figures and answers; every text is escaped by the template."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from salt_tui.palette import HUES
from salt_tui.reports.html_answer import PageAnswer
from salt_tui.reports.text_tables import TextTable
from salt_tui.visible_text import visible

TEMPLATE = "page.html.jinja"


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure inside a page.

    Attributes:
        title: what it shows.
        notes: of what it is and how to read it.
        svg: one ``<svg>`` element, already escaped by whoever drew it.
    """

    title: str
    notes: tuple[str, ...]
    svg: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page.

    Attributes:
        title: its heading.
        lines: paragraphs below it.
        findings: labels and sentences; a label may be empty.
        tables: with their notes.
        pictures: figures.
        notes: small print.
    """

    title: str
    lines: tuple[str, ...] = ()
    findings: tuple[tuple[str, str], ...] = ()
    tables: tuple[TextTable, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page.

    Attributes:
        title: of the document.
        sections: the first one is its head.
        answers: shown token by token; empty for a page without.
        answers_note: which answers are shown, and how to get others; empty for a page without.
    """

    title: str
    sections: tuple[Section, ...]
    answers: tuple[PageAnswer, ...] = ()
    answers_note: str = ""


def page_html(page: Page) -> str:
    """Return a page as one HTML document, which is well-formed XML too.

    It loads nothing: its policy forbids every request, and every script but the one inside, which it does without.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("salt_tui.reports", "pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["seen"] = visible
    environment.filters["lines"] = lambda text: "\n".join(map(visible, text.split("\n")))
    script = _file("page.js")
    return environment.get_template(TEMPLATE).render(
        page=page, style=_colours() + _file("page.css"), script=script, script_hash=_hash(script)
    )


@cache
def _file(name: str) -> str:
    return (files("salt_tui.reports") / "pages" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _colours() -> str:
    """Return the grounds of right and of other cells, from unsure to sure, as variables of a light and a dark page."""
    blocks = []
    for light in (True, False):
        entries = [
            f"--{'r' if right else 'w'}{step}:{colour}"
            for right in (True, False)
            for step, colour in enumerate(HUES[light, right])
        ]
        rule = f":root{{{';'.join(entries)}}}"
        blocks.append(rule if light else f"@media (prefers-color-scheme:dark){{{rule}}}")
    return "\n".join(blocks) + "\n"
