"""How an engine fails; every message is one line for the user."""

from __future__ import annotations


class EngineError(Exception):
    """The engine failed; the message is one line for the user."""


class ModelError(EngineError):
    """The model cannot be used (missing, broken, unsupported): exit code 2; the message is one line."""


class ContextError(EngineError):
    """The context cannot be made with these options (width, memory, types): exit code 2; one line."""
