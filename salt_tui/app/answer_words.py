"""What a map says about an answer in words: how it ended, and what stands where it has no units."""

from __future__ import annotations

from salt_tui.app.answer_cells import AnswerCells
from salt_tui.palette import GLYPHS
from salt_tui.visible_text import visible

_BAR = 14
_FULL, _EMPTY = "▓", "░"


def tail(answer: AnswerCells) -> str:
    """Say how an answer ended; nothing where it is complete or still being written."""
    quiet = {"waiting", "prompt", "streaming", "complete"}
    return "" if answer.status in quiet else visible(answer.status.replace("_", " "), 24)


def score(answer: AnswerCells, kind: str) -> str:
    """Return right units over those asked for; how many were said while the answer is being written."""
    cells = answer.units[kind]
    if not answer.ended:
        return str(cells.generated) if len(cells) else ""
    asked = cells.asked
    return f"{cells.correct}/{asked}" if asked else ""


def without_units(answer: AnswerCells, kind: str, width: int = 80) -> str:
    """Say in so many cells where an answer without units of a kind stands."""
    if answer.status == "prompt" and answer.prompt_total:
        share = answer.prompt_done / answer.prompt_total
        words = f"prompt {answer.prompt_done}/{answer.prompt_total}"
        full = round(_BAR * share)
        long = f"prompt ▕{_FULL * full}{_EMPTY * (_BAR - full)}▏ {answer.prompt_done}/{answer.prompt_total} tokens"
        return next((form for form in (long, words) if len(form) <= width), f"prompt {share:.0%}")
    if answer.status == "streaming":
        tokens = "1 token" if answer.tokens == 1 else f"{answer.tokens} tokens"
        long = f"{GLYPHS['streaming']} {tokens}, no {kind} yet"
        return long if len(long) <= width else f"{GLYPHS['streaming']} {tokens}"
    if answer.status == "no_answer":
        return "no fence"
    if answer.status in {"open", "failed", "cancelled"}:
        return visible(answer.status.replace("_", " "))
    return f"no {kind}s"
