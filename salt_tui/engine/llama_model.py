"""A loaded GGUF: metadata, vocabulary and tokenising through llama.cpp."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp

from salt_tui.engine.chat_template import prompt_bytes
from salt_tui.engine.errors import EngineError, ModelError
from salt_tui.engine.events import LoadProgress
from salt_tui.engine.gguf_header import HeaderError, read_header
from salt_tui.engine.gpu_layers import LayerSizes, fewer_layers, free_for_layers, layer_sizes, layers_that_fit
from salt_tui.engine.llama_devices import can_offload, list_devices
from salt_tui.engine.llama_log import LlamaLog
from salt_tui.engine.model_files import split_names
from salt_tui.engine.model_info import Build, Capabilities, ModelInfo
from salt_tui.engine.options import LoadOptions
from salt_tui.engine.prompt_limits import last_resort

_PROGRESS_STEP = 0.01
_ALL_LAYERS = -1  # llama.cpp's own way to say it
_PIECE_BYTES = 128
_MEMORY_WORDS = ("unable to allocate", "failed to allocate", "out of memory", "cudaMalloc failed")
_ANCHORS = ("\n", "0", ",", "a", ".", "x")
"""Texts after which a continuation is tokenised, for vocabularies that put a space before whatever comes first."""

_SPACE = b" "


class LlamaModel:
    """A model in memory and its vocabulary."""

    def __init__(
        self, options: LoadOptions, log: LlamaLog, build: Build, progress: Callable[[LoadProgress], None]
    ) -> None:
        """Load the file.

        Args:
            options: what to load, and how many layers go to a device.
            log: where the reason of a failure is found.
            build: what the library can use.
            progress: told about every hundredth part.

        Raises:
            ModelError: llama.cpp cannot load the file, or it is no model that continues text.
        """
        self._warnings: list[str] = []
        self._offloads = can_offload(build.devices)
        self._sizes = _layer_sizes(Path(options.path)) if self._offloads else None
        self._layers_asked = 0
        layers = self._wanted_layers(options.gpu_layers)
        self._layers_asked = layers
        self._model = self._load(options, log, progress)
        try:
            self.vocabulary = _vocabulary_of(self._model, options.path)
            self.layers: int = llama_cpp.llama_model_n_layer(self._model) + 1  # the output layer counts
            self.embedding_width: int = llama_cpp.llama_model_n_embd(self._model)
            self.parameters: int = llama_cpp.llama_model_n_params(self._model)
            self._check_kind(options.path)
        except ModelError:
            self.close()
            raise
        self.build = build

    def _wanted_layers(self, wanted: int | str) -> int:
        if wanted == "auto":
            return self.layers_with_cache(0) if self._offloads else 0
        count = _ALL_LAYERS if wanted == "all" else max(_ALL_LAYERS, int(wanted))
        if count != 0 and not self._offloads:
            reason = "no GPU was found" if llama_cpp.llama_supports_gpu_offload() else "this build has no GPU support"
            self._warnings.append(f"-ngl {wanted} has no effect: {reason}; all layers are computed on the CPU")
            return 0
        return count

    def _load(self, options: LoadOptions, log: LlamaLog, progress: Callable[[LoadProgress], None]) -> Any:
        reported = -1.0

        def report(fraction: float, data: object) -> bool:
            nonlocal reported
            if fraction - reported >= _PROGRESS_STEP or (fraction >= 1.0 > reported):
                reported = fraction
                progress(LoadProgress(fraction))
            return True

        callback = llama_cpp.llama_progress_callback(report)
        while True:
            parameters = llama_cpp.llama_model_default_params()
            parameters.n_gpu_layers = self._layers_asked
            parameters.progress_callback = callback
            log.clear()
            model = llama_cpp.llama_model_load_from_file(os.fsencode(options.path), parameters)
            if model:
                return model
            fewer = self._fewer_layers(options, log)
            if fewer is None:
                raise ModelError(f"{options.path}: llama.cpp cannot load this model ({log.reason()})")
            self._layers_asked, reported = fewer, -1.0

    def _fewer_layers(self, options: LoadOptions, log: LlamaLog) -> int | None:
        """With ``-ngl auto``, step down when the device's memory is too small; None when that is not the trouble."""
        layers = self._layers_asked
        if options.gpu_layers != "auto" or layers == 0 or not any(log.contains(word) for word in _MEMORY_WORDS):
            return None
        total = (log.number_after("n_layer =") or 0) + 1 if layers == _ALL_LAYERS else layers
        return fewer_layers(total)

    def _check_kind(self, path: str) -> None:
        if llama_cpp.llama_model_has_encoder(self._model) or not llama_cpp.llama_model_has_decoder(self._model):
            raise ModelError(f"{path}: this model does not continue text (it has an encoder, or no decoder)")
        if llama_cpp.llama_model_is_diffusion(self._model):
            raise ModelError(f"{path}: this is a diffusion model, which has no next-token probabilities")
        if not self.can_cut:
            self._warnings.append(
                "the model keeps a recurrent state: it cannot be cut back, so replies that part ways are evaluated "
                "from a whole stored state or from the end of the preamble"
            )

    @property
    def can_cut(self) -> bool:
        """Whether the end of a sequence can be dropped: not where the model keeps a recurrent state."""
        return not (llama_cpp.llama_model_is_recurrent(self._model) or llama_cpp.llama_model_is_hybrid(self._model))

    @property
    def pointer(self) -> Any:
        """The library's handle."""
        return self._model

    @property
    def offloaded(self) -> int:
        """How many layers are computed on devices."""
        return self.layers if self._layers_asked == _ALL_LAYERS else min(self._layers_asked, self.layers)

    def layers_with_cache(self, cache_per_block: int) -> int:
        """Return the ``-ngl`` at which weights and KV cache fit into what the devices have free now.

        The room that this model's offloaded layers take counts as free.  All layers where sizes or memory are unknown.

        Args:
            cache_per_block: bytes of KV cache of one repeating layer.
        """
        free = free_for_layers(list_devices())
        if self._sizes is None or free is None:
            return _ALL_LAYERS
        held = self._sizes.layers if self._layers_asked == _ALL_LAYERS else self._layers_asked
        return layers_that_fit(self._sizes, cache_per_block, free + self._sizes.offloaded(held))

    def kv_widths(self) -> tuple[int, int] | None:
        """Return the values per token and layer of keys and of values; None for models with another kind of memory."""
        architecture = self.metadata("general.architecture")
        if (
            self.metadata(f"{architecture}.attention.kv_lora_rank") is not None
            or llama_cpp.llama_model_is_recurrent(self._model)
            or llama_cpp.llama_model_is_hybrid(self._model)
        ):
            return None
        groups = llama_cpp.llama_model_n_head_kv(self._model)
        heads = llama_cpp.llama_model_n_head(self._model)
        width = llama_cpp.llama_model_n_embd(self._model) // max(1, heads)
        key, value = (self.metadata(f"{architecture}.attention.{name}_length") for name in ("key", "value"))
        return groups * int(key or width), groups * int(value or width)

    def close(self) -> None:
        """Free the model; contexts must be freed before."""
        llama_cpp.llama_model_free(self._model)

    def info(self, template: str | None, thinking_open: bool, options: LoadOptions) -> ModelInfo:
        """Describe the model with the chat template that was chosen for it."""
        model = self._model
        architecture = self.metadata("general.architecture") or "unknown"
        quantisation = _quantisation(llama_cpp.llama_model_ftype(model))
        return ModelInfo(
            # Not llama_model_desc, which guesses a size from the layers: 256M for a model of 135M.
            description=" ".join(filter(None, (architecture, _size(self.parameters), quantisation))),
            architecture=architecture,
            name=self.metadata("general.name"),
            quantisation=quantisation,
            parameters=self.parameters,
            file_bytes=Path(options.path).stat().st_size,
            vocabulary_size=self.vocabulary.size,
            trained_context=llama_cpp.llama_model_n_ctx_train(model),
            layers=self.layers,
            gpu_layers=self.offloaded,
            template=template,
            thinking_open=thinking_open,
            warnings=tuple(self._warnings),
            build=self.build,
            capabilities=Capabilities(
                "vocabulary", self.layers - 1, self.embedding_width, vocabulary=True, forced=True, cut=self.can_cut
            ),
            identity=None,
            end_tokens=tuple(sorted(self.vocabulary.end_tokens())),
        )

    def metadata(self, key: str) -> str | None:
        """Return a value of the file's header as text; None when it is absent."""
        name = key.encode()
        return _text(lambda buffer, size: llama_cpp.llama_model_meta_val_str(self._model, name, buffer, size))

    def chat_template(self) -> str | None:
        """Return the file's default chat template; None when it has none."""
        template = llama_cpp.llama_model_chat_template(self._model, None)
        return template.decode("utf-8", "replace") if template else None


class LlamaVocabulary:
    """Token ids and bytes."""

    def __init__(self, pointer: Any, size: int) -> None:
        """Wrap the library's vocabulary of ``size`` ids."""
        self._pointer = pointer
        self.size = size
        self._pieces: tuple[bytes, ...] | None = None

    @property
    def beginning(self) -> int | None:
        """The beginning-of-sequence token that every prompt must start with; None when the vocabulary wants none."""
        token = int(llama_cpp.llama_vocab_bos(self._pointer))
        return token if llama_cpp.llama_vocab_get_add_bos(self._pointer) and token >= 0 else None

    def end_tokens(self) -> frozenset[int]:
        """Return all end-of-generation ids; a model may have several."""
        return frozenset(token for token in range(self.size) if llama_cpp.llama_vocab_is_eog(self._pointer, token))

    def pieces(self) -> tuple[bytes, ...]:
        """Return the bytes of every id, special tokens spelled out."""
        if self._pieces is None:
            buffer = ctypes.create_string_buffer(_PIECE_BYTES)
            pieces: list[bytes] = []
            for token in range(self.size):
                length = llama_cpp.llama_token_to_piece(self._pointer, token, buffer, len(buffer), 0, True)
                if length < 0:
                    # The returned size is what a longer buffer needs; a fixed one would give an empty piece.
                    buffer = ctypes.create_string_buffer(-length)
                    length = llama_cpp.llama_token_to_piece(self._pointer, token, buffer, len(buffer), 0, True)
                pieces.append(buffer.raw[:length])
            self._pieces = tuple(pieces)
        return self._pieces

    def special_texts(self) -> tuple[str, str]:
        """Return the texts of the beginning and end tokens, empty where there is none, for chat templates."""
        tokens = (llama_cpp.llama_vocab_bos(self._pointer), llama_cpp.llama_vocab_eos(self._pointer))
        texts = [self.pieces()[token].decode("utf-8", "replace") if token >= 0 else "" for token in tokens]
        return texts[0], texts[1]

    def encode_prompt(self, prompt: str) -> tuple[int, ...]:
        """Tokenise a rendered prompt, special tokens parsed; exactly one beginning token where one is wanted.

        Templates often spell the beginning token themselves, so it is neither added blindly nor doubled.
        """
        tokens = self._tokenize(prompt_bytes(prompt), parse_special=True)
        beginning = self.beginning
        if beginning is None:
            return tokens
        start = 0
        while start < len(tokens) and tokens[start] == beginning:
            start += 1
        return (beginning, *tokens[start:])

    def encode_continuation(self, text: bytes) -> tuple[int, ...]:
        """Tokenise bytes that follow other text; the pieces of the tokens are exactly these bytes.

        Raises:
            EngineError: for bytes that end inside a character.
            ModelError: no tokens spell them.
        """
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise EngineError(f"the text is cut inside a character at byte {error.start}") from error
        if not text:
            return ()
        tokens = self._tokenize(text, parse_special=False)
        if self._spells(tokens, text):
            return tokens
        if text.startswith(_SPACE):
            tokens = self._tokenize(text[1:], parse_special=False)
            if self._spells(tokens, text):
                return tokens
        for anchor in map(str.encode, _ANCHORS):
            before, both = (self._tokenize(part, parse_special=False) for part in (anchor, anchor + text))
            if both[: len(before)] == before and self._spells(both[len(before) :], text):
                return both[len(before) :]
        shown = text[:40].decode("utf-8", "ignore")
        raise ModelError(f"this model's vocabulary cannot spell exactly {shown!r} within a text")

    def encode_turn(self, before: str, content: str, after: str, *, special: bool) -> tuple[int, ...]:
        """Tokenise a turn that follows other text.

        Args:
            before: what the template writes before the turn's content.
            content: text, in which the names of special tokens are text too.
            after: what the template writes after it.
            special: special tokens are parsed in what the template writes.

        Raises:
            ModelError: no tokens spell the text.
        """
        parts = [prompt_bytes(part) for part in (before, content, after)]
        if not special:
            return self.encode_continuation(b"".join(parts))
        if self._tokenize(parts[1], parse_special=True) == self._tokenize(parts[1], parse_special=False):
            return self._after_text(b"".join(parts))
        inside = self.encode_continuation(parts[1])
        return (*self._after_text(parts[0]), *inside, *self._after_text(parts[2]))

    def _after_text(self, text: bytes) -> tuple[int, ...]:
        """Tokenise with special tokens; without the space that some vocabularies put before what comes first."""
        tokens = self._tokenize(text, parse_special=True)
        if self._spells(tokens, text):
            return tokens
        for anchor in map(str.encode, _ANCHORS):
            before, both = self._tokenize(anchor, parse_special=True), self._tokenize(anchor + text, parse_special=True)
            if both[: len(before)] == before and self._spells(both[len(before) :], text):
                return both[len(before) :]
        return tokens  # special tokens that swallow the spaces beside them are not spelled exactly

    def _spells(self, tokens: tuple[int, ...], text: bytes) -> bool:
        pieces = self.pieces()
        return b"".join(pieces[token] for token in tokens) == text

    def _tokenize(self, text: bytes, parse_special: bool) -> tuple[int, ...]:
        room = len(text) + 8
        with last_resort():  # some tokenizers are quadratic: Gemma's took 79 s for 400,000 characters
            buffer = (llama_cpp.llama_token * room)()
            count = llama_cpp.llama_tokenize(self._pointer, text, len(text), buffer, room, False, parse_special)
            if count < 0:
                room = -count
                buffer = (llama_cpp.llama_token * room)()
                count = llama_cpp.llama_tokenize(self._pointer, text, len(text), buffer, room, False, parse_special)
        return tuple(buffer[:count])


def _layer_sizes(path: Path) -> LayerSizes | None:
    """Return the sizes from the headers of all parts; None where they cannot be read: loading says why."""
    try:
        headers = [read_header(path.with_name(name)) for name in split_names(path.name)]
    except (HeaderError, OSError, ValueError):
        return None
    return layer_sizes(tensor for header in headers for tensor in header.tensors)


def _vocabulary_of(model: Any, path: str) -> LlamaVocabulary:
    pointer = llama_cpp.llama_model_get_vocab(model)
    size = llama_cpp.llama_vocab_n_tokens(pointer) if pointer else 0
    if pointer is None or size <= 0 or llama_cpp.llama_vocab_type(pointer) == llama_cpp.LLAMA_VOCAB_TYPE_NONE:
        raise ModelError(f"{path}: this model has no vocabulary")
    return LlamaVocabulary(pointer, size)


def _text(call: Callable[[Any, int], int]) -> str | None:
    """Return what a library function writes into a buffer, asking again when it was too small."""
    size = 256
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = call(buffer, size)
        if length < 0:
            return None
        if length < size:
            return buffer.value.decode("utf-8", "replace")
        size = length + 1


def _quantisation(file_type: int) -> str | None:
    """Return llama.cpp's name of a file type, e.g. ``Q4_K_M``."""
    for name, value in vars(llama_cpp).items():
        if name.startswith("LLAMA_FTYPE_") and value == file_type:
            return name.removeprefix("LLAMA_FTYPE_MOSTLY_").removeprefix("LLAMA_FTYPE_ALL_")
    return None


def _size(parameters: int) -> str:
    return f"{parameters / 1e9:.1f}B" if parameters >= 1e9 else f"{parameters / 1e6:.0f}M"
