"""Forks, snapshots, cuts and choices of real models: the same bits as computing everything anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from salt_tui.engine.engine import Chosen, Event, PromptProgress, ReadoutTaken, SequenceEnded, Token
from salt_tui.engine.requests import Choice, Forced, Free, Generate, Readout, Sampling
from tests.engine.test_llama_child import Loaded, bundled_model, count, second_model

pytestmark = pytest.mark.model

NANO = Path(__file__).parents[2] / "salt_tui" / "nano" / "salt-nano.gguf"


@pytest.fixture(scope="module", params=["nano", "smollm2", "gemma"])
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("shared")
    paths = {"nano": lambda: NANO, "smollm2": bundled_model, "gemma": lambda: second_model(folder)}
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


@pytest.mark.parametrize("width", [1, 4])
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
