"""The parts of Replay: an answer with edits, what the model writes then, and the branches.  No keys here."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.widgets import Static

from salt_tui.app.desk import Desk
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.live_lines import progress_bar
from salt_tui.app.replay_state import ReplayState
from salt_tui.palette import draw_cell
from salt_tui.runner.background import BackgroundRun
from salt_tui.store.records import UnitRecord
from salt_tui.visible_text import visible

NO_ANSWER = "No answer is open.  i in an answer opens it here."


class ReplayBody(FramedScreen):
    """Draws a `ReplayState` and what is being computed; a subclass computes it and has the keys."""

    def __init__(self, desk: Desk) -> None:
        """Start without an answer."""
        super().__init__(desk)
        desk.load()
        self.state: ReplayState | None = None
        self._computing: BackgroundRun | None = None
        self._waiting = False
        self._words = ""
        self._written = b""
        self._experiment: tuple[int, int] | None = None

    def compose_body(self) -> ComposeResult:
        """Lay the parts out."""
        yield Static(f" {NO_ANSWER}", id="replay-title", markup=False)
        with VerticalScroll(id="replay-texts", can_focus=False):
            yield Static(id="replay-original", markup=False)
            yield Static(id="replay-replayed", markup=False)
        yield Static(id="replay-summary", markup=False)
        with VerticalScroll(id="replay-branches", can_focus=False):
            yield Static(id="replay-tree", markup=False)
        yield Static(id="replay-progress", markup=False)

    def look_changed(self) -> None:
        """Draw with another look."""
        self.draw_all()

    def draw_all(self) -> None:
        """Draw every part."""
        state = self.state
        if state is None or not self.is_mounted:
            return
        self.set_text("replay-title", f" {state.title()}")
        self.query_one("#replay-original", Static).update(self._edited_text(state))
        self.query_one("#replay-replayed", Static).update(self._replayed(state))
        self.query_one("#replay-summary", Static).update("\n".join(f" {line}" for line in state.summary()))
        self._draw_tree(state)
        self.set_text("replay-progress", f" {self._progress()}")
        self.refresh_bindings()

    def _draw_tree(self, state: ReplayState) -> None:
        rows = state.tree() if state.branches else []
        text = Text("\n").join(Text(f" {row.text}", "bold" if row.shown else "") for row in rows)
        text.no_wrap = True
        self.query_one("#replay-tree", Static).update(text)
        here = next((number for number, row in enumerate(rows) if row.shown), 0)
        self.query_one("#replay-branches", VerticalScroll).scroll_to_region(
            Region(0, here, 1, 1), animate=False, force=True
        )

    def _edited_text(self, state: ReplayState) -> Text:
        waiting = "" if state.replayed else ", not replayed yet"
        text = Text(f"{state.base_name()}, edits in brackets{waiting}\n")
        for unit in state.atoms:
            edit = state.edits.get(unit.index)
            if edit is None:
                text.append_text(self._atom(unit, edited=False, cursor=unit.index == state.cursor))
            else:
                text.append(f"[{visible(edit)}]", "bold reverse" if unit.index == state.cursor else "bold")
                text.append(" ")
        return text

    def _replayed(self, state: ReplayState) -> Text:
        """Draw what the model writes now, or the shown branch."""
        if self._computing is not None and self._experiment is None and self._written:
            text = Text("the model writes\n")
            for unit in state.atoms[: state.target]:
                edit = state.edits.get(unit.index)
                text.append(f"{visible(unit.text or '')} " if edit is None else f"[{visible(edit)}] ")
            words = self._written.decode("utf-8", "replace").replace("\n", " ")
            return text.append(f"{visible(words)} ~", "bold")
        shown = state.branch(state.shown)
        if shown is None:
            return Text("")
        edits = shown.edits
        before = {unit.index: unit.text for unit in state.atoms_of(shown.stored.parent)}
        source = visible(shown.stored.parent_name or "the answer")
        waiting = "" if state.replayed else ", without the edits that are not replayed yet"
        text = Text(f"{visible(shown.name)}, edited from {source}{waiting}; what differs is underlined\n")
        for unit in shown.atoms:
            atom = self._atom(unit, edited=unit.index in edits, cursor=False)
            if before.get(unit.index) != unit.text:
                atom.stylize("underline", 0, len(atom.plain.rstrip()))
            text.append_text(atom)
        return text

    def _atom(self, unit: UnitRecord, *, edited: bool, cursor: bool) -> Text:
        look = self.desk.look
        glyph, style = draw_cell(look, unit.status, look.steps - 1)
        words = visible(unit.text or "") + ("" if unit.status == "correct" else glyph)
        text = Text(f"[{words}]" if edited else words, "reverse" if cursor else style)
        text.append(" ", "")
        return text

    def _progress(self) -> str:
        if self._computing is not None and self._experiment is not None:
            done, total = self._experiment
            words = f"{done}/{total} replays" if total else self._words
            return f"planned experiment {progress_bar(done / total if total else 0.0, 20)} {words}"
        if self._computing is not None:
            return self._words or "begins"
        if self._waiting:
            return "waits for the run that computes; enter again stops waiting"
        return "   ".join(filter(None, (self._offer(), self._memory())))

    def _offer(self) -> str:
        state = self.state
        if state is None or not state.edits:
            return ""
        count = "1 edit" if len(state.edits) == 1 else f"{len(state.edits)} edits"
        return f"enter: {count}, the model writes from atom {state.target + 1} on"

    def _memory(self) -> str:
        """Say what is kept so that the next edit is quick."""
        held = self.desk.keeper.held
        return "" if held is None else f"the model stays loaded, {held / 1e6:,.0f} MB"
