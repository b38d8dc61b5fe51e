"""What a run asks for (the plan) and how it was computed (the environment), as data with a hash.

The plan's hash is the run's identity: two runs with equal plans in equal environments have equal numbers.  Both are
stored as canonical JSON, so that a later version of the program, or a person, can read them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args, get_origin, get_type_hints

from salt_tui.engine.model_info import Build, ContextInfo, ModelInfo

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Planned = TypeVar("Planned")

WHOLE_NUMBERS = range(-(2**63) + 1, 2**63)
"""What a plan can hold; databases and other readers of JSON keep no larger ones."""

BELOW_LIMIT = "a whole number of at most 63 bits"


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """How tokens are chosen; temperature 0 is greedy and leaves the rest without effect."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """One task of a run.

    Attributes:
        parameters: every parameter of the task with its value as ``--param`` reads it.
        example_ids: content ids of the worked examples, in order.
        problem_ids: content ids of the problems, in order.
        max_tokens: limit on the tokens of one answer.
    """

    task: str
    prompt_version: int
    difficulty: str
    parameters: dict[str, str]
    method: str
    shots: int
    example_ids: tuple[str, ...]
    problem_ids: tuple[str, ...]
    max_tokens: int


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What was asked; its hash is the run's identity.

    Attributes:
        identity: of the model: ``sha256:…`` of its file, ``remote:…`` of a server's, ``imported:…`` of brought answers.
        template: resolved text of the chat template, None for plain completion prompts and where a server has its own.
        date: ISO date that the template saw; None where it reads none.
        seed: draws the problems.
        context: tokens per answer, prompt included; None where the engine does not let us choose.
        width: sequences decoded at once.
        sent: what every request to a server held beside the prompt, its limit and its seed; None without a server.
    """

    identity: str
    template: str | None
    template_options: dict[str, Any]
    date: str | None
    seed: int
    limit: int
    tasks: tuple[TaskPlan, ...]
    sampling: SamplingPlan
    context: int | None
    width: int
    sent: dict[str, Any] | None = None

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a stored plan."""
        data = json.loads(text)
        data["tasks"] = tuple(
            of_types(TaskPlan(**{**task, **{name: as_tuple(task[name]) for name in ("example_ids", "problem_ids")}}))
            for task in as_tuple(data["tasks"])
        )
        data["sampling"] = of_types(SamplingPlan(**data["sampling"]))
        return of_types(cls(**data))


@dataclass(frozen=True, slots=True)
class Environment:
    """How a run is computed; other values can give other numbers for the same plan.

    Attributes:
        requested_gpu_layers: ``-ngl`` as asked.
        exactness: differences of the exactness check, see `salt_tui.engine.model_info.Exactness`.
        gpu_refused: layers were asked for and the build or machine has no device.
    """

    program_version: str
    python_version: str
    engine: str
    versions: dict[str, str]
    devices: tuple[str, ...]
    requested_gpu_layers: str
    gpu_layers: int
    gpu_refused: bool
    threads: int
    batch: int
    micro_batch: int
    key_type: str
    value_type: str
    flash_attention: bool
    exactness: dict[str, float]
    exact: bool | None

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a stored environment."""
        data = json.loads(text)
        return of_types(cls(**{**data, "devices": as_tuple(data["devices"])}))


def as_tuple(value: object) -> tuple[Any, ...]:
    """Return a JSON array as a tuple; a text or an object would become one too, of its letters or keys.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(value, list):
        raise TypeError(f"{_short(value)} is no list")
    return tuple(value)


def of_types(value: Planned) -> Planned:
    """Return a plan or environment as it is, once the values that a file gave it are of the types that it declares.

    Raises:
        TypeError: one is not.
    """
    for name, declared in get_type_hints(type(value)).items():
        found = getattr(value, name)
        if not _is_of(found, declared):
            raise TypeError(f"{name} is {_short(found)}")
    return value


def _is_of(value: object, declared: Any) -> bool:
    origin, arguments = get_origin(declared), get_args(declared)
    if declared is Any:
        return True
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_of(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is_of(item, arguments[1]) for item in value.values())
    if origin is not None:
        return any(_is_of(value, argument) for argument in arguments)
    if declared is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if declared is int:
        return isinstance(value, int) and not isinstance(value, bool) and value in WHOLE_NUMBERS
    return isinstance(value, declared)


def canonical_json(value: DataclassInstance) -> str:
    """Return the one JSON text of a plan or environment, a dataclass: sorted keys, no spaces, UTF-8, no NaN."""
    return json.dumps(asdict(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_hash(text: str) -> str:
    """SHA-256 of a text in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


DATE_THAT_NOBODY_READS = "2000-01-01"
"""For templates that read no date."""


def reads_date(template: str | None) -> bool:
    """Say whether the prompts of a chat template can depend on the date; the plain format's never do."""
    return template is not None and "strftime_now" in template


def make_environment(
    *,
    program_version: str,
    python_version: str,
    build: Build,
    model: ModelInfo,
    context: ContextInfo,
    requested_gpu_layers: str,
) -> Environment:
    """Collect the environment from what the engine reported."""
    asked = requested_gpu_layers not in {"auto", "0"}
    return Environment(
        program_version=program_version,
        python_version=python_version,
        engine=build.engine,
        versions=dict(build.versions),
        devices=tuple(f"{device.name} {device.description}".strip() for device in build.devices),
        requested_gpu_layers=requested_gpu_layers,
        gpu_layers=context.gpu_layers,
        gpu_refused=asked and model.gpu_layers == 0,
        threads=context.threads,
        batch=context.batch,
        micro_batch=context.micro_batch,
        key_type=context.key_type,
        value_type=context.value_type,
        flash_attention=context.flash_attention,
        exactness=dict(context.exactness.differences),
        exact=context.exactness.exact,
    )


def differences(stored: str, current: str) -> tuple[str, ...]:
    """Name what differs between two canonical JSON texts, one ``name: stored -> current`` per leaf.

    Long values are shortened; equal texts give an empty tuple.
    """
    found: list[str] = []
    _compare("", json.loads(stored), json.loads(current), found)
    return tuple(found)


def _compare(name: str, stored: object, current: object, found: list[str]) -> None:
    if isinstance(stored, Mapping) and isinstance(current, Mapping):
        for key in sorted({*stored, *current}):
            _compare(f"{name}.{key}" if name else str(key), stored.get(key), current.get(key), found)
    elif isinstance(stored, list) and isinstance(current, list) and len(stored) == len(current):
        for index, (one, other) in enumerate(zip(stored, current, strict=True)):
            _compare(f"{name}[{index}]", one, other, found)
    elif stored != current:
        found.append(f"{name}: {_short(stored)} -> {_short(current)}")


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
