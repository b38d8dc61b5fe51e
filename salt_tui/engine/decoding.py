"""Continuous batching at a fixed width: the loop between prompts and tokens.

Every number of a sequence depends on its prompt, its cut and the shape of the context only:

- a preamble is evaluated in a stream of its own, cut every `Streams.chunk` tokens, and copied whole;
- the rest of each prompt is evaluated alone, cut every `Streams.chunk` tokens from the end of the preamble;
- every answer token, forced or sampled, is appended one per step in a batch that always has one token per slot: idle
  slots are emptied and take a dummy token, so the shape of the batch never changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from dataclasses import dataclass, field

import numpy as np

from salt_tui.engine.engine import Generate, PromptProgress, SequenceEnded, StopReason, Token
from salt_tui.engine.interruption import InterruptedWork, Interruption
from salt_tui.engine.sampling import Sampler
from salt_tui.engine.serve import Outlet
from salt_tui.engine.statistics import Distribution, Logits, Statistics
from salt_tui.engine.streams import DecodeError, Streams

_DUMMY = 0


@dataclass(slots=True)
class _Sequence:
    """A sequence in a slot; ``evaluated`` prompt tokens are in its stream, ``last`` is not yet."""

    request: Generate
    sampler: Sampler
    preamble: tuple[int, ...]
    evaluated: int = 0
    answered: int = 0
    last: int = 0


@dataclass(slots=True)
class _Preamble:
    """What the store stream holds: the first ``evaluated`` of ``tokens``."""

    tokens: tuple[int, ...] = ()
    evaluated: int = 0


@dataclass(slots=True)
class _Slots:
    """The sequences in the slots; at most one of them, ``entering``, is still at its prompt."""

    running: list[_Sequence | None]
    entering: int | None = None
    queue: deque[Generate] = field(default_factory=deque)


class Decoder:
    """Runs queued sequences on a context, one unit of work per call of `step`."""

    def __init__(self, streams: Streams, end_tokens: Set[int], interruption: Interruption) -> None:
        """Begin with empty streams.

        Args:
            streams: where to compute.
            end_tokens: end-of-generation ids.
            interruption: asked before and during every evaluation.
        """
        self._streams = streams
        self._end_tokens = end_tokens
        self._interruption = interruption
        self._statistics = Statistics(streams.vocabulary_size)
        self._slots = _Slots([None] * streams.width)
        self._preamble = _Preamble()

    @property
    def busy(self) -> bool:
        """Whether a sequence runs or waits."""
        return any(self._slots.running) or bool(self._slots.queue)

    def forget_preamble(self) -> None:
        """Take the store stream as empty: somebody else has used it."""
        self._preamble = _Preamble()

    def submit(self, request: Generate) -> None:
        """Queue a sequence."""
        self._slots.queue.append(request)

    def cancel(self, key: int | None, outlet: Outlet) -> None:
        """End one sequence, or all, reporting each as cancelled; an unknown key is ignored."""
        for slot, sequence in enumerate(self._slots.running):
            if sequence is not None and (key is None or sequence.request.key == key):
                self._end(slot, "cancelled", outlet)
        kept: deque[Generate] = deque()
        for request in self._slots.queue:
            if key is None or request.key == key:
                outlet.ended(SequenceEnded(request.key, "cancelled"))
            else:
                kept.append(request)
        self._slots.queue = kept

    def step(self, outlet: Outlet) -> bool:
        """Evaluate one chunk of a prompt or, when none is waiting for a free slot, one token in every slot.

        Returns:
            False when there is nothing to do.
        """
        try:
            if self._slots.entering is None:
                self._admit(outlet)
            if self._slots.entering is not None:
                self._evaluate_chunk(self._slots.entering, outlet)
                return True
            if any(self._slots.running):
                self._advance(outlet)
                return True
        except InterruptedWork:
            return True
        return bool(self._slots.queue)

    # --- prompts ------------------------------------------------------------------------------------------------

    def _admit(self, outlet: Outlet) -> None:
        """Give the next sequence of the queue a free slot, refusing those that cannot be computed."""
        while self._slots.queue and None in self._slots.running:
            request = self._slots.queue.popleft()
            reason, message, sampler = self._examine(request)
            if sampler is None:
                outlet.ended(SequenceEnded(request.key, reason, message))
                continue
            slot = self._slots.running.index(None)
            # The last prompt token is always evaluated in the slot: its logits are the answer's first.
            preamble = request.prompt[: min(request.preamble, len(request.prompt) - 1)]
            self._slots.running[slot] = _Sequence(request, sampler, preamble)
            self._slots.entering = slot
            self._streams.clear(slot)
            if preamble != self._preamble.tokens:
                self._streams.clear(self._streams.width)
                self._preamble = _Preamble(preamble)
            outlet.progress(PromptProgress(request.key, self._preamble.evaluated, len(request.prompt)))
            return

    def _examine(self, request: Generate) -> tuple[StopReason, str, Sampler | None]:
        size = self._streams.vocabulary_size
        stray = next((token for token in request.prompt + request.forced if not 0 <= token < size), None)
        if stray is not None:
            return "failed", f"token {stray} is outside the vocabulary of {size}", None
        if len(request.prompt) >= self._streams.context:
            needed = len(request.prompt) + 1
            message = f"the prompt has {len(request.prompt)} tokens and the context {self._streams.context}"
            return "context", f"{message}: use -c {needed} or more", None
        try:
            return "end", "", Sampler(request.sampling)
        except ValueError as error:
            return "failed", str(error), None

    def _evaluate_chunk(self, slot: int, outlet: Outlet) -> None:
        sequence = self._slots.running[slot]
        assert sequence is not None
        request, store = sequence.request, self._streams.width
        try:
            with self._interruption.work(request.key):
                if self._preamble.evaluated < len(sequence.preamble):
                    start = self._preamble.evaluated
                    chunk = sequence.preamble[start : start + self._streams.chunk]
                    self._streams.evaluate(store, chunk, start, logits=False)
                    self._preamble.evaluated = done = start + len(chunk)
                    logits = None
                else:
                    if sequence.evaluated == 0 and sequence.preamble:
                        self._streams.copy(store, slot)
                        sequence.evaluated = len(sequence.preamble)
                    chunk = request.prompt[sequence.evaluated : sequence.evaluated + self._streams.chunk]
                    last = sequence.evaluated + len(chunk) == len(request.prompt)
                    logits = self._streams.evaluate(slot, chunk, sequence.evaluated, logits=last)
                    sequence.evaluated = done = sequence.evaluated + len(chunk)
        except DecodeError as error:
            self._recover(slot, error, outlet)
            return
        outlet.progress(PromptProgress(request.key, done, len(request.prompt)))
        if logits is not None:
            self._slots.entering = None
            self._take([slot], logits[np.newaxis], outlet)

    def _recover(self, slot: int, error: DecodeError, outlet: Outlet) -> None:
        """After a failed prompt: empty what may hold a part of it; end the sequence unless a cancel will."""
        sequence = self._slots.running[slot]
        assert sequence is not None
        if self._preamble.evaluated < len(self._preamble.tokens):
            self._streams.clear(self._streams.width)
            self._preamble.evaluated = 0
        self._streams.clear(slot)
        sequence.evaluated = 0
        if error.code != 2:
            self._end(slot, "failed", outlet, str(error))

    # --- answers ------------------------------------------------------------------------------------------------

    def _advance(self, outlet: Outlet) -> None:
        """Append every slot's last token, a dummy where there is none, and choose the next ones."""
        width = self._streams.width
        tokens, positions = [_DUMMY] * width, [0] * width
        for slot, sequence in enumerate(self._slots.running):
            if sequence is None:
                self._streams.clear(slot)
            else:
                tokens[slot] = sequence.last
                positions[slot] = len(sequence.request.prompt) + sequence.answered - 1
        try:
            with self._interruption.work(None):
                rows = self._streams.advance(tokens, positions)
        except DecodeError as error:
            if error.code == 2:
                return  # all of them are being cancelled
            for slot, sequence in enumerate(self._slots.running):
                self._streams.clear(slot)
                if sequence is not None:
                    self._end(slot, "failed", outlet, str(error))
            return
        slots = [slot for slot, running in enumerate(self._slots.running) if running]
        self._take(slots, rows if len(slots) == width else rows[slots], outlet)

    def _take(self, slots: list[int], rows: Logits, outlet: Outlet) -> None:
        """Choose a token for each slot from its row of logits, report them together, and end what is over."""
        tokens: list[Token] = []
        over: list[tuple[int, StopReason, str | None]] = []
        for slot, logits, distribution in zip(slots, rows, self._statistics.of(rows), strict=True):
            sequence = self._slots.running[slot]
            assert sequence is not None
            if distribution is None:
                over.append((slot, "failed", "the model's logits are no numbers: no probabilities"))
                continue
            token = self._choose(sequence, logits, distribution)
            tokens.append(token)
            reason = self._stop_reason(sequence, token)
            if reason is not None:
                over.append((slot, reason, None))
        outlet.tokens(tokens)
        for slot, reason, message in over:
            self._end(slot, reason, outlet, message)

    def _choose(self, sequence: _Sequence, logits: Logits, distribution: Distribution) -> Token:
        request = sequence.request
        forced = sequence.answered < len(request.forced)
        if forced:
            chosen = request.forced[sequence.answered]
        else:
            chosen = sequence.sampler.choose(logits, distribution.alternatives[0])
        sequence.last = chosen
        sequence.answered += 1
        return Token(
            key=request.key,
            id=chosen,
            log_probability=distribution.log_probability(float(logits[chosen])),
            entropy=distribution.entropy,
            alternatives=distribution.alternatives,
            alternative_log_probabilities=distribution.alternative_log_probabilities,
            forced=forced,
            end=chosen in self._end_tokens,
        )

    def _stop_reason(self, sequence: _Sequence, token: Token) -> StopReason | None:
        """An end token inside the forced part is walked over; one that closes it, or is sampled, ends."""
        request = sequence.request
        if token.end and sequence.answered >= len(request.forced):
            return "end"
        if sequence.answered >= request.max_tokens:
            return "length"
        if len(request.prompt) + sequence.answered >= self._streams.context:
            return "context"
        return None

    def _end(self, slot: int, reason: StopReason, outlet: Outlet, message: str | None = None) -> None:
        sequence = self._slots.running[slot]
        assert sequence is not None
        self._slots.running[slot] = None
        if self._slots.entering == slot:
            self._slots.entering = None
        outlet.ended(SequenceEnded(sequence.request.key, reason, message))
