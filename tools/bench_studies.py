"""Time questions about stored answers beside the answers: `python -m tools.bench_studies`.

A run is made and asked about (`study verbalised`, every function and unit).  What the questions take is compared with
what as many tokens would take at the run's own decode rate: those of each answer once, those of the turns, and those
that are chosen or said.  1.0 would be no loss at all, 1.2 is the goal.  `-m MODEL` takes another model than the bundled
one, `--limit 16` more answers.  Three minutes on two idle cores.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from salt_tui.runner.events import RunEvent
from salt_tui.runner.loop import Loop, ReadyWork
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import RunRequest
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from salt_tui.store.queries import open_queries
from salt_tui.store.records import Work

TASKS = ("kronecker_product", "words_collection")


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


def measure(model: str, limit: int, database: Path) -> str:
    """Make a run, ask about it, and return the ratio in words."""
    _seconds(lambda: prepare_run(RunRequest(model, TASKS, "trivial", limit, 1), database, _ignore))
    options = {"functions": "p_true,p_true_independent,verbalised"}
    took = _seconds(lambda: prepare_study(StudyRequest("verbalised", "1", options), database, _ignore))
    with open_queries(database) as queries:
        width = next(run.width for run in queries.list_runs()) or 1
        answers = [answer for answer in queries.answers(1) if answer.generation is not None]
        questions = queries.generations(queries.find_work("1.1"))
        said = sum(answer.tokens for answer in answers)
        asked = sum(len(queries.tokens(question.id)) for question in questions)
        decoding = sum(answer.decode_seconds or 0.0 for answer in queries.generations(Work(1)))
        prompts = sum(answer.prompt_seconds or 0.0 for answer in queries.generations(Work(1)))
    # Answers are decoded side by side; a prompt is evaluated alone, and the questions evaluate each one once more.
    rate = width * said / decoding
    expected = (said + asked) / rate + prompts / width
    return (
        f"{len(questions)} questions about {len(answers)} answers, width {width}: {took:.1f} s for {said + asked:,}"
        f" tokens, {took / expected:.2f} times what they take at the run's {rate:.0f} tokens/s"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("--limit", type=int, default=8)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(measure(asked.model, asked.limit, Path(folder) / "bench.db"))


if __name__ == "__main__":
    main()
