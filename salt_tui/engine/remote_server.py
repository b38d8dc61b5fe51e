"""A model on a server that speaks OpenAI's interface: where it is, and what may be said about it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from salt_tui.visible_text import visible

RESERVED = frozenset(
    {"model", "messages", "prompt", "stream", "stream_options", "logprobs", "top_logprobs", "max_tokens", "n", "echo"}
    | {"temperature", "top_p", "top_k", "min_p", "repeat_penalty", "repetition_penalty", "seed", "stop", "tools"}
)
"""Fields of a request that the program fills in itself or that would change what an answer is."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"api.?key|authori[sz]ation|bearer|secret|password|^(access.?)?token$", re.IGNORECASE)
_USUAL_PATH = "/v1"


@dataclass(frozen=True, slots=True)
class Server:
    """Where a served model is and how it is asked.  The key itself stands in no object: the child reads it.

    Attributes:
        url: base address, e.g. ``http://127.0.0.1:8000/v1``; without user, password and query.
        model: the name that it is served under.
        key_env: name of the environment variable that holds the key; None for a server without one.
        completions: ask for completions of a plain prompt instead of chat completions.
        request: further fields of every request.
    """

    url: str
    model: str
    key_env: str | None = None
    completions: bool = False
    request: dict[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Host, port and path, for people and for the identity of the model."""
        return self.url.partition("://")[2]

    @property
    def is_this_machine(self) -> bool:
        """Nothing leaves the machine."""
        return is_loopback(urlsplit(self.url).hostname or "")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user must know before a key is sent."""
        if self.key_env is None or self.is_this_machine or self.url.startswith("https://"):
            return ()
        return (f"the key of {self.key_env} goes to {visible(self.address)} unencrypted; use https",)


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_url(text: str) -> str:
    """Return the base address of a server; without a path it gets ``/v1``.

    Raises:
        ValueError: it is none, or could hold a key.  The message never repeats the address.
    """
    example = "such as http://127.0.0.1:8000/v1"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"is no address {example}") from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment or "?" in text:
        raise ValueError(
            "must hold no user, password or query, where keys would be stored and shown: put the key into an"
            " environment variable and name that in key_env"
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname or not text.isascii() or not text.isprintable():
        raise ValueError(f"must be an http or https address {example}")
    if any(character.isspace() for character in text):
        raise ValueError(f"must be an http or https address {example}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/") or _USUAL_PATH
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}"


def secret_name(value: object) -> str | None:
    """Return the first name in nested tables that a key or password would have; None where there is none."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if _SECRET.search(str(name)):
                return str(name)
            if (found := secret_name(inner)) is not None:
                return found
    if isinstance(value, list):
        return next((found for inner in value if (found := secret_name(inner)) is not None), None)
    return None


def is_variable_name(text: str) -> bool:
    """Say whether a text can be the name of an environment variable; a key mostly cannot."""
    return _VARIABLE.fullmatch(text) is not None
