"""Problems of generated tasks and of files alike: how one is stored, and how its answer is read."""

from __future__ import annotations

import math
from functools import lru_cache

from salt_tui.engine.events import Chosen
from salt_tui.engine.requests import Choice, Spelled
from salt_tui.store.records import Message, ProblemRecord, SignalRecord
from salt_tui.usage_error import UsageError
from tasks.answer import split_reference
from tasks.answer_form import AnswerForm
from tasks.own_forms import LETTERS, own_form
from tasks.own_problems import OwnProblem
from tasks.registry import get_task
from tasks.task import Problem

NOT_LISTED = "not among the most probable tokens"
"""Why a letter of a choice is undefined where an engine lists a few tokens only."""

OWN_DIFFICULTY = "own"
"""What stands for the level where problems come from a file."""


def form_of(problem: ProblemRecord) -> AnswerForm:
    """Return the form of the answer to a stored problem."""
    if problem.answer_kind == "generated":
        return get_task(problem.task)
    return own_form(problem.answer_kind, problem.reference, problem.choices, dict(problem.slices))


def generated_record(problem: Problem, position: int, method: str) -> ProblemRecord:
    """Return a generated problem as it is stored."""
    reference = split_reference(get_task(problem.task), problem.reference)
    return ProblemRecord(
        task=problem.task,
        position=position,
        content_id=problem.id,
        difficulty=problem.difficulty,
        seed=problem.seed,
        method=method,
        text=problem.text,
        reference=problem.reference,
        reference_atoms=len(reference.atoms),
        reference_lines=len(reference.lines),
    )


def own_record(problem: OwnProblem, name: str, position: int, asked: tuple[Message, ...]) -> ProblemRecord:
    """Return a problem of a file as it is stored: with its whole conversation, so that the file is not needed again.

    Args:
        problem: the row of the file.
        name: of its task.
        position: among the problems of the task, from 0.
        asked: the conversation, worked examples first.
    """
    reference = split_reference(problem.form, problem.reference)
    return ProblemRecord(
        task=name,
        position=position,
        content_id=problem.content_id,
        difficulty=OWN_DIFFICULTY,
        seed=0,
        method="regular",
        text=problem.question,
        reference=problem.reference,
        reference_atoms=len(reference.atoms),
        reference_lines=len(reference.lines),
        answer_kind=problem.kind,
        choices=problem.choices,
        slices=problem.columns,
        messages=asked,
    )


@lru_cache(maxsize=64)
def letter_choice(vocabulary: tuple[bytes, ...], count: int, *, sampled: bool) -> Choice:
    """Return the choice among the first letters: a token for each way to write one, with a space before it or without.

    Args:
        vocabulary: bytes of every token id.
        count: letters, from A on.
        sampled: a letter is drawn instead of the likeliest taken.

    Raises:
        UsageError: a letter is no single token of the model.
    """
    spelled: dict[bytes, list[int]] = {}
    for letter in LETTERS[:count]:
        for spelling in _ways(letter):
            spelled[spelling.encode()] = []
    for number, piece in enumerate(vocabulary):
        if piece in spelled:
            spelled[piece].append(number)
    by_letter = [spelled[letter.encode()] + spelled[f" {letter}".encode()] for letter in LETTERS[:count]]
    missing = [letter for letter, found in zip(LETTERS, by_letter, strict=False) if not found]
    if missing:
        raise UsageError(f"no token of this model is the letter {missing[0]}, which a choice has to be answered with")
    return Choice(
        options=tuple((number,) for found in by_letter for number in found),
        groups=tuple(group for group, found in enumerate(by_letter) for _ in found),
        sampled=sampled,
    )


def spelled_choice(count: int, *, sampled: bool) -> Spelled:
    """Return the same choice for an engine that gives no ids, which lists the most probable tokens as text.

    Args:
        count: letters, from A on.
        sampled: a letter is drawn instead of the likeliest taken.
    """
    spelled = [(spelling.encode(), group) for group, letter in enumerate(LETTERS[:count]) for spelling in _ways(letter)]
    return Spelled(tuple(text for text, _ in spelled), tuple(group for _, group in spelled), sampled)


def _ways(letter: str) -> tuple[str, str]:
    return letter, f" {letter}"


def choice_signals(generation: int, choice: Choice | Spelled, chosen: Chosen) -> tuple[SignalRecord, ...]:
    """Return what is known of all letters of a choice, for the answer's generation.

    For the atom and the whole answer ``choice_probability``, that of the chosen letter among the letters.  For the
    token ``choice_A``, ``choice_B`` … alike, and ``choice_mass``, the share of the vocabulary's probability that lies
    on letters at all.  A letter that an engine does not list is undefined, and the others are taken among those listed.
    """
    groups = choice.groups or tuple(range(len(choice.options)))
    by_letter: list[float | None] = [None] * (max(groups) + 1)
    for group, log_probability in zip(groups, chosen.log_probabilities, strict=True):
        if log_probability is not None:
            by_letter[group] = (by_letter[group] or 0.0) + math.exp(log_probability)
    mass = math.fsum(value for value in by_letter if value is not None)
    among = [value / mass if mass > 0 and value is not None else None for value in by_letter]
    reason = None if mass > 0 else "no letter is possible"
    taken = among[groups[chosen.chosen]]
    return (
        SignalRecord(generation, "atom", 0, "choice_probability", taken, reason),
        SignalRecord(generation, "generation", 0, "choice_probability", taken, reason),
        SignalRecord(generation, "token", 0, "choice_mass", min(1.0, mass)),
        *(
            SignalRecord(
                *(generation, "token", 0, f"choice_{letter}", value),
                reason if value is not None or reason is not None else NOT_LISTED,
            )
            for letter, value in zip(LETTERS, among, strict=False)
        ),
    )
