"""From the tokens that a server reports to the bytes of its text: which token stands where, and what was lost.

OpenAI's interface gives a text, and beside it tokens as texts, sometimes as bytes.  A token may hold half a character,
which no text can hold: some servers put U+FFFD in its place, some an empty text, and some leave the token out.  Then
the whole characters of the text still say what was said, but not which of their bytes are whose.  Such a stretch
becomes one token without a log-probability, a gap; no unit that touches it has a confidence.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

_REPLACEMENT = "\ufffd".encode()
_MOST_UNREPORTED = 64
"""Bytes of characters outside ASCII that may stand in the text without any token."""

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ReportedToken:
    """A token as a server reports it.

    Attributes:
        spelled: its bytes as reported, or those of its text.
        log_probability: natural logarithm, <= 0; None where the server does not know it.
        alternatives: bytes of the most probable tokens, most probable first.
        alternative_log_probabilities: theirs.
        damaged: ``spelled`` is not, or not surely, what the token stands for: U+FFFD, nothing, or several tokens.
    """

    spelled: bytes
    log_probability: float | None
    alternatives: tuple[bytes, ...] = ()
    alternative_log_probabilities: tuple[float, ...] = ()
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class PlacedToken:
    """A token with its bytes in the text; those of all tokens, joined, are the text.

    Attributes:
        piece: its bytes in the text.
        log_probability: None for a gap: bytes, perhaps none, that no token accounts for.
        alternatives, alternative_log_probabilities: as reported; empty for a gap.
        end: the end of the generation, which stands for no text.
    """

    piece: bytes
    log_probability: float | None
    alternatives: tuple[bytes, ...] = ()
    alternative_log_probabilities: tuple[float, ...] = ()
    end: bool = False


class AlignmentError(ValueError):
    """The tokens are not those of the text; the message is one line."""


class TokenAligner:
    """Places tokens in a text while both come, in pieces and not always together.

    A token is placed as soon as the text holds it.  A damaged one waits for the next that is not: everything up to
    there is the gap.
    """

    def __init__(self) -> None:
        """Start before the first byte."""
        self._text = bytearray()
        self._tokens: deque[ReportedToken] = deque()
        self._begun = False

    def add(self, text: bytes, tokens: Sequence[ReportedToken]) -> list[PlacedToken]:
        """Take the next piece of the text and the next tokens; return what can be placed.

        Raises:
            AlignmentError: the text holds something that no token says.
        """
        self._text += text
        self._tokens.extend(tokens)
        placed: list[PlacedToken] = []
        while self._tokens and self._step(placed):
            self._begun = True
        return placed

    def finish(self, *, stopped: bool) -> list[PlacedToken]:
        """Place what is left.

        Args:
            stopped: the model ended by itself, so that one last token may stand for no text.

        Raises:
            AlignmentError: text without tokens or tokens without text are left.
        """
        placed: list[PlacedToken] = []
        if self._tokens and self._text and self._tokens[-1].damaged:
            found = self._damaged_run(None)
            if found is not None:
                self._take_gap(*found, placed)
        if not self._tokens and self._text:
            if not _is_outside_ascii(self._text):
                raise AlignmentError(f"no token says {_shown(self._text)}, with which the text ends")
            self._take_gap(0, len(self._text), placed)
        return [*placed, *self._left(stopped=stopped)]

    def _left(self, *, stopped: bool) -> list[PlacedToken]:
        """Return the tokens behind the end of the text."""
        placed: list[PlacedToken] = []
        if self._text:
            raise AlignmentError(
                f"the tokens say {_shown(self._tokens[0].spelled)} where the text says {_shown(self._text)}"
            )
        while self._tokens:
            token = self._tokens.popleft()
            if not self._tokens and stopped:
                placed.append(_placed(token, b"", end=True))
            elif token.damaged:
                placed.append(PlacedToken(b"", None))
            elif not token.spelled.strip():
                # Some servers cut blanks off the end of the text; the model said them.
                placed.append(_placed(token, token.spelled))
            else:
                raise AlignmentError(f"a token says {_shown(token.spelled)} behind the end of the text")
        return placed

    def _step(self, placed: list[PlacedToken]) -> bool:
        """Place the first token, or a gap before or at it; False where more has to come first."""
        token = self._tokens[0]
        if token.damaged:
            following = next((one for one in self._tokens if not one.damaged), None)
            found = None if following is None else self._damaged_run(following)
            if found is None:
                return False
            self._take_gap(*found, placed)
            return True
        piece = token.spelled
        if not self._begun and piece.startswith(b" ") and self._text and not self._text.startswith(b" "):
            piece = piece[1:]  # some servers cut the blank before a first word
        if self._text.startswith(piece):
            del self._text[: len(piece)]
            placed.append(_placed(self._tokens.popleft(), piece))
            return True
        if piece.startswith(self._text):
            return False
        unreported = re.match(rb"[\x80-\xff]{1,%d}?(?=%s)" % (_MOST_UNREPORTED, re.escape(piece)), self._text)
        if unreported is not None:
            self._take_gap(0, unreported.end(), placed)
            return True
        if self._may_begin_behind_a_gap(piece):
            return False
        raise AlignmentError(f"a token says {_shown(piece)} where the text says {_shown(self._text)}")

    def _may_begin_behind_a_gap(self, piece: bytes) -> bool:
        """Say whether the text so far may end in the beginning of a piece, behind bytes that no token reports."""
        for length in range(1, min(_MOST_UNREPORTED, len(self._text)) + 1):
            if not _is_outside_ascii(self._text[length - 1 : length]):
                return False
            if length < _MOST_UNREPORTED and piece.startswith(self._text[length:]):
                return True
        return False

    def _damaged_run(self, following: ReportedToken | None) -> tuple[int, int] | None:
        """Return how many damaged tokens come first and how many bytes of the text are theirs.

        Args:
            following: the first token that is not damaged; None at the end, where they have all the rest.
        """
        run = []
        for token in self._tokens:
            if token is following:
                break
            run.append(token.spelled)
        if following is None:
            return len(run), len(self._text)
        known = b"".join(rb"[\x80-\xff]*?".join(map(re.escape, spelled.split(_REPLACEMENT))) for spelled in run)
        some = known if any(_REPLACEMENT in spelled or spelled for spelled in run) else rb"[\x80-\xff]*?"
        match = re.match(rb"(?:%s)(?=%s)" % (some, re.escape(following.spelled)), self._text)
        return None if match is None else (len(run), match.end())

    def _take_gap(self, tokens: int, length: int, placed: list[PlacedToken]) -> None:
        for _ in range(tokens):
            self._tokens.popleft()
        placed.append(PlacedToken(bytes(self._text[:length]), None))
        del self._text[:length]


def place_tokens(text: bytes, tokens: Sequence[ReportedToken]) -> list[PlacedToken]:
    """Place all tokens of a text that is complete.

    Raises:
        AlignmentError: they are not its tokens.
    """
    aligner = TokenAligner()
    return [*aligner.add(text, tokens), *aligner.finish(stopped=True)]


def _placed(token: ReportedToken, piece: bytes, *, end: bool = False) -> PlacedToken:
    if token.log_probability is None:
        return PlacedToken(piece, None, end=end)
    return PlacedToken(piece, token.log_probability, token.alternatives, token.alternative_log_probabilities, end)


def _is_outside_ascii(text: bytes | bytearray) -> bool:
    return len(text) <= _MOST_UNREPORTED and all(byte >= 0x80 for byte in text)


def _shown(text: bytes | bytearray) -> str:
    shown = bytes(text[:_SHOWN]).decode("utf-8", "backslashreplace")
    return repr(shown + ("…" if len(text) > _SHOWN else ""))
