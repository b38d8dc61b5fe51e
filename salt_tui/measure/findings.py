"""What a run allows to be said, question by question: one sentence each, with what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, isfinite

from salt_tui.measure.rates import Rates
from salt_tui.measure.task_scores import RAW
from salt_tui.number_text import number
from scoring.choosing import UnitComparison
from scoring.conclusions import Conclusion, Difference
from scoring.confidence import HEADLINE_FUNCTION
from scoring.contrasts import Contrast
from scoring.intervals import Interval

POWER_QUANTILE = 0.84
"""With as many more answers as this adds to the threshold, a true difference of the size seen is found in 80 %."""

CHANCE, WELL = 0.5, 0.8
"""AUROC of a confidence that knows nothing, and from which on a report says that it knows well."""

_TITLES = {"auroc": "AUROC", "auroc_micro": "AUROC inside answers", "brier": "Brier", "nll": "NLL"}

KINDS = {"atom": "atoms", "line": "lines", "generation": "whole answers"}

NAMED = 3
"""Of more alternatives than this one is named and the others are counted."""

MOST_NEEDED = 100_000
"""Beyond so many problems a task nobody asks for more of them."""

_NUMBERS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question.

    Attributes:
        question: ``right``, ``calibrated``, ``function``, ``map``, ``unit``, ``position`` or ``history``.
        sentence: plain English, no more than n and interval allow.
        best: names that cannot be told apart from the best; empty where nothing is compared or nothing can be said.
        n: units that it rests on.
        answers: that these come from.
        tasks: that it holds.
        reasons: why tasks, alternatives or the whole question are left out, by their names.
    """

    question: str
    sentence: str
    best: tuple[str, ...] = ()
    n: int = 0
    answers: int = 0
    tasks: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)


def right_finding(rates: Rates) -> Finding:
    """Say how much of what is written, and of what was asked for, is right."""
    precision, recall = rates.means["precision"], rates.means["recall"]
    written = sum(task.counts.generated for task in rates.tasks.values())
    answers = sum(task.answers for task in rates.tasks.values())
    asked = sum(task.counts.reference for task in rates.tasks.values())
    tasks = tuple(task for task in rates.tasks if task not in precision.left_out)
    if precision.mean.value is None:
        sentence = f"Nothing was written where an answer was expected: 0 of {asked:,} atoms."
        return Finding("right", sentence, n=0, answers=answers, reasons=dict(precision.left_out))
    recalled = len(rates.tasks) - len(recall.left_out)
    more = f"; of those asked for {_count(recalled, 'task')}" if recalled != len(tasks) else ""
    sentence = (
        f"{_with(precision.mean.value, rates.intervals.get('precision'))} of the atoms it writes are right,"
        f" {_with(recall.mean.value, rates.intervals.get('recall'))} of those asked for"
        f" (n {written:,} in {_count(answers, 'answer')}{_of_tasks(tasks, rates.tasks)}{more})."
    )
    return Finding("right", sentence, n=written, answers=answers, tasks=tasks, reasons=dict(precision.left_out))


def function_finding(conclusion: Conclusion) -> Finding:
    """Say which confidence functions rank right above wrong atoms best."""
    return _finding("function", conclusion, _best_functions(conclusion))


def calibrated_finding(judged: UnitComparison, n: int, says: float | None, right: float | None) -> Finding:
    """Say whether confidence ranks right above wrong atoms, by a function that was chosen on other answers.

    Args:
        judged: of atoms alone.
        n: atoms of the tasks that entered.
        says: mean raw `HEADLINE_FUNCTION`.
        right: share of right units, both as means over tasks.
    """
    atom = judged.units["atom"]
    reasons = dict(judged.tasks_left_out)
    stated = ""
    if says is not None and right is not None:
        stated = f" {HEADLINE_FUNCTION} says {_number(says)} on average where {_number(right)} is right."
    if atom.auroc.value is None:
        why = "; ".join(dict.fromkeys(reasons.values())) or atom.auroc.reason
        return Finding("calibrated", f"Cannot be said: {why}.{stated}", reasons=reasons)
    function = next(iter(atom.chosen))
    by = function if judged.fixed or len(atom.chosen) == 1 else "confidence"
    how = "" if judged.fixed or len(atom.chosen) == 1 else ", by the function that is best on other answers"
    sentence = (
        f"{_how_well(atom.interval)}: of a right and a wrong atom, the right one has the better {by} in"
        f" {_with(atom.auroc.value, atom.interval)} of pairs{how} (n {n:,} in {_count(judged.answers, 'answer')}"
        f"{_of_tasks(judged.tasks, {**dict.fromkeys(judged.tasks), **reasons})}).{stated}"
    )
    return Finding("calibrated", sentence, tuple(atom.chosen), n, judged.answers, judged.tasks, reasons)


def _how_well(interval: Interval) -> str:
    low, high = interval.low, interval.high
    if low is None or high is None or low <= CHANCE <= high:
        return "Not shown"
    if high < CHANCE:
        return "The wrong way round"
    return "Well" if low >= WELL else "Somewhat"


def unit_finding(judged: UnitComparison, n: int) -> Finding:
    """Say whether atoms, lines or whole answers are ranked best, each by its own best function.

    Args:
        judged: all kinds on the same answers.
        n: atoms of the tasks that entered.
    """
    reasons = dict(judged.tasks_left_out)
    known = {name: unit for name, unit in judged.units.items() if unit.auroc.value is not None}
    if judged.verdict is None:
        why = "; ".join(dict.fromkeys(reasons.values())) or "no task has right and wrong units of every kind"
        return Finding("unit", f"Cannot be said: {why}.", reasons=reasons)
    values = ", ".join(f"{KINDS[name]} {_with(unit.auroc.value, unit.interval)}" for name, unit in known.items())
    every = {**dict.fromkeys(judged.tasks), **reasons}
    base = f"(n {n:,} atoms in {_count(judged.answers, 'answer')}{_of_tasks(judged.tasks, every)})"
    how = f"all by {judged.fixed}, too few answers to choose" if judged.fixed else "each by its best function elsewhere"
    best = [KINDS[name] for name in judged.verdict.best]
    if not judged.verdict.excluded:
        verdict = f"{' and '.join(best)} cannot be told apart" if len(best) < NAMED else "they cannot be told apart"
    else:
        verdict = f"{' and '.join(best)} rank best"
    sentence = f"{verdict[0].upper()}{verdict[1:]}: AUROC of {values}, {how} {base}."
    return Finding("unit", sentence, judged.verdict.best, n, judged.answers, judged.tasks, reasons)


def map_finding(conclusion: Conclusion, says: float | None, right: float | None) -> Finding:
    """Say whether calibrating helps, and by which maps.

    Args:
        conclusion: of the maps, `RAW` among them.
        says: mean raw confidence.
        right: share of right units, both as means over tasks.
    """
    return _finding("map", conclusion, _best_maps(conclusion, says, right))


def position_finding(ends: Contrast) -> Finding:
    """Say whether answers get worse towards their end.

    Args:
        ends: the first third against the last, redundant atoms apart.
    """
    return _contrast_finding(
        "position", ends, "in the first third of an answer", "in the last", "; redundant atoms apart"
    )


def history_finding(before: Contrast) -> Finding:
    """Say whether errors go with earlier errors.

    Args:
        before: atoms after at most half right ones against those after more.
    """
    first, second = "after atoms of which at most half are right", "after more right ones"
    return _contrast_finding("history", before, first, second, "")


def _contrast_finding(question: str, found: Contrast, first: str, second: str, apart: str) -> Finding:
    n, answers = found.first.units + found.second.units, max(found.first.answers, found.second.answers)
    reasons = dict(found.tasks_left_out)
    if not found.enough:
        sides = " and ".join(
            f"{_count(side.units, 'atom')} of {_count(side.answers, 'answer')} {where}"
            for side, where in ((found.first, first), (found.second, second))
        )
        sentence = f"Cannot be said: {sides} are too few."
        return Finding(question, sentence, n=n, answers=answers, tasks=found.tasks, reasons=reasons)
    difference = found.difference.value
    verdict = "" if found.told_apart else "Not shown: "
    whole = f"{_count(len(found.tasks), 'task')}" + (" that have both" if reasons else "")
    sentence = (
        f"{verdict}{_number(found.first.value.value)} right {first} (n {found.first.units:,}),"
        f" {_number(found.second.value.value)} {second} (n {found.second.units:,}), difference"
        f" {_with(difference, found.interval)} ({whole}{apart})."
    )
    return Finding(question, sentence, n=n, answers=answers, tasks=found.tasks, reasons=reasons)


def undecided(conclusions: Mapping[str, Conclusion]) -> str:
    """Say of the first question without a single best answer how many more problems would tell; empty for none.

    Args:
        conclusions: by what is asked, such as “which function ranks best”.
    """
    for question, conclusion in conclusions.items():
        leading = conclusion.leading
        if conclusion.reason is not None or conclusion.winner or leading is None or leading.told_apart:
            continue
        needed = problems_needed(leading, conclusion)
        if needed is None:
            continue
        return (
            f"{question}: {_shown(leading.better)} against {_shown(leading.worse)} would take about {needed:,} problems"
            f" a task in all, if the difference seen ({_number(leading.difference)}) is the true one."
        )
    return ""


def problems_needed(leading: Difference, conclusion: Conclusion) -> int | None:
    """Return about how many problems a task would tell the leading two apart, in 80 % of runs; None if too many."""
    if not conclusion.tasks or leading.standard_error <= 0.0 or leading.difference <= 0.0:
        return None
    if not isfinite(leading.difference):
        return None
    reach = leading.half_width + POWER_QUANTILE * leading.standard_error
    needed = ceil(conclusion.answers / len(conclusion.tasks) * (reach / leading.difference) ** 2)
    return needed if needed <= MOST_NEEDED else None


def _finding(question: str, conclusion: Conclusion, sentence: str) -> Finding:
    reasons = {**conclusion.tasks_left_out, **conclusion.left_out}
    if conclusion.reason is not None:
        reasons[question] = conclusion.reason
    return Finding(question, sentence, conclusion.best, conclusion.units, conclusion.answers, conclusion.tasks, reasons)


def _best_functions(conclusion: Conclusion) -> str:
    if conclusion.reason is not None:
        return f"Cannot be said: {_why(conclusion)}."
    title = _TITLES[conclusion.metric]
    base = f" ({_basis(conclusion)})"
    best, worse = conclusion.best, tuple(conclusion.excluded)
    if not worse:
        return f"The {_word(len(best))} functions cannot be told apart: {title} {_range(conclusion, best)}{base}."
    alike = any(set(best) <= set(group) for group in conclusion.same)
    verdict = "ranks best" if len(best) == 1 else "rank alike and best" if alike else "cannot be told apart"
    of_all = f" of {_word(len(best) + len(worse))}" if len(best) > NAMED else ""
    first = f"{_names(best, 'and')}{of_all} {verdict}, {title} {_range(conclusion, best)}"
    verb = "is" if len(worse) == 1 else "are"
    return f"{first}{base}. {_names(worse, 'and')} {verb} worse ({_range(conclusion, worse)})."


def _best_maps(conclusion: Conclusion, says: float | None, right: float | None) -> str:
    if conclusion.reason is not None:
        return f"Cannot be said: {_why(conclusion)}."
    raw = conclusion.means[RAW].value
    others = tuple(name for name in conclusion.best if name != RAW)
    stated = ""
    if says is not None and right is not None:
        stated = f" Raw {HEADLINE_FUNCTION} says {_number(says)} where {_number(right)} is right."
    base = f" ({_basis(conclusion)})."
    if RAW in conclusion.best:
        if not others:
            return f"No: raw has the best Brier score, {_number(raw)}, and every map is worse{base}{stated}"
        return (
            f"Not shown to help: Brier {_number(raw)} raw, {_range(conclusion, others)} after {_names(others, 'or')},"
            f" which cannot be told apart from it{base}{stated}"
        )
    alike = ", which cannot be told apart" if len(others) > 1 else ""
    after = f"{_range(conclusion, others)} after {_names(others, 'or')}{alike}"
    return f"Worth it: Brier {_number(raw)} raw, {after}{base}{stated}"


def _why(conclusion: Conclusion) -> str:
    reasons = list(dict.fromkeys(conclusion.tasks_left_out.values()))
    return f"no task can be compared, {'; '.join(reasons)}" if reasons else str(conclusion.reason)


def _basis(conclusion: Conclusion) -> str:
    every = {**dict.fromkeys(conclusion.tasks), **conclusion.tasks_left_out}
    of_tasks = _of_tasks(conclusion.tasks, every)
    return f"n {conclusion.units:,} in {_count(conclusion.answers, 'answer')}{of_tasks}"


def _of_tasks(held: Sequence[str], every: Mapping[str, object]) -> str:
    if len(every) == 1:
        return ""
    whole = f"{len(held)} of {len(every)} tasks" if len(held) < len(every) else f"{len(every)} tasks"
    return f", mean of {whole}"


def _names(names: Sequence[str], joined: str) -> str:
    shown = [_shown(name) for name in names]
    if len(shown) > NAMED:
        return f"{shown[0]} {joined} {_word(len(shown) - 1)} others"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {joined} {shown[-1]}"


def _shown(name: str) -> str:
    return "raw" if name == RAW else name


def _range(conclusion: Conclusion, names: Sequence[str]) -> str:
    values = [value for name in names if (value := conclusion.means[name].value) is not None]
    low, high = _number(min(values)), _number(max(values))
    return low if low == high else f"{low}–{high}"


def _with(value: float | None, interval: Interval | None) -> str:
    if interval is None or interval.low is None or interval.high is None:
        return _number(value)
    return f"{_number(value)} [{_number(interval.low)} {_number(interval.high)}]"


def _number(value: float | None) -> str:
    return "undefined" if value is None else number(value)


def _word(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
