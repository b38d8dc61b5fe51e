"""Every failure as one line on stderr and an exit code; no traceback reaches a user (design 5)."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from salt_tui.visible_text import visible

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def say(line: str) -> None:
    """Write one line of talk; data goes to stdout, talk to stderr."""
    print(f"salt-tui: {visible(line)}", file=sys.stderr)


def report_failure(error: BaseException) -> int:
    """Say what went wrong and return the exit code."""
    line, code = describe_failure(error)
    say(line)
    return code


def describe_failure(error: BaseException) -> tuple[str, int]:
    """Return one line about what went wrong and the exit code; a bug's traceback goes to a file that it names."""
    from salt_tui.engine.engine import ContextError, EngineError, ModelError
    from salt_tui.runner.errors import RunFailedError, UsageError
    from salt_tui.store.errors import StoreError
    from tasks.registry import UnknownTaskError
    from tasks.task import ParameterError, ProblemTextError

    match error:
        case KeyboardInterrupt():
            return "interrupted", INTERRUPTED
        case (
            ModelError() | ContextError() | UsageError() | StoreError() | ParameterError() | ProblemTextError()
            | UnknownTaskError()
        ):  # fmt: skip
            return str(error), USAGE
        case EngineError() | RunFailedError():
            return str(error), FAILED
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return f"{place}{error.strerror or error}", FAILED
    return f"internal error, {type(error).__name__}: {error}; details in {_write_details(error)}", FAILED


def _write_details(error: BaseException) -> Path:
    from salt_tui.paths import log_directory

    path = log_directory() / "internal-error.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(traceback.format_exception(error)), encoding="utf-8", errors="backslashreplace")
    return path
