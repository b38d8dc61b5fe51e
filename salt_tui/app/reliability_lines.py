"""The rows and sentences of Reliability, cut for a width; no drawing here."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len

from salt_tui.app.reliability_pictures import Kind
from salt_tui.app.reliability_state import policy_words
from salt_tui.app.terminal import DESIGN_WIDTH
from salt_tui.app.text_rows import fit
from salt_tui.measure.confidence_view import UNITS, ConfidenceView, ViewChoice
from salt_tui.measure.parts import PARTS
from salt_tui.measure.policies import Found
from salt_tui.measure.run_views import Concluded, ListedUnit, SignalNumbers
from salt_tui.measure.task_scores import RAW
from salt_tui.number_text import confidence_text, number, signed
from salt_tui.palette import GLYPHS
from salt_tui.reports.policy_report import policy_lines
from salt_tui.reports.text_tables import BEST
from salt_tui.visible_text import visible
from scoring.correctness import TaskMean

WIDE = 74
"""From so many cells on the table of signals has all its columns."""

LONGEST_NAME = 40
LONGEST_BAR = 8
QUOTED = 24

NOT_YET = "…"
"""In place of a number that is being measured."""

NO_PROMISE_OF_PARTS = "of tokens and characters nothing is promised"


def signal_heads(after: str, width: int) -> str:
    """Return the head of the table of signals."""
    columns = _columns(width)
    head = f"  {'signal':<{columns}} {'AUROC':<14} {'ECE':>5}"
    return fit(f"{head} {'Brier':>5}  {f'{after}:':>11} ECE Brier" if width >= WIDE else f"{head}  {after}: ECE", width)


def signal_row(found: SignalNumbers, best: bool, width: int) -> str:
    """Return one signal: its ranking, and its calibration before and after the map."""
    interval = ""
    if found.raw is not None and found.interval is not None and found.interval.low is not None:
        interval = f" [{number(found.interval.low, 2)} {number(found.interval.high, 2)}]"
    auroc = f"{_value(found.raw, 'auroc', 2)}{interval}"
    columns = _columns(width)
    name = visible(found.function)
    name = fit(name, columns) + " " * max(0, columns - cell_len(name))
    head = f"{BEST if best else ' '} {name} {auroc:<14} {_value(found.raw, 'ece'):>5}"
    if width >= WIDE:
        after = f"{_value(found.mapped, 'ece'):>15} {_value(found.mapped, 'brier'):>5}"
        return f"{head} {_value(found.raw, 'brier'):>5}  {after}"
    return f"{head} {_value(found.mapped, 'ece'):>12}"


def _columns(width: int) -> int:
    return min(max(8, width - (56 if width >= WIDE else 39)), LONGEST_NAME)


def _value(measured: Mapping[str, TaskMean] | None, metric: str, digits: int = 3) -> str:
    """Return a number of a signal, and … where it is not measured yet."""
    return NOT_YET if measured is None else number(measured[metric].mean.value, digits)


def bins_width(width: int) -> int:
    """Return the cells of the table of bins on a screen of a width."""
    return 46 if width >= DESIGN_WIDTH else 36


def bin_head(width: int) -> str:
    """Return the head of the table of bins."""
    return fit(f" {'bin':<9} {'n':>6} {'says':>5} {'right':>5} {'gap':>5}", width)


def bin_rows(view: ConfidenceView, width: int) -> list[str]:
    """Return a row per bin, the surest first; a bar is as long as the bin has units."""
    bins = view.bins
    if bins is None:
        return []
    room = min(LONGEST_BAR, width - 37)
    most = float(bins.counts.max(initial=1.0))
    rows = []
    for low, high, count, said, right, gap in reversed(
        list(zip(bins.lower, bins.upper, bins.counts, bins.confidence, bins.accuracy, bins.gaps, strict=True))
    ):
        ends = f"{number(low, 2)}–{number(high, 2)}"
        bar = "▇" * max(0, round(room * count / most))
        shares = f"{number(said, 2):>5} {number(right, 2):>5} {signed(-gap, 2):>5}"
        rows.append(f" {ends:<9} {int(count):>6,} {shares} {bar}".rstrip())
    return rows


def place_of_row(view: ConfidenceView, row: int) -> int:
    """Return the place in the arrays of the bins of a row of `bin_rows`."""
    return 0 if view.bins is None else view.bins.counts.size - 1 - row


def listed_row(unit: ListedUnit, shown: float, width: int) -> str:
    """Return one unit of a bin: where it is, what was said, and what is right."""
    said = "" if unit.text is None else f"said “{visible(unit.text, QUOTED)}”"
    right = ""
    if unit.status != "correct" and unit.text is not None:
        right = ", the answer had ended" if unit.reference is None else f", right “{visible(unit.reference, QUOTED)}”"
    where = f"{visible(unit.task)} {unit.position + 1}.{unit.index + 1}"
    return fit(f"{GLYPHS[unit.status]} {confidence_text(shown)}  {where}  {said}{right}", width)


def found_lines(
    concluded: Concluded | None, policy: Found | None, choice: ViewChoice, waiting: str, width: int
) -> list[str]:
    """Return what the report concludes and what can be promised, cut to three lines; `words` has it whole."""
    unit = choice.unit
    of_all = "" if is_whole(choice) else "Of all atoms: "
    promise = NO_PROMISE_OF_PARTS if unit in PARTS else policy_words(policy, waiting)
    lines = (
        f"Which signal  {waiting if concluded is None else of_all + concluded.functions.sentence}",
        f"Recalibrate   {waiting if concluded is None else of_all + concluded.maps.sentence}",
        f"Promise       {promise}",
    )
    return [fit(line, width) for line in lines]


def is_whole(choice: ViewChoice) -> bool:
    """Return whether the atoms of all tasks are looked at, of which the report concludes."""
    return choice.unit == "atom" and choice.task is None and choice.slice is None


def words(view: ConfidenceView, concluded: Concluded | None, policy: Found | None, waiting: str) -> str:
    """Return everything that the screen says, whole."""
    lines = ["What is looked at", f"  {view.sentence}"]
    if view.tasks_left_out:
        lines += ["", "Tasks that are not in it"]
        lines += [f"  {visible(task)}: {visible(reason)}" for task, reason in view.tasks_left_out.items()]
    lines += ["", "What the report concludes of the atoms of all tasks"]
    if concluded is None:
        lines.append(f"  {waiting}")
    else:
        lines += [f"  Which signal: {concluded.functions.sentence}", f"  Recalibrate: {concluded.maps.sentence}"]
        lines.append(f"  {BEST} marks the signals that cannot be told apart from the best.")
    lines += ["", f"What can be promised of the {view.unit_word} of all tasks: at most 5 % wrong, 90 % sure"]
    if view.choice.unit in PARTS:
        lines.append(f"  {NO_PROMISE_OF_PARTS}")
    elif policy is None:
        lines.append(f"  {waiting}")
    else:
        lines += [f"  {visible(line)}" for line in policy_lines(policy, view.choice.unit)]
    lines += ["", *HOW_TO_READ]
    if view.notes:
        lines += [
            "",
            "What the fits of the map had to say",
            *(f"  {visible(note)}" for note in dict.fromkeys(view.notes)),
        ]
    return "\n".join(lines)


def waiting_words(choice: ViewChoice) -> str:
    """Say what is being measured."""
    if choice.calibrator != RAW:
        return f"{choice.calibrator} is being fitted to {visible(choice.function)} …"
    return f"{visible(choice.function)} of these {UNITS.get(choice.unit, choice.unit)} is being measured …"


def slicing_words(column: str) -> str:
    """Say that the units are being cut by a column."""
    return f"reading {visible(column)} …"


def still_title(choice: ViewChoice, kind: Kind, width: int) -> str:
    """Return the line above a plot that shows what was chosen before, and say of what it is."""
    of = f"{visible(choice.function)}, {'raw' if choice.calibrator == RAW else choice.calibrator}"
    part = " · ".join(filter(None, (visible(choice.task or ""), str(choice.part or ""))))
    words = fit(f"── still {of}{f' · {part}' if part else ''}: {kind.value} ", width)
    return words + "─" * (width - cell_len(words))


HOW_TO_READ = (
    "How to read it",
    "  Bins and curves pool the units of all tasks where no task is chosen.",
    "  AUROC, ECE and Brier are those of the report: means over tasks, each task equal.",
    "  A map is fitted on other answers of the task than it is applied to.",
    "  The threshold describes these units; what it promises about others stands above.",
)
