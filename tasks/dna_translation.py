"""DNA Translation: write the complementary codon of every codon (SALT section 4.2, appendix K)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import ClassVar

from tasks.draws import draw_integer, draw_item
from tasks.parameters import integer_range
from tasks.task import (
    Dependence,
    IntegerRange,
    Parameter,
    Parameters,
    Problem,
    ProblemTextError,
    RangeParameter,
    Task,
    quoted,
)

_CODONS = tuple(first + second + third for first in "ACGT" for second in "ACGT" for third in "ACGT")
_COMPLEMENT = str.maketrans("ACGT", "TGCA")
_CODON = re.compile("[ACGT]{3}")
_TEN = IntegerRange(10, 10)
_ONE_LINE = IntegerRange(400, 400)


class DnaTranslation(Task):
    """Codons to complementary codons, in the same order and on the same lines; nothing is reversed."""

    name: ClassVar[str] = "dna_translation"
    title: ClassVar[str] = "DNA Translation"
    description: ClassVar[str] = "write the complementary codon of every codon of a DNA sequence"
    prompt_version: ClassVar[int] = 1
    parameters: ClassVar[tuple[Parameter, ...]] = (
        RangeParameter("codons", 1, 400, "codons of the sequence"),
        RangeParameter("codons_per_line", 1, 400, "codons on a line of the problem and of the answer"),
    )
    levels: ClassVar[Mapping[str, Parameters]] = {
        "trivial": {"codons": IntegerRange(1, 3), "codons_per_line": _TEN},
        "easy": {"codons": IntegerRange(5, 12), "codons_per_line": _TEN},
        "medium": {"codons": IntegerRange(15, 30), "codons_per_line": _TEN},
        "hard": {"codons": IntegerRange(40, 80), "codons_per_line": _TEN},
        "paper": {"codons": IntegerRange(1, 199), "codons_per_line": _ONE_LINE},
    }
    release_names: ClassVar[tuple[str, ...]] = ("DNAProblem", "DNA Translation")
    dependence: ClassVar[Dependence] = Dependence(
        inputs="The codon at the same place in the problem.",
        earlier_atoms="",
        intervention_caveat="",
    )

    def generate(self, random: Random, parameters: Parameters) -> tuple[str, str]:
        """Draw every codon uniformly from the 64."""
        count = integer_range(parameters, "codons")
        per_line = integer_range(parameters, "codons_per_line")
        codons = [draw_item(random, _CODONS) for _ in range(draw_integer(random, count.low, count.high))]
        width = draw_integer(random, per_line.low, per_line.high)
        text = "\n".join(" ".join(codons[start : start + width]) for start in range(0, len(codons), width))
        return text, self.solve(text)

    def solve(self, text: str) -> str:
        """Return the complement of every codon, line by line."""
        lines = [line.split() for line in text.splitlines() if line.strip()]
        for number, line in enumerate(lines, 1):
            for codon in line:
                if not _CODON.fullmatch(codon):
                    raise ProblemTextError(f"line {number}: {quoted(codon)} is not a codon of A, C, G and T")
        if not lines:
            raise ProblemTextError("the text holds no codon")
        return "\n".join(" ".join(line) for line in lines).translate(_COMPLEMENT)

    def instructions(self) -> str:
        """State the four replacements and what stays."""
        return (
            "You are given codons of DNA. Replace every letter by its complement: A becomes T, T becomes A, "
            "C becomes G, G becomes C. Keep the order of the letters, the codons and the lines; reverse nothing."
        )

    def explain(self, problem: Problem) -> str:
        """Go through the letters of every codon."""
        steps = []
        for codon, complement in zip(problem.text.split(), problem.reference.split(), strict=True):
            letters = ", ".join(f"{one} becomes {other}" for one, other in zip(codon, complement, strict=True))
            steps.append(f"{codon}: {letters}, so {complement}.")
        return "\n".join(steps)

    def wrong_atom(self, random: Random, problem: Problem, index: int) -> str:
        """Draw one of the 63 other codons."""
        right = problem.reference.split()[index]
        return draw_item(random, [codon for codon in _CODONS if codon != right])
