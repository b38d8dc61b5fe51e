"""Every metric of a table in one call, for tests."""

from __future__ import annotations

from numpy.typing import ArrayLike

from scoring.metrics import evaluate_units
from scoring.scored_units import Groups, ScoredUnits, require_probability_rows
from scoring.value import Value


def evaluate_metrics(
    confidence: ArrayLike, correct: ArrayLike, groups: Groups | None = None, probability: bool = True
) -> dict[str, Value]:
    """Return every metric of a table, in the order of `METRICS`.

    Args:
        confidence: finite numbers, higher is more confident, shape ``(n,)``.
        correct: booleans or 0 and 1, shape ``(n,)``.
        groups: the generation of each row, shape ``(n,)``; without, micro AUROC is undefined.
        probability: whether the confidences mean probabilities; without, metrics that need them are undefined.

    Raises:
        RowError: for a row with NaN, infinity, a correctness other than 0 and 1, or, where confidences mean
            probabilities, a confidence outside [0, 1].
        ValueError: for columns of different lengths.
    """
    units = ScoredUnits.from_columns(confidence, correct, groups)
    if probability:
        require_probability_rows(confidence)
    return evaluate_units(units, probability=probability)
