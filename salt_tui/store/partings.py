"""Where a second model would have gone elsewhere than stored answers, read from its walks through their tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from salt_tui.store.queries import Queries
from salt_tui.store.records import Work
from salt_tui.store.results import StoredToken

KL = "kl_lower_bound"
"""The signal of tokens that says how far the two models are apart."""

INFINITE = "infinite: the second model rules out what the first allows"
"""The reason of a divergence without a value: the store holds no infinite number."""


@dataclass(frozen=True, slots=True)
class Parting:
    """Where the two models part in one answer.

    Attributes:
        task: of the answer.
        position: of its problem in the task, 0-based.
        tokens: number of tokens that the second model walked.
        apart: places, 0-based, at which another token is its likeliest one; ascending.
        said: what the answer has at the first of them; None where there is none.
        other: what the second model would have said there.
        mean_kl: mean over tokens, in nats, of a lower bound of the divergence; infinite where one of them is, None
            where none is known.
        infinite: number of tokens at which it is.
        ended: the walk is over.
        complete: it came to the end of the answer.
    """

    task: str
    position: int
    tokens: int
    apart: tuple[int, ...]
    said: bytes | None
    other: bytes | None
    mean_kl: float | None
    infinite: int = 0
    ended: bool = True
    complete: bool = True


def read_partings(queries: Queries, work: Work) -> Iterator[Parting]:
    """Yield every answer that a study of kind ``second-model`` has walked, in the order of the plan."""
    divergence: dict[int, list[float]] = {}
    if any(signal.name == KL for signal in queries.signal_names(work.run) if signal.work == work):
        for record in queries.signals(work.run, f"{KL}@{work}", "token"):
            value = inf if record.reason == INFINITE else record.value
            if value is not None:
                divergence.setdefault(record.generation, []).append(value)
    for walk in queries.generations(work, "walk"):
        tokens = queries.tokens(walk.id)
        apart = tuple(place for place, token in enumerate(tokens) if _goes_elsewhere(token))
        first = tokens[apart[0]] if apart else None
        values = divergence.get(walk.parent or 0, [])
        mean = sum(values) / len(values) if values else None
        yield Parting(
            task=walk.task,
            position=walk.position,
            tokens=len(tokens),
            apart=apart,
            said=None if first is None else first.piece,
            other=None if first is None else first.alternative_pieces[0],
            mean_kl=mean,
            infinite=values.count(inf),
            ended=walk.stop_reason is not None,
            complete=walk.stop_reason in {"end", "done"},
        )


def _goes_elsewhere(token: StoredToken) -> bool:
    return bool(token.record.alternatives) and token.record.alternatives[0] != token.record.id
