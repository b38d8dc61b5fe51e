"""A problem drawn as a person would see it: a maze with both ways in it, others as their text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from salt_tui.app.maze_drawing import CELLS, FREE, RIGHT_WAY, TASK, WALL, MazePlace, read_maze
from salt_tui.palette import DrawingMode, Look, draw_cell
from salt_tui.store.records import UnitRecord
from salt_tui.visible_text import visible

_HERE = {False: "bold #000000 on #ffffff", True: "bold #ffffff on #000000"}
LEGEND = f"{RIGHT_WAY} the right way"


def picture(
    look: Look, task: str, text: str, reference: str, atoms: Sequence[UnitRecord], here: int | None = None
) -> Text:
    """Return a problem as text with styles.

    Args:
        look: how atoms are drawn.
        task: its task.
        text: as it was asked.
        reference: the right answer.
        atoms: what was said.
        here: the atom to mark, None for none.
    """
    maze = read_maze(text, reference) if task == TASK else None
    if maze is None:
        return Text("\n".join(visible(line) for line in text.split("\n")))
    drawn = Text()
    for row in maze.places([atom.text for atom in atoms]):
        for place in row:
            status = None if place.atom is None else atoms[place.atom].status
            drawn.append(*draw_place(look, place, status, look.steps - 1, here=here is not None and place.atom == here))
        drawn.append("\n")
    return drawn.append(f"\n{LEGEND}")


def draw_place(
    look: Look, place: MazePlace, status: str | None, step: int | None, *, here: bool = False
) -> tuple[str, str]:
    """Return the characters of a place of a maze and their Rich style.

    Args:
        look: how atoms are drawn.
        place: what is there.
        status: verdict of the atom that leads there, None where none does.
        step: of its confidence, None without one.
        here: whether it is marked.
    """
    if status is None:
        if place.mark == WALL:
            # With sixteen colours a full block is a sure atom; without any it looks like a reversed one.
            return ("█" if look.mode is DrawingMode.COLOUR else WALL) * CELLS, "dim"
        return (" " if place.mark == FREE else place.mark).ljust(CELLS), "bold" if place.mark in "SG" else "none"
    glyph, style = draw_cell(look, status, step)
    text = place.mark + glyph if place.mark in "SG" else glyph.ljust(CELLS)
    return text, mark_style(look) if here else style


def mark_style(look: Look) -> str:
    """Return the style of what the cursor stands on."""
    return _HERE[look.light] if look.mode is DrawingMode.COLOUR else "bold reverse underline"
