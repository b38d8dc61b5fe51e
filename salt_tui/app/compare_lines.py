"""The lines of the screen Compare as plain text, cut to a width."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len, set_cell_size

from salt_tui.app.compare_layout import SIDES, said_atoms
from salt_tui.app.compare_state import CompareState, SpokenAtom
from salt_tui.app.row_flow import CURSOR_ROW
from salt_tui.app.runs_state import is_same_file
from salt_tui.app.text_rows import broken, fit
from salt_tui.measure.answer_pairs import AnswerPair
from salt_tui.measure.two_runs import ReadRun, RunPair
from salt_tui.number_text import UNDEFINED, confidence_text, number, signed
from salt_tui.reports.text_tables import interval_text
from salt_tui.visible_text import visible
from scoring.paired_runs import CONFIDENCE_METRICS, PairedDifference, PairedMetric

GAINED, LOST = "▲", "▼"
"""An atom that is right in B only, and in A only."""

DIGITS = 3
LONGEST_TASK = 23
SHORTEST_TASK = 13
ROOMY = 72
"""From so many columns on the number of problems and the p of the mean are shown."""

BESIDE_NAME, BESIDE_NAME_NARROW = 57, 46
"""Cells of a line beside the name of its task, from `ROOMY` on and below."""

TEXT_CELLS = 16
"""Cells of an atom's text in the sentence; some are thousands long."""

TITLES = {"precision": "precision ↑", "recall": "recall ↑", "brier": "Brier ↓", "auroc": "AUROC ↑", "ece": "ECE ↓"}
"""By name of the metric; the arrow points to what is better."""


def head_lines(state: CompareState, database: Path, width: int) -> list[str]:
    """Return what the runs are, each with what the other has not first, and what differs between them."""
    pair = state.pair
    if pair is None:
        lines = []
        for letter, name in zip(SIDES, state.names, strict=True):
            of = "" if is_same_file(name.database, database) else f" of {visible(name.database.name)}"
            lines.append(f" {letter} run {visible(name.run)}{of}")
        return [*lines, f" {(state.problem and visible(state.problem)) or state.waiting_for}"]
    words = [header.words for header in pair.headers]
    lines = []
    for letter, run, name, own, other in zip(
        SIDES, (pair.first, pair.second), state.names, words, reversed(words), strict=True
    ):
        ordered = sorted(own[1:], key=lambda word: word in other[1:])
        state_words = "" if run.header.state == "finished" else f" ({_unfinished(run)})"
        of = "" if is_same_file(name.database, database) else f" of {name.database.name}"
        lines.append(fit(" · ".join(map(visible, (f" {letter} {own[0]}{of}{state_words}", *ordered))), width))
    return [*lines, fit(f" {_differs(pair)}", width)]


def _unfinished(run: ReadRun) -> str:
    what = "is being computed" if run.header.state == "running" else run.header.state
    return f"{what}: {len(run.answers)} of {run.header.answers} answers"


def _differs(pair: RunPair) -> str:
    names = (*pair.differs, *pair.environment_differs)
    differs = f"differs in: {', '.join(names)}" if names else "same plan and environment"
    shared = f"{len(pair.shared)} problem{'' if len(pair.shared) == 1 else 's'} in both"
    only = [f"{count} only in {side}" for side, count in zip(SIDES, pair.only, strict=True) if count]
    first, second = pair.first.known_functions, pair.second.known_functions
    unknown = [
        f"{name} only in {side}"
        for side, one, other in (("A", first, second), ("B", second, first))
        for name in one
        if name not in other
    ]
    return " · ".join((differs, ", ".join((shared, *only)), *unknown[:1], *(["…"] if len(unknown) > 1 else [])))


# --- the table --------------------------------------------------------------------------------------------------


def table_lines(state: CompareState, rows: int, width: int) -> list[tuple[str, str | None]]:
    """Return the table of the metric: heads, a line for every task, the mean last.

    Args:
        state: what is compared.
        rows: the most there may be; tasks beyond are left out around the one under the cursor.
        width: cells of a line.

    Returns:
        Each line with its task; None for heads, mean and what is waited for.
    """
    if state.problem is not None:
        words = broken(visible(state.problem, 600), max(1, width - 2))
        return [(f" {line}", None) for line in words.split("\n")]
    metric = state.metrics.get(state.metric)
    shown = _window(state.tasks, state.task, rows - 2)
    by = f" by {visible(state.function)}" if state.metric in CONFIDENCE_METRICS else ""
    if metric is None:
        waiting = [(fit(f"  {visible(task)}", width), task) for task in shown]
        return [(fit(f" {TITLES[state.metric]}{by} · {state.waiting_for}", width), None), *waiting, ("", None)]
    counted = width >= ROOMY
    held = len(metric.tasks_in_mean)
    mean = f" mean of {held} task{'' if held == 1 else 's'}"
    room = width - (BESIDE_NAME if counted else BESIDE_NAME_NARROW)
    names = max(SHORTEST_TASK, min(LONGEST_TASK, room, max(map(cell_len, (*map(visible, shown), mean)))))
    mean = mean if cell_len(mean) <= names + 1 else f" mean of {held}"
    title, count = f" {TITLES[state.metric]}", "n" if counted else None
    if by and cell_len(title + by) <= names + 1 + (5 if counted else 0):
        # The name of the signal takes the room of the head over the numbers of problems.
        title, count = f"{title}{by}", "" if counted else None
    heads = _columns(title, names, (count, "A", "B", "B − A"))
    lines: list[tuple[str, str | None]] = [
        (fit(f"{heads}{_verdict_columns('clear', 'needs', 'p' if counted else '')}", width), None)
    ]
    for task in shown:
        found = metric.tasks[task]
        name = f"{CURSOR_ROW if task == state.task else ' '}{visible(task)}"
        lines.append((_row(name, names, found, counted, width, _verdict(found, "")), task))
    lines.append(
        (_row(mean, names, metric.mean, counted, width, _verdict(metric.mean, _p(metric) if counted else "")), None)
    )
    return lines


def _window(tasks: Sequence[str], task: str | None, rows: int) -> Sequence[str]:
    """Return as many tasks as have room, those around the one under the cursor."""
    rows = max(1, rows)
    if len(tasks) <= rows:
        return tasks
    place = tasks.index(task) if task in tasks else 0
    start = min(max(0, place - rows // 2), len(tasks) - rows)
    return tasks[start : start + rows]


def _columns(name: str, names: int, cells: Sequence[str | None]) -> str:
    count, first, second, change = cells
    counted = "" if count is None else f" {count:>4}"
    start = f"{set_cell_size(fit(name, names + 1), names + 1)}{counted}"
    if count == "":
        start = set_cell_size(name, names + 6)
    return f"{start} {first:>5} {second:>5} {change:<19} "


def _verdict_columns(word: str, needed: str, p: str) -> str:
    return f"{word:<5} {needed:>5} {p:>6}".rstrip()


def _row(name: str, names: int, found: PairedDifference, counted: bool, width: int, verdict: str) -> str:
    change = f"{signed(found.difference.value, DIGITS)} {interval_text(found.interval, DIGITS)}".rstrip()
    values = (number(found.first.value, DIGITS), number(found.second.value, DIGITS))
    start = _columns(name, names, (str(found.problems) if counted else None, *values, change))
    return fit(f"{start}{verdict}".rstrip(), width)


def _p(metric: PairedMetric) -> str:
    p = metric.p_value.value
    return "" if p is None else "<.001" if p < 0.001 else number(p, DIGITS)


def _verdict(found: PairedDifference, p: str) -> str:
    """Say whether a difference is clear, and how many problems a task would show it."""
    if found.difference.value is None:
        return found.difference.reason or ""
    low, high = found.interval.low, found.interval.high
    needed = found.problems_needed.value
    many = "" if needed is None else f"{needed:,.0f}" if needed < 100_000 else ">99k"
    if found.too_small:
        return _verdict_columns("small", "", p)
    if found.clear:
        return _verdict_columns("yes", many, p)
    if low is None or high is None:
        return "equal" if found.difference.value == 0.0 else found.interval.reason or ""
    return _verdict_columns("maybe" if low > 0.0 or high < 0.0 else "no", many, p)


# --- the answers ------------------------------------------------------------------------------------------------


def flips_line(state: CompareState, width: int) -> str:
    """Say what changed in the answers; the line stands over them."""
    if state.pair is None or not state.pair.answers:
        return ""
    answers = state.pair.answers
    gained, lost = (int(sum(getattr(pair, way).sum() for pair in answers)) for way in ("gained", "lost"))
    changed = sum(pair.is_changed for pair in answers)
    whole = [sum(pair.whole == way for pair in answers) for way in ("gained", "lost")]
    atoms = f"{GAINED} {gained:,} atoms became right, {LOST} {lost:,} wrong"
    shade = f"── {visible(state.function)} "
    forms = (
        f" ── {atoms} in {changed:,} of {len(answers):,} answers; wholly right now {whole[0]}, no longer {whole[1]} ",
        f" ── {atoms} in {changed:,} of {len(answers):,} answers ",
        f" ── {GAINED} {gained:,} right, {LOST} {lost:,} wrong in {changed:,} of {len(answers):,} answers ",
        f" ── {GAINED}{gained} {LOST}{lost} ",
    )
    # What the cells are shaded by is said before more is counted: the key that changes it must change something.
    shaded = (f"{form}{shade}" for form in forms if cell_len(form) + cell_len(shade) <= width - 2)
    words = next(shaded, forms[-1])
    return fit(words + "─" * max(0, width - cell_len(words) - 1), width)


def heading(pair: AnswerPair, width: int) -> str:
    """Return the heading of a pair of answers: which, how right each is, and what changed."""
    place = f"{pair.first.position + 1}"
    if pair.second.position != pair.first.position:
        place += f" (B {pair.second.position + 1})"
    counts = [f"{answer.right}/{answer.atoms}" for answer in (pair.first, pair.second)]
    gained, lost = int(pair.gained.sum()), int(pair.lost.sum())
    flips = "  ".join(
        words for words in (f"{GAINED} {gained}" if gained else "", f"{LOST} {lost}" if lost else "") if words
    )
    unsaid = max(pair.first.statuses.size, pair.second.statuses.size) - said_atoms(pair)
    tail = f"  −{unsaid} missing in both" if unsaid and pair.is_changed else ""
    change = flips or (f"wholly {'right' if pair.whole == 'gained' else 'wrong'} in B" if pair.whole else "no flip")
    name = f"{fit(visible(pair.task), LONGEST_TASK)} {place}"
    long = f" {name}   A {counts[0]} right   B {counts[1]} right   {change}{tail}"
    short = f" {name}  A {counts[0]}  B {counts[1]}  {change}"
    return long if cell_len(long) <= width else fit(short, width)


def sentence(state: CompareState) -> str:
    """Say what both runs have at the cursor."""
    spot, spoken = state.spot, state.spoken()
    if state.pair is None or spot is None or spoken is None:
        return ""
    pair = state.pair.answers[spot.pair]
    reference = next((atom.unit.reference for atom in spoken if atom.unit is not None and atom.unit.reference), None)
    right = "" if reference is None else f"; right is {_quoted(reference)}"
    runs = "; ".join(f"{side} {_said(atom)}" for side, atom in zip(SIDES, spoken, strict=True))
    flip = ""
    if state.layout.is_flip(spot):
        flip = f", flip {state.layout.flips_before(spot) + 1} of {state.layout.flips}"
    name = fit(visible(pair.task), LONGEST_TASK)
    return f"{name} {pair.first.position + 1} · atom {spot.atom + 1}{flip}: {runs}{right}"


def _said(atom: SpokenAtom) -> str:
    unit = atom.unit
    if unit is None:
        return "has no atom here"
    if unit.status == "missing":
        return "said nothing"
    sure = "" if atom.confidence is None else f" at {confidence_text(atom.confidence)}"
    verdict = "right" if unit.status == "correct" else unit.status
    return f"said {_quoted(unit.text)}, {verdict}{sure}"


def _quoted(text: str | None) -> str:
    return UNDEFINED if text is None else f"“{fit(visible(text, 2 * TEXT_CELLS), TEXT_CELLS)}”"
