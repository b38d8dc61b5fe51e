"""The script that the scripted child plays: a JSON file named ``….scripted.json``.

Keys, all but ``replies`` optional::

    {
      "model": {"description": "a scripted model", "trained_context": 8192, "warnings": [],
                "activation_layers": 4, "activation_width": 8},
      "template": "...",              chat template, "" for plain prompts; ChatML when absent
      "pieces": ["AT", "G"],          tokens on top of those that the replies use
      "load_failure": "...",          loading fails with this message
      "context_failure": "...",       making the context fails with this message
      "exactness": {"slots": 0.5},    result of the exactness check; bit for bit when absent
      "seconds_per_step": 0.01,       time that a chunk of a prompt, or a token in every slot, takes
      "prompt_tokens_per_step": 64,   size of those chunks; whole prompts when absent
      "replies": [
        {
          "match": "ATG",             the reply to prompts that hold this text; see below
          "tokens": [["AT", -0.1], ["G", -0.7, 1.2, [["C", -1.1]]]],
          "end": true,                false: no end-of-generation token, the reply stops as cut by the token limit
          "reacts": {"floor": 0.1, "fall": 0.25, "scale": 12, "global": 0.4, "local": 0.2, "seed": 1},
          "crash": {"after": 3, "signal": 11, "times": 1}
        }
      ]
    }

A token is its text, its natural log-probability, and optionally its entropy in nats and the alternatives to it with
their log-probabilities.  Without an entropy it is the least that the probability p allows while it is below one,
that of one other token with 1 - p.

Among the replies whose ``match`` is in the prompt, the one that occurs nearest to the end wins, then the longest:
problems stand last.  Of several with the same ``match`` the first answers greedily; at a temperature above 0 the seed
of the sequence draws one of them.  Replies without ``match`` serve the other prompts in order of submission, over and
over; the order begins anew with every child, so scripts that crash or resume should match.

A reply that reacts writes its atoms by what stands before them.  Its atoms are the tokens with alternatives, each of
which is right as it is listed and wrong as its first alternative.  Behind i atoms of which a share C is right, C10 of
the last ten, an atom is right with the probability floor + fall·exp(−(i − 10)/scale) + global·C + local·C10, held
inside 0.01 to 0.99, and has the log-probability of that.  The draw depends on the seed and on all tokens before.

A crash comes when that many tokens of the reply have been reported, until it has happened ``times`` times; a file
beside the script, ``NAME.crash-INDEX``, counts them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from salt_tui.engine.errors import ModelError
from salt_tui.engine.events import ALTERNATIVES
from salt_tui.engine.requests import Sampling
from salt_tui.similar_names import did_you_mean

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_MODEL_KEYS = {
    "description": str,
    "name": str,
    "architecture": str,
    "quantisation": str,
    "parameters": int,
    "trained_context": int,
    "layers": int,
    "activation_layers": int,
    "activation_width": int,
    "warnings": list,
}
_KEYS = {
    "model": dict,
    "template": str,
    "pieces": list,
    "load_failure": str,
    "context_failure": str,
    "exactness": dict,
    "seconds_per_step": float,
    "prompt_tokens_per_step": int,
    "replies": list,
}
_REPLY_KEYS = {"match": str, "tokens": list, "end": bool, "crash": dict, "reacts": dict}
_CRASH_KEYS = {"after": int, "signal": int, "times": int}
_REACTION_KEYS = {"floor": float, "fall": float, "scale": float, "global": float, "local": float, "seed": int}

_NEAR = 10
"""Atoms that are near: SALT section 5.1."""


@dataclass(frozen=True, slots=True)
class ScriptedToken:
    """One token of a reply; ``alternatives`` does not hold the token itself."""

    text: str
    log_probability: float
    entropy: float
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Crash:
    """The child ends itself with ``signal`` after ``after`` tokens, ``times`` times."""

    after: int
    signal: int
    times: int


@dataclass(frozen=True, slots=True)
class Reaction:
    """How the atoms of a reply depend on those before them; see the module's docstring."""

    floor: float
    fall: float
    scale: float
    global_effect: float
    local_effect: float
    seed: int

    def chance(self, right: Sequence[bool]) -> float:
        """Return the probability that an atom is right behind atoms of which these are."""
        share = sum(right) / len(right) if right else 0.0
        near = right[-_NEAR:]
        share_near = sum(near) / len(near) if near else 0.0
        fallen = self.fall * math.exp(-max(0, len(right) - _NEAR) / self.scale)
        chance = self.floor + fallen + self.global_effect * share + self.local_effect * share_near
        return min(0.99, max(0.01, chance))


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answers to a prompt that holds ``match``."""

    tokens: tuple[ScriptedToken, ...]
    match: str | None = None
    end: bool = True
    crash: Crash | None = None
    reaction: Reaction | None = None

    def reacting(self, place: int, said: Sequence[str]) -> ScriptedToken:
        """Return the token at a place of a reply that reacts, behind tokens with these texts."""
        token = self.tokens[place]
        if self.reaction is None or not token.alternatives:
            return token
        right = [text == one.text for text, one in zip(said, self.tokens[:place], strict=False) if one.alternatives]
        chance = self.reaction.chance(right)
        seen = hashlib.sha256(repr((self.reaction.seed, place, tuple(said))).encode()).digest()
        wrong = token.alternatives[0][0]
        texts = (token.text, wrong) if int.from_bytes(seen[:7], "big") / 2**56 < chance else (wrong, token.text)
        logs = {token.text: math.log(chance), wrong: math.log1p(-chance)}
        entropy = -sum(math.exp(log) * log for log in logs.values())
        return ScriptedToken(texts[0], logs[texts[0]], entropy, ((texts[1], logs[texts[1]]),))


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script; see the module's docstring."""

    replies: tuple[Reply, ...]
    model: dict[str, Any] = field(default_factory=dict)
    template: str = CHATML
    pieces: tuple[str, ...] = ()
    load_failure: str | None = None
    context_failure: str | None = None
    exactness: dict[str, float] | None = None
    seconds_per_step: float = 0.0
    prompt_tokens_per_step: int | None = None

    def texts(self) -> list[str]:
        """Return the text of every token that the script uses, in order of first appearance, without repeats."""
        texts = dict.fromkeys(self.pieces)
        for reply in self.replies:
            for token in reply.tokens:
                texts |= dict.fromkeys((token.text, *(text for text, _ in token.alternatives)))
        return list(texts)

    def choose(self, prompt: str, sampling: Sampling) -> int | None:
        """Return the index of the reply whose ``match`` decides for this prompt, None when none does."""
        found = {
            index: (prompt.rfind(reply.match) + len(reply.match), len(reply.match))
            for index, reply in enumerate(self.replies)
            if reply.match and reply.match in prompt
        }
        equal = [index for index, place in found.items() if place == max(found.values())]
        if not equal:
            return None
        return equal[sampling.seed % len(equal) if sampling.temperature else 0]


def read_script(path: Path) -> Script:
    """Read and check a script; raises `ModelError` that names the place."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON: {error}") from None
    try:
        return _script(value)
    except _ScriptError as error:
        raise ModelError(f"{path}: {error}") from None


class _ScriptError(ValueError):
    pass


def _script(value: object) -> Script:
    table = _table(value, _KEYS, "the script")
    if "replies" not in table:
        raise _ScriptError('"replies" is missing')
    pieces = table.get("pieces", [])
    if not all(isinstance(piece, str) and piece for piece in pieces):
        raise _ScriptError('"pieces" must be texts, none of them empty')
    if table.get("prompt_tokens_per_step", 1) < 1 or table.get("seconds_per_step", 0.0) < 0:
        raise _ScriptError("steps must take at least 0 seconds and 1 token")
    settings = {key: item for key, item in table.items() if key not in ("replies", "pieces", "model")}
    return Script(
        replies=tuple(_reply(reply, f"reply {index}") for index, reply in enumerate(table["replies"])),
        pieces=tuple(pieces),
        model=_table(table.get("model", {}), _MODEL_KEYS, '"model"'),
        **settings,
    )


def _reply(value: object, where: str) -> Reply:
    table = _table(value, _REPLY_KEYS, where)
    crash = None
    if "crash" in table:
        numbers = _table(table["crash"], _CRASH_KEYS, f"{where}, crash")
        crash = Crash(numbers.get("after", 0), numbers.get("signal", 11), numbers.get("times", 1))
    tokens = tuple(_token(token, f"{where}, token {index}") for index, token in enumerate(table.get("tokens", [])))
    return Reply(tokens, table.get("match"), table.get("end", True), crash, _reaction(table.get("reacts"), where))


def _reaction(value: object, where: str) -> Reaction | None:
    if value is None:
        return None
    numbers = _table(value, _REACTION_KEYS, f"{where}, reacts")
    missing = [name for name in _REACTION_KEYS if name not in numbers]
    if missing or not numbers["scale"] > 0:
        raise _ScriptError(f"{where}, reacts: {', '.join(missing) or 'scale'} must be given, the scale above 0")
    return Reaction(*(numbers[name] for name in _REACTION_KEYS))


def _token(value: object, where: str) -> ScriptedToken:
    if not isinstance(value, list) or not 2 <= len(value) <= 4:
        raise _ScriptError(f"{where} must be [text, log-probability, entropy, alternatives], the last two optional")
    text, log_probability = value[0], value[1]
    if not isinstance(text, str) or not text:
        raise _ScriptError(f"{where}: the text must not be empty")
    log_probability = _log_probability(log_probability, where)
    entropy = value[2] if len(value) > 2 and value[2] is not None else _least_entropy(log_probability)
    if not isinstance(entropy, int | float) or isinstance(entropy, bool) or not 0 <= entropy < math.inf:
        raise _ScriptError(f"{where}: the entropy must be at least 0 nats, not {json.dumps(entropy)}")
    alternatives = value[3] if len(value) > 3 else []
    if not isinstance(alternatives, list) or len(alternatives) >= ALTERNATIVES:
        raise _ScriptError(f"{where}: alternatives must be a list of fewer than {ALTERNATIVES}")
    pairs: list[tuple[str, float]] = []
    for pair in alternatives:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or not pair[0]:
            raise _ScriptError(f"{where}: an alternative must be [text, log-probability]")
        pairs.append((pair[0], _log_probability(pair[1], where)))
    return ScriptedToken(text, log_probability, float(entropy), tuple(pairs))


def _log_probability(value: object, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not -math.inf < value <= 0:
        raise _ScriptError(f"{where}: a log-probability must be finite and at most 0, not {json.dumps(value)}")
    return float(value)


def _least_entropy(log_probability: float) -> float:
    """Return the entropy in nats of a distribution over this token and one other."""
    probability = math.exp(log_probability)
    rest = -math.expm1(log_probability)
    return -probability * log_probability - (rest * math.log(rest) if rest > 0 else 0.0)


def _table(value: object, keys: Mapping[str, type], where: str) -> dict[str, Any]:
    """Check the names and types of an object's keys."""
    if not isinstance(value, dict):
        raise _ScriptError(f"{where} must be an object")
    for key, item in value.items():
        if key not in keys:
            raise _ScriptError(f'{where}: unknown key "{key}"{did_you_mean(key, keys)}')
        expected = (int, float) if keys[key] is float else keys[key]
        if not isinstance(item, expected) or (isinstance(item, bool) and keys[key] is not bool):
            raise _ScriptError(f'{where}: "{key}" has the wrong type')
    return value
