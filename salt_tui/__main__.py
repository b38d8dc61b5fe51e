"""``python -m salt_tui`` and the console script ``salt-tui``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

_OURS = ("tasks", "scoring")


def main() -> None:
    """Run the command line, unless somebody else's ``tasks`` or ``scoring`` would be imported instead of ours."""
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
            sys.exit(2)
    from salt_tui.cli import run_command_line

    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
