"""Reading the outputs of blocks (residual stream) while llama.cpp evaluates.

llama.cpp asks a callback of the context about every tensor of the computation, by name.  Its yes makes the library stop
behind that tensor and hand it over.  The tensor ``l_out-<layer>`` holds one row of float32 per token; in the last block
and behind the final norm (``result_norm``) only the rows whose logits were asked for are computed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from salt_tui.engine.llama_devices import ggml_library
from salt_tui.engine.streams import Vectors

_FLOAT_BYTES = 4
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_bool, ctypes.c_void_p)


class BlockOutputs:
    """The outputs of some blocks in the last evaluation."""

    def __init__(self, layers: Sequence[int], width: int, blocks: int) -> None:
        """Prepare the callback.

        Args:
            layers: blocks, from 0; their number stands for the state behind the final norm.
            width: numbers in a row.
            blocks: their number in the model.

        Raises:
            OSError: the library that reads tensors is not there.
        """
        self._places = {
            b"result_norm" if layer == blocks else f"l_out-{layer}".encode(): place
            for place, layer in enumerate(layers)
        }
        self._width = width
        self._found: list[npt.NDArray[np.float32] | None] = [None] * len(layers)
        self._on = False
        base = ggml_library("ggml-base")
        if base is None:
            raise OSError("libggml-base is not beside libllama")
        self._name = _function(base.ggml_get_name, ctypes.c_char_p, ctypes.c_void_p)
        self._bytes = _function(base.ggml_nbytes, ctypes.c_size_t, ctypes.c_void_p)
        self._size = _function(base.ggml_element_size, ctypes.c_size_t, ctypes.c_void_p)
        self._read = _function(
            base.ggml_backend_tensor_get, None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
        )
        self.callback = _CALLBACK(self._answer)

    def begin(self, *, on: bool) -> None:
        """Forget what was found, before an evaluation whose outputs are wanted or not."""
        self._on = on
        if on:
            self._found = [None] * len(self._found)

    @property
    def complete(self) -> bool:
        """Every block was found in the last evaluation that was wanted."""
        return all(rows is not None for rows in self._found)

    def row(self, number: int) -> Vectors:
        """Return the outputs that belong to a row of logits; -1 is the last.

        Raises:
            KeyError: a block is missing.
        """
        rows = [rows[number] for rows in self._found if rows is not None]
        if len(rows) < len(self._found):
            raise KeyError("the evaluation did not show all blocks that were asked for")
        return np.stack(rows)

    def _answer(self, tensor: int, ask: bool, data: int) -> bool:
        """Answer the library: whether it shall stop behind a tensor, and then take it."""
        if ask:
            return self._on and self._name(tensor) in self._places
        size = self._bytes(tensor)
        if self._size(tensor) == _FLOAT_BYTES and size % (_FLOAT_BYTES * self._width) == 0:
            rows = np.empty((size // (_FLOAT_BYTES * self._width), self._width), np.float32)
            self._read(tensor, rows.ctypes.data, 0, size)
            self._found[self._places[self._name(tensor)]] = rows
        return True


def _function(function: Any, result: Any, *arguments: Any) -> Any:
    function.restype, function.argtypes = result, list(arguments)
    return function
