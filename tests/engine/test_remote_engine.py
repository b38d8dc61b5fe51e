"""What is asked of a server, what is made of its answers, and one clear line for every fault of it."""

from __future__ import annotations

import json
import math
import random
import threading
import time
from collections.abc import Callable, Sequence

import pytest

from salt_tui.engine.errors import ContextError, ModelError
from salt_tui.engine.events import Chosen, EngineNotice, EngineStopped, PromptProgress, Reading, SequenceEnded, Token
from salt_tui.engine.model_info import ModelInfo
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.remote_child import RemoteBackend
from salt_tui.engine.remote_client import Waits
from salt_tui.engine.remote_requests import served_models
from salt_tui.engine.remote_server import Server
from salt_tui.engine.requests import ChatTurn, Forced, Free, Generate, Sampling, Spelled
from tests.engine.scripted_server import (
    Answer,
    Asked,
    Behave,
    ScriptedServer,
    chunk,
    endless,
    entry,
    event,
    fails,
    probed,
    said,
)

pytestmark = pytest.mark.quick

KEY = "sk-test-0123456789"
TURNS = (ChatTurn("system", "Be brief."), ChatTurn("user", "1+1?"))
CONTEXT = ContextOptions(4, None, 512, 512, None, "auto", "f16", "f16")


class Outlet:
    """Collects what a backend reports."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def tokens(self, tokens: Sequence[Token]) -> None:
        """Take tokens."""
        self.events += tokens

    def reading(self, reading: Reading) -> None:
        """Take a reading."""
        self.events.append(reading)

    def progress(self, progress: PromptProgress) -> None:
        """Take progress."""
        self.events.append(progress)

    def ended(self, ended: SequenceEnded) -> None:
        """Take an end."""
        self.events.append(ended)

    def notice(self, notice: EngineNotice) -> None:
        """Take a notice."""
        self.events.append(notice)

    def stopped(self, stopped: EngineStopped) -> None:
        """Take the end of everything."""
        self.events.append(stopped)

    def of_kind(self, kind: type) -> list:
        """Return the events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]


def load(server: ScriptedServer, *, url: str | None = None, **more: object) -> tuple[RemoteBackend, ModelInfo]:
    backend = RemoteBackend(Waits(0.002, random.Random(1)))
    served = Server(url or server.url, "m", **more)
    info = backend.load(LoadOptions(served.url, "auto", None, {}, "2026-01-02", served), lambda progress: None)
    backend.open_context(CONTEXT)
    return backend, info


def compute(backend: RemoteBackend, *requests: Generate, seconds: float = 10.0) -> Outlet:
    outlet = Outlet()
    for request in requests:
        backend.submit(request)
    deadline = time.monotonic() + seconds
    while backend.step(outlet):
        assert time.monotonic() < deadline, outlet.events
    return outlet


def ask(behave: Behave | Answer, *requests: Generate, **more: object) -> Outlet:
    """Ask a server that behaves so; without requests, one for a free reply of at most 20 tokens."""
    with ScriptedServer(behave if callable(behave) else lambda asked, number: behave) as server:
        backend, _ = load(server, **more)
        return compute(backend, *(requests or (generate(1),)))


def generate(key: int, *, limit: int = 20, temperature: float = 0.0) -> Generate:
    return Generate(key, (), 0, (Free(limit),), Sampling(temperature, seed=2**40 + 5), conversation=TURNS)


def outcome(outlet: Outlet) -> tuple[str, str, str]:
    """Return what was said, why it ended and the message."""
    tokens = outlet.of_kind(Token)
    assert [token.position for token in tokens] == list(range(len(tokens)))
    (ended,) = outlet.of_kind(SequenceEnded)
    return b"".join(token.piece or b"" for token in tokens if not token.end).decode(), ended.stop_reason, ended.message


# --- what is asked ----------------------------------------------------------------------------------------------


def test_a_chat_is_asked_as_messages_with_log_probabilities_and_a_bearer_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with ScriptedServer(lambda asked, number: said("2")) as server:
        backend, info = load(server, key_env="A_KEY", request={"chat_template_kwargs": {"enable_thinking": False}})
        outlet = compute(backend, generate(1, limit=7), generate(2, temperature=0.5))
    greedy, sampled = sorted((asked.body for asked in server.asked), key=lambda body: body["temperature"])
    fixed = {
        "model": "m", "stream": True, "logprobs": True, "top_logprobs": 20,
        "chat_template_kwargs": {"enable_thinking": False}, "repeat_penalty": 1.0, "repetition_penalty": 1.0,
    }  # fmt: skip
    messages = [{"role": turn.role, "content": turn.content} for turn in TURNS]
    assert greedy == {**fixed, "temperature": 0.0, "max_tokens": 7, "messages": messages}
    assert sampled == {
        **fixed, "temperature": 0.5, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "seed": 5, "max_tokens": 20,
        "messages": messages,
    }  # fmt: skip
    assert {asked.path for asked in server.asked} == {"/v1/chat/completions"}
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}
    assert KEY not in repr((outlet.events, info, json.dumps(info.sent)))


def test_a_base_model_is_asked_for_a_completion_of_plain_text() -> None:
    legacy = {"tokens": [" 2"], "token_logprobs": [-0.5], "top_logprobs": [{" 2": -0.5}], "text_offset": [0]}
    parts = [
        event({"model": "m", "choices": [{"index": 0, "text": " 2", "logprobs": legacy, "finish_reason": None}]}),
        event({"model": "m", "choices": [{"index": 0, "text": "", "logprobs": None, "finish_reason": "stop"}]}),
    ]
    with ScriptedServer(lambda asked, number: Answer(parts), probe=lambda asked: Answer(parts)) as server:
        backend, info = load(server, completions=True)
        outlet = compute(backend, generate(1))
    (asked,) = server.asked
    assert (asked.path, asked.body["logprobs"]) == ("/v1/completions", 20)
    assert asked.body["prompt"] == "Be brief.\n\nProblem:\n1+1?\n\nAnswer:\n"
    assert outcome(outlet) == (" 2", "end", None)
    assert info.sent["path"] == "/completions"


def test_completions_of_llama_server_have_the_log_probabilities_of_chats() -> None:
    """With ids, the bytes of each token, and what it measured beside."""
    tops = [
        {"id": 7, "token": "2", "bytes": [50], "logprob": -0.5},
        {"id": 8, "token": "", "bytes": [195], "logprob": -1},
    ]
    one = {"id": 7, "token": "2", "bytes": [50], "logprob": -0.5, "top_logprobs": tops}
    parts = [
        event({"choices": [{"index": 0, "text": "2", "logprobs": {"content": [one]}, "finish_reason": None}]}),
        event({"choices": [{"index": 0, "text": "", "logprobs": None, "finish_reason": "stop"}], "timings": {}}),
        event({"choices": [], "usage": {"completion_tokens": 1}}),
        b"data: [DONE]\n\n",
    ]
    with ScriptedServer(lambda asked, number: Answer(parts), probe=lambda asked: Answer(parts)) as server:
        outlet = compute(load(server, completions=True)[0], generate(1))
    (token,) = outlet.of_kind(Token)
    assert (token.piece, token.log_probability, token.alternatives) == (b"2", -0.5, (b"2", b"\xc3"))
    assert outcome(outlet) == ("2", "end", None)


def test_nobody_looks_for_a_password_where_no_key_is_named(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with ScriptedServer(lambda asked, number: said("2")) as server:
        compute(load(server)[0], generate(1))
    assert "authorization" not in server.asked[0].headers


def test_as_many_requests_at_once_as_the_width_allows() -> None:
    """Four have to come before one is answered, and while four wait there is no fifth."""
    begun: list[int] = []

    def look() -> None:
        time.sleep(0.05)
        begun.append(len(server.asked))

    four = threading.Barrier(4, look, timeout=10)

    def behave(asked: Asked, number: int) -> Answer:
        four.wait()
        return said("2")

    with ScriptedServer(behave) as server:
        backend, _ = load(server)
        outlet = compute(backend, *(generate(key) for key in range(1, 9)))
        with pytest.raises(ContextError, match="at most 64"):
            backend.open_context(ContextOptions(68, None, 512, 512, None, "auto", "f16", "f16"))
    assert len(outlet.of_kind(SequenceEnded)) == 8
    assert begun == [4, 8]


# --- what is made of answers ------------------------------------------------------------------------------------


def test_tokens_come_with_what_the_server_says_of_them() -> None:
    outlet = ask(said("4", "2", logprob=-0.5))
    first, second = outlet.of_kind(Token)
    assert (first.id, first.entropy, first.piece, first.log_probability) == (None, None, b"4", -0.5)
    assert (first.alternatives, first.alternative_log_probabilities) == ((b"4", b"other"), (-0.5, math.log(0.1)))
    assert (second.position, second.end, second.forced) == (1, False, False)
    assert outcome(outlet) == ("42", "end", None)


def test_the_end_token_of_a_server_that_reports_it_is_the_end() -> None:
    parts = [event(chunk("42", [entry("42")])), event(chunk("", [entry("<|im_end|>", -0.125)], "stop"))]
    outlet = ask(Answer(parts))
    assert [(token.end, token.log_probability) for token in outlet.of_kind(Token)] == [(False, -0.25), (True, -0.125)]
    assert outcome(outlet) == ("42", "end", None)


def test_an_answer_in_one_piece_is_read_too() -> None:
    whole = {
        "model": "m",
        "choices": [{"message": {"content": "42"}, "logprobs": {"content": [entry("42")]}, "finish_reason": "stop"}],
    }
    assert outcome(ask(Answer([json.dumps(whole).encode()], kind="application/json"))) == ("42", "end", None)


@pytest.mark.parametrize(
    ("answer", "limit", "reason", "message"),
    [
        (said("4", "2", finish="length"), 2, "length", None),
        (said("4", "2", finish="length"), 20, "context", "stopped after 2 of 20 tokens: its context is full"),
        (said(*"123456", finish="stop"), 3, "length", None),
        (Answer([event(chunk("4242", [entry("42"), entry("42")], "stop"))]), 1, "length", None),
        (said("4", finish="content_filter"), 20, "failed", "content filter"),
        (said("4", finish="tool_calls"), 20, "failed", 'ended the answer with "tool_calls"'),
        (Answer(endless(event(chunk("4", [entry("4")])))), 5, "length", None),
    ],
)
def test_why_answers_end(answer: Answer, limit: int, reason: str, message: str | None) -> None:
    said_text, found, words = outcome(ask(answer, generate(1, limit=limit)))
    assert found == reason
    assert words is None if message is None else message in words
    assert len(said_text) <= 2 * limit


def test_a_choice_is_read_from_the_list_of_one_token() -> None:
    """Probabilities of both spellings of a letter add up; a letter that is not listed has none."""
    listed = {"The": -0.6, "B": -2.0, " B": -2.5, "A": -1.9}
    choice = Spelled((b"A", b" A", b"B", b" B", b"C", b" C"), (0, 0, 1, 1, 2, 2))
    request = Generate(1, (), 0, (choice,), conversation=TURNS)
    with ScriptedServer(lambda asked, number: said("The", finish="length", logprob=-0.6, top=listed)) as server:
        outlet = compute(load(server)[0], request)
        assert server.asked[0].body["max_tokens"] == 1
    (chosen,) = outlet.of_kind(Chosen)
    assert chosen.log_probabilities == (-1.9, None, -2.0, -2.5, None, None)
    (token,) = outlet.of_kind(Token)
    assert (token.piece, token.log_probability, token.forced) == (b"B", -2.0, True)
    assert outcome(outlet) == ("B", "done", None)


def test_without_any_option_in_the_list_the_reply_is_what_the_model_said() -> None:
    request = Generate(1, (), 0, (Spelled((b"A", b"B")),), conversation=TURNS)
    outlet = ask(said("The", finish="length"), request)
    assert outlet.of_kind(Chosen) == []
    assert outcome(outlet) == ("The", "done", None)


# --- faults of one answer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([event(chunk("42", None)), event(chunk(None, None, "stop"))], "gives no log-probabilities"),
        ([event(chunk("42", [entry("4"), entry("3")], "stop"))], "a token says '3' where the text says '2'"),
        ([event(chunk("42", [entry("42", 0.5)]))], "0.5, above 0"),
        ([event(chunk("42", [entry("42", math.nan)]))], "nan, no number"),
        ([event(chunk("42", [{"token": "42"}]))], "null, no number"),
        ([event({"choices": {}})], "no list of choices"),
        ([event([1])], "no JSON object"),
        ([event({"choices": [{"index": 0}]})], "no delta, message or text"),
        ([b"data: {\n\n"], "no JSON"),
        ([b"data: " + b"[" * 100_000 + b"\n\n"], "no JSON"),
        ([b"<html><body>Welcome\x1b[2J</body>"], "no stream of events"),
        ([event({"error": {"message": "out of memory\x1b[2J"}})], r"the server says: out of memory\x1b[2J"),
        ([b'error: {"message": "slot gone"}\n\n'], "the server says: slot gone"),
        ([event({"choices": [{"delta": {"reasoning_content": "hm"}}]})], "start it without a reasoning parser"),
        ([event({"choices": [{"delta": {"tool_calls": [{}]}}]})], "a call of a tool"),
        ([event({"choices": [{"delta": {"refusal": "I will not"}}]})], "the model refuses: I will not"),
    ],
)
def test_an_answer_that_cannot_be_used_is_one_line(parts: list[bytes], message: str) -> None:
    _, reason, words = outcome(ask(Answer(parts)))
    assert reason == "failed"
    assert message in words
    assert words.isprintable()


def test_a_body_without_end_is_cut_off() -> None:
    begun = time.monotonic()
    _, reason, words = outcome(ask(Answer(endless(b": " + b"x" * 65536 + b"\n")), generate(1, limit=1)))
    assert (reason, "more than 1,114,112 bytes" in words) == ("failed", True)
    _, reason, words = outcome(ask(Answer(endless(b"x" * 65536), kind="application/json"), generate(1, limit=1)))
    assert (reason, "more than 1,114,112 bytes" in words) == ("failed", True)
    assert time.monotonic() - begun < 20


def test_a_stream_that_breaks_off_fails_its_answer_and_the_third_in_a_row_ends_the_work() -> None:
    cut = said("4", "2", finish=None)
    outlet = ask(cut, generate(1))
    assert outcome(outlet)[:2] == ("42", "failed")
    outlet = ask(cut, *(generate(key) for key in range(1, 6)))
    assert [ended.stop_reason for ended in outlet.of_kind(SequenceEnded)] == ["failed", "failed"]
    assert "ended before the answer did" in outlet.of_kind(EngineStopped)[0].message


def test_a_prompt_that_is_too_long_is_a_full_context_and_other_refusals_are_failures() -> None:
    long = fails(400, "This model's maximum context length is 512 tokens. However, you requested 600 tokens")
    assert outcome(ask(long))[1] == "context"
    assert outcome(ask(fails(422, "top_p must be a number")))[1] == "failed"


@pytest.mark.parametrize("again", ["500", "429", "503"])
def test_what_may_pass_is_tried_again_and_said(again: str) -> None:
    outlet = ask(lambda asked, number: fails(int(again), "slow down") if number < 3 else said("42"))
    assert outcome(outlet) == ("42", "end", None)
    (notice,) = outlet.of_kind(EngineNotice)
    assert f"answers {again} (slow down): tried again in" in notice.text


def test_retry_after_is_waited_for_and_one_that_is_too_long_ends_the_work() -> None:
    begun = time.monotonic()
    outlet = ask(lambda asked, number: fails(429, Retry_After="0.3") if number == 0 else said("42"))
    assert outcome(outlet)[1] == "end"
    assert time.monotonic() - begun > 0.3
    outlet = ask(fails(429, "quota", Retry_After="86400"))
    assert "it asks to wait 86400 s" in outlet.of_kind(EngineStopped)[0].message


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (fails(429), "answers 429 (busy); tried 8 times"),
        (fails(401, f"wrong key {KEY}"), "does not accept the key in A_KEY"),
        (fails(404, "no model m"), "answers 404 (no model m): no /chat/completions there, or no such model"),
        (Answer([], 302, headers={"Location": "https://elsewhere.example/v1?key=1"}), "redirects to https://elsewhere"),
        (Answer([event(chunk("2", [entry("2")], "stop", "other"))]), 'answers with the model "other" now, it was "m"'),
    ],
)
def test_what_every_request_would_meet_ends_the_work(
    answer: Answer, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    outlet = ask(answer, generate(1), generate(2), key_env="A_KEY")
    (stopped,) = outlet.of_kind(EngineStopped)
    assert message in stopped.message
    assert outlet.of_kind(SequenceEnded) == []
    assert KEY not in repr(outlet.events)
    assert "key=1" not in stopped.message


def test_a_500_about_one_prompt_fails_that_one_alone() -> None:
    def behave(asked: Asked, number: int) -> Answer:
        return fails(500, "bad prompt") if "7" in asked.last else said("42")

    bad = Generate(7, (), 0, (Free(20),), conversation=(ChatTurn("user", "7"),))
    outlet = ask(behave, generate(1), bad, generate(3))
    assert {ended.key: ended.stop_reason for ended in outlet.of_kind(SequenceEnded)} == {
        1: "end",
        7: "failed",
        3: "end",
    }


# --- cancelling -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [[30.0], [event(chunk("4", [entry("4")])), 30.0]], ids=["before", "within"])
def test_a_cancel_takes_effect_at_once(parts: list[bytes | float]) -> None:
    with ScriptedServer(lambda asked, number: Answer(parts)) as server:
        backend, _ = load(server)
        outlet = Outlet()
        for key in range(1, 7):
            backend.submit(generate(key))
        while len(server.asked) < 4:
            backend.step(outlet)
        begun = time.monotonic()
        backend.interrupt(None)
        backend.cancel(None, outlet)
        assert time.monotonic() - begun < 15, "the server would have gone on after 30 s"
        assert sorted(ended.key for ended in outlet.of_kind(SequenceEnded)) == [1, 2, 3, 4, 5, 6]
        assert {ended.stop_reason for ended in outlet.of_kind(SequenceEnded)} == {"cancelled"}
        seen = len(outlet.events)
        assert not backend.step(outlet)
        assert len(outlet.events) == seen


# --- looking at a server ----------------------------------------------------------------------------------------


def refused(answer: Answer | None = None, match: str = "", **more: object) -> str:
    """Return the line with which a server is refused when it is looked at."""
    with (
        ScriptedServer(lambda asked, number: answer or said("2"), **more) as server,
        pytest.raises(ModelError) as error,
    ):
        load(server)
    assert str(error.value).isprintable()
    return str(error.value)


def test_a_server_says_what_tells_its_model_from_others() -> None:
    models = {
        "data": [
            {"id": "m", "owned_by": "vllm", "root": "org/model", "max_model_len": 4096, "created": 17},
            {"id": "n", "meta": {"n_params": 5}},
        ]
    }
    with ScriptedServer(lambda asked, number: said("2"), models=models) as server:
        _, info = load(server)
    address = server.url.removeprefix("http://")
    assert info.identity == f"remote:{address}|m|root=org/model,max_model_len=4096"
    assert (info.trained_context, info.description) == (4096, f"served by vllm at {address}")
    assert info.capabilities.statistics == "top_k"
    assert (info.sent["before_sampling"], info.sent["samplers"]) == (True, "all")
    assert info.warnings == ("the server lists 3 alternatives of a token, not 20",)


def test_log_probabilities_that_change_with_the_temperature_are_noticed() -> None:
    def probe(asked: Asked) -> Answer:
        scale = 1 / asked.body["temperature"] if asked.body["temperature"] else 1.0
        logs = [scale * value for value in (-0.25, -2.0, -3.0)]
        total = math.log(sum(map(math.exp, logs)))
        listed = dict(zip(("red", "blue", "green"), (value - total for value in logs), strict=True))
        return said("red", finish="length", logprob=listed["red"], top=listed)

    with ScriptedServer(lambda asked, number: said("2"), probe=probe) as server:
        _, info = load(server)
    assert info.sent["before_sampling"] is False
    assert "change with the temperature" in info.warnings[0]


def test_a_server_that_takes_no_more_than_openai_is_asked_no_more() -> None:
    def strict(answer: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
        extra = {"top_k", "min_p", "repeat_penalty", "repetition_penalty"}
        return lambda asked: fails(400, "Unrecognized argument") if extra & set(asked.body) else answer(asked)

    with ScriptedServer(lambda asked, number: strict(lambda one: said("2"))(asked), probe=strict(probed)) as server:
        backend, info = load(server)
        assert outcome(compute(backend, generate(1, temperature=0.5)))[1] == "end"
        more = Generate(2, (), 0, (Free(5),), Sampling(0.5, top_k=3), conversation=TURNS)
        assert "takes no top-k" in outcome(compute(backend, more))[2]
    assert info.sent["samplers"] == "standard"
    assert any("takes no top-k" in warning for warning in info.warnings)


def test_a_server_that_cannot_be_used_is_refused_in_one_line() -> None:
    no_tokens = Answer([event(chunk("red", None, "stop"))])
    assert "gives no log-probabilities" in refused(probe=lambda asked: no_tokens)
    assert 'no model is served as "m"; there are: n, o' in refused(models={"data": [{"id": "n"}, {"id": "o"}]})
    assert "name the variable with its key in key_env" in refused(listed=fails(401))
    assert "answers 404" in refused(probe=lambda asked: fails(404))
    assert "redirects to" in refused(listed=Answer([], 301, headers={"Location": "/v2/models"}))
    assert "tried 8 times" in refused(probe=lambda asked: fails(503))
    assert "a token says" in refused(probe=lambda asked: Answer([event(chunk("red", [entry("x")]))]))


def test_nobody_there_and_no_encryption_there_are_said() -> None:
    with ScriptedServer(lambda asked, number: said("2")) as server:
        pass
    with pytest.raises(ModelError, match="cannot be reached"):
        load(server)
    with (
        ScriptedServer(lambda asked, number: said("2")) as server,
        pytest.raises(ModelError, match="no safe connection"),
    ):
        load(server, url=server.url.replace("http:", "https:"))


@pytest.mark.parametrize(
    "request_",
    [
        Generate(1, (1,), 0, (Free(1),)),
        Generate(1, (), 0, (Forced((1,)),), conversation=TURNS),
        Generate(1, (), 0, (Free(1, (b"\n",)),), conversation=TURNS),
        Generate(1, (), 0, (Free(1),), conversation=(ChatTurn("user", "\ud800"),)),
    ],
)
def test_what_a_server_cannot_do_is_refused(request_: Generate) -> None:
    assert outcome(ask(said("2"), request_))[1] == "failed"


@pytest.mark.parametrize("aliases", [5, True, {"a": 1}, "alias", None, [5, None]])
def test_other_names_of_a_model_may_be_of_any_form(aliases: object) -> None:
    assert list(served_models({"data": [{"id": "m", "aliases": aliases}, 3]})) == ["m"]
