"""What has to be known of an answer to find it in a reply, split it and tell right from wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from tasks.splitting import Splitter

UnitKind = Literal["atom", "line", "generation"]
UNIT_KINDS: tuple[UnitKind, ...] = ("atom", "line", "generation")


@dataclass(frozen=True, slots=True)
class ReferenceUnits:
    """The right answer in units, in the form in which units are compared (`AnswerForm.normalise`).

    Attributes:
        atoms: the atoms, in order.
        lines: the non-empty lines, in order; empty where the answer has no lines.
        generation: the whole answer.
        atom_lines: for every atom the index of the line it begins on; 0 where there are no lines.
    """

    atoms: tuple[str, ...]
    lines: tuple[str, ...]
    generation: str
    atom_lines: tuple[int, ...]


class AnswerForm(Protocol):
    """The form of an answer: of all problems of a generated task, or of one problem of a file.

    Attributes:
        fenced: the answer stands between fences; otherwise it is all of the reply but thinking.
    """

    @property
    def fenced(self) -> bool:
        """Whether the answer stands between fences."""
        ...

    def splitter(self) -> Splitter:
        """Return a fresh splitter of one answer into atoms."""
        ...

    def line_splitter(self) -> Splitter:
        """Return a fresh splitter of one answer into lines."""
        ...

    def normalise(self, unit: str) -> str:
        """Return the form in which two units are compared."""
        ...

    def is_right(self, kind: UnitKind, unit: str, reference: str) -> bool:
        """Say whether a generated unit, as written, is as good as a reference unit in normalised form."""
        ...
