"""How often the model is right: precision, recall and redundancy over pooled answers (SALT section 2.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scoring.answer_status import LEFT_OUT
from scoring.labels import UNIT_STATUSES, UnitStatus
from scoring.value import NO_REFERENCE, NO_TASKS, NOTHING_GENERATED, Value, undefined


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """How many units of each status; counts of several answers add up."""

    correct: int = 0
    wrong: int = 0
    missing: int = 0
    redundant: int = 0
    abstained: int = 0

    @classmethod
    def of(cls, statuses: Iterable[UnitStatus]) -> UnitCounts:
        """Count the statuses of one answer."""
        counter = Counter(statuses)
        return cls(**{status: counter[status] for status in UNIT_STATUSES})

    def __add__(self, other: UnitCounts) -> UnitCounts:
        """Pool two sets of units."""
        return UnitCounts(
            self.correct + other.correct,
            self.wrong + other.wrong,
            self.missing + other.missing,
            self.redundant + other.redundant,
            self.abstained + other.abstained,
        )

    @property
    def generated(self) -> int:
        """Units the model wrote."""
        return self.correct + self.wrong + self.redundant + self.abstained

    @property
    def reference(self) -> int:
        """Units of the reference."""
        return self.correct + self.wrong + self.missing + self.abstained

    @property
    def precision(self) -> Value:
        """Correct per generated unit, in [0, 1], higher is better; undefined when nothing was generated."""
        return Value(self.correct / self.generated) if self.generated else undefined(NOTHING_GENERATED)

    @property
    def recall(self) -> Value:
        """Correct per reference unit, in [0, 1], higher is better; undefined without a reference unit."""
        return Value(self.correct / self.reference) if self.reference else undefined(NO_REFERENCE)

    @property
    def redundancy(self) -> Value:
        """Redundant per generated unit, in [0, 1], lower is better; undefined when nothing was generated."""
        return Value(self.redundant / self.generated) if self.generated else undefined(NOTHING_GENERATED)


@dataclass(frozen=True, slots=True)
class PooledCounts:
    """The units of a task's answers together.

    Attributes:
        counts: over the answers that count; an answer without a region has all its reference units missing.
        answers: how many answers that is.
        left_out: how many answers were cancelled, failed or did not fit the context.
    """

    counts: UnitCounts
    answers: int
    left_out: int


def pool(answers: Iterable[tuple[str, UnitCounts]]) -> PooledCounts:
    """Pool (answer status, counts) of a task's answers; no answer gives zero counts and undefined ratios."""
    total, used, left_out = UnitCounts(), 0, 0
    for status, counts in answers:
        if status in LEFT_OUT:
            left_out += 1
        else:
            total, used = total + counts, used + 1
    return PooledCounts(total, used, left_out)


@dataclass(frozen=True, slots=True)
class TaskMean:
    """A benchmark score: the mean over tasks, each task equal.

    Attributes:
        mean: over the tasks with a value; undefined when no task has one.
        left_out: the tasks without a value, with the reason of each.
    """

    mean: Value
    left_out: dict[str, str]


def mean_over_tasks(values: Mapping[str, Value]) -> TaskMean:
    """Return the mean of one metric over tasks; a task whose value is undefined is left out and named."""
    defined = [value.value for value in values.values() if value.value is not None]
    left_out = {task: value.reason for task, value in values.items() if value.reason is not None}
    return TaskMean(Value(sum(defined) / len(defined)) if defined else undefined(NO_TASKS), left_out)
