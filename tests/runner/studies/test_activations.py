"""The study of activations: vectors as in numpy, whatever is computed beside them, and exact after a resume."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from salt_tui.runner.events import AnswerFinished, Notice, RunEnded, RunEvent
from salt_tui.runner.loop import Loop, ReadyWork
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import EngineOptions, RunRequest
from salt_tui.runner.studies.plan import OptionValue
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study, prepare_study_resume
from salt_tui.store.queries import open_queries
from salt_tui.usage_error import UsageError
from tests.conftest import ScriptedModel

NANO = Path(__file__).parents[3] / "salt_tui" / "nano" / "salt-nano.gguf"
TASKS = ("kronecker_product", "dna_translation")
VECTORS = (
    'SELECT task, problem.position, activation.kind, activation."index", layer, positions, scale, vector'
    " FROM activation"
    " JOIN study ON study.id = activation.study"
    " JOIN generation ON generation.id = activation.generation JOIN problem ON problem.id = generation.problem"
    " WHERE NOT json_extract(study.plan, '$.options.post_norm') ORDER BY 1, 2, 3, 4, 5, 6"
)


def computed(
    prepare: Callable[[Callable[[RunEvent], None]], ReadyWork], stop_after: int | None = None
) -> list[RunEvent]:
    """Compute until so many sequences have ended; return the events."""
    events: list[RunEvent] = []
    stop = threading.Event()

    def emit(event: RunEvent) -> None:
        events.append(event)
        if sum(isinstance(item, AnswerFinished) for item in events) == stop_after:
            stop.set()

    ready = prepare(emit)
    try:
        Loop(ready, emit, stop).run()
    finally:
        ready.close()
    return events


def make_study(database: Path, stop_after: int | None = None, **options: OptionValue) -> list[RunEvent]:
    asked = StudyRequest("activations", "1", options)
    return computed(lambda emit: prepare_study(asked, database, emit), stop_after)


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(database) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def scripted(scripted_model: ScriptedModel, tmp_path: Path) -> Path:
    """A run of the scripted engine."""
    database = tmp_path / "x.db"
    model = scripted_model(*TASKS, limit=4, seconds_per_step=0.004)
    asked = RunRequest(str(model), TASKS, "trivial", 4, 1, engine=EngineOptions(width=1))
    computed(lambda emit: prepare_run(asked, database, emit))
    return database


def test_sizes_are_told_and_every_written_unit_has_both_vectors_of_each_layer(scripted: Path) -> None:
    events = make_study(scripted, unit="generation,atom", layers="4,2")
    notice = next(event for event in events if isinstance(event, Notice))
    assert notice.text.startswith("8 answers to walk: it will write about")
    assert isinstance(events[-1], RunEnded)
    assert events[-1].state == "finished"
    written = rows(scripted, "SELECT count(*) FROM unit WHERE kind IN ('atom', 'generation') AND status <> 'missing'")[
        0
    ][0]
    found = rows(scripted, VECTORS)
    assert isinstance(written, int)
    assert len(found) == written * 2 * 2
    assert {row[4] for row in found} == {2, 4}


def test_what_was_interrupted_goes_on_to_the_same_vectors(scripted: Path, tmp_path: Path) -> None:
    make_study(scripted)
    whole = rows(scripted, VECTORS)
    with sqlite3.connect(scripted) as connection:
        connection.execute("DELETE FROM activation")
        connection.execute("DELETE FROM generation WHERE study IS NOT NULL")
        connection.execute("DELETE FROM study")
    stopped = make_study(scripted, stop_after=1)
    assert isinstance(stopped[-1], RunEnded)
    assert stopped[-1].state == "interrupted"
    assert 0 < len(rows(scripted, VECTORS)) < len(whole)
    with open_queries(scripted) as queries:
        study = queries.study_record(queries.find_work(stopped[-1].title.split()[1]))
    computed(lambda emit: prepare_study_resume(study, scripted, emit, allow_environment_change=False, threads=None))
    assert rows(scripted, VECTORS) == whole


def test_layers_and_units_that_are_not_there_are_refused(scripted: Path) -> None:
    for options, message in (
        ({"layers": "5"}, "layer 5 is not there; layers are counted 1 to 4"),
        ({"layers": "0"}, "layers are counted from 1"),
        ({"layers": "one"}, "numbers of layers with commas"),
        ({"unit": "words"}, "one or several of generation, line, atom"),
    ):
        with pytest.raises(UsageError, match=message):
            make_study(scripted, **options)
    assert rows(scripted, "SELECT * FROM study") == []


def test_an_engine_without_activations_is_refused(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    model = scripted_model(*TASKS, limit=1)
    script = json.loads(model.read_text())
    script.setdefault("model", {})["activation_layers"] = 0
    model.write_text(json.dumps(script))
    computed(lambda emit: prepare_run(RunRequest(str(model), TASKS, "trivial", 1, 1), database, emit))
    with pytest.raises(UsageError, match="needs an engine with activations; this has none"):
        make_study(database)


def test_a_disk_without_room_is_refused_before_anything_is_stored(
    scripted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 100})())
    with pytest.raises(UsageError, match="is not begun: it will write about"):
        make_study(scripted)
    assert rows(scripted, "SELECT * FROM study") == []


def states_of_nano(tokens: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the output of each block of salt-nano and of the final norm, shape ``(layers + 1, tokens, width)``."""
    weights = {tensor.name: np.asarray(tensor.data, dtype=np.float64) for tensor in gguf.GGUFReader(str(NANO)).tensors}
    heads, layers, base, epsilon = 4, 4, 10_000.0, 1e-5
    length = len(tokens)

    def normed(x: NDArray[np.float64], weight: str) -> NDArray[np.float64]:
        scaled: NDArray[np.float64] = x / np.sqrt((x**2).mean(axis=1, keepdims=True) + epsilon) * weights[weight]
        return scaled

    x = weights["token_embd.weight"][list(tokens)]
    half = x.shape[1] // heads // 2
    angles = np.arange(length)[:, None] * base ** (-np.arange(half) / half)
    cosine, sine = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]

    def rotated(part: NDArray[np.float64]) -> NDArray[np.float64]:
        even, odd = part[..., 0::2], part[..., 1::2]
        pairs = np.stack((even * cosine - odd * sine, even * sine + odd * cosine), axis=-1)
        return pairs.reshape(part.shape)

    found = []
    for layer in range(layers):
        name = f"blk.{layer}."
        states = normed(x, name + "attn_norm.weight")
        q, k, v = ((states @ weights[f"{name}attn_{part}.weight"].T).reshape(length, heads, -1) for part in "qkv")
        scores = np.einsum("qhd,khd->hqk", rotated(q), rotated(k)) / np.sqrt(2 * half)
        scores = np.where(np.tril(np.ones((length, length), dtype=bool)), scores, -np.inf)
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        shares /= shares.sum(axis=2, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", shares, v).reshape(length, -1)
        x = x + mixed @ weights[name + "attn_output.weight"].T
        states = normed(x, name + "ffn_norm.weight")
        gate = states @ weights[name + "ffn_gate.weight"].T
        up = states @ weights[name + "ffn_up.weight"].T
        x = x + (gate / (1.0 + np.exp(-gate)) * up) @ weights[name + "ffn_down.weight"].T
        found.append(x)
    return np.stack([*found, normed(x, "output_norm.weight")])


@pytest.fixture(scope="module")
def of_nano(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of salt-nano with its activations, two sequences at once."""
    return nano_run(tmp_path_factory.mktemp("nano") / "x.db", TASKS, 2)


def nano_run(database: Path, tasks: tuple[str, ...], width: int) -> Path:
    # Flash attention rounds to 16 bits inside: 1e-3 of a vector; without it 2e-4, which is what storing costs.
    engine = EngineOptions(width=width, key_type="f32", value_type="f32", flash_attention="off")
    asked = RunRequest(str(NANO), tasks, "trivial", 2, 1, engine=engine)
    computed(lambda emit: prepare_run(asked, database, emit))
    make_study(database, unit="generation,line,atom")
    make_study(database, unit="line", layers="2", post_norm=True)
    return database


@pytest.mark.model
def test_vectors_are_those_of_a_forward_pass_in_numpy(of_nano: Path) -> None:
    """Every layer and the final norm, every kind of unit, both positions; within 3e-4 of the length of the vector."""
    compared = 0
    with open_queries(of_nano) as queries:
        study, behind_the_norm = queries.find_work("1.1"), queries.find_work("1.2")
        assert queries.activation_layers(study) == [1, 2, 3, 4]
        assert queries.activation_layers(behind_the_norm) == [2, 4]
        read = [(study, kind, layer, layer) for kind in ("generation", "line", "atom") for layer in (1, 2, 3, 4)]
        read += [(behind_the_norm, "line", 2, 2), (behind_the_norm, "line", 4, 5)]
        for answer in queries.answers(1):
            assert answer.generation is not None
            prompt, reply = queries.prompt(answer.generation), queries.token_ids(answer.generation)
            assert prompt is not None
            states = states_of_nano((*prompt, *reply))
            units = {(unit.kind, unit.index): unit for unit in queries.units(answer.generation)}
            for work, kind, layer, number in read:
                for positions, offset in (("producing", -1), ("own", 0)):
                    for record in queries.activations(work, kind, layer, positions):
                        if record.generation != answer.generation:
                            continue
                        unit = units[kind, record.index]
                        assert unit.token_start is not None
                        assert unit.token_end is not None
                        places = np.arange(unit.token_start, unit.token_end) + len(prompt) + offset
                        expected = states[number - 1][places].mean(axis=0)
                        error = np.linalg.norm(record.vector - expected) / np.linalg.norm(expected)
                        assert error < 3e-4
                        compared += 1
    assert compared > 100


@pytest.mark.model
def test_vectors_do_not_depend_on_what_is_computed_beside(of_nano: Path, tmp_path: Path) -> None:
    """Without the other task's answers: the bits that they had among them."""
    alone = rows(nano_run(tmp_path / "x.db", TASKS[1:], 2), VECTORS)
    assert alone
    assert set(alone) <= set(rows(of_nano, VECTORS))


@pytest.mark.model
def test_vectors_hardly_depend_on_the_width(of_nano: Path, tmp_path: Path) -> None:
    """One at a time, llama.cpp multiplies with other kernels: not the same bits, and the same vectors."""
    single = nano_run(tmp_path / "x.db", TASKS, 1)
    with open_queries(of_nano) as two, open_queries(single) as one:
        for layer in (1, 4):
            for first, second in zip(
                two.activations(two.find_work("1.1"), "generation", layer),
                one.activations(one.find_work("1.1"), "generation", layer),
                strict=True,
            ):
                assert np.linalg.norm(first.vector - second.vector) < 5e-4 * np.linalg.norm(first.vector)
