"""The studies of a run and the kinds that can be started on it: rows and words; no drawing here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from salt_tui.runner.studies.kind import StudyKind
from salt_tui.runner.studies.registry import STUDY_KINDS
from salt_tui.store.queries import open_queries
from salt_tui.store.records import RESUMABLE
from salt_tui.store.results import StudyListing
from scoring.answer_status import LEFT_OUT


@dataclass(frozen=True, slots=True)
class RunStudies:
    """What the screen lists.

    Attributes:
        run: number of the run.
        studies: that there are, in the order in which they were begun.
        answers: of the run that a study would be about.
        tokens: of these.
    """

    run: int
    studies: tuple[StudyListing, ...]
    answers: int
    tokens: int

    def title(self) -> str:
        """Return the line above the list."""
        count = len(self.studies)
        studies = "no studies yet" if not count else f"{count} stud{'y' if count == 1 else 'ies'}"
        return f"Run {self.run} · {studies} · {self.answers} answers of {self.tokens:,} tokens can be studied"

    def consequence(self, kind: StudyKind) -> str:
        """Say what starting a kind with its usual options means."""
        usually = [option for option in kind.options if option.default != "" and option.default is not False]
        options = ", ".join(f"{option.name.replace('_', ' ')} {option.default}" for option in usually)
        if kind.computed_by == "no model":
            cost = f"It reads what is stored of {self.answers} answers and needs no model."
        else:
            model = "another model" if kind.computed_by == "another model" else "the model again"
            cost = (
                f"It loads {model} and is about {self.answers} answers of {self.tokens:,} tokens. What it will"
                " take stands in the last row once the model is loaded; X stops it, and it can be resumed."
            )
        usual = f"\nWith {options}; `salt-tui study {kind.name} {self.run}` takes others." if options else ""
        return f"{kind.summary}\n{cost}{usual}"


def startable_kinds() -> tuple[StudyKind, ...]:
    """Return the kinds that need nothing but a run; single edits are made in Replay."""
    return tuple(kind for kind in STUDY_KINDS.values() if not kind.reused)


def row_of_study(study: StudyListing) -> str:
    """Return the row of a study."""
    begun = study.created_at[:16].replace("T", " ")
    again = "  r goes on" if study.state in RESUMABLE else ""
    exact = "  not exact" if study.exact is False else ""
    return f"{study.work!s:7} {study.kind:13} {study.state:11} {begun}{exact}{again}"


def row_of_kind(kind: StudyKind) -> str:
    """Return the row of a kind that can be started."""
    return f"start   {kind.name:13} {kind.summary}"


def read_studies(database: Path, run: int) -> RunStudies:
    """Read what there is of a run.  Raises `StoreError`."""
    with open_queries(database) as queries, queries.snapshot():
        answers = [
            answer
            for answer in queries.answers(run)
            if answer.answer_status is not None and answer.answer_status not in LEFT_OUT
        ]
        return RunStudies(run, tuple(queries.studies(run)), len(answers), sum(answer.tokens for answer in answers))
