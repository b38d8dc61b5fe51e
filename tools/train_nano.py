"""Train salt-nano: `python -m tools.train_nano` (extra `train`); an interrupted training goes on where it was.

Everything that is drawn follows from the step's number, so a training that was interrupted goes on with the same
problems.  The checkpoint and the tokeniser are kept in ``--folder``; the model file is written at the end.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from tools.nano_export import MODEL_FILE, write_model
from tools.nano_network import Network, Shape
from tools.nano_optimiser import Muon
from tools.nano_problems import LEVELS, Group, TrainingProblems, learn_tokeniser

STEPS = 6000
GROUPS = 2
LEARNING_RATE = 3e-3
WARM_UP, DECAY = 0.01, 0.4
"""Parts of the training in which the learning rate rises from 0, and falls to a hundredth (the last ones)."""

SEED = 0
REPORT, CHECKPOINT = 50, 200


def losses(network: Network, group: Group) -> tuple[Tensor, float]:
    """Return the mean loss over the answers' tokens, nats, and the share of them that would be chosen greedily."""
    items = [torch.tensor(item.tokens) for item in group.items]
    logits = network(torch.tensor(group.preamble), [item[:-1] for item in items])
    ends = torch.tensor([len(item.tokens) - 1 for item in group.items]).cumsum(0)
    asked = torch.cat(
        [torch.arange(int(end) - item.answer, int(end)) for end, item in zip(ends, group.items, strict=True)]
    )
    targets = torch.cat([item[-answered.answer :] for item, answered in zip(items, group.items, strict=True)])
    chosen = logits.index_select(0, asked)
    right = float((chosen.argmax(1) == targets).float().mean())
    return functional.cross_entropy(chosen, targets), right


def rate(step: int, steps: int) -> float:
    """Return the factor of the learning rate: up, level, and down along half a cosine."""
    warm, level = WARM_UP * steps, (1 - DECAY) * steps
    if step < warm:
        return (step + 1) / warm
    if step < level:
        return 1.0
    return 0.01 + 0.99 * (1 + math.cos(math.pi * (step - level) / (steps - level))) / 2


class Training:
    """Network and optimisers: Muon for the matrices of the blocks, AdamW for the rest."""

    def __init__(self, folder: Path, steps: int) -> None:
        """Take up the checkpoint of the folder, or begin."""
        self.steps, self.step = steps, 0
        self._file = folder / "checkpoint.pt"
        self.network = Network(Shape(), torch.Generator().manual_seed(SEED))
        matrices = [p for p in self.network.blk.parameters() if p.ndim == 2]
        rest = [p for p in self.network.parameters() if all(p is not matrix for matrix in matrices)]
        self._optimisers: list[torch.optim.Optimizer] = [
            Muon(matrices, lr=LEARNING_RATE, momentum=0.95, weight_decay=0.02),
            torch.optim.AdamW(rest, lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0),
        ]
        if self._file.exists():
            state = torch.load(self._file, weights_only=True)
            self.step = state["step"]
            self.network.load_state_dict(state["network"])
            for optimiser, saved in zip(self._optimisers, state["optimisers"], strict=True):
                optimiser.load_state_dict(saved)

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        state = {
            "step": self.step,
            "network": self.network.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self._optimisers],
        }
        part = self._file.with_suffix(".part")
        torch.save(state, part)
        os.replace(part, self._file)

    def advance(self, groups: list[Group]) -> dict[str, tuple[float, float]]:
        """Take one step; return loss and share of right tokens per task."""
        for optimiser in self._optimisers:
            optimiser.zero_grad()
            for settings in optimiser.param_groups:
                settings["lr"] = LEARNING_RATE * rate(self.step, self.steps)
        seen = {}
        for group in groups:
            loss, right = losses(self.network, group)
            torch.autograd.backward(loss / len(groups))
            seen[group.name] = (float(loss.detach()), right)
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for optimiser in self._optimisers:
            optimiser.step()
        self.step += 1
        return seen

    def watch(self, problems: TrainingProblems) -> None:
        """Print the share of right tokens of every task and level on groups that are never trained on."""
        for level in LEVELS:
            with torch.no_grad():
                shares = {group.name: losses(self.network, group)[1] for group in problems.fixed_groups(level)}
            print(f"  {level:8}" + "  ".join(f"{name[:11]} {share:.2f}" for name, share in shares.items()), flush=True)


def tokeniser_of(folder: Path) -> Tokenizer:
    """Return the folder's tokeniser, learnt when there is none."""
    file = folder / "tokeniser.json"
    if not file.exists():
        print("learning the tokeniser", flush=True)
        learn_tokeniser().save(str(file))
    return Tokenizer.from_file(str(file))


def main(arguments: list[str]) -> int:
    """Train and write the model."""
    parser = argparse.ArgumentParser(prog="python -m tools.train_nano", description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("build/nano"), help="checkpoint and tokeniser")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, default=MODEL_FILE)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    options.folder.mkdir(parents=True, exist_ok=True)
    tokeniser = tokeniser_of(options.folder)
    problems = TrainingProblems(tokeniser)
    training = Training(options.folder, options.steps)
    count = sum(parameter.numel() for parameter in training.network.parameters())
    print(f"{count:,} parameters; step {training.step} of {training.steps}", flush=True)
    begin, first = time.monotonic(), training.step
    recent: dict[str, list[tuple[float, float]]] = defaultdict(list)
    while training.step < training.steps:
        for name, figures in training.advance(problems.groups(training.step, training.steps, GROUPS)).items():
            recent[name].append(figures)
        if training.step % REPORT == 0:
            pace = (time.monotonic() - begin) / (training.step - first)
            left = pace * (training.steps - training.step) / 60
            means = {
                name: [sum(column) / len(column) for column in zip(*rows, strict=True)] for name, rows in recent.items()
            }
            losses_now = "  ".join(f"{name[:5]} {means[name][0]:.2f}/{means[name][1]:.2f}" for name in sorted(means))
            print(f"{training.step} {pace:.2f} s/step, {left:.0f} min left  {losses_now}", flush=True)
            recent.clear()
        if training.step % CHECKPOINT == 0:
            training.save()
        if training.step % (5 * CHECKPOINT) == 0:
            training.watch(problems)
    training.save()
    training.watch(problems)
    write_model(training.network, tokeniser, options.output)
    print(f"{options.output}: {options.output.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
