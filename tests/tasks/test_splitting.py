"""Splitters report a unit once, and the same units for every way of cutting the text."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.registry import TASKS
from tasks.splitting import LineSplitter, Span, Splitter, WhitespaceSplitter, fold_whitespace

FACTORIES: list[Callable[[], Splitter]] = [
    WhitespaceSplitter,
    LineSplitter,
    *(task.splitter for task in TASKS.values()),
]
texts = st.text(st.sampled_from("AB1 \t\n\r\x0b\u3000é🙂[],-'.:"), max_size=40)


@pytest.mark.parametrize("factory", FACTORIES)
@given(text=texts, cuts=st.lists(st.integers(0, 40), max_size=6))
def test_any_pieces_give_the_spans_of_the_whole_text(
    factory: Callable[[], Splitter], text: str, cuts: list[int]
) -> None:
    whole, pieces = factory(), factory()
    expected = whole.feed(text) + whole.finish()
    bounds = [0, *sorted(point for point in cuts if point <= len(text)), len(text)]
    found = [span for start, end in pairwise(bounds) for span in pieces.feed(text[start:end])]
    assert found + pieces.finish() == expected
    assert all(text[span.start : span.end].strip() == text[span.start : span.end] != "" for span in expected)
    assert [span.start for span in expected] == sorted(span.start for span in expected)


@given(text=texts)
def test_white_space_and_lines_agree_with_the_string_methods(text: str) -> None:
    words, lines = WhitespaceSplitter(), LineSplitter()
    assert [text[span.start : span.end] for span in words.feed(text) + words.finish()] == text.split()
    expected = [line.strip() for line in text.replace("\r", "\n").split("\n") if line.strip()]
    assert [text[span.start : span.end] for span in lines.feed(text) + lines.finish()] == expected


def test_pending_is_the_unit_that_has_begun() -> None:
    splitter = LineSplitter()
    assert splitter.pending is None
    assert splitter.feed(" TCT C ") == []
    assert splitter.pending == Span(1, 6)
    assert splitter.feed("\n") == [Span(1, 6)]
    assert splitter.pending is None
    assert splitter.finish() == []


def test_folding() -> None:
    assert fold_whitespace("  p1:\t True \n x ") == "p1: True x"
