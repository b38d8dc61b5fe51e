"""What ``?`` shows: keys, glyphs, shades and metrics, each metric in two sentences with its direction."""

from __future__ import annotations

from collections.abc import Sequence

from salt_tui.app.row_flow import CURSOR_ROW, GOES_ON, GROUP, LINE_END, SHORT
from salt_tui.palette import ANSI_SHADES, GLYPHS, SHADES, DrawingMode

VERDICTS: dict[str, tuple[str, str]] = {
    "correct": ("Equal to the reference at the same place.", "The more the better."),
    "wrong": ("Differs from the reference at the same place.", "Lowers precision."),
    "redundant": ("Said where the right answer has already ended.", "Lowers precision."),
    "missing": ("In the right answer, but not said.", "Lowers recall, not precision; it has no confidence."),
    "abstained": ("The model said that it does not know.", "Lowers precision; its confidence counts nowhere."),
    "streaming": ("The model is writing here.", "It is no verdict and counts nowhere."),
}
"""What a mark means and what it does to the numbers."""

METRICS: dict[str, tuple[str, str]] = {
    "precision": (
        "The share of the atoms the model said that are right.",
        "From 0 to 1, higher is better.",
    ),
    "ECE": (
        "How far confidence and correctness lie apart on average, over 15 bins of confidence.",
        "From 0 to 1, lower is better: 0 means that of the atoms said with 70 % confidence, 70 % are right.",
    ),
    "AUROC macro": (
        "How often a right atom has more confidence than a wrong one, over all pairs of a task.",
        "Higher is better: 0.5 is chance, 1 puts every right atom before every wrong one.",
    ),
    "AUROC micro": (
        "The same within each answer, averaged over the answers that hold both right and wrong atoms.",
        "Higher is better; in brackets, how many answers that is.",
    ),
}

INTERVALS = "Brackets hold 95 % intervals from drawing answers again 200 times; n counts atoms with a confidence."
NO_INTERVALS = "Above 20,000 units there are none: they would take seconds."
CELLS_ONLY = "v changes the cells of the map and the legend; the rest keeps what the terminal had at the start."
NARROW = "Where columns are few, prec. is precision and AUROC is AUROC macro."
UNDEFINED = "A dash is a number that does not exist yet or at all; the reason stands beside it."


TEXTUAL_KEYS: tuple[tuple[str, str, str], ...] = (
    ("^p", "Find a command by its name", ""),
    ("tab", "Next part; shift+tab the previous", ""),
)
"""Keys that are Textual's own and cannot be changed in the file of keys."""

ROWS = (
    f"{LINE_END} stands between two lines of an answer that share a row",
    f"a line shares its row with the next when it has up to {SHORT} atoms",
    f"a blank follows every {GROUP} atoms of a line",
    f"{GOES_ON} a line goes on from the row above; {CURSOR_ROW} the row of the cursor",
)
"""How the atoms of an answer stand in rows."""

TAIL = (
    "14 .07 streaming: 14 atoms so far, precision .07, state of the answer",
    "  streaming: being written; open: begun, and the run has stopped",
    "  complete: the model ended its answer",
    "  truncated: stopped at its limit of tokens",
    "  unclosed: the line of asterisks after the answer is missing",
    "  no answer, no fence: nothing was said inside a fence, the two lines of asterisks that the prompt asks for",
    "  context full, cancelled, failed: left out of every number",
    "newest below: the map follows what is written",
    "end follows: the cursor was moved; the key end follows again",
)
"""What stands at the right of a row of the map and in its heading."""


def help_text(keys: Sequence[tuple[str, Sequence[tuple[str, str, str]]]], mode: DrawingMode, keys_file: str) -> str:
    """Return the whole text.

    Args:
        keys: groups of (key, what it does, id of the binding).
        mode: how cells are drawn.
        keys_file: where keys can be changed.
    """
    lines: list[str] = []
    for title, entries in keys:
        lines += [title, *(_key_line(*entry) for entry in entries), ""]
    lines += ["Of every program with this kind of screen", *(_key_line(*entry) for entry in TEXTUAL_KEYS), ""]
    lines += ["Verdicts", *(f"  {GLYPHS[name]}  {name}: {' '.join(words)}" for name, words in VERDICTS.items()), ""]
    lines += ["Rows", *(f"  {line}" for line in ROWS), ""]
    lines += ["The end of a row", *(f"  {line}" for line in TAIL), ""]
    lines += ["Shades", *(f"  {line}" for line in shade_lines(mode)), f"  {CELLS_ONLY}", "", "Metrics"]
    for name, (what, direction) in METRICS.items():
        lines += [f"  {name}", f"    {what}", f"    {direction}"]
    lines += [
        f"  {INTERVALS}",
        f"  {NO_INTERVALS}",
        f"  {NARROW}",
        f"  {UNDEFINED}",
        "",
        f"Keys can be changed in {keys_file},",
        "by the names at the right of the lists above; commas join several:",
        '  "map.next_wrong" = "n,ctrl+n"',
    ]
    return "\n".join(lines)


def _key_line(key: str, what: str, name: str) -> str:
    return f"  {key:<10} {what:<34} {name}".rstrip()


def shade_lines(mode: DrawingMode) -> list[str]:
    """Explain the shades of a mode, with the range of each step."""
    steps = len(SHADES)
    if mode is DrawingMode.COLOUR:
        return [
            "The background says how sure the model was: dark blue is unsure, bright yellow is sure.",
            f"Each of the {steps} steps is {1 / steps:.3f} wide; f chooses the confidence function.",
        ]
    if mode is DrawingMode.ANSI:
        return [
            f"A right atom is a block: {ANSI_SHADES[0]} unsure, {ANSI_SHADES[1:4]} between, {ANSI_SHADES[4]} sure.",
            "Another shows its verdict: thin unsure, bold between, reversed sure; a third of the scale each.",
        ]
    return [
        f"A digit from 0 (unsure) to {steps - 1} (sure) in steps of {1 / steps:.3f} stands for an atom.",
        "One that is not right is reversed; missing and redundant ones are underlined too.",
    ]
