"""``.jsonl``: one answer, or one generation of a study, per line with its units and tokens."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from salt_tui.store.queries import Queries
from salt_tui.store.records import UnitRecord, Work
from salt_tui.store.results import StoredAnswer, StoredToken
from salt_tui.store.schema import CONFIDENCE_COLUMNS


def write_answers(queries: Queries, run: int, path: Path) -> None:
    """Write the answers of a run, those not begun included, in the order of the plan."""
    record = queries.run_record(run)
    with path.open("w", encoding="utf-8") as file, queries.snapshot():
        for answer in queries.answers(run):
            units = [] if answer.generation is None else queries.units(answer.generation)
            tokens = [] if answer.generation is None else queries.tokens(answer.generation)
            line = {
                "run": run,
                "model": record.model.name,
                "statistics": record.record.statistics,
                **_answer(answer),
                "units": [_unit(unit) for unit in units],
                "tokens": [_token(token) for token in tokens],
            }
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")


def write_generations(queries: Queries, study: Work, path: Path) -> None:
    """Write what a study generated, in the order of the plan; a line has the names of an answer's line."""
    stored = queries.study_record(study)
    with path.open("w", encoding="utf-8") as file, queries.snapshot():
        problems = {answer.problem_id: answer for answer in queries.answers(study.run)}
        for generation in queries.generations(study):
            values = asdict(generation)
            reply = values.pop("reply")
            line = {
                "run": study.run,
                "study": str(study),
                "model": stored.model.name,
                "statistics": stored.record.statistics,
                "reference": problems[generation.problem_id].problem.reference,
                **values,
                **_bytes("reply", reply),
                "units": [_unit(unit) for unit in queries.units(generation.id)],
                "tokens": [_token(token) for token in queries.tokens(generation.id)],
            }
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")


def _answer(answer: StoredAnswer) -> dict[str, Any]:
    values = asdict(answer)
    problem = values.pop("problem")
    reply = values.pop("reply")
    # The database's prompt_tokens are the ids; here it is only known how many there are.
    values["prompt_length"] = values.pop("prompt_tokens")
    # Most readers of JSON keep 53 bits of a number; a seed has 64.
    problem["seed"] = str(problem["seed"])
    return {**problem, **values, **_bytes("reply", reply)}


def _unit(unit: UnitRecord) -> dict[str, Any]:
    values = asdict(unit)
    del values["confidences"]
    return {**values, **dict(zip(CONFIDENCE_COLUMNS, unit.confidences, strict=True))}


def _token(token: StoredToken) -> dict[str, Any]:
    record = token.record
    return {
        "position": record.position,
        "id": record.id,
        **_bytes("text", token.piece),
        "byte_start": record.start,
        "byte_end": record.end,
        "log_probability": record.log_probability,
        "entropy": record.entropy,
        "alternatives": [
            (name if isinstance(name, int) else name.decode(errors="replace"), value)
            for name, value in zip(record.alternatives, record.alternative_log_probabilities, strict=True)
        ],
        "forced": record.forced,
    }


def _bytes(name: str, value: bytes | None) -> dict[str, str | None]:
    """Return bytes as text where they are whole characters, else as text with U+FFFD and beside it in base64."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name: value.decode(errors="replace"), f"{name}_base64": base64.b64encode(value).decode()}
