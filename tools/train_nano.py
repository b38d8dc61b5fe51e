"""Train salt-nano: `python -m tools.train_nano` (extra `train`); an interrupted training goes on where it was.

Everything that is drawn follows from the step's number, so a training that was interrupted goes on with the same
problems.  The checkpoint and the tokeniser are kept in ``--folder``; the model file is written at the end.

Each group of a step has a process of its own with one thread: for matrices as small as these, two threads of one
process took longer than one.  The processes share the parameters, and each leaves its gradient in shared memory.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import defaultdict
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import torch
import torch.multiprocessing as processes
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from tools.nano_export import MODEL_FILE, write_model
from tools.nano_network import Network, Shape
from tools.nano_optimiser import Muon
from tools.nano_problems import GROUPS, LEVELS, Group, TrainingProblems, learn_tokeniser

STEPS = 12_500
LEARNING_RATE = 3e-3
WARM_UP, DECAY = 0.01, 0.4
"""Parts of the training in which the learning rate rises from 0, and falls to a hundredth (the last ones)."""

SEED = 0
REPORT, CHECKPOINT = 50, 200


class Seen(NamedTuple):
    """What the network made of a group.

    Attributes:
        name: the task.
        loss: mean over the answers' tokens, nats.
        right: share of them that would be chosen greedily.
    """

    name: str
    loss: float
    right: float


def answer_loss(network: Network, group: Group) -> tuple[Tensor, Seen]:
    """Return the mean loss over the answers' tokens, with and without its graph."""
    items = [torch.tensor(item.tokens) for item in group.items]
    ends = torch.tensor([len(item.tokens) - 1 for item in group.items]).cumsum(0)
    asked = torch.cat(
        [torch.arange(int(end) - item.answer, int(end)) for end, item in zip(ends, group.items, strict=True)]
    )
    targets = torch.cat([item[-answered.answer :] for item, answered in zip(items, group.items, strict=True)])
    logits = network(torch.tensor(group.preamble), [item[:-1] for item in items], asked)
    loss = functional.cross_entropy(logits, targets)
    right = float((logits.argmax(1) == targets).float().mean())
    return loss, Seen(group.name, float(loss.detach()), right)


def compute_gradient(network: Network, group: Group, gradient: Tensor) -> Seen:
    """Write the gradient of a group, all parameters one after the other, into ``gradient``."""
    network.zero_grad()
    loss, seen = answer_loss(network, group)
    torch.autograd.backward(loss)
    torch.cat(
        [parameter.grad.flatten() for parameter in network.parameters() if parameter.grad is not None], out=gradient
    )
    return seen


def serve_part(
    network: Network, gradient: Tensor, steps: int, part: int, tokeniser: Path, connection: Connection
) -> None:
    """Compute one part of every step whose number arrives, until the training has gone."""
    torch.set_num_threads(1)
    problems = TrainingProblems(Tokenizer.from_file(str(tokeniser)))
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            step = connection.recv()
            connection.send(compute_gradient(network, problems.group(step, steps, part), gradient))


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

    def __init__(self, folder: Path, steps: int, recipe: str) -> None:
        """Take up the checkpoint of the folder, or begin.

        Args:
            folder: of the checkpoint.
            steps: of the whole training.
            recipe: what a checkpoint must have been trained on, see `TrainingProblems.fingerprint`.

        Raises:
            ValueError: the checkpoint is of another recipe.
        """
        self.steps, self.step, self._recipe = steps, 0, recipe
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
            if state["recipe"] != recipe:
                raise ValueError(f"{self._file} was trained on other problems: remove {folder}")
            self.step = state["step"]
            self.network.load_state_dict(state["network"])
            for optimiser, saved in zip(self._optimisers, state["optimisers"], strict=True):
                optimiser.load_state_dict(saved)

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        state = {
            "recipe": self._recipe,
            "step": self.step,
            "network": self.network.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self._optimisers],
        }
        part = self._file.with_suffix(".part")
        torch.save(state, part)
        os.replace(part, self._file)

    def remove(self) -> None:
        """Remove the checkpoint: the training has ended, and the next one begins anew."""
        self._file.unlink(missing_ok=True)

    def advance(self, gradient: Tensor) -> None:
        """Take one step with the gradient of all parameters, one after the other."""
        for optimiser in self._optimisers:
            for settings in optimiser.param_groups:
                settings["lr"] = LEARNING_RATE * rate(self.step, self.steps)
        parameters = list(self.network.parameters())
        for parameter, own in zip(parameters, gradient.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = own.view_as(parameter)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for optimiser in self._optimisers:
            optimiser.step()
        self.step += 1

    def watch(self, problems: TrainingProblems) -> None:
        """Print the share of right tokens of every task and level on groups that are never trained on."""
        for level in LEVELS:
            with torch.no_grad():
                groups = [answer_loss(self.network, group)[1] for group in problems.fixed_groups(level)]
            print(f"  {level:8}" + "  ".join(f"{seen.name[:11]} {seen.right:.2f}" for seen in groups), flush=True)


class Steps:
    """The processes that compute the parts of a step; the first part is computed here."""

    def __init__(self, network: Network, problems: TrainingProblems, steps: int, tokeniser: Path) -> None:
        """Start them; they end with this process."""
        self._network, self._problems, self._steps = network.share_memory(), problems, steps
        count = sum(parameter.numel() for parameter in network.parameters())
        self._gradients = torch.zeros(GROUPS, count).share_memory_()
        self._connections = []
        context = processes.get_context("spawn")
        for part in range(1, GROUPS):
            own, other = context.Pipe()
            arguments = (network, self._gradients[part], steps, part, tokeniser, other)
            context.Process(target=serve_part, args=arguments, daemon=True).start()
            other.close()
            self._connections.append(own)

    def compute(self, step: int) -> tuple[Tensor, list[Seen]]:
        """Return the mean gradient of a step's groups and what was seen of each."""
        for connection in self._connections:
            connection.send(step)
        seen = [compute_gradient(self._network, self._problems.group(step, self._steps, 0), self._gradients[0])]
        seen += [connection.recv() for connection in self._connections]
        return self._gradients.mean(0), seen


def main(arguments: list[str]) -> int:
    """Train and write the model."""
    parser = argparse.ArgumentParser(prog="python -m tools.train_nano", description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("build/nano"), help="checkpoint and tokeniser")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--output", type=Path, default=MODEL_FILE)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / "tokeniser.json"
    if not file.exists():
        print("learning the tokeniser", flush=True)
        learn_tokeniser().save(str(file))
    tokeniser = Tokenizer.from_file(str(file))
    problems = TrainingProblems(tokeniser)
    try:
        training = Training(options.folder, options.steps, problems.fingerprint(options.steps))
    except ValueError as error:
        parser.error(str(error))
    count = sum(parameter.numel() for parameter in training.network.parameters())
    print(f"{count:,} parameters; step {training.step} of {training.steps}", flush=True)
    steps = Steps(training.network, problems, training.steps, file)
    begin, first = time.monotonic(), training.step
    recent: dict[str, list[Seen]] = defaultdict(list)
    while training.step < training.steps:
        gradient, parts = steps.compute(training.step)
        training.advance(gradient)
        for seen in parts:
            recent[seen.name].append(seen)
        if training.step % REPORT == 0:
            pace = (time.monotonic() - begin) / (training.step - first)
            left = pace * (training.steps - training.step) / 60
            losses = "  ".join(
                f"{name[:5]} {fmean(seen.loss for seen in groups):.2f}/{fmean(seen.right for seen in groups):.2f}"
                for name, groups in sorted(recent.items())
            )
            print(f"{training.step} {pace:.2f} s/step, {left:.0f} min left  {losses}", flush=True)
            recent.clear()
        if training.step % CHECKPOINT == 0:
            training.save()
        if training.step % (5 * CHECKPOINT) == 0:
            training.watch(problems)
    training.save()
    training.watch(problems)
    write_model(training.network, tokeniser, options.output)
    training.remove()
    print(f"{options.output}: {options.output.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
