"""What became of an answer as a whole: how decoding stopped and what was extracted, as one word."""

from __future__ import annotations

from typing import Literal, TypeAlias

StopReason: TypeAlias = Literal["end", "done", "length", "context", "cancelled", "failed"]
Extraction: TypeAlias = Literal["fenced", "unclosed", "none", "thinking_only"]
AnswerStatus: TypeAlias = Literal[
    "failed", "cancelled", "context_full", "truncated", "no_answer", "unclosed", "complete"
]

ANSWER_STATUSES: tuple[AnswerStatus, ...] = (
    "failed",
    "cancelled",
    "context_full",
    "truncated",
    "no_answer",
    "unclosed",
    "complete",
)
"""In the order of precedence."""

LEFT_OUT: frozenset[AnswerStatus] = frozenset({"cancelled", "failed", "context_full"})
"""Answers that say nothing about the model: left out of every metric, and counted."""

_BY_STOP_REASON: dict[str, AnswerStatus] = {
    "failed": "failed",
    "cancelled": "cancelled",
    "context": "context_full",
    "length": "truncated",
}

_BY_EXTRACTION: dict[str, AnswerStatus] = {
    "none": "no_answer",
    "thinking_only": "no_answer",
    "unclosed": "unclosed",
    "fenced": "complete",
}


def answer_status(stop_reason: str, extraction: str) -> AnswerStatus:
    """Return the status by precedence: failed, cancelled, context_full, truncated, no_answer, unclosed, complete.

    Args:
        stop_reason: ``end``, ``done`` (all that was asked for is there), ``length``, ``context``, ``cancelled`` or
            ``failed``.
        extraction: ``fenced``, ``unclosed``, ``none`` or ``thinking_only``.

    Raises:
        ValueError: for any other word.
    """
    if extraction not in _BY_EXTRACTION:
        raise ValueError(f"extraction is one of {', '.join(_BY_EXTRACTION)}, not {extraction!r}")
    if stop_reason in ("end", "done"):
        return _BY_EXTRACTION[extraction]
    if stop_reason not in _BY_STOP_REASON:
        raise ValueError(f"stop reason is one of end, done, {', '.join(_BY_STOP_REASON)}, not {stop_reason!r}")
    return _BY_STOP_REASON[stop_reason]
