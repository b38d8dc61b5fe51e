"""JSON as atoms: places of leaves, what is refused, and which leaf is compared with which."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.json_leaves import DEEPEST, MOST_LEAVES, JsonTextError, leaves, partners, read_json, written

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def plain_leaves(value: Any) -> list[Any]:
    """List the leaves of a value a second way."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [leaf for part in parts for leaf in plain_leaves(part)] if parts else [value]


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_leaves_stand_where_they_say_in_document_order(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    node = read_json(text)
    assert [json.loads(text[leaf.start : leaf.end]) for leaf in leaves(node)] == plain_leaves(value)
    assert json.loads(written(node, text)) == value


@given(st.text(st.sampled_from('{}[],:"0123456789.eE+-truefalsn \\\n'), max_size=12))
def test_texts_are_read_exactly_where_python_reads_them(text: str) -> None:
    def refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    try:
        json.loads(text, object_pairs_hook=refuse_repeats, parse_constant=lambda _: 1 / 0)
    except (ValueError, AssertionError, ZeroDivisionError):
        with pytest.raises(JsonTextError, match="at character"):
            read_json(text)
    else:
        read_json(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "a value is wanted at character 1"),
        ('{"a": 1, "a": 2}', "a key stands here twice"),
        ('{"a" 1}', "a colon is wanted"),
        ("[1 2]", "a comma or ] is wanted at character 4"),
        ("[1] x", "something follows the value"),
        ("NaN", "a value is wanted"),
        ("01", "something follows"),
        ('"a\nb"', "a text in double quotes"),
        ("[" * 100_000, f"more than {DEEPEST} levels"),
        (f"[{'1,' * MOST_LEAVES}1]", f"more than {MOST_LEAVES} leaves"),
    ],
)
def test_what_is_no_json_value_says_what_and_where(text: str, what: str) -> None:
    with pytest.raises(JsonTextError) as caught:
        read_json(text)
    assert what in str(caught.value)


def pairs(reference: str, given: str, *, unordered: bool, tolerance: str = "0") -> dict[str, str]:
    one, other = read_json(reference), read_json(given)
    found = partners(one, other, unordered=unordered, tolerance=Decimal(tolerance))
    return {given[leaf.start : leaf.end]: reference[partner.start : partner.end] for leaf, partner in found.items()}


def test_leaves_are_paired_by_path_whatever_the_order_of_keys() -> None:
    assert pairs('{"a": 1, "b": [2, 3]}', '{"b": [20], "c": 40, "a": 10}', unordered=False) == {"10": "1", "20": "2"}
    assert pairs('{"a": 1}', '{"a": {"b": 1}}', unordered=False) == {}
    assert pairs("[[1]]", '{"0": [1]}', unordered=False) == {}


def test_elements_of_unordered_lists_are_paired_for_the_most_right_leaves() -> None:
    assert pairs("[1, 2, 3]", "[3, 1, 7]", unordered=True) == {"3": "3", "1": "1", "7": "2"}
    reference = '[{"n": 1, "m": 5}, {"n": 2, "m": 6}]'
    assert pairs(reference, '[{"n": 2, "m": 8}, {"n": 9, "m": 5}]', unordered=True) == {
        "2": "2",
        "8": "6",
        "9": "1",
        "5": "5",
    }
    # Taking the first right partner for each element would pair 1.04 with 1 and leave 0.96 wrong.
    assert pairs("[1, 1.1]", "[1.04, 0.96]", unordered=True, tolerance="0.07") == {"1.04": "1.1", "0.96": "1"}


@given(st.lists(st.integers(0, 5), max_size=6), st.randoms(use_true_random=False))
def test_a_shuffled_list_is_all_right(numbers: list[int], random: Any) -> None:
    shuffled = list(numbers)
    random.shuffle(shuffled)
    one, other = read_json(json.dumps(numbers)), read_json(json.dumps(shuffled))
    found = partners(one, other, unordered=True, tolerance=Decimal(0))
    assert all(leaf.value == partner.value for leaf, partner in found.items())
    assert len(found) == len({*found.values()}) == max(1, len(numbers))
