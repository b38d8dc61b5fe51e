"""Functions on lists of integers, and how their inputs are drawn."""

from __future__ import annotations

from random import Random

from tasks.draws import draw_distinct, draw_integer, draw_item, draw_shuffled


def two_sum(numbers: list[int], target: int) -> list[int]:
    """Return the indices of the first two numbers that add up to the target."""
    seen: dict[int, int] = {}
    for index, number in enumerate(numbers):
        if target - number in seen:
            return [seen[target - number], index]
        seen.setdefault(number, index)
    return []


def next_permutation(numbers: list[int]) -> list[int]:
    """Return the next arrangement in sorted order, or the first one after the last."""
    result = list(numbers)
    pivot = len(result) - 2
    while pivot >= 0 and result[pivot] >= result[pivot + 1]:
        pivot -= 1
    if pivot >= 0:
        other = len(result) - 1
        while result[other] <= result[pivot]:
            other -= 1
        result[pivot], result[other] = result[other], result[pivot]
    result[pivot + 1 :] = reversed(result[pivot + 1 :])
    return result


def rotate_array(numbers: list[int], steps: int) -> list[int]:
    """Move every number to the right by some steps, around the end."""
    shift = steps % len(numbers)
    return numbers[len(numbers) - shift :] + numbers[: len(numbers) - shift]


def running_totals(numbers: list[int]) -> list[int]:
    """Return the sum of the numbers up to each place."""
    totals = []
    total = 0
    for number in numbers:
        total += number
        totals.append(total)
    return totals


def move_zeroes(numbers: list[int]) -> list[int]:
    """Move all zeroes to the end and keep the order of the rest."""
    rest = [number for number in numbers if number != 0]
    return rest + [0] * (len(numbers) - len(rest))


def product_except_self(numbers: list[int]) -> list[int]:
    """Return for each place the product of all other numbers."""
    products = [1] * len(numbers)
    before = 1
    for index in range(len(numbers)):
        products[index] = before
        before *= numbers[index]
    after = 1
    for index in reversed(range(len(numbers))):
        products[index] *= after
        after *= numbers[index]
    return products


def days_until_warmer(temperatures: list[int]) -> list[int]:
    """Return for each day how many days later it is warmer, 0 if never."""
    waits = [0] * len(temperatures)
    waiting: list[int] = []
    for day, temperature in enumerate(temperatures):
        while waiting and temperatures[waiting[-1]] < temperature:
            earlier = waiting.pop()
            waits[earlier] = day - earlier
        waiting.append(day)
    return waits


def longest_increasing_subsequence(numbers: list[int]) -> int:
    """Return the length of the longest strictly increasing subsequence."""
    lengths: list[int] = []
    for index, number in enumerate(numbers):
        best = 0
        for earlier in range(index):
            if numbers[earlier] < number:
                best = max(best, lengths[earlier])
        lengths.append(best + 1)
    return max(lengths)


def maximum_subarray(numbers: list[int]) -> int:
    """Return the largest sum of neighbouring numbers, at least one of them."""
    best = current = numbers[0]
    for number in numbers[1:]:
        current = max(number, current + number)
        best = max(best, current)
    return best


def window_maximums(numbers: list[int], width: int) -> list[int]:
    """Return the largest number of each window of neighbours."""
    return [max(numbers[start : start + width]) for start in range(len(numbers) - width + 1)]


def common_elements(first: list[int], second: list[int]) -> list[int]:
    """Return the numbers of the first list that the second holds too, each once, in order."""
    common: list[int] = []
    for number in first:
        if number in second and number not in common:
            common.append(number)
    return common


def add_one(digits: list[int]) -> list[int]:
    """Add one to a number that is given by its decimal digits."""
    result = list(digits)
    place = len(result) - 1
    while place >= 0 and result[place] == 9:
        result[place] = 0
        place -= 1
    if place < 0:
        return [1, *result]
    result[place] += 1
    return result


def draw_numbers(random: Random, size: int, magnitude: int) -> list[int]:
    """Draw ``size`` integers between ``-magnitude`` and ``magnitude``."""
    return [draw_integer(random, -magnitude, magnitude) for _ in range(size)]


def draw_two_sum(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw at least two numbers and a target that two of them reach."""
    numbers = draw_numbers(random, max(size, 2), magnitude)
    first, second = draw_distinct(random, range(len(numbers)), 2)
    return numbers, numbers[first] + numbers[second]


def draw_next_permutation(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a list whose end falls for some way, so that more than two numbers move."""
    numbers = draw_numbers(random, max(size, 2), magnitude)
    falling = draw_integer(random, 1, len(numbers))
    return ([*numbers[:-falling], *sorted(numbers[-falling:], reverse=True)],)


def draw_rotate_array(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a list and at most twice its length in steps."""
    return draw_numbers(random, size, magnitude), draw_integer(random, 1, 2 * size)


def draw_list(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw one list of numbers of either sign."""
    return (draw_numbers(random, size, magnitude),)


def draw_move_zeroes(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a list of which about a third is zero."""
    return ([0 if draw_integer(random, 1, 3) == 1 else n for n in draw_numbers(random, size, magnitude)],)


def draw_product_except_self(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw two to ten numbers of one digit, so that products stay below ten digits."""
    return (draw_numbers(random, min(max(size, 2), 10), min(magnitude, 9)),)


def draw_temperatures(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw temperatures from 0 up to the magnitude."""
    return ([draw_integer(random, 0, magnitude) for _ in range(size)],)


def draw_window_maximums(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a list and a window of two to five numbers, or the whole list where it is shorter."""
    return draw_numbers(random, size, magnitude), min(size, draw_integer(random, 2, 5))


def draw_common_elements(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw two lists that share some numbers; one time in eight they may share none."""
    first = draw_numbers(random, size, magnitude)
    second = draw_numbers(random, max(1, size // 2), magnitude)
    if draw_integer(random, 1, 8) > 1:
        second.extend(draw_item(random, first) for _ in range(max(1, size // 2)))
    return first, draw_shuffled(random, second)


def draw_digits(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw the digits of a number, the first not zero, with some nines at the end; the magnitude has no part."""
    nines = draw_integer(random, 0, size)
    digits = [draw_integer(random, 0, 9) for _ in range(size - nines)] + [9] * nines
    return ([max(1, digits[0]), *digits[1:]],)
