"""Prefix interventions as one JSON object: undefined is null with its reason, infinite a string."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from salt_tui.measure.interventions import InterventionFindings, OutcomeFindings, TaskFindings
from scoring.interventions_contrasts import Contrast, Curve, Estimate, SideEffects
from scoring.interventions_length import LengthResponse
from scoring.value import Value


def interventions_data(findings: InterventionFindings) -> dict[str, Any]:
    """Return ``baseline_identical``, ``tasks``, ``contrasts``, ``length``, ``curves`` and ``rows``."""
    contrasts, lengths, curves = [], [], []
    for task in findings.tasks:
        for found in task.outcomes.values():
            named = {"task": task.task, "outcome": found.outcome}
            for contrast in found.contrasts:
                contrasts.append({**named, **_contrast(contrast)})
                shape: dict[str, Any] = {"kind": contrast.treatment, "adjusted": contrast.adjusted}
                curves.append({**named, **shape, **_curve(contrast.curve), "per_model": list(contrast.per_model_curve)})
            for length in found.lengths:
                lengths.append({**named, **_length(length)})
                shape = {"kind": "length", "adjusted": length.controlled}
                levels = {f"{curve.level:g}": list(curve.value) for curve in length.fixed}
                curves.append({**named, **shape, **_curve(length.curve), "fixed_correctness": levels})
    return {
        "chunked": bool(findings.chunked),
        "baseline_identical": findings.check.identical,
        "baselines": {
            "replays": findings.check.replays,
            "differing": findings.check.differing,
            "largest_difference": findings.check.largest_difference,
            "other_text": findings.check.other_text,
        },
        "tasks": {task.task: _task(task) for task in findings.tasks},
        "contrasts": contrasts,
        "length": lengths,
        "curves": curves,
        "rows": [row.columns() for row in findings.rows],
    }


def _task(task: TaskFindings) -> dict[str, Any]:
    return {
        "caveat": task.caveat or None,
        "chunked": task.chunked,
        "models": task.models,
        "problems": task.problems,
        "targets": task.targets,
        "replays": task.replays,
        "without_atom": task.without_atom,
        "without_outcome": dict(task.without_outcome),
        "baseline": {name: _baseline(found) for name, found in task.outcomes.items()},
    }


def _baseline(found: OutcomeFindings) -> float | None:
    return found.baseline


def _contrast(contrast: Contrast) -> dict[str, Any]:
    reasons: dict[str, str] = {}
    record: dict[str, Any] = {
        "treatment": contrast.treatment,
        "adjusted": contrast.adjusted,
        "rows": contrast.rows,
        "baselines": contrast.baselines,
        "problems": contrast.problems,
        "models": contrast.models,
        "doses": None if contrast.doses is None else list(contrast.doses),
        **_estimate("slope", contrast.slope, reasons),
        **_sides("", contrast.sides, reasons),
        "both_directions_targets": contrast.both_directions.targets,
        **_sides("both_directions_", contrast.both_directions, reasons),
        **_values(
            {
                "p_clustered": contrast.p_clustered,
                "p_nonlinear_clustered": contrast.p_nonlinear_clustered,
                "p_rows": contrast.p_row,
                "p_nonlinear_rows": contrast.p_nonlinear_row,
                "delta_aic_rows": contrast.difference_aic,
            },
            reasons,
        ),
        "note": contrast.note,
    }
    return {**record, "reasons": reasons}


def _length(length: LengthResponse) -> dict[str, Any]:
    reasons: dict[str, str] = {}
    record: dict[str, Any] = {
        "controlled": length.controlled,
        "rows": length.rows,
        "problems": length.problems,
        "dropped_problems": length.dropped_problems,
        "models": length.models,
        "start": length.start,
        **_estimate("kappa", length.knee, reasons),
        **_estimate("xi", length.saturation, reasons),
        **_estimate("drop", length.drop, reasons),
        "resampled": length.resampled,
        **_values(
            {
                "p_rows": length.p_significant,
                "p_nonlinear_rows": length.p_nonlinear,
                "delta_aic_rows": length.difference_aic,
            },
            reasons,
        ),
        "fixed_levels_observed": {f"{curve.level:g}": curve.observed for curve in length.fixed},
        "note": length.note,
    }
    return {**record, "reasons": reasons}


def _sides(prefix: str, sides: SideEffects, reasons: dict[str, str]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for entry in fields(sides):
        value = getattr(sides, entry.name)
        if isinstance(value, Estimate):
            record |= _estimate(f"{prefix}{entry.name}", value, reasons)
    return record


def _estimate(name: str, estimate: Estimate, reasons: dict[str, str]) -> dict[str, Any]:
    """Return the point and its interval; one reason stands for both where both are missing."""
    interval = estimate.interval
    if estimate.value.reason is not None:
        reasons[name] = estimate.value.reason
    elif interval.reason is not None:
        reasons[f"{name}_interval"] = interval.reason
    return {
        name: estimate.value.value,
        f"{name}_interval": None if interval.low is None else [interval.low, interval.high],
    }


def _values(values: Mapping[str, Value], reasons: dict[str, str]) -> dict[str, float | None]:
    reasons |= {name: value.reason for name, value in values.items() if value.reason is not None}
    return {name: value.value for name, value in values.items()}


def _curve(curve: Curve) -> dict[str, Any]:
    return {
        "dose": list(curve.dose),
        "value": list(curve.value),
        "low": list(curve.low),
        "high": list(curve.high),
        "reason": curve.reason,
    }
