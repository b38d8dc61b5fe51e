"""Requests to a server over HTTP: sent again where that may help, bounded in everything that a server chooses.

Runs in the event loop of the remote engine's child.  The key is read there, stands in one header and nowhere else; what
a server repeats of it is struck out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2

from salt_tui import __version__
from salt_tui.engine.remote_requests import (
    AnswerError,
    Chunk,
    ServedModel,
    error_words,
    is_about_context,
    path_of,
    read_chunk,
    served_models,
)
from salt_tui.engine.remote_server import Server
from salt_tui.visible_text import visible

_TIMES = httpx2.Timeout(connect=10.0, read=300.0, write=60.0, pool=None)
"""Seconds.  A long prompt may take minutes before the first byte."""

_LEAST_BYTES, _BYTES_A_TOKEN = 1 << 20, 1 << 16
"""What an answer may have; a token with 20 alternatives has about 2,000 bytes."""

_MOST_ERROR_BYTES = 1 << 16
_LONGEST_WAIT = 300.0
_QUIET_SECONDS = 5.0
"""Between two notices about the same."""

_LATER = {408: False, 425: False, 429: True, 500: False, 502: True, 503: True, 504: True, 529: True}
"""Statuses after which the same request may be answered, and whether every other request would meet them too."""

_SHOWN_NAMES = 8

FIRST_WAIT = 0.5
"""Seconds before a request is first sent again, where nothing else is asked for."""


class ServerError(Exception):
    """Nothing can be asked of the server; the message is one line."""


class LaterError(Exception):
    """A request was tried as often as is sensible; ``for_all``: another one would fare no better."""

    def __init__(self, message: str, *, for_all: bool) -> None:
        """Keep whom it concerns."""
        super().__init__(message)
        self.for_all = for_all


class RefusedError(Exception):
    """The server refuses this one request; ``about_context``: the prompt is too long for it."""

    def __init__(self, message: str, *, about_context: bool) -> None:
        """Keep what it is about."""
        super().__init__(message)
        self.about_context = about_context


class CutError(Exception):
    """An answer broke off after it had begun."""


class _Later(Exception):
    """A try that failed and may be repeated."""

    def __init__(self, words: str, *, for_all: bool, wait: float | None = None) -> None:
        super().__init__(words)
        self.for_all = for_all
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Waits:
    """How long to wait before a request is sent again: twice as long each time, with jitter.

    Attributes:
        first: seconds before the first repetition.
        generator: of the jitter.
        tries: in all.
    """

    first: float
    generator: random.Random
    tries: int = 8

    def seconds(self, failed: int) -> float:
        """Return the seconds after so many failed tries: between half of the doubled wait and all of it."""
        return float(self.first * 2 ** (failed - 1) * self.generator.uniform(0.5, 1.0))


class _Bearer(httpx2.Auth):
    """Sends the key, or nothing: without an object of its own a client would look for passwords in ``~/.netrc``."""

    def __init__(self, key: str | None) -> None:
        self._key = key

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        if self._key is not None:
            request.headers["Authorization"] = f"Bearer {self._key}"
        yield request


class Client:
    """Asks one server.

    Args:
        server: where it is.
        key: of it, if it needs one.
        waits: before a request is sent again.
        notice: takes one line about waiting.
    """

    def __init__(self, server: Server, key: str | None, waits: Waits, notice: Callable[[str], None]) -> None:
        self._server = server
        self._key = key
        self._waits = waits
        self._notice = notice
        self._noticed = -_QUIET_SECONDS
        self._not_before = 0.0
        self._program: str | None = None
        try:
            self._http = httpx2.AsyncClient(
                auth=_Bearer(key),
                headers={"User-Agent": f"salt-tui/{__version__}", "Accept-Encoding": "identity"},
                timeout=_TIMES,
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
                # The certificates of this machine take 0.1 s to read, for nothing where nothing is encrypted.
                verify=True if server.url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                follow_redirects=False,  # the key would go where nobody meant it to
                trust_env=not server.is_this_machine,
            )
        except (ValueError, OSError, httpx2.InvalidURL) as error:
            raise ServerError(f"cannot be asked: {self._words(error)}") from None

    @property
    def versions(self) -> dict[str, str]:
        """What the answers were made with: the library, and the program that the server names."""
        return {"httpx2": httpx2.__version__} | ({} if self._program is None else {"server": self._program})

    async def served(self) -> ServedModel:
        """Return what the server says of the model; nothing where it has no list of models.

        Raises:
            ServerError: it does not have the model, or nothing can be asked of it.
            LaterError: it fails again and again.
        """
        value = await self._list_of_models()
        found = served_models(value)
        if found and self._server.model not in found:
            names = ", ".join(visible(name, 60) for name in list(found)[:_SHOWN_NAMES])
            raise ServerError(f'no model is served as "{visible(self._server.model, 60)}"; there are: {names}')
        return found.get(self._server.model, ServedModel())

    async def ask(self, body: dict[str, Any], max_tokens: int) -> AsyncGenerator[Chunk, None]:
        """Ask and yield the answer piece by piece.

        Args:
            body: of the request.
            max_tokens: that it asks for; bounds what is read.

        Raises:
            ServerError, LaterError, RefusedError, CutError, AnswerError: one line each.
        """
        failed = 0
        while True:
            await self._until_allowed()
            begun = False
            try:
                async with contextlib.aclosing(self._stream(body, max_tokens)) as chunks:
                    async for chunk in chunks:
                        begun = True
                        yield chunk
            except _Later as later:
                if begun:
                    raise CutError(f"the answer broke off: {later}") from None
                failed += 1
                self._wait_or_give_up(later, failed)
            else:
                return

    # --- one try ------------------------------------------------------------------------------------------------

    async def _list_of_models(self) -> object:
        failed = 0
        while True:
            await self._until_allowed()
            try:
                async with self._http.stream("GET", f"{self._server.url}/models") as response:
                    self._program = self._named_program(response)
                    if response.status_code in {404, 405, 501}:
                        return None
                    await self._check(response)
                    return _json(await self._read(response, _LEAST_BYTES))
            except httpx2.HTTPError as error:
                # Nobody waits for a server that is not running; one that goes away later may come back.
                words = self._words(error)
                raise ServerError(
                    f"no safe connection: {words}" if _is_about_safety(words) else f"cannot be reached ({words})"
                ) from None
            except _Later as later:
                failed += 1
                self._wait_or_give_up(later, failed)
            except AnswerError:
                return None

    async def _stream(self, body: dict[str, Any], max_tokens: int) -> AsyncGenerator[Chunk, None]:
        limit = _LEAST_BYTES + _BYTES_A_TOKEN * max_tokens
        url = self._server.url + path_of(self._server)
        try:
            async with self._http.stream("POST", url, json=body) as response:
                await self._check(response)
                if response.headers.get("content-type", "").startswith("application/json"):
                    yield self._chunk(_json(await self._read(response, limit)))
                    return
                async for data in _events(response, limit):
                    yield self._chunk(_json(data))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            self._refuse_or_retry(error)
        except httpx2.TimeoutException:
            raise _Later(f"nothing came for {_TIMES.read:.0f} s", for_all=False) from None
        except httpx2.HTTPError as error:
            raise _Later(self._words(error), for_all=False) from None

    def _chunk(self, value: object) -> Chunk:
        try:
            return read_chunk(value)
        except AnswerError as error:
            raise AnswerError(self._without_key(str(error))) from None

    def _refuse_or_retry(self, error: httpx2.HTTPError) -> None:
        """Tell a server that may come back from one that cannot be talked to."""
        words = self._words(error)
        if _is_about_safety(words):
            raise ServerError(f"no safe connection: {words}") from None
        raise _Later(f"cannot be reached ({words})", for_all=True) from None

    async def _check(self, response: httpx2.Response) -> None:
        """Refuse every status but success."""
        status = response.status_code
        if status == 200:
            return
        if 300 <= status < 400:
            raise ServerError(f"redirects to {_place(response)}; write the right url into models.toml")
        said = error_words(_json_or_text(await self._read(response, _MOST_ERROR_BYTES, cut=True)))
        what = self._without_key(f"answers {status}" + (f" ({said})" if said else ""))
        if status in {401, 403}:
            key = self._server.key_env
            advice = f"it does not accept the key in {key}" if key else "name the variable with its key in key_env"
            raise ServerError(f"{what}: {advice}")
        if status in _LATER:
            raise _Later(what, for_all=_LATER[status], wait=_retry_after(response.headers.get("retry-after")))
        if status in {400, 413, 422}:
            raise RefusedError(what, about_context=is_about_context(said))
        if status in {404, 405}:
            raise ServerError(f"{what}: no {path_of(self._server)} there, or no such model; does url end in /v1?")
        raise ServerError(what)

    @staticmethod
    async def _read(response: httpx2.Response, limit: int, *, cut: bool = False) -> bytes:
        """Read a body of limited size; a longer one is refused, or cut."""
        found = bytearray()
        async for data in response.aiter_bytes():
            found += data
            if len(found) > limit:
                if cut:
                    break
                raise AnswerError(f"the answer has more than {limit:,} bytes")
        return bytes(found[:limit])

    # --- waiting ------------------------------------------------------------------------------------------------

    def _wait_or_give_up(self, later: _Later, failed: int) -> None:
        """Let every request wait; one that has waited often enough is given up."""
        if later.wait is not None and later.wait > _LONGEST_WAIT:
            raise LaterError(f"{later}; it asks to wait {later.wait:.0f} s", for_all=True) from None
        if failed >= self._waits.tries:
            raise LaterError(f"{later}; tried {failed} times", for_all=later.for_all) from None
        seconds = self._waits.seconds(failed) if later.wait is None else later.wait
        self._not_before = max(self._not_before, time.monotonic() + seconds)
        if time.monotonic() - self._noticed >= _QUIET_SECONDS:
            self._noticed = time.monotonic()
            self._notice(f"{self._server.address} {later}: tried again in {seconds:.1f} s")

    async def _until_allowed(self) -> None:
        while (left := self._not_before - time.monotonic()) > 0:
            # Not all at once when the wait is over.
            await asyncio.sleep(left + self._waits.generator.uniform(0.0, 0.1 * left))

    # --- words --------------------------------------------------------------------------------------------------

    def _named_program(self, response: httpx2.Response) -> str | None:
        name = response.headers.get("server")
        return None if name is None else visible(self._without_key(name), 80)

    def _words(self, error: BaseException) -> str:
        words = " ".join(str(error).split()) or type(error).__name__
        return visible(self._without_key(words), 200)

    def _without_key(self, text: str) -> str:
        return text if not self._key else text.replace(self._key, "***")


def _is_about_safety(words: str) -> bool:
    return "SSL" in words or "certificate" in words.lower()


async def _events(response: httpx2.Response, limit: int) -> AsyncIterator[bytes]:
    """Yield the data of the events of a stream, up to ``[DONE]``."""
    rest = bytearray()
    total = 0
    async for data in response.aiter_bytes():
        total += len(data)
        if total > limit:
            raise AnswerError(f"the stream has more than {limit:,} bytes")
        rest += data
        *lines, last = rest.split(b"\n")
        rest = bytearray(last)
        for line in lines:
            found = _data(bytes(line))
            if found == b"[DONE]":
                return
            if found:
                yield found
    found = _data(bytes(rest))
    if found and found != b"[DONE]":
        yield found


def _data(line: bytes) -> bytes:
    """Return the data of a line; nothing for comments, other fields and blank lines."""
    line = line.rstrip(b"\r")
    name, colon, value = line.partition(b":")
    if name == b"error" and colon:
        raise AnswerError(f"the server says: {error_words(_json_or_text(value))}")
    if line and name not in {b"data", b"event", b"id", b"retry", b""}:
        raise AnswerError(f"the answer is no stream of events: {error_words(_json_or_text(line))}")
    return value.strip() if name == b"data" else b""


def _json(data: bytes) -> object:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        raise AnswerError("a piece of the answer is no JSON") from None
    return value


def _json_or_text(data: bytes) -> object:
    try:
        return _json(data)
    except AnswerError:
        return data.decode("utf-8", "replace")


def _retry_after(value: str | None) -> float | None:
    """Read ``Retry-After``: seconds, or a date; what is neither counts as missing."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if seconds == seconds else None


def _place(response: httpx2.Response) -> str:
    """Return where a redirect points, without what could be a key."""
    try:
        parts = urlsplit(response.headers.get("location", ""))
    except ValueError:
        return "another address"
    host = parts.hostname or urlsplit(str(response.url)).hostname
    return visible(f"{parts.scheme or 'http'}://{host}{parts.path}", 120)
