"""Setup fetches a model from the hub: asked first, with progress, and usable afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from salt_tui.app.application import SaltApp
from tests.app.pilot import drive, footer, screen_text, until
from tests.app.test_keys import press
from tests.hub_server import FILE, Hub, served

NANO = Path(__file__).parents[2] / "salt_tui" / "nano" / "salt-nano.gguf"


@pytest.fixture
def entry(stored: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user's models.toml with one model that only the hub has."""
    home = tmp_path / "fetching"
    (home / "config").mkdir(parents=True)
    text = f'[far]\ntitle = "Far away"\nrepository = "org/name"\nfile = "{FILE}"\nkind = "instruct"\n'
    (home / "config" / "models.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("SALT_TUI_HOME", str(home))
    monkeypatch.setenv("HF_HUB_CACHE", str(home / "hub"))
    return home / "data" / "models" / FILE


async def choose(app: SaltApp, pilot: Pilot[int]) -> None:
    await until(pilot, lambda: "Filter" in footer(app))
    await pilot.press("slash", *"far away", "enter")
    await until(pilot, lambda: "p Fetch" in footer(app))
    await press(pilot, "setup.fetch")
    await until(pilot, lambda: "Fetch Far away from the model hub?" in screen_text(app))


def test_a_model_is_fetched_and_can_be_used(stored: Path, entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(Hub(NANO.read_bytes())) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)

        async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
            await choose(app, pilot)
            await pilot.press("y")
            await until(pilot, lambda: "model hub?" not in screen_text(app))
            await until(pilot, lambda: "p Fetch" not in footer(app))
            assert entry.read_bytes() == NANO.read_bytes()

        drive(scenario, stored, size=(140, 24))


def test_a_failure_stays_in_the_window_and_leaving_fetches_nothing(
    stored: Path, entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(Hub(status=404, error="RepoNotFound")) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)

        async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
            await choose(app, pilot)
            await pilot.press("y")
            await until(pilot, lambda: "no such repository" in screen_text(app))
            await pilot.press("escape")
            await until(pilot, lambda: "model hub?" not in screen_text(app))
            assert not entry.exists()

        drive(scenario, stored, size=(80, 24))
