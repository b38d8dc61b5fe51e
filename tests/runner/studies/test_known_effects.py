"""Experiments on a model that reacts to edits by a known rule, from its run to what is concluded."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from random import Random

import pytest

from salt_tui.cli import run_command_line
from salt_tui.measure.interventions import InterventionFindings, TaskFindings, measure_interventions
from salt_tui.reports.intervention_tables import interventions_sentences
from salt_tui.runner.background import BackgroundRun
from salt_tui.runner.events import RunEnded
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from salt_tui.store.queries import open_queries
from scoring.interventions_contrasts import Contrast
from tasks.parameters import level_parameters
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS, worked_answer
from tasks.registry import get_task

TASK = "dna_translation"
GLOBAL, LOCAL, SCALE = 0.4, 0.2, 12.0
CODONS = ["".join(letters) for letters in product("ACGT", repeat=3)]


def write_script(path: Path, problems: int, codons: int, seed: int) -> None:
    """Write a model that answers each problem by the rule, wrong atoms drawn."""
    task = get_task(TASK)
    level = level_parameters(task, "hard", (f"codons={codons}",))
    rule = {"floor": 0.1, "fall": 0.25, "scale": SCALE, "global": GLOBAL, "local": LOCAL, "seed": seed}
    replies = []
    for problem in draw_problems(task, "hard", level, seed, problems, DEFAULT_SHOTS).problems:
        random, tokens = Random(problem.id), []
        answer = worked_answer(task, problem, "regular")
        place = 0
        for piece in answer.replace("\n", " \n ").split(" "):
            if piece == "\n":
                tokens.append(["\n", -0.001])
            elif piece.isalpha():
                if tokens and tokens[-1][0] not in {"\n", " "}:
                    tokens.append([" ", -0.001])
                tokens.append([piece, -0.5, None, [[task.wrong_atom(random, problem, place), -1.0]]])
                place += 1
            else:
                tokens.append([piece, -0.001])
        assert "".join(str(token[0]) for token in tokens) == answer
        replies.append({"match": problem.text, "tokens": tokens, "reacts": rule})
    path.write_text(json.dumps({"replies": replies, "pieces": CODONS}))


def experiment(
    folder: Path, seed: int, problems: int, codons: int, targets: int, variants: int
) -> InterventionFindings:
    """Run the model, replay its answers, and measure."""
    model, database = folder / f"{seed}.scripted.json", folder / f"{seed}.db"
    write_script(model, problems, codons, seed)
    assert run_command_line(
        ["run", "-m", str(model), "--tasks", TASK, "--difficulty", "hard", "--param", f"codons={codons}", "--limit",
         str(problems), "--seed", str(seed), "-np", "16", "--db", str(database), "--display", "none"]
    ) == 0  # fmt: skip
    options = {"answers": problems, "targets": targets, "variants": variants, "seed": seed}
    run = BackgroundRun(lambda emit: prepare_study(StudyRequest("interventions", "1", options), database, emit), str)
    run.start()
    assert run.join(900)
    last = run.mailbox[-1]
    assert isinstance(last, RunEnded)
    assert (last.state, last.message) == ("finished", None)
    with open_queries(database) as queries:
        return measure_interventions(queries, [queries.find_work("1.1")], draws=100)


def adjusted(task: TaskFindings, outcome: str) -> dict[str, Contrast]:
    """Return the contrasts that hold the other treatment fixed, by treatment."""
    return {one.treatment: one for one in task.outcomes[outcome].contrasts if one.adjusted}  # type: ignore[index]


def test_known_effects_come_out_of_the_study_that_is_made_of_them(tmp_path: Path) -> None:
    findings = experiment(tmp_path, 1, problems=10, codons=40, targets=3, variants=6)
    (task,) = findings.tasks
    assert findings.check.identical
    assert (task.problems, task.targets, task.without_atom) == (10, 30, 0)
    # P(gold) is the rule itself, so its slopes are exact.
    for treatment, effect in (("global", GLOBAL), ("local", LOCAL)):
        found = adjusted(task, "probability")[treatment].slope
        assert found.value.value == pytest.approx(effect, abs=2e-3)
        assert found.interval.low is not None
        assert found.interval.high is not None
        assert found.interval.high - found.interval.low < 0.01
    # Both directions have the same effect, although corrections change more of the last ten atoms.
    sides = adjusted(task, "probability")["global"].both_directions
    assert sides.plus_per_unit.value.value == pytest.approx(GLOBAL, abs=2e-3)
    assert sides.minus_per_unit.value.value == pytest.approx(GLOBAL, abs=2e-3)
    for treatment, effect in (("global", GLOBAL), ("local", LOCAL)):
        interval = adjusted(task, "outcome")[treatment].slope.interval
        assert (interval.low or 0.0) <= effect <= (interval.high or 0.0)
    said = " ".join(interventions_sentences(findings))
    assert "the correctness of the whole prefix was not tested: +.40 [.40 .40] in P(gold)" in said
    assert "hurts more than one made right helps cannot be told, with the last ten atoms held fixed" in said


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_intervals_of_outcomes_and_of_saturation_hold_the_rule_in_twenty_experiments(tmp_path: Path) -> None:
    held = {"global": 0, "local": 0, "saturation": 0}
    for seed in range(20):
        (task,) = experiment(tmp_path, seed, problems=30, codons=85, targets=6, variants=8).tasks
        for treatment, effect in (("global", GLOBAL), ("local", LOCAL)):
            interval = adjusted(task, "outcome")[treatment].slope.interval
            held[treatment] += interval.low is not None and interval.low <= effect <= (interval.high or 0.0)
        length = task.outcomes["probability"].lengths[0]
        # Three scales behind the tenth atom, 95 % of an exponential has fallen.
        held["saturation"] += length.saturation.value.value == pytest.approx(10 + 3 * SCALE, abs=6)
    assert min(held.values()) >= 17, held
