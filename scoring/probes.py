"""Confidence from activations: probes judged on answers that neither trained nor chose them (ACUTE sections 3 to 5).

Everything is grouped by problem: five folds, and inside the training part of each fold the layers are compared and the
calibration maps fitted by inner folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.calibrators import calibrator
from scoring.calibrators_fitted import Unfitted
from scoring.cross_fitting import FOLDS
from scoring.metrics import evaluate_units
from scoring.probe_estimators import (
    SEARCH,
    ForestSettings,
    Predict,
    fit_forest,
    fit_histogram_regression,
    fit_kernel_regression,
)
from scoring.probe_features import Components, Pools, cosine_features, depth_third, fit_components
from scoring.scored_units import FloatArray, IntArray, ScoredUnits
from scoring.value import TOO_FEW_ANSWERS_OF_A_CLASS, TOO_FEW_GENERATIONS, Value, undefined

FULL = ForestSettings()
MOST_SEARCH_UNITS = 1000
"""Training units that layers are compared on, drawn at random; with all of 1,600 that took a third of the time."""
COMPONENT_COUNTS = (10, 20)
THIRDS = ("early", "middle", "late")
BASELINES = ("none", "hre", "nwkr", "platt", "isotonic", "beta")
PROBE_METRICS = ("smooth_ece", "euro_auc_low", "euro_auc_medium", "euro_auc_high", "euro_auc")
RANKED = (*PROBE_METRICS, "auroc")
SAMPLE_SIZES = (25, 50, 100, 200, 400, 700, 1000)
SAMPLE_DRAWS = 20
FEWEST_OF_A_CLASS = 2
"""Problems with right units, and with wrong ones, below which a task has no AUROC: one unit would decide it."""

MAP_FOLDS = 3
"""Inner folds whose scores the calibration maps after a forest are fitted on: five took a tenth of all the time."""

SEARCH_FOLDS = 3
"""Inner folds in which layers are compared: with five, comparing 30 layers took half of all the time."""

Progress = Callable[[str], None]
"""Told what is computed next, in a few words."""

Fit = Callable[[IntArray], Callable[[IntArray], FloatArray]]
"""From rows to train on to a function that gives confidences of other rows."""


@dataclass(frozen=True, slots=True)
class ProbeUnits:
    """Units with the pools of their activations.

    Attributes:
        pools: shape ``(layers, n, width)``.
        layers: number of each layer, 1-based, ascending, shape ``(layers,)``.
        depth: number of layers of the model.
        probability: raw joint probability of the same tokens, shape ``(n,)``.
        correct: shape ``(n,)``.
        problem: whole number of the problem of each unit, the same across methods, samples and runs, shape ``(n,)``.
    """

    pools: Pools
    layers: tuple[int, ...]
    depth: int
    probability: FloatArray
    correct: NDArray[np.bool_]
    problem: IntArray


@dataclass(frozen=True, slots=True)
class Estimate:
    """Out-of-fold confidences of one estimator.

    Attributes:
        name: such as ``act early``, ``cosine``, ``pca10`` or ``hre``.
        confidence: shape ``(n,)``, in [0, 1].
        layers: the layer that was chosen in each fold; empty where none is.
        metrics: of `PROBE_METRICS`, over all units; undefined with the reason where the estimator is.
    """

    name: str
    confidence: FloatArray
    layers: tuple[int, ...]
    metrics: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class UnseenTask:
    """How well a forest on one layer does on a task that it was not trained on.

    Attributes:
        task: its number.
        units: number of its units.
        right: how many of them are right.
        metrics: of `PROBE_METRICS`, and ``auroc``, trained on the other tasks; no AUROC unless two problems hold right
            units and two hold wrong ones.
        inside: the same out of fold, trained on this task and the others.
        raw: the same of the joint probability.
    """

    task: int
    units: int
    right: int
    metrics: Mapping[str, Value]
    inside: Mapping[str, Value]
    raw: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class SampleSize:
    """How well an estimator does that was trained on so many units (ACUTE figure 5, where each answer is one).

    Attributes:
        units: drawn from the training folds.
        means: per metric over the draws; undefined where there are fewer units.
        deviations: population standard deviation between draws.
    """

    units: int
    means: Mapping[str, Value]
    deviations: Mapping[str, Value]


def silent(text: str) -> None:
    """Tell nobody."""


def baseline_estimates(units: ProbeUnits, generator: np.random.Generator) -> dict[str, Estimate]:
    """Return the estimators that read only the joint probability, out of fold: raw, HRE, NWKR, Platt, isotonic, beta.

    Args:
        units: at least two problems.
        generator: draws the folds.
    """
    fold = _folds(units.problem, generator)
    fits: dict[str, Fit] = {name: _baseline(units, name) for name in BASELINES}
    return {name: _estimate(units, name, _out_of_fold(fit, fold)) for name, fit in fits.items()}


def probe_estimates(
    units: ProbeUnits,
    generator: np.random.Generator,
    *,
    settings: ForestSettings = FULL,
    search: ForestSettings = SEARCH,
    maps: Sequence[str] = (),
    progress: Progress = silent,
) -> dict[str, Estimate]:
    """Return the forests, out of fold: the best layer of each third, similarities, ten and twenty components a layer.

    The best layer is that of the largest EURO area in inner folds, with 100 trees on at most 1,000 training units; it
    may differ between folds.  Only winners are grown in full.

    Args:
        units: at least two problems.
        generator: draws folds and the units that layers are compared on.
        settings: of the forests that are reported.
        search: of those by which layers are compared.
        maps: calibration maps to apply after each, fitted on inner out-of-fold scores of forests of the size by which
            layers are compared; named ``pca10 + platt``.
        progress: told what is computed next.
    """
    fold = _folds(units.problem, generator)
    found: dict[str, Estimate] = {}
    codes = [int(code) for code in np.unique(fold)]
    for third in THIRDS:
        numbers = [place for place, layer in enumerate(units.layers) if depth_third(layer, units.depth) == third]
        if not numbers:
            continue
        chosen: dict[int, int] = {}
        for number, code in enumerate(codes):
            progress(f"the best {third} layer, fold {number + 1} of {len(codes)}")
            chosen[code] = _best_layer(units, np.flatnonzero(fold != code), numbers, search, generator)
        fits = {
            code: (_pool_fit(units, place, settings), _pool_fit(units, place, search)) for code, place in chosen.items()
        }
        progress(f"forests on the {third} layer")
        layers = tuple(units.layers[place] for place in chosen.values())
        _add(found, units, f"act {third}", fits, fold, layers, maps, generator)
    others: dict[str, tuple[Fit, Fit]] = {}
    if len(units.layers) > 1:
        features = cosine_features(units.pools)
        others["cosine"] = _fixed_fit(units, features, settings), _fixed_fit(units, features, search)
    known: dict[bytes, Components] = {}
    for count in COMPONENT_COUNTS:
        others[f"pca{count}"] = (
            _component_fit(units, count, settings, known),
            _component_fit(units, count, search, known),
        )
    for name, pair in others.items():
        progress(f"forests on {name}")
        _add(found, units, name, dict.fromkeys(codes, pair), fold, (), maps, generator)
    return found


def layer_metrics(
    units: ProbeUnits,
    generator: np.random.Generator,
    settings: ForestSettings = SEARCH,
    progress: Progress = silent,
) -> dict[int, Mapping[str, Value]]:
    """Return `PROBE_METRICS` of a forest on each single layer, out of fold (ACUTE figure 6); 100 trees by default."""
    fold = _folds(units.problem, generator)
    found: dict[int, Mapping[str, Value]] = {}
    for place, layer in enumerate(units.layers):
        progress(f"layer {layer}")
        found[layer] = _metrics(_out_of_fold(_pool_fit(units, place, settings), fold), units.correct)
    return found


def across_tasks(
    units: ProbeUnits,
    task: IntArray,
    place: int,
    generator: np.random.Generator,
    settings: ForestSettings = SEARCH,
    progress: Progress = silent,
) -> tuple[UnseenTask, ...]:
    """Return how a forest on one layer carries to each task, trained on all others; none for a single task.

    Args:
        units: of several tasks.
        task: number of the task of each unit, shape ``(n,)``.
        place: place of the layer in ``units.layers``.
        generator: draws the folds of the comparison.
        settings: of the forests; 100 trees by default.
        progress: told what is computed next.
    """
    tasks = np.unique(task)
    if tasks.size < 2:
        return ()
    fit = _pool_fit(units, place, settings)
    inside = _out_of_fold(fit, _folds(units.problem, generator))
    found: list[UnseenTask] = []
    for code in tasks:
        progress(f"a task that was not seen, {len(found) + 1} of {tasks.size}")
        own = np.flatnonzero(task == code)
        confidence = fit(np.flatnonzero(task != code))(own)
        correct = units.correct[own]
        columns = (confidence, inside[own], units.probability[own])
        measured = [_metrics(column, correct, RANKED) for column in columns]
        if min(np.unique(units.problem[own][right]).size for right in (correct, ~correct)) < FEWEST_OF_A_CLASS:
            measured = [{**metrics, "auroc": undefined(TOO_FEW_ANSWERS_OF_A_CLASS)} for metrics in measured]
        found.append(UnseenTask(int(code), own.size, int(correct.sum()), *measured))
    return tuple(found)


def sample_complexity(
    units: ProbeUnits,
    place: int,
    generator: np.random.Generator,
    *,
    sizes: Sequence[int] = SAMPLE_SIZES,
    draws: int = SAMPLE_DRAWS,
    settings: ForestSettings = SEARCH,
    progress: Progress = silent,
) -> tuple[SampleSize, ...]:
    """Return how a forest on one layer does that was trained on n units of the training folds (ACUTE figure 5).

    Args:
        units: at least two problems.
        place: place of the layer in ``units.layers``.
        generator: draws folds and units.
        sizes: numbers of units n.
        draws: per size; each is judged on one held-out fold, taken in turn.
        settings: of the forests; 100 trees by default.
        progress: told what is computed next.
    """
    fold = _folds(units.problem, generator)
    codes = np.unique(fold)
    fit = _pool_fit(units, place, settings)
    found = []
    for size in sizes:
        progress(f"training on {size} units")
        values: dict[str, list[float]] = {name: [] for name in PROBE_METRICS}
        for draw in range(draws):
            code = codes[draw % codes.size]
            train, test = np.flatnonzero(fold != code), np.flatnonzero(fold == code)
            if train.size < size:
                break
            rows = generator.permutation(train)[:size]
            measured = _metrics(fit(rows)(test), units.correct[test])
            for name, value in measured.items():
                values[name].append(np.nan if value.value is None else value.value)
        complete = all(len(column) == draws for column in values.values())
        reason = undefined(f"fewer than {size} units to train on")
        means = {name: Value(float(np.nanmean(column))) if complete else reason for name, column in values.items()}
        spreads = {name: Value(float(np.nanstd(column))) if complete else reason for name, column in values.items()}
        found.append(SampleSize(size, means, spreads))
    return tuple(found)


def _add(
    found: dict[str, Estimate],
    units: ProbeUnits,
    name: str,
    fits: Mapping[int, tuple[Fit, Fit]],
    fold: IntArray,
    layers: tuple[int, ...],
    maps: Sequence[str],
    generator: np.random.Generator,
) -> None:
    """Add an estimator and its calibrated versions; of the two fits of a fold the second gives scores for the maps."""
    confidence = np.zeros(fold.size)
    mapped = {method: np.full(fold.size, np.nan) for method in maps}
    for code, (fit, inner_fit) in fits.items():
        train, test = np.flatnonzero(fold != code), np.flatnonzero(fold == code)
        confidence[test] = fit(train)(test)
        if not maps:
            continue
        inner = _folds(units.problem[train], generator, MAP_FOLDS)
        scores = np.zeros(train.size)
        for part in np.unique(inner):
            held = inner == part
            scores[held] = inner_fit(train[~held])(train[held])
        for method in maps:
            fitted = calibrator(method).fit(scores, units.correct[train])
            if not isinstance(fitted, Unfitted):
                mapped[method][test] = fitted.apply(confidence[test])
    found[name] = _estimate(units, name, confidence, layers)
    for method, column in mapped.items():
        if not np.isnan(column).any():
            found[f"{name} + {method}"] = _estimate(units, f"{name} + {method}", column, layers)


def _estimate(units: ProbeUnits, name: str, confidence: FloatArray, layers: tuple[int, ...] = ()) -> Estimate:
    return Estimate(name, confidence, layers, _metrics(confidence, units.correct))


def _metrics(
    confidence: FloatArray, correct: NDArray[np.bool_], names: Sequence[str] = PROBE_METRICS
) -> dict[str, Value]:
    return evaluate_units(ScoredUnits.from_columns(confidence, correct), names)


def _folds(problem: IntArray, generator: np.random.Generator, most: int = FOLDS) -> IntArray:
    """Return the fold of each unit; units of a problem share one.

    Raises:
        ValueError: for fewer than two problems.
    """
    problems, owner = np.unique(problem, return_inverse=True)
    if problems.size < 2:
        raise ValueError(TOO_FEW_GENERATIONS.replace("generations", "problems"))
    of_problem = np.empty(problems.size, dtype=np.int64)
    of_problem[generator.permutation(problems.size)] = np.arange(problems.size) % min(most, problems.size)
    return of_problem[owner]


def _out_of_fold(fit: Fit, fold: IntArray) -> FloatArray:
    confidence = np.zeros(fold.size)
    for code in np.unique(fold):
        test = np.flatnonzero(fold == code)
        confidence[test] = fit(np.flatnonzero(fold != code))(test)
    return confidence


def _fixed_fit(units: ProbeUnits, features: FloatArray, settings: ForestSettings) -> Fit:
    """Return the fit on features that need no training units."""

    def fit(train: IntArray) -> Callable[[IntArray], FloatArray]:
        predict = fit_forest(features[train], units.correct[train], settings)
        return lambda rows: predict(features[rows])

    return fit


def _pool_fit(units: ProbeUnits, place: int, settings: ForestSettings) -> Fit:
    return _fixed_fit(units, np.asarray(units.pools[place], dtype=np.float64), settings)


def _component_fit(units: ProbeUnits, count: int, settings: ForestSettings, known: dict[bytes, Components]) -> Fit:
    """Return the fit on ``count`` components of each layer; ``known`` keeps the components by training units."""

    def fit(train: IntArray) -> Callable[[IntArray], FloatArray]:
        key = train.tobytes()
        if key not in known:
            known[key] = fit_components(units.pools[:, train], max(COMPONENT_COUNTS))
        components = known[key].first(count)
        predict = fit_forest(components.features(units.pools[:, train]), units.correct[train], settings)
        return lambda rows: predict(components.features(units.pools[:, rows]))

    return fit


def _baseline(units: ProbeUnits, name: str) -> Fit:
    def fit(train: IntArray) -> Callable[[IntArray], FloatArray]:
        probability, correct = units.probability[train], units.correct[train]
        predict: Predict
        if name == "none":
            predict = np.array
        elif name == "hre":
            predict = fit_histogram_regression(probability, correct)
        elif name == "nwkr":
            predict = fit_kernel_regression(probability, correct)
        else:
            fitted = calibrator(name).fit(probability, correct)
            if isinstance(fitted, Unfitted):
                raise ValueError(fitted.reason)
            predict = fitted.apply
        return lambda rows: predict(units.probability[rows])

    return fit


def _best_layer(
    units: ProbeUnits, train: IntArray, places: Sequence[int], search: ForestSettings, generator: np.random.Generator
) -> int:
    """Return the place of the layer with the largest EURO area in inner folds (the first of equal ones)."""
    if len(places) == 1:
        return places[0]
    rows = np.sort(generator.permutation(train)[:MOST_SEARCH_UNITS])
    if np.unique(units.problem[rows]).size < 2:
        return places[0]
    inner = _folds(units.problem[rows], generator, SEARCH_FOLDS)
    best, highest = places[0], -1.0
    for place in places:
        fit = _pool_fit(units, place, search)
        confidence = np.zeros(rows.size)
        for code in np.unique(inner):
            held = inner == code
            confidence[held] = fit(rows[~held])(rows[held])
        area = evaluate_units(ScoredUnits.from_columns(confidence, units.correct[rows]), ["euro_auc"])["euro_auc"].value
        if area is not None and area > highest:
            best, highest = place, area
    return best
