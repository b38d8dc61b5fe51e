"""Reliability: does it know when it is wrong, and by which signal?"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.widgets import OptionList
from textual.worker import Worker, get_current_worker

from salt_tui.app import reliability_lines as lines
from salt_tui.app.desk import Desk
from salt_tui.app.dialogs import TextToRead
from salt_tui.app.messages import OpenAnswer, ShowScreen
from salt_tui.app.reliability_body import MEASURING, BinList, ReliabilityBody, ReliabilityList, SignalList
from salt_tui.app.reliability_export import figure_name, suggested_name, write_view
from salt_tui.app.reliability_pictures import Kind, Picture, picture_of
from salt_tui.app.reliability_plot import ConfidencePlot
from salt_tui.app.reliability_state import ReliabilityState
from salt_tui.app.reliability_windows import BinWindow, SliceWindow, ViewFileWindow
from salt_tui.app.text_rows import broken
from salt_tui.app.worker_failures import failures_told
from salt_tui.measure.confidence_view import ConfidenceView, ViewChoice
from salt_tui.measure.parts import PARTS
from salt_tui.measure.rows import MAPS
from salt_tui.measure.run_views import ListedUnit, RunViews
from salt_tui.measure.task_scores import RAW

LOOK_EVERY_SECONDS = 3.0
"""A run that computes here is read again so often, where answers were finished since."""

SAY_AFTER_SECONDS = 0.05
"""After so long it is said that a view is being measured; most are there before."""

GIVE_WAY_SECONDS = 0.005
"""So often it is looked whether what was asked for is measured."""

REST_SECONDS = 0.3
"""So long after a key nothing is measured that nobody asked for: the thread would take the interpreter from drawing."""

COURSES = frozenset({Kind.POSITION, Kind.HISTORY})
"""What is drawn of the course of answers."""


class Cancelled(Exception):
    """The work is not wanted any more."""


def stop_if_cancelled() -> None:
    """Stop the worker that was cancelled, by raising."""
    if get_current_worker().is_cancelled:
        raise Cancelled


def _known_picture(views: RunViews, choice: ViewChoice, kind: Kind) -> tuple[ConfidenceView, Picture] | None:
    """Return a view and what is drawn of it where all of it was measured before."""
    view = views.known_view(choice)
    if view is None or (kind is Kind.PARTS and views.known_side_by_side(choice) is None):
        return None
    if kind in COURSES and views.known_course() is None:
        return None
    return view, _measured_picture(views, view, kind)


def _measured_picture(views: RunViews, view: ConfidenceView, kind: Kind) -> Picture:
    """Return what is drawn of a view, measuring what is beside it."""
    if kind is Kind.PARTS:
        parts = views.side_by_side(view.choice)
        picture = picture_of(kind, view, parts)
        return replace(picture, left_out=views.count_side_by_side(view.choice) - len(parts))
    return picture_of(kind, view, course=views.course() if kind in COURSES else None)


class ReliabilityScreen(ReliabilityBody):
    """Shows how confidence and correctness go together in the run that Live shows."""

    NAME = "reliability"
    WIDGETS = (ReliabilityList, BinList)
    AUTO_FOCUS = "#bins"
    HELP = "Does the model know when it is wrong, and by which signal?"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "kind(1)", "Curves", tooltip="Draw the next: risk, EURO, densities, …", id="reliability.curves"),
        Binding("f", "function(1)", "Signal", tooltip="Next confidence function", id="reliability.function"),
        Binding("F", "function(-1)", "Previous confidence function", id="reliability.function_back"),
        Binding("m", "map(1)", "Map", tooltip="Next calibration map", id="reliability.map"),
        Binding("M", "map(-1)", "Previous calibration map", id="reliability.map_back"),
        Binding("g", "unit", "Unit", tooltip="Atoms, lines, answers, tokens, characters", id="reliability.unit"),
        Binding("t", "task(1)", "Task", tooltip="Next task, or all", id="reliability.task"),
        Binding("T", "task(-1)", "Previous task", id="reliability.task_back"),
        Binding("s", "slice", "Slice", tooltip="Slice by a column", id="reliability.slice"),
        Binding("full_stop", "part(1)", "Part", tooltip="Next part of the slice", id="reliability.part"),
        Binding("comma", "part(-1)", "Previous part of the slice", id="reliability.part_back"),
        Binding("b", "bins", "Bins", tooltip="Another number of bins", id="reliability.bins"),
        Binding("right", "threshold(1)", "Threshold", tooltip="Trust more", id="reliability.threshold"),
        Binding("left", "threshold(-1)", "Trust fewer", id="reliability.threshold_back"),
        Binding("z", "larger", "Larger", tooltip="Leave all the room to what is drawn", id="reliability.larger"),
        Binding("o", "words", "Words", tooltip="All that is concluded, whole", id="reliability.words"),
        Binding("e", "export", "Export", tooltip="Write this view to a file", id="reliability.export"),
        Binding("escape", "back", "Back", tooltip="Back to the run", id="reliability.back"),
    ]
    FOOTER = (
        "reliability.curves", "reliability.units", "reliability.threshold", "reliability.function", "reliability.map",
        "reliability.task", "reliability.part", "reliability.unit", "reliability.words", "reliability.slice",
        "reliability.bins", "reliability.larger", "reliability.export", "reliability.back",
    )  # fmt: skip

    def __init__(self, desk: Desk) -> None:
        """Start without a run."""
        super().__init__(desk)
        self._signals_of: tuple[object, ...] = ()
        self._was_computing = False
        self._at_work: set[Worker[None]] = set()
        self._asked_at = 0.0

    def on_mount(self) -> None:
        """Begin to look whether the run has more answers."""
        self.set_interval(LOOK_EVERY_SECONDS, self._look)
        self.draw_all()

    # --- the run ------------------------------------------------------------------------------------------------

    def on_screen_resume(self) -> None:
        """Take the run that Live shows."""
        super().on_screen_resume()
        session = self.desk.runs.shown
        if session is not self._session:
            self._session, self._views, self._view = session, None, None
            self._read_answers, self._signal_was_chosen = -1, False
            self.state.leave_slice()
            self.state.coverage = None
            self.draw_all()
        elif self._views is not None and not self._was_computing:
            self.look_again(self._views)
        self._look()

    @work(thread=True, exclusive=True, group="reliability-again", exit_on_error=False)
    def look_again(self, views: RunViews) -> None:
        """Read the run again where a study or somebody else gave it signals since, or it was computed further."""
        with failures_told(self.app, self._take_failure):
            if not views.is_current() and not get_current_worker().is_cancelled:
                self.app.call_from_thread(self.read, views.run)

    def _look(self) -> None:
        """Read the run where it was not, or where more of its answers are finished."""
        session = self._session
        if session is None or session.run is None or not self.is_active:
            return
        done = sum(task.done for task in session.state.view.tasks.values()) if session.computing else 0
        ended = self._was_computing and not session.computing
        self._was_computing = session.computing
        if self._read_answers < 0 or ended or (session.computing and done > self._read_answers):
            self._read_answers = done
            self.read(session.database, session.run)

    @work(thread=True, exclusive=True, group="reliability-read", exit_on_error=False)
    def read(self, database: Path, run: int) -> None:
        """Read the run beside the screen, what every unit has first."""
        with failures_told(self.app, self._take_failure):
            views = RunViews(database, run)
            views.read("atom")
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take, views)
            views.read_signals()
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take, views)

    def _take(self, views: RunViews) -> None:
        self._views = views
        self._signals_of = ()
        self._measure()

    def _take_failure(self, line: str) -> None:
        self._view = None
        self.set_text("reliability-title", f" {line}")
        self.say_error(line)

    # --- measuring ----------------------------------------------------------------------------------------------

    def _measure(self) -> None:
        """Show the chosen view where it was measured before; else say what is chosen, and measure beside the screen."""
        views = self._views
        if views is None:
            return
        self.state.keep_known(views.functions(self.state.unit), views.tasks)
        choice, kind = self.state.choice, self.state.kind
        self._asked_at = time.monotonic()
        self.workers.cancel_group(self, "reliability-view")
        if self._signals_of != self._signals_wanted(views):
            self.workers.cancel_group(self, "reliability-signals")
        known = _known_picture(views, choice, kind)
        if known is not None:
            self._show(views, *known, kind)
            return
        if self._view is not None:
            self.draw_choice()
        self.measure(views, choice, kind)
        self.set_timer(SAY_AFTER_SECONDS, self.draw_waiting)

    @work(thread=True, exclusive=True, group="reliability-view", exit_on_error=False)
    def measure(self, views: RunViews, choice: ViewChoice, kind: Kind) -> None:
        """Measure a view and what is drawn of it beside the screen."""
        worker = get_current_worker()
        self._at_work.add(worker)
        try:
            with failures_told(self.app, self.say_error):
                stop_if_cancelled()
                view = views.view(choice)
                stop_if_cancelled()
                picture = _measured_picture(views, view, kind)
                stop_if_cancelled()
                self.app.call_from_thread(self._show, views, view, picture, kind)
        finally:
            self._at_work.discard(worker)

    def _show(self, views: RunViews, view: ConfidenceView, picture: Picture, kind: Kind) -> None:
        """Show what was measured, unless something else was chosen meanwhile."""
        if views is not self._views or view.choice != self.state.choice or kind is not self.state.kind:
            return
        self._view, self._picture, self._drawn_kind = view, picture, kind
        self.draw_all()
        wanted = self._signals_wanted(views)
        if wanted != self._signals_of:
            self._signals_of = wanted
            self.measure_signals(views, view.choice, self.state.after)

    def _signals_wanted(self, views: RunViews) -> tuple[object, ...]:
        """Return what the numbers beside the view are of."""
        state = self.state
        return views, views.signals_read, state.unit, state.after, state.task, state.slice, state.part

    def _wait_for_views(self) -> None:
        """Let what was asked for go first, and the keys after it; stops a worker that was cancelled, by raising."""
        stop_if_cancelled()
        while self._at_work or time.monotonic() < self._asked_at + REST_SECONDS:
            time.sleep(GIVE_WAY_SECONDS)
            stop_if_cancelled()

    @work(thread=True, exclusive=True, group="reliability-signals", exit_on_error=False)
    def measure_signals(self, views: RunViews, choice: ViewChoice, after: str) -> None:
        """Measure every signal; then what takes longer: maps, intervals, what can be promised and what is concluded."""
        show, step = self.app.call_from_thread, self._wait_for_views
        with failures_told(self.app, self.say_error):
            functions = views.functions(choice.unit)
            for function in functions:
                step()
                views.measure_numbers(choice, function, RAW)
            show(self.draw_signals)
            # So that the next map and the course of an answer are there at once: the slowest map takes half a second
            # of 100,000 atoms.
            for name in MAPS:
                step()
                views.view(replace(choice, calibrator=name))
            step()
            views.course()
            for function in functions:
                step()
                views.measure_numbers(choice, function, after)
                show(self.draw_signals)
            for function in functions:
                step()
                views.measure_interval(choice, function)
                show(self.draw_signals)
            step()
            if views.signals_read and choice.unit not in PARTS:
                views.policy(choice.unit)
                show(self.draw_found)
            if views.signals_read:
                views.conclude(step)
                show(self.draw_found)
                show(self.draw_signals)

    # --- what is chosen -----------------------------------------------------------------------------------------

    def action_kind(self, step: int) -> None:
        """Draw the next thing."""
        self.state.next_kind(step)
        self._measure()
        if self.state.kind is not Kind.DIAGRAM:
            self.query_one(SignalList).focus()
        else:
            self.query_one(BinList).focus()

    def action_function(self, step: int) -> None:
        """Look at the next signal, in the order of the list."""
        if self._views is not None:
            functions = self._shown_signals or self._views.functions(self.state.unit)
            self.state.next_function(functions, step)
            self._signal_was_chosen = True
            self._measure()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Look at the signal under the cursor."""
        if event.option_list.id == "signals" and event.option_index < len(self._shown_signals):
            function = self._shown_signals[event.option_index]
            if function != self.state.function:
                self.state.function = function
                self._signal_was_chosen = True
                self._measure()

    def action_map(self, step: int) -> None:
        """Look through the next calibration map."""
        self.state.next_map(step)
        self._measure()

    def action_unit(self) -> None:
        """Look at the next kind of unit."""
        self.state.next_unit()
        self._measure()

    def action_task(self, step: int) -> None:
        """Look at the next task."""
        if self._views is not None:
            self.state.next_task(self._views.tasks, step)
            self._measure()

    def action_bins(self) -> None:
        """Cut into another number of bins."""
        self.state.next_bins()
        self._measure()

    def action_part(self, step: int) -> None:
        """Look at the next part of the slice."""
        self.state.next_part(step)
        self._measure()

    def action_slice(self) -> None:
        """Ask for the column to slice by."""
        views = self._views
        if views is None:
            return

        def chosen(place: int | None) -> None:
            if place == 0:
                self.state.leave_slice()
                self._measure()
            elif place is not None:
                self.set_text("verdict", broken(lines.slicing_words(views.slice_names[place - 1]), self.text_width))
                self.read_parts(views, self.state.unit, views.slice_names[place - 1])

        self.app.push_screen(SliceWindow(views.slice_names), chosen)

    @work(thread=True, exclusive=True, group="reliability-parts", exit_on_error=False)
    def read_parts(self, views: RunViews, unit: str, column: str) -> None:
        """Cut the units by a column beside the screen."""
        with failures_told(self.app, self.say_error):
            labels = [str(part.label) for part in views.parts(unit, column)]
            self.app.call_from_thread(self._take_parts, views, unit, column, labels)

    def _take_parts(self, views: RunViews, unit: str, column: str, labels: list[str]) -> None:
        if views is self._views and unit == self.state.unit and labels:
            self.state.take_slice(column, labels)
            self._measure()

    def action_threshold(self, step: int) -> None:
        """Trust more units, or fewer."""
        if self._view is not None:
            self.state.move_threshold(self._view, step)
            self.draw_plot()

    def on_confidence_plot_clicked(self, message: ConfidencePlot.Clicked) -> None:
        """Put the threshold where the plot was clicked, or look at the task or part of the panel."""
        view = self._view
        if view is None:
            return
        if message.panel:
            self.state.kind = Kind.DIAGRAM
            if self.state.slice is None:
                self.state.task = message.panel
            else:
                self.state.part = message.panel
            self._measure()
        elif self._picture.horizontal == "coverage":
            self.state.coverage = message.x
            self.draw_plot()
        elif self._picture.horizontal == "confidence":
            self.state.put_threshold(view, message.x)
            self.draw_plot()

    # --- further ------------------------------------------------------------------------------------------------

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """List what is in the bin that was chosen."""
        view, views = self._view, self._views
        if event.option_list.id == "bins" and view is not None and views is not None:
            self.list_units(views, view, lines.place_of_row(view, event.option_index))

    # Without a description Textual prints the arguments, which hold all units.
    @work(thread=True, exclusive=True, group="reliability-units", exit_on_error=False, description="units of a bin")
    def list_units(self, views: RunViews, view: ConfidenceView, place: int) -> None:
        """Read the units of a bin beside the screen."""
        with failures_told(self.app, self.say_error):
            listed = views.listed(view, place)
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._show_units, view, place, listed)

    def _show_units(self, view: ConfidenceView, place: int, listed: tuple[ListedUnit, ...]) -> None:
        def chosen(row: int | None) -> None:
            if row is not None:
                self.post_message(OpenAnswer(listed[row].generation, listed[row].atom, self.NAME))

        if self.is_current:
            self.app.push_screen(BinWindow(view, place, listed), chosen)

    def action_larger(self) -> None:
        """Leave the room of signals and conclusions to what is drawn, or give it back."""
        self._larger = not self._larger
        self.draw_all()
        if self._larger and self.query_one("#bins-part").display:
            self.query_one(BinList).focus()

    def action_words(self) -> None:
        """Show everything that is concluded, whole."""
        if self._view is not None and self._views is not None:
            policy = self._views.known_policy(self.state.unit)
            text = lines.words(self._view, self._views.concluded(), policy, MEASURING)
            self.app.push_screen(TextToRead("Reliability", text))

    def action_export(self) -> None:
        """Ask for a file and write the view to it."""
        views, state = self._views, self.state
        if views is None or self._view is None:
            return
        frozen = ReliabilityState(
            state.unit, state.function, state.calibrator, state.task, state.slice, state.part, state.bins, state.kind
        )

        def write(target: Path, overwrite: bool) -> None:
            write_view(views, frozen, target)

        def written(line: str | None) -> None:
            if line:
                self.say(line)

        window = ViewFileWindow(suggested_name(views, state.kind), figure_name(frozen) is not None, write)
        self.app.push_screen(window, written)

    def action_back(self) -> None:
        """Go back to the run."""
        self.post_message(ShowScreen("live"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what can do nothing now."""
        if not self.is_mounted or action == "back":
            return True
        there = self._view is not None
        if action == "part":
            return there and self.state.slice is not None
        if action in {
            "kind",
            "function",
            "map",
            "unit",
            "task",
            "slice",
            "bins",
            "words",
            "export",
            "threshold",
            "larger",
        }:
            return there
        return True
