"""Answer: what exactly happened here, token by token?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from salt_tui.app import answer_lines
from salt_tui.app.answer_document import AnswerDocument, load_answer
from salt_tui.app.desk import Desk
from salt_tui.app.dialogs import TextToRead
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.map_rows import Place
from salt_tui.app.maze_drawing import TASK as MAZE
from salt_tui.app.messages import ShowScreen
from salt_tui.app.problem_picture import picture
from salt_tui.app.reply_view import ReplyView
from salt_tui.app.run_session import RunSession
from salt_tui.app.scrubber import Scrubber, played_words
from salt_tui.app.shade_scale import shade_scale
from salt_tui.app.sized_panel import SizedPanel
from salt_tui.app.task_ranks import TaskRanks
from salt_tui.app.token_player import TokenPlayer
from salt_tui.app.worker_failures import failures_told
from salt_tui.palette import Look
from salt_tui.visible_text import visible

FRAMES_PER_SECOND = 20
TEXT_WIDTH = 68
"""Cells of a line of confidences in a window."""

NO_ANSWER = "No answer is open.  Enter on an atom of Live opens its answer."


class AnswerScreen(FramedScreen):
    """Shows one stored answer of the run that Live shows."""

    NAME = "answer"
    TAB = "live"
    AUTO_FOCUS = "#reply"
    HELP = "One answer, token by token: its problem, what was said, and what was nearly said."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "token(-1)", "Token", tooltip="Previous token", id="answer.previous_token"),
        Binding("right,l", "token(1)", "Token", tooltip="Next token", id="answer.next_token"),
        Binding("comma", "atom(-1)", "Previous atom", id="answer.previous_atom"),
        Binding("full_stop", "atom(1)", "Atom", tooltip="Next atom", id="answer.next_atom"),
        Binding("up,k", "line(-1)", "Line up", id="answer.line_up"),
        Binding("down,j", "line(1)", "Line down", id="answer.line_down"),
        Binding("home", "end(-1)", "First token", id="answer.first"),
        Binding("end,G", "end(1)", "Last token", id="answer.last"),
        Binding("w", "wrong(1)", "Next wrong", tooltip="Next atom that is not right", id="answer.next_wrong"),
        Binding("W", "wrong(-1)", "Previous atom that is not right", id="answer.previous_wrong"),
        Binding("left_square_bracket", "answer(-1)", "Answer", tooltip="Previous answer", id="answer.previous"),
        Binding("right_square_bracket", "answer(1)", "Next answer", id="answer.next"),
        Binding("p", "texts", "Prompt", tooltip="Prompt, raw reply, and all confidences", id="answer.texts"),
        Binding("slash", "search", "Search", id="answer.search"),
        Binding("n", "search_on", "Next", tooltip="Next place with the words", id="answer.search_on"),
        Binding("space", "pause_play", "Pause", tooltip="Let no more tokens arrive", id="answer.pause_play"),
        Binding("space", "play", "Play", tooltip="Let the tokens arrive again", id="answer.play"),
        Binding("plus", "speed(1)", "Faster", id="answer.faster"),
        Binding("minus", "speed(-1)", "Slower", id="answer.slower"),
        Binding("i", "replay", "Edit", tooltip="Change atoms and replay", id="answer.replay"),
        Binding("y", "copy", "Copy", tooltip="Copy what is said of the token", id="answer.copy"),
        Binding("escape", "back", "Back", id="answer.back"),
    ]
    FOOTER = (
        "answer.back", "answer.pause_play", "answer.faster", "answer.slower", "answer.next_token", "answer.next_atom",
        "answer.next_wrong", "answer.replay", "answer.previous", "answer.play", "answer.texts", "answer.search",
        "answer.search_on", "answer.copy",
    )  # fmt: skip

    def __init__(self, desk: Desk) -> None:
        """Start without an answer."""
        super().__init__(desk)
        desk.load()
        self._session: RunSession | None = None
        self._ranks: TaskRanks | None = None
        self._document: AnswerDocument | None = None
        self._token = 0
        self._player = TokenPlayer(0)
        self._ticked = 0.0
        self._is_asked = False
        self._words = ""
        self._problem_drawn: tuple[int, Look, int | None] | None = None

    def compose_body(self) -> ComposeResult:
        """Lay the parts out."""
        yield Static(f" {NO_ANSWER}", id="answer-title", markup=False)
        with Horizontal(id="panels"):
            with VerticalScroll(id="problem-panel", classes="panel", can_focus=False):
                yield Static(id="problem", markup=False)
            with Vertical(id="said-panel", classes="panel"):
                yield ReplyView(self.desk.look, id="reply")
                yield Static(id="reference", markup=False)
            yield SizedPanel(id="token", classes="panel", markup=False)
        yield Static(id="atom-line", markup=False)
        yield Static(id="confidences", markup=False)
        yield Scrubber(id="course", markup=False)
        yield Input(placeholder="search in the reply", compact=True, id="search")

    def on_mount(self) -> None:
        """Name the panels, and begin to tick."""
        self.query_one("#search").display = False
        for name, title in (("#problem-panel", "problem"), ("#said-panel", "said"), ("#token", "token")):
            self.query_one(name).border_title = title
        self.set_interval(1 / FRAMES_PER_SECOND, self._tick)

    @property
    def reply(self) -> ReplyView:
        """The reply."""
        return self.query_one("#reply", ReplyView)

    # --- which answer -------------------------------------------------------------------------------------------

    def on_screen_resume(self) -> None:
        """Read the answer that was asked for, if one was."""
        super().on_screen_resume()
        runs = self.desk.runs
        if runs.shown is not self._session:
            self._session = runs.shown
            self._ranks = None if runs.shown is None else TaskRanks(runs.shown.state.map)
            self._take(None, 0)
        self._is_asked = runs.answer is not None
        self._open_asked()

    def _open_asked(self) -> None:
        """Open the answer that was asked for, as soon as all of its run was read."""
        runs, session = self.desk.runs, self._session
        if not self._is_asked or runs.answer is None or session is None:
            return
        if session.reading and not session.computing:
            session.pull()
            self.query_one("#answer-title", Static).update(f" run {session.run}: {session.waiting_for}")
        if not session.reading or session.computing:
            self._open(*runs.answer)
            runs.answer = None
            self._is_asked = False

    def _open(self, generation: int, atom: int) -> None:
        """Read an answer of the run that is shown."""
        session = self._session
        if session is None or session.run is None:
            return
        number = session.state.map.number_of(generation)
        of_task: frozenset[int] = frozenset()  # of a branch, about which signals say nothing
        if number is not None:
            task = session.state.map.answers[number].task
            of_task = frozenset(answer.generation for answer in session.state.map.answers if answer.task == task)
        self.read(session.database, session.run, generation, atom, of_task)

    @work(thread=True, exclusive=True, group="answer", exit_on_error=False)
    def read(self, database: Path, run: int, generation: int, atom: int, of_task: frozenset[int]) -> None:
        """Read an answer beside the screen."""
        with failures_told(self.app, self.say_error):
            document = load_answer(database, run, generation, of_task)
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take, document, atom)

    def _take(self, document: AnswerDocument | None, atom: int) -> None:
        self._document = document
        self._token = 0
        if document is not None and atom < len(document.atoms):
            self._token = document.fault_of(atom) or 0
        self._player = TokenPlayer(0 if document is None else len(document.tokens))
        self._show_document()

    def look_changed(self) -> None:
        """Draw the cells with another look."""
        self._show_document()

    def on_resize(self) -> None:
        """Cut the lines to the new width."""
        self.call_after_refresh(self._draw)

    def on_sized_panel_resized(self) -> None:
        """Fill the panel of the token anew."""
        self._draw()

    def _show_document(self) -> None:
        document, session = self._document, self._session
        if document is None or session is None:
            self.reply.show(None, self.desk.look, ())
            for name in ("#problem", "#reference", "#token", "#atom-line", "#confidences", "#course"):
                self.query_one(name, Static).update("")
            self._problem_drawn = None
            self.query_one("#answer-title", Static).update(f" {NO_ANSWER}")
            self.refresh_bindings()
            return
        function = session.state.map.function
        values = document.values_of(function)
        place = shade_scale(function).place
        self.reply.show(document, self.desk.look, [None if value is None else place(value) for value in values])
        self.query_one("#reference", Static).update(
            "\n".join(f"right: {visible(line)}" for line in document.problem.reference.split("\n"))
        )
        self._draw()
        self.refresh_bindings()

    # --- drawing ------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        document, session = self._document, self._session
        if document is None or session is None or not self.is_mounted:
            return
        width = self.size.width
        task = session.state.view.tasks.get(document.problem.task)
        title = answer_lines.title_line(document, 0 if task is None else task.total, width)
        self.query_one("#answer-title", Static).update(title)
        player = self._player
        shown = None if player.arrived >= player.total else player.arrived
        self.reply.mark(self._token, shown)
        panel = self.query_one("#token", Static)
        inside = panel.content_size
        lines = answer_lines.token_lines(document, self._token, max(1, inside.height), max(8, inside.width))
        panel.update("\n".join(lines))
        self.query_one("#atom-line", Static).update(f" {self._atom_line(width - 2)}")
        atom = document.atom_of(self._token)
        self._draw_problem(document, atom)
        confidences = answer_lines.confidence_lines(document, atom, self._ranks, width - 2)
        self.query_one("#confidences", Static).update("\n".join(f" {line}" for line in confidences))
        self._draw_course()

    def _draw_problem(self, document: AnswerDocument, atom: int | None) -> None:
        """Draw the problem; of a maze again for every atom, as the place of that one is marked."""
        problem = document.problem
        drawn = document.generation, self.desk.look, atom if problem.task == MAZE else None
        if drawn != self._problem_drawn:
            self._problem_drawn = drawn
            text = picture(self.desk.look, problem.task, problem.text, problem.reference, document.atoms, atom)
            self.query_one("#problem", Static).update(text)

    def _atom_line(self, width: int) -> str:
        return "" if self._document is None else answer_lines.atom_line(self._document, self._token, width)

    def _draw_course(self) -> None:
        scrubber, player = self.query_one("#course", Scrubber), self._player
        if self._document is None:
            return
        if player.playing or player.arrived < player.total:
            scrubber.update(played_words(player, "tokens", scrubber.bar_width))
        else:
            scrubber.update(f" {answer_lines.course_line(self._document, self._token, self.size.width - 2)}")

    # --- steps --------------------------------------------------------------------------------------------------

    def _go_to(self, token: int | None) -> None:
        """Go to a token; while tokens arrive again, show those up to it."""
        if token is None or self._document is None or not self._document.tokens:
            return
        self._token = min(max(0, token), len(self._document.tokens) - 1)
        if self._player.playing or self._player.arrived < self._player.total:
            self._player.go_to(self._token + 1)
        self._draw()

    def on_reply_view_token_chosen(self, message: ReplyView.TokenChosen) -> None:
        """Go to the token that was clicked."""
        self._go_to(message.token)

    def action_token(self, step: int) -> None:
        """Go to the token before or after."""
        self._go_to(self._token + step)

    def action_atom(self, step: int) -> None:
        """Go to the atom before or after."""
        if self._document is not None:
            self._go_to(self._document.next_atom(self._token, step))

    def action_wrong(self, step: int) -> None:
        """Go to the next or previous atom that is not right."""
        if self._document is not None:
            found = self._document.next_atom(self._token, step, wrong=True)
            if found is None:
                self.say("no other atom on that side that is not right")
                return
            atom = self._document.atom_of(found)
            self._go_to(found if atom is None else self._document.fault_of(atom))

    def action_line(self, step: int) -> None:
        """Go to the line above or below."""
        if self._document is not None:
            self._go_to(self._document.token_in_line(self._token, step))

    def action_end(self, side: int) -> None:
        """Go to the first or the last token."""
        self._go_to(self._player.total - 1 if side > 0 else 0)

    def action_answer(self, step: int) -> None:
        """Open the answer before or after, as the map shows them."""
        session, document = self._session, self._document
        if session is None or document is None:
            return
        number = session.state.map.number_of(document.answer)
        place = None if number is None else session.state.map.answer_beside(Place(number, 0), step)
        if place is None:
            self.say("no other answer on that side")
            return
        self._open(session.state.map.answers[place.answer].generation, 0)

    def action_back(self) -> None:
        """Leave the search, or go back to where the answer was opened, on the map to the atom."""
        if self.query_one("#search").display:
            self._leave_search()
            return
        origin = self.desk.runs.answer_from
        if self._document is not None and origin != "replay":  # which has its own place
            self.desk.runs.answer = self._document.answer, self._document.atom_of(self._token) or 0
        self.post_message(ShowScreen(origin))

    def action_replay(self) -> None:
        """Change atoms of this answer and let the model go on."""
        document, session = self._document, self._session
        if session is not None and session.foreign:
            self.say(f"run {session.run} is of {session.database.name}: open that file with --db to replay its answers")
            return
        if document is None or document.status is None or not document.atoms:
            self.say("only an answer that is finished and has atoms can be replayed")
            return
        self.desk.runs.answer = document.generation, document.atom_of(self._token) or 0
        self.post_message(ShowScreen("replay"))

    # --- words --------------------------------------------------------------------------------------------------

    def action_texts(self) -> None:
        """Show every confidence of the atom, and prompt and raw reply with their control characters."""
        if self._document is not None:
            document = self._document
            atom = document.atom_of(self._token)
            confidences = answer_lines.confidence_lines(document, atom, self._ranks, TEXT_WIDTH)
            parts = (
                *((("confidences of the atom", "\n".join(confidences)),) if confidences else ()),
                ("raw reply", document.reply_text()),
                ("prompt", document.prompt_text()),
                ("right answer", "\n".join(map(visible, document.problem.reference.split("\n")))),
            )
            text = "\n".join(f"── {title} ──\n{words}" for title, words in parts)
            self.app.push_screen(TextToRead(f"Answer {document.problem.position + 1}", text))

    def action_search(self) -> None:
        """Ask for words to find in the reply."""
        field = self.query_one("#search", Input)
        field.display = True
        field.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Find the words."""
        self._words = event.value
        self._leave_search()
        self.action_search_on()

    def _leave_search(self) -> None:
        self.query_one("#search").display = False
        self.reply.focus()
        self.refresh_bindings()

    def action_search_on(self) -> None:
        """Go to the next place with the words."""
        if self._document is not None and self._words:
            found = self._document.find(self._words, self._token)
            if found is None:
                self.say(f"the reply does not hold {self._words}")
            self._go_to(found)

    def action_copy(self) -> None:
        """Copy what is said of the token."""
        if self._document is not None:
            lines = answer_lines.token_lines(self._document, self._token, 100, 200)
            self.app.copy_to_clipboard("\n".join([*lines, self._atom_line(400)]))
            self.say("what is said of the token was copied")

    # --- play ---------------------------------------------------------------------------------------------------

    def action_play(self) -> None:
        """Let the tokens arrive again, or pause."""
        if self._document is not None:
            self._player.toggle()
            self._ticked = time.monotonic()
            self._draw()
            self.refresh_bindings()

    def action_pause_play(self) -> None:
        """Let no more tokens arrive."""
        self.action_play()

    def action_speed(self, step: int) -> None:
        """Play faster or slower."""
        self._player.change_speed(step)
        self._draw_course()

    def on_scrubber_moved(self, message: Scrubber.Moved) -> None:
        """Show the tokens up to the place that was clicked."""
        if self._player.playing or self._player.arrived < self._player.total:
            self._go_to(round(message.share * self._player.total) - 1)

    def _tick(self) -> None:
        player = self._player
        if self.is_active:
            self._open_asked()
        if not player.playing or not self.is_active:
            return
        now = time.monotonic()
        before = player.arrived
        player.pass_time(now - self._ticked)
        self._ticked = now
        if player.arrived != before:
            self._token = max(0, player.arrived - 1)
            self._draw()
        if not player.playing:
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what needs an answer while there is none."""
        if action == "search_on":
            return bool(self._words)
        if action == "pause_play":
            return self._player.playing
        if action == "play" and self._player.playing:
            return False
        if action == "speed":
            return self._player.playing or self._player.arrived < self._player.total
        needs = {"token", "atom", "line", "end", "wrong", "answer", "texts", "search", "play", "copy", "replay"}
        return None if action in needs and self._document is None else True
