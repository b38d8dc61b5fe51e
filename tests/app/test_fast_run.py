"""A run of thousands of tokens a second is shown whole; how late its screen is, `tools/bench_app.py` measures."""

from __future__ import annotations

import json
from pathlib import Path

from textual.pilot import Pilot

from salt_tui.app.application import SaltApp
from salt_tui.app.live_screen import LiveScreen
from salt_tui.runner.request import RunRequest
from salt_tui.store.queries import open_queries
from tests.app.pilot import drive, shown, until

ATOMS = 300
ANSWERS = 16


def test_every_atom_of_a_fast_run_is_shown(tmp_path: Path) -> None:
    tokens: list[list[object]] = [["********\n", -0.1]]
    for atom in range(ATOMS):
        tokens += [[str(atom % 10), -0.1 * (atom % 20) - 0.01], ["\n" if atom % 25 == 24 else " ", -0.01]]
    tokens.append(["********", -0.1])
    script = tmp_path / "long.scripted.json"
    script.write_text(json.dumps({"replies": [{"tokens": tokens}], "seconds_per_step": 0.002}), encoding="utf-8")
    request = RunRequest(str(script), ("kronecker_product",), "trivial", ANSWERS, 1, max_tokens=700)
    database = tmp_path / "salt.db"

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        session = shown(app)
        assert session is not None
        await until(pilot, lambda: session.state.map.last() is not None, 40)
        while session.state.phase == "running":
            await pilot.pause(0.02)
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        drawn = sum(len(answer.units["atom"]) for answer in session.state.map.answers)
        with open_queries(database) as queries:
            stored = queries.unit_columns(1, "atom", ())
        assert drawn == len(stored.status) >= ATOMS * ANSWERS
        assert len(session.state.view.answers) <= 64 + 8, "finished answers are not kept twice"

    drive(scenario, database, request)
