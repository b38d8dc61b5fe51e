"""Studies: what else was asked about the answers of a run, and what more can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from salt_tui.app import studies_state
from salt_tui.app.desk import Desk
from salt_tui.app.dialogs import MODEL_FILES, LineOfInput, Question
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.messages import ShowScreen
from salt_tui.app.open_runs import A_STUDY
from salt_tui.app.studies_state import RunStudies
from salt_tui.app.worker_failures import failures_told
from salt_tui.commands.failures import describe_failure
from salt_tui.commands.study import study_lines
from salt_tui.runner.background import BackgroundRun
from salt_tui.runner.events import AnswerFinished, ModelLoading, Notice, RunEnded, RunStarted
from salt_tui.runner.jobs import Emit
from salt_tui.runner.loop import ReadyWork
from salt_tui.runner.studies.kind import StudyKind
from salt_tui.runner.studies.plan import Options
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study, prepare_study_resume
from salt_tui.store.queries import open_queries
from salt_tui.store.records import RESUMABLE
from salt_tui.store.results import StudyListing
from salt_tui.visible_text import visible

TICKS_PER_SECOND = 10
NO_RUN = "No run is chosen.  S in the list of runs opens its studies."


class StudyList(OptionList):
    """The list; enter opens what is under the cursor, or starts it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Open, start", tooltip="Open a study, or start one", id="studies.open"),
        Binding("up,k", "cursor_up", "Previous study", id="studies.previous"),
        Binding("down,j", "cursor_down", "Next study", id="studies.next"),
    ]


class StudiesScreen(FramedScreen):
    """Lists the studies of a run above what the one under the cursor found."""

    NAME = "studies"
    TAB = "runs"
    WIDGETS = (StudyList,)
    AUTO_FOCUS = "#studies"
    HELP = "Further work on a run: enter opens what a study found, or starts a new one after saying what it costs."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "resume", "Resume", tooltip="Go on with the study", id="studies.resume"),
        Binding("X", "stop", "Stop", tooltip="Stop the study that computes", id="studies.stop"),
        Binding("escape", "back", "Back", id="studies.back"),
    ]
    FOOTER = ("studies.back", "studies.open", "studies.resume", "studies.stop", "studies.next")

    def __init__(self, desk: Desk) -> None:
        """Start without a run."""
        super().__init__(desk)
        desk.load()
        self._studies: RunStudies | None = None
        self._computing: BackgroundRun | None = None
        self._described: tuple[int, str | None] | None = None
        self._kind = self._name = ""
        self._announced = ""
        self._words = ""
        self._done = self._total = 0

    def compose_body(self) -> ComposeResult:
        """Lay the parts out."""
        yield Static(f" {NO_RUN}", id="studies-title", markup=False)
        yield StudyList(id="studies", markup=False)
        with VerticalScroll(id="studies-result", can_focus=False):
            yield Static(id="studies-found", markup=False)
        yield Static(id="studies-progress", markup=False)

    def on_mount(self) -> None:
        """Begin to look at what computes."""
        self.set_interval(1 / TICKS_PER_SECOND, self._tick)

    def on_screen_resume(self) -> None:
        """Read the run that was asked for."""
        super().on_screen_resume()
        run = self.desk.runs.studied
        if run is not None:
            self.read(run)

    @property
    def run_of_interest(self) -> int | None:
        """The run whose studies are listed."""
        return None if self._studies is None else self._studies.run

    @work(thread=True, exclusive=True, group="studies", exit_on_error=False)
    def read(self, run: int) -> None:
        """Read the list beside the screen."""
        with failures_told(self.app, self.say_error):
            found = studies_state.read_studies(self.desk.database, run)
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take, found)

    def _take(self, found: RunStudies) -> None:
        self._studies = found
        self.query_one("#studies-title", Static).update(f" {found.title()}")
        rows = [Option(Text(studies_state.row_of_study(study)), id=str(study.work)) for study in found.studies]
        rows += [
            Option(Text(studies_state.row_of_kind(kind)), id=kind.name) for kind in studies_state.startable_kinds()
        ]
        listed = self.query_one(StudyList)
        row = listed.highlighted or 0
        chosen = listed.get_option_at_index(row).id if row < listed.option_count else None
        listed.clear_options()
        listed.add_options(rows)
        # The item and not the row: another study may have begun or gone meanwhile.
        places = {option.id: place for place, option in enumerate(rows)}
        listed.highlighted = places.get(chosen, min(row, len(rows) - 1))
        self.refresh_bindings()

    # --- what is under the cursor -------------------------------------------------------------------------------

    def _chosen(self) -> StudyListing | StudyKind | None:
        found, row = self._studies, self.query_one(StudyList).highlighted
        if found is None or row is None:
            return None
        rows: list[StudyListing | StudyKind] = [*found.studies, *studies_state.startable_kinds()]
        return rows[row] if row < len(rows) else None

    def on_option_list_option_highlighted(self) -> None:
        """Say what the study is, or would be; what is read again stays as it is."""
        chosen, listed = self._chosen(), self.query_one(StudyList)
        if self._studies is None or listed.highlighted is None:
            return
        item = self._studies.run, listed.get_option_at_index(listed.highlighted).id
        if item == self._described:
            return
        self._described = item
        if isinstance(chosen, StudyKind):
            self._show(self._studies.consequence(chosen))
        elif isinstance(chosen, StudyListing):
            self._show(f"enter opens what study {chosen.work} found")
        self.refresh_bindings()

    def on_option_list_option_selected(self) -> None:
        """Open a study; ask before one is started."""
        chosen = self._chosen()
        if isinstance(chosen, StudyListing):
            self.open_result(str(chosen.work))
        elif isinstance(chosen, StudyKind) and self._studies is not None and self._may_begin():
            self._ask(chosen, self._studies)

    def _ask(self, kind: StudyKind, studies: RunStudies) -> None:
        def begin(options: Options) -> None:
            if self._may_begin():
                request = StudyRequest(kind.name, str(studies.run), options)
                self._begin(kind.name, lambda emit: prepare_study(request, self.desk.database, emit))

        def named(model: str | None) -> None:
            if model:
                begin({"model": model})

        def answered(yes: bool | None) -> None:
            if yes and kind.computed_by == "another model":
                self.app.push_screen(
                    LineOfInput("Which model?", "", "a name of models.toml or a path", paths=MODEL_FILES), named
                )
            elif yes:
                begin({})

        question = f"Start {kind.name} of run {studies.run}?"
        self.app.push_screen(Question(question, studies.consequence(kind)), answered)

    @work(thread=True, exclusive=True, group="result", exit_on_error=False)
    def open_result(self, name: str) -> None:
        """Read what a study found beside the screen."""
        with failures_told(self.app, self.say_error):
            # A column of padding on each side and two of the scroll bar: lines that touch it would be broken again.
            lines = study_lines(self.desk.database, name, max(20, self.size.width - 4))
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._show, "\n".join(lines))

    def _show(self, text: str) -> None:
        self.query_one("#studies-found", Static).update(text)
        self.query_one("#studies-result", VerticalScroll).scroll_home(animate=False)

    # --- computing ----------------------------------------------------------------------------------------------

    def _may_begin(self) -> bool:
        if self._computing is not None:
            self.say("a study computes here; X stops it")
        elif self.desk.computing:
            self.say("a run computes here: stop it first (2, then X)", "warning")
        else:
            return True
        return False

    def _begin(self, kind: str, prepare: Callable[[Emit], ReadyWork]) -> None:
        self._name = self._kind = kind
        self._announced, self._words, self._done, self._total = "", "begins", 0, 0

        def with_room(emit: Emit) -> ReadyWork:
            self.desk.keeper.make_room()
            return prepare(emit)

        self._computing = BackgroundRun(with_room, lambda error: describe_failure(error)[0])
        self.desk.runs.beside[A_STUDY] = self._computing
        self._computing.start()
        self._draw_progress()

    def _tick(self) -> None:
        computing = self._computing
        if computing is None:
            return
        while computing.mailbox:
            match computing.mailbox.popleft():
                case ModelLoading(fraction=fraction):
                    self._words = f"the model loads {fraction:.0%}"
                case Notice(text=text):
                    self._announced = text
                case RunStarted(run=run, study=study, tasks=tasks):
                    self._name = f"{run}.{study} {self._kind}"
                    self._done = sum(task.done for task in tasks)
                    self._total = sum(task.total for task in tasks)
                    self._words = "computes"
                    self._read_again()
                case AnswerFinished():
                    self._done += 1
                case RunEnded(state="failed", message=message):
                    self.say_error(message or "the study failed")
                case RunEnded(state=state, title=title):
                    self.say(f"{title} {state}")
                case _:
                    pass
        if not computing.alive and not computing.mailbox:
            self._computing = None
            self._read_again()
        self._draw_progress()

    def _read_again(self) -> None:
        if self._studies is not None:
            self.read(self._studies.run)

    def _draw_progress(self) -> None:
        words = ""
        if self._computing is not None:
            done = f" {self._done}/{self._total}" if self._total else ""
            told = f" · {self._announced}" if self._announced else ""
            words = visible(f" {self._name} {self._words}{done}{told}")
        self.query_one("#studies-progress", Static).update(words)
        self.refresh_bindings()

    def action_resume(self) -> None:
        """Go on with the study under the cursor."""
        chosen = self._chosen()
        if isinstance(chosen, StudyListing) and self._may_begin():
            database, name = self.desk.database, str(chosen.work)

            def prepare(emit: Emit) -> ReadyWork:
                with open_queries(database) as queries:
                    study = queries.study_record(queries.find_work(name))
                return prepare_study_resume(study, database, emit, allow_environment_change=False, threads=None)

            self._begin(chosen.kind, prepare)

    def action_stop(self) -> None:
        """Stop the study that computes; it stays resumable."""
        if self._computing is not None:
            self._computing.stop()

    def on_unmount(self) -> None:
        """Let nothing compute that nobody sees."""
        self.action_stop()

    def action_back(self) -> None:
        """Go back to the list of runs."""
        self.post_message(ShowScreen("runs"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what can do nothing now."""
        if not self.is_mounted:
            return True
        if action == "stop":
            return self._computing is not None
        if action == "resume":
            chosen = self._chosen()
            return True if isinstance(chosen, StudyListing) and chosen.state in RESUMABLE else None
        return True
