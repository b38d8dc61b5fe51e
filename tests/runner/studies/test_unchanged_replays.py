"""An answer that is replayed without a change goes on as it did, bit for bit, from wherever it is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from salt_tui.runner.jobs import Job
from salt_tui.runner.replays.branches import BranchDesign
from salt_tui.runner.replays.sources import ReplaySources
from salt_tui.runner.studies.interventions import INTERVENTIONS
from salt_tui.runner.studies.kind import StudySetting
from salt_tui.runner.studies.registry import STUDY_KINDS
from salt_tui.store.queries import Queries, open_queries

pytestmark = pytest.mark.model

GREEDY: tuple[str, ...] = ("--temp", "0")
WARM = ("--temp", "0.9", "--sampler-seed", "3")
CUT = ("--temp", "0.7", "--top-k", "5", "--min-p", "0.05", "--top-p", "0.95", "--sampler-seed", "4")


def unchanged(setting: StudySetting) -> Sequence[Job]:
    """Replay every answer from its first, a middle and its last atom to its end."""
    sources = ReplaySources(setting.queries, setting.engine, setting.info, setting.reading, setting.run)
    jobs: list[Job] = []
    for answer in setting.answers:
        source = sources.read(answer)
        count = len(source.atoms)
        places = {0, count // 2, count - 1} if count else set()
        clean = [place for place in sorted(places) if source.editor.starts_clean(place)]
        for number, place in enumerate(clean):
            design = BranchDesign(answer.generation, place, "unchanged", "baseline", (), 0.0, 0.0, 0.0, None)
            jobs.append(sources.job(source, source.editor.before(place, {}), design, number, whole=True))
    return jobs


def refuse_differences(queries: Queries) -> int:
    """Compare every branch with its answer, to the last bit; return how many there were."""
    branches = queries.generations(queries.find_work("1.1"))
    answers = {answer.generation: answer for answer in queries.answers(1)}
    for branch in branches:
        answer = answers[branch.parent]
        ends = [(one.reply, one.stop_reason, one.extraction, one.answer_status) for one in (answer, branch)]
        assert ends[0] == ends[1]
        said, again = (queries.tokens(one) for one in (answer.generation or 0, branch.id))
        assert [replace(token.record, forced=False) for token in again] == [token.record for token in said]
        assert any(not token.record.forced for token in again)
        assert queries.units(branch.id) == queries.units(answer.generation or 0)
    return len(branches)


def replayed(
    monkeypatch: pytest.MonkeyPatch, database: Path, model: str, tasks: str, difficulty: str, limit: int, *more: str
) -> int:
    monkeypatch.setitem(STUDY_KINDS, "interventions", replace(INTERVENTIONS, jobs=unchanged, announce=None))
    common = ["--db", str(database), "--display", "none"]
    run = ["run", "-m", model, "--tasks", tasks, "--difficulty", difficulty, "--limit", str(limit), *more, *common]
    assert run_command_line(run) == 0
    assert run_command_line(["replay", "latest", *common]) == 0
    with open_queries(database) as queries:
        return refuse_differences(queries)


def test_every_answer_of_every_task_goes_on_as_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert replayed(monkeypatch, tmp_path / "x.db", "nano", "all", "trivial", 1, "-np", "4", *CUT) >= 12


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("sampling", [GREEDY, WARM, CUT], ids=["greedy", "warm", "cut"])
@pytest.mark.parametrize("width", ["1", "8"])
def test_every_answer_of_larger_runs_goes_on_as_it_did(
    width: str, sampling: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = replayed(monkeypatch, tmp_path / "x.db", "nano", "all", "medium", 12, "-np", width, *sampling)
    assert found > 3 * 12


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("sampling", [GREEDY, WARM, CUT], ids=["greedy", "warm", "cut"])
def test_every_answer_of_a_larger_model_goes_on_as_it_did(
    sampling: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = "dna_translation,kronecker_product"
    assert replayed(monkeypatch, tmp_path / "x.db", "smollm2", tasks, "trivial", 2, *sampling) >= 6
