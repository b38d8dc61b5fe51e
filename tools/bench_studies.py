"""Time studies of stored answers beside the answers: `python -m tools.bench_studies`.

A run is made, asked about (`study verbalised`, every function and unit), and walked with the states of all layers taken
(`study activations`).  What each takes is compared with what its prompts and as many tokens take at the run's own rate:
those of each answer once, those of the turns, and those that are chosen or said.  1.0 would be no loss at all; 1.2 is
the goal of both.  The rate is that of the run beside one that is cut after two tokens, so that prompts, loading and the
ends do not count.  `-m MODEL` takes another model than the bundled one, `--limit 16` more answers.  Two minutes on two
idle cores.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from salt_tui.runner.events import RunEvent
from salt_tui.runner.loop import Loop, ReadyWork
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import RunRequest
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.results import StoredGeneration

TASKS = ("kronecker_product", "first_order_logic")
SHORT = 2
"""Tokens of each answer in the run that is cut."""


def _ignore(event: RunEvent) -> None:
    """Show nothing."""


def _seconds(prepare: Callable[[], ReadyWork]) -> float:
    """Compute what is prepared and return the seconds from its first job to its last, loading apart."""
    ready = prepare()
    try:
        began = time.monotonic()
        Loop(ready, _ignore, threading.Event()).run()
        return time.monotonic() - began
    finally:
        ready.close()


def _run_seconds(model: str, limit: int, database: Path, max_tokens: int | None) -> float:
    request = RunRequest(model, TASKS, "trivial", limit, 1, max_tokens=max_tokens)
    return _seconds(lambda: prepare_run(request, database, _ignore))


def _shared_turns(queries: Queries, questions: Sequence[StoredGeneration]) -> int:
    """Return the tokens of turns that several questions share: they are walked once and stand before the reply."""
    lengths: dict[int | None, set[int]] = {}
    for question in questions:
        lengths.setdefault(question.parent, set()).add(len(queries.prompt(question.id) or ()))
    return sum(length - min(found) for found in lengths.values() for length in found)


def measure(model: str, limit: int, folder: Path) -> Iterator[str]:
    """Make a run, ask about it, walk it, and yield the ratios in words."""
    cut, whole = folder / "cut.db", folder / "whole.db"
    cut_took, took = _run_seconds(model, limit, cut, SHORT), _run_seconds(model, limit, whole, None)
    with open_queries(cut) as queries:
        cut_said = sum(answer.tokens for answer in queries.answers(1))
    with open_queries(whole) as queries:
        answers = [answer for answer in queries.answers(1) if answer.generation is not None]
        said = sum(answer.tokens for answer in answers)
    rate = (said - cut_said) / (took - cut_took)
    prompts = max(0.0, cut_took - cut_said / rate)
    yield f"{len(answers)} answers, {said:,} tokens: {took:.1f} s, {rate:.0f} tokens/s, prompts {prompts:.1f} s"

    options = {"functions": "p_true,p_true_independent,verbalised"}
    asking = _seconds(lambda: prepare_study(StudyRequest("verbalised", "1", options), whole, _ignore))
    with open_queries(whole) as queries:
        questions = queries.generations(queries.find_work("1.1"))
        asked = sum(len(queries.tokens(question.id)) for question in questions) + _shared_turns(queries, questions)
    expected = prompts + (said + asked) / rate
    yield (
        f"{len(questions)} questions: {asking:.1f} s for {said + asked:,} tokens, {asking / expected:.2f} times what"
        " they and the prompts take at the run's rate"
    )
    walking = _seconds(lambda: prepare_study(StudyRequest("activations", "1", {}), whole, _ignore))
    walked = said + len(answers)  # one more each, for the last token's own state
    yield f"activations of all layers: {walking:.1f} s, {walking / (prompts + walked / rate):.2f} times as much"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("--limit", type=int, default=8)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in measure(asked.model, asked.limit, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
