"""Runs function calls for `tasks.code_execution`; started as a script in a process of its own.

Each line of standard input is a JSON object with ``source``, ``name`` and ``arguments`` (a Python tuple literal);
each is answered by one line: ``printed``, what ``print`` shows for the returned value, or ``error``.
Only builtins that cannot reach files, modules or other processes are there.
"""

from __future__ import annotations

import ast
import builtins
import json
import signal
import sys
from math import isfinite

_ALLOWED = (
    "abs all any bool chr dict divmod enumerate int len list "
    "map max min ord range reversed set sorted str sum tuple zip"
)
_BUILTINS = {name: getattr(builtins, name) for name in _ALLOWED.split()}


def _limit_memory(mebibytes: int) -> None:
    """Refuse allocations beyond the limit where the platform can; elsewhere the time limit alone holds."""
    if sys.platform == "win32":
        return
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))
    except (ValueError, OSError) as error:
        print(f"no memory limit here: {error}", file=sys.stderr)


def _is_answer(value: object) -> bool:
    """Say whether an answer may be of this kind; True, False and inf are none."""
    if isinstance(value, list):
        return all(_is_answer(item) for item in value)
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def answer(request: dict[str, str]) -> dict[str, str]:
    """Run one call.

    Returns:
        ``{"printed": text}``, or ``{"error": kind and message}`` when the call raised or returned another kind of
        value than int, float, str or lists of these.
    """
    namespace: dict[str, object] = {"__builtins__": _BUILTINS}
    try:
        exec(request["source"], namespace)
        function = namespace[request["name"]]
        arguments = ast.literal_eval(request["arguments"])
        value = function(*arguments)  # type: ignore[operator]
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    if not _is_answer(value):
        return {"error": f"returned a {type(value).__name__} where int, float, str or lists of them are allowed"}
    return {"printed": str(value)}


def main() -> None:
    """Answer requests until standard input ends, which it does when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which shares the terminal
    _limit_memory(int(sys.argv[1]))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
