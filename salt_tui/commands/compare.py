"""``salt-tui compare``: two runs, or several pairs of runs, on the problems that both answered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from salt_tui.commands.failures import DONE
from salt_tui.commands.line_width import terminal_width
from salt_tui.commands.report import PAGE
from salt_tui.measure.two_runs import RunName, cell_tests, compare_two
from salt_tui.paths import database_path
from salt_tui.reports.comparison import COMPARISON_FORMATS, Comparison
from salt_tui.usage_error import UsageError
from scoring.confidence import CONFIDENCE_FUNCTIONS, HEADLINE_FUNCTION


def compare_runs(names: Sequence[str], database: Path | None, output: str, function: str | None) -> int:
    """Print what changed between runs.

    Args:
        names: runs as ``N``, ``latest`` or ``FILE.db:N``; the first and second are a pair, the third and fourth, …
        database: of the runs that are named without a file; None for the usual one.
        output: one of `COMPARISON_FORMATS`, or ``html``.
        function: the confidence function; None for the headline one.

    Raises:
        UsageError: an odd number of runs, a run with itself, or too few shared problems.
    """
    if len(names) < 2 or len(names) % 2:
        raise UsageError(f"compare needs pairs of runs: {len(names)} named, such as compare 1 2")
    chosen = function or HEADLINE_FUNCTION
    if chosen not in CONFIDENCE_FUNCTIONS and "@" not in chosen:
        raise UsageError(f"--function {chosen}: there are {', '.join(CONFIDENCE_FUNCTIONS)}")
    path = database or database_path()
    runs = [RunName.of(name, path) for name in names]
    pairs = [compare_two(first, second, chosen) for first, second in zip(runs[::2], runs[1::2], strict=True)]
    comparison = Comparison(pairs, cell_tests(pairs))
    if output == PAGE:
        from salt_tui.commands.page import comparison_page

        print(comparison_page(comparison, names, path))
        return DONE
    for line in COMPARISON_FORMATS[output](comparison, terminal_width()):
        print(line)
    return DONE
