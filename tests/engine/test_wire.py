"""Frames survive every cut, and unreadable ones are one line."""

import math
import os
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salt_tui.engine import wire
from salt_tui.engine.engine import NextTurn
from salt_tui.engine.errors import EngineError
from salt_tui.engine.events import (
    Activations,
    AsideTaken,
    Chosen,
    EngineNotice,
    EngineStopped,
    LoadProgress,
    PromptProgress,
    ReadoutTaken,
    SequenceEnded,
    Token,
)
from salt_tui.engine.model_info import Build, Capabilities, ContextInfo, Device, Exactness, ModelInfo
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.remote_server import Server
from salt_tui.engine.requests import Aside, ChatTurn, Choice, Forced, Free, Generate, Readout, Sampling, Spelled
from tests.examples import examples

pytestmark = pytest.mark.quick

BUILD = Build("llama.cpp", {"numpy": "2"}, True, (Device("CUDA0", "a card", "gpu", None, 3),), "AVX2 = 1")
MESSAGES: list[wire.Message] = [
    wire.DescribeBuild(),
    LoadOptions("/models/with [brackets] \udcff.gguf", "all", "", {"enable_thinking": False, "n": 3}, "2026-01-02"),
    LoadOptions("m.gguf", 12, None, {}, "2026-01-02"),
    LoadOptions("http://h/v1", 0, None, {}, "2026-01-02", Server("http://h/v1", "m", "KEY", True, {"a": {"b": [1]}})),
    Generate(4, (), 0, (Spelled((b"A", b" A"), (0, 0), True),), conversation=(ChatTurn("user", "x"),)),
    Chosen(4, 0, (-0.5, None), 0),
    EngineNotice("slow"),
    EngineStopped("gone"),
    wire.ListVocabulary(),
    wire.Encode(((ChatTurn("system", "é\n"), ChatTurn("user", "b")), ())),
    wire.Tokenize(b"\xff\x00a"),
    ContextOptions(4, 64, 512, 256, None, "auto", "f16", "q8_0"),
    Generate(2**40, (1, 2, 3), 2, (Forced((7,)), Free(10)), Sampling(0.5, 3, 0.9, 0.1, 2**63)),
    Generate(1, (), 0, (Free(1),)),
    Generate(
        *(
            1,
            (1,),
            0,
            (
                Forced((1, 2)),
                Choice(((1,), (2, 3)), (0, 0), True),
                Free(3, (b"\n\xff", b"x")),
                Aside((1,), "w"),
                Forced(()),
            ),
        ),
        readouts=(Readout(4, (1, 2), True, "words"), Readout(5, (7,))),
        layers=(0, 3),
        trunk=2,
    ),
    wire.ContinueConversation((1, 2), ChatTurn("user", "é")),
    NextTurn(1, (3, 4)),
    Generate(3, (), 0, (Free(4),), conversation=(ChatTurn("user", "é"),)),
    wire.TokenStep((Token(1, 0, None, None, None, (), (), False, False, b"\xc3"),)),
    wire.TokenStep((Token(1, 1, None, -0.5, None, (b"\xff", b"a"), (-0.5, -1.0), False, True, b""),)),
    wire.DefineSet("words", (1, 2)),
    wire.Accepted(),
    AsideTaken(1, 2, (-0.5, -math.inf), -1.5),
    AsideTaken(1, 2, (-0.5,), None),
    Chosen(1, 2, (-0.5, -math.inf), 0),
    ReadoutTaken(1, 2, (-0.5,), None, -math.inf),
    ReadoutTaken(1, 2, (), -0.1, None),
    Activations(2**40, 3, (0, 29), b"\x00\x01\xff\n" * 4),
    Activations(1, 0, (), b""),
    wire.Cancel(None),
    wire.Cancel(3),
    BUILD,
    ModelInfo(
        "d",
        "a",
        None,
        "Q4_1",
        1,
        2,
        3,
        4,
        5,
        6,
        None,
        True,
        ("careful",),
        BUILD,
        Capabilities("top_k", 1, 2, True, False, True),
        "x",
        (3, 7),
    ),
    wire.TokenSequences(((1, 2), ())),
    ContextInfo(4, 64, 512, 256, 2, 31, True, "f16", "f16", Exactness({"slots": math.inf}, False)),
    wire.Failure("model", "no"),
    LoadProgress(0.5),
    PromptProgress(1, 2, 3),
    SequenceEnded(1, "context", "too long"),
    SequenceEnded(1, "end"),
    wire.Vocabulary((b"", b"\xf0\x9f", b"ab")),
    wire.TokenStep(()),
]


def test_every_message_survives_the_wire_byte_by_byte() -> None:
    frames = wire.FrameBuffer()
    received: list[wire.Message] = []
    for byte in b"".join(map(wire.to_bytes, MESSAGES)):
        received += frames.feed(bytes([byte]))
    assert received == MESSAGES


NUMBERS = st.floats(max_value=0.0, allow_nan=False)
TOKENS = st.builds(
    lambda key, position, token, log_probability, entropy, top, forced, end: Token(
        key, position, token, log_probability, entropy, tuple(top), tuple(top.values()), forced, end
    ),
    st.integers(0, 2**62),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**31 - 1),
    NUMBERS,
    st.floats(0, 20),
    st.dictionaries(st.integers(0, 300_000), st.floats(max_value=0.0, width=32, allow_nan=False), max_size=20),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=examples(100), deadline=None)
@given(steps=st.lists(st.lists(TOKENS, max_size=4), max_size=4), cuts=st.lists(st.integers(1, 300)))
def test_token_steps_survive_any_cut(steps: list[list[Token]], cuts: list[int]) -> None:
    data = b"".join(wire.to_bytes(wire.TokenStep(tuple(tokens))) for tokens in steps)
    frames = wire.FrameBuffer()
    received: list[wire.Message] = []
    for cut in (*cuts, len(data)):
        received += frames.feed(data[:cut])
        data = data[cut:]
    received += frames.feed(data)
    assert received == [wire.TokenStep(tuple(tokens)) for tokens in steps]


def test_a_token_takes_about_two_hundred_bytes() -> None:
    token = Token(1, 0, 2, -0.1, 0.5, tuple(range(20)), (-1.0,) * 20, False, False)
    assert len(wire.to_bytes(wire.TokenStep((token,)))) < 200


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack("<IB", 0, 99),
        struct.pack("<IB", 2, ord("J")) + b"{}",
        struct.pack("<IB", 2, ord("J")) + b"x}",
        struct.pack("<IB", 3, ord("T")) + b"abc",
        struct.pack("<IB", 1, ord("V")) + b"a",
        struct.pack("<IB", 17, ord("J")) + b'{"type":"Cancel"}',
    ],
)
def test_what_is_no_message_is_one_line(frame: bytes) -> None:
    with pytest.raises(EngineError, match="report it") as caught:
        wire.FrameBuffer().feed(frame)
    assert "\n" not in str(caught.value)


def test_writing_to_a_pipe_whose_reader_is_gone() -> None:
    read, write = os.pipe()
    os.close(read)
    with pytest.raises(BrokenPipeError):
        wire.write_all(write, b"a")
    os.close(write)
