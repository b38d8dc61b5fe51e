"""Tables as data, and the three ways they are printed: aligned text, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from salt_tui.number_text import INFINITE
from salt_tui.number_text import number as number  # tables and what they hold come from one place
from scoring.intervals import Interval
from scoring.value import Value

BEST = "●"
"""Marks what cannot be told apart from the best."""

PARTIAL = "*"
"""Marks a mean that leaves out tasks."""

WIDEST = 160
"""Columns beyond which lines are not made longer: nobody follows a line that far."""

_MARKDOWN = re.compile(r"\\(?=[^\w\s])|<(?=[A-Za-z/!?])|(?<=\])\(|`")
_LATEX = {
    "\\": r"\textbackslash{}",
    "_": r"\_",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    BEST: r"$\bullet$",
    "′": r"$'$",
    "–": "--",
    INFINITE: r"$\infty$",
    "×": r"$\times$",
    "−": "$-$",
}


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table to print.

    Attributes:
        title: one line; empty for none.
        heads: of the columns.
        rows: cells, as many as heads.
        left: number of columns that are aligned to the left; the others to the right.
        extra: heads of columns that text leaves out where the terminal is too narrow, the first first.
        notes: lines below.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    notes: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    def as_text(self, width: int = WIDEST) -> Iterable[str]:
        """Yield the lines without the notes, columns one space apart, without the extra columns that do not fit."""
        if self.title:
            yield self.title
        widths = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        kept = list(range(len(self.heads)))
        for head in self.extra:
            if sum(widths[number] + 1 for number in kept) - 1 > width:
                kept.remove(self.heads.index(head))
        for cells in (self.heads, *self.rows):
            yield " ".join(
                cells[number].ljust(widths[number]) if number < self.left else cells[number].rjust(widths[number])
                for number in kept
            ).rstrip()

    def as_markdown(self) -> Iterable[str]:
        """Yield the lines; a bar in a cell is escaped."""
        if self.title:
            yield from (f"### {markdown(self.title)}", "")
        aligned = [":---" if number < self.left else "---:" for number in range(len(self.heads))]
        for cells in (self.heads, aligned, *self.rows):
            escaped = [markdown(cell.strip()).replace("|", "\\|") for cell in cells]
            yield f"| {' | '.join(escaped)} |"
        for note in self.notes:
            yield from ("", markdown(note))

    def as_latex(self) -> Iterable[str]:
        r"""Yield a ``table`` for LaTeX with the package ``booktabs``; the notes become its caption."""
        columns = "".join("l" if number < self.left else "r" for number in range(len(self.heads)))
        caption = ". ".join(text.rstrip(".") for text in (self.title.rstrip("?"), *self.notes) if text)
        yield from (r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{columns}}}", r"\toprule")
        yield _latex_row(self.heads)
        yield r"\midrule"
        yield from map(_latex_row, self.rows)
        yield from (r"\bottomrule", r"\end{tabular}", rf"\caption{{{latex(caption)}.}}", r"\end{table}")


def markdown(text: str) -> str:
    """Return a text in which Markdown reads no HTML, no link or picture and no code.

    Names and texts are other people's.  Signs that only change how a text looks stay as they are.
    """
    return _MARKDOWN.sub(r"\\\g<0>", text)


def latex(text: str) -> str:
    """Return a text with everything escaped that LaTeX would read as a command."""
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(latex(" ".join(cell.replace("█", "").split())) for cell in cells) + r" \\"


def value_text(value: Value) -> str:
    """Return the number of a value, a dash where it is undefined."""
    return number(value.value)


def interval_text(interval: Interval | None, digits: int = 3) -> str:
    """Return ``[.712 .801]``; nothing where there is none."""
    if interval is None or interval.low is None or interval.high is None:
        return ""
    return f"[{number(interval.low, digits)} {number(interval.high, digits)}]"


def with_interval(value: Value, interval: Interval | None) -> str:
    """Return a number and its interval with as many digits, in eighteen places, so that numbers stand in a column."""
    return f"{value_text(value)} {interval_text(interval):<12}"
