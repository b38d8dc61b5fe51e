"""The registry of calibration maps: from the scores of a confidence function to probabilities of being correct."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from numpy.typing import ArrayLike

from scoring.calibrators_empirical import fit_binned, fit_histogram, fit_isotonic
from scoring.calibrators_fitted import ConfidenceMap, Fitted, Sample, Unfitted, as_score_column, training_sample
from scoring.calibrators_parametric import fit_beta, fit_platt, fit_temperature
from scoring.calibrators_rescaling import fit_minmax, fit_z_sigmoid

MOST_BINS = 100_000


@dataclass(frozen=True, slots=True)
class Calibrator:
    """One calibration map before it is fitted.

    Attributes:
        name: as on the command line, such as ``isotonic`` or ``binned:10``.
        fit_map: fits the map on oriented scores and says what is remarkable about the fit.
        never_falls: whether calibrated values never fall as confidence rises, whatever the data.
        uses_labels: whether the fit looks at correctness.
        needs_probability: whether scores must lie in [0, 1].
        formula: the definition, in one line.
        degenerate: what degenerate training data give, in one line.
        source: paper and section.
    """

    name: str
    fit_map: Callable[[Sample], tuple[ConfidenceMap, str | None]]
    never_falls: bool
    uses_labels: bool
    needs_probability: bool
    formula: str
    degenerate: str
    source: str

    def fit(self, scores: ArrayLike, correct: ArrayLike, *, higher_is_confident: bool = True) -> Fitted | Unfitted:
        """Fits the map on one set of units.

        Args:
            scores: shape (n,), one confidence function's values.
            correct: shape (n,), 1 or true where the unit is correct.
            higher_is_confident: False for scores such as perplexity.

        Returns:
            The fitted map, or the reason for having none: no units, infinite scores, scores that are no probability
            where one is needed.

        Raises:
            ValueError: a score is NaN, a label is neither 0 nor 1, or lengths differ.
        """
        sample = training_sample(
            self.name,
            scores,
            correct,
            higher_is_confident=higher_is_confident,
            needs_probability=self.needs_probability,
        )
        if isinstance(sample, Unfitted):
            return sample
        mapping, note = self.fit_map(sample)
        notes = [*self._sample_notes(sample), *([note] if note else [])]
        given = as_score_column(scores)
        return Fitted(
            self.name,
            higher_is_confident,
            self.needs_probability,
            mapping,
            float(given.min()),
            float(given.max()),
            "; ".join(notes) or None,
        )

    def _sample_notes(self, sample: Sample) -> list[str]:
        notes = []
        size = sample.confidence.size
        if size <= 2:
            notes.append("fitted on one unit" if size == 1 else "fitted on two units")
        if self.uses_labels and sample.one_class:
            notes.append(f"every training unit is {'correct' if sample.base_rate == 1.0 else 'wrong'}")
        return notes


def _binned(bins: int) -> Calibrator:
    return Calibrator(
        name=f"binned:{bins}",
        fit_map=partial(fit_binned, bins=bins),
        never_falls=False,
        uses_labels=True,
        needs_probability=False,
        formula="rate of correct training units in bin min(⌊B·(x − min)/(max − min)⌋, B − 1) of B equal-width bins",
        degenerate="empty bin or constant scores: base rate; beyond the range: first or last bin",
        source="SALT appendix E.1, algorithm 3",
    )


def _histogram(bins: int) -> Calibrator:
    return Calibrator(
        name=f"histogram:{bins}",
        fit_map=partial(fit_histogram, bins=bins),
        never_falls=False,
        uses_labels=True,
        needs_probability=False,
        formula="rate of correct training units in one of B equal-mass bins; ties at sorted positions s..e fall in bin "
        "⌊B(s+e+1)/(2n)⌋, edges lie halfway between neighbouring scores",
        degenerate="constant scores: base rate; fewer distinct scores than bins: fewer bins, noted",
        source="Zadrozny and Elkan 2001; ties: our reading",
    )


_FAMILIES: dict[str, Callable[[int], Calibrator]] = {"binned": _binned, "histogram": _histogram}

_ENTRIES = (
    Calibrator(
        name="z_sigmoid",
        fit_map=fit_z_sigmoid,
        never_falls=True,
        uses_labels=False,
        needs_probability=False,
        formula="σ((x − μ)/s), μ and s the training mean and population standard deviation",
        degenerate="constant scores: 0.5",
        source="SALT appendix E.1, algorithm 1",
    ),
    Calibrator(
        name="minmax",
        fit_map=fit_minmax,
        never_falls=True,
        uses_labels=False,
        needs_probability=False,
        formula="(x − Q₀.₀₁)/(Q₀.₉₉ − Q₀.₀₁) clipped to [0, 1], linear quantiles of the training scores",
        degenerate="constant scores: 0.5; both quantiles equal: the whole range instead, noted",
        source="SALT appendix E.1, algorithm 2",
    ),
    _binned(5),
    _binned(10),
    _binned(100),
    _histogram(15),
    Calibrator(
        name="platt",
        fit_map=fit_platt,
        never_falls=False,
        uses_labels=True,
        needs_probability=False,
        formula="σ(a·x + b), a and b by negative log-likelihood without target smoothing; the value clipped at 1e-6",
        degenerate="a < 0: kept and noted; one class: 1e-6 or 1 − 1e-6; constant scores: base rate; separable: a step "
        "cut at 1e-6 and 1 − 1e-6",
        source="calibration guide, Platt scaling",
    ),
    Calibrator(
        name="isotonic",
        fit_map=fit_isotonic,
        never_falls=True,
        uses_labels=True,
        needs_probability=False,
        formula="rising least-squares fit by pooling adjacent violators, ties averaged, linear between blocks",
        degenerate="one class or constant scores: base rate; beyond the range: the end values",
        source="calibration guide, isotonic regression",
    ),
    Calibrator(
        name="beta",
        fit_map=fit_beta,
        never_falls=True,
        uses_labels=True,
        needs_probability=True,
        formula="σ(a·ln p − b·ln(1 − p) + c), a, b ≥ 0, by negative log-likelihood; p and the value clipped at 1e-6",
        degenerate="scores outside [0, 1]: undefined; one class: 1e-6 or 1 − 1e-6; constant or falling: base rate; "
        "separable: a step cut at 1e-6 and 1 − 1e-6",
        source="ACUTE section 4.1; Kull et al. 2017",
    ),
    Calibrator(
        name="temperature",
        fit_map=fit_temperature,
        never_falls=True,
        uses_labels=True,
        needs_probability=True,
        formula="σ(logit(p)/T), T in [0.01, 100] by negative log-likelihood; p and the value clipped at 1e-6",
        degenerate="scores outside [0, 1]: undefined; T on its border is noted; all p = 0.5: T = 1",
        source="calibration guide, temperature scaling",
    ),
)

CALIBRATORS: dict[str, Calibrator] = {entry.name: entry for entry in _ENTRIES}


class UnknownCalibratorError(ValueError):
    """A name that no calibration map has.

    Attributes:
        name: the name that was given.
        known: the names there are, those with a usual number of bins among them.
    """

    def __init__(self, name: str, families: Iterable[str]) -> None:
        """Take the name and the forms that the message lists."""
        self.name, self.known = name, tuple(dict.fromkeys((*families, *CALIBRATORS)))
        super().__init__(f"no calibrator {name!r}; there are {', '.join(families)}")


def calibrator(name: str) -> Calibrator:
    """The calibration map of that name; ``binned:B`` and ``histogram:B`` take any B from 1 to 100,000.

    Raises:
        UnknownCalibratorError: no such map.
        ValueError: a number of bins that is missing or out of range.
    """
    known = CALIBRATORS.get(name)
    if known is not None:
        return known
    family, colon, number = name.partition(":")
    build = _FAMILIES.get(family)
    if build is not None:
        if number.isascii() and number.isdigit() and 1 <= int(number[:9]) <= MOST_BINS and len(number) <= 6:
            return build(int(number))
        given = f"not {number!r}" if colon else f"as in {family}:10"
        raise ValueError(f"{family} needs a number of bins from 1 to {MOST_BINS}, {given}")
    names = [entry for entry in CALIBRATORS if ":" not in entry] + [f"{entry}:B" for entry in _FAMILIES]
    raise UnknownCalibratorError(name, names)
