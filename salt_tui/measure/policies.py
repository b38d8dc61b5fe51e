"""Policies of a run: which units to trust, found from its answers, kept in a file, applied to other scores."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from salt_tui.inputs.json_lines import read_text
from salt_tui.inputs.score_tables import ScoresToMap
from salt_tui.measure.draws import generator_of
from salt_tui.measure.task_scores import checked_column, task_units
from salt_tui.store.results import UnitColumns
from salt_tui.usage_error import UsageError
from scoring.decision_utility import Rewards
from scoring.policy import (
    RAW,
    NoPolicy,
    Policy,
    PolicyUnits,
    Promise,
    RewardPolicy,
    Scale,
    bands_of,
    promise_policy,
    reward_policy,
)
from scoring.saved_maps import SavedMapError, finite_number, map_from_record, map_record
from scoring.scored_units import IntArray
from scoring.signals import is_fitted_anew

FORMAT = 1
KIND = "salt-tui policy"

TRUST, CHECK, WITHHOLD = "trust", "check", "withhold"

REWARD_MAPS = (RAW, "platt", "isotonic", "beta")
"""Maps that are tried with rewards, which need probabilities; a promise needs the order of the units alone."""

Found: TypeAlias = Policy | RewardPolicy | NoPolicy


@dataclass(frozen=True, slots=True)
class SavedPolicy:
    """What a policy needs to decide: how units are read, and the thresholds above which they are trusted or checked.

    Attributes:
        scale: function and map.
        thresholds: one or two, the higher first; ``-inf`` takes every unit that has a value.
    """

    scale: Scale
    thresholds: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The decisions, the narrowest first."""
        return (TRUST, WITHHOLD) if len(self.thresholds) == 1 else (TRUST, CHECK, WITHHOLD)

    @classmethod
    def of(cls, found: Policy | RewardPolicy) -> SavedPolicy:
        """Return what is kept of a policy."""
        if isinstance(found, RewardPolicy):
            return cls(found.scale, (found.threshold,))
        return cls(found.scale, tuple(band.threshold for band in found.bands))


def units_for_policy(columns: UnitColumns, named: Collection[str] = ()) -> PolicyUnits:
    """Return the units of a run with a verdict, each answer a problem of its own.

    Args:
        columns: of the run.
        named: functions that were asked for by name.  Of the others those are left out that are fitted anew in each
            run, because a policy is for scores that come later.

    Raises:
        UsageError: a confidence that cannot be one.
    """
    rows = [task_units(columns, task).rows for task in columns.task_names]
    kept: IntArray = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    return PolicyUnits(
        correct=columns.status[kept] == 0,
        problem=columns.generation[kept],
        task=columns.task[kept],
        scores={
            name: checked_column(columns, name)[kept]
            for name in columns.confidences
            if name in named or not is_fitted_anew(name)
        },
        lower_is_confident=columns.lower_is_confident,
    )


def find_policy(units: PolicyUnits, wanted: Sequence[Promise] | Rewards, maps: Sequence[str] | None = None) -> Found:
    """Return the policy that keeps promises or earns most, or why there is none; the same for the same units.

    Args:
        units: of one run.
        wanted: one or two promises, or rewards.
        maps: calibration maps to choose among; None for the usual ones.
    """
    generator = generator_of("policy")
    if isinstance(wanted, Rewards):
        return reward_policy(units, wanted, generator, maps=maps or REWARD_MAPS)
    return promise_policy(units, wanted, generator, maps=maps or (RAW,))


def policy_text(saved: SavedPolicy) -> str:
    """Return a policy as the text of a JSON file."""
    scale = saved.scale
    record = {
        "kind": KIND,
        "format": FORMAT,
        "function": scale.function,
        "lower_is_confident": not scale.rising,
        "map": None if scale.fitted is None else map_record(scale.fitted),
        "thresholds": [None if value == -np.inf else value for value in saved.thresholds],
        "decisions": saved.names,
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def read_policy(file: Path) -> SavedPolicy:
    """Return the policy of a file that holds a `policy_text`.

    Raises:
        UsageError: the file cannot be read or holds no policy.
    """
    try:
        record = json.loads(read_text(file))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: not JSON: {error}") from error
    if not isinstance(record, dict) or record.get("kind") != KIND or record.get("format") != FORMAT:
        raise UsageError(f"{file}: no saved policy; policy RUN --risk A -o {file} writes one")
    try:
        return _saved(record)
    except (SavedMapError, TypeError, ValueError, KeyError) as error:
        raise UsageError(f"{file}: a policy that cannot be read: {error}") from error


def decisions(saved: SavedPolicy, scores: ScoresToMap) -> tuple[str, ...]:
    """Return the decision about each row; a row without a score is withheld.

    Raises:
        UsageError: a score outside [0, 1] under a map of probabilities.
    """
    fitted, values = saved.scale.fitted, scores.score
    if fitted is not None and fitted.needs_probability:
        outside = np.flatnonzero(~np.isnan(values) & ~((values >= 0.0) & (values <= 1.0)))
        if outside.size:
            line = scores.lines[int(outside[0])]
            raise UsageError(f"{scores.file}:{line}: {fitted.method} needs scores from 0 to 1")
    return tuple(saved.names[band] for band in bands_of(saved.scale, saved.thresholds, values).tolist())


def _threshold(value: object) -> float:
    if value is None:
        return -np.inf
    number = finite_number(value)
    if number is None:
        raise ValueError(f"a threshold is {str(value)[:40]}, no finite number")
    return number


def _saved(record: Mapping[str, Any]) -> SavedPolicy:
    thresholds = tuple(map(_threshold, record["thresholds"]))
    if not 1 <= len(thresholds) <= 2 or list(thresholds) != sorted(thresholds, reverse=True):
        raise ValueError("one threshold, or two of which the first is the higher")
    stored = record["map"]
    fitted = None if stored is None else map_from_record(stored)
    lower = record["lower_is_confident"]
    if not isinstance(lower, bool) or (fitted is not None and fitted.higher_is_confident is lower):
        raise ValueError("lower_is_confident is true or false, as the map says")
    method = RAW if fitted is None else fitted.method
    return SavedPolicy(Scale(str(record["function"]), method, fitted, rising=not lower), thresholds)
