"""Functions on single numbers, and how their inputs are drawn."""

from __future__ import annotations

from random import Random

from tasks.draws import draw_integer, draw_item


def roman_numeral(number: int) -> str:
    """Write a number in Roman numerals."""
    signs = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")]
    signs += [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    written = ""
    for value, sign in signs:
        while number >= value:
            written += sign
            number -= value
    return written


def collatz_sequence(number: int, length: int) -> list[int]:
    """Halve even numbers and turn an odd n into 3n + 1, until one is reached or the length."""
    sequence = [number]
    while number != 1 and len(sequence) < length:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        sequence.append(number)
    return sequence


def primes_below(limit: int) -> list[int]:
    """Return all primes smaller than the limit, in order."""
    primes: list[int] = []
    for number in range(2, limit):
        if all(number % prime != 0 for prime in primes):
            primes.append(number)
    return primes


def prime_factors(number: int) -> list[int]:
    """Return the prime factors of a number from the smallest on, repeated ones too."""
    factors = []
    divisor = 2
    while divisor <= number:
        if number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        else:
            divisor += 1
    return factors


def draw_roman_numeral(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a number from 1 to ``40 * size``, at most 3999; the magnitude has no part."""
    return (draw_integer(random, 1, min(40 * size, 3999)),)


def draw_collatz_sequence(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a start from 2 to ``20 * size`` and ``size`` as the length, at least 2; the magnitude has no part."""
    return draw_integer(random, 2, 20 * size), max(size, 2)


def draw_limit(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a limit from 1 to ``5 * size``; below 3 there are no primes under it, and the magnitude has no part."""
    return (draw_integer(random, 1, 5 * size),)


def draw_prime_factors(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a product of about ``size / 2`` primes (1 to 12) below 14; the magnitude has no part."""
    product = 1
    for _ in range(min(max(size // 2, 1), 12)):
        product *= draw_item(random, (2, 2, 3, 3, 5, 7, 11, 13))
    return (product,)
