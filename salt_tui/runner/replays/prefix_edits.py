"""The tokens of an answer's beginning with some atoms exchanged (SALT section 5.1, appendix B.2.1).

Tokens that no exchanged atom overlaps keep their ids: tokenising the model's text again would change it.  An exchanged
atom replaces all tokens that overlap it; their bytes with the atom exchanged are tokenised together, because a
vocabulary that holds `␣GAC` as one token would make three of `GAC␣`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

Tokenise = Callable[[bytes], tuple[int, ...]]
"""Tokenises bytes that continue a text: nothing added, special tokens not parsed."""


class EditError(ValueError):
    """An atom that cannot be exchanged in this vocabulary; the message is one line."""


@dataclass(frozen=True, slots=True)
class ByteSpan:
    """Half-open range of bytes within the reply."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StoredTokens:
    """Tokens of a stored reply with the bytes that each stands for; an end-of-generation token is not among them."""

    ids: tuple[int, ...]
    pieces: tuple[bytes, ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """For every token the byte after its last one."""
        return tuple(accumulate(map(len, self.pieces)))

    def overlapping(self, span: ByteSpan) -> range:
        """Return the tokens whose bytes overlap a span that is not empty."""
        end = 0
        numbers = []
        for number, piece in enumerate(self.pieces):
            start, end = end, end + len(piece)
            if start < span.end and end > span.start and piece:
                numbers.append(number)
            if start >= span.end:
                break
        return range(numbers[0], numbers[-1] + 1)

    def bytes_of(self, numbers: range) -> bytes:
        """Return the bytes of a range of tokens."""
        return b"".join(self.pieces[numbers.start : numbers.stop])


@dataclass(frozen=True, slots=True)
class ForcedPrefix:
    """What a replay begins with.

    Attributes:
        ids: all tokens that are forced.
        edited: for each whether an edit put it there.
        kept: how many tokens at the beginning are those of the stored reply, before the first edit.
        text: the bytes of all of them.
    """

    ids: tuple[int, ...]
    edited: tuple[bool, ...]
    kept: int
    text: bytes


class PrefixEditor:
    """Exchanges atoms of one stored reply.

    Args:
        tokens: of the reply.
        atoms: where its atoms stand, in order.
        tokenise: of the model.
        vocabulary: bytes of every token id.
    """

    def __init__(
        self, tokens: StoredTokens, atoms: Sequence[ByteSpan], tokenise: Tokenise, vocabulary: Sequence[bytes]
    ) -> None:
        self._tokens = tokens
        self._atoms = tuple(atoms)
        self._tokenise = tokenise
        self._vocabulary = vocabulary
        self._starts = tuple(end - len(piece) for end, piece in zip(tokens.ends, tokens.pieces, strict=True))
        self._overlap = tuple(tokens.overlapping(span) for span in atoms)
        self._known: dict[bytes, tuple[int, ...]] = {}

    def starts_clean(self, target: int) -> bool:
        """Say whether no token holds bytes of the atom and of the one before it, so that a replay can begin there."""
        return target == 0 or self._starts[self._overlap[target].start] >= self._atoms[target - 1].end

    def before(self, target: int, edits: Mapping[int, str]) -> ForcedPrefix:
        """Return the tokens before an atom, with earlier atoms exchanged.

        What separates the target from the atom before it belongs to the target's first token or stands before it, as
        the model wrote it.

        Args:
            target: index of the atom that is to be written anew.
            edits: the new text of atoms before it, by index.

        Raises:
            EditError: the target shares a token with the atom before it, or a text cannot be tokenised exactly.
        """
        if not self.starts_clean(target):
            raise EditError(f"atom {target + 1} shares a token with the atom before it")
        if any(index >= target for index in edits):
            raise ValueError("only atoms before the target are exchanged")
        return self._forced(self._overlap[target].start, edits)

    def through(self, edits: Mapping[int, str]) -> ForcedPrefix:
        """Return the tokens up to the end of the last exchanged atom; the model goes on from there.

        White space that stands behind it as a token of its own comes too: without it the model may go on with the atom.
        """
        if not edits:
            raise ValueError("nothing is exchanged")
        return self._forced(None, edits)

    def atom_tokens(self, target: int, text: str) -> tuple[int, ...]:
        """Return the tokens that write ``text`` where the target stands, tokenised as `before` does.

        The bytes of the target's first token that stand before the atom, such as its space, come first.

        Raises:
            EditError: the text cannot be tokenised exactly.
        """
        first = self._overlap[target].start
        lead = b"".join(self._tokens.pieces[first:])[: self._atoms[target].start - self._starts[first]]
        return self._exact(lead + text.encode())

    def lead(self, target: int) -> int:
        """Return how many bytes `atom_tokens` has before the atom itself."""
        return self._atoms[target].start - self._starts[self._overlap[target].start]

    def _forced(self, end: int | None, edits: Mapping[int, str]) -> ForcedPrefix:
        regions = self._regions(edits)
        ids: list[int] = []
        edited: list[bool] = []
        done, kept = 0, None
        for region, members in regions:
            if end is not None and region.stop > end:
                raise EditError(f"atom {max(members) + 1} shares a character's token with the target")
            ids.extend(self._tokens.ids[done : region.start])
            edited.extend([False] * (region.start - done))
            kept = len(ids) if kept is None else kept
            new = self._exact(self._exchanged(region, members, edits))
            ids.extend(new)
            edited.extend([True] * len(new))
            done = region.stop
        last = self._behind_separator(done) if end is None else end
        ids.extend(self._tokens.ids[done:last])
        edited.extend([False] * (last - done))
        text = b"".join(self._vocabulary[token] for token in ids)
        return ForcedPrefix(tuple(ids), tuple(edited), len(ids) if kept is None else kept, text)

    def _behind_separator(self, number: int) -> int:
        """Return the number of the token behind one that is white space; the same where it is something else."""
        pieces = self._tokens.pieces
        return number + (number < len(pieces) and pieces[number].isspace())

    def _regions(self, edits: Mapping[int, str]) -> list[tuple[range, list[int]]]:
        """Group the edits by the tokens that they replace; atoms that share a token are exchanged together."""
        regions: list[tuple[range, list[int]]] = []
        for index in sorted(edits):
            region = self._whole_characters(self._overlap[index])
            if regions and regions[-1][0].stop > region.start:
                earlier, members = regions.pop()
                region = self._whole_characters(range(earlier.start, max(earlier.stop, region.stop)))
                regions.append((region, [*members, index]))
            else:
                regions.append((region, [index]))
        return regions

    def _whole_characters(self, region: range) -> range:
        """Widen a range of tokens until it neither begins nor ends inside a character."""
        start, stop = region.start, region.stop
        pieces = self._tokens.pieces
        while start > 0 and _continues(pieces[start]):
            start -= 1
        while stop < len(pieces) and _continues(pieces[stop]):
            stop += 1
        return range(start, stop)

    def _exchanged(self, region: range, members: Sequence[int], edits: Mapping[int, str]) -> bytes:
        origin = self._starts[region.start]
        text = self._tokens.bytes_of(region)
        for index in sorted(members, reverse=True):
            span = self._atoms[index]
            text = text[: span.start - origin] + edits[index].encode() + text[span.end - origin :]
        return text

    def _exact(self, text: bytes) -> tuple[int, ...]:
        if text not in self._known:
            self._known[text] = exact_tokens(text, self._tokenise, self._vocabulary)
        return self._known[text]


def exact_tokens(text: bytes, tokenise: Tokenise, vocabulary: Sequence[bytes]) -> tuple[int, ...]:
    r"""Tokenise bytes so that the pieces joined are exactly these bytes.

    Vocabularies of the SentencePiece kind put a space before a text that has none: then the text is tokenised without
    its own first space, or behind a line feed whose token is dropped.

    Args:
        text: whole characters, not empty.
        tokenise: of the model.
        vocabulary: bytes of every token id.

    Raises:
        EditError: in none of these ways.
    """
    ways = [(text, b"")]
    if text.startswith(b" "):
        ways.append((text[1:], b""))
    ways.append((b"\n" + text, b"\n"))
    for written, dropped in ways:
        ids = tokenise(written)
        # What was put before the text, with the space that the tokeniser may have added before that.
        for first in range(len(ids)):
            before = b"".join(vocabulary[token] for token in ids[:first])
            if before.strip(b" ") == dropped and b"".join(vocabulary[token] for token in ids[first:]) == text:
                return tuple(ids[first:])
            if not dropped:
                break
    raise EditError(f"the model's vocabulary cannot write {text.decode(errors='replace')!r} exactly")


def _continues(piece: bytes) -> bool:
    """Say whether a piece begins inside a character."""
    return bool(piece) and 0x80 <= piece[0] <= 0xBF
