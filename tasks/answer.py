"""Finding the answer inside a reply while it streams, and splitting it into units.

Three rules settle which text is the answer (SALT sections 2.1 and 4.3; "Answers and units" in docs/definitions.md).

1.  Everything before the last ``</think>`` is thinking, and so is everything after a ``<think>`` that is never
    closed.  Thinking is never answer.
2.  A fence is a run of four or more asterisks.  Fences pair 1-2, 3-4, ...; an odd last one opens an unclosed region.
    Where the form of the answer asks for no fence, all that is not thinking is one region.
3.  The last region with text wins.  When a later region begins to hold text, or a ``</think>`` turns an earlier one
    into thinking, the units reported so far are withdrawn.

What could still become a fence or a tag (one to three asterisks, the beginning of a tag, part of a character) is held
back until it is known, so the state depends on the bytes fed so far and not on how they were cut.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Literal

from tasks.answer_form import AnswerForm, ReferenceUnits, UnitKind
from tasks.splitting import Span, Splitter

Extraction = Literal["fenced", "unclosed", "none", "thinking_only"]
"""``fenced``: the answer's region is closed; ``unclosed``: it is not; ``none``: no region holds text;
``thinking_only``: there was thinking, and no text outside it."""

_TAG_BEGINNING = r"</?(?:t(?:h(?:i(?:nk?)?)?)?)?"
_MARK = {True: re.compile(r"\*{4,}|</?think>"), False: re.compile("</?think>")}
_UNDECIDED = {
    True: re.compile(rf"(?:(?<!\*)\*{{1,3}}|{_TAG_BEGINNING})\Z"),
    False: re.compile(rf"{_TAG_BEGINNING}\Z"),
}
"""By whether the answer is fenced."""

_LONE_BYTE = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class AnswerUnit:
    """One unit of an answer.

    Attributes:
        kind: atom, line or the whole region.
        index: position among the units of its kind, from 0.
        line: index of the non-empty line that an atom begins on; the own index of a line; None for a generation.
        text: the unit as written, trimmed; bytes that are no UTF-8 are shown as U+FFFD.
        start: first byte within the reply.
        end: the byte after the last one.
    """

    kind: UnitKind
    index: int
    line: int | None
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class AnswerChanges:
    """What a piece of the reply changed.

    Attributes:
        withdrawn: all units reported before are void; `AnswerParser.revision` has gone up.
        units: the units completed by this piece, after the withdrawal if there was one; in order for each kind.
    """

    withdrawn: bool
    units: tuple[AnswerUnit, ...]


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """A whole reply, parsed."""

    extraction: Extraction
    units: tuple[AnswerUnit, ...]

    def of_kind(self, kind: UnitKind) -> tuple[AnswerUnit, ...]:
        """Return the units of one kind, in order."""
        return tuple(unit for unit in self.units if unit.kind == kind)


class _Region:
    """The text after an opening fence, or of a reply without fences, split while it grows."""

    def __init__(self, form: AnswerForm) -> None:
        self._atom_splitter = form.splitter()
        self._line_splitter = form.line_splitter()
        self._characters: list[str] = []
        self._byte_start = 0
        self._wide_positions: list[int] = []  # characters of more than one byte
        self._extra_bytes: list[int] = []  # bytes beyond one per character, up to and with each of them
        self._line_starts: list[int] = []
        self._atom_count = 0
        self._text_start: int | None = None
        self._text_end = 0
        self.ended = False
        self.closed = False

    @property
    def has_text(self) -> bool:
        """Whether it holds anything but white space."""
        return self._text_start is not None

    def feed(self, text: str, byte_start: int) -> list[AnswerUnit]:
        """Take the next characters, which stand at ``byte_start``, and return the units they completed."""
        position = len(self._characters)
        if position == 0:
            self._byte_start = byte_start
        self._characters.extend(text)
        if not text.isascii():
            self._note_widths(text, position)
        trimmed = text.rstrip()
        if trimmed:
            if self._text_start is None:
                self._text_start = position + len(text) - len(text.lstrip())
            self._text_end = position + len(trimmed)
        atoms, lines = self._atom_splitter.feed(text), self._line_splitter.feed(text)
        if not atoms and not lines:
            return []
        return self._units(atoms, lines, self._line_splitter.pending)

    def end(self, *, closed: bool, cut: bool = False) -> list[AnswerUnit]:
        """Say that nothing follows; when cut, the atom and the line in progress are dropped."""
        if self.ended:
            return []
        self.ended, self.closed = True, closed
        unfinished = self._line_splitter.pending if cut else None
        return self._units(_last_spans(self._atom_splitter, cut), _last_spans(self._line_splitter, cut), unfinished)

    def pending(self) -> AnswerUnit | None:
        """Return the atom in progress as far as it goes."""
        span = None if self.ended else self._atom_splitter.pending
        return None if span is None else self._atom(span, self._atom_count, self._line_splitter.pending)

    def generation(self) -> AnswerUnit | None:
        """Return the whole region, trimmed, as a unit; None when it is blank."""
        if self._text_start is None:
            return None
        return self._unit("generation", 0, None, Span(self._text_start, self._text_end))

    def _note_widths(self, text: str, position: int) -> None:
        extra = self._extra_bytes[-1] if self._extra_bytes else 0
        for offset, character in enumerate(text):
            if not character.isascii():
                extra += _byte_length(character) - 1
                self._wide_positions.append(position + offset)
                self._extra_bytes.append(extra)

    def _units(self, atoms: list[Span], lines: list[Span], unfinished: Span | None) -> list[AnswerUnit]:
        first_line = len(self._line_starts)
        self._line_starts.extend(span.start for span in lines)
        units = [self._atom(span, self._atom_count + offset, unfinished) for offset, span in enumerate(atoms)]
        self._atom_count += len(atoms)
        units.extend(self._unit("line", index, index, span) for index, span in enumerate(lines, first_line))
        return units

    def _atom(self, span: Span, index: int, unfinished: Span | None) -> AnswerUnit:
        if unfinished is not None and unfinished.start <= span.start:
            line = len(self._line_starts)
        else:
            line = max(0, bisect_right(self._line_starts, span.start) - 1)
        return self._unit("atom", index if span.index is None else span.index, line, span)

    def _unit(self, kind: UnitKind, index: int, line: int | None, span: Span) -> AnswerUnit:
        text = "".join(self._characters[span.start : span.end])
        if not text.isascii():
            text = _LONE_BYTE.sub("\ufffd", text)
        return AnswerUnit(kind, index, line, text, self._byte(span.start), self._byte(span.end))

    def _byte(self, position: int) -> int:
        before = bisect_left(self._wide_positions, position)
        return self._byte_start + position + (self._extra_bytes[before - 1] if before else 0)


class AnswerParser:
    """Parses one reply while it streams; used once."""

    def __init__(self, form: AnswerForm, *, thinking_open: bool = False) -> None:
        """Prepare for the first byte.

        Args:
            form: says whether the answer is fenced and how it splits.
            thinking_open: the prompt ended with an open ``<think>``.
        """
        self._form = form
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._held = ""
        self._in_fence = False  # the last character belonged to a fence, which may go on
        self._position = 0  # bytes of the reply already interpreted
        self._thinking = thinking_open
        self._had_thinking = thinking_open
        self._text_outside = False
        self._open: _Region | None = None if form.fenced else _Region(form)
        self._answer: _Region | None = None
        self._revision = 0
        self._finished = False
        self._units: list[AnswerUnit] = []  # completed by the piece being taken
        self._withdrawn = False

    @property
    def revision(self) -> int:
        """How often an answer was withdrawn so far."""
        return self._revision

    @property
    def extraction(self) -> Extraction:
        """Where the answer stands, judged by what has been decided so far."""
        if self._answer is not None:
            return "fenced" if self._answer.closed else "unclosed"
        return "thinking_only" if self._had_thinking and not self._text_outside else "none"

    @property
    def pending(self) -> AnswerUnit | None:
        """The atom in progress as far as it goes, for a mark on the screen; None when there is none."""
        return None if self._answer is None else self._answer.pending()

    def feed(self, data: bytes) -> AnswerChanges:
        """Take the next bytes of the reply, cut anywhere, even inside a character.

        Raises:
            ValueError: if the parser has finished.
        """
        self._refuse_after_finish()
        text = self._decoder.decode(data)
        if text:
            self._take(text, final=False)
        return self._changes()

    def finish(self, *, cut: bool) -> AnswerChanges:
        """Say that the reply has ended and return the last units, the generation among them.

        Args:
            cut: a limit ended the reply, not the model.  The atom, the line and the generation of a region that is
                not closed are then dropped: nobody knows how they would have gone on, so they are missing, not wrong.
                So is what was held back as a possible fence or tag.

        Raises:
            ValueError: if the parser has finished already.
        """
        self._refuse_after_finish()
        self._finished = True
        if not cut:
            self._take(self._decoder.decode(b"", final=True), final=True)
        if self._open is not None:
            self._report(self._open, self._open.end(closed=not (cut or self._form.fenced), cut=cut))
        if self._answer is not None and (self._answer.closed or not cut):
            generation = self._answer.generation()
            if generation is not None:
                self._units.append(generation)
        return self._changes()

    def _refuse_after_finish(self) -> None:
        if self._finished:
            raise ValueError("the reply has ended: a parser is used once")

    def _changes(self) -> AnswerChanges:
        changes = AnswerChanges(self._withdrawn, tuple(self._units))
        self._units, self._withdrawn = [], False
        return changes

    def _take(self, text: str, *, final: bool) -> None:
        text = self._held + text
        self._held = ""
        if self._in_fence:
            rest = text.lstrip("*")
            self._position += len(text) - len(rest)
            if not rest:
                return
            self._in_fence, text = False, rest
        if "*" not in text and "<" not in text:
            self._take_text(text)
            return
        done = 0
        for mark in _MARK[self._form.fenced].finditer(text):
            self._take_text(text[done : mark.start()])
            self._take_mark(mark.group())
            done = mark.end()
        rest = text[done:]
        self._in_fence = not rest and text.endswith("*")
        undecided = None if final else _UNDECIDED[self._form.fenced].search(rest)
        if undecided is not None:
            self._held = undecided.group()
            rest = rest[: undecided.start()]
        self._take_text(rest)

    def _take_text(self, text: str) -> None:
        if not text:
            return
        byte_start = self._position
        self._position += _byte_length(text)
        if self._thinking:
            return
        self._text_outside = self._text_outside or not text.isspace()
        if self._open is not None:
            self._report(self._open, self._open.feed(text, byte_start))

    def _take_mark(self, mark: str) -> None:
        self._position += len(mark)
        if mark == "</think>":
            self._thinking, self._had_thinking, self._text_outside = False, True, False
            self._open = None if self._form.fenced else _Region(self._form)
            self._withdraw()
        elif mark == "<think>":
            if not self._thinking and self._open is not None:
                self._report(self._open, self._open.end(closed=False))
            self._thinking = self._had_thinking = True
        elif not self._thinking:
            self._take_fence()

    def _take_fence(self) -> None:
        self._text_outside = True
        if self._open is None:
            self._open = _Region(self._form)
        else:
            self._report(self._open, self._open.end(closed=True))
            self._open = None

    def _report(self, region: _Region, units: list[AnswerUnit]) -> None:
        if not region.has_text:
            return
        if region is not self._answer:
            self._withdraw()
            self._answer = region
        self._units.extend(units)

    def _withdraw(self) -> None:
        if self._answer is not None:
            self._answer = None
            self._revision += 1
            self._withdrawn = True
            self._units.clear()


def parse_answer(form: AnswerForm, reply: bytes, *, thinking_open: bool = False, cut: bool = False) -> ParsedAnswer:
    """Parse a whole reply; the same units as `AnswerParser` gives for the same bytes in any pieces.

    Args:
        form: says whether the answer is fenced and how it splits.
        reply: the raw bytes, UTF-8 or not.
        thinking_open: the prompt ended with an open ``<think>``.
        cut: a limit ended the reply (`AnswerParser.finish`).
    """
    parser = AnswerParser(form, thinking_open=thinking_open)
    first, last = parser.feed(reply), parser.finish(cut=cut)
    units = last.units if last.withdrawn else first.units + last.units
    return ParsedAnswer(parser.extraction, units)


def split_reference(form: AnswerForm, reference: str) -> ReferenceUnits:
    """Split a right answer, which has no fence, into units in the form in which units are compared.

    A blank reference gives no atoms and no lines and an empty generation.
    """
    region = _Region(form)
    units = region.feed(reference, 0) + region.end(closed=True)
    atoms = [unit for unit in units if unit.kind == "atom"]
    return ReferenceUnits(
        atoms=tuple(form.normalise(unit.text) for unit in atoms),
        lines=tuple(form.normalise(unit.text) for unit in units if unit.kind == "line"),
        generation=form.normalise(reference),
        atom_lines=tuple(unit.line or 0 for unit in atoms),
    )


def why_not_an_atom(form: AnswerForm, reference: str, index: int, text: str) -> str | None:
    """Say why a text cannot stand as one atom of an answer; None where it can.

    What is an atom may depend on what is around it: it is tried inside the right answer.

    Args:
        form: of the answer.
        reference: the right answer, not blank.
        index: of the atom, from 0; behind the last one of the reference its last one is tried.
        text: as it would be written, without the white space around it.
    """
    if not text.strip():
        return "an atom is not empty"
    if not text.isprintable():
        return "an atom has no line breaks and no control characters"
    if mark := _MARK[form.fenced].search(text):
        return f"{mark[0]} would end the answer"
    before = _atoms_of(form, reference)
    place = min(index, len(before) - 1)
    whole = reference.encode()
    written = whole[: before[place].start] + text.encode() + whole[before[place].end :]
    after = _atoms_of(form, written.decode())
    if len(after) > len(before):
        return f"it is {len(after) - len(before) + 1} atoms, not one"
    same = len(after) == len(before) and after[place].text == text
    return None if same else "it is not an atom of this task"


def _atoms_of(form: AnswerForm, answer: str) -> list[AnswerUnit]:
    region = _Region(form)
    units = region.feed(answer, 0) + region.end(closed=True)
    return sorted((unit for unit in units if unit.kind == "atom"), key=lambda unit: unit.index)


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def _last_spans(splitter: Splitter, cut: bool) -> list[Span]:
    unfinished = splitter.pending is not None
    spans = splitter.finish()
    return spans[:-1] if cut and unfinished else spans
