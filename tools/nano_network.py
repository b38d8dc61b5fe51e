"""The network of salt-nano in PyTorch: Llama's blocks, as llama.cpp's ``llama`` architecture computes them.

Rotary pairs are neighbours (2i, 2i + 1), so the weights go into a GGUF as they are.  Groups of sequences that share
their first tokens are evaluated with those tokens once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the network; the defaults are salt-nano's."""

    vocabulary: int = 1024
    width: int = 128
    layers: int = 4
    heads: int = 4
    feed_forward: int = 384
    rope_base: float = 10_000.0
    epsilon: float = 1e-5

    @property
    def head_width(self) -> int:
        """Channels of one head."""
        return self.width // self.heads


class Block(nn.Module):
    """Attention and feed-forward, each on normalised input and added to it."""

    def __init__(self, shape: Shape, generator: torch.Generator) -> None:
        super().__init__()
        self.shape = shape
        width, inner = shape.width, shape.feed_forward
        out = (2 * shape.layers) ** -0.5

        def matrix(rows: int, columns: int, scale: float = 1.0) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) * scale * columns**-0.5)

        self.attn_norm, self.ffn_norm = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.attn_q, self.attn_k, self.attn_v = (matrix(width, width) for _ in range(3))
        self.attn_output = matrix(width, width, out)
        self.ffn_gate, self.ffn_up = matrix(inner, width), matrix(inner, width)
        self.ffn_down = matrix(width, inner, out)

    def forward(
        self, x: Tensor, rotation: tuple[Tensor, Tensor], preamble: int, packed: Tensor, mask: Tensor
    ) -> Tensor:
        """Advance the tokens of a group, shape ``(preamble + all items, width)``.

        Args:
            x: hidden states: the preamble, then the items one after the other without padding.
            rotation: cosine and sine per token, shape ``(tokens, 1, head width / 2)``.
            preamble: how many tokens all items share.
            packed: of each place ``(item, position)``, flattened, whether it holds a token.
            mask: which keys (preamble, then the item's own) a position of an item sees.
        """
        shape = self.shape
        states = functional.rms_norm(x, (shape.width,), self.attn_norm, shape.epsilon)
        joined = torch.cat((self.attn_q, self.attn_k, self.attn_v))
        q, k, v = functional.linear(states, joined).view(-1, 3, shape.heads, shape.head_width).unbind(1)
        q, k = _rotated(q, rotation), _rotated(k, rotation)
        own = functional.scaled_dot_product_attention(
            *(part[:preamble].transpose(0, 1).unsqueeze(0) for part in (q, k, v)), is_causal=True
        )
        items, length = packed.shape
        places = packed.flatten().nonzero().squeeze(1)

        def padded(part: Tensor) -> Tensor:
            empty = part.new_zeros(items * length, shape.heads, shape.head_width)
            filled = empty.index_copy(0, places, part[preamble:])
            return filled.view(items, length, shape.heads, shape.head_width).transpose(1, 2)

        def with_preamble(part: Tensor) -> Tensor:
            shared = part[:preamble].transpose(0, 1).unsqueeze(0).expand(items, -1, -1, -1)
            return torch.cat((shared, padded(part)), dim=2)

        mixed = functional.scaled_dot_product_attention(padded(q), with_preamble(k), with_preamble(v), attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(items * length, shape.width).index_select(0, places)
        own = own.squeeze(0).transpose(0, 1).reshape(preamble, shape.width)
        x = x + functional.linear(torch.cat((own, mixed)), self.attn_output)
        states = functional.rms_norm(x, (shape.width,), self.ffn_norm, shape.epsilon)
        gate, up = functional.linear(states, torch.cat((self.ffn_gate, self.ffn_up))).chunk(2, dim=1)
        return x + functional.linear(functional.silu(gate) * up, self.ffn_down)


class Network(nn.Module):
    """Token ids in, logits out; the embedding is also the output matrix."""

    def __init__(self, shape: Shape, generator: torch.Generator) -> None:
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Parameter(torch.randn(shape.vocabulary, shape.width, generator=generator) * 0.05)
        self.output_norm = nn.Parameter(torch.ones(shape.width))
        self.blk = nn.ModuleList(Block(shape, generator) for _ in range(shape.layers))

    def forward(self, preamble: Tensor, items: list[Tensor], asked: Tensor | None = None) -> Tensor:
        """Return logits, shape ``(tokens of all items, vocabulary)`` or those of ``asked`` alone.

        Args:
            preamble: ids of the tokens that every item has before it; at least one.
            items: ids of each item.
            asked: which of the items' tokens, counted through all items.
        """
        shape = self.shape
        shared = preamble.numel()
        lengths = torch.tensor([item.numel() for item in items])
        longest = int(lengths.max())
        packed = torch.arange(longest)[None, :] < lengths[:, None]
        seen = torch.ones(longest, shared + longest, dtype=torch.bool).tril(shared)
        positions = torch.cat([torch.arange(shared), *(shared + torch.arange(int(length)) for length in lengths)])
        rotation = self._rotation(positions)
        x = functional.embedding(torch.cat((preamble, *items)), self.token_embd)
        for block in self.blk:
            x = block(x, rotation, shared, packed, seen)
        x = x[shared:] if asked is None else x.index_select(0, shared + asked)
        x = functional.rms_norm(x, (shape.width,), self.output_norm, shape.epsilon)
        return functional.linear(x, self.token_embd)

    def _rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        half = self.shape.head_width // 2
        frequencies = self.shape.rope_base ** (-torch.arange(half) / half)
        angles = (positions[:, None] * frequencies)[:, None, :]
        return angles.cos(), angles.sin()


def _rotated(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    cosine, sine = rotation
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), dim=-1).flatten(-2)
