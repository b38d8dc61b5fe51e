"""Check salt-nano and write its card: `python -m tools.check_nano` (extra `train`); 1 when a requirement fails.

The problems are those that the training leaves out (`tools.nano_problems.CHECK_SEED`), asked through the program itself
with its usual worked examples.  `--write` puts the figures into the card; without it they are only printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer

from salt_tui.commands.computing import NoDisplay
from salt_tui.engine.models import load_registry, resolve_model
from salt_tui.engine.threads import physical_cores
from salt_tui.paths import new_engine_log_path
from salt_tui.runner.benchmark import Benchmark
from salt_tui.runner.request import EngineOptions
from salt_tui.store.queries import open_queries
from tasks.prompts import DEFAULT_SHOTS, conversation
from tasks.registry import TASKS
from tasks.task import Problem
from tools.nano_export import MODEL_FILE
from tools.nano_network import Network, Shape
from tools.nano_problems import ASSISTANT, CHECK_LIMIT, CHECK_SEED, LEVELS, METHOD, byte_level_bpe, rendered

CARD = MODEL_FILE.with_name("CARD.md")
BEGIN, END_OF_FIGURES = "<!-- figures: python -m tools.check_nano --write -->\n", "<!-- end of figures -->\n"

LONG_DNA = 30
WIDTH = 16
STEPS = 200
COMPARED = 6
"""Answers of each task that PyTorch computes again."""

FIRST, LAST = 0.4, 0.95
"""The range in which a task's atom precision at `easy` is useful: neither hopeless nor solved."""


@dataclass(frozen=True, slots=True)
class LevelFigures:
    """What one run found.

    Attributes:
        run: its number.
        tasks: rates and counts by task, as ``salt-tui run --json`` gives them.
        fenced: answers whose region is closed by a fence.
        answers: all of them.
    """

    run: int
    tasks: dict[str, Any]
    fenced: int
    answers: int


def evaluate(model: Path, database: Path, tasks: str, level: str, limit: int, *parameters: str) -> LevelFigures:
    """Run ``salt-tui run`` on the problems of the check and read what it stored.

    Without flash attention and with a KV cache in float32: half precision in either moves log-probabilities by up to
    0.04 nats.
    """
    options = [item for parameter in parameters for item in ("--param", parameter)]
    command = [
        *(sys.executable, "-m", "salt_tui", "run", "-m", str(model), "--tasks", tasks, "--difficulty", level),
        *("--limit", str(limit), "--seed", str(CHECK_SEED), "-np", str(WIDTH), "--db", str(database)),
        *("-fa", "off", "-ctk", "f32", "-ctv", "f32", "--display", "none", "--json", *options),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"salt-tui run ended with {done.returncode}: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    with open_queries(database) as queries:
        answers = queries.answers(found["run"])
    fenced = sum(answer.extraction == "fenced" for answer in answers)
    return LevelFigures(found["run"], found["tasks"], fenced, len(answers))


def network_of(model: Path) -> tuple[Network, Tokenizer]:
    """Read network and tokeniser back from the model file."""
    reader = gguf.GGUFReader(model)
    tokens = [str(token) for token in reader.fields["tokenizer.ggml.tokens"].contents()]
    merges = [tuple(str(merge).split(" ")) for merge in reader.fields["tokenizer.ggml.merges"].contents()]
    network = Network(Shape(vocabulary=len(tokens)), torch.Generator())
    values = {
        tensor.name.removesuffix(".weight"): torch.tensor(np.array(tensor.data, np.float32))
        for tensor in reader.tensors
    }
    network.load_state_dict(values)
    return network, byte_level_bpe({token: number for number, token in enumerate(tokens)}, merges)


def compare_with_pytorch(model: Path, database: Path, run: int) -> tuple[int, int, float]:
    """Compute stored answers again with PyTorch.

    Returns:
        Tokens compared; tokens that PyTorch would not choose; largest difference of a log-probability, nats.
    """
    network, tokeniser = network_of(model)
    compared, other, largest = 0, 0, 0.0
    taken: Counter[str] = Counter()
    with open_queries(database) as queries, torch.no_grad():
        for answer in queries.answers(run):
            task = answer.problem.task
            taken[task] += 1
            if taken[task] > COMPARED or answer.generation is None:
                continue
            prompt = list(queries.prompt(answer.generation))
            tokens = [token.record for token in queries.tokens(answer.generation)]
            ids = [token.id for token in tokens]
            stored = torch.tensor([token.log_probability for token in tokens], dtype=torch.float64)
            asked = answer.problem
            problem = Problem(task, asked.text, asked.reference, asked.difficulty, asked.seed)
            turns = conversation(TASKS[task], problem, METHOD, DEFAULT_SHOTS)
            text = rendered([(turn.role, turn.content) for turn in turns]) + ASSISTANT
            if tokeniser.encode(text).ids != prompt:
                sys.exit(f"{task}: llama.cpp and tokenizers cut the prompt of answer {answer.problem.position} unlike")
            logits = network(torch.tensor(prompt[:1]), [torch.tensor(prompt[1:] + ids[:-1])])[len(prompt) - 2 :]
            chosen = torch.log_softmax(logits.double(), 1)
            other += int((chosen.argmax(1) != torch.tensor(ids)).sum())
            difference = chosen[torch.arange(len(ids)), torch.tensor(ids)] - stored
            largest = max(largest, float(difference.abs().max()))
            compared += len(ids)
    return compared, other, largest


def tokens_per_second(model: Path) -> float:
    """Return answer tokens per second at `WIDTH` with everything stored, of decoding alone."""
    resolved = resolve_model(str(model), load_registry())
    with Benchmark(resolved, EngineOptions(threads=physical_cores(), gpu_layers=0), new_engine_log_path()) as benchmark:
        benchmark.open(WIDTH, 512)
        times = [benchmark.run_seconds(WIDTH, STEPS, NoDisplay) for _ in range(3)]
    short, long = (min(column) for column in zip(*times, strict=True))
    return WIDTH * STEPS / (long - short)


def requirements(levels: dict[str, LevelFigures], long_dna: LevelFigures) -> list[tuple[str, bool]]:
    """Return what the model has to be able to do, and whether it is."""
    easy = levels["easy"].tasks
    useful = [name for name, task in easy.items() if FIRST <= (task["precision"] or 0.0) <= LAST]
    both = [name for name, task in easy.items() if 0 < task["correct"] < task["atoms"]]
    fenced = sum(level.fenced for level in levels.values()) / sum(level.answers for level in levels.values())
    dna = long_dna.tasks["dna_translation"]
    return [
        (f"easy: atom precision between {FIRST} and {LAST} on {len(useful)} tasks (at least 5)", len(useful) >= 5),
        (f"easy: right and wrong atoms on {len(both)} of {len(TASKS)} tasks", len(both) == len(TASKS)),
        (f"answers between fences: {fenced:.1%} (at least 95 %)", fenced >= 0.95),
        (
            f"DNA of {LONG_DNA} codons: {dna['correct']} of {dna['atoms']} atoms right (some, not all)",
            0 < dna["correct"] < dna["atoms"],
        ),
    ]


def table(levels: dict[str, LevelFigures]) -> list[str]:
    """Return the figures per task and level as Markdown."""
    lines = ["| task | level | answers | atoms | precision | recall | ECE | AUROC |", "| --- | --- |" + " ---: |" * 6]
    for name in TASKS:
        for level, figures in levels.items():
            task = figures.tasks[name]
            rates = (task[rate] for rate in ("precision", "recall", "ece", "auroc_macro"))
            cells = ("–" if rate is None else f"{rate:.2f}" for rate in rates)
            lines.append(f"| {name} | {level} | {task['answers']} | {task['atoms']} | {' | '.join(cells)} |")
    return lines


def main(arguments: list[str]) -> int:
    """Print the figures and whether the requirements hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.check_nano", description=__doc__.partition("\n")[0])
    parser.add_argument("-m", "--model", type=Path, default=MODEL_FILE)
    parser.add_argument("--limit", type=int, default=CHECK_LIMIT, help="problems per task and level")
    parser.add_argument("--write", action="store_true", help="put the figures into the card")
    options = parser.parse_args(arguments)
    limit = min(options.limit, CHECK_LIMIT)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "check.db"
        levels = {level: evaluate(options.model, database, "all", level, limit) for level in LEVELS}
        long_dna = evaluate(options.model, database, "dna_translation", "medium", limit, f"codons={LONG_DNA}")
        compared, other, largest = compare_with_pytorch(options.model, database, levels["easy"].run)
    found = requirements(levels, long_dna)
    found.append((f"PyTorch chooses the same token {compared - other} of {compared} times", other == 0))
    found.append((f"log-probabilities differ by at most {largest:.1e} nats (1e-2)", largest <= 1e-2))
    speed = tokens_per_second(options.model)
    figures = [*table(levels), "", *(f"- {text}{'' if holds else ': does not hold'}" for text, holds in found)]
    print("\n".join(figures))
    print(f"- {speed:,.0f} tokens/s at width {WIDTH}, everything stored (at least 1,500)")
    if options.write:
        before, _, rest = CARD.read_text().partition(BEGIN)
        after = rest.partition(END_OF_FIGURES)[2]
        CARD.write_text(before + BEGIN + "\n" + "\n".join(figures) + "\n\n" + END_OF_FIGURES + after)
    return 0 if all(holds for _, holds in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
