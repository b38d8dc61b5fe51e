"""The registry of analyses: the questions of SALT section 5 and what answers each of them (spec 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scoring.analyses_answers import alignment_effect, precision_recall_correlation, redundancy_by_task
from scoring.analyses_comparison import compare, compare_granularities, compare_maps, paired_change
from scoring.analyses_confidence import confidence_densities, label_noise
from scoring.analyses_granularity import correct_parts
from scoring.analyses_position import calibration_by_position, correctness_by_history, correctness_by_position


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
            "share of right units, and density of right units, in bins of (index + 1)/length; mean over tasks",
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
            "compare_functions",
            "which confidence function?",
            compare,
            "one-sided paired Wilcoxon test of every function against every other over cells, p < 0.05; several "
            "winners: best median",
            "all differences 0: p = 1; no function better than another: no winner, with the reason",
            "SALT figures 7, 30 to 32, appendix G.1",
        ),
        Analysis(
            "compare_maps",
            "which calibration map?",
            compare_maps,
            "each map with the function of the best mean over cells; then as for functions",
            "a map that is defined in no cell is left out",
            "SALT figures 8, 28",
        ),
        Analysis(
            "compare_granularities",
            "atoms or lines?",
            compare_granularities,
            "means over the cells where both are defined and one-sided paired Wilcoxon tests both ways, per task and "
            "over all",
            "no shared cell: undefined",
            "SALT figures 5, 15, 16, 43, 45",
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
            "paired_change",
            "what does reasoning, or another change, do?",
            paired_change,
            "(second − base)/|base| per cell, positive where better; median; one-sided paired Wilcoxon tests both ways",
            "a base of 0 or an undefined value: undefined in that cell",
            "SALT figures 6, 38",
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
