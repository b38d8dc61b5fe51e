"""``salt-tui policy``: which units of a model to trust, with a promise or by rewards; found, kept and applied."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from salt_tui.commands.failures import DONE, FAILED, say
from salt_tui.commands.line_width import line_width
from salt_tui.commands.text_files import write_text_file
from salt_tui.inputs.score_tables import read_rewards, read_scores_to_map
from salt_tui.measure.policies import SavedPolicy, decisions, find_policy, policy_text, read_policy, units_for_policy
from salt_tui.paths import database_path
from salt_tui.reports.policy_report import policy_data, policy_lines
from salt_tui.reports.wrapping import wrapped
from salt_tui.similar_names import message_of
from salt_tui.store.queries import open_queries
from salt_tui.store.records import UnitKind
from salt_tui.store.schema import CONFIDENCE_COLUMNS
from salt_tui.usage_error import UsageError
from scoring.calibrators import calibrator
from scoring.decision_utility import Rewards
from scoring.policy import RAW, NoPolicy, Promise

CONFIDENCE = 0.9


def print_policy(
    run: str,
    database: Path | None,
    kind: UnitKind,
    *,
    risk: str | None,
    confidence: float | None,
    exact: bool,
    rewards: str | None,
    functions: Sequence[str],
    maps: Sequence[str],
    output: Path | None,
    json_output: bool,
) -> int:
    """Find the policy of a run and print it.

    Args:
        run: its name.
        database: the file that holds it; None for the usual one.
        kind: of the units that are decided about.
        risk: the largest share of wrong units among trusted ones; a second one, larger, after a comma makes bands.
        confidence: how sure; None is `CONFIDENCE`.
        exact: promise the mean over answers, by a test that holds for any number of them.
        rewards: of right and wrong units, trusted and not; instead of a risk.
        functions: to choose among; empty for all there are.
        maps: to choose among; empty for the usual ones.
        output: file to keep the policy in.
        json_output: print one JSON object.

    Returns:
        `FAILED` where a file was asked for and there is no policy to keep, so that a script notices.

    Raises:
        UsageError: options that do not go together or cannot be meant.
    """
    wanted = _wanted(risk, confidence, rewards, exact=exact)
    for name in maps:
        if name != RAW:
            _check_map(name)
    with open_queries(database or database_path()) as queries, queries.snapshot():
        number = queries.find_run(run)
        known = [signal.shown for signal in queries.signal_names(number) if kind in signal.kinds]
        columns = queries.unit_columns(number, kind, tuple(functions) or (*CONFIDENCE_COLUMNS, *known))
    found = find_policy(units_for_policy(columns, functions), wanted, tuple(maps) or None)
    code = DONE
    if output is not None:
        if isinstance(found, NoPolicy):
            code = FAILED
            say(f"{output} was not written: {found.reason}")
        else:
            write_text_file(output, policy_text(SavedPolicy.of(found)))
    if json_output:
        print(json.dumps(policy_data(found), ensure_ascii=False, allow_nan=False))
        return code
    for sentence in policy_lines(found, kind):
        for line in wrapped(sentence, line_width()):
            print(line)
    return code


def print_decisions(policy: Path, scores: Path, column: str | None) -> int:
    """Print the decision of a saved policy about each row of a table, a word a line.

    Args:
        policy: its file.
        scores: the table.
        column: with the function's values; None for the one that is named like the function, else the usual names.

    Raises:
        UsageError: a file that cannot be read.
    """
    saved = read_policy(policy)
    table = read_scores_to_map(scores, column or saved.scale.function)
    sys.stdout.writelines(f"{decision}\n" for decision in decisions(saved, table))
    return DONE


def _wanted(
    risk: str | None, confidence: float | None, rewards: str | None, *, exact: bool
) -> Sequence[Promise] | Rewards:
    if (risk is None) == (rewards is None):
        raise UsageError("either --risk, such as --risk .05, or --rewards, such as --rewards 1,-3,0,0")
    if rewards is not None:
        if confidence is not None or exact:
            raise UsageError("--rewards promises nothing: leave --confidence and --exact out")
        return read_rewards(rewards)
    assert risk is not None
    sure = CONFIDENCE if confidence is None else confidence
    try:
        alphas = [float(part) for part in risk.split(",")]
        # Of 1 - .9 the last binary digits are no part of what was asked.
        promises = [Promise(alpha, round(1.0 - sure, 12), exact) for alpha in alphas]
    except ValueError as error:
        raise UsageError(f"--risk {risk} --confidence {sure}: shares between 0 and 1") from error
    if len(promises) > 2 or (len(promises) == 2 and promises[1].alpha <= promises[0].alpha):
        raise UsageError(f"--risk {risk}: one share, or two of which the second is larger, such as .05,.2")
    return promises


def _check_map(name: str) -> None:
    try:
        calibrator(name)
    except ValueError as error:
        raise UsageError(message_of(error)) from error
