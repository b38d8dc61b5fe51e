"""Every binding does what its description says; the last test finds those that nobody pressed."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import DataTable, Input, OptionList

from salt_tui.app.answer_screen import AnswerScreen
from salt_tui.app.application import SaltApp
from salt_tui.app.dialogs import LineOfInput, Question, TextToRead
from salt_tui.app.export_window import ExportWindow
from salt_tui.app.key_lists import all_bindings
from salt_tui.app.live_screen import LiveScreen
from salt_tui.app.map_rows import Place
from salt_tui.app.messages import OpenRun
from salt_tui.app.reliability_screen import ReliabilityScreen
from salt_tui.app.runs_screen import RunsScreen
from salt_tui.app.scrubber import Scrubber
from salt_tui.app.settings import load_choices
from salt_tui.app.setup_screen import SetupScreen
from salt_tui.palette import Shading
from salt_tui.store.queries import open_queries
from tests.app.conftest import compute, request
from tests.app.pilot import drive, footer, screen_text, shown, until, until_still

BINDINGS = {binding.id: binding for binding in all_bindings(SaltApp)}


async def press(pilot: Pilot[int], name: str) -> None:
    """Press the first key of a binding."""
    await pilot.press(BINDINGS[name].key.split(",")[0])
    await pilot.pause()


def queries_that_say(database: Path, words: str) -> frozenset[int]:
    """Return the answers of the stored run with some words."""
    with open_queries(database) as queries:
        return queries.answers_that_say(1, words)


async def open_stored(app: SaltApp, pilot: Pilot[int]) -> LiveScreen:
    """Open the one stored run and wait until it is read."""
    app.post_message(OpenRun(1))
    await until(pilot, lambda: isinstance(app.screen, LiveScreen) and not shown(app).reading)  # type: ignore[union-attr]
    await pilot.pause(0.05)
    assert isinstance(app.screen, LiveScreen)
    return app.screen


def test_keys_of_the_map(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await open_stored(app, pilot)
        heatmap = screen.heatmap
        assert heatmap.cursor is None or not heatmap.following
        await press(pilot, "map.first")
        first = heatmap.cursor
        assert first is not None
        assert (first.answer, first.unit) == (0, 0)
        await press(pilot, "map.right")
        second = heatmap.cursor
        assert second == heatmap.map.beside(first, 1)
        await press(pilot, "map.left")
        assert heatmap.cursor == first
        await press(pilot, "map.down")
        below = heatmap.cursor
        assert below == heatmap.map.vertical(first, 1)
        await press(pilot, "map.up")
        assert heatmap.cursor == first
        await press(pilot, "map.page_down")
        assert heatmap.cursor is not None
        assert heatmap.map.position(heatmap.cursor)[0] > heatmap.map.position(first)[0] + 1
        await press(pilot, "map.page_up")
        assert heatmap.cursor == first
        await press(pilot, "map.next_wrong")
        wrong = heatmap.cursor
        assert wrong == heatmap.map.next_not_right(first, 1)
        await press(pilot, "map.next_wrong")
        await press(pilot, "map.previous_wrong")
        assert heatmap.cursor == wrong
        await press(pilot, "map.surest_wrong")
        assert heatmap.cursor == heatmap.map.surest_wrong()[0]
        await press(pilot, "map.surest_wrong")
        assert heatmap.cursor == heatmap.map.surest_wrong()[1]
        assert "no. 2 of the surest errors: " in screen_text(app)
        await press(pilot, "map.surest_wrong_back")
        assert heatmap.cursor == heatmap.map.surest_wrong()[0]
        await press(pilot, "map.first")
        await press(pilot, "map.next_answer")
        assert heatmap.cursor == heatmap.map.answer_beside(first, 1)
        await press(pilot, "map.previous_answer")
        assert heatmap.cursor == first
        await press(pilot, "map.next_task")
        assert heatmap.cursor is not None
        assert heatmap.map.answers[heatmap.cursor.answer].task == "dna_translation"
        await press(pilot, "map.previous_task")
        assert heatmap.cursor == first
        assert not heatmap.following
        await press(pilot, "map.follow")
        assert heatmap.following
        assert heatmap.cursor == heatmap.map.last()

    drive(scenario, stored)


def test_enter_opens_the_first_answer_where_no_atom_is_chosen(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await open_stored(app, pilot)
        assert screen.heatmap.cursor is None
        await press(pilot, "map.open")
        await until(pilot, lambda: isinstance(app.screen, AnswerScreen))

    drive(scenario, stored)


def test_keys_of_a_stored_run(stored: Path, tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await open_stored(app, pilot)
        session = shown(app)
        assert session is not None
        function = session.state.map.function
        await press(pilot, "live.play")
        await until(pilot, lambda: "atoms · 8 a second" in screen_text(app))
        await press(pilot, "live.slower")
        await press(pilot, "live.slower")
        await press(pilot, "live.faster")
        await until(pilot, lambda: "atoms · 4 a second" in screen_text(app))
        listed = dict(app.key_groups())["Live"]
        assert [words for key, words in listed if key == "space"] == ["Let no more atoms arrive"], "what it does now"
        assert footer(app).startswith("space Pause")
        await press(pilot, "live.pause_play")
        await until(pilot, lambda: "space goes on" in screen_text(app))
        await press(pilot, "live.back")
        assert screen.heatmap.map is session.state.map
        await press(pilot, "live.function")
        assert session.state.map.function != function
        await press(pilot, "live.function_back")
        assert session.state.map.function == function
        await press(pilot, "live.granularity")
        assert session.state.map.kind == "line"
        await press(pilot, "live.granularity")
        await press(pilot, "live.task")
        assert session.state.map.task == "kronecker_product"
        session.wait_for_measurement(30)
        await until(pilot, lambda: "kronecker_product" in screen_text(app).splitlines()[22])
        await press(pilot, "live.filter")
        await pilot.press(*"dna 2", "enter")
        await until(pilot, lambda: screen.heatmap.map.height == 2)
        assert screen.heatmap.has_focus
        await press(pilot, "live.back")
        with open_queries(stored) as queries:
            (first, *_) = queries.answers(1)
        said = first.problem.text.split()[0]
        assert first.generation in queries_that_say(stored, said)
        await press(pilot, "live.filter")
        await pilot.press(*said)
        wanted = queries_that_say(stored, said)
        await until(
            pilot,
            lambda: (
                {
                    answer.generation
                    for n, answer in enumerate(screen.heatmap.map.answers)
                    if screen.heatmap.map.is_shown(n)
                }
                >= wanted
            ),
        )
        await press(pilot, "live.back")
        assert not screen.heatmap.map.filtered
        await press(pilot, "live.log")
        assert screen.query_one("#log").display
        await press(pilot, "live.back")
        assert not screen.query_one("#log").display
        assert app.screen is screen
        await press(pilot, "map.first")
        await press(pilot, "live.copy")
        assert app.clipboard.startswith("kronecker_product · answer 1 · atom 1")
        await press(pilot, "why.live_not_resumed")
        assert shown(app) is session, "a finished run has nothing to resume"
        await until(pilot, lambda: "run 1 is finished: nothing is left to do" in screen_text(app))
        await press(pilot, "why.live_not_stopped")
        await until(pilot, lambda: "run 1 is finished: there is nothing to stop" in screen_text(app))
        await press(pilot, "live.export")
        assert isinstance(app.screen, ExportWindow)
        target = tmp_path / "out.csv"
        app.screen.query_one(Input).value = str(target)
        await pilot.press("enter")
        await until(pilot, target.exists)
        assert "max_probability" in target.read_text("utf-8").splitlines()[0]
        await press(pilot, "live.export")
        await press(pilot, "export.leave")
        assert isinstance(app.screen, LiveScreen)
        await press(pilot, "live.back")
        assert isinstance(app.screen, RunsScreen)

    drive(scenario, stored)


def test_keys_of_a_run_that_computes(script: Callable[..., Path], tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        session = shown(app)
        assert session is not None
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        answers = session.state.map.answers

        def being_written() -> int | None:
            cells = (number for number, answer in enumerate(answers) if answer.status == "streaming")
            return next((number for number in cells if len(answers[number].units["atom"])), None)

        await until(pilot, lambda: being_written() is not None)
        await press(pilot, "live.pause")
        assert session.state.phase == "paused"
        await until_still(pilot, lambda: sum(answer.tokens for answer in answers))
        number = being_written()
        assert number is not None
        screen.heatmap.go_to(Place(number, 0))
        await press(pilot, "live.cancel_answer")
        await press(pilot, "question.yes")
        await press(pilot, "live.go_on")
        assert session.state.phase == "running"
        await until(pilot, lambda: answers[number].status == "cancelled")
        await press(pilot, "live.cancel_run")
        assert isinstance(app.screen, Question)
        await press(pilot, "question.no")
        assert session.computing
        await press(pilot, "live.cancel_run")
        await press(pilot, "question.yes")
        await until(pilot, lambda: session.state.phase == "interrupted")
        await until(pilot, lambda: "r resumes" in screen_text(app))
        await until(pilot, lambda: not session.computing)
        await press(pilot, "live.resume")
        await until(pilot, lambda: shown(app) is not session and shown(app).state.view.started is not None)  # type: ignore[union-attr]
        assert shown(app) is not None
        assert shown(app).run == session.run

    drive(scenario, tmp_path / "salt.db", request(script(30, seconds_per_step=0.05), 30))


def test_keys_of_setup(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await until(pilot, lambda: bool(screen.tasks.names))
        await press(pilot, "setup.explain")
        assert isinstance(app.screen, TextToRead)
        assert "licence" in screen_text(app)
        await press(pilot, "text.leave")
        screen.tasks.focus()
        await pilot.pause()
        await press(pilot, "tasks.mark")
        assert screen.tasks.marked == (screen.tasks.names[0],)
        await press(pilot, "setup.all_tasks")
        assert screen.tasks.marked == tuple(screen.tasks.names)
        await press(pilot, "setup.all_tasks")
        assert screen.tasks.marked == ()
        await press(pilot, "setup.explain")
        await until(pilot, lambda: isinstance(app.screen, TextToRead))
        assert "asked" in screen_text(app)
        scroll = app.screen.query_one("#text-scroll")
        for key, there in (("end", scroll.max_scroll_y), ("home", 0)):
            await pilot.press(key)
            await until(pilot, lambda there=there: scroll.scroll_offset.y == there)  # type: ignore[misc]
        await press(pilot, "text.leave")
        await press(pilot, "setup.quick_check")
        await until(pilot, lambda: screen.tasks.marked == tuple(screen.tasks.names))
        await press(pilot, "setup.all_tasks")
        await press(pilot, "setup.filter")
        await pilot.press(*"smollm2-1.7", "enter")
        await until(pilot, lambda: screen.query_one("#models", OptionList).option_count == 1)
        await until(pilot, lambda: screen.read_choices().model == "smollm2-1.7b")
        await press(pilot, "setup.copy")
        assert app.clipboard == "salt-tui models pull smollm2-1.7b"
        await press(pilot, "setup.filter")
        await pilot.press(*["backspace"] * 11, "enter")
        await press(pilot, "setup.model_file")
        await press(pilot, "input.leave")
        await press(pilot, "setup.model_file")
        assert isinstance(app.screen, LineOfInput)
        app.screen.query_one(Input).value = str(stored.with_name("tiny.scripted.json"))
        await pilot.press("enter")
        await until(pilot, lambda: screen.read_choices().model.endswith("tiny.scripted.json"))
        await until(pilot, lambda: "tiny.scripted.json" in screen_text(app))
        screen.query_one("#limit", Input).focus()
        await pilot.pause()
        await press(pilot, "setup.next")
        assert screen.query_one("#seed").has_focus
        await press(pilot, "setup.leave_field")
        assert screen.tasks.has_focus
        await press(pilot, "setup.start")
        assert "at least one task" in screen_text(app)
        assert all("copied" in note.message for note in app._notifications), "what is wrong stands in the form"
        await press(pilot, "setup.resume")
        assert shown(app) is None, "there is nothing to resume"

    drive(scenario, stored)


def test_setup_starts_what_was_chosen_and_remembers_it(script: Callable[..., Path], tmp_path: Path) -> None:
    from salt_tui.app.settings import Choices, save_choices

    save_choices(Choices(str(script()), ("dna_translation",), "trivial", 4, "regular", 0, 4))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await until(pilot, lambda: screen.tasks.marked == ("dna_translation",))
        screen.query_one("#seed", Input).value = "1"
        await pilot.pause()
        await press(pilot, "setup.start")
        await until(pilot, lambda: shown(app) is not None and shown(app).state.phase == "finished")
        assert shown(app) is not None
        assert list(shown(app).state.view.tasks) == ["dna_translation"]

    drive(scenario, tmp_path / "salt.db")
    assert load_choices().seed == 1


def test_keys_of_the_list_of_runs(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await press(pilot, "app.runs")
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        await until(pilot, lambda: screen.chosen is not None)
        await press(pilot, "runs.filter")
        await pilot.press("x", "y", "z")
        await pilot.pause()
        assert screen.chosen is None
        await press(pilot, "runs.leave_filter")
        assert screen.chosen is not None
        assert screen.query_one(DataTable).has_focus
        await press(pilot, "runs.export")
        assert isinstance(app.screen, ExportWindow)
        await press(pilot, "export.leave")
        await press(pilot, "runs.sort")
        await until(pilot, lambda: ", by model" in screen_text(app))
        await press(pilot, "runs.mark")
        await until(pilot, lambda: "1 marked" in screen_text(app))
        await press(pilot, "runs.mark")
        await until(pilot, lambda: "marked" not in screen_text(app))
        await press(pilot, "runs.note")
        await pilot.press(*"the first", "enter")
        await until(pilot, lambda: "the first · tiny" in screen_text(app))
        await press(pilot, "runs.resume")
        assert app.screen is screen, "a finished run has nothing to resume"
        await press(pilot, "why.runs_not_resumed")
        await until(pilot, lambda: "run 1 is finished: nothing is left to do" in screen_text(app))
        await press(pilot, "why.runs_not_stopped")
        await until(pilot, lambda: "there is nothing to stop" in screen_text(app))
        await press(pilot, "runs.last")
        await press(pilot, "runs.first")
        assert screen.table.cursor_row == 0
        await press(pilot, "runs.open")
        assert isinstance(app.screen, LiveScreen)
        await press(pilot, "app.runs")
        await press(pilot, "runs.delete")
        assert isinstance(app.screen, Question)
        await pilot.press("enter")  # opens a run in the list below, so it must not delete one here
        assert isinstance(app.screen, Question)
        await press(pilot, "question.no")
        with open_queries(stored) as queries:
            assert len(queries.list_runs()) == 1
        await press(pilot, "runs.delete")
        await press(pilot, "question.yes")
        await until(pilot, lambda: screen.chosen is None)
        with open_queries(stored) as queries:
            assert queries.list_runs() == []

    drive(scenario, stored)


def test_keys_for_several_runs(stored: Path) -> None:
    for _ in range(3):
        compute(stored, stored.with_name("tiny.scripted.json"))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await press(pilot, "app.runs")
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        await until(pilot, lambda: screen.table.row_count == 4)
        await pilot.press("down")
        under = screen.chosen
        await press(pilot, "app.reliability")
        await until(pilot, lambda: isinstance(app.screen, ReliabilityScreen))
        assert under is not None
        assert app.desk.runs.shown is not None
        assert app.desk.runs.shown.run == under.run == 3, "the run under the cursor"
        await until(pilot, lambda: "run 3 " in screen_text(app).splitlines()[1])
        await press(pilot, "app.runs")
        await pilot.press("up")
        await press(pilot, "runs.mark")
        await press(pilot, "runs.mark")
        await pilot.press("up", "d")
        await until(pilot, lambda: "Delete 2 runs?" in screen_text(app))
        await pilot.press("y")
        await until(pilot, lambda: screen.table.row_count == 2)
        await until(pilot, lambda: screen.chosen is not None and screen.chosen.run == 2)
        await pilot.press("d")
        await until(pilot, lambda: "Delete run 2?" in screen_text(app))
        await pilot.press("y")
        await until(pilot, lambda: screen.table.row_count == 1)
        assert screen.chosen is not None
        assert screen.chosen.run == 1, "the neighbour"

    drive(scenario, stored)


def test_keys_of_the_whole_app(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await press(pilot, "app.live")
        assert isinstance(app.screen, LiveScreen)
        assert "No run is open" in screen_text(app)
        await press(pilot, "app.setup")
        assert isinstance(app.screen, SetupScreen)
        await press(pilot, "app.help")
        assert isinstance(app.screen, TextToRead)
        lines = screen_text(app).splitlines()
        assert next(number for number, line in enumerate(lines) if "Tasks " in line or "Setup " in line) < 8
        await pilot.press("end")
        await until(pilot, lambda: "how an answer ended" in screen_text(app))
        await press(pilot, "text.leave")
        await press(pilot, "app.key_names")
        assert '"app.setup"' in screen_text(app)
        await press(pilot, "text.leave")
        shadings = []
        for _ in Shading:
            await press(pilot, "app.shading")
            shadings.append(app.desk.look.shading)
            await until(pilot, lambda: f"cells show {app.desk.look.shading.value}" in screen_text(app))
        assert sorted(shadings) == sorted(Shading)
        await press(pilot, "app.ground")
        assert app.desk.look.light
        assert app.theme == "textual-light"
        suspended = []
        app.action_suspend_process = lambda: suspended.append(True)  # type: ignore[method-assign]
        await press(pilot, "app.suspend")
        assert suspended == [True]
        await press(pilot, "app.quit")
        await until(pilot, lambda: app.return_code is not None)

    assert drive(scenario, stored).return_code == 0


def test_quitting_without_asking(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await press(pilot, "app.quit_now")
        await until(pilot, lambda: app.return_code is not None)

    assert drive(scenario, stored).return_value == 0


def test_keys_of_an_answer(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        live = await open_stored(app, pilot)
        await press(pilot, "map.first")
        await press(pilot, "map.next_wrong")
        atom = live.heatmap.cursor
        await press(pilot, "map.open")
        screen = app.screen
        assert isinstance(screen, AnswerScreen)
        await until(pilot, lambda: "· answer 1 of 4 ·" in screen_text(app))
        document = screen._document
        assert document is not None
        assert atom is not None
        assert screen._token == document.first_token_of(atom.unit)
        await press(pilot, "answer.first")
        await until(pilot, lambda: "token 1 of" in screen_text(app))
        await press(pilot, "answer.next_token")
        await until(pilot, lambda: "token 2 of" in screen_text(app))
        await press(pilot, "answer.previous_token")
        assert screen._token == 0
        await press(pilot, "answer.next_atom")
        first = document.first_token_of(0)
        assert screen._token == first
        await press(pilot, "answer.next_atom")
        assert screen._token == document.first_token_of(1)
        await press(pilot, "answer.previous_atom")
        assert screen._token == first
        await press(pilot, "answer.next_wrong")
        wrong = document.atom_of(screen._token)
        assert wrong is not None
        assert document.atoms[wrong].status != "correct"
        await press(pilot, "answer.last")
        await press(pilot, "answer.previous_wrong")
        assert document.atom_of(screen._token) is not None
        await press(pilot, "answer.first")
        await press(pilot, "answer.line_down")
        assert screen._token == document.token_in_line(0, 1) > 0
        await press(pilot, "answer.line_up")
        assert screen._token == 0
        await press(pilot, "answer.search")
        await pilot.press("asterisk", "enter")
        await until(pilot, lambda: screen._token > 0)
        await press(pilot, "answer.search_on")
        assert screen._token == 0, "round the end"
        await press(pilot, "answer.texts")
        assert "right answer" in screen_text(app) or "raw reply" in screen_text(app)
        await press(pilot, "text.leave")
        await press(pilot, "answer.copy")
        assert app.clipboard.startswith("token 1 of")
        screen._player.change_speed(-3)  # so that it is still at it when the next key comes
        await press(pilot, "answer.play")
        await press(pilot, "answer.slower")
        assert screen._player.speed == 1
        await until(pilot, lambda: "tokens · 1 a second" in screen_text(app))
        await press(pilot, "answer.faster")
        assert screen._player.speed == 2
        assert "Pause" in footer(app)
        assert "Play" not in footer(app)
        await press(pilot, "answer.pause_play")
        assert not screen._player.playing
        await until(pilot, lambda: "space goes on" in screen_text(app))
        scrubber = screen.query_one("#course", Scrubber)
        await pilot.click(scrubber, offset=(1 + scrubber.bar_width // 2, 0))
        half = round(scrubber.bar_width // 2 / scrubber.bar_width * len(document.tokens))
        await until(pilot, lambda: f"{half}/{len(document.tokens)} tokens" in screen_text(app))
        await press(pilot, "answer.last")
        assert screen._player.arrived == screen._player.total, "the keys move through what has arrived"
        await press(pilot, "answer.next")
        await until(pilot, lambda: "· answer 2 of 4 ·" in screen_text(app))
        await press(pilot, "answer.previous")
        await until(pilot, lambda: "· answer 1 of 4 ·" in screen_text(app))
        await press(pilot, "answer.next_wrong")
        atom_there = screen._document.atom_of(screen._token)  # type: ignore[union-attr]
        await press(pilot, "answer.back")
        await until(pilot, lambda: app.screen is live)
        assert live.heatmap.cursor == Place(0, atom_there or 0)

    drive(scenario, stored)


def test_every_binding_has_an_id_of_its_own_and_is_pressed_here_or_in_the_tests_of_its_screen() -> None:
    names = [binding.id for binding in all_bindings(SaltApp)]
    assert len(names) == len(set(names))
    screens = ("replay", "studies", "reliability", "compare", "setup")
    others = (*(f"test_{name}_screen.py" for name in screens), "test_fetch_window.py")
    files = Path(__file__), *(Path(__file__).with_name(name) for name in others)
    found = (re.findall(r'press\(pilot, "([a-z_.]+)"\)', file.read_text("utf-8")) for file in files)
    pressed = set(chain.from_iterable(found))
    assert pressed == set(names)
