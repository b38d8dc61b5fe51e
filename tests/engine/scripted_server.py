"""A server that speaks OpenAI's interface as a test tells it to, with every fault that a server can have."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

STREAM = "text/event-stream; charset=utf-8"


@dataclass
class Answer:
    """What goes over the wire: parts are sent as they are, numbers are pauses in seconds."""

    parts: Iterable[bytes | float] = ()
    status: int = 200
    kind: str = STREAM
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Asked:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def last(self) -> str:
        """The text of the last message, or the prompt."""
        return self.body["messages"][-1]["content"] if "messages" in self.body else self.body["prompt"]

    @property
    def is_probe(self) -> bool:
        """One of the short requests with which a server is looked at."""
        return "Name a colour." in self.last


Behave = Callable[[Asked, int], Answer]


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def entry(token: str, logprob: float = -0.25, top: dict[str, float] | None = None, **more: object) -> dict[str, Any]:
    """Return a token of a chat completion; without ``top`` the list holds it and one other."""
    listed = {token: logprob, "other": math.log(0.1)} if top is None else top
    tops = [{"token": name, "logprob": value, "bytes": None} for name, value in listed.items()]
    return {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": tops, **more}


def chunk(
    text: str | None, entries: list[dict[str, Any]] | None, finish: str | None = None, model: str = "m"
) -> dict[str, Any]:
    logprobs = None if entries is None else {"content": entries, "refusal": None}
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "model": model, "choices": [choice]}


def said(*tokens: str, finish: str | None = "stop", logprob: float = -0.25, **more: Any) -> Answer:
    """Return an answer of these tokens, one per event."""
    parts: list[bytes | float] = [event(chunk("", None))]
    parts += [event(chunk(token, [entry(token, logprob, **more)])) for token in tokens]
    if finish is not None:
        parts += [event(chunk(None, None, finish)), b"data: [DONE]\n\n"]
    return Answer(parts)


def probed(asked: Asked) -> Answer:
    """Answer a probe: log-probabilities do not change with the temperature."""
    return said("red", finish="length", top={"red": -0.25, "blue": -2.0, "green": -3.0})


def fails(status: int, message: str = "busy", **headers: str) -> Answer:
    return Answer([json.dumps({"error": {"message": message}}).encode()], status, "application/json", headers)


class ScriptedServer:
    """Serves on a free port of this machine until it is left.

    Args:
        behave: called with every request that asks for an answer, and how many came before it.
        models: what `/v1/models` says; None has no such list.
        probe: whether `behave` is asked about probes too.
    """

    def __init__(
        self,
        behave: Behave,
        *,
        models: object = None,
        probe: Callable[[Asked], Answer] | None = probed,
        listed: Answer | None = None,
    ) -> None:
        self.asked: list[Asked] = []
        lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: object) -> None:
                pass

            def do_GET(self) -> None:
                if listed is not None:
                    self._send(listed)
                elif models is None:
                    self._send(fails(404, "no such path"))
                else:
                    self._send(Answer([json.dumps(models).encode()], kind="application/json"))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                request = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                with lock:
                    is_probe = probe is not None and request.is_probe
                    number = len(outer.asked)
                    if not is_probe:
                        outer.asked.append(request)
                self._send(probe(request) if probe is not None and is_probe else behave(request, number))

            def _send(self, answer: Answer) -> None:
                self.send_response(answer.status)
                self.send_header("content-type", answer.kind)
                for name, value in answer.headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("connection", "close")
                self.end_headers()
                self.close_connection = True
                try:
                    for part in answer.parts:
                        if isinstance(part, float):
                            time.sleep(part)
                        else:
                            self.wfile.write(part)
                            self.wfile.flush()
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client had read enough

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Its base address."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def entry(self, **more: str) -> str:
        """Return a table of ``models.toml`` for it."""
        keys = {"url": self.url, "model": "m", **more}
        return "[served]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in keys.items())

    def __enter__(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; answers that are being sent are left to their threads."""
        self._server.shutdown()
        self._server.server_close()


def endless(part: bytes) -> Iterator[bytes | float]:
    """Yield one part for ever."""
    while True:
        yield part
