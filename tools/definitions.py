"""Write docs/definitions.md from the registries of scoring: `python -m tools.definitions`; `--check` only compares."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

from scoring.analyses import ANALYSES
from scoring.calibrators import CALIBRATORS
from scoring.choices import CHOICE_METRICS
from scoring.confidence import CONFIDENCE_FUNCTIONS, HEADLINE_FUNCTION
from scoring.metrics import METRICS
from scoring.signals import SIGNALS, Signal

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "definitions.md"

INTRODUCTION = f"""\
# Definitions

Every confidence function, calibration map, metric and analysis, as the program computes it. This page is written by
`python -m tools.definitions` from the registries in `scoring/`; change those, not this page.

A number that is not defined is shown as empty (JSON: `null`) with the reason, never as 0. Infinite is a number: a log
loss of ∞ (JSON: `"Infinity"`) makes the mean ∞ and ranks last. NaN is refused. Tasks count the same in every benchmark
figure, however many units they have. Intervals draw whole generations, because the units of one answer depend on each
other. Where one confidence function stands for all, it is raw `{HEADLINE_FUNCTION}` over atoms.

Sources: *SALT* is "Evaluating LLM Uncertainty in Long-Form Generation Using Deterministic Ground Truth", *ACUTE* is
"The acute Protocol: Operationalizing Language Model Activations for Better Calibration, Utility, and Trust" (arXiv
2606.07822), *calibration guide* is "Model Calibration in Large Language Models". "Our reading" marks what a source
leaves open.
"""

ANSWERS = """\
## Answers and units

Where the answer stands in a reply:

- A fence is a run of four or more asterisks. Fences pair: first and second, third and fourth, and so on. An odd last
  one opens a region that is never closed. The last region with text is the answer.
- Thinking is never answer: everything before the last `</think>`, and everything after a `<think>` without an end.
- When a later region begins to hold text while the reply streams, the units of the earlier one are withdrawn.
- `--compat` finds the answer as the published release does. A reply without a fence is graded whole, a region that
  contains one of 24 words is dropped, a complete pair of fences beats a last one that is never closed, asterisks and
  one outer bracket are removed, and inner spaces are removed where atoms are not separated by spaces.

How the answer splits:

- `atom`: separated by white space, or as the task says (a line of logic, an element of a returned value), or by the
  `delimiter` of a row of `score`. Units are trimmed; separators belong to no unit.
- `line`: a non-empty line.
- `generation`: the whole answer.
- An atom that a limit cut is missing, not wrong: nobody knows how it would have gone on.

How an answer ended, the first that holds: `failed`, `cancelled`, `context_full` (the context had no room),
`truncated` (the limit of tokens ended it), `no_answer` (no region holds text), `unclosed` (the last fence is open),
`complete`.

Problems of one's own have other forms of answers: [own_problems.md](own_problems.md).

Source: SALT sections 2.1 and 4.3, appendix H.
"""

CORRECTNESS = """\
## Correctness

Every unit is compared with the reference unit at the same index, as strings, after trimming and folding inner white
space: `correct`, `wrong`, `missing` (no generated unit), `redundant` (no reference unit), `abstained` (`DK`, `<DK>`).
Counts are pooled over a task's answers; answers that were cancelled, failed, or did not fit the context are left out
and counted; an answer without a fenced region has all its reference units missing.

- `precision`: correct / generated units, [0, 1], higher is better; nothing generated: undefined
- `recall`: correct / reference units, [0, 1], higher is better
- `redundancy`: redundant / generated units, [0, 1], lower is better; nothing generated: undefined
- `aligned precision`: with labels by Needleman–Wunsch alignment (match +1, else 0), correct / (generated units +
  reference units unmatched before the last generated unit)

Source: SALT sections 2.1 and 2.3, appendix H.
"""

FUNCTIONS = """\
## Confidence functions

How sure the model was of a unit (atom, line or generation), from the k tokens whose bytes overlap it: p is the
probability of a chosen token, H the entropy of its distribution in nats, both over the whole vocabulary and before
temperature and samplers. Log-probabilities above 0 and entropies below 0 are rounding and count as 0; a perplexity too
large for a double is the largest double. A unit without tokens (a missing one) has no confidence.
"""

MAPS = """\
## Calibration maps

From the scores x of one confidence function to probabilities of being right. Fitted per (model, task, method, function)
on other generations than they are applied to: five folds of generations, or one split into halves. Fewer than two
generations: undefined. Scores of functions where lower is more confident are negated first, or taken as 1 − x where a
map needs a probability. Output is in [0, 1] and finite. Training on one unit, on two, or on one class is noted.
Ranking metrics of a strictly rising map are computed from the raw scores, since pooled folds would change the order;
`beta` and `temperature` count as such although they clip p at 1e-6, which only keeps them finite. Under any other map
they are measured inside folds: AUROC is Σ rightly ordered pairs / Σ pairs (undefined below 30 pairs), AURC the mean
over folds weighted by units, AUPRC by right units. Values of scores beyond the training range are a guess, and counted.
`binned:B` and `histogram:B` take any B from 1 to 100,000; a report shows those listed here.
"""

MEASURES = """\
## Metrics

Of units with a confidence p and an outcome y, 1 for right and 0 for wrong or redundant; missing and abstained units are
left out. A metric that needs probabilities refuses confidences outside [0, 1]. Brier, NLL and EURO depend on more than
ranking, so what a perfect and an uninformative confidence (the accuracy for all) would score stands beside them.
"""

INTERVALS = """\
## Intervals

At 95 %, over whole answers. A task with the units of a single answer has none, and neither has the mean over tasks
then.

- Shares (precision, recall, accuracy): Korn and Graubard. p = ΣE/ΣT over G answers with E right of T units,
  v = G/(G−1)·Σ(E − pT)²/(ΣT)², n* = min(ΣT, p(1−p)/v·(z/t)²), then Clopper and Pearson on pn* of n*. All right:
  [0.025^(1/G), 1]; none right: mirrored. Mean of K tasks: θ̄ − √Σ(θ − l)²/K to θ̄ + √Σ(u − θ)²/K.
- Other metrics: estimate ± t·se, se over 1000 seeded resamples of n − 1 of a task's n answers, n − 1 degrees of freedom
  (Satterthwaite's for a mean over tasks), cut at the metric's range.
- AUROC and PRR: only where at least two answers hold a right and two a wrong unit. At exactly 1 or 0 the other end is
  that of a share that holds in all of as many answers as hold the rarer class.
- ECE, MCE, ACE, smooth ECE, Brier reliability: noise makes them larger, so the lower end moves down by the bias, which
  is the mean over resamples minus the estimate: [max(0, e − bias − t·se), e + t·se].

In simulations with 5 to 20 answers a task these hold the truth in 91 to 98 % of cases, percentiles of resamples in 73
to 92 %. Sources: Korn and Graubard 1998; the rest is our reading.
"""

QUESTIONS = """\
## Analyses

Questions asked of stored answers. A cell is one (model, task, method).
"""

CHOICES = """\
## Multiple choice

Problems of kind `choice` give a probability to each of their letters, renormalised over the letters that the problem
offers. All letters count, not the chosen one alone: [.6 .39 .01] and [.6 .2 .2] are two answers. A problem in which
some letter's probability is not known (an engine that lists the likeliest tokens may not list it) is left out and
counted. Metrics are of one task; means over tasks count each the same.

- `temperature` here: p of a letter becomes p^(1/T), renormalised, which is the softmax of the log-probabilities divided
  by T. T in [0.01, 100] has the least mean −ln p of the right letter on the other folds (five, by problem, as for every
  map); the loss is convex in 1/T. The order of the letters stays, and with it what is right. A right letter at
  probability 0 is infinitely wrong at every T: such problems are left out of the fit, and said. Equal probabilities, or
  all of it on one letter, in every problem: T = 1, said. At a limit of its range: said. Fewer than two problems: none.
- interval of the Brier score: ± Student's t times the spread over resamples of answers, as for means of other metrics;
  class-wise ECE has none, and few answers make it larger than it is.

Source: calibration guide; Guo et al. 2017.
"""

INTERVENTIONS = """\
## Prefix interventions

What the correctness of an answer's beginning does to what comes next (SALT section 5.1, appendix B.2). A target is
one atom of a stored answer, at position p* ≥ 11 counted from 1. The model writes it anew, after its own text (the
baseline) and after changed text. Prompt and unchanged tokens keep their ids; a changed atom replaces all tokens that
overlap it, and their bytes are tokenised together.

- correction, corruption: a wrong atom becomes the right one, a right atom a random wrong one of the same kind; a
  variant does one of the two
- Y: 1 if the new atom equals the reference atom, else 0; no atom at the target counts as 0
- P(gold): the product of the probabilities of the reference atom's tokens, tokenised as the edits are, times the
  probability that the next token cannot continue the atom (it begins with what separates atoms there or with an
  asterisk, or it ends the generation). Other ways to spell the atom in tokens are not counted: a lower bound
- T global: change of the fraction of right atoms over 1..p*−1; T local: the same over the last ten; both in [−1, 1]
- paired outcome: the outcome minus that of the baseline of the same target; 0 for the baseline itself

**Contrasts** (table 4; figures 4 and 25). The paired outcome by least squares on a cubic B-spline of T (five columns;
boundary knots 1e-6 of the range outside the doses), standardised p*, the fraction of right atoms in the unchanged
prefix (for T local also in its last ten), a constant for each problem and model; *adjusted* also the other treatment,
linear.

- curve: mean prediction over at most 2,000 rows of a model, then over models, at 60 doses from the 1st to the 99th
  percentile
- slope: secant of the curve over the full range of doses, per unit of T
- ΔP₊, ΔP₋: mean of the curve over T > 0 and T < 0; their ratio mixes the range of the doses with the effect
- per unit (ours): the same less the curve at 0, divided by the mean dose; on targets with both directions the ratio
  of the two is 1 for a linear effect whatever the doses, once the other treatment is held fixed
- p: Wald test of the basis with residuals clustered by problem; refused below ten problems (ours)
- p rows, ΔAIC: F-test and AIC of the line minus that of the spline, as in the paper; rows of a target depend on each
  other, so they are too sure
- fewer than six distinct doses, or knots that coincide: a straight line, said so

**Length** (table 5; figures 26 and 27). Y by logistic regression on the same spline of p*−1, a constant for each
problem and model; *controlled* also the correctness of the unchanged prefix, of its last ten atoms, and both
treatments. Problems whose outcomes are all equal are left out and counted. An association: length is not varied.

- t₀: the smallest length of the grid; it stands for 0
- κ: from the steepest point on, the first length at which the slope is below a tenth of the peak
- ξ: the first length at which 95 % of the change from t₀ to the end has accrued
- fixed correctness: the curve with both fractions held at 0, 20, … 100 % and both treatments at 0
- likelihood-ratio tests for Y only: P(gold) is a fraction and has no likelihood

Intervals are 95 % percentiles of 1,000 resamples with a fixed seed: of problems, fitted again, or for κ, ξ and the
change with length of models where there are several. Below ten problems there are none. In 200 simulated experiments
of 40 problems and one model they held the truth in 182 (global slope), 186 (local slope), 184 (ratio per unit), 192
(κ) and 182 (ξ), where 95 % would be 190. Truth is what the estimator gives on 300 problems without chance.
"""

PROBES = """\
## Activations and probes

The state of layer j is the output of its block (the residual stream, before the final norm), j from 1 to ℓ; a unit's
vector is the mean over its tokens (ACUTE section 3.1; MICE). The paper does not say whether the last layer's is taken
before the norm; Transformers' `hidden_states` have it behind, and so has `--post-norm`. *Producing* positions are
those from whose state a token was chosen; the tokens' *own* positions follow as producing + (h after the last token −
h before the first)/T. Labels: whether the unit is right.

- act early, middle, late: one layer's vector; thirds end at 40 and 65 % of the depth; the layer of a third is the one
  with the largest EURO area in three inner folds with 100 trees, on at most 1,000 units (the paper does not say how)
- cosine: of each layer's vector with that of the last layer, ℓ − 1 numbers
- pca10, pca20: the first 10 or 20 principal components of each layer, centred, unscaled, fitted on training answers
- classifier: a random forest of 1,000 trees, depth at most 20, min(10, p) features a split; confidence is the mean
  share of right units in the leaves. A map after it is fitted on the scores of three inner folds, of 100 trees each
- none, hre, nwkr, platt, isotonic, beta: the joint probability of the tokens raw; the rate of its bin of 25; the
  Nadaraya–Watson mean under a reflected Gaussian whose width is the smooth ECE; and three maps
- folds: five, by problem (the same text, in whatever run); every number is out of fold
- by layer, by number of training answers (twenty draws each), on unseen tasks: forests of 100 trees
- intrinsic dimension: components that hold 50, 70, 90, 95 % of a layer's variance; at most n − 1 and the width
- the best: as for functions and maps, by Brier score alone; smooth ECE and EURO areas are shown and name none
- a kept probe: 1,000 trees on the layer with the largest EURO area alone, out of fold, trained on all units
"""

DECISIONS = """\
## From confidence to a decision

A policy is a confidence function, perhaps a map, and a threshold: units above it are trusted. Inside each task a third
of the answers chooses function, map and the order of at most 20 thresholds (quantiles of the values); the others test
the thresholds in that order and stop at the first that fails (fixed-sequence testing). Of those that passed the one
with the largest coverage is taken. E, T are the wrong and the trusted units of an answer, G the number of answers in
the testing part with T > 0; α is the risk and 1 − δ the confidence.

- per unit (the default, approximate): p = ΣE/ΣT; v = G/(G−1)·Σ(E − pT)²/(ΣT)²; n* = min(ΣT, p(1−p)/v·(z/t)²) with
  the quantiles 1 − δ of the normal and of Student's distribution with G − 1 degrees, n* = G where p is 0 or 1; the
  quantile 1 − δ of Beta(pn* + 1, (1−p)n*) is at most α. One unit an answer: the bound of Clopper and Pearson
- per answer (`--exact`): L = E/T; passes if Π(1 + ν(α − L)) ≥ 1/δ, with the ν of {.1, .25, .5, .75, .9}/(1 − α) that
  grows most on the choosing part. It promises the mean of L over answers, however few there are
- fewest answers: ⌈ln δ / ln(1 − α)⌉, 45 at α = .05 and δ = .1; with fewer nothing can be promised
- bands: trusted at α₁, trusted and checked at α₂ > α₁, each at δ/2; nothing is promised of the checked units alone,
  of single tasks, or of another mixture of tasks
- rewards: the threshold where the rewards balance (ACUTE section 2.3); function and map are those that earn most on
  the choosing part

The tests simulate 1,000 data sets and let a promise fail in at most δ of them, plus three standard errors for `--exact`
and plus .05 for the approximate one.
"""


def render() -> str:
    """The whole page."""
    blocks = [
        INTRODUCTION,
        ANSWERS,
        CORRECTNESS,
        FUNCTIONS,
        *_functions(),
        MAPS,
        *_maps(),
        MEASURES,
        *_metrics(),
        CHOICES,
        *_choices(),
        INTERVALS,
        QUESTIONS,
        *_analyses(),
        INTERVENTIONS,
        PROBES,
        DECISIONS,
    ]
    return "\n".join(blocks)


def _functions() -> Iterator[str]:
    for name, entry in (*CONFIDENCE_FUNCTIONS.items(), *SIGNALS.items()):
        yield _entry(
            name,
            {
                "formula": entry.formula,
                "direction": f"{'higher' if entry.higher_is_confident else 'lower'} is more confident",
                "range": _range(entry.minimum, entry.maximum),
                "calibration": "needed before calibration metrics"
                if entry.needs_calibration
                else "a probability as is",
                "given by": entry.given_by if isinstance(entry, Signal) else "the tokens of a unit",
                "source": entry.source,
            },
        )


def _maps() -> Iterator[str]:
    for name, entry in CALIBRATORS.items():
        yield _entry(
            name,
            {
                "formula": entry.formula,
                "direction": "never falls as confidence rises" if entry.never_falls else "may fall where the data do",
                "range": "[0, 1]",
                "needs": _needs(entry.uses_labels, entry.needs_probability),
                "degenerate": entry.degenerate,
                "source": entry.source,
            },
        )


def _metrics() -> Iterator[str]:
    directions = {True: "higher is better", False: "lower is better", None: "neither good nor bad"}
    for name, entry in METRICS.items():
        yield _entry(
            name,
            {
                "name": entry.title,
                "formula": entry.formula,
                "direction": directions[entry.higher_is_better],
                "range": _range(entry.minimum, entry.maximum),
                "needs": "confidences in [0, 1]" if entry.needs_probability else "any finite confidences",
                "degenerate": entry.degenerate,
                "source": entry.source,
            },
        )


def _choices() -> Iterator[str]:
    for name, entry in CHOICE_METRICS.items():
        yield _entry(
            name,
            {
                "name": entry.title,
                "formula": entry.formula,
                "direction": "lower is better",
                "range": _range(0.0, entry.maximum),
                "needs": "the probabilities of all letters of a choice, renormalised",
                "degenerate": entry.degenerate,
                "source": entry.source,
            },
        )


def _analyses() -> Iterator[str]:
    for name, entry in ANALYSES.items():
        yield _entry(
            name,
            {
                "question": entry.question,
                "formula": entry.formula,
                "degenerate": entry.degenerate,
                "source": entry.source,
            },
        )


def _entry(name: str, facts: dict[str, str]) -> str:
    return "\n".join([f"### `{name}`", "", *(f"- {fact}: {text}" for fact, text in facts.items()), ""])


def _needs(uses_labels: bool, needs_probability: bool) -> str:
    scores = "scores in [0, 1]" if needs_probability else "any finite scores"
    return f"{scores} and correctness" if uses_labels else f"{scores}, no correctness"


def _range(minimum: float, maximum: float) -> str:
    low = "(−∞" if minimum == -math.inf else f"[{_number(minimum)}"
    high = "∞)" if maximum == math.inf else f"{_number(maximum)}]"
    return f"{low}, {high}"


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` say whether it is current; 1 when it is not, 2 for other arguments."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tools.definitions [--check]", file=sys.stderr)
        return 2
    page = render()
    if not arguments:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(page, encoding="utf-8")
        return 0
    if DOCUMENT.exists() and DOCUMENT.read_text(encoding="utf-8") == page:
        return 0
    print("docs/definitions.md is not current: run python -m tools.definitions", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
