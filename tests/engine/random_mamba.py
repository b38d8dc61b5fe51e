"""A model with a recurrent state, of random weights and with salt-nano's vocabulary.  Not a test itself."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

WIDTH, INNER, STATE, STEP_RANK, KERNEL, BLOCKS = 32, 64, 16, 2, 4, 2


def write_mamba(path: Path, vocabulary: Path) -> Path:
    """Write the file; the vocabulary is that of another model's file."""
    fields = [field for field in gguf.GGUFReader(vocabulary).fields.values() if field.name.startswith("tokenizer.ggml")]
    tokens = len(next(field for field in fields if field.name.endswith(".tokens")).contents())
    writer = gguf.GGUFWriter(path, "mamba")
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(BLOCKS)
    writer.add_ssm_conv_kernel(KERNEL)
    writer.add_ssm_inner_size(INNER)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(STEP_RANK)
    writer.add_layer_norm_rms_eps(1e-5)
    for field in fields:
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(field.name, field.contents())
        else:
            writer.add_key_value(field.name, field.contents(), field.types[0])
    generator = np.random.default_rng(1)

    def drawn(*shape: int, scale: float = 0.3) -> npt.NDArray[np.float32]:
        return generator.normal(0.0, scale, shape).astype(np.float32)

    writer.add_tensor("token_embd.weight", drawn(tokens, WIDTH, scale=1.0))
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", drawn(tokens, WIDTH, scale=0.5))
    for block in range(BLOCKS):
        tensors = {
            "attn_norm.weight": np.ones(WIDTH, np.float32),
            "ssm_in.weight": drawn(2 * INNER, WIDTH),
            "ssm_conv1d.weight": drawn(INNER, KERNEL),
            "ssm_conv1d.bias": drawn(INNER),
            "ssm_x.weight": drawn(STEP_RANK + 2 * STATE, INNER),
            "ssm_dt.weight": drawn(INNER, STEP_RANK),
            "ssm_dt.bias": drawn(INNER),
            "ssm_a": -np.exp(drawn(INNER, STATE)),
            "ssm_d": drawn(INNER),
            "ssm_out.weight": drawn(WIDTH, INNER),
        }
        for name, values in tensors.items():
            writer.add_tensor(f"blk.{block}.{name}", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
