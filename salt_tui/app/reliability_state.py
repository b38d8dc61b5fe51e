"""What Reliability shows of a run: the choice, the threshold, and every row and sentence; no drawing here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from rich.cells import cell_len

from salt_tui.app.reliability_pictures import Kind
from salt_tui.app.text_rows import fit
from salt_tui.measure.confidence_view import UNITS as UNIT_WORDS
from salt_tui.measure.confidence_view import USUAL_RISK, ConfidenceView, Trusted, ViewChoice
from salt_tui.measure.policies import Found
from salt_tui.measure.rows import MAPS, USUAL_MAP
from salt_tui.measure.run_views import UNITS
from salt_tui.measure.task_scores import RAW
from salt_tui.number_text import confidence_text, percent
from salt_tui.visible_text import visible
from scoring.calibration_error import BIN_COUNTS, BINS
from scoring.confidence import HEADLINE_FUNCTION
from scoring.policy import NoPolicy, Policy

KINDS = tuple(Kind)
STEP = 0.01
"""Share of the units by which a key moves the threshold, at least one distinct confidence."""


@dataclass(slots=True)
class ReliabilityState:
    """What is chosen; the screen changes it by the methods and measures what `choice` says.

    Attributes:
        unit, function, calibrator, task, slice, part, bins: as in `ViewChoice`.
        kind: what is drawn.
        coverage: share of the units that the threshold trusts; None for what at most 5 % errors allow.
    """

    unit: str = "atom"
    function: str = HEADLINE_FUNCTION
    calibrator: str = RAW
    task: str | None = None
    slice: str | None = None
    part: str | None = None
    bins: int = BINS
    kind: Kind = Kind.DIAGRAM
    coverage: float | None = None
    labels: tuple[str, ...] = field(default=())
    """Of the parts of the slice."""

    @property
    def choice(self) -> ViewChoice:
        """What is looked at."""
        return ViewChoice(self.unit, self.function, self.calibrator, self.task, self.slice, self.part, self.bins)

    @property
    def after(self) -> str:
        """The map of the columns after calibration: the chosen one, or the usual one."""
        return USUAL_MAP if self.calibrator == RAW else self.calibrator

    def next_function(self, functions: Sequence[str], step: int) -> None:
        """Choose the next function of a list."""
        self.function = _beside(functions, self.function, step)

    def next_map(self, step: int) -> None:
        """Choose the next calibration map, raw scores first."""
        self.calibrator = _beside(MAPS, self.calibrator, step)

    def next_unit(self) -> None:
        """Choose the next kind of unit; a slice is of one kind."""
        self.unit = _beside(UNITS, self.unit, 1)
        self.leave_slice()

    def next_task(self, tasks: Sequence[str], step: int) -> None:
        """Choose the next task, after the last all."""
        every: list[str | None] = [None, *tasks]
        self.task = _beside(every, self.task, step)

    def next_bins(self) -> None:
        """Choose the next number of bins."""
        self.bins = _beside(BIN_COUNTS, self.bins, 1)

    def next_kind(self, step: int = 1) -> None:
        """Draw the next thing."""
        self.kind = _beside(KINDS, self.kind, step)

    def take_slice(self, column: str, labels: Sequence[str]) -> None:
        """Slice by a column, and look at its first part."""
        self.slice, self.labels, self.part = column, tuple(labels), labels[0]

    def leave_slice(self) -> None:
        """Look at all parts."""
        self.slice, self.part, self.labels = None, None, ()

    def next_part(self, step: int) -> None:
        """Look at the next part of the slice."""
        if self.part is not None:
            self.part = _beside(self.labels, self.part, step)

    def keep_known(self, functions: Sequence[str], tasks: Sequence[str]) -> None:
        """Give up a choice that the units do not have."""
        if self.function not in functions:
            self.function = HEADLINE_FUNCTION if HEADLINE_FUNCTION in functions else functions[0]
        if self.task not in (None, *tasks):
            self.task = None

    # --- the threshold ------------------------------------------------------------------------------------------

    def trusted(self, view: ConfidenceView) -> Trusted | None:
        """Return what the threshold trusts; None where nothing can be."""
        risk = view.risk
        if risk is None:
            return None
        if self.coverage is None:
            return risk.within(USUAL_RISK) or risk.point(len(risk.coverage) // 2)
        return risk.covering(self.coverage)

    def move_threshold(self, view: ConfidenceView, step: int) -> None:
        """Trust more units (a positive step) or fewer."""
        risk, now = view.risk, self.trusted(view)
        if risk is None or now is None:
            return
        found = risk.covering(now.coverage + step * STEP)
        if found.threshold == now.threshold:
            found = risk.beside(now.threshold, step)
        self.coverage = found.coverage

    def put_threshold(self, view: ConfidenceView, threshold: float) -> None:
        """Trust the units from a confidence on."""
        if view.risk is not None:
            self.coverage = view.risk.at(threshold).coverage

    # --- words --------------------------------------------------------------------------------------------------

    def title(self, run: int, tasks: int, view: ConfidenceView | None, progress: str, width: int) -> str:
        """Return the line above everything: what is looked at, and of how many units where that is measured."""
        left_out = 0 if view is None else len(view.tasks_left_out)
        all_tasks = f"{f'{tasks - left_out} of ' if left_out else ''}{tasks} task{'' if tasks == 1 else 's'}"
        of = all_tasks if self.task is None else visible(self.task)
        part = "" if self.slice is None else f" · {visible(self.slice)} {self.part}"
        base = UNIT_WORDS.get(self.unit, self.unit) if view is None else f"{view.n:,} {view.unit_word}"
        if self.unit != "generation" and view is not None:
            base += f" of {view.answers:,} answer{'' if view.answers == 1 else 's'}"
        left = f"run {run}{f' {progress}' if progress else ''} · {of}{part} · {base}"
        right = f"{visible(self.function)}, {'raw' if self.calibrator == RAW else self.calibrator}"
        blanks = width - cell_len(left) - cell_len(right)
        return f"{left}{' ' * blanks}{right}" if blanks > 0 else fit(f"{right} · {left}", width)

    def plot_title(self, legend: str, axes: str, tasks: int, width: int) -> str:
        """Return the line above the plot: what is drawn, what the axes are, and what the marks are."""
        alone = tasks == 1 or self.task is not None or self.kind in {Kind.PARTS, Kind.POSITION, Kind.HISTORY}
        head = f"── {self.kind.value}{'' if alone else ', tasks pooled'}"
        kind = f"── {self.kind.value}"
        for parts in ((head, axes, legend), (head, axes), (kind, axes), (head, legend), (head,)):
            words = " ── ".join(filter(None, parts)) + " "
            if cell_len(words) <= width:
                return words + "─" * (width - cell_len(words))
        return fit(head, width)

    def threshold_line(self, view: ConfidenceView, width: int) -> str:
        """Say what the threshold covers, and how much of it is wrong."""
        found = self.trusted(view)
        if found is None:
            return ""
        side = "or more" if view.rising else "or less"
        at, covered, wrong = confidence_text(view.shown(found.threshold)), percent(found.coverage), percent(found.error)
        for words in (
            f"┃ at {at} {side}: {covered} covered ({found.n:,} of {view.n:,}), {wrong} wrong   ←→ moves it",
            f"┃ at {at} {side}: {covered} covered ({found.n:,}), {wrong} wrong",
        ):
            if cell_len(words) <= width:
                return words
        return fit(words, width)


def policy_words(found: Found | None, waiting: str) -> str:
    """Say in a sentence what can be promised about all tasks of the run."""
    if isinstance(found, NoPolicy):
        return f"At most 5 % wrong cannot be promised: {found.brief or found.reason}."
    if not isinstance(found, Policy):
        return waiting
    band, scale = found.bands[0], found.scale
    return (
        f"About 90 % sure: at most 5 % wrong, trusting {percent(band.coverage)} by {visible(scale.function)}"
        f" ({band.wrong} of {band.trusted} wrong in {band.answers} answers that tested it)."
    )


Kept = TypeVar("Kept")


def _beside(values: Sequence[Kept], value: Kept, step: int) -> Kept:
    place = values.index(value) if value in values else -1
    return values[(place + step) % len(values)]
