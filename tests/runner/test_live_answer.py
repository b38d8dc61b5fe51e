"""One answer: which tokens belong to a unit, what a cut and a withdrawal leave."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.engine.events import Token
from salt_tui.runner.live_answer import LiveAnswer
from salt_tui.store.records import UnitRecord
from scoring.confidence import CONFIDENCE_FUNCTIONS
from tasks.answer import split_reference
from tasks.registry import get_task

pytestmark = pytest.mark.quick

TASK = get_task("dna_translation")
REFERENCE = split_reference(TASK, "AAA CCC GGG")
MAX_PROBABILITY = list(CONFIDENCE_FUNCTIONS).index("max_probability")


class Fed:
    """A live answer fed with pieces, whose token ids are their places."""

    def __init__(self, *pieces: bytes, end: bool = True, count_missing: bool = True, cut: bool = False) -> None:
        """Feed everything and finish."""
        vocabulary = (*pieces, b"<end>")
        self.live = LiveAnswer(TASK, REFERENCE, vocabulary, thinking_open=False)
        self.units: list[UnitRecord] = []
        self.withdrawals = 0
        for place in range(len(pieces) + end):
            log_probability = math.log((place + 1) / 100)
            token = Token(
                1, place, place, log_probability, 0.5, (place,), (log_probability,), False, place == len(pieces)
            )
            self._take(self.live.add(token)[1])
        self._take(self.live.finish(cut=cut, count_missing=count_missing))

    def _take(self, changes: object) -> None:
        if changes.withdrawn:  # type: ignore[attr-defined]
            self.units.clear()
            self.withdrawals += 1
        self.units += changes.units  # type: ignore[attr-defined]

    def atoms(self) -> list[UnitRecord]:
        """Return the atoms that stand at the end."""
        return [unit for unit in self.units if unit.kind == "atom"]


def test_a_unit_has_the_tokens_whose_bytes_overlap_it() -> None:
    fed = Fed(b"****\nA", b"AA", b" ", b"CC", b"C G", b"GG", b"\n****")
    ranges = [(atom.text, atom.token_start, atom.token_end) for atom in fed.atoms()]
    assert ranges == [("AAA", 0, 2), ("CCC", 3, 5), ("GGG", 4, 6)]


def test_confidence_is_that_of_these_tokens() -> None:
    fed = Fed(b"****\nA", b"AA", b" ", b"CC", b"C G", b"GG", b"\n****")
    values = [atom.confidences[MAX_PROBABILITY] for atom in fed.atoms()]
    assert [round(value, 12) for value in values if value is not None] == [0.02, 0.05, 0.06]


def test_tokens_without_bytes_belong_to_no_unit() -> None:
    fed = Fed(b"****\n", b"AA", b"", b"A", b"\n****")
    atom = fed.atoms()[0]
    assert (atom.text, atom.token_start, atom.token_end) == ("AAA", 1, 4)
    mean = atom.confidences[list(CONFIDENCE_FUNCTIONS).index("mean_probability")]
    assert mean is not None
    assert math.isclose(mean, (0.02 + 0.04) / 2)


def test_missing_units_have_a_reference_and_nothing_else() -> None:
    missing = Fed(b"****\nAAA\n****").atoms()[1]
    assert (missing.status, missing.reference, missing.text, missing.token_start) == ("missing", "CCC", None, None)
    assert set(missing.confidences) == {None}


def test_a_cut_atom_is_missing_not_wrong() -> None:
    assert [atom.status for atom in Fed(b"****\nAAA CC", end=False, cut=True).atoms()] == [
        "correct",
        "missing",
        "missing",
    ]
    assert [atom.status for atom in Fed(b"****\nAAA CC", end=True).atoms()] == ["correct", "wrong", "missing"]


def test_answers_that_count_nowhere_have_no_missing_units() -> None:
    assert [atom.status for atom in Fed(b"****\nAAA ", cut=True, count_missing=False).atoms()] == ["correct"]


def test_a_later_region_withdraws_the_earlier_one() -> None:
    fed = Fed(b"****\nTTT TTT\n****", b"\nno\n", b"****\nAAA CCC GGG\n****")
    assert fed.withdrawals == 1
    assert fed.live.revision == 1
    assert [atom.status for atom in fed.atoms()] == ["correct"] * 3
    assert (fed.live.correct_atoms, fed.live.generated_atoms) == (3, 3)


def test_the_end_token_is_not_part_of_the_reply() -> None:
    fed = Fed(b"****\nAAA\n****")
    assert fed.live.reply == b"****\nAAA\n****"
    assert fed.live.tokens == 2


@given(
    st.lists(st.sampled_from([b"****\n", b"AAA", b" ", b"CC", b"\n", b"\xc3", b"\xa9", b"</think>", b"*"]), max_size=30)
)
def test_spans_slice_back_to_the_text(pieces: list[bytes]) -> None:
    fed = Fed(*pieces)
    for unit in fed.units:
        if unit.text is not None:
            assert unit.byte_start is not None
            assert fed.live.reply[unit.byte_start : unit.byte_end].decode("utf-8", "replace") == unit.text
            assert unit.token_start is not None
            assert unit.token_end is not None
            assert unit.token_start < unit.token_end


def spelled(*tokens: tuple[bytes, float | None]) -> list[UnitRecord]:
    """Return the atoms of an answer of an engine without ids, from the bytes and log-probabilities of its tokens."""
    live = LiveAnswer(TASK, REFERENCE, (), thinking_open=False)
    units: list[UnitRecord] = []
    for place, (piece, log) in enumerate(tokens):
        record, changes = live.add(Token(1, place, None, log, None, (), (), False, False, piece))
        assert (record.id, record.piece, record.entropy) == (None, piece, None)
        units += changes.units
    units += live.finish(cut=False, count_missing=True).units
    return [unit for unit in units if unit.kind == "atom"]


def test_an_engine_without_ids_or_entropies_gives_units_without_entropy_functions() -> None:
    atoms = spelled((b"****\nAAA", -0.1), (b" CC", -0.2), (b"C", -0.3), (b" GGG\n****", -0.4))
    known = [dict(zip(CONFIDENCE_FUNCTIONS, atom.confidences, strict=True)) for atom in atoms]
    assert [values["logprob_sum"] for values in known] == [-0.1, -0.5, -0.4]
    assert {(values["mean_entropy"], values["max_entropy"]) for values in known} == {(None, None)}


def test_a_unit_that_touches_what_a_server_lost_has_no_confidence() -> None:
    """Bytes that no token accounts for, and a place where a token was lost altogether."""
    undefined = (None,) * len(CONFIDENCE_FUNCTIONS)
    first, second, third = spelled((b"****\n", -0.1), (b"AA", None), (b"A CCC ", -0.2), (b"GGG\n****", -0.3))
    assert first.confidences == undefined
    assert (first.token_start, first.token_end) == (1, 3)
    assert second.confidences[MAX_PROBABILITY] == math.exp(-0.2)
    first, second, third = spelled((b"****\nAAA", -0.1), (b"", None), (b" CCC ", -0.2), (b"GGG\n****", -0.3))
    assert first.confidences == undefined
    assert None not in {second.confidences[MAX_PROBABILITY], third.confidences[MAX_PROBABILITY]}


def test_text_that_came_without_tokens_has_units_without_tokens() -> None:
    live = LiveAnswer(TASK, REFERENCE, (), thinking_open=False)
    units = [*live.add_text(b"****\nAAA CCT\n****").units, *live.finish(cut=False, count_missing=True).units]
    atoms = [unit for unit in units if unit.kind == "atom"]
    assert [atom.status for atom in atoms] == ["correct", "wrong", "missing"]
    assert {(atom.token_start, atom.token_end) for atom in atoms} == {(None, None)}
    assert {value for atom in atoms for value in atom.confidences} == {None}
