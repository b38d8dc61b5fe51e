"""``salt-tui score``."""

from __future__ import annotations

import json
from pathlib import Path

from salt_tui.commands.failures import DONE
from salt_tui.inputs.answer_files import LabelOptions, label_file, labels_data
from salt_tui.palette import GLYPHS


def score_file(file: Path, *, aligned: bool, unit: str, compat: bool, json_output: bool) -> int:
    """Label every answer of a JSON lines file and print one row per answer."""
    labels = list(label_file(file, LabelOptions(unit=unit, aligned=aligned, compat=compat)))
    if json_output:
        print(json.dumps({"rows": [labels_data(item) for item in labels]}, ensure_ascii=False, allow_nan=False))
        return DONE
    for number, item in enumerate(labels, 1):
        marks = "".join(GLYPHS[status] for status in item.statuses)
        rates = "  ".join(
            f"{name} {'–' if value.value is None else f'{value.value:.3f}'}"
            for name, value in (("precision", item.precision), ("recall", item.recall))
        )
        why = "" if item.no_answer is None else f" ({item.no_answer})"
        print(f"{number:>5}  {rates}  {item.answer_status.replace('_', ' ')}{why}  {marks}")
    return DONE
