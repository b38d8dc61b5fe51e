"""Calibration maps as plain data, so that one fitted today can be applied elsewhere and later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from math import isfinite
from typing import Any

import numpy as np

from scoring.calibrators_empirical import EdgeRates, EqualWidthRates, Interpolated
from scoring.calibrators_fitted import ConfidenceMap, Constant, Fitted, FloatArray
from scoring.calibrators_parametric import Beta, Logistic, Temperature
from scoring.calibrators_rescaling import LinearRange, ZSigmoid

FORMAT = 1
"""Raised when a saved map can no longer be read as before."""

_SHAPES: dict[str, type[ConfidenceMap]] = {
    "constant": Constant,
    "logistic": Logistic,
    "beta": Beta,
    "temperature": Temperature,
    "equal_width_rates": EqualWidthRates,
    "edge_rates": EdgeRates,
    "interpolated": Interpolated,
    "z_sigmoid": ZSigmoid,
    "linear_range": LinearRange,
}

_LAWS: dict[type[ConfidenceMap], Callable[[Any], bool]] = {
    Constant: lambda one: 0.0 <= one.value <= 1.0,
    Logistic: lambda one: one.width > 0.0,
    Beta: lambda one: one.a >= 0.0 and one.b >= 0.0,
    Temperature: lambda one: one.temperature > 0.0,
    EqualWidthRates: lambda one: one.high > one.low and _are_shares(one.rates),
    EdgeRates: lambda one: one.rates.size == one.edges.size + 1 and _rises(one.edges) and _are_shares(one.rates),
    Interpolated: lambda one: (
        one.scores.size == one.values.size and _rises(one.scores) and _rises(one.values) and _are_shares(one.values)
    ),
    ZSigmoid: lambda one: one.width > 0.0 and one.deviation > 0.0,
    LinearRange: lambda one: one.high > one.low,
}
"""What holds for every map that was fitted; one for which it does not hold would give numbers that mean nothing."""


class SavedMapError(ValueError):
    """Data that are no saved map; the message says what is wrong."""


def map_record(fitted: Fitted) -> dict[str, Any]:
    """Return a fitted map as JSON-able data: direction, range it was fitted on, shape and parameters."""
    shape = next(name for name, kind in _SHAPES.items() if type(fitted.mapping) is kind)
    parameters = {}
    for entry in fields(fitted.mapping):  # type: ignore[arg-type]  # every shape is a dataclass
        value = getattr(fitted.mapping, entry.name)
        parameters[entry.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return {
        "format": FORMAT,
        "method": fitted.method,
        "higher_is_confident": fitted.higher_is_confident,
        "needs_probability": fitted.needs_probability,
        "lowest": fitted.lowest,
        "highest": fitted.highest,
        "note": fitted.note,
        "shape": shape,
        "parameters": parameters,
    }


def map_from_record(record: Mapping[str, Any]) -> Fitted:
    """Return the map of a record that `map_record` made.

    Raises:
        SavedMapError: something is missing, of another kind, or of a later format.
    """
    if record.get("format") != FORMAT:
        raise SavedMapError(f"format {record.get('format')!r} is not {FORMAT}; calibrate --save writes it")
    shape = _SHAPES.get(str(record.get("shape")))
    parameters = record.get("parameters")
    if shape is None or not isinstance(parameters, Mapping):
        raise SavedMapError(f"no map of shape {record.get('shape')!r} with parameters")
    wanted = {entry.name: str(entry.type) for entry in fields(shape)}  # type: ignore[arg-type]
    if set(parameters) != set(wanted):
        raise SavedMapError(f"a map of shape {record['shape']} has the parameters {', '.join(sorted(wanted))}")
    try:
        mapping = shape(**{name: _parameter(wanted[name], value) for name, value in parameters.items()})
        if not _LAWS[shape](mapping):
            raise ValueError("columns of other lengths, values outside [0, 1], or a range that is empty or falls")
        return Fitted(
            method=str(record["method"]),
            higher_is_confident=_flag(record["higher_is_confident"]),
            needs_probability=_flag(record["needs_probability"]),
            mapping=mapping,
            lowest=_number(record["lowest"]),
            highest=_number(record["highest"]),
            note=None if record["note"] is None else str(record["note"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SavedMapError(f"a parameter is missing or of another kind: {error}") from error


def finite_number(value: object) -> float | None:
    """Return a value of JSON as a finite double; None where it is none, also for whole numbers that are too large."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def _number(value: object) -> float:
    number = finite_number(value)
    if number is None:
        raise ValueError(f"{str(value)[:40]} is no finite number")
    return number


def _parameter(declared: str, value: object) -> float | FloatArray:
    if declared == "float":
        return _number(value)
    if not isinstance(value, list):
        raise ValueError(f"{str(value)[:40]} is no column of numbers")
    return np.array([_number(entry) for entry in value], dtype=np.float64)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is not true or false")
    return value


def _rises(column: FloatArray) -> bool:
    return bool((np.diff(column) >= 0.0).all())


def _are_shares(column: FloatArray) -> bool:
    return column.size > 0 and bool(((column >= 0.0) & (column <= 1.0)).all())
