"""Stored plans and environments changed anywhere: read as what they say, or refused in one line that names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.commands.failures import shortened
from salt_tui.measure.header import run_header
from salt_tui.measure.two_runs import _plan_differences
from salt_tui.runner.plan import Environment, RunPlan, canonical_json, differences
from salt_tui.runner.studies.plan import StudyPlan
from salt_tui.store.errors import StoreError
from salt_tui.store.records import RunRecord
from salt_tui.store.results import StoredRun
from salt_tui.store.stored_values import Place
from tests.runner.test_plan import ENVIRONMENT, PLAN
from tests.store.conftest import make_model

pytestmark = pytest.mark.quick

STUDY = StudyPlan("samples", "0f", {"k": 2, "temp": 0.7, "unit": "atom"}, {"maze": (0, 1)}, "0e", 4, 512, 4)
FILE = Path("x.db")

SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, float("inf"), float("nan")]),
    st.text(max_size=8),
    st.sampled_from(["\x1b[2J", "\ud800", "\u202e", "x" * 5000, "maze", "file:x", "9" * 5000]),
)
VALUES = st.recursive(
    SIMPLE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths to everything inside a JSON value, itself included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in places(item, (*path, key)))]


@st.composite
def changed(draw: st.DrawFn, text: str) -> str:
    """Return a JSON text with some of its parts replaced, taken out, or put in."""
    value = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(value)))
        if not path:
            if draw(st.integers(0, 9)) == 0:
                value = draw(VALUES)
            continue
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        how = draw(st.sampled_from(["replace", "replace", "take out", "put in"]))
        if how == "replace":
            holder[path[-1]] = draw(VALUES)
        elif how == "take out":
            del holder[path[-1]]
        elif isinstance(holder, list):
            holder.insert(int(path[-1]), draw(VALUES))
        else:
            holder[draw(st.text(max_size=6))] = draw(VALUES)
    return json.dumps(value)


def texts(text: str) -> st.SearchStrategy[str]:
    """Return changed JSON, and texts that are cut or no JSON at all."""
    cut = st.integers(0, len(text)).map(lambda place: text[:place])
    return st.one_of(changed(text), changed(text), cut, st.text(max_size=20), st.just("[" * 1_500))


def read(text: str, parse: Callable[[str], Any]) -> Any:
    """Return what a column means, None where it is refused in one line."""
    refusal = ""
    try:
        return Place(FILE, "run 1").read("plan", text, parse)
    except StoreError as error:
        refusal = str(error)
    assert refusal.startswith("x.db: plan of run 1 cannot be read (")
    assert shortened(refusal).isprintable()
    assert len(refusal) < 300
    return None


def holds(read_again: Any, stored: Any) -> bool:
    """Return whether everything that is stored was read; what has a default may be there besides."""
    if isinstance(stored, dict) and isinstance(read_again, dict):
        return all(name in read_again and holds(read_again[name], value) for name, value in stored.items())
    if isinstance(stored, list) and isinstance(read_again, list):
        return len(stored) == len(read_again) and all(map(holds, read_again, stored))
    return bool(read_again == stored)


@given(texts(canonical_json(PLAN)), texts(canonical_json(ENVIRONMENT)), texts(canonical_json(STUDY)))
def test_what_is_read_is_what_it_says(plan: str, environment: str, study: str) -> None:
    for text, kind in ((plan, RunPlan), (environment, Environment), (study, StudyPlan)):
        found = read(text, kind.from_json)
        if found is not None:
            again = canonical_json(found)
            assert kind.from_json(again) == found
            assert holds(json.loads(again), json.loads(text))


@given(texts(canonical_json(PLAN)), texts(canonical_json(ENVIRONMENT)))
def test_a_header_and_a_comparison_of_plans_are_made_or_the_file_is_named(plan: str, environment: str) -> None:
    stored = StoredRun(
        1, "finished", None, "2026-01-01", None, None, make_model(), RunRecord(plan, "0f", environment, "0e", True, ())
    )
    refusal = ""
    try:
        header = run_header(stored, FILE)
    except StoreError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith("x.db: ")
        assert shortened(refusal).isprintable()
        return
    assert all(isinstance(word, str) for word in header.words)
    other = json.loads(canonical_json(replace(PLAN, width=8)))
    for name in (*_plan_differences(json.loads(plan), other), *differences(plan, canonical_json(PLAN))):
        assert shortened(name).isprintable()
