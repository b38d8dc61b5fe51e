"""Reading, checking and writing the parameters of a level (``--param``)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tasks.task import (
    ChoiceParameter,
    IntegerRange,
    Parameter,
    ParameterError,
    Parameters,
    ParameterValue,
    RangeParameter,
    Task,
    UnknownNameError,
    quoted,
)

_RANGE = re.compile(r"(-?[0-9]{1,9})(?:\.\.(-?[0-9]{1,9}))?")


def level_parameters(task: Task, difficulty: str, overrides: Sequence[str] = ()) -> Parameters:
    """Return the parameters of a level, changed by overrides such as ``length=5``, ``length=2..19``, ``kinds=a,b``.

    A later override of the same parameter replaces an earlier one.  Choices come in the order of the task's
    declaration, each once.

    Raises:
        ParameterError: for an unknown level or parameter (`UnknownNameError`), an override that cannot be read, or a
            value out of range (naming the range).
    """
    if difficulty not in task.levels:
        raise UnknownNameError("difficulty", difficulty, task.levels)
    by_name = {parameter.name: parameter for parameter in task.parameters}
    values = {name: _in_declared_order(by_name.get(name), value) for name, value in task.levels[difficulty].items()}
    for override in overrides:
        name, separator, text = override.partition("=")
        name = name.strip()
        if not separator:
            raise ParameterError(f"parameter {quoted(override)} is not of the form key=value")
        if name not in by_name:
            raise UnknownNameError("parameter", name, by_name, task.name)
        values[name] = _in_declared_order(by_name[name], _read(task, by_name[name], text.strip()))
    validate_parameters(task, values)
    return values


def validate_parameters(task: Task, parameters: Parameters) -> None:
    """Check that there is a valid value for every parameter of the task, and no other.

    Raises:
        ParameterError: naming the parameter and its range or choices.
    """
    by_name = {parameter.name: parameter for parameter in task.parameters}
    for name in parameters:
        if name not in by_name:
            raise UnknownNameError("parameter", name, by_name, task.name)
    for name, parameter in by_name.items():
        if name not in parameters:
            raise ParameterError(f"{task.name}: no value for {name}")
        _validate(task, parameter, parameters[name])


def integer_range(parameters: Parameters, name: str) -> IntegerRange:
    """Return a parameter that is a range.

    Raises:
        ParameterError: if it is absent or a choice.
    """
    value = parameters.get(name)
    if not isinstance(value, IntegerRange):
        raise ParameterError(f"parameter {name} is not a range of integers")
    return value


def choices(parameters: Parameters, name: str) -> tuple[str, ...]:
    """Return a parameter that is a choice.

    Raises:
        ParameterError: if it is absent or a range.
    """
    value = parameters.get(name)
    if not isinstance(value, tuple):
        raise ParameterError(f"parameter {name} is not a choice of names")
    return value


def format_parameter(value: ParameterValue) -> str:
    """Write a value as ``--param`` reads it: ``5``, ``2..19`` or ``a,b``."""
    return str(value) if isinstance(value, IntegerRange) else ",".join(value)


def canonical_parameters(parameters: Parameters) -> str:
    """Write all parameters in one way that depends on their values only; problem seeds are derived from it."""
    return " ".join(f"{name}={format_parameter(parameters[name])}" for name in sorted(parameters))


def _read(task: Task, parameter: Parameter, text: str) -> ParameterValue:
    if isinstance(parameter, ChoiceParameter):
        return tuple(name.strip() for name in text.split(",") if name.strip())
    match = _RANGE.fullmatch(text.replace(" ", ""))
    if match is None:
        raise ParameterError(f"{task.name}: {parameter.name}: {quoted(text)} is neither a number nor low..high")
    low = int(match[1])
    return IntegerRange(low, low if match[2] is None else int(match[2]))


def _in_declared_order(parameter: Parameter | None, value: ParameterValue) -> ParameterValue:
    """Give a choice one form per set of names, so that equal choices give equal problems."""
    if not isinstance(parameter, ChoiceParameter) or isinstance(value, IntegerRange):
        return value
    unknown = (name for name in value if name not in parameter.choices)
    return (*(name for name in parameter.choices if name in value), *unknown)


def _validate(task: Task, parameter: Parameter, value: ParameterValue) -> None:
    where = f"{task.name}: {parameter.name}={format_parameter(value)}"
    if isinstance(parameter, RangeParameter):
        if not isinstance(value, IntegerRange):
            raise ParameterError(f"{where} is not a range of integers")
        if not parameter.minimum <= value.low <= value.high <= parameter.maximum:
            raise ParameterError(f"{where} is out of range; {parameter.minimum}..{parameter.maximum}, low first")
    else:
        if isinstance(value, IntegerRange) or not value:
            raise ParameterError(f"{where} names none of {', '.join(parameter.choices)}")
        for name in value:
            if name not in parameter.choices:
                raise UnknownNameError("choice", name, parameter.choices, f"{task.name}: {parameter.name}")
