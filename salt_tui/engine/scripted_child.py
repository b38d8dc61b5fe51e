"""The child process that plays a script instead of computing: tests and demonstrations without a model.

It speaks the whole protocol, so everything above the engine runs on it unchanged.  `salt_tui.engine.script` says
what a script holds.  Vocabulary: id 0 ends a generation, ids 1 to 256 are the bytes 0 to 255, then come the texts
of the script in order of first appearance.  Text is tokenised from left to right, always by the longest known text,
else by a byte.  A reply's tokens are the whole answer: a forced token takes the place of the scripted one at its
position and has that one's statistics, its own log-probability where the script lists it there, else
`UNLISTED_LOG_PROBABILITY`.  Sampling options change nothing.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from salt_tui import __version__
from salt_tui.engine import wire
from salt_tui.engine.chat_template import ChatTemplate, render_plain
from salt_tui.engine.engine import (
    Build,
    ChatTurn,
    ContextError,
    ContextInfo,
    ContextOptions,
    EngineError,
    Exactness,
    Generate,
    LoadOptions,
    LoadProgress,
    ModelError,
    ModelInfo,
    PromptProgress,
    SequenceEnded,
    Speed,
    Token,
    check_width,
)
from salt_tui.engine.script import Script, ScriptedToken, read_script
from salt_tui.engine.serve import Outlet, main

END_TOKEN = 0
END_TEXT = b"<|im_end|>"
UNLISTED_LOG_PROBABILITY = -12.0
"""Of a forced token that the script does not list at its position."""

_EXACT = {"company": 0.0}
_END = ScriptedToken(END_TEXT.decode(), -0.015625, 0.0625)  # a power of two survives the float32 of the pipe


@dataclass(slots=True)
class _Sequence:
    """One sequence in a slot: where its prompt and its reply are."""

    request: Generate
    reply: int
    evaluated: int
    reported: int = 0


class ScriptedBackend:
    """A `Backend` that plays a script, deterministically."""

    def __init__(self) -> None:
        """Start without a script; `load` reads it."""
        self._script = Script(())
        self._path = Path()
        self._vocabulary: tuple[bytes, ...] = ()
        self._ids: dict[bytes, int] = {}
        self._longest = 0
        self._template: ChatTemplate | None = None
        self._width = self._context = 0
        self._waiting: deque[Generate] = deque()
        self._running: list[_Sequence] = []
        self._served = 0
        self._evaluated: set[tuple[int, ...]] = set()
        self._hurry = threading.Event()

    def build(self) -> Build:
        """Describe the child: no device, no library."""
        return Build("scripted", {"salt-tui": __version__}, False, (), "plays a script")

    def load(self, options: LoadOptions, progress: Callable[[LoadProgress], None]) -> ModelInfo:
        """Read the script; raises `ModelError`."""
        self._width = 0
        self._path = Path(options.path)
        self._script = script = read_script(self._path)
        if script.load_failure is not None:
            raise ModelError(script.load_failure)
        progress(LoadProgress(0.5))
        pieces = [END_TEXT, *(bytes([byte]) for byte in range(256))]
        known = set(pieces)
        pieces += [text.encode() for text in script.texts() if text.encode() not in known]
        self._vocabulary = tuple(pieces)
        self._ids = {piece: number for number, piece in enumerate(pieces)}
        self._longest = max(map(len, pieces))
        source = script.template if options.template is None else options.template
        self._template = (
            ChatTemplate(source, "", END_TEXT.decode(), options.template_options, options.date) if source else None
        )
        thinking_open = self._template.thinking_open() if self._template else False
        progress(LoadProgress(1.0))
        model = script.model
        return ModelInfo(
            description=model.get("description", "a scripted model"),
            architecture=model.get("architecture", "scripted"),
            name=model.get("name"),
            quantisation=model.get("quantisation"),
            parameters=model.get("parameters", 1),
            file_bytes=self._path.stat().st_size,
            vocabulary_size=len(pieces),
            trained_context=model.get("trained_context", 8192),
            layers=model.get("layers", 1),
            gpu_layers=0,
            template=source or None,
            thinking_open=thinking_open,
            warnings=tuple(model.get("warnings", ())),
            build=self.build(),
        )

    def vocabulary(self) -> tuple[bytes, ...]:
        """Return the bytes of every id."""
        return self._vocabulary

    def encode(self, conversations: Sequence[Sequence[ChatTurn]]) -> list[tuple[int, ...]]:
        """Render and tokenise each conversation."""
        render = self._template.render if self._template else render_plain
        return [self._tokens(render(turns).encode(), special=True) for turns in conversations]

    def tokenize(self, text: bytes) -> tuple[int, ...]:
        """Tokenise bytes."""
        return self._tokens(text, special=False)

    def open_context(self, options: ContextOptions) -> ContextInfo:
        """Take over width and context; raises `ContextError`."""
        check_width(options.width)
        if self._script.context_failure is not None:
            raise ContextError(self._script.context_failure)
        self._width, self._context = options.width, options.context
        self._running.clear()
        self._waiting.clear()
        self._evaluated.clear()
        self._served = 0
        differences = (self._script.exactness or _EXACT) if options.check != "none" else {}
        return ContextInfo(
            width=options.width,
            context=options.context,
            batch=options.batch,
            micro_batch=options.micro_batch,
            threads=options.threads or 1,
            gpu_layers=0,
            flash_attention=options.flash_attention == "on",
            key_type=options.key_type,
            value_type=options.value_type,
            exactness=Exactness(differences, not any(differences.values()) if differences else None),
        )

    def measure(self, request: wire.Measure) -> Speed:
        """Refuse: nothing is computed here."""
        raise EngineError("a scripted model computes nothing: there is no speed to measure")

    def submit(self, request: Generate) -> None:
        """Queue a sequence."""
        self._waiting.append(request)

    def step(self, outlet: Outlet) -> bool:
        """Evaluate one chunk of a prompt, or report one token of every running sequence."""
        while self._waiting and (not self._width or len(self._running) < self._width):
            self._start(self._waiting.popleft(), outlet)
        if not self._running:
            return False
        if self._script.seconds_per_step:
            self._hurry.wait(self._script.seconds_per_step)
        for sequence in self._running:
            if sequence.evaluated < len(sequence.request.prompt):
                self._evaluate(sequence, outlet)
                return True
        tokens: list[Token] = []
        ended: list[SequenceEnded] = []
        for sequence in list(self._running):
            token, end = self._next(sequence)
            if token is not None:
                tokens.append(token)
            if end is not None:
                ended.append(end)
                self._running.remove(sequence)
        outlet.tokens(tokens)
        for end in ended:
            outlet.ended(end)
        for sequence in self._running:
            self._crash_if_due(sequence)
        return True

    def interrupt(self, key: int | None) -> None:
        """Cut the time of the step short."""
        self._hurry.set()

    def cancel(self, key: int | None, outlet: Outlet) -> None:
        """End one sequence, or all."""
        self._hurry.clear()
        keys = [sequence.request.key for sequence in self._running] + [request.key for request in self._waiting]
        cancelled = [number for number in keys if key is None or number == key]
        self._running = [sequence for sequence in self._running if sequence.request.key not in cancelled]
        self._waiting = deque(request for request in self._waiting if request.key not in cancelled)
        for number in cancelled:
            outlet.ended(SequenceEnded(number, "cancelled"))

    # --- one sequence -------------------------------------------------------------------------------------------

    def _start(self, request: Generate, outlet: Outlet) -> None:
        if not self._width:
            outlet.ended(SequenceEnded(request.key, "failed", "no context is open"))
            return
        if any(not 0 <= number < len(self._vocabulary) for number in (*request.prompt, *request.forced)):
            outlet.ended(SequenceEnded(request.key, "failed", "a token id outside the vocabulary"))
            return
        if len(request.prompt) >= self._context:
            message = f"the prompt has {len(request.prompt)} tokens and the context {self._context}"
            outlet.ended(SequenceEnded(request.key, "context", message))
            return
        prompt = b"".join(self._vocabulary[number] for number in request.prompt).decode("utf-8", "replace")
        reply = self._script.choose(prompt)
        if reply is None:
            unmatched = [index for index, one in enumerate(self._script.replies) if not one.match]
            if not unmatched:
                outlet.ended(SequenceEnded(request.key, "failed", "the script has no reply to this prompt"))
                return
            reply = unmatched[self._served % len(unmatched)]
            self._served += 1
        preamble = request.prompt[: request.preamble]
        self._running.append(_Sequence(request, reply, len(preamble) if preamble in self._evaluated else 0))

    def _evaluate(self, sequence: _Sequence, outlet: Outlet) -> None:
        total = len(sequence.request.prompt)
        sequence.evaluated = min(total, sequence.evaluated + (self._script.prompt_tokens_per_step or total))
        if sequence.evaluated >= sequence.request.preamble:
            self._evaluated.add(sequence.request.prompt[: sequence.request.preamble])
        outlet.progress(PromptProgress(sequence.request.key, sequence.evaluated, total))
        if sequence.evaluated == total:
            self._crash_if_due(sequence)

    def _next(self, sequence: _Sequence) -> tuple[Token | None, SequenceEnded | None]:
        """Return the next token of a sequence, if there is one, and its end, if it is over after that."""
        request, reply, position = sequence.request, self._script.replies[sequence.reply], sequence.reported
        forced = position < len(request.forced)
        if position < len(reply.tokens):
            scripted = reply.tokens[position]
        elif reply.end or forced:
            scripted = _END
        else:
            return None, SequenceEnded(request.key, "length")
        token = self._token(request.key, scripted, request.forced[position] if forced else None)
        sequence.reported += 1
        if token.end:
            return token, SequenceEnded(request.key, "end")
        if sequence.reported == request.max_tokens:
            return token, SequenceEnded(request.key, "length")
        if len(request.prompt) + sequence.reported == self._context:
            return token, SequenceEnded(request.key, "context")
        return token, None

    def _token(self, key: int, scripted: ScriptedToken, forced: int | None) -> Token:
        """Give a scripted token its id, or a forced id the scripted statistics."""
        number = self._ids[scripted.text.encode()]
        listed = {self._ids[text.encode()]: value for text, value in scripted.alternatives}
        listed[number] = scripted.log_probability
        ranked = sorted(listed.items(), key=lambda item: (-item[1], item[0]))
        shown = number if forced is None else forced
        return Token(
            key=key,
            id=shown,
            log_probability=listed.get(shown, UNLISTED_LOG_PROBABILITY),
            entropy=scripted.entropy,
            alternatives=tuple(alternative for alternative, _ in ranked),
            alternative_log_probabilities=tuple(value for _, value in ranked),
            forced=forced is not None,
            end=shown == END_TOKEN,
        )

    def _crash_if_due(self, sequence: _Sequence) -> None:
        crash = self._script.replies[sequence.reply].crash
        if crash is None or sequence.reported != crash.after or sequence.evaluated < len(sequence.request.prompt):
            return
        marker = self._path.with_name(f"{self._path.name}.crash-{sequence.reply}")
        happened = marker.stat().st_size if marker.exists() else 0
        if happened < crash.times:
            marker.write_bytes(b"x" * (happened + 1))
            os.kill(os.getpid(), crash.signal)

    def _tokens(self, text: bytes, *, special: bool) -> tuple[int, ...]:
        tokens: list[int] = []
        start = 0
        while start < len(text):
            lengths = range(min(self._longest, len(text) - start), 0, -1)
            known = (self._ids.get(text[start : start + length]) for length in lengths)
            number = next(number for number in known if number is not None and (special or number != END_TOKEN))
            tokens.append(number)
            start += len(self._vocabulary[number])
        return tuple(tokens)


if __name__ == "__main__":
    main(lambda _: ScriptedBackend())
