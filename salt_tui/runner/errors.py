"""The runner's own errors; each message is one line for the user."""

from __future__ import annotations


class UsageError(Exception):
    """What was asked cannot be done (unknown name, empty range, another plan): exit code 2."""


class RunFailedError(Exception):
    """A run stopped by a failure; what it had is stored and it can be resumed: exit code 1."""
