"""``salt-tui db``: files compared with themselves, stored replies scored again, and runs and studies deleted."""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any

from salt_tui.commands.failures import DONE, FAILED, say
from salt_tui.commands.recompute import Recomputation
from salt_tui.paths import database_path
from salt_tui.runner.difference import Difference
from salt_tui.runner.file_check import Checked, check_file
from salt_tui.runner.rescore_run import rescore_answers
from salt_tui.runner.rescoring import Shown
from salt_tui.store.queries import open_queries
from salt_tui.store.records import Work
from salt_tui.store.store import open_store
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible

_LONGEST = 60
"""Characters of a value that is shown."""


def check_database(file: Path, *, json_output: bool, recomputation: Recomputation | None = None) -> int:
    """Print everything in a file that does not fit together; 1 when there is anything.

    Args:
        file: the database.
        json_output: as one JSON object.
        recomputation: what is to be computed again, if anything; it is 1 too when a run of a model here could not
            be, or there is none.
    """
    checked = Checked()
    count = 0
    with open_queries(file) as queries, queries.snapshot():
        if json_output:
            sys.stdout.write('{"differences": [')
        found = check_file(queries, checked, lambda work: None if json_output else say(f"{work.title} …"))
        again = recomputation.differences(queries) if recomputation else ()
        for difference in chain(found, again):
            if json_output:
                data = json.dumps(_data(difference), ensure_ascii=False, allow_nan=False)
                sys.stdout.write(f"{', ' if count else ''}{data}")
            else:
                print(_line(difference))
            count += 1
    failures = recomputation.failures if recomputation else []
    elsewhere = recomputation.elsewhere if recomputation else []
    nothing = recomputation is not None and not recomputation.answers
    failed = [*failures, *(elsewhere if nothing else ())]
    if json_output:
        more = (
            "" if recomputation is None else f', "recomputed": {recomputation.answers}, "failed": {json.dumps(failed)}'
        )
        print(f'], "answers": {checked.answers}, "units": {checked.units}{more}}}')
    else:
        for failure in (*failures, *elsewhere):
            print(f"not computed again: {visible(failure)}")
        answers, units = f"{checked.answers:,} answers", f"{checked.units:,} units"
        more = f", {recomputation.answers:,} answers computed again" if recomputation else ""
        fits = "everything that was checked fits together" if failures else "everything fits together"
        print(f"{answers} with {units} checked{more}: {f'{count:,} differences' if count else fits}")
    return FAILED if count or failures or nothing else DONE


def rescore_run(name: str, database: Path | None, *, json_output: bool) -> int:
    """Apply the present parser and scorer to the answers of a run; 1 when some could not be scored again."""
    path = database or database_path()
    changed = answers = 0
    failed: list[Difference] = []
    # Read first: a store makes the file that it does not find.
    with open_queries(path) as queries, open_store(path) as store:
        work = Work(queries.find_run(name))
        if json_output:
            sys.stdout.write('{"differences": [')
        count = 0
        for found in rescore_answers(store, queries, work):
            answers += 1
            changed += found.written
            for difference in found.differences:
                if json_output:
                    data = json.dumps(_data(difference), ensure_ascii=False, allow_nan=False)
                    sys.stdout.write(f"{', ' if count else ''}{data}")
                else:
                    print(_line(difference, "was", "is"))
                count += 1
            if found.failure is not None:
                failed.append(found.failure)
        studies = queries.studies(work.run)
    if json_output:
        left = json.dumps([_data(failure) for failure in failed], ensure_ascii=False, allow_nan=False)
        print(f'], "failed": {left}, "answers": {answers}, "changed": {changed}}}')
    else:
        for failure in failed:
            print(_line(failure))
        print(f"{work.title}: {answers:,} answers scored again, {changed:,} changed, {len(failed):,} left as they were")
        if changed and studies:
            listed = ", ".join(str(study.work) for study in studies)
            say(f"studies are about the earlier verdicts: {listed}; run them again")
    return FAILED if failed else DONE


def delete_stored(name: str, database: Path | None, *, yes: bool) -> int:
    """Delete a run or study; asks first where somebody can answer.

    Raises:
        UsageError: nobody can be asked and ``yes`` was not given, or the newest was asked for instead of a number.
    """
    path = database or database_path()
    if name == "latest":
        raise UsageError("what is deleted is called by its number; `salt-tui runs` lists them")
    with open_queries(path) as queries:
        work = queries.find_work(name)
        studies = [] if work.study is not None else queries.studies(work.run)
        answers = len(queries.finished_generations(work))
    what = f"{work.title} with {answers:,} finished answers" + (f" and {len(studies):,} studies" if studies else "")
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(f"{what} would be gone for good; say --yes")
        print(f"delete {what} for good? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            say(f"{work.title} was kept")
            return DONE
    with open_store(path) as store:
        store.delete_work(work)
    say(f"{what} is deleted")
    return DONE


def _data(difference: Difference) -> dict[str, Any]:
    work = difference.work
    return {
        "run": None if work is None else work.run,
        "study": None if work is None or work.study is None else str(work),
        "answer": difference.answer,
        "what": difference.what,
        "stored": _json_value(difference.stored),
        "found": _json_value(difference.found),
    }


def _json_value(value: Shown) -> Shown:
    return visible(value) if isinstance(value, str) else value


def _line(difference: Difference, before_word: str = "stored", after_word: str = "found") -> str:
    place = [] if difference.work is None else [difference.work.title]
    place += [] if difference.answer is None else [difference.answer]
    where = ", ".join([*place, difference.what])
    if difference.stored is None and isinstance(difference.found, str):
        return visible(f"{where}: {difference.found}")
    return visible(f"{where}: {before_word} {_shown(difference.stored)}, {after_word} {_shown(difference.found)}")


def _shown(value: Shown) -> str:
    if value is None:
        return "nothing"
    return visible(value, _LONGEST) if isinstance(value, str) else f"{value:.12g}"
