"""The task ``code``: library, execution with limits, splitting, references."""

from __future__ import annotations

import ast
import json
import re
import sys
import threading
from collections.abc import Callable
from itertools import pairwise, permutations
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks.code import CodeTask, solve_release
from tasks.code_execution import CodeExecutor, ExecutionError
from tasks.code_functions import LIBRARY, RELEASE_FUNCTIONS
from tasks.code_splitting import LiteralSplitter, normalise_literal
from tasks.draws import derive_seed
from tasks.task import DIFFICULTIES, IntegerRange, Parameters, Problem, ProblemTextError

pytestmark = pytest.mark.process  # a function runs in a process of its own

TASK = CodeTask()
RELEASE = Path(__file__).resolve().parents[3] / "shared" / "data" / "salt_reproduction" / "code.jsonl"


def draw(level: str, index: int) -> tuple[str, str]:
    return TASK.generate(Random(derive_seed(level, index)), TASK.levels[level])


def only(name: str, level: str) -> Parameters:
    return {**TASK.levels[level], "functions": (name,)}


def split(region: str) -> list[str]:
    splitter = LiteralSplitter()
    return [region[span.start : span.end] for span in [*splitter.feed(region), *splitter.finish()]]


def distance(first: str, second: str) -> int:
    if not first or not second:
        return len(first) + len(second)
    table = {(-1, -1): 0}
    for i in range(len(first)):
        table[i, -1] = i + 1
    for j in range(len(second)):
        table[-1, j] = j + 1
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a != b))
    return table[len(first) - 1, len(second) - 1]


def following(numbers: list[int]) -> list[int]:
    if len(numbers) > 7:  # too many arrangements: sort the tail and raise its first number by hand
        for start in range(len(numbers) - 2, -1, -1):
            larger = sorted(n for n in numbers[start + 1 :] if n > numbers[start])
            if larger:
                rest = sorted(numbers[start:])
                rest.remove(larger[0])
                return [*numbers[:start], larger[0], *rest]
        return sorted(numbers)
    arrangements = sorted(set(permutations(numbers)))
    return list(arrangements[(arrangements.index(tuple(numbers)) + 1) % len(arrangements)])


def union(intervals: list[list[int]]) -> list[list[int]]:
    """Join touching intervals by marking every half unit of the line."""
    marked = {point for low, high in intervals for point in range(2 * low, 2 * high + 1)}
    starts = sorted(p for p in marked if p - 1 not in marked)
    ends = sorted(p for p in marked if p + 1 not in marked)
    return [[low // 2, high // 2] for low, high in zip(starts, ends, strict=True)]


def spiral(matrix: list[list[int]]) -> list[int]:
    return [*matrix[0], *spiral([list(row) for row in zip(*matrix[1:], strict=True)][::-1])] if matrix else []


def prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, n))


def alive(cells: list[list[int]], y: int, x: int) -> int:
    near = sum(cells[v][u] for v in range(len(cells)) for u in range(len(cells[0])) if max(abs(v - y), abs(u - x)) == 1)
    return int(near == 3 or (near == 2 and cells[y][x] == 1))


def binomials(row: int) -> list[int]:
    value, values = 1, []
    for k in range(row + 1):
        values.append(value)
        value = value * (row - k) // (k + 1)
    return values


def product(numbers: list[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def roman(number: int) -> str:
    digits = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]
    result = ""
    for power, letters in ((100, "CDM"), (10, "XLC"), (1, "IVX")):
        digit = number // power % 10
        result += digits[digit].translate(str.maketrans("IVX", letters))
    return "M" * (number // 1000) + result


def halvings(number: int, length: int) -> list[int]:
    rest = [] if number == 1 or length == 1 else halvings(3 * number + 1 if number % 2 else number // 2, length - 1)
    return [number, *rest]


SECOND: dict[str, Callable[..., object]] = {
    "two_sum": lambda numbers, target: min(
        ([i, j] for j in range(len(numbers)) for i in range(j) if numbers[i] + numbers[j] == target),
        key=lambda pair: (pair[1], pair[0]),
        default=[],
    ),
    "next_permutation": following,
    "rotate_array": lambda numbers, steps: [numbers[(i - steps) % len(numbers)] for i in range(len(numbers))],
    "running_totals": lambda numbers: [sum(numbers[: i + 1]) for i in range(len(numbers))],
    "move_zeroes": lambda numbers: sorted(numbers, key=lambda n: n == 0),
    "product_except_self": lambda numbers: [product(numbers[:i] + numbers[i + 1 :]) for i in range(len(numbers))],
    "days_until_warmer": lambda days: [
        next((k for k in range(1, len(days) - i) if days[i + k] > days[i]), 0) for i in range(len(days))
    ],
    "longest_increasing_subsequence": lambda numbers: max(
        map(len, increasing(numbers)),
    ),
    "maximum_subarray": lambda numbers: max(
        sum(numbers[i:j]) for i in range(len(numbers)) for j in range(i + 1, len(numbers) + 1)
    ),
    "window_maximums": lambda numbers, width: [
        sorted(numbers[end - width : end])[-1] for end in range(width, len(numbers) + 1)
    ],
    "common_elements": lambda first, second: [n for n in dict.fromkeys(first) if n in second],
    "add_one": lambda digits: [int(d) for d in str(int("".join(map(str, digits))) + 1)],
    "rotate_matrix": lambda matrix: [list(row) for row in zip(*matrix[::-1], strict=True)],
    "transpose": lambda matrix: [list(row) for row in zip(*matrix, strict=True)],
    "spiral_order": spiral,
    "pascal_triangle": lambda height: [binomials(row) for row in range(height)],
    "next_generation": lambda cells: [[alive(cells, y, x) for x in range(len(cells[0]))] for y in range(len(cells))],
    "subsets": lambda numbers: [
        [n for bit, n in enumerate(numbers) if code >> bit & 1] for code in range(1 << len(numbers))
    ],
    "insert_interval": lambda intervals, new: union([*intervals, new]),
    "merge_intervals": union,
    "reverse_words": lambda text: " ".join(reversed(text[::-1].split())),
    "edit_distance": distance,
    "shift_letters": lambda text, by: text.translate(
        {97 + i: 97 + (i + by) % 26 for i in range(26)},
    ),
    "sort_words": lambda text: " ".join(sorted(sorted(text.split()), key=len)),
    "run_lengths": lambda text: re.sub(r"(.)\1*", lambda m: f"{m[1]}{len(m[0])}", text),
    "roman_numeral": roman,
    "collatz_sequence": halvings,
    "primes_below": lambda limit: [n for n in range(limit) if prime(n)],
    "prime_factors": lambda number: [
        p for p in range(2, 14) if prime(p) for power in range(1, 40) if number % p**power == 0
    ],
}
"""Each function written a second time, another way."""


def increasing(numbers: list[int]) -> list[list[int]]:
    """Return a shortest-tail representative of every length (patience)."""
    tails: list[int] = []
    for number in numbers:
        place = sum(tail < number for tail in tails)
        tails[place : place + 1] = [number]
    return [tails]


def call(text: str) -> tuple[str, tuple[object, ...]]:
    match = re.fullmatch(r"print\((\w+)\((.*)\)\)", text.splitlines()[-1])
    assert match is not None
    return match[1], ast.literal_eval(f"({match[2]},)")


@pytest.mark.parametrize("level", DIFFICULTIES)
def test_two_solvers_agree(level: str) -> None:
    for index in range(500):
        text, reference = draw(level, index)
        name, arguments = call(text)
        assert reference == str(SECOND[name](*arguments)), text
        assert TASK.solve(text) == reference


@pytest.mark.parametrize("name", LIBRARY)
def test_every_function_keeps_to_its_constraints(name: str) -> None:
    for level in ("trivial", "paper"):
        for index in range(15):
            text, reference = TASK.generate(Random(index), only(name, level))
            _, arguments = call(text)
            assert reference == str(SECOND[name](*arguments))
            assert "*" * 4 not in text
            assert reference
            assert "\n" not in reference
            if not re.match(r"\[|-?\d", reference):
                assert re.fullmatch(r"[a-zA-Z0-9]+( [a-zA-Z0-9]+)*", reference)
                assert "DK" not in reference.split()
            assert len(reference) < 3000


def test_source_shown_is_the_source_that_runs() -> None:
    assert len(LIBRARY) >= 16
    for function in LIBRARY.values():
        namespace: dict[str, object] = {}
        exec(function.source, namespace)
        arguments = function.draw_arguments(Random(1), 6, 9)
        text = f"{function.source}\n\n\nprint({function.name}({', '.join(map(repr, arguments))}))"
        assert str(namespace[function.name](*arguments)) == TASK.solve(text)  # type: ignore[operator]


def test_release_is_reproduced() -> None:
    if not RELEASE.exists():
        pytest.skip("the published release's problems are not beside the checkout")
    rows = [json.loads(line) for line in RELEASE.read_text().splitlines()]
    assert {row["task"] for row in rows} == set(RELEASE_FUNCTIONS)
    for row in rows:
        assert solve_release(row["task"], row["input"]) == row["reference"]
        expected = row["reference"].split() if row["task"] == "ReverseWordsProblem" else None
        if expected is not None:  # commas at a word's edge are no part of the atom
            assert split(row["reference"]) == [word.strip(",") for word in expected]


@pytest.mark.parametrize(
    ("name", "arguments", "printed"),
    [
        ("TwoSumProblem", "([2, 7, 11, 15], 9)", "[0, 1]"),
        ("EditDistanceProblem", "('horse', 'ros')", "3"),
        ("RotateProblem", "([[1, 2], [-3, -4]],)", "[[-3, 1], [-4, 2]]"),
        ("InsertProblem", "([[1, 4], [115, 218]], [4, 4.7])", "[[1, 4.7], [115, 218]]"),
        ("ReverseWordsProblem", '("  It\'s my   weekend",)', "s'tI ym dnekeew"),
    ],
)
def test_release_form(name: str, arguments: str, printed: str) -> None:
    assert solve_release(name, arguments) == printed


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("Unknown", "([1],)"), ("RotateProblem", "[[1"), ("RotateProblem", "[1]"), ("TwoSumProblem", "([1, 2],)")],
)
def test_release_rows_that_are_none(name: str, arguments: str) -> None:
    with pytest.raises(ProblemTextError):
        solve_release(name, arguments)


@pytest.mark.parametrize(
    ("region", "atoms"),
    [
        ("[0, 1]", ["0", "1"]),
        ("[0,-11 , 2 ]", ["0", "-11", "2"]),
        ("[[1, 2], [-3, 4]]", ["[1, 2]", "[-3, 4]"]),
        ("[[1, 2],\n [3, 4]]", ["[1, 2]", "[3, 4]"]),
        ("[]", ["[]"]),
        ("[ ]", ["[ ]"]),
        ("[[]]", ["[]"]),
        ("[[], [1]]", ["[]", "[1]"]),
        ("[[[1], 2], 3]", ["[[1], 2]", "3"]),
        ("-42", ["-42"]),
        ("gnuoy ecnad", ["gnuoy", "ecnad"]),
        ("'gnuoy ecnad'", ["gnuoy", "ecnad"]),
        ("s'tI ym", ["s'tI", "ym"]),
        ("1, 2, 3", ["1", "2", "3"]),
        ("```\n[1, 2]\n```", ["1", "2"]),
        ("[1 2, 3]", ["1 2", "3"]),
        ("[1, 2", ["1", "2"]),
        ("[[1, 2], [3", ["[1, 2]", "[3"]),
        ("1] 2]", ["1", "2"]),
        ("the list [1, 2].", ["the", "list", "1", "2", "."]),
        ("[", []),
        ("", []),
    ],
)
def test_atoms(region: str, atoms: list[str]) -> None:
    assert split(region) == atoms


def test_spaces_that_python_ignores() -> None:
    assert normalise_literal("[1,  2]") == normalise_literal(" [ 1,2 ] ") == "[1,2]"
    assert normalise_literal("[ ]") == "[]"
    assert normalise_literal("'a  b'") == "a b"
    assert normalise_literal("1 2") != normalise_literal("12")
    assert normalise_literal("[1 2]") != normalise_literal("[12]")


REGIONS = st.text(st.sampled_from("[],- \n'\"`ab01.é"), max_size=60)


@given(region=REGIONS, cuts=st.lists(st.integers(0, 60), max_size=6))
@example(region="[[1, 2], []]", cuts=[1, 2, 9, 10])
def test_streaming_gives_the_same_as_the_whole(region: str, cuts: list[int]) -> None:
    whole, streamed = LiteralSplitter(), LiteralSplitter()
    expected = whole.feed(region)
    edges = [0, *sorted(min(cut, len(region)) for cut in cuts), len(region)]
    spans = [span for low, high in pairwise(edges) for span in streamed.feed(region[low:high])]
    assert spans == expected
    assert streamed.pending == whole.pending
    last = whole.pending
    assert streamed.finish() == whole.finish() == ([] if last is None else [last])
    assert streamed.pending is None


@given(region=REGIONS)
def test_units_are_trimmed_ordered_and_not_empty(region: str) -> None:
    splitter = LiteralSplitter()
    end = 0
    for span in [*splitter.feed(region), *splitter.finish()]:
        unit = region[span.start : span.end]
        assert span.start >= end
        assert unit
        assert unit == unit.strip()
        end = span.end


@given(
    value=st.one_of(
        st.integers(),
        st.lists(st.integers()),
        st.lists(st.lists(st.integers(), max_size=4), min_size=1, max_size=6),
    )
)
def test_literals_split_into_their_elements(value: object) -> None:
    elements = value if isinstance(value, list) and value else [value]
    assert split(str(value)) == [str(element) for element in elements]
    dense = str(value).replace(" ", "")
    assert [normalise_literal(unit) for unit in split(dense)] == [normalise_literal(str(e)) for e in elements]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("print(3)", "starts with"),
        ("def unknown(x):\n    return x\n\n\nprint(unknown(3))", "starts with"),
        (LIBRARY["transpose"].source.replace("matrix[0]", "matrix[1]") + "\n\n\nprint(transpose([[1]]))", "differs"),
        (LIBRARY["transpose"].source + "\n\n\nprint(rotate_matrix([[1]]))", "last line"),
        (LIBRARY["transpose"].source + "\n\n\nprint(transpose([[1], open('x')]))", "not Python literals"),
        (LIBRARY["transpose"].source + "\n\n\nprint(transpose([]))", "IndexError"),
        ("", "starts with"),
    ],
)
def test_foreign_texts_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ProblemTextError, match=reason):
        TASK.solve(text)


def test_limits_on_time_and_memory_and_recovery() -> None:
    executor = CodeExecutor(seconds=0.4, mebibytes=256)
    loop = "def spin(n: int) -> int:\n    while True:\n        n = 1 - n"
    with pytest.raises(ExecutionError, match=r"spin: stopped after 0\.4 s"):
        executor.printed(loop, "spin", "(1,)")
    if sys.platform == "linux":
        with pytest.raises(ExecutionError, match="MemoryError"):
            executor.printed("def grow(n: int) -> list[int]:\n    return [0] * n", "grow", "(9999999999,)")
    assert executor.printed("def one() -> int:\n    return 1", "one", "()") == "1"
    executor.close()
    assert executor.printed("def two() -> int:\n    return 2", "two", "()") == "2"
    executor.close()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("open('x')", "NameError"),
        ("{1, 2}", "returned a set"),
        ("1 == 1", "returned a bool"),
        ("1e999", "returned a float"),
        ("[(1, 2)]", "returned a list"),
        ("1 // 0", "ZeroDivisionError"),
    ],
)
def test_what_no_answer_may_be(body: str, reason: str) -> None:
    executor = CodeExecutor()
    with pytest.raises(ExecutionError, match=reason):
        executor.printed(f"def f() -> object:\n    return {body}", "f", "()")
    executor.close()


def test_a_time_out_is_an_error_of_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.code.EXECUTOR", CodeExecutor(seconds=0.0))
    with pytest.raises(ExecutionError, match="stopped after 0 s"):
        draw("trivial", 0)


def test_threads_share_the_worker() -> None:
    results: dict[int, list[tuple[str, str]]] = {}

    def work(number: int) -> None:
        results[number] = [draw("easy", index) for index in range(20)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] == results[1] == results[2] == results[3] == [draw("easy", index) for index in range(20)]


def test_wrong_atoms_are_wrong_and_of_the_same_kind() -> None:
    for level in DIFFICULTIES:
        for number in range(60):
            text, reference = draw(level, number)
            problem = Problem("code", text, reference, level, number)
            atoms = split(reference)
            for index, atom in enumerate(atoms):
                wrong = TASK.wrong_atom(Random(number + index), problem, index)
                assert normalise_literal(wrong) != normalise_literal(atom)
                assert split(f"[{wrong}, 0]") == [wrong, "0"]
                assert atom.startswith("[") == wrong.startswith("[")
                assert (re.fullmatch(r"-?\d+", atom) is None) == (re.fullmatch(r"-?\d+", wrong) is None)
    with pytest.raises(IndexError, match="atom 9 of 1"):
        TASK.wrong_atom(Random(0), Problem("code", "", "3", "easy", 0), 9)


def test_explanations_hold_the_call_and_no_asterisk() -> None:
    for index in range(50):
        text, reference = draw("easy", index)
        explained = TASK.explain(Problem("code", text, reference, "easy", index))
        assert "*" not in explained
        assert explained.endswith(reference)


def test_sizes_follow_the_parameters() -> None:
    for size in (3, 9, 40):
        parameters = {**only("rotate_array", "easy"), "size": IntegerRange(size, size)}
        text, reference = TASK.generate(Random(5), parameters)
        assert len(ast.literal_eval(reference)) == size
        assert len(call(text)[1]) == 2
