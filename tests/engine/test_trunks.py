"""Beginnings that sequences share: computed once, the same numbers whatever was kept, forgotten or cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.engine.decoding import Decoder
from salt_tui.engine.events import PromptProgress, Reading, SequenceEnded, Token
from salt_tui.engine.interruption import Interruption
from salt_tui.engine.requests import Choice, Forced, Free, Generate, Sampling
from tests.engine.test_decoding import TOKENS, ListStreams, Recorder

Said = list[Token | Reading | SequenceEnded]
LARGE = 1 << 20
LAYERS = (1, 4)


def run(requests: Sequence[Generate], streams: ListStreams, cache: int = LARGE) -> Recorder:
    decoder, outlet = Decoder(streams, TOKENS, Interruption(), cache), Recorder()
    for request in requests:
        decoder.submit(request)
    while decoder.step(outlet):
        pass
    return outlet


def said(outlet: Recorder, key: int) -> Said:
    return [one for one in outlet.events if one.key == key and not isinstance(one, PromptProgress)]


def alone(request: Generate, can_cut: bool = True) -> Said:
    """Return what a sequence says on streams of its own without sharing anything."""
    forced = request if request.chunked else replace(request, trunk=0)
    outlet = run([forced], ListStreams(width=2, can_cut=can_cut, layers=LAYERS))
    everything = said(outlet, request.key)
    return [one for one in everything if isinstance(one, SequenceEnded) or one.position >= request.trunk]


def prompt(number: int, tail: int = 5) -> tuple[int, ...]:
    return (1, 2, 3, 4, 5, *(10 + (number + place) % 30 for place in range(tail)))


def branch(key: int, walked: tuple[int, ...], trunk: int, number: int = 0, free: int = 2) -> Generate:
    return Generate(key, prompt(number), 5, (Forced(walked), Free(free)), Sampling(0.8, seed=key), trunk=trunk)


PREFIX = (7, 8, 9, 11, 12, 13)


def evaluated(streams: ListStreams) -> list[str]:
    return [batch for batch in streams.batches if batch != "step"]


def test_branches_of_a_trunk_evaluate_it_once_and_wait_for_it() -> None:
    streams = ListStreams(width=4)
    requests = [branch(key, (*PREFIX, 20 + key), len(PREFIX)) for key in range(6)]
    outlet = run(requests, streams)
    assert evaluated(streams) == ["4@4", "1@4", "4@0", "1@0"]
    # Six steps for the trunk, four branches of three tokens, then two: one step fewer than tokens each.
    assert streams.batches.count("step") == len(PREFIX) + 2 + 3 - 1
    for request in requests:
        assert said(outlet, request.key) == alone(request)


def test_a_branch_begins_when_as_much_is_walked_as_it_shares() -> None:
    streams = ListStreams(width=2)
    whole, early = branch(0, PREFIX, 6, free=4), branch(1, (*PREFIX[:2], 30, 31), 2)
    late = branch(2, (*PREFIX[:3], 30), 3)
    outlet = run([whole, early, late], streams)
    assert evaluated(streams) == ["4@2", "1@2", "4@0", "1@0"]
    # The first takes nine steps; the second begins after two of them and takes three, then the third cuts back, walks
    # its last shared token again and is there after three more.
    assert streams.batches.count("step") == len(PREFIX) + 4 - 1
    for request in (whole, early, late):
        assert said(outlet, request.key) == alone(request)


def test_a_part_of_a_beginning_is_kept_only_where_a_slot_is_idle() -> None:
    saved: list[int] = []

    class Counting(ListStreams):
        def save(self, stream: int) -> bytearray:
            saved.append(len(self.held[stream]))
            return super().save(stream)

    requests = [branch(0, PREFIX, 6), *(branch(key, (*PREFIX[:key], 30 + key), key) for key in range(1, 5))]
    outlet = run(requests, Counting(width=1))
    assert saved == [16]
    for request in requests:
        assert said(outlet, request.key) == alone(request)


def test_a_chunked_prefix_is_evaluated_behind_a_prompt_that_is_evaluated_once() -> None:
    streams = ListStreams(width=2)
    requests = [replace(branch(key, (*PREFIX[:key], 30, 31), key + 2), chunked=True) for key in range(3)]
    outlet = run(requests, streams)
    # The prompt of ten tokens in the store, then two, three and four tokens in slots; nothing is walked.
    assert evaluated(streams) == ["4@2", "4@2", "2@2", "2@0", "3@1", "4@0"]
    for request in requests:
        # The same numbers as behind a prompt that holds the prefix; positions and draws are those of the reply.
        forced = request.segments[0]
        assert isinstance(forced, Forced)
        longer = replace(
            request, prompt=request.evaluated, preamble=10, segments=request.segments[1:], trunk=0, chunked=False
        )
        expected = [one for one in said(run([longer], ListStreams(width=2)), request.key) if isinstance(one, Token)]
        found = [one for one in said(outlet, request.key) if isinstance(one, Token)]
        assert [one.position for one in found] == [request.trunk, request.trunk + 1]
        assert found[0].alternative_log_probabilities == expected[0].alternative_log_probabilities
        walked = said(run([replace(request, chunked=False)], ListStreams(width=2)), request.key)
        assert found[0].alternative_log_probabilities != walked[0].alternative_log_probabilities  # type: ignore[union-attr]


def test_a_chunked_prefix_takes_the_draws_of_its_positions() -> None:
    # Streams without memory of cuts: then only the draws could differ.
    class Uncut(ListStreams):
        def _append(self, stream: int, tokens: Sequence[int], position: int) -> None:
            self.held[stream] += [(token, 1) for token in tokens]

    request = replace(branch(3, PREFIX, 6, free=5), sampling=Sampling(2.0, seed=4))
    walked, chunked = (said(run([one], Uncut()), 3) for one in (request, replace(request, chunked=True)))
    assert walked == chunked


def test_a_chunked_prefix_has_to_fit_the_context() -> None:
    for room, reason in ((16, "context"), (17, "context"), (18, "length")):
        streams = ListStreams(width=1, context=room)
        outlet = run([replace(branch(0, PREFIX, 6), chunked=True)], streams)
        assert outlet.ends()[0].stop_reason == reason


def test_samples_of_one_prompt_evaluate_it_once() -> None:
    streams = ListStreams(width=2)
    requests = [Generate(key, prompt(0), 5, (Free(3),), Sampling(1.0, seed=key)) for key in range(5)]
    outlet = run(requests, streams)
    assert evaluated(streams) == ["4@2", "1@2", "4@0", "1@0"]
    for request in requests:
        assert said(outlet, request.key) == alone(request)


def test_a_prompt_that_nobody_shares_is_not_kept() -> None:
    class Unsaved(ListStreams):
        def save(self, stream: int) -> bytearray:
            raise AssertionError("nothing is shared")

    requests = [Generate(key, prompt(key), 5, (Free(3),)) for key in range(4)]
    outlet = run(requests, Unsaved(width=2))
    for request in requests:
        assert said(outlet, request.key) == alone(request)


def test_beginnings_that_are_complete_at_the_same_step_are_all_kept_as_they_are() -> None:
    requests = [branch(key, (*PREFIX, 20 + key), len(PREFIX), number=key % 3) for key in range(9)]
    outlet = run(requests, ListStreams(width=4))
    for request in requests:
        assert said(outlet, request.key) == alone(request)


def test_a_longer_beginning_is_cut_back_and_a_shorter_one_walked_on() -> None:
    whole, half, other = branch(0, PREFIX, 6), branch(1, PREFIX, 3), branch(2, (*PREFIX[:4], 30, 31), 6)
    more = branch(3, (*PREFIX, 21, 22), 8)
    streams = ListStreams(width=1)
    outlet = run([whole, half, other, more], streams)
    assert evaluated(streams) == ["4@1", "1@1", "4@0", "1@0"]
    # 6 + 1 for the first; one token again, three forced and one sampled; two walked and one sampled; two and one.
    assert streams.batches.count("step") == 7 + (1 + 4) + (2 + 1) + (2 + 1)
    for request in (whole, half, other, more):
        assert said(outlet, request.key) == alone(request)


def test_the_prompt_alone_is_found_in_a_longer_beginning_by_its_last_chunk() -> None:
    streams = ListStreams(width=1)
    first, *others = branch(0, PREFIX, 6), *(Generate(key, prompt(0), 5, (Free(3),)) for key in (1, 2, 3))
    outlet = run([first, *others], streams)
    # Once: then it is kept itself.
    assert evaluated(streams) == ["4@1", "1@1", "4@0", "1@0", "1@0"]
    for request in others:
        assert said(outlet, request.key) == alone(request)


def test_several_trunks_are_put_away_and_taken_out_and_what_has_no_room_is_computed_again() -> None:
    requests = [branch(10 * turn + number, PREFIX, 6, number=number) for turn in range(3) for number in range(3)]
    prompts = {}
    for cache in (LARGE, 700, 0):
        streams = ListStreams(width=1)
        outlet = run(requests, streams, cache)
        prompts[cache] = sum(batch.endswith("@0") for batch in streams.batches) // 2
        for request in requests:
            assert said(outlet, request.key) == alone(request)
    assert prompts == {LARGE: 3, 700: 9, 0: 9}


def test_without_cutting_only_whole_states_are_used() -> None:
    streams = ListStreams(width=1, can_cut=False)
    requests = [branch(0, PREFIX, 6), branch(1, PREFIX, 3), branch(2, (*PREFIX, 21), 7), branch(3, PREFIX, 3)]
    outlet = run(requests, streams)
    assert [batch for batch in streams.batches if batch.endswith("@0")] == ["4@0", "1@0"] * 2
    for request in requests:
        assert said(outlet, request.key) == alone(request, can_cut=False)


def test_without_cutting_a_branch_begins_at_the_very_token_that_it_shares_or_waits() -> None:
    streams = ListStreams(width=2, can_cut=False)
    whole, early, late = branch(0, PREFIX, 6), branch(1, (*PREFIX[:2], 30), 2), branch(2, (*PREFIX[:3], 30), 3)
    outlet = run([whole, early, late], streams)
    # The third finds the first beyond its last shared token when a slot is free, and forks what the second forked.
    assert [batch for batch in streams.batches if batch.endswith("@0")] == ["4@0", "1@0"]
    for request in (whole, early, late):
        assert said(outlet, request.key) == alone(request, can_cut=False)


def test_those_who_wait_go_on_when_the_one_they_wait_for_is_cancelled() -> None:
    for steps in range(9):
        decoder, outlet = Decoder(ListStreams(width=2), TOKENS, Interruption()), Recorder()
        for key in range(3):
            decoder.submit(branch(key, PREFIX, 6))
        for _ in range(steps):
            decoder.step(outlet)
        decoder.cancel(0, outlet)
        while decoder.step(outlet):
            pass
        assert said(outlet, 0)[-1] == SequenceEnded(0, "cancelled")
        for key in (1, 2):
            assert said(outlet, key) == alone(branch(key, PREFIX, 6))


@pytest.mark.parametrize("call", range(1, 24))
def test_a_failed_evaluation_spoils_nothing_that_is_kept(call: int) -> None:
    requests = [branch(key, PREFIX, 6, free=4) for key in range(3)]
    outlet = run(requests, ListStreams(width=2, fail={call: -3}))
    ends = {key: end.stop_reason for key, end in outlet.ends().items()}
    assert set(ends.values()) <= {"failed", "length"}
    assert "length" in ends.values()
    for request in requests:
        if ends[request.key] == "length":
            assert said(outlet, request.key) == alone(request)


def test_a_state_that_cannot_be_restored_is_computed_again() -> None:
    class Refusing(ListStreams):
        def restore(self, stream: int, state: bytearray) -> bool:
            self.held[stream] = [(0, 0)]
            return False

    streams = Refusing(width=1)
    requests = [branch(0, PREFIX, 6), branch(1, PREFIX, 6, number=1), branch(2, PREFIX, 6)]
    outlet = run(requests, streams)
    for request in requests:
        assert said(outlet, request.key) == alone(request)


@st.composite
def works(draw: st.DrawFn, chunks: bool = False) -> list[Generate]:
    requests = []
    for key in range(draw(st.integers(1, 7))):
        walked = tuple(draw(st.lists(st.integers(1, 2), max_size=4)))
        trunk = draw(st.integers(0, len(walked)))
        middle = draw(st.sampled_from([(), (Choice(((3,), (4, 5), (4, 6))),)]))
        preamble = draw(st.sampled_from([0, 5, 10]))
        number, tail = draw(st.integers(0, 1)), draw(st.sampled_from([1, 5]))
        segments = (Forced(walked), *middle, Free(draw(st.integers(1, 3))))
        preamble = min(preamble, 5 + tail)
        request = Generate(key, prompt(number, tail), preamble, segments, Sampling(0.9, seed=key), layers=LAYERS)
        requests.append(replace(request, trunk=trunk, chunked=chunks and draw(st.booleans())))
    return requests


@given(works(chunks=True), st.sampled_from([1, 2, 4]), st.sampled_from([0, 600, LARGE]))
def test_no_number_depends_on_what_is_shared(requests: list[Generate], width: int, cache: int) -> None:
    outlet = run(requests, ListStreams(width=width, layers=LAYERS), cache)
    for request in requests:
        assert said(outlet, request.key) == alone(request)


@pytest.mark.parametrize("width", [1, 2, 4])
@given(requests=works())
def test_nothing_is_evaluated_twice_while_it_is_kept(width: int, requests: list[Generate]) -> None:
    streams = ListStreams(width=width, layers=LAYERS)
    run(requests, streams)
    shares = {(request.prompt, min(request.preamble, len(request.prompt) - 1)) for request in requests}
    if all(request.trunk for request in requests):
        whole = sum(-(-(len(tokens) - preamble) // 4) for tokens, preamble in shares)
        assert sum(not batch.endswith(f"@{width}") for batch in evaluated(streams)) == whole
