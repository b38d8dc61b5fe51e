"""One answer while it streams: tokens in; labelled, measured units out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from salt_tui.engine.events import Token
from salt_tui.store.records import TokenRecord, UnitKind, UnitRecord
from scoring.confidence import CONFIDENCE_FUNCTIONS, unit_confidences
from scoring.labels import UnitStatus, label_unit
from tasks.answer import AnswerChanges, AnswerParser, AnswerUnit
from tasks.answer_form import AnswerForm, ReferenceUnits

UNIT_KINDS: tuple[UnitKind, ...] = ("atom", "line", "generation")


@dataclass(frozen=True, slots=True)
class ScoredChanges:
    """What one more token (or the end) did to an answer.

    Attributes:
        withdrawn: all units so far are void; ``units`` are those of the new region.
        units: completed units, labelled and with confidences, in order.
    """

    withdrawn: bool
    units: tuple[UnitRecord, ...]


class LiveAnswer:
    """Turns the tokens of one answer into scored units as they arrive.

    Args:
        form: splits, normalises and says what is right.
        reference: the normalised units of the right answer.
        vocabulary: bytes of every token id; empty where the engine gives no ids.
        thinking_open: the prompt left a ``<think>`` open.
    """

    def __init__(
        self, form: AnswerForm, reference: ReferenceUnits, vocabulary: tuple[bytes, ...], *, thinking_open: bool
    ) -> None:
        self._form = form
        self._vocabulary = vocabulary
        self._parser = AnswerParser(form, thinking_open=thinking_open)
        self._reference: dict[UnitKind, tuple[str, ...]] = {
            "atom": reference.atoms,
            "line": reference.lines,
            "generation": (reference.generation,),
        }
        self._reference_atom_lines = reference.atom_lines
        self._reply = bytearray()
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._gaps: list[int] = []
        self._log_probabilities: list[float | None] = []
        self._entropies: list[float | None] = []
        self._generated: dict[UnitKind, set[int]] = {kind: set() for kind in UNIT_KINDS}
        self._atom_statuses: dict[int, UnitStatus] = {}

    @property
    def reply(self) -> bytes:
        """Everything the model said so far."""
        return bytes(self._reply)

    @property
    def tokens(self) -> int:
        """How many tokens arrived."""
        return len(self._starts)

    @property
    def revision(self) -> int:
        """How often units were withdrawn."""
        return self._parser.revision

    @property
    def extraction(self) -> str:
        """Where the answer stands in the reply: ``fenced``, ``unclosed``, ``none`` or ``thinking_only``."""
        return self._parser.extraction

    @property
    def generated_atoms(self) -> int:
        """Atoms completed in the present revision."""
        return len(self._generated["atom"])

    @property
    def correct_atoms(self) -> int:
        """Those of them that are right."""
        return sum(status == "correct" for status in self._atom_statuses.values())

    @property
    def atom_statuses(self) -> Mapping[int, UnitStatus]:
        """Labels of the atoms completed in the present revision, by index."""
        return self._atom_statuses

    def add(self, token: Token) -> tuple[TokenRecord, ScoredChanges]:
        """Take the next token; an end-of-generation token adds statistics and no text."""
        data = token.spoken(self._vocabulary)
        start = len(self._reply)
        self._reply += data
        record = TokenRecord(
            position=len(self._starts),
            id=token.id,
            start=start,
            end=len(self._reply),
            log_probability=token.log_probability,
            entropy=token.entropy,
            alternatives=token.alternatives,
            alternative_log_probabilities=token.alternative_log_probabilities,
            forced=token.forced,
            piece=token.piece,
        )
        if not data and token.log_probability is None:
            self._gaps.append(start)
        self._starts.append(record.start)
        self._ends.append(record.end)
        self._log_probabilities.append(token.log_probability)
        self._entropies.append(token.entropy)
        return record, self._scored(self._parser.feed(data)) if data else ScoredChanges(False, ())

    def add_text(self, text: bytes) -> ScoredChanges:
        """Take text that came without tokens, as an imported answer; its units have no tokens and no confidences."""
        self._reply += text
        return self._scored(self._parser.feed(text))

    def finish(self, *, cut: bool, count_missing: bool) -> ScoredChanges:
        """End the answer.

        Args:
            cut: a limit or a failure ended it, so a unit in progress is missing, not wrong.
            count_missing: add one ``missing`` unit for every reference unit without a partner; not for answers
                that are left out of every rate.
        """
        changes = self._scored(self._parser.finish(cut=cut))
        missing = [
            self._missing(kind, index)
            for kind in UNIT_KINDS
            for index in range(len(self._reference[kind]))
            if count_missing and index not in self._generated[kind]
        ]
        return ScoredChanges(changes.withdrawn, (*changes.units, *missing))

    def _scored(self, changes: AnswerChanges) -> ScoredChanges:
        if changes.withdrawn:
            self._generated = {kind: set() for kind in UNIT_KINDS}
            self._atom_statuses.clear()
        return ScoredChanges(changes.withdrawn, tuple(self._score(unit) for unit in changes.units))

    def _score(self, unit: AnswerUnit) -> UnitRecord:
        references = self._reference[unit.kind]
        reference = references[unit.index] if unit.index < len(references) else None
        text = self._form.normalise(unit.text)
        if reference is not None and self._form.is_right(unit.kind, unit.text, reference):
            text = reference
        status = label_unit(text, reference)
        self._generated[unit.kind].add(unit.index)
        if unit.kind == "atom":
            self._atom_statuses[unit.index] = status
        members = self._members(unit.start, unit.end)
        return UnitRecord(
            kind=unit.kind,
            index=unit.index,
            line=unit.line,
            text=unit.text,
            reference=reference,
            status=status,
            token_start=members[0] if members else None,
            token_end=members[-1] + 1 if members else None,
            byte_start=unit.start,
            byte_end=unit.end,
            confidences=self._confidences(unit, members),
        )

    def _confidences(self, unit: AnswerUnit, members: Sequence[int]) -> tuple[float | None, ...]:
        # Something that was said next to a gap without bytes may have been said in part by the token that is lost.
        if not members or any(unit.start <= gap <= unit.end for gap in self._gaps):
            return (None,) * len(CONFIDENCE_FUNCTIONS)
        values = unit_confidences(
            [self._log_probabilities[member] for member in members],
            [self._entropies[member] for member in members],
        )
        return tuple(values[name] for name in CONFIDENCE_FUNCTIONS)

    def _members(self, start: int, end: int) -> list[int]:
        """Tokens whose bytes overlap ``[start, end)``; tokens without bytes overlap nothing."""
        first = bisect_right(self._ends, start)
        last = bisect_left(self._starts, end)
        return [index for index in range(first, last) if self._ends[index] > self._starts[index]]

    def _missing(self, kind: UnitKind, index: int) -> UnitRecord:
        line = {"atom": self._reference_atom_lines[index] if kind == "atom" else None, "line": index}.get(kind)
        return UnitRecord(
            kind=kind,
            index=index,
            line=line,
            text=None,
            reference=self._reference[kind][index],
            status="missing",
            token_start=None,
            token_end=None,
            byte_start=None,
            byte_end=None,
            confidences=(None,) * len(CONFIDENCE_FUNCTIONS),
        )
