"""How long a run still takes, on simulated runs whose true time is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.runner.events import (
    AnswerFinished,
    AnswerRetried,
    AnswerStarted,
    PromptEvaluated,
    RunEvent,
    RunStarted,
    TaskProgress,
    TokenArrived,
)
from salt_tui.runner.time_left import TimeLeft

pytestmark = pytest.mark.quick

SECONDS_PER_TOKEN = 0.1


class Simulation:
    """A run of one answer after the other at a constant rate.

    Args:
        tasks: by name, the planned tokens of an answer and the real ones of each.
        done: answers of every task that an earlier session finished.
    """

    def __init__(self, tasks: dict[str, tuple[int, list[int]]], done: int = 0) -> None:
        self.now = 100.0
        self.left = TimeLeft(lambda: self.now)
        self._tasks = tasks
        progress = [
            TaskProgress(name, done, done + len(answers), planned) for name, (planned, answers) in tasks.items()
        ]
        self.left.apply(RunStarted(1, "m", "CPU", 1, "easy", True, tuple(progress), ()))

    def events(self) -> Iterator[RunEvent]:
        """Give what happens."""
        generation = 0
        for name, (_, answers) in self._tasks.items():
            for position, tokens in enumerate(answers):
                generation += 1
                yield AnswerStarted(generation, name, position, 1, (1,))
                yield from (TokenArrived(generation, index) for index in range(tokens))
                yield AnswerFinished(generation, name, position, "complete", 1, 1, 1, tokens)

    def true_seconds(self) -> float:
        """Return what the whole run takes."""
        return SECONDS_PER_TOKEN * sum(sum(answers) for _, answers in self._tasks.values())

    def run(self, check: Callable[[AnswerFinished | TokenArrived, float], None]) -> None:
        """Let it happen; ``check`` is told the seconds that are really left."""
        left = self.true_seconds()
        for event in self.events():
            if isinstance(event, TokenArrived):
                self.now += SECONDS_PER_TOKEN
                left -= SECONDS_PER_TOKEN
            self.left.apply(event)
            if isinstance(event, AnswerFinished | TokenArrived):
                check(event, left)


@given(
    st.dictionaries(
        st.sampled_from(["maze", "code", "dna", "logic"]),
        st.tuples(st.integers(1, 40), st.integers(1, 6)),
        min_size=1,
    ),
    st.integers(1, 3),
    st.integers(0, 4),
)
def test_it_is_exact_where_answers_are_a_fixed_multiple_of_what_was_planned(
    tasks: dict[str, tuple[int, int]], multiple: int, done: int
) -> None:
    simulation = Simulation(
        {name: (planned, [multiple * planned] * answers) for name, (planned, answers) in tasks.items()}, done
    )
    estimates = []

    def check(event: AnswerFinished | TokenArrived, left: float) -> None:
        found = simulation.left.seconds()
        estimates.append(found)
        if found is not None:
            assert found == pytest.approx(left, abs=1e-6)

    simulation.run(check)
    assert (estimates[-1] is None) == (sum(answers for _, answers in tasks.values()) < 2)


def test_short_answers_first_do_not_promise_that_all_are_short() -> None:
    simulation = Simulation({"short": (10, [8, 12, 9, 11, 10]), "long": (200, [210] * 5)})
    seen = {}

    def check(event: AnswerFinished | TokenArrived, left: float) -> None:
        if isinstance(event, AnswerFinished):
            seen[event.task, event.position] = simulation.left.seconds(), left

    simulation.run(check)
    assert seen["short", 0][0] is None
    estimate, truth = seen["short", 4]
    assert estimate is not None
    # The mean time of an answer so far would have said 5 seconds.
    assert truth == pytest.approx(105)
    assert estimate == pytest.approx(truth, rel=0.1)


def test_what_a_task_really_takes_outweighs_the_plan() -> None:
    simulation = Simulation({"first": (10, [10] * 4), "second": (10, [50] * 20)})
    found = {}

    def check(event: AnswerFinished | TokenArrived, left: float) -> None:
        found[event.generation] = simulation.left.seconds(), left

    simulation.run(check)
    estimate, truth = found[14]
    assert estimate == pytest.approx(truth, rel=0.1)


SECONDS_PER_PROMPT_TOKEN = 0.01


def test_prompts_that_are_left_count_at_their_own_pace() -> None:
    """Answers of one length after prompts of 100 and of 1,000 tokens, of which 40 are there already for each."""
    tasks = {"short": 100, "long": 1_000}
    now, answers, preamble, tokens = 5.0, 4, 40, 10
    left = TimeLeft(lambda: now)
    progress = tuple(TaskProgress(name, 0, answers, tokens, prompt - preamble) for name, prompt in tasks.items())
    left.apply(RunStarted(1, "m", "CPU", 1, "easy", True, progress, ()))
    a_prompt = {name: (prompt - preamble) * SECONDS_PER_PROMPT_TOKEN for name, prompt in tasks.items()}
    truth = sum(answers * (seconds + tokens * SECONDS_PER_TOKEN) for seconds in a_prompt.values())
    ended = 0
    for name, prompt in tasks.items():
        for position in range(answers):
            ended += 1
            left.apply(AnswerStarted(ended, name, position, 1, (1,)))
            left.apply(PromptEvaluated(ended, preamble, prompt))
            for done in range(preamble + 30, prompt + 1, 30):
                now += 30 * SECONDS_PER_PROMPT_TOKEN
                truth -= 30 * SECONDS_PER_PROMPT_TOKEN
                left.apply(PromptEvaluated(ended, done, prompt))
                if ended > 2:
                    assert left.seconds() == pytest.approx(truth)
            for index in range(tokens):
                now += SECONDS_PER_TOKEN
                truth -= SECONDS_PER_TOKEN
                left.apply(TokenArrived(ended, index))
            left.apply(AnswerFinished(ended, name, position, "complete", 1, 1, 1, tokens))
            assert ended < 2 or left.seconds() == pytest.approx(truth, abs=1e-9)
    assert truth == pytest.approx(0.0)


def test_a_pause_without_tokens_makes_it_longer_and_a_retried_answer_counts_again() -> None:
    simulation = Simulation({"maze": (10, [10] * 4)})
    events = list(simulation.events())
    for event in events[:30]:
        simulation.now += SECONDS_PER_TOKEN * isinstance(event, TokenArrived)
        simulation.left.apply(event)
    before = simulation.left.seconds()
    assert before is not None
    simulation.now += 1.0
    slower = simulation.left.seconds()
    assert slower is not None
    assert slower > before
    simulation.now -= 1.0
    for event in (AnswerRetried(3, 2), AnswerStarted(3, "maze", 2, 2, (1,))):
        simulation.left.apply(event)
    assert simulation.left.seconds() == pytest.approx(20 * SECONDS_PER_TOKEN)


def test_without_a_run_or_a_rate_there_is_none() -> None:
    left = TimeLeft(lambda: 1.0)
    assert left.seconds() is None
    left.apply(RunStarted(1, "m", "CPU", 1, "easy", True, (TaskProgress("maze", 0, 9),), ()))
    for generation in range(3):
        left.apply(AnswerStarted(generation, "maze", generation, 1, (1,)))
        left.apply(AnswerFinished(generation, "maze", generation, "failed", 0, 0, 1, 0))
    assert left.seconds() is None
