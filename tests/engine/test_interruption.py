"""Cancels stop the work they concern and nothing else."""

import ctypes

import pytest

from salt_tui.engine.interruption import InterruptedWork, Interruption

pytestmark = pytest.mark.quick


def flag(interruption: Interruption) -> bytes:
    return ctypes.string_at(interruption.address)


def test_only_the_work_concerned_is_stopped() -> None:
    interruption = Interruption()
    with interruption.work(1):
        interruption.request(2)
        assert flag(interruption) == b""
        interruption.request(1)
        assert flag(interruption) != b""
    assert flag(interruption) == b""


def test_a_cancel_of_all_stops_every_work() -> None:
    for key in (None, 1):
        interruption = Interruption()
        with interruption.work(key):
            interruption.request(None)
            assert flag(interruption) != b""


def test_a_cancel_of_one_does_not_stop_the_work_for_all() -> None:
    interruption = Interruption()
    with interruption.work(None):
        interruption.request(1)
        assert flag(interruption) == b""


def test_work_does_not_begin_until_the_cancel_is_carried_out() -> None:
    interruption = Interruption()
    interruption.request(1)
    interruption.request(1)
    for _ in range(2):
        with pytest.raises(InterruptedWork), interruption.work(1):
            raise AssertionError("begun")
        interruption.acknowledge(1)
    with interruption.work(1):
        assert flag(interruption) == b""
