"""``salt-tui bench``: how fast a model is here, and what statistics, storing and the display cost."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from statistics import mean, median, pstdev

from rich.console import Console

from salt_tui.commands.computing import NoDisplay
from salt_tui.commands.failures import DONE
from salt_tui.display.rich_display import RichDisplay
from salt_tui.engine.model_info import ContextInfo, ModelInfo
from salt_tui.engine.models import load_registry, resolve_model
from salt_tui.paths import new_engine_log_path
from salt_tui.reports.text_tables import TextTable
from salt_tui.runner.benchmark import Benchmark
from salt_tui.runner.jobs import Emit
from salt_tui.runner.request import EngineOptions, check_engine_options
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible

PROMPT_TOKENS = 256
STEPS = 48
EVALUATIONS = 8
ANSWER_TOKENS = 48
_ROOM = 64  # tokens of a context beside what is timed


@dataclass(frozen=True, slots=True)
class WidthTimes:
    """What was measured at one width; ``statistics``, ``storing`` and ``display`` are ratios, 1.0 costs nothing.

    Attributes:
        prompt: tokens per second of prompts, one per repetition.
        decode: tokens per second of all slots together with nothing but decoding, one per block of steps.
        statistics: time with statistics by time without, of neighbouring blocks.
        storing: time of a run by time with statistics, one per repetition.
        display: time of a run with the live display by time without.
        evaluations: per minute, with the preamble shared and with every prompt evaluated whole.
    """

    context: ContextInfo
    prompt: tuple[float, ...]
    decode: tuple[float, ...]
    statistics: tuple[float, ...]
    storing: tuple[float, ...]
    display: tuple[float, ...]
    evaluations: tuple[float, float]


def bench(model: str, options: EngineOptions, widths: str, repetitions: int) -> int:
    """Measure and print; progress goes to stderr.

    Args:
        model: a name from ``models.toml`` or a path.
        options: of every measurement; the width is of no account.
        widths: joined by commas.
        repetitions: of every measurement.

    Raises:
        UsageError: widths that are no numbers, or options that cannot be tried; `ContextError` for a width.
    """
    asked = _read_widths(widths)
    for width in asked:
        check_engine_options(replace(options, width=width))
    resolved = resolve_model(model, load_registry())
    with Benchmark(resolved, options, new_engine_log_path()) as benchmark:
        measured = []
        for width in asked:
            print(f"width {width} …", file=sys.stderr, flush=True)
            measured.append(_measure(benchmark, width, repetitions))
        for line in result_tables(benchmark.info, measured):
            print(line)
    return DONE


def _read_widths(text: str) -> list[int]:
    try:
        return [int(name) for name in text.split(",")]
    except ValueError:
        raise UsageError(f"-np {text}: whole numbers joined by commas, such as 1,4,8") from None


def _measure(benchmark: Benchmark, width: int, repetitions: int) -> WidthTimes:
    context = benchmark.open(width, max(PROMPT_TOKENS, 2 * STEPS) + _ROOM)
    benchmark.engine.measure(PROMPT_TOKENS, STEPS)  # the first pages of everything are not what is measured
    prompt, decode, statistics, storing, display = [], [], [], [], []
    for _ in range(repetitions):
        speed = benchmark.engine.measure(PROMPT_TOKENS, STEPS)
        prompt.append(speed.prompt_tokens / speed.prompt)
        decode += [width * speed.steps_per_block / seconds for seconds in speed.bare]
        statistics += [full / bare for full, bare in zip(speed.full, speed.bare, strict=True)]
        stored = _decoding(*benchmark.run_seconds(width, STEPS, NoDisplay))
        shown = _decoding(*benchmark.run_seconds(width, STEPS, _rich_display))
        storing.append(stored / (STEPS * median(speed.full) / speed.steps_per_block))
        display.append(shown / stored)
    work = benchmark.evaluations(EVALUATIONS, ANSWER_TOKENS)
    benchmark.open(width, work.context)
    seconds = [
        benchmark.evaluation_seconds(work, width, sharing=sharing, display=NoDisplay) for sharing in (True, False)
    ]
    per_minute = (60 * len(work.problems) / seconds[0], 60 * len(work.problems) / seconds[1])
    return WidthTimes(
        context, tuple(prompt), tuple(decode), tuple(statistics), tuple(storing), tuple(display), per_minute
    )


def _decoding(short: float, long: float) -> float:
    """Return what a long run takes more than a short one; on a busy machine that can be nothing."""
    return max(long - short, 1e-9)


def _rich_display() -> AbstractContextManager[Emit]:
    return _drawn_nowhere()


@contextmanager
def _drawn_nowhere() -> Iterator[Emit]:
    """Draw the live display as for a terminal of 120 by 40, and throw it away."""
    with open(os.devnull, "w") as nowhere:
        console = Console(
            file=nowhere, force_terminal=True, width=120, height=40, markup=False, highlight=False, emoji=False
        )
        with RichDisplay(console) as display:
            yield display


def result_tables(info: ModelInfo, measured: Sequence[WidthTimes]) -> Iterator[str]:
    """Yield the lines of both tables: rates as llama-bench prints them, and what the statistics cost."""
    yield from _speeds(info, measured).as_markdown()
    yield ""
    costs = TextTable(
        "",
        ("np", "statistics", "storing", "display", "evaluations/min", "without sharing"),
        tuple(
            (
                str(times.context.width),
                *(_cost(ratios) for ratios in (times.statistics, times.storing, times.display)),
                *(f"{rate:.1f}" for rate in times.evaluations),
            )
            for times in measured
        ),
    )
    yield from costs.as_text()
    yield "Costs are shares of the time without: median (smallest to largest)."


def _speeds(info: ModelInfo, measured: Sequence[WidthTimes]) -> TextTable:
    """Return llama-bench's columns and one more, ``np``."""
    rows = []
    for times in measured:
        backend = "CPU" if times.context.gpu_layers == 0 else "GPU"
        layers, threads, width = (
            str(n) for n in (times.context.gpu_layers, times.context.threads, times.context.width)
        )
        assert info.file_bytes is not None  # only files are timed
        assert info.parameters is not None
        head = (visible(info.description), f"{info.file_bytes / 2**20:.2f} MiB", f"{info.parameters / 1e6:.2f} M")
        for test, rates in ((f"pp{PROMPT_TOKENS}", times.prompt), (f"tg{STEPS}", times.decode)):
            rate = f"{mean(rates):.2f} ± {pstdev(rates):.2f}"
            rows.append((*head, backend, layers, threads, width, test, rate))
    return TextTable("", ("model", "size", "params", "backend", "ngl", "threads", "np", "test", "t/s"), tuple(rows))


def _cost(ratios: Sequence[float]) -> str:
    low, middle, high = (100 * (ratio - 1) for ratio in (min(ratios), median(ratios), max(ratios)))
    return f"{middle:+.1f} % ({low:+.0f} to {high:+.0f})"
