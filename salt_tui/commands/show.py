"""``salt-tui show``: one answer with its prompt, its reply and its atoms."""

from __future__ import annotations

import json
from pathlib import Path

from salt_tui.commands.failures import DONE
from salt_tui.paths import database_path
from salt_tui.reports.answer import answer_data, answer_lines, read_answers
from salt_tui.store.queries import open_queries


def show_answer(run: str, answer: str, database: Path | None, *, json_output: bool) -> int:
    """Print an answer of a run, or all that a study generated for it."""
    with open_queries(database or database_path()) as queries, queries.snapshot():
        reports = read_answers(queries, run, answer)
    if json_output:
        data = [answer_data(report) for report in reports]
        print(json.dumps(data[0] if reports[0].work.study is None else data, ensure_ascii=False, allow_nan=False))
        return DONE
    for place, report in enumerate(reports):
        if place:
            print()
        for line in answer_lines(report):
            print(line)
    return DONE
