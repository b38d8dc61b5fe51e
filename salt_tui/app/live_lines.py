"""The lines around the map as plain text, cut to a width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size

from salt_tui.app.answer_cells import FUNCTIONS, AnswerCells
from salt_tui.app.answer_words import without_units
from salt_tui.app.live_state import LiveState
from salt_tui.app.row_flow import CURSOR_ROW
from salt_tui.app.run_session import CANCELLABLE, RunSession
from salt_tui.app.shade_scale import shade_scale
from salt_tui.app.text_rows import fit
from salt_tui.display.run_view import TaskView
from salt_tui.measure.running import Measured, TaskNumbers
from salt_tui.visible_text import visible
from scoring.confidence import HEADLINE_FUNCTION
from scoring.value import Value

BAR = 8
"""Cells of the bar of a task."""

BESIDES_NAME = 42
"""Cells of the count and the numbers of a task, and of the blanks between."""

ROOMY = 100
"""From so many columns on the numbers of a task stand beside its bar."""

HEIGHTS = "▁▂▃▄▅▆▇█"

LEAST_NAME, LONGEST_NAME = 4, 23
"""Cells of the name of a task."""

PHASES = {
    "loading": "loading",
    "running": "running",
    "paused": "PAUSED",
    "stopping": "stopping …",
    "finished": "finished",
    "interrupted": "interrupted",
    "failed": "failed",
    "reading": "reading …",
    "elsewhere": "another program computes this",
    "unreadable": "cannot be read",
}


def both_ends(left: str, right: str, width: int) -> str:
    """Return a line with a text at either end; the left one gives way."""
    room = max(1, width - cell_len(right) - 1)
    return fit(f"{set_cell_size(fit(left, room), room)} {right}", max(width, 0))


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
    left = f" {fit(visible(started.model), 32)} · {visible(started.device)} · width {started.width}"
    difficulty = visible(started.difficulty, 24)
    known = {"vocabulary": "", "top_k": " · top-k", "none": " · no log-probabilities"}[started.statistics]
    of = f" of {visible(session.database.name, 20)}" if session.foreign else ""
    return both_ends(left, f"run {started.run}{of} · {difficulty}{exact}{known} · {phase_words(session)}", width)


def task_lines(
    state: LiveState, numbers: Mapping[str, TaskNumbers], marked: str | None, rows: int, width: int
) -> list[str]:
    """Return a line for every task: numbers of one that is done, progress and pace of one at work.

    Args:
        state: of the run.
        numbers: what is known of the tasks, by name.
        marked: the task under the cursor.
        rows: a line for each of so many tasks; more stand beside each other under a line for all.
        width: cells of a line.
    """
    tasks = list(state.view.tasks.values())
    if not tasks:
        return [""]
    pace = state.view.tokens_per_second() if state.phase in {"running", "paused"} else None
    speed = f"{pace:.0f} tok/s" if pace else ""
    if len(tasks) > rows:
        first = both_ends(_all_tasks_line(tasks, width - cell_len(speed) - 2), f"{speed} " if speed else "", width)
        return [fit(line, width) for line in (first, *map("".join, _beside(tasks, numbers, marked, width)))]
    current = next((task.name for task in tasks if task.done < task.total), None)
    room = min(LONGEST_NAME, max(len(visible(task.name)) for task in tasks), max(LEAST_NAME, width - BESIDES_NAME))
    return [
        fit(
            _task_line(task, numbers.get(task.name), task.name == marked and len(tasks) > 1, room, width)
            + (f"  {speed}" if task.name == current else ""),
            width,
        )
        for task in tasks
    ]


def _task_line(task: TaskView, numbers: TaskNumbers | None, marked: bool, room: int, width: int) -> str:
    name = f"{CURSOR_ROW if marked else ' '}{set_cell_size(fit(visible(task.name), room), room)}"
    count = f"{name} {f'{task.done}/{task.total}':>7}"
    bar = "" if task.done == task.total else f" ▕{progress_bar(_share(task.done, task.total), BAR)}▏"
    if numbers is None:
        return f"{count}{bar}"
    ece = f"  ECE {known(numbers.ece)}" if not bar else ""
    shares = f"  right {known(numbers.precision)}  asked {known(numbers.recall)}" if not bar or width >= ROOMY else ""
    along = f"  {'so far' if bar else 'along'} {sparkline(numbers.along)}"
    return _first_fitting(width, f"{count}{bar}{shares}{ece}{along}", f"{count}{bar}{shares}{ece}", f"{count}{bar}")


def sparkline(shares: Sequence[float | None]) -> str:
    """Return a bar of eight heights for every share in [0, 1], a blank where there is none."""
    return "".join(" " if share is None else HEIGHTS[min(int(share * 8), 7)] for share in shares)


def _all_tasks_line(tasks: list[TaskView], width: int) -> str:
    """Return the progress of all tasks together and of the one at work, with a bar where there is room."""
    done, total = sum(task.done for task in tasks), sum(task.total for task in tasks)
    current = next((task for task in tasks if task.done < task.total), None)
    at_work = (
        f" · {visible(current.name, LONGEST_NAME)} {current.done}/{current.total}"
        if current is not None and done
        else ""
    )
    for answers in (f"{done}/{total} answers", f"{done}/{total}"):
        left, rest = f" {len(tasks)} tasks ", f"{answers}{at_work}"
        if (room := width - cell_len(left) - cell_len(rest)) >= 0:
            bar = min(BAR, room - 1)
            return left + (f"{progress_bar(_share(done, total), bar)} " if bar >= BAR // 4 else "") + rest
    return f" {done}/{total}{at_work}"


def task_at(
    state: LiveState, numbers: Mapping[str, TaskNumbers], rows: int, width: int, line: int, column: int
) -> str | None:
    """Return the task whose name or numbers stand in a line and column of `task_lines`, both 0-based; None for none."""
    tasks = list(state.view.tasks.values())
    if len(tasks) <= rows:
        return tasks[line].name if line < len(tasks) else None
    names = iter(tasks)
    for place, cells in enumerate(_beside(tasks, numbers, None, width), 1):
        end = 0
        for cell, task in zip(cells, names, strict=False):
            end += cell_len(cell)
            if place == line and column < end:
                return task.name
    return None


def _beside(tasks: list[TaskView], found: Mapping[str, TaskNumbers], marked: str | None, width: int) -> list[list[str]]:
    """Return every task's name and precision in cells beside each other: one row of them, or two under each other."""
    numbers = [known(found[task.name].precision if task.name in found else None) for task in tasks]
    marks = [CURSOR_ROW if task.name == marked else " " for task in tasks]
    names = [visible(task.name, LONGEST_NAME) for task in tasks]
    whole = [f"{mark}{name} {number} " for mark, name, number in zip(marks, names, numbers, strict=True)]
    if cell_len("".join(whole)) <= width + 1:
        return [[*whole[:-1], whole[-1].rstrip()]]
    columns = -(-len(tasks) // 2)
    room = max(LEAST_NAME, width // columns - len("> .00 "))
    cut = [
        f"{mark}{set_cell_size(fit(name, room), room)} {number:<4}"
        for mark, name, number in zip(marks, names, numbers, strict=True)
    ]
    return [cut[:columns], cut[columns:]]


def _share(done: int, total: int) -> float:
    return done / total if total else 1.0


def known(value: Value | None) -> str:
    """Return a share with two digits, a dash where it is undefined, and … where it is not measured yet."""
    return "…" if value is None else "–" if value.value is None else short(value.value)


def progress_bar(fraction: float, width: int) -> str:
    """Return a bar of ``width`` cells."""
    full = round(min(1.0, max(0.0, fraction)) * width)
    return "▓" * full + "░" * (width - full)


def metric_lines(session: RunSession, width: int) -> tuple[str, str]:
    """Return the running metrics in two lines: values with intervals, and what they rest on.

    What must end before they are those of all that is shown stands before them, or, without any, in their place.
    """
    choice, measured, waiting = session.choice, session.measured, session.waiting_for
    tasks = len(session.state.view.tasks)
    about = visible(choice.task, 24) if choice.task else f"{tasks} tasks" if tasks > 1 else ""
    if session.reading:
        measured = None
    if measured is None:
        return " right …  asked …  ECE …  AUROC …", _joined(waiting, about)
    if not measured.answers:
        name = "confidence" if choice.function in FUNCTIONS else visible(choice.function, 32)
        yet = " yet" if session.state.computing else ""
        none = waiting or ("measuring …" if _has_units(session) else f"no {choice.kind} with a {name}{yet}")
        shares = (_measured(measured, name, reason=False, interval=False) for name in ("precision", "recall"))
        return " right {}  asked {}  ECE –  AUROC –".format(*shares), _joined(none, about)
    if about and not choice.task and (some := measured.tasks["precision"]) < tasks:
        about = f"{some} of {about}"
    left_out = f"{measured.left_out} left out" if measured.left_out else ""
    base = f"{measured.micro}/{measured.answers}"
    answers = f"n {measured.units:,} in {_count(measured.answers, 'answer')}"
    names = ("precision", "recall", "ece", "auroc_macro")
    long = [_measured(measured, name) for name in names]
    of_tasks = [f"{number}{_of_tasks(measured, name)}" for number, name in zip(long, names, strict=True)]
    short_asked = [long[0], _measured(measured, "recall", interval=False), *long[2:]]
    bare = [_measured(measured, name, reason=False, interval=False) for name in names]
    form = " right {}  asked {}  ECE {}  AUROC {}"
    first = _first_fitting(
        width,
        " right ↑ {}  asked ↑ {}  ECE ↓ {}  AUROC ↑ {}".format(*of_tasks),
        form.format(*of_tasks),
        form.format(*long),
        form.format(*short_asked),
        form.format(*(_measured(measured, name, reason=False) for name in names)),
        form.format(long[0], *bare[1:]),
        form.format(*bare),
    )
    micro = f"{_measured(measured, 'auroc_micro')} ({base})"
    of = _of_tasks(measured, "auroc_micro")
    few = f"n {measured.units:,}"
    second = _first_fitting(
        width,
        _joined(waiting, answers, f"AUROC inside answers ↑ {micro}{of}", about, left_out),
        _joined(waiting, answers, f"inside answers {micro}{of}", about, left_out),
        _joined(waiting, answers, f"inside {micro}{of}", about, left_out),
        _joined(waiting, few, f"inside {micro}{of}", about, left_out),
        _joined(waiting, few, f"inside {micro}{of}", left_out),
        _joined(waiting, few, f"inside {_measured(measured, 'auroc_micro', reason=False)} ({base})", about, left_out),
    )
    return first, second


def _has_units(session: RunSession) -> bool:
    """Return whether something was scored since the last measurement, that found nothing."""
    return session.computing and any(len(answer.units[session.choice.kind]) for answer in session.state.map.answers)


def _joined(*parts: str) -> str:
    return f" {' · '.join(filter(None, parts))}"


def _first_fitting(width: int, *texts: str) -> str:
    """Return the first text that fits, the last one cut where none does."""
    return next((text for text in texts if cell_len(text) <= width), fit(texts[-1], width))


def _of_tasks(measured: Measured, name: str) -> str:
    """Say of how many tasks a mean is, where it is undefined in some that have units."""
    count, whole = measured.tasks[name], measured.tasks["precision"]
    return f" of {_count(count, 'task')}" if 0 < count < whole else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _measured(measured: Measured, name: str, *, reason: bool = True, interval: bool = True) -> str:
    value = measured.values[name]
    text = number(value) if reason else known(value)
    if interval and value.value is not None and name in measured.intervals:
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


def known_function(name: str) -> str:
    """Return a confidence function by its name; the usual one where there is none of that name."""
    return name if name in FUNCTIONS else HEADLINE_FUNCTION


def legend_words(state: LiveState, following: bool, reading: bool, room: int) -> tuple[str, str]:
    """Return what stands left and right of the shades."""
    scale = visible(shade_scale(state.map.function).formula, 48)
    place = "reading …" if reading else "newest below" if following else "end follows"
    left, right = f"── {state.map.kind}s ── {scale} 0 ", f" 1 ── {place} ──"
    if cell_len(left + right) <= room:
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


def answer_sentence(answer: AnswerCells, kind: str) -> str:
    """Say where an answer without units of a kind stands, and what can be done."""
    words = "failed" if answer.status == "failed" else without_units(answer, kind)
    return f"{words}; x cancels it." if answer.status in CANCELLABLE else f"{words}."


def instead_of_a_unit(state: LiveState) -> str:
    """Say why there is no unit to describe."""
    if state.phase == "loading":
        return "The model is being loaded."
    count = sum(answer.units[state.map.kind].generated for answer in state.map.answers)
    if any(len(answer.units[state.map.kind]) for answer in state.map.answers):
        return f"{_count(count, state.map.kind)}. Arrows choose one, w the next error, c the surest errors."
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
