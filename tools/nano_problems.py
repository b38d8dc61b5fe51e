"""What salt-nano is trained on: the project's own prompts, and the tokeniser that is learnt from them.

A text is what the engine would send: the chat template's roles as control tokens around the turns of
`tasks.prompts.conversation`.  All problems of a group share their task, level and worked examples, and so the tokens
before the problem, which the network evaluates once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from tasks.draws import derive_seed, draw_integer, draw_item
from tasks.parameters import level_parameters
from tasks.problems import draw_problem, draw_problems
from tasks.prompts import DEFAULT_SHOTS, conversation, fenced
from tasks.registry import TASKS
from tasks.task import Problem

LEVELS = ("trivial", "easy", "medium")
METHOD = "regular"
VOCABULARY = 1024
CONTEXT = 4096
"""Tokens that the model file claims; training sees 2,000: preambles of up to 1,070, then an item (`_LONGEST_ITEM`)."""

END = "<|end|>"
ASSISTANT = "<|assistant|>"
CONTROL_TOKENS = (END, "<|system|>", "<|user|>", ASSISTANT)
CHAT_TEMPLATE = """\
{%- for message in messages -%}{{ '<|' + message.role + '|>' + message.content + '<|end|>' }}{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}
"""

PRE_TOKENISER = "qwen2"
"""llama.cpp's name for the pattern below: digits one by one, words with the blank or sign before them."""

_PATTERN = (
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

CHECK_SEED, CHECK_LIMIT = 1, 100
"""The problems that `tools.check_nano` asks, and the tour: never trained on."""

_TRAINING_SEED = 20_261_130  # any other than a run's, so that only chance repeats a problem
_LONGEST_ITEM = 900
_GROUP_TOKENS, _GROUP_ITEMS = 1600, 60
_CORPUS_PROBLEMS = 400

GROUPS = 2
"""Groups of a step."""

_EARLY = 0.12
"""The part of the training in which most problems are trivial: lengths grow."""

_SHARES = {
    "arc_grid": 3,
    "code": 6,
    "dna_translation": 2,
    "first_order_logic": 3,
    "kronecker_product": 5,
    "matrix_multiplication": 4,
    "maze": 3,
    "words_collection": 6,
}
"""Of 32 groups, how many are of each task: what takes longest to learn comes most often."""

NEVER_SHOWN = frozenset({"AAC", "ACG", "CAT", "CGA", "GCC", "GTA", "TGT", "TTC"})
"""Codons that no training problem of DNA contains.

All others are learnt without a mistake, at any length.  What the model was never shown it has to guess.
"""


@dataclass(frozen=True, slots=True)
class Item:
    """A problem with its right answer.

    Attributes:
        tokens: from the user's turn to the end of the answer.
        answer: how many of them, at the end, are the answer.
    """

    tokens: list[int]
    answer: int


@dataclass(frozen=True, slots=True)
class Group:
    """Problems that share everything before them."""

    name: str
    preamble: list[int]
    items: list[Item]


def rendered(roles_and_texts: list[tuple[str, str]]) -> str:
    """Return turns as the chat template writes them, without the assistant's opening."""
    return "".join(f"<|{role}|>{text}{END}" for role, text in roles_and_texts)


def _turns(problem: Problem, shots: int) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in conversation(TASKS[problem.task], problem, METHOD, shots)]


def byte_level_bpe(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> Tokenizer:
    """Return a tokeniser that cuts as llama.cpp's `PRE_TOKENISER` does; empty to be trained."""
    tokeniser = Tokenizer(models.BPE(vocabulary, merges))
    split = pre_tokenizers.Split(Regex(_PATTERN), "isolated")
    tokeniser.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokeniser.decoder = decoders.ByteLevel()
    if vocabulary:
        tokeniser.add_special_tokens(list(CONTROL_TOKENS))
    return tokeniser


def learn_tokeniser() -> Tokenizer:
    """Learn byte-level BPE from prompts and answers of all tasks and levels.

    Mazes are left out, so that every cell stays a token.
    """
    tokeniser = byte_level_bpe({}, [])
    texts = []
    for name, task in TASKS.items():
        texts += [task.instructions().replace("...", "")] * 20  # two dots in a row are two cells of a maze
        for level in LEVELS if name != "maze" else ():
            for index in range(_CORPUS_PROBLEMS):
                problem = draw_problem(task, level, level_parameters(task, level), _TRAINING_SEED, index)
                texts += [problem.text, fenced(problem.reference)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(CONTROL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokeniser.train_from_iterator(texts, trainer)
    return tokeniser


class TrainingProblems:
    """Draws the groups of a step; the same step always gets the same groups."""

    def __init__(self, tokeniser: Tokenizer) -> None:
        """Exclude the problems that the checks ask."""
        self._tokeniser = tokeniser
        self._excluded = {
            problem.id
            for task in TASKS.values()
            for level in LEVELS
            for problem in draw_problems(
                task, level, level_parameters(task, level), CHECK_SEED, CHECK_LIMIT, 3
            ).problems
        }
        self._preamble = lru_cache(maxsize=None)(self._encode_preamble)

    def group(self, step: int, steps: int, part: int) -> Group:
        """Return the group of part ``part``, from 0 below `GROUPS`, of step ``step`` of ``steps``.

        The parts of a step have the same level and number of worked examples, so that they take about as long.
        """
        rounds, place = divmod(step * GROUPS + part, sum(_SHARES.values()))
        order = [name for name, share in _SHARES.items() for _ in range(share)]
        Random(derive_seed("salt-nano order", rounds)).shuffle(order)
        weights = (7, 3, 0) if step < _EARLY * steps else (2, 6, 2)
        random = Random(derive_seed("salt-nano", step))
        level = draw_item(random, [level for level, weight in zip(LEVELS, weights, strict=True) for _ in range(weight)])
        shots = draw_item(random, (0, 0, 0, 1, 2, 3, 3, 3))
        return self._group(Random(derive_seed("salt-nano", step, part)), order[place], level, shots)

    def fingerprint(self, steps: int) -> str:
        """Return a hash of what a training of ``steps`` steps reads: of some of its groups, early to late."""
        sample = [
            self.group(step, steps, part) for step in range(0, steps, max(1, steps // 8)) for part in range(GROUPS)
        ]
        return hashlib.sha256(repr(sample).encode()).hexdigest()

    def fixed_groups(self, level: str) -> list[Group]:
        """Return one group per task of a level that no step draws from, to watch the loss."""
        random = Random(derive_seed("salt-nano watch", level))
        return [self._group(random, name, level, DEFAULT_SHOTS) for name in sorted(TASKS)]

    def _group(self, random: Random, name: str, level: str, shots: int) -> Group:
        task = TASKS[name]
        parameters = level_parameters(task, level)
        items: list[Item] = []
        size = 0
        while len(items) < _GROUP_ITEMS:
            problem = draw_problem(task, level, parameters, _TRAINING_SEED, draw_integer(random, 10_000, 2**40))
            if problem.id in self._excluded or (
                name == "dna_translation" and not NEVER_SHOWN.isdisjoint(problem.text.split())
            ):
                continue
            question = rendered([("user", problem.text)]) + ASSISTANT
            prompt = self._tokeniser.encode(question).ids
            answer = self._tokeniser.encode(fenced(problem.reference) + END).ids
            if len(prompt) + len(answer) > _LONGEST_ITEM:
                continue
            size += len(prompt) + len(answer)
            if items and size > _GROUP_TOKENS:
                break
            items.append(Item(prompt + answer, len(answer)))
        return Group(name, self._preamble(name, level, shots), items)

    def _encode_preamble(self, name: str, level: str, shots: int) -> list[int]:
        task = TASKS[name]
        any_problem = draw_problem(task, level, level_parameters(task, level), _TRAINING_SEED, 0)
        ids: list[int] = self._tokeniser.encode(rendered(_turns(any_problem, shots)[:-1])).ids
        return ids
