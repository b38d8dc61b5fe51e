"""Probes in sentences, tables and data: nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from salt_tui.measure.probes import ProbeReport
from salt_tui.number_text import UNDEFINED
from salt_tui.reports.text_tables import BEST, TextTable, number, value_text
from salt_tui.reports.wrapping import wrapped
from scoring.probe_features import VARIANCE_SHARES
from scoring.probes import PROBE_METRICS
from scoring.value import Value, json_number

_HEADS = {
    "smooth_ece": "smooth ECE ↓",
    "euro_auc_low": "EURO low ↑",
    "euro_auc_medium": "medium ↑",
    "euro_auc_high": "high ↑",
    "euro_auc": "all ↑",
}
UNITS = {"atom": "atoms", "line": "lines", "generation": "answers"}


def probe_lines(report: ProbeReport, width: int) -> Iterator[str]:
    """Yield sentences and tables as text.

    Args:
        report: what was found.
        width: columns of a line.
    """
    for sentence in sentences(report):
        yield from wrapped(sentence, width)
    for table in tables(report):
        yield ""
        yield from table.as_text(width)
        for note in table.notes:
            yield from wrapped(note, width)


def sentences(report: ProbeReport) -> Iterator[str]:
    """Yield what was measured and what may be concluded, with n."""
    subject, found = report.subject, report.conclusion
    units, count = UNITS[subject.kind], subject.units.correct.size
    share = 100.0 * float(subject.units.correct.mean())
    norm = ", the last behind the final norm" if subject.post_norm else ""
    of = "" if subject.kind == "generation" else f" of {subject.answers:,} answers"
    yield (
        f"Probes on {count:,} {units}{of} ({share:.1f} % right), layers"
        f" {subject.units.layers[0]} to {subject.units.layers[-1]}{norm},"
        f" {subject.positions} positions of {subject.study.title}; every number is of answers that did not train it."
    )
    yield from subject.notes
    if found.reason is not None:
        reasons = "; ".join(dict.fromkeys(found.tasks_left_out.values())) or found.reason
        yield f"Which estimator is best cannot be said: {reasons}."
    else:
        scope = f"by Brier score, over {found.answers:,} answers of {len(found.tasks)} tasks"
        if found.winner:
            names = " and ".join(found.winner)
            yield f"The best estimator {scope}: {names} ({value_text(found.means[found.winner[0]])})."
        else:
            listed = ", ".join(f"{name} ({value_text(found.means[name])})" for name in found.best)
            yield f"These cannot be told apart from the best {scope}: {listed}."
        beaten = "none" in found.excluded
        act = [name for name in found.best if name not in _BASELINES]
        if beaten and not any(name in found.best for name in _BASELINES):
            yield "Activations know more here than the probability of the tokens, by every map of it."
        elif not beaten:
            yield "That activations know more than the raw probability of the tokens cannot be said from this run."
        elif not act:
            yield "A map of the tokens' probability does better here than every probe."
        else:
            yield (
                "The raw probability of the tokens is worse; that activations know more than a map of it cannot be said"
                " from this run."
            )
    areas = {layer: metrics["euro_auc"].value or 0.0 for layer, metrics in report.by_layer.items()}
    yield (
        f"Layer {report.best_layer} has the largest EURO area alone, {number(areas[report.best_layer])}"
        f" (all layers: {number(min(areas.values()))} to {number(max(areas.values()))}); it is the one that --save"
        " keeps."
    )


_BASELINES = ("none", "hre", "nwkr", "platt", "isotonic", "beta")


def tables(report: ProbeReport) -> Iterator[TextTable]:
    """Yield the tables: estimators, maps after them, layers, training answers, dimensions, unseen tasks."""
    heads = tuple(_HEADS[name] for name in PROBE_METRICS)
    plain = {name: one for name, one in report.estimators.items() if "+" not in name}
    mapped = {name: one for name, one in report.estimators.items() if "+" in name}
    best = set(report.conclusion.best)
    yield TextTable(
        "Estimators of correctness",
        ("estimator", "layers", "Brier ↓", *heads),
        tuple(
            (
                f"{BEST if name in best else ' '} {name}",
                _layers(one.layers),
                value_text(report.conclusion.means[name]) if name in report.conclusion.means else UNDEFINED,
                *_metric_cells(one.metrics),
            )
            for name, one in plain.items()
        ),
        left=2,
        notes=(
            "none, hre, nwkr, platt, isotonic, beta read the joint probability of the tokens. act: one layer, the best"
            " of a third; cosine: each layer against the last; pca: components of every layer.",
            f"{BEST} not to be told apart from the best by Brier score (mean over tasks). Smooth ECE and EURO"
            " name no best.",
        ),
    )
    yield TextTable(
        "With a calibration map after it",
        ("estimator", *heads),
        tuple((name, *_metric_cells(one.metrics)) for name, one in mapped.items()),
    )
    yield TextTable(
        "Each layer alone (100 trees)",
        ("layer", *heads),
        tuple((str(layer), *_metric_cells(metrics)) for layer, metrics in report.by_layer.items()),
        left=0,
    )
    yield TextTable(
        f"Trained on n {UNITS[report.subject.kind]}, layer {report.best_layer} (100 trees, mean and spread of 20"
        " draws)",
        ("n", "smooth ECE ↓", "±", "EURO all ↑", "±"),
        tuple(
            (
                str(size.units),
                value_text(size.means["smooth_ece"]),
                value_text(size.deviations["smooth_ece"]),
                value_text(size.means["euro_auc"]),
                value_text(size.deviations["euro_auc"]),
            )
            for size in report.sizes
        ),
        left=0,
    )
    shares = tuple(f"{100 * share:.0f} %" for share in VARIANCE_SHARES)
    yield TextTable(
        "Components that hold a share of a layer's variance",
        ("layer", *shares),
        tuple(
            (str(one.layer), *(UNDEFINED if count is None else str(count) for count in one.components))
            for one in report.dimensions
        ),
        left=0,
        notes=tuple(
            f"From {one.units:,} vectors of {one.width} numbers: at most {min(one.units - 1, one.width)} components."
            for one in report.dimensions[:1]
        ),
    )
    if report.unseen:
        yield TextTable(
            f"Trained on the other tasks, layer {report.best_layer} (100 trees)",
            ("task", "n", "right", "AUROC ↑", "seen too", "probability", "smooth ECE ↓", "seen too", "probability"),
            tuple(
                (
                    report.subject.tasks[one.task],
                    str(one.units),
                    str(one.right),
                    *(value_text(part["auroc"]) for part in (one.metrics, one.inside, one.raw)),
                    *(value_text(part["smooth_ece"]) for part in (one.metrics, one.inside, one.raw)),
                )
                for one in report.unseen
            ),
            notes=(
                "seen too: trained on this task as well. probability: the joint probability of the tokens, raw. No"
                " AUROC where fewer than two problems hold right units, or wrong ones.",
            ),
        )


def probe_data(report: ProbeReport) -> dict[str, Any]:
    """Return everything as JSON; undefined is null with a reason."""
    count = int(report.subject.units.correct.size)
    return {
        "run": report.subject.study.run,
        "study": str(report.subject.study),
        "unit": report.subject.kind,
        "positions": report.subject.positions,
        "answers": report.subject.answers,
        "n": count,
        "findings": list(sentences(report)),
        "best": list(report.conclusion.best),
        "best_layer": report.best_layer,
        "estimators": [
            {"name": name, "layers": list(one.layers), **_data(one.metrics), "n": count}
            for name, one in report.estimators.items()
        ],
        "layers": [{"layer": layer, **_data(metrics)} for layer, metrics in report.by_layer.items()],
        "sample_complexity": [
            {"n": size.units, **_data(size.means), "deviation": _data(size.deviations)} for size in report.sizes
        ],
        "intrinsic_dimension": [
            {
                "layer": one.layer,
                "components": {
                    f"{share:g}": value for share, value in zip(VARIANCE_SHARES, one.components, strict=True)
                },
                "n": one.units,
                "dimension": one.width,
            }
            for one in report.dimensions
        ],
        "unseen_tasks": [
            {
                "task": report.subject.tasks[one.task],
                "n": one.units,
                "right": one.right,
                **_data(one.metrics),
                "seen": _data(one.inside),
                "joint_probability": _data(one.raw),
            }
            for one in report.unseen
        ],
    }


def _metric_cells(metrics: Mapping[str, Value]) -> tuple[str, ...]:
    return tuple(number(metrics[name].value) for name in PROBE_METRICS)


def _layers(layers: tuple[int, ...]) -> str:
    return ",".join(map(str, sorted(set(layers))))


def _data(metrics: Mapping[str, Value]) -> dict[str, Any]:
    reasons = {name: value.reason for name, value in metrics.items() if value.reason is not None}
    data: dict[str, Any] = {name: json_number(value.value) for name, value in metrics.items()}
    return data | ({"reasons": reasons} if reasons else {})
