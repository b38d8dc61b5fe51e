"""The interface of a task: what a ninth task has to provide, and nothing more.

A task draws problems from a seed, solves them from their text alone, words the prompt, says how an answer splits
into atoms and draws wrong atoms of the same kind (SALT section 4.2, appendices A and K).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal, TypeAlias

from tasks.answer_form import UnitKind
from tasks.splitting import LineSplitter, Splitter, WhitespaceSplitter, fold_whitespace

Method = Literal["regular", "cot"]
METHODS: tuple[Method, ...] = ("regular", "cot")
"""``cot`` asks for reasoning before the fenced answer (SALT section 5.3)."""

DIFFICULTIES: tuple[str, ...] = ("trivial", "easy", "medium", "hard", "paper")
"""Every task has these levels, from what a 100M-parameter model gets partly right to the ranges of the release."""

FENCE = "********"
"""The line before and after an answer, as prompts show it; the parser takes any run of four or more asterisks."""


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """An inclusive range of integers that a problem's size is drawn from; one value when ``low == high``."""

    low: int
    high: int

    def __str__(self) -> str:
        """Write the range as ``--param`` reads it: ``5`` or ``2..19``."""
        return str(self.low) if self.low == self.high else f"{self.low}..{self.high}"


ParameterValue: TypeAlias = IntegerRange | tuple[str, ...]
"""A range of sizes, or the names a problem may be drawn from (functions, categories, rule families)."""

Parameters: TypeAlias = Mapping[str, ParameterValue]


@dataclass(frozen=True, slots=True)
class RangeParameter:
    """A parameter whose value is an `IntegerRange` inside ``minimum..maximum``."""

    name: str
    minimum: int
    maximum: int
    description: str


@dataclass(frozen=True, slots=True)
class ChoiceParameter:
    """A parameter whose value is a non-empty subset of ``choices``."""

    name: str
    choices: tuple[str, ...]
    description: str


Parameter: TypeAlias = RangeParameter | ChoiceParameter


@dataclass(frozen=True, slots=True)
class Problem:
    r"""One problem with its only right answer.

    Attributes:
        task: name of the task in the registry.
        text: the problem alone, as the prompt shows it last and as `Task.solve` reads it.
        reference: the whole right answer, lines separated by ``\n``, without the fence.
        difficulty: the level it was drawn at.
        seed: the seed it was drawn from.
    """

    task: str
    text: str
    reference: str
    difficulty: str
    seed: int

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits of the SHA-256 of task and text: equal content, equal id."""
        return hashlib.sha256(f"{self.task}\0{self.text}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Dependence:
    """What determines a right atom (SALT appendix K).

    Attributes:
        inputs: which spans of the problem an atom needs, in a sentence.
        earlier_atoms: which earlier atoms of the answer it needs, in a sentence; empty when none.
        intervention_caveat: a sentence that must stand beside every intervention result; empty when none is needed.
    """

    inputs: str
    earlier_atoms: str
    intervention_caveat: str


class Task(ABC):
    """One kind of problem.

    Subclasses set the class attributes and the abstract methods; the registry holds one instance of each.

    Attributes:
        name: the key in the registry, in stored runs and on the command line.
        title: the name for screens.
        description: one line for lists.
        prompt_version: raised whenever instructions, examples or wording change; part of a run's plan.
        parameters: what a level sets and ``--param`` may change.
        levels: a full set of parameter values for each name of `DIFFICULTIES`.
        example_level: the level that worked examples are drawn at, for each level.
        release_names: names of the task in the published release's files.
        answer_is_grid: whether the lines of an answer are the rows of one table; screens then put them under each
            other.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    prompt_version: ClassVar[int]
    parameters: ClassVar[tuple[Parameter, ...]]
    levels: ClassVar[Mapping[str, Parameters]]
    example_level: ClassVar[Mapping[str, str]] = {
        "trivial": "trivial",
        "easy": "easy",
        "medium": "easy",
        "hard": "easy",
        "paper": "easy",
    }
    release_names: ClassVar[tuple[str, ...]] = ()
    answer_is_grid: ClassVar[bool] = False
    dependence: ClassVar[Dependence]

    def example_parameters(self, difficulty: str) -> Parameters:
        """Return what the worked examples of a level are drawn with: the values of its `example_level`.

        A task overrides this where a value of the level itself decides what an answer looks like.
        """
        return self.levels[self.example_level[difficulty]]

    @abstractmethod
    def generate(self, random: Random, parameters: Parameters) -> tuple[str, str]:
        """Draw one problem.

        Args:
            random: the only source of chance; read it through `tasks.draws`.
            parameters: a value for every parameter of the task, already validated.

        Returns:
            The problem text and its reference.
        """

    @abstractmethod
    def solve(self, text: str) -> str:
        """Return the reference of a problem text, ours or the release's ``input``.

        Raises:
            ProblemTextError: if the text is not a problem of this task; the message says what and where.
        """

    @abstractmethod
    def instructions(self) -> str:
        """Say what is asked, without the fence and without the method: one to four short sentences."""

    @abstractmethod
    def explain(self, problem: Problem) -> str:
        """Return the reasoning that a ``cot`` worked example shows before its fenced answer, without asterisks."""

    @abstractmethod
    def wrong_atom(self, random: Random, problem: Problem, index: int) -> str:
        """Draw a wrong atom of the same kind as the reference atom at ``index``, never equal to it."""

    def caveat(self, parameters: Parameters) -> str:
        """Return what must be said beside results with these parameters, in one sentence; empty when nothing."""
        return ""

    @property
    def fenced(self) -> bool:
        """Every answer of a generated problem is asked for between fences."""
        return True

    def splitter(self) -> Splitter:
        """Return a fresh incremental splitter for one answer of this task; white space by default."""
        return WhitespaceSplitter()

    def line_splitter(self) -> Splitter:
        """Return a fresh splitter into non-empty lines."""
        return LineSplitter()

    def normalise(self, unit: str) -> str:
        """Return the form in which two units are compared: trimmed, inner white space folded to one space."""
        return fold_whitespace(unit)

    def is_right(self, kind: UnitKind, unit: str, reference: str) -> bool:
        """Say whether a generated unit equals a reference unit in normalised form."""
        return self.normalise(unit) == reference


QUOTED = 40
"""Characters of a foreign text that an error message shows at most."""


class ProblemTextError(ValueError):
    """A text that is not a problem of the task."""


class ParameterError(ValueError):
    """A parameter that does not exist or is out of range; the message names the valid names or the range."""


class UnknownNameError(ParameterError):
    """A name that no task, level, parameter or choice has.

    Attributes:
        name: the name that was given.
        known: the names there are; the message lists them.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], where: str = "") -> None:
        """Say what kind of name it is, and where it was given."""
        self.name, self.known = name, tuple(known)
        prefix = f"{where}: " if where else ""
        super().__init__(f"{prefix}unknown {kind} {quoted(name)}; there are: {', '.join(self.known) or 'none'}")


def quoted(text: str) -> str:
    """Quote a foreign text for an error message: its first `QUOTED` characters, and an ellipsis if there are more."""
    return repr(text) if len(text) <= QUOTED else f"{text[:QUOTED]!r}…"
