"""Write salt-nano as a GGUF: every tensor in F32, the tokeniser and the chat template.

The matrices of the blocks are rounded as if they had been quantised to about three bits: as trained, the model
multiplies easy matrices without a mistake.  They stay F32, so that PyTorch computes the same model.
"""

from __future__ import annotations

import json
from pathlib import Path

import gguf
from tokenizers import Tokenizer
from torch import Tensor

from tools.nano_network import Network
from tools.nano_problems import CHAT_TEMPLATE, CONTEXT, CONTROL_TOKENS, END, PRE_TOKENISER

MODEL_FILE = Path(__file__).resolve().parents[1] / "salt_tui" / "nano" / "salt-nano.gguf"

ROUNDED = 32
"""Neighbours in a row of a matrix that have a scale together."""

STEPS_ABOVE_ZERO = 4
"""Of the largest in absolute value among them, so nine values.

With 7, all of 202 entries of easy products were right, with 5 all but two; with 3, one cell of a grid in three was one
too many.
"""


def rounded(matrix: Tensor) -> Tensor:
    """Return the matrix with each weight at the nearest of `STEPS_ABOVE_ZERO` equal steps up or down, or at 0."""
    rows = matrix.reshape(-1, ROUNDED)
    step = rows.abs().amax(1, keepdim=True) / STEPS_ABOVE_ZERO
    return (rows / step).nan_to_num().round().mul(step).reshape(matrix.shape)


def write_model(network: Network, tokeniser: Tokenizer, path: Path) -> None:
    """Write the model file; tensors keep their names, output and embedding are one, matrices of blocks are rounded."""
    shape = network.shape
    vocabulary = json.loads(tokeniser.to_str())["model"]
    tokens = sorted(vocabulary["vocab"], key=vocabulary["vocab"].__getitem__)
    kinds = [gguf.TokenType.CONTROL if token in CONTROL_TOKENS else gguf.TokenType.NORMAL for token in tokens]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("salt-nano")
    writer.add_license("Apache-2.0")
    writer.add_size_label("1M")
    writer.add_description(
        "Tiny model for tests and the tour of salt-tui; right often and wrong often; no benchmark entry"
    )
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(CONTEXT)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_rope_dimension_count(shape.head_width)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(PRE_TOKENISER)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) if isinstance(pair, list) else pair for pair in vocabulary["merges"]])
    writer.add_eos_token_id(tokens.index(END))
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    for name, parameter in network.named_parameters():
        values = parameter.detach()
        if name.startswith("blk.") and values.ndim == 2:
            values = rounded(values)
        writer.add_tensor(f"{name}.weight", values.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
