"""Functions on lists of intervals, and how their inputs are drawn."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from tasks.draws import draw_integer, draw_shuffled


def insert_interval(intervals: list[list[int]], new: list[int]) -> list[list[int]]:
    """Put a new interval into sorted separate ones and join those that it touches."""
    result = []
    start, end = new
    for interval in intervals:
        if interval[1] < start:
            result.append(interval)
    for interval in intervals:
        if interval[1] >= start and interval[0] <= end:
            start = min(start, interval[0])
            end = max(end, interval[1])
    result.append([start, end])
    for interval in intervals:
        if interval[0] > end:
            result.append(interval)
    return result


def merge_intervals(intervals: list[list[int]]) -> list[list[int]]:
    """Join the intervals that touch or overlap and sort what is left."""
    merged: list[list[int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def _draw_separate(random: Random, count: int, magnitude: int) -> list[list[int]]:
    """Draw sorted intervals that do not touch; their lengths and gaps stay below half the magnitude."""
    intervals = []
    end = draw_integer(random, 0, magnitude // 2)
    for _ in range(count):
        start = end + draw_integer(random, 1, max(magnitude // 3, 1))
        end = start + draw_integer(random, 0, max(magnitude // 3, 1))
        intervals.append([start, end])
    return intervals


def draw_insert_interval(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw about ``size / 2`` separate sorted intervals and a new one within their range."""
    intervals = _draw_separate(random, max(size // 2, 1), magnitude)
    start = draw_integer(random, 0, intervals[-1][1] + 1)
    return intervals, [start, start + draw_integer(random, 0, magnitude)]


def draw_merge_intervals(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw about ``size / 2`` intervals in any order, some of which overlap the one after them."""
    intervals = _draw_separate(random, max(size // 2, 1), magnitude)
    for earlier, later in pairwise(intervals):
        if draw_integer(random, 1, 3) == 1:
            earlier[1] = draw_integer(random, later[0], later[1] + 1)
    return (draw_shuffled(random, intervals),)
