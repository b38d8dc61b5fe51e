"""Signals shade the map beside the confidence functions: those of tokens, of studies, and scores that were added."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from pathlib import Path

import pytest
from textual.pilot import Pilot

from salt_tui.app.answer_cells import FUNCTIONS
from salt_tui.app.application import SaltApp
from salt_tui.app.live_state import LiveState
from salt_tui.app.map_rows import Place
from salt_tui.app.shade_scale import shade_scale
from salt_tui.app.signal_reader import SignalNames, SignalPiece, SignalReader, SignalValues
from salt_tui.store.queries import open_queries
from salt_tui.store.records import SignalRecord, Work
from salt_tui.store.schema import TOKEN_SIGNALS
from salt_tui.store.store import open_store
from scoring.confidence import CONFIDENCE_FUNCTIONS
from scoring.signals import SIGNALS, confidence_entry
from tests.app.pilot import drive, screen_text, shown, until
from tests.app.test_keys import open_stored, press
from tests.stored_runs import store_run


def add_scores(database: Path, name: str, value: float) -> tuple[int, int]:
    """Give the first wrong atom of a run a score, and say for all others that they have none; return where it is."""
    with open_queries(database) as queries:
        atoms = [
            (answer.generation, atom.index, atom.status)
            for answer in queries.answers(1)
            if answer.generation is not None
            for atom in queries.units(answer.generation, "atom")
        ]
    there = next((generation, index) for generation, index, status in atoms if status == "wrong")
    rows = [
        SignalRecord(generation, "atom", index, name, value)
        if (generation, index) == there
        else SignalRecord(generation, "atom", index, name, None, "not asked")
        for generation, index, _ in atoms
    ]
    with open_store(database) as store:
        store.add_signals(Work(1), rows)
    return there


def test_a_signal_is_chosen_like_a_function_and_what_is_undefined_has_no_shade(stored: Path) -> None:
    generation, index = add_scores(stored, "my[score]", 3.0)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        live = await open_stored(app, pilot)
        session = shown(app)
        assert session is not None
        await until(pilot, lambda: session.state.signals == (*TOKEN_SIGNALS, "my[score]"))
        start = FUNCTIONS.index(live.heatmap.map.function)
        for _ in range(start + 1):
            await press(pilot, "live.function_back")
        await until(pilot, lambda: "logistic(my[score]) 0" in screen_text(app) and "end follows" in screen_text(app))
        number = session.state.map.number_of(generation)
        assert number is not None
        steps = {
            (answer, unit): session.state.map.steps(answer, [unit], 5)[0]
            for answer in range(len(session.state.map.answers))
            for unit in range(len(session.state.map.cells(answer)))
        }
        assert steps.pop((number, index)) == 4
        assert set(steps.values()) == {None}
        await press(pilot, "map.surest_wrong")
        assert live.heatmap.cursor == Place(number, index)
        await until(pilot, lambda: "my[score] 3" in screen_text(app))
        await press(pilot, "live.function")
        assert live.heatmap.map.function == FUNCTIONS[0], "round the end"
        await press(pilot, "live.function_back")
        await press(pilot, "live.function_back")
        await until(pilot, lambda: "first_token_probability 0" in screen_text(app) and not session.reads_signal)
        assert session.state.map.cells(number).value(index, "first_token_probability") is not None

    drive(scenario, stored)


def test_a_signal_that_a_run_lacks_gives_way_to_the_usual_function_and_one_of_tokens_is_read_once() -> None:
    state = LiveState()
    state.take_signal_names(SignalNames(("of_tokens", "of_study"), frozenset({"of_tokens"})))
    assert state.unread_signals == {"of_tokens", "of_study"}
    for name in ("of_tokens", "of_study"):
        state.take_signal(SignalValues(name, {}))
    state.map.function = "of_study"
    state.take_signal_names(SignalNames(("of_tokens", "of_study"), frozenset({"of_tokens"})))
    assert (state.map.function, state.unread_signals) == ("of_study", {"of_study"})
    state.take_signal_names(SignalNames(("of_tokens",), frozenset({"of_tokens"})))
    assert (state.map.function, state.unread_signals) == ("max_probability", set())


@pytest.mark.parametrize("name", [*CONFIDENCE_FUNCTIONS, *SIGNALS, "somebody's", "second_perplexity@2.1"])
def test_every_scale_rises_with_confidence_inside_its_range(name: str) -> None:
    entry = confidence_entry(name)
    low, high = max(entry.minimum, -8.0), min(entry.maximum, 8.0)
    values = [low + (high - low) * step / 20 for step in range(21)]
    places = [shade_scale(name).place(value) for value in values]
    assert all(0.0 <= place <= 1.0 for place in places)
    ordered = places if entry.higher_is_confident else places[::-1]
    assert all(before < after for before, after in pairwise(ordered))
    assert all(0.0 <= shade_scale(name).place(extreme) <= 1.0 for extreme in (-1e308, 1e308, math.inf, -math.inf))


def test_an_uncertainty_from_elsewhere_is_on_the_map_as_its_negative(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=("maze",), answers=1, atoms=5)
    with open_store(database) as store:
        records = [SignalRecord(1, "atom", index, "unsure", index / 2) for index in range(3)]
        store.add_foreign_signal(1, "unsure", records, lower_is_confident=True)
    reader = SignalReader(database, 1, str)

    def answer() -> SignalPiece:
        while not reader.mailbox:
            time.sleep(0.01)
        return reader.mailbox.popleft()

    reader.look_for_names()
    names = answer()
    assert isinstance(names, SignalNames)
    assert names.names == (*TOKEN_SIGNALS, "−unsure")
    reader.read("−unsure")
    found = answer()
    assert isinstance(found, SignalValues)
    assert found.values[1, "atom"].tolist() == [0.0, -0.5, -1.0]
    places = [shade_scale("−unsure").place(value) for value in found.values[1, "atom"].tolist()]
    assert places == sorted(places, reverse=True)
