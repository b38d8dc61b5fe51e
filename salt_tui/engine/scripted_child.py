"""The child process that plays a script instead of computing: tests and demonstrations without a model.

It speaks the whole protocol, so everything above the engine runs on it unchanged.  `salt_tui.engine.script` says
what a script holds.  Vocabulary: id 0 ends a generation, ids 1 to 256 are the bytes 0 to 255, then come the texts
of the script in order of first appearance.  Text is tokenised from left to right, always by the longest known text,
else by a byte.  A reply's tokens are the whole answer: a forced token takes the place of the scripted one at its
position and has that one's statistics, its own log-probability where the script lists it there, else
`UNLISTED_LOG_PROBABILITY`.  Choices and readouts see the same numbers; a scripted distribution need not sum to one.
Sampling options change nothing in free segments.  Activations are pseudo-random numbers from -1 to 1 that depend on
the prompt, the position, the token before it and the layer.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from salt_tui import __version__
from salt_tui.engine import wire
from salt_tui.engine.chat_template import ChatTemplate, follow_up, prompt_bytes, render_plain
from salt_tui.engine.engine import NextTurn
from salt_tui.engine.errors import ContextError, EngineError, ModelError
from salt_tui.engine.events import Activations, LoadProgress, PromptProgress, SequenceEnded, Token
from salt_tui.engine.model_info import Build, Capabilities, ContextInfo, Exactness, ModelInfo, Speed
from salt_tui.engine.options import ContextOptions, LoadOptions, check_layers, check_width
from salt_tui.engine.readouts import IdSet, check_ids, refusal
from salt_tui.engine.reply import Outcome, Reply, Vocabulary
from salt_tui.engine.requests import ChatTurn, Generate, ids_of
from salt_tui.engine.script import Script, ScriptedToken, read_script
from salt_tui.engine.serve import Outlet, main
from salt_tui.engine.statistics import Distribution, Logits

END_TOKEN = 0
END_TEXT = b"<|im_end|>"
UNLISTED_LOG_PROBABILITY = -12.0
"""Of a forced token that the script does not list at its position."""

_ACTIVATION_LAYERS, _ACTIVATION_WIDTH = 4, 8

_EXACT = {"company": 0.0}
_END = ScriptedToken(END_TEXT.decode(), -0.015625, 0.0625)  # a power of two survives the float32 of the pipe


@dataclass(slots=True)
class _Sequence:
    """One sequence in a slot: where its prompt is, and which of the script's replies it says."""

    request: Generate
    scripted: int
    reply: Reply
    evaluated: int
    said: int = 0
    """The scripted token at the position that is settled next."""
    ids: list[int] = field(default_factory=list)
    """Tokens that are settled."""


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
        self._sets: dict[str, IdSet] = {}
        self._layers: tuple[int, ...] = ()
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
        self._sets.clear()
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
            capabilities=Capabilities("vocabulary", *self._activation_shape(), vocabulary=True, forced=True, cut=True),
            identity=None,
            end_tokens=(self._ids[END_TEXT],),
        )

    def vocabulary(self) -> tuple[bytes, ...]:
        """Return the bytes of every id."""
        return self._vocabulary

    def encode(self, conversations: Sequence[Sequence[ChatTurn]]) -> list[tuple[int, ...]]:
        """Render and tokenise each conversation."""
        render = self._template.render if self._template else render_plain
        return [self._tokens(prompt_bytes(render(turns)), special=True) for turns in conversations]

    def tokenize(self, text: bytes) -> tuple[int, ...]:
        """Tokenise bytes."""
        return self._tokens(text, special=False)

    def next_turn(self, reply: Sequence[int], turn: ChatTurn) -> NextTurn:
        """Continue a conversation after a reply."""
        kept = len(reply)
        while kept and reply[kept - 1] == END_TOKEN:
            kept -= 1
        said = b"".join(self._vocabulary[number] for number in reply[:kept]).decode("utf-8", "replace")
        before, content, after = follow_up(self._template, said, turn)
        special = self._template is not None
        parts = ((before, special), (content, False), (after, special))
        tokens = [token for part, on in parts for token in self._tokens(prompt_bytes(part), special=on)]
        return NextTurn(len(reply) - kept, tuple(tokens))

    def define_set(self, name: str, ids: Sequence[int]) -> None:
        """Name a set of ids."""
        check_ids(ids, len(self._vocabulary))
        self._sets[name] = np.unique(np.array(ids, np.int64))

    def open_context(self, options: ContextOptions) -> ContextInfo:
        """Take over width and context; raises `ContextError`."""
        check_width(options.width)
        check_layers(options.layers, self._activation_shape()[0] + 1)
        self._layers = options.layers
        if self._script.context_failure is not None:
            raise ContextError(self._script.context_failure)
        self._width, self._context = options.width, options.room
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
            outcome = self._next(sequence, outlet)
            for reading in outcome.readings:
                outlet.reading(reading)
            if outcome.token is not None:
                tokens.append(outcome.token)
            if outcome.reason is not None:
                ended.append(SequenceEnded(sequence.request.key, outcome.reason, outcome.message))
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
        if any(not 0 <= number < len(self._vocabulary) for number in ids_of(request)):
            outlet.ended(SequenceEnded(request.key, "failed", "a token id outside the vocabulary"))
            return
        if len(request.prompt) >= self._context:
            message = f"the prompt has {len(request.prompt)} tokens and the context {self._context}"
            outlet.ended(SequenceEnded(request.key, "context", message))
            return
        refused = refusal(request, self._sets, self._layers)
        if refused is not None:
            outlet.ended(SequenceEnded(request.key, "failed", refused))
            return
        prompt = b"".join(self._vocabulary[number] for number in request.prompt).decode("utf-8", "replace")
        scripted = self._script.choose(prompt, request.sampling)
        if scripted is None:
            unmatched = [index for index, one in enumerate(self._script.replies) if not one.match]
            if not unmatched:
                outlet.ended(SequenceEnded(request.key, "failed", "the script has no reply to this prompt"))
                return
            scripted = unmatched[self._served % len(unmatched)]
            self._served += 1
        preamble = request.prompt[: request.preamble]
        vocabulary = Vocabulary(len(self._vocabulary), {END_TOKEN}, self.vocabulary, self._sets)
        sequence: _Sequence

        def choose(distribution: Distribution) -> int:
            # Not what stands at `said`, which an aside has moved on.
            return self._ids[self._scripted(sequence, reply.decided).text.encode()]

        try:
            reply = Reply(request, vocabulary, self._context - len(request.prompt), choose)
        except ValueError as error:
            outlet.ended(SequenceEnded(request.key, "failed", str(error)))
            return
        sequence = _Sequence(request, scripted, reply, len(preamble) if preamble in self._evaluated else 0)
        self._running.append(sequence)

    def _evaluate(self, sequence: _Sequence, outlet: Outlet) -> None:
        total = len(sequence.request.prompt)
        sequence.evaluated = min(total, sequence.evaluated + (self._script.prompt_tokens_per_step or total))
        if sequence.evaluated >= sequence.request.preamble:
            self._evaluated.add(sequence.request.prompt[: sequence.request.preamble])
        outlet.progress(PromptProgress(sequence.request.key, sequence.evaluated, total))
        if sequence.evaluated == total:
            self._crash_if_due(sequence)

    def _next(self, sequence: _Sequence, outlet: Outlet) -> Outcome:
        """Settle the next token of a sequence, if there is one."""
        reply, request = sequence.reply, sequence.request
        while reply.in_trunk:
            reply.skip_trunk(reply.decided + 1)
            sequence.ids.append(reply.next_input[0])
        last, before = reply.next_input if reply.decided or reply.is_walking else (0, -1)
        sequence.said = before + 1
        scripted = self._script.replies[sequence.scripted]
        if sequence.said >= len(scripted.tokens) and not scripted.end and reply.is_free:
            return Outcome(reason="length")
        if request.layers and not reply.is_walking:
            outlet.reading(self._activations(sequence, last))
        outcome = reply.take(*self._row(self._scripted(sequence, sequence.said)))
        if outcome.token is not None and outcome.token.id is not None:
            sequence.ids.append(outcome.token.id)
        return outcome

    def _scripted(self, sequence: _Sequence, place: int) -> ScriptedToken:
        scripted = self._script.replies[sequence.scripted]
        if place >= len(scripted.tokens):
            return _END
        if scripted.reaction is None:
            return scripted.tokens[place]
        said = [self._vocabulary[number].decode("utf-8", "replace") for number in sequence.ids[:place]]
        return scripted.reacting(place, said)

    def _row(self, scripted: ScriptedToken) -> tuple[Logits, Distribution]:
        """Return a scripted token's place as if it had been computed; log-probabilities stand for logits."""
        listed = {self._ids[text.encode()]: value for text, value in scripted.alternatives}
        listed[self._ids[scripted.text.encode()]] = scripted.log_probability
        ranked = sorted(listed.items(), key=lambda item: (-item[1], item[0]))
        row = np.full(len(self._vocabulary), UNLISTED_LOG_PROBABILITY)
        row[list(listed)] = list(listed.values())
        ids, values = zip(*ranked, strict=True)
        # Doubles, so that the script's numbers come out as they went in.
        return cast(Logits, row), Distribution(0.0, 0.0, scripted.entropy, ids, values)

    def _activation_shape(self) -> tuple[int, int]:
        model = self._script.model
        return model.get("activation_layers", _ACTIVATION_LAYERS), model.get("activation_width", _ACTIVATION_WIDTH)

    def _activations(self, sequence: _Sequence, last: int) -> Activations:
        request, width = sequence.request, self._activation_shape()[1]
        vectors = [
            hashlib.shake_128(f"{request.prompt} {sequence.said} {last} {layer}".encode()).digest(2 * width)
            for layer in request.layers
        ]
        values = np.frombuffer(b"".join(vectors), "<i2").astype("<f4") / np.float32(1 << 15)
        return Activations(request.key, sequence.said, request.layers, values.astype("<f4").tobytes())

    def _crash_if_due(self, sequence: _Sequence) -> None:
        crash = self._script.replies[sequence.scripted].crash
        if crash is None or sequence.reply.decided != crash.after or sequence.evaluated < len(sequence.request.prompt):
            return
        marker = self._path.with_name(f"{self._path.name}.crash-{sequence.scripted}")
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
