"""What a report says of runs whose answer is known, and what it does not say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from salt_tui.measure.findings import function_finding
from salt_tui.reports.cells import interval_notes
from salt_tui.reports.text_tables import interval_text, number
from salt_tui.store.queries import open_queries
from salt_tui.store.records import SignalRecord, Work
from salt_tui.store.store import open_store
from scoring.conclusions import Conclusion, Difference
from scoring.intervals import Interval
from scoring.signals import FITTED_PER_FOLD
from scoring.value import Value
from tests.measure.noise import drawn_run, findings_of
from tests.stored_runs import EIGHT_TASKS, store_run


def report(database: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert run_command_line(["report", "--db", str(database), "--format", "json", "--draws", "100", *more]) == 0
    data = json.loads(capsys.readouterr().out)
    assert isinstance(data, dict)
    return data


def said(data: dict[str, Any], question: str) -> dict[str, Any]:
    (found,) = [finding for finding in data["findings"] if finding["question"] == question]
    assert isinstance(found, dict)
    return found


def test_numbers_have_no_negative_zero_and_infinity_is_one() -> None:
    assert number(-0.0001) == ".000"
    assert number(-0.12) == "−.120"
    assert number(float("inf")) == "∞"
    assert number(None) == "–"
    assert interval_text(Interval(0.0184, 1.0)) == "[.018 1.000]", "as many digits as the point, so that it lies inside"


def test_an_infinite_loss_is_infinite_in_the_mean_and_not_undefined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path / "x.db", tasks=EIGHT_TASKS[:2], answers=6, atoms=10)
    rows = report(tmp_path / "x.db", capsys, "--unit", "atom", "--function", "max_probability")["rows"]
    nll = {row["calibrator"]: row["nll"] for row in rows}
    assert nll["binned:100"] == "Infinity"
    assert isinstance(nll["platt"], float)
    binned = next(row for row in rows if row["calibrator"] == "binned:100")
    assert "nll" not in binned["reasons"]
    assert "nll" not in binned["left_out"]


def test_one_wrong_atom_gives_an_auroc_without_an_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_run(tmp_path / "x.db", tasks=("maze",), answers=4, statuses=["correct"] * 5)
    data = report(tmp_path / "x.db", capsys)
    assert data["rates"]["tasks"]["maze"]["precision"]["value"] == 1.0
    low, high = data["rates"]["tasks"]["maze"]["precision"]["interval"]
    assert (low, high) == (pytest.approx(0.025 ** (1 / 4)), 1.0), "four answers without an error are not certainty"
    assert said(data, "function")["best"] == []
    assert said(data, "function")["sentence"].startswith("Cannot be said: ")


def test_a_few_atoms_make_no_sentence_about_what_follows_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path / "x.db", tasks=("maze",), answers=4, statuses=["correct", "wrong", "correct"])
    data = report(tmp_path / "x.db", capsys)
    assert re.fullmatch(r"Cannot be said: .* are too few\.", said(data, "history")["sentence"])
    assert re.fullmatch(
        r"Cannot be said: \d+ atoms? of \d+ answers? in the first third of an answer"
        r" and \d+ atoms? of \d+ answers? in the last are too few\.",
        said(data, "position")["sentence"],
    )


def test_every_sentence_that_compares_states_n_and_answers() -> None:
    findings = findings_of(drawn_run(3, gain=1.0), 100)
    for question in ("right", "calibrated", "function", "map", "unit"):
        assert re.search(r"n [\d,]+ .*answers?", findings[question].sentence), question
    for question in ("position", "history"):
        assert findings[question].sentence.count("(n ") == 2
    assert all(finding.n > 0 and finding.answers > 0 for finding in findings.values())
    assert all(finding.tasks for finding in findings.values())


def test_the_sentence_counts_every_function_that_the_table_marks() -> None:
    """Functions that rank alike count each, as they are each marked; the range is that of all counted."""
    names = ("perplexity", "log_perplexity", "logprob_sum", "joint_probability", "mean_rank")
    values = dict(zip(names, (0.75, 0.75, 0.74, 0.74, 0.5), strict=True))

    def found(best: int, same: tuple[tuple[str, ...], ...]) -> str:
        gap = Difference(names[0], names[-1], 0.25, 0.01, 0.02)
        excluded = dict.fromkeys(names[best:], gap)
        means = {name: Value(value) for name, value in values.items()}
        return function_finding(
            Conclusion("auroc", means, names[:best], excluded, same, gap, {}, ("maze",), {}, 20, 100, 0, 100, 0, None)
        ).sentence

    equal = (names[:2], names[2:4])
    assert found(4, equal).startswith(
        "perplexity and three others of five cannot be told apart, AUROC .740–.750 (n 100"
    )
    assert found(2, equal).startswith("perplexity and log_perplexity rank alike and best, AUROC .750 (")
    assert found(2, ()).startswith("perplexity and log_perplexity cannot be told apart, AUROC .750 (")
    assert found(5, equal).startswith("The five functions cannot be told apart: AUROC .500–.750 (")


def test_scores_that_are_fitted_per_fold_are_in_the_tables_and_choose_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=EIGHT_TASKS[:2], answers=8, atoms=6)
    before = report(database, capsys)["findings"]
    with open_queries(database) as queries:
        atoms = queries.unit_columns(1, "atom")
    places = zip(atoms.generation.tolist(), atoms.index.tolist(), (atoms.status == 0).tolist(), strict=True)
    known = [SignalRecord(answer, "atom", index, "combined_forest", float(right)) for answer, index, right in places]
    with open_store(database) as store:
        store.claim(Work(1))
        store.add_signals(Work(1), known)
        store.release(Work(1), "finished")
    after = report(database, capsys)
    assert [found["sentence"] for found in after["findings"]] == [found["sentence"] for found in before]
    assert said(after, "function")["reasons"]["combined_forest"] == FITTED_PER_FOLD
    assert run_command_line(["report", "--db", str(database), "--draws", "100"]) == 0
    table = " ".join(capsys.readouterr().out.split())
    assert re.search(r"combined_forest – 1(\.000)? ", table)
    assert "combined_forest: fitted per fold, so never named best here" in table
    chosen = ["--function", "combined_forest,logprob_sum", "--unit", "atom", "--draws", "0"]
    assert run_command_line(["report", "--db", str(database), *chosen]) == 0
    table = " ".join(capsys.readouterr().out.split())
    assert table.count("combined_forest: fitted per fold") == 1, "once, and not at every map"


def test_atoms_of_the_same_tasks_have_one_auroc_and_one_interval() -> None:
    findings = findings_of(drawn_run(3, tasks=2, gain=1.0), 100)
    assert findings["calibrated"].tasks == findings["unit"].tasks
    (stated,) = re.findall(r"in (\.\d+ \[.*?\]) of pairs", findings["calibrated"].sentence)
    assert f"atoms {stated}" in findings["unit"].sentence


def test_reasons_without_an_interval_are_given_once() -> None:
    mean, task = (Interval(None, None, reason=reason) for reason in ("in 1 of 2 tasks: one answer", "one answer"))
    assert interval_notes([mean, task]) == ["no interval: in 1 of 2 tasks: one answer"]
    assert interval_notes([task]) == ["no interval: one answer"]


def test_one_answer_is_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_run(tmp_path / "x.db", tasks=("maze",), answers=1, statuses=["correct"])
    assert run_command_line(["report", "--db", str(tmp_path / "x.db"), "--draws", "0"]) == 0
    assert "1 task · 1 answer · 1 atom · " in capsys.readouterr().out


def test_a_long_list_of_columns_is_cut_between_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_run(tmp_path / "x.db", tasks=("maze",), answers=1)
    assert run_command_line(["report", "--db", str(tmp_path / "x.db"), "--draws", "0", "--by", "foo"]) == 2
    line = capsys.readouterr().err
    before, after = line.split("there are ")[1].split("…")
    assert re.fullmatch(r"(\w+, )+", before)
    assert re.fullmatch(r"( \w+,)* \w+(; did you mean \w+\?)?\n", after)
    assert len(line.strip()) <= 500 + len("salt-tui: ")


def test_without_resamples_nothing_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_run(tmp_path / "x.db", tasks=("maze",), answers=6, atoms=10)
    assert run_command_line(["report", "--db", str(tmp_path / "x.db"), "--format", "json", "--draws", "0"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [finding["question"] for finding in data["findings"]] == ["right", "position", "history"]
    assert data["unknown"] is None
