"""What the figures of one run or study are drawn from: each part is measured when a figure first asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from salt_tui.figures.errors import FigureError
from salt_tui.measure.confidence_view import ConfidenceView, ViewChoice, confidence_view, map_scores
from salt_tui.measure.course import CourseOfAnswers, course_of_answers
from salt_tui.measure.interventions import InterventionFindings, measure_interventions
from salt_tui.measure.probes import ProbeReport, find_study, read_subject, report_probes
from salt_tui.measure.row_selection import RowSelection, select_rows
from salt_tui.measure.run_report import FullReport, RunReport, functions_of, measure_report, report_run
from salt_tui.measure.task_scores import RAW
from salt_tui.measure.two_runs import ComparedRuns, RunName, compare_two
from salt_tui.reports.head import title_lines
from salt_tui.reports.summary import left_out_notes
from salt_tui.similar_names import did_you_mean, message_of
from salt_tui.store.partings import Parting, read_partings
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import StudyKind, UnitKind, Work
from salt_tui.store.results import UnitColumns
from salt_tui.visible_text import visible
from scoring.confidence import HEADLINE_FUNCTION
from scoring.intervals import DRAWS
from scoring.probes import Progress, silent
from tasks.registry import TASKS

POSITIONS = ("producing", "own")
"""Of activations."""


@dataclass(frozen=True, slots=True)
class FigureOptions:
    """What a figure is about, where it can be about several things.

    Attributes:
        unit: ``atom``, ``line`` or ``generation``; None for atoms, and for whole answers where activations are read.
        function: name of a confidence function or signal.
        calibrator: name of a calibration map, ``none`` for raw scores.
        task: the only one; None for all.
        positions: of activations, ``producing`` or ``own``.
        draws: resamples behind intervals of confidence metrics.
    """

    unit: UnitKind | None = None
    function: str = HEADLINE_FUNCTION
    calibrator: str = RAW
    task: str | None = None
    positions: str = "producing"
    draws: int = DRAWS


class Measured:
    """A run or its studies, measured as far as it was asked for.

    Args:
        database: the file.
        names: of the run or studies: ``N``, ``N.K`` or ``latest``; of compared runs also ``FILE.db:N``.
        options: what the figure is about.
        report: the usual report of the run where it was measured already.
        progress: told what is computed next where that takes minutes.
    """

    def __init__(
        self,
        database: Path,
        names: Sequence[str],
        options: FigureOptions,
        report: FullReport | None = None,
        progress: Progress = silent,
    ) -> None:
        self.database = database
        self.names = tuple(names)
        self.options = options
        self._report = report
        self._progress = progress

    @property
    def name(self) -> str:
        """The only name.

        Raises:
            FigureError: there are several.
        """
        if len(self.names) != 1:
            raise FigureError(f"{' '.join(self.names)}: this figure is of one run")
        return self.names[0]

    @property
    def unit(self) -> UnitKind:
        """What is looked at in a run."""
        return self.options.unit or "atom"

    @cached_property
    def run(self) -> int:
        """Number of the run."""
        with open_queries(self.database) as queries:
            return queries.find_work(self.name).run

    @cached_property
    def report(self) -> FullReport:
        """The usual report of the run."""
        if self._report is not None:
            return self._report
        return measure_report(self.database, str(self.run), self.usual)

    @property
    def usual(self) -> RowSelection:
        """The selection of the usual report."""
        return select_rows((), (), (), by=None, draws=self.options.draws, full=False)

    @cached_property
    def summary(self) -> RunReport:
        """The run in its headline values."""
        return report_run(self.database, str(self.run)) if self._report is None else self._report.summary

    @cached_property
    def course(self) -> CourseOfAnswers:
        """How atoms change along an answer."""
        return course_of_answers(self.units("atom", HEADLINE_FUNCTION)) if self._report is None else self._report.course

    def units(self, unit: UnitKind, function: str) -> UnitColumns:
        """Return the units of the run with one confidence function.

        Raises:
            FigureError: there is no function of that name.
        """
        with open_queries(self.database) as queries, queries.snapshot():
            known = functions_of(queries, self.run, unit)
            if function not in known:
                raise FigureError(
                    f"--function {visible(function)}: run {self.run} has {', '.join(known)}"
                    f"{did_you_mean(function, known)}"
                )
            return queries.unit_columns(self.run, unit, (function,))

    @cached_property
    def views(self) -> dict[str | None, ConfidenceView]:
        """The chosen units, function and map: all tasks together under None, and each task alone.

        Raises:
            FigureError: no such function or map, or there is nothing to see and why.
        """
        chosen = self.options
        columns = self.units(self.unit, chosen.function)
        try:
            scores = map_scores(columns, chosen.function, chosen.calibrator)
        except ValueError as error:
            raise FigureError(f"--map: {RAW} for raw scores, or a map: {message_of(error)}") from error
        found: dict[str | None, ConfidenceView] = {}
        for task in self.tasks if chosen.task is not None else (None, *self.tasks):
            choice = ViewChoice(self.unit, chosen.function, chosen.calibrator, task)
            found[task] = confidence_view(columns, choice, scores=scores)
        first = next(iter(found.values()))
        if first.reason is not None:
            raise FigureError(f"nothing to draw: {first.reason}")
        return found

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks to be shown.

        Raises:
            FigureError: the run has none of that name.
        """
        every = tuple(task.task for task in self.summary.tasks)
        wanted = self.options.task
        if wanted is None:
            return every
        if wanted not in every:
            known = ", ".join(every) or "no task"
            raise FigureError(f"--task {visible(wanted)}: run {self.run} has {known}{did_you_mean(wanted, every)}")
        return (wanted,)

    @property
    def words(self) -> tuple[str, ...]:
        """What shaped the run, how large it is, and what was left out."""
        return (*title_lines(self.summary)[:2], *left_out_notes(self.summary, brief=True))

    @cached_property
    def study_words(self) -> tuple[str, ...]:
        """What shaped each run that the studies are of."""
        with open_queries(self.database) as queries:
            runs = [queries.find_work(name).run for name in self.names]
        return tuple(title_lines(report_run(self.database, str(run)))[0] for run in runs)

    @cached_property
    def compared(self) -> ComparedRuns:
        """Two runs beside each other.

        Raises:
            FigureError: there are not two.
        """
        if len(self.names) != 2:
            raise FigureError("compare is of two runs, such as: plot compare 1 2 -o f.svg")
        first, second = (RunName.of(name, self.database) for name in self.names)
        return compare_two(first, second, self.options.function)

    @cached_property
    def findings(self) -> InterventionFindings:
        """What interventions found: of the named studies, or of the newest one of the run."""
        with open_queries(self.database) as queries, queries.snapshot():
            works = [find_study_of(queries, name, "interventions") for name in self.names]
            if len({work.run for work in works}) < len(works):
                raise FigureError(f"{' '.join(self.names)}: studies of different runs are measured together")
            return measure_interventions(queries, works, self.options.draws)

    @cached_property
    def partings(self) -> tuple[Parting, ...]:
        """Where a second model parts from the answers: of the named study, or of the newest one of the run."""
        with open_queries(self.database) as queries, queries.snapshot():
            return tuple(read_partings(queries, find_study_of(queries, self.name, "second-model")))

    @cached_property
    def second_model(self) -> str:
        """The name of that second model."""
        with open_queries(self.database) as queries:
            return queries.study_record(find_study_of(queries, self.name, "second-model")).model.name

    @cached_property
    def probes(self) -> ProbeReport:
        """What probes on the activations of the run found; takes minutes.

        Raises:
            FigureError: there are no such positions.
        """
        if self.options.positions not in POSITIONS:
            raise FigureError(f"--positions {visible(self.options.positions)}: there are {' and '.join(POSITIONS)}")
        with open_queries(self.database) as queries, queries.snapshot():
            subject = read_subject(
                queries, find_study(queries, self.name), self.options.unit or "generation", self.options.positions
            )
        return report_probes(subject, progress=self._progress)


def find_study_of(queries: Queries, name: str, kind: StudyKind) -> Work:
    """Return the named study, or the newest one of a kind of the named run.

    Raises:
        FigureError: it is of another kind, or there is none; how to make one.
    """
    work = queries.find_work(name)
    if work.study is not None:
        own = queries.study_record(work).record.kind
        if own != kind:
            raise FigureError(f"{work.title} is of kind {own}; this figure is of {kind}")
        return work
    found = [study.work for study in queries.studies(work.run) if study.kind == kind]
    if not found:
        raise FigureError(f"{work.title} has no study of kind {kind}: `salt-tui study {kind} {work.run}` makes one")
    return found[-1]


def dependence_notes(tasks: Sequence[str]) -> tuple[str, ...]:
    """Return the caveat of every task whose right atoms depend on earlier ones."""
    known = {task: TASKS[task].dependence for task in tasks if task in TASKS}
    return tuple(
        f"{task}: a right atom needs {one.earlier_atoms}, so an error can cause later ones by the task alone"
        for task, one in known.items()
        if one.earlier_atoms
    )
