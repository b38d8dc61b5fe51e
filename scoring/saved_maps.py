"""Calibration maps as plain data, so that one fitted today can be applied elsewhere and later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from scoring.calibrators_empirical import EdgeRates, EqualWidthRates, Interpolated
from scoring.calibrators_fitted import ConfidenceMap, Constant, Fitted
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
    wanted = {entry.name for entry in fields(shape)}  # type: ignore[arg-type]
    if set(parameters) != wanted:
        raise SavedMapError(f"a map of shape {record['shape']} has the parameters {', '.join(sorted(wanted))}")
    try:
        mapping = shape(**{name: _parameter(value) for name, value in parameters.items()})
        fitted = Fitted(
            method=str(record["method"]),
            higher_is_confident=_flag(record["higher_is_confident"]),
            needs_probability=_flag(record["needs_probability"]),
            mapping=mapping,
            lowest=float(record["lowest"]),
            highest=float(record["highest"]),
            note=None if record["note"] is None else str(record["note"]),
        )
        fitted.apply(
            [fitted.lowest, fitted.highest]
        )  # columns of unequal lengths show here, not in the middle of a file
        return fitted
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SavedMapError(f"a parameter is missing or of another kind: {error}") from error


def _parameter(value: object) -> object:
    if isinstance(value, list):
        column = np.array(value, dtype=np.float64)
        if column.ndim != 1 or not np.isfinite(column).all():
            raise ValueError("a column of finite numbers is needed")
        return column
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError(f"{value!r} is no finite number")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is not true or false")
    return value
