"""Prefix interventions as tables, and in sentences that say no more than their intervals allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from salt_tui.measure.interventions import InterventionFindings, OutcomeFindings, TaskFindings
from salt_tui.reports.curve_text import curve_lines
from salt_tui.reports.text_tables import TextTable, interval_text, number, value_text
from salt_tui.reports.wrapping import wrapped
from scoring.interventions import FEWEST_PROBLEMS, Outcome
from scoring.interventions_contrasts import Contrast, Estimate
from scoring.interventions_length import LengthResponse
from scoring.value import Value

OUTCOME_NAMES: dict[Outcome, str] = {"outcome": "Y", "probability": "P(gold)"}
TREATMENT_NAMES = {"global": "whole prefix", "local": "last ten"}
SIGNIFICANT = 0.05
SMALLEST_P = 0.001


def interventions_lines(findings: InterventionFindings, width: int) -> Iterator[str]:
    """Yield what may be concluded, then the tables, then what must be known to read them.

    Args:
        findings: of one study or several.
        width: columns that a line takes at most.
    """
    replays = sum(task.replays for task in findings.tasks)
    targets = sum(task.targets for task in findings.tasks)
    mode = ", chunked and not exact" if findings.chunked else ""
    title = f"prefix interventions, {', '.join(findings.studies)}{mode}: {replays:,} replays of {targets:,} targets"
    yield from wrapped(title, width)
    yield ""
    for sentence in interventions_sentences(findings):
        yield from wrapped(sentence, width)
    for table in interventions_tables(findings):
        yield ""
        yield from table.as_text(width)
        for note in table.notes:
            yield from wrapped(note, width)
    for task in findings.tasks:
        yield from _curves(task)
    yield ""
    for note in interventions_notes(findings):
        yield from wrapped(note, width)


def _curves(task: TaskFindings) -> Iterator[str]:
    """Yield the two curves of figure 4 and that of figure 26, of P(gold) where it is known."""
    if task.problems < FEWEST_PROBLEMS:
        return
    found = task.outcomes["probability"]
    if found.baseline is None:
        found = task.outcomes["outcome"]
    what = OUTCOME_NAMES[found.outcome]
    for contrast in found.contrasts:
        if not contrast.adjusted and contrast.curve.dose:
            yield ""
            yield f"{task.task}: change of {what} by the {TREATMENT_NAMES[contrast.treatment]}, with 95 % interval"
            yield from curve_lines(contrast.curve, "more wrong before it ← → more right")
    controlled = found.lengths[0]
    if controlled.curve.dose:
        yield ""
        yield f"{task.task}: {what} by length at equal correctness, with 95 % interval"
        yield from curve_lines(controlled.curve, "atoms before it")
    yield from _marks(task)


def interventions_tables(findings: InterventionFindings) -> list[TextTable]:
    """Return, for each task and outcome, the contrasts and, from ten problems on, the length response."""
    tables = []
    for task in findings.tasks:
        for found in task.outcomes.values():
            tables.append(_contrast_table(task, found))
            if task.problems >= FEWEST_PROBLEMS:
                tables.append(_sides_table(task, found))
                tables.append(_length_table(task, found))
    return tables


def interventions_notes(findings: InterventionFindings) -> list[str]:
    """Return what must be known to read the tables."""
    check = findings.check
    notes = []
    if findings.chunked:
        notes.append(_chunked_note(findings))
    elif check.identical:
        notes.append(f"All {check.replays} unchanged replays gave the stored answer again, bit for bit.")
    elif check.identical is False:
        notes.append(
            f"warning: {check.differing} of {check.replays} unchanged replays differ from the stored answer, by up to"
            f" {check.largest_difference:.2g} in a log-probability: this engine or device is not exact."
        )
    for task in findings.tasks:
        if task.without_atom:
            notes.append(f"{task.task}: in {_replays(task.without_atom)} no atom was written at the target; Y = 0.")
        notes.extend(
            f"{task.task}: left out, {_replays(count)}: {reason}." for reason, count in task.without_outcome.items()
        )
    notes.append(
        "Whole prefix: change of the share of right atoms before the target; last ten: the same over the ten atoms"
        " before it. Slope: change of the outcome per unit of it, from the smallest dose to the largest. ΔP+ and ΔP−:"
        " mean change over the doses that correct and that corrupt; −/+ mixes effect and range of the doses. p is"
        " clustered by problem, p nonlin. of a curve against a straight line; ΔAIC and p rows count replays as"
        " independent, as the paper does, and are too sure."
    )
    return notes


def _chunked_note(findings: InterventionFindings) -> str:
    """Say what was not exact, and by how much."""
    check = findings.check
    some = f" of {', '.join(findings.chunked)}" if len(findings.chunked) < len(findings.studies) else ""
    said = (
        f"Chunked, not exact: the texts before the targets{some}, changed and unchanged, were evaluated in chunks and"
        " not token by token as the answers were written."
    )
    if not check.replays:
        return said
    if check.identical:
        return f"{said} The {check.replays} unchanged replays gave the stored answers all the same."
    return (
        f"{said} The {check.replays} unchanged replays differ from the stored answers by up to"
        f" {check.largest_difference:.2g} in a log-probability, and {check.other_text or 'none'} of them chose another"
        " token. Effects are differences between replays that were evaluated alike."
    )


def interventions_sentences(findings: InterventionFindings) -> list[str]:
    """Return what may be concluded, task by task."""
    lines: list[str] = []
    if findings.chunked:
        lines.append("Chunked, so not exact: the last lines say by how much the replays differ from the answers.")
    for task in findings.tasks:
        found = task.outcomes["probability"]
        if found.baseline is None:
            found = task.outcomes["outcome"]
        lines.extend(_task_sentences(task, found))
    return lines if findings.tasks else ["No target was replayed."]


def _task_sentences(task: TaskFindings, found: OutcomeFindings) -> Iterable[str]:
    right = task.outcomes["outcome"].baseline
    gold = task.outcomes["probability"].baseline
    yield (
        f"{task.task}: with its own text before it, the model writes the right atom at {number(right, 2)} of"
        f" {task.targets} targets"
        + (f"; it gave the right one a probability of {number(gold, 2)} on average." if gold is not None else ".")
    )
    if task.caveat:
        yield f"{task.task}: {task.caveat}"
    if task.problems < FEWEST_PROBLEMS:
        yield (
            f"{task.task}: problems are too few for an interval ({task.problems}, from {FEWEST_PROBLEMS} on there is"
            " one), so nothing is concluded."
        )
        return
    for contrast in found.contrasts:
        if contrast.adjusted:
            yield f"{task.task}: {_effect_sentence(contrast, found.outcome)}"
    # Unadjusted, a symmetric effect looks lopsided where one direction changes more of the last ten atoms.
    adjusted = next(one for one in found.contrasts if one.treatment == "global" and one.adjusted)
    yield f"{task.task}: {_sides_sentence(adjusted)}"
    controlled = next(length for length in found.lengths if length.controlled)
    yield f"{task.task}: {_length_sentence(controlled)}"


def _effect_sentence(contrast: Contrast, outcome: Outcome) -> str:
    names = ("whole prefix", "last ten atoms")
    what, other = names if contrast.treatment == "global" else reversed(names)
    slope = contrast.slope
    if slope.value.value is None:
        return f"effect of the {what}: undefined, {slope.value.reason}."
    # Both: with few problems the test of a curve finds too many, and a slope may miss a curve that comes back.
    beyond, found = _excludes_zero(slope), _is_small(contrast.p_clustered)
    says = "matters" if beyond and found else "has no clear effect"
    tested = f"p {p_text(contrast.p_clustered)} for a curve of any shape"
    if beyond != found and slope.interval.low is not None:
        tested += f", although the interval {'leaves out' if beyond else 'holds'} 0"
    if contrast.p_clustered.reason is not None:
        says, tested = "was not tested", contrast.p_clustered.reason
    return (
        f"the correctness of the {what} {says}: {_signed(slope.value.value)} {interval_text(slope.interval, 2)} in"
        f" {OUTCOME_NAMES[outcome]} from none to all right, with the {other} held fixed"
        f" ({tested}, {contrast.problems} problems)."
    )


def _sides_sentence(contrast: Contrast) -> str:
    sides = contrast.both_directions
    ratio = sides.ratio_per_unit
    if ratio.value.value is None:
        return f"corruption against correction: undefined, {ratio.value.reason}."
    minus, plus = (
        " ".join(filter(None, (_signed(side.value.value), interval_text(side.interval, 2))))
        for side in (sides.minus_per_unit, sides.plus_per_unit)
    )
    numbers = f"{minus} and {plus} per unit"
    if ratio.interval.reason is not None:
        numbers += f", without intervals: {ratio.interval.reason}"
    low, high = ratio.interval.low, ratio.interval.high
    # The ratio has no sign, and is far from 1 too where neither side is known to do anything.
    hurts, helps = ((side.interval.low or 0.0) > 0.0 for side in (sides.minus_per_unit, sides.plus_per_unit))
    both = min(sides.minus_per_unit.value.value or 0.0, sides.plus_per_unit.value.value or 0.0) > 0.0
    if hurts and low is not None and round(low, 6) > 1.0:  # an exact 1 is a rounding away from it
        times = f"{number(ratio.value.value, 1)} times as much as" if both else "more than"
        says = f"an atom made wrong hurts {times} one made right helps"
    elif helps and high is not None and round(high, 6) < 1.0:
        times = f", {number(1.0 / ratio.value.value, 1)} times as much" if both else ""
        says = f"an atom made right helps more than one made wrong hurts{times}"
    else:
        says = "whether an atom made wrong hurts more than one made right helps cannot be told"
    return f"{says}, with the last ten atoms held fixed ({numbers}; {sides.targets} targets with both)."


def _length_sentence(length: LengthResponse) -> str:
    drop = length.drop
    if drop.value.value is None or length.start is None:
        return f"length: undefined, {length.reason or drop.value.reason}."
    end = length.curve.dose[-1]
    if not _excludes_zero(drop):
        return (
            f"with more atoms before the target, {length.start:.0f} to {end:.0f}, no clear change at equal correctness:"
            f" {_signed(drop.value.value)} {interval_text(drop.interval, 2)}."
        )
    direction = "falls" if drop.value.value < 0 else "rises"
    saturation = length.saturation
    at = ""
    if saturation.value.value is not None and saturation.interval.low is not None:
        at = f"; 95 % of it by {_atoms(saturation)} atoms"
    return (
        f"from {length.start:.0f} to {end:.0f} atoms before the target the chance {direction} by"
        f" {number(abs(drop.value.value))} {interval_text(drop.interval, 2)} at equal correctness{at}."
        " Length was not varied: an association, not an effect."
    )


def _contrast_table(task: TaskFindings, found: OutcomeFindings) -> TextTable:
    heads = ("correctness of", "slope", "", "ΔP+", "ΔP−", "−/+", "p", "p nonlin.", "ΔAIC")
    rows = []
    notes: list[str] = []
    for contrast in found.contrasts:
        sides = contrast.sides
        rows.append(
            (
                _name(contrast),
                value_text(contrast.slope.value),
                interval_text(contrast.slope.interval, 2),
                value_text(sides.plus.value),
                value_text(sides.minus.value),
                number(sides.ratio.value.value, 1),
                p_text(contrast.p_clustered),
                p_text(contrast.p_nonlinear_clustered),
                number(contrast.difference_aic.value, 1),
            )
        )
        if (reason := contrast.reason or contrast.slope.interval.reason) is not None:
            _add(notes, reason if contrast.reason else f"No interval and no p: {reason}.")
        if contrast.note is not None:
            _add(notes, f"{TREATMENT_NAMES[contrast.treatment]}: {contrast.note}")
    title = (
        f"{task.task}, {OUTCOME_NAMES[found.outcome]} by the prefix: {task.replays:,} replays,"
        f" {task.targets:,} targets, {task.problems} problem{'s' if task.problems != 1 else ''}"
    )
    return TextTable(title, heads, tuple(rows), notes=(*_marks(task), *notes))


def _sides_table(task: TaskFindings, found: OutcomeFindings) -> TextTable:
    heads = ("correctness of", "+/unit", "", "−/unit", "", "−/+", "", "targets")
    rows = []
    notes: list[str] = []
    for contrast in found.contrasts:
        sides = contrast.both_directions
        rows.append(
            (
                _name(contrast),
                *_point_and_interval(sides.plus_per_unit),
                *_point_and_interval(sides.minus_per_unit),
                number(sides.ratio_per_unit.value.value, 1),
                interval_text(sides.ratio_per_unit.interval, 1),
                str(sides.targets),
            )
        )
        _add(notes, sides.ratio_per_unit.value.reason or sides.ratio_per_unit.interval.reason)
    title = f"{task.task}, {OUTCOME_NAMES[found.outcome]}: correcting and corrupting, on targets with both"
    return TextTable(title, heads, tuple(rows), notes=(*_marks(task), *notes))


def _length_table(task: TaskFindings, found: OutcomeFindings) -> TextTable:
    heads = ("atoms before it", "from", "κ", "", "ξ", "", "change", "", "p rows", "ΔAIC")
    rows = []
    notes: list[str] = []
    for length in found.lengths:
        rows.append(
            (
                "controlled" if length.controlled else "uncontrolled",
                UNKNOWN if length.start is None else f"{length.start:.0f}",
                *_atoms_cells(length.knee),
                *_atoms_cells(length.saturation),
                *_point_and_interval(length.drop),
                p_text(length.p_significant),
                number(length.difference_aic.value, 1),
            )
        )
        for reason in (length.reason or length.drop.interval.reason, length.note, length.knee.value.reason):
            _add(notes, reason)
        if length.dropped_problems:
            _add(notes, f"{length.dropped_problems} problems whose outcomes are all equal are left out")
    controlled = found.lengths[0]
    if controlled.drop.interval.low is not None:
        again = ", each fitted again" if controlled.resampled == "problems" else ""
        notes.append(f"Intervals resample {controlled.resampled}{again}.")
    if controlled.fixed:
        ends = "; ".join(
            f"{curve.level:.0%} {number(curve.value[0], 2)} to {number(curve.value[-1], 2)}"
            + ("" if curve.observed else " (extrapolated)")
            for curve in controlled.fixed
        )
        notes.append(f"From first to last length with the prefix held right to this share: {ends}.")
    title = f"{task.task}, {OUTCOME_NAMES[found.outcome]} by length: an association, not an effect"
    return TextTable(title, heads, tuple(rows), notes=(*_marks(task), *notes))


def _name(contrast: Contrast) -> str:
    if contrast.adjusted:
        return f"  {TREATMENT_NAMES['local' if contrast.treatment == 'global' else 'global']} fixed"
    return TREATMENT_NAMES[contrast.treatment]


def _point_and_interval(estimate: Estimate) -> tuple[str, str]:
    return number(estimate.value.value, 2), interval_text(estimate.interval, 2)


def _add(notes: list[str], note: str | None) -> None:
    if note is not None and note not in notes:
        notes.append(note)


UNKNOWN = "–"


CHUNKED = "Chunked, not exact."


def _marks(task: TaskFindings) -> tuple[str, ...]:
    """Return what must be said beside every result of a task."""
    return tuple(filter(None, (CHUNKED if task.chunked else "", task.caveat)))


def _atoms_cells(estimate: Estimate) -> tuple[str, str]:
    if estimate.value.value is None:
        return UNKNOWN, ""
    interval = estimate.interval
    text = "" if interval.low is None or interval.high is None else f"[{interval.low:.0f} {interval.high:.0f}]"
    return f"{estimate.value.value:.0f}", text


def _atoms(estimate: Estimate) -> str:
    return " ".join(part for part in _atoms_cells(estimate) if part)


def _replays(count: int) -> str:
    return f"{count:,} replay{'' if count == 1 else 's'}"


def _signed(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return ("+" if value >= 0 else "") + number(value, 2)


def _excludes_zero(estimate: Estimate) -> bool:
    low, high = estimate.interval.low, estimate.interval.high
    return low is not None and high is not None and (low > 0.0 or high < 0.0)


def _is_small(p: Value) -> bool:
    return p.value is not None and p.value < SIGNIFICANT


def p_text(p: Value) -> str:
    """Return a p-value; below .001 it is only said to be so."""
    if p.value is None:
        return UNKNOWN
    return "< .001" if p.value < SMALLEST_P else number(p.value)
