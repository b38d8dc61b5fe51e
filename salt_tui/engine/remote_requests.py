"""What is sent to a server and what of its answers counts; pure functions over JSON.

Servers differ.  llama-server, vLLM and llama-cpp-python's server were read for what they document; whatever is
optional in OpenAI's interface may be missing, and whatever is wrong is refused in one line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from salt_tui.engine.chat_template import render_plain
from salt_tui.engine.events import ALTERNATIVES, StopReason
from salt_tui.engine.remote_server import Server
from salt_tui.engine.reported_tokens import ReportError, read_logprobs
from salt_tui.engine.requests import ChatTurn, Sampling
from salt_tui.engine.token_alignment import ReportedToken
from salt_tui.visible_text import visible

_LARGEST_SEED = 2**31
"""Servers take seeds of 32 bits at least; llama.cpp reads them so, and -1 would be random."""

_LONGEST_WORDS = 200
_TOLD = ("root", "max_model_len", "quantization", "n_params", "n_vocab", "size", "n_ctx_train")
"""What a list of models may say of one that tells it from others; nothing that changes by itself."""

Samplers = Literal["all", "standard"]
"""Which samplers a server takes: ``top_k``, ``min_p`` and no repetition penalty too, or OpenAI's own only."""

_NO_PENALTY = {"repeat_penalty": 1.0, "repetition_penalty": 1.0}
"""The names of llama.cpp and of vLLM.  llama-cpp-python's server has 1.1 where nothing is said, vLLM what the model's
generation_config.json says; both change greedy answers."""


def path_of(server: Server) -> str:
    """Return the path behind the base address."""
    return "/completions" if server.completions else "/chat/completions"


def fixed_fields(server: Server) -> dict[str, Any]:
    """Return what every request of a server holds."""
    asked = {"logprobs": ALTERNATIVES} if server.completions else {"logprobs": True, "top_logprobs": ALTERNATIVES}
    return {**server.request, "model": server.model, "stream": True, **asked}


def body(
    server: Server, turns: Sequence[ChatTurn], max_tokens: int, sampling: Sampling, samplers: Samplers
) -> dict[str, Any]:
    """Return the body of one request.

    Args:
        server: where it goes.
        turns: the conversation; a server for completions gets it as plain text.
        max_tokens: limit.
        sampling: how tokens are chosen.
        samplers: what the server takes.
    """
    asked: dict[str, Any] = {"max_tokens": max_tokens, "temperature": sampling.temperature}
    if samplers == "all":
        asked |= _NO_PENALTY
    if sampling.temperature > 0:
        asked |= {"top_p": sampling.top_p, "seed": sampling.seed % _LARGEST_SEED}
        if samplers == "all":
            # Also where they are off: servers have defaults of their own.
            asked |= {"top_k": sampling.top_k, "min_p": sampling.min_p}
    if server.completions:
        return {**fixed_fields(server), **asked, "prompt": render_plain(turns)}
    messages = [{"role": turn.role, "content": turn.content} for turn in turns]
    return {**fixed_fields(server), **asked, "messages": messages}


# --- answers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of an answer.

    Attributes:
        text: what was added to the reply.
        tokens: those that were reported with it.
        finish: why the answer ended, in the server's word; None while it goes on.
        model: that the server says it answered with.
    """

    text: str
    tokens: tuple[ReportedToken, ...]
    finish: str | None
    model: str | None


class AnswerError(ValueError):
    """An answer that cannot be used; the message is one line."""


def read_chunk(value: object) -> Chunk:
    """Read a chunk of a stream, or a whole answer of a server that does not stream.

    Raises:
        AnswerError: it is none.
    """
    if not isinstance(value, Mapping):
        raise AnswerError("an answer is no JSON object")
    if "error" in value or value.get("object") == "error":
        raise AnswerError(f"the server says: {error_words(value)}")
    choices = value.get("choices")
    if not isinstance(choices, list):
        raise AnswerError("an answer has no list of choices")
    model = value.get("model")
    named = model if isinstance(model, str) else None
    if not choices:
        return Chunk("", (), None, named)
    choice = choices[0]
    if not isinstance(choice, Mapping):
        raise AnswerError("a choice is no object")
    try:
        tokens = read_logprobs(choice.get("logprobs"))
    except ReportError as error:
        raise AnswerError(str(error)) from None
    finish = choice.get("finish_reason")
    if finish is not None and not isinstance(finish, str):
        raise AnswerError("finish_reason is no text")
    return Chunk(_text_of(choice), tuple(tokens), finish, named)


def _text_of(choice: Mapping[str, Any]) -> str:
    said = choice.get("delta", choice.get("message"))
    if said is None and "text" in choice:
        text = choice["text"]
    elif isinstance(said, Mapping):
        if said.get("reasoning_content") or said.get("reasoning"):
            raise AnswerError(
                "the server takes the thinking out of the answer: start it without a reasoning parser (llama-server:"
                ' request = { reasoning_format = "none" })'
            )
        if said.get("tool_calls") or said.get("function_call"):
            raise AnswerError("the server answers with a call of a tool, which was not asked for")
        if said.get("refusal"):
            raise AnswerError(f"the model refuses: {_short(said['refusal'])}")
        text = said.get("content")
    else:
        raise AnswerError("a choice has no delta, message or text")
    if text is None:
        return ""
    if not isinstance(text, str):
        raise AnswerError("the text of an answer is no text")
    return "".join("\ufffd" if "\ud800" <= character < "\ue000" else character for character in text)


def stop_reason(finish: str, tokens: int, unreported: int, max_tokens: int) -> tuple[StopReason, str | None]:
    """Return why a sequence ended, with a message where that needs one.

    Args:
        finish: the server's word.
        tokens: reported ones.
        unreported: stretches of text without a token, of at most four tokens each.
        max_tokens: that were asked for.
    """
    if finish == "length":
        if tokens + 4 * unreported < max_tokens:
            return "context", f"the server stopped after {tokens} of {max_tokens} tokens: its context is full"
        return "length", None
    if finish in {"stop", "eos", "eos_token", "end_turn"}:
        return "end", None
    if finish == "content_filter":
        return "failed", "the server's content filter ended the answer"
    return "failed", f'the server ended the answer with "{_short(finish)}"'


# --- what servers say of themselves -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServedModel:
    """What a list of models says of one.

    Attributes:
        told: names and values of what tells it from others.
        context: tokens; 0 where it does not say.
        owner: whose it is, mostly the name of the server's program.
        parameters, vocabulary_size, file_bytes: None where it does not say.
    """

    told: tuple[tuple[str, str], ...] = ()
    context: int = 0
    owner: str | None = None
    parameters: int | None = None
    vocabulary_size: int | None = None
    file_bytes: int | None = None


def served_models(value: object) -> dict[str, ServedModel]:
    """Read a list of models by name; a list of another form is empty."""
    entries = value.get("data") if isinstance(value, Mapping) else None
    found = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), str):
            found[entry["id"]] = _served(entry)
            aliases = entry.get("aliases")
            for alias in aliases if isinstance(aliases, list) else ():
                if isinstance(alias, str):
                    found.setdefault(alias, found[entry["id"]])
    return found


def _served(entry: Mapping[str, Any]) -> ServedModel:
    meta = entry.get("meta")
    known = {**(meta if isinstance(meta, Mapping) else {}), **entry}
    told = tuple((name, str(known[name])) for name in _TOLD if isinstance(known.get(name), str | int))
    owner = entry.get("owned_by")
    return ServedModel(
        told=told,
        context=_count(known.get("max_model_len")) or _count(known.get("n_ctx_train")) or 0,
        owner=owner if isinstance(owner, str) else None,
        parameters=_count(known.get("n_params")),
        vocabulary_size=_count(known.get("n_vocab")),
        file_bytes=_count(known.get("size")),
    )


def identity_of(server: Server, served: ServedModel, answered: str | None) -> str:
    """Return what tells a served model from others: address, name, and what the server reports of it."""
    told = [f"{name}={visible(value, 100)}" for name, value in served.told]
    if answered is not None and answered != server.model:
        told.append(f"answers as {visible(answered, 100)}")
    return f"remote:{server.address}|{server.model}|{','.join(told)}"


def error_words(value: object) -> str:
    """Return what a server says went wrong, as one short visible line; never a key, which servers do not repeat."""
    found: object = value
    for name in ("error", "detail", "message", "msg"):
        if isinstance(found, list) and found:
            found = found[0]
        if isinstance(found, Mapping) and name in found:
            found = found[name]
    return _short(found)


def is_about_context(words: str) -> bool:
    """Say whether a refusal is about a prompt that is too long; servers have no common code for it."""
    said = words.lower()
    return "context" in said and any(word in said for word in ("length", "exceed", "window", "size", "too long"))


def _count(value: object) -> int | None:
    """Return a positive count that SQLite can hold, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63 else None


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return visible(text, _LONGEST_WORDS)
