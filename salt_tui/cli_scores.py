"""The commands for scores that exist already: tables and answers from elsewhere, probes and policies.

Imports are inside the commands: importing numpy alone would double the time of ``--help``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from salt_tui.commands.options import (
    Database,
    JsonOption,
    UnitChoice,
    names_in,
)

scores_app = typer.Typer()
signals_app = typer.Typer()


@scores_app.command()
def score(
    file: Annotated[Path, typer.Argument(help="JSON lines with task, response, reference[, delimiter].")],
    aligned: Annotated[bool, typer.Option("--aligned", help="Needleman-Wunsch instead of strict by index.")] = False,
    unit: Annotated[UnitChoice, typer.Option("--unit", help="atom, line or generation.")] = UnitChoice.ATOM,
    compat: Annotated[bool, typer.Option("--compat", help="Extract answers as the published release does.")] = False,
    json_output: JsonOption = False,
) -> int:
    """Label stored answers without a model."""
    from salt_tui.commands.score import score_file

    return score_file(file, aligned=aligned, unit=unit.value, compat=compat, json_output=json_output)


@scores_app.command()
def metrics(
    file: Annotated[Path, typer.Argument(help="CSV with a header: confidence, correct[, group]; or an export.")],
    confidence_column: Annotated[
        str | None, typer.Option("--confidence-column", help="Its name; default: confidence, score, max_probability.")
    ] = None,
    correct_column: Annotated[str, typer.Option("--correct-column", help="Its name; 0 or 1.")] = "correct",
    group_column: Annotated[
        str | None, typer.Option("--group-column", help="Which answer a row is from; default: group, generation.")
    ] = None,
    weight_column: Annotated[
        str | None,
        typer.Option("--weight-column", help="Units a row stands for: 1 / its chance to be checked."),
    ] = None,
    not_probability: Annotated[
        bool, typer.Option("--not-probability", help="Any numbers; measures their ranking alone.")
    ] = False,
    lower_is_confident: Annotated[
        bool, typer.Option("--lower-is-confident", help="For uncertainties, such as perplexity.")
    ] = False,
    rewards: Annotated[
        str | None,
        typer.Option("--rewards", help="Trusted right, trusted wrong, abstained right, abstained wrong: 1,-3,0,0."),
    ] = None,
    bins: Annotated[int, typer.Option("--bins", help="Equal-width bins that are shown; ECE keeps its 15.")] = 15,
    draws: Annotated[int, typer.Option("--draws", help="Bootstrap draws of groups for 95 % intervals; 0: none.")] = 0,
    curve: Annotated[
        str | None,
        typer.Option("--curve", help="CSV of risk-coverage, euro, bins, bin-counts, densities or label-noise."),
    ] = None,
    json_output: JsonOption = False,
) -> int:
    """Measure a table of confidences and outcomes from anywhere."""
    from salt_tui.commands.metrics import TableOptions, print_metrics

    options = TableOptions(
        confidence=confidence_column,
        correct=correct_column,
        group=group_column,
        weight=weight_column,
        probability=not not_probability,
        lower_is_confident=lower_is_confident,
        rewards=rewards,
        bins=bins,
        draws=draws,
    )
    return print_metrics(file, options, curve=curve, json_output=json_output)


@scores_app.command()
def calibrate(
    method: Annotated[
        str | None,
        typer.Argument(help="z_sigmoid, minmax, binned:B, histogram:B, platt, isotonic, beta or temperature."),
    ] = None,
    training: Annotated[Path | None, typer.Option("--fit", help="CSV with score and correct; or an export.")] = None,
    target: Annotated[Path | None, typer.Option("--apply", help="CSV with score; or an export.")] = None,
    save: Annotated[Path | None, typer.Option("--save", help="Write the fitted map to a JSON file.")] = None,
    saved: Annotated[Path | None, typer.Option("--map", help="Apply this saved map; no METHOD, no --fit.")] = None,
    score_column: Annotated[
        str | None,
        typer.Option("--score-column", help="Its name; default: confidence, score, max_probability."),
    ] = None,
    correct_column: Annotated[str, typer.Option("--correct-column", help="Its name; 0 or 1.")] = "correct",
    lower_is_confident: Annotated[
        bool, typer.Option("--lower-is-confident", help="For scores such as perplexity.")
    ] = False,
) -> int:
    """Fit a calibration map on one table and print the calibrated values of another."""
    from salt_tui.commands.calibrate import print_calibrated

    return print_calibrated(
        method,
        training,
        target,
        saved=saved,
        save=save,
        score=score_column,
        correct=correct_column,
        lower_is_confident=lower_is_confident,
    )


@scores_app.command()
def probe(
    run: Annotated[
        str, typer.Argument(metavar="[RUN|RUN.K|latest]", help="A run, or its study of activations.")
    ] = "latest",
    unit: Annotated[UnitChoice, typer.Option("--unit", help="generation, line or atom.")] = UnitChoice.GENERATION,
    own: Annotated[
        bool, typer.Option("--own", help="Read the tokens' own states, not those that produced them.")
    ] = False,
    save: Annotated[Path | None, typer.Option("--save", help="Keep the best layer's probe in a file.")] = None,
    apply: Annotated[Path | None, typer.Option("--apply", help="Store what a kept probe says about the run.")] = None,
    name: Annotated[str, typer.Option("--name", help="With --apply: name of the signal.")] = "probe",
    database: Database = None,
    json_output: JsonOption = False,
) -> int:
    """Train probes on a run's activations: does the model hold whether it is right?"""
    from salt_tui.commands.probe import apply_probe, print_probes

    if apply is not None:
        if save is not None or own or json_output:
            raise typer.BadParameter("--apply reads what the probe was trained on: leave --save, --own and --json out")
        return apply_probe(run, database, apply, name)
    positions = "own" if own else "producing"
    return print_probes(run, database, unit.value, positions, save=save, json_output=json_output)


@scores_app.command()
def policy(
    run: Annotated[str, typer.Argument(metavar="[RUN|latest]", help="Number of the run.")] = "latest",
    risk: Annotated[
        str | None, typer.Option("--risk", help="Most wrong units among trusted ones, such as .05; .05,.2 makes bands.")
    ] = None,
    confidence: Annotated[float | None, typer.Option("--confidence", help="How sure; default: .9.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Promise the mean over answers, for any number of them.")
    ] = False,
    rewards: Annotated[
        str | None, typer.Option("--rewards", help="TRUSTED_RIGHT,TRUSTED_WRONG,ABSTAINED_RIGHT,ABSTAINED_WRONG.")
    ] = None,
    unit: Annotated[
        UnitChoice, typer.Option("--unit", help="What is trusted: atom, line or generation.")
    ] = UnitChoice.ATOM,
    function: Annotated[
        str, typer.Option("--function", help="Choose among these, joined by commas; default: all.")
    ] = "",
    calibrator: Annotated[str, typer.Option("--calibrator", help="Choose among these maps, joined by commas.")] = "",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Keep the policy in a JSON file.")] = None,
    apply: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--apply", metavar="POLICY CSV", help="Decide about each row of a table."),
    ] = None,
    score_column: Annotated[
        str | None, typer.Option("--score-column", help="Of --apply; default: named like the policy's function.")
    ] = None,
    database: Database = None,
    json_output: JsonOption = False,
) -> int:
    """Say which units to trust, with a promise about how many of those are wrong, or by rewards."""
    from salt_tui.commands.policy import print_decisions, print_policy

    if apply is not None:
        return print_decisions(*apply, score_column)
    return print_policy(
        run,
        database,
        unit.value,
        risk=risk,
        confidence=confidence,
        exact=exact,
        rewards=rewards,
        functions=names_in(function),
        maps=names_in(calibrator),
        output=output,
        json_output=json_output,
    )


@scores_app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="JSON lines: rows of `tasks export` with `response`; - is stdin.")],
    database: Database = None,
    json_output: JsonOption = False,
) -> int:
    """Make a run of answers that another program gave to exported problems."""
    from salt_tui.commands.import_answers import import_file

    return import_file(file, database, json_output=json_output)


@signals_app.command("add")
def signals_add(
    run: Annotated[str, typer.Argument(metavar="RUN|latest", help="Number of the run.")],
    file: Annotated[Path, typer.Argument(help="CSV with task, position, kind, index, score; - is stdin.")],
    name: Annotated[str, typer.Option("--name", help="What reports call it.")],
    lower_is_confident: Annotated[
        bool, typer.Option("--lower-is-confident", help="For uncertainties, such as perplexity.")
    ] = False,
    score_column: Annotated[str, typer.Option("--score-column", help="Its name.")] = "score",
    unit: Annotated[
        UnitChoice, typer.Option("--unit", help="What rows are about in a table without kind: atom, line, generation.")
    ] = UnitChoice.ATOM,
    database: Database = None,
    json_output: JsonOption = False,
) -> int:
    """Make another program's scores of a run's answers a signal of the run."""
    from salt_tui.commands.signals import add_signals

    return add_signals(
        run,
        database,
        file,
        name,
        score=score_column,
        unit=unit.value,
        lower_is_confident=lower_is_confident,
        json_output=json_output,
    )


@signals_app.command("remove")
def signals_remove(
    run: Annotated[str, typer.Argument(metavar="RUN|latest", help="Number of the run.")],
    name: Annotated[str, typer.Argument(help="Of the signal.")],
    database: Database = None,
    json_output: JsonOption = False,
) -> int:
    """Take away a signal that was added."""
    from salt_tui.commands.signals import remove_signals

    return remove_signals(run, database, name, json_output=json_output)
