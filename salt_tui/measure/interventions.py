"""What prefix interventions found: from the branches of studies to contrasts, curves and checks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

from salt_tui.store.queries import Queries
from salt_tui.store.records import InterventionRecord, TokenRecord, Work
from salt_tui.store.results import StoredToken
from salt_tui.store.stored_values import Place
from scoring.intervals import DRAWS
from scoring.interventions import OUTCOMES, InterventionRow, InterventionTable, Outcome
from scoring.interventions_contrasts import Contrast, contrasts
from scoring.interventions_length import LengthResponse, length_responses
from tasks.registry import get_task

NO_ATOM = "no atom at the target"
"""Why an outcome is wrong without a wrong atom; such branches count as Y = 0 and are counted."""


@dataclass(frozen=True, slots=True)
class BaselineCheck:
    """Whether the unchanged replays gave the stored answers again.

    Attributes:
        replays: unchanged replays that were compared, token by token.
        identical: whether every id and log-probability is the stored one, bit for bit; None without a replay.
        differing: replays in which one is not.
        largest_difference: largest absolute difference of log-probabilities of equal ids at the same place; 0 when all
            are identical.
        other_text: replays in which the model chose another token than it did in the answer.
    """

    replays: int
    identical: bool | None
    differing: int
    largest_difference: float
    other_text: int


@dataclass(frozen=True, slots=True)
class OutcomeFindings:
    """Everything about one outcome of one task.

    Attributes:
        outcome: Y or P(gold).
        baseline: its mean over unchanged replays; None without one.
        contrasts: the four of table 4.
        lengths: controlled and uncontrolled, as in table 5.
    """

    outcome: Outcome
    baseline: float | None
    contrasts: tuple[Contrast, ...]
    lengths: tuple[LengthResponse, ...]


@dataclass(frozen=True, slots=True)
class TaskFindings:
    """What the interventions on one task found.

    Attributes:
        task: its name.
        caveat: what must be said beside every result of it; empty for none.
        chunked: texts before targets were evaluated in chunks, in one study at least, so nothing of it is exact.
        models, problems, targets, replays: how many there are.
        without_atom: replays in which the model wrote no atom at the target; they count as wrong.
        without_outcome: replays that could not be computed, by reason; they are left out with their target if it is
            the unchanged one.
        outcomes: by name.
    """

    task: str
    caveat: str
    chunked: bool
    models: int
    problems: int
    targets: int
    replays: int
    without_atom: int
    without_outcome: Mapping[str, int]
    outcomes: Mapping[Outcome, OutcomeFindings]


@dataclass(frozen=True, slots=True)
class InterventionFindings:
    """What one study, or several of different models together, found.

    Attributes:
        studies: names of the studies.
        chunked: names of those that evaluated the texts before targets in chunks.
        check: the unchanged replays against the stored answers.
        tasks: in the order of the run.
        rows: every branch with its design, for tables and exports.
    """

    studies: tuple[str, ...]
    chunked: tuple[str, ...]
    check: BaselineCheck
    tasks: tuple[TaskFindings, ...]
    rows: tuple[BranchRow, ...]


@dataclass(frozen=True, slots=True)
class BranchRow:
    """One branch with what names it; ``intervention`` holds its design and outcome.

    Attributes:
        study: name of the study.
        model: name of the model.
        task, position: the answer, position from 0.
        content: content hash of the problem.
        chunked: the text before the target was evaluated in chunks.
        intervention: as stored.
    """

    study: str
    model: str
    task: str
    position: int
    content: str
    chunked: bool
    intervention: InterventionRecord

    @property
    def probability(self) -> float | None:
        """P(gold), in [0, 1]."""
        value = self.intervention.log_probability_reference
        return None if value is None else exp(value)

    def columns(self) -> dict[str, Any]:
        """Return every column that the regressions need, by name; targets and edited atoms are counted from 1.

        The caveat of the task stands in each row.
        """
        record = self.intervention
        return {
            "study": self.study,
            "model": self.model,
            "task": self.task,
            "position": self.position,
            "problem": self.content,
            "answer": record.answer,
            "generation": record.generation,
            "target": record.target + 1,
            "variant": record.variant,
            "direction": record.direction,
            "edits": [[index + 1, text] for index, text in record.edits],
            "chunked": int(self.chunked),
            "treatment_global": record.treatment_global,
            "treatment_local": record.treatment_local,
            "length": record.length,
            "correct_before": record.correct_before,
            "correct_before_local": record.correct_before_local,
            "outcome": None if record.outcome is None else int(record.outcome),
            "log_probability_gold": record.log_probability_reference,
            "probability_gold": self.probability,
            "reason": record.reason,
            "caveat": caveat_of(self.task),
        }


def measure_interventions(queries: Queries, studies: Sequence[Work], draws: int = DRAWS) -> InterventionFindings:
    """Measure the branches of studies of kind ``interventions``; several of them count as several models.

    Args:
        queries: of the database.
        studies: of different runs.
        draws: resamples behind the intervals.
    """
    rows: list[BranchRow] = []
    checks = []
    for study in studies:
        own = branch_rows(queries, study)
        rows.extend(own)
        checks.append(check_baselines(queries, own))
    tasks = tuple(
        _measure_task(task, [row for row in rows if row.task == task], draws)
        for task in dict.fromkeys(row.task for row in rows)
    )
    replays = sum(check.replays for check in checks)
    differing = sum(check.differing for check in checks)
    return InterventionFindings(
        studies=tuple(study.title for study in studies),
        chunked=tuple(dict.fromkeys(row.study for row in rows if row.chunked)),
        check=BaselineCheck(
            replays=replays,
            identical=None if not replays else differing == 0,
            differing=differing,
            largest_difference=max((check.largest_difference for check in checks), default=0.0),
            other_text=sum(check.other_text for check in checks),
        ),
        tasks=tasks,
        rows=tuple(rows),
    )


def branch_rows(queries: Queries, study: Work) -> tuple[BranchRow, ...]:
    """Return the branches of a study, ordered by answer, target and branch."""
    stored = queries.study_record(study)
    chunked = Place(queries.path, study.title).read("plan", stored.record.plan, _is_chunked)
    answers = {answer.generation: answer.problem for answer in queries.answers(study.run)}
    return tuple(
        BranchRow(
            study=study.title,
            model=stored.model.name,
            task=answers[record.answer].task,
            position=answers[record.answer].position,
            content=answers[record.answer].content_id,
            chunked=chunked,
            intervention=record,
        )
        for record in queries.interventions(study)
    )


def _is_chunked(plan: str) -> bool:
    return bool(json.loads(plan).get("options", {}).get("chunked"))


def check_baselines(queries: Queries, rows: Sequence[BranchRow]) -> BaselineCheck:
    """Compare the tokens of every unchanged replay with those of the stored answer, as far as both go."""
    replays = differing = other_text = 0
    largest = 0.0
    stored: dict[int, list[StoredToken]] = {}
    for row in rows:
        if row.intervention.direction != "baseline" or row.intervention.outcome is None:
            continue
        answer = row.intervention.answer
        if answer not in stored:
            stored[answer] = queries.tokens(answer)
        replays += 1
        identical = True
        for one, other in zip(stored[answer], queries.tokens(row.intervention.generation), strict=False):
            before, after = one.record.log_probability, _log_probability(other.record, one.record.id)
            if before is not None and after is not None:
                largest = max(largest, abs(before - after))
            identical = identical and before == after is not None
            if one.record.id != other.record.id:
                identical = False
                other_text += 1
                break
        differing += not identical
    return BaselineCheck(replays, None if not replays else differing == 0, differing, largest, other_text)


def _log_probability(token: TokenRecord, wanted: int | None) -> float | None:
    """Return what a token's distribution gave to an id; None where the stored part of it does not hold that."""
    if token.id == wanted:
        return token.log_probability
    listed = zip(token.alternatives, token.alternative_log_probabilities, strict=True)
    return next((value for one, value in listed if one == wanted), None)


def caveat_of(task: str) -> str:
    """Return what must be said beside every result of interventions on a task; empty for nothing."""
    return get_task(task).dependence.intervention_caveat


def _measure_task(task: str, rows: Sequence[BranchRow], draws: int) -> TaskFindings:
    known = [row for row in rows if row.intervention.outcome is not None]
    based = {_triple(row) for row in known if row.intervention.direction == "baseline"}
    usable = [row for row in known if _triple(row) in based]
    reasons = Counter(row.intervention.reason or "" for row in rows if row.intervention.outcome is None)
    if len(usable) < len(known):
        reasons["the unchanged replay has no outcome"] += len(known) - len(usable)
    return TaskFindings(
        task=task,
        caveat=caveat_of(task),
        chunked=any(row.chunked for row in rows),
        models=len({row.model for row in usable}),
        problems=len({row.content for row in usable}),
        targets=len(based),
        replays=len(usable),
        without_atom=sum(row.intervention.reason == NO_ATOM for row in usable),
        without_outcome=dict(reasons),
        outcomes={outcome: _measure_outcome(outcome, usable, draws) for outcome in OUTCOMES},
    )


def _triple(row: BranchRow) -> tuple[str, str, int]:
    return row.study, row.content, row.intervention.target


def _measure_outcome(outcome: Outcome, rows: Sequence[BranchRow], draws: int) -> OutcomeFindings:
    if outcome == "probability":
        missing = {_triple(row) for row in rows if row.probability is None and not row.intervention.edits}
        rows = [row for row in rows if _triple(row) not in missing]
    table = InterventionTable.from_rows([_scored(row) for row in rows], outcome)
    baseline = float(table.outcome[table.baseline].mean()) if table.size else None
    return OutcomeFindings(outcome, baseline, contrasts(table, draws), length_responses(table, outcome, draws))


def _scored(row: BranchRow) -> InterventionRow:
    record = row.intervention
    return InterventionRow(
        model=row.study,  # one study a model: `measure_interventions`
        problem=row.content,
        target=record.target + 1,
        baseline=record.direction == "baseline",
        treatment_global=record.treatment_global or 0.0,
        treatment_local=record.treatment_local or 0.0,
        correct_before=record.correct_before or 0.0,
        correct_before_local=record.correct_before_local or 0.0,
        outcome=int(record.outcome or 0),
        probability=row.probability,
    )
