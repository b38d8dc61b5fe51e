"""Two stored runs with studies that all figures are drawn from."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

import salt_tui.figures.measured
import salt_tui.measure.probes
from salt_tui.figures.measured import FigureOptions, Measured
from salt_tui.measure.probes import report_probes
from salt_tui.store.queries import open_queries
from salt_tui.store.records import GenerationEnd, GenerationStart, InterventionRecord, StudyRecord, TokenRecord
from salt_tui.store.store import open_store
from scoring.probe_estimators import ForestSettings
from scoring.probes import sample_complexity
from tests.cli.test_probe import add_activations
from tests.scoring.simulated_interventions import simulated_rows
from tests.stored_runs import store_run

TASKS = ("dna_translation", "maze", "kronecker_product")


def add_interventions(path: Path, run: int, seed: int) -> None:
    """Store replays of a task's answers whose outcomes follow a known rule."""
    with open_store(path) as store:
        work = store.create_study(run, StudyRecord("interventions", "{}", "hash", "{}", "hash", True, ()))
        store.claim(work)
        with open_queries(path) as queries:
            answers = [answer for answer in queries.answers(run) if answer.problem.task == "maze"]
        for number, row in enumerate(simulated_rows(seed, problems=len(answers), targets=3, variants=3)):
            answer = answers[int(row.problem.removeprefix("s"))]
            assert answer.generation is not None
            start = GenerationStart(
                answer.problem_id, (1, 2), 1, role="branch", parent=answer.generation, number=number
            )
            branch = store.begin_generation(work, start)
            store.end_generation(branch, GenerationEnd(b"", "end", "fenced", "complete", None, 0.1, 0.1))
            treatment = row.treatment_global
            record = InterventionRecord(
                generation=branch,
                answer=answer.generation,
                target=row.target - 1,
                variant="baseline" if row.baseline else "drawn",
                direction="baseline" if row.baseline else "correction" if treatment > 0 else "corruption",
                edits=() if row.baseline else ((0, "x"),),
                treatment_global=treatment,
                treatment_local=row.treatment_local,
                length=row.target - 1,
                correct_before=row.correct_before,
                correct_before_local=row.correct_before_local,
                outcome=bool(row.outcome),
                log_probability_reference=-0.1 if row.outcome else -2.0,
            )
            store.add_interventions(work, [record])
        store.release(work, "finished")


WALKED = 4
"""Tokens of each walk."""


def add_walks(path: Path, run: int) -> None:
    """Store what a second model says of each answer: that it goes elsewhere from the token of its position on."""
    with open_store(path) as store:
        work = store.create_study(run, StudyRecord("second-model", "{}", "hash", "{}", "hash", True, ()))
        store.claim(work)
        with open_queries(path) as queries:
            answers = queries.answers(run)
        for answer in answers:
            start = GenerationStart(answer.problem_id, (1, 2), 1, role="walk", parent=answer.generation)
            walk = store.begin_generation(work, start)
            store.add_tokens(walk, [_walked(place, place >= answer.problem.position) for place in range(WALKED)])
            store.end_generation(walk, GenerationEnd(b"A" * WALKED, "end", None, None, None, 0.1, 0.1))
        store.release(work, "finished")


def _walked(place: int, elsewhere: bool) -> TokenRecord:
    likeliest = (ord("B"), ord("A")) if elsewhere else (ord("A"), ord("B"))
    return TokenRecord(place, ord("A"), place, place + 1, -0.5, 0.7, likeliest, (-0.4, -1.1), forced=True)


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one model on three tasks; the first with interventions (1.1), activations (1.2) and walks (1.3)."""
    path = tmp_path_factory.mktemp("figures") / "x.db"
    for seed in (1, 2):
        store_run(path, tasks=TASKS, answers=12, atoms=3, seed=seed)
    add_interventions(path, 1, 1)
    add_activations(path, 1, 1)
    add_walks(path, 1)
    return path


@pytest.fixture(scope="session")
def measured(database: Path) -> Measured:
    """The first run, measured once for all figures."""
    return Measured(database, ("1",), FigureOptions(draws=20))


@pytest.fixture
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    few = ForestSettings(trees=4)
    quick = functools.partial(report_probes, settings=few, search=few)
    monkeypatch.setattr(salt_tui.figures.measured, "report_probes", quick)
    monkeypatch.setattr(salt_tui.measure.probes, "sample_complexity", functools.partial(sample_complexity, draws=2))
