"""``salt-tui models pull``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from salt_tui.commands.failures import DONE, INTERRUPTED, say
from salt_tui.engine.model_download import HUB, DownloadProgress, Report, fetch, find_on_hub
from salt_tui.engine.models import load_registry
from salt_tui.visible_text import visible

_DOING = {"fetch": "fetching", "check": "checking"}
_STEP = 10
"""Percent between two lines where nobody watches a bar."""


def pull_model(name: str, *, json_output: bool) -> int:
    """Fetch a model from the hub, with progress on stderr, and say how to use it."""
    model = find_on_hub(name, load_registry())
    try:
        with _progress() as report:
            path = fetch(model, report)
    except KeyboardInterrupt:
        say(f"stopped; what came is kept: salt-tui models pull {name} goes on")
        return INTERRUPTED
    size = sum(path.with_name(file.rpartition("/")[2]).stat().st_size for file in model.files)
    if json_output:
        print(json.dumps({"name": name, "path": str(path), "file_bytes": size}, ensure_ascii=False))
        return DONE
    say(f"{visible(name)} is in {visible(str(path))}")
    say(f"use it: salt-tui run -m {visible(str(path) if name.startswith(HUB) else name)} --tasks all")
    return DONE


@contextmanager
def _progress() -> Iterator[Report]:
    """Show a bar on a terminal, else a line for every tenth."""
    if not sys.stderr.isatty():
        yield _Lines().take
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[tuple[str, str], object] = {}

        def report(progress: DownloadProgress) -> None:
            key = (progress.file, progress.stage)
            if key not in tasks:
                title = escape(f"{_DOING[progress.stage]} {visible(progress.file)}")
                tasks[key] = bars.add_task(title, total=progress.total)
            bars.update(tasks[key], completed=progress.done)  # type: ignore[arg-type]  # rich's NewType of int

        yield report


class _Lines:
    def __init__(self) -> None:
        self._said: tuple[str, str, int] | None = None

    def take(self, progress: DownloadProgress) -> None:
        """Say a line when another tenth is done."""
        percent = 100 * progress.done // progress.total // _STEP * _STEP if progress.total else 100
        now = (progress.file, progress.stage, percent)
        if now != self._said and progress.stage == "fetch":
            say(f"{_DOING[progress.stage]} {progress.file}: {percent} % of {progress.total / 1e6:,.0f} MB")
        self._said = now
