"""What the screens show and survive: sizes, modes, crashes of the child, resumed runs, keys of the user."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.command import CommandList
from textual.pilot import Pilot
from textual.widgets import Input

from salt_tui.app.application import SaltApp
from salt_tui.app.atom_heatmap import AtomHeatmap
from salt_tui.app.dialogs import Question
from salt_tui.app.key_lists import PARTS, all_bindings, bindings_on, words_of
from salt_tui.app.live_screen import LiveScreen
from salt_tui.app.messages import OpenRun, ResumeRun
from salt_tui.app.settings import keys_path
from salt_tui.app.setup_screen import SetupScreen
from salt_tui.palette import DrawingMode
from salt_tui.store.queries import open_queries
from salt_tui.store.records import Work
from salt_tui.store.store import open_store
from tests.app.conftest import compute, request
from tests.app.pilot import computed, drive, screen_text, shown, until

SENTENCE = "salt-tui needs 60 columns and 16 rows; `salt-tui run` works in any size"


def finished(app: SaltApp) -> bool:
    return shown(app) is not None and shown(app).state.phase in {"finished", "failed"} and not shown(app).computing


def test_a_whole_run_at_the_design_size(script: Callable[..., Path], tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: finished(app))
        assert shown(app) is not None
        await until(pilot, lambda: " in 8 answers" in screen_text(app) and "loading" not in screen_text(app))
        await until(pilot, lambda: "Quit" in screen_text(app).splitlines()[-1])
        await until(pilot, lambda: "●" not in screen_text(app))  # the first line is drawn a moment later
        lines = screen_text(app).splitlines()
        assert len(lines) == 24
        assert max(map(len, lines)) <= 80
        assert lines[0].startswith(" 1 Setup  2 Live  3 Runs")
        assert "CPU ×1 · width 4" in lines[1]
        assert lines[1].endswith("run 1 · trivial · finished")
        assert lines[2].startswith(" kronecker_product")
        assert "4/4" in lines[2]
        assert any(line.startswith("── dna_translation") for line in lines)
        assert "right ↑ ." in lines[21]
        assert " in 8 answers" in lines[22]

    drive(scenario, tmp_path / "salt.db", request(script()))


def test_the_screen_shows_what_is_stored(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: shown(app) is not None and not shown(app).reading)
        assert shown(app) is not None
        with open_queries(stored) as queries:
            answers = queries.answers(1)
            assert [answer.generation for answer in answers] == [
                cells.generation for cells in shown(app).state.map.answers
            ]
            for answer, cells in zip(answers, shown(app).state.map.answers, strict=True):
                assert answer.generation is not None
                units = queries.units(answer.generation, "atom")
                assert [unit.status for unit in units] == [
                    cells.units["atom"].status(unit) for unit in range(len(cells.units["atom"]))
                ]

    drive(scenario, stored)


def test_an_interrupted_run_is_resumed_from_the_list_with_its_finished_answers(
    script: Callable[..., Path], tmp_path: Path
) -> None:
    database = tmp_path / "salt.db"
    path = script(seconds_per_step=0.02)
    session = compute(database, path, stop_after=6)
    assert session.state.phase == "interrupted"
    whole = compute(tmp_path / "whole.db", path)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await pilot.press("3")
        await until(pilot, lambda: "interrupted" in screen_text(app))
        await pilot.press("r")
        await until(pilot, lambda: finished(app) and not shown(app).reading)  # type: ignore[union-attr]
        assert shown(app) is not None
        statuses = [bytes(answer.units["atom"].statuses) for answer in shown(app).state.map.answers]
        assert statuses == [bytes(answer.units["atom"].statuses) for answer in whole.state.map.answers]

    drive(scenario, database)


def test_a_crashing_child_is_one_line_and_the_app_stays(script: Callable[..., Path], tmp_path: Path) -> None:
    import json

    path = script()
    data = json.loads(path.read_text("utf-8"))
    for reply in data["replies"]:
        reply["crash"] = {"after": 1, "signal": 11, "times": 9}
    path.write_text(json.dumps(data), encoding="utf-8")

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: finished(app), 40)
        await pilot.press("o")
        await until(pilot, lambda: "SIGSEGV" in screen_text(app))
        assert "Traceback" not in screen_text(app)
        await pilot.press("3")
        await until(pilot, lambda: "/8 " in screen_text(app) and " failed " in screen_text(app))

    drive(scenario, tmp_path / "salt.db", request(path))


def test_every_screen_fits_every_size(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and not shown(app).reading)  # type: ignore[union-attr]
        for width, height in ((60, 16), (80, 24), (120, 40), (200, 50)):
            await pilot.resize_terminal(width, height)
            for key in ("3", "1", "2"):
                await pilot.press(key)
                await until(pilot, lambda height=height: len(screen_text(app).split("\n")) == height)  # type: ignore[misc]
                await until(pilot, lambda: "Quit" in screen_text(app).split("\n")[-1])
                assert max(map(len, screen_text(app).split("\n"))) <= width

    drive(scenario, stored, size=(200, 50))


def test_too_small_is_one_sentence_and_the_cursor_is_kept(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and not shown(app).reading)  # type: ignore[union-attr]
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        await pilot.press("home", "w", "w")
        await pilot.pause()
        cursor = screen.heatmap.cursor
        await pilot.resize_terminal(59, 16)
        await pilot.pause()
        assert "finished" not in screen_text(app)
        assert "salt-tui needs 60 columns and 16 rows" in " ".join(screen_text(app).split())
        await pilot.resize_terminal(20, 3)
        await pilot.pause()
        await pilot.resize_terminal(60, 16)
        await pilot.pause()
        assert app.screen is screen
        assert screen.heatmap.cursor == cursor
        assert cursor is not None
        row = screen.heatmap.map.position(cursor)[0]
        assert 0 <= row - screen.heatmap.scroll_offset.y < screen.heatmap.size.height

    drive(scenario, stored)


def test_a_terminal_that_is_too_small_from_the_start(tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        assert screen_text(app).split() == SENTENCE.split()
        await pilot.press("q")
        await until(pilot, lambda: app.return_code is not None)

    assert drive(scenario, tmp_path / "salt.db", size=(40, 10)).return_code == 0


def test_keys_do_not_reach_a_screen_that_nobody_sees(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: "smollm2" in screen_text(app))
        setup = app.screen
        assert isinstance(setup, SetupScreen)
        setup.query_one("#seed", Input).focus()
        await pilot.resize_terminal(50, 24)
        await pilot.press("7", "3", "ctrl+p", "question_mark")
        await pilot.pause()
        assert app.screen_stack == [setup]
        assert setup.query_one("#seed", Input).value == "0"
        await pilot.resize_terminal(80, 24)
        await pilot.press("7")
        assert "7" in setup.query_one("#seed", Input).value
        await pilot.press("escape")
        await pilot.resize_terminal(80, 10)
        await pilot.press("q")
        await until(pilot, lambda: app.return_code is not None)

    assert drive(scenario, stored).return_code == 0


def palette(app: SaltApp) -> set[str]:
    """Return the names of the bindings that the palette lists."""
    listed = {command.title for command in app.get_system_commands(app.screen)}
    return {str(binding.id) for binding, _ in bindings_on(app.screen, app) if words_of(binding) in listed}


def test_the_palette_lists_what_can_be_done_now(stored: Path, tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: "smollm2" in screen_text(app))
        assert not palette(app) & {"setup.resume"}
        await pilot.press("2")
        await pilot.pause()
        of_a_run = {"live.function", "live.export", "map.next_wrong", "map.surest_wrong", "live.granularity"}
        assert not palette(app) & {*of_a_run, "live.pause"}
        assert "app.quit" in palette(app)
        app.post_message(OpenRun(1))
        await until(pilot, lambda: finished(app) and not shown(app).reading)  # type: ignore[union-attr]
        # What a key may do follows the screen's next look at the run.
        await until(pilot, lambda: palette(app) >= of_a_run)
        await until(pilot, lambda: not palette(app) & {"live.pause", "live.cancel_run", "live.resume"})
        await pilot.press("3")
        await until(pilot, lambda: "1 run" in screen_text(app))
        assert palette(app) >= {"runs.open", "runs.delete"}
        assert "runs.resume" not in palette(app)
        await pilot.press("slash", *"nothing")
        await until(pilot, lambda: "0 of 1" in screen_text(app))
        assert not palette(app) & {"runs.open", "runs.delete", "runs.export"}

    drive(scenario, stored)


def test_resuming_in_another_environment_asks(script: Callable[..., Path], tmp_path: Path) -> None:
    database = tmp_path / "salt.db"
    compute(database, script(seconds_per_step=0.02), stop_after=5)
    with open_queries(database) as queries:
        record = queries.run_record(1).record
    with open_store(database) as store:
        elsewhere = json.dumps({**json.loads(record.environment), "python_version": "2.7.18"}, sort_keys=True)
        store.update_environment(Work(1), elsewhere, "elsewhere", True, ())

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        for key in ("n", "y"):
            app.post_message(ResumeRun(1))
            await until(pilot, lambda: "Resume run 1 in" in screen_text(app))
            assert isinstance(app.screen, Question)
            words = " ".join(screen_text(app).split())
            assert 'python_version: "2.7.18" -> ' in words
            assert "Resume run 1 in another environment?" in words
            assert "--allow" not in screen_text(app)
            await pilot.press(key)
            await pilot.pause()
            if key == "n":
                assert shown(app) is not None
                assert shown(app).resumable
        await until(pilot, lambda: finished(app))

    drive(scenario, database)
    with open_queries(database) as queries:
        stored = queries.run_record(1)
    assert (stored.state, stored.record.exact) == ("finished", False)


def test_following_stops_when_the_user_moves_and_end_resumes_it(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and not shown(app).reading)  # type: ignore[union-attr]
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        await pilot.press("end")
        await pilot.pause()
        assert "newest below" in screen_text(app)
        await pilot.press("up")
        await pilot.pause()
        assert "end follows" in screen_text(app)

    drive(scenario, stored)


def test_no_colour_reaches_the_terminal_without_colours(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and not shown(app).reading)  # type: ignore[union-attr]
        await pilot.press("home")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        for y in range(screen.heatmap.size.height):
            for segment in screen.heatmap.draw_row(y):
                style = segment.style
                assert style is None or (style.color is None and style.bgcolor is None)

    drive(scenario, stored, mode=DrawingMode.PLAIN)


def test_keys_can_be_changed_and_mistakes_are_named(tmp_path: Path, stored: Path) -> None:
    keys_path().parent.mkdir(parents=True)
    keys_path().write_text('"app.runs" = "z"\n"app.rums" = "y"\n"map.left" = 3\n', encoding="utf-8")

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        words = " ".join(note.message for note in app._notifications)
        assert "there is no binding 'app.rums'" in words
        assert "map.left must be keys" in words
        await pilot.press("z")
        await pilot.pause()
        assert app.current_mode == "runs"

    drive(scenario, stored)


def test_the_palette_lists_what_has_a_key_and_nothing_else(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and bool(app.screen.query(AtomHeatmap)))
        listed = {command.title for command in app.get_system_commands(app.screen)}
        bound = {
            binding.tooltip or binding.description
            for owner in (AtomHeatmap, LiveScreen, SaltApp)
            for binding in owner.BINDINGS  # type: ignore[union-attr]
        }
        assert listed < bound, "pausing and stopping are not possible"
        await pilot.press("ctrl+p")
        await pilot.pause()
        await pilot.press(*"atoms or")

        def first_found() -> str:
            commands = app.screen.query_one(CommandList)
            return str(commands.get_option_at_index(0).prompt) if commands.option_count else ""

        await until(pilot, lambda: "toms or" in first_found())
        await pilot.press("enter")
        await until(pilot, lambda: shown(app).state.map.kind == "line")  # type: ignore[union-attr]

    drive(scenario, stored)


def test_every_part_of_the_bindings_has_a_title_in_help_or_is_a_window() -> None:
    parts = {str(binding.id).partition(".")[0] for binding in all_bindings(SaltApp)}
    assert parts - set(PARTS) == {"question", "input", "text", "export", "why"}


def reversed_rows(app: SaltApp, name: str) -> int:
    """Count the rows of a list that stand out by reversal."""
    rows = [widget.render_line(y) for widget in app.screen.query(name) for y in range(widget.size.height)]
    return sum(any(part.style and part.style.reverse for part in row) for row in rows)


def test_the_cursor_of_every_list_is_seen_without_colours(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: "smollm2" in screen_text(app))
        for key, name in (("tab", "#models"), ("3", "#task-list"), ("3", "#runs")):
            await until(pilot, lambda wanted=name: reversed_rows(app, wanted) == 1)  # type: ignore[misc]
            assert reversed_rows(app, name) == 1
            await pilot.press(key)

    drive(scenario, stored, mode=DrawingMode.PLAIN)


def test_the_cover_does_not_stay_under_a_question(script: Callable[..., Path], tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and computed(app).computing)  # type: ignore[union-attr]
        await pilot.resize_terminal(50, 10)
        await pilot.pause()
        await pilot.press("q")
        await pilot.pause()
        assert "Quit while a run computes?" in screen_text(app)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        await pilot.press("n")
        await pilot.pause()
        assert "needs 60 columns" not in screen_text(app)
        assert "kronecker_product" in screen_text(app)
        await pilot.press("1")
        await until(pilot, lambda: "Samples" in screen_text(app))

    drive(scenario, tmp_path / "salt.db", request(script(30, seconds_per_step=0.05), 30))


def test_a_run_begun_in_a_small_terminal_leaves_every_screen_free(script: Callable[..., Path], tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await pilot.pause(0.1)
        assert "needs 60 columns" in " ".join(screen_text(app).split())
        await pilot.resize_terminal(80, 24)
        for key, words in (("1", "Samples"), ("2", "dna_translation"), ("3", "tiny.script"), ("2", "dna_translation")):
            await pilot.press(key)
            await until(pilot, lambda words=words: words in screen_text(app))  # type: ignore[misc]
            assert "needs 60 columns" not in screen_text(app)
        await pilot.resize_terminal(80, 15)
        await pilot.press("1")
        await until(pilot, lambda: "needs 60 columns" in screen_text(app))

    drive(scenario, tmp_path / "salt.db", request(script(30, seconds_per_step=0.05), 30), size=(50, 10))


@pytest.mark.parametrize(
    ("module", "name", "key"),
    [
        ("salt_tui.app.setup_state", "look_around", None),
        ("salt_tui.app.setup_state", "task_example", "e"),
        ("salt_tui.app.runs_state", "open_queries", "3"),
    ],
)
def test_the_failure_of_every_worker_is_one_line(
    stored: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str, key: str | None
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/some/place")

    monkeypatch.setattr(f"{module}.{name}", fail)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        if key == "e":
            await until(pilot, lambda: "arc_grid" in screen_text(app))
            await pilot.press("tab")
        if key is not None:
            await pilot.press(key)
        line = "/some/place: Permission denied"
        await until(pilot, lambda: line in screen_text(app) or any(line in note.message for note in app._notifications))
        assert "Traceback" not in screen_text(app)

    drive(scenario, stored)


def test_setup_and_live_lose_nothing_at_the_least_size(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: "smollm2" in screen_text(app))
        text = screen_text(app)
        for words in (" salt-tui ", "Model", "Tasks", "arc_grid", "Difficulty", "Width", "Start", "Resume", "Quit"):
            assert words in text
        for widget in app.screen.query("#width, #start, #cost, #models, #task-list"):
            assert app.screen.region.contains_region(widget.region), widget
            assert widget.region.height > 0
        app.post_message(OpenRun(1))
        await until(pilot, lambda: "finished" in screen_text(app) and " (4/8) " in screen_text(app))
        await pilot.press("o")
        await pilot.pause(0.1)
        lines = screen_text(app).splitlines()
        assert "finished" in lines[1]
        assert ".61 [" in lines[-3]
        assert " n 25 · inside .27 [.00 .84] (4/8) of 1 task · 2 tasks" in lines[-2]
        assert app.screen.query_one("#map").size.height >= 2

    drive(scenario, stored, size=(60, 16))


def test_a_changed_key_is_shown_in_help_and_palette(stored: Path) -> None:
    keys_path().parent.mkdir(parents=True, exist_ok=True)
    keys_path().write_text('"app.runs" = "z,slash"\n"map.left" = "nonsense"\n', encoding="utf-8")

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        assert "'nonsense' is no key" in " ".join(note.message for note in app._notifications)
        groups = dict(app.key_groups())
        assert ("z /", "Runs: the stored runs") in groups["Everywhere"]
        assert ("space", "Mark") in groups["Tasks"]
        listed = {command.title: command.help for command in app.get_system_commands(app.screen)}
        assert listed["Runs: the stored runs"] == "key z /"
        assert listed["Help"] == "key ? f1"

    drive(scenario, stored)
