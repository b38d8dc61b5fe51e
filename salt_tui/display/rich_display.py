"""The live display of a headless run on a terminal, drawn with Rich on stderr."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from salt_tui.display.run_view import AnswerView, RunView, TaskView, clock
from salt_tui.measure.header import statistics_words
from salt_tui.palette import GLYPHS, GROUP, STRENGTHS, DrawingMode, Look, draw_cell
from salt_tui.runner.events import RunEvent
from salt_tui.visible_text import visible

FRAMES_PER_SECOND = 8
_LOOK = Look(DrawingMode.COLOUR)
BAR_COLUMNS = 24
"""Columns of a task's progress bar, where there is room."""

LABEL_COLUMNS = 14
"""Columns of the name of the task in an answer row, where there is room."""

NUMBER_COLUMNS = 6
"""Columns of the number of the answer, with a blank on either side."""

FIXED_ROWS = 7
"""Rows of the display that are not answers: title, legend, notices."""


class RichDisplay:
    """Draws a `RunView` several times a second until it is left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._view = RunView()
        self._lock = threading.Lock()  # the refresh thread reads what the runner's thread changes
        self._live = Live(
            get_renderable=self._render,
            console=console,
            refresh_per_second=FRAMES_PER_SECOND,
            transient=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Draw the last state and leave it on the screen."""
        self._live.stop()
        if not self._console.is_terminal:  # there, Rich leaves its last line open
            self._console.line()

    def __call__(self, event: RunEvent) -> None:
        """Take one event."""
        with self._lock:
            self._view.apply(event)

    def _render(self) -> RenderableType:
        with self._lock:
            return render_run(self._view, self._console.width, self._console.height)


def render_run(view: RunView, width: int, height: int) -> RenderableType:
    """Return one frame for a terminal of ``width`` by ``height`` cells."""
    parts: list[RenderableType] = [_title(view, width)]
    if view.started is None:
        return Group(*parts, *_notices(view, width))
    parts.append(_tasks(view, width))
    parts.append(legend(width))
    room = max(3, height - FIXED_ROWS - len(view.tasks) - len(view.notices))
    rows: list[Text] = []
    for answer in reversed(view.recent_answers(room)):
        block = answer_rows(answer, width)
        if len(rows) + len(block) > room:
            break
        rows[:0] = block
    return Group(*parts, *rows, *_notices(view, width))


def _title(view: RunView, width: int) -> Text:
    if view.started is None:
        if view.loading is None:
            return Text("starting the model process …")
        name, fraction = view.loading
        return Text(f"loading {visible(name, 40)} {fraction:4.0%}", overflow="ellipsis", no_wrap=True)
    started = view.started
    pace = view.tokens_per_second()
    left = view.remaining_seconds()
    right = f"{f'{pace:.0f}' if pace else '–'} tok/s  ETA {clock(left)}"
    text = f"{started.title} · {started.model} · {started.device} · width {started.width}"
    text += statistics_words(started.statistics, " · ")
    return Text(f"{visible(text, max(5, width - len(right) - 2))}  {right}", no_wrap=True, style="bold")


def _tasks(view: RunView, width: int) -> Table:
    """Draw a row per task: name, bar, answers, atoms; narrow, without bar, then without atoms, with a cut name."""
    rows = [(task, visible(task.name), f"{task.done}/{task.total}", _so_far(task)) for task in view.tasks.values()]
    name = max((cell_len(label) for _, label, _, _ in rows), default=0)
    count = max((len(done) for _, _, done, _ in rows), default=0)
    atoms = max((len(so_far) for _, _, _, so_far in rows), default=0)
    bar = min(BAR_COLUMNS, width - name - count - atoms - 3)
    wide = name + count + atoms + 2 <= width
    table = Table.grid(padding=(0, 1))
    for task, label, done, so_far in rows:
        cells: list[RenderableType] = [label if wide else visible(task.name, max(4, width - count - 1)), done]
        if bar >= GROUP:
            cells.insert(1, ProgressBar(total=max(1, task.total), completed=task.done, width=bar))
        if wide:
            cells.append(so_far)
        table.add_row(*cells)
    for column in table.columns:
        column.no_wrap = True
    return table


def _so_far(task: TaskView) -> str:
    if not task.generated:
        return "" if not task.done else "no atoms"
    return f"{task.correct}/{task.generated} atoms right"


def legend(width: int) -> Text:
    """Explain the shades and as many marks as fit; the scale comes first, as nothing else on the screen explains it."""
    marks = [f"{glyph} {status} " for status, glyph in GLYPHS.items()]
    roomy = sum(map(len, marks)) + len("p(max) 0 1") + 2 * STRENGTHS <= width
    scale = Text("p(max) 0" if roomy else "p 0", style="dim")
    for status in ("correct", "wrong") if roomy else ("correct",):
        for step in range(STRENGTHS):
            scale.append(*_cell(status, (step + 0.5) / STRENGTHS))
    scale.append("1")
    words = Text(no_wrap=True, overflow="crop")
    for mark in marks:
        if words.cell_len + len(mark) + scale.cell_len > width:
            break
        words.append(mark, style="dim")
    return words.append_text(scale)


def answer_rows(answer: AnswerView, width: int) -> list[Text]:
    """Return the rows of one answer: its task and number, its atoms line by line, and how many are right."""
    label = max(0, min(LABEL_COLUMNS, width - NUMBER_COLUMNS - GROUP))
    task = set_cell_size(visible(answer.task), label)
    head = f"{task} {answer.position + 1:>4} " if width >= NUMBER_COLUMNS + GROUP else ""
    columns = width - len(head)
    atoms = [Text(no_wrap=True, overflow="crop")]
    for number, (_, cells) in enumerate(sorted(answer.lines.items())):
        for column, (status, confidence) in enumerate(cells):
            gap = "" if column % GROUP else " " if column else "  " if number else ""
            if atoms[-1].cell_len + len(gap) >= columns:
                atoms.append(Text(no_wrap=True, overflow="crop"))
                gap = ""
            atoms[-1].append(gap)
            atoms[-1].append(*_cell(status, confidence))
    end = _answer_end(answer)
    if atoms[-1].cell_len + end.cell_len > columns:
        atoms.append(Text(no_wrap=True, overflow="crop"))
    atoms[-1].append_text(end)
    heads = [head] + [" " * min(len(head), max(0, width - row.cell_len)) for row in atoms[1:]]
    return [Text(head, no_wrap=True, overflow="crop").append_text(row) for head, row in zip(heads, atoms, strict=True)]


def _cell(status: str, confidence: float | None) -> tuple[str, str]:
    return draw_cell(_LOOK, status, None if confidence is None else _LOOK.step(confidence))


def _answer_end(answer: AnswerView) -> Text:
    if answer.status == "prompt":
        return Text(f" prompt {answer.prompt_done}/{answer.prompt_total}", style="dim")
    if answer.status == "streaming":
        return Text(GLYPHS["streaming"], style="bold")
    share = f" {answer.correct}/{answer.generated}" if answer.generated else ""
    return Text(f"{share} {answer.status.replace('_', ' ')}", style="dim")


def _notices(view: RunView, width: int) -> list[Text]:
    lines = (*view.notices, *([view.silence] if view.silence else ()))
    return [Text(visible(line, max(20, 2 * width)), style="bold") for line in lines]
