"""The child process that computes with llama.cpp: ``python -P -m salt_tui.engine.llama_child``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

# llama.cpp answers a failed assertion by starting a debugger, which takes seconds and fills the log.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

# Threads wait for each other at every node of the graph.  OpenMP's default is to spin for milliseconds, which on a busy
# machine keeps the thread that is waited for off the core: a step at width 4 took 240 to 5,500 ms beside five busy
# processes on two cores, and 26 to 80 ms with this.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

import llama_cpp
import numpy as np

from salt_tui.engine import serve, wire
from salt_tui.engine.chat_template import ChatTemplate, follow_up, render_plain
from salt_tui.engine.decoding import Decoder
from salt_tui.engine.engine import NextTurn
from salt_tui.engine.errors import ContextError, EngineError, ModelError
from salt_tui.engine.events import LoadProgress, SequenceEnded
from salt_tui.engine.exactness import check_exactness, check_quickly
from salt_tui.engine.gpu_layers import fewer_layers
from salt_tui.engine.interruption import Interruption
from salt_tui.engine.llama_devices import describe_build
from salt_tui.engine.llama_log import LlamaLog
from salt_tui.engine.llama_model import LlamaModel
from salt_tui.engine.llama_streams import ContextRefusedError, LlamaStreams, cache_bytes
from salt_tui.engine.model_info import Build, ContextInfo, Exactness, ModelInfo, Speed
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.readouts import IdSet, check_ids
from salt_tui.engine.reply import Vocabulary
from salt_tui.engine.requests import ChatTurn, Generate
from salt_tui.engine.speed import measure_speed
from salt_tui.engine.streams import DecodeError


class LlamaBackend:
    """One model and one context at most; see `serve.Backend`."""

    def __init__(self) -> None:
        """Start the library."""
        self._log = LlamaLog(sys.stderr.fileno())
        llama_cpp.llama_backend_init()
        self._interruption = Interruption()
        self._model: LlamaModel | None = None
        self._options: LoadOptions | None = None
        self._template: ChatTemplate | None = None
        self._streams: LlamaStreams | None = None
        self._decoder: Decoder | None = None
        self._sets: dict[str, IdSet] = {}
        self._refused: list[SequenceEnded] = []

    def build(self) -> Build:
        """Describe llama.cpp and its devices."""
        return describe_build()

    def load(self, options: LoadOptions, progress: Callable[[LoadProgress], None]) -> ModelInfo:
        """Load a model in place of an earlier one."""
        model = self._load_model(options, progress)
        self._options = options
        self._sets.clear()
        source = model.chat_template() if options.template is None else options.template or None
        self._template = None
        if source is not None:
            beginning, end = model.vocabulary.special_texts()
            self._template = ChatTemplate(source, beginning, end, options.template_options, options.date)
        thinking_open = self._template is not None and self._template.thinking_open()
        return model.info(source, thinking_open, options)

    def vocabulary(self) -> tuple[bytes, ...]:
        """Return the bytes of every id."""
        return self._loaded().vocabulary.pieces()

    def encode(self, conversations: Sequence[Sequence[ChatTurn]]) -> list[tuple[int, ...]]:
        """Render and tokenise conversations."""
        vocabulary = self._loaded().vocabulary
        render = render_plain if self._template is None else self._template.render
        return [vocabulary.encode_prompt(render(turns)) for turns in conversations]

    def tokenize(self, text: bytes) -> tuple[int, ...]:
        """Tokenise text that continues another."""
        return self._loaded().vocabulary.encode_continuation(text)

    def next_turn(self, reply: Sequence[int], turn: ChatTurn) -> NextTurn:
        """Continue a conversation after a reply."""
        vocabulary, special = self._loaded().vocabulary, self._template is not None
        ends, pieces = vocabulary.end_tokens(), vocabulary.pieces()
        kept = len(reply)
        while kept and reply[kept - 1] in ends:
            kept -= 1
        said = b"".join(pieces[token] for token in reply[:kept]).decode("utf-8", "replace")
        before, content, after = follow_up(self._template, said, turn)
        return NextTurn(len(reply) - kept, vocabulary.encode_turn(before, content, after, special=special))

    def define_set(self, name: str, ids: Sequence[int]) -> None:
        """Name a set of ids."""
        size = self._loaded().vocabulary.size
        check_ids(ids, size)
        self._sets[name] = np.unique(np.array(ids, np.int64))

    def open_context(self, options: ContextOptions) -> ContextInfo:
        """Make the context in place of an earlier one, and check it where asked."""
        self._close_context()
        streams = self._streams = self._fitting_streams(options)
        model = self._loaded()
        exactness = Exactness({}, None)
        if options.check != "none":
            try:
                exactness = (check_exactness if options.check == "full" else check_quickly)(streams)
            except ModelError:
                self._close_context()
                raise
            except DecodeError as error:
                self._close_context()
                raise ContextError(f"the model cannot be evaluated: {error} ({self._log.reason()})") from error
        ids = model.vocabulary
        vocabulary = Vocabulary(ids.size, ids.end_tokens(), ids.pieces, self._sets)
        self._decoder = Decoder(streams, vocabulary, self._interruption, options.cache_mb << 20)
        return ContextInfo(
            width=streams.width,
            context=streams.context,
            batch=streams.batch,
            micro_batch=streams.micro_batch,
            threads=streams.threads,
            gpu_layers=model.offloaded,
            flash_attention=streams.flash_attention,
            key_type=options.key_type,
            value_type=options.value_type,
            exactness=exactness,
        )

    def measure(self, request: wire.Measure) -> Speed:
        """Time the open context."""
        if self._streams is None or self._decoder is None:
            raise EngineError("no context is open")
        if self._decoder.busy:
            raise EngineError("the speed cannot be measured beside answers")
        speed = measure_speed(self._streams, request.prompt_tokens, request.steps)
        self._decoder.forget_stores()
        return speed

    def submit(self, request: Generate) -> None:
        """Queue a sequence; without a context it fails."""
        if self._decoder is None:
            self._refused.append(SequenceEnded(request.key, "failed", "no context is open"))
        else:
            self._decoder.submit(request)

    def step(self, outlet: serve.Outlet) -> bool:
        """Do one unit of work."""
        for ended in self._refused:
            outlet.ended(ended)
        self._refused.clear()
        return self._decoder is not None and self._decoder.step(outlet)

    def interrupt(self, key: int | None) -> None:
        """Stop the running evaluation when it is for this sequence."""
        self._interruption.request(key)

    def cancel(self, key: int | None, outlet: serve.Outlet) -> None:
        """End one sequence, or all."""
        self._interruption.acknowledge(key)
        if self._decoder is not None:
            self._decoder.cancel(key, outlet)

    def _loaded(self) -> LlamaModel:
        if self._model is None:
            raise EngineError("no model is loaded")
        return self._model

    def _load_model(self, options: LoadOptions, progress: Callable[[LoadProgress], None]) -> LlamaModel:
        """Load a file in place of the model that is there."""
        self._close_context()
        if self._model is not None:
            self._model.close()
            self._model = None
        self._model = LlamaModel(options, self._log, describe_build(), progress)
        return self._model

    def _fitting_streams(self, options: ContextOptions) -> LlamaStreams:
        """Make the context; with ``-ngl auto`` load fewer layers where their weights and the cache do not fit."""
        model = self._loaded()
        automatic = self._options is not None and self._options.gpu_layers == "auto" and model.offloaded > 0
        if automatic:
            wanted = model.layers_with_cache(cache_bytes(options, model, layers=1))
            if 0 <= wanted < model.offloaded:
                model = self._reload(wanted)
        while True:
            try:
                return LlamaStreams(model, options, self._interruption, self._log)
            except ContextRefusedError:
                if not automatic or model.offloaded == 0:
                    raise
                model = self._reload(fewer_layers(model.offloaded))

    def _reload(self, layers: int) -> LlamaModel:
        assert self._options is not None
        return self._load_model(replace(self._options, gpu_layers=layers), lambda progress: None)

    def _close_context(self) -> None:
        self._decoder = None
        if self._streams is not None:
            self._streams.close()
            self._streams = None


if __name__ == "__main__":
    serve.main(lambda arguments: LlamaBackend())
