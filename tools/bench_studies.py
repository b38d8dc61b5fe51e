"""Time studies of stored answers beside the answers: `python -m tools.bench_studies`.

A run is made, asked about (`study verbalised`, every function and unit), and walked with the states of all layers taken
(`study activations`).  What each takes is compared with what its prompts and as many tokens take at the run's own rate:
those of each answer once, those of the turns, and those that are chosen or said.  1.0 would be no loss at all; 1.2 is
the goal of both.  The rate is that of a run of long answers beside one that is cut after two tokens, so that prompts
and loading do not count.  `-m MODEL` takes another model than the bundled one, `--limit 16` more answers.  A few
minutes on two idle cores.  On a busy machine only processor time says something, with one thread (`-t 1`): threads that
wait for each other spin.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from salt_tui.runner.events import RunEvent
from salt_tui.runner.loop import Loop, ReadyWork
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import EngineOptions, RunRequest
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.results import StoredGeneration

TASKS = ("kronecker_product", "words_collection")
LONG_ANSWERS = ("first_order_logic",)
SHORT = 2
"""Tokens of each answer in the run that is cut."""


def _ignore(event: RunEvent) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What computing took: seconds by the clock, loading apart, and of processor time, loading included."""

    clock: float
    processor: float

    def plus(self, other: Spent, times: float) -> Spent:
        """Return this and so many times the other."""
        return Spent(self.clock + times * other.clock, self.processor + times * other.processor)

    def beside(self, expected: Spent) -> str:
        """Return the ratios to what was expected, in words."""
        return (
            f"{self.clock:.1f} s, {self.clock / expected.clock:.2f} times that by the clock,"
            f" {self.processor / expected.processor:.2f} times in processor time"
        )


def _processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _spent(prepare: Callable[[], ReadyWork]) -> Spent:
    """Compute what is prepared, and end the child."""
    before = _processor_seconds()
    ready = prepare()
    try:
        began = time.monotonic()
        Loop(ready, _ignore, threading.Event()).run()
        took = time.monotonic() - began
    finally:
        ready.close()
    return Spent(took, _processor_seconds() - before)


def _run(
    asked: argparse.Namespace, tasks: tuple[str, ...], limit: int, database: Path, max_tokens: int | None
) -> Spent:
    engine = EngineOptions(threads=asked.threads)
    request = RunRequest(asked.model, tasks, "trivial", limit, 1, max_tokens=max_tokens, engine=engine)
    return _spent(lambda: prepare_run(request, database, _ignore))


def _shared_turns(queries: Queries, questions: Sequence[StoredGeneration]) -> int:
    """Return the tokens of turns that several questions share: they are walked once and stand before the reply."""
    lengths: dict[int | None, set[int]] = {}
    for question in questions:
        lengths.setdefault(question.parent, set()).add(len(queries.prompt(question.id) or ()))
    return sum(length - min(found) for found in lengths.values() for length in found)


def _token(asked: argparse.Namespace, folder: Path) -> Spent:
    """Return what a token takes in a run: long answers beside the same ones cut short, so that prompts do not count.

    As many answers as fill the slots to the end: an idle one costs as much as a busy one.
    """
    spent, said = [], []
    width = EngineOptions().width
    limit = -(-asked.limit // width) * width
    for name, most in (("cut.db", SHORT), ("whole.db", None)):
        spent.append(_run(asked, LONG_ANSWERS, limit, folder / name, most))
        with open_queries(folder / name) as queries:
            said.append(sum(answer.tokens for answer in queries.answers(1)))
    return Spent(0.0, 0.0).plus(spent[1].plus(spent[0], -1.0), 1 / (said[1] - said[0]))


def measure(asked: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Make a run, ask about it, walk it, and yield the ratios in words."""
    token = _token(asked, folder)
    database = folder / "run.db"
    run = _run(asked, TASKS, asked.limit, database, None)
    with open_queries(database) as queries:
        answers = [answer for answer in queries.answers(1) if answer.generation is not None]
        said = sum(answer.tokens for answer in answers)
    prompts = run.plus(token, -said)
    yield (
        f"{len(answers)} answers, {said:,} tokens: {run.clock:.1f} s, {1 / token.clock:.0f} tokens/s,"
        f" prompts {prompts.clock:.1f} s"
    )

    options = {"functions": "p_true,p_true_independent,verbalised"}
    asking = _spent(lambda: prepare_study(StudyRequest("verbalised", "1", options), database, _ignore))
    with open_queries(database) as queries:
        questions = queries.generations(queries.find_work("1.1"))
        chosen = sum(len(queries.tokens(question.id)) for question in questions) + _shared_turns(queries, questions)
    expected = prompts.plus(token, said + chosen)
    yield f"{len(questions)} questions, {said + chosen:,} tokens: {asking.beside(expected)}"

    walking = _spent(lambda: prepare_study(StudyRequest("activations", "1", {}), database, _ignore))
    walked = said + len(answers)  # one more each, for the last token's own state
    yield f"activations of all layers, {walked:,} tokens: {walking.beside(prompts.plus(token, walked))}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("--limit", type=int, default=8)
    parser.add_argument("-t", "--threads", type=int, default=None)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in measure(asked, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
