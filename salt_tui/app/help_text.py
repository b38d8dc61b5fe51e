"""What ``?`` shows: marks, shades and numbers, each number in two sentences with its direction, then the keys."""

from __future__ import annotations

from collections.abc import Sequence

from salt_tui.app.row_flow import CURSOR_ROW, GOES_ON, LINE_END
from salt_tui.palette import BLOCKS, GLYPHS, DrawingMode, Look, Shading

VERDICTS: dict[str, str] = {
    "correct": "equal to the reference at its place; more is better",
    "wrong": "differs from the reference there; lowers precision",
    "redundant": "said after the right answer's end; lowers precision",
    "missing": "in the right answer, not said; lowers recall",
    "abstained": "said not to know; lowers precision, has no confidence",
    "streaming": "is being written; counts nowhere yet",
}
"""What a mark means and what it does to the numbers."""

NUMBERS: dict[str, tuple[str, str]] = {
    "right": ("precision: right atoms among those said.", "0 to 1, higher is better."),
    "asked": ("recall: right atoms among those asked for.", "0 to 1, higher is better."),
    "ECE": (
        "gap between confidence and correctness, averaged over 15 bins.",
        "Lower is better: at 0, of atoms said with 70 % confidence 70 % are right.",
    ),
    "AUROC": (
        "how often a right atom has more confidence than a wrong one of its task.",
        "Higher is better, 0.5 is chance.",
    ),
    "Brier": (
        "mean squared distance of confidence from right (1) or wrong (0).",
        "0 to 1, lower is better: it rewards ranking and calibration alike.",
    ),
    "covered, wrong": (
        "share of units that a threshold trusts, and share of wrong ones among those.",
        "More covered and fewer wrong are better.",
    ),
    "EURO": (
        "what trusting by confidence gains of what a perfect decider would, by the worth of rightly abstaining.",
        "0 to 1, higher is better; base rate: everything has the same confidence.",
    ),
    "inside answers": (
        "AUROC inside each answer that holds right and wrong atoms; in brackets, how many do.",
        "Higher is better.",
    ),
    "along": (
        "share of right atoms from the beginning of an answer to its end, in tenths.",
        "Higher is better; what comes behind the right end is left out.",
    ),
    "confidently wrong": (
        "wrong or redundant, and in the top tenth of its task's confidence.",
        "Fewer are better.",
    ),
    "right but unsure": (
        "right, with a confidence in the lower half of its scale.",
        "Fewer are better.",
    ),
    "clear": (
        "in Compare: yes, by more than chance, corrected for the number of tasks; maybe, only by itself.",
        "small: within ±.02 (Brier ±.01). needs: problems a task that would show the difference, if it is real.",
    ),
    "undefined": (
        "a dash: it cannot be computed, the reason stands beside it.",
        "It is not 0, and is left out of means.",
    ),
    "exact": (
        "a check found that numbers do not depend on what is computed beside them.",
        "Exact is better: NOT EXACT runs may not repeat bit for bit.",
    ),
}
"""What a number is, and which direction is good."""

INTERVALS = "[ ] 95 % interval over answers, up to 20,000 units; n: atoms with a confidence"

TEXTUAL_KEYS: tuple[tuple[str, str], ...] = (
    ("^p", "Find a command by name"),
    ("tab", "Next part; shift+tab back"),
)
"""Keys that are Textual's own."""

ROWS = (
    "15/20 beside the number of an answer: right atoms over those asked",
    f"{LINE_END} between two lines of an answer in one row; a blank every ten atoms",
    f"{GOES_ON} the line goes on from the row above; {CURSOR_ROW} the answer of the cursor",
    "−399: so many missing atoms in a row",
    "a small maze stands below its moves: the way said, o the right way",
    "behind the atoms: how an answer ended that is not complete",
    "truncated: at its limit; unclosed: without the closing asterisks; no fence: nothing inside asterisks",
    "open: the run stopped in it; context full, cancelled, failed: left out of all numbers",
    "newest below: the map follows; end follows: press end for that",
)
"""How the atoms of an answer stand in rows, and what stands beside them."""


def help_text(keys: Sequence[tuple[str, Sequence[tuple[str, str]]]], look: Look, keys_file: str, width: int) -> str:
    """Return the whole text: the keys of this screen first, what marks and numbers mean after them.

    Args:
        keys: groups of (key, what it does).
        look: how cells are drawn.
        keys_file: where keys can be changed.
        width: cells of a row; two keys stand in one where both have room.
    """
    lines: list[str] = []
    for title, entries in (*keys, ("In every window", TEXTUAL_KEYS)):
        lines += [title, *_in_pairs([f"{key:<9} {what}" for key, what in entries], width)]
    lines += [f"Keys are changed in {keys_file}, by the names that K lists.", ""]
    lines += ["Marks", *(f"  {GLYPHS[name]}  {name}: {words}" for name, words in VERDICTS.items())]
    lines += ["Colours", *(f"  {line}" for line in shade_lines(look))]
    lines += ["Numbers", *(f"  {name}: {what} {direction}" for name, (what, direction) in NUMBERS.items())]
    lines += [f"  {INTERVALS}", "Rows", *(f"  {line}" for line in ROWS)]
    return "\n".join(lines)


def key_names_text(keys: Sequence[tuple[str, str, str]], keys_file: str) -> str:
    """Return every binding as a line of the file of keys.

    Args:
        keys: (id of the binding, its keys, what it does).
        keys_file: where keys can be changed.
    """
    lines = [f"Lines for {keys_file}; commas join several keys.", ""]
    lines += [f"{name!r:<24} = {key!r:<18} # {what}".replace("'", '"') for name, key, what in keys]
    return "\n".join(lines)


def _in_pairs(entries: Sequence[str], width: int) -> list[str]:
    """Put two entries in a row where both are short enough."""
    half = (width - len("   ")) // 2
    rows: list[str] = []
    left: str | None = None
    for entry in entries:
        if left is None:
            left = entry
        elif max(len(left), len(entry)) <= half:
            rows.append(f"  {left:<{half}} {entry}")
            left = None
        else:
            rows.append(f"  {left}")
            left = entry
    return rows if left is None else [*rows, f"  {left}"]


def shade_lines(look: Look) -> list[str]:
    """Explain what the colour of a cell says."""
    step = f"Each of the {look.steps} steps is {1 / look.steps:.3g} wide"
    keys = "f chooses the function, v what colours say, V a dark or light ground"
    if look.shading is Shading.GLYPHS:
        return [f"Cells show their mark alone; {keys}."]
    if look.shading is Shading.STRENGTH:
        says = {
            DrawingMode.COLOUR: "The ground says how sure the model was: dark blue is unsure, bright yellow is sure.",
            DrawingMode.ANSI: f"A right atom is a block, {BLOCKS[0]} unsure to {BLOCKS[-1]} sure; others turn if sure.",
            DrawingMode.PLAIN: f"A digit from 0, unsure, to {look.steps - 1}, sure; bold where it is not right.",
        }
    else:
        says = {
            DrawingMode.COLOUR: "Blue is right, orange is not; the stronger the colour, the surer the model was.",
            DrawingMode.ANSI: f"Right is a blue block, {BLOCKS[0]} unsure to {BLOCKS[-1]} sure; an error turns yellow.",
            DrawingMode.PLAIN: "A cell is reversed where the model was sure.",
        }
    cursor = [] if look.mode is DrawingMode.COLOUR else ["The cursor's cell is underlined, in reversed brackets."]
    return [says[look.mode], *cursor, f"{step}; {keys}."]
