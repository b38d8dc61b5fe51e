"""The head of a report: what shaped the run, then one plain sentence per question, before any table."""

from __future__ import annotations

from salt_tui.measure.header import RunHeader
from salt_tui.measure.run_report import FullReport, RunReport
from salt_tui.visible_text import visible

LABELS = {
    "right": "How right",
    "calibrated": "Does it know",
    "function": "Which signal",
    "map": "Recalibrate",
    "position": "Where",
    "history": "After errors",
    "unit": "Which unit",
}
"""In the order of the head."""

NOT_KNOWN = "Not known"


def title_lines(summary: RunReport) -> list[str]:
    """Return what shaped the run and how large it is; its studies and note where there are any."""
    header = summary.header
    atoms = sum(task.atoms for task in summary.tasks)
    done, planned = (sum(getattr(task, name) for task in summary.tasks) for name in ("answers", "planned"))
    answers = _count(done, "answer") if done == planned else f"{done:,} of {_count(planned, 'answer')}"
    tasks = _count(len(summary.tasks), "task")
    lines = [" · ".join(header.words), f"{tasks} · {answers} · {_count(atoms, 'atom')} · {_when(header)}"]
    if header.studies:
        studies = (f"{study.work} {study.kind} ({study.state})" for study in header.studies)
        lines.append(f"studies: {', '.join(studies)}; `report RUN.K` shows one")
    if header.note:
        lines.append(f"note: {header.note}")
    return [visible(line) for line in lines]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _when(header: RunHeader) -> str:
    if header.state == "finished" and header.finished_at:
        return f"finished {header.finished_at[:10]}"
    return f"{header.state}, begun {header.created_at[:10]}"


def sentences(report: FullReport) -> list[tuple[str, str]]:
    """Return label and sentence of every question that has one, in order, and last what is not known."""
    found = {finding.question: finding for finding in report.findings}
    lines = [(label, found[question].sentence) for question, label in LABELS.items() if question in found]
    if report.unknown:
        lines.append((NOT_KNOWN, report.unknown))
    return lines
