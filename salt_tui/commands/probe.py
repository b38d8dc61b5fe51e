"""``salt-tui probe``: probes on the activations of a run, judged, kept in a file, and applied to a later run."""

from __future__ import annotations

import json
from pathlib import Path

from salt_tui.commands.failures import DONE, say
from salt_tui.commands.line_width import terminal_width
from salt_tui.commands.progress_line import show_progress
from salt_tui.measure.probe_files import SavedProbe, probe_signals, read_probe, train, write_probe
from salt_tui.measure.probes import find_study, read_subject, report_probes
from salt_tui.paths import database_path
from salt_tui.reports.probe_report import probe_data, probe_lines
from salt_tui.runner.model_identity import sha256_of, shown_identity
from salt_tui.store.placing import complete_file
from salt_tui.store.queries import open_queries
from salt_tui.store.records import UnitKind, Work
from salt_tui.store.store import open_store
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible


def print_probes(
    run: str, database: Path | None, kind: UnitKind, positions: str, *, save: Path | None, json_output: bool
) -> int:
    """Train and judge probes on the activations of a run, and keep the best single layer's if asked.

    Args:
        run: its name, or that of a study of activations.
        database: the file that holds it; None for the usual one.
        kind: of the units.
        positions: ``producing`` or ``own``.
        save: file for the probe; None keeps none.
        json_output: print one JSON object.

    Raises:
        UsageError: no activations, or too few.
    """
    path = database or database_path()
    with open_queries(path) as queries, queries.snapshot():
        study = find_study(queries, run)
        model = queries.run_record(study.run).model
        subject = read_subject(queries, study, kind, positions)
    report = report_probes(subject, progress=show_progress)
    show_progress("")
    if save is not None:
        if sha256_of(model.identity) is None:
            say(
                f"the model has no file whose hash could be kept; {save} is for runs of {visible(model.identity)} alone"
            )
        _write(train(subject, report.best_layer, model.identity, model.name), save)
    if json_output:
        print(json.dumps(probe_data(report), ensure_ascii=False, allow_nan=False))
        return DONE
    for line in probe_lines(report, terminal_width()):
        print(line)
    return DONE


def apply_probe(run: str, database: Path | None, file: Path, name: str) -> int:
    """Store what a saved probe says about the units of a run, as a signal of the run.

    Raises:
        UsageError: no probe, one of another model, or no activations of its layer.
    """
    probe = read_probe(file)
    path = database or database_path()
    with open_queries(path) as queries, queries.snapshot():
        study = find_study(queries, run)
        model = queries.run_record(study.run).model
        if model.identity != probe.model:
            raise UsageError(
                f"{file}: a probe of {visible(probe.model_name)} ({visible(shown_identity(probe.model))}); run"
                f" {study.run} is of another model ({visible(shown_identity(model.identity))})"
            )
        kind: UnitKind = "generation" if probe.unit == "generation" else "line" if probe.unit == "line" else "atom"
        subject = read_subject(queries, study, kind, probe.positions, (probe.layer,))
    if probe.layer == subject.units.depth and probe.post_norm != subject.post_norm:
        where = ("behind", "before") if probe.post_norm else ("before", "behind")
        raise UsageError(
            f"{file}: reads the last layer {where[0]} the final norm; {subject.study.title} has it {where[1]}"
        )
    if subject.units.pools.shape[2] != probe.width:
        raise UsageError(f"{file}: reads vectors of {probe.width} numbers; {study.title} has others")
    signals = probe_signals(probe, subject, name)
    known = sum(signal.value is not None for signal in signals)
    if not known:
        raise UsageError(f"{file}: was trained on all problems of run {study.run}; it says nothing about them")
    with open_store(path) as store:
        store.add_signals(Work(study.run), signals)
    left = len(signals) - known
    said = f"{name}: {known} values for run {study.run}"
    say(said if not left else f"{said}; {left} units belong to problems that the probe was trained on and have none")
    print(f"salt-tui report {study.run} --unit {probe.unit} --function {name},joint_probability")
    return DONE


def _write(probe: SavedProbe, path: Path) -> None:
    try:
        with complete_file(path, ("empty", "file"), database=False) as temporary:
            write_probe(probe, temporary)
    except (OSError, FileExistsError) as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error})") from error
