"""Forks, snapshots, cuts and choices of real models: the same bits as computing everything anew."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from salt_tui.engine.engine import NextTurn
from salt_tui.engine.errors import ContextError, EngineError, ModelError
from salt_tui.engine.events import Activations, Chosen, Event, PromptProgress, ReadoutTaken, SequenceEnded, Token
from salt_tui.engine.requests import ChatTurn, Choice, Forced, Free, Generate, Readout, Sampling
from tests.engine.random_mamba import write_mamba
from tests.engine.test_llama_child import Loaded, bundled_model, count, second_model

pytestmark = pytest.mark.model

NANO = Path(__file__).parents[2] / "salt_tui" / "nano" / "salt-nano.gguf"


@pytest.fixture(scope="module", params=["nano", "mamba", "smollm2", "gemma"])
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("shared")
    paths = {
        "nano": lambda: NANO,
        "mamba": lambda: write_mamba(folder / "mamba.gguf", NANO),
        "smollm2": bundled_model,
        "gemma": lambda: second_model(folder),
    }
    path = paths[request.param]()
    loaded = Loaded(path, folder / "log")
    yield loaded
    loaded.engine.close()
    if path.parent == folder:
        path.unlink()  # 253 MB, and pytest keeps its folders


def events_of(loaded: Loaded, requests: Sequence[Generate]) -> dict[int, list[Event]]:
    """Return everything but progress, by key."""
    for request in requests:
        loaded.engine.submit(request)
    events = loaded.wait(lambda events: count(events, SequenceEnded) == len(requests))
    return {
        request.key: [
            event
            for event in events
            if not isinstance(event, PromptProgress) and getattr(event, "key", None) == request.key
        ]
        for request in requests
    }


def alone(loaded: Loaded, request: Generate) -> list[Event]:
    """Return what a request says when its beginning is no trunk."""
    (events,) = events_of(loaded, [replace(request, trunk=0)]).values()
    return [event for event in events if not isinstance(event, Token) or event.position >= request.trunk]


@pytest.mark.parametrize(
    ("loaded", "width"),
    [("nano", 1), ("nano", 4), ("mamba", 1), ("mamba", 4), ("smollm2", 4), ("gemma", 4)],
    indirect=["loaded"],
)
def test_branches_samples_and_cuts_have_the_bits_of_a_fresh_evaluation(loaded: Loaded, width: int) -> None:
    loaded.open(width=width)
    prompts, shared = loaded.prompts(2)
    said = loaded.run([Generate(0, prompts[0], shared, (Free(8),))])[0]
    ids = tuple(token.id for token in said)
    other = ids[:4] + ids[3:0:-1]
    requests = [
        Generate(1, prompts[0], shared, (Forced(ids), Free(2)), trunk=len(ids)),
        Generate(2, prompts[0], shared, (Forced(other), Free(3)), trunk=4),  # cut back
        Generate(3, prompts[0], shared, (Forced(other), Free(3)), trunk=6),  # another way from there
        Generate(4, prompts[1], shared, (Forced(ids), Free(2)), trunk=5),  # puts the first away
        Generate(5, prompts[0], shared, (Forced((*ids, *other)), Free(2)), trunk=10),  # taken out and walked on
        Generate(6, prompts[0], shared, (Free(4),), Sampling(0.9, seed=1)),  # the prompt alone
        Generate(7, prompts[0], shared, (Free(4),), Sampling(0.9, seed=2)),
        Generate(8, prompts[0], shared, (Forced(ids), Free(2)), trunk=len(ids)),
    ]
    together = events_of(loaded, requests)
    for request in requests:
        assert together[request.key] == alone(loaded, request)
    assert [replace(one, key=1) for one in together[8]] == together[1]  # type: ignore[type-var]


def test_choices_and_readouts_are_the_log_probabilities_of_forced_tokens(loaded: Loaded) -> None:
    loaded.open(width=2)
    prompts, shared = loaded.prompts(2)
    said = loaded.run([Generate(0, prompts[0], shared, (Free(5),))])[0]
    ids = tuple(token.id for token in said)
    options = (ids[:1] + ids[3:4], ids[:3], ids[2:5], (said[0].alternatives[3],))
    if not loaded.info.capabilities.cut:
        loaded.engine.submit(Generate(1, prompts[0], shared, (Choice(options),)))
        ended = loaded.wait(lambda events: count(events, SequenceEnded) == 1)[-1]
        assert isinstance(ended, SequenceEnded)
        assert "cannot be cut back" in str(ended.message)
        options = tuple((token,) for token in said[0].alternatives[:4])
    options = tuple(one for one in options if not any(o != one and one[: len(o)] == o for o in options))
    readout = Readout(0, said[0].alternatives[:3], rest=True)
    asked = Generate(1, prompts[0], shared, (Choice(options), Free(2)), readouts=(readout,))
    (events,) = events_of(loaded, [asked]).values()
    taken, chosen = events[0], events[1]
    assert isinstance(taken, ReadoutTaken)
    assert isinstance(chosen, Chosen)
    assert taken.log_probabilities == pytest.approx(said[0].alternative_log_probabilities[:3], abs=1e-5)
    for option, value in zip(options, chosen.log_probabilities, strict=True):
        forced = loaded.run([Generate(2, prompts[0], shared, (Forced(option),))])[2]
        assert value == pytest.approx(sum(token.log_probability for token in forced), abs=1e-12)
    best = options[chosen.chosen]
    assert chosen.log_probabilities[chosen.chosen] == max(chosen.log_probabilities)
    walked = loaded.run([Generate(1, prompts[0], shared, (Forced(best), Free(2)))])[1]
    assert [event for event in events if isinstance(event, Token)] == walked


def test_activations_change_no_number_and_belong_to_their_tokens(loaded: Loaded) -> None:
    able = loaded.info.capabilities
    layers = tuple(sorted({0, able.activation_layers // 2, able.activation_layers - 1}))
    prompts, shared = loaded.prompts(3)
    requests = [Generate(key, prompt, shared, (Free(5),)) for key, prompt in enumerate(prompts)]
    loaded.open(width=2)
    without = loaded.run(requests)
    loaded.open(width=2, layers=layers)
    assert loaded.run(requests) == without
    found = events_of(loaded, [replace(request, layers=layers) for request in requests])
    vectors: dict[int, list[Activations]] = {}
    for key, events in found.items():
        assert [event for event in events if isinstance(event, Token)] == without[key]
        vectors[key] = [event for event in events if isinstance(event, Activations)]
        assert [one.position for one in vectors[key]] == [token.position for token in without[key]]
        assert {one.layers for one in vectors[key]} == {layers}
        rows = np.stack([np.frombuffer(one.values, "<f4") for one in vectors[key]])
        assert rows.shape == (len(without[key]), len(layers) * able.activation_width)
        assert np.isfinite(rows).all()
        assert len(np.unique(rows, axis=0)) == len(rows)
    # One at a time, the other slot idle, in another order of layers, and forked from a trunk: the same bits.
    ids = tuple(token.id for token in without[2])
    for trunk in (0, 3):
        asked = Generate(9, prompts[2], shared, (Forced(ids),), layers=layers[::-1], trunk=trunk)
        (events,) = events_of(loaded, [asked]).values()
        again = [event for event in events if isinstance(event, Activations)]
        size = 4 * able.activation_width
        for one, other in zip(again, vectors[2][trunk:], strict=True):
            parts = [other.values[start : start + size] for start in range(0, len(other.values), size)]
            assert one.values == b"".join(parts[::-1])


def test_layers_that_are_not_there_or_not_taken_are_refused(loaded: Loaded) -> None:
    layers = loaded.info.capabilities.activation_layers + 1  # and the state behind the final norm
    with pytest.raises(ContextError, match=f"no layer {layers}: .* 0 to {layers - 1}"):
        loaded.open(width=2, layers=(0, layers))
    with pytest.raises(ContextError, match="layer 0 is asked for twice"):
        loaded.open(width=2, layers=(0, 0))
    loaded.opened = None
    loaded.open(width=2, layers=(0,))
    loaded.engine.submit(Generate(1, (1, 2), 0, (Free(1),), layers=(1,)))
    (ended,) = loaded.wait(lambda events: count(events, SequenceEnded) == 1)
    assert isinstance(ended, SequenceEnded)
    assert ended.stop_reason == "failed"
    assert "without activations" in str(ended.message)


@pytest.mark.parametrize("loaded", ["nano"], indirect=True)  # the others' matrices are quantised
def test_the_last_layer_gives_the_probabilities(loaded: Loaded) -> None:
    gguf = pytest.importorskip("gguf")
    reader = gguf.GGUFReader(NANO)
    tensors = {tensor.name: tensor.data for tensor in reader.tensors}
    epsilon = reader.get_field("llama.attention.layer_norm_rms_epsilon").contents()
    last = loaded.info.capabilities.activation_layers - 1
    loaded.open(width=2, layers=(last,))
    prompts, shared = loaded.prompts(2)
    found = events_of(loaded, [Generate(1, prompts[0], shared, (Free(4),), layers=(last,))])[1]
    assert len(found) == 2 * 4 + 1
    for vector, token in zip(found[0:8:2], found[1:8:2], strict=True):
        assert isinstance(vector, Activations)
        assert isinstance(token, Token)
        hidden = np.frombuffer(vector.values, "<f4").astype(np.float64)
        normed = hidden / np.sqrt(np.mean(hidden**2) + epsilon) * tensors["output_norm.weight"]
        logits = tensors.get("output.weight", tensors["token_embd.weight"]) @ normed
        log_probabilities = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        assert token.log_probability == pytest.approx(log_probabilities[token.id], abs=1e-3)


def test_the_next_turn_goes_on_after_the_reply(loaded: Loaded) -> None:
    engine = loaded.engine
    pieces = engine.vocabulary()
    user, question = ChatTurn("user", "Count to three."), ChatTurn("user", "Is that right?")
    (prompt,) = engine.encode([[user]])
    ids = engine.tokenize(b"1 2 3")
    turn = engine.next_turn(ids, question)
    assert turn.dropped == 0
    if loaded.info.template is None:
        text = b"".join(pieces[token] for token in turn.tokens)
        assert text == b"\n\nQuestion:\nIs that right?\n\nAnswer:\n"
        return
    (whole,) = engine.encode([[user, ChatTurn("assistant", "1 2 3"), question]])
    assert (*prompt, *ids, *turn.tokens) == whole
    end = turn.tokens[0]
    assert engine.next_turn((*ids, end), question) == NextTurn(1, turn.tokens)
    # Where a message names a special token, that is text: only the template's own ones are tokens.
    name = pieces[end].decode()
    naming = engine.next_turn(ids, ChatTurn("user", f"Is {name} right?"))
    assert naming.tokens.count(end) == turn.tokens.count(end)
    assert b"".join(pieces[token] for token in naming.tokens).count(name.encode()) == turn.tokens.count(end) + 1


def test_a_set_is_read_and_outlives_a_restart(loaded: Loaded) -> None:
    loaded.opened = None
    loaded.open(width=2)
    prompts, shared = loaded.prompts(2)
    said = loaded.run([Generate(0, prompts[0], shared, (Free(1),))])[0][0]
    with pytest.raises(EngineError, match="outside the vocabulary"):
        loaded.engine.define_set("bad", (1, 10**7))
    loaded.engine.define_set("top", (*said.alternatives, said.id))
    asked = Generate(1, prompts[0], shared, (Free(1),), readouts=(Readout(0, mass_of="top"),))
    before = events_of(loaded, [asked])[1]
    assert isinstance(before[0], ReadoutTaken)
    mass = math.fsum(math.exp(value) for value in said.alternative_log_probabilities)
    assert before[0].log_mass == pytest.approx(math.log(mass), abs=1e-5)
    loaded.engine.restart()
    assert events_of(loaded, [asked])[1] == before


def test_weights_that_are_no_numbers_are_the_models_fault(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "nan.gguf"
    shutil.copy(NANO, path)
    reader = gguf.GGUFReader(path, "r+")
    next(tensor.data for tensor in reader.tensors if tensor.name == "output_norm.weight")[0] = np.nan
    reader.data.flush()
    broken = Loaded(path, tmp_path / "log")
    try:
        for check in ("quick", "full"):
            with pytest.raises(ModelError, match="the model's logits are not numbers"):
                broken.open(check=check)
    finally:
        broken.engine.close()
