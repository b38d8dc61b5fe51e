"""What a planned experiment changes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salt_tui.runner.replays.design import (
    SHARED_TOKENS,
    TOO_SHORT,
    DesignOptions,
    ReplayableAnswer,
    plan_design,
    plan_target,
)

pytestmark = pytest.mark.quick


def answer(correct, content="c", generation=1, clean=None, gold=None):
    count = len(correct)
    return ReplayableAnswer(
        generation=generation,
        task="dna_translation",
        content=content,
        correct=tuple(correct),
        gold=tuple(f"g{index}" for index in range(count if gold is None else gold)),
        wrong_atom=lambda random, index: f"w{index}-{int(random.random() * 5)}",
        clean=tuple([True] * count if clean is None else clean),
    )


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=11, max_size=40), st.integers(1, 20), st.integers(0, 3))
def test_variants_keep_their_promises(correct, variants, seed):
    one = answer(correct)
    index = len(correct) - 1
    found = plan_target(one, index, DesignOptions(variants=variants, seed=seed))
    assert found.variants[0].direction == "baseline"
    assert found.variants[0].edits == ()
    assert 1 < len(found.variants) <= variants + 1
    assert len({variant.edits for variant in found.variants}) == len(found.variants)
    for number, variant in enumerate(found.variants):
        assert variant.number == number
        modified = list(correct)
        for place, text in variant.edits:
            assert place < index
            assert text == f"g{place}" if variant.direction == "correction" else text.startswith(f"w{place}")
            assert correct[place] == (variant.direction == "corruption")
            modified[place] = not correct[place]
        change = (sum(modified[:index]) - sum(correct[:index])) / index
        near = (sum(modified[index - 10 : index]) - sum(correct[index - 10 : index])) / 10
        assert (variant.treatment_global, variant.treatment_local) == pytest.approx((change, near))
    assert found.correct_before == pytest.approx(sum(correct[:index]) / index)
    assert found.correct_before_local == pytest.approx(sum(correct[index - 10 : index]) / 10)


def test_doses_outside_and_inside_the_last_ten_are_crossed():
    found = plan_target(answer([True, False] * 20), 30, DesignOptions(variants=48))
    inside = {round(abs(variant.treatment_local) * 10) for variant in found.variants}
    outside = {
        round(abs(variant.treatment_global) * 30 - abs(variant.treatment_local) * 10) for variant in found.variants
    }
    assert inside == {0, 1, 2, 4, 5}
    assert outside == {0, 2, 5, 8, 10}
    pairs = {(v.direction, round(v.treatment_global, 9), v.treatment_local) for v in found.variants}
    assert len(pairs) == 2 * 24 + 1
    directions = [variant.direction for variant in found.variants[1:5]]
    assert directions == ["correction", "corruption", "correction", "corruption"]


def test_same_seed_same_design_and_answers_do_not_depend_on_each_other():
    answers = [answer([True, False, True] * 8, f"c{number}", number) for number in range(6)]
    options = DesignOptions(answers=6, targets=3, variants=4)
    whole = plan_design(answers, options)
    assert plan_design(answers, options) == whole
    assert plan_design(answers, replace(options, seed=2)) != whole
    assert whole.replays == 6 * 3 * 5
    alone = plan_design(answers[2:3], options)
    assert alone.targets == tuple(target for target in whole.targets if target.generation == 2)
    assert [target.index for target in whole.targets if target.generation == 2] == sorted(
        target.index for target in whole.targets if target.generation == 2
    )


def test_targets_have_ten_atoms_before_them_gold_and_a_token_of_their_own():
    assert answer([True] * 15, gold=13).targets() == (10, 11, 12)
    assert answer([True] * 12, clean=[True] * 11 + [False]).targets() == (10,)
    found = plan_design(
        [answer([True] * 10), answer([True] * 12, gold=10), answer([True] * 12, clean=[False] * 12)], DesignOptions()
    )
    assert (found.targets, found.left_out) == ((), {TOO_SHORT: 2, SHARED_TOKENS: 1})


def test_nothing_to_correct_leaves_one_direction():
    found = plan_target(answer([True] * 20), 15, DesignOptions(variants=8))
    assert {variant.direction for variant in found.variants} == {"baseline", "corruption"}
    assert len(found.variants) == 9
