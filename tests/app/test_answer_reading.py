"""An answer as the Answer screen reads it from the store."""

from __future__ import annotations

from pathlib import Path

from salt_tui.app.answer_document import load_answer
from salt_tui.store.queries import open_queries
from salt_tui.store.records import SignalRecord, Work
from salt_tui.store.store import open_store


def test_a_stored_answer_is_read_with_its_tokens_its_prompt_and_its_signals(stored: Path) -> None:
    with open_queries(stored) as queries:
        answers = queries.answers(1)
        signal = SignalRecord(answers[0].generation or 0, "atom", 0, "mine", 0.5)
        others = [SignalRecord(answer.generation or 0, "atom", 0, "mine", 0.1) for answer in answers[1:]]
    with open_store(stored) as store:
        store.claim(Work(1))
        store.add_signals(Work(1), [signal, *others])
    of_task = frozenset(answer.generation or 0 for answer in answers if answer.problem.task == "kronecker_product")
    found = load_answer(stored, 1, answers[0].generation or 0, of_task)
    assert found.reply.startswith(answers[0].reply or b"?"), "and the token that ended it"
    assert found.prompt is not None
    assert answers[0].problem.text.encode() in found.prompt
    by_name = {entry.name: entry for entry in found.signals}
    assert by_name["mine"].values == {0: 0.5}
    assert by_name["mine"].ranks == {0: (1, 4)}, "the four answers of its task"
