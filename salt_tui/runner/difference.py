"""Something in a file that does not fit to what else it holds."""

from __future__ import annotations

from dataclasses import dataclass

from salt_tui.runner.rescoring import Shown
from salt_tui.store.records import Work


@dataclass(frozen=True, slots=True)
class Difference:
    """What does not fit in a file.

    Attributes:
        work: the run or study; None for the file as a whole.
        answer: ``TASK:POSITION``, counted from 1, and what a study generated for it; None where no answer is meant.
        what: the column or unit, in words.
        stored, found: what the file says, and what follows from its other rows.
    """

    work: Work | None
    answer: str | None
    what: str
    stored: Shown
    found: Shown
