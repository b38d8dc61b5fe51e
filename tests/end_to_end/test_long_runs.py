"""A million atoms computed with the app open and without: memory, lateness of the screen, and what is stored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from tests.end_to_end import long_run
from tests.end_to_end.stored_state import rows

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(sys.platform != "linux", reason="/proc"),
]

BYTES_AN_ATOM = 400
"""Of the process that shows a run: 77 of the map, and copies of it while they are measured."""

ANSWERS = [8, pytest.param(2_000, marks=pytest.mark.soak)]


@pytest.mark.parametrize("answers", ANSWERS)
def test_a_long_run_in_the_app_is_whole_and_its_report_right(answers: int, tmp_path: Path, capsys) -> None:
    script, problems = long_run.write_inputs(tmp_path, answers)
    database = tmp_path / "x.db"
    words = [sys.executable, "-m", long_run.__name__, str(script), str(problems), str(database), str(answers)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    samples = measured.pop("samples")
    print(measured, samples[:: max(1, len(samples) // 20)])
    assert (measured["phase"], measured["atoms"]) == ("finished", answers * long_run.ATOMS)
    if answers > 100:
        first = next(sample for sample in samples if sample[0] > 0.1 * answers * long_run.ATOMS)
        last = samples[-1]
        assert (last[1] - first[1]) / (last[0] - first[0]) < BYTES_AN_ATOM
        assert last[2] < 1.05 * first[2], "the child holds no more at the end"
        # Of the process's own time, whatever else the machine does: a key waits as long.
        assert measured["busy"]["0.999"] < 0.5
    said = long_run.expected(answers)
    capsys.readouterr()
    assert run_command_line(["report", "1", "--db", str(database), "--draws", "0", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["tasks"].values()
    assert (found["atoms"], found["statuses"]) == (said["atoms"], {"complete": answers})
    assert found["precision"] == pytest.approx(
        said["precision"], abs=1e-12 if answers % long_run.REPLIES == 0 else 0.05
    )
    if answers % long_run.REPLIES == 0:
        assert found["ece"] == pytest.approx(said["ece"], abs=1e-9)
        assert found["auroc_macro"] == pytest.approx(said["auroc"], abs=1e-9)
    assert rows(database, "PRAGMA integrity_check") == [("ok",)]
    assert run_command_line(["db", "check", str(database)]) == 0


HEADLESS = """
import json, sys, threading, time
from salt_tui.cli import run_command_line
from tests.end_to_end.long_run import memory_of
samples, stop = [], threading.Event()
def watch():
    while not stop.wait(0.5):
        samples.append(memory_of("self"))
watching = threading.Thread(target=watch)
watching.start()
code = run_command_line(sys.argv[1:])
stop.set()
watching.join()
print(json.dumps([code, samples]))
"""


@pytest.mark.soak
def test_a_long_run_without_a_display_takes_no_more_memory_at_its_end(tmp_path: Path) -> None:
    script, problems = long_run.write_inputs(tmp_path, 2_000)
    words = ["run", "-m", str(script), "--tasks", f"file:{problems}", "--limit", "2000", "-n", str(long_run.ATOMS + 8)]
    words += ["--db", str(tmp_path / "x.db"), "--display", "plain", "--fail-under", "precision=0"]
    done = subprocess.run([sys.executable, "-c", HEADLESS, *words], capture_output=True, text=True, check=True)
    code, samples = json.loads(done.stdout.splitlines()[-1])
    print(code, samples[:: max(1, len(samples) // 20)])
    assert code == 0
    # The last tenth is the report.
    assert samples[int(0.8 * len(samples))] - samples[int(0.1 * len(samples))] < 30e6
