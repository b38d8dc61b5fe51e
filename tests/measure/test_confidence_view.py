"""Views of stated confidence, counted by hand; and that they do not promise more than they hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from salt_tui.measure.confidence_view import ConfidenceView, ViewChoice, confidence_view
from salt_tui.measure.rows import Part
from salt_tui.measure.surest_wrong import SurestMistake, surest_mistake
from salt_tui.store.queries import open_queries
from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import CONFIDENCE_COLUMNS, UNIT_STATUSES
from scoring import labels
from scoring.confidence import HEADLINE_FUNCTION
from tests.stored_runs import store_run


def atoms(database: Path, run: int) -> list[tuple[str, str, float]]:
    """Return task, status and confidence of every atom that has one."""
    found = []
    with open_queries(database) as queries:
        for answer in queries.answers(run):
            assert answer.generation is not None
            for unit in queries.units(answer.generation, "atom"):
                value = unit.confidences[CONFIDENCE_COLUMNS.index(HEADLINE_FUNCTION)]
                if value is not None:
                    found.append((answer.problem.task, unit.status, value))
    return found


def seen(database: Path, run: int, bins: int) -> tuple[ConfidenceView, SurestMistake | None]:
    with open_queries(database) as queries:
        columns = queries.unit_columns(run, "atom", (HEADLINE_FUNCTION,))
        mistake = surest_mistake(queries, run, columns)
    return confidence_view(columns, ViewChoice("atom", HEADLINE_FUNCTION, bins=bins)), mistake


def columns_of(
    confidence: list[float], correct: list[int], answers: list[int], name: str = "max_probability"
) -> UnitColumns:
    """Return atoms of one task; a negative outcome is an abstained one."""
    size = len(confidence)
    status = [{1: 0, 0: 1}.get(outcome, UNIT_STATUSES.index("abstained")) for outcome in correct]
    zeros = np.zeros(size, dtype=np.int64)
    return UnitColumns(
        "atom",
        ("maze",),
        zeros,
        np.array(answers, dtype=np.int64),
        zeros,
        np.arange(size),
        zeros - 1,
        np.array(status, dtype=np.int64),
        {name: np.array(confidence)},
    )


def test_bins_and_the_surest_mistake_by_counting(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    statuses = ["correct", "wrong", "correct", "wrong", "abstained", "redundant", "missing"]
    run = store_run(database, ("maze", "code"), answers=6, statuses=statuses)
    view, mistake = seen(database, run, 4)
    counted = [atom for atom in atoms(database, run) if atom[1] not in {"abstained", "missing"}]
    assert len(counted) == 2 * 6 * 5 == view.n
    assert view.answers == 12
    assert view.bins is not None
    for place, (lower, upper, count, said, right) in enumerate(
        zip(view.bins.lower, view.bins.upper, view.bins.counts, view.bins.confidence, view.bins.accuracy, strict=True)
    ):
        inside = [atom for atom in counted if lower < atom[2] <= upper]
        assert count == len(inside) == view.bin_rows(place).size
        assert said == pytest.approx(sum(atom[2] for atom in inside) / count)
        assert right == pytest.approx(sum(atom[1] == "correct" for atom in inside) / count)
    assert mistake is not None
    assert mistake.atom.max_probability == max(atom[2] for atom in counted if atom[1] != "correct")
    same = [atom[2] for atom in counted if atom[0] == mistake.atom.task]
    assert mistake.surer_than == sum(value < mistake.atom.max_probability for value in same) / len(same)


def test_without_a_mistake_there_is_none(tmp_path: Path) -> None:
    run = store_run(tmp_path / "x.db", ("maze",), answers=2, statuses=["correct", "abstained"])
    view, mistake = seen(tmp_path / "x.db", run, 5)
    assert mistake is None
    assert view.n == 2
    assert view.values["auroc"].mean.value is None
    assert view.sentence == "Too few atoms to say how right it is where it is sure: 2 in 2 answers."


def test_without_confidences_nothing_can_be_shown(tmp_path: Path) -> None:
    run = store_run(tmp_path / "x.db", ("maze",), answers=2, tokenless=True)
    view, _ = seen(tmp_path / "x.db", run, 5)
    assert (view.bins, view.risk, view.euro, view.densities, view.n) == (None, None, None, None, 0)
    assert view.sentence == "Nothing can be shown: no atoms with a confidence."
    with pytest.raises(ValueError, match="bins"):
        seen(tmp_path / "x.db", run, 0)


def test_risk_and_coverage_by_hand() -> None:
    """Surest first: right, wrong and right at one confidence, wrong."""
    view = confidence_view(
        columns_of([0.9, 0.6, 0.6, 0.2, 0.5], [1, 0, 1, 0, -1], [1, 1, 2, 2, 2]),
        ViewChoice("atom", "max_probability"),
    )
    risk = view.risk
    assert risk is not None
    assert view.n == 4
    assert risk.threshold.tolist() == [0.9, 0.6, 0.2]
    assert risk.coverage.tolist() == [0.25, 0.75, 1.0]
    assert risk.error.tolist() == pytest.approx([0.0, 1 / 3, 0.5])
    assert risk.oracle.tolist() == pytest.approx([0.0, 1 / 3, 0.5])
    assert risk.random == 0.5
    for threshold, n, error in ((0.95, 0, None), (0.9, 1, 0.0), (0.7, 1, 0.0), (0.6, 3, 1 / 3), (0.0, 4, 0.5)):
        found = risk.at(threshold)
        assert (found.n, found.coverage) == (n, n / 4)
        assert found.error == (None if error is None else pytest.approx(error))
    assert risk.within(0.05) is None, "one atom is too few to speak of"
    found = risk.within(0.05, fewest=1)
    assert found is not None
    assert (found.n, found.threshold) == (1, 0.9)
    assert view.euro is not None
    assert view.euro.value[50] == pytest.approx(3 / 4), "at .5 the three surest are trusted: 2 of 2 right, 1 of 2 wrong"
    assert view.euro.base_rate[60] == pytest.approx(0.6 * 2 / (0.4 * 2 + 0.6 * 2)), "nobody is trusted at .5"


def test_the_sentence_needs_ten_units_of_five_answers_in_the_bin() -> None:
    sure, unsure = [0.99] * 12, [0.5] * 12
    right = [1] * 6 + [0] * 6
    of_five = [number % 5 for number in range(12)]
    view = confidence_view(columns_of(sure + unsure, right * 2, of_five * 2), ViewChoice("atom", "max_probability"))
    assert view.sentence.startswith("At .93–1.00 it says .99 and is right .50 [")
    assert ": 12 atoms. However few of the surest are trusted (10 or more), over 5 % are wrong." in view.sentence
    of_four = [number % 4 for number in range(12)]
    view = confidence_view(
        columns_of(sure + unsure, right * 2, of_four + of_five), ViewChoice("atom", "max_probability")
    )
    assert view.sentence.startswith("At .47–.53 it says .50 and is right .50")


def test_scores_that_are_no_probability_are_ranked_and_need_a_map() -> None:
    scores, right = [3.0, 2.0, 1.0, 0.5] * 5, [0, 0, 1, 1] * 5
    columns = columns_of(scores, right, [number // 4 for number in range(20)], "mean_entropy")
    raw = confidence_view(columns, ViewChoice("atom", "mean_entropy"))
    assert raw.bins is None
    assert raw.risk is not None
    assert [raw.shown(value) for value in raw.risk.threshold] == [0.5, 1.0, 2.0, 3.0], "surest first"
    assert raw.sentence == (
        "No confidence is stated: mean_entropy is not a probability and needs a map."
        " Of those at 1 or less, 0 % are wrong and 50 % covered (10)."
    )
    mapped = confidence_view(columns, ViewChoice("atom", "mean_entropy", "isotonic"))
    assert mapped.bins is not None
    assert mapped.rising
    beta = confidence_view(columns, ViewChoice("atom", "mean_entropy", "beta"))
    assert beta.bins is None
    assert beta.no_probability == "beta needs scores in [0, 1]"


def test_a_slice_is_measured_with_the_maps_of_the_whole_run() -> None:
    columns = columns_of([0.9, 0.8, 0.7, 0.6] * 5, [1, 1, 0, 0] * 5, [number // 4 for number in range(20)])
    mask = np.arange(20) < 8
    choice = ViewChoice("atom", "max_probability", "platt", slice="half", part="first")
    view = confidence_view(columns, choice, Part("first", mask))
    whole = confidence_view(columns, ViewChoice("atom", "max_probability", "platt"))
    assert view.n == 8
    assert view.confidence.tolist() == whole.confidence[:8].tolist()


def test_unknown_names_are_refused() -> None:
    columns = columns_of([0.5], [1], [1])
    with pytest.raises(ValueError, match="these units have no nonsense; there are max_probability"):
        confidence_view(columns, ViewChoice("atom", "nonsense"))
    with pytest.raises(ValueError, match="isotonic"):
        confidence_view(columns, ViewChoice("atom", "max_probability", "isotnic"))


def test_store_and_scoring_know_the_same_statuses_in_the_same_order() -> None:
    assert UNIT_STATUSES == labels.UNIT_STATUSES
