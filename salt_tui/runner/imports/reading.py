"""One row of answers from elsewhere, scored as it would have been while it streamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from salt_tui.engine.events import Chosen, Token
from salt_tui.inputs.brought_tokens import BroughtToken, BroughtTokensError
from salt_tui.runner.answering import finish_answer
from salt_tui.runner.asked_problems import choice_signals, form_of, spelled_choice
from salt_tui.runner.brought_tokens import tokens_of_row
from salt_tui.runner.imports.problem_rows import RowProblemError, problem_of_row
from salt_tui.runner.live_answer import LiveAnswer
from salt_tui.store.records import FinishedAnswer, GenerationEnd, SignalRecord, TokenRecord, UnitRecord
from scoring.answer_status import StopReason
from tasks.answer import split_reference

LONGEST_MODEL = 200
"""Characters of the name of a model."""

_STOP_REASONS: Mapping[object, StopReason] = {None: "end", "stop": "end", "length": "length"}
"""By OpenAI's ``finish_reason``; a row without one ended by itself."""


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """A row as it is stored.

    Attributes:
        answer: with its problem, tokens and units.
        model: its name; None where the row gives none.
        shots: worked examples before the problem.
        has_tokens: whether log-probabilities came with it.
    """

    answer: FinishedAnswer
    model: str | None
    shots: int
    has_tokens: bool


def read_answer(row: Mapping[str, Any], position: int) -> ReadAnswer:
    """Check and score a row of ``tasks export`` with a ``response``, and perhaps ``model`` and ``logprobs``.

    Args:
        row: the object.
        position: of its problem among the rows of its task, from 0.

    Raises:
        RowProblemError: says which field is wrong.
    """
    problem, shots = problem_of_row(row, position)
    response = row.get("response")
    if not isinstance(response, str):
        wrong = "no text" if "response" in row else "missing: put what the model answered there"
        raise RowProblemError(f"'response' is {wrong}")
    reason = row.get("finish_reason")
    if not (reason is None or isinstance(reason, str)) or reason not in _STOP_REASONS:
        raise RowProblemError(f"'finish_reason' is {str(reason)[:40]!r}; stop or length")
    try:
        tokens = tokens_of_row(response, row)
    except BroughtTokensError as error:
        raise RowProblemError(str(error)) from error
    form = form_of(problem)
    answer = LiveAnswer(form, split_reference(form, problem.reference), (), thinking_open=False)
    units: list[UnitRecord] = []
    records: list[TokenRecord] = []
    feeds = [answer.add_text(response.encode())] if not tokens else []
    for number, token in enumerate(tokens):
        record, changes = answer.add(_token(number, token))
        records.append(record)
        feeds.append(changes)
    changes, status = finish_answer(answer, _STOP_REASONS[reason], whole=True)
    for found in (*feeds, changes):
        if found.withdrawn:
            units.clear()
        units += found.units
    end = GenerationEnd(answer.reply, _STOP_REASONS[reason], answer.extraction, status, None, None, None)
    letters = _letters(len(problem.choices), tokens) if problem.answer_kind == "choice" else ()
    finished = FinishedAnswer(problem, end, answer.revision, tuple(records), tuple(units), letters)
    return ReadAnswer(finished, _model(row.get("model")), shots, bool(tokens))


def _letters(count: int, tokens: Sequence[BroughtToken]) -> tuple[SignalRecord, ...]:
    """Return what the first token of a reply says of all letters; nothing where it is no letter itself."""
    first = next((token for token in tokens if token.piece), None)
    choice = spelled_choice(count, sampled=False)
    if first is None or first.log_probability is None or first.piece not in choice.options:
        return ()
    listed = dict(zip(first.alternatives, first.alternative_log_probabilities, strict=True))
    listed.setdefault(first.piece, first.log_probability)
    found = Chosen(0, 0, tuple(listed.get(option) for option in choice.options), choice.options.index(first.piece))
    return choice_signals(0, choice, found)


def _token(number: int, token: BroughtToken) -> Token:
    return Token(
        key=0,
        position=number,
        id=None,
        log_probability=token.log_probability,
        entropy=token.entropy,
        alternatives=token.alternatives,
        alternative_log_probabilities=token.alternative_log_probabilities,
        forced=False,
        end=token.end,
        piece=token.piece,
    )


def _model(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_MODEL or not value.isprintable():
        raise RowProblemError(f"'model' is no name of at most {LONGEST_MODEL} printable characters")
    return value.strip()
