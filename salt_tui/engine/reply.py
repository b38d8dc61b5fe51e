"""Where a sequence is in the segments of its reply, and what follows from the next row of logits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from salt_tui.engine.choices import ChoiceWalk, choose_option
from salt_tui.engine.events import AsideTaken, Chosen, Reading, StopReason, Token
from salt_tui.engine.readouts import IdSet, log_mass, take_readout
from salt_tui.engine.requests import Aside, Choice, Forced, Free, Generate, Segment, Spelled
from salt_tui.engine.sampling import Sampler
from salt_tui.engine.statistics import Distribution, Logits


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What decoding needs to know of the tokens.

    Attributes:
        size: number of ids.
        end_tokens: end-of-generation ids.
        pieces: returns the bytes of every id; called for segments with stop bytes only.
        sets: the sets that readouts may name.
    """

    size: int
    end_tokens: Set[int]
    pieces: Callable[[], tuple[bytes, ...]]
    sets: Mapping[str, IdSet]


@dataclass(slots=True)  # frozen ones take three times as long to make, and there is one for every token
class Outcome:
    """What followed from one row of logits.

    Attributes:
        readings: to be reported, before the token.
        token: None while a choice is being walked.
        reason: set when the sequence is over.
        message: for ``failed`` and ``context``.
    """

    readings: tuple[Reading, ...] = ()
    token: Token | None = None
    reason: StopReason | None = None
    message: str | None = None


@dataclass(slots=True)
class _AsideWalk:
    """An aside being walked, and the row that the reply goes on from; ``values`` of its first tokens are known."""

    segment: Aside
    logits: Logits
    distribution: Distribution
    values: list[float]


class Reply:
    """Decides token after token.

    `decided` tokens are settled; all but the last of them are in the sequence's stream, except while a choice is being
    walked.
    """

    def __init__(
        self, request: Generate, vocabulary: Vocabulary, room: int, choose: Callable[[Distribution], int] | None = None
    ) -> None:
        """Begin before the first token.

        Args:
            request: what to compute.
            vocabulary: of the model.
            room: the most tokens that the reply may have.
            choose: replaces the request's sampling in free segments.

        Raises:
            ValueError: for sampling options out of range.
        """
        self._request = request
        self._vocabulary = vocabulary
        self._room = room
        self._sampler = Sampler(request.sampling)
        self._choose = choose
        self._readouts = {readout.position for readout in request.readouts}
        self._segments = [one for one in request.segments if not isinstance(one, Forced) or one.tokens]
        self._segment = 0
        self._written = 0  # tokens of the current segment
        self._tail = b""  # the end of a free segment's bytes, as long as stop bytes may still begin in it
        self._walk: ChoiceWalk | None = None
        self._base: Distribution | None = None
        self._aside: _AsideWalk | None = None
        self._option: tuple[int, ...] = ()
        self._last = 0
        self.decided = 0
        if request.chunked and request.trunk:
            self.skip_trunk(request.trunk)

    @property
    def in_trunk(self) -> bool:
        """The next token belongs to the trunk: it needs no logits and is not reported."""
        return self.decided < self._request.trunk

    @property
    def is_free(self) -> bool:
        """The next token is the model's to choose."""
        return isinstance(self._current(), Free)

    @property
    def is_walking(self) -> bool:
        """The next row belongs to an option of a choice or an aside, not to the position that is settled next."""
        return self._walk is not None or self._aside is not None

    @property
    def next_input(self) -> tuple[int, int]:
        """The token to append now and the number of the reply's tokens that must stand before it."""
        if self._walk is not None:
            return self._walk.token, self.decided + self._walk.depth - 1
        if self._aside is not None:
            walked = len(self._aside.values)
            return self._aside.segment.tokens[walked - 1], self.decided + walked - 1
        return self._last, self.decided - 1

    def skip_trunk(self, decided: int) -> None:
        """Settle the tokens of the trunk up to ``decided``."""
        segment = self._current()
        assert isinstance(segment, Forced)
        tokens = segment.tokens
        self.decided = self._written = decided
        self._last = tokens[decided - 1]
        if decided == len(tokens):
            self._segment, self._written = 1, 0

    def take(self, logits: Logits, distribution: Distribution) -> Outcome:
        """Settle the next token by the row of logits after `next_input`, or go on with a choice."""
        if self._walk is not None:
            self._walk.read(logits, distribution)
            return Outcome() if self._walk.step() else self._settle(self._walk, ())
        if self._aside is not None:
            return self._go_aside(self._aside, logits, distribution)
        readings: tuple[Reading, ...] = ()
        if self.decided in self._readouts:
            readings = tuple(
                take_readout(self._request.key, readout, logits, distribution, self._vocabulary.sets)
                for readout in self._request.readouts
                if readout.position == self.decided
            )
        segment = self._current()
        if isinstance(segment, Aside):
            return self._begin_aside(segment, logits, distribution, readings)
        return self._decide(segment, logits, distribution, readings)

    def _decide(
        self, segment: Segment, logits: Logits, distribution: Distribution, readings: tuple[Reading, ...]
    ) -> Outcome:
        """Settle the next token by the row of its own position."""
        if isinstance(segment, Choice) and not self._option:
            return self._begin_choice(segment, logits, distribution, readings)
        if isinstance(segment, Free):
            if self._choose is not None:
                chosen = self._choose(distribution)
            else:
                chosen = self._sampler.choose(self.decided, logits, distribution.alternatives[0])
        else:
            assert not isinstance(segment, Aside | Spelled)
            chosen = (self._option if isinstance(segment, Choice) else segment.tokens)[self._written]
        return self._append(chosen, distribution.log_probability(float(logits[chosen])), distribution, readings)

    # --- asides -------------------------------------------------------------------------------------------------

    def _begin_aside(
        self, aside: Aside, logits: Logits, distribution: Distribution, readings: tuple[Reading, ...]
    ) -> Outcome:
        if self.decided + len(aside.tokens) > self._room:
            needed = len(aside.tokens)
            return Outcome(readings, None, "context", f"the context has no room for an aside of {needed} tokens")
        # The row is a view that holds until the next evaluation; the reply goes on from it.
        first = distribution.log_probability(float(logits[aside.tokens[0]]))
        self._aside = _AsideWalk(aside, logits.copy(), distribution, [first])
        return Outcome(readings)

    def _go_aside(self, walk: _AsideWalk, logits: Logits, distribution: Distribution) -> Outcome:
        """Read the row after one of the aside's tokens; after the last one, go on with the row before the first."""
        aside = walk.segment
        if len(walk.values) < len(aside.tokens):
            walk.values.append(distribution.log_probability(float(logits[aside.tokens[len(walk.values)]])))
            return Outcome()
        mass = None
        if aside.mass_of is not None:
            mass = log_mass(logits[self._vocabulary.sets[aside.mass_of]], distribution)
        taken = AsideTaken(self._request.key, self.decided, tuple(walk.values), mass)
        self._aside = None
        self._segment += 1
        segment = self._current()
        if isinstance(segment, Aside):
            return self._begin_aside(segment, walk.logits, walk.distribution, (taken,))
        return self._decide(segment, walk.logits, walk.distribution, (taken,))

    # --- choices ------------------------------------------------------------------------------------------------

    def _begin_choice(
        self, choice: Choice, logits: Logits, distribution: Distribution, readings: tuple[Reading, ...]
    ) -> Outcome:
        longest = max(map(len, choice.options))
        if self.decided + longest > self._room:
            return Outcome(readings, None, "context", f"the context has no room for an option of {longest} tokens")
        walk = ChoiceWalk(choice)
        walk.read(logits, distribution)
        self._base = distribution
        if walk.step():
            self._walk = walk
            return Outcome(readings)
        return self._settle(walk, readings)

    def _settle(self, walk: ChoiceWalk, readings: tuple[Reading, ...]) -> Outcome:
        """Choose an option, all log-probabilities of which are known, and append its first token."""
        choice, base = self._current(), self._base
        assert isinstance(choice, Choice)
        assert base is not None
        self._walk = self._base = None
        values = walk.log_probabilities()
        try:
            place = choose_option(choice, values, lambda: self._sampler.draw(self.decided))
        except ValueError as error:
            return Outcome(readings, None, "failed", str(error))
        self._option = choice.options[place]
        chosen = Chosen(self._request.key, self.decided, values, place)
        return self._append(self._option[0], walk.first(self._option), base, (*readings, chosen))

    # --- tokens -------------------------------------------------------------------------------------------------

    def _current(self) -> Segment:
        return self._segments[self._segment]

    def _append(
        self, chosen: int, log_probability: float, distribution: Distribution, readings: tuple[Reading, ...]
    ) -> Outcome:
        token = Token(
            key=self._request.key,
            position=self.decided,
            id=chosen,
            log_probability=log_probability,
            entropy=distribution.entropy,
            alternatives=distribution.alternatives,
            alternative_log_probabilities=distribution.alternative_log_probabilities,
            forced=not isinstance(self._current(), Free),
            end=chosen in self._vocabulary.end_tokens,
        )
        self._last = chosen
        self.decided += 1
        self._written += 1
        return Outcome(readings, token, self._stop_reason(token))

    def _stop_reason(self, token: Token) -> StopReason | None:
        segment = self._current()
        reason: StopReason
        if isinstance(segment, Free):
            if token.end and not segment.past_end:
                return "end"
            stopped = token.end or (bool(segment.stop) and self._stops(segment, self._last))
            over = stopped or self._written == segment.max_tokens
            reason = "done" if stopped else "length"
        else:
            tokens = segment.tokens if isinstance(segment, Forced) else self._option
            over = self._written == len(tokens)
            reason = "end" if token.end else "done"
        if over:
            self._segment += 1
            self._written, self._tail, self._option = 0, b"", ()
            if self._segment == len(self._segments):
                return reason
        return "context" if self.decided >= self._room else None

    def _stops(self, segment: Free, token: int) -> bool:
        text = self._tail + self._vocabulary.pieces()[token]
        longest = max(map(len, segment.stop))
        self._tail = text[max(0, len(text) + 1 - longest) :]
        return any(stop in text for stop in segment.stop)
