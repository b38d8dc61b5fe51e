"""The tokens that a row of ``score`` or ``import`` brings: OpenAI's log-probabilities, or byte ranges."""

from __future__ import annotations

from collections.abc import Mapping

from salt_tui.engine.reported_tokens import ReportError, read_logprobs
from salt_tui.engine.token_alignment import AlignmentError, place_tokens
from salt_tui.inputs.brought_tokens import BroughtToken, BroughtTokensError, tokens_of_ranges

_NAMES = ("logprobs", "tokens")


def tokens_of_row(response: str, row: Mapping[str, object]) -> tuple[BroughtToken, ...]:
    """Return the tokens of a response; none where the row brings none.

    Args:
        response: the whole text.
        row: with ``logprobs``, OpenAI's object of a chat or completion or the list that the former holds; or with
            ``tokens``, see `tokens_of_ranges`.

    Raises:
        BroughtTokensError: both, something that is neither, or tokens of another text; names the field.
    """
    given = [name for name in _NAMES if row.get(name)]
    if len(given) > 1:
        raise BroughtTokensError("'logprobs' and 'tokens' say the same; leave one out")
    if not given:
        return ()
    try:
        return (
            _of_logprobs(response, row["logprobs"])
            if given == ["logprobs"]
            else tokens_of_ranges(response, row["tokens"])
        )
    except (ReportError, AlignmentError, BroughtTokensError) as error:
        raise BroughtTokensError(f"{given[0]!r}: {error}") from error


def _of_logprobs(response: str, logprobs: object) -> tuple[BroughtToken, ...]:
    reported = read_logprobs({"content": logprobs} if isinstance(logprobs, list) else logprobs)
    if not reported:
        raise BroughtTokensError("neither a chat's 'content' list nor the 'tokens' of a completion")
    return tuple(
        BroughtToken(
            token.piece,
            token.log_probability,
            None,
            token.alternatives,
            token.alternative_log_probabilities,
            token.end,
        )
        for token in place_tokens(response.encode(), reported)
    )
