"""Drawing problems and their parameters: seeds, repeats, exhausted levels, overrides and their errors."""

from __future__ import annotations

import pytest

from tasks.draws import derive_seed
from tasks.parameters import (
    level_parameters,
    validate_parameters,
)
from tasks.problems import draw_problem, draw_problems
from tasks.prompts import worked_examples
from tasks.registry import TASKS
from tasks.task import IntegerRange, ParameterError

DNA = TASKS["dna_translation"]
WORDS = TASKS["words_collection"]


def test_the_same_seed_gives_the_same_problems_and_another_seed_others() -> None:
    parameters = level_parameters(DNA, "easy")
    one = draw_problems(DNA, "easy", parameters, 1, 20, 3)
    assert draw_problems(DNA, "easy", parameters, 1, 20, 3) == one
    assert draw_problems(DNA, "easy", parameters, 1, 5, 3).problems == one.problems[:5]
    assert draw_problems(DNA, "easy", parameters, 2, 20, 3).problems != one.problems
    assert one.note is None


def test_a_problem_seed_depends_on_task_level_parameters_run_seed_and_index() -> None:
    parameters = level_parameters(DNA, "easy")
    problem = draw_problem(DNA, "easy", parameters, 4, 9)
    assert problem.seed == derive_seed(DNA.name, "easy", "codons=5..12 codons_per_line=10", 4, 9)
    assert problem.seed != draw_problem(DNA, "easy", level_parameters(DNA, "easy", ["codons=5..13"]), 4, 9).seed


def test_no_repeats_and_no_worked_example() -> None:
    parameters = level_parameters(DNA, "trivial", ["codons=1"])
    drawn = draw_problems(DNA, "trivial", parameters, 1, 50, 3)
    identifiers = [problem.id for problem in drawn.problems]
    assert len(set(identifiers)) == 50
    assert not {example.id for example in worked_examples(DNA, "trivial", 3)} & set(identifiers)


def test_an_exhausted_level_stops_and_says_so() -> None:
    parameters = level_parameters(DNA, "trivial", ["codons=1"])
    drawn = draw_problems(DNA, "trivial", parameters, 2, 100, 0)
    assert len(drawn.problems) == 64
    assert drawn.note is not None
    assert "dna_translation at trivial has too few different problems: 64 instead of 100" in drawn.note


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ParameterError, match="at least 1"):
        draw_problems(DNA, "easy", level_parameters(DNA, "easy"), 1, 0, 0)


def test_overrides_are_read() -> None:
    assert level_parameters(DNA, "easy", ["codons=7"])["codons"] == IntegerRange(7, 7)
    assert level_parameters(DNA, "easy", ["codons = 2..19"])["codons"] == IntegerRange(2, 19)
    assert level_parameters(DNA, "easy", ["codons=7", "codons=8"])["codons"] == IntegerRange(8, 8)
    assert level_parameters(WORDS, "easy", ["categories=sports, animals"])["categories"] == ("animals", "sports")
    entries = level_parameters(TASKS["kronecker_product"], "easy", ["entries=-3..-1"])["entries"]
    assert entries == IntegerRange(-3, -1)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("codon=5", "unknown parameter 'codon'; there are: codons"),
        ("codons=401", r"codons=401 is out of range; 1\.\.400"),
        ("codons=0..3", r"out of range; 1\.\.400"),
        ("codons=9..3", "out of range"),
        ("codons=many", r"neither a number nor low\.\.high"),
        ("codons=", "neither a number"),
        ("codons", "not of the form key=value"),
    ],
)
def test_overrides_that_are_refused(override: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        level_parameters(DNA, "easy", [override])


def test_choices_and_levels_that_are_refused() -> None:
    with pytest.raises(ParameterError, match="words_collection: categories: unknown choice 'animal'; there are: "):
        level_parameters(WORDS, "easy", ["categories=animal"])
    with pytest.raises(ParameterError, match="names none of"):
        level_parameters(WORDS, "easy", ["categories="])
    with pytest.raises(ParameterError, match="unknown difficulty 'trivia'"):
        level_parameters(WORDS, "trivia")
    with pytest.raises(ParameterError, match="no value for codons"):
        validate_parameters(DNA, {"codons_per_line": IntegerRange(10, 10)})
    with pytest.raises(ParameterError, match="not a range"):
        validate_parameters(DNA, {"codons_per_line": ("a",), "codons": IntegerRange(1, 2)})
