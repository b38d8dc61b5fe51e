"""The decoding loop on streams that are Python lists: scheduling, limits, cancels and failed evaluations."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from salt_tui.engine.decoding import Decoder
from salt_tui.engine.errors import ModelError
from salt_tui.engine.events import PromptProgress, Reading, SequenceEnded, Token
from salt_tui.engine.exactness import check_exactness, check_quickly
from salt_tui.engine.interruption import Interruption
from salt_tui.engine.reply import Vocabulary
from salt_tui.engine.requests import Forced, Free, Generate, Sampling
from salt_tui.engine.statistics import Logits
from salt_tui.engine.streams import STORES, DecodeError, Vectors

pytestmark = pytest.mark.quick

VOCABULARY = 50
END = 49
PIECES = tuple(bytes([64 + number]) for number in range(VOCABULARY))
TOKENS = Vocabulary(VOCABULARY, {END}, lambda: PIECES, {})


@dataclass
class ListStreams:
    """Streams whose logits are a function of the tokens in the stream and of how they were cut."""

    width: int = 2
    context: int = 64
    chunk: int = 4
    vocabulary_size: int = VOCABULARY
    fail: dict[int, int] = field(default_factory=dict)
    leak: bool = False
    can_cut: bool = True
    layers: tuple[int, ...] = ()
    calls: int = 0
    batches: list[str] = field(default_factory=list)
    copied: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin empty."""
        self.held: list[list[tuple[int, int]]] = [[] for _ in range(self.width + STORES)]

    def clear(self, stream: int) -> None:
        """Empty a stream."""
        self.held[stream] = []

    def copy(self, source: int, target: int) -> None:
        """Copy into an empty stream."""
        assert self.held[target] == []
        self.held[target] = list(self.held[source])
        self.copied.append((source, target))

    def cut(self, stream: int, length: int) -> None:
        """Drop the end."""
        assert self.can_cut
        assert length < len(self.held[stream])
        del self.held[stream][length:]

    def save(self, stream: int) -> bytearray:
        """Write a stream down; the library has made no copy since it evaluated last."""
        assert stream not in {target for _, target in self.copied}
        return bytearray(repr(self.held[stream]).encode())

    def restore(self, stream: int, state: bytearray) -> bool:
        """Read it into an empty stream, of which no copy may be due."""
        assert stream not in {one for copy in self.copied for one in copy}
        assert self.held[stream] == []
        self.held[stream] = ast.literal_eval(state.decode())
        return True

    def evaluate(self, stream: int, tokens: Sequence[int], position: int, logits: bool) -> Logits | None:
        """Append tokens of a prompt."""
        assert 0 < len(tokens) <= self.chunk
        self._append(stream, tokens, position)
        self.batches.append(f"{len(tokens)}@{stream}")
        self._count()
        self._rows = [stream] if logits else []
        return self._logits(stream) if logits else None

    def vectors(self, row: int) -> Vectors | None:
        """Return a layer's number and what the stream held when the row was computed."""
        held = self.held[self._rows[row]]
        return np.array([(layer, len(held), held[-1][0]) for layer in self.layers], np.float32) if self.layers else None

    def advance(self, tokens: Sequence[int], positions: Sequence[int]) -> Logits:
        """Append one token per slot."""
        assert len(tokens) == len(positions) == self.width
        for slot in range(self.width):
            self._append(slot, [tokens[slot]], positions[slot])
        self.batches.append("step")
        self._count()
        self._rows = list(range(self.width))
        return np.stack([self._logits(slot) for slot in range(self.width)])

    def _append(self, stream: int, tokens: Sequence[int], position: int) -> None:
        assert len(self.held[stream]) == position
        assert position + len(tokens) <= self.context
        self.held[stream] += [(token, len(tokens)) for token in tokens]

    def _count(self) -> None:
        self.copied.clear()
        self.calls += 1
        if self.calls in self.fail:
            raise DecodeError(self.fail[self.calls])

    def _logits(self, stream: int) -> Logits:
        state = self.held if self.leak else self.held[stream]
        seed = abs(hash(str(state))) if self.leak else hash(tuple(self.held[stream])) & 0xFFFFFFFF
        logits = np.random.default_rng(seed).normal(0, 3, VOCABULARY).astype(np.float32)
        logits[END] = -5.0
        return logits


@dataclass
class Recorder:
    """An outlet that keeps everything."""

    events: list[Token | PromptProgress | SequenceEnded | Reading] = field(default_factory=list)
    largest_step: int = 0

    def tokens(self, tokens: Sequence[Token]) -> None:
        """Keep tokens."""
        self.largest_step = max(self.largest_step, len(tokens))
        self.events += tokens

    def reading(self, reading: Reading) -> None:
        """Keep a reading."""
        self.events.append(reading)

    def progress(self, progress: PromptProgress) -> None:
        """Keep progress."""
        self.events.append(progress)

    def ended(self, ended: SequenceEnded) -> None:
        """Keep an end."""
        self.events.append(ended)

    def answer(self, key: int) -> list[Token]:
        """Return the tokens of a sequence."""
        return [event for event in self.events if isinstance(event, Token) and event.key == key]

    def ends(self) -> dict[int, SequenceEnded]:
        """Return the ends by key."""
        return {event.key: event for event in self.events if isinstance(event, SequenceEnded)}


def decode(streams: ListStreams, requests: Sequence[Generate]) -> Recorder:
    decoder, outlet = Decoder(streams, TOKENS, Interruption()), Recorder()
    for request in requests:
        decoder.submit(request)
    while decoder.step(outlet):
        pass
    return outlet


def request(
    key: int,
    tail: int = 3,
    preamble: int = 6,
    max_tokens: int = 5,
    forced: tuple[int, ...] = (),
    sampling: Sampling | None = None,
) -> Generate:
    """A prompt of a shared preamble (3 for one task, 1, 2, 3 … for the other) and some tokens of its own."""
    prompt = tuple(range(1, preamble + 1)) + tuple(10 + (key + n) % 39 for n in range(tail))
    free = (Free(max_tokens - len(forced)),) if max_tokens > len(forced) else ()
    return Generate(key, prompt, preamble, (Forced(forced), *free), sampling or Sampling())


def length(one: Generate) -> int:
    """Return the most tokens of a request's reply."""
    return sum(segment.max_tokens for segment in one.segments if isinstance(segment, Free))


def test_a_preamble_is_evaluated_once_and_own_parts_alone_with_fixed_cuts() -> None:
    streams = ListStreams(width=2, chunk=4)
    decode(streams, [request(0, tail=6), request(1, tail=1)])
    assert [batch for batch in streams.batches if batch != "step"] == ["4@2", "2@2", "4@0", "2@0", "1@1"]


def test_answers_do_not_depend_on_order_neighbours_or_slots() -> None:
    requests = [request(key, tail=1 + key % 5, max_tokens=3 + key % 4, preamble=6 - key % 2) for key in range(9)]
    requests += [request(9, sampling=Sampling(0.9, seed=4))]
    outlets = [
        decode(ListStreams(width=4), requests),
        decode(ListStreams(width=4), requests[::-1]),
        *(decode(ListStreams(width=4), [one]) for one in requests),
    ]
    for one in requests:
        answers = [answer for outlet in outlets if (answer := outlet.answer(one.key))]
        assert len(answers) == 3
        assert answers[0] == answers[1] == answers[2]
        assert len(answers[0]) == length(one)


def test_a_freed_slot_takes_the_next_of_the_queue() -> None:
    streams = ListStreams(width=2)
    outlet = decode(streams, [request(0, max_tokens=2), request(1, max_tokens=8), request(2, max_tokens=2)])
    ended = [event.key for event in outlet.events if isinstance(event, SequenceEnded)]
    assert ended == [0, 2, 1]
    assert outlet.largest_step == 2


def test_progress_counts_the_copied_preamble_as_done() -> None:
    outlet = decode(ListStreams(width=1, chunk=4), [request(0), request(1)])
    progress = [(event.key, event.done, event.total) for event in outlet.events if isinstance(event, PromptProgress)]
    assert progress == [(0, 0, 9), (0, 4, 9), (0, 6, 9), (0, 9, 9), (1, 6, 9), (1, 9, 9)]


def test_a_prompt_that_is_all_preamble_still_evaluates_its_last_token_in_the_slot() -> None:
    streams = ListStreams(width=1, chunk=8)
    outlet = decode(streams, [request(0, tail=0, max_tokens=1)])
    assert streams.batches == ["5@1", "1@0"]
    assert outlet.ends()[0].stop_reason == "length"


def test_forced_tokens_are_walked_one_per_step_and_then_sampling_begins() -> None:
    free = decode(ListStreams(), [request(0, max_tokens=5)])
    forced_ids = (7, END, 8)
    outlet = decode(ListStreams(), [request(0, max_tokens=5, forced=forced_ids)])
    answer = outlet.answer(0)
    assert [token.forced for token in answer] == [True, True, True, False, False]
    assert tuple(token.id for token in answer[:3]) == forced_ids
    assert answer[1].end
    assert outlet.ends()[0].stop_reason == "length"
    # Forcing what the model would have said gives the same numbers.
    said = tuple(token.id for token in free.answer(0))
    again = decode(ListStreams(), [request(0, max_tokens=5, forced=said)]).answer(0)
    strip = [(token.id, token.log_probability, token.entropy, token.alternatives) for token in again]
    assert strip == [(token.id, token.log_probability, token.entropy, token.alternatives) for token in free.answer(0)]


def test_forced_tokens_take_the_draws_of_their_positions() -> None:
    sampling = Sampling(1.0, seed=3)
    free = decode(ListStreams(), [request(0, max_tokens=6, sampling=sampling)]).answer(0)
    said = tuple(token.id for token in free)
    for forced in range(1, 6):
        again = decode(ListStreams(), [request(0, max_tokens=6, forced=said[:forced], sampling=sampling)]).answer(0)
        assert tuple(token.id for token in again) == said
        assert [token.forced for token in again] == [True] * forced + [False] * (6 - forced)


def test_an_end_token_ends_with_its_statistics() -> None:
    outlet = decode(ListStreams(), [request(0, max_tokens=2, forced=(3, END))])
    assert [token.end for token in outlet.answer(0)] == [False, True]
    assert outlet.ends()[0] == SequenceEnded(0, "end")


@pytest.mark.parametrize("room", [1, 2, 5])
def test_the_context_limit_is_exact(room: int) -> None:
    prompt = len(request(0).prompt)
    streams = ListStreams(context=prompt + room)
    outlet = decode(streams, [request(0, max_tokens=100)])
    assert len(outlet.answer(0)) == room
    assert outlet.ends()[0].stop_reason == "context"
    assert max(len(held) for held in streams.held) < prompt + room


def test_the_token_limit_comes_before_the_context_limit() -> None:
    outlet = decode(ListStreams(context=9 + 5), [request(0, max_tokens=5)])
    assert outlet.ends()[0].stop_reason == "length"


def test_what_cannot_be_computed_is_refused_with_a_sentence_and_the_rest_goes_on() -> None:
    requests = [
        request(0, tail=80),
        Generate(1, (1, VOCABULARY), 0, (Free(3),)),
        request(2, sampling=Sampling(top_p=0.0)),
        request(3, forced=(-1,)),
        request(4),
    ]
    ends = decode(ListStreams(), requests).ends()
    assert ends[0].stop_reason == "context"
    assert "86 tokens" in str(ends[0].message)
    assert "-c 87" in str(ends[0].message)
    assert [ends[key].stop_reason for key in range(1, 5)] == ["failed", "failed", "failed", "length"]
    assert "top-p" in str(ends[2].message)
    assert len(decode(ListStreams(), requests).answer(4)) == 5


@pytest.mark.parametrize(("call", "code"), [(1, 1), (2, -1), (3, -3), (3, 1), (4, -2), (5, 1)])
def test_a_failed_evaluation_fails_its_sequences_and_leaves_clean_streams(call: int, code: int) -> None:
    good = decode(ListStreams(width=1), [request(1)]).answer(1)
    outlet = decode(ListStreams(width=1, fail={call: code}), [request(0), request(1)])
    assert outlet.ends()[0].stop_reason == "failed"
    assert str(code) in str(outlet.ends()[0].message)
    assert outlet.ends()[1].stop_reason == "length"
    assert outlet.answer(1) == good


def test_a_failed_prompt_leaves_its_slot_empty_and_the_preamble_in_place() -> None:
    streams = ListStreams(width=2, fail={3: -3})
    decode(streams, [request(0)])
    assert streams.held[0] == []
    assert len(streams.held[2]) == 6


def test_a_failed_step_fails_all_slots() -> None:
    # Calls: two chunks of the preamble, two own parts, then the first step.
    outlet = decode(ListStreams(width=2, fail={5: -3}), [request(0), request(1), request(2)])
    assert [outlet.ends()[key].stop_reason for key in range(3)] == ["failed", "failed", "length"]


def test_logits_that_are_no_numbers_fail_one_sequence_only() -> None:
    class Poisoned(ListStreams):
        def _logits(self, stream: int) -> Logits:
            logits = super()._logits(stream)
            return logits * np.float32(np.nan) if self.held[stream][-1][0] == 40 else logits

    outlet = decode(Poisoned(), [request(0, forced=(40,)), request(1)])
    assert outlet.ends()[0].stop_reason == "failed"
    assert "not numbers" in str(outlet.ends()[0].message)
    assert outlet.ends()[1].stop_reason == "length"


@pytest.mark.parametrize("steps", range(10))
def test_cancel_at_every_moment_leaves_what_a_fresh_context_gives(steps: int) -> None:
    interruption, streams, outlet = Interruption(), ListStreams(width=2), Recorder()
    decoder = Decoder(streams, TOKENS, interruption)
    for key in range(3):
        decoder.submit(request(key, tail=6, max_tokens=9))
    for _ in range(steps):
        decoder.step(outlet)
    interruption.request(1)
    decoder.step(outlet)  # waits for the cancel when its work is concerned
    interruption.acknowledge(1)
    decoder.cancel(1, outlet)
    while decoder.step(outlet):
        pass
    fresh = decode(ListStreams(width=2), [request(key, tail=6, max_tokens=9) for key in (0, 2)])
    assert outlet.ends()[1].stop_reason == "cancelled"
    for key in (0, 2):
        assert outlet.answer(key) == fresh.answer(key)
    assert [type(event) for event in outlet.events].count(SequenceEnded) == 3


@pytest.mark.parametrize("call", [1, 2, 3, 4, 5, 8])
def test_an_aborted_evaluation_of_any_kind_leaves_clean_streams(call: int) -> None:
    interruption, outlet = Interruption(), Recorder()

    class Aborting(ListStreams):
        def _count(self) -> None:
            if self.calls == call - 1:
                interruption.request(None)
                self.fail = {call: 2}
            super()._count()

    decoder = Decoder(Aborting(width=2), TOKENS, interruption)
    for key in range(3):
        decoder.submit(request(key, tail=6))
    for _ in range(call + 5):
        assert decoder.step(outlet)
    interruption.acknowledge(None)
    decoder.cancel(None, outlet)
    assert not decoder.step(outlet)
    assert {end.stop_reason for end in outlet.ends().values()} == {"cancelled"}
    assert len(outlet.ends()) == 3
    decoder.submit(request(2, tail=6))
    while decoder.step(outlet):
        pass
    fresh = decode(ListStreams(width=2), [request(2, tail=6)]).answer(2)
    assert outlet.answer(2)[-len(fresh) :] == fresh


def test_the_exactness_check_finds_a_leak_and_leaves_nothing() -> None:
    streams = ListStreams(width=4, chunk=300, context=400)
    exactness = check_exactness(streams)
    assert exactness.differences == dict.fromkeys(("warm_cold", "slots", "neighbours", "fork", "snapshot"), 0.0)
    assert exactness.exact is True
    assert streams.held == [[]] * 5
    leaky = check_exactness(ListStreams(width=4, chunk=300, context=400, leak=True))
    assert leaky.exact is False
    assert leaky.differences["neighbours"] > 0
    alone = check_exactness(ListStreams(width=1, chunk=300)).differences
    assert alone == {"warm_cold": 0.0, "fork": 0.0, "snapshot": 0.0}


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("fault", ["restore", "cut", "copy"])
def test_the_exactness_check_finds_a_state_that_is_not_the_same(fault: str, width: int) -> None:
    class Faulty(ListStreams):
        def restore(self, stream: int, state: bytearray) -> bool:
            super().restore(stream, state)
            self._spoil(stream, fault == "restore")
            return True

        def cut(self, stream: int, length: int) -> None:
            super().cut(stream, length)
            self._spoil(stream, fault == "cut")

        def copy(self, source: int, target: int) -> None:
            super().copy(source, target)
            stepped = any(cut == 1 for _, cut in self.held[source])
            self._spoil(target, fault == "copy" and source == self.width and stepped)

        def _spoil(self, stream: int, now: bool) -> None:
            if now:
                token, cut = self.held[stream][0]
                self.held[stream][0] = (token, cut + 1)

    found = check_exactness(Faulty(width=width, chunk=300, context=400))
    assert found.exact is False
    wrong = {name for name, difference in found.differences.items() if difference}
    assert wrong >= {"restore": {"snapshot"}, "cut": {"fork", "snapshot"}, "copy": {"fork"}}[fault]
    quick = check_quickly(Faulty(width=width, chunk=300, context=400))
    assert quick.exact is (fault != "restore")


@pytest.mark.parametrize("check", [check_exactness, check_quickly])
def test_logits_that_are_no_numbers_are_the_models_fault(check: Callable[[ListStreams], object]) -> None:
    class Broken(ListStreams):
        def _logits(self, stream: int) -> Logits:
            return np.full(VOCABULARY, np.nan, np.float32)

    with pytest.raises(ModelError, match="not numbers"):
        check(Broken(width=2, chunk=300))


@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_quick_check_finds_a_leak_and_says_where(width: int) -> None:
    streams = ListStreams(width=width, chunk=300)
    assert check_quickly(streams).differences == {"company": 0.0}
    assert streams.calls <= 9
    assert streams.held == [[]] * (width + STORES)
    leaky = check_quickly(ListStreams(width=width, chunk=300, context=400, leak=True))
    assert leaky.exact is False
    assert leaky.differences["company"] > 0
    assert set(leaky.differences) == {
        "company",
        "warm_cold",
        "fork",
        "snapshot",
        *(["slots", "neighbours"] if width > 1 else []),
    }


@pytest.mark.parametrize("context", [4, 5, 30])
def test_the_exactness_check_fits_the_smallest_context(context: int) -> None:
    for check in (check_exactness, check_quickly):
        assert check(ListStreams(width=2, chunk=2, context=context)).exact is True
