"""What one sequence is asked to be: a prompt, the segments of the reply, how tokens are chosen and what is read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One message of a conversation to render."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen; log-probabilities and entropies are always those before any of this.

    Attributes:
        temperature: 0 is greedy.
        top_k: 0 keeps all.
        top_p: in (0, 1], 1 keeps all.
        min_p: in [0, 1), 0 keeps all.
        seed: seed of the generator of one sequence; position t of the reply uses draw t, from 0, of
            ``random.Random(seed).random()`` by inverse distribution function, most probable first, ties by id.
            Forced tokens take the draws of their positions, so a replay continues as the reply did.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Forced:
    """Tokens that the caller chose, appended one per step; each takes the draw of its position.

    An end-of-generation token among them does not end the sequence, unless it is the last token of all segments.
    """

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice among given token sequences: all their log-probabilities are reported and one is appended.

    Options of one token are read from one row of logits.  Longer ones are walked token by token and cut back again,
    which needs the capability ``cut``.

    Attributes:
        options: distinct, none empty, none the beginning of another.
        groups: the group of each option, e.g. spellings of one label; empty: each option is a group of its own,
            numbered by its place.  The probability of a group is the sum over its options.
        sampled: False: the likeliest group wins, ties to the smallest number.  True: a group is drawn, its probability
            divided by that of all groups, with the draw of the position (inverse distribution function, most probable
            group first, ties by number); `Sampling.temperature` plays no part.  The likeliest option of the group is
            appended, ties to the first.
    """

    options: tuple[tuple[int, ...], ...]
    groups: tuple[int, ...] = ()
    sampled: bool = False


@dataclass(frozen=True, slots=True)
class Spelled:
    """A choice among texts of one token each, for an engine that gives no ids.

    One token is asked.  The options are looked for in the list of the most probable ones; among those that are there
    one is chosen and becomes the reply, as in `Choice`.  Where none is, the reply is the token itself.

    Attributes:
        options: distinct, none empty.
        groups, sampled: as in `Choice`.
    """

    options: tuple[bytes, ...]
    groups: tuple[int, ...] = ()
    sampled: bool = False


@dataclass(frozen=True, slots=True)
class Free:
    """Text that the model chooses, token by token.

    Attributes:
        max_tokens: at least 1.
        stop: the segment, not the sequence, ends when the bytes of its tokens contain one of these.  The token that
            completes it is kept whole.
        past_end: an end-of-generation token, too, ends the segment and not the sequence.
    """

    max_tokens: int
    stop: tuple[bytes, ...] = ()
    past_end: bool = False


@dataclass(frozen=True, slots=True)
class Aside:
    """Tokens that are walked, reported and cut back again: the reply goes on as if they had not been there.

    Needs the capability ``cut``.  It takes no draw and is not the last segment.

    Attributes:
        tokens: not empty; the log-probability of each is reported.
        mass_of: also the natural logarithm of the summed probability, after the last of them, of a set named by
            `Engine.define_set`.
    """

    tokens: tuple[int, ...]
    mass_of: str | None = None


Segment: TypeAlias = Forced | Choice | Free | Aside | Spelled


@dataclass(frozen=True, slots=True)
class Readout:
    """What is read from the row of logits from which the token at a position of the reply is taken.

    Attributes:
        position: from 0, trunk included; not inside the trunk.
        ids: the log-probability of each is reported.
        rest: also the natural logarithm of the summed probability of all ids that are not listed.
        mass_of: also the natural logarithm of the summed probability of a set named by `Engine.define_set`.
    """

    position: int
    ids: tuple[int, ...] = ()
    rest: bool = False
    mass_of: str | None = None


@dataclass(frozen=True, slots=True)
class Generate:
    """One sequence to compute: a prompt and a reply of segments.

    Attributes:
        key: the caller's number for it, unique among the sequences in flight.
        prompt: token ids, evaluated in chunks; () for an engine that gives no ids, which renders `conversation`.
        preamble: how many of them are the preamble shared by the task: evaluated once and copied, with the same
            cut for every problem.
        segments: what the reply consists of, in order.
        sampling: how tokens of `Free` segments are chosen; position t of the reply uses draw t.
        readouts: what else is read from the rows of logits.
        layers: activations wanted of these layers, for every reported token; a subset of `ContextOptions.layers`.
        trunk: so many tokens of the first segment, which is then `Forced`, are a beginning shared with other requests
            of the same prompt: computed once, forked, and not reported.  Positions and draws count them.
        chunked: the trunk is evaluated in chunks behind the prompt, which is then shared as a preamble is, and not one
            token per step: sooner, but not with the numbers of a reply that was written token by token.
        conversation: what is asked, for an engine that gives no ids: turns, the last one the user's.
    """

    key: int
    prompt: tuple[int, ...]
    preamble: int
    segments: tuple[Segment, ...]
    sampling: Sampling = Sampling()
    readouts: tuple[Readout, ...] = ()
    layers: tuple[int, ...] = ()
    trunk: int = 0
    chunked: bool = False
    conversation: tuple[ChatTurn, ...] = ()

    @property
    def evaluated(self) -> tuple[int, ...]:
        """The ids that are evaluated in chunks: the prompt, and behind it a chunked trunk."""
        first = self.segments[0] if self.segments else None
        return self.prompt + first.tokens[: self.trunk] if self.chunked and isinstance(first, Forced) else self.prompt


def check_request(request: Generate) -> None:
    """Refuse a request that no engine can compute.

    Raises:
        ValueError: with one line that says what is wrong.
    """
    if not (request.prompt or request.conversation):
        raise ValueError("the prompt has no tokens")
    if not 0 <= request.preamble <= len(request.prompt):
        raise ValueError(f"the preamble must have 0 to {len(request.prompt)} tokens, not {request.preamble}")
    for segment in request.segments:
        if isinstance(segment, Free) and segment.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {segment.max_tokens}")
        if isinstance(segment, Free) and b"" in segment.stop:
            raise ValueError("stop bytes must not be empty")
        if isinstance(segment, Choice):
            _check_choice(segment)
        if isinstance(segment, Spelled) and len(set(segment.options)) < max(1, len(segment.options)):
            raise ValueError("a choice needs options, all of them different")
        if isinstance(segment, Aside) and not segment.tokens:
            raise ValueError("an aside needs tokens")
    first = request.segments[0] if request.segments else None
    forced = len(first.tokens) if isinstance(first, Forced) else 0
    if not 0 <= request.trunk <= forced:
        raise ValueError(f"the trunk must have 0 to {forced} tokens, those of a first forced segment")
    if not any(segment.tokens if isinstance(segment, Forced) else True for segment in request.segments):
        raise ValueError("the segments have no tokens")
    if isinstance(request.segments[-1], Aside):
        raise ValueError("nothing follows the aside")
    if request.trunk and request.trunk == forced and len(request.segments) == 1:
        raise ValueError("nothing is left to compute after the trunk")
    for readout in request.readouts:
        if readout.position < request.trunk:
            raise ValueError(f"a readout at position {readout.position} lies before the end of the trunk")
        if not (readout.ids or readout.rest or readout.mass_of is not None):
            raise ValueError("a readout asks for nothing")
        if len(set(readout.ids)) < len(readout.ids):
            raise ValueError("a readout lists a token id twice")
    if len(set(request.layers)) < len(request.layers) or any(layer < 0 for layer in request.layers):
        raise ValueError("layers must be distinct and at least 0")


def _check_choice(choice: Choice) -> None:
    ordered = sorted(choice.options)
    if not ordered or not ordered[0]:
        raise ValueError("a choice needs options, none of them empty")
    for one, other in itertools.pairwise(ordered):
        if other[: len(one)] == one:
            raise ValueError("no option of a choice may be equal to another or be its beginning")
    if choice.groups and len(choice.groups) != len(choice.options):
        raise ValueError(f"a choice of {len(choice.options)} options has {len(choice.groups)} groups")


def needs_cut(segment: Segment) -> bool:
    """Return whether a segment needs the capability ``cut``: an aside, or an option of several tokens."""
    return isinstance(segment, Aside) or (isinstance(segment, Choice) and max(map(len, segment.options)) > 1)


def ids_of(request: Generate) -> Iterator[int]:
    """Yield every token id that a request names."""
    yield from request.prompt
    for segment in request.segments:
        if isinstance(segment, Forced | Aside):
            yield from segment.tokens
        elif isinstance(segment, Choice):
            for option in segment.options:
                yield from option
    for readout in request.readouts:
        yield from readout.ids
