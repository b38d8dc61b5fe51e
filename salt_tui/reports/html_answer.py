"""An answer token by token, as data for a page: pieces of text with verdict, strength and alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp

from salt_tui.number_text import number
from salt_tui.palette import GLYPHS, STRENGTHS
from salt_tui.store.queries import Queries
from salt_tui.store.records import UnitRecord, Work
from salt_tui.store.results import StoredAnswer, StoredToken
from salt_tui.store.schema import CONFIDENCE_COLUMNS
from salt_tui.visible_text import visible
from scoring.confidence import HEADLINE_FUNCTION

ALTERNATIVES = 5
"""Shown of the stored ones."""

MOST_TOKENS = 400
"""Of one answer; a page of twenty such answers has about four megabytes."""

LONGEST_TEXT = 4000
"""Characters of a problem or reference."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a token that belongs to one atom, or to none.

    Attributes:
        text: as it is shown; line feeds stay.
        kind: class of its look: ``r0`` to ``r4`` right from unsure to sure, ``w0`` to ``w4`` not right, ``n`` neither.
        status: of the atom; empty for none.
    """

    text: str
    kind: str
    status: str


@dataclass(frozen=True, slots=True)
class PageToken:
    """A token.

    Attributes:
        pieces: what it wrote.
        said: its probability and the atom that it belongs to, in words.
        alternatives: texts and probabilities of what the model might have written, most probable first.
    """

    pieces: tuple[Piece, ...]
    said: str
    alternatives: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """An answer.

    Attributes:
        title: which one it is.
        summary: how right it is, and how it ended.
        problem, reference: what was asked, and what is right.
        tokens: of the reply.
        notes: what is not shown.
    """

    title: str
    summary: str
    problem: str
    reference: str
    tokens: tuple[PageToken, ...]
    notes: tuple[str, ...]


def read_page_answers(queries: Queries, run: int, most: int) -> tuple[tuple[PageAnswer, ...], int]:
    """Return answers of a run, the first ones of each task in turn, and how many it has.

    Args:
        queries: of the file.
        run: its number.
        most: answers to return at most.
    """
    finished = [answer for answer in queries.answers(run) if answer.reply is not None]
    chosen = sorted(_in_turn(finished)[:most], key=lambda answer: answer.problem_id)
    return tuple(_page_answer(queries, run, answer) for answer in chosen), len(finished)


def _in_turn(answers: Sequence[StoredAnswer]) -> list[StoredAnswer]:
    by_task: dict[str, list[StoredAnswer]] = {}
    for answer in answers:
        by_task.setdefault(answer.problem.task, []).append(answer)
    longest = max(map(len, by_task.values()), default=0)
    return [own[place] for place in range(longest) for own in by_task.values() if place < len(own)]


def _page_answer(queries: Queries, run: int, answer: StoredAnswer) -> PageAnswer:
    assert answer.generation is not None
    units = queries.units(answer.generation, "atom")
    tokens = queries.tokens(answer.generation)
    written = [unit for unit in units if unit.status != "missing"]
    right = sum(unit.status == "correct" for unit in units)
    missing = len(units) - len(written)
    status = (answer.answer_status or "not finished").replace("_", " ")
    notes = []
    if missing:
        notes.append(f"{missing} atom{'s' if missing > 1 else ''} of the right answer missing at the end")
    if len(tokens) > MOST_TOKENS:
        notes.append(f"the first {MOST_TOKENS} of {len(tokens):,} tokens; `salt-tui show` has all")
    reply = answer.reply or b""
    spans = [(unit.byte_start, unit.byte_end, unit) for unit in written]
    known = sorted(
        ((start, end, unit) for start, end, unit in spans if start is not None and end is not None),
        key=lambda span: (span[0], span[1]),
    )
    if tokens:
        shown = tuple(_tokens(tokens[:MOST_TOKENS], known))
    else:
        shown = (PageToken(tuple(_pieces(reply, 0, known)), "", ()),)
        notes.append("no tokens are stored")
    problem = answer.problem
    return PageAnswer(
        title=visible(f"{problem.task} {problem.position + 1}"),
        summary=f"{status}, {right} of {len(written)} atoms right",
        problem=_shown(problem.text or "\n".join(f"{one.role}: {one.content}" for one in problem.messages)),
        reference=_shown(problem.reference),
        tokens=shown,
        notes=(*notes, f"`salt-tui show {Work(run)} {visible(problem.task)}:{problem.position + 1}` prints it"),
    )


Span = tuple[int, int, UnitRecord]


def _tokens(tokens: Sequence[StoredToken], spans: Sequence[Span]) -> Iterator[PageToken]:
    first = 0
    for token in tokens:
        record = token.record
        while first < len(spans) and spans[first][1] <= record.start:
            first += 1
        own = [span for span in spans[first : first + 64] if span[0] < record.end]
        known = record.log_probability
        words = [f"p {number(None if known is None else exp(known))}"]
        if record.entropy is not None:
            words.append(f"entropy {number(record.entropy, 2)}")
        if record.forced:
            words.append("forced")
        words.extend(_atom_words(unit) for _, _, unit in own[:2])
        pairs = zip(token.alternative_pieces, record.alternative_log_probabilities, strict=False)
        yield PageToken(
            pieces=tuple(_pieces(token.piece, record.start, own)),
            said=", ".join(words),
            alternatives=tuple(
                (_bytes_shown(piece), number(exp(value))) for piece, value in list(pairs)[:ALTERNATIVES]
            ),
        )


def _atom_words(unit: UnitRecord) -> str:
    confidence = unit.confidences[CONFIDENCE_COLUMNS.index(HEADLINE_FUNCTION)]
    wanted = "" if unit.status == "correct" or unit.reference is None else f", right is {visible(unit.reference, 24)}"
    return (
        f"atom {unit.index + 1} {GLYPHS[unit.status]} {unit.status}{wanted}, {HEADLINE_FUNCTION} {number(confidence)}"
    )


def _pieces(text: bytes, start: int, spans: Sequence[Span]) -> Iterator[Piece]:
    """Cut bytes where atoms begin and end; a cut inside a letter shows its bytes."""
    place = start
    end = start + len(text)
    for low, high, unit in spans:
        if low > place:
            yield Piece(_bytes_shown(text[place - start : min(low, end) - start], lines=True), "n", "")
        low, high = max(low, place), min(high, end)
        if high > low:
            yield Piece(_bytes_shown(text[low - start : high - start], lines=True), _kind(unit), unit.status)
            place = high
    if place < end:
        yield Piece(_bytes_shown(text[place - start :], lines=True), "n", "")


def _kind(unit: UnitRecord) -> str:
    if unit.status not in ("correct", "wrong", "redundant"):
        return "n"
    confidence = unit.confidences[CONFIDENCE_COLUMNS.index(HEADLINE_FUNCTION)]
    step = 0 if confidence is None else min(int(confidence * STRENGTHS), STRENGTHS - 1)
    return f"{'r' if unit.status == 'correct' else 'w'}{step}"


def _bytes_shown(piece: bytes, *, lines: bool = False) -> str:
    """Return bytes as text that can do nothing; those that are no whole letters as numbers."""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return "".join(f"\\x{byte:02x}" if byte >= 0x80 else visible(chr(byte)) for byte in piece)
    return "\n".join(map(visible, text.split("\n"))) if lines else visible(text)


def _shown(text: str) -> str:
    cut = text[:LONGEST_TEXT]
    return "\n".join(map(visible, cut.split("\n"))) + ("…" if len(text) > LONGEST_TEXT else "")
