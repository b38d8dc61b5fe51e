"""The answers of a stored run scored again by the present program, each in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from salt_tui.runner.difference import Difference
from salt_tui.runner.file_check import answer_name
from salt_tui.runner.rescoring import other_units, rescored, score_differences
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import Queries
from salt_tui.store.records import AnswerScore, Work
from salt_tui.store.store import Store


@dataclass(frozen=True, slots=True)
class RescoredAnswer:
    """What became of one answer.

    Attributes:
        written: it was changed.
        differences: what was stored, and what is stored now.
        failure: why it was left as it was; None where it was not.
    """

    written: bool = False
    differences: tuple[Difference, ...] = ()
    failure: Difference | None = None


def rescore_answers(store: Store, queries: Queries, work: Work) -> Iterator[RescoredAnswer]:
    """Score the finished answers of a run again; those that come out as they are stored are not written.

    Args:
        store: writes.
        queries: of the same file.
        work: the run.

    Raises:
        StoreError: the run is being computed; answers before that are written.
    """
    store.need_free(work.run)
    for generation in queries.finished_generations(work):
        yield _rescore(store, queries, work, generation)


def _rescore(store: Store, queries: Queries, work: Work, generation: int) -> RescoredAnswer:
    name = f"generation {generation}"
    try:
        stored = queries.stored_reply(generation)
        name = answer_name(stored)
        if stored.faults:
            return RescoredAnswer(failure=Difference(work, name, "tokens, reply and units", None, stored.faults[0]))
        found = rescored(stored)
    except StoreError as error:
        return RescoredAnswer(failure=Difference(work, name, "rows", None, str(error)))
    except Exception as error:
        # A task reads a text of somebody else's here; whatever it raises is about that text.
        return RescoredAnswer(failure=Difference(work, name, "scoring", None, f"{type(error).__name__}: {error}"))
    differences = tuple(
        Difference(work, name, difference.what, difference.stored, difference.found)
        for difference in score_differences(stored, found)
    )
    if differences:
        score = AnswerScore(found.units, found.extraction, found.answer_status, other_units(stored, found))
        store.rescore_answer(work.run, generation, stored.revision, score)
    return RescoredAnswer(bool(differences), differences)
