"""Several runs of one model that differ in the sampler's seed alone: how far their headline values spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from salt_tui.measure.run_report import RATES, RunReport


@dataclass(frozen=True, slots=True)
class Spread:
    """One headline value over runs.

    Attributes:
        runs: runs that have a value.
        mean: over these; None without one.
        deviation: sample standard deviation between these; None with fewer than two.
        lowest: the lowest value; None without one.
        highest: the highest value; None without one.
    """

    runs: int
    mean: float | None
    deviation: float | None
    lowest: float | None
    highest: float | None


def spread_between(reports: Sequence[RunReport]) -> Mapping[str, Spread]:
    """Return the spread of the means over tasks, by name of `RATES`."""
    found = {}
    for rate in RATES:
        values = [value for report in reports if (value := report.mean[rate].mean.value) is not None]
        found[rate] = Spread(
            runs=len(values),
            mean=fmean(values) if values else None,
            deviation=stdev(values) if len(values) > 1 else None,
            lowest=min(values, default=None),
            highest=max(values, default=None),
        )
    return found
