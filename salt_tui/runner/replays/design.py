"""What a planned experiment changes: answers, targets, and variants of the text before each (SALT appendix B.2.1).

Everything is drawn from one seed, so that the same stored run and options give the same experiment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from scoring.interventions import LOCAL_WINDOW
from tasks.draws import derive_seed, draw_distinct, draw_shuffled

Direction: TypeAlias = Literal["baseline", "correction", "corruption", "mixed"]
"""``correction``: wrong atoms become gold; ``corruption``: right ones become wrong; ``baseline``: nothing changes.
``mixed`` is everything else that a person may type; a planned variant has one direction."""

FIRST_TARGET = LOCAL_WINDOW + 1
"""p* counted from 1: before it there are fewer atoms than the local treatment is about."""

DEFAULT_DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
DEFAULT_ANSWERS = 20
DEFAULT_TARGETS = 4
DEFAULT_VARIANTS = 16

TOO_SHORT = f"fewer than {FIRST_TARGET} atoms"
SHARED_TOKENS = "every target shares a token with the atom before it"
NOT_SCORED = "cancelled, failed, or without room in the context"


@dataclass(frozen=True, slots=True)
class DesignOptions:
    """What was asked for.

    Attributes:
        answers: most answers to take of each task; at least 1.
        targets: most targets of an answer; at least 1.
        variants: changed prefixes of a target, its unchanged one apart; at least 1.
        doses: shares of the atoms that a direction can change, in [0, 1]; they apply to the last ten atoms and to
            those before them independently.
        seed: of every draw.
    """

    answers: int = DEFAULT_ANSWERS
    targets: int = DEFAULT_TARGETS
    variants: int = DEFAULT_VARIANTS
    doses: tuple[float, ...] = DEFAULT_DOSES
    seed: int = 1


@dataclass(frozen=True, slots=True)
class ReplayableAnswer:
    """What must be known of a stored answer.

    Attributes:
        generation: its row.
        task: its task.
        content: content hash of its problem.
        correct: for every generated atom, in order, whether it is right.
        gold: the reference atoms.
        wrong_atom: draws a wrong atom of the same kind as the reference atom at an index.
        clean: for every generated atom whether a replay can begin there.
    """

    generation: int
    task: str
    content: str
    correct: tuple[bool, ...]
    gold: tuple[str, ...]
    wrong_atom: Callable[[Random, int], str]
    clean: tuple[bool, ...]

    def targets(self) -> tuple[int, ...]:
        """Return the indices that may be targets: from the eleventh atom on, with gold, beginning a token."""
        last = min(len(self.correct), len(self.gold))
        return tuple(index for index in range(FIRST_TARGET - 1, last) if self.clean[index])


@dataclass(frozen=True, slots=True)
class Variant:
    """One prefix of a target.

    Attributes:
        number: 0 for the unchanged one.
        direction: one for all its edits.
        edits: new text by index of the atom, ascending.
        treatment_global: change of the fraction of right atoms before the target, in [−1, 1].
        treatment_local: the same over the last ten.
    """

    number: int
    direction: Direction
    edits: tuple[tuple[int, str], ...]
    treatment_global: float
    treatment_local: float


@dataclass(frozen=True, slots=True)
class Target:
    """One target with its prefixes.

    Attributes:
        generation: row of the answer.
        index: index of the atom that is written anew; p* is one more.
        correct_before: fraction of right atoms before it.
        correct_before_local: the same over the last ten.
        variants: the unchanged prefix first.
    """

    generation: int
    index: int
    correct_before: float
    correct_before_local: float
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """A planned experiment.

    Attributes:
        targets: in order of answers and positions.
        left_out: answers that cannot be replayed, by reason.
    """

    targets: tuple[Target, ...]
    left_out: Mapping[str, int]

    @property
    def replays(self) -> int:
        """How many prefixes there are, the unchanged ones included."""
        return sum(len(target.variants) for target in self.targets)


def plan_design(answers: Sequence[ReplayableAnswer], options: DesignOptions) -> Design:
    """Draw answers, targets and variants.

    Args:
        answers: those that were computed to their end, in order.
        options: what was asked for.
    """
    left_out: Counter[str] = Counter()
    usable = []
    for answer in answers:
        if answer.targets():
            usable.append(answer)
        else:
            short = min(len(answer.correct), len(answer.gold)) < FIRST_TARGET
            left_out[TOO_SHORT if short else SHARED_TOKENS] += 1
    chosen: list[ReplayableAnswer] = []
    for task in dict.fromkeys(answer.task for answer in usable):
        of_task = [answer for answer in usable if answer.task == task]
        random = Random(derive_seed("interventions", options.seed, task))
        drawn = draw_distinct(random, range(len(of_task)), min(options.answers, len(of_task)))
        chosen.extend(of_task[place] for place in sorted(drawn))
    targets = []
    for answer in chosen:
        own = Random(derive_seed("interventions", options.seed, answer.content))
        possible = answer.targets()
        for index in sorted(draw_distinct(own, possible, min(options.targets, len(possible)))):
            targets.append(plan_target(answer, index, options))
    return Design(tuple(targets), dict(left_out))


def plan_target(answer: ReplayableAnswer, index: int, options: DesignOptions) -> Target:
    """Draw the variants of one target.

    One direction per variant.  A variant changes a share of what its direction can change within the last ten atoms
    and, crossed with that, a share of what it can change before them; directions take turns.  Shares that come to
    no atom are no variant, and no two variants are equal.
    """
    random = Random(derive_seed("interventions", options.seed, answer.content, index))
    directions: tuple[Direction, ...] = ("correction", "corruption")
    queues = {
        direction: draw_shuffled(random, _cells(answer, index, direction, options.doses)) for direction in directions
    }
    variants = [Variant(0, "baseline", (), 0.0, 0.0)]
    seen: set[tuple[tuple[int, str], ...]] = {()}
    waiting = [direction for direction, cells in queues.items() if cells]
    misses = 0
    turn = 0
    while waiting and len(variants) <= options.variants and misses < 4 * options.variants:
        direction = waiting[turn % len(waiting)]
        cells = queues[direction]
        inside, outside = cells[(turn // len(waiting)) % len(cells)]
        turn += 1
        edits = draw_edits(answer, index, direction, inside, outside, random)
        if edits in seen:
            misses += 1
            continue
        seen.add(edits)
        variants.append(variant(answer, index, len(variants), direction, edits))
    before = answer.correct[:index]
    return Target(
        generation=answer.generation,
        index=index,
        correct_before=sum(before) / index,
        correct_before_local=sum(before[-LOCAL_WINDOW:]) / LOCAL_WINDOW,
        variants=tuple(variants),
    )


def variant(
    answer: ReplayableAnswer, index: int, number: int, direction: Direction, edits: tuple[tuple[int, str], ...]
) -> Variant:
    """Return a variant with its treatments; each edit turns its atom right or wrong."""
    sign = 1 if direction == "correction" else -1
    near = sum(place >= index - LOCAL_WINDOW for place, _ in edits)
    return Variant(number, direction, edits, sign * len(edits) / index, sign * near / LOCAL_WINDOW)


def draw_edits(
    answer: ReplayableAnswer, index: int, direction: Direction, inside: int, outside: int, random: Random
) -> tuple[tuple[int, str], ...]:
    """Draw which atoms change and what stands there then.

    Args:
        answer: the answer.
        index: of the target.
        direction: what changes.
        inside: atoms to change among the last ten.
        outside: atoms to change before them.
        random: source of the draws.
    """
    far, near = _changeable(answer, index, direction)
    places = sorted(draw_distinct(random, far, outside) + draw_distinct(random, near, inside))
    if direction == "correction":
        return tuple((place, answer.gold[place]) for place in places)
    return tuple((place, answer.wrong_atom(random, place)) for place in places)


def _changeable(answer: ReplayableAnswer, index: int, direction: Direction) -> tuple[list[int], list[int]]:
    wanted = direction == "corruption"
    places = [place for place in range(index) if answer.correct[place] is wanted]
    return (
        [place for place in places if place < index - LOCAL_WINDOW],
        [place for place in places if place >= index - LOCAL_WINDOW],
    )


def _cells(answer: ReplayableAnswer, index: int, direction: Direction, doses: Sequence[float]) -> list[tuple[int, int]]:
    far, near = _changeable(answer, index, direction)
    counts = {(round(inner * len(near)), round(outer * len(far))) for inner in doses for outer in doses}
    return sorted(counts - {(0, 0)})
