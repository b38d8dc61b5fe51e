"""``salt-tui calibrate``: calibrated values of a table that came from elsewhere, by a map fitted now or before."""

from __future__ import annotations

import sys
from math import isnan
from pathlib import Path

from salt_tui.commands.failures import DONE, say
from salt_tui.commands.text_files import write_text_file
from salt_tui.inputs.score_tables import CORRECT, read_scores, read_scores_to_map
from salt_tui.measure.calibration_maps import apply_map, fit_map, map_text, read_map
from salt_tui.usage_error import UsageError
from scoring.calibrators_fitted import Fitted, Unfitted

_WRITTEN_AT_ONCE = 10_000
"""Values; all of five million as numbers of Python would take as much memory again as the table."""


def print_calibrated(
    method: str | None,
    training: Path | None,
    target: Path | None,
    *,
    saved: Path | None,
    save: Path | None,
    score: str | None,
    correct: str = CORRECT,
    lower_is_confident: bool,
) -> int:
    """Print one value per row of ``target``, ``null`` where it is undefined, and why on stderr.

    Args:
        method: name of a calibrator; None with a saved map.
        training: table to fit on; None with a saved map.
        target: table to calibrate; None to save the map only.
        saved: file of a map to apply.
        save: file to write the fitted map to.
        score: name of the column of scores in both tables.
        correct: name of the column of outcomes.
        lower_is_confident: for scores such as perplexity.

    Raises:
        UsageError: options that do not go together, or a file that cannot be read.
    """
    fitted = _fitted(method, training, saved, score=score, correct=correct, lower_is_confident=lower_is_confident)
    if target is None and save is None:
        raise UsageError("nothing to do: --apply FILE prints calibrated values, --save MAP.json keeps the map")
    if save is not None:
        if isinstance(fitted, Unfitted):
            raise UsageError(f"no map to save: {fitted.reason}")
        write_text_file(save, map_text(fitted))
    if target is not None:
        calibrated = apply_map(fitted, read_scores_to_map(target, score))
        for note in calibrated.notes:
            say(note)
        for first in range(0, calibrated.values.size, _WRITTEN_AT_ONCE):
            values = calibrated.values[first : first + _WRITTEN_AT_ONCE].tolist()
            sys.stdout.write("".join("null\n" if isnan(value) else f"{value!r}\n" for value in values))
    return DONE


def _fitted(
    method: str | None,
    training: Path | None,
    saved: Path | None,
    *,
    score: str | None,
    correct: str,
    lower_is_confident: bool,
) -> Fitted | Unfitted:
    if saved is not None:
        if method is not None or training is not None:
            raise UsageError("--map applies a map that was saved: leave METHOD and --fit out")
        if lower_is_confident:
            raise UsageError("--map knows the direction of its scores: leave --lower-is-confident out")
        return read_map(saved)
    if method is None or training is None:
        raise UsageError("METHOD and --fit FILE fit a map; --map MAP.json applies one that was saved")
    return fit_map(method, read_scores(training, score=score, correct=correct), lower_is_confident=lower_is_confident)
