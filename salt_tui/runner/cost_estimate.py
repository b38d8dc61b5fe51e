"""What a run will cost, before the model is loaded: answers, tokens and, from earlier runs, time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from salt_tui.runner.prompting import ANSWER_ALLOWANCE, ANSWER_MARGIN
from salt_tui.runner.request import RequestedTask, RunRequest, check_request, method_of
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import open_queries
from salt_tui.store.results import StoredAnswer
from tasks.own_problems import OwnTask, right_reply
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS, conversation, worked_answer
from tasks.task import Turn

SAMPLE = 3
"""Problems per task that are drawn to see how long they are."""

CHARACTERS_PER_TOKEN = 2.5
"""Numbers and codes, which make up most answers, come at one to three characters a token."""

EARLIER_RUNS = 5


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a model worked in an earlier run, all slots together.

    Attributes:
        run: which one.
        tokens_per_second: answer tokens.
        prompt_tokens_per_second: prompt tokens that were evaluated, None where it took no time.
        width: of that run.
        tokens_per_character: by task and method, the answer tokens of that run for each character of the right
            answer; how long a model's answers are differs between tasks and from the right ones.
    """

    run: int
    tokens_per_second: float
    prompt_tokens_per_second: float | None
    width: int
    tokens_per_character: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def expected_tokens(self, task: str, method: str, characters: float) -> float | None:
        """Return the answer tokens for a right answer of so many characters.

        From the task in that run, else from the mean of the run's other tasks with the method; None without any.
        """
        known = {name: ratio for (name, by), ratio in self.tokens_per_character.items() if by == method}
        if not known:
            return None
        return characters * known.get(task, _mean(list(known.values())))


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What to expect; tokens are rough, from characters.

    Attributes:
        answers: problems of all tasks.
        prompt_tokens: evaluated; the preamble of a task counts once.
        answer_tokens: when answers are as long as in the earlier run, without one as long as the right ones.
        most_tokens: when every answer runs to its limit.
        seconds, most_seconds: time for these at the pace of an earlier run, None without one.
    """

    answers: int
    prompt_tokens: int
    answer_tokens: int
    most_tokens: int
    seconds: float | None
    most_seconds: float | None


def estimate_cost(request: RunRequest, pace: Pace | None) -> CostEstimate:
    """Estimate from a few problems of each task.

    Raises:
        UsageError, ParameterError, ContextError: as for the run itself.
    """
    prompt = answer = most = 0.0
    answers = 0
    for item in check_request(request):
        sample = _own_sample(item, request) if isinstance(item, OwnTask) else _generated_sample(item, request)
        if not sample.questions:
            continue
        lengths = [characters / CHARACTERS_PER_TOKEN for characters in sample.replies]
        measured = None if pace is None else pace.expected_tokens(sample.task, request.method, _mean(sample.references))
        expected = _mean(lengths) if measured is None else measured
        limit = request.max_tokens or max(expected, ANSWER_ALLOWANCE * max(lengths) + ANSWER_MARGIN)
        answers += sample.count
        prompt += (sample.preamble + sample.count * _mean(sample.questions)) / CHARACTERS_PER_TOKEN
        answer += sample.count * min(expected, limit)
        most += sample.count * limit
    prompt_tokens, answer_tokens, most_tokens = (round(tokens) for tokens in (prompt, answer, most))
    return CostEstimate(
        answers,
        prompt_tokens,
        answer_tokens,
        most_tokens,
        _seconds(prompt_tokens, answer_tokens, pace),
        _seconds(prompt_tokens, most_tokens, pace),
    )


@dataclass(frozen=True, slots=True)
class _Sample:
    """Lengths in characters of a few problems of a task.

    Attributes:
        count: problems that the run will ask.
        preamble: what stands before each question.
        questions, replies, references: of each problem of the sample; replies are right ones as worded.
    """

    task: str
    count: int
    preamble: int
    questions: list[int]
    replies: list[int]
    references: list[int]


def _generated_sample(item: RequestedTask, request: RunRequest) -> _Sample:
    task, method = item.task, method_of(request.method)
    shots = DEFAULT_SHOTS if request.shots is None else request.shots
    count = min(request.limit, SAMPLE)
    drawn = draw_problems(task, request.difficulty, item.parameters, request.seed, count, shots).problems
    return _Sample(
        task=task.name,
        count=request.limit,
        preamble=_characters(conversation(task, drawn[0], method, shots)[:-1]) if drawn else 0,
        questions=[len(problem.text) for problem in drawn],
        replies=[len(worked_answer(task, problem, method)) for problem in drawn],
        references=[len(problem.reference) for problem in drawn],
    )


def _own_sample(task: OwnTask, request: RunRequest) -> _Sample:
    asked = task.problems[: request.limit]
    return _Sample(
        task=task.name,
        count=len(asked),
        preamble=_characters(task.conversation(asked[0], request.shots)[:-1]),
        questions=[len(problem.question) for problem in asked],
        replies=[len(right_reply(problem)) for problem in asked],
        references=[len(problem.reference) for problem in asked],
    )


def _characters(turns: Sequence[Turn]) -> int:
    return sum(len(turn.content) for turn in turns)


def earlier_pace(database: Path, model: str) -> Pace | None:
    """Return the pace of the newest of the last runs of a model that says one; None where there is none."""
    try:
        with open_queries(database) as queries:
            # A model that was given as a file is stored under the file's name.
            names = {model, Path(model).name, Path(model).stem}
            runs = [listing.run for listing in queries.list_runs() if listing.model in names and listing.answers_done]
            for run in runs[:EARLIER_RUNS]:
                width = int(queries.run_plan(run)["width"])
                answers = [answer for answer in queries.answers(run) if answer.decode_seconds]
                tokens = sum(answer.tokens for answer in answers)
                seconds = sum(answer.decode_seconds or 0.0 for answer in answers)
                if tokens and seconds > 0:
                    prompt = _evaluated_tokens(answers)
                    waited = sum(answer.prompt_seconds or 0.0 for answer in answers)
                    rate = prompt / waited if waited > 0 else None
                    return Pace(run, tokens / seconds * width, rate, width, _tokens_per_character(answers))
    except StoreError:
        return None
    return None


def _evaluated_tokens(answers: Sequence[StoredAnswer]) -> int:
    """Return the prompt tokens that were computed: of each answer its own part, and of each task one preamble."""
    preambles: dict[tuple[str, str], int] = {}
    own = 0
    for answer in answers:
        key = answer.problem.task, answer.problem.method
        preamble = answer.preamble or 0
        preambles[key] = max(preamble, preambles.get(key, 0))
        own += (answer.prompt_tokens or 0) - preamble
    return own + sum(preambles.values())


def _tokens_per_character(answers: Sequence[StoredAnswer]) -> dict[tuple[str, str], float]:
    tokens: Counter[tuple[str, str]] = Counter()
    characters: Counter[tuple[str, str]] = Counter()
    for answer in answers:
        key = answer.problem.task, answer.problem.method
        tokens[key] += answer.tokens
        characters[key] += len(answer.problem.reference)
    return {key: tokens[key] / characters[key] for key in tokens if tokens[key] and characters[key]}


def _seconds(prompt: int, answer: int, pace: Pace | None) -> float | None:
    if pace is None:
        return None
    waiting = prompt / pace.prompt_tokens_per_second if pace.prompt_tokens_per_second else 0.0
    return waiting + answer / pace.tokens_per_second


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
