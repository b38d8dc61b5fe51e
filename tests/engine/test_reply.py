"""Segments of a reply on streams that are Python lists: choices, readouts, stop bytes, trunks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.engine.choices import choose_option
from salt_tui.engine.decoding import Decoder
from salt_tui.engine.events import (
    Activations,
    AsideTaken,
    Chosen,
    PromptProgress,
    ReadoutTaken,
    SequenceEnded,
    StopReason,
    Token,
)
from salt_tui.engine.interruption import Interruption
from salt_tui.engine.reply import Vocabulary
from salt_tui.engine.requests import Aside, Choice, Forced, Free, Generate, Readout, Sampling, Segment, check_request
from tests.engine.test_decoding import END, PIECES, VOCABULARY, ListStreams, Recorder

PROMPT = tuple(range(1, 8))


def play(segments: tuple[Segment, ...], streams: ListStreams | None = None, **options: object) -> Recorder:
    request = Generate(0, PROMPT, 3, segments, **options)  # type: ignore[arg-type]
    check_request(request)
    vocabulary = Vocabulary(VOCABULARY, {END}, lambda: PIECES, {"few": np.array([2, 5, 9])})
    decoder, outlet = Decoder(streams or ListStreams(), vocabulary, Interruption()), Recorder()
    decoder.submit(request)
    while decoder.step(outlet):
        pass
    return outlet


def ids(outlet: Recorder) -> tuple[int, ...]:
    return tuple(token.id for token in outlet.answer(0))


def end(outlet: Recorder) -> StopReason:
    (ended,) = outlet.ends().values()
    return ended.stop_reason


def log_probabilities_after(tokens: tuple[int, ...]) -> np.ndarray:
    """Return the log-softmax after the prompt and these tokens, computed here from the raw logits."""
    streams = ListStreams()
    streams.held[0] = [(token, cut) for token, cut in zip(PROMPT, (3, 3, 3, 4, 4, 4, 4), strict=True)]
    streams.held[0] += [(token, 1) for token in tokens]
    logits = streams._logits(0).astype(np.float64)
    return logits - np.log(np.exp(logits).sum())


OPTIONS = ((4,), (5, 6), (5, 7, 8), (9, 1), (5, 7, 3))


def test_a_choice_reports_every_option_and_appends_the_likeliest() -> None:
    outlet = play((Forced((2,)), Choice(OPTIONS), Free(3)))
    (chosen,) = [event for event in outlet.events if isinstance(event, Chosen)]
    expected = [
        sum(log_probabilities_after((2, *option[:place]))[token] for place, token in enumerate(option))
        for option in OPTIONS
    ]
    assert chosen.log_probabilities == pytest.approx(expected, abs=1e-5)
    assert chosen.position == 1
    assert chosen.chosen == int(np.argmax(expected))
    option = OPTIONS[chosen.chosen]
    # Walking the options leaves no trace: forcing the chosen one gives the same numbers.
    forced = play((Forced((2, *option)), Free(3)))
    assert outlet.answer(0) == forced.answer(0)
    assert [token.position for token in outlet.answer(0)] == list(range(1 + len(option) + 3))
    # The choice is reported before its tokens.
    assert outlet.events.index(chosen) < outlet.events.index(outlet.answer(0)[1])


def test_options_of_one_token_are_read_without_walking_also_where_nothing_can_be_cut() -> None:
    streams = ListStreams(width=1, can_cut=False)
    outlet = play((Choice(((4,), (9,))), Free(1)), streams)
    assert streams.batches[-2:] == ["4@0", "step"]
    assert len(outlet.answer(0)) == 2
    refused = play((Choice(((4,), (9, 1))),), ListStreams(can_cut=False))
    assert end(refused) == "failed"
    assert "cut back" in str(refused.ends()[0].message)


def test_a_choice_needs_room_for_its_longest_option() -> None:
    for room, reason in ((2, "context"), (3, "done")):
        outlet = play((Choice(OPTIONS),), ListStreams(context=len(PROMPT) + room))
        assert end(outlet) == reason
        assert bool(outlet.answer(0)) is (reason == "done")


def test_an_aside_is_reported_and_leaves_no_trace() -> None:
    tokens = (5, 7, 8)
    segments: tuple[Segment, ...] = (Forced((2,)), Aside(tokens, "few"), Aside((4,)), Free(4))
    for sampling in (Sampling(), Sampling(temperature=1.3, seed=3)):
        outlet = play(segments, sampling=sampling)
        first, second = [event for event in outlet.events if isinstance(event, AsideTaken)]
        rows = [log_probabilities_after((2, *tokens[:place])) for place in range(4)]
        assert first.log_probabilities == pytest.approx([rows[i][token] for i, token in enumerate(tokens)], abs=1e-5)
        assert first.log_mass == pytest.approx(np.log(np.exp(rows[3][[2, 5, 9]]).sum()), abs=1e-5)
        assert (first.position, second.position, second.log_mass) == (1, 1, None)
        assert second.log_probabilities == pytest.approx([rows[0][4]], abs=1e-5)
        assert outlet.answer(0) == play((Forced((2,)), Free(4)), sampling=sampling).answer(0)


def test_an_aside_needs_room_a_known_set_and_streams_that_can_be_cut() -> None:
    segments = (Forced((2,)), Aside((5, 7)), Free(1))
    assert end(play(segments, ListStreams(context=len(PROMPT) + 2))) == "context"
    assert end(play(segments, ListStreams(context=len(PROMPT) + 3))) == "length"
    assert end(play(segments, ListStreams(can_cut=False))) == "failed"
    assert end(play((Aside((5,), "unknown"), Free(1)))) == "failed"


def test_choices_walk_beside_each_other() -> None:
    vocabulary = Vocabulary(VOCABULARY, {END}, lambda: PIECES, {})
    requests = [Generate(key, PROMPT[: 5 + key], 3, (Forced((key,)), Choice(OPTIONS), Free(2))) for key in range(3)]
    together = Recorder()
    decoder = Decoder(ListStreams(width=4), vocabulary, Interruption())
    for request in requests:
        decoder.submit(request)
    while decoder.step(together):
        pass
    for request in requests:
        alone, decoder = Recorder(), Decoder(ListStreams(width=4), vocabulary, Interruption())
        decoder.submit(request)
        while decoder.step(alone):
            pass
        mine = [event for event in together.events if event.key == request.key]
        assert [one for one in mine if not isinstance(one, PromptProgress)] == [
            one for one in alone.events if not isinstance(one, PromptProgress)
        ]


def test_spellings_of_a_label_are_added() -> None:
    # Alone the third option is the likeliest, together the first two are.
    values = [math.log(0.3), math.log(0.25), math.log(0.4)]
    options = ((1,), (2,), (3,))
    assert choose_option(Choice(options), values, lambda: 0.0) == 2
    assert choose_option(Choice(options, (7, 7, 1)), values, lambda: 0.0) == 0
    # A tie goes to the smaller group and to the first option.
    assert choose_option(Choice(options, (7, 1, 7)), [-1.0, -1.0, -math.inf], lambda: 0.0) == 1
    assert choose_option(Choice(options, (0, 0, 1)), [-1.0, -1.0, -math.inf], lambda: 0.0) == 0
    assert choose_option(Choice(options), [-math.inf] * 3, lambda: 0.0) == 0


def test_a_sampled_choice_follows_the_draw() -> None:
    values = [math.log(0.1), math.log(0.3), math.log(0.1)]  # renormalised .2 .6 .2; the second comes first
    choice = Choice(((1,), (2,), (3,)), sampled=True)
    last = math.nextafter(1.0, 0.0)
    draws = iter((0.0, 0.59, 0.61, 0.79, 0.81, last))
    assert [choose_option(choice, values, draws.__next__) for _ in range(6)] == [1, 1, 0, 0, 2, 2]
    assert choose_option(choice, [-math.inf, -3.0, -math.inf], lambda: last) == 1
    with pytest.raises(ValueError, match="possible"):
        choose_option(choice, [-math.inf] * 3, lambda: 0.0)
    # The draw is that of the choice's position, whatever stands before it.
    sampling = Sampling(1.0, seed=5)
    free = play((Free(6),), sampling=sampling)
    said = ids(free)
    every = tuple((number,) for number in range(VOCABULARY))
    chosen = play((Forced(said[:3]), Choice(every, sampled=True), Free(2)), sampling=sampling)
    assert ids(chosen) == said


def test_readouts_are_read_from_the_row_of_their_position() -> None:
    readouts = (Readout(0, (4, 9)), Readout(2, (4, 9), rest=True, mass_of="few"), Readout(9, (1,)))
    outlet = play((Forced((2, 3)), Free(2)), readouts=readouts)
    first, second = [event for event in outlet.events if isinstance(event, ReadoutTaken)]
    row = log_probabilities_after(())
    assert first == ReadoutTaken(0, 0, pytest.approx((row[4], row[9]), abs=1e-5), None, None)
    row = log_probabilities_after((2, 3))
    probabilities = np.exp(row)
    assert second.log_probabilities == pytest.approx((row[4], row[9]), abs=1e-5)
    assert second.rest == pytest.approx(math.log(1 - probabilities[4] - probabilities[9]), abs=1e-5)
    assert second.log_mass == pytest.approx(math.log(probabilities[[2, 5, 9]].sum()), abs=1e-5)
    assert outlet.events.index(second) < outlet.events.index(outlet.answer(0)[2])
    assert end(play((Free(1),), readouts=(Readout(0, mass_of="absent"),))) == "failed"


def test_stop_bytes_end_the_segment_with_the_token_that_completes_them() -> None:
    said = ids(play((Free(9),)))
    text = b"".join(PIECES[token] for token in said)
    stop = text[3:5]
    first = text.index(stop) + 2  # tokens until the stop is complete
    outlet = play((Free(9, (b"never", stop)),))
    assert (ids(outlet), end(outlet)) == (said[:first], "done")
    outlet = play((Free(9, (stop,)), Forced((7, 8)), Free(1)))
    assert ids(outlet)[: first + 2] == (*said[:first], 7, 8)
    assert [token.forced for token in outlet.answer(0)] == [False] * first + [True, True, False]
    # Bytes before the segment do not count.
    outlet = play((Forced(said[: first - 1]), Free(1, (stop,))))
    assert end(outlet) == "length"


@pytest.mark.parametrize(
    ("segments", "reason"),
    [
        ((Free(2),), "length"),
        ((Forced((1, 2)),), "done"),
        ((Free(2), Forced((1,))), "done"),
        ((Forced((1, END)),), "end"),
        ((Forced((END, 1)),), "done"),
        ((Forced((END,)), Free(1)), "length"),
        ((Choice(((END,),)),), "end"),
        ((Choice(((4,),)), Forced(())), "done"),
    ],
)
def test_why_a_sequence_ends(segments: tuple[Segment, ...], reason: StopReason) -> None:
    outlet = play(segments)
    assert end(outlet) == reason
    assert isinstance(outlet.events[-1], SequenceEnded)


def test_a_trunk_is_walked_but_not_reported() -> None:
    whole = play((Forced((2, 3, 4)), Free(3)), sampling=Sampling(1.0, seed=4))
    for trunk in (1, 2, 3):
        readouts = (Readout(trunk, (1,)),)
        outlet = play((Forced((2, 3, 4)), Free(3)), sampling=Sampling(1.0, seed=4), trunk=trunk, readouts=readouts)
        assert outlet.answer(0) == whole.answer(0)[trunk:]
        (taken,) = [event for event in outlet.events if isinstance(event, ReadoutTaken)]
        assert taken.position == trunk


def activations(outlet: Recorder) -> list[tuple[int, list[list[float]]]]:
    found = [event for event in outlet.events if isinstance(event, Activations)]
    return [(one.position, np.frombuffer(one.values, "<f4").reshape(len(one.layers), -1).tolist()) for one in found]


def test_activations_are_those_of_the_row_that_produced_the_token() -> None:
    streams = ListStreams(layers=(0, 2, 5))
    outlet = play((Forced((2, 3)), Choice(((4,), (5, 6), (5, 7))), Free(2)), streams, layers=(5, 0))
    tokens = ids(outlet)
    assert [event.position for event in outlet.events if isinstance(event, Activations)] == list(range(len(tokens)))
    before = (PROMPT[-1], *tokens)
    for position, rows in activations(outlet):
        assert rows == [[5, 7 + position, before[position]], [0, 7 + position, before[position]]]
    # Nothing is asked for, nothing comes; what is not taken is refused.
    assert activations(play((Free(2),), ListStreams(layers=(0,)))) == []
    assert end(play((Free(2),), ListStreams(layers=(0,)), layers=(1,))) == "failed"
    # Behind a trunk the first vectors are those of its last token.
    forked = play((Forced((2, 3, 4)), Free(2)), ListStreams(layers=(0,)), layers=(0,), trunk=3)
    assert activations(forked)[0] == (3, [[0, 10, 4]])


GOOD = Generate(1, (1, 2), 1, (Forced((1, 2)), Choice(((1,), (2, 3))), Free(2, (b"x",))), trunk=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": ()},
        {"preamble": 3},
        {"segments": ()},
        {"segments": (Forced(()),), "trunk": 0},
        {"segments": (Forced((1,)),)},
        {"segments": (Free(0),), "trunk": 0},
        {"segments": (Free(1, (b"",)),), "trunk": 0},
        {"segments": (Free(2), Forced((1, 2)))},
        {"segments": (Choice(()),), "trunk": 0},
        {"segments": (Choice(((1,), ())),), "trunk": 0},
        {"segments": (Choice(((1,), (1, 2))),), "trunk": 0},
        {"segments": (Choice(((1, 2), (3,), (1, 2))),), "trunk": 0},
        {"segments": (Choice(((1,), (2,)), (1,)),), "trunk": 0},
        {"segments": (Aside(()), Free(1)), "trunk": 0},
        {"segments": (Free(1), Aside((1,))), "trunk": 0},
        {"trunk": 3},
        {"readouts": (Readout(0, (1,)),)},
        {"readouts": (Readout(1),)},
        {"readouts": (Readout(1, (1, 1)),)},
        {"layers": (1, 1)},
        {"layers": (-1,)},
    ],
)
def test_requests_without_sense_are_refused(changes: dict[str, object]) -> None:
    check_request(GOOD)
    with pytest.raises(ValueError, match=r"\w"):
        check_request(replace(GOOD, **changes))  # type: ignore[arg-type]


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple), min_size=1, max_size=6, unique=True),
    st.booleans(),
)
def test_every_choice_appends_one_of_its_options(options: list[tuple[int, ...]], sampled: bool) -> None:
    choice = Choice(
        tuple(one for one in options if not any(one != o and o == one[: len(o)] for o in options)), (), sampled
    )
    outlet = play((choice, Free(1)))
    tokens = outlet.answer(0)
    (chosen,) = [event for event in outlet.events if isinstance(event, Chosen)]
    option = choice.options[chosen.chosen]
    assert tuple(token.id for token in tokens[:-1]) == option
    assert sum(token.log_probability for token in tokens[:-1]) == pytest.approx(chosen.log_probabilities[chosen.chosen])
    assert isinstance(tokens[0], Token)


def test_an_end_token_ends_a_segment_where_the_reply_goes_on_past_it() -> None:
    """The likeliest token is made the end, as for a model that has nothing more to say."""
    request = Generate(0, PROMPT, 3, (Free(5, past_end=True), Forced((2,)), Free(5, past_end=True)))
    vocabulary = Vocabulary(VOCABULARY, set(range(VOCABULARY)), lambda: PIECES, {})
    decoder, outlet = Decoder(ListStreams(), vocabulary, Interruption()), Recorder()
    decoder.submit(request)
    while decoder.step(outlet):
        pass
    assert [(token.position, token.forced, token.end) for token in outlet.answer(0)] == [
        (0, False, True), (1, True, True), (2, False, True),
    ]  # fmt: skip
    assert end(outlet) == "done"
