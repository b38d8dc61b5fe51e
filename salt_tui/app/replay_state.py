"""What Replay shows: an answer with edits that are not computed yet, and the branches that are.  No drawing here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from random import Random

from salt_tui.measure.interventions import measure_interventions
from salt_tui.reports.intervention_tables import interventions_lines
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import ProblemRecord, UnitRecord, Work
from salt_tui.visible_text import visible
from tasks.answer import why_not_an_atom
from tasks.draws import draw_distinct
from tasks.registry import get_task
from tasks.task import Problem


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch that was computed.

    Attributes:
        name: the user's or b1, b2, ….
        edits: text by index of the atom.
        target: index of the atom from which on the model wrote.
        before, after: probability of the right atom there, behind the unchanged and the changed text; None: unknown.
        atoms: everything it holds.
    """

    name: str
    edits: dict[int, str]
    target: int
    before: float | None
    after: float | None
    atoms: tuple[UnitRecord, ...]


class ReplayState:
    """One answer being edited.

    Attributes:
        run: number of its run.
        generation: number of the answer.
        problem: what was asked.
        atoms: that the model wrote, in order.
        edits: new text by index, in the order in which they were made.
        cursor: index of the atom that keys act on.
        branches: of this answer, oldest first.
    """

    def __init__(self, run: int, generation: int, problem: ProblemRecord, atoms: Sequence[UnitRecord]) -> None:
        self.run = run
        self.generation = generation
        self.problem = problem
        self.atoms = tuple(atoms)
        self.edits: dict[int, str] = {}
        self.cursor = 0
        self.branches: tuple[Branch, ...] = ()
        self._undone: list[dict[int, str]] = []

    # --- edits --------------------------------------------------------------------------------------------------

    def move(self, step: int) -> None:
        """Go to another atom."""
        self.cursor = min(max(0, self.cursor + step), max(0, len(self.atoms) - 1))

    def fix(self) -> str | None:
        """Make the atom right; return why not, None when it is done."""
        right = self._gold(self.cursor)
        return "the right answer has no atom here" if right is None else self.write(right)

    def corrupt(self, random: Random) -> str | None:
        """Make the atom wrong, drawn anew each time."""
        if self._gold(self.cursor) is None:
            return "the right answer has no atom here"
        return self.write(self._wrong(self.cursor, random))

    def write(self, text: str) -> str | None:
        """Put a text in the atom's place."""
        written = text.strip(" ")
        if ";" in written:
            return "an atom is a text without semicolons"
        if why := why_not_an_atom(get_task(self.problem.task), self.problem.reference, self.cursor, written):
            return f"{visible(written, 24)}: {why}" if written else why
        self._change({**self.edits, self.cursor: written})
        return None

    def fix_before(self) -> str | None:
        """Make all wrong atoms before the cursor right, also those that an edit made wrong."""
        wrong = [
            index
            for index in range(self.cursor)
            if (
                self.edits[index] != self._gold(index) if index in self.edits else self.atoms[index].status != "correct"
            )
        ]
        fixed = {index: gold for index in wrong if (gold := self._gold(index)) is not None}
        if not fixed:
            return "no atom before the cursor is wrong"
        self._change({**self.edits, **fixed})
        return None

    def corrupt_before(self, count: int, random: Random) -> str | None:
        """Make so many right atoms before the cursor wrong, drawn."""
        right = [index for index in range(self.cursor) if self.atoms[index].status == "correct"]
        if not 0 < count <= len(right):
            return f"{len(right)} atoms before the cursor are right"
        self._change(
            {**self.edits, **{index: self._wrong(index, random) for index in draw_distinct(random, right, count)}}
        )
        return None

    def undo(self) -> str | None:
        """Take the last change back."""
        if not self._undone:
            return "nothing was changed"
        self.edits = self._undone.pop()
        return None

    def _change(self, edits: dict[int, str]) -> None:
        self._undone.append(self.edits)
        self.edits = {index: text for index, text in edits.items() if text != self.atoms[index].text}

    def _gold(self, index: int) -> str | None:
        return self.atoms[index].reference if index < len(self.atoms) else None

    def _wrong(self, index: int, random: Random) -> str:
        problem = self.problem
        drawn = Problem(problem.task, problem.text, problem.reference, problem.difficulty, problem.seed)
        return get_task(problem.task).wrong_atom(random, drawn, index)

    # --- what is computed ---------------------------------------------------------------------------------------

    @property
    def target(self) -> int:
        """Index of the atom from which on the model would write: the cursor's, or that behind the last edit."""
        return max(self.cursor, max(self.edits, default=-1) + 1)

    def options(self) -> dict[str, int | str]:
        """Return the edits as a study of kind ``manual`` takes them."""
        return {
            "answer": f"{self.problem.task}:{self.problem.position + 1}",
            "set": ";".join(f"{index + 1}={text}" for index, text in sorted(self.edits.items())),
            "target": self.target + 1,
        }

    # --- words --------------------------------------------------------------------------------------------------

    def title(self) -> str:
        """Name the answer."""
        return f"run {self.run} › {self.problem.task} › answer {self.problem.position + 1}"

    def summary(self) -> list[str]:
        """Say what the newest branch changed at its target, and list all."""
        if not self.branches:
            return ["no branch yet: change atoms, then enter lets the model go on"]
        newest = self.branches[-1]
        was, now = (_right_from(atoms, newest.target) for atoms in (self.atoms, newest.atoms))
        lines = [
            f"from atom {newest.target + 1} on   as it was {was} right   replayed {now} right",
            f"target atom {newest.target + 1}   P(right) {_number(newest.before)} → {_number(newest.after)}   "
            f"{_said(self.atoms, newest.target)} → {_said(newest.atoms, newest.target)}",
        ]
        for branch in reversed(self.branches):
            edits = " ".join(f"{index + 1}={visible(text)}" for index, text in sorted(branch.edits.items()))
            lines.append(f"{branch.name:<6} {_number(branch.before)} → {_number(branch.after)}  {edits}")
        return lines


def load_replay(database: Path, generation: int, run: int) -> ReplayState:
    """Read an answer and its branches.

    Raises:
        StoreError: it cannot be read.
    """
    with open_queries(database) as queries, queries.snapshot():
        answer = queries.answer(generation)
        atoms = [unit for unit in queries.units(generation, "atom") if unit.text is not None]
        state = ReplayState(run, generation, answer.problem, atoms)
        state.branches = _branches(queries, run, generation)
        return state


def load_experiment(database: Path, run: int, width: int) -> str:
    """Return what the newest experiment on a run found, in lines; one sentence where there is none.

    Raises:
        StoreError: it cannot be read.
    """
    with open_queries(database) as queries, queries.snapshot():
        studies = [study.work for study in queries.studies(run) if study.kind == "interventions"]
        if not studies:
            return "No experiment was made on this run: x, then y, makes one."
        return "\n".join(interventions_lines(measure_interventions(queries, studies[-1:]), max(width, 40)))


def _branches(queries: Queries, run: int, generation: int) -> tuple[Branch, ...]:
    studies: list[Work] = [study.work for study in queries.studies(run) if study.kind == "manual"]
    found = []
    for study in studies:
        records = [record for record in queries.interventions(study) if record.answer == generation]
        before = {record.target: record.log_probability_reference for record in records if not record.edits}
        for record in sorted(records, key=lambda record: record.generation):
            if record.edits:
                atoms = [unit for unit in queries.units(record.generation, "atom") if unit.text is not None]
                base, now = before.get(record.target), record.log_probability_reference
                found.append(
                    Branch(
                        name=record.variant,
                        edits=dict(record.edits),
                        target=record.target,
                        before=None if base is None else exp(base),
                        after=None if now is None else exp(now),
                        atoms=tuple(atoms),
                    )
                )
    return tuple(found)


def _right_from(atoms: Sequence[UnitRecord], target: int) -> str:
    later = [unit for unit in atoms if unit.index >= target]
    return f"{sum(unit.status == 'correct' for unit in later)}/{len(later)}"


def _said(atoms: Sequence[UnitRecord], index: int) -> str:
    found = [unit for unit in atoms if unit.index == index]
    return f"{visible(found[0].text or '')} ({found[0].status})" if found else "no atom"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".replace("0.", ".", 1)
