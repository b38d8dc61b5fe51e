"""The sentence about a unit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from salt_tui.app.atom_sentence import DescribedUnit, heading, sentence

WRONG = DescribedUnit(
    task="maze", answer=9, kind="atom", index=3, line=0, column=3, text="18", reference="−18", status="wrong",
    function="max_probability", value=0.97, surer_than=0.92,
)  # fmt: skip


def test_a_confidently_wrong_atom() -> None:
    assert heading(WRONG) == "maze · answer 9 · atom 4 · row 1 column 4"
    assert sentence(WRONG) == (
        "said 18, right is −18: wrong. max_probability 0.97, surer than 92% of the atoms, confidently wrong."
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"status": "correct", "value": 0.3},
            "said 18: right. max_probability 0.3, surer than 92% of the atoms, right but unsure.",
        ),
        ({"status": "missing", "text": None, "value": None}, "nothing said, right is −18: missing."),
        (
            {"status": "redundant", "reference": None, "value": 0.2, "surer_than": None},
            "said 18, where the answer should have ended: redundant. max_probability 0.2.",
        ),
        ({"status": "abstained", "text": "DK", "value": None}, "said DK instead of −18: abstained."),
        (
            {"function": "perplexity", "value": 1.01, "surer_than": None},
            "said 18, right is −18: wrong. perplexity 1.01 (lower is surer), confidently wrong.",
        ),
    ],
)
def test_every_verdict_has_words(change: dict[str, object], words: str) -> None:
    assert sentence(replace(WRONG, **change)) == words  # type: ignore[arg-type]


def test_a_line_is_called_a_line() -> None:
    assert heading(replace(WRONG, kind="line", line=2)) == "maze · answer 9 · line 3"


def test_hostile_text_is_spelled_out_and_cut() -> None:
    words = sentence(replace(WRONG, text="[/red]\x1b]0;x\x07" + "a" * 10_000, task="t\u202e"))
    assert "[/red]\\x1b]0;x\\x07aaa" in words
    assert len(words) < 300
    assert "\\u202e" in heading(replace(WRONG, task="t\u202e"))
