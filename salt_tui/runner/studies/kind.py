"""What a kind of study is: its options, what it needs, its jobs, and what it says about the answers in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from salt_tui.engine.engine import Engine
from salt_tui.engine.model_info import Capabilities, ModelInfo
from salt_tui.engine.requests import needs_cut
from salt_tui.runner.answering import ReplyReading
from salt_tui.runner.jobs import Job
from salt_tui.runner.plan import BELOW_LIMIT, WHOLE_NUMBERS, RunPlan
from salt_tui.runner.studies.plan import CoveredAnswer, Options, OptionValue, StudyPlan
from salt_tui.store.queries import Queries
from salt_tui.store.records import SignalRecord, Work
from salt_tui.store.records import StudyKind as KindName
from salt_tui.store.results import StoredStudy
from salt_tui.usage_error import UsageError

Computer: TypeAlias = Literal["the run's model", "another model", "no model"]


def no_reason(options: Options) -> str | None:
    """Say that nothing makes the numbers of a kind less exact than the engine is."""
    return None


Capability: TypeAlias = Literal["statistics", "activations", "vocabulary", "forced"]

_LACKS: dict[Capability, tuple[str, Callable[[Capabilities], bool]]] = {
    "statistics": ("log-probabilities over the whole vocabulary", lambda can: can.statistics == "vocabulary"),
    "activations": ("activations", lambda can: can.activation_layers > 0),
    "vocabulary": ("the bytes of its tokens", lambda can: can.vocabulary),
    "forced": ("forced tokens", lambda can: can.forced),
}


@dataclass(frozen=True, slots=True)
class StudyOption:
    """An option of a kind, on the command line and in the plan.

    Attributes:
        name: in the plan.
        flags: on the command line.
        default: its type is the option's type.
        help: one line.
    """

    name: str
    flags: tuple[str, ...]
    default: OptionValue
    help: str


@dataclass(frozen=True, slots=True)
class StudySetting:
    """What the jobs of a study are made from.

    Attributes:
        options: of the study.
        run: the plan of the run.
        answers: that the study covers, in the order of the run's plan.
        queries: of the file; what else is stored of these answers.
        engine: the model is loaded, its context is not open: it renders turns and tokenises.
        info: of this model.
        reading: how replies of this model are read.
        work: the study where it is stored already; None for a new one.
    """

    options: Options
    run: RunPlan
    answers: tuple[CoveredAnswer, ...]
    queries: Queries
    engine: Engine
    info: ModelInfo
    reading: ReplyReading
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class StudyResult:
    """What a study found beside its signals, as a table; the JSON names are the columns.

    Attributes:
        columns: names, the first is that of the rows' subject.
        rows: a value per column; None is undefined.
        notes: sentences for the user.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudyKind:
    """A kind of study; `salt_tui.runner.studies.registry` lists them.

    Attributes:
        name: in commands and in the store.
        summary: what it does, one sentence.
        options: its own; all kinds also take ``-c``, ``-t`` and where to find and show things.
        needs: what the engine must be able to do, whatever the jobs; one that is cut back is refused by `refuse_cuts`.
        check: raises `UsageError` for values that cannot be meant.
        jobs: all jobs, in the order in which they are computed; the same each time, finished or not.
        grows_context: whether the context is made as large as the longest job; else it is the run's, and a job that
            does not fit ends so.
        signals: what the finished study says about answers, in batches; it only reads.  A signal's name is an entry of
            `scoring.signals`.
        result: what else it found, from what is stored so far.
        reused: a run has one such study, to which each request adds jobs; its options are those of a request and stand
            in no plan.
        announce: one line that says before anything is computed what the jobs will cost.
        computed_by: what computes the jobs.  Another model is named by the option ``model`` and has the vocabulary of
            the run's; without a model there are no jobs, and the signals are all there is.
        inexact: why its numbers are not exact with these options, even on an engine that is; None where they are as
            exact as the engine.
        reads: of the signals that a run and its studies have, those that a new study of this kind reads; they stand in
            its plan.
        concludes: what each batch of `signals` holds, where a batch takes so long that it is announced.
        measures: what `result` computes, where that takes so long that it is announced.
    """

    name: KindName
    summary: str
    options: tuple[StudyOption, ...]
    needs: tuple[Capability, ...]
    check: Callable[[Options], None]
    jobs: Callable[[StudySetting], Sequence[Job]]
    grows_context: bool
    signals: Callable[[Queries, StoredStudy, StudyPlan], Iterator[Sequence[SignalRecord]]]
    result: Callable[[Queries, StoredStudy, StudyPlan], StudyResult]
    announce: Callable[[StudySetting, Sequence[Job]], str] | None = None
    reused: bool = False
    computed_by: Computer = "the run's model"
    inexact: Callable[[Options], str | None] = no_reason
    reads: Callable[[Queries, int], tuple[str, ...]] = lambda queries, run: ()
    concludes: tuple[str, ...] = ()
    measures: str | None = None

    def complete(self, given: Mapping[str, Any]) -> Options:
        """Return the values of all options, defaults where nothing is given, checked.

        Raises:
            UsageError: an unknown option or a value that cannot be meant.
        """
        unknown = sorted(set(given) - {option.name for option in self.options})
        if unknown:
            raise UsageError(f"a study of kind {self.name} has no option {unknown[0]!r}")
        options = {option.name: given.get(option.name, option.default) for option in self.options}
        for option in self.options:
            value = options[option.name]
            if isinstance(value, int) and value not in WHOLE_NUMBERS:
                raise UsageError(f"{option.flags[0]} {value}: {BELOW_LIMIT}")
        self.check(options)
        return options

    def refuse_engine(self, capabilities: Capabilities) -> None:
        """Raise `UsageError` unless an engine can do what this kind needs."""
        lacking = [words for need in self.needs for words, has in (_LACKS[need],) if not has(capabilities)]
        if lacking:
            raise UsageError(f"a study of kind {self.name} needs an engine with {' and '.join(lacking)}; this has none")

    def refuse_cuts(self, capabilities: Capabilities, jobs: Sequence[Job]) -> None:
        """Raise `UsageError` if a job goes back to an earlier token and an engine cannot.

        Labels of one token each are read from one row, so with many vocabularies no question has to go back.
        """
        if not capabilities.cut and any(needs_cut(segment) for job in jobs for segment in job.request(0).segments):
            raise UsageError(
                f"a study of kind {self.name} has to go back to earlier tokens with this vocabulary, and a model with a"
                " recurrent state cannot"
            )
