"""Random draws that give the same values on every platform and library version.

Only ``random.Random.random()`` has a stream that Python promises to keep, so every draw of the project is built
from it here.  Golden hashes in the tests pin the results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


def derive_seed(*parts: object) -> int:
    """Return a 64-bit seed that depends on every part and on nothing else.

    Args:
        parts: values whose ``str`` is stable (strings, integers); the order counts.

    Returns:
        An integer in ``[0, 2**64)``: the first eight bytes of the SHA-256 of the parts joined by NUL.
    """
    digest = hashlib.sha256("\0".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def draw_integer(random: Random, low: int, high: int) -> int:
    """Draw uniformly from the integers ``low..high``, both included.

    Raises:
        ValueError: if ``high < low``.
    """
    if high < low:
        raise ValueError(f"empty range {low}..{high}")
    return low + int(random.random() * (high - low + 1))


def draw_item(random: Random, items: Sequence[Item]) -> Item:
    """Draw one of ``items`` uniformly.

    Raises:
        ValueError: if there are none.
    """
    return items[draw_integer(random, 0, len(items) - 1)]


def draw_shuffled(random: Random, items: Sequence[Item]) -> list[Item]:
    """Return the items in a uniformly drawn order (Fisher-Yates, from the end)."""
    shuffled = list(items)
    for last in range(len(shuffled) - 1, 0, -1):
        other = draw_integer(random, 0, last)
        shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
    return shuffled


def draw_distinct(random: Random, items: Sequence[Item], count: int) -> list[Item]:
    """Draw ``count`` items without replacement, in drawn order.

    Raises:
        ValueError: if there are fewer than ``count``.
    """
    if not 0 <= count <= len(items):
        raise ValueError(f"cannot draw {count} of {len(items)}")
    return draw_shuffled(random, items)[:count]
