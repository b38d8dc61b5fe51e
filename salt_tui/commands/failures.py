"""Every failure as one line on stderr and an exit code; no traceback reaches a user."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from salt_tui.visible_text import visible

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

_LONGEST, _BEGINNING, _END = 500, 349, 150
"""Characters of a line of talk; of a longer one beginning and end are kept: what happened, and what to do."""

_LONGEST_WORD = 40
"""Characters of a word that is left out rather than cut."""


def say(line: str) -> None:
    """Write one line of talk; data goes to stdout, talk to stderr."""
    print(f"salt-tui: {shortened(line)}", file=sys.stderr)


def shortened(line: str) -> str:
    """Return a text of any kind as one visible line of at most 500 characters, without its middle where needed."""
    return _without_middle(visible(_without_middle(line)))


def report_failure(error: BaseException) -> int:
    """Say what went wrong and return the exit code."""
    line, code = describe_failure(error)
    say(line)
    return code


def describe_failure(error: BaseException) -> tuple[str, int]:
    """Return one line about what went wrong and the exit code; a bug's traceback goes to a file that it names."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    usage = _usage_line(error)
    if usage is not None:
        return usage, USAGE

    from salt_tui.engine.errors import ContextError, EngineError, ModelError
    from salt_tui.engine.model_download import DownloadError
    from salt_tui.paths import PathError
    from salt_tui.runner.errors import EnvironmentChangedError, RunFailedError
    from salt_tui.similar_names import message_of
    from salt_tui.store.errors import StoreError, StoreFailure
    from salt_tui.usage_error import UsageError
    from tasks.code_execution import ExecutionError
    from tasks.task import ParameterError, ProblemTextError

    match error:
        case EnvironmentChangedError():
            return f"{error}; --allow-environment-change goes on and marks the run not exact", USAGE
        case StoreFailure():
            return str(error), FAILED
        case (
            ModelError() | ContextError() | UsageError() | StoreError() | PathError() | ParameterError()
            | ProblemTextError()
        ):  # fmt: skip
            return message_of(error), USAGE
        case DownloadError() | EngineError() | RunFailedError() | ExecutionError():
            return str(error), FAILED
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return f"{place}{error.strerror or error}", FAILED
    return f"internal error, {type(error).__name__}: {shortened(str(error))}; {_write_details(error)}", FAILED


def _usage_line(error: BaseException) -> str | None:
    """Return the line of an error of the parser, None for any other error.

    Typer's classes differ between its versions, and it quotes pydantic without the value: where the value is known,
    the line names it.
    """
    message: Any = getattr(error, "format_message", None)
    if not callable(message):
        return None
    context: Any = getattr(error, "ctx", None)
    hint = f"({getattr(context, 'command_path', None) or 'salt-tui'} --help)"
    names = getattr(getattr(error, "param", None), "opts", None)
    problems: Any = getattr(error.__cause__, "errors", None)
    if not names or not callable(problems):
        return f"{message()} {hint}"
    problem = problems()[0]
    return f"{max(names, key=len)} {problem['input']}: {_needed(problem['type'], problem['msg'])} {hint}"


def _needed(kind: str, message: str) -> str:
    if kind.startswith("int_"):
        return "a whole number is needed"
    if kind.startswith("float_"):
        return "a number is needed"
    return message.removeprefix("Value error, ").replace("Input should", "it should")


def _without_middle(line: str) -> str:
    """Return a line of at most `_LONGEST` characters, cut between words where there are any near the cut."""
    if len(line) <= _LONGEST:
        return line
    beginning, end = line[:_BEGINNING], line[-_END:]
    last, first = beginning.rfind(" "), end.find(" ")
    if last > _BEGINNING - _LONGEST_WORD and not line[_BEGINNING].isspace():
        beginning = beginning[: last + 1]
    if 0 <= first < _LONGEST_WORD:
        end = end[first:]
    return f"{beginning}…{end}"


def _write_details(error: BaseException) -> str:
    from salt_tui.paths import PathError, log_directory

    try:
        path = log_directory() / "internal-error.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8", errors="backslashreplace")
    except (OSError, PathError) as failure:
        return f"details could not be written: {failure}"
    return f"details in {path}"
