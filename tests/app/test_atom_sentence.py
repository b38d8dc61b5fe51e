"""The sentence about a unit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from salt_tui.app.atom_sentence import DescribedUnit, heading, sentence
from salt_tui.app.right_tokens import Parting, RightToken
from salt_tui.number_text import confidence_text

pytestmark = pytest.mark.quick

WRONG = DescribedUnit(
    task="maze", answer=9, kind="atom", index=3, line=0, column=3, text="18", reference="−18", status="wrong",
    function="max_probability", value=0.97, surer_than=0.92,
)  # fmt: skip


def test_a_confidently_wrong_atom() -> None:
    assert heading(WRONG) == "maze · answer 10 · atom 4 · row 1 column 4"
    assert sentence(WRONG) == (
        "confidently wrong: said “18”, right is “−18”. max_probability .970, surer than 92 % of its task."
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"status": "correct", "value": 0.3},
            "right but unsure: said “18”. max_probability .300, surer than 92 % of its task.",
        ),
        ({"status": "missing", "text": None, "value": None}, "missing: nothing said, right is “−18”."),
        (
            {"status": "redundant", "reference": None, "value": 0.2, "surer_than": None},
            "redundant: said “18”, where the answer should have ended. max_probability .200.",
        ),
        ({"status": "abstained", "text": "DK", "value": None}, "abstained: said “DK” instead of “−18”."),
        (
            {"function": "perplexity", "value": 1.01, "surer_than": None},
            "wrong: said “18”, right is “−18”. perplexity 1.01 (lower is surer).",
        ),
    ],
)
def test_every_verdict_has_words(change: dict[str, object], words: str) -> None:
    assert sentence(replace(WRONG, **change)) == words  # type: ignore[arg-type]


def test_a_line_is_called_a_line() -> None:
    assert heading(replace(WRONG, kind="line", line=2)) == "maze · answer 10 · line 3"


@pytest.mark.parametrize(("share", "said"), [(0.9, True), (0.899, False), (0.0, False), (None, False)])
def test_only_the_top_tenth_of_the_task_is_confidently_wrong(share: float | None, said: bool) -> None:
    assert ("confidently wrong" in sentence(replace(WRONG, surer_than=share))) is said


def test_the_place_among_the_surest_errors_comes_first_and_the_end_of_the_list_is_said() -> None:
    redundant = replace(WRONG, status="redundant", reference=None)
    assert sentence(redundant, (2, 7)).startswith("no. 2 of the surest errors, redundant: said “18”, where")
    assert sentence(redundant, (7, 7)).startswith("no. 7 of the surest errors, the last listed, redundant: ")


def test_where_the_two_part_stands_before_the_confidence() -> None:
    """The example of a codon that is one token: what came, what is right, and how likely that was."""
    codon = replace(WRONG, text="GAA", reference="GAC", value=0.9997, surer_than=0.98)
    parting = Parting(4, "GAA", 0.9997, RightToken(2, 0.0002, 20, "GAC"), True)
    assert sentence(replace(codon, parting=parting)) == (
        "confidently wrong: said “GAA” with .9997, right is “GAC” with .0002 (rank 2). "
        "max_probability .9997, surer than 98 % of its task."
    )
    inside = replace(parting, said="A", right=RightToken(3, 0.01, 20, "C"), whole=False)
    assert "right is “GAC”: “A” had .9997, “C” .010 (rank 3)." in sentence(replace(codon, parting=inside))
    unknown = replace(parting, right=RightToken(None, None, 20))
    assert "right is “GAC”, not among the 20 likeliest." in sentence(replace(codon, parting=unknown))


def test_what_was_said_and_what_is_right_fit_the_least_width() -> None:
    long = replace(WRONG, text="a" * 99, reference="b" * 99, surer_than=0.99)
    parting = Parting(4, "a" * 99, 0.9997, RightToken(20, 0.0002, 20, "b" * 99), True)
    words = sentence(replace(long, parting=parting))
    assert words.index(" max_probability") <= 2 * 58
    assert words.index(" max_probability") <= words.index("surer")


def test_hostile_and_wide_text_is_spelled_out_and_cut_and_the_verdict_stays() -> None:
    words = sentence(replace(WRONG, text="[/red]\x1b]0;x\x07" + "a" * 10_000, reference="漢" * 50, task="t\u202e"))
    assert words.startswith("confidently wrong: said “[/red]\\x1b]0;x\\x07a…”, right is “漢漢漢漢漢漢漢漢漢…”.")
    assert words.endswith(" max_probability .970, surer than 92 % of its task.")
    assert cell_len(words) <= 2 * 78
    assert "\\u202e" in heading(replace(WRONG, task="t\u202e"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (0.9997, ".9997"), (0.99999, ">.9999"), (0.5, ".500"), (0.0, "0"), (0.00001, "<.0001"),
     (0.0023, ".0023"), (1.25, "1.25"), (1.00002, "1.00002"), (-0.02, "−0.02"), (123456.0, "1.235e+05")],
)  # fmt: skip
def test_what_is_not_one_is_not_shown_as_one(value: float, text: str) -> None:
    assert confidence_text(value) == text
