"""llama.cpp's messages: written to the child's log, and kept for the sentence that explains a failure."""

from __future__ import annotations

import ctypes
import os
import re
from collections import deque

import llama_cpp

_DEBUG, _WARN, _ERROR, _CONTINUED = 1, 3, 4, 5
_KEPT_LINES = 200


class LlamaLog:
    """Takes over all messages of the library; one per process."""

    def __init__(self, descriptor: int) -> None:
        """Write messages above debug level to a descriptor from now on."""
        self._descriptor = descriptor
        self._lines: deque[tuple[int, str]] = deque(maxlen=_KEPT_LINES)
        # The library keeps the pointer only: the callback lives as long as this object.
        self._callback = llama_cpp.llama_log_callback(self._write)
        llama_cpp.llama_log_set(self._callback, ctypes.c_void_p(0))

    def clear(self) -> None:
        """Forget earlier messages, before an operation whose messages matter."""
        self._lines.clear()

    def contains(self, *words: str) -> bool:
        """Tell whether a message since `clear` has all these words."""
        return any(all(word in line for word in words) for _, line in self._lines)

    def number_after(self, words: str) -> int | None:
        """Return the first number behind these words in a message since `clear`."""
        for _, line in self._lines:
            match = re.search(re.escape(words) + r"\s*(\d+)", line)
            if match:
                return int(match[1])
        return None

    def reason(self) -> str:
        """Return the last error, or else the last warning, since `clear`; ``no reason given`` without one."""
        for wanted in (_ERROR, _WARN):
            for level, line in reversed(self._lines):
                # llama.cpp's last words repeat that loading failed; the reason stands before them.
                if level == wanted and "failed to load model" not in line.removeprefix(_reason_prefix(line)):
                    return line
        for _, line in reversed(self._lines):
            if "failed" in line or "error" in line:
                return line
        return "no reason given"

    def _write(self, level: int, text: bytes, data: ctypes.c_void_p) -> None:
        # Debug messages are thousands of lines per context: the log would hold nothing else.
        if level == _DEBUG:
            return
        os.write(self._descriptor, text)
        if level != _CONTINUED:
            self._lines.append((level, " ".join(text.decode("utf-8", "replace").split())))


def _reason_prefix(line: str) -> str:
    """Return the beginning of a line that says ``error loading model: <reason>``."""
    marker = "error loading model: "
    at = line.find(marker)
    return line[: at + len(marker)] if at >= 0 else ""
