"""A measured number, or the reason why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass

NO_UNITS = "no units"
ONE_CLASS = "one class"
NO_CORRECT_UNIT = "no correct unit"
NO_GROUPS = "no groups"
NO_GROUP_WITH_BOTH_CLASSES = "no answer with both classes"
INFINITE_IN_DRAWS = "infinite in some draws"
NOT_A_PROBABILITY = "not a probability"
NOTHING_GENERATED = "nothing generated"
NO_REFERENCE = "no reference units"
NO_TASKS = "no tasks"
TOO_FEW_GENERATIONS = "fewer than two generations"
ONE_ANSWER = "the units of a single answer"
TOO_FEW_ANSWERS_OF_A_CLASS = "fewer than two answers with a right and two with a wrong unit"
TOO_FEW_ANSWERS_OF_BOTH = "fewer than two answers with both a right and a wrong unit"
TOO_FEW_PAIRS = "fewer than 30 pairs of a right and a wrong unit inside folds"
NO_SPREAD = "the same in every resample"
UNDEFINED_IN_EVERY_DRAW = "undefined in every draw"


@dataclass(frozen=True, slots=True)
class Value:
    """A number, or None with the reason; exactly one of the two is None.

    Infinite is a number: the log loss of a wrong unit at confidence 1 is ``inf``, so is every mean that holds it, and
    it ranks last.  Undefined is not: there is nothing to measure.

    Attributes:
        value: the number, None where the metric is undefined.
        reason: why it is undefined, one of the constants of this module.
    """

    value: float | None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Refuse a number with a reason, nothing at all, and NaN.

        Raises:
            ValueError: if not exactly one of the two is given, or the number is NaN.
        """
        if (self.value is None) == (self.reason is None):
            raise ValueError("a value is either a number or None with a reason")
        if self.value is not None and math.isnan(self.value):
            raise ValueError("a value is a number, not NaN")


def undefined(reason: str) -> Value:
    """Return the value that is None for this reason."""
    return Value(None, reason)


def json_number(number: float | None) -> float | str | None:
    """Return a number as JSON has it: infinity, which JSON cannot hold, as ``"Infinity"`` or ``"-Infinity"``."""
    if number is None or math.isfinite(number):
        return number
    return "Infinity" if number > 0.0 else "-Infinity"
