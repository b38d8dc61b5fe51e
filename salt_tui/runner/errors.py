"""The runner's own errors; each message is one line for the user."""

from __future__ import annotations

from salt_tui.usage_error import UsageError


class EnvironmentChangedError(UsageError):
    """A run or study would go on in another environment than it was computed in, which the user can allow.

    Args:
        title: of it, e.g. ``run 17``.
        differences: one text for each thing that differs, not empty.
    """

    def __init__(self, title: str, differences: tuple[str, ...]) -> None:
        super().__init__(f"{title} was computed in another environment: {'; '.join(differences)}")
        self.differences = differences


class RunFailedError(Exception):
    """A run stopped by a failure; what it had is stored and it can be resumed: exit code 1."""
