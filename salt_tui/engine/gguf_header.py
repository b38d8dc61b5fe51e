"""Read what stands before the tensor data of a GGUF file, without loading it.

Lists and checks need size, quantisation, trained context, template and whether the file is whole.  The ``gguf``
package's ``GGUFReader`` gives them too, but turns every vocabulary entry into numpy arrays: 3.7 s for the 49,152
tokens of SmolLM2 against 0.03 s here, so lists would take a minute.  Layout: the GGUF specification, versions 2
and 3 (version 1 is no longer read by llama.cpp).
"""

from __future__ import annotations

import math
import mmap
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Scalar: TypeAlias = int | float | bool | str

_SCALAR_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_MAXIMUM_DIMENSIONS = 4
_DEFAULT_ALIGNMENT = 32

TENSOR_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}
"""ggml's tensor types: name, values per block, bytes per block.  A newer type is read, but its size is unknown."""

FILE_TYPES: dict[int, str] = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
    38: "MXFP4_MOE",
    39: "NVFP4",
    40: "Q1_0",
}
"""llama.cpp's names of ``general.file_type``."""


class HeaderError(ValueError):
    """The file is no readable GGUF; the message completes the sentence "FILE …"."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor as the header describes it.

    Attributes:
        name: e.g. ``blk.0.attn_q.weight``.
        shape: dimensions, fastest varying first.
        type: ggml's name such as ``Q4_K``, or ``type N`` where unknown.
        offset: bytes from the start of the tensor data.
        size: bytes, None where the type is unknown.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    offset: int
    size: int | None


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """What a GGUF file says of itself.

    Attributes:
        version: of the format, 2 or 3.
        file_bytes: size of the file.
        metadata: every key with a single value; text is decoded as UTF-8 with replacement.
        array_lengths: every key with an array, and how many entries it has; the entries are not kept.
        tensors: in file order.
        data_start: where the tensor data begins, bytes from the start of the file.
    """

    version: int
    file_bytes: int
    metadata: dict[str, Scalar]
    array_lengths: dict[str, int]
    tensors: tuple[TensorInfo, ...]
    data_start: int

    def text(self, key: str) -> str | None:
        """Return a text value, None where the key is absent or holds something else."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def integer(self, key: str) -> int | None:
        """Return an integer value, None where the key is absent or holds something else."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def architecture(self) -> str | None:
        """``general.architecture``, e.g. ``llama``."""
        return self.text("general.architecture")

    @property
    def template(self) -> str | None:
        """The chat template, None for a model without one."""
        return self.text("tokenizer.chat_template") or None

    @property
    def trained_context(self) -> int | None:
        """Tokens that the model was trained on, None where the file does not say."""
        return self.integer(f"{self.architecture}.context_length")

    @property
    def quantisation(self) -> str | None:
        """The file type's name, else the type that fills most bytes; None without tensors."""
        if (name := FILE_TYPES.get(self.integer("general.file_type") or 0)) and "general.file_type" in self.metadata:
            return name
        sizes: Counter[str] = Counter()
        for tensor in self.tensors:
            sizes[tensor.type] += tensor.size or 0
        return sizes.most_common(1)[0][0] if sizes else None

    @property
    def parameters(self) -> int:
        """Values in the tensors of this file."""
        return sum(math.prod(tensor.shape) for tensor in self.tensors)

    @property
    def end_of_tensors(self) -> int:
        """Bytes that the file must have for its tensors, those of unknown type taken as empty; 0 without tensors."""
        return max((self.data_start + t.offset + (t.size or 0) for t in self.tensors), default=0)


class _Cursor:
    """Reads forward through the mapped file."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.position = 0

    def unpack(self, code: str) -> Scalar:
        value: Scalar = struct.unpack_from(code, self.data, self.position)[0]
        self.position += struct.calcsize(code)
        return value

    def count(self, code: str = "<Q") -> int:
        return int(self.unpack(code))

    def string(self) -> str:
        length = self.count()
        start = self.position
        self._skip(length)
        return self.data[start : self.position].decode("utf-8", "replace")

    def skip_array(self) -> int:
        """Step over an array and return how many entries it has."""
        kind, length = self.count("<I"), self.count()
        if kind == _STRING:
            # The hot loop: 262,144 entries in Gemma's vocabulary.
            read_length, data, position = struct.Struct("<Q").unpack_from, self.data, self.position
            for _ in range(length):
                position += 8 + read_length(data, position)[0]
            self.position = position
            self._skip(0)
        elif kind == _ARRAY:
            for _ in range(length):
                self.skip_array()
        else:
            self._skip(length * struct.calcsize(self._scalar_format(kind)))
        return length

    def scalar(self, kind: int) -> Scalar:
        return self.string() if kind == _STRING else self.unpack(self._scalar_format(kind))

    def _skip(self, count: int) -> None:
        self.position += count
        if self.position > len(self.data):
            raise struct.error("past the end")

    @staticmethod
    def _scalar_format(kind: int) -> str:
        if kind not in _SCALAR_FORMATS:
            raise HeaderError(f"has a damaged header (metadata type {kind} does not exist)")
        return _SCALAR_FORMATS[kind]


def read_header(path: Path) -> GGUFHeader:
    """Read the header of a GGUF file.

    Raises:
        HeaderError: the file is empty, no GGUF, of another version, or ends within the header.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(8)
        if not start:
            raise HeaderError("is empty (0 bytes)")
        if start[:4] != b"GGUF":
            raise HeaderError(f"is not a GGUF file ({_looks_like(start + file.read(56))})")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _parse(data)
            except (struct.error, OverflowError):
                raise HeaderError("is truncated: it ends inside the header") from None
            except RecursionError:
                raise HeaderError("has a damaged header (arrays nested too deeply)") from None


def _parse(data: mmap.mmap) -> GGUFHeader:
    cursor = _Cursor(data)
    cursor.position = 4
    version = cursor.count("<I")
    if version not in (2, 3):
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        reason = "big-endian" if swapped in (2, 3) else f"version {version}; versions 2 and 3 are read"
        raise HeaderError(f"is a GGUF file that llama.cpp cannot read here ({reason})")
    tensor_count, key_count = cursor.count(), cursor.count()
    metadata: dict[str, Scalar] = {}
    array_lengths: dict[str, int] = {}
    for _ in range(key_count):
        key, kind = cursor.string(), cursor.count("<I")
        if kind == _ARRAY:
            array_lengths[key] = cursor.skip_array()
        else:
            metadata[key] = cursor.scalar(kind)
    tensors = tuple(_tensor(cursor) for _ in range(tensor_count))
    alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise HeaderError(f"has a damaged header (alignment {alignment})")
    data_start = -(-cursor.position // alignment) * alignment
    return GGUFHeader(version, len(data), metadata, array_lengths, tensors, data_start)


def _tensor(cursor: _Cursor) -> TensorInfo:
    name, dimensions = cursor.string(), cursor.count("<I")
    if dimensions > _MAXIMUM_DIMENSIONS:
        raise HeaderError(f"has a damaged header (a tensor of {dimensions} dimensions)")
    shape = tuple(cursor.count() for _ in range(dimensions))
    number, offset = cursor.count("<I"), cursor.count()
    if number not in TENSOR_TYPES:
        return TensorInfo(name, shape, f"type {number}", offset, None)
    kind, values, size = TENSOR_TYPES[number]
    return TensorInfo(name, shape, kind, offset, math.prod(shape) // values * size)


def _looks_like(start: bytes) -> str:
    """Name the kind of file that the first bytes belong to, for an error message."""
    if start.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer: the model itself was not fetched; run `git lfs pull`"
    if start[:1] in (b"<", b"{") or all(32 <= byte < 127 or byte in b"\t\r\n" for byte in start):
        return "it holds text"
    if start[:4] in (b"ggml", b"lmgg", b"ggjt", b"tjgg", b"ggmf", b"fmgg", b"ggla", b"algg"):
        return "an old GGML file; convert it to GGUF"
    return f"it begins with the bytes {start[:4].hex(' ')}"
