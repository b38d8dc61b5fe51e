"""Contrasts and length response against patsy and statsmodels, by hand, and on models with a known rule."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.interventions import (
    NO_CORRECTION,
    NO_ROWS,
    NO_TARGET_WITH_BOTH,
    NOTHING_CHANGED,
    ONE_DOSE,
    TOO_FEW_PROBLEMS,
    InterventionRow,
    InterventionTable,
)
from scoring.interventions_basis import COINCIDENT_KNOTS, FEW_DOSES, dose_basis
from scoring.interventions_contrasts import contrast, contrasts
from scoring.interventions_length import ALL_CONSTANT, ONE_LENGTH, length_response, length_responses
from tests.examples import examples
from tests.scoring.simulated_interventions import EDITS, LENGTH, simulated_rows

pytestmark = pytest.mark.slow

DRAWS = 200


def row(problem, target, dose, outcome, *, baseline=False, local=None, before=0.5, model="m"):
    return InterventionRow(
        model=model,
        problem=problem,
        target=target,
        baseline=baseline,
        treatment_global=dose,
        treatment_local=dose if local is None else local,
        correct_before=before,
        correct_before_local=before,
        outcome=outcome,
        probability=None,
    )


def frame(table):
    import pandas

    position = table.target.astype(float)
    return pandas.DataFrame(
        {
            "paired": table.paired,
            "y": table.outcome,
            "dose": table.treatments["global"],
            "near": table.treatments["local"],
            "z": (position - position.mean()) / position.std(),
            "length": position - 1.0,
            "before": table.correct_before["global"],
            "before_near": table.correct_before["local"],
            "problem": table.problem,
            "model": table.model,
        }
    )


def bounds(column):
    margin = 1e-6 * (column.max() - column.min())
    return f"lower_bound={column.min() - margin!r}, upper_bound={column.max() + margin!r}".replace("np.float64", "")


@pytest.fixture(scope="module")
def table():
    return InterventionTable.from_rows(simulated_rows(5, problems=12, models=2), "outcome")


@settings(deadline=None, max_examples=examples(50))
@given(st.lists(st.integers(-20, 20), min_size=12, max_size=60))
def test_basis_is_patsys(doses):
    import patsy

    column = np.array(doses) / 20.0
    if np.ptp(column) == 0.0:
        return
    basis = dose_basis(column)
    if basis.note is not None:
        assert basis.note == (FEW_DOSES if len(set(doses)) < 6 else COINCIDENT_KNOTS)
        np.testing.assert_array_equal(basis.columns(column)[:, 0], column)
        return
    expected = patsy.dmatrix(f"bs(x, df=5, degree=3, {bounds(column)}) - 1", {"x": column})
    np.testing.assert_allclose(basis.columns(column), np.asarray(expected), atol=1e-9)


@pytest.mark.parametrize(("treatment", "adjusted"), [("global", False), ("local", True)])
def test_contrast_agrees_with_statsmodels(table, treatment, adjusted):
    import statsmodels.formula.api as formula

    data = frame(table)
    dose, other = ("dose", "near") if treatment == "global" else ("near", "dose")
    rest = "z + before + C(problem) + C(model)"
    rest += " + before_near" if treatment == "local" else ""
    rest += f" + {other}" if adjusted else ""
    spline = f"bs({dose}, df=5, degree=3, {bounds(data[dose])})"
    full = formula.ols(f"paired ~ {spline} + {rest}", data).fit()
    flat = formula.ols(f"paired ~ {rest}", data).fit()
    line = formula.ols(f"paired ~ {dose} + {rest}", data).fit()
    clustered = formula.ols(f"paired ~ {spline} + {rest}", data).fit(
        cov_type="cluster", cov_kwds={"groups": data["problem"]}, use_t=True
    )

    found = contrast(table, treatment, adjusted, DRAWS)

    assert found.note is None
    assert found.p_row.value == pytest.approx(full.compare_f_test(flat)[1], rel=1e-6)
    assert found.p_nonlinear_row.value == pytest.approx(full.compare_f_test(line)[1], rel=1e-6)
    assert found.difference_aic.value == pytest.approx(line.aic - full.aic, rel=1e-6)
    grid = np.array(found.curve.dose)
    means = [
        np.mean([full.predict(rows.assign(**{dose: at})).mean() for _, rows in data.groupby("model")]) for at in grid
    ]
    np.testing.assert_allclose(found.curve.value, means, atol=1e-9)
    # statsmodels also counts the constants of the problems as parameters of the correction.
    names = [name for name in full.params.index if name.startswith("bs(")]
    wald = clustered.f_test(np.eye(len(full.params))[[full.params.index.get_loc(name) for name in names]])
    parameters, own = len(full.params), len(full.params) - len(table.problems)
    statistic = float(wald.fvalue) * (table.size - own) / (table.size - parameters)
    from scipy.stats import f

    assert found.p_clustered.value == pytest.approx(f.sf(statistic, 5, len(table.problems) - 1), rel=1e-5)


@pytest.mark.parametrize("controlled", [True, False])
def test_length_agrees_with_statsmodels(table, controlled):
    import statsmodels.api as sm
    import statsmodels.formula.api as formula

    data = frame(table)
    rest = "C(problem) + C(model)" + (" + before + before_near + dose + near" if controlled else "")
    spline = f"bs(length, df=5, degree=3, {bounds(data['length'])})"
    fits = [
        formula.glm(f"y ~ {design}", data, family=sm.families.Binomial()).fit(tol=1e-12)
        for design in (f"{spline} + {rest}", rest, f"length + {rest}")
    ]

    found = length_response(table, "outcome", controlled, DRAWS)

    from scipy.stats import chi2

    assert found.dropped_problems == 0
    assert found.p_significant.value == pytest.approx(chi2.sf(2 * (fits[0].llf - fits[1].llf), 5), rel=1e-4)
    assert found.p_nonlinear.value == pytest.approx(chi2.sf(2 * (fits[0].llf - fits[2].llf), 4), rel=1e-4)
    assert found.difference_aic.value == pytest.approx(fits[2].aic - fits[0].aic, abs=1e-4)
    means = [
        np.mean([fits[0].predict(rows.assign(length=at)).mean() for _, rows in data.groupby("model")])
        for at in found.curve.dose
    ]
    np.testing.assert_allclose(found.curve.value, means, atol=1e-6)
    assert found.resampled == "models"


def test_per_model_fits_are_averaged(table):
    found = contrast(table, "global", False, DRAWS)
    assert len(found.per_model_curve) == 60
    assert np.abs(np.array(found.per_model_curve) - np.array(found.curve.value)).max() < 0.25
    one = table.selected(table.model == 0)
    assert contrast(one, "global", False, DRAWS).per_model_curve == ()


def test_line_by_hand():
    # One target per problem: right at +.5, wrong at -.5, unchanged right: Ỹ = 0, -1 about a baseline of 1.
    rows = [
        row(f"s{problem}", target, dose, outcome, baseline=dose == 0.0)
        for problem in range(3)
        for target in (11, 12)
        for dose, outcome in ((0.0, 1), (0.5, 1), (-0.5, 0))
    ]
    found = contrast(InterventionTable.from_rows(rows, "outcome"), "global", False)
    # Least squares of (0, 0, −1) on (0, .5, −.5): slope 1, mean −1/3.
    assert found.note == FEW_DOSES
    assert found.slope.value.value == pytest.approx(1.0)
    assert found.slope.interval.reason == TOO_FEW_PROBLEMS
    assert found.sides.plus_per_unit.value.value == pytest.approx(1.0)
    assert found.sides.ratio_per_unit.value.value == pytest.approx(1.0)
    grid = np.array(found.curve.dose)
    np.testing.assert_allclose(found.curve.value, grid - 1 / 3, atol=1e-12)
    assert found.sides.plus.value.value == pytest.approx(grid[grid > 0].mean() - 1 / 3)
    assert found.both_directions.targets == 6
    assert found.p_clustered.reason == TOO_FEW_PROBLEMS


def test_unequal_ranges_of_doses_do_not_look_like_an_asymmetric_effect():
    rows = [
        row(f"s{problem}", target, dose, 0, baseline=dose == 0.0)
        for problem in range(12)
        for target in (11, 20)
        for dose in (0.0, -0.9, -0.45, 0.25, 0.5)
    ]
    rows = [replace(each, probability=0.45 + 0.5 * each.treatment_global) for each in rows]
    found = contrast(InterventionTable.from_rows(rows, "probability"), "global", False, DRAWS)
    assert found.sides.ratio.value.value > 1.5
    assert found.sides.ratio_per_unit.value.value == pytest.approx(1.0)
    assert found.sides.plus_per_unit.value.value == pytest.approx(0.5)


def test_degenerate_designs_give_a_reason():
    doses = (0.0, 0.5, -0.5)
    flat = [row("s", target, dose, 1, baseline=dose == 0.0) for target in (11, 12) for dose in doses]
    for found in contrasts(InterventionTable.from_rows(flat, "outcome")):
        assert (found.reason, found.slope.value.reason) == (NOTHING_CHANGED, NOTHING_CHANGED)
    table = InterventionTable.from_rows(flat, "outcome")
    assert {found.reason for found in length_responses(table, "outcome")} == {ALL_CONSTANT}
    alone = InterventionTable.from_rows([row("s", 11, 0.0, 1, baseline=True)], "outcome")
    assert contrast(alone, "local", False).reason == ONE_DOSE
    nothing = InterventionTable.from_rows([], "outcome")
    assert contrast(nothing, "global", True).reason == NO_ROWS
    assert length_response(nothing, "outcome", True).reason == NO_ROWS
    one_length = [row("s", 11, dose, int(dose > 0), baseline=dose == 0.0) for dose in doses]
    assert length_response(InterventionTable.from_rows(one_length, "outcome"), "outcome", False).reason == ONE_LENGTH
    only_down = [
        row("s", target, dose, int(dose == 0), baseline=dose == 0.0) for target in (11, 12) for dose in (0.0, -0.5)
    ]
    found = contrast(InterventionTable.from_rows(only_down, "outcome"), "global", False)
    assert found.sides.plus.value.reason == NO_CORRECTION
    assert found.both_directions.plus.value.reason == NO_TARGET_WITH_BOTH


def test_problems_whose_outcomes_are_all_equal_leave_the_length_response():
    rows = simulated_rows(3, problems=12)
    rows += [replace(each, problem="easy", outcome=1) for each in rows if each.problem == "s0"]
    found = length_response(InterventionTable.from_rows(rows, "outcome"), "outcome", True, DRAWS)
    assert (found.problems, found.dropped_problems) == (12, 1)
    assert found.reason is None


def test_rows_are_refused_without_a_baseline_and_out_of_range():
    with pytest.raises(ValueError, match="exactly one baseline"):
        InterventionTable.from_rows([row("s", 11, 0.5, 1)], "outcome")
    with pytest.raises(ValueError, match=r"treatment global lies in \[-1, 1\]"):
        InterventionTable.from_rows([row("s", 11, 2.0, 1, baseline=True)], "outcome")


def test_fixed_curves_fan_out_with_correctness():
    table = InterventionTable.from_rows(simulated_rows(1, certain=True), "probability")
    found = length_response(table, "probability", True, DRAWS)
    assert [curve.level for curve in found.fixed] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert [curve.observed for curve in found.fixed] == [False, False, True, True, False, False]
    assert found.p_significant.reason is not None


TRUTH_PROBLEMS = 300


@pytest.fixture(scope="module")
def truth():
    """The values that the estimators have on very many rows without chance."""
    rows = simulated_rows(10**6, problems=TRUTH_PROBLEMS, certain=True)
    table = InterventionTable.from_rows(rows, "probability")
    rows = simulated_rows(10**6, LENGTH, problems=TRUTH_PROBLEMS, certain=True)
    length = length_response(InterventionTable.from_rows(rows, "probability"), "probability", True, 1)
    return {
        "global": contrast(table, "global", True, 1).slope.value.value,
        "local": contrast(table, "local", True, 1).slope.value.value,
        "ratio": contrast(table, "global", False, 1).sides.ratio_per_unit.value.value,
        "knee": length.knee.value.value,
        "saturation": length.saturation.value.value,
    }


def test_truth_is_the_rule(truth):
    assert truth["global"] == pytest.approx(EDITS.global_effect, abs=1e-3)
    assert truth["local"] == pytest.approx(EDITS.local_effect, abs=1e-3)
    assert truth["ratio"] == pytest.approx(1.0, abs=0.02)
    # 95 % of an exponential's fall over these lengths has accrued after 3 scales; the spline has it a little later.
    assert truth["saturation"] == pytest.approx(10 + 3 * LENGTH.scale, abs=3)


def held(truth, seeds, draws):
    """Count how often each interval holds the truth."""
    counts = dict.fromkeys(truth, 0)
    for seed in seeds:
        table = InterventionTable.from_rows(simulated_rows(seed), "outcome")
        lengths = InterventionTable.from_rows(simulated_rows(seed, LENGTH), "outcome")
        length = length_response(lengths, "outcome", True, draws)
        estimates = {
            "global": contrast(table, "global", True, draws).slope,
            "local": contrast(table, "local", True, draws).slope,
            "ratio": contrast(table, "global", False, draws).sides.ratio_per_unit,
            "knee": length.knee,
            "saturation": length.saturation,
        }
        for name, estimate in estimates.items():
            interval = estimate.interval
            counts[name] += interval.low is not None and interval.low <= truth[name] <= interval.high
    return counts


def test_intervals_hold_the_truth(truth):
    counts = held(truth, range(10), 100)
    assert min(counts.values()) >= 7, counts


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_intervals_hold_the_truth_in_200_simulations(truth):
    counts = held(truth, range(200), 400)
    assert min(counts.values()) >= 181, counts
