"""Setup: choose a model, tasks and a difficulty, see what it will cost, start or resume.

`salt_tui.app.setup_state` is imported by the worker, after the first paint: it brings the engine and the store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, OptionList, Select, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from salt_tui.app.desk import Desk
from salt_tui.app.dialogs import MODEL_FILES, PROBLEM_FILES, LineOfInput, TextToRead
from salt_tui.app.fetch_window import FetchWindow
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.messages import ResumeRun, StartRun
from salt_tui.app.option_cursor import VisibleCursorList
from salt_tui.app.settings import NUMBER_FIELDS, Choices, load_choices, save_choices
from salt_tui.app.setup_offer import Offer, OfferedModel
from salt_tui.app.task_list import TaskList
from salt_tui.app.text_rows import broken
from salt_tui.app.worker_failures import failures_told
from salt_tui.visible_text import visible
from tasks.task import DIFFICULTIES, METHODS

ESTIMATE_AFTER = 0.4
"""Seconds without a change before the cost is estimated anew."""

COST_ROWS = 2
"""Rows in which the cost is said; longer words give way to shorter ones."""


class SetupScreen(FramedScreen):
    """The form."""

    NAME = "setup"
    WIDGETS = (TaskList,)
    AUTO_FOCUS = "#models"
    HELP = "Choose what to evaluate. Tab goes from part to part, space marks a task, ctrl+r starts."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "start", "Start", id="setup.start"),
        Binding("u", "resume", "Resume", id="setup.resume"),
        Binding("e", "explain", "Explain", id="setup.explain"),
        Binding("a", "all_tasks", "All", tooltip="All tasks", id="setup.all_tasks"),
        Binding("m", "model_file", "File", tooltip="Model file", id="setup.model_file"),
        Binding("o", "own_file", "Own file", tooltip="A file of your own problems", id="setup.own_file"),
        Binding("slash", "filter", "Filter", tooltip="Filter the models", id="setup.filter"),
        Binding("y", "copy", "Copy command", tooltip="Copy the command that fetches the model", id="setup.copy"),
        Binding("p", "fetch", "Fetch", tooltip="Fetch the model from the hub", id="setup.fetch"),
        Binding("c", "quick_check", "Quick check", tooltip="Every task, in about two minutes", id="setup.quick_check"),
        Binding("tab", "app.focus_next", "Next", tooltip="Next part", id="setup.next"),
        Binding("escape", "leave_field", "Leave", tooltip="Leave the field", id="setup.leave_field"),
    ]
    FOOTER = (
        "setup.start", "setup.leave_field", "setup.fetch", "setup.copy", "setup.next", "setup.quick_check",
        "setup.resume", "setup.explain", "setup.filter", "setup.all_tasks", "setup.model_file", "setup.own_file",
    )  # fmt: skip

    def __init__(self, desk: Desk) -> None:
        """Start from the last choices."""
        super().__init__(desk)
        self._offer: Offer | None = None
        self._choices = load_choices()
        self._estimates = 0
        self._cost: tuple[str, ...] = ()
        self._looked = False
        self._models: tuple[OfferedModel, ...] = ()  # those that the filter leaves
        self._own = [name for name in self._choices.tasks if name.startswith("file:")]
        self._files = [self._choices.model]  # what models.toml does not name of these is listed as a file

    @property
    def tasks(self) -> TaskList:
        """The list of tasks."""
        return self.query_one("#task-list", TaskList)

    # --- layout -------------------------------------------------------------------------------------------------

    def compose_body(self) -> ComposeResult:
        """Lay the form out."""
        choices = self._choices
        place = visible(str(self.desk.database), 50)
        yield Static(f" salt-tui   looking at {place} …", id="setup-title", markup=False)
        yield Static(" Model", classes="part", id="models-title", markup=False)
        yield Input(placeholder="filter: words of the model", compact=True, id="model-filter")
        yield VisibleCursorList(id="models", compact=True, markup=False)
        yield Static(" Tasks", classes="part", id="tasks-title", markup=False)
        yield TaskList(id="task-list")
        with Horizontal(id="fields"):
            yield from self._select("difficulty", "Difficulty", DIFFICULTIES, choices.difficulty)
            yield from self._select("method", "Method", METHODS, choices.method)
            for name, title in NUMBER_FIELDS.items():
                with Vertical(classes="field number"):
                    yield Static(title, id=f"{name}-title", markup=False)
                    yield Input(str(getattr(choices, name)), type="integer", compact=True, id=name)
        yield Static(id="cost", markup=False)
        with Horizontal(id="buttons"):
            yield Button("Start", id="start", compact=True)
            yield Button("Quick check", id="quick-check", compact=True)
            yield Button("Resume", id="resume", compact=True, disabled=True)

    def _select(self, name: str, title: str, values: tuple[str, ...], value: str) -> ComposeResult:
        with Vertical(classes="field"):
            yield Static(title, markup=False)
            yield Select(
                [(entry, entry) for entry in values],
                value=value if value in values else values[0],
                allow_blank=False,
                compact=True,
                id=name,
            )

    def on_mount(self) -> None:
        """Look for models and runs beside the screen."""
        self.query_one("#model-filter").display = False
        self.query_one("#models").focus()
        self.call_after_refresh(self.look_around)  # its imports would hold up the first paint
        self._changed()

    def on_screen_resume(self) -> None:
        """Look again: a run may have ended."""
        super().on_screen_resume()
        if self._looked:
            self.look_around()

    @work(thread=True, exclusive=True, group="offer", exit_on_error=False)
    def look_around(self) -> None:
        """Look for models and stored runs."""
        with failures_told(self.app, self._show_problem):
            from salt_tui.app import setup_state

            offer = setup_state.look_around(self.desk.database, tuple(self._files), tuple(self._own))
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._show_offer, offer)

    def _show_problem(self, line: str) -> None:
        self._looked = True
        self._estimates += 1  # an estimate on its way comes too late
        self._say_cost(f"! {visible(line)}", wrong=True)

    def _show_offer(self, offer: Offer) -> None:
        begun_with = self._choices  # filling the lists below moves their cursors and marks
        self._offer = None
        self._looked = True
        self._fill_models(offer, begun_with.model)
        if self.tasks.rows != offer.tasks:
            self.tasks.fill(offer.tasks, begun_with.tasks)
        beside = f"   ! {visible(offer.models_problem)}" if offer.models_problem else ""
        self.query_one("#models-title", Static).update(f" Model{beside}")
        resume = self.query_one("#resume", Button)
        resume.disabled = not offer.unfinished
        run = offer.unfinished[0] if offer.unfinished else None
        resume.label = Content(f"Resume run {run.run} ({run.done}/{run.answers})" if run else "Resume")
        resume.refresh(layout=True)
        place = visible(str(self.desk.database), 50)
        runs = f"{offer.runs} run{'' if offer.runs == 1 else 's'} in {place}"
        self.query_one("#setup-title", Static).update(f" salt-tui   {runs}")
        self._choices = begun_with
        self._offer = offer
        self._changed()

    def _fill_models(self, offer: Offer, chosen: str) -> None:
        """List the models that the filter leaves, with the chosen one, or else the first usable one, in view."""
        words = self.query_one("#model-filter", Input).value
        self._models = tuple(model for model in offer.models if model.matches(words))
        models = self.query_one("#models", OptionList)
        models.clear_options()
        models.add_options(
            Option(Content.styled(model.line, "" if model.usable else "dim"), str(number))
            for number, model in enumerate(self._models)
        )
        names = [model.name for model in self._models]
        models.highlighted = names.index(chosen) if chosen in names else 0 if names else None
        self._show_highlighted()

    def _show_highlighted(self) -> None:
        """Bring the chosen model into view, once the list has its size."""
        self.call_after_refresh(self.query_one("#models", OptionList).scroll_to_highlight)

    def on_resize(self) -> None:
        """Keep the chosen model in view, and break the cost for the new width."""
        self._show_highlighted()
        self._draw_cost()

    # --- choices ------------------------------------------------------------------------------------------------

    def read_choices(self) -> Choices:
        """Return what the form says.  A field without a number keeps its last value; `_problem` names the field."""
        if self._offer is None or not self.tasks.names:
            return self._choices
        return replace(
            self._choices,
            limit=self._number("limit", self._choices.limit),
            seed=self._number("seed", self._choices.seed),
            width=self._number("width", self._choices.width),
            tasks=self.tasks.marked,
            difficulty=str(self.query_one("#difficulty", Select).value),
            method=str(self.query_one("#method", Select).value),
        )

    def _number(self, name: str, before: int) -> int:
        from salt_tui.app import setup_state

        number = setup_state.whole_number(self.query_one(f"#{name}", Input).value)
        return before if number is None else number

    def _problem(self) -> str | None:
        """Return why nothing can be started, and mark the fields that are to blame."""
        from salt_tui.app import setup_state

        wrong = setup_state.field_problems({name: self.query_one(f"#{name}", Input).value for name in NUMBER_FIELDS})
        for name, title in NUMBER_FIELDS.items():
            label = self.query_one(f"#{name}-title", Static)
            label.update(f"! {title}" if name in wrong else title)
            label.set_class(name in wrong, "wrong")
        return setup_state.problem_with(self._choices, self._offer) or setup_state.first_problem(wrong)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Choose the model under the cursor."""
        if event.option_list.id == "models" and self._offer is not None:
            row = self._row(event.option_index)
            if row is not None:
                self._choices = replace(self._choices, model=row)
                self._changed()

    def _row(self, index: int) -> str | None:
        # The event of a cursor may come after the list was filled anew.
        return self._models[index].name if index < len(self._models) else None

    def on_task_list_marks_changed(self) -> None:
        """Take notice of the tasks."""
        self._changed()

    def on_select_changed(self) -> None:
        """Take notice of difficulty and method."""
        self._changed()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Take notice of a number, or filter the models."""
        if event.input.id == "model-filter":
            if self._offer is not None:
                self._fill_models(self._offer, self._choices.model)
        else:
            self._changed()

    def _changed(self) -> None:
        if not self.is_mounted:
            return
        self._choices = self.read_choices()
        if self._offer is None:
            return
        marked = f"{len(self.tasks.marked)} of {len(self.tasks.names)} marked"
        self.query_one("#tasks-title", Static).update(f" Tasks   {marked}")
        problem = self._problem()
        start = self.query_one("#start", Button)
        start.disabled = problem is not None
        start.label = Content(f"Start {visible(Path(self._choices.model).name, 24)}")
        start.refresh(layout=True)
        self.refresh_bindings()
        self._estimates += 1
        self._say_cost("estimating …" if problem is None else f"! {visible(problem)}", wrong=problem is not None)
        if problem is not None:
            return
        number = self._estimates
        self.set_timer(ESTIMATE_AFTER, lambda: self._estimate_when_still(number))

    def _estimate_when_still(self, number: int) -> None:
        if number == self._estimates:
            self.estimate(self._choices, number)

    @work(thread=True, exclusive=True, group="estimate", exit_on_error=False)
    def estimate(self, choices: Choices, number: int) -> None:
        """Estimate the cost beside the screen."""
        from salt_tui.app import setup_state

        with failures_told(self.app, lambda line: self._show_estimate((line,), number)):
            words = setup_state.estimate(choices, self.desk.database)
            self.app.call_from_thread(self._show_estimate, words, number)

    def _show_estimate(self, words: tuple[str, ...], number: int) -> None:
        if number == self._estimates:
            self._say_cost(*words)

    def _say_cost(self, *words: str, wrong: bool = False) -> None:
        self._cost = words
        self._draw_cost()
        self.query_one("#cost", Static).set_class(wrong, "wrong")

    def _draw_cost(self) -> None:
        width = max(20, self.text_width)
        whole = (words for words in self._cost if broken(words, width).count("\n") < COST_ROWS)
        words = next(whole, self._cost[-1] if self._cost else "")
        self.query_one("#cost", Static).update(broken(words, width, COST_ROWS))

    # --- actions ------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what cannot be done now."""
        if action == "resume":
            return True if self._offer is not None and self._offer.unfinished else None
        if action == "leave_field":
            return isinstance(self.focused, Input)
        if action in ("copy", "fetch"):
            model = None if self._offer is None else self._offer.model(self._choices.model)
            return model is not None and (model.on_hub if action == "fetch" else model.command is not None)
        return True

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Start or resume."""
        if event.button.id == "start":
            self.action_start()
        elif event.button.id == "quick-check":
            self.action_quick_check()
        else:
            self.action_resume()

    def on_input_submitted(self) -> None:
        """Leave the field."""
        self.action_leave_field()

    def action_leave_field(self) -> None:
        """Go from a field to the tasks, and from the filter to the models, where letters are keys again."""
        field = self.query_one("#model-filter", Input)
        if self.focused is field:
            field.display = bool(field.value)
            self.query_one("#models").focus()
        else:
            self.query_one("#task-list").focus()

    def action_filter(self) -> None:
        """Ask for words of the models to list."""
        field = self.query_one("#model-filter", Input)
        field.display = True
        field.focus()

    def action_copy(self) -> None:
        """Copy the command that fetches the model under the cursor."""
        model = None if self._offer is None else self._offer.model(self._choices.model)
        if model is not None and model.command is not None:
            self.app.copy_to_clipboard(model.command)
            self.say(f"copied: {model.command}")

    def action_fetch(self) -> None:
        """Fetch the model under the cursor from the hub."""
        model = None if self._offer is None else self._offer.model(self._choices.model)
        if model is not None and model.on_hub:

            def look_again(there: bool | None) -> None:
                if there:
                    self.look_around()

            self.app.push_screen(FetchWindow(model.name, model.title), look_again)

    def action_quick_check(self) -> None:
        """Choose what takes about two minutes."""
        self.find_quick_check(self.read_choices())

    @work(thread=True, exclusive=True, group="quick", exit_on_error=False)
    def find_quick_check(self, choices: Choices) -> None:
        """Estimate beside the screen how much fits into two minutes."""
        from salt_tui.app import setup_state

        with failures_told(self.app, self.say_error):
            found = setup_state.quick_check(choices, self.desk.database)
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take_choices, found)

    def _take_choices(self, choices: Choices) -> None:
        self.tasks.mark(choices.tasks)
        self.query_one("#difficulty", Select).value = choices.difficulty
        self.query_one("#limit", Input).value = str(choices.limit)
        self._changed()

    def action_start(self) -> None:
        """Start what was chosen."""
        choices = self._choices = self.read_choices()
        if self._problem() is not None:
            self._changed()  # it stands above the buttons, and at the field
            self.app.bell()
            return
        save_choices(choices)
        self.post_message(StartRun(choices))

    def action_resume(self) -> None:
        """Resume the newest unfinished run."""
        if self._offer is not None and self._offer.unfinished:
            self.post_message(ResumeRun(self._offer.unfinished[0].run))

    def action_model_file(self) -> None:
        """Ask for the path of a model that models.toml does not name."""
        self._ask_for_model("", "")

    def _ask_for_model(self, before: str, problem: str) -> None:
        def answered(path: str | None) -> None:
            if path and path.strip():
                self.use_model(path.strip())

        hint = "path of a GGUF file; → completes"
        self.app.push_screen(LineOfInput("Use another model", before, hint, problem, paths=MODEL_FILES), answered)

    def _ask_again(self, ask: Callable[[str, str], None], path: str, problem: str) -> None:
        if self.is_active:  # the user may have gone on, or opened another window
            ask(path, problem)
        else:
            self.say_error(problem)

    @work(thread=True, exclusive=True, group="model", exit_on_error=False)
    def use_model(self, path: str) -> None:
        """Read the header of a model's file beside the screen and list it; ask again where it cannot be used."""
        with failures_told(self.app, lambda line: self._ask_again(self._ask_for_model, path, line)):
            from salt_tui.app import setup_state

            row = setup_state.model_at(path)
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take_model, row.name)

    def _take_model(self, name: str) -> None:
        self._files.append(name)
        self._choices = replace(self.read_choices(), model=name)
        self.look_around()

    def action_own_file(self) -> None:
        """Ask for a file of problems that becomes a task."""
        self._ask_for_problems("", "")

    def _ask_for_problems(self, before: str, problem: str) -> None:
        def answered(path: str | None) -> None:
            if path and path.strip():
                self.use_problems(path)

        hint = "path of a JSONL file; → completes"
        window = LineOfInput("Ask your own problems", before, hint, problem, paths=PROBLEM_FILES)
        self.app.push_screen(window, answered)

    @work(thread=True, exclusive=True, group="problems", exit_on_error=False)
    def use_problems(self, path: str) -> None:
        """Read a file of problems beside the screen and list it; ask again where it cannot be used."""
        with failures_told(self.app, self.say_error):
            from salt_tui.app import own_tasks

            row = own_tasks.own_task(own_tasks.own_name(path))
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take_problems, path, row.name, row.problem)

    def _take_problems(self, path: str, name: str, problem: str | None) -> None:
        if problem is not None:
            self._ask_again(self._ask_for_problems, path, problem)
            return
        self._own.append(name)
        choices = self.read_choices()
        self._choices = replace(choices, tasks=(*choices.tasks, name))
        self.look_around()

    def action_explain(self) -> None:
        """Explain what is under the cursor: a model, or a task with an example."""
        if self._offer is not None and self.query_one("#models").has_focus:
            models = self.query_one("#models", OptionList)
            name = self._row(models.highlighted) if models.highlighted is not None else None
            model = None if name is None else self._offer.model(name)
            if model is not None:
                self.app.push_screen(TextToRead(model.title, model.details))
            return
        name = self.tasks.highlighted_name
        if name is not None:
            self.show_example(name, self.read_choices())

    @work(thread=True, exclusive=True, group="example", exit_on_error=False)
    def show_example(self, name: str, choices: Choices) -> None:
        """Draw an example beside the screen; some take a second."""
        with failures_told(self.app, self.say_error):
            from salt_tui.app import setup_state

            text = setup_state.task_example(name, choices)
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._show_text, name, text)

    def _show_text(self, title: str, text: str) -> None:
        if self.is_active:
            self.app.push_screen(TextToRead(title, text))

    def action_all_tasks(self) -> None:
        """Mark all tasks, or none when all are marked."""
        self.tasks.mark([] if len(self.tasks.marked) == len(self.tasks.names) else self.tasks.names)
