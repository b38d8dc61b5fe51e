"""A curve with its interval in characters."""

from __future__ import annotations

from collections.abc import Iterator

from salt_tui.reports.text_tables import number
from scoring.interventions_contrasts import Curve

ROWS = 7
VALUE = "●"
INTERVAL = "·"
ZERO = "─"
_LABEL = 6


def curve_lines(curve: Curve, axis: str) -> Iterator[str]:
    """Yield a curve as `ROWS` lines with labels and an axis below, 68 columns wide; nothing for one without points.

    Args:
        curve: its points stand side by side, evenly.
        axis: what the doses are, below.
    """
    if not curve.dose:
        return
    lows, highs = curve.low or curve.value, curve.high or curve.value
    bottom, top = min(*lows, *curve.value, 0.0), max(*highs, *curve.value, 0.0)
    step = (top - bottom) / (ROWS - 1) or 1.0
    zero = round((top - 0.0) / step)
    for row in range(ROWS):
        level = top - row * step
        cells = []
        for value, low, high in zip(curve.value, lows, highs, strict=True):
            if round((top - value) / step) == row:
                cells.append(VALUE)
            elif low - step / 2 <= level <= high + step / 2 and curve.low:
                cells.append(INTERVAL)
            else:
                cells.append(ZERO if row == zero else " ")
        yield f"{number(level, 2):>{_LABEL}} ┤{''.join(cells).rstrip()}"
    first, last = number(curve.dose[0], 2), number(curve.dose[-1], 2)
    yield f"{'':>{_LABEL}}  {first}{axis:^{len(curve.dose) - len(first) - len(last)}}{last}"
