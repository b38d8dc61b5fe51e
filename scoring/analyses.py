"""The registry of analyses: the questions of SALT section 5 and what answers each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scoring.analyses_answers import alignment_effect, precision_recall_correlation, redundancy_by_task
from scoring.analyses_confidence import confidence_densities, label_noise
from scoring.analyses_granularity import correct_parts
from scoring.analyses_position import calibration_by_position, correctness_by_history, correctness_by_position
from scoring.choosing import judge_units
from scoring.conclusions import conclude
from scoring.contrasts import contrast
from scoring.paired_runs import compare_runs
from scoring.signed_rank import signed_rank_tests


@dataclass(frozen=True, slots=True)
class Analysis:
    """One question asked of stored columns.

    Attributes:
        name: the key in the registry.
        question: what it answers, in one line.
        function: from columns to a frozen dataclass.
        formula: the definition, in one line.
        degenerate: what it gives where something is undefined, in one line.
        source: figures and tables of the paper.
    """

    name: str
    question: str
    function: Callable[..., object]
    formula: str
    degenerate: str
    source: str


ANALYSES: dict[str, Analysis] = {
    analysis.name: analysis
    for analysis in (
        Analysis(
            "correctness_by_position",
            "does it get worse along the answer?",
            correctness_by_position,
            "share of right units among those with a reference unit, density of right units, and share of redundant "
            "units, in bins of (index + 1)/length; mean over tasks",
            "a bin without units is undefined and left out of the mean over tasks",
            "SALT figure 2",
        ),
        Analysis(
            "correctness_by_history",
            "do earlier errors go with later ones?",
            correctness_by_history,
            "share of right units in bins of the share of right units before them in the answer; mean over tasks",
            "an answer's first unit has no history; a bin without units is undefined",
            "SALT figures 3, 22 to 24",
        ),
        Analysis(
            "calibration_by_position",
            "does calibration get worse along the answer?",
            calibration_by_position,
            "ECE (15 bins) of the units in bins of (index + 1)/length; mean over tasks",
            "a bin without units is undefined and left out of the mean over tasks",
            "SALT figure 29",
        ),
        Analysis(
            "precision_recall_correlation",
            "do precision and recall say the same?",
            precision_recall_correlation,
            "Pearson's r between precision and recall over the answers of a task",
            "fewer than two answers, or one of them constant: undefined",
            "SALT table 2",
        ),
        Analysis(
            "redundancy_by_task",
            "how much does it write that was not asked for?",
            redundancy_by_task,
            "redundant units / generated units, pooled over the answers of a task; mean over tasks",
            "nothing generated: undefined",
            "SALT figure 17",
        ),
        Analysis(
            "alignment_effect",
            "how many errors are only shifted?",
            alignment_effect,
            "precision by alignment − precision by index, per task; mean over tasks",
            "undefined where one of both is",
            "SALT figure 41, appendix H",
        ),
        Analysis(
            "conclude",
            "which confidence function, and which calibration map?",
            conclude,
            "the set that cannot be told apart from the best in the mean over tasks: f is out if some g is better by "
            "q · se, q the 1 − 0.05/questions quantile of max |D* − D|/se over all pairs, in resamples of n − 1 of a "
            "task's n answers; maps by Brier",
            "fewer than two alternatives, or no task with two answers that hold a right and two that hold a wrong "
            "unit: no conclusion",
            "SALT figures 7, 8, 28, 30 to 32 ask it; multiple comparisons with the best (Hsu 1981) instead of their "
            "uncorrected tests: our reading",
        ),
        Analysis(
            "judge_units",
            "atoms, lines or whole answers?",
            judge_units,
            "AUROC of each kind of unit by its own best function: chosen on one half of a task's answers, judged on "
            "the other, mean over 100 splits; which kinds are told apart as in `conclude`",
            "fewer than ten answers in a task: `logprob_sum` for all; no task for all kinds: undefined",
            "SALT figures 5, 15, 16, 43, 45; choosing and judging apart: our reading",
        ),
        Analysis(
            "correct_parts",
            "and tokens or characters?",
            correct_parts,
            "a token or character of a unit is right if the reference unit holds the same bytes at the same place",
            "parts of a redundant unit are wrong",
            "SALT appendix J; comparing inside the unit: our reading",
        ),
        Analysis(
            "confidence_densities",
            "does confidence separate right from wrong?",
            confidence_densities,
            "densities of confidence of right and of wrong units in 40 bins; overlap = ∫ min of both",
            "one class: one density and no overlap",
            "SALT figure 44",
        ),
        Analysis(
            "contrast",
            "is the end worse than the beginning, and what follows errors?",
            contrast,
            "difference of two shares of right units over the tasks that have both sides, redundant units left out; "
            "interval ± t·se over answers",
            "no task with both sides: undefined; a sentence needs 5 answers and 10 units on each side",
            "SALT section 5.1; the same tasks on both sides: our reading",
        ),
        Analysis(
            "compare_runs",
            "what does reasoning, or another change, do?",
            compare_runs,
            "second − first on the same problems, mean over tasks, interval ± t·se over problems; p by swapping the "
            "two runs of each problem; problems needed = n·(2.80·se/|D|)²; a task is clear where its interval at "
            "1 − .05/tasks leaves 0 out",
            "fewer than six problems that differ: no p; a mean of 0 has no relative change",
            "SALT figures 6, 38 to 40; swap test and problems needed: our reading",
        ),
        Analysis(
            "signed_rank_tests",
            "and over several pairs of runs?",
            signed_rank_tests,
            "one-sided Wilcoxon signed-rank tests over cells of pair and task, differences within 1e-12 tied; Holm's "
            "correction for the number of metrics beside it",
            "all differences 0: p = 1; fewer than 20 cells: undefined",
            "SALT figures 7, 30 to 32, appendix G.1; Holm 1979",
        ),
        Analysis(
            "label_noise",
            "what would wrong labels have hidden?",
            label_noise,
            "expected shift e/N · |2A − 1|, largest shift 2e/N (balanced data); mean AUROC with e labels flipped",
            "one class: undefined",
            "SALT figure 42, equations 11 and 13",
        ),
    )
}
"""In the order a report asks them."""
