"""Check and time the engine on this machine, above all on one with a GPU: `python -m tools.gpu_check -m MODEL`.

Ten minutes at most (`--seconds`), whatever the machine has; what no time is left for is said.  In this order:

- facts: versions, devices, memory, where the layers stand;
- exactness at widths 1, 4 and 16: the full check of `salt-tui doctor`, with forks and snapshots, and whether reading
  activations changes a log-probability;
- cancel: from the request to the end of the sequence, inside a long prompt and between steps;
- memory: what weights and KV cache took on the devices, or in the child, beside the estimate of `-ngl auto`;
- pace: the own loop, everything stored, beside a bare loop of `llama_decode`, in turns; on the devices, then on the CPU
  with all of its cores and with all but one.

`--short` does little of each, for tests.  Exit code 1 when something failed or a number depended on its company.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from salt_tui.commands.computing import NoDisplay
from salt_tui.engine.errors import EngineError, ModelError
from salt_tui.engine.events import EngineDied, Event, PromptProgress, SequenceEnded, Token
from salt_tui.engine.gguf_header import read_header
from salt_tui.engine.gpu_layers import layer_sizes
from salt_tui.engine.kv_memory import kv_cache_bytes
from salt_tui.engine.model_info import ModelInfo
from salt_tui.engine.models import load_registry, resolve_model
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.process import LLAMA_COMMAND, EngineProcess, describe_death
from salt_tui.engine.requests import Forced, Free, Generate
from salt_tui.engine.resident_memory import resident_bytes
from salt_tui.engine.streams import STORES
from salt_tui.engine.threads import physical_cores
from salt_tui.paths import new_engine_log_path
from salt_tui.runner.benchmark import Benchmark
from salt_tui.runner.request import EngineOptions
from tools.bench_engine import BARE, WARM_STEPS, Peer

WIDTHS = (1, 4, 16)
DATE = "2026-01-01"


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    widths: tuple[int, ...]
    context: int
    steps: int
    rounds: int


FULL, SHORT = Size(WIDTHS, 2048, 48, 3), Size((1, 4), 320, 4, 1)


@dataclass(slots=True)
class Report:
    """What was found; printed as it comes, except as JSON."""

    as_json: bool
    deadline: float
    lines: dict[str, Any] = field(default_factory=dict)
    failed: bool = False

    def add(self, name: str, value: Any, shown: str | None = None) -> None:
        """Keep a value and print its line."""
        self.lines[name] = value
        if not self.as_json:
            print(f"{name:<28} {value if shown is None else shown}", flush=True)

    def part(self, name: str, work: Callable[[], None]) -> None:
        """Do one part unless the time is over; a failure is a line and the next part goes on."""
        if time.monotonic() > self.deadline:
            self.add(name, None, "not measured: no time is left")
            return
        try:
            work()
        except (EngineError, ValueError, OSError) as error:
            self.failed = True
            self.add(name, str(error), f"FAILED: {error}")


class Subject:
    """The model on the devices, in a child of its own."""

    def __init__(self, path: Path, gpu_layers: str, size: Size) -> None:
        self.path, self.size = path, size
        self.engine = EngineProcess(LLAMA_COMMAND, new_engine_log_path())
        self.before = self._free()
        layers: Any = gpu_layers if gpu_layers in ("auto", "all") else int(gpu_layers)
        self.info: ModelInfo = self.engine.load(LoadOptions(str(path), layers, None, {}, DATE))

    def _free(self) -> int:
        return sum(device.memory_free or 0 for device in self.engine.build().devices if "gpu" in device.kind)

    def options(self, width: int, **changes: Any) -> ContextOptions:
        """Return a context of this width."""
        plain = ContextOptions(width, self.size.context, 512, 512, None, "auto", "f16", "f16", check="none")
        return replace(plain, **changes)

    def collect(self, requests: Sequence[Generate]) -> list[Event]:
        """Run requests to their ends."""
        for request in requests:
            self.engine.submit(request)
        return self.wait(SequenceEnded, len(requests))

    def wait(self, kind: type, count: int = 1) -> list[Event]:
        """Collect events until so many of this kind have come; raises `EngineError` when the child dies."""
        events: list[Event] = []
        while sum(isinstance(event, kind) for event in events) < count:
            events += self.engine.events(1.0)
            if events and isinstance(events[-1], EngineDied):
                raise EngineError(describe_death(events[-1]))
        return events

    # --- parts --------------------------------------------------------------------------------------------------

    def facts(self, report: Report) -> None:
        """Say what computes."""
        build, info = self.info.build, self.info
        report.add("versions", build.versions, ", ".join(f"{name} {value}" for name, value in build.versions.items()))
        for device in build.devices:
            free = "unknown" if device.memory_free is None else f"{device.memory_free / 2**30:.1f} GiB free"
            report.add(f"device {device.name}", asdict(device), f"{device.description}, {free}")
        report.add("features", build.system_information)
        report.add("model", info.description, f"{info.description}, {info.gpu_layers}/{info.layers} layers on a device")
        for warning in info.warnings:
            report.add("warning", warning)

    def exactness(self, report: Report, width: int) -> None:
        """Compare computations that should be equal, bit for bit."""
        opened = self.engine.open_context(self.options(width, check="full"))
        differences = dict(opened.exactness.differences)
        prompt, free = tuple(range(5, 60)), Free(self.size.steps)
        requests = [Generate(key, (*prompt, 60 + key), 40, (Forced((7, 8)), free)) for key in range(width)]
        plain = _tokens(self.collect(requests))
        self.engine.open_context(self.options(width, layers=tuple(range(self.info.capabilities.activation_layers))))
        read = _tokens(self.collect([replace(one, layers=(0,)) for one in requests]))
        differences["activations"] = max(
            abs(one.log_probability - other.log_probability) if one.id == other.id else float("inf")
            for one, other in zip(plain, read, strict=True)
        )
        exact = not any(differences.values())
        report.failed |= not exact
        shown = ", ".join(f"{name} {value:.2g}" for name, value in differences.items())
        report.add(f"exactness, width {width}", differences, "bit for bit" if exact else f"NOT exact: {shown}")

    def cancel(self, report: Report) -> None:
        """Time a cancel inside a long prompt and between steps."""
        self.engine.open_context(self.options(1))
        long = tuple(5 + number % 97 for number in range(self.size.context - 8))
        for name, request, begun in (
            ("cancel in a prompt, s", Generate(1, long, 0, (Free(4),)), PromptProgress),
            ("cancel between steps, s", Generate(2, long[:8], 0, (Forced(long[:-16]),)), Token),
        ):
            self.engine.submit(request)
            self.wait(begun)
            begin = time.monotonic()
            self.engine.cancel(request.key)
            self.wait(SequenceEnded)
            seconds = time.monotonic() - begin
            report.add(name, seconds, f"{seconds:.3f} (at most 1)")

    def memory(self, report: Report) -> None:
        """Compare what was taken with what `-ngl auto` counts on."""
        width = self.size.widths[-1]
        opened = self.engine.open_context(self.options(width))
        self.collect([Generate(1, tuple(range(5, 200)), 0, (Free(4),))])
        header = read_header(self.path)
        sizes = layer_sizes(header.tensors)
        layers, heads, kept, embedding = (
            header.integer(f"{header.architecture}.{name}") or 0
            for name in ("block_count", "attention.head_count", "attention.head_count_kv", "embedding_length")
        )
        head = embedding // max(1, heads)
        widths = [
            kept * (header.integer(f"{header.architecture}.attention.{name}_length") or head)
            for name in ("key", "value")
        ]
        blocks = layers if opened.gpu_layers == 0 else max(0, min(opened.gpu_layers, layers + 1) - 1)
        cache = kv_cache_bytes(width + STORES, self.size.context, blocks, *widths, "f16", "f16")
        if opened.gpu_layers:
            weights = 0 if sizes is None else sizes.offloaded(opened.gpu_layers)
            taken = self.before - self._free()
        else:
            weights, taken = self.info.file_bytes, resident_bytes(self.engine.process_id) or 0
        mebibytes = {"taken": taken >> 20, "weights": weights >> 20, "cache": cache >> 20}
        rest = mebibytes["taken"] - mebibytes["weights"] - mebibytes["cache"]
        shown = f"{taken >> 20} = weights {weights >> 20} + KV {cache >> 20} + {rest}"
        report.add(f"memory, width {width}, MiB", mebibytes, shown)

    def close(self) -> None:
        """End the child."""
        self.engine.close()


def pace(report: Report, name: str, model: str, options: EngineOptions, size: Size, bare_threads: int) -> None:
    """Time the own loop beside a bare one at every width, in turns.

    Args:
        report: takes the ratios.
        name: of the place.
        model: name or path.
        options: of the own loop; the bare one has the same layers.
        size: how much.
        bare_threads: of the bare loop.
    """
    resolved = resolve_model(model, load_registry())
    with Benchmark(resolved, options, new_engine_log_path()) as benchmark:
        for width in size.widths:
            if time.monotonic() > report.deadline:
                report.add(f"{name}, width {width}", None, "not measured: no time is left")
                continue
            opened = benchmark.open(width, 256)
            benchmark.engine.measure(0, WARM_STEPS)
            peer = Peer(BARE, str(resolved.path), width, bare_threads, opened.gpu_layers)
            try:
                ratios, rates = [], []
                for _ in range(size.rounds):
                    bare = peer.seconds(size.steps)
                    short, long = benchmark.run_seconds(width, size.steps, NoDisplay)
                    own = max(long - short, 1e-9)  # of short runs on a busy machine it can be below 0
                    ratios.append(bare / own)
                    rates.append(width * size.steps / own)
            finally:
                peer.close()
            found = {"own_to_bare": median(ratios), "tokens_per_second": max(rates), "threads": opened.threads}
            shown = f"own/bare {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}), {max(rates):.0f} tokens/s"
            report.add(f"{name}, width {width}", found, shown)


def _tokens(events: Sequence[Event]) -> list[Token]:
    """Return the tokens in order of key and position."""
    tokens = [event for event in events if isinstance(event, Token)]
    return sorted(tokens, key=lambda token: (token.key, token.position))


def main(arguments: Sequence[str]) -> int:
    """Check; 1 when something failed or is not exact, 2 without the model."""
    parser = argparse.ArgumentParser(prog="python -m tools.gpu_check", description=__doc__.partition("\n")[0])
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("-ngl", default="auto", help="layers on the devices: a number, auto or all")
    parser.add_argument("--seconds", type=float, default=570.0, help="time after which no further part is begun")
    parser.add_argument("--short", action="store_true", help="little of everything")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    chosen = parser.parse_args(arguments)
    size = SHORT if chosen.short else FULL
    report = Report(chosen.json, time.monotonic() + chosen.seconds)
    try:
        resolved = resolve_model(chosen.model, load_registry())
        subject = Subject(resolved.path, chosen.ngl, size)
    except (ModelError, ValueError) as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2
    try:
        report.part("facts", lambda: subject.facts(report))
        for width in size.widths:
            report.part(f"exactness, width {width}", lambda width=width: subject.exactness(report, width))  # type: ignore[misc]
        report.part("cancel", lambda: subject.cancel(report))
        report.part("memory", lambda: subject.memory(report))
        on_device = subject.info.gpu_layers > 0
    finally:
        subject.close()
    cores = physical_cores()
    if on_device:
        layers = subject.info.gpu_layers
        options = EngineOptions(gpu_layers=layers, threads=cores)
        report.part("device", lambda: pace(report, "device", chosen.model, options, size, cores))
    for threads in sorted({cores, max(1, cores - 1)}, reverse=True):
        options = EngineOptions(gpu_layers=0, threads=threads)
        name = f"CPU, {threads} of {cores} cores"
        report.part(name, lambda o=options, n=name: pace(report, n, chosen.model, o, size, cores))  # type: ignore[misc]
    if chosen.json:
        print(json.dumps({"failed": report.failed, **report.lines}, ensure_ascii=False))
    return int(report.failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
