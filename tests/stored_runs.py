"""Runs with drawn units, written through the store, for everything that reads a run without a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

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
from scoring.confidence import unit_confidences

EIGHT_TASKS = (
    "matrix_multiplication", "kronecker_product", "code", "first_order_logic", "dna_translation", "words_collection",
    "arc_grid", "maze",
)  # fmt: skip
NO_CONFIDENCE = (None,) * 9

ENVIRONMENT = {
    "program_version": "0.1.0",
    "python_version": "3.11",
    "engine": "llama.cpp",
    "versions": {},
    "devices": ["CPU"],
    "requested_gpu_layers": "auto",
    "gpu_layers": 0,
    "gpu_refused": False,
    "threads": 2,
    "batch": 512,
    "micro_batch": 512,
    "key_type": "f16",
    "value_type": "f16",
    "flash_attention": False,
    "exactness": {},
    "exact": True,
}


def store_run(
    path: Path,
    tasks: Sequence[str] = EIGHT_TASKS,
    answers: int = 10,
    atoms: int = 20,
    *,
    seed: int = 1,
    statuses: Sequence[str] | None = None,
    tokenless: bool = False,
    plan: Mapping[str, object] | None = None,
) -> int:
    """Store a finished run and return its number.

    Right atoms have higher confidences than wrong ones, and there are fewer of them towards the end of an answer.

    Args:
        path: the database.
        tasks: names.
        answers: per task.
        atoms: generated per answer, in lines of five.
        seed: draws everything.
        statuses: of every answer's atoms, instead of drawn ones; redundant and missing ones come last.
        tokenless: whether units have no tokens, and so no confidences.
        plan: settings of the plan that are other than usual.
    """
    random = Random(seed)
    problems = [
        ProblemRecord(task, n, f"{task}{n}", "easy" if n % 2 else "hard", n, "regular", f"text {n}", "A", atoms, 1)
        for task in tasks
        for n in range(answers)
    ]
    model = ModelRecord(
        "a" * 64,
        "a" * 64,
        "tiny",
        "/models/tiny.gguf",
        1000,
        "llama 1M Q4_1",
        "llama",
        "Q4_1",
        10**6,
        256,
        2048,
        None,
        "{}",
    )
    record = RunRecord(
        json.dumps({**_plan(problems), **(plan or {})}),
        "plan-hash",
        json.dumps(ENVIRONMENT),
        "environment-hash",
        True,
        (),
    )
    with open_store(path) as store:
        run = store.create_run(model, tuple(bytes([value]) for value in range(256)), record, problems)
        store.claim(Work(run))
        for entry in store.pending_problems(run):
            drawn = statuses or [_status(random, index / atoms) for index in range(atoms)]
            units = [_unit(random, "atom", index, status, tokenless) for index, status in enumerate(drawn)]
            for line in range(0, len(drawn), 5):
                generated = [status for status in drawn[line : line + 5] if status != "missing"]
                if generated:
                    status = "correct" if set(generated) == {"correct"} else "wrong"
                    units.append(_unit(random, "line", line // 5, status, tokenless))
            if set(drawn) != {"missing"}:
                status = "correct" if set(drawn) == {"correct"} else "wrong"
                units.append(_unit(random, "generation", 0, status, tokenless))
            generation = store.begin_generation(Work(run), GenerationStart(entry.id, (1, 2), 1))
            store.add_tokens(generation, [_token(index) for index in range(len(drawn))])
            store.add_units(generation, units)
            end = GenerationEnd(b"A" * len(drawn), "end", "fenced", "complete", None, 0.1, 0.2)
            store.end_generation(generation, end)
        store.release(Work(run), "finished")
    return run


def _plan(problems: Sequence[ProblemRecord]) -> dict[str, object]:
    tasks = [
        {
            "task": task,
            "prompt_version": 1,
            "difficulty": "easy",
            "parameters": {},
            "method": "regular",
            "shots": 3,
            "example_ids": [],
            "problem_ids": [problem.content_id for problem in problems if problem.task == task],
            "max_tokens": 256,
        }
        for task in dict.fromkeys(problem.task for problem in problems)
    ]
    return {
        "identity": "sha256:" + "a" * 64,
        "template": None,
        "template_options": {},
        "date": "2026-11-30",
        "seed": 1,
        "limit": len(problems) // max(len(tasks), 1),
        "tasks": tasks,
        "sampling": {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 0},
        "context": 512,
        "width": 4,
    }


def _status(random: Random, place: float) -> str:
    if random.random() < 0.02:
        return "abstained"
    return "correct" if random.random() < 0.8 - 0.5 * place else "wrong"


def _token(position: int) -> TokenRecord:
    return TokenRecord(position, 65, position, position + 1, -0.5, 0.5, (65, 66), (-0.5, -1.5), False)


def _unit(random: Random, kind: str, index: int, status: str, tokenless: bool) -> UnitRecord:
    line = index // 5 if kind == "atom" else index if kind == "line" else None
    reference = {"redundant": None, "correct": "A"}.get(status, "C")
    if status == "missing":
        return UnitRecord(kind, index, None, None, reference, status, None, None, None, None, NO_CONFIDENCE)
    sure = 0.3 if status == "correct" else 1.0
    tokens = range(random.randint(1, 4))
    logs = [-sure * random.expovariate(1.0) for _ in tokens]
    values = unit_confidences(logs, [sure * random.expovariate(1.0) for _ in tokens])
    confidences = NO_CONFIDENCE if tokenless else tuple(values.values())
    first, last = (None, None) if tokenless else (index, index + 1)
    return UnitRecord(kind, index, line, "A", reference, status, first, last, index, index + 1, confidences)
