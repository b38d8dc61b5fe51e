"""``salt-tui calibrate``: calibrated values of a table that came from elsewhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from salt_tui.commands.failures import DONE, say
from salt_tui.inputs.score_tables import calibrate_table


def print_calibrated(
    method: str, training: Path, target: Path, *, score: str, correct: str, lower_is_confident: bool
) -> int:
    """Print one value per row of ``target``, ``null`` where it is undefined, and why on stderr."""
    calibrated = calibrate_table(
        method, training, target, score=score, correct=correct, lower_is_confident=lower_is_confident
    )
    for note in calibrated.notes:
        say(note)
    sys.stdout.writelines(f"{json.dumps(value, allow_nan=False)}\n" for value in calibrated.values)
    return DONE
