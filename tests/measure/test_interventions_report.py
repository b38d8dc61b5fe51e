"""What interventions are said to have found: no more than intervals and numbers of problems allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from salt_tui.measure.interventions import BaselineCheck, InterventionFindings, OutcomeFindings, TaskFindings
from salt_tui.reports.intervention_tables import interventions_lines, interventions_sentences
from salt_tui.reports.interventions_json import interventions_data
from scoring.intervals import Interval
from scoring.interventions import OUTCOMES, InterventionTable
from scoring.interventions_contrasts import Estimate, contrasts
from scoring.interventions_length import length_responses
from scoring.value import Value, undefined
from tasks.registry import get_task
from tests.scoring.simulated_interventions import EDITS, LENGTH, Rule, simulated_rows

pytestmark = pytest.mark.quick

DRAWS = 60
NOTHING = Rule(floor=0.5, fall=0.0, scale=1.0, global_effect=0.0, local_effect=0.0)


def findings(rule: Rule, task: str = "dna_translation", problems: int = 20, seed: int = 1) -> InterventionFindings:
    rows = [replace(row, probability=float(row.outcome)) for row in simulated_rows(seed, rule, problems, 6, 6)]
    outcomes = {}
    for outcome in OUTCOMES:
        table = InterventionTable.from_rows(rows, outcome)
        baseline = float(table.outcome[table.baseline].mean())
        outcomes[outcome] = OutcomeFindings(
            outcome, baseline, contrasts(table, DRAWS), length_responses(table, outcome, DRAWS)
        )
    caveat = get_task(task).dependence.intervention_caveat
    found = TaskFindings(task, caveat, False, 1, problems, problems * 6, len(rows), 3, {"no room": 2}, outcomes)
    return InterventionFindings(("study 1.1",), (), BaselineCheck(9, True, 0, 0.0, 0), (found,), ())


def text(found: InterventionFindings) -> str:
    return " ".join(interventions_sentences(found))


def test_an_effect_that_is_there_is_said_with_interval_and_problems() -> None:
    said = text(findings(replace(EDITS, global_effect=0.5, local_effect=0.3), problems=40))
    assert "the correctness of the whole prefix matters: +" in said
    assert "40 problems" in said
    assert "whether an atom made wrong hurts more than one made right helps cannot be told" in said


def test_without_an_effect_nothing_is_concluded() -> None:
    said = text(findings(NOTHING))
    assert "matters" not in said
    assert said.count("has no clear effect") == 2
    assert "no clear change" in said


def test_a_slope_that_may_be_zero_or_is_not_tested_is_not_called_an_effect() -> None:
    found = findings(NOTHING)
    (task,) = found.tasks
    probability = task.outcomes["probability"]

    def said(p: Value) -> str:
        contrasts = tuple(replace(one, p_clustered=p) for one in probability.contrasts)
        outcomes = {**task.outcomes, "probability": replace(probability, contrasts=contrasts)}
        return text(replace(found, tasks=(replace(task, outcomes=outcomes),)))

    assert said(Value(0.0001)).count("has no clear effect") == 2
    doubt = "although the interval holds 0, 20 problems)"
    assert said(Value(0.0001)).count(f"(p < .001 for a curve of any shape, {doubt}") == 2
    assert said(undefined("nothing is left over")).count("was not tested: ") == 2
    assert said(undefined("nothing is left over")).count("(nothing is left over, 20 problems)") == 2


def test_one_side_is_called_stronger_only_where_it_is_known_to_do_something() -> None:
    found = findings(EDITS)
    (task,) = found.tasks
    probability = task.outcomes["probability"]

    def said(plus: tuple[float, float, float], minus: tuple[float, float, float], low: float, high: float) -> str:
        def estimate(value: float, low: float, high: float) -> Estimate:
            return Estimate(Value(value), Interval(low, high))

        sides = replace(
            probability.contrasts[0].both_directions,
            plus_per_unit=estimate(*plus),
            minus_per_unit=estimate(*minus),
            ratio_per_unit=estimate(abs(minus[0] / plus[0]), low, high),
        )
        contrasts = tuple(replace(one, both_directions=sides) for one in probability.contrasts)
        outcomes = {**task.outcomes, "probability": replace(probability, contrasts=contrasts)}
        return text(replace(found, tasks=(replace(task, outcomes=outcomes),)))

    assert "an atom made wrong hurts 4.0 times as much as one made right helps," in said(
        (0.1, 0.05, 0.2), (0.4, 0.3, 0.5), 1.5, 9.0
    )
    assert "an atom made wrong hurts more than one made right helps," in said(
        (-0.1, -0.2, 0.1), (0.4, 0.3, 0.5), 1.5, 9
    )
    assert "an atom made right helps more than one made wrong hurts, 4.0 times as much," in said(
        (0.4, 0.1, 0.5), (0.1, -0.1, 0.2), 0.1, 0.9
    )
    for plus, minus, low, high in (
        ((0.61, -0.19, 1.42), (0.02, -0.08, 0.14), 0.0, 0.9),  # neither is known to do anything
        ((-0.4, -0.5, -0.3), (0.1, -0.1, 0.2), 0.1, 0.9),  # made right it hurts
        ((0.1, 0.05, 0.2), (-0.4, -0.5, -0.3), 1.5, 9.0),
        ((0.1, 0.05, 0.2), (0.2, 0.1, 0.3), 0.9, 3.0),
    ):
        assert "helps cannot be told" in said(plus, minus, low, high)


def test_what_has_no_interval_says_why() -> None:
    found = findings(EDITS)
    (task,) = found.tasks
    probability = task.outcomes["probability"]
    few = findings(EDITS, problems=9).tasks[0].outcomes["probability"].contrasts
    contrasts = tuple(
        replace(one, both_directions=other.both_directions)
        for one, other in zip(probability.contrasts, few, strict=True)
    )
    outcomes = {**task.outcomes, "probability": replace(probability, contrasts=contrasts)}
    said = text(replace(found, tasks=(replace(task, outcomes=outcomes),)))
    assert "per unit, without intervals: fewer than 10 problems; " in said
    assert "  " not in said


def test_a_fall_with_length_is_called_an_association() -> None:
    said = text(findings(LENGTH, problems=40))
    assert "the chance falls by" in said
    assert "Length was not varied: an association, not an effect." in said


def test_few_problems_give_no_conclusion() -> None:
    found = findings(EDITS, problems=9)
    assert "nothing is concluded" in text(found)
    assert "matters" not in text(found)
    assert not any("by length:" in line for line in interventions_lines(found, 80))


@pytest.mark.parametrize("task", ["maze", "first_order_logic", "words_collection"])
def test_a_caveat_stands_in_every_table_and_in_the_sentences(task: str) -> None:
    found = findings(EDITS, task)
    caveat = get_task(task).dependence.intervention_caveat
    assert caveat
    words = " ".join(" ".join(interventions_lines(found, 200)).split())
    assert words.count(caveat) == 1 + 6 + 1
    assert interventions_data(found)["tasks"][task]["caveat"] == caveat


def test_lines_fit_and_name_what_was_left_out_and_whether_the_replays_were_exact() -> None:
    found = findings(EDITS)
    lines = list(interventions_lines(found, 80))
    assert max(map(len, lines)) <= 80
    assert sum("┤" in line for line in lines) == 3 * 7
    assert any("●" in line and "·" in line for line in lines)
    words = " ".join(lines)
    assert "All 9 unchanged replays gave the stored answer again, bit for bit." in words
    assert "left out, 2 replays: no room" in words
    assert "in 3 replays no atom was written" in words
    inexact = replace(found, check=BaselineCheck(9, False, 2, 0.25, 1))
    assert "warning: 2 of 9 unchanged replays differ" in " ".join(interventions_lines(inexact, 200))


def test_what_was_evaluated_in_chunks_says_so_at_every_result_and_by_how_much() -> None:
    exact = findings(EDITS)
    (task,) = exact.tasks
    check = BaselineCheck(9, False, 9, 0.25, 2)
    found = replace(exact, chunked=exact.studies, check=check, tasks=(replace(task, chunked=True),))
    words = " ".join(" ".join(interventions_lines(found, 80)).split())
    assert "prefix interventions, study 1.1, chunked and not exact: " in words
    assert words.count("Chunked, not exact.") == 6 + 1  # below each table, and below the curves
    assert "Chunked, so not exact" in text(found)
    assert "The 9 unchanged replays differ from the stored answers by up to 0.25 in a log-probability" in words
    assert "2 of them chose another token" in words
    assert "warning" not in words
    assert "hunked" not in " ".join(interventions_lines(exact, 80))
    assert interventions_data(found)["chunked"] is interventions_data(found)["tasks"][task.task]["chunked"] is True
    both = replace(found, studies=("study 1.1", "study 2.1"))
    assert "before the targets of study 1.1, changed and" in " ".join(interventions_lines(both, 200))


def test_json_has_a_reason_for_everything_undefined() -> None:
    data = interventions_data(findings(EDITS, problems=9))
    for record in (*data["contrasts"], *data["length"]):
        missing = {name for name, value in record.items() if value is None and name != "note"}
        named = {name.removesuffix("_interval") for name in record["reasons"]}
        assert {name.removesuffix("_interval") for name in missing} <= named
