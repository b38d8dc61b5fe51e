"""The app: its screens, global keys, and the life of the one run that it computes.

Only what Setup paints is imported here.  numpy, the runner and the store take as long again (0.4 s measured), so they
are imported where they are first used, by Setup's worker at the latest.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import events, work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.screen import Screen
from textual.signal import Signal
from textual.widget import Widget

from salt_tui.app.dialogs import LineOfInput, Question, TextToRead
from salt_tui.app.help_text import help_text, key_names_text
from salt_tui.app.settings import keys_path, load_keys
from salt_tui.app.setup_screen import SetupScreen
from salt_tui.app.size_cover import SizeCover
from salt_tui.app.task_list import TaskList
from salt_tui.app.terminal import DESIGN_HEIGHT, DESIGN_WIDTH, MINIMUM_HEIGHT, MINIMUM_WIDTH, terminal_is_there
from salt_tui.app.worker_failures import failures_told
from salt_tui.palette import DrawingMode
from salt_tui.visible_text import visible

if TYPE_CHECKING:
    from salt_tui.app.run_session import RunSession
    from salt_tui.runner.request import RunRequest

Severity = Literal["information", "warning", "error"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_SECONDS = 0.02
TALL = 36
"""From so many rows on lists grow."""
TOAST_SECONDS = 4.0
STOP_SECONDS = 2.0
"""Within this time after it was asked to stop the child has ended."""


def _collect_from_now_on() -> None:
    """Let the collector work, on new objects only.

    What is loaded by now stays for good; looked through again by every full collection, it would hold the screen for a
    tenth of a second now and then.
    """
    gc.freeze()
    gc.enable()


def _live_screen() -> Screen[None]:
    from salt_tui.app.live_screen import LiveScreen

    return LiveScreen()


def _runs_screen() -> Screen[None]:
    from salt_tui.app.runs_screen import RunsScreen

    return RunsScreen()


class SaltApp(App[int]):
    """Opens on Setup, on a run to compute, or on the stored runs.

    Args:
        database: the file.
        request: a run to begin at once.
        mode: how cells are drawn.
        resume: number of a run to go on with at once.
    """

    CSS_PATH = "app.tcss"
    TITLE = "salt-tui"
    ENABLE_COMMAND_PALETTE = True
    PAUSE_GC_ON_SCROLL = True
    MODES: ClassVar[dict[str, str | Callable[[], Screen[None]]]] = {
        "setup": SetupScreen,
        "live": _live_screen,
        "runs": _runs_screen,
    }
    DEFAULT_MODE = "setup"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1,f2", "show_mode('setup')", "Setup", id="app.setup"),
        Binding("2,f3", "show_mode('live')", "Live", id="app.live"),
        Binding("3,f4", "show_mode('runs')", "Runs", id="app.runs"),
        Binding("question_mark,f1", "help", "Help", id="app.help"),
        Binding("K", "key_names", "Names of keys", id="app.key_names"),
        Binding("v", "drawing_mode", "Colours of the cells", id="app.drawing_mode"),
        Binding("q", "quit", "Quit", id="app.quit"),
        Binding("ctrl+c", "quit_now", "Quit without asking", priority=True, id="app.quit_now"),
        Binding("ctrl+z", "suspend_process", "Suspend", priority=True, id="app.suspend"),
        # Reached where the screen's own key of that name can do nothing now.
        Binding("r", "say_why_not('resume')", "Why nothing is resumed", id="why.not_resumed"),
        Binding("X", "say_why_not('stop')", "Why nothing is stopped", id="why.not_stopped"),
    ]

    def __init__(
        self, database: Path, request: RunRequest | None, mode: DrawingMode, *, resume: int | None = None
    ) -> None:
        """Make the app; nothing is read yet."""
        super().__init__(ansi_color=None if mode is DrawingMode.COLOUR else True)
        # Every screen gets one class of each list, and the stylesheet goes by them.
        self.HORIZONTAL_BREAKPOINTS = [(0, "-too-narrow"), (MINIMUM_WIDTH, "-narrow"), (DESIGN_WIDTH, "-wide")]
        self.VERTICAL_BREAKPOINTS = [
            (0, "-too-low"),
            (MINIMUM_HEIGHT, "-low"),
            (DESIGN_HEIGHT, "-high"),
            (TALL, "-tall"),
        ]
        self.database = database
        self.mode = mode
        self.session: RunSession | None = None
        self.computing: RunSession | None = None
        self.mode_changed: Signal[DrawingMode] = Signal(self, "drawing mode")
        self._request = request
        self._resume = resume
        self._leaving = False
        self._paused_by_suspension: RunSession | None = None
        self._keys: dict[str, str] = {}
        self._css_variables = self.get_css_variables()
        self._clashes: set[tuple[str | None, str | None]] = set()
        self.interrupted_run: int | None = None
        if mode is not DrawingMode.COLOUR:
            self.theme = "ansi-dark"

    def refresh_css(self, animate: bool = True) -> None:
        """Parse the stylesheet anew where a colour of the theme is another.

        Textual asks for it, twice, whenever a mode is shown for the first time: half of the time to a first screen.
        """
        variables = self.get_css_variables()
        if variables != self._css_variables:
            self._css_variables = variables
            super().refresh_css(animate)
        else:
            # The text of a screen that is new takes its colour from what is by now behind it.
            self.stylesheet.update(self, animate=animate)

    def _fatal_error(self) -> None:
        """End with one line instead of Textual's traceback with local variables; the traceback goes to a file."""
        self._close_messages_no_wait()

    @property
    def crash(self) -> BaseException | None:
        """The exception that ended the app, None after an orderly end."""
        return self._exception

    # --- life ---------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Take over the signals, set the user's keys, begin a run that was asked for."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` asks to be left running
                loop.add_signal_handler(number, self._leave_for, number)
        self.app_resume_signal.subscribe(self, self._redraw_after_stop)
        self.call_after_refresh(_collect_from_now_on)
        if keys_path().exists():
            keys, ignored = load_keys(set(binding_names()))
            self.set_keymap(keys)
            self._keys = keys
            if ignored:
                self.say("; ".join(ignored), severity="warning")
        if self._request is not None:
            self.start_run(self._request)
        elif self._resume is not None:
            self.resume_run(self._resume)

    def _leave_for(self, number: int) -> None:
        self.leave(128 + number if number != signal.SIGINT else 130)

    def leave(self, code: int) -> None:
        """Stop what computes, within `STOP_SECONDS`, and end the app."""
        if not self._leaving:
            self._leaving = True
            self.run_worker(self._stop_and_exit(code), group="leave", exit_on_error=False)

    def action_suspend_process(self) -> None:
        """Stop the process and its child: the terminal's stop signal does not reach the child."""
        computing = self.computing
        if computing is not None and computing.state.phase == "running" and computing.toggle_pause():
            self._paused_by_suspension = computing
        super().action_suspend_process()

    def _redraw_after_stop(self, _: object) -> None:
        """Wake the child and draw everything: the shell has written over the screen while the process was stopped."""
        paused, self._paused_by_suspension = self._paused_by_suspension, None
        if paused is not None and paused.state.phase == "paused":
            paused.toggle_pause()
        for screen in self.screen_stack:
            for widget in (screen, *screen.walk_children(Widget)):
                widget.refresh()

    async def _stop_and_exit(self, code: int) -> None:
        computing = self.computing
        if computing is not None and computing.computing:
            computing.stop()
            loop = asyncio.get_running_loop()
            deadline = loop.time() + STOP_SECONDS
            while not computing.wait(0) and loop.time() < deadline:
                await asyncio.sleep(_POLL_SECONDS)
            computing.pull()
            if computing.state.phase != "finished":
                self.interrupted_run = computing.run
        for session in {self.session, computing} - {None}:
            if session is not None:
                session.close()
        if not terminal_is_there():
            # Textual's writer thread has died on the closed terminal and its end would be waited for for ever.
            os._exit(code)
        self.exit(code)

    async def action_quit(self) -> None:
        """Quit; ask first while a run computes."""
        computing = self.computing
        if computing is None or not computing.computing:
            self.leave(0)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.leave(0)

        self.push_screen(Question("Quit while a run computes?", "It stops, and can be resumed bit for bit."), answered)

    def action_quit_now(self) -> None:
        """Quit without asking."""
        self.leave(130 if self.computing is not None and self.computing.computing else 0)

    # --- runs ---------------------------------------------------------------------------------------------------

    def start_run(self, request: RunRequest) -> None:
        """Begin a run and show it."""
        from salt_tui.app.run_session import RunSession

        if self._is_busy():
            return
        self._show_session(RunSession.begin(request, self.database), computing=True)

    def resume_run(self, run: int, *, allow_environment_change: bool = False) -> None:
        """Go on with a stored run and show it; a finished one is only shown.

        Where the environment is another, Live asks whether to allow it, and comes back here.
        """
        from salt_tui.app.run_session import RunSession
        from salt_tui.store.errors import StoreError
        from salt_tui.store.queries import open_queries

        if self._is_busy():
            return
        try:
            with open_queries(self.database) as queries:
                stored = queries.run_record(run)
        except StoreError as error:
            self.say(str(error), severity="error")
            return
        if stored.state == "finished":
            self.say(f"run {run} is finished: nothing is left to do")
            self.open_run(run)
        else:
            session = RunSession.resume(stored, self.database, allow_environment_change=allow_environment_change)
            self._show_session(session, computing=True)

    def open_run(self, run: int) -> None:
        """Show a stored run, or the one that computes."""
        from salt_tui.app.run_session import RunSession

        if self.computing is not None and self.computing.run == run and self.computing.computing:
            self._show_session(self.computing, computing=True)
        else:
            self._show_session(RunSession.stored(run, self.database), computing=False)

    def forget_run(self, run: int) -> None:
        """Stop showing a run that was deleted."""
        if self.session is not None and self.session.run == run:
            self.session.close()
            self.session = None
        self.say(f"run {run} is deleted")

    def _is_busy(self) -> bool:
        busy = self.computing is not None and self.computing.computing
        if busy:
            self.say("a run computes already: stop it first (2, then X)", severity="warning")
        return busy

    def _show_session(self, session: RunSession, *, computing: bool) -> None:
        self._take_session(session, computing=computing)
        self.switch_mode("live")
        gc.collect()
        _collect_from_now_on()

    def _take_session(self, session: RunSession, *, computing: bool) -> None:
        """Show a run from now on, and close those that are neither shown nor at work."""
        before = {self.session, self.computing} - {None, session}
        self.session = session
        if computing:
            self.computing = session
        for left in before:
            if left is not None and not left.computing:
                left.close()

    def export(self, run: int) -> None:
        """Ask for a file and export a run to it."""

        def answered(name: str | None) -> None:
            if name and name.strip():
                self._export_to(run, Path(name.strip()))

        self.push_screen(
            LineOfInput(f"Export run {run} to", f"run-{run}.csv", "csv: atoms; jsonl: answers; db: a database"),
            answered,
        )

    def _export_to(self, run: int, named: Path) -> None:
        try:
            target = named.expanduser().absolute()
            there = target.is_file()
        except (OSError, RuntimeError) as error:
            self.say(f"{named}: {error}", severity="error")
            return
        if not there:
            self.write_export(run, target)
            return

        def replace(yes: bool | None) -> None:
            if yes:
                self.write_export(run, target, overwrite=True)

        self.push_screen(Question(f"Replace {target.name}?", f"What {target} holds now is lost."), replace)

    @work(thread=True, group="export", exit_on_error=False)
    def write_export(self, run: int, target: Path, overwrite: bool = False) -> None:
        """Write an export beside the screen."""
        from salt_tui.exports.export import export_run

        with failures_told(self, self.say_error):
            export_run(self.database, run, target, overwrite=overwrite)
            self.call_from_thread(self.say, f"run {run} is in {target.name} in {target.parent}")

    # --- keys of the whole app ----------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Keep keys and pastes from a screen that nobody sees; those that leave the app pass."""
        if isinstance(event, events.Key | events.Paste) and self._is_covered and not self._leaves(event):
            return
        await super().on_event(event)

    @property
    def _is_covered(self) -> bool:
        return bool(self.screen_stack) and any(cover.display for cover in self.screen.query(SizeCover))

    def _leaves(self, event: events.Event) -> bool:
        names = {
            key.strip()
            for binding in self.BINDINGS
            if isinstance(binding, Binding) and binding.id in LEAVING
            for key in self._keys.get(binding.id, binding.key).split(",")
        }
        return isinstance(event, events.Key) and not names.isdisjoint(event.aliases)

    def action_show_mode(self, mode: str) -> None:
        """Go to a screen; Live shows the run that computes before a stored one."""
        if len(self.screen_stack) > 1:
            return
        if mode == "live" and self.computing is not None and self.computing.computing:
            self._take_session(self.computing, computing=True)
        self.switch_mode(mode)

    def action_leave_live(self) -> None:
        """Close the log of Live; go to the list of runs where it is closed."""
        from salt_tui.app.live_screen import LiveScreen

        if isinstance(self.screen, LiveScreen) and self.screen.query_one("#log").display:
            self.screen.action_log()
        else:
            self.action_show_mode("runs")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave r and X alone on screens that have none."""
        return self.current_mode in {"live", "runs"} if action == "say_why_not" else True

    def action_say_why_not(self, what: str) -> None:
        """Say why the run that is shown, or is under the cursor, is not resumed or not stopped."""
        from salt_tui.app.runs_screen import RunsScreen
        from salt_tui.app.runs_state import why_not

        if isinstance(self.screen, RunsScreen):
            chosen = self.screen.chosen
            run, state = (None, "") if chosen is None else (chosen.run, chosen.state)
        else:
            run, state = (None, "") if self.session is None else (self.session.run, self.session.state.phase)
        computing = self.computing
        if run is None:
            self.say("no run is chosen" if isinstance(self.screen, RunsScreen) else "no run is open")
        elif what == "stop" and computing is not None and computing.computing and computing.run == run:
            self.say(f"2 shows run {run}, X stops it there")
        else:
            self.say(why_not(what, run, state))

    def action_key_names(self) -> None:
        """List the names by which keys can be changed."""
        if len(self.screen_stack) > 1:
            return
        named = [
            (binding.id, self._keys.get(binding.id, binding.key), binding.tooltip or binding.description)
            for owner in binding_owners()
            for binding in owner.BINDINGS
            if isinstance(binding, Binding) and binding.id
        ]
        self.push_screen(TextToRead("Names of keys", key_names_text(named, str(keys_path()))))

    def action_help(self) -> None:
        """Explain keys, glyphs, shades and metrics."""
        if len(self.screen_stack) > 1:
            return
        self.push_screen(TextToRead("Help", help_text(self.key_groups(), self.mode, str(keys_path()))))

    def key_groups(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return keys and what they do, by part, of what the screen shows."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for binding, _ in self._bindings_of(self.screen):
            part = PARTS.get((binding.id or "").partition(".")[0])
            if part is not None:
                words = binding.tooltip or binding.description
                groups.setdefault(part, []).append((self.shown_keys(binding), words))
        return [(title, groups[title]) for title in PARTS.values() if title in groups]

    def _bindings_of(self, screen: Screen[object]) -> list[tuple[Binding, DOMNode]]:
        """Return the bindings of the widgets that a screen shows, of the screen and of the app, with their owners."""
        owners: list[DOMNode] = [widget for widget in screen.walk_children(Widget) if widget.display]
        return [
            (binding, owner)
            for owner in (*owners, screen, self)
            for binding in owner.__class__.BINDINGS
            if isinstance(binding, Binding) and binding.id
        ]

    def shown_keys(self, binding: Binding) -> str:
        """Return the keys of a binding as the user set them, readable."""
        keys = self._keys.get(binding.id or "", binding.key)
        return " ".join(self.get_key_display(Binding(key.strip(), "")) for key in keys.split(","))

    def handle_bindings_clash(self, clashed_bindings: set[Binding], node: DOMNode) -> None:
        """Say once that a key of the user's file took the place of another."""
        for binding in clashed_bindings:
            clash = (binding.id, binding.key)
            if clash not in self._clashes:
                self._clashes.add(clash)
                self.say(f"{keys_path()}: {binding.key} is taken from {binding.id}", severity="warning")

    def action_drawing_mode(self) -> None:
        """Draw with colours, with sixteen, or with none."""
        modes = list(DrawingMode)
        self.mode = modes[(modes.index(self.mode) + 1) % len(modes)]
        self.mode_changed.publish(self.mode)
        self.say(COLOURS[self.mode])

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """List in the palette what has a key and can be done now; the palette adds nothing of its own."""
        for binding, owner in self._bindings_of(screen):
            if (binding.id or "").partition(".")[0] not in PARTS:
                continue
            # Textual's own question before it runs an action or greys its key.
            if self._check_action_state(binding.action, owner):
                yield SystemCommand(
                    binding.tooltip or binding.description,
                    f"key {self.shown_keys(binding)}",
                    self._runner(owner, binding.action),
                )

    def _runner(self, owner: DOMNode, action: str) -> Callable[[], None]:
        def run() -> None:
            self.call_later(self.run_action, action, owner)

        return run

    # --- words --------------------------------------------------------------------------------------------------

    def say(self, line: str, *, severity: Severity = "information") -> None:
        """Tell the user one line, in place of the one before."""
        self.clear_notifications()
        self.notify(visible(line, 300), severity=severity, markup=False, timeout=TOAST_SECONDS)

    def say_error(self, line: str) -> None:
        """Tell the user what failed."""
        self.say(line, severity="error")


LEAVING = {"app.quit", "app.quit_now", "app.suspend"}
"""Keys that work in a terminal that is too small for anything else."""

COLOURS = {
    DrawingMode.COLOUR: "colours: all, shades as backgrounds",
    DrawingMode.ANSI: "colours: 16, shades as blocks",
    DrawingMode.PLAIN: "colours: none, shades as digits",
}

PARTS = {"map": "Map", "live": "Live", "setup": "Setup", "tasks": "Tasks", "runs": "Runs", "app": "Everywhere"}


def binding_owners() -> tuple[type[DOMNode], ...]:
    """Return every class that has bindings."""
    from salt_tui.app.atom_heatmap import AtomHeatmap
    from salt_tui.app.live_screen import LiveScreen
    from salt_tui.app.runs_screen import RunsScreen, RunTable

    return (
        SaltApp,
        AtomHeatmap,
        LiveScreen,
        SetupScreen,
        TaskList,
        RunTable,
        RunsScreen,
        Question,
        LineOfInput,
        TextToRead,
    )


def binding_names() -> list[str]:
    """Return the ids of all bindings."""
    return [
        binding.id
        for owner in binding_owners()
        for binding in owner.BINDINGS
        if isinstance(binding, Binding) and binding.id
    ]
