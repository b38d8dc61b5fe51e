"""Live: is it going well, where does it break, how long still?  For a run that computes and for a stored one."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from salt_tui.app import live_lines
from salt_tui.app.answer_cells import KINDS
from salt_tui.app.answer_filter import answers_with
from salt_tui.app.atom_heatmap import AtomHeatmap
from salt_tui.app.atom_map import AtomMap, Place
from salt_tui.app.atom_sentence import heading, sentence
from salt_tui.app.desk import Desk
from salt_tui.app.dialogs import Question
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.live_parts import Legend, TaskLines
from salt_tui.app.messages import ExportRuns, OpenAnswer, OpenRun, ResumeRun, ShowScreen
from salt_tui.app.run_player import RunPlayer
from salt_tui.app.run_session import CANCELLABLE, RunSession
from salt_tui.app.runs_state import why_not
from salt_tui.app.scrubber import Scrubber, played_words
from salt_tui.app.settings import load_view, save_view
from salt_tui.app.text_rows import broken, fit
from salt_tui.app.worker_failures import failures_told
from salt_tui.measure.running import Measured
from salt_tui.store.queries import open_queries
from salt_tui.visible_text import visible

FRAMES_PER_SECOND = 30
TICKS_WHILE_COMPUTING = 3
NUMBERS_PER_SECOND = 0.5
"""On two cores that llama.cpp uses, 30 frames and 2 measurements a second cost the run a fifth of its pace, a third of
the frames and a quarter of the measurements a tenth: its threads wait for each other, so what the app takes from one of
them both lose.  Keys wait for no frame."""
MEASURE_AFTER_SECONDS = 0.25
TICKS_WHILE_READING = 10
TASK_ROWS = 3
TALL_TASK_ROWS = 8
TALL = 30
LOG_ROWS = 5
TALL_LOG_ROWS = 11
LOW_LOG_ROWS = 2
LOW = 22
"""Below so many rows a whole log would leave nothing of the map."""
NO_RUN = "No run is open.  1 sets one up, 3 lists the stored ones."


class LiveScreen(FramedScreen):
    """Shows a `RunSession`."""

    NAME = "live"
    WIDGETS = (AtomHeatmap,)
    HELP = "A run while it is computed, or as it was stored."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "Pause", id="live.pause"),
        Binding("space", "go_on", "Go on", id="live.go_on"),
        Binding("space", "play", "Play", tooltip="Let the atoms arrive again", id="live.play"),
        Binding("plus", "speed(1)", "Faster", id="live.faster"),
        Binding("minus", "speed(-1)", "Slower", id="live.slower"),
        Binding("f", "function(1)", "Signal", tooltip="Next confidence function", id="live.function"),
        Binding("F", "function(-1)", "Previous confidence function", id="live.function_back"),
        Binding("slash", "filter", "Filter", tooltip="Show some answers only", id="live.filter"),
        Binding("R", "read_again", "Read again", id="live.read_again"),
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
        "live.faster", "live.slower", "live.go_on", "live.pause", "live.cancel_run", "live.resume", "live.read_again",
        "map.open", "map.next_wrong", "map.surest_wrong", "map.previous_answer", "live.function", "live.filter",
        "live.play", "live.task", "live.granularity", "live.export", "live.log", "live.cancel_answer", "live.copy",
    )  # fmt: skip

    def __init__(self, desk: Desk) -> None:
        """Start without a run."""
        super().__init__(desk)
        desk.load()
        self._session: RunSession | None = None
        self._sentence = ""
        self._texts: dict[str, str] = {}
        self._player: RunPlayer | None = None
        self._ticked = 0.0
        self._stale = False
        self._changed: set[int] = set()
        self._progressed = False
        self._ticks = 0
        self._can: tuple[object, ...] = ()
        self._measuring: Timer | None = None
        self._settled = False
        self._drawn: Measured | None = None

    def compose_body(self) -> ComposeResult:
        """Lay the parts out."""
        yield Static(id="title", markup=False)
        yield TaskLines(id="tasks", markup=False)
        yield Legend()
        yield AtomHeatmap(AtomMap(), self.desk.look, id="map")
        yield Scrubber(id="unit", markup=False)
        yield Static(id="sentence", markup=False)
        yield Static(id="log", markup=False)
        yield Static(id="metrics", markup=False)
        yield Input(
            placeholder="show answers with these words: task, status, number, wrong, right, or text",
            compact=True,
            id="map-filter",
        )

    def on_mount(self) -> None:
        """Begin to pull."""
        self.query_one("#log").display = False
        self.query_one("#map-filter").display = False
        self.heatmap.map.function = live_lines.known_function(load_view().function)
        self.heatmap.cursor_moved = self._cursor_moved
        self.heatmap.focus()
        self.set_interval(1 / FRAMES_PER_SECOND, self._pull)
        self.set_interval(1 / NUMBERS_PER_SECOND, self._count)
        self._pull()

    def look_changed(self) -> None:
        """Draw the cells with another look."""
        self.heatmap.look = self.desk.look
        self.redraw()

    @property
    def heatmap(self) -> AtomHeatmap:
        """The drawn map."""
        return self.query_one("#map", AtomHeatmap)

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
        self._measure_when_settled(session)
        if not self.is_active:
            self._stale = True
            return
        if self._player is not None:
            self._play(self._player)
            return
        if session.measured is not self._drawn:
            self._draw_measured()
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
            self._draw_all()
        elif self._changed:
            self.heatmap.show_changes(self._changed)
            self._draw_sentence()
        if self._progressed:
            self._draw_all()
        self._changed = set()
        self._progressed = False

    def _measure_when_settled(self, session: RunSession) -> None:
        """Measure at once what nothing will be added to any more."""
        settled = not session.computing and not session.reading
        if settled and not self._settled:
            session.measure()
        self._settled = settled

    def _offer_another_environment(self, session: RunSession) -> None:
        """Ask whether a run that refused may go on elsewhere."""
        run, differences = session.run, session.take_refusal()
        if run is None or not differences:
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.post_message(ResumeRun(run, allow_environment_change=True))

        self._draw_title()  # the window keeps this screen from being drawn
        question = f"Resume run {run} in another environment?"
        consequence = "Numbers may differ from here on; the run is marked not exact for good."
        self.app.push_screen(Question(question, f"{'; '.join(differences)}.  {consequence}"), answered)

    def _show_session(self, session: RunSession | None) -> None:
        shown = session.state.map if session else AtomMap()
        self._player = None
        # What the user chose to look at stays chosen; a filter is of one run.
        if self.query_one("#map-filter").display:
            self._leave_filter()
        shown.function = self.heatmap.map.function
        if shown.kind != self.heatmap.map.kind:
            shown.kind = self.heatmap.map.kind
        self._session = session
        self._settled = False
        self.heatmap.show_map(shown, follow=session is not None and session.computing)
        self._draw_all()
        self._draw_log()

    def _count(self) -> None:
        """Draw what changes with time, and measure."""
        session = self._session
        if session is None or not self.is_active:
            return
        session.measure()
        self._draw_measured()
        self._draw_log()

    def _draw_measured(self) -> None:
        """Draw what says a number that was measured."""
        self._draw_title()
        self._draw_numbers()
        self._draw_sentence()

    def on_screen_resume(self) -> None:
        """Draw what was missed."""
        super().on_screen_resume()
        self._stale = True
        session, answer = self._session, self.desk.runs.answer
        if session is not None and session is self.desk.runs.shown and answer is not None:
            number = session.state.map.number_of(answer[0])
            if number is not None and session.state.map.kind == "atom":
                self.heatmap.go_to(Place(number, answer[1]))
        self.desk.runs.answer = None

    # --- drawing ------------------------------------------------------------------------------------------------

    def _set(self, name: str, text: str) -> None:
        before = self._texts.get(name)
        if before != text:
            self._texts[name] = text
            # Only the list of tasks has another height at times; laying the screen out costs more than drawing it.
            taller = name == "tasks" and (before is None or before.count("\n") != text.count("\n"))
            self.query_one(f"#{name}", Static).update(text, layout=taller)

    def _draw_all(self) -> None:
        if self._session is None:
            for name in ("title", "tasks", "unit", "metrics"):
                self._set(name, "")
            self._sentence = ""
            self._say_words(NO_RUN)
            self._draw_legend()
            self._can = ()
            self.refresh_bindings()
            return
        self._draw_title()
        self._draw_legend()
        self._draw_numbers()
        self._draw_sentence()

    def _draw_title(self) -> None:
        session = self._session
        if session is None:
            return
        self._refresh_keys(session)
        self._set("title", live_lines.title_line(session, self.size.width))
        self._draw_tasks(session)

    def _refresh_keys(self, session: RunSession) -> None:
        """Let the last row show what can be done now, where that is something else."""
        state = session.state
        able = (session.computing, session.reading, session.resumable, bool(state.map.answers), bool(self._sentence))
        can = (state.phase, *able)
        if can != self._can:
            self._can = can
            self.refresh_bindings()

    def _draw_tasks(self, session: RunSession) -> None:
        rows = TALL_TASK_ROWS if self.size.height >= TALL else TASK_ROWS
        cursor = self.heatmap.cursor
        marked = session.state.map.task
        if marked is None and cursor is not None:
            marked = session.state.map.answers[cursor.answer].task
        lines = live_lines.task_lines(session.state, session.task_numbers, marked, rows, self.size.width)
        self._set("tasks", "\n".join(lines))

    def _draw_legend(self) -> None:
        session = self._session
        legend = self.query_one(Legend)
        before = legend.words, legend.look
        legend.look = self.desk.look
        legend.words = (
            ("", "")
            if session is None
            else live_lines.legend_words(session.state, self.heatmap.following, session.reading, legend.room)
        )
        if before != (legend.words, legend.look):
            legend.refresh()

    def _draw_numbers(self) -> None:
        session = self._session
        if session is not None:
            self._drawn = session.measured
            self._set("metrics", "\n".join(live_lines.metric_lines(session, self.size.width)))

    def _draw_sentence(self) -> None:
        session, cursor = self._session, self.heatmap.cursor
        if session is None or self._player is not None:
            return
        if cursor is None:
            self._sentence = ""
            self._set("unit", live_lines.rule("", self.size.width))
            self._say_words(live_lines.instead_of_a_unit(session.state))
            return
        answer = session.state.map.answers[cursor.answer]
        if self.heatmap.following and session.state.phase == "failed" and session.state.log:
            title, words = "why the run ended", visible(session.state.log[-1], 400)
        elif len(session.state.map.cells(cursor.answer)):
            unit = session.describe_unit(cursor)
            title, words = heading(unit), sentence(unit, self.heatmap.surest_rank)
        else:
            title, words = live_lines.answer_heading(answer), live_lines.answer_sentence(answer, session.state.map.kind)
        self._sentence = f"{title}: {words}"
        self._refresh_keys(session)
        self._set("unit", live_lines.rule(title, self.size.width))
        self._say_words(words)

    def _say_words(self, words: str) -> None:
        self._set("sentence", broken(words, max(1, self.size.width - 2), 2))

    def _draw_log(self) -> None:
        session, log = self._session, self.query_one("#log")
        if log.display:
            height = self.size.height
            rows = TALL_LOG_ROWS if height >= TALL else LOG_ROWS if height >= LOW else LOW_LOG_ROWS
            log.styles.height = rows + 1
            path = None if session is None else session.log_path
            log.border_title = Content("" if path is None else visible(str(path)))
            lines = [] if session is None else live_lines.log_lines(session, rows)
            self._set("log", "\n".join(f" {fit(line, self.size.width - 2)}" for line in lines))

    def _cursor_moved(self) -> None:
        """Say what is under the cursor."""
        self._draw_sentence()
        self._draw_legend()
        if self._session is not None:
            self._draw_tasks(self._session)

    def on_resize(self) -> None:
        """Cut the lines to the new width."""
        self._draw_all()

    # --- actions ------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what cannot be done now."""
        session = self._session
        if action in {"pause", "go_on"}:
            able = session is not None and session.computing
            return able and (session.state.phase == "paused") is (action == "go_on") if session is not None else False
        if action in {"cancel_answer", "cancel_run"}:
            return True if session is not None and session.computing else None
        if action == "play":
            return (
                session is not None
                and not session.computing
                and not session.reading
                and bool(session.state.map.answers)
            )
        if action == "speed":
            return self._player is not None
        if action == "read_again":
            return session is not None and session.state.phase == "elsewhere"
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
            self._draw_title()

    def action_go_on(self) -> None:
        """Wake the computation."""
        self.action_pause()

    def action_read_again(self) -> None:
        """Read anew what another process has stored meanwhile."""
        if self._session is not None and self._session.run is not None:
            self.post_message(OpenRun(self._session.run))

    def action_function(self, step: int) -> None:
        """Shade by the next confidence function, and remember it."""
        if self._session is not None:
            function = self._session.state.next_function(step)
            save_view(replace(load_view(), function=function))
            self.redraw()

    # --- play ---------------------------------------------------------------------------------------------------

    def action_play(self) -> None:
        """Let the atoms of the run arrive again, or pause."""
        if self._session is None:
            return
        if self._player is None:
            self._player = RunPlayer(self._session.state.map)
            self.heatmap.show_map(self._player.map, follow=True)
        self._player.clock.toggle()
        self._ticked = time.monotonic()
        self._draw_player(self._player)
        self.refresh_bindings()

    def action_speed(self, step: int) -> None:
        """Play faster or slower."""
        if self._player is not None:
            self._player.clock.change_speed(step)
            self._draw_player(self._player)

    def _play(self, player: RunPlayer) -> None:
        """Show what has arrived since the last frame."""
        now = time.monotonic()
        before, was_playing = player.clock.arrived, player.clock.playing
        player.clock.pass_time(now - self._ticked)
        self._ticked = now
        if player.clock.arrived != before:
            self._draw_player(player)
        if was_playing and not player.clock.playing:
            self._leave_play()

    def _draw_player(self, player: RunPlayer) -> None:
        shown = player.map
        changed = player.fill()
        if player.map is shown:
            self.heatmap.show_changes(changed)
        else:
            self.heatmap.show_map(player.map, follow=True)
        scrubber = self.query_one("#unit", Scrubber)
        self._set("unit", played_words(player.clock, "atoms", scrubber.bar_width))

    def on_scrubber_moved(self, message: Scrubber.Moved) -> None:
        """Show the atoms up to the place that was clicked."""
        if self._player is not None:
            self._player.clock.go_to(round(message.share * self._player.clock.total))
            self._draw_player(self._player)

    def _leave_play(self) -> None:
        """Show the whole run again."""
        self._player = None
        if self._session is not None:
            self.heatmap.show_map(self._session.state.map, follow=False)
        self._draw_all()
        self.refresh_bindings()

    # --- the filter ---------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Go to the filter."""
        field = self.query_one("#map-filter", Input)
        field.display = True
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the answers with these words only."""
        self._filter(event.value, {})
        if self._session is not None and self._session.run is not None and event.value.strip():
            self.find_texts(self._session.run, event.value)

    def _filter(self, words: str, texts: dict[str, frozenset[int]]) -> None:
        if self._session is not None:
            self._session.state.map.show_only(answers_with(words, texts))
            self.heatmap.show_everything()
            self._draw_all()

    @work(thread=True, exclusive=True, group="texts", exit_on_error=False)
    def find_texts(self, run: int, words: str) -> None:
        """Look beside the screen for answers whose text holds the words."""
        with failures_told(self.app, self.say_error):
            with open_queries(self.desk.database) as queries:
                texts = {word: queries.answers_that_say(run, word) for word in words.casefold().split()}
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take_texts, words, texts)

    def _take_texts(self, words: str, texts: dict[str, frozenset[int]]) -> None:
        if self.query_one("#map-filter", Input).value == words:
            self._filter(words, texts)

    def on_input_submitted(self) -> None:
        """Keep the filter and go back to the map."""
        self.heatmap.focus()

    def _leave_filter(self) -> None:
        field = self.query_one("#map-filter", Input)
        field.value = ""
        field.display = False
        self.heatmap.focus()

    def action_granularity(self) -> None:
        """Show lines instead of atoms, or the reverse."""
        if self._session is not None:
            kinds = self._session.state.map
            self.heatmap.show_kind(KINDS[(KINDS.index(kinds.kind) + 1) % len(KINDS)])
            self._measure_soon()
            self._draw_all()

    def action_task(self) -> None:
        """Show the numbers of the next task."""
        if self._session is not None:
            self._session.next_task()
            self.redraw()

    def redraw(self) -> None:
        """Measure and draw anew, for another choice or drawing mode."""
        self.heatmap.show_everything()
        self._draw_all()
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
        self._draw_log()

    def on_task_lines_chosen(self, message: TaskLines.Chosen) -> None:
        """Go to the first answer of the task whose line was clicked."""
        session = self._session
        tasks = [] if session is None else list(session.state.view.tasks)
        if session is None or not 0 <= message.line < len(tasks) == len(self._texts.get("tasks", "").split("\n")):
            return
        session.state.map.task = tasks[message.line]
        answers = session.state.map.answers
        found = (Place(number, 0) for number, answer in enumerate(answers) if answer.task == tasks[message.line])
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
        if self._player is not None:
            self._leave_play()
        elif self.query_one("#map-filter").display:
            self._leave_filter()
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
        answer = session.state.map.answers[cursor.answer]
        name = f"answer {answer.position + 1} of {answer.task}"
        if answer.status not in CANCELLABLE:
            self.say(f"{name} is not being written: it is {answer.status.replace('_', ' ')}")
            return

        def cancel(yes: bool | None) -> None:
            if yes and not session.cancel_answer(answer.generation):
                self.say(f"{name} has ended by itself")

        consequence = "It is left out of all numbers and the run goes on; resuming the run computes it."
        self.app.push_screen(Question(f"Cancel {name}?", consequence), cancel)

    def action_cancel_run(self) -> None:
        """Stop the run after asking."""
        session = self._session

        def stop(answer: bool | None) -> None:
            if answer and session is not None:
                session.stop()
                self._draw_title()

        if session is not None and session.computing:
            self.app.push_screen(Question("Stop this run?", "It can be resumed later, bit for bit."), stop)

    def action_resume(self) -> None:
        """Go on with the run that is shown."""
        if self._session is not None and self._session.run is not None and self._session.resumable:
            self.post_message(ResumeRun(self._session.run))

    def action_export(self) -> None:
        """Export the run that is shown."""
        if self._session is not None and self._session.run is not None:
            self.post_message(ExportRuns((self._session.run,)))

    def action_copy(self) -> None:
        """Copy the sentence about the unit under the cursor."""
        if self._sentence:
            self.app.copy_to_clipboard(self._sentence)
            self.say("the sentence was copied")
