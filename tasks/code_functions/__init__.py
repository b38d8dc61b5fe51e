"""The functions whose output the task ``code`` asks for.

Each is written once: the source that a prompt shows is read from the module that defines it, and the same text is
what runs.  Functions use builtins only and are given inputs within their constraints by the drawing function beside
them, which takes the source of chance, a size (elements of the input, at least 1) and a magnitude (largest absolute
value of an input number, at least 1).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TypeAlias

from tasks.code_functions import arrays, intervals, matrices, numbers, words

DrawArguments: TypeAlias = Callable[[Random, int, int], tuple[object, ...]]


@dataclass(frozen=True)
class CodeFunction:
    """One function of the library.

    Attributes:
        function: the function itself, never called here.
        draw_arguments: draws the positional arguments of one call from a source of chance, a size and a magnitude.
        release_name: its name in the published release's files; empty where the release lacks it.
    """

    function: Callable[..., object]
    draw_arguments: DrawArguments
    release_name: str = ""

    @property
    def name(self) -> str:
        """The name in the source."""
        return self.function.__name__

    @cached_property
    def source(self) -> str:
        """The text that prompts show and that runs, without a final line feed."""
        return inspect.getsource(self.function).rstrip()

    @property
    def summary(self) -> str:
        """The sentence that its docstring says about it."""
        return inspect.getdoc(self.function) or ""

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""
        return tuple(inspect.signature(self.function).parameters)


_FUNCTIONS = (
    CodeFunction(arrays.two_sum, arrays.draw_two_sum, "TwoSumProblem"),
    CodeFunction(arrays.next_permutation, arrays.draw_next_permutation, "NextPermutationProblem"),
    CodeFunction(arrays.rotate_array, arrays.draw_rotate_array, "RotateArrayProblem"),
    CodeFunction(arrays.running_totals, arrays.draw_list),
    CodeFunction(arrays.move_zeroes, arrays.draw_move_zeroes),
    CodeFunction(arrays.product_except_self, arrays.draw_product_except_self),
    CodeFunction(arrays.days_until_warmer, arrays.draw_temperatures),
    CodeFunction(arrays.longest_increasing_subsequence, arrays.draw_list),
    CodeFunction(arrays.maximum_subarray, arrays.draw_list),
    CodeFunction(arrays.window_maximums, arrays.draw_window_maximums),
    CodeFunction(arrays.common_elements, arrays.draw_common_elements),
    CodeFunction(arrays.add_one, arrays.draw_digits),
    CodeFunction(matrices.rotate_matrix, matrices.draw_square, "RotateProblem"),
    CodeFunction(matrices.transpose, matrices.draw_rectangle),
    CodeFunction(matrices.spiral_order, matrices.draw_rectangle),
    CodeFunction(matrices.pascal_triangle, matrices.draw_height),
    CodeFunction(matrices.next_generation, matrices.draw_board),
    CodeFunction(matrices.subsets, matrices.draw_subsets),
    CodeFunction(intervals.insert_interval, intervals.draw_insert_interval, "InsertProblem"),
    CodeFunction(intervals.merge_intervals, intervals.draw_merge_intervals),
    CodeFunction(words.reverse_words, words.draw_sentence, "ReverseWordsProblem"),
    CodeFunction(words.edit_distance, words.draw_edit_distance, "EditDistanceProblem"),
    CodeFunction(words.shift_letters, words.draw_shift_letters),
    CodeFunction(words.sort_words, words.draw_sentence),
    CodeFunction(words.run_lengths, words.draw_runs),
    CodeFunction(numbers.roman_numeral, numbers.draw_roman_numeral),
    CodeFunction(numbers.collatz_sequence, numbers.draw_collatz_sequence),
    CodeFunction(numbers.primes_below, numbers.draw_limit),
    CodeFunction(numbers.prime_factors, numbers.draw_prime_factors),
)

LIBRARY: dict[str, CodeFunction] = {function.name: function for function in _FUNCTIONS}
"""Every function by the name it has in its source."""

RELEASE_FUNCTIONS: dict[str, CodeFunction] = {f.release_name: f for f in _FUNCTIONS if f.release_name}
"""The functions of the published release by the names in its files."""
