"""What Replay shows: an answer with edits that are not computed yet, and the branches that are.  No drawing here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from random import Random

from salt_tui.measure.interventions import caveat_of, measure_interventions
from salt_tui.number_text import confidence_text
from salt_tui.reports.intervention_tables import interventions_lines
from salt_tui.runner.studies.manual import MANUAL
from salt_tui.runner.studies.preparation import read_study_plan
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import ProblemRecord, UnitRecord, Work
from salt_tui.store.results import EditedBranch, StudyListing
from salt_tui.store.store import open_store
from salt_tui.visible_text import visible
from tasks.answer import why_not_an_atom
from tasks.draws import draw_distinct
from tasks.registry import get_task
from tasks.task import Problem

DEEPEST = 8
"""Rows of the tree are not indented further, so that their words stay on the screen."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch that was computed.

    Attributes:
        stored: its name, what was changed, and where it hangs in the tree.
        atoms: everything that it holds.
    """

    stored: EditedBranch
    atoms: tuple[UnitRecord, ...]

    @property
    def generation(self) -> int:
        """Its number in the store."""
        return self.stored.record.generation

    @property
    def name(self) -> str:
        """The user's, or b1, b2, …."""
        return self.stored.name

    @property
    def edits(self) -> dict[int, str]:
        """What was changed in the text that it forks from, by index of the atom."""
        return dict(self.stored.record.edits)

    @property
    def target(self) -> int:
        """Index of the atom from which on the model wrote."""
        return self.stored.record.target

    @property
    def probabilities(self) -> str:
        """P(right) at the target behind the unchanged text and behind the changed one."""
        before, after = self.stored.unchanged_log_probability, self.stored.record.log_probability_reference
        return f"{_probability(before)} → {_probability(after)}"


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A row of the list of texts.

    Attributes:
        generation: of the branch; None for the answer.
        text: what it says.
        shown: whether the branch is the one below the edited text.
    """

    generation: int | None
    text: str
    shown: bool


class ReplayState:
    """One answer and its branches, one of these texts being edited.

    Attributes:
        run: number of its run.
        generation: number of the answer.
        problem: what was asked.
        said: atoms of the answer, in order.
        study: that holds the branches; None before there is one.
        branches: of this answer, each followed by those that fork from it.
        base: the text that is edited: generation of a branch, or None for the answer.
        shown: generation of the branch below; None for none.
        edits: new text by index, in the order in which they were made.
        cursor: index of the atom that keys act on.
    """

    def __init__(self, run: int, generation: int, problem: ProblemRecord, atoms: Sequence[UnitRecord]) -> None:
        self.run = run
        self.generation = generation
        self.problem = problem
        self.said = tuple(atoms)
        self.study: Work | None = None
        self.branches: tuple[Branch, ...] = ()
        self.base: int | None = None
        self.shown: int | None = None
        self.edits: dict[int, str] = {}
        self.cursor = 0
        self._undone: list[tuple[int | None, dict[int, str]]] = []

    @property
    def atoms(self) -> tuple[UnitRecord, ...]:
        """Atoms of the text that is edited."""
        return self.atoms_of(self.base)

    def atoms_of(self, generation: int | None) -> tuple[UnitRecord, ...]:
        """Return the atoms of a branch, or of the answer."""
        branch = self.branch(generation)
        return self.said if branch is None else branch.atoms

    def branch(self, generation: int | None) -> Branch | None:
        """Return a branch by its generation; None for the answer, and for one that is not there."""
        return next((branch for branch in self.branches if branch.generation == generation), None)

    # --- the tree -----------------------------------------------------------------------------------------------

    def take(self, read: ReplayState) -> None:
        """Take over what was read again of the same answer, and show the branch that is new."""
        before = {branch.generation for branch in self.branches}
        self.study, self.branches = read.study, read.branches
        there = {branch.generation for branch in self.branches}
        new = there - before
        if new:
            self.shown = max(new)
        elif self.shown not in there:
            self.shown = None
        if self.base is not None and self.base not in there:
            self.base, self.edits = None, {}
        self._undone = [(base, edits) for base, edits in self._undone if base is None or base in there]
        self.move(0)

    def show_beside(self, step: int) -> None:
        """Show the branch above or below in the tree; above the first there is only the edited text."""
        order = [None, *(branch.generation for branch in self.branches)]
        here = order.index(self.shown) if self.shown in order else 0
        self.shown = order[min(max(0, here + step), len(order) - 1)]

    def edit_shown(self) -> str | None:
        """Edit the shown branch from now on, or the answer where none is shown; return why not."""
        if self.shown == self.base:
            return "this text is edited already: up and down choose another one"
        self._undone.append((self.base, self.edits))
        self.base, self.edits = self.shown, {}
        self.move(0)
        return None

    def below(self, generation: int) -> int:
        """Return how many branches fork from a branch, and from these."""
        children = [branch.generation for branch in self.branches if branch.stored.parent == generation]
        return len(children) + sum(map(self.below, children))

    def tree(self) -> list[TreeRow]:
        """Return a row for the answer and one for each branch, indented below what it forks from."""
        rows = [TreeRow(None, self._row("the answer", 0, None, ""), self.shown is None)]
        for branch in self.branches:
            words = f"{branch.probabilities}  {_edits(branch.edits)}"
            rows.append(
                TreeRow(
                    branch.generation,
                    self._row(visible(branch.name), branch.stored.depth + 1, branch.generation, words),
                    branch.generation == self.shown,
                )
            )
        return rows

    def _row(self, name: str, depth: int, generation: int | None, words: str) -> str:
        shown, edited = (mark if generation == one else " " for mark, one in (("›", self.shown), ("*", self.base)))
        return f"{shown}{edited}{'  ' * min(depth, DEEPEST)}{name}  {words}".rstrip()

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
        if not self.atoms:
            return "there is no atom to change"
        self._change({**self.edits, self.cursor: written})
        return None

    def fix_before(self) -> str | None:
        """Make all wrong atoms before the cursor right, also those that an edit made wrong."""
        wrong = [index for index in range(self.cursor) if not self._is_right(index)]
        fixed = {index: gold for index in wrong if (gold := self._gold(index)) is not None}
        if not fixed:
            return "no atom before the cursor is wrong"
        self._change({**self.edits, **fixed})
        return None

    def corrupt_before(self, count: int, random: Random) -> str | None:
        """Make so many right atoms before the cursor wrong, drawn; what an edit made wrong already is none of them."""
        right = [index for index in range(self.cursor) if self._is_right(index)]
        if not 0 < count <= len(right):
            return f"{len(right)} atoms before the cursor are right"
        self._change(
            {**self.edits, **{index: self._wrong(index, random) for index in draw_distinct(random, right, count)}}
        )
        return None

    @property
    def undoable(self) -> bool:
        """Whether a change can be taken back."""
        return bool(self._undone)

    def undo(self) -> str | None:
        """Take the last change back."""
        if not self._undone:
            return "nothing was changed"
        self.base, self.edits = self._undone.pop()
        self.move(0)
        return None

    def _change(self, edits: dict[int, str]) -> None:
        self._undone.append((self.base, self.edits))
        self.edits = {index: text for index, text in edits.items() if text != self.atoms[index].text}

    def _is_right(self, index: int) -> bool:
        """Whether an atom is right, with the edits that are not computed yet."""
        edit = self.edits.get(index)
        return self.atoms[index].status == "correct" if edit is None else edit == self._gold(index)

    def _gold(self, index: int) -> str | None:
        return self.atoms[index].reference if index < len(self.atoms) else None

    def _wrong(self, index: int, random: Random) -> str:
        problem = self.problem
        drawn = Problem(problem.task, problem.text, problem.reference, problem.difficulty, problem.seed)
        return get_task(problem.task).wrong_atom(random, drawn, index)

    @property
    def replayed(self) -> bool:
        """Whether a branch holds what the edits make of the text; true also without edits."""
        texts = {None, self.generation} if self.base is None else {self.base}
        return not self.edits or any(
            branch.stored.parent in texts and branch.edits == self.edits for branch in self.branches
        )

    # --- what is computed ---------------------------------------------------------------------------------------

    @property
    def target(self) -> int:
        """Index of the atom from which on the model would write: the cursor's, or that behind the last edit."""
        return max(self.cursor, max(self.edits, default=-1) + 1)

    def options(self) -> dict[str, int | str]:
        """Return the edits as a study of kind ``manual`` takes them."""
        branch = self.branch(self.base)
        return {
            "answer": f"{self.problem.task}:{self.problem.position + 1}",
            "from": "" if branch is None else branch.name,
            "set": ";".join(f"{index + 1}={text}" for index, text in sorted(self.edits.items())),
            "target": self.target + 1,
        }

    # --- words --------------------------------------------------------------------------------------------------

    def title(self) -> str:
        """Name the answer."""
        return f"run {self.run} › {self.problem.task} › answer {self.problem.position + 1}"

    def base_name(self) -> str:
        """Name the text that is edited."""
        branch = self.branch(self.base)
        return "original" if branch is None else visible(branch.name)

    def summary(self) -> list[str]:
        """Say what the shown branch changed at its target, and what must be known of the task."""
        caveat = caveat_of(self.problem.task)
        notes = [caveat] if caveat else []
        shown = self.branch(self.shown)
        if shown is None:
            return notes if self.branches else ["no branch yet: change atoms, then enter lets the model go on", *notes]
        parent = self.atoms_of(shown.stored.parent)
        was, now = (_right_from(atoms, shown.target) for atoms in (parent, shown.atoms))
        source = "as it was" if shown.stored.parent_name is None else f"in {visible(shown.stored.parent_name)}"
        return [
            f"from atom {shown.target + 1} on   {source} {was} right   replayed {now} right",
            f"target atom {shown.target + 1}   P(right) {shown.probabilities}   "
            f"{_said(parent, shown.target)} → {_said(shown.atoms, shown.target)}",
            *notes,
        ]


def load_replay(database: Path, generation: int, run: int) -> ReplayState:
    """Read an answer and its branches.

    Args:
        database: the file.
        generation: of the answer, or of a branch of it, which is then the text to edit.
        run: number of its run.

    Raises:
        StoreError: it cannot be read.
    """
    with open_queries(database) as queries, queries.snapshot():
        branch = queries.find_branch(generation)
        answer = queries.answer(generation if branch is None else branch.record.answer)
        assert answer.generation is not None
        state = ReplayState(run, answer.generation, answer.problem, _atoms(queries, answer.generation))
        studies = [study.work for study in queries.studies(run) if study.kind == MANUAL.name]
        if studies:
            state.study = studies[0]
            state.branches = tuple(
                Branch(stored, _atoms(queries, stored.record.generation))
                for stored in queries.edited_branches(studies[0])
                if stored.record.answer == answer.generation
            )
        if branch is not None:
            state.base = state.shown = generation
        return state


def rename_branch(database: Path, study: Work, generation: int, name: str) -> None:
    """Give a branch another name; raises `StoreError`."""
    with open_store(database) as store:
        store.rename_branch(study, generation, name)


def delete_branch(database: Path, study: Work, generation: int) -> None:
    """Delete a branch and those that fork from it; raises `StoreError`."""
    with open_store(database) as store:
        store.delete_branch(study, generation)


def load_experiment(database: Path, run: int, width: int) -> str:
    """Return what the newest experiment on a run found, in lines; one sentence where there is none.

    Raises:
        StoreError: it cannot be read.
    """
    with open_queries(database) as queries, queries.snapshot():
        studies = [study for study in queries.studies(run) if study.kind == "interventions"]
        if not studies:
            return "No experiment was made on this run: x, then y, makes one."
        newest = studies[-1]
        lines = list(interventions_lines(measure_interventions(queries, [newest.work]), max(width, 40)))
        return "\n".join([*_unfinished(queries, database, newest), *lines])


def _unfinished(queries: Queries, database: Path, study: StudyListing) -> list[str]:
    """Say of a study that has not come to its end how far it is; nothing of a finished one."""
    if study.state == "finished":
        return []
    jobs = read_study_plan(database, queries.study_record(study.work)).jobs
    done = sum(generation.stop_reason is not None for generation in queries.generations(study.work))
    state = "being computed" if study.state == "running" else study.state
    return [f"{state}, {done:,} of {jobs:,} replays: what follows is of these", ""]


def _atoms(queries: Queries, generation: int) -> tuple[UnitRecord, ...]:
    return tuple(unit for unit in queries.units(generation, "atom") if unit.text is not None)


def _right_from(atoms: Sequence[UnitRecord], target: int) -> str:
    later = [unit for unit in atoms if unit.index >= target]
    return f"{sum(unit.status == 'correct' for unit in later)}/{len(later)}"


def _said(atoms: Sequence[UnitRecord], index: int) -> str:
    found = [unit for unit in atoms if unit.index == index]
    return f"{visible(found[0].text or '')} ({found[0].status})" if found else "no atom"


def _edits(edits: Mapping[int, str]) -> str:
    return " ".join(f"{index + 1}={visible(text)}" for index, text in sorted(edits.items()))


def _probability(log_probability: float | None) -> str:
    return "–" if log_probability is None else confidence_text(exp(log_probability))
