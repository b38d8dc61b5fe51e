"""Reliability of a stored run, counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from salt_tui.measure.reliability import measure_reliability
from salt_tui.store.queries import open_queries
from salt_tui.store.schema import CONFIDENCE_COLUMNS, UNIT_STATUSES
from scoring import labels
from scoring.confidence import HEADLINE_FUNCTION
from tests.stored_runs import store_run


def atoms(database: Path, run: int) -> list[tuple[str, str, float]]:
    """Return task, status and confidence of every atom that has one."""
    found = []
    with open_queries(database) as queries:
        for answer in queries.answers(run):
            assert answer.generation is not None
            for unit in queries.units(answer.generation, "atom"):
                value = unit.confidences[CONFIDENCE_COLUMNS.index(HEADLINE_FUNCTION)]
                if value is not None:
                    found.append((answer.problem.task, unit.status, value))
    return found


def test_bins_and_the_surest_mistake_by_counting(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    statuses = ["correct", "wrong", "correct", "wrong", "abstained", "redundant", "missing"]
    run = store_run(database, ("maze", "code"), answers=6, statuses=statuses)
    found = measure_reliability(database, run, 4)
    counted = [atom for atom in atoms(database, run) if atom[1] not in {"abstained", "missing"}]
    assert len(counted) == 2 * 6 * 5
    for lower, upper, count, said, right in zip(
        found.bins.lower, found.bins.upper, found.bins.counts, found.bins.confidence, found.bins.accuracy, strict=True
    ):
        inside = [atom for atom in counted if lower < atom[2] <= upper]
        assert count == len(inside)
        assert said == pytest.approx(sum(atom[2] for atom in inside) / count)
        assert right == pytest.approx(sum(atom[1] == "correct" for atom in inside) / count)
    surest = found.surest_wrong
    assert surest is not None
    assert surest.max_probability == max(atom[2] for atom in counted if atom[1] != "correct")
    same = [atom[2] for atom in counted if atom[0] == surest.task]
    assert found.surer_than == sum(value < surest.max_probability for value in same) / len(same)


def test_without_a_mistake_there_is_none(tmp_path: Path) -> None:
    run = store_run(tmp_path / "x.db", ("maze",), answers=2, statuses=["correct", "abstained"])
    found = measure_reliability(tmp_path / "x.db", run, 5)
    assert found.surest_wrong is None
    assert found.surer_than is None
    assert found.bins.counts.sum() == 2


def test_without_confidences_no_bin_holds_anything(tmp_path: Path) -> None:
    run = store_run(tmp_path / "x.db", ("maze",), answers=2, tokenless=True)
    assert measure_reliability(tmp_path / "x.db", run, 5).bins.counts.size == 0
    with pytest.raises(ValueError, match="bins"):
        measure_reliability(tmp_path / "x.db", run, 0)


def test_store_and_scoring_know_the_same_statuses_in_the_same_order() -> None:
    assert UNIT_STATUSES == labels.UNIT_STATUSES
