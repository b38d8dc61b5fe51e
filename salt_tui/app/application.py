"""The app: its screens, what they ask of it, the keys that work everywhere, and its end.

Only what Setup paints is imported here.  numpy, the runner and the store take as long again (0.4 s measured), so they
are imported where they are first used, by Setup's worker at the latest.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from salt_tui.app.desk import Desk, Tab
from salt_tui.app.dialogs import Question, TextToRead, text_width
from salt_tui.app.export_window import ExportWindow
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.help_text import help_text, key_names_text
from salt_tui.app.key_lists import all_bindings, bindings_on, keys_of, part_of, words_of
from salt_tui.app.messages import (
    CompareRuns,
    ExportRuns,
    OpenAnswer,
    OpenRun,
    OpenStudies,
    ResumeRun,
    RunsDeleted,
    Say,
    Severity,
    ShowScreen,
    StartRun,
)
from salt_tui.app.screens import SCREENS
from salt_tui.app.settings import keys_path, load_keys, load_view, save_view
from salt_tui.app.size_cover import SizeCover
from salt_tui.app.terminal import DESIGN_HEIGHT, DESIGN_WIDTH, MINIMUM_HEIGHT, MINIMUM_WIDTH, terminal_is_there
from salt_tui.palette import DrawingMode, Look, Shading
from salt_tui.visible_text import visible

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_SECONDS = 0.02
TALL = 36
"""From so many rows on lists grow."""
TOAST_SECONDS = 4.0
STOP_SECONDS = 2.0
"""Within this time after it was asked to stop the child has ended."""
DARK, LIGHT = "textual-dark", "textual-light"
ANSI_DARK, ANSI_LIGHT = "ansi-dark", "ansi-light"


def _collect_from_now_on() -> None:
    """Let the collector work, on new objects only.

    What is loaded by now stays for good; looked through again by every full collection, it would hold the screen for a
    tenth of a second now and then.
    """
    gc.freeze()
    gc.enable()


class SaltApp(App[int]):
    """Opens on Setup, or on a run.

    Args:
        database: the file.
        look: how cells are drawn.
        first: opens, begins or resumes a run as soon as the app is there; None opens Setup.
    """

    CSS_PATH = "app.tcss"
    TITLE = "salt-tui"
    ENABLE_COMMAND_PALETTE = True
    PAUSE_GC_ON_SCROLL = True
    DEFAULT_MODE = "setup"

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(
                entry.keys,
                f"show_screen('{entry.name}')",
                entry.title,
                tooltip=f"{entry.title}: {entry.shows}",
                id=f"app.{entry.name}",
            )
            for entry in SCREENS.values()
            if entry.keys
        ),
        Binding("question_mark,f1", "help", "Help", id="app.help"),
        Binding("K", "key_names", "Names of keys", id="app.key_names"),
        Binding("v", "shading", "Colours", tooltip="What colours say", id="app.shading"),
        Binding("V", "ground", "Dark or light ground", id="app.ground"),
        Binding("q", "quit", "Quit", id="app.quit"),
        Binding("ctrl+c", "quit_now", "Quit without asking", priority=True, id="app.quit_now"),
        Binding("ctrl+z", "suspend_process", "Suspend", priority=True, id="app.suspend"),
    ]

    def __init__(self, database: Path, look: Look, first: Callable[[Desk], str | None] | None = None) -> None:
        """Make the app; nothing is read yet."""
        super().__init__(ansi_color=None if look.mode is DrawingMode.COLOUR else True)
        # Every screen gets one class of each list, and the stylesheet goes by them.
        self.HORIZONTAL_BREAKPOINTS = [(0, "-too-narrow"), (MINIMUM_WIDTH, "-narrow"), (DESIGN_WIDTH, "-wide")]
        self.VERTICAL_BREAKPOINTS = [
            (0, "-too-low"),
            (MINIMUM_HEIGHT, "-low"),
            (DESIGN_HEIGHT, "-high"),
            (TALL, "-tall"),
        ]
        tabs = [Tab(entry.name, entry.title, entry.keys.partition(",")[0]) for entry in SCREENS.values() if entry.keys]
        self.desk = Desk(database, look, tabs)
        for entry in SCREENS.values():
            self.add_mode(entry.name, partial(_make_screen, entry.name, self.desk))
        self._first = first
        self._leaving = False
        self._keys: dict[str, str] = {}
        self._css_variables = self.get_css_variables()
        self._clashes: set[tuple[str | None, str | None]] = set()
        self._set_theme()

    def _set_theme(self) -> None:
        look = self.desk.look
        if look.mode is DrawingMode.COLOUR:
            self.theme = LIGHT if look.light else DARK
        else:
            self.theme = ANSI_LIGHT if look.light else ANSI_DARK

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
            # Who ignores a hang-up asks to be left running, which an app without its terminal cannot be: it would read
            # the end of its input for ever.  `run` can.
            if number == signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._leave_for, number)
        self.app_resume_signal.subscribe(self, self._redraw_after_stop)
        self.call_after_refresh(_collect_from_now_on)
        if keys_path().exists():
            keys, ignored = load_keys({str(binding.id) for binding in all_bindings(type(self))})
            self.set_keymap(keys)
            self._keys = keys
            if ignored:
                self.say("; ".join(ignored), severity="warning")
        if self._first is not None:
            self._show_run(self._first)

    def _leave_for(self, number: int) -> None:
        self.leave(128 + number if number != signal.SIGINT else 130)

    def leave(self, code: int) -> None:
        """Stop what computes, within `STOP_SECONDS`, and end the app."""
        if not self._leaving:
            self._leaving = True
            self.run_worker(self._stop_and_exit(code), group="leave", exit_on_error=False)

    async def _stop_and_exit(self, code: int) -> None:
        desk = self.desk
        if desk.loaded:
            working = desk.working
            if working:
                desk.runs.stop()
            loop = asyncio.get_running_loop()
            deadline = loop.time() + STOP_SECONDS
            released = desk.keeper.release()
            while (desk.working or not released) and loop.time() < deadline:
                await asyncio.sleep(_POLL_SECONDS)
                released = desk.keeper.is_free
            if working:
                desk.runs.note_interrupted()
            desk.runs.close()
        if not terminal_is_there():
            # Textual's writer thread has died on the closed terminal and its end would be waited for for ever.
            os._exit(code)
        self.exit(code)

    def action_suspend_process(self) -> None:
        """Stop the process and its child: the terminal's stop signal does not reach the child."""
        if self.desk.loaded:
            self.desk.runs.suspend()
        super().action_suspend_process()

    def _redraw_after_stop(self, _: object) -> None:
        """Wake the child and draw everything: the shell has written over the screen while the process was stopped."""
        if self.desk.loaded:
            self.desk.runs.wake()
        for screen in self.screen_stack:
            for widget in (screen, *screen.walk_children(Widget)):
                widget.refresh()

    async def action_quit(self) -> None:
        """Quit; ask first while something computes."""
        working = self.desk.working
        if not working:
            self.leave(0)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.leave(0)

        self.push_screen(
            Question(f"Quit while {working} computes?", "It stops, and can be resumed bit for bit."), answered
        )

    def action_quit_now(self) -> None:
        """Quit without asking."""
        self.leave(130 if self.desk.working else 0)

    # --- what screens ask for -----------------------------------------------------------------------------------

    def on_say(self, message: Say) -> None:
        """Tell the user a line."""
        self.say(message.line, severity=message.severity)

    def on_show_screen(self, message: ShowScreen) -> None:
        """Go to a screen."""
        self.action_show_screen(message.name)

    def on_start_run(self, message: StartRun) -> None:
        """Begin the run that was chosen."""
        from salt_tui.app.setup_state import make_request

        self._show_run(lambda desk: desk.runs.begin(make_request(message.choices)))

    def on_resume_run(self, message: ResumeRun) -> None:
        """Go on with a stored run."""
        allowed = message.allow_environment_change
        self._show_run(lambda desk: desk.runs.resume(message.run, allow_environment_change=allowed))

    def on_open_run(self, message: OpenRun) -> None:
        """Show a stored run."""
        self._show_run(lambda desk: desk.runs.open(message.run))

    def on_open_answer(self, message: OpenAnswer) -> None:
        """Show an answer of the run on the screen."""
        runs, shown = self.desk.runs, self.desk.runs.shown
        if message.run is not None:
            place = message.database or runs.database
            if shown is None or (shown.run, shown.database) != (message.run, place):
                runs.open(message.run, message.database)
        runs.answer = message.generation, message.atom
        runs.answer_from = message.origin
        self.switch_mode("answer")

    def on_compare_runs(self, message: CompareRuns) -> None:
        """Show what changed between two runs."""
        self.desk.load()
        self.desk.runs.compared = message.first, message.second
        self.switch_mode("compare")

    def on_open_studies(self, message: OpenStudies) -> None:
        """Show the studies of a run."""
        self.desk.load()
        self.desk.runs.studied = message.run
        self.switch_mode("studies")

    def _show_run(self, open_run: Callable[[Desk], str | None]) -> None:
        """Open a run and go to Live; say why not where it cannot be opened."""
        self.desk.load()
        from salt_tui.app.open_runs import BusyError
        from salt_tui.store.errors import StoreError

        try:
            line = open_run(self.desk)
        except (BusyError, StoreError) as error:
            self.say(str(error), severity="warning" if isinstance(error, BusyError) else "error")
            return
        self.switch_mode("live")
        if line:
            self.say(line)
        gc.collect()
        _collect_from_now_on()

    def on_export_runs(self, message: ExportRuns) -> None:
        """Ask for a file and export runs to it."""

        def exported(line: str | None) -> None:
            if line:
                self.say(line)

        self.push_screen(ExportWindow(message.database or self.desk.database, message.runs), exported)

    def on_runs_deleted(self, message: RunsDeleted) -> None:
        """Stop showing a run that was deleted, and say which were."""
        for run in message.runs:
            if self.desk.loaded:
                self.desk.runs.forget(run)
        numbers = ", ".join(map(str, message.runs))
        self.say(f"run {numbers} is deleted" if len(message.runs) == 1 else f"runs {numbers} are deleted")

    # --- keys of the whole app ----------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Ignore keys and pastes while the screen is covered; the keys that leave the app still work."""
        if isinstance(event, events.Key | events.Paste) and self._is_covered and not self._leaves(event):
            return
        await super().on_event(event)

    @property
    def _is_covered(self) -> bool:
        return bool(self.screen_stack) and any(cover.display for cover in self.screen.query(SizeCover))

    def _leaves(self, event: events.Event) -> bool:
        names = {
            key
            for binding in self.BINDINGS
            if isinstance(binding, Binding) and binding.id in LEAVING
            for key in keys_of(binding, self._keys)
        }
        return isinstance(event, events.Key) and not names.isdisjoint(event.aliases)

    def action_show_screen(self, name: str) -> None:
        """Go to a screen; Live shows the run that computes before a stored one, Reliability one chosen in a list."""
        if isinstance(self.screen, ModalScreen):
            return
        run = self.screen.run_of_interest if isinstance(self.screen, FramedScreen) else None
        if name == "reliability" and run is not None:
            self.desk.load()
            shown = self.desk.runs.shown
            if shown is None or shown.foreign or shown.run != run:
                self.desk.runs.open(run)
        if name == "live" and self.desk.loaded:
            self.desk.runs.show_computed()
        self.switch_mode(name)

    def action_key_names(self) -> None:
        """List the names by which keys can be changed."""
        if isinstance(self.screen, ModalScreen):
            return
        named = [
            (str(binding.id), self._keys.get(str(binding.id), binding.key), words_of(binding))
            for binding in all_bindings(type(self))
        ]
        self.push_screen(TextToRead("Names of keys", key_names_text(named, str(keys_path()))))

    def action_help(self) -> None:
        """Explain keys, glyphs, shades and metrics."""
        if not isinstance(self.screen, ModalScreen):
            text = help_text(self.key_groups(), self.desk.look, str(keys_path()), text_width(self.size.width))
            self.push_screen(TextToRead("Help", text))

    def key_groups(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return keys and what they do, by part: those of this screen first, those of the whole app last."""
        groups: dict[str, dict[tuple[DOMNode, str], Binding]] = {}
        for binding, owner in bindings_on(self.screen, self):
            part = part_of(binding)
            if part is not None:
                place = owner, self.shown_keys(binding)
                there = groups.setdefault(part, {}).setdefault(place, binding)
                # A key that does one thing or another is listed once, with what it does now.
                if there is not binding and self._check_action_state(binding.action, owner):
                    groups[part][place] = binding
        return [
            (part, [(keys, words_of(binding)) for (_, keys), binding in listed.items()])
            for part, listed in groups.items()
        ]

    def shown_keys(self, binding: Binding) -> str:
        """Return the keys of a binding as the user set them, readable."""
        return " ".join(self.get_key_display(Binding(key, "")) for key in keys_of(binding, self._keys))

    def handle_bindings_clash(self, clashed_bindings: set[Binding], node: DOMNode) -> None:
        """Say once that a key of the user's file took the place of another."""
        for binding in clashed_bindings:
            clash = (binding.id, binding.key)
            # A binding with several keys clashes with itself when the file gives it one.
            own = binding.id in self._keys and binding.key in keys_of(binding, self._keys)
            if clash not in self._clashes and not own:
                self._clashes.add(clash)
                self.say(f"{keys_path()}: {binding.key} is taken from {binding.id}", severity="warning")

    def action_shading(self) -> None:
        """Let colours say verdict and strength, strength alone, or nothing."""
        shadings = list(Shading)
        look = self.desk.look
        self._take_look(replace(look, shading=shadings[(shadings.index(look.shading) + 1) % len(shadings)]))
        save_view(replace(load_view(), shading=self.desk.look.shading.value))
        self.say(f"cells show {self.desk.look.shading.value}")

    def action_ground(self) -> None:
        """Draw on a light ground instead of a dark one, or the reverse."""
        self._take_look(replace(self.desk.look, light=not self.desk.look.light))

    def _take_look(self, look: Look) -> None:
        self.desk.look = look
        self._set_theme()
        if isinstance(self.screen, FramedScreen):
            self.screen.take_look()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """List in the palette what has a key and can be done now; the palette adds nothing of its own."""
        for binding, owner in bindings_on(screen, self):
            # Textual's own question before it runs an action or greys its key.
            if part_of(binding) is not None and self._check_action_state(binding.action, owner):
                yield SystemCommand(
                    words_of(binding),
                    f"key {self.shown_keys(binding)}",
                    partial(self.call_later, self.run_action, binding.action, owner),
                )

    # --- words --------------------------------------------------------------------------------------------------

    def say(self, line: str, *, severity: Severity = "information") -> None:
        """Tell the user one line, in place of the one before."""
        self.clear_notifications()
        self.notify(visible(line, 300), severity=severity, markup=False, timeout=TOAST_SECONDS)


LEAVING = {"app.quit", "app.quit_now", "app.suspend"}
"""Keys that work in a terminal that is too small for anything else."""


def _make_screen(name: str, desk: Desk) -> Screen[None]:
    return SCREENS[name].load()(desk)
