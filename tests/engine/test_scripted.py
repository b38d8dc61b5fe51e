"""The scripted child: its script, its backend, and the whole protocol through a real child process."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.engine.engine import Engine
from salt_tui.engine.engine_kinds import SCRIPTED_COMMAND
from salt_tui.engine.errors import ContextError, EngineError, ModelError
from salt_tui.engine.events import (
    Activations,
    Chosen,
    EngineDied,
    Event,
    PromptProgress,
    Reading,
    ReadoutTaken,
    SequenceEnded,
    Token,
)
from salt_tui.engine.models import ModelRegistry, open_engine, resolve_model
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.process import EngineProcess
from salt_tui.engine.requests import ChatTurn, Choice, Forced, Free, Generate, Readout
from salt_tui.engine.script import read_script
from salt_tui.engine.scripted_child import END_TOKEN, UNLISTED_LOG_PROBABILITY, ScriptedBackend

CONTEXT = ContextOptions(2, 256, 64, 64, None, "auto", "f16", "f16")
PROMPT = (ChatTurn("system", "Copy."), ChatTurn("user", "ATG"))
SCRIPT: dict[str, Any] = {
    "replies": [
        {"match": "ATG", "tokens": [["TA", -0.25, 0.5, [["T", -2.0], ["G", -1.5]]], ["C", -0.5]]},
        {"match": "GGG", "tokens": [["A", -0.1]] * 3, "end": False},
    ]
}


def write(folder: Path, script: object) -> Path:
    path = folder / "model.scripted.json"
    path.write_text(json.dumps(script))
    return path


def load_options(path: Path, template: str | None = None) -> LoadOptions:
    return LoadOptions(str(path), "auto", template, {}, "2026-04-24")


class Recorder:
    """An outlet that keeps everything in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tokens(self, tokens: list[Token]) -> None:
        """Keep."""
        self.events += tokens

    def reading(self, reading: Reading) -> None:
        """Keep."""
        self.events.append(reading)

    def progress(self, progress: PromptProgress) -> None:
        """Keep."""
        self.events.append(progress)

    def ended(self, ended: SequenceEnded) -> None:
        """Keep."""
        self.events.append(ended)


def backend(folder: Path, script: object = SCRIPT, context: ContextOptions = CONTEXT) -> ScriptedBackend:
    made = ScriptedBackend()
    made.load(load_options(write(folder, script)), lambda _: None)
    made.open_context(context)
    return made


def play(made: ScriptedBackend, *requests: Generate) -> list[Event]:
    recorder = Recorder()
    for request in requests:
        made.submit(request)
    while made.step(recorder):
        pass
    return recorder.events


def request(made: ScriptedBackend, text: str = "ATG", key: int = 1, **changes: Any) -> Generate:
    prompt = made.encode([(ChatTurn("user", text),)])[0]
    return replace(Generate(key, prompt, 0, (Free(10),)), **changes)


def answer(made: ScriptedBackend, events: list[Event], key: int = 1) -> tuple[str, str]:
    """Return the text and the stop reason of one sequence."""
    pieces = made.vocabulary()
    text = b"".join(pieces[e.id] for e in events if isinstance(e, Token) and e.key == key and not e.end)
    return text.decode(), next(e.stop_reason for e in events if isinstance(e, SequenceEnded) and e.key == key)


# --- the backend ------------------------------------------------------------------------------------------------


def test_a_reply_is_played_exactly(tmp_path: Path) -> None:
    made = backend(tmp_path)
    progress, first, second, last, ended = play(made, request(made))
    ids = {piece: number for number, piece in enumerate(made.vocabulary())}
    assert progress == PromptProgress(1, len(request(made).prompt), len(request(made).prompt))
    alternatives = (ids[b"TA"], ids[b"G"], ids[b"T"])
    assert first == Token(1, 0, ids[b"TA"], -0.25, 0.5, alternatives, (-0.25, -1.5, -2.0), False, False)
    assert isinstance(second, Token)
    probability = math.exp(-0.5)
    least = -probability * math.log(probability) - (1 - probability) * math.log(1 - probability)
    assert (second.log_probability, second.entropy) == (-0.5, pytest.approx(least, abs=1e-12))
    assert isinstance(last, Token)
    assert (last.id, last.end) == (0, True)
    assert ended == SequenceEnded(1, "end")
    assert play(backend(tmp_path), request(made)) == [progress, first, second, last, ended]


@pytest.mark.parametrize(("limit", "text", "reason"), [(1, "TA", "length"), (2, "TAC", "length"), (3, "TAC", "end")])
def test_the_token_limit(tmp_path: Path, limit: int, text: str, reason: str) -> None:
    made = backend(tmp_path)
    assert answer(made, play(made, request(made, segments=(Free(limit),)))) == (text, reason)


def test_a_reply_without_an_end_is_cut_by_the_limit(tmp_path: Path) -> None:
    made = backend(tmp_path)
    assert answer(made, play(made, request(made, "GGG"))) == ("AAA", "length")


def test_the_context_is_exact(tmp_path: Path) -> None:
    made = backend(tmp_path)
    one = request(made)
    made.open_context(replace(CONTEXT, context=len(one.prompt) + 1))
    assert answer(made, play(made, one)) == ("TA", "context")
    made.open_context(replace(CONTEXT, context=len(one.prompt)))
    size = len(one.prompt)
    message = f"the prompt has {size} tokens and the context {size}"
    assert play(made, one) == [SequenceEnded(1, "context", message)]


def test_forced_tokens_take_the_place_of_scripted_ones(tmp_path: Path) -> None:
    made = backend(tmp_path)
    listed, unlisted = made.tokenize(b"G")[0], made.tokenize(b"z")[0]
    tokens = [
        e for e in play(made, request(made, segments=(Forced((listed, unlisted)), Free(8)))) if isinstance(e, Token)
    ]
    assert [(t.id, t.log_probability, t.forced) for t in tokens[:2]] == [
        (listed, -1.5, True),
        (unlisted, UNLISTED_LOG_PROBABILITY, True),
    ]
    assert tokens[0].entropy == 0.5
    assert (tokens[2].end, tokens[2].forced) == (True, False)


def test_ids_outside_the_vocabulary_fail_the_sequence(tmp_path: Path) -> None:
    made = backend(tmp_path)
    (ended,) = play(made, request(made, segments=(Forced((99_999,)),)))
    assert ended == SequenceEnded(1, "failed", "a token id outside the vocabulary")


def test_without_a_context_a_sequence_fails(tmp_path: Path) -> None:
    made = backend(tmp_path)
    made.load(load_options(write(tmp_path, SCRIPT)), lambda _: None)
    assert play(made, request(made)) == [SequenceEnded(1, "failed", "no context is open")]


def test_the_match_nearest_to_the_end_of_the_prompt_wins_then_the_longest(tmp_path: Path) -> None:
    replies = [{"match": text, "tokens": [[str(index), -0.1]]} for index, text in enumerate(["AA", "CC", "ACC"])]
    made = backend(tmp_path, {"replies": replies})
    assert answer(made, play(made, request(made, "CC AA")))[0] == "0"
    assert answer(made, play(made, request(made, "AA CC")))[0] == "1"
    assert answer(made, play(made, request(made, "AA ACC")))[0] == "2"
    (ended,) = play(made, request(made, "GG"))
    assert ended == SequenceEnded(1, "failed", "the script has no reply to this prompt")


def test_replies_without_a_match_are_served_in_order_of_submission(tmp_path: Path) -> None:
    made = backend(tmp_path, {"replies": [{"tokens": [[text, -0.1]]} for text in "xy"]})
    events = play(made, *(request(made, key=key) for key in range(3)))
    assert [answer(made, events, key)[0] for key in range(3)] == ["x", "y", "x"]


def test_at_most_width_sequences_run_at_once_and_the_others_wait_in_order(tmp_path: Path) -> None:
    made = backend(tmp_path)
    events = play(made, *(request(made, key=key) for key in (5, 3, 4)))
    tokens = [e.key for e in events if isinstance(e, Token)]
    assert tokens == [5, 3, 5, 3, 5, 3, 4, 4, 4]
    assert [e.key for e in events if isinstance(e, SequenceEnded)] == [5, 3, 4]


def test_a_shared_preamble_is_evaluated_once(tmp_path: Path) -> None:
    made = backend(tmp_path, SCRIPT | {"prompt_tokens_per_step": 10}, replace(CONTEXT, width=1))
    total = len(request(made).prompt)
    events = play(made, request(made, preamble=15), request(made, key=2, preamble=15))
    done = [(e.key, e.done) for e in events if isinstance(e, PromptProgress)]
    assert total > 25
    assert [number for key, number in done if key == 1] == [*range(10, total, 10), total]
    assert [number for key, number in done if key == 2] == [*range(25, total, 10), total]


def test_cancel_ends_one_or_all(tmp_path: Path) -> None:
    made, recorder = backend(tmp_path), Recorder()
    for key in (1, 2, 3):
        made.submit(request(made, key=key))
    made.step(recorder)
    made.cancel(3, recorder)
    made.cancel(77, recorder)
    made.cancel(None, recorder)
    ends = [e for e in recorder.events if isinstance(e, SequenceEnded)]
    assert ends == [SequenceEnded(key, "cancelled") for key in (3, 1, 2)]
    assert made.step(recorder) is False


def test_tokens_spell_the_text(tmp_path: Path) -> None:
    made = backend(tmp_path, SCRIPT | {"pieces": ["é", "AT", "ATG"]})

    @given(st.binary() | st.text(alphabet="ATGCé<|im_end>").map(str.encode))
    def check(text: bytes) -> None:
        assert b"".join(made.vocabulary()[number] for number in made.tokenize(text)) == text

    check()
    assert len(made.tokenize("éATGC".encode())) == 3


def test_the_longest_known_text_is_taken_and_special_text_only_in_prompts(tmp_path: Path) -> None:
    made = backend(tmp_path, SCRIPT | {"pieces": ["AT", "ATG"]})
    assert [made.vocabulary()[number] for number in made.tokenize(b"ATATGA")] == [b"AT", b"ATG", b"A"]
    assert 0 not in made.tokenize(b"<|im_end|>")
    assert 0 in made.encode([PROMPT])[0]


def test_templates(tmp_path: Path) -> None:
    made, path = ScriptedBackend(), write(tmp_path, SCRIPT)

    def prompt(template: str | None) -> str:
        made.load(load_options(path, template), lambda _: None)
        return b"".join(made.vocabulary()[number] for number in made.encode([PROMPT])[0]).decode()

    assert prompt(None).endswith("<|im_start|>user\nATG<|im_end|>\n<|im_start|>assistant\n")
    assert prompt("") == "Copy.\n\nProblem:\nATG\n\nAnswer:\n"
    assert prompt("{{ messages[1].content }}{{ messages[0].content }}") == "ATGCopy."
    info = made.load(load_options(path, "{% if add_generation_prompt %}<think>{% endif %}"), lambda _: None)
    assert info.thinking_open is True


def test_model_information_and_failures(tmp_path: Path) -> None:
    made = ScriptedBackend()
    script = SCRIPT | {
        "model": {"description": "d", "trained_context": 77, "warnings": ["w"]},
        "exactness": {"slots": 0.5},
    }
    info = made.load(load_options(write(tmp_path, script)), lambda _: None)
    assert (info.description, info.trained_context, info.warnings) == ("d", 77, ("w",))
    assert info.vocabulary_size == len(made.vocabulary()) == 257 + 1  # TA; the others are single bytes
    assert made.open_context(CONTEXT).exactness.exact is False
    assert made.open_context(replace(CONTEXT, check="none")).exactness.exact is None
    with pytest.raises(ContextError, match="multiple of 4"):
        made.open_context(replace(CONTEXT, width=5))
    with pytest.raises(ModelError, match="no memory"):
        made.load(load_options(write(tmp_path, SCRIPT | {"load_failure": "no memory"})), lambda _: None)
    made.load(load_options(write(tmp_path, SCRIPT | {"context_failure": "too wide"})), lambda _: None)
    with pytest.raises(ContextError, match="too wide"):
        made.open_context(CONTEXT)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ([], "must be an object"),
        ({}, '"replies" is missing'),
        ({"replies": [], "peaces": []}, 'unknown key "peaces"; did you mean pieces'),
        ({"replies": [{"tokenz": []}]}, 'reply 0: unknown key "tokenz"; did you mean tokens'),
        ({"replies": [{"tokens": [["a"]]}]}, "reply 0, token 0 must be"),
        ({"replies": [{"tokens": [["", -1]]}]}, "must not be empty"),
        ({"replies": [{"tokens": [["a", 0.5]]}]}, "at most 0, not 0.5"),
        ({"replies": [{"tokens": [["a", -1, -1]]}]}, "at least 0 nats"),
        ({"replies": [{"tokens": [["a", -1, 1, [["b"]]]]}]}, "an alternative must be"),
        ({"replies": [{"tokens": [["a", -1, 1, [["b", -1]] * 20]]}]}, "fewer than 20"),
        ({"replies": [{"crash": {"after": True}}]}, '"after" has the wrong type'),
        ({"replies": [], "pieces": [""]}, "none of them empty"),
        ({"replies": [], "prompt_tokens_per_step": 0}, "1 token"),
    ],
)
def test_mistakes_in_scripts_are_one_line(tmp_path: Path, script: object, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        read_script(write(tmp_path, script))
    assert str(caught.value).isprintable()


def test_a_script_that_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "a.scripted.json"
    with pytest.raises(ModelError, match="cannot be read"):
        read_script(path)
    path.write_text("{")
    with pytest.raises(ModelError, match="not valid JSON"):
        read_script(path)


# --- through a real child process -------------------------------------------------------------------------------


def start(folder: Path, script: object, context: ContextOptions = CONTEXT) -> Engine:
    resolved = resolve_model(str(write(folder, script)), ModelRegistry("", {}))
    assert resolved.engine == "scripted"
    engine = open_engine(resolved, folder / "engine.log")
    try:
        engine.load(load_options(resolved.path))
        engine.open_context(context)
    except BaseException:
        engine.close()
        raise
    return engine


def collect(engine: Engine, until: Callable[[Event], bool]) -> list[Event]:
    events: list[Event] = []
    deadline = time.monotonic() + 10
    while not any(until(event) for event in events):
        assert time.monotonic() < deadline, events
        events += engine.events(0.5)
    return events


def ends(event: Event) -> bool:
    return isinstance(event, SequenceEnded)


def test_the_child_plays_what_the_backend_plays(tmp_path: Path) -> None:
    made = backend(tmp_path)
    expected = play(made, request(made))
    with start(tmp_path, SCRIPT) as engine:
        assert engine.vocabulary() == made.vocabulary()
        assert engine.tokenize("TAé".encode()) == made.tokenize("TAé".encode())
        (prompt,) = engine.encode([(ChatTurn("user", "ATG"),)])
        engine.submit(Generate(1, prompt, 0, (Free(10),)))
        assert collect(engine, ends) == expected


def test_a_cancel_ends_a_step_that_would_outlast_the_test(tmp_path: Path) -> None:
    with start(tmp_path, SCRIPT | {"seconds_per_step": 3_000}) as engine:
        engine.submit(Generate(1, engine.tokenize(b"ATG"), 0, (Free(10),)))
        assert engine.events(0.3) == []  # by now the child waits in its step
        engine.cancel()
        assert SequenceEnded(1, "cancelled") in collect(engine, ends)


def test_a_crash_happens_once_and_the_second_attempt_is_whole(tmp_path: Path) -> None:
    reply = SCRIPT["replies"][0] | {"crash": {"after": 1, "signal": 9}}
    with start(tmp_path, {"replies": [reply]}) as engine:
        engine.submit(Generate(1, engine.tokenize(b"ATG"), 0, (Free(10),)))
        events = collect(engine, lambda event: isinstance(event, EngineDied))
        died = events[-1]
        assert isinstance(died, EngineDied)
        assert died.exit_code == -9
        assert [type(event) for event in events] == [PromptProgress, Token, EngineDied]
        engine.restart()
        engine.submit(Generate(2, engine.tokenize(b"ATG"), 0, (Free(10),)))
        assert collect(engine, ends)[-1] == SequenceEnded(2, "end")


def test_a_load_failure_is_a_model_error_in_the_parent(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no memory"):
        start(tmp_path, SCRIPT | {"load_failure": "no memory"})


def test_a_template_that_refuses_the_conversation_is_one_line(tmp_path: Path) -> None:
    with (
        start(
            tmp_path, SCRIPT | {"template": "{{ raise_exception('no') if messages[-1].content == 'ATG' }}"}
        ) as engine,
        pytest.raises(ModelError, match="the chat template fails"),
    ):
        engine.encode([PROMPT[1:]])


def test_a_template_that_computes_without_end_is_the_models_fault(tmp_path: Path) -> None:
    path = write(tmp_path, SCRIPT | {"template": "{% if false %}{{ 9**(9**9) }}{% endif %}"})
    too_long = pytest.raises(ModelError, match="more than 4 s of processor time for one prompt")
    with EngineProcess(SCRIPTED_COMMAND, tmp_path / "log") as engine, too_long:
        engine.load(load_options(path))


# --- what studies ask for ---------------------------------------------------------------------------------------


def test_a_choice_reads_what_the_script_lists(tmp_path: Path) -> None:
    made = backend(tmp_path)
    first, second, listed, then, stray = (made.tokenize(text)[0] for text in (b"TA", b"C", b"G", b"T", b"x"))
    options = ((listed, second), (first,), (stray,))
    events = play(made, request(made, segments=(Choice(options), Free(9))))
    chosen = next(event for event in events if isinstance(event, Chosen))
    # The second position lists C alone, at -0.5.
    assert chosen == Chosen(1, 0, (-1.5 - 0.5, -0.25, UNLISTED_LOG_PROBABILITY), 1)
    tokens = [event for event in events if isinstance(event, Token)]
    assert [(token.id, token.forced) for token in tokens] == [(first, True), (second, False), (0, False)]
    grouped = play(made, request(made, segments=(Choice(((first,), (listed,), (then,)), (0, 1, 1)),)))
    assert next(event.chosen for event in grouped if isinstance(event, Chosen)) == 0


def test_readouts_trunks_stops_and_sets(tmp_path: Path) -> None:
    made = backend(tmp_path)
    first, listed, stray = (made.tokenize(text)[0] for text in (b"TA", b"G", b"x"))
    made.define_set("some", (listed, made.tokenize(b"T")[0]))
    readout = Readout(0, (first, stray), rest=True, mass_of="some")
    events = play(made, request(made, readouts=(readout,)))
    taken = next(event for event in events if isinstance(event, ReadoutTaken))
    assert taken.log_probabilities == (-0.25, UNLISTED_LOG_PROBABILITY)
    assert taken.log_mass == pytest.approx(math.log(math.exp(-1.5) + math.exp(-2.0)))
    assert taken.rest is not None
    assert -1.5 < taken.rest <= 0
    (ended,) = play(made, request(made, readouts=(Readout(0, mass_of="none"),)))
    assert ended == SequenceEnded(1, "failed", "no set of tokens is called 'none'")
    tokens = [
        e for e in play(made, request(made, segments=(Forced((listed,)), Free(5)), trunk=1)) if isinstance(e, Token)
    ]
    assert [(token.position, token.id, token.forced) for token in tokens] == [
        (1, made.tokenize(b"C")[0], False),
        (2, 0, False),
    ]
    stopped = play(made, request(made, segments=(Free(9, (b"A",)),)))
    assert stopped[-1] == SequenceEnded(1, "done")
    with pytest.raises(EngineError, match="outside the vocabulary"):
        made.define_set("bad", (99_999,))


def test_activations_are_the_same_every_time_and_differ_by_layer_and_position(tmp_path: Path) -> None:
    made = backend(tmp_path, SCRIPT | {"model": {"activation_layers": 3, "activation_width": 5}})
    made.open_context(replace(CONTEXT, layers=(0, 2)))
    asked = request(made, layers=(2, 0))
    found = [event for event in play(made, asked) if isinstance(event, Activations)]
    assert [event for event in play(made, asked) if isinstance(event, Activations)] == found
    assert [event.position for event in found] == [0, 1, 2]
    vectors = np.stack([np.frombuffer(event.values, "<f4").reshape(2, 5) for event in found])
    assert len(np.unique(vectors.reshape(6, 5), axis=0)) == 6
    assert np.abs(vectors).max() <= 1
    only = [event for event in play(made, replace(asked, layers=(0,))) if isinstance(event, Activations)]
    assert [event.values for event in only] == [event.values[20:] for event in found]
    assert play(made, replace(asked, layers=(1,)))[-1].stop_reason == "failed"  # type: ignore[union-attr]
    with pytest.raises(ContextError, match="no layer 4"):
        made.open_context(replace(CONTEXT, layers=(4,)))


def test_the_next_turn(tmp_path: Path) -> None:
    made = backend(tmp_path)
    reply = made.tokenize(b"TAC")
    turn = made.next_turn((*reply, END_TOKEN), ChatTurn("user", "Is <|im_end|> right?"))
    assert turn.dropped == 1
    text = b"".join(made.vocabulary()[token] for token in turn.tokens).decode()
    assert text == ("<|im_end|>\n<|im_start|>user\nIs <|im_end|> right?<|im_end|>\n<|im_start|>assistant\n")
    assert turn.tokens.count(END_TOKEN) == 2
    assert made.next_turn(reply, ChatTurn("user", "x")).dropped == 0


def test_all_of_it_crosses_the_pipe(tmp_path: Path) -> None:
    made = backend(tmp_path)
    made.open_context(replace(CONTEXT, layers=(1,)))
    made.define_set("some", (1, 2, 3))
    first, second = made.tokenize(b"TA")[0], made.tokenize(b"C")[0]
    asked = request(
        made,
        segments=(Forced((first,)), Choice(((second,), (5, 6))), Free(3)),
        readouts=(Readout(1, (5,), rest=True, mass_of="some"),),
        layers=(1,),
        trunk=1,
    )
    expected = play(made, asked)
    with start(tmp_path, SCRIPT, replace(CONTEXT, layers=(1,))) as engine:
        engine.define_set("some", (1, 2, 3))
        assert engine.next_turn((first,), ChatTurn("user", "x")) == made.next_turn((first,), ChatTurn("user", "x"))
        for _ in range(2):
            engine.submit(asked)
            assert [e for e in collect(engine, ends) if not isinstance(e, PromptProgress)] == [
                e for e in expected if not isinstance(e, PromptProgress)
            ]
            engine.restart()
