"""``salt-tui metrics``: every metric of a table that came from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

from salt_tui.commands.failures import DONE
from salt_tui.commands.report_tables import direction, range_text
from salt_tui.commands.text_tables import TextTable, value_text
from salt_tui.runner.score_tables import measure_table
from scoring.metrics import METRICS, metrics_record


def print_metrics(
    file: Path,
    *,
    confidence: str,
    correct: str,
    group: str | None,
    probability: bool,
    lower_is_confident: bool,
    json_output: bool,
) -> int:
    """Print the metrics of a CSV file, as one JSON object or as a table."""
    n, values = measure_table(
        file,
        confidence=confidence,
        correct=correct,
        group=group,
        probability=probability,
        lower_is_confident=lower_is_confident,
    )
    if json_output:
        print(json.dumps(metrics_record(n, values), ensure_ascii=False, allow_nan=False))
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
    return DONE
