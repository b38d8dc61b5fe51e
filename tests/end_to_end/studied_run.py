"""A scripted run of six answers, a second model for it, and every kind of study with the options that tests give."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from tasks.parameters import level_parameters
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS
from tasks.registry import get_task
from tests.conftest import answer_tokens

TASK = "dna_translation"
ASKED = ["--tasks", TASK, "--difficulty", "easy", "--limit", "6", "--seed", "1"]
STUDIES: dict[str, list[str]] = {
    "samples": ["-k", "2", "--temp", "0.7"],
    "verbalised": ["--unit", "generation,line"],
    "second-model": [],
    "combine": [],
    "activations": ["--unit", "generation,atom"],
    "interventions": ["--targets", "2", "--variants", "2"],
}
"""By kind; a second model is named besides."""


def write_models(folder: Path, **keys: object) -> tuple[Path, Path]:
    """Write a model that answers the problems, in two ways where it samples, and one that is surer of every token."""
    task = get_task(TASK)
    drawn = draw_problems(task, "easy", level_parameters(task, "easy"), 1, 6, DEFAULT_SHOTS)
    replies = [
        {"match": problem.text, "tokens": answer_tokens(task, problem, Random(f"{problem.id} {way}"))}
        for problem in drawn.problems
        for way in (0, 1)
    ]
    paths = []
    for name, share in (("model", 1.0), ("other", 0.5)):
        said = [
            {**reply, "tokens": [[text, share * value] for text, value in reply["tokens"]]}  # type: ignore[misc]
            for reply in replies
        ]
        path = folder / f"{name}.scripted.json"
        path.write_text(json.dumps({"replies": said, **keys}), encoding="utf-8")
        paths.append(path)
    return paths[0], paths[1]
