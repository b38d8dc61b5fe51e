"""``salt-tui metrics``: every metric of a table that came from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from salt_tui.commands.failures import DONE
from salt_tui.inputs.score_tables import read_rewards, read_units
from salt_tui.reports.cells import direction, range_text
from salt_tui.reports.text_tables import TextTable, value_text
from salt_tui.usage_error import UsageError
from scoring.decision_utility import Utility, expected_utility
from scoring.metrics import METRICS, evaluate_units, metrics_record
from scoring.yardsticks import yardsticks


def print_metrics(
    file: Path,
    *,
    confidence: str,
    correct: str,
    group: str | None,
    probability: bool,
    lower_is_confident: bool,
    rewards: str | None,
    json_output: bool,
) -> int:
    """Print the metrics of a CSV file, as one JSON object or as a table.

    With rewards, what deciding by confidence earns under them, and both ends of the metrics that need a yardstick.
    """
    wanted = None if rewards is None else read_rewards(rewards)
    if wanted is not None and not probability:
        raise UsageError("--rewards needs probabilities: leave --not-probability out, or calibrate first")
    table = read_units(
        file,
        confidence=confidence,
        correct=correct,
        group=group,
        probability=probability,
        lower_is_confident=lower_is_confident,
    )
    units = table.units
    n, values = units.n, evaluate_units(units, tuple(METRICS), probability, table.ranking)
    utility = None if wanted is None else expected_utility(units, wanted)
    ends = yardsticks(units) if utility is not None else {}
    if json_output:
        record: dict[str, Any] = dict(metrics_record(n, values))
        if utility is not None:
            record["utility"] = _utility_data(utility)
            record["yardsticks"] = {
                name: {"oracle": end.oracle.value, "base_rate": end.base_rate.value} for name, end in ends.items()
            }
        print(json.dumps(record, ensure_ascii=False, allow_nan=False))
        return DONE
    rows = tuple(
        (
            METRICS[name].title,
            value_text(value),
            direction(METRICS[name]),
            range_text(METRICS[name]),
            value.reason or "",
        )
        for name, value in values.items()
    )
    for line in TextTable(f"n {n}", ("metric", "value", "", "range", ""), rows, left=5).as_text():
        print(line)
    if utility is not None:
        for line in _utility_lines(utility, n):
            print(line)
        print("yardsticks: a perfect confidence, and the share of right units as everyone's")
        for name, end in ends.items():
            print(f"  {name:<16} {value_text(end.oracle):>6} {value_text(end.base_rate):>6}")
    return DONE


def _utility_data(utility: Utility) -> dict[str, float | int | None]:
    return {
        "threshold": utility.threshold,
        "mean": utility.mean.value,
        "oracle": utility.oracle.value,
        "trusted": utility.trusted,
        "trusted_right": utility.trusted_right,
        "euro": utility.euro.value,
    }


def _utility_lines(utility: Utility, n: int) -> list[str]:
    return [
        f"rewards: trust above {utility.threshold:.3f}: {utility.trusted} of {n} units, {utility.trusted_right} right",
        f"  reward per unit {value_text(utility.mean)}, of a perfect decider {value_text(utility.oracle)},"
        f" EURO {value_text(utility.euro)} ↑",
    ]
