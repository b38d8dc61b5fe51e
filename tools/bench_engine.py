"""Time the engine beside other ways to do the same, in one run: `python -m tools.bench_engine`.

Everything is measured in turns, and reported as ratios: of the fastest times of each, which other programs disturb
least, and of neighbours in time, whose median, smallest and largest show how much they did.  `-m MODEL` measures
another model than the bundled one, `-np 1,8` only these widths, `-r 2` two rounds of each.  Eight minutes on two idle
cores.

- bare loop: `llama_decode` on one token per sequence, again and again, with nothing else (ctypes, this program);
- own loop: a run as `salt-tui run --display none` makes it: statistics, scoring, every token and unit stored;
- high level: `Llama.create_completion` of llama-cpp-python with 20 log-probabilities per token;
- sequential: one answer after the other, each prompt evaluated whole.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from salt_tui.commands.computing import NoDisplay
from salt_tui.engine.errors import ModelError
from salt_tui.engine.gguf_header import read_header
from salt_tui.engine.kv_memory import kv_cache_bytes
from salt_tui.engine.models import load_registry, resolve_model
from salt_tui.engine.resident_memory import resident_bytes
from salt_tui.engine.streams import STORES
from salt_tui.engine.threads import physical_cores
from salt_tui.paths import new_engine_log_path
from salt_tui.runner.benchmark import Benchmark
from salt_tui.runner.request import EngineOptions

STEPS = 64
WARM_STEPS = 16
CONTEXT = 256
HIGH_LEVEL_TOKENS = 24
EVALUATIONS, EVALUATED_ALONE, EVALUATION_WIDTH = 32, 8, 16
TINY, TINY_WIDTHS, TINY_STEPS = "nano", (8, 16), 256
BARE, HIGH_LEVEL = "--bare", "--high-level"
NICENESS = 10
"""Of the engine's child, and so of what it is compared with: on a busy machine it decides."""


class Peer:
    """What the own loop is compared with, in a process of its own."""

    def __init__(self, kind: str, path: str, width: int, threads: int, gpu_layers: int = 0) -> None:
        """Start it; it loads the model and waits."""
        numbers = [str(number) for number in (width, threads, gpu_layers)]
        command = [sys.executable, "-m", "tools.bench_engine", kind, path, *numbers]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.seconds(WARM_STEPS)

    def seconds(self, steps: int) -> float:
        """Return the time of so many steps of all sequences."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def serve_bare(path: str, width: int, threads: int, gpu_layers: int) -> None:
    """Time steps whenever a line with their number arrives."""
    import llama_cpp

    os.nice(NICENESS)
    silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    loading = llama_cpp.llama_model_default_params()
    loading.n_gpu_layers = gpu_layers
    model = llama_cpp.llama_model_load_from_file(os.fsencode(path), loading)
    parameters = llama_cpp.llama_context_default_params()
    parameters.n_ctx, parameters.n_seq_max = CONTEXT * width, width
    parameters.n_threads = parameters.n_threads_batch = threads
    parameters.kv_unified, parameters.no_perf = False, True
    context = llama_cpp.llama_init_from_model(model, parameters)
    memory = llama_cpp.llama_get_memory(context)
    batch = llama_cpp.llama_batch_init(width, 0, 1)
    batch.n_tokens = width
    for line in sys.stdin:
        llama_cpp.llama_memory_clear(memory, True)
        begin = 0.0
        for position in range(WARM_STEPS + int(line)):
            if position == WARM_STEPS:
                begin = time.perf_counter()
            for slot in range(width):
                batch.token[slot], batch.pos[slot] = 100 + position, position
                batch.n_seq_id[slot], batch.seq_id[slot][0], batch.logits[slot] = 1, slot, 1
            if llama_cpp.llama_decode(context, batch) != 0:
                sys.exit(1)
            llama_cpp.llama_synchronize(context)
        print(time.perf_counter() - begin, flush=True)


def serve_high_level(path: str, threads: int) -> None:
    """Time tokens of a completion with 20 log-probabilities, from the first to the last, for every line."""
    import llama_cpp

    os.nice(NICENESS)
    llama = llama_cpp.Llama(
        model_path=path, n_ctx=CONTEXT, n_threads=threads, n_threads_batch=threads, logits_all=True, verbose=False
    )
    never = {llama.token_eos(): -99.0}
    for line in sys.stdin:
        stream = llama.create_completion(
            "0 1 2 3", max_tokens=int(line) + 1, logprobs=20, temperature=0.0, stream=True, logit_bias=never
        )
        times = [time.perf_counter() for _ in stream]
        print((times[-1] - times[0]) / (len(times) - 1) * int(line), flush=True)


def _ratios(ones: Sequence[float], others: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(ones, others, strict=True)]


def line(what: str, ratios: Sequence[float], fastest: float, target: str, note: str = "") -> None:
    """Print one line of the table."""
    spread = f"({min(ratios):.3f} to {max(ratios):.3f})"
    print(f"{what:<58}{fastest:>8.3f} {median(ratios):>8.3f}  {spread:<20} {target:<8}{note}", flush=True)


def bench_decoding(benchmark: Benchmark, path: str, threads: int, widths: Sequence[int], rounds: int) -> None:
    """Own loop against the bare loop and the high level."""
    high = Peer(HIGH_LEVEL, path, 1, threads)
    for width in widths:
        bare = Peer(BARE, path, width, threads)
        benchmark.open(width, CONTEXT)
        benchmark.engine.measure(0, WARM_STEPS)
        bares, shorts, longs, highs, parts, fulls = [], [], [], [], [], []
        for _ in range(rounds):
            bares.append(bare.seconds(STEPS))
            short, long = benchmark.run_seconds(width, STEPS, NoDisplay)
            shorts.append(short)
            longs.append(long)
            highs.append(high.seconds(HIGH_LEVEL_TOKENS) / HIGH_LEVEL_TOKENS * STEPS * width)
            speed = benchmark.engine.measure(0, STEPS)
            parts += speed.bare
            fulls += speed.full
        bare.close()
        owns = [long - short for short, long in zip(shorts, longs, strict=True)]
        own = min(longs) - min(shorts)
        rate = f"bare {width * STEPS / min(bares):.1f} t/s"
        target = "≥ 0.93" if width == 1 else "≥ 0.95"
        line(f"np {width}: own loop, all stored / bare loop", _ratios(bares, owns), min(bares) / own, target, rate)
        if width in (1, 16):
            target = "≥ 4" if width == 1 else "≥ 8"
            what = f"np {width}: own loop / create_completion(logprobs=20)"
            line(what, _ratios(highs, owns), min(highs) / own, target)
            target = "≤ 0.03" if width == 1 else "≤ 0.10"
            more = [ratio - 1 for ratio in _ratios(fulls, parts)]
            line(f"np {width}: statistics / decode time", more, min(fulls) / min(parts) - 1, target)
    high.close()


def bench_evaluations(benchmark: Benchmark, rounds: int) -> None:
    """End to end: everything at once, against one answer after the other with every prompt evaluated whole.

    One after the other takes as long for every problem, so a quarter of them is enough.
    """
    work = benchmark.evaluations(EVALUATIONS, max_tokens=48)
    part = replace(work, problems=work.problems[:EVALUATED_ALONE], prompts=work.prompts[:EVALUATED_ALONE])
    alone, crowd = [], []
    for _ in range(rounds):
        benchmark.open(1, work.context)
        seconds = benchmark.evaluation_seconds(part, 1, sharing=False, display=NoDisplay)
        alone.append(seconds * EVALUATIONS / EVALUATED_ALONE)
        benchmark.open(EVALUATION_WIDTH, work.context)
        crowd.append(benchmark.evaluation_seconds(work, EVALUATION_WIDTH, sharing=True, display=NoDisplay))
    note = f"{60 * EVALUATIONS / min(crowd):.0f} evaluations/min"
    what = f"end to end, {EVALUATIONS} three-shot problems: np {EVALUATION_WIDTH} / sequential"
    line(what, _ratios(alone, crowd), min(alone) / min(crowd), "≥ 3", note)


def bench_tiny(rounds: int) -> None:
    """Tokens per second of a model with a million parameters, where the Python around it decides; all stored."""
    try:
        resolved = resolve_model(TINY, load_registry())
    except ModelError as error:
        print(f"tokens/s of a tiny model: not measured ({error})")
        return
    with Benchmark(resolved, EngineOptions(gpu_layers=0), new_engine_log_path()) as benchmark:
        rates = {}
        for width in TINY_WIDTHS:
            threads = benchmark.open(width, 2 * TINY_STEPS).threads
            shorts, longs = zip(
                *(benchmark.run_seconds(width, TINY_STEPS, NoDisplay) for _ in range(rounds)), strict=True
            )
            owns = [long - short for short, long in zip(shorts, longs, strict=True)]
            rates[width] = [width * TINY_STEPS / seconds for seconds in (min(longs) - min(shorts), median(owns))]
        text = ", ".join(f"np {width} {fastest:.0f} (median {usual:.0f})" for width, (fastest, usual) in rates.items())
        print(f"{benchmark.info.description}, -t {threads}, tokens/s stored: {text}  (≥ 1500)")


def bench_memory(benchmark: Benchmark, path: str) -> None:
    """Resident memory of the child apart from model and KV, at two contexts."""
    header = read_header(Path(path))
    layers, heads, kept, size = (
        header.integer(f"{header.architecture}.{name}") or 1
        for name in ("block_count", "attention.head_count", "attention.head_count_kv", "embedding_length")
    )
    for context in (1024, 32768):
        benchmark.open(1, context)
        benchmark.engine.measure(512, 8)
        held = resident_bytes(benchmark.engine.process_id)
        if held is None:
            print("this system does not tell how much memory a process holds")
            return
        resident = held / 2**20
        cache = kv_cache_bytes(1 + STORES, context, layers, *[kept * size // heads] * 2, "f16", "f16") / 2**20
        model = benchmark.info.file_bytes / 2**20
        rest = resident - cache - model
        print(
            f"np 1, -c {context}: child {resident:.0f} MiB = model {model:.0f} + KV {cache:.0f} + {rest:.0f}  (≤ 143)"
        )


def bench_llama_bench(path: str, threads: int) -> None:
    """What llama.cpp's own program says, where it is installed."""
    program = shutil.which("llama-bench")
    if program is None:
        print("llama-bench is not on the PATH: not measured")
        return
    command = [program, "-m", path, "-t", str(threads), "-p", "0", "-n", str(STEPS), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for row in json.loads(done.stdout or "[]"):
        print(f"llama-bench tg{row['n_gen']}: {row['avg_ts']:.1f} ± {row['stddev_ts']:.1f} t/s")


def main(arguments: list[str]) -> int:
    """Print the table; 2 without the model."""
    if arguments[:1] == [BARE]:
        serve_bare(arguments[1], int(arguments[2]), int(arguments[3]), int(arguments[4]))
        return 0
    if arguments[:1] == [HIGH_LEVEL]:
        serve_high_level(arguments[1], int(arguments[3]))
        return 0
    parser = argparse.ArgumentParser(prog="python -m tools.bench_engine", description=__doc__.partition("\n")[0])
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("-np", default="1,8,16", help="widths, joined by commas")
    parser.add_argument("-r", type=int, default=5, help="rounds")
    options = parser.parse_args(arguments)
    resolved = resolve_model(options.model, load_registry())
    threads, path = physical_cores(), str(resolved.path)
    widths, rounds = [int(text) for text in options.np.split(",")], options.r
    with Benchmark(resolved, EngineOptions(threads=threads, gpu_layers=0), new_engine_log_path()) as benchmark:
        print(f"{benchmark.info.description}, {threads} threads; load at the start {os.getloadavg()[0]:.1f}")
        print(f"{'':<58}{'fastest':>8} {'median':>8}  {'range':<20} target")
        bench_decoding(benchmark, path, threads, widths, rounds)
        bench_evaluations(benchmark, rounds)
        bench_memory(benchmark, path)
    bench_tiny(rounds)
    bench_llama_bench(path, threads)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
