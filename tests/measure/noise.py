"""Units of runs with a known truth: confidences that mean nothing, or one that means something."""

from __future__ import annotations

import numpy as np

from salt_tui.measure.course import course_of_answers, mean_confidences
from salt_tui.measure.findings import Finding
from salt_tui.measure.rates import measure_rates
from salt_tui.measure.run_report import measure_findings
from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from scoring.confidence import CONFIDENCE_FUNCTIONS

CORRECT, WRONG = UNIT_STATUSES.index("correct"), UNIT_STATUSES.index("wrong")
LINE = 2
"""Atoms of a line: so few that some lines are right."""


def drawn_run(
    seed: int, tasks: int = 8, answers: int = 20, atoms: int = 10, gain: float = 0.0
) -> dict[str, UnitColumns]:
    """Return the units of a run whose answers differ in how right they are.

    Args:
        seed: draws everything.
        tasks: how many.
        answers: per task.
        atoms: per answer, an even number.
        gain: standard deviations by which ``mean_probability`` is higher where a unit is right; all else is noise.
    """
    draw = np.random.default_rng(seed)
    whole = tasks * answers
    skill = draw.beta(2.0, 2.0, size=whole)
    atom = draw.random((whole, atoms)) < skill[:, None]
    kinds = {
        "atom": atom,
        "line": atom.reshape(whole, atoms // LINE, LINE).all(axis=2),
        "generation": (skill > 0.6)[:, None],  # whole answers of ten atoms would hardly ever be right
    }
    return {kind: _columns(kind, right, answers, draw, gain) for kind, right in kinds.items()}


def _columns(kind: str, right: np.ndarray, answers: int, draw: np.random.Generator, gain: float) -> UnitColumns:
    whole, count = right.shape
    generation = np.repeat(np.arange(whole), count)
    size = whole * count
    confidences = {name: draw.random(size) for name in CONFIDENCE_FUNCTIONS}
    if gain:
        logit = draw.normal(size=size) + gain * right.ravel()
        confidences["mean_probability"] = 1.0 / (1.0 + np.exp(-logit))
    return UnitColumns(
        kind=kind,
        task_names=tuple(f"task{number}" for number in range(whole // answers)),
        task=generation // answers,
        generation=generation,
        position=generation % answers,
        index=np.tile(np.arange(count), whole),
        line=np.tile(np.arange(count) // (LINE if kind == "atom" else 1), whole),
        status=np.where(right.ravel(), CORRECT, WRONG),
        confidences=confidences,
    )


def findings_of(columns: dict[str, UnitColumns], draws: int) -> dict[str, Finding]:
    """Return what a whole report would say, by question."""
    atoms = columns["atom"]
    rates, says, course = measure_rates(atoms), mean_confidences(atoms), course_of_answers(atoms)
    findings, _, _ = measure_findings(columns, rates, says, course, draws)
    return {finding.question: finding for finding in findings}


def names_a_best(finding: Finding, alternatives: int) -> bool:
    """Return whether a finding leaves fewer than all alternatives as the possible best."""
    return 0 < len(finding.best) < alternatives
