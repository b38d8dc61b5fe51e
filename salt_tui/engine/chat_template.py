"""Turn a conversation into the prompt a model was trained on, by the template that its file carries.

Templates are programs from a stranger's file: they run in jinja2's immutable sandbox, which refuses attributes of
Python's insides and changes of what it is given, and with the variables and functions that Hugging Face's
``apply_chat_template`` gives them.  What the sandbox does not bound, `salt_tui.engine.prompt_limits` does.  Nothing in
it is random, so the same conversation gives the same prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from salt_tui.engine.errors import ModelError
from salt_tui.engine.prompt_limits import MOST_CHARACTERS, python_limits
from salt_tui.engine.requests import ChatTurn

_OPENING, _CLOSING = "<think>", "</think>"
_FORCED_CLOSING = f"\n{_CLOSING}\n\n"
_ADVICE = 'set "template" for this model in models.toml, "none" for plain prompts'
_REPLY, _TURN = "Salt-reply-7319", "Salt-turn-7319"
"""Stand for a reply and for what follows it when the template is asked what it writes around them."""

_LONGEST_REASON = 200
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{4,}>")
"""How Python prints what has no text of its own: an address of memory, another one in every process."""


class ChatTemplateError(ModelError):
    """The template is broken or refuses the conversation; one line."""


class _GenerationBlock(jinja2.ext.Extension):
    """``{% generation %}…{% endgeneration %}`` marks assistant tokens for training; here its content is shown."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it so

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        """Replace the block by its content."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def check_syntax(source: str) -> None:
    """Refuse a template that cannot be parsed; nothing in it is computed.

    Raises:
        ChatTemplateError: the text is no valid template.
    """
    try:
        _environment().parse(source)
    except Exception as error:
        raise _failed(error) from None


class ChatTemplate:
    """A compiled chat template with the variables it sees.

    Args:
        source: the template's text.
        bos_token: text of the beginning-of-sequence token, empty where there is none.
        eos_token: text of the end-of-sequence token, empty where there is none.
        options: further variables, such as ``enable_thinking``.
        date: ISO date that ``strftime_now`` shows at midnight, so that a run's prompts never change.

    Raises:
        ChatTemplateError: the text is no valid template.
    """

    def __init__(
        self,
        source: str,
        bos_token: str,
        eos_token: str,
        options: Mapping[str, bool | int | str],
        date: str,
    ) -> None:
        """Compile the template."""
        now = datetime.fromisoformat(date)
        environment = _environment()
        environment.globals["strftime_now"] = lambda form: now.strftime(form)
        try:
            with python_limits():  # compiling computes constants
                self._template = environment.from_string(source)
        except Exception as error:
            raise _failed(error) from None
        self._variables = {
            "bos_token": bos_token,
            "eos_token": eos_token,
            "tools": None,
            "documents": None,
            **options,
        }

    def render(self, turns: Sequence[ChatTurn], generation_prompt: bool = True) -> str:
        """Return the prompt for a conversation.

        A template that refuses a system turn, or drops its text without a word, gets that text at the beginning of
        the first user turn instead.  Only the main thread can render.

        Args:
            turns: in order; at most the first is a system turn.
            generation_prompt: end where the assistant begins to speak.

        Raises:
            ChatTemplateError: the template fails, takes too long or refuses the conversation.
        """
        if not turns or turns[0].role != "system":
            return self._render(turns, generation_prompt)
        try:
            prompt = self._render(turns, generation_prompt)
        except ChatTemplateError:
            return self._render(_without_system(turns), generation_prompt)
        if turns[0].content.strip() not in prompt:
            return self._render(_without_system(turns), generation_prompt)
        return prompt

    def thinking_open(self) -> bool:
        """Tell whether replies begin inside a ``<think>`` that the generation prompt opens and does not close.

        Only what the generation prompt adds is looked at: system prompts of some templates talk about the tags.

        Raises:
            ChatTemplateError: the template fails even for one system and one user turn.
        """
        turns = (ChatTurn("system", "-"), ChatTurn("user", "-"))
        before, after = self.render(turns, generation_prompt=False), self.render(turns)
        added = after[len(before) :] if after.startswith(before) else after
        return added.rfind(_OPENING) > added.rfind(_CLOSING)

    def next_turn(self, turn: ChatTurn) -> tuple[str, str, str]:
        """Return what the template writes after a reply that this turn follows: before, content, after.

        Raises:
            ChatTemplateError: the template fails, or shows the reply or the turn otherwise than as they are.
        """
        opening = (ChatTurn("system", "-"), ChatTurn("user", "-"))
        prompt = self.render((*opening, ChatTurn("assistant", _REPLY), ChatTurn(turn.role, _TURN)))
        _, reply, rest = prompt.partition(_REPLY)
        before, content, after = rest.partition(_TURN)
        if not reply or not content or _REPLY in rest or _TURN in after:
            raise ChatTemplateError(f"the chat template cannot continue a conversation after a reply; {_ADVICE}")
        return before, turn.content.strip(), after

    def _render(self, turns: Sequence[ChatTurn], generation_prompt: bool) -> str:
        messages = [{"role": turn.role, "content": turn.content} for turn in turns]
        try:
            with python_limits():
                text = self._template.render(
                    messages=messages, add_generation_prompt=generation_prompt, **self._variables
                )
        except Exception as error:  # a template is a program and may fail in every way that Python can
            raise _failed(error) from None
        prompt_bytes(text)
        if len(text) > MOST_CHARACTERS:
            raise ChatTemplateError(f"the chat template writes a prompt of {len(text):,} characters; {_ADVICE}")
        if _ADDRESS.search(text) and not any(_ADDRESS.search(turn.content) for turn in turns):
            raise ChatTemplateError(
                f"the chat template writes an address of memory, which is another one every time; {_ADVICE}"
            )
        return text


def follow_up(template: ChatTemplate | None, reply: str, turn: ChatTurn) -> tuple[str, str, str]:
    """Return what continues a conversation after a reply, up to where the next reply begins.

    A ``<think>`` that the reply leaves open is closed first, and one that the template opens for the next reply is
    closed at the end.

    Args:
        template: None for the plain format, in which the turn is a ``Question:`` block.
        reply: what the model wrote, without its end-of-generation token.
        turn: what comes next.

    Returns:
        What stands before the turn's content, the content, and what stands after it.

    Raises:
        ChatTemplateError: the template cannot show a reply that another turn follows.
    """
    if template is None:
        return "\n\nQuestion:\n", turn.content.strip(), "\n\nAnswer:\n"
    before, content, after = template.next_turn(turn)
    if _is_open(reply, template.thinking_open()):
        before = _FORCED_CLOSING + before
    if _is_open(after, False):
        after += _FORCED_CLOSING
    return before, content, after


def _is_open(text: str, before: bool) -> bool:
    """Tell whether a text ends inside a thought, having begun inside one or not."""
    opening, closing = text.rfind(_OPENING), text.rfind(_CLOSING)
    return opening > closing or (before and closing < 0)


def prompt_bytes(text: str) -> bytes:
    """Return the bytes of a prompt, for the tokenizer; undecodable bytes of a file come back as they were.

    Raises:
        ChatTemplateError: the text holds half a character (a lone surrogate), which has no bytes.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        half = f"U+{ord(text[error.start]):04X}"
        raise ChatTemplateError(
            f"a prompt holds half a character ({half}), from the problem's text or the chat template: it has no bytes"
        ) from None


def render_plain(turns: Sequence[ChatTurn]) -> str:
    """Return a completion prompt for a model without a chat template.

    The instructions come first, then one ``Problem:``/``Answer:`` block per worked example and for the problem.  The
    prompt ends after ``Answer:`` and a line break, where every example's answer begins, so a model that continues
    text continues with an answer.
    """
    blocks: list[str] = []
    for turn in turns:
        if turn.role == "system":
            blocks.append(f"{turn.content.strip()}\n\n")
        elif turn.role == "user":
            blocks.append(f"Problem:\n{turn.content.strip()}\n\nAnswer:\n")
        else:
            blocks.append(f"{turn.content.strip()}\n\n")
    return "".join(blocks)


def _without_system(turns: Sequence[ChatTurn]) -> list[ChatTurn]:
    """Move the text of the system turn to the beginning of the first user turn."""
    system, rest = turns[0], list(turns[1:])
    if rest and rest[0].role == "user":
        return [ChatTurn("user", f"{system.content}\n\n{rest[0].content}"), *rest[1:]]
    return [ChatTurn("user", system.content), *rest]


def _raise_exception(message: object) -> NoReturn:
    raise jinja2.TemplateError(str(message))


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write JSON without jinja2's escapes for HTML, which models never saw."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _failed(error: Exception) -> ChatTemplateError:
    """Put the template's failure on one line."""
    place = f" in line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    reason = "".join(character for character in text if character.isprintable())[:_LONGEST_REASON]
    return ChatTemplateError(f"the chat template fails{place} ({reason}); {_ADVICE}")


def _environment() -> jinja2.sandbox.ImmutableSandboxedEnvironment:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    del environment.filters["random"], environment.globals["lipsum"]
    return environment
