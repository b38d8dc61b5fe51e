"""Two stored runs that all figures are drawn from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stored_runs import store_run

TASKS = ("dna_translation", "maze", "kronecker_product")


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one model on three tasks."""
    path = tmp_path_factory.mktemp("figures") / "x.db"
    for seed in (1, 2):
        store_run(path, tasks=TASKS, answers=8, atoms=12, seed=seed)
    return path
