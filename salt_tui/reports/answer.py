"""One answer as it was given: prompt, reply with marks, reference, and its atoms with their confidences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from salt_tui.measure.header import statistics_words
from salt_tui.number_text import UNDEFINED
from salt_tui.palette import GLYPHS
from salt_tui.reports.text_tables import TextTable, number
from salt_tui.runner.plan import RunPlan
from salt_tui.runner.prompting import asked_turns
from salt_tui.runner.request import method_of
from salt_tui.store.queries import Queries
from salt_tui.store.records import ProblemRecord, SignalRecord, UnitRecord, Work
from salt_tui.store.results import EditedBranch
from salt_tui.store.schema import CONFIDENCE_COLUMNS
from salt_tui.store.stored_values import Place
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from scoring.confidence import HEADLINE_FUNCTION

SHOWN_FUNCTIONS = (HEADLINE_FUNCTION, "joint_probability", "mean_entropy")
"""Columns of the table of atoms, before those of the signals; JSON has all functions."""

LINE_WIDTH = 80
"""Columns of a line of signals, as of a terminal whose width nobody knows."""


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """What is stored of one generation.

    Attributes:
        work: the run or study that generated it.
        role, number: what it is and which one of its role, from 0.
        variant: name of a branch; empty for everything else.
        branch: what was edited, of a branch in which something is; None for everything else.
        prompt: with the template's marks; None where the engine gave no ids or it was not begun.
        prompt_tokens: None where there is no prompt.
        reply: None until it is finished.
        status: of the answer; None until it is finished and for what is no answer.
        units: atoms in order, missing ones too.
        signals: values of signals for its atoms, by name as shown; empty for what is no answer of the run.
        statistics: what the numbers of its tokens rest on: ``vocabulary``, ``top_k`` or ``none``.
        messages: role and text of what was asked, where there is no prompt: a server puts them into its own template.
    """

    work: Work
    problem: ProblemRecord
    role: str
    number: int
    prompt: bytes | None
    prompt_tokens: int | None
    reply: bytes | None
    status: str | None
    stop_reason: str | None
    units: tuple[UnitRecord, ...]
    signals: dict[str, dict[int, SignalRecord]]
    statistics: str
    messages: tuple[tuple[str, str], ...] = ()
    variant: str = ""
    branch: EditedBranch | None = None


def read_answers(queries: Queries, name: str, answer: str) -> tuple[AnswerReport, ...]:
    """Read an answer of a run, or all that a study generated for it.

    Args:
        queries: of the file.
        name: ``N``, ``N.K`` or ``latest``.
        answer: ``TASK:POSITION``, counted from 1.

    Raises:
        UsageError: no such answer; the message says which there are.
        StoreError: no such run or study.
    """
    work = queries.find_work(name)
    answers = {f"{known.problem.task}:{known.problem.position + 1}": known for known in queries.answers(work.run)}
    if answer not in answers:
        tasks: dict[str, int] = {}
        for known in answers.values():
            tasks[known.problem.task] = tasks.get(known.problem.task, 0) + 1
        listed = ", ".join(f"{task}:1 to {task}:{count}" for task, count in tasks.items())
        raise UsageError(f"{work.title} has no answer {answer!r}; it has {listed}")
    found = answers[answer]
    generations = [item for item in queries.generations(work) if item.problem_id == found.problem_id]
    statistics = (queries.run_record(work.run) if work.study is None else queries.study_record(work)).record.statistics
    if not generations:
        return (AnswerReport(work, found.problem, "answer", 0, None, None, None, None, None, (), {}, statistics),)
    reports = []
    edited = {branch.record.generation: branch for branch in queries.edited_branches(work)} if work.study else {}
    variants = {record.generation: record.variant for record in queries.interventions(work)} if work.study else {}
    for item in generations:
        prompt = queries.prompt(item.id)
        reports.append(
            AnswerReport(
                work=work,
                problem=found.problem,
                role=item.role,
                number=item.number,
                prompt=queries.prompt_bytes(item.id),
                prompt_tokens=None if prompt is None else len(prompt),
                reply=item.reply,
                status=item.answer_status,
                stop_reason=item.stop_reason,
                units=tuple(queries.units(item.id, "atom")),
                signals=_signals(queries, work.run, item.id) if item.role == "answer" else {},
                variant=variants.get(item.id, ""),
                branch=edited.get(item.id),
                statistics=statistics,
                messages=() if prompt is not None else _messages(queries, work.run, found.problem),
            )
        )
    return tuple(reports)


def _messages(queries: Queries, run: int, problem: ProblemRecord) -> tuple[tuple[str, str], ...]:
    """Return what an engine without token ids was asked; nothing where the plan says that nothing was."""
    plan = Place(queries.path, f"run {run}").read("plan", queries.run_record(run).record.plan, RunPlan.from_json)
    task = next((task for task in plan.tasks if task.task == problem.task), None)
    if task is None or plan.sent is None:
        return ()
    return tuple((turn.role, turn.content) for turn in asked_turns(problem, method_of(task.method), task.shots))


def _signals(queries: Queries, run: int, generation: int) -> dict[str, dict[int, SignalRecord]]:
    return {
        signal.shown: {record.index: record for record in queries.signals(run, signal.shown, "atom", generation)}
        for signal in queries.signal_names(run)
        if "atom" in signal.kinds
    }


def answer_data(report: AnswerReport) -> dict[str, Any]:
    """Return an answer as JSON; texts are as the model wrote them, bytes that are no UTF-8 replaced."""
    return {
        "run": report.work.run,
        "study": None if report.work.number is None else str(report.work),
        "task": report.problem.task,
        "position": report.problem.position + 1,
        "role": report.role,
        "number": report.number,
        **({} if report.branch is None else _branch_data(report.branch)),
        "answer_status": report.status,
        "stop_reason": report.stop_reason,
        "statistics": report.statistics,
        "messages": [{"role": role, "content": content} for role, content in report.messages] or None,
        "prompt": _text(report.prompt),
        "prompt_tokens": report.prompt_tokens,
        "reply": _text(report.reply),
        "reference": report.problem.reference,
        "atoms": [_atom_data(report, unit) for unit in report.units],
    }


def _branch_data(branch: EditedBranch) -> dict[str, Any]:
    return {
        "branch": branch.name,
        "edited_from": branch.parent_name,
        "edits": [[index + 1, text] for index, text in branch.record.edits],
        "target": branch.record.target + 1,
    }


def _atom_data(report: AnswerReport, unit: UnitRecord) -> dict[str, Any]:
    confidences = dict(zip(CONFIDENCE_COLUMNS, unit.confidences, strict=True))
    signals = {name: records.get(unit.index) for name, records in report.signals.items()}
    reasons = {name: record.reason for name, record in signals.items() if record is not None and record.reason}
    return {
        "index": unit.index,
        "line": unit.line,
        "text": unit.text,
        "reference": unit.reference,
        "status": unit.status,
        "byte_start": unit.byte_start,
        "byte_end": unit.byte_end,
        "confidences": confidences | {name: record and record.value for name, record in signals.items()},
        "reasons": reasons,
    }


def answer_lines(report: AnswerReport) -> Iterable[str]:
    """Yield the lines of an answer for people; what a model wrote cannot move the cursor."""
    name = f"answer {report.problem.position + 1} of {visible(report.problem.task)}, {report.work.title}"
    if report.role != "answer":
        called = f" ({visible(report.variant)})" if report.variant else ""
        name = f"{report.role} {report.number + 1}{called} of {name}"
    if report.reply is None:
        absent = "not begun" if report.work.study is None else "not begun, or not one that the study is about"
        how = absent if report.prompt_tokens is None else "not finished"
    else:
        right = sum(unit.status == "correct" for unit in report.units)
        written = sum(unit.status != "missing" for unit in report.units)
        how = f"{report.status or report.stop_reason}, {right} of {written} atoms right"
    yield f"{name}: {how}{statistics_words(report.statistics, ', ')}"
    if report.branch is not None:
        yield _edited(report.branch)
    if report.prompt is not None:
        yield from ("", f"-- prompt, {report.prompt_tokens} tokens")
        yield from _visible_lines(_text(report.prompt) or "")
    for role, content in report.messages:
        yield from ("", f"-- {visible(role)}")
        yield from _visible_lines(content)
    if report.reply is not None:
        marks = " ".join(f"{GLYPHS[status]} {status}" for status in ("correct", "wrong", "redundant", "abstained"))
        yield from ("", f"-- reply; the mark behind an atom: {marks}")
        yield from _visible_lines(_marked(report.reply, report.units))
    yield from ("", "-- reference")
    yield from _visible_lines(report.problem.reference)
    if report.units:
        yield from ("", "-- atoms")
        for table in (_atom_table(report), *_signal_tables(report)):
            yield from (*table.as_text(), "")


def _edited(branch: EditedBranch) -> str:
    """Say what a branch was edited from and what was changed."""
    source = "the answer" if branch.parent_name is None else f"branch {visible(branch.parent_name)}"
    written = f"the model wrote on from atom {branch.record.target + 1}"
    return f"edited from {source}: {visible(branch.edits_in_words())}; {written}"


def _marked(reply: bytes, units: Sequence[UnitRecord]) -> str:
    """Return a reply with a mark behind each atom."""
    pieces: list[bytes] = []
    place = 0
    for unit in sorted(units, key=lambda unit: unit.byte_end or 0):
        if unit.byte_end is not None:
            pieces += [reply[place : unit.byte_end], GLYPHS[unit.status].encode()]
            place = unit.byte_end
    return b"".join((*pieces, reply[place:])).decode(errors="replace")


def _atom_table(report: AnswerReport) -> TextTable:
    columns = [CONFIDENCE_COLUMNS.index(name) for name in SHOWN_FUNCTIONS]
    rows = []
    for unit in report.units:
        rows.append(
            (
                str(unit.index + 1),
                UNDEFINED if unit.text is None else visible(unit.text, 24),
                UNDEFINED if unit.reference is None else visible(unit.reference, 24),
                unit.status,
                *(number(unit.confidences[column]) for column in columns),
            )
        )
    heads = ("atom", "text", "reference", "verdict", *SHOWN_FUNCTIONS)
    return TextTable("", heads, tuple(rows), left=4)


def _signal_tables(report: AnswerReport) -> Iterator[TextTable]:
    """Yield the signals of the atoms, as many beside each other as fit on a line."""
    group: list[str] = []
    for name in (*report.signals, None):
        if name is None or len(" ".join(("atom", *group, name))) > LINE_WIDTH:
            rows = tuple((str(unit.index + 1), *_values(report, group, unit.index)) for unit in report.units)
            if group:
                yield TextTable("", ("atom", *map(visible, group)), rows, left=1)
            group = []
        if name is not None:
            group.append(name)


def _values(report: AnswerReport, names: Sequence[str], index: int) -> Iterator[str]:
    for name in names:
        record = report.signals[name].get(index)
        yield number(None if record is None else record.value)


def _visible_lines(text: str) -> Iterable[str]:
    yield from (visible(line) for line in text.split("\n"))


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")
