"""Values below which a run counts as failed, for scripts: ``--fail-under precision=.4``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from salt_tui.measure.run_report import RunReport
from salt_tui.similar_names import did_you_mean
from salt_tui.usage_error import UsageError

WITH_FLOOR = ("precision", "recall", "auroc_macro", "auroc_micro")
"""Headline values of which more is better."""


def read_floors(texts: Sequence[str]) -> dict[str, float]:
    """Read ``NAME=NUMBER`` texts.

    Raises:
        UsageError: another form, another name, or a number outside [0, 1].
    """
    floors = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if name not in WITH_FLOOR or not equals:
            known = ", ".join(WITH_FLOOR)
            raise UsageError(f"--fail-under {text}: NAME=NUMBER with {known}{did_you_mean(name, WITH_FLOOR)}")
        try:
            floors[name] = float(number)
        except ValueError as error:
            raise UsageError(f"--fail-under {text}: {number!r} is no number") from error
        if not 0.0 <= floors[name] <= 1.0:
            raise UsageError(f"--fail-under {text}: a number from 0 to 1")
    return floors


def below_floors(report: RunReport, floors: Mapping[str, float]) -> list[str]:
    """Return what lies below its floor, in words; a value that is undefined is below every floor."""
    found = []
    for name, floor in floors.items():
        mean = report.mean[name].mean
        if mean.value is None:
            found.append(f"{name} is undefined ({mean.reason}), below {floor:g}")
        elif mean.value < floor:
            found.append(f"{name} {mean.value:.4g} is below {floor:g}")
    return found
