"""Signals that a shell asks a run to ignore (`nohup`, a script's `&`)."""

from __future__ import annotations

import os
import signal

import pytest

from salt_tui.commands.computing import StopSignals

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_an_ignored_signal_stays_ignored(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with StopSignals() as signals:
            signals.computing = True
            os.kill(os.getpid(), number)
            assert not signals.stop.is_set()
            os.kill(os.getpid(), signal.SIGTERM)
            assert signals.stop.is_set()
        assert signal.getsignal(number) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_handler_that_is_not_pythons_is_left_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    with StopSignals():
        pass
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGTERM) is before
