"""The map of a run: a row per answer, a cell per atom, hue and mark its verdict, strength its confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from salt_tui.figures.drawing import Drawing, name_axes
from salt_tui.figures.errors import FigureError
from salt_tui.figures.measured import Measured
from salt_tui.palette import HUES, STRENGTHS
from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from salt_tui.visible_text import visible
from scoring.signals import confidence_entry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ANSWERS, MOST_ATOMS = 60, 400
"""Of one task; beyond them a cell would be thinner than a printed line."""

MOST_STROKES = 5000
"""Of one task that are drawn as lines; more are drawn as dots, so that a file stays small."""

_MARKS = {"wrong": "\\", "redundant": "/", "abstained": "?", "missing": ""}
_UNKNOWN = "#d9d9d9"
_ROW = 0.085


@dataclass(frozen=True, slots=True)
class _Task:
    """One task's cells: status and step of the strength, shape ``(answers, atoms)``, −1 for none."""

    task: str
    answers: tuple[int, ...]
    status: NDArray[np.int64]
    step: NDArray[np.int64]
    cut: str


def draw_heatmap(measured: Measured) -> Drawing:
    """Return a panel per task; strength is the confidence, or its rank in the run where it is no probability."""
    options = measured.options
    columns = measured.units(measured.unit, options.function)
    tasks = [found for task in measured.tasks if (found := _cells(columns, task, options.function)) is not None]
    if not tasks:
        raise FigureError(f"nothing to draw: no {measured.unit} of a finished answer that counts")
    rows = [max(len(task.answers), 2) for task in tasks]

    def fill(figure: Figure) -> None:
        key, *panels = figure.subplots(len(tasks) + 1, 1, height_ratios=[1.5, *rows])
        _key(key)
        for axes, task in zip(panels, tasks, strict=True):
            _panel(axes, task)
        name_axes(panels[-1], x=f"{measured.unit}, in the order of the answer")

    probability = not confidence_entry(options.function).needs_calibration
    scale = "its value in fifths" if probability else "its rank among all of the run, in fifths"
    cuts = [f"{task.task}: {task.cut}" for task in tasks if task.cut]
    cells = sum(int((task.status >= 0).sum()) for task in tasks)
    judged = [UNIT_STATUSES.index(name) for name in ("correct", "wrong", "redundant")]
    unsaid = sum(int((np.isin(task.status, judged) & (task.step < 0)).sum()) for task in tasks)
    reason = columns.undefined.get(options.function)
    without = f"{unsaid:,} of them have no {options.function}{f' ({reason})' if reason else ''}, drawn as unsure."
    notes = (
        *measured.words,
        f"{cells:,} cells; a row is an answer, numbered as `show` does. Strength: raw {options.function},"
        f" {scale}. Missing: asked for and not written.",
        *((without,) if unsaid else ()),
        *cuts,
    )
    height = sum(rows) * _ROW + 0.42 * len(tasks) + 0.45
    return Drawing("Right and wrong, sure and unsure", notes, height, fill)


def _cells(columns: UnitColumns, task: str, function: str) -> _Task | None:
    if task not in columns.task_names:
        return None
    own = columns.task == columns.task_names.index(task)
    positions = np.unique(columns.position[own])
    if not positions.size:
        return None
    shown = positions[:MOST_ANSWERS]
    width = int(columns.index[own].max()) + 1
    kept = own & np.isin(columns.position, shown) & (columns.index < MOST_ATOMS)
    place = (np.searchsorted(shown, columns.position[kept]), columns.index[kept])
    status = np.full((shown.size, min(width, MOST_ATOMS)), -1, dtype=np.int64)
    step = status.copy()
    status[place] = columns.status[kept]
    step[place] = _steps(columns, function)[kept]
    cut = []
    if positions.size > MOST_ANSWERS:
        cut.append(f"the first {MOST_ANSWERS} of {positions.size} answers")
    if width > MOST_ATOMS:
        cut.append(f"the first {MOST_ATOMS} of up to {width} atoms")
    return _Task(task, tuple((shown + 1).tolist()), status, step, ", ".join(cut))


def _steps(columns: UnitColumns, function: str) -> NDArray[np.int64]:
    """Return the strength of every unit, 0 to 4, −1 without a confidence."""
    entry = confidence_entry(function, columns.lower_is_confident)
    values = entry.oriented(columns.confidences[function])
    known = ~np.isnan(values)
    steps = np.full(values.size, -1, dtype=np.int64)
    if entry.needs_calibration:
        ascending = np.sort(values[known])
        share = np.searchsorted(ascending, values[known], side="left") / max(ascending.size, 1)
    else:
        share = values[known]
    steps[known] = np.minimum((share * STRENGTHS).astype(np.int64), STRENGTHS - 1)
    return steps


def _panel(axes: Axes, task: _Task) -> None:
    right, wrong = (np.array([_rgb(colour) for colour in HUES[True, hue]]) for hue in (True, False))
    image = np.full((*task.status.shape, 3), 255, dtype=np.uint8)
    for code, name in enumerate(UNIT_STATUSES):
        here = task.status == code
        if name == "correct":
            image[here] = right[np.maximum(task.step[here], 0)]
        elif name in ("wrong", "redundant"):
            image[here] = wrong[np.maximum(task.step[here], 0)]
        elif name == "abstained":
            image[here] = _rgb(_UNKNOWN)
    width = task.status.shape[1]
    # The first unit is number 1, as everywhere.
    extent = (0.5, width + 0.5, len(task.answers) - 0.5, -0.5)
    axes.imshow(image, aspect="auto", interpolation="nearest", origin="upper", extent=extent)
    for name, mark in _MARKS.items():
        rows, columns = np.nonzero(task.status == UNIT_STATUSES.index(name))
        if mark in ("\\", "/"):
            _strokes(axes, rows, columns + 1, mark)
        elif mark:
            axes.plot(columns + 1, rows, marker="d", color="black", markersize=1.6, linestyle="none")
    step = max(1, -(-len(task.answers) // 6))
    axes.set_yticks(range(0, len(task.answers), step), [str(number) for number in task.answers[::step]])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=1.5)
    atoms = int((task.status >= 0).sum())
    name_axes(axes, y="answer", title=f"{visible(task.task, 60)}: {len(task.answers)} answers, {atoms:,} cells")


def _strokes(axes: Axes, rows: NDArray[np.intp], columns: NDArray[np.intp], mark: str) -> None:
    """Draw a stroke across each cell, all as one line: errors are seen without colour."""
    lean = 0.5 if mark == "\\" else -0.5
    gap = np.full(rows.size, np.nan)
    xs = np.column_stack([columns - 0.5, columns + 0.5, gap]).ravel()
    ys = np.column_stack([rows - lean, rows + lean, gap]).ravel()
    many = bool(rows.size > MOST_STROKES)
    axes.plot(xs, ys, color="black", linewidth=0.45, scalex=False, scaley=False, rasterized=many)


def _key(axes: Axes) -> None:
    """Draw what the cells mean, in a row of its own."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries = [
        Patch(facecolor=HUES[True, True][-1], label="right, sure"),
        Patch(facecolor=HUES[True, True][0], label="right, unsure"),
        Patch(facecolor=HUES[True, False][-1], hatch="\\\\\\\\", label="wrong, sure"),
        Patch(facecolor=HUES[True, False][0], hatch="\\\\\\\\", label="wrong, unsure"),
        Patch(facecolor=HUES[True, False][2], hatch="////", label="redundant"),
        Line2D([], [], marker="d", color="black", markersize=3, linestyle="none", label="abstained"),
        Patch(facecolor="white", edgecolor="#bbbbbb", label="missing"),
    ]
    axes.set_axis_off()
    axes.legend(
        handles=entries, loc="center left", borderpad=0, ncols=len(entries), handlelength=1.6, columnspacing=1.2
    )


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
