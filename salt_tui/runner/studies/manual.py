"""Single edits of answers, one after the other: they form one study of a run that stays open, without a fixed plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from random import Random

from salt_tui.runner.jobs import Job
from salt_tui.runner.replays.branches import BranchDesign
from salt_tui.runner.replays.design import Direction, ReplayableAnswer
from salt_tui.runner.replays.prefix_edits import EditError
from salt_tui.runner.replays.sources import ReplaySource, ReplaySources, correct_shares
from salt_tui.runner.studies.kind import StudyKind, StudyOption, StudyResult, StudySetting
from salt_tui.runner.studies.plan import CoveredAnswer, Options, StudyPlan
from salt_tui.store.queries import Queries
from salt_tui.store.records import SignalRecord
from salt_tui.store.results import EditedBranch, StoredStudy
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from scoring.interventions import LOCAL_WINDOW
from tasks.answer import why_not_an_atom
from tasks.draws import derive_seed, draw_distinct
from tasks.registry import get_task

ALL = "all"

ANSWER = "answer"
"""What a branch is edited from that is edited from no other branch."""

LONGEST_NAME = 24
"""Characters of a branch's name, so that a row of the tree has room for what was changed."""


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Which atoms an option names: their indices, or all that it can be about."""

    indices: tuple[int, ...]
    every: bool


def _numbers(name: str, text: str) -> _Numbers:
    if text.strip() == ALL:
        return _Numbers((), True)
    try:
        numbers = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        numbers = (0,)
    if any(number < 1 for number in numbers):
        raise UsageError(f"--{name} {text}: numbers of atoms, counted from 1, separated by commas, or {ALL}")
    return _Numbers(tuple(number - 1 for number in numbers), False)


def _values(text: str) -> dict[int, str]:
    """Read ``12=GAC;15=TTA``; a semicolon stands in no atom of a task."""
    values = {}
    for part in filter(None, text.split(";")):
        number, sign, value = part.partition("=")
        if not sign or not number.strip().isdecimal() or int(number) < 1 or not value.strip():
            raise UsageError(f"--set {visible(text)}: NUMBER=TEXT, several separated by semicolons")
        values[int(number) - 1] = value.strip(" ")
    return values


def _check(options: Options) -> None:
    _numbers("fix", str(options["fix"]))
    _numbers("corrupt", str(options["corrupt"]))
    _values(str(options["set"]))
    for name in ("target", "corrupt_random"):
        if int(options[name]) < 0:
            raise UsageError(f"--{name.replace('_', '-')} {options[name]}: not below 0")


def _jobs(setting: StudySetting) -> Sequence[Job]:
    """Return the edited branch and, before it, its target behind the unchanged text where that is not stored yet."""
    if not setting.options.get("answer"):
        return []  # a study that was interrupted has no further edits to compute
    answer = _answer(setting)
    stored = () if setting.work is None else tuple(setting.queries.edited_branches(setting.work))
    name = _new_name(str(setting.options["name"]), stored)
    forked = _forked_from(str(setting.options["from"]), answer, stored)
    sources = ReplaySources(setting.queries, setting.engine, setting.info, setting.reading, setting.run)
    source = sources.read(answer, forked)
    edits, target = _edits(source, setting.options)
    number, replayed = _beside(setting, source.generation)
    jobs: list[Job] = []
    try:
        if target < min(len(source.atoms), len(source.gold)) and target not in replayed:
            unchanged = source.editor.before(target, {})
            design = _design(source, target, {}, f"as it was, atom {target + 1}")
            jobs.append(sources.job(source, unchanged, design, number, whole=False))
            number += 1
        prefix = source.editor.before(target, edits) if target < len(source.atoms) else source.editor.through(edits)
    except EditError as error:
        raise UsageError(str(error)) from None
    jobs.append(sources.job(source, prefix, _design(source, target, edits, name), number, whole=True))
    return jobs


def _new_name(asked: str, stored: Sequence[EditedBranch]) -> str:
    """Return what the branch is called; names are those of the whole run."""
    taken = {branch.name for branch in stored}
    if asked:
        if why := why_no_branch_name(asked):
            raise UsageError(f"--name {visible(asked, 40)}: {why}")
        if asked in taken:
            raise UsageError(f"--name {visible(asked, 40)}: the run has a branch of that name")
        return asked
    # Past the largest number in use, so that later branches have larger numbers.
    numbers = [int(name[1:]) for name in taken if name[:1] == "b" and name[1:].isdecimal()]
    return f"b{max([len(stored), *numbers], default=0) + 1}"


def why_no_branch_name(name: str) -> str | None:
    """Say why a branch cannot be called so; None where it can."""
    if not name.strip() or name != name.strip():
        return "a name begins and ends with a letter, a number or a sign"
    if not name.isprintable():
        return "a name has no line breaks and no control characters"
    return f"a name has at most {LONGEST_NAME} characters" if len(name) > LONGEST_NAME else None


def _forked_from(name: str, answer: CoveredAnswer, stored: Sequence[EditedBranch]) -> int | None:
    """Return the generation of the branch that an edit starts from; None for the answer itself."""
    if not name:
        return None
    mine = [branch for branch in stored if branch.record.answer == answer.generation]
    for branch in mine:
        if branch.name == name:
            return branch.record.generation
    known = ", ".join(visible(branch.name) for branch in mine)
    has = f"it has {known}" if known else "it has none yet"
    raise UsageError(f"--from {visible(name, 40)}: the answer has no branch of that name; {has}")


def _beside(setting: StudySetting, parent: int) -> tuple[int, set[int]]:
    """Return the next number among the branches of a text, and the targets replayed behind it as it is."""
    if setting.work is None:
        return 0, set()
    done = {
        generation.id: generation.number
        for generation in setting.queries.generations(setting.work, "branch")
        if generation.parent == parent and generation.stop_reason is not None
    }
    records = setting.queries.interventions(setting.work)
    replayed = {record.target for record in records if record.generation in done and not record.edits}
    return max(done.values(), default=-1) + 1, replayed


def _answer(setting: StudySetting) -> CoveredAnswer:
    name = str(setting.options["answer"])
    task, _, position = name.rpartition(":")
    for answer in setting.answers:
        if answer.problem.task == task and str(answer.problem.position + 1) == position:
            if answer.problem.answer_kind != "generated":
                raise UsageError(f"{name} is a problem of your own: its atoms cannot be edited")
            return answer
    raise UsageError(f"{name}: the run has no finished answer of that name; TASK:POSITION, counted from 1")


def _edits(source: ReplaySource, options: Options) -> tuple[dict[int, str], int]:
    """Return the new text of each edited atom, and the index of the target."""
    answer = source.replayable()
    fix, corrupt = (_numbers(name, str(options[name])) for name in ("fix", "corrupt"))
    edits = _values(str(options["set"]))
    asked = int(options["target"])
    named = [*edits, *fix.indices, *corrupt.indices]
    _refuse_absent_atoms(named, asked, source)
    problem = source.answer.problem
    for index, text in edits.items():
        if why := why_not_an_atom(get_task(problem.task), problem.reference, index, text):
            raise UsageError(f"--set {index + 1}={visible(text)}: {why}")
    target = asked - 1 if asked else max(named, default=len(source.atoms) - 1) + 1
    if not asked and (fix.every or corrupt.every or int(options["corrupt_random"])):
        raise UsageError("--target says before which atom all are changed")
    if target == 0 or any(index >= target for index in named):
        raise UsageError(f"--target {target + 1}: edited atoms stand before the target")
    random = Random(derive_seed("edit", int(options["seed"]), answer.content, target))
    wrong = [index for index in range(target) if not answer.correct[index]]
    right = [index for index in range(target) if answer.correct[index]]
    known = range(len(answer.gold))
    for index in (*fix.indices, *corrupt.indices):
        if index not in known:
            raise UsageError(f"the right answer has no atom {index + 1}: it has {len(answer.gold)}")
    for index in [one for one in (wrong if fix.every else fix.indices) if one in known]:
        edits.setdefault(index, answer.gold[index])
    spoiled = list(right if corrupt.every else corrupt.indices)
    spoiled += draw_distinct(random, right, min(int(options["corrupt_random"]), len(right)))
    for index in [one for one in spoiled if one in known]:
        edits.setdefault(index, answer.wrong_atom(random, index))
    changed = {index: text for index, text in sorted(edits.items()) if text != source.atoms[index].text}
    if not changed:
        raise UsageError(_why_unchanged(edits, fix, corrupt, int(options["corrupt_random"])))
    return changed, target


def _refuse_absent_atoms(named: Sequence[int], target: int, source: ReplaySource) -> None:
    count = len(source.atoms)
    has = f"the answer has {count} atom{'' if count == 1 else 's'}"
    if absent := [index + 1 for index in named if index >= count]:
        raise UsageError(f"there is no atom {absent[0]}: {has}")
    if target > count + 1:
        raise UsageError(f"--target {target}: at most {count + 1}, {has}")


def _why_unchanged(edits: Mapping[int, str], fix: _Numbers, corrupt: _Numbers, random: int) -> str:
    """Say why edits that were asked for change nothing."""
    if edits:
        numbers = ", ".join(str(index + 1) for index in sorted(edits))
        how = "right" if set(edits) <= set(fix.indices) else "as asked"
        return f"atom {numbers} is {how} already" if len(edits) == 1 else f"atoms {numbers} are {how} already"
    if fix.every:
        return "no atom before the target is wrong, or the right answer has none in its place"
    if corrupt.every or random:
        return "no atom before the target is right"
    return "nothing is edited: --fix, --corrupt, --corrupt-random or --set changes atoms"


def _design(source: ReplaySource, target: int, edits: dict[int, str], name: str) -> BranchDesign:
    answer = source.replayable()
    before = answer.correct[:target]
    after = [_is_right(answer, index, edits[index]) if index in edits else right for index, right in enumerate(before)]
    share, near = correct_shares(before, LOCAL_WINDOW)
    new_share, new_near = correct_shares(after, LOCAL_WINDOW)
    return BranchDesign(
        answer=answer.generation,
        target=target,
        variant=name,
        direction=_direction(answer, edits),
        edits=tuple(sorted(edits.items())),
        treatment_global=(new_share or 0.0) - (share or 0.0),
        treatment_local=(new_near or 0.0) - (near or 0.0),
        correct_before=share or 0.0,
        correct_before_local=near,
    )


def _direction(answer: ReplayableAnswer, edits: dict[int, str]) -> Direction:
    if not edits:
        return "baseline"
    made_right = [_is_right(answer, index, text) for index, text in edits.items()]
    if all(made_right) and not any(answer.correct[index] for index in edits):
        return "correction"
    return "corruption" if not any(made_right) and all(answer.correct[index] for index in edits) else "mixed"


def _is_right(answer: ReplayableAnswer, index: int, text: str) -> bool:
    """Say whether a text is the right atom; where the right answer has ended none is."""
    return index < len(answer.gold) and text == answer.gold[index]


def _signals(queries: Queries, study: StoredStudy, plan: StudyPlan) -> Iterator[Sequence[SignalRecord]]:
    """Edits say nothing about the answer as it was."""
    return iter(())


def _result(queries: Queries, study: StoredStudy, plan: StudyPlan) -> StudyResult:
    """List the branches, each behind what it forks from: what was changed, and the target before and after."""
    answers = {answer.generation: answer.problem for answer in queries.answers(study.work.run)}
    rows: list[tuple[str | int | float | None, ...]] = []
    for branch in queries.edited_branches(study.work):
        record, problem = branch.record, answers[branch.record.answer]
        old, new = branch.unchanged_log_probability, record.log_probability_reference
        rows.append(
            (
                branch.name,
                f"{problem.task}:{problem.position + 1}",
                branch.parent_name or ANSWER,
                " ".join(f"{index + 1}={text}" for index, text in record.edits),
                record.target + 1,
                None if old is None else exp(old),
                None if new is None else exp(new),
                None if record.outcome is None else int(record.outcome),
            )
        )
    columns = ("branch", "answer", "edited_from", "edits", "target", "gold_before", "gold_after", "right")
    note = (
        "gold: the probability of the right atom at the target, before and after the edits. right: 1 where the model"
        " then wrote it."
    )
    return StudyResult(columns, tuple(rows), (note,))


MANUAL = StudyKind(
    name="manual",
    summary="Edits of single answers; each one is a branch of its own.",
    options=(
        StudyOption("answer", ("--answer",), "", "TASK:POSITION, counted from 1."),
        StudyOption("from", ("--from",), "", "The branch to edit; default: the answer."),
        StudyOption("fix", ("--fix",), "", "Atoms to make right: numbers from 1, or all."),
        StudyOption("corrupt", ("--corrupt",), "", "Atoms to make wrong: numbers from 1, or all."),
        StudyOption("corrupt_random", ("--corrupt-random",), 0, "Right atoms before the target to make wrong, drawn."),
        StudyOption("set", ("--set",), "", "NUMBER=TEXT, several separated by semicolons."),
        StudyOption("target", ("--target",), 0, "Atom from which on the model writes; default: behind the last edit."),
        StudyOption("name", ("--name",), "", "Of the branch; default: b1, b2, …"),
        StudyOption("seed", ("--seed",), 1, "Draws wrong atoms."),
    ),
    needs=("statistics", "vocabulary", "forced"),
    check=_check,
    jobs=_jobs,
    grows_context=True,
    signals=_signals,
    result=_result,
    reused=True,
)
