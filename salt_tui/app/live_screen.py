"""Live: is it going well, where does it break, how long still?  For a run that computes and for a stored one."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.timer import Timer

from salt_tui.app import live_lines
from salt_tui.app.answer_cells import FUNCTIONS, KINDS
from salt_tui.app.answer_filter_field import AnswerFilterField
from salt_tui.app.atom_heatmap import AtomHeatmap
from salt_tui.app.atom_map import AtomMap
from salt_tui.app.desk import Desk
from salt_tui.app.live_body import LiveBody
from salt_tui.app.live_parts import TaskLines
from salt_tui.app.live_play import PlayedRun
from salt_tui.app.live_questions import ask_for_another_environment, ask_to_cancel, ask_to_stop
from salt_tui.app.map_rows import Place
from salt_tui.app.messages import ExportRuns, OpenAnswer, ResumeRun, ShowScreen
from salt_tui.app.run_session import RunSession
from salt_tui.app.runs_state import why_not
from salt_tui.app.scrubber import Scrubber
from salt_tui.app.settings import load_view, save_view

FRAMES_PER_SECOND = 30
TICKS_WHILE_COMPUTING = 3
NUMBERS_PER_SECOND = 0.5
"""On two cores that llama.cpp uses, 30 frames and 2 measurements a second cost the run a fifth of its pace, a third of
the frames and a quarter of the measurements a tenth: its threads wait for each other, so what the app takes from one of
them both lose.  Keys wait for no frame."""
MEASURE_AFTER_SECONDS = 0.25
TICKS_WHILE_READING = 10


class LiveScreen(LiveBody):
    """Shows a `RunSession`."""

    NAME = "live"
    WIDGETS = (AtomHeatmap,)
    HELP = "A run while it is computed, or as it was stored."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "Pause", id="live.pause"),
        Binding("space", "go_on", "Go on", id="live.go_on"),
        Binding("space", "play", "Play", tooltip="Let the atoms arrive again", id="live.play"),
        Binding("space", "pause_play", "Pause", tooltip="Let no more atoms arrive", id="live.pause_play"),
        Binding("plus", "speed(1)", "Faster", id="live.faster"),
        Binding("minus", "speed(-1)", "Slower", id="live.slower"),
        Binding("f", "function(1)", "Signal", tooltip="Next function or signal", id="live.function"),
        Binding("F", "function(-1)", "Previous function or signal", id="live.function_back"),
        Binding("slash", "filter", "Filter", tooltip="Show some answers only", id="live.filter"),
        Binding("g", "granularity", "Unit", tooltip="Atoms or lines", id="live.granularity"),
        Binding("t", "task", "Task", tooltip="Numbers of one task", id="live.task"),
        Binding("o", "log", "Log", id="live.log"),
        Binding("x", "cancel_answer", "Cancel", tooltip="Cancel the answer under the cursor", id="live.cancel_answer"),
        Binding("X", "cancel_run", "Stop", tooltip="Stop the run", id="live.cancel_run"),
        Binding("r", "resume", "Resume", id="live.resume"),
        Binding("e", "export", "Export", id="live.export"),
        Binding("y", "copy", "Copy", tooltip="Copy the sentence", id="live.copy"),
        Binding("escape", "back", "Back", tooltip="Leave the filter, close the log, or go to Runs", id="live.back"),
        # Reached where the key's own action can do nothing now.
        Binding("r", "say_why_not('resume')", "Why nothing is resumed", id="why.live_not_resumed"),
        Binding("X", "say_why_not('stop')", "Why nothing is stopped", id="why.live_not_stopped"),
    ]
    FOOTER = (
        "live.pause_play", "live.faster", "live.slower", "live.go_on", "live.pause", "live.cancel_run", "live.resume",
        "map.open", "map.next_wrong", "map.surest_wrong", "map.previous_answer", "live.function", "live.filter",
        "live.play", "live.task", "live.granularity", "live.export", "live.log", "live.cancel_answer", "live.copy",
    )  # fmt: skip

    def __init__(self, desk: Desk) -> None:
        """Start without a run."""
        super().__init__(desk)
        self._play: PlayedRun | None = None
        self._stale = False
        self._changed: set[int] = set()
        self._progressed = False
        self._ticks = 0
        self._measuring: Timer | None = None
        self._settled = False

    def on_mount(self) -> None:
        """Begin to pull."""
        self.query_one("#log").display = False
        self.heatmap.map.function = live_lines.known_function(load_view().function)
        self.heatmap.cursor_moved = self.cursor_moved
        self.heatmap.focus()
        self.set_interval(1 / FRAMES_PER_SECOND, self._pull)
        self.set_interval(1 / NUMBERS_PER_SECOND, self._count)
        self._pull()

    def look_changed(self) -> None:
        """Draw the cells with another look."""
        self.heatmap.look = self.desk.look
        self.redraw()

    @property
    def played(self) -> bool:
        """Whether the run arrives again."""
        return self._play is not None

    # --- pulling ------------------------------------------------------------------------------------------------

    def _pull(self) -> None:
        """Take what has come; draw it when this screen is in front."""
        session = self.desk.runs.shown
        if session is not self._session:
            self._show_session(session)
        computing = self.desk.runs.computed
        if computing is not None and computing is not session:
            for message in computing.pull().messages:
                name = "the run" if computing.run is None else f"run {computing.run}"
                self.say(f"{name}: {message}", "warning")
        if session is None:
            return
        changes = session.pull()
        for message in changes.messages:
            self.say(message, "warning")
        self._changed |= changes.generations | changes.counted
        self._progressed = self._progressed or changes.progress
        self._stale = self._stale or changes.shades
        self._measure_when_settled(session)
        if not self.is_in_view:
            self._stale = True
            return
        if self._play is not None:
            if self._play.tick():
                self._leave_play()
            return
        if session.measured is not self._drawn:
            self.draw_measured()
        self._offer_another_environment(session)
        self._ticks += 1
        if session.computing and not self._stale and self._ticks % TICKS_WHILE_COMPUTING:
            return
        # Stored answers come by the hundred; laying out thirty times a second would cost more than reading them.
        if session.reading and self.heatmap.map.height > self.heatmap.size.height and self._ticks % TICKS_WHILE_READING:
            return
        if self._stale:
            self._stale = False
            self.heatmap.show_everything()
            self.draw_all()
        elif self._changed:
            self.heatmap.show_changes(self._changed)
            self.draw_sentence()
        if self._progressed:
            self.draw_all()
        self._changed = set()
        self._progressed = False

    def _measure_when_settled(self, session: RunSession) -> None:
        """Measure at once what nothing will be added to any more."""
        settled = not session.computing and not session.reading
        if settled and not self._settled:
            session.measure()
            session.look_for_signals()
        self._settled = settled

    def _offer_another_environment(self, session: RunSession) -> None:
        """Ask whether a run that refused may go on elsewhere."""
        run = session.run
        if run is None or not self.is_active:  # another window is open
            return
        differences = session.take_refusal()
        if not differences:
            return

        again = ResumeRun(run, allow_environment_change=True)
        ask_for_another_environment(self.app, run, differences, lambda: self.post_message(again))

    def _show_session(self, session: RunSession | None) -> None:
        shown = session.state.map if session else AtomMap()
        self._play = None
        # What the user chose to look at stays chosen; a filter is of one run.
        if self.filter_field.display:
            self.filter_field.close()
        if session is not None:
            self.filter_field.database = session.database
        self.filter_field.run = None if session is None else session.run
        shown.function = self.heatmap.map.function
        if session is None or session.computing:
            shown.function = live_lines.known_function(shown.function)  # signals are of a run that has ended
        if shown.kind != self.heatmap.map.kind:
            shown.kind = self.heatmap.map.kind
        self._session = session
        self._settled = False
        self.heatmap.show_map(shown, follow=session is not None and session.computing)
        self.draw_all()
        self.draw_log()

    def _count(self) -> None:
        """Draw what changes with time, and measure."""
        session = self._session
        if session is None or not self.is_in_view:
            return
        session.measure()
        self.draw_measured()
        self.draw_log()

    def on_screen_resume(self) -> None:
        """Draw what was missed."""
        super().on_screen_resume()
        self._stale = True
        if self._session is not None and self._settled:
            self._session.look_for_signals()  # a study may have ended
        session, answer = self._session, self.desk.runs.answer
        if session is not None and session is self.desk.runs.shown and answer is not None:
            number = session.state.map.number_of(answer[0])
            if number is not None and session.state.map.kind == "atom":
                self.heatmap.go_to(Place(number, answer[1]))
        self.desk.runs.answer = None

    # --- actions ------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what cannot be done now."""
        session = self._session
        if action in {"pause", "go_on"}:
            able = session is not None and session.computing
            return able and (session.state.phase == "paused") is (action == "go_on") if session is not None else False
        if action in {"cancel_answer", "cancel_run"}:
            return True if session is not None and session.computing else None
        if action == "pause_play":
            return self._play is not None and self._play.playing
        if action == "play":
            if (
                session is None
                or session.computing
                or session.reading
                or (self._play is not None and self._play.playing)
            ):
                return False
            return any(len(answer.units["atom"]) for answer in session.state.map.answers)
        if action == "speed":
            return self._play is not None
        if action == "resume":
            return True if session is not None and session.resumable else None
        if action == "export":
            return True if session is not None and session.run is not None else None
        if action == "copy":
            return True if self._sentence else None
        if action in {"function", "granularity", "task", "log", "filter"}:
            return True if session is not None else None
        return True

    def action_pause(self) -> None:
        """Suspend the computation."""
        if self._session is not None:
            self._session.toggle_pause()
            self.draw_title()

    def action_go_on(self) -> None:
        """Wake the computation."""
        self.action_pause()

    def action_function(self, step: int) -> None:
        """Shade by the next confidence function, and remember it."""
        if self._session is not None:
            function = self._session.state.next_function(step)
            self._session.need_signal()
            if function in FUNCTIONS:  # a signal is of this run
                save_view(replace(load_view(), function=function))
            self.redraw()

    # --- play ---------------------------------------------------------------------------------------------------

    def action_play(self) -> None:
        """Let the atoms of the run arrive again, or pause."""
        if self._session is None:
            return
        if self._play is None:
            scrubber = self.query_one("#unit", Scrubber)
            self._play = PlayedRun(
                self._session.state.map, self.heatmap, scrubber, lambda words: self.set_text("unit", words)
            )
        self._play.toggle()
        self.refresh_bindings()

    def action_pause_play(self) -> None:
        """Let no more atoms arrive."""
        self.action_play()

    def action_speed(self, step: int) -> None:
        """Play faster or slower."""
        if self._play is not None:
            self._play.change_speed(step)

    def on_scrubber_moved(self, message: Scrubber.Moved) -> None:
        """Show the atoms up to the place that was clicked."""
        if self._play is not None:
            self._play.go_to(message.share)

    def _leave_play(self) -> None:
        """Show the whole run again."""
        self._play = None
        if self._session is not None:
            self.heatmap.show_map(self._session.state.map, follow=False)
        self.draw_all()
        self.refresh_bindings()

    # --- the filter ---------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Go to the filter."""
        if self._session is not None:
            self.filter_field.run, self.filter_field.database = self._session.run, self._session.database
        self.filter_field.open()

    def on_answer_filter_field_filtered(self, message: AnswerFilterField.Filtered) -> None:
        """Show the answers that the filter leaves."""
        if self._session is not None:
            self._session.state.map.show_only(message.wanted)
            self.heatmap.show_everything()
            self.draw_all()

    def on_answer_filter_field_left(self) -> None:
        """Go back to the map."""
        self.heatmap.focus()

    # --- choices ------------------------------------------------------------------------------------------------

    def action_granularity(self) -> None:
        """Show lines instead of atoms, or the reverse."""
        if self._session is not None:
            kinds = self._session.state.map
            self.heatmap.show_kind(KINDS[(KINDS.index(kinds.kind) + 1) % len(KINDS)])
            self._measure_soon()
            self.draw_all()

    def action_task(self) -> None:
        """Show the numbers of the next task."""
        if self._session is not None:
            self._session.next_task()
            self.redraw()

    def redraw(self) -> None:
        """Measure and draw anew, for another choice or drawing mode."""
        self.heatmap.show_everything()
        self.draw_all()
        self._measure_soon()

    def _measure_soon(self) -> None:
        """Measure when the last key of several has been drawn: the thread would take the interpreter from drawing."""
        if self._measuring is not None:
            self._measuring.stop()
        session = self._session
        self._measuring = None if session is None else self.set_timer(MEASURE_AFTER_SECONDS, session.measure)

    def action_log(self) -> None:
        """Open or close the log."""
        log = self.query_one("#log")
        log.display = not log.display
        self.draw_log()

    def on_task_lines_chosen(self, message: TaskLines.Chosen) -> None:
        """Go to the first answer of the task whose line was clicked."""
        session = self._session
        task = self.task_at(message.line, message.column)
        if session is None or task is None:
            return
        session.state.map.task = task
        answers = session.state.map.answers
        found = (Place(number, 0) for number, answer in enumerate(answers) if answer.task == task)
        self.heatmap.go_to(next(found, None))
        self.redraw()

    def on_atom_heatmap_opened(self, message: AtomHeatmap.Opened) -> None:
        """Open an answer from its atom, or from the first atom of its line."""
        session = self._session
        if session is None:
            return
        place, kinds = message.place, session.state.map
        atom = place if kinds.kind == "atom" else kinds.counterpart(place, "atom")
        self.post_message(OpenAnswer(kinds.answers[place.answer].generation, 0 if atom is None else atom.unit))

    def action_back(self) -> None:
        """Leave what is played, the filter or the log; go to the list of runs where there is none of them."""
        if self._play is not None:
            self._leave_play()
        elif self.filter_field.display:
            self.filter_field.close()
        elif self.query_one("#log").display:
            self.action_log()
        else:
            self.post_message(ShowScreen("runs"))

    def action_say_why_not(self, what: str) -> None:
        """Say why the run is not resumed or not stopped."""
        session = self._session
        if session is None or session.run is None:
            self.say("no run is open")
        else:
            self.say(why_not(what, session.run, session.state.phase))

    def action_cancel_answer(self) -> None:
        """Ask whether to cancel the answer that is under the cursor now."""
        session, cursor = self._session, self.heatmap.cursor
        if session is None:
            return
        if cursor is None:
            self.say("x cancels the answer under the cursor: choose one with the arrows")
            return
        ask_to_cancel(self.app, session, session.state.map.answers[cursor.answer], self.say)

    def action_cancel_run(self) -> None:
        """Stop the run after asking."""
        session = self._session
        if session is not None and session.computing:
            ask_to_stop(self.app, session, self.draw_title)

    def action_resume(self) -> None:
        """Go on with the run that is shown."""
        if self._session is not None and self._session.run is not None and self._session.resumable:
            self.post_message(ResumeRun(self._session.run))

    def action_export(self) -> None:
        """Export the run that is shown."""
        if self._session is not None and self._session.run is not None:
            self.post_message(ExportRuns((self._session.run,), self._session.database))

    def action_copy(self) -> None:
        """Copy the sentence about the unit under the cursor."""
        if self._sentence:
            self.app.copy_to_clipboard(self._sentence)
            self.say("the sentence was copied")
