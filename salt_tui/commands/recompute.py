"""Stored answers computed again: ``db check --recompute N``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from salt_tui.commands.computing import StopSignals, display_named
from salt_tui.commands.failures import describe_failure, say
from salt_tui.runner.difference import Difference
from salt_tui.runner.recomputation import recompute
from salt_tui.store.queries import Queries


@dataclass(slots=True)
class Recomputation:
    """What is to be computed again, and what became of it.

    Attributes:
        count: answers of every run.
        model: as after ``-m``; None takes the file where each run found it.
        answers: how many were computed again.
        failures: runs that could not be, with the reason.
        elsewhere: runs that no model here computed: answers of servers and of other programs.
    """

    count: int
    model: str | None
    answers: int = 0
    failures: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def differences(self, queries: Queries) -> Iterator[Difference]:
        """Compute answers of every run of a file again, and yield what came out otherwise.

        Raises:
            KeyboardInterrupt: a signal; nothing was changed.
        """
        for work in queries.all_works():
            if work.study is not None:
                continue
            if queries.run_record(work.run).record.statistics != "vocabulary":
                self.elsewhere.append(f"{work.title} was not computed here: its answers come from elsewhere")
                continue
            try:
                with StopSignals() as signals, display_named("none") as emit:
                    signals.computing = True
                    say(f"{work.title}: computing {self.count} answers again …")
                    done = recompute(queries, work.run, self.count, self.model, emit, signals.stop)
            except Exception as error:
                self.failures.append(describe_failure(error)[0])
                continue
            if signals.stop.is_set():
                raise KeyboardInterrupt
            self.answers += done.answers
            if done.elsewhere:
                say(f"{work.title} was computed in another environment: {'; '.join(done.elsewhere)}")
            yield from done.differences
