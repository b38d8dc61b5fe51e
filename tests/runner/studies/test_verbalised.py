"""Questions about stored answers on the scripted engine: what is asked, what is read, and that it resumes exactly."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from salt_tui.engine.events import Chosen, Token
from salt_tui.engine.requests import Choice, Forced, Free
from salt_tui.runner.events import PromptEvaluated, RunEnded
from salt_tui.runner.jobs import Ending, JobName, Output
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.prompting import EncodedProblem
from salt_tui.runner.request import RunRequest
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study, read_study_plan
from salt_tui.runner.studies.questions import (
    NO_NUMBER,
    QuestionJob,
    label_choice,
    mass_of,
    mass_remark,
    question_text,
)
from salt_tui.runner.studies.registry import study_kind
from salt_tui.store.queries import open_queries
from salt_tui.store.records import SignalRecord, Work
from salt_tui.usage_error import UsageError
from tests.conftest import ScriptedModel
from tests.runner.studies.test_samples import SIGNALS, TASKS, computed, make_run, resume_study, rows

ALL = "p_true,p_true_independent,verbalised"


class Kept:
    """Stands for a store: keeps what is written."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.signals: list[SignalRecord] = []
        self.reply = b""

    def add_signals(self, work, signals):
        """Keep signals."""
        self.signals += signals

    def add_tokens(self, generation, tokens):
        """Drop tokens."""

    def end_generation(self, generation, end):
        """Keep the reply."""
        self.reply = end.reply


PIECES = (b"<end>", b"True", b"False", b"0", b".5", b"\n", b"9")


def job(choice: Choice | None, units=(0, 2), marks=((5,), (5,))) -> QuestionJob:
    name = JobName(1, "maze", 0, "question", 7, 0)
    prompt = EncodedProblem((1, 1, 1), 1)
    return QuestionJob(name, "x", "atom", units, prompt, (3, 4), (5, 6), marks, choice, False, PIECES)


def token(position: int, number: int, *, forced: bool = False) -> Token:
    return Token(1, position, number, -0.5, 0.5, (number,), (-0.5,), forced, number == 0)


def said(asked: QuestionJob, events, reason="done") -> Kept:
    kept = Kept()
    attempt = asked.begin(Output(Work(1, 1, 1), kept, lambda event: None, 9), 1)
    for event in events:
        attempt.take(event)
    attempt.end(Ending(reason, None, 0.0, 0.0))
    return kept


def test_labels_are_read_from_the_distribution_at_each_unit() -> None:
    choice = Choice(((1,), (2,), (1, 1)), (0, 1, 0))
    logs = [tuple(map(math.log, values)) for values in ((0.5, 0.125, 0.25), (0.01, 0.03, 0.0001))]
    events = [Chosen(1, 5, logs[0], 0), token(5, 1, forced=True), Chosen(1, 7, logs[1], 1), token(7, 2, forced=True)]
    first, second = said(job(choice), events).signals
    assert (first.generation, first.kind, first.index, first.name) == (7, "atom", 0, "x")
    assert first.value == pytest.approx(0.75 / 0.875)
    assert (second.index, second.value) == (2, pytest.approx(0.0101 / 0.0401))
    assert mass_of(first.reason) == pytest.approx(0.875)
    assert first.reason == mass_remark(0.875) == "the labels have 0.875 of the probability"
    assert second.reason.endswith(", less than half")


def test_numbers_are_read_whole_and_what_is_none_says_so() -> None:
    asked = job(None, units=(0, 1, 2), marks=((5,), (5,), (5,)))
    events = [token(2, 5, forced=True), token(4, 5, forced=True), token(5, 3), token(6, 4), token(7, 5, forced=True)]
    events += [token(8, 6), token(9, 5), token(10, 5, forced=True), token(11, 3), token(12, 0)]
    kept = said(asked, events, "end")
    assert [(signal.index, signal.value, signal.reason) for signal in kept.signals] == [
        (0, 0.5, None), (1, None, NO_NUMBER), (2, 0.0, None),
    ]  # fmt: skip
    assert kept.reply == b"\n\n0.5\n9\n\n0<end>"


def test_units_that_could_not_be_asked_say_why_and_cancelled_ones_say_nothing() -> None:
    kept = said(job(Choice(((1,), (2,)), (0, 1))), [], "context")
    assert [signal.reason for signal in kept.signals] == ["it could not be asked: context"] * 2
    assert said(job(None), [], "cancelled").signals == []


def test_a_request_shares_the_answer_and_forces_a_mark_before_each_value() -> None:
    choice = Choice(((1,), (2,)), (0, 1))
    request = job(choice).request(3)
    assert request.trunk == 2
    assert request.segments == (Forced((3, 4, 5, 6, 5)), choice, Forced((5,)), choice)
    assert job(choice).prompt.prompt == (1, 1, 1, 3, 4)
    forked = replace(job(None, units=(2,), marks=((5,),)), forked=True)
    assert forked.request(3).trunk == 4
    assert forked.request(3).segments[1] == Free(8, (b"\n",), past_end=True)
    assert forked.prompt.prompt == (1, 1, 1, 3, 4, 5, 6)


def test_spellings_with_the_same_ids_count_once_and_none_begins_with_another() -> None:
    class Engine:
        def tokenize(self, text: bytes) -> tuple[int, ...]:
            known = {b"True": (1,), b" True": (1,), b"true": (1, 2), b" true": (3, 2), b"False": (4,)}
            return known.get(text, (5, len(text)))

    choice = label_choice(Engine())
    assert dict(zip(choice.options, choice.groups, strict=True)) == {(1,): 0, (3, 2): 0, (4,): 1, (5, 6): 1, (5, 5): 1}


def test_each_unit_stands_on_a_line_of_its_own() -> None:
    text = question_text("label", "atom", ["A", "two\n words"])
    assert "\n1: A\n2: two words\n\nIs each of them correct?" in text
    assert "entirely correct" in question_text("number", "generation", ["A"])


@pytest.fixture
def model(scripted_model: ScriptedModel) -> Path:
    return scripted_model(*TASKS, limit=2, seconds_per_step=0.0005)


def ask(database: Path, stop_after: int | None = None, **options: str) -> list[object]:
    asked = StudyRequest("verbalised", "1", {"functions": ALL, **options})
    return computed(lambda emit: prepare_study(asked, database, emit), stop_after)


def test_every_unit_is_asked_and_the_whole_answer_is_said_of_each(model: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(model, database)
    events = ask(database)
    assert isinstance(events[-1], RunEnded)
    assert events[-1].state == "finished"
    units = rows(database, "SELECT kind, count(*) FROM unit JOIN generation ON generation.id = unit.generation"
                 " WHERE role = 'answer' AND text IS NOT NULL GROUP BY kind")  # fmt: skip
    asked = {
        (name, kind): count
        for name, kind, count in rows(database, "SELECT name, kind, count(*) FROM signal GROUP BY name, kind")
    }
    for kind, count in units:
        for name in ("p_true", "verbalised"):
            assert asked[name, kind] == count
            assert asked.get((f"{name}_broadcast", kind), 0) == (0 if kind == "generation" else count)
        assert asked.get(("p_true_independent", kind), 0) == (0 if kind == "generation" else count)
    with open_queries(database) as queries:
        work = queries.find_work("1.1")
        study = queries.study_record(work)
        kind = study_kind("verbalised")
        result = kind.result(queries, study, read_study_plan(database, study))
        turn = queries.prompt_bytes(queries.generations(work, "question")[0].id)
    table = {(row[0], row[1]): dict(zip(result.columns[2:], row[2:], strict=True)) for row in result.rows}
    whole = table["verbalised", "generation"]
    assert (whole["asked"], whole["no_number"], whole["doubtful"]) == (4, 4, None)  # the script only ends its replies
    assert table["p_true", "atom"]["doubtful"] == table["p_true", "atom"]["asked"]
    assert any("tokens" in note or "cannot be said" in note for note in result.notes)
    without = [note for note in result.notes if "verbalised has a value for 0 of" in note]
    assert without, "a score that could not be compared is named"
    doubted = next(note for note in result.notes if note.startswith("Atoms: doubtful are "))
    assert f"{table['p_true', 'atom']['asked']} of {table['p_true', 'atom']['asked']} values of p_true" in doubted
    assert doubted.endswith("nothing is concluded from these functions.")
    compared = [note for note in result.notes if note.startswith("Atoms: ") and note != doubted]
    assert all("p_true" not in note for note in compared)
    assert b"****" in turn  # the question's prompt holds the answer


@pytest.mark.parametrize("template", ["", None], ids=["base", "chat"])
def test_stopped_and_resumed_gives_the_same_signals(
    scripted_model: ScriptedModel, tmp_path: Path, template: str | None
) -> None:
    keys = {} if template is None else {"template": template}
    model = scripted_model(*TASKS, limit=2, seconds_per_step=0.0005, **keys)
    whole, halves = tmp_path / "whole.db", tmp_path / "halves.db"
    for database in (whole, halves):
        make_run(model, database)
    ask(whole)
    events = ask(halves, stop_after=7)
    assert events[-1].state == "interrupted"
    resume_study(halves)
    assert rows(halves, SIGNALS) == rows(whole, SIGNALS)
    assert len(rows(whole, SIGNALS)) > 40
    replies = "SELECT problem, number, reply FROM generation WHERE role = 'question' ORDER BY 1, 2"
    assert rows(halves, replies) == rows(whole, replies)
    asked = b"Question:" if template == "" else b"<|im_start|>user"
    assert all(asked in reply or number for _, number, reply in rows(whole, replies))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"functions": "p_true,sure"}, "--functions sure: there are p_true, p_true_independent, verbalised"),
        ({"unit": "word"}, "--unit word: there are generation, line, atom"),
        ({"functions": "p_true_independent", "unit": "generation"}, "is asked of lines and atoms"),
    ],
)
def test_options_that_cannot_be_meant_are_one_line(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        study_kind("verbalised").complete(options)


@pytest.mark.model
def test_no_answer_is_evaluated_twice(tmp_path: Path) -> None:
    """The first question about an answer evaluates its prompt; every other one begins where that is done."""
    database = tmp_path / "x.db"
    computed(lambda emit: prepare_run(RunRequest("nano", ("words_collection",), "trivial", 6, 1), database, emit))
    events = ask(database, functions="p_true,p_true_independent,verbalised")
    first = {}
    for event in events:
        if isinstance(event, PromptEvaluated):
            first.setdefault(event.generation, event)
    evaluated = [number for number, event in first.items() if event.done < event.total]
    answers = rows(database, "SELECT count(DISTINCT parent) FROM generation WHERE role = 'question'")
    assert [(len(evaluated),)] == answers == [(6,)]
    assert len(first) > 30
    # A walked beginning gives the same numbers as an answer that is asked about alone.
    alone = tmp_path / "alone.db"
    computed(lambda emit: prepare_run(RunRequest("nano", ("words_collection",), "trivial", 6, 1), alone, emit))
    ask(alone, functions="p_true", unit="atom")
    query = "SELECT generation, \"index\", value FROM signal WHERE name = 'p_true' AND kind = 'atom' ORDER BY 1, 2"
    assert rows(alone, query) == rows(database, query)
