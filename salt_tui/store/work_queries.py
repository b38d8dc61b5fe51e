"""Questions about runs and studies."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from salt_tui.store.errors import StoreError
from salt_tui.store.lease import LEASE_COLUMNS, is_live, stored_lease
from salt_tui.store.reader import Reader
from salt_tui.store.records import ModelRecord, RunRecord, RunState, StudyRecord, Work
from salt_tui.store.results import RunListing, StoredRun, StoredStudy, StudyListing, TaskCounts
from salt_tui.visible_text import visible

_MODEL_COLUMNS = (
    "identity, sha256, {0}.model_name, {0}.model_path, file_bytes, description, architecture, quantisation, parameters,"
    " vocabulary_size, trained_context, {0}.template, {0}.model_entry"
)
_STATE_COLUMNS = f"state, message, created_at, finished_at, {LEASE_COLUMNS}"
_RECORD_COLUMNS = "plan, plan_hash, environment, environment_hash, exact, warnings, statistics"
_NAME = re.compile(r"(\d+)(?:\.(\d+))?", flags=re.ASCII)


def _plan(text: str) -> dict[str, Any]:
    """Return a plan whose tasks and sampling are objects, as everything that reads a part of it expects."""
    plan = json.loads(text)
    parts = [plan, plan.get("sampling", {}), *plan.get("tasks", [])]
    if not all(isinstance(part, dict) for part in parts):
        raise ValueError("a part of it is no JSON object")
    return dict(plan)


def _visible(value: Any) -> Any:
    return visible(value) if isinstance(value, str) else value


class WorkQueries(Reader):
    """Runs and studies."""

    def list_runs(self) -> list[RunListing]:
        """Return all runs with their studies, newest first."""
        totals: dict[int, list[TaskCounts]] = {}
        for run, counts in self._counts():
            totals.setdefault(run, []).append(counts)
        settings = {
            row[0]: row[1:]
            for row in self._rows(
                "SELECT id, (SELECT max(json_extract(value, '$.shots')) FROM json_each(plan, '$.tasks')"
                " WHERE type = 'object'), json_extract(plan, '$.seed'), json_extract(plan, '$.sampling'),"
                " json_extract(plan, '$.width') FROM run WHERE json_valid(plan)"
            )
        }
        studies: dict[int, list[StudyListing]] = {}
        for study in self._studies():
            studies.setdefault(study.work.run, []).append(study)
        listings = []
        for row in self._rows(
            f"SELECT id, {_STATE_COLUMNS}, model_name, exact, statistics, note, plan_hash, environment_hash FROM run"
            " WHERE state <> 'deleted' ORDER BY id DESC"
        ):
            tasks = totals.get(row[0], [])
            shares = [counts.correct / counts.atoms for counts in tasks if counts.atoms]
            shots, seed, sampling, width = settings.get(row[0], (None, None, None, None))
            place = self._place(f"run {row[0]}")
            listings.append(
                RunListing(
                    run=row[0],
                    model=row[10],
                    tasks=tuple(counts.task for counts in tasks),
                    difficulty=tasks[0].difficulty if tasks else "",
                    method=tasks[0].method if tasks else "",
                    state=self._state(Work(row[0]), row[1], row[5:10]),
                    message=row[2],
                    created_at=visible(row[3]),
                    finished_at=row[4],
                    answers_done=sum(counts.done for counts in tasks),
                    answers=sum(counts.answers for counts in tasks),
                    atoms=sum(counts.atoms for counts in tasks),
                    correct=sum(counts.correct for counts in tasks),
                    precision=sum(shares) / len(shares) if shares else None,
                    exact=None if row[11] is None else bool(row[11]),
                    shots=shots,
                    seed=seed,
                    sampling=None if sampling is None else place.json_object("sampling", sampling),
                    width=width,
                    statistics=row[12],
                    note=row[13],
                    studies=tuple(studies.get(row[0], ())),
                    plan_hash=row[14],
                    environment_hash=row[15],
                )
            )
        return listings

    def find_run(self, name: str) -> int:
        """Return the number of the run called ``latest`` or of a run given by its number.

        Raises:
            StoreError: no such run, or the name of a study; the message says what to use.
        """
        work = self.find_work(name)
        if work.study is not None:
            raise StoreError(f"{work} is a study; here a run is asked for: {work.run}")
        return work.run

    def find_work(self, name: str) -> Work:
        """Return the run ``N``, the study ``N.K``, or the newest run for ``latest``.

        Raises:
            StoreError: no such run or study; the message says which there are.
        """
        known = [row[0] for row in self._rows("SELECT id FROM run WHERE state <> 'deleted' ORDER BY id")]
        if not known:
            raise StoreError(f"{self.path} holds no runs; `salt-tui run` makes one")
        if name == "latest":
            return Work(int(known[-1]))
        parts = _NAME.fullmatch(name)
        run = int(parts[1]) if parts else 0
        if parts is None or run not in known:
            runs = f"run{'s' * (len(known) > 1)} " + ", ".join(str(number) for number in known[-10:])
            held = runs if len(known) <= 10 else f"{len(known)} runs, the newest are {runs}"
            raise StoreError(f"there is no run {name!r} in {self.path}; it holds {held}; latest names the newest")
        if parts[2] is None:
            return Work(run)
        studies = self.studies(run)
        for study in studies:
            if study.work.number == int(parts[2]):
                return study.work
        if not studies:
            raise StoreError(f"run {run} in {self.path} has no study {name}: no study of it was made yet")
        listed = ", ".join(str(study.work) for study in studies[-10:])
        raise StoreError(f"run {run} in {self.path} has no study {name}; it has {listed}")

    def find_unfinished(self) -> Work:
        """Return the newest run or study that is not finished; where all are, the newest run.

        Raises:
            StoreError: there are no runs.
        """
        found = self._rows(
            "SELECT run, study, number FROM ("
            " SELECT id AS run, NULL AS study, NULL AS number, created_at, state FROM run"
            " UNION ALL SELECT run, id, number, created_at, state FROM study)"
            " WHERE state NOT IN ('finished', 'deleted') ORDER BY created_at DESC, study IS NULL, run DESC, study DESC"
            " LIMIT 1"
        )
        return Work(*found[0]) if found else self.find_work("latest")

    def run_record(self, run: int) -> StoredRun:
        """Return a run with its plan, environment and model."""
        row = self._row(
            f"SELECT {_STATE_COLUMNS}, {_RECORD_COLUMNS}, note, {_MODEL_COLUMNS.format('run')} FROM run"
            " JOIN model ON model.id = run.model WHERE run.id = ? AND state <> 'deleted'",
            (run,),
            f"run {run}",
        )
        place = self._place(f"run {run}")
        place.read("plan", row[9], _plan)
        place.json_object("environment", row[11])
        exact = None if row[13] is None else bool(row[13])
        return StoredRun(
            run=run,
            state=self._state(Work(run), row[0], row[4:9]),
            message=row[1],
            created_at=visible(row[2]),
            finished_at=row[3],
            note=row[16],
            model=ModelRecord(*row[17:]),
            record=RunRecord(*(*row[9:13], exact, place.texts("warnings", row[14]), row[15])),
        )

    def run_plan(self, run: int) -> dict[str, Any]:
        """Return the plan of a run, parsed."""
        return self._place(f"run {run}").read("plan", self.run_record(run).record.plan, _plan)

    def task_counts(self, run: int) -> list[TaskCounts]:
        """Return answers and atoms per task, in the order of the plan."""
        return [counts for _, counts in self._counts(run)]

    def studies(self, run: int) -> list[StudyListing]:
        """Return the studies of a run, oldest first."""
        return list(self._studies(run))

    def study_record(self, work: Work) -> StoredStudy:
        """Return a study with its plan, environment and model."""
        row = self._row(
            f"SELECT {_STATE_COLUMNS}, kind, {_RECORD_COLUMNS}, {_MODEL_COLUMNS.format('study')} FROM study"
            " JOIN model ON model.id = study.model WHERE study.id = ? AND run = ? AND state <> 'deleted'",
            (work.study, work.run),
            work.title,
        )
        place = self._place(work.title)
        place.json_object("plan", row[10])
        place.json_object("environment", row[12])
        exact = None if row[14] is None else bool(row[14])
        model = ModelRecord(*row[17:])
        return StoredStudy(
            work=work,
            state=self._state(work, row[0], row[4:9]),
            message=row[1],
            created_at=visible(row[2]),
            finished_at=row[3],
            record=StudyRecord(*(*row[9:14], exact, place.texts("warnings", row[15]), row[16], model)),
            model=model,
        )

    def _studies(self, run: int | None = None) -> list[StudyListing]:
        rows = self._rows(
            f"SELECT run, id, number, kind, {_STATE_COLUMNS}, exact FROM study"
            " WHERE state <> 'deleted' AND run = coalesce(?, run) ORDER BY run, number",
            (run,),
        )
        return [
            StudyListing(
                work=work,
                kind=row[3],
                state=self._state(work, row[4], row[8:13]),
                message=row[5],
                created_at=visible(row[6]),
                finished_at=row[7],
                exact=None if row[13] is None else bool(row[13]),
            )
            for row in rows
            for work in (Work(row[0], row[1], row[2]),)
        ]

    def _counts(self, run: int | None = None) -> list[tuple[int, TaskCounts]]:
        restriction = "" if run is None else "WHERE run = ?"
        parameters = () if run is None else (run,)
        statuses: dict[tuple[int, str], dict[str, int]] = {}
        for number, task, status, answers in self._rows(
            "SELECT problem.run, problem.task, generation.answer_status, count(*) FROM problem"
            " LEFT JOIN generation ON generation.problem = problem.id AND generation.study IS NULL"
            f" {restriction.replace('run', 'problem.run')} GROUP BY 1, 2, 3 ORDER BY min(problem.id)",
            parameters,
        ):
            found = statuses.setdefault((number, task), {})
            if status is not None:
                found[status] = answers
        rows = {
            (row[0], row[1]): row[2:]
            for row in self._rows(
                "SELECT run, task, difficulty, method, answers, done, left_out, atoms, correct, wrong, redundant,"
                f" abstained, missing, reference_atoms FROM run_summary {restriction}",
                parameters,
            )
        }
        return [
            (number, TaskCounts(*(visible(task), *map(_visible, rows[number, task]), found)))
            for (number, task), found in statuses.items()
            if (number, task) in rows
        ]

    def _state(self, work: Work, state: RunState, lease: Sequence[Any]) -> RunState:
        if state not in get_args(RunState):
            raise self._place(work.title).foreign("state", state)
        if state != "running":
            return state
        holder = stored_lease(lease, self._place(work.title))
        if holder is None:
            return "interrupted"
        return "running" if is_live(holder, datetime.now(UTC), self._identity, work) else "interrupted"
