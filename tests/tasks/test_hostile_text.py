"""What no task may do with a text or a parameter from elsewhere: print it whole, read other digits, end in a crash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.parameters import level_parameters
from tasks.registry import TASKS, get_task
from tasks.release import solve_release_row
from tasks.task import ParameterError, ProblemTextError, UnknownNameError, quoted

LONG = "Q" * 100_000
LONGEST_MESSAGE = 300


@pytest.mark.process
def test_a_release_row_of_code_quotes_little_of_its_arguments() -> None:
    for arguments in (LONG, f"('{LONG}', '{LONG}', '{LONG}')", repr(LONG)):
        with pytest.raises(ProblemTextError) as caught:
            solve_release_row(TASKS["code"], {"task": "TwoSumProblem", "input": arguments})
        assert len(str(caught.value)) < LONGEST_MESSAGE


def test_a_quotation_says_that_it_is_cut() -> None:
    assert quoted("a'b") == '"a\'b"'
    assert quoted("x" * 40) == repr("x" * 40)
    assert quoted("x" * 41) == repr("x" * 40) + "…"


@pytest.mark.parametrize("value", ["٤", "२..५", "²", "1" * 5000, "4..٥"])
def test_parameters_are_read_from_ascii_digits_alone(value: str) -> None:
    with pytest.raises(ParameterError, match="neither a number nor low") as caught:
        level_parameters(TASKS["maze"], "easy", [f"rows={value}"])
    assert len(str(caught.value)) < LONGEST_MESSAGE


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UnknownNameError) as caught:
        get_task("nosuch")
    assert (caught.value.name, caught.value.known) == ("nosuch", tuple(TASKS))
    assert all(name in str(caught.value) for name in TASKS)
    with pytest.raises(UnknownNameError, match=r"^maze: unknown parameter 'row'; there are: rows, columns, openings$"):
        level_parameters(TASKS["maze"], "easy", ["row=4"])
    with pytest.raises(UnknownNameError, match="unknown difficulty 'zzz'; there are: trivial, easy"):
        level_parameters(TASKS["maze"], "zzz")


@pytest.mark.process
def test_the_list_of_tasks_needs_no_numpy() -> None:
    """Loading numpy takes longer than everything else that the first screen needs."""
    script = (
        "import json, sys\nimport tasks.registry, tasks.parameters, tasks.prompts\nprint(json.dumps([*sys.modules]))"
    )
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True,
                         env={"PYTHONPATH": str(root)})  # fmt: skip
    loaded = json.loads(run.stdout)
    assert "tasks.arc_grid" in loaded
    assert not {"numpy", "tasks.arc_rules"} & set(loaded)
