"""``salt-tui tour``: what the program does, shown in a minute with the tiny model that comes with it."""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console

from salt_tui.commands.computing import Display, NoDisplay, compute, display_named
from salt_tui.commands.failures import DONE
from salt_tui.commands.standard_streams import styled_output
from salt_tui.display.rich_display import answer_rows, legend
from salt_tui.display.run_view import RunView
from salt_tui.measure.confidence_view import ConfidenceView, ViewChoice, confidence_view
from salt_tui.measure.surest_wrong import SurestMistake, surest_mistake
from salt_tui.number_text import signed
from salt_tui.paths import data_directory
from salt_tui.reports.branches import branch_lines
from salt_tui.reports.cells import bar
from salt_tui.reports.text_tables import TextTable, number
from salt_tui.runner.events import RunEvent
from salt_tui.runner.jobs import Emit
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import EngineOptions, RunRequest
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from salt_tui.store.queries import open_queries
from salt_tui.visible_text import visible
from scoring.confidence import HEADLINE_FUNCTION
from tasks.registry import TASKS

REQUEST = RunRequest(model="nano", tasks=("all",), difficulty="easy", limit=6, seed=1, engine=EngineOptions(width=8))
SHOWN_ANSWERS = 2
"""Answers of each task on the map."""

EDITED_TASK = "dna_translation"
EDITED_ATOMS = 4
"""Of the answer that is edited in the last step, so many stand before the target; all but one may be made wrong."""

BINS = 5
COLUMNS = 80
QUOTED = 30
_BAR = 4
"""The column of bars in the table of step 4."""


def show_tour(database: Path | None) -> int:
    """Run the tiny model on every task and show what came out, one step after the other.

    Args:
        database: where the run is stored; None for ``tour.db`` in the data folder.
    """
    path = database or data_directory() / "tour.db"
    _say(
        "1/5",
        f"A run. A tiny model, made for tests and this tour only, answers {REQUEST.limit} problems of each of"
        f" {len(TASKS)} tasks. Every answer has one known truth, so every part of it, an atom, is right or wrong.",
    )
    followed = _Followed(display_named(None) if sys.stderr.isatty() else NoDisplay())
    computed = compute(lambda emit: prepare_run(REQUEST, path, emit), path, followed)
    if computed.run is None or computed.code != DONE:
        return computed.code
    _say("2/5", "The map. A cell is an atom: its mark says whether it is right, its shade how sure the model was.")
    _print_map(followed.view)
    with open_queries(path) as queries, queries.snapshot():
        atoms = queries.unit_columns(computed.run, "atom", (HEADLINE_FUNCTION,))
        mistake = surest_mistake(queries, computed.run, atoms)
    _say("3/5", "The mistake that it was surest of. Nothing but the known truth gives it away.")
    _print_wrapped(_surest_wrong(mistake), "  ")
    _say("4/5", "Does it know when it is wrong? Atoms by how sure it was of them, and how many are right.")
    view = confidence_view(atoms, ViewChoice("atom", HEADLINE_FUNCTION, bins=BINS))
    for line in _reliability_table(view).as_text():
        print(line)
    _say("5/5", "What if? Atoms of one answer are made wrong, and the model goes on from there.")
    code = _print_edit(path, computed.run)
    if code != DONE:
        return code
    _say("That was a toy.", "Your own model; this run's tables; and this run in the app:")
    for command in (
        ["salt-tui", "run", "-m", "MODEL.gguf", "--tasks", "all", "--difficulty", "easy", "--limit", "20"],
        ["salt-tui", "report", str(computed.run), "--db", str(path)],
        ["salt-tui", "--db", str(path)],
    ):
        print(f"  {visible(shlex.join(command))}")
    return DONE


def _print_edit(database: Path, run: int) -> int:
    """Make atoms of an answer wrong and print what the model writes then beside what it wrote."""
    with open_queries(database) as queries:
        found = [
            answer
            for answer in queries.answers(run)
            if answer.problem.task == EDITED_TASK and answer.problem.reference_atoms > EDITED_ATOMS
        ]
    if not found:
        return DONE
    options: dict[str, int | str] = {
        "answer": f"{EDITED_TASK}:{found[0].problem.position + 1}",
        "corrupt_random": EDITED_ATOMS - 1,
        "target": EDITED_ATOMS + 1,
        "name": "edited",
    }
    request = StudyRequest("manual", str(run), options)
    computed = compute(lambda emit: prepare_study(request, database, emit), database, NoDisplay())
    if computed.name is None or computed.code != DONE:
        return computed.code
    with open_queries(database) as queries, queries.snapshot():
        for line in branch_lines(queries, queries.find_work(computed.name), _columns() - 2):
            print(f"  {line}".rstrip())
    return DONE


class _Followed:
    """Passes the events of a run to a display and keeps what the map is drawn from."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._show: Emit = NoDisplay()
        self.view = RunView()

    def __enter__(self) -> Self:
        self._show = self._display.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.__exit__(kind, error, trace)

    def __call__(self, event: RunEvent) -> None:
        self.view.apply(event)
        self._show(event)


def _print_map(view: RunView) -> None:
    width = _columns()
    console = Console(file=styled_output(), width=width, markup=False, highlight=False, emoji=False)
    console.print(legend(width))
    shown: Counter[str] = Counter()
    for answer in view.answers.values():
        shown[answer.task] += 1
        if shown[answer.task] <= SHOWN_ANSWERS:
            for row in answer_rows(answer, width):
                console.print(row)


def _surest_wrong(mistake: SurestMistake | None) -> str:
    if mistake is None:
        return "It made none."
    atom = mistake.atom
    right = "where the answer should have ended" if atom.reference is None else f"right is {_quoted(atom.reference)}"
    return (
        f"{atom.task}, answer {atom.position + 1}, atom {atom.index + 1}: it said {_quoted(atom.text)}, {right}."
        f" p(max) {number(atom.max_probability)}, surer than for {100 * mistake.surer_than:.0f} % of its task."
    )


def _quoted(text: str) -> str:
    return f"“{visible(text, QUOTED)}”"


def _reliability_table(view: ConfidenceView) -> TextTable:
    """Return a row per bin, with bars where the terminal has room for them."""
    bins = view.bins
    rows = (
        []
        if bins is None
        else [
            [
                f"{number(low, 1)}–{number(high, 1)}",
                str(int(count)),
                number(said),
                number(right),
                bar(right),
                signed(gap),
            ]
            for low, high, count, said, right, gap in zip(
                bins.lower, bins.upper, bins.counts, bins.confidence, bins.accuracy, bins.gaps, strict=True
            )
        ]
    )
    heads = [HEADLINE_FUNCTION, "atoms", "says", "right", f"{'0':<{len(bar(1.0)) - 1}}1", "overconfident by"]
    if _columns() < COLUMNS:
        for row in (heads, *rows):
            del row[_BAR]
    return TextTable("", tuple(heads), tuple(map(tuple, rows)))


def _say(step: str, text: str) -> None:
    print()
    _print_wrapped(f"{step}  {text}", "     ")
    sys.stdout.flush()  # before the display, which goes to stderr


def _print_wrapped(text: str, indent: str) -> None:
    for line in textwrap.wrap(text, _columns(), subsequent_indent=indent):
        print(line)


def _columns() -> int:
    return max(20, min(COLUMNS, shutil.get_terminal_size().columns))
