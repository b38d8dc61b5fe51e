"""A stored answer that can be replayed: its tokens, its atoms, and what the engine must know for it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from random import Random

from salt_tui.engine.engine import Engine
from salt_tui.engine.model_info import ModelInfo
from salt_tui.runner.answering import ReplyReading, answer_sampling
from salt_tui.runner.jobs import JobName
from salt_tui.runner.plan import RunPlan
from salt_tui.runner.replays.branches import BranchDesign, BranchJob
from salt_tui.runner.replays.design import ReplayableAnswer
from salt_tui.runner.replays.prefix_edits import ByteSpan, EditError, ForcedPrefix, PrefixEditor, StoredTokens
from salt_tui.runner.studies.plan import CoveredAnswer
from salt_tui.store.queries import Queries
from salt_tui.store.records import ProblemRecord, TokenRecord, UnitRecord
from tasks.answer import split_reference
from tasks.atom_endings import AtomEndings
from tasks.registry import get_task
from tasks.task import Problem, Task

SPARE_TOKENS = 3
"""A target may take this many tokens more than the right atom has bytes, for what separates and ends it."""


@dataclass(frozen=True, slots=True)
class ReplaySource:
    """One stored answer, or a branch of it.

    Attributes:
        answer: as it is covered by a study.
        generation: number of the answer or of the branch whose text this is.
        atoms: the atoms that were written, in order.
        gold: the reference atoms.
        tokens: as stored, the end of the generation left out.
        editor: exchanges its atoms.
    """

    answer: CoveredAnswer
    generation: int
    atoms: tuple[UnitRecord, ...]
    gold: tuple[str, ...]
    tokens: tuple[TokenRecord, ...]
    editor: PrefixEditor

    def replayable(self) -> ReplayableAnswer:
        """Return what a design is drawn from."""
        problem = self.answer.problem
        task = get_task(problem.task)
        return ReplayableAnswer(
            generation=self.answer.generation,
            task=problem.task,
            content=problem.content_id,
            correct=tuple(atom.status == "correct" for atom in self.atoms),
            gold=self.gold,
            wrong_atom=partial(_wrong_atom, task, _as_problem(problem)),
            clean=tuple(self.editor.starts_clean(index) for index in range(len(self.atoms))),
        )


class ReplaySources:
    """Reads stored answers and makes their jobs.

    Args:
        queries: of the database.
        engine: with the model loaded.
        info: of this model.
        reading: of this model.
        run: the plan of the run.
    """

    def __init__(self, queries: Queries, engine: Engine, info: ModelInfo, reading: ReplyReading, run: RunPlan) -> None:
        self._queries = queries
        self._engine = engine
        self._tokenise = cache(engine.tokenize)
        self._reading = reading
        self._run = run
        self._can_try = info.capabilities.cut
        self._endings = AtomEndings(reading.vocabulary, info.end_tokens)
        self._sets: dict[tuple[int, ...], str] = {}

    def read(self, answer: CoveredAnswer, branch: int | None = None) -> ReplaySource:
        """Read one answer, or a branch of it by its generation; missing atoms are left out."""
        generation = answer.generation if branch is None else branch
        stored = self._queries.tokens(generation)
        tokens = [token for token in stored if token.record.end > token.record.start]
        atoms = tuple(atom for atom in self._queries.units(generation, "atom") if atom.byte_start is not None)
        problem = answer.problem
        task = get_task(problem.task)
        editor = PrefixEditor(
            StoredTokens(tuple(token.record.id or 0 for token in tokens), tuple(token.piece for token in tokens)),
            [ByteSpan(atom.byte_start or 0, atom.byte_end or 0) for atom in atoms],
            self._tokenise,
            self._reading.vocabulary,
        )
        gold = split_reference(task, problem.reference).atoms
        return ReplaySource(answer, generation, atoms, gold, tuple(token.record for token in tokens), editor)

    def job(
        self,
        source: ReplaySource,
        prefix: ForcedPrefix,
        design: BranchDesign,
        number: int,
        *,
        whole: bool,
        chunked: bool = False,
    ) -> BranchJob:
        """Return the job of one branch.

        Args:
            source: the answer.
            prefix: what the branch begins with.
            design: what it is.
            number: of the branch among those that fork from the same text.
            whole: up to the end of the answer, within the limit that the answer had, but the target has room behind an
                edit; otherwise only the target is written.
            chunked: the prefix is evaluated in chunks.
        """
        answer, target = source.answer, design.target
        problem = answer.problem
        gold: tuple[int, ...] = ()
        room = SPARE_TOKENS
        if target < len(source.gold):
            text = source.gold[target]
            spare = source.editor.lead(target) if target < len(source.atoms) else 1
            room += spare + len(text.encode())
            if self._can_try and target < len(source.atoms):
                gold = self._gold(source, target)
        least = room if design.edits else 1  # an unchanged answer ends where it ended
        return BranchJob(
            name=JobName(answer.problem_id, problem.task, problem.position, "branch", source.generation, number),
            problem=problem,
            prompt=answer.prompt,
            prefix=prefix,
            stored=source.tokens,
            gold=gold,
            endings=self._ending_set(problem, target) if gold else "",
            max_tokens=max(least, answer.max_tokens - len(prefix.ids)) if whole else room,
            whole=whole,
            sampling=answer_sampling(self._run.sampling, problem.content_id),
            reading=self._reading,
            design=design,
            chunked=chunked,
        )

    def _gold(self, source: ReplaySource, target: int) -> tuple[int, ...]:
        """Tokens of the right atom at the target; none where the vocabulary cannot write it."""
        try:
            return source.editor.atom_tokens(target, source.gold[target])
        except EditError:
            return ()

    def _ending_set(self, problem: ProblemRecord, target: int) -> str:
        """Define the set of ids that end the right atom, once, and return its name."""
        ids = self._endings.after(get_task(problem.task), problem.reference, target)
        if ids not in self._sets:
            name = "endings-" + hashlib.sha256(repr(ids).encode()).hexdigest()[:12]
            self._engine.define_set(name, ids)
            self._sets[ids] = name
        return self._sets[ids]


def correct_shares(correct: Sequence[bool], window: int) -> tuple[float | None, float | None]:
    """Return the fraction of right atoms among all and among the last ``window``; None without an atom."""
    if not correct:
        return None, None
    last = correct[-window:]
    return sum(correct) / len(correct), sum(last) / len(last)


def _wrong_atom(task: Task, problem: Problem, random: Random, index: int) -> str:
    return task.wrong_atom(random, problem, index)


def _as_problem(record: ProblemRecord) -> Problem:
    return Problem(record.task, record.text, record.reference, record.difficulty, record.seed)
