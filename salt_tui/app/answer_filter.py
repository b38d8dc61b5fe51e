"""Which answers of a map are shown: those with all words of a filter."""

from __future__ import annotations

from collections.abc import Callable

from salt_tui.app.answer_cells import AnswerCells


def answers_with(words: str) -> Callable[[AnswerCells], bool] | None:
    """Return what says whether an answer has every word in its task, its status or its number; None without words.

    ``wrong`` and ``right`` ask for answers with an atom that is not right, and for answers without one.
    """
    wanted = words.casefold().split()
    if not wanted:
        return None
    return lambda answer: all(_has(answer, word) for word in wanted)


def _has(answer: AnswerCells, word: str) -> bool:
    cells = answer.units["atom"]
    if word in {"wrong", "right"}:
        return (cells.correct < len(cells)) is (word == "wrong") and len(cells) > 0
    if word.isdigit():
        return answer.position + 1 == int(word)
    return word in f"{answer.task} {answer.status.replace('_', ' ')}".casefold()
