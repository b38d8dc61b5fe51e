"""A small run with known rows, and the records it is made of."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from salt_tui.store.records import (
    GenerationEnd,
    GenerationStart,
    ModelRecord,
    ProblemRecord,
    RunRecord,
    TokenRecord,
    UnitRecord,
    Work,
)
from salt_tui.store.store import Store, open_store

VOCABULARY = tuple(bytes([value]) for value in range(256))
NO_CONFIDENCE = (None,) * 9


def make_model(sha256: str = "a" * 64, name: str = "tiny") -> ModelRecord:
    """Return a model with a byte vocabulary."""
    return ModelRecord(
        sha256,
        sha256,
        name,
        f"/models/{name}.gguf",
        1000,
        "llama 1M Q4_1",
        "llama",
        "Q4_1",
        1_000_000,
        256,
        2048,
        None,
        "{}",
    )


def make_run(plan: str = '{"tasks":[{"task":"dna"}]}') -> RunRecord:
    """Return a run as it is created."""
    return RunRecord(plan, "plan-hash", '{"threads":2}', "environment-hash", True, ("one warning",))


def make_problem(position: int, task: str = "dna", atoms: int = 3) -> ProblemRecord:
    """Return a problem whose seed needs all 64 bits."""
    return ProblemRecord(
        task, position, f"{task}{position}", "easy", 2**64 - 1 - position, "regular", "text", "A B C", atoms, 1
    )


def make_token(position: int, id: int = 65) -> TokenRecord:
    """Return a one-byte token with two alternatives."""
    return TokenRecord(position, id, position, position + 1, -0.25, 0.5, (id, 66), (-0.25, -2.5), False)


def make_atom(index: int, status: str = "correct", confidence: float = 0.5) -> UnitRecord:
    """Return an atom; its text is ``A``, its reference ``A``, ``C`` or None as the status asks."""
    if status == "missing":
        return UnitRecord("atom", index, None, None, "C", "missing", None, None, None, None, NO_CONFIDENCE)
    reference = {"correct": "A", "redundant": None}.get(status, "C")
    values = (1.5, 0.4, confidence, confidence, confidence, -0.4, 0.3, 0.3, confidence)
    return UnitRecord("atom", index, 0, "A", reference, status, index, index + 1, index, index + 1, values)


def make_end(status: str = "complete", reply: bytes = b"") -> GenerationEnd:
    """Return the end of an answer."""
    stop = {"failed": "failed", "cancelled": "cancelled", "context_full": "context"}.get(status, "end")
    return GenerationEnd(reply, stop, "fenced", status, None, 0.1, 0.2)


@pytest.fixture
def model() -> Callable[..., ModelRecord]:
    """Give `make_model`."""
    return make_model


@pytest.fixture
def run_record() -> Callable[..., RunRecord]:
    """Give `make_run`."""
    return make_run


@pytest.fixture
def problem() -> Callable[..., ProblemRecord]:
    """Give `make_problem`."""
    return make_problem


@pytest.fixture
def token() -> Callable[..., TokenRecord]:
    """Give `make_token`."""
    return make_token


@pytest.fixture
def atom() -> Callable[..., UnitRecord]:
    """Give `make_atom`."""
    return make_atom


@pytest.fixture
def end() -> Callable[..., GenerationEnd]:
    """Give `make_end`."""
    return make_end


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the name of a database that does not exist yet."""
    return tmp_path / "x.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """Give a new database, open for writing."""
    with open_store(path) as opened:
        yield opened


@pytest.fixture
def create(store: Store) -> Callable[..., int]:
    """Give a function that stores a run of three problems and returns its number."""

    def create_run(count: int = 3, **changes: str) -> int:
        problems = [make_problem(position) for position in range(count)]
        return store.create_run(make_model(**changes), VOCABULARY, make_run(), problems)

    return create_run


@pytest.fixture
def begin(store: Store) -> Callable[..., int]:
    """Give a function that begins the answer to an open problem of a run, claiming the run first when it must."""
    claimed = set()

    def begin_answer(run: int, place: int = 0, attempt: int = 1) -> int:
        if run not in claimed:
            claimed.add(run)
            store.claim(Work(run))
        problem = store.pending_problems(run)[place].id
        return store.begin_generation(Work(run), GenerationStart(problem, (1, 2, 3), 2, attempt))

    return begin_answer


@pytest.fixture
def finish(store: Store) -> Callable[..., None]:
    """Give a function that ends an answer with units and as many one-byte tokens as they reach over."""

    def finish_answer(generation: int, units: Sequence[UnitRecord], status: str = "complete") -> None:
        count = max((unit.token_end or 0 for unit in units), default=0)
        store.add_tokens(generation, [make_token(position) for position in range(count)])
        store.add_units(generation, units)
        store.end_generation(generation, make_end(status, b"A" * count))

    return finish_answer


@pytest.fixture
def filled(store: Store, create: Callable[..., int]) -> int:
    """Store a claimed run of five problems and return its number.

    Answer 0: correct 0.2, wrong 0.9, missing.  Answer 1: correct 1.0, redundant 0.95, abstained 0.99.
    Answer 2: cancelled, wrong 1.0.  Answer 3: begun, wrong 0.97.  Answer 4: never begun.
    """
    run = create(count=5)
    store.claim(Work(run))
    pending = store.pending_problems(run)
    answers: list[tuple[list[UnitRecord], str | None]] = [
        ([make_atom(0, "correct", 0.2), make_atom(1, "wrong", 0.9), make_atom(2, "missing")], "complete"),
        ([make_atom(0, "correct", 1.0), make_atom(1, "redundant", 0.95), make_atom(2, "abstained", 0.99)], "truncated"),
        ([make_atom(0, "wrong", 1.0)], "cancelled"),
        ([make_atom(0, "wrong", 0.97)], None),
    ]
    for entry, (units, status) in zip(pending, answers, strict=False):
        generation = store.begin_generation(Work(run), GenerationStart(entry.id, (1, 2, 3), 2))
        store.add_tokens(generation, [make_token(position) for position in range(3)])
        store.add_units(generation, units)
        if status is None:
            store.flush()
        else:
            store.end_generation(generation, make_end(status, b"AAA"))
    return run


@pytest.fixture
def time_limit() -> Iterator[None]:
    """Fail a test that waits, as opening a pipe does for ever, after twenty seconds."""

    def fail(number: int, frame: object) -> None:
        raise TimeoutError("the test waits")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=["device", "pipe", "socket"])
def make_special(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Give a function that makes something at a place that is neither file nor folder."""

    def make(place: Path) -> None:
        if request.param == "device":
            try:
                # A twin of the null device: writing to it would be harmless, replacing it would show.
                os.mknod(place, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("devices cannot be made here")
        elif request.param == "pipe":
            os.mkfifo(place)
        else:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(place))

    return make
