"""``salt-tui signals``: scores that another program gave to a run's answers, added as a signal and taken away."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from salt_tui.commands.computing import command_for
from salt_tui.commands.failures import DONE, USAGE, say
from salt_tui.paths import database_path
from salt_tui.runner.foreign_signals import MatchedSignals, add_signal, check_signal_name, match_signals
from salt_tui.store.queries import open_queries
from salt_tui.store.store import open_store
from salt_tui.visible_text import visible

_UNITS = {"token": "tokens", "atom": "atoms", "line": "lines", "generation": "answers"}


def add_signals(
    run: str,
    database: Path | None,
    file: Path,
    name: str,
    *,
    score: str,
    unit: str,
    lower_is_confident: bool,
    json_output: bool,
) -> int:
    """Store a table of scores as a signal of a run, or name every bad row and store nothing; 2 where there is one.

    Args:
        run: its name.
        database: the file that holds it; None for the usual one.
        file: the table.
        name: of the signal.
        score: name of the column of scores.
        unit: what the rows are about where the table has no column ``kind``.
        lower_is_confident: the direction.
        json_output: print one JSON object.

    Raises:
        UsageError: the name is taken or none, or the table cannot be read.
        StoreError: no such run, or a process is computing it.
    """
    path = database or database_path()
    with open_queries(path) as queries, queries.snapshot():
        number = queries.find_run(run)
        check_signal_name(queries, number, name)
        matched = match_signals(queries, number, file, score=score, kind=unit)
    if not matched.faults:
        with open_store(path) as store:
            add_signal(store, number, name, matched, lower_is_confident=lower_is_confident)
    if json_output:
        data = {
            "run": number,
            "name": name,
            "lower_is_confident": lower_is_confident,
            "rows": matched.rows,
            "units": {kind: asdict(count) for kind, count in matched.counts.items()} if not matched.faults else {},
            "errors": [{"line": fault.line, "what": fault.what} for fault in matched.faults],
        }
        print(json.dumps(data, ensure_ascii=False))
    elif matched.faults:
        for fault in matched.faults:
            print(f"{visible(str(file))}:{fault.line}: {fault.what}")
        bad = len(matched.faults)
        say(f"{bad:,} bad row{'s' * (bad != 1)} of {matched.rows:,}; nothing was stored")
    else:
        _say_what_is_there(number, path, name, matched)
    return USAGE if matched.faults else DONE


def remove_signals(run: str, database: Path | None, name: str, *, json_output: bool) -> int:
    """Take a run's own signal away: one that was added, or that of a kept probe.

    Raises:
        StoreError: no such run or signal, or a process is computing it.
    """
    path = database or database_path()
    with open_queries(path) as queries:
        number = queries.find_run(run)
    with open_store(path) as store:
        store.remove_signals(number, name)
    if json_output:
        print(json.dumps({"run": number, "name": name}, ensure_ascii=False))
    else:
        say(f"run {number} has no signal {name} any more")
    return DONE


def _say_what_is_there(run: int, database: Path, name: str, matched: MatchedSignals) -> None:
    for kind, count in matched.counts.items():
        left = [
            f"{number:,} {what}"
            for number, what in ((count.undefined, "undefined"), (count.others, "not in it"))
            if number
        ]
        say(f"{name}: scores of {count.scores:,} {_UNITS[kind]}{''.join(f', {part}' for part in left)}")
    kinds = [kind for kind in ("atom", "line", "generation") if kind in matched.counts]
    if kinds:
        # Without the maps: a table of each of them would hide what was added, and takes minutes in a large run.
        words = ("--unit", kinds[0], "--function", f"{name},max_probability", "--calibrator", "none")
        print(visible(command_for(database, "report", str(run), *words)))
