"""The lines around the map as plain text, cut to a width."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from salt_tui.app.answer_cells import AnswerCells
from salt_tui.app.atom_heatmap import without_units
from salt_tui.app.atom_sentence import fit
from salt_tui.app.live_state import LiveState
from salt_tui.app.run_session import CANCELLABLE, RunSession
from salt_tui.app.running_metrics import Measured
from salt_tui.app.shade_scale import SHADE_SCALES
from salt_tui.display.run_view import TaskView
from salt_tui.visible_text import visible
from scoring.value import Value

BAR = 22
"""Cells of the bar of a task where there is room."""

BESIDES_BAR = 35
"""Cells of its name and count, and of the blanks between."""

ANSWERS = " answers"

EIGHTHS = " ▏▎▍▌▋▊▉"

PHASES = {
    "loading": "loading",
    "running": "running",
    "paused": "PAUSED",
    "stopping": "stopping …",
    "finished": "finished",
    "interrupted": "interrupted",
    "failed": "failed",
    "reading": "reading …",
    "elsewhere": "computed by another process",
    "unreadable": "cannot be read",
}


def both_ends(left: str, right: str, width: int) -> str:
    """Return a line with a text at either end; the left one gives way."""
    room = max(1, width - cell_len(right) - 1)
    return fit(f"{set_cell_size(fit(left, room), room)} {right}", max(width, 0))


def two_rows(text: str, width: int) -> str:
    """Break a text between words into two rows of at most ``width`` cells; what does not fit ends in …."""
    first: list[str] = []
    words = text.split(" ")
    while words and cell_len(" ".join((*first, words[0]))) <= width:
        first.append(words.pop(0))
    if not first and words:
        head = set_cell_size(words[0], width).rstrip()
        first.append(head)
        words[0] = words[0][len(head) :]
    return "\n".join((" ".join(first), fit(" ".join(words), width))) if words else " ".join(first)


def phase_words(session: RunSession) -> str:
    """Say where the run stands, and that it can be resumed when it can."""
    return PHASES[session.state.phase] + (", r resumes" if session.resumable else "")


def title_line(session: RunSession, width: int) -> str:
    """Say which model runs where, and which run it is."""
    state = session.state
    started = state.view.started
    if started is None:
        if not state.computing:
            name = " no run was begun" if session.run is None else f" run {session.run}"
            return both_ends(name, phase_words(session), width)
        if state.view.loading is None:
            return both_ends(" starting the model process …", phase_words(session), width)
        name, fraction = state.view.loading
        return both_ends(f" loading {fit(visible(name), 40)} {progress_bar(fraction, 20)} {fraction:4.0%}", "", width)
    exact = {True: "", False: " · NOT EXACT", None: ""}[started.exact]
    left = f" {fit(visible(started.model), 32)} · {started.device} · width {started.width}"
    return both_ends(left, f"run {started.run} · {started.difficulty}{exact} · {phase_words(session)}", width)


def task_lines(state: LiveState, rows: int, width: int) -> list[str]:
    """Return the progress of the tasks in at most ``rows`` lines, the task at work first, with pace and time left."""
    tasks = list(state.view.tasks.values())
    if not tasks:
        return [""] * min(1, rows)
    pace, left = state.view.tokens_per_second(), state.view.remaining_seconds()
    running = state.phase in {"running", "paused"}
    right = f"{f'{pace:.0f}' if pace else '–'} tok/s  ETA {clock(left)} " if running else ""
    bar = max(0, min(BAR, width - BESIDES_BAR - max(cell_len(right), cell_len(ANSWERS))))
    shown = tasks if len(tasks) <= rows else [_current(tasks)]
    lines = [_task_line(task, bar) for task in shown]
    if len(tasks) > rows:
        done = sum(task.done >= task.total for task in tasks)
        answers = f"{sum(task.done for task in tasks)}/{sum(task.total for task in tasks)}"
        begun = {answer.task for answer in state.map.answers if answer.status != "waiting"}
        waiting = sum(task.done == 0 and task.name not in begun for task in tasks)
        under_way = len(tasks) - done - waiting
        words = f" {len(tasks)} tasks: {done} done, {under_way} under way, {waiting} not begun"
        lines.append(f"{words:<{25 + bar}} {answers:>8}{ANSWERS}")
    lines[0] = both_ends(lines[0], right, width)
    return [fit(line, width) for line in lines[: max(1, rows)]]


def _current(tasks: list[TaskView]) -> TaskView:
    return next((task for task in tasks if task.done < task.total), tasks[-1])


def _task_line(task: TaskView, width: int) -> str:
    bar = progress_bar(task.done / task.total if task.total else 1.0, width)
    return f" {visible(task.name, 23):<23} {bar} {f'{task.done}/{task.total}':>8}"


def progress_bar(fraction: float, width: int) -> str:
    """Return a bar of ``width`` cells, filled in eighths of a cell."""
    eighths = round(min(1.0, max(0.0, fraction)) * width * 8)
    full, rest = divmod(eighths, 8)
    bar = "█" * full + (EIGHTHS[rest] if rest else "")
    return bar.ljust(width)


def clock(seconds: float | None) -> str:
    """Return minutes and seconds, hours where there are any; a dash for None."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def metric_lines(measured: Measured | None, session: RunSession, width: int) -> tuple[str, str]:
    """Return the running metrics in two lines: values with intervals, and what they rest on."""
    choice = session.choice
    tasks = len(session.state.view.tasks)
    about = visible(choice.task, 24) if choice.task else f"{tasks} tasks" if tasks > 1 else ""
    if measured is None or not measured.answers:
        return " precision –  ECE –  AUROC –", f" {about or 'nothing measured yet'}"
    missing = 0 if choice.task else tasks - min(measured.tasks.values())
    numbers = (_measured(measured, "precision"), _measured(measured, "ece"), _measured(measured, "auroc_macro"))
    micro = f"micro {_measured(measured, 'auroc_micro')} ({measured.micro}/{measured.answers})"
    rest = [about + (f" ({missing} undefined)" if missing else "")] if about else []
    if measured.left_out:
        rest.append(f"{measured.left_out} left out")
    first = " precision {}  ECE {}  AUROC macro {}".format(*numbers)
    second = f" {' · '.join((micro, f'n {measured.units:,} in {measured.answers:,} answers', *rest))}"
    if max(cell_len(first), cell_len(second)) > width:
        first = " prec. {} ECE {} AUROC {}".format(*numbers)
        second = f" {' · '.join((micro, f'n {measured.units:,}', *rest))}"
    return fit(first, width), fit(second, width)


def _measured(measured: Measured, name: str) -> str:
    value = measured.values[name]
    text = number(value)
    if value.value is not None and name in measured.intervals:
        low, high = measured.intervals[name]
        return f"{text} [{short(low)} {short(high)}]"
    return text


def number(value: Value) -> str:
    """Return a share with two digits, or a dash with the reason."""
    return f"– ({value.reason})" if value.value is None else short(value.value)


def short(value: float) -> str:
    """Return a number in [0, 1] without its leading zero."""
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0.") else text


def legend_words(state: LiveState, following: bool, reading: bool, room: int) -> tuple[str, str]:
    """Return the legend left and right of the shades; where ``room`` is too small for both, without ornament."""
    scale = SHADE_SCALES[state.map.function].formula
    place = "reading …" if reading else "newest below" if following else "end follows"
    left, right = f"── {state.map.kind}s ── {scale} 0 ", f" 1 ── {place} ──"
    if cell_len(left) + cell_len(right) <= room:
        return left, right
    return f"{state.map.kind}s {scale} 0 ", f" 1 {place} "


def rule(title: str, width: int) -> str:
    """Return a horizontal line with a title, which has all of it where it needs that."""
    start = f" ── {title} " if title else " ──"
    if cell_len(start) >= width:
        return f" {fit(title, width - 2)}"
    return start + "─" * (width - 1 - cell_len(start))


def answer_heading(answer: AnswerCells) -> str:
    """Say which answer it is that has no unit."""
    return f"{visible(answer.task, 24)} · answer {answer.position + 1}"


def answer_sentence(answer: AnswerCells) -> str:
    """Say where an answer without units stands, and what can be done."""
    words = "failed" if answer.status == "failed" else without_units(answer)
    return f"{words}; x cancels it." if answer.status in CANCELLABLE else f"{words}."


def instead_of_a_unit(state: LiveState) -> str:
    """Say why there is no unit to describe."""
    if state.phase == "loading":
        return "The model is being loaded."
    count = sum(len(answer.units[state.map.kind]) for answer in state.map.answers)
    if count:
        return f"{count:,} {state.map.kind}s. Arrows choose one, w the next wrong one, c the surest wrong one."
    if not state.computing and state.log:
        return visible(state.log[-1], 200)
    if state.phase == "reading":
        return "The run is being read."
    return f"No {state.map.kind} yet." if state.computing else f"There is no {state.map.kind}."


def log_lines(session: RunSession, rows: int) -> list[str]:
    """Return what the run said, the last lines of it, and in the rows left over what its own child printed."""
    said = [visible(line, 300) for line in session.state.log]
    if len(said) > rows:
        return [f"… {len(said) - rows + 1} earlier", *said[-(rows - 1) :]]
    printed = session.engine_log()[-(rows - len(said)) :] if len(said) < rows else ()
    return [*said, *printed] or ["nothing has been said"]
