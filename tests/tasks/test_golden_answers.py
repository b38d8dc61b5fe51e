"""The hand-made and the release's answers of ``golden.json``: extraction, units and ``--compat``.

The labels here are the strict ones of docs/definitions.md, written out again so that this package is tested alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tasks.answer import parse_answer, split_reference
from tasks.answer_form import ReferenceUnits
from tasks.registry import TASKS
from tasks.release import release_answer, release_units

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text(encoding="utf-8"))
BY_HAND = GOLDEN["answers_by_hand"]
STRICT = [case for case in GOLDEN["answers"]["cases"] if not case["aligned"]]


def statuses(generated: Sequence[str], reference: Sequence[str]) -> list[str]:
    labels = []
    for index in range(max(len(generated), len(reference))):
        if index >= len(generated):
            labels.append("missing")
        elif index >= len(reference):
            labels.append("redundant")
        elif generated[index] in ("DK", "<DK>"):
            labels.append("abstained")
        else:
            labels.append("correct" if generated[index] == reference[index] else "wrong")
    return labels


def units_of(units: ReferenceUnits, kind: str) -> tuple[str, ...]:
    if kind == "generation":
        return (units.generation,) if units.generation else ()
    return units.atoms if kind == "atom" else units.lines


@pytest.mark.parametrize("case", BY_HAND["cases"], ids=range(len(BY_HAND["cases"])))
def test_answers_by_hand(case: dict[str, Any]) -> None:
    task = TASKS[BY_HAND["task"]]
    answer = parse_answer(task, case["response"].encode())
    assert answer.extraction == case["extraction"]
    atoms = [task.normalise(unit.text) for unit in answer.of_kind("atom")]
    assert statuses(atoms, split_reference(task, BY_HAND["reference"]).atoms) == case["statuses"]


@pytest.mark.parametrize("case", [case for case in BY_HAND["cases"] if "compat" in case])
def test_answers_by_hand_in_the_manner_of_the_release(case: dict[str, Any]) -> None:
    task = TASKS[BY_HAND["task"]]
    generated = release_units(task, release_answer(case["response"]))
    assert statuses(generated.atoms, release_units(task, BY_HAND["reference"]).atoms) == case["compat"]


def test_all_strict_answers_of_the_release_get_its_labels_in_both_modes() -> None:
    assert len(STRICT) > 100
    for case in STRICT:
        task, kind = TASKS[case["task"]], case["unit"]
        answer = parse_answer(task, case["response"].encode())
        generated = [task.normalise(unit.text) for unit in answer.of_kind(kind)]
        assert statuses(generated, units_of(split_reference(task, case["reference"]), kind)) == case["statuses"]
        compatible = units_of(release_units(task, release_answer(case["response"])), kind)
        assert statuses(compatible, units_of(release_units(task, case["reference"]), kind)) == case["statuses"]
