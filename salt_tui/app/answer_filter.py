"""Which answers of a map are shown: those with all words of a filter."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from salt_tui.app.answer_cells import AnswerCells


def answers_with(words: str, texts: Mapping[str, frozenset[int]] | None = None) -> Callable[[AnswerCells], bool] | None:
    """Return what says whether an answer has every word; None without words.

    A word may stand in the name of the task, in the status, be the number of the answer, or be said in its text.
    ``wrong`` and ``right`` ask for answers with an atom that is not right, and for answers without one.

    Args:
        words: separated by blanks.
        texts: by word, the generations whose text holds it, as far as that is known.
    """
    wanted = words.casefold().split()
    if not wanted:
        return None
    found = texts or {}
    return lambda answer: all(_has(answer, word) or answer.generation in found.get(word, ()) for word in wanted)


def _has(answer: AnswerCells, word: str) -> bool:
    cells = answer.units["atom"]
    if word in {"wrong", "right"}:
        return (cells.correct < len(cells)) is (word == "wrong") and len(cells) > 0
    if word.isdigit():
        return answer.position + 1 == int(word)
    return word in f"{answer.task} {answer.status.replace('_', ' ')}".casefold()
