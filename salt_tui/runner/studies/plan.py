"""What a study asks for: its kind and options, and the answers that it covers, as data with a hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self, TypeAlias

from salt_tui.runner.plan import as_tuple, of_types
from salt_tui.runner.prompting import EncodedProblem
from salt_tui.store.records import ProblemRecord

OptionValue: TypeAlias = int | float | str | bool
Options: TypeAlias = Mapping[str, OptionValue]
"""Values of all options of a kind, by name."""


@dataclass(frozen=True, slots=True)
class CoveredAnswer:
    """A finished answer that a study is about.

    Attributes:
        generation: its number.
        problem_id: row of the problem.
        prompt: as the answer was asked.
        reply: what the model said.
        tokens: of the reply.
        max_tokens: limit that the answer had.
    """

    generation: int
    problem_id: int
    problem: ProblemRecord
    prompt: EncodedProblem
    reply: bytes
    tokens: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """What was asked.

    Attributes:
        kind: of the study.
        run_plan_hash: of the run that it is about.
        options: of the kind, all of them.
        answers: task to the positions of the covered answers, from 0: those that were finished when the study began.
        answers_hash: of the problems and replies of these.
        jobs: how many sequences there are to compute.
        context: tokens per sequence, prompt included; None where the engine does not let us choose.
        width: sequences decoded at once, as in the run.
        signals: of the run and of its other studies that this one reads, as ``name@RUN.K``: those that were complete
            when it began.
    """

    kind: str
    run_plan_hash: str
    options: dict[str, OptionValue]
    answers: dict[str, tuple[int, ...]]
    answers_hash: str
    jobs: int
    context: int | None
    width: int
    signals: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a stored plan."""
        data = json.loads(text)
        data["answers"] = {task: as_tuple(positions) for task, positions in data["answers"].items()}
        data["signals"] = as_tuple(data.get("signals", []))
        return of_types(cls(**data))


def positions_by_task(answers: Iterable[CoveredAnswer]) -> dict[str, tuple[int, ...]]:
    """Return the positions of answers by task."""
    positions: dict[str, list[int]] = {}
    for answer in answers:
        positions.setdefault(answer.problem.task, []).append(answer.problem.position)
    return {task: tuple(found) for task, found in positions.items()}


def hash_of_answers(answers: Iterable[CoveredAnswer]) -> str:
    """Return the SHA-256 of problems and replies, in hexadecimal."""
    digest = hashlib.sha256()
    for answer in answers:
        for part in (answer.problem.task.encode(), answer.problem.content_id.encode(), answer.reply):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    return digest.hexdigest()
