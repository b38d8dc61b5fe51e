"""`probe` as a user calls it, on activations with a planted direction: its numbers, its file, what it refuses."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import pickle
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salt_tui.cli import run_command_line
from salt_tui.measure.probe_files import read_probe
from salt_tui.measure.probes import find_study, read_subject, report_probes
from salt_tui.store.queries import open_queries
from salt_tui.store.records import ActivationRecord, StudyRecord
from salt_tui.store.store import open_store
from scoring.probe_estimators import ForestSettings
from scoring.probes import PROBE_METRICS, sample_complexity
from tests.stored_runs import EIGHT_TASKS, store_run

FEW = ForestSettings(trees=8)
LAYERS, WIDTH = 3, 6


def add_activations(path: Path, run: int, seed: int) -> None:
    """Store vectors of answers and atoms whose second layer shows which are right."""
    draw = np.random.default_rng(seed)
    with open_store(path) as store:
        work = store.create_study(run, StudyRecord("activations", "{}", "hash", "{}", "hash", True, ()))
        store.claim(work)
        with open_queries(path) as queries:
            for kind in ("generation", "atom"):
                columns = queries.unit_columns(run, kind)
                for generation, index, status in zip(columns.generation, columns.index, columns.status, strict=True):
                    for layer in range(1, LAYERS + 1):
                        vector = draw.normal(size=WIDTH)
                        vector[0] += 4.0 * (status == 0) * (layer == 2)
                        for positions in ("producing", "own"):
                            store.add_activations(
                                work,
                                [
                                    ActivationRecord(
                                        int(generation), kind, int(index), layer, positions, vector.astype(np.float32)
                                    )
                                ],
                            )
        store.release(work, "finished")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one model with three tasks and activations, and one run without."""
    path = tmp_path_factory.mktemp("probe") / "x.db"
    for seed in (1, 2):
        # Three atoms an answer, so that some answers are right as a whole.
        run = store_run(path, tasks=EIGHT_TASKS[:3], answers=10 * seed, atoms=3, seed=seed)
        add_activations(path, run, seed)
    store_run(path, tasks=EIGHT_TASKS[:1], answers=2, atoms=3, seed=3)
    return path


@pytest.fixture(scope="module", autouse=True)
def _few_trees() -> Iterator[None]:
    quick = functools.partial(report_probes, settings=FEW, search=FEW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("salt_tui.commands.probe.report_probes", quick)
        few = functools.partial(sample_complexity, draws=3)
        patch.setattr("salt_tui.measure.probes.sample_complexity", few)
        yield


@pytest.fixture(scope="module")
def kept(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A probe of the first run's atoms, and beside it what was said on stderr."""
    file = tmp_path_factory.mktemp("kept") / "probe.npz"
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        assert run_command_line(["probe", "1", "--unit", "atom", "--save", str(file), "--db", str(database)]) == 0
    file.with_suffix(".said").write_text(said.getvalue())
    return file


def called(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run_command_line(["probe", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run_command_line(["probe", *map(str, arguments)]) == 2
    return capsys.readouterr().err


def test_every_estimator_is_reported_and_the_planted_layer_is_found(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data: dict[str, Any] = json.loads(called(capsys, 1, "--unit", "atom", "--json", "--db", database))
    names = [row["name"] for row in data["estimators"]]
    plain = ["none", "hre", "nwkr", "platt", "isotonic", "beta", "act early", "act late", "cosine"]
    assert [name for name in names if "+" not in name] == [*plain, "pca10", "pca20"]
    assert {"act late + platt", "pca20 + isotonic"} <= set(names)
    assert all(set(PROBE_METRICS) <= set(row) for row in data["estimators"])
    assert data["best_layer"] == 2
    assert [row["layer"] for row in data["layers"]] == [1, 2, 3]
    assert max(data["layers"], key=lambda row: row["euro_auc"])["layer"] == 2
    assert [row["n"] for row in data["sample_complexity"]] == [25, 50, 100, 200, 400, 700, 1000]
    assert data["sample_complexity"][-1]["reasons"]["euro_auc"] == "fewer than 1000 units to train on"
    assert [row["dimension"] for row in data["intrinsic_dimension"]] == [WIDTH] * LAYERS
    assert [row["task"] for row in data["unseen_tasks"]] == list(EIGHT_TASKS[:3])
    assert all(row["auroc"] > 0.8 for row in data["unseen_tasks"])
    assert "act late" in data["best"]
    assert "none" not in data["best"]


def test_text_says_what_the_numbers_rest_on(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["probe", "2.1", "--unit", "generation", "--own", "--db", str(database)]) == 0
    printed = capsys.readouterr()
    text = " ".join(printed.out.split())
    assert "salt-tui: what may be concluded\n" in printed.err
    assert "own positions of study 2.1; every number is of answers that did not train it" in text
    assert "Layer 2 has the largest EURO area alone, " in text
    assert "Trained on n answers, layer 2" in text
    assert "With a calibration map after it" in text


def test_a_kept_probe_says_about_a_later_run_what_its_trees_say(
    database: Path, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = read_probe(kept)
    assert (probe.layer, probe.unit, probe.positions, probe.width) == (2, "atom", "producing", WIDTH)
    assert "--function probe" in called(capsys, 2, "--apply", kept, "--db", database)
    with open_queries(database) as queries:
        columns = queries.unit_columns(2, "atom", ["probe"])
        known = ~np.isnan(columns.confidences["probe"])
        # The second run begins with the problems of the first; nothing is said about these.
        assert 0 < known.sum() < known.size
        reasons = {signal.reason for signal in queries.signals(2, "probe", "atom")}
        assert reasons == {None, "the probe was trained on this problem"}
    right = columns.confidences["probe"][known & (columns.status == 0)].mean()
    wrong = columns.confidences["probe"][known & (columns.status != 0)].mean()
    assert right > wrong + 0.3
    assert "says nothing about them" in refused(capsys, 1, "--apply", kept, "--db", database)
    with open_store(database) as store:
        store.remove_signals(2, "probe")


def test_foreign_files_are_refused_and_nothing_in_them_runs(
    database: Path, kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, good, mark = tmp_path / "probe.npz", kept, tmp_path / "ran"

    class Harmful:
        def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
            return (Path.touch, (mark,))

    def changed(**arrays: Any) -> None:
        with np.load(good) as stored:
            np.savez(file, **{**{name: stored[name] for name in stored.files}, **arrays})

    def described(**values: Any) -> None:
        with np.load(good) as stored:
            about = json.loads(stored["about"].tobytes()) | values
        changed(about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8))

    def with_header(shape: bytes) -> None:
        """Let an array name a length that it does not have."""
        changed()
        header = b"{'descr': '<i4', 'fortran_order': False, 'shape': " + shape + b"}"
        header += b" " * (117 - len(header)) + b"\n"
        with zipfile.ZipFile(file) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        entries["left.npy"] = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in entries.items():
                archive.writestr(name, data)

    with zipfile.ZipFile(good) as archive:
        packed = archive.getinfo("threshold.npy")
    damaged = bytearray(good.read_bytes())
    middle = packed.header_offset + packed.compress_size // 2
    damaged[middle : middle + 20] = bytes(20)

    with np.load(good) as stored:
        left, feature = stored["left"].copy(), stored["feature"]
    circle = left.copy()
    circle[0] = 0
    for make, message in (
        (lambda: file.write_bytes(pickle.dumps(Harmful())), "no saved probe"),
        (lambda: file.write_bytes(b"PK"), "no saved probe"),
        (lambda: changed(roots=np.array([Harmful()], dtype=object)), "allow_pickle"),
        (lambda: changed(left=circle), "lead nowhere"),
        (lambda: changed(left=np.full_like(left, 10**6)), "lead nowhere"),
        (lambda: changed(feature=np.full_like(feature, WIDTH)), "features beyond"),
        (lambda: changed(share=np.full(left.size, 2.0)), "no numbers"),
        (lambda: changed(share=np.zeros(1)), "different lengths"),
        (lambda: described(kind="else"), "not format 1"),
        (lambda: described(layer="2"), "layer is '2'"),
        (lambda: described(model="b" * 64), "run 2 is of another model"),
        (lambda: described(layer=10**30), "layer is 1000"),
        (lambda: described(width=-1), "width is -1"),
        (lambda: file.write_bytes(damaged), "no saved probe"),
        (lambda: with_header(b"(1099511627776,)"), "no saved probe"),
        (lambda: with_header(b"(9999999999999999999999,)"), "no saved probe"),
        (lambda: described(layer=9), "holds no vectors of layer 9"),
        (lambda: described(post_norm="yes"), "post_norm is 'yes'"),
        (
            lambda: described(layer=LAYERS, post_norm=True),
            "reads the last layer behind the final norm; study 2.1 has it",
        ),
    ):
        make()
        assert message in refused(capsys, 2, "--apply", file, "--db", database)
    assert not mark.exists()
    with zipfile.ZipFile(good) as archive:
        assert set(archive.namelist()) >= {"about.npy", "left.npy"}


def test_a_model_without_a_hash_is_said_and_its_probe_goes_to_no_other(kept: Path) -> None:
    """The stored model of these runs is known by a name alone."""
    said = " ".join(kept.with_suffix(".said").read_text().split())
    assert f"the model has no file whose hash could be kept; {kept} is for runs of {'a' * 64} alone" in said
    assert read_probe(kept).model == "a" * 64


def test_a_problem_is_known_by_its_content_in_every_run(database: Path) -> None:
    """Units of one problem share a fold, and a probe that was trained on it says nothing about it in a later run."""
    with open_queries(database) as queries:
        first, later = (read_subject(queries, find_study(queries, run), "atom", "producing") for run in ("1", "2"))
    for subject in (first, later):
        pairs = set(zip(subject.generation.tolist(), subject.units.problem.tolist(), strict=True))
        assert len(pairs) == len({answer for answer, _ in pairs}) == len({problem for _, problem in pairs})
    # The second run begins with the problems of the first.
    assert set(first.problems) < set(later.problems)


def test_runs_without_activations_or_enough_answers(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "study activations 3" in refused(capsys, 3, "--db", database)
    assert "--unit line" in refused(capsys, 1, "--unit", "line", "--db", database)


def test_too_few_right_answers_are_refused_before_anything_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.db"
    run = store_run(path, tasks=EIGHT_TASKS[:2], answers=6, atoms=3, statuses=["wrong"] * 3)
    add_activations(path, run, 1)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE unit SET status = 'correct' WHERE kind = 'generation' AND generation = 1")
    said = refused(capsys, 1, "--unit", "generation", "--db", path)
    assert "1 of 12 answers is right, and no task has two answers with a right and two with a wrong one" in said
    assert "estimators" not in said
