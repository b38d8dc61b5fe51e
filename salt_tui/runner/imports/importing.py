"""A file of answers from elsewhere becomes a run: read, checked and scored row by row, stored in one transaction.

Scored rows wait in a temporary file until the last one was read.  So nothing is stored of a file with a bad row, the
write lock is held only while rows are copied, and a large file needs little memory.
"""

from __future__ import annotations

import pickle
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import salt_tui
from salt_tui.engine import engine_kinds
from salt_tui.engine.model_registry import ModelEntry
from salt_tui.engine.models import ResolvedModel
from salt_tui.inputs.json_lines import read_rows
from salt_tui.inputs.text_lines import STDIN
from salt_tui.runner.imports.problem_rows import RowProblemError
from salt_tui.runner.imports.reading import ReadAnswer, read_answer
from salt_tui.runner.plan import Environment, RunPlan, SamplingPlan, TaskPlan, canonical_json, content_hash
from salt_tui.store.disk_space import room_for
from salt_tui.store.records import IMPORTED, FinishedAnswer, ModelRecord, RunRecord
from salt_tui.store.store import check_place, open_store
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from tasks.own_problems import FILE_PREFIX, PROMPT_VERSION
from tasks.prompts import worked_examples
from tasks.registry import get_task

MOST_ROWS = 100_000
MOST_CHARACTERS = 1_000_000_000
"""Of a file, after it was unpacked; a file on disk that is larger is refused before it is read."""

_IN_MEMORY = 64 * 1024**2
"""Bytes of scored rows that are kept in memory; more goes to a temporary file."""


_PACKED = 2
"""A scored row takes at least this part of its size while it waits."""


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """What became of a file.

    Attributes:
        run: its number.
        model: name.
        answers: how many.
        with_tokens: how many of them came with log-probabilities.
    """

    run: int
    model: str
    answers: int
    with_tokens: int


@dataclass(slots=True)
class _TaskRows:
    """What the rows of one task have in common; ``line`` is that of the first."""

    line: int
    difficulty: str
    method: str
    shots: int
    problem_ids: list[str] = field(default_factory=list)


def import_answers(database: Path, file: Path) -> ImportedRun:
    """Make a run of the answers of a file.

    Args:
        database: where to; made where it is not there.
        file: JSON lines, plain or gzip, or standard input.

    Raises:
        UsageError: the file cannot be read or a row is bad; names the line.  Nothing is stored.
        StoreError: it cannot be stored.  Nothing is stored then either.
    """
    check_place(database)
    _check_size(file)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+b") as spool:
        collected = _Collected()
        for place, row in read_rows(file, required=(), optional=(), most_characters=MOST_CHARACTERS):
            line = int(place.rpartition(":")[2])
            if collected.answers == MOST_ROWS:
                raise UsageError(f"{place}: more than {MOST_ROWS:,} rows")
            try:
                read = read_answer(row, collected.position(row))
                collected.take(line, read)
            except RowProblemError as error:
                raise UsageError(f"{place}: {error}") from error
            pickle.dump(read.answer, spool)
        if not collected.answers:
            raise UsageError(f"{file}: holds no rows")
        room_for(spool.tell() // _PACKED, database, "the import")
        spool.seek(0)
        model, record = collected.records(file)
        with open_store(database) as store:
            run = store.add_finished_run(model, record, _spooled(spool, collected.answers))
    return ImportedRun(run, model.name, collected.answers, collected.with_tokens)


class _Collected:
    """What all rows together say: one model, and for each task one level, method and number of examples."""

    def __init__(self) -> None:
        self.answers = self.with_tokens = 0
        self._model: tuple[str, int] | None = None
        self._tasks: dict[str, _TaskRows] = {}
        self._lines: dict[tuple[str, str], int] = {}

    def position(self, row: dict[str, object]) -> int:
        """Return the place of a row's problem among those of its task."""
        known = self._tasks.get(str(row.get("task")))
        return 0 if known is None else len(known.problem_ids)

    def take(self, line: int, read: ReadAnswer) -> None:
        """Add a row; raises `RowProblemError` where it does not go with the rows before."""
        problem = read.answer.problem
        first = self._lines.setdefault((problem.task, problem.content_id), line)
        if first != line:
            raise RowProblemError(f"answers problem {problem.content_id} of {problem.task} again, as line {first}")
        if self._model is None:
            self._model = (read.model or "", line)
        elif (read.model or "") != self._model[0]:
            raise RowProblemError(
                f"'model' is {(read.model or '')[:60]!r}, and {self._model[0][:60]!r} on line {self._model[1]}; a file"
                " is the answers of one model"
            )
        rows = self._tasks.setdefault(problem.task, _TaskRows(line, problem.difficulty, problem.method, read.shots))
        for name, here, there in (
            ("difficulty", problem.difficulty, rows.difficulty),
            ("method", problem.method, rows.method),
            ("shots", read.shots, rows.shots),
        ):
            if here != there and not (name == "shots" and problem.task.startswith(FILE_PREFIX)):
                raise RowProblemError(f"{name!r} is {here}, and {there} on line {rows.line}; a task has one of them")
        rows.shots = max(rows.shots, read.shots)
        rows.problem_ids.append(problem.content_id)
        self.answers += 1
        self.with_tokens += read.has_tokens

    def records(self, file: Path) -> tuple[ModelRecord, RunRecord]:
        """Return model and run as they are stored."""
        given = "" if self._model is None else self._model[0]
        name = given or ("imported" if file == STDIN else visible(file.name.partition(".")[0]) or "imported")
        plan = canonical_json(
            RunPlan(
                identity=f"{IMPORTED}{name}",
                template=None,
                template_options={},
                date=None,
                seed=0,
                limit=max(len(rows.problem_ids) for rows in self._tasks.values()),
                tasks=tuple(_task_plan(task, rows) for task, rows in self._tasks.items()),
                sampling=SamplingPlan(),
                context=None,
                width=1,
            )
        )
        environment = canonical_json(_environment())
        model = ModelRecord(
            identity=f"{IMPORTED}{name}",
            sha256=None,
            name=name,
            path=visible(str(file)),
            file_bytes=None,
            description="imported answers",
            architecture=None,
            quantisation=None,
            parameters=None,
            vocabulary_size=None,
            trained_context=None,
            template=None,
            entry=ResolvedModel(
                name, None, ModelEntry(path=str(file.absolute())), None, "instruct", None, {}, engine_kinds.IMPORTED
            ).to_json(),
        )
        record = RunRecord(
            plan=plan,
            plan_hash=content_hash(plan),
            environment=environment,
            environment_hash=content_hash(environment),
            exact=None,
            warnings=(),
            statistics="top_k" if self.with_tokens else "none",
        )
        return model, record


def _task_plan(task: str, rows: _TaskRows) -> TaskPlan:
    own = task.startswith(FILE_PREFIX)
    examples = () if own else worked_examples(get_task(task), rows.difficulty, rows.shots)
    return TaskPlan(
        task=task,
        prompt_version=PROMPT_VERSION if own else get_task(task).prompt_version,
        difficulty=rows.difficulty,
        parameters={},
        method=rows.method,
        shots=rows.shots,
        example_ids=tuple(example.id for example in examples),
        problem_ids=tuple(rows.problem_ids),
        max_tokens=0,
    )


def _environment() -> Environment:
    return Environment(
        program_version=salt_tui.__version__,
        python_version=platform.python_version(),
        engine=engine_kinds.IMPORTED,
        versions={},
        devices=(),
        requested_gpu_layers="0",
        gpu_layers=0,
        gpu_refused=False,
        threads=0,
        batch=1,
        micro_batch=1,
        key_type="f16",
        value_type="f16",
        flash_attention=False,
        exactness={},
        exact=None,
    )


def _check_size(file: Path) -> None:
    try:
        size = 0 if file == STDIN else file.stat().st_size
    except OSError:
        return  # reading says why
    if size > MOST_CHARACTERS:
        raise UsageError(f"{file}: {size:,} bytes; at most {MOST_CHARACTERS:,}: import it in parts")


def _spooled(spool: IO[bytes], answers: int) -> Iterator[FinishedAnswer]:
    for _ in range(answers):
        answer = pickle.load(spool)
        assert isinstance(answer, FinishedAnswer)
        yield answer
