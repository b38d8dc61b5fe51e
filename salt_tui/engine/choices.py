"""A choice among token sequences: which rows of logits it needs, and which option wins."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

from salt_tui.engine.requests import Choice
from salt_tui.engine.statistics import Distribution, Logits


class ChoiceWalk:
    """Reads the log-probability of every option, walking those of several tokens.

    Options that begin alike are walked together.  The row at the choice's own position is read first; then, as long as
    `step` says so, the row after `token` is, which stands `depth` - 1 tokens behind that position.
    """

    def __init__(self, choice: Choice) -> None:
        """Plan the walk: what stands before the last token of any option, in the order of a depth-first search."""
        self._choice = choice
        self._ahead = deque(sorted({option[:end] for option in choice.options for end in range(1, len(option))}))
        self._at: tuple[int, ...] = ()
        self._steps: dict[tuple[int, ...], float] = {}

    @property
    def token(self) -> int:
        """The token to append now."""
        return self._at[-1]

    @property
    def depth(self) -> int:
        """How many tokens of an option are appended with it."""
        return len(self._at)

    def read(self, logits: Logits, distribution: Distribution) -> None:
        """Take the log-probabilities of what the options go on with."""
        depth = len(self._at)
        for option in self._choice.options:
            if option[:depth] == self._at and len(option) > depth:
                step = option[: depth + 1]
                self._steps[step] = distribution.log_probability(float(logits[step[-1]]))

    def step(self) -> bool:
        """Go to the next place of the walk; False when every row has been read."""
        if not self._ahead:
            return False
        self._at = self._ahead.popleft()
        return True

    def first(self, option: Sequence[int]) -> float:
        """Return the log-probability of an option's first token."""
        return self._steps[tuple(option[:1])]

    def log_probabilities(self) -> tuple[float, ...]:
        """Return the log-probability of each option, the sum over its tokens."""
        return tuple(
            math.fsum(self._steps[option[: end + 1]] for end in range(len(option)))
            if all(self._steps[option[: end + 1]] > -math.inf for end in range(len(option)))
            else -math.inf
            for option in self._choice.options
        )


def choose_option(choice: Choice, log_probabilities: Sequence[float], draw: Callable[[], float]) -> int:
    """Return the place of the option that is appended; see `Choice`.

    Args:
        choice: the options.
        log_probabilities: of each, -inf where it is impossible.
        draw: called once when the choice is sampled.

    Raises:
        ValueError: the choice is sampled and no option is possible.
    """
    groups = choice.groups or tuple(range(len(choice.options)))
    largest = max(log_probabilities)
    weights: dict[int, float] = dict.fromkeys(sorted(groups), 0.0)
    if largest > -math.inf:
        for group, value in zip(groups, log_probabilities, strict=True):
            weights[group] += math.exp(value - largest)
    ranked = sorted(weights, key=lambda group: (-weights[group], group))
    winner = ranked[0]
    if choice.sampled:
        if largest == -math.inf:
            raise ValueError("none of the options of a choice is possible")
        target = draw() * math.fsum(weights.values())
        reached = 0.0
        for group in ranked:
            reached += weights[group]
            if weights[group] > 0:
                winner = group  # rounding can leave the target a hair above the last sum: then the last possible
            if reached > target:
                break
    members = [place for place, group in enumerate(groups) if group == winner]
    return max(members, key=lambda place: (log_probabilities[place], -place))
