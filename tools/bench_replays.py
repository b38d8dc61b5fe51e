"""Time replays of one answer beside each of them alone: `python -m tools.bench_replays`.

A DNA answer in which three atoms of ten are wrong is replayed at p* = 60: 64 variants that change atoms of the whole
prefix, and 64 that change the last ten, all at once at `-np 16`, exactly and with the prefixes in chunks (`replay
--chunked`).  Their peer is the same replay alone at `-np 1`, which shares nothing: prompt, prefix step by step,
P(gold), the target.  Eight of the 64 are timed alone (`--alone`).  Then an answer of the model is edited twice, as in
the app.  `-m MODEL` takes another model than the bundled one.  Four minutes on two idle cores; on busy ones take `-t 1`
and read the ratios of processor time, which neighbours disturb least.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median

from salt_tui.engine.engine import Engine
from salt_tui.engine.events import AsideTaken, EngineDied, SequenceEnded, Token
from salt_tui.engine.models import ResolvedModel, load_registry, open_engine, resolve_model
from salt_tui.engine.options import ContextOptions
from salt_tui.engine.process import EngineProcess
from salt_tui.engine.requests import Aside, Forced, Free, Generate
from salt_tui.paths import new_engine_log_path
from salt_tui.runner.background import BackgroundRun
from salt_tui.runner.events import RunEnded, RunEvent, TextWritten
from salt_tui.runner.kept_engine import EngineKeeper
from salt_tui.runner.opened_model import load_model
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.prompting import EncodedProblem, encode_problems
from salt_tui.runner.replays.design import Direction, ReplayableAnswer, draw_edits
from salt_tui.runner.replays.prefix_edits import ByteSpan, PrefixEditor, StoredTokens
from salt_tui.runner.request import EngineOptions, RunRequest
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from salt_tui.store.queries import open_queries
from scoring.interventions import LOCAL_WINDOW
from tasks.answer import split_reference
from tasks.atom_endings import AtomEndings
from tasks.parameters import level_parameters
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS, worked_answer
from tasks.registry import get_task
from tasks.task import Problem, Task

TASK, CODONS, TARGET, VARIANTS, WIDTH = "dna_translation", 70, 59, 64, 16
MISTAKES = 0.3
DOSES = (0.25, 0.5, 0.75, 1.0)
ALONE = 8
GOALS = {"whole prefix": 4.0, "last ten": 10.0}
EDITED_TASK, BACK_TOKENS = "kronecker_product", 20
DATE = "2026-01-01"

Numbers = tuple[tuple[int | None, float | None], ...]


class Replays:
    """One answer of a loaded model, and requests that replay it."""

    def __init__(self, engine: Engine, end_tokens: Sequence[int]) -> None:
        """Write an answer with mistakes."""
        task = get_task(TASK)
        level = level_parameters(task, "hard", (f"codons={CODONS}",))
        problem = draw_problems(task, "hard", level, 1, 1, DEFAULT_SHOTS).problems[0]
        self.prompt: EncodedProblem = encode_problems(engine, task, [problem], "regular", DEFAULT_SHOTS)[0]
        random, vocabulary = Random(1), engine.vocabulary()
        text = _with_mistakes(task, problem, random)
        ids = engine.tokenize(text)
        pieces = tuple(vocabulary[token] for token in ids)
        spans = [ByteSpan(*match.span()) for match in re.finditer(rb"[^\s*]+", text)]
        self.editor = PrefixEditor(StoredTokens(ids, pieces), spans, engine.tokenize, vocabulary)
        gold = split_reference(task, problem.reference).atoms
        said = [text[span.start : span.end].decode() for span in spans]
        self.answer = ReplayableAnswer(
            generation=1,
            task=TASK,
            content=problem.id,
            correct=tuple(one == other for one, other in zip(said, gold, strict=True)),
            gold=gold,
            wrong_atom=lambda draws, index: task.wrong_atom(draws, problem, index),
            clean=(True,) * len(said),
        )
        self.gold = self.editor.atom_tokens(TARGET, gold[TARGET])
        self.room = self.editor.lead(TARGET) + len(gold[TARGET]) + 3
        engine.define_set("endings", AtomEndings(vocabulary, end_tokens).after(task, problem.reference, TARGET))
        self._random = random

    def request(self, key: int, edits: dict[int, str]) -> Generate:
        """Return what replays a prefix, as a study asks it."""
        prefix = self.editor.before(TARGET, edits)
        segments = (Forced(prefix.ids), Aside(self.gold, "endings"), Free(self.room))
        return Generate(key, self.prompt.prompt, self.prompt.preamble, segments, trunk=prefix.kept)

    def variants(self, kind: str) -> list[Generate]:
        """Return the unchanged prefix and the variants of a kind of doses."""
        requests = [self.request(0, {})]
        for number in range(VARIANTS):
            direction: Direction = "correction" if number % 2 else "corruption"
            places = [place for place in range(TARGET) if self.answer.correct[place] is (direction == "corruption")]
            near = sum(place >= TARGET - LOCAL_WINDOW for place in places)
            dose = DOSES[number // 2 % len(DOSES)]
            outside = round(dose * (len(places) - near)) if kind == "whole prefix" else 0
            edits = draw_edits(self.answer, TARGET, direction, max(1, round(dose * near)), outside, self._random)
            requests.append(self.request(number + 1, dict(edits)))
        return requests


def _with_mistakes(task: Task, problem: Problem, random: Random) -> bytes:
    pieces = re.split(r"(\s+)", worked_answer(task, problem, "regular"))
    return "".join(
        task.wrong_atom(random, problem, 0) if piece.isalpha() and random.random() < MISTAKES else piece
        for piece in pieces
    ).encode()


@dataclass(frozen=True, slots=True)
class Seconds:
    """What some work took: by the clock, and of the child's processors (0 where the system does not tell)."""

    clock: float
    processor: float

    def ratio(self, other: Seconds, times: float) -> str:
        """Say how many times longer so many times another work takes."""
        by_processor = f", {times * other.processor / self.processor:.1f} by processor" if self.processor else ""
        return f"{times * other.clock / self.clock:.1f}{by_processor}"


def _processor_seconds(engine: Engine) -> float:
    """Return the processor time that the child has taken so far."""
    try:
        assert isinstance(engine, EngineProcess)
        fields = Path(f"/proc/{engine.process_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # only Linux has this file
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def compute(engine: Engine, requests: Sequence[Generate]) -> tuple[Seconds, dict[int, Numbers]]:
    """Compute requests together; return what they took, and the tokens and P(gold) of each."""
    found: dict[int, list[tuple[int | None, float | None]]] = {request.key: [] for request in requests}
    left = set(found)
    began, before = time.perf_counter(), _processor_seconds(engine)
    for request in requests:
        engine.submit(request)
    while left:
        for event in engine.events(1.0):
            if isinstance(event, EngineDied):
                raise SystemExit(f"the engine died; {engine.log_path} says more")
            if isinstance(event, Token):
                found[event.key].append((event.id, event.log_probability))
            elif isinstance(event, AsideTaken):
                found[event.key].append((None, sum(event.log_probabilities) + (event.log_mass or 0.0)))
            elif isinstance(event, SequenceEnded):
                left.discard(event.key)
                if event.stop_reason == "failed":
                    raise SystemExit(f"a replay failed: {event.message}")
    took = Seconds(time.perf_counter() - began, _processor_seconds(engine) - before)
    return took, {key: tuple(numbers) for key, numbers in found.items()}


def one_by_one(engine: Engine, requests: Sequence[Generate]) -> Seconds:
    """Compute requests one after the other; return what the median one took, which a neighbour disturbs least."""
    took = [compute(engine, [request])[0] for request in requests]
    return Seconds(median(one.clock for one in took), median(one.processor for one in took))


def measure_sharing(model: ResolvedModel, kinds: Sequence[str], threads: int | None, count: int) -> None:
    """Print how much faster 64 variants are together than one by one."""
    with open_engine(model, new_engine_log_path()) as engine:
        info = load_model(engine, model, EngineOptions(), DATE, lambda event: None)
        replays = Replays(engine, info.end_tokens)
        needed = len(replays.prompt.prompt) + len(replays.request(0, {}).segments[0].tokens)  # type: ignore[union-attr]
        context = ContextOptions(
            width=WIDTH, context=needed + 64, batch=512, micro_batch=512, threads=threads, flash_attention="auto",
            key_type="f16", value_type="f16", check="none", cache_mb=1024,
        )  # fmt: skip
        tokens = len(replays.request(0, {}).segments[0].tokens)  # type: ignore[union-attr]
        print(f"{model.name}: prompt {len(replays.prompt.prompt)} tokens, prefix of p* = {TARGET + 1} {tokens} tokens")
        for kind in kinds:
            requests = replays.variants(kind)
            sample = [requests[1 + VARIANTS // count * number] for number in range(count)]
            engine.open_context(replace(context, width=1, cache_mb=0))
            alone = one_by_one(engine, [replace(one, trunk=0, preamble=0) for one in sample])
            times = len(requests)
            print(f"{kind}: {len(requests)} replays one by one {times * alone.clock:.0f} s", flush=True)
            for mode, asked in (("exact", requests), ("chunked", [_chunked(one) for one in requests])):
                engine.open_context(context)
                together, numbers = compute(engine, asked)
                # Alone in the same shape: the same numbers, or sharing is worth nothing.
                engine.open_context(replace(context, cache_mb=0))
                one = asked[1] if mode == "chunked" else replace(asked[1], trunk=0)
                _, same = compute(engine, [one])
                equal = same[one.key][asked[1].trunk - one.trunk :] == numbers[one.key]
                print(
                    f"  {mode}, together at -np {WIDTH}: {together.clock:.1f} s, ratio {together.ratio(alone, times)}"
                    f" (≥ {GOALS[kind]:g}); same numbers as alone: {'yes' if equal else 'NO'}",
                    flush=True,
                )


def _chunked(request: Generate) -> Generate:
    """Let the whole prefix be evaluated in chunks, as `replay --chunked` does."""
    first = request.segments[0]
    assert isinstance(first, Forced)
    return replace(request, trunk=len(first.tokens), chunked=True)


def measure_edits(model: ResolvedModel) -> None:
    """Print how long two edits in a row take to show their first new token."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "bench.db"
        _finish(lambda emit: prepare_run(RunRequest(str(model.path), (EDITED_TASK,), "easy", 1, 1), database, emit))
        with open_queries(database) as queries:
            answer = queries.answers(1)[0]
            assert answer.generation is not None
            atoms = [unit for unit in queries.units(answer.generation, "atom") if unit.token_start is not None]
        starts = [unit.token_start or 0 for unit in atoms]
        first = max(place for place in range(1, len(atoms) - 1) if place <= 3 * len(atoms) // 4)
        second = next(place for place in range(first) if starts[first] - starts[place] <= BACK_TOKENS)
        keeper = EngineKeeper()
        try:
            for name, place in (("first", first), ("second", second)):
                text = "7" if atoms[place].text != "7" else "5"
                options = {"answer": f"{EDITED_TASK}:1", "set": f"{place + 1}={text}", "target": first + 2}
                seconds = _first_token(keeper, database, options)
                back = "" if name == "first" else f", {starts[first] - starts[place]} tokens back"
                goal = "" if name == "first" else " (< 1 s)"
                print(f"{name} edit, at token {starts[place]}{back}: first new token after {seconds:.2f} s{goal}")
        finally:
            keeper.release(5)


def _finish(prepare: Callable[[Callable[[RunEvent], None]], object]) -> None:
    run = BackgroundRun(prepare, str)  # type: ignore[arg-type]
    run.start()
    while not run.join(1.0):
        pass
    last = run.mailbox[-1]
    if not isinstance(last, RunEnded) or last.state != "finished":
        raise SystemExit(f"the run failed: {getattr(last, 'message', '')}")


def _first_token(keeper: EngineKeeper, database: Path, options: dict[str, int | str]) -> float:
    """Return the seconds until the first token that the model chose; the rest of the answer is not computed."""
    began = time.perf_counter()
    request = StudyRequest("manual", "1", options)
    run = BackgroundRun(lambda emit: prepare_study(request, database, emit, keeper=keeper), str, keeper)
    run.start()
    try:
        while True:
            if any(isinstance(event, TextWritten) for event in tuple(run.mailbox)):
                return time.perf_counter() - began
            if not run.alive:
                raise SystemExit(f"the edit failed: {getattr(run.mailbox[-1], 'message', '')}")
            time.sleep(0.002)
    finally:
        run.stop()
        run.join(10.0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("-t", "--threads", type=int, default=None)
    parser.add_argument("--alone", type=int, default=ALONE, metavar="N", help="replays to time one by one, 1 to 64")
    parser.add_argument("--only", choices=[*GOALS, "edits"], help="measure only these")
    asked = parser.parse_args()
    model = resolve_model(asked.model, load_registry())
    kinds = [kind for kind in GOALS if asked.only in {None, kind}]
    if kinds:
        measure_sharing(model, kinds, asked.threads, asked.alone)
    if asked.only in {None, "edits"}:
        measure_edits(model)


if __name__ == "__main__":
    main()
