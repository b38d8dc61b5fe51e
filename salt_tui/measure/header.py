"""What shaped a run, so that no two different runs look alike in a report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from salt_tui.engine.device_words import device_in_words
from salt_tui.store.records import IMPORTED
from salt_tui.store.results import StoredRun, StudyListing
from salt_tui.store.stored_values import Place
from salt_tui.visible_text import visible


@dataclass(frozen=True, slots=True)
class RunHeader:
    """A run in a few words and numbers, from its stored plan and environment.

    Attributes:
        run: its number.
        model: its name.
        description: architecture, size and quantisation of the model.
        state: ``running``, ``interrupted``, ``failed`` or ``finished``.
        created_at, finished_at: ISO 8601, UTC.
        difficulty, method: joined by ``+`` where tasks differ.
        shots: worked examples before a problem; None where tasks differ.
        seed: of the problems.
        sampling: temperature, top_k, top_p, min_p and seed of the sampler.
        width: answers decoded at once.
        context: tokens of an answer with its prompt.
        device: where it was computed.
        statistics: what the numbers of a token rest on: ``vocabulary``, ``top_k`` or ``none``.
        exact: result of the exactness check, None when not checked.
        tasks: their names.
        answers: how many were asked for.
        model_identity: what tells its model from others: ``sha256:…`` of a file, ``remote:…`` or ``imported:…``.
        model_sha256, plan_hash, environment_hash: hashes; the plan's is the run's identity.  The first is None for a
            model without a file.
        note: the user's own words on the run.
        studies: further work on the run, oldest first.
    """

    run: int
    model: str
    description: str
    state: str
    created_at: str
    finished_at: str | None
    difficulty: str
    method: str
    shots: int | None
    seed: int | None
    sampling: Mapping[str, Any]
    width: int | None
    context: int | None
    device: str
    statistics: str
    exact: bool | None
    tasks: tuple[str, ...]
    answers: int
    model_identity: str
    model_sha256: str | None
    plan_hash: str
    environment_hash: str
    note: str | None = None
    studies: tuple[StudyListing, ...] = ()

    @property
    def is_imported(self) -> bool:
        """Whether another program gave the answers: how it computed them is not known."""
        return self.model_identity.startswith(IMPORTED)

    @property
    def sampling_words(self) -> str:
        """``greedy``, or the settings of the sampler that have an effect."""
        sampling = self.sampling
        if self.is_imported:
            return "sampler not known"
        if not sampling.get("temperature"):
            return "greedy"
        words = [f"temperature {sampling['temperature']:g}"]
        for name, off in (("top_k", 0), ("top_p", 1.0), ("min_p", 0.0)):
            if sampling.get(name, off) != off:
                words.append(f"{name.replace('_', '-')} {sampling[name]:g}")
        return " ".join([*words, f"sampler seed {sampling.get('seed', 0)}"])

    @property
    def words(self) -> tuple[str, ...]:
        """Everything that shaped the run, in the order in which a reader asks."""
        examples = "" if self.shots is None else f", {self.shots} example{'' if self.shots == 1 else 's'}"
        known = {True: "exact", False: "not exact", None: "exactness not checked"}
        return tuple(
            filter(
                None,
                (
                    f"run {self.run}",
                    f"{self.model}, {self.description}" if self.description else self.model,
                    self.difficulty,
                    f"{self.method}{examples}",
                    "" if self.seed is None else f"seed {self.seed}",
                    self.sampling_words,
                    "" if self.width is None else f"width {self.width}",
                    self.device,
                    "" if self.is_imported else known[self.exact],
                    statistics_words(self.statistics),
                ),
            )
        )


def statistics_words(statistics: str, before: str = "") -> str:
    """Say what the numbers of tokens rest on, where that is not the whole vocabulary; else nothing.

    Args:
        statistics: ``vocabulary``, ``top_k`` or ``none``.
        before: stands before the words, if there are any.
    """
    known = {"vocabulary": "", "top_k": "top-k statistics", "none": "no token statistics"}
    words = known.get(statistics, statistics)
    return f"{before}{words}" if words else ""


def run_header(stored: StoredRun, database: Path, studies: Sequence[StudyListing] = ()) -> RunHeader:
    """Return the header of a stored run; a setting that its plan lacks is None or empty.

    Args:
        stored: the run.
        database: its file, to be named where the plan or environment is not what this program writes.
        studies: of it.

    Raises:
        StoreError: a setting is of another kind.
    """
    place = Place(database, f"run {stored.run}")
    settings = place.read("plan", stored.record.plan, _settings)
    return RunHeader(
        run=stored.run,
        model=stored.model.name,
        description=stored.model.description,
        state=stored.state,
        created_at=stored.created_at,
        finished_at=stored.finished_at,
        device=place.read("environment", stored.record.environment, _device),
        statistics=stored.record.statistics,
        exact=stored.record.exact,
        model_identity=stored.model.identity,
        model_sha256=stored.model.sha256,
        plan_hash=stored.record.plan_hash,
        environment_hash=stored.record.environment_hash,
        note=stored.note,
        studies=tuple(studies),
        **settings,
    )


def planned_tasks(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tasks of a plan.

    Raises:
        TypeError: they are not a list of objects.
    """
    tasks = plan.get("tasks", [])
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise TypeError("tasks is not a list of objects")
    return tasks


def _settings(text: str) -> dict[str, Any]:
    """Return what a plan says of a header, by the names of `RunHeader`."""
    plan = json.loads(text)
    tasks = planned_tasks(plan)
    shots = {task.get("shots") for task in tasks}
    sampling = plan.get("sampling", {})
    # What the plan of imported answers holds there stands for nothing.
    if str(plan.get("identity", "")).startswith(IMPORTED):
        plan, sampling = {**plan, "seed": None, "width": None}, {}
    return {
        "difficulty": "+".join(dict.fromkeys(str(task["difficulty"]) for task in tasks)),
        "method": "+".join(dict.fromkeys(str(task["method"]) for task in tasks)),
        "shots": _number(shots.pop()) if len(shots) == 1 else None,
        "seed": _number(plan.get("seed")),
        "sampling": {str(name): _number(value) for name, value in sampling.items()},
        "width": _number(plan.get("width")),
        "context": _number(plan.get("context")),
        "tasks": tuple(visible(str(task["task"])) for task in tasks),
        "answers": sum(len(task["problem_ids"]) for task in tasks),
    }


def _number(value: object) -> Any:
    if value is not None and not isinstance(value, int | float):
        raise TypeError(f"{str(value)[:40]!r} is no number")
    return value


def _device(text: str) -> str:
    environment = json.loads(text)
    if "threads" not in environment or environment.get("engine") == "imported":
        return ""
    devices = [str(device) for device in environment.get("devices", ())]
    return device_in_words(devices, int(environment["gpu_layers"]), int(environment["threads"]))
