"""The error of asking for what cannot be done; at the bottom of the layers, because every one of them may raise it."""

from __future__ import annotations


class UsageError(Exception):
    """What was asked cannot be done (unknown name, empty range, unreadable file): exit code 2, the message one line."""
