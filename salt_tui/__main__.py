"""``python -m salt_tui`` and the console script ``salt-tui``.

Nothing but `sys` is imported outside `main`, so that Ctrl+C in the first tenths of a second ends in one line too.
"""

from __future__ import annotations

import sys

_OURS = ("tasks", "scoring")


def main() -> None:
    """Run the command line and exit with its code; 130 for Ctrl+C at any time."""
    try:
        code = _run()
        import signal

        # What Python does while it ends is not worth a traceback: from here on Ctrl+C just ends it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        print("salt-tui: interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)


def _run() -> int:
    """Run the command line, unless somebody else's ``tasks`` or ``scoring`` would be imported instead of ours."""
    from importlib.util import find_spec
    from pathlib import Path

    from salt_tui.commands.standard_streams import prepare_streams

    prepare_streams()
    home = Path(__file__).resolve().parent.parent
    for name in _OURS:
        found = find_spec(name)
        place = Path(found.origin).resolve() if found is not None and found.origin else None
        if place != home / name / "__init__.py":
            print(
                f"salt-tui: {name!r} here is {str(place or 'missing')!a}, not salt-tui's: start it from another"
                " folder or with python -P",
                file=sys.stderr,
            )
            return 2
    arguments = sys.argv[1:]
    if not arguments or (len(arguments) == 2 and arguments[0] == "--db"):
        # The parser and its types are not needed to open the app, and would double the time to its first paint.
        from salt_tui.app.launch import open_at_once

        return open_at_once(Path(arguments[1]) if arguments else None)
    from salt_tui.cli import run_command_line

    return run_command_line(arguments)


if __name__ == "__main__":
    main()
