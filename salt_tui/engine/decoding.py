"""Continuous batching at a fixed width: the loop between prompts and tokens.

Every number of a sequence depends on its prompt, its cut and the shape of the context only:

- a preamble is evaluated in a stream of its own, cut every `Streams.chunk` tokens, and copied whole;
- a beginning that several sequences share is computed by the first of them, as if it were alone; the others wait until
  as much of it is there as they share, and fork it (`salt_tui.engine.trunks`);
- the rest of each prompt is evaluated alone, cut every `Streams.chunk` tokens from the end of the preamble;
- every answer token, forced or sampled, is appended one per step in a batch that always has one token per slot: idle
  slots are emptied and take a dummy token, so the shape of the batch never changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from salt_tui.engine.events import Activations, PromptProgress, SequenceEnded, StopReason, Token
from salt_tui.engine.interruption import InterruptedWork, Interruption
from salt_tui.engine.readouts import refusal
from salt_tui.engine.reply import Reply, Vocabulary
from salt_tui.engine.requests import Forced, Generate, ids_of, needs_cut
from salt_tui.engine.serve import Outlet
from salt_tui.engine.statistics import Logits, Statistics
from salt_tui.engine.streams import DecodeError, Streams, Vectors
from salt_tui.engine.trunks import Beginning, Trunks, chunk_start

_DUMMY = 0
_NO_NUMBERS = "the model's logits are not numbers, so there are no probabilities"


@dataclass(slots=True)
class _Sequence:
    """A sequence in a slot; ``held`` tokens of prompt and reply are in its stream."""

    request: Generate
    reply: Reply
    beginning: Beginning
    held: int = 0
    kept: bool = False
    """The beginning is complete: it has been kept for others, or no other sequence needs it."""
    awaited: set[int] = field(default_factory=set)
    """So many walked tokens of it are what another sequence waits for."""
    part: Beginning | None = None
    """What was kept of it while it was being walked."""


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
    admissible: bool = False
    """Since the queue was last looked at, a request came, a slot became free or a beginning was completed."""


class Decoder:
    """Runs queued sequences on a context, one unit of work per call of `step`."""

    def __init__(self, streams: Streams, vocabulary: Vocabulary, interruption: Interruption, cache: int = 0) -> None:
        """Begin with empty streams.

        Args:
            streams: where to compute.
            vocabulary: of the model.
            interruption: asked before and during every evaluation.
            cache: bytes of main memory for beginnings that are shared.
        """
        self._streams = streams
        self._vocabulary = vocabulary
        self._interruption = interruption
        self._statistics = Statistics(streams.vocabulary_size)
        self._slots = _Slots([None] * streams.width)
        self._preamble = _Preamble()
        self._trunks = Trunks(streams, cache)

    @property
    def busy(self) -> bool:
        """Whether a sequence runs or waits."""
        return any(self._slots.running) or bool(self._slots.queue)

    def forget_stores(self) -> None:
        """Treat the store stream as empty, because other code has used it."""
        self._preamble = _Preamble()

    def submit(self, request: Generate) -> None:
        """Queue a sequence."""
        self._slots.queue.append(request)
        self._slots.admissible = True

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
            if self._slots.entering is None and self._slots.admissible:
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
        waiting: deque[Generate] = deque()
        while self._slots.queue and self._slots.entering is None and None in self._slots.running:
            request = self._slots.queue.popleft()
            reason, message, reply = self._examine(request)
            if reply is None:
                outlet.ended(SequenceEnded(request.key, reason, message))
            elif self._has_to_wait(_beginning(request)):
                waiting.append(request)
            else:
                self._enter(request, reply, outlet)
        waiting.extend(self._slots.queue)
        self._slots.queue = waiting
        self._slots.admissible = self._slots.entering is not None  # the rest is looked at when its prompt is evaluated

    def _has_to_wait(self, wanted: Beginning) -> bool:
        """Tell whether a running sequence is about to compute more of a beginning than is kept, and have it kept."""
        most, source = -1, None
        for sequence in self._slots.running:
            if sequence is not None and not sequence.kept and (shared := sequence.beginning.shared(wanted)) > most:
                most, source = shared, sequence
        if source is None:
            return False
        found = self._trunks.find(wanted)
        if most <= (found[1] if found is not None else -1):
            return False
        if self._streams.can_cut or source.reply.decided <= most:
            source.awaited.add(max(most, source.reply.decided))
        return True

    def _enter(self, request: Generate, reply: Reply, outlet: Outlet) -> None:
        """Put a sequence into a free slot, with as much of its beginning as is kept."""
        slot = self._slots.running.index(None)
        beginning = _beginning(request)
        sequence = self._slots.running[slot] = _Sequence(request, reply, beginning)
        self._streams.clear(slot)
        if self._fork(slot, sequence, outlet):
            return
        self._slots.entering = slot
        if sequence.held:
            outlet.progress(PromptProgress(request.key, sequence.held, len(beginning.prompt)))
            return
        preamble = beginning.prompt[: beginning.preamble]
        if preamble != self._preamble.tokens:
            self._streams.clear(self._streams.width)
            self._preamble = _Preamble(preamble)
        outlet.progress(PromptProgress(request.key, self._preamble.evaluated, len(beginning.prompt)))

    def _fork(self, slot: int, sequence: _Sequence, outlet: Outlet) -> bool:
        """Copy what is kept of a sequence's beginning; True when its prompt needs no evaluation then."""
        found = self._trunks.find(sequence.beginning)
        if found is None or not self._trunks.fork(found[0], slot):
            return False
        trunk, shared = found
        prompt, walked = len(sequence.beginning.prompt), len(sequence.beginning.walked)
        held = prompt + len(trunk.beginning.walked)
        whole = len(trunk.beginning.walked) == shared
        # What a longer beginning holds of this one needs no copy of its own, but the last chunk of a prompt costs most.
        sequence.kept = shared == walked and (whole or walked > 0)
        if shared < walked:
            sequence.held = prompt + shared
            sequence.reply.skip_trunk(shared + 1)
        elif whole:
            sequence.held = held
            if walked:
                sequence.reply.skip_trunk(walked)
        elif walked:
            sequence.held = prompt + walked - 1  # the row of logits after the last token is not kept
            sequence.reply.skip_trunk(walked)
        else:
            sequence.held = chunk_start(sequence.beginning.prompt, sequence.beginning.preamble, self._streams.chunk)
        if sequence.held < held:
            self._streams.cut(slot, sequence.held)
        if sequence.held < prompt:
            return False
        outlet.progress(PromptProgress(sequence.request.key, prompt, prompt))
        if whole and shared == walked:
            self._take([slot], trunk.logits[np.newaxis], lambda row: trunk.vectors, outlet)
        return True

    def _examine(self, request: Generate) -> tuple[StopReason, str, Reply | None]:
        size = self._vocabulary.size
        stray = next((token for token in ids_of(request) if not 0 <= token < size), None)
        if stray is not None:
            return "failed", f"token {stray} is outside the vocabulary of {size}", None
        if (length := len(request.evaluated)) >= self._streams.context:
            needed = length + 1
            message = f"the prompt has {length} tokens and the context {self._streams.context}"
            return "context", f"{message}: use -c {needed} or more", None
        if not self._streams.can_cut and any(map(needs_cut, request.segments)):
            message = "this model cannot be cut back, so options of several tokens and asides are not possible"
            return "failed", message, None
        refused = refusal(request, self._vocabulary.sets, self._streams.layers)
        if refused is not None:
            return "failed", refused, None
        try:
            return "end", "", Reply(request, self._vocabulary, self._streams.context - len(request.prompt))
        except ValueError as error:
            return "failed", str(error), None

    def _evaluate_chunk(self, slot: int, outlet: Outlet) -> None:
        sequence = self._running(slot)
        request, prompt, store = sequence.request, sequence.beginning.prompt, self._streams.width
        try:
            with self._interruption.work(request.key):
                if sequence.held == 0 and self._preamble.evaluated < sequence.beginning.preamble:
                    start = self._preamble.evaluated
                    chunk = self._preamble.tokens[start : start + self._streams.chunk]
                    self._streams.evaluate(store, chunk, start, logits=False)
                    self._preamble.evaluated = done = start + len(chunk)
                    logits = None
                else:
                    if sequence.held == 0 and sequence.beginning.preamble:
                        self._streams.copy(store, slot)
                        sequence.held = sequence.beginning.preamble
                    chunk = prompt[sequence.held : sequence.held + self._streams.chunk]
                    last = sequence.held + len(chunk) == len(prompt)
                    logits = self._streams.evaluate(slot, chunk, sequence.held, logits=last)
                    sequence.held = done = sequence.held + len(chunk)
        except DecodeError as error:
            self._recover(slot, error, outlet)
            return
        outlet.progress(PromptProgress(request.key, done, len(prompt)))
        if logits is not None:
            self._slots.entering = None
            self._take([slot], logits[np.newaxis], lambda row: self._streams.vectors(-1), outlet)

    def _recover(self, slot: int, error: DecodeError, outlet: Outlet) -> None:
        """After a failed prompt: empty what may hold a part of it; end the sequence unless a cancel will."""
        sequence = self._running(slot)
        if self._preamble.evaluated < len(self._preamble.tokens):
            self._streams.clear(self._streams.width)
            self._preamble.evaluated = 0
        self._streams.clear(slot)
        sequence.held = 0
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
                tokens[slot], before = sequence.reply.next_input
                positions[slot] = position = len(sequence.request.prompt) + before
                if position < sequence.held:
                    self._streams.cut(slot, position)
                sequence.held = position
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
        for slot in slots:
            self._running(slot).held += 1
        vectors = self._streams.vectors if len(slots) == width else lambda row: self._streams.vectors(slots[row])
        self._take(slots, rows if len(slots) == width else rows[slots], vectors, outlet)

    def _running(self, slot: int) -> _Sequence:
        sequence = self._slots.running[slot]
        assert sequence is not None
        return sequence

    def _take(self, slots: list[int], rows: Logits, vectors: Callable[[int], Vectors | None], outlet: Outlet) -> None:
        """Settle a token for each slot by its row of logits, report them together, and end what is over.

        Args:
            slots: whose rows these are.
            rows: of logits.
            vectors: returns the activations that belong to a row, None where none are taken.
            outlet: takes what happens.
        """
        sequences = [self._running(slot) for slot in slots]
        heard: Sequence[int] = range(len(slots))
        if not all(sequence.kept for sequence in sequences):
            heard, rows = self._pass_beginnings(slots, rows, vectors)
        tokens: list[Token] = []
        over: list[tuple[int, StopReason, str | None]] = []
        for number, logits, distribution in zip(heard, rows, self._statistics.of(rows), strict=True):
            if distribution is None:
                over.append((slots[number], "failed", _NO_NUMBERS))
                continue
            sequence = sequences[number]
            if sequence.request.layers and not sequence.reply.is_walking:
                outlet.reading(self._activations(sequence, vectors(number)))
            outcome = sequence.reply.take(logits, distribution)
            for reading in outcome.readings:
                outlet.reading(reading)
            if outcome.token is not None:
                tokens.append(outcome.token)
            if outcome.reason is not None:
                over.append((slots[number], outcome.reason, outcome.message))
        outlet.tokens(tokens)
        for slot, reason, message in over:
            self._end(slot, reason, outlet, message)

    def _pass_beginnings(
        self, slots: list[int], rows: Logits, vectors: Callable[[int], Vectors | None]
    ) -> tuple[Sequence[int], Logits]:
        """Walk on inside trunks, keep what is complete; return the places of the others and their rows."""
        heard: list[int] = []
        for number, slot in enumerate(slots):
            sequence = self._running(slot)
            if sequence.reply.in_trunk:
                if sequence.reply.decided in sequence.awaited:
                    self._keep_part(slot, sequence, rows[number], vectors(number))
                sequence.reply.skip_trunk(sequence.reply.decided + 1)
                continue
            heard.append(number)
            if not sequence.kept:
                self._keep(slot, sequence, rows[number], vectors(number))
        return heard, rows if len(heard) == len(slots) else rows[heard]

    def _activations(self, sequence: _Sequence, vectors: Vectors | None) -> Activations:
        """Select the layers that a sequence asks for; all of them are taken, as was checked when it entered."""
        assert vectors is not None
        request = sequence.request
        rows = vectors[[self._streams.layers.index(layer) for layer in request.layers]]
        return Activations(request.key, sequence.reply.decided, request.layers, rows.astype("<f4").tobytes())

    def _keep(self, slot: int, sequence: _Sequence, logits: Logits, vectors: Vectors | None) -> None:
        """Keep a complete beginning if it is a trunk, or if a waiting sequence has the same prompt."""
        sequence.kept = self._slots.admissible = True
        beginning = sequence.beginning
        self._forget_part(sequence)
        if beginning.walked or any(beginning.same_prompt(_beginning(other)) for other in self._slots.queue):
            self._trunks.keep(beginning, slot, logits, vectors)

    def _keep_part(self, slot: int, sequence: _Sequence, logits: Logits, vectors: Vectors | None) -> None:
        """Keep what is walked so far of a beginning, where a slot is idle that a waiting sequence could take."""
        if None not in self._slots.running:
            return  # asked for again when a slot is free
        self._forget_part(sequence)
        beginning = sequence.beginning
        sequence.part = replace(beginning, walked=beginning.walked[: sequence.reply.decided])
        self._slots.admissible = True
        self._trunks.keep(sequence.part, slot, logits, vectors)

    def _forget_part(self, sequence: _Sequence) -> None:
        """Keep a shorter part no longer when a longer one is kept, which holds it where it can be cut back."""
        if sequence.part is not None and sequence.part.walked and self._streams.can_cut:
            self._trunks.forget(sequence.part)

    def _end(self, slot: int, reason: StopReason, outlet: Outlet, message: str | None = None) -> None:
        sequence = self._running(slot)
        self._slots.running[slot] = None
        self._slots.admissible = True
        if self._slots.entering == slot:
            self._slots.entering = None
        outlet.ended(SequenceEnded(sequence.request.key, reason, message))


def _beginning(request: Generate) -> Beginning:
    """Return what of a request may be shared.

    The last token of what is evaluated in chunks is always evaluated in the slot: its logits are the answer's first.
    """
    if request.chunked:
        # All prefixes of an answer are cut at the end of the prompt, so that they differ by what they hold only.
        evaluated = request.evaluated
        return Beginning(evaluated, min(len(request.prompt), len(evaluated) - 1), ())
    first = request.segments[0]
    walked = first.tokens[: request.trunk] if isinstance(first, Forced) else ()
    return Beginning(request.prompt, min(request.preamble, len(request.prompt) - 1), walked)
