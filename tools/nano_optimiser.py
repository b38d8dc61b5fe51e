"""Muon in float32: momentum whose matrices are made nearly orthogonal before each step.

`torch.optim.Muon` does this in bfloat16, which a CPU without such instructions emulates: 1.5 s a step for salt-nano's
28 matrices, where float32 and matrices of one shape together take 0.03 s.

Source: Keller Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024); the factor of the
learning rate is that of "Muon is Scalable for LLM Training" (arXiv 2502.16982), equation 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_MATCH_ADAMW = 0.2


class Muon(torch.optim.Optimizer):
    """Steps of one size in every direction of a matrix, with Nesterov momentum and decoupled weight decay."""

    def __init__(self, matrices: Iterable[nn.Parameter], lr: float, momentum: float, weight_decay: float) -> None:
        """Take two-dimensional parameters only."""
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Take one step; every parameter must have a gradient."""
        for settings in self.param_groups:
            alike: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for matrix in settings["params"]:
                alike[matrix.shape].append(matrix)
            for shape, matrices in alike.items():
                updates = orthogonal(torch.stack([self._momentum(matrix, settings["momentum"]) for matrix in matrices]))
                size = settings["lr"] * _MATCH_ADAMW * max(shape) ** 0.5
                for matrix, update in zip(matrices, updates, strict=True):
                    matrix.mul_(1 - settings["lr"] * settings["weight_decay"]).sub_(update, alpha=size)

    def _momentum(self, matrix: nn.Parameter, momentum: float) -> Tensor:
        assert matrix.grad is not None
        state = self.state[matrix]
        if not state:
            state["buffer"] = torch.zeros_like(matrix)
        buffer: Tensor = state["buffer"].lerp_(matrix.grad, 1 - momentum)
        return matrix.grad.lerp(buffer, momentum)


def orthogonal(matrices: Tensor) -> Tensor:
    """Bring all singular values of each matrix near 1, shape ``(number, rows, columns)``; zeros stay zeros."""
    wide = matrices.mT if matrices.shape[1] > matrices.shape[2] else matrices
    x = wide / (wide.norm(dim=(1, 2), keepdim=True) + 1e-7)
    first, third, fifth = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        square = x @ x.mT
        x = first * x + (third * square + fifth * square @ square) @ x
    return x.mT if matrices.shape[1] > matrices.shape[2] else x
