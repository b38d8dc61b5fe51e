"""What Reliability draws, as curves in numbers; no drawing here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from salt_tui.measure.confidence_view import ConfidenceView
from salt_tui.measure.course import CourseOfAnswers
from salt_tui.number_text import number
from scoring.analyses_position import Curve as MeasuredCurve
from scoring.contrasts import FEWEST_UNITS

FloatArray = NDArray[np.float64]


class Kind(StrEnum):
    """What is drawn; the values are titles."""

    DIAGRAM = "reliability diagram"
    PARTS = "diagrams side by side"
    RISK = "risk and coverage"
    EURO = "EURO"
    DENSITIES = "densities"
    POSITION = "along an answer"
    HISTORY = "after right and wrong atoms"


class Role(StrEnum):
    """What a curve is, which decides how it looks."""

    MAIN = "main"
    GUIDE = "guide"
    RIGHT = "right"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Curve:
    """Points that are joined, or marks.

    Attributes:
        x, y: of one length; NaN is left out.
        mark: one character for every point; empty for a line through them.
        role: how it looks.
        name: in the legend; empty for none.
    """

    x: FloatArray
    y: FloatArray
    mark: str
    role: Role
    name: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes.

    Attributes:
        name: of the task or part that it shows; empty for the only panel.
        title: above it; empty for none.
        highest: of the vertical axis, which begins at 0; the horizontal one goes from 0 to 1.
        curves: the first is drawn first.
        root: whether heights are drawn by their square roots, so that the low ones are seen beside a high one.
    """

    name: str
    title: str
    highest: float
    curves: tuple[Curve, ...]
    root: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """What fills the plot.

    Attributes:
        panels: one with axes, or several side by side without.
        axes: what is drawn to the right and upwards, in words.
        missing: why nothing is drawn; empty where something is.
        horizontal: what the horizontal axis is, for the cursor of the threshold: ``confidence``, ``coverage``, or
            empty where there is none.
        left_out: panels that are not among these.
    """

    panels: tuple[Panel, ...]
    axes: str
    missing: str = ""
    horizontal: str = ""
    left_out: int = 0

    @property
    def legend(self) -> str:
        """The marks of the first panel with their names."""
        curves = self.panels[0].curves if self.panels else ()
        return "  ".join(f"{curve.mark or '─'} {curve.name}" for curve in curves if curve.name)


def picture_of(
    kind: Kind,
    view: ConfidenceView,
    parts: Sequence[tuple[str, ConfidenceView]] = (),
    course: CourseOfAnswers | None = None,
) -> Picture:
    """Return what is drawn.

    Args:
        kind: what is looked at.
        view: of the chosen units.
        parts: views of tasks or slices with their names, for `Kind.PARTS`.
        course: for `Kind.POSITION` and `Kind.HISTORY`.
    """
    if kind is Kind.POSITION or kind is Kind.HISTORY:
        return Picture((), "", "measuring …") if course is None else _course_picture(kind, course, view.choice.task)
    if view.reason is not None:
        return Picture((), "", f"nothing to draw: {view.reason}")
    if kind is Kind.RISK:
        return _risk_picture(view)
    if view.no_probability is not None:
        return Picture((), "", f"needs probabilities: {view.no_probability}; m chooses a map")
    if kind is Kind.PARTS:
        return _parts_picture(parts)
    if kind is Kind.EURO:
        return _euro_picture(view)
    if kind is Kind.DENSITIES:
        return _densities_picture(view)
    return Picture((Panel("", "", 1.0, _bins_curves(view)),), "said → right ↑", horizontal="confidence")


def _bins_curves(view: ConfidenceView) -> tuple[Curve, ...]:
    ends = np.array([0.0, 1.0])
    curves = [Curve(ends, ends, "", Role.GUIDE, "calibrated")]
    if view.bins is not None:
        few = view.bins.counts < FEWEST_UNITS
        said, right = view.bins.confidence, view.bins.accuracy
        if few.any():
            curves.append(Curve(said[few], right[few], "∘", Role.MAIN, f"under {FEWEST_UNITS}"))
        curves.append(Curve(said[~few], right[~few], "●", Role.MAIN, "bin"))
    return tuple(curves)


def _parts_picture(parts: Sequence[tuple[str, ConfidenceView]]) -> Picture:
    panels = tuple(
        Panel(name, f"{number(view.values['ece'].mean.value, 2)} {name}", 1.0, _bins_curves(view))
        for name, view in parts
    )
    return Picture(panels, "ECE, name; said → right ↑", "" if panels else "measuring …")


def _risk_picture(view: ConfidenceView) -> Picture:
    risk = view.risk
    if risk is None:
        return Picture((), "", "nothing to draw")
    highest = _ceiling(max(float(risk.error.max(initial=0.0)), risk.random))
    curves = (
        Curve(np.array([0.0, 1.0]), np.array([risk.random, risk.random]), "", Role.GUIDE, "random"),
        Curve(risk.coverage, risk.oracle, "·", Role.GUIDE, "oracle"),
        Curve(risk.coverage, risk.error, "", Role.MAIN, view.choice.function),
    )
    return Picture((Panel("", "", highest, curves),), "covered → wrong ↑", horizontal="coverage")


def _euro_picture(view: ConfidenceView) -> Picture:
    euro = view.euro
    if euro is None:
        return Picture((), "", "nothing to draw")
    x = np.array(euro.utility)
    curves = (
        Curve(x, _floats(euro.oracle), "·", Role.GUIDE, "oracle"),
        Curve(x, _floats(euro.base_rate), "+", Role.GUIDE, "base rate"),
        Curve(x, _floats(euro.value), "", Role.MAIN, view.choice.function),
    )
    return Picture((Panel("", "", 1.0, curves),), "utility of abstaining → EURO ↑", horizontal="confidence")


def _densities_picture(view: ConfidenceView) -> Picture:
    densities = view.densities
    if densities is None:
        return Picture((), "", "nothing to draw")
    edges = np.array(densities.edges)
    middles = (edges[:-1] + edges[1:]) / 2
    highest, curves = 0.0, []
    for values, mark, role, name, count in (
        (densities.right, "", Role.RIGHT, "right", densities.right_units),
        (densities.wrong, "×", Role.WRONG, "wrong", densities.wrong_units),
    ):
        if values is not None:
            heights = np.array(values)
            highest = max(highest, float(heights.max()))
            curves.append(Curve(middles, heights, mark, role, f"{name} {count:,}"))
    axes = f"confidence → √density ↑ ── overlap {number(densities.overlap.value, 2)}"
    return Picture((Panel("", "", _ceiling(highest), tuple(curves), root=True),), axes, horizontal="confidence")


def _course_picture(kind: Kind, course: CourseOfAnswers, task: str | None) -> Picture:
    if kind is Kind.HISTORY:
        curves = _measured(course.history, task, "●", Role.MAIN, "right")
        axes = "share right before → right ↑"
    else:
        curves = (
            *_measured(course.calibration, task, "○", Role.GUIDE, "ECE"),
            *_measured(course.redundancy, task, "+", Role.WRONG, "redundant"),
            *_measured(course.correctness, task, "●", Role.MAIN, "right"),
        )
        axes = "place in the answer → share ↑"
    if not any(np.isfinite(curve.y).any() for curve in curves):
        return Picture((), axes, "nothing to draw: no atom has a place in an answer")
    return Picture((Panel("", "", 1.0, curves),), axes)


def _measured(curve: MeasuredCurve, task: str | None, mark: str, role: Role, name: str) -> tuple[Curve, ...]:
    """Return the points of a curve and, under them, the ends of their intervals."""
    edges = np.array(curve.edges)
    middles = (edges[:-1] + edges[1:]) / 2
    if task is not None:
        found = curve.tasks.get(task)
        values = _floats(found.value) if found is not None else np.full(middles.size, np.nan)
        return (Curve(middles, values, mark, role, name),)
    ends = []
    if curve.intervals and role is Role.MAIN:
        lows = _floats([interval.low for interval in curve.intervals])
        highs = _floats([interval.high for interval in curve.intervals])
        ends = [Curve(middles, highs, "┬", Role.GUIDE), Curve(middles, lows, "┴", Role.GUIDE, "95 %")]
    return (*ends, Curve(middles, _floats(curve.mean), mark, role, name))


def _floats(values: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _ceiling(value: float) -> float:
    """Return the next of 0.1, 0.2, 0.5, 1, 2, 5, … so that an axis ends in a round number."""
    if not value > 0.0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(power * step for step in (1.0, 2.0, 5.0, 10.0) if power * step >= value * (1.0 - 1e-9)))


def cursor_place(picture: Picture, threshold: float | None, coverage: float | None) -> float | None:
    """Return where the threshold stands on the horizontal axis; None where it has no place there."""
    found: Mapping[str, float | None] = {"confidence": threshold, "coverage": coverage}
    return found.get(picture.horizontal)
