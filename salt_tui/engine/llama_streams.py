"""KV streams of a llama.cpp context: the `Streams` that the decoding loop computes on."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llama_cpp
import numpy as np
import numpy.typing as npt

from salt_tui.engine.errors import ContextError
from salt_tui.engine.interruption import Interruption
from salt_tui.engine.kv_memory import BYTES_PER_VALUE, available_memory, kv_cache_bytes
from salt_tui.engine.llama_activations import BlockOutputs
from salt_tui.engine.llama_log import LlamaLog
from salt_tui.engine.llama_model import LlamaModel
from salt_tui.engine.options import ContextOptions, check_layers, check_width
from salt_tui.engine.statistics import Logits
from salt_tui.engine.streams import STORES, DecodeError, Vectors
from salt_tui.engine.threads import suitable_threads

_TYPES = {"f32": 0, "f16": 1, "bf16": 30, "q8_0": 8, "q4_0": 2, "q4_1": 3, "iq4_nl": 20, "q5_0": 6, "q5_1": 7}
"""ggml's numbers of the cache types."""

_FLOATS = ("f32", "f16", "bf16")
_FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}
_MOST_STREAMS = 256  # llama.cpp's LLAMA_MAX_SEQ
_SMALLEST_CONTEXT = 2  # one token of prompt, one of answer


class ContextRefusedError(ContextError):
    """llama.cpp could not make a context of a valid shape, mostly because memory is short."""


class _Batch:
    """A `llama_batch` whose arrays are numpy's: it is filled without a loop in Python."""

    def __init__(self, size: int) -> None:
        self.tokens = np.zeros(size, np.int32)
        self.positions = np.zeros(size, np.int32)
        self.streams = np.zeros(size, np.int32)
        self.logits = np.zeros(size, np.int8)
        self._counts = np.ones(size, np.int32)
        step = self.streams.itemsize
        self._stream_pointers = np.arange(size, dtype=np.uintp) * step + self.streams.ctypes.data
        self.structure = llama_cpp.llama_batch(
            n_tokens=size,
            token=_pointer(self.tokens, llama_cpp.llama_token),
            embd=None,
            pos=_pointer(self.positions, llama_cpp.llama_pos),
            n_seq_id=_pointer(self._counts, ctypes.c_int32),
            seq_id=_pointer(self._stream_pointers, ctypes.POINTER(llama_cpp.llama_seq_id)),
            logits=_pointer(self.logits, ctypes.c_int8),
        )


def _pointer(array: npt.NDArray[Any], kind: Any) -> Any:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))


def _bytes(data: bytearray) -> Any:
    return (ctypes.c_uint8 * len(data)).from_buffer(data)


class LlamaStreams:
    """One context with ``width + 1`` separate KV streams; see `Streams`."""

    def __init__(self, model: LlamaModel, options: ContextOptions, interruption: Interruption, log: LlamaLog) -> None:
        """Make the context.

        Raises:
            ContextError: the options are no valid shape, or need more memory than there is.
            ContextRefusedError: llama.cpp cannot make the context.
        """
        _check(options)
        check_layers(options.layers, model.layers)
        _check_memory(options, model)
        self.width = options.width
        self.context = options.room
        self.vocabulary_size = model.vocabulary.size
        self.can_cut = model.can_cut
        self.layers = options.layers
        self._outputs: BlockOutputs | None = None
        if options.layers:
            self._outputs = BlockOutputs(options.layers, model.embedding_width, model.layers - 1)
        self.threads = options.threads or suitable_threads(model.parameters)
        parameters = self._parameters(options, interruption)
        log.clear()
        self._context = llama_cpp.llama_init_from_model(model.pointer, parameters)
        if not self._context:
            raise ContextRefusedError(
                f"llama.cpp cannot make a context of {options.width + STORES} x {options.context} tokens "
                f"({log.reason()}): lower -c, -np or -ngl, or change -ctk, -ctv or -fa"
            )
        self.batch = llama_cpp.llama_n_batch(self._context)
        self.micro_batch = llama_cpp.llama_n_ubatch(self._context)
        # A prompt is handed over one micro-batch at a time: the CUDA and Vulkan backends never ask the abort
        # callback, so there a cancel takes effect between two calls.  The library's size, not the one asked for:
        # it is the one that is stored, and a resumed run has to cut at the same places.
        self.chunk = self.micro_batch
        self.flash_attention = _resolved_flash_attention(options, log)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._prompt = _Batch(self.chunk)
        self._step = _Batch(self.width)
        self._step.streams[:] = np.arange(self.width)
        self._step.logits[:] = 1
        self._views: dict[tuple[int, int], Logits] = {}
        self._check_outputs()

    def _parameters(self, options: ContextOptions, interruption: Interruption) -> Any:
        parameters = llama_cpp.llama_context_default_params()
        streams = options.width + STORES
        parameters.n_ctx = options.room * streams  # the library rounds each stream up, at least to 256
        parameters.n_seq_max = streams
        parameters.n_batch = max(options.batch, options.width)
        parameters.n_ubatch = max(min(options.micro_batch, options.batch), options.width)
        # One row per stream at most: the default reserves logits for every token of a micro-batch, 0.5 GB with a
        # vocabulary of 262,144.
        parameters.n_outputs_max = streams
        parameters.n_threads = parameters.n_threads_batch = self.threads
        parameters.type_k, parameters.type_v = _TYPES[options.key_type], _TYPES[options.value_type]
        parameters.flash_attn_type = _FLASH_ATTENTION[options.flash_attention]
        parameters.kv_unified = False
        parameters.swa_full = True  # whole streams can be copied, and nothing of a preamble is evicted
        parameters.no_perf = True
        strlen = ctypes.CDLL(None).strlen
        parameters.abort_callback = ctypes.cast(strlen, llama_cpp.ggml_abort_callback)
        parameters.abort_callback_data = interruption.address
        self._keep = (strlen, interruption)  # the library keeps pointers to both
        if self._outputs is not None:
            parameters.cb_eval = ctypes.cast(self._outputs.callback, llama_cpp.ggml_backend_sched_eval_callback)
        return parameters

    def _check_outputs(self) -> None:
        """Refuse a model whose computation does not name the outputs of its blocks."""
        if self._outputs is None:
            return
        self.evaluate(0, (0,), 0, logits=True)
        self.clear(0)
        if not self._outputs.complete:
            self.close()
            raise ContextError("llama.cpp does not name the blocks of this architecture: no activations can be taken")

    def close(self) -> None:
        """Free the context."""
        self._views.clear()
        llama_cpp.llama_free(self._context)

    def clear(self, stream: int) -> None:
        """Empty a stream."""
        llama_cpp.llama_memory_seq_rm(self._memory, stream, -1, -1)

    def copy(self, source: int, target: int) -> None:
        """Make one stream, which must be empty, equal to another; with separate streams only whole copies exist."""
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def cut(self, stream: int, length: int) -> None:
        """Keep the first ``length`` tokens of a stream."""
        if not llama_cpp.llama_memory_seq_rm(self._memory, stream, length, -1):
            raise AssertionError("the library refused to cut a sequence back")

    def save(self, stream: int) -> bytearray:
        """Return a stream's state."""
        state = bytearray(llama_cpp.llama_state_seq_get_size(self._context, stream))
        written = llama_cpp.llama_state_seq_get_data(self._context, _bytes(state), len(state), stream)
        del state[written:]
        return state

    def restore(self, stream: int, state: bytearray) -> bool:
        """Give an empty stream a state that was saved; False when the library refuses it."""
        return bool(llama_cpp.llama_state_seq_set_data(self._context, _bytes(state), len(state), stream))

    def evaluate(self, stream: int, tokens: Sequence[int], position: int, logits: bool) -> Logits | None:
        """Append at most `chunk` tokens at a position; return the logits after the last where asked."""
        count = len(tokens)
        batch = self._prompt
        batch.tokens[:count] = tokens
        batch.positions[:count] = np.arange(position, position + count)
        batch.streams[:count] = stream
        batch.logits[:count] = 0
        batch.logits[count - 1] = logits
        batch.structure.n_tokens = count
        if self._outputs is not None:
            self._outputs.begin(on=logits)
        self._decode(batch)
        return self._logits(1)[0] if logits else None

    def advance(self, tokens: Sequence[int], positions: Sequence[int]) -> Logits:
        """Append one token to every slot at once and return the logits, a row per slot."""
        self._step.tokens[:] = tokens
        self._step.positions[:] = positions
        if self._outputs is not None:
            self._outputs.begin(on=True)
        self._decode(self._step)
        return self._logits(self.width)

    def vectors(self, row: int) -> Vectors | None:
        """Return the outputs of the blocks that belong to a row of the last logits."""
        return None if self._outputs is None else self._outputs.row(row)

    def _decode(self, batch: _Batch) -> None:
        code = llama_cpp.llama_decode(self._context, batch.structure)
        if code != 0:
            raise DecodeError(code)

    def _logits(self, rows: int) -> Logits:
        """Return a view of the library's output: the rows that were asked for, in the batch's order.

        Views are made once per address, as that takes 10 µs.
        """
        pointer = llama_cpp.llama_get_logits(self._context)
        if not pointer:
            raise DecodeError(-3)
        key = rows, ctypes.cast(pointer, ctypes.c_void_p).value or 0
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = np.ctypeslib.as_array(pointer, (rows, self.vocabulary_size))
        return view


def _check(options: ContextOptions) -> None:
    check_width(options.width)
    if options.width + STORES > _MOST_STREAMS:
        raise ContextError(f"-np {options.width} is too wide: use at most {_MOST_STREAMS - 4}")
    if options.room < _SMALLEST_CONTEXT:
        raise ContextError(f"-c {options.context} is too small: use at least {_SMALLEST_CONTEXT}")
    for flag, value in (("-b", options.batch), ("-ub", options.micro_batch), ("-t", options.threads)):
        if value is not None and value < 1:
            raise ContextError(f"{flag} {value} is too small: use at least 1")
    for flag, name in (("-ctk", options.key_type), ("-ctv", options.value_type)):
        if name not in BYTES_PER_VALUE:
            raise ContextError(f"{flag} {name} is no KV cache type: use one of {', '.join(BYTES_PER_VALUE)}")
    if options.value_type not in _FLOATS and options.flash_attention == "off":
        raise ContextError(f"-ctv {options.value_type} needs flash attention: use -fa on, or -ctv f16")


def cache_bytes(options: ContextOptions, model: LlamaModel, *, layers: int) -> int:
    """Return the bytes of the KV cache of so many repeating layers; 0 for models with another kind of memory."""
    widths = model.kv_widths()
    if widths is None:
        return 0
    return kv_cache_bytes(options.width + STORES, options.room, layers, *widths, options.key_type, options.value_type)


def _check_memory(options: ContextOptions, model: LlamaModel) -> None:
    """Refuse a cache that is larger than the memory; models with other caches are left to llama.cpp."""
    needed = cache_bytes(options, model, layers=model.layers - 1)
    memory = available_memory()
    if model.offloaded > 0:
        devices = sum(device.memory_total or 0 for device in model.build.devices if device.kind != "cpu")
        memory = None if memory is None else memory + devices
    if memory is not None and needed > memory:
        raise ContextError(
            f"{options.width + STORES} x {options.context} tokens of KV cache need {needed / 1e9:.1f} GB and "
            f"{memory / 1e9:.1f} GB are available: lower -c or -np, or use -ctk q8_0 -ctv q8_0"
        )


def _resolved_flash_attention(options: ContextOptions, log: LlamaLog) -> bool:
    """Return what llama.cpp made of the option; it says so in its log only."""
    if options.flash_attention == "off" or log.contains("flash_attn", "forcing off"):
        return False
    return not (log.contains("Flash Attention", "disabled") or log.contains("Flash Attention", "not supported"))
