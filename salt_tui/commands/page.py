"""``report --format html`` and ``compare --format html``: pages to send, made of what the other formats say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from salt_tui.commands.study import study_table
from salt_tui.figures.measured import FigureOptions, Measured
from salt_tui.figures.page_pictures import kinds_of, pictures
from salt_tui.measure.run_report import FullReport
from salt_tui.reports.comparison import Comparison, comparison_sections
from salt_tui.reports.formats import legend, report_notes, report_tables
from salt_tui.reports.head import sentences, title_lines
from salt_tui.reports.html_answer import read_page_answers
from salt_tui.reports.html_page import Page, Section, page_html
from salt_tui.reports.intervention_tables import (
    interventions_notes,
    interventions_sentences,
    interventions_tables,
)
from salt_tui.reports.text_tables import TextTable
from salt_tui.runner.studies.preparation import read_study_plan
from salt_tui.runner.studies.registry import study_kind
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.results import StudyListing
from salt_tui.usage_error import UsageError

ANSWERS = 16
"""Shown unless another number is asked for."""

MOST_ANSWERS = 200
"""Pages with more of them are too large for a browser's patience."""


def report_page(report: FullReport, database: Path, answers: int) -> str:
    """Return a page on a run: sentences, tables, figures, studies, answers.

    Args:
        report: the run, measured.
        database: its file.
        answers: to show token by token.

    Raises:
        UsageError: more answers than a page holds.
    """
    if not 0 <= answers <= MOST_ANSWERS:
        raise UsageError(f"--answers {answers}: a number from 0 to {MOST_ANSWERS}")
    run = report.summary.run.run
    first, *lines = title_lines(report.summary)
    options = FigureOptions(draws=report.selection.draws)
    drawn, missing = pictures(Measured(database, (str(run),), options, report), kinds_of("run"))
    tables = report_tables(report)
    head = Section(first, tuple(lines), tuple(sentences(report)) if report.selection.usual else ())
    sections = [head, Section("Figures", pictures=drawn, notes=missing)]
    sections.append(Section("Tables", tables=tuple(tables), notes=(*legend(tables), *report_notes(report))))
    with open_queries(database) as queries, queries.snapshot():
        sections.extend(_study_section(queries, database, study, options.draws) for study in queries.studies(run))
        shown, total = read_page_answers(queries, run, answers)
    more = f" `salt-tui report {run} --format html --answers N` shows more or fewer" if total else ""
    note = f"{len(shown)} of {total:,} finished answers, the first of each task in turn.{more}."
    return page_html(Page(first, tuple(sections), shown, note))


def _study_section(queries: Queries, database: Path, study: StudyListing, draws: int) -> Section:
    """Return what a study found; one whose plan cannot be read says why."""
    title, prefix = f"Study {study.work}: {study.kind}", f"s{study.work.number}"
    lines = () if study.state == "finished" else (f"{study.state}: what is there so far",)
    tables: tuple[TextTable, ...] = ()
    try:
        stored = queries.study_record(study.work)
        result = study_kind(study.kind).result(queries, stored, read_study_plan(database, stored))
        tables, notes = ((study_table(result),) if result.rows else ()), result.notes
    except StoreError as error:
        notes = (str(error),)
    if study.kind == "second-model":
        drawn, missing = pictures(Measured(database, (str(study.work),), FigureOptions()), kinds_of(study.kind), prefix)
        return Section(title, lines, tables=tables, pictures=drawn, notes=(*notes, *missing))
    if study.kind != "interventions":
        trained = "; its probes are not trained for a page: `salt-tui probe` and `plot probe-layers` do"
        hint = f"`salt-tui report {study.work}` shows it alone{trained if study.kind == 'activations' else ''}."
        return Section(title, lines, tables=tables, notes=(*notes, hint))
    measured = Measured(database, (str(study.work),), FigureOptions(draws=draws))
    findings = measured.findings
    drawn, missing = pictures(measured, kinds_of("interventions"), prefix)
    return Section(
        title,
        lines,
        tuple(("", sentence) for sentence in interventions_sentences(findings)),
        (*tables, *interventions_tables(findings)),
        drawn,
        (*notes, *missing, *interventions_notes(findings)),
    )


def comparison_page(comparison: Comparison, names: Sequence[str], database: Path) -> str:
    """Return a page on pairs of runs.

    Args:
        comparison: the pairs.
        names: of the runs, two a pair.
        database: of the runs that are named without a file.
    """
    sections = []
    for place, section in enumerate(comparison_sections(comparison)):
        if place < len(comparison.pairs):
            pair = comparison.pairs[place]
            measured = Measured(database, names[2 * place : 2 * place + 2], FigureOptions(function=pair.function))
            drawn, missing = pictures(measured, ("compare",), f"c{place}")
            section = Section(
                section.title, section.lines, section.findings, section.tables, drawn, (*section.notes, *missing)
            )
        sections.append(section)
    return page_html(Page("Runs compared", tuple(sections)))
