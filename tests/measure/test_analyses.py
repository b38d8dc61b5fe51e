"""Alignment, parts and label noise of a stored run, counted by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salt_tui.cli import run_command_line
from salt_tui.measure.parts import read_parts
from salt_tui.store.queries import open_queries
from salt_tui.store.records import (
    GenerationEnd,
    GenerationStart,
    ModelRecord,
    ProblemRecord,
    RunRecord,
    TokenRecord,
    UnitRecord,
    Work,
)
from salt_tui.store.store import open_store
from scoring.confidence import CONFIDENCE_FUNCTIONS, HEADLINE_FUNCTION, unit_confidences
from tests.stored_runs import ENVIRONMENT, store_run

REPLY = "AB ÄC"
"""Tokens: A | B and the blank | the first byte of Ä | its second byte and C."""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "x.db"
    model = ModelRecord("a" * 64, "a" * 64, "tiny", "/m.gguf", 1, "llama", "llama", "Q4_1", 1, 256, 64, None, "{}")
    problem = ProblemRecord("maze", 0, "maze0", "easy", 1, "regular", "text", "AC ÄC X", 3, 1)
    plan = RunRecord("{}", "plan", json.dumps(ENVIRONMENT), "environment", True, ())
    spans = [(0, 1, 0.9), (1, 3, 0.5), (3, 4, 0.8), (4, 6, 0.4)]
    known = tuple(unit_confidences([-0.5], [0.5]).values())
    none = (None,) * len(CONFIDENCE_FUNCTIONS)
    units = [
        UnitRecord("atom", 0, 0, "AB", "AC", "wrong", 0, 2, 0, 2, known),
        UnitRecord("atom", 1, 0, "ÄC", "ÄC", "correct", 2, 4, 3, 6, known),
        UnitRecord("atom", 2, 0, None, "X", "missing", None, None, None, None, none),
    ]
    with open_store(path) as store:
        run = store.create_run(model, tuple(bytes([value]) for value in range(256)), plan, [problem])
        store.claim(Work(run))
        entry = store.pending_problems(run)[0]
        generation = store.begin_generation(Work(run), GenerationStart(entry.id, (1,), 1))
        store.add_tokens(
            generation,
            [
                TokenRecord(place, None, start, end, math.log(p), 0.1, (), (), False, REPLY.encode()[start:end])
                for place, (start, end, p) in enumerate(spans)
            ],
        )
        store.add_units(generation, units)
        store.end_generation(generation, GenerationEnd(REPLY.encode(), "end", "fenced", "complete", None, 0.1, 0.1))
        store.release(Work(run), "finished")
    return path


def test_tokens_and_characters_are_right_where_the_reference_has_the_same_bytes(database: Path) -> None:
    with open_queries(database) as queries:
        parts = read_parts(queries, 1)
    assert parts.left_out == 0
    tokens, characters = parts.columns["token"], parts.columns["character"]
    assert (tokens.status == 0).tolist() == [True, False, True, True]
    assert tokens.confidences[HEADLINE_FUNCTION] == pytest.approx([0.9, 0.5, 0.8, 0.4])
    assert (characters.status == 0).tolist() == [True, False, True, True]
    # Ä is half of each of two tokens; the first of equal ones holds it
    assert characters.confidences[HEADLINE_FUNCTION] == pytest.approx([0.9, 0.5, 0.8, 0.4])


def report(database: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    arguments = ["report", "--db", str(database), "--format", "json", "--draws", "0", "--analyses", *more]
    assert run_command_line(arguments) == 0
    data = json.loads(capsys.readouterr().out)
    assert isinstance(data, dict)
    return data


def test_json_has_every_analysis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "y.db"
    store_run(path, tasks=("maze", "code"), answers=4, atoms=8)
    found = report(path, capsys)["analyses"]
    assert {
        "position", "density", "redundancy_by_position", "history", "precision_recall", "redundancy", "alignment",
        "densities", "label_noise", "ece_by_bins", "parts", "parts_left_out",
    } == set(found)  # fmt: skip
    for name, value in (("density", "density"), ("redundancy_by_position", "redundancy"), ("history", "accuracy")):
        assert set(found[name]) == {"edges", "n", value, "tasks"}
        assert all(set(task) == {"n", value} for task in found[name]["tasks"].values())
    assert set(found["alignment"]["change"]["tasks"]) == {"maze", "code"}
    assert np.mean(found["densities"]["right"]) == pytest.approx(1.0)
    assert found["label_noise"]["levels"][0]["share"] == 0.05
    assert [row["granularity"] for row in found["parts"]] == ["token", "character"]
    text = report(path, capsys, "--unit", "atom", "--function", "perplexity", "--calibrator", "none")
    assert len(text["rows"]) == 1
    assert text["analyses"]["parts"]


def test_alignment_finds_atoms_that_are_only_shifted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said A A, asked for A C C: the second A stands under the last C, so that the C before it is skipped."""
    path = tmp_path / "z.db"
    store_run(path, tasks=("maze",), answers=2, statuses=["correct", "wrong", "missing"])
    found = report(path, capsys)["analyses"]["alignment"]
    assert found["strict"]["mean"] == 1 / 2
    assert found["aligned"]["mean"] == pytest.approx(1 / 3)
    store_run(path, tasks=("maze",), answers=2, statuses=["wrong", "correct", "redundant"])
    found = report(path, capsys, "2")["analyses"]["alignment"]
    assert found["strict"]["mean"] == pytest.approx(1 / 3)
    assert found["aligned"]["mean"] == pytest.approx(1 / 3), "said A A A, asked for C A"


def test_tables_of_every_analysis_fit_80_columns(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--format", "md"], ["--format", "latex"]):
        assert run_command_line(["report", "--db", str(database), "--draws", "20", "--analyses", *more]) == 0
        text = capsys.readouterr().out
        assert "And tokens or characters" in text
        if not more:
            assert max(map(len, text.splitlines())) <= 80
