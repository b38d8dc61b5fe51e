"""``salt-tui score``."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from salt_tui.commands.failures import DONE
from salt_tui.inputs.answer_files import AnswerLabels, LabelOptions, label_file, labels_data
from salt_tui.palette import GLYPHS
from salt_tui.runner.brought_tokens import tokens_of_row
from salt_tui.usage_error import UsageError

_IN_MEMORY = 16 * 1024**2
"""Bytes of output that are kept in memory; more goes to a temporary file."""


def score_file(file: Path, *, aligned: bool, unit: str, compat: bool, json_output: bool) -> int:
    """Label every answer of a JSON lines file and print one row per answer."""
    # Nothing is printed before the last row was read, and rows need not fit into memory.
    with tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="") as output:
        labels = label_file(file, LabelOptions(unit=unit, aligned=aligned, compat=compat), tokens_of_row)
        if json_output:
            output.write('{"rows": [')
        number = 0
        for number, item in enumerate(labels, 1):
            if json_output:
                data = json.dumps(labels_data(item), ensure_ascii=False, allow_nan=False)
                output.write(data if number == 1 else f", {data}")
            else:
                output.write(f"{_line(number, item)}\n")
        if not number:
            raise UsageError(f"{file}: holds no rows")
        if json_output:
            output.write("]}\n")
        output.seek(0)
        shutil.copyfileobj(output, sys.stdout)
    return DONE


def _line(number: int, labels: AnswerLabels) -> str:
    marks = "".join(GLYPHS[status] for status in labels.statuses)
    rates = "  ".join(
        f"{name} {'–' if value.value is None else f'{value.value:.3f}'}"
        for name, value in (("precision", labels.precision), ("recall", labels.recall))
    )
    why = "" if labels.no_answer is None else f" ({labels.no_answer})"
    return f"{number:>5}  {rates}  {labels.answer_status.replace('_', ' ')}{why}  {marks}"
