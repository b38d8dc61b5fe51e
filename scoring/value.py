"""A measured number, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

NO_UNITS = "no units"
ONE_CLASS = "one class"
NO_CORRECT_UNIT = "no correct unit"
NO_GROUPS = "no groups"
NO_GROUP_WITH_BOTH_CLASSES = "no generation with both classes"
INFINITE = "infinite"
NOT_A_PROBABILITY = "not a probability"
NOTHING_GENERATED = "nothing generated"
NO_REFERENCE = "no reference units"
NO_TASKS = "no tasks"
TOO_FEW_GENERATIONS = "fewer than two generations"
UNDEFINED_IN_EVERY_DRAW = "undefined in every draw"


@dataclass(frozen=True, slots=True)
class Value:
    """A finite number, or None with the reason; exactly one of the two is None.

    Attributes:
        value: the number, None where the metric is undefined.
        reason: why it is undefined, one of the constants of this module.
    """

    value: float | None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Refuse a number with a reason, nothing at all, and NaN or infinity.

        Raises:
            ValueError: if not exactly one of the two is given, or the number is not finite.
        """
        if (self.value is None) == (self.reason is None):
            raise ValueError("a value is either a number or None with a reason")
        if self.value is not None and not abs(self.value) < float("inf"):
            raise ValueError(f"a value is finite, not {self.value}")


def undefined(reason: str) -> Value:
    """Return the value that is None for this reason."""
    return Value(None, reason)
