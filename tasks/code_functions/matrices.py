"""Functions that return a list of lists or read one, and how their inputs are drawn."""

from __future__ import annotations

from math import isqrt
from random import Random

from tasks.code_functions.arrays import draw_numbers
from tasks.draws import draw_distinct, draw_integer


def rotate_matrix(matrix: list[list[int]]) -> list[list[int]]:
    """Turn a square matrix clockwise by a quarter."""
    size = len(matrix)
    turned = []
    for column in range(size):
        turned.append([matrix[row][column] for row in reversed(range(size))])
    return turned


def transpose(matrix: list[list[int]]) -> list[list[int]]:
    """Make rows of the columns."""
    return [[row[column] for row in matrix] for column in range(len(matrix[0]))]


def spiral_order(matrix: list[list[int]]) -> list[int]:
    """Read a matrix in a clockwise spiral from its first entry to its middle."""
    order = []
    top, bottom = 0, len(matrix) - 1
    left, right = 0, len(matrix[0]) - 1
    while top <= bottom and left <= right:
        for column in range(left, right + 1):
            order.append(matrix[top][column])
        for row in range(top + 1, bottom + 1):
            order.append(matrix[row][right])
        if top < bottom and left < right:
            for column in reversed(range(left, right)):
                order.append(matrix[bottom][column])
            for row in reversed(range(top + 1, bottom)):
                order.append(matrix[row][left])
        top, bottom = top + 1, bottom - 1
        left, right = left + 1, right - 1
    return order


def pascal_triangle(height: int) -> list[list[int]]:
    """Return the first rows of the triangle in which each number is the sum of the two above it."""
    rows: list[list[int]] = []
    for index in range(height):
        row = [1] * (index + 1)
        for place in range(1, index):
            row[place] = rows[-1][place - 1] + rows[-1][place]
        rows.append(row)
    return rows


def next_generation(cells: list[list[int]]) -> list[list[int]]:
    """Return the next state of a board: a cell lives with three living neighbours, or two if it was alive."""
    height, width = len(cells), len(cells[0])
    following = []
    for row in range(height):
        line = []
        for column in range(width):
            alive = -cells[row][column]
            for y in range(max(row - 1, 0), min(row + 2, height)):
                for x in range(max(column - 1, 0), min(column + 2, width)):
                    alive += cells[y][x]
            line.append(1 if alive == 3 or (alive == 2 and cells[row][column] == 1) else 0)
        following.append(line)
    return following


def subsets(numbers: list[int]) -> list[list[int]]:
    """Return all selections of the numbers, starting with the empty one."""
    selections: list[list[int]] = [[]]
    for number in numbers:
        selections += [[*selection, number] for selection in selections]
    return selections


def draw_square(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a square matrix with at most ``size`` entries, at least two by two."""
    side = max(isqrt(size), 2)
    return ([draw_numbers(random, side, magnitude) for _ in range(side)],)


def draw_rectangle(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a matrix with about ``size`` entries and neither side more than about four times the other."""
    height = draw_integer(random, max(isqrt(size) // 2, 1), 2 * isqrt(size))
    return ([draw_numbers(random, max(size // height, 2), magnitude) for _ in range(height)],)


def draw_height(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw the height of a triangle that has about ``size`` numbers; the magnitude has no part."""
    side = isqrt(2 * size)
    return (draw_integer(random, max(side - 1, 1), side + 1),)


def draw_board(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a board with about ``size`` cells, four in ten alive; the magnitude has no part."""
    height = max(isqrt(size), 2)
    width = max(size // height, 2)
    return ([[1 if draw_integer(random, 1, 10) <= 4 else 0 for _ in range(width)] for _ in range(height)],)


def draw_subsets(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw different numbers, as many as give at most about ``size`` selections."""
    count = min(max(size.bit_length() - 1, 1), 2 * magnitude + 1)
    return (draw_distinct(random, range(-magnitude, magnitude + 1), count),)
