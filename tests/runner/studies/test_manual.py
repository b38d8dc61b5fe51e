"""Edits in a real vocabulary: whatever is edited, the text before the target is exactly the edited one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from salt_tui.runner.background import BackgroundRun
from salt_tui.runner.events import RunEnded
from salt_tui.runner.kept_engine import EngineKeeper
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import UnitRecord

pytestmark = pytest.mark.model

TASKS = ("matrix_multiplication", "first_order_logic", "dna_translation")


@pytest.fixture
def keeper() -> Iterator[EngineKeeper]:
    keeper = EngineKeeper()
    yield keeper
    assert keeper.release(10)


def edit(keeper: EngineKeeper, database: Path, answer: str, edits: dict[int, str]) -> str | None:
    """Edit an answer; return why it was refused."""
    values = ";".join(f"{index + 1}={text}" for index, text in edits.items())
    request = StudyRequest("manual", "1", {"answer": answer, "set": values})
    run = BackgroundRun(lambda emit: prepare_study(request, database, emit, keeper=keeper), str, keeper)
    run.start()
    assert run.join(60)
    last = run.mailbox[-1]
    assert isinstance(last, RunEnded)
    return last.message


def edited(reply: bytes, atoms: list[UnitRecord], edits: dict[int, str]) -> bytes:
    """Exchange atoms of a reply and cut it behind the last of them."""
    text, place = b"", 0
    for index, new in sorted(edits.items()):
        text += reply[place : atoms[index].byte_start] + new.encode()
        place = atoms[index].byte_end or 0
    return text


def newest(queries: Queries) -> tuple[bytes, list[str | None]]:
    branch = max(queries.edited_branches(queries.find_work("1.1")), key=lambda one: one.record.generation)
    generation = branch.record.generation
    return queries.reply(generation) or b"", [unit.text for unit in queries.units(generation, "atom")]


def test_the_text_before_the_target_is_exactly_the_edited_one(tmp_path: Path, keeper: EngineKeeper) -> None:
    database = tmp_path / "x.db"
    run = ["run", "-m", "nano", "--tasks", ",".join(TASKS), "--difficulty", "easy", "--limit", "1", "--seed", "1"]
    assert run_command_line([*run, "--db", str(database), "--display", "none"]) == 0
    with open_queries(database) as queries:
        answers = {answer.problem.task: answer for answer in queries.answers(1)}
        atoms = {
            task: [unit for unit in queries.units(answer.generation or 0, "atom") if unit.text is not None]
            for task, answer in answers.items()
        }
    texts = {
        "matrix_multiplication": ("-7", "12345", "é"),
        "first_order_logic": ("p1: False", "p12: True"),
        "dna_translation": ("GAC", "ü", "GATTACA", "[b]"),
    }
    done = 0
    for task, answer in answers.items():
        last = len(atoms[task]) - 1
        assert last >= 2
        for number, text in enumerate(texts[task]):
            # At the very start, at the end, two neighbours, everything.
            for places in ((0,), (last,), (1, 2), range(last + 1))[number % 2 :: 2]:
                edits = {place: text for place in places if atoms[task][place].text != text}
                assert edit(keeper, database, f"{task}:1", edits) is None
                with open_queries(database) as queries:
                    reply, found = newest(queries)
                assert reply.startswith(edited(answer.reply or b"", atoms[task], edits))
                assert [found[place] for place in edits] == list(edits.values())
                done += 1
    assert done >= 16
    assert run_command_line(["db", "check", str(database)]) == 0
