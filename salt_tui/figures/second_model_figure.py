"""Where a second model would have gone elsewhere than the answers: by task and by place in the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from salt_tui.figures.drawing import FAINT, RIGHT, SMALL, WRONG, Drawing, name_axes, series, unit_axes
from salt_tui.figures.errors import FigureError
from salt_tui.figures.measured import Measured
from salt_tui.number_text import number
from salt_tui.store.partings import Parting
from salt_tui.visible_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = 5
"""Equal parts of an answer by which shares are counted."""

_ROW = 0.34
"""Inches of a task."""


def draw_second_model(measured: Measured) -> Drawing:
    """Return where each answer parts first, and how often tokens differ along it."""
    tasks = _by_task(measured)
    if not any(found.tokens for partings in tasks.values() for found in partings):
        raise FigureError("nothing to draw: no answer was read by the second model yet")

    def fill(figure: Figure) -> None:
        first, along = figure.subplots(1, 2, width_ratios=(1.25, 1.0))
        _first_places(first, tasks)
        _shares_along(along, tasks)

    answers = [found for partings in tasks.values() for found in partings]
    tokens = sum(found.tokens for found in answers)
    apart = sum(len(found.apart) for found in answers)
    kl = [found.mean_kl for found in answers if found.mean_kl is not None]
    divergence = f" KL at least {number(sum(kl) / len(kl))} nats a token, mean of {len(kl)} answers." if kl else ""
    mean = "; thick: mean of tasks" if len(tasks) > 1 else ""
    notes = (
        *measured.study_words,
        f"{measured.second_model} read {len(answers)} answers, {tokens:,} tokens; at {apart:,} another token was its"
        f" likeliest one.{divergence}",
        "Left: the first such token of each answer, counted from 1; open: it has none, at the answer's end. Right: the"
        f" share of such tokens by place in the answer, of all tokens of a task{mean}.",
    )
    return Drawing("Where would another model go elsewhere?", notes, max(1.9, 0.75 + _ROW * len(tasks)), fill)


def _by_task(measured: Measured) -> dict[str, list[Parting]]:
    found: dict[str, list[Parting]] = {}
    for parting in measured.partings:
        found.setdefault(parting.task, []).append(parting)
    wanted = measured.options.task
    if wanted is None:
        return found
    if wanted not in found:
        raise FigureError(f"--task {visible(wanted)}: this study has {', '.join(map(visible, found)) or 'no task'}")
    return {wanted: found[wanted]}


def _first_places(axes: Axes, tasks: dict[str, list[Parting]]) -> None:
    """Draw a row per task with a dot per answer, spread a little so that none hides another."""
    names = []
    for row, (task, partings) in enumerate(tasks.items()):
        spread = np.linspace(-0.28, 0.28, len(partings)) if len(partings) > 1 else np.zeros(1)
        for parted, marker, inside in ((True, "o", WRONG), (False, "o", "white")):
            chosen = [place for place, found in enumerate(partings) if bool(found.apart) is parted]
            places = [partings[one].apart[0] + 1 if parted else partings[one].tokens for one in chosen]
            colour = WRONG if parted else RIGHT
            style: dict[str, Any] = {"marker": marker, "markersize": 3.2, "color": colour, "linestyle": "none"}
            axes.plot(places, row + spread[chosen], markerfacecolor=inside, markeredgewidth=0.7, **style)
        count = sum(bool(found.apart) for found in partings)
        names.append(f"{visible(task, 24)}\n{count} of {len(partings)} part")
        axes.axhline(row + 0.5, color=FAINT, linewidth=0.3)
    axes.set_yticks(range(len(names)), names, fontsize=SMALL)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(left=0)
    name_axes(axes, x="token of the answer", title="First apart")


def _shares_along(axes: Axes, tasks: dict[str, list[Parting]]) -> None:
    """Draw the share of tokens that differ in each part of the answer: a line per task and the mean."""
    middles = (np.arange(PARTS) + 0.5) / PARTS
    shares = np.array([shares_along(partings) for partings in tasks.values()])
    for place, (task, values) in enumerate(zip(tasks, shares, strict=True)):
        axes.plot(middles, values, label=visible(task, 24), **(series(place) | {"linewidth": 0.8, "markersize": 3}))
    if len(tasks) > 1:
        known = np.isfinite(shares)
        mean = np.where(known, shares, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        mean[~known.any(axis=0)] = np.nan
        axes.plot(middles, mean, color="black", linewidth=2.0, marker="o", markersize=4.5, label="mean of tasks")
    unit_axes(axes, x="relative position in the answer", y="share of tokens", title="Share apart")
    axes.set_ylim(0.0, max(0.1, 1.1 * float(np.nanmax(shares))))
    axes.legend(loc="upper left", bbox_to_anchor=(0.0, -0.25) if len(tasks) > 2 else None, ncols=2)


def shares_along(partings: Sequence[Parting]) -> list[float]:
    """Return the share of tokens that differ in each of `PARTS` parts of the answers; NaN where there is no token."""
    seen, apart = np.zeros(PARTS), np.zeros(PARTS)
    for found in partings:
        part = np.arange(found.tokens) * PARTS // max(found.tokens, 1)
        np.add.at(seen, part, 1.0)
        np.add.at(apart, part[list(found.apart)], 1.0)
    return [float(some / count) if count else float("nan") for some, count in zip(apart, seen, strict=True)]
