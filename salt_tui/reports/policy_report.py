"""A policy in sentences and as data: what is promised, of what, and what the answers that tested it showed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from salt_tui.measure.policies import CHECK, TRUST, WITHHOLD, Found, SavedPolicy
from salt_tui.number_text import confidence_text, number, percent
from salt_tui.visible_text import visible
from scoring.policy import RAW, Band, NoPolicy, Policy, RewardPolicy
from scoring.signals import is_fitted_anew

_KINDS = {"atom": "atoms", "line": "lines", "generation": "answers"}


def policy_lines(found: Found, kind: str) -> Iterator[str]:
    """Yield what there is to say about a policy, a sentence a line.

    Args:
        found: the policy, or why there is none.
        kind: of the units.
    """
    units = _KINDS[kind]
    if isinstance(found, NoPolicy):
        yield f"No policy: {found.reason}."
        return
    if isinstance(found, RewardPolicy) and found.trust_none > max(found.mean_reward, found.trust_all):
        yield (
            f"Trust nothing: with these rewards that earns {number(found.trust_none)} a unit, more than this policy"
            f" ({number(found.mean_reward)}) and than trusting all ({number(found.trust_all)})."
        )
    yield f"A unit is read by {_scale(found)}; {_reading(found)} chose that."
    if is_fitted_anew(found.scale.function):
        yield "It is fitted anew in each run: this policy is for units of this run, and not for those of later ones."
    if isinstance(found, RewardPolicy):
        yield f"Trust above {confidence_text(found.threshold)}, which is where these rewards balance."
        yield (
            f"On the {found.testing} other answers it trusts {percent(found.coverage)} of the {units} and earns"
            f" {number(found.mean_reward)} a unit; trusting all earns {number(found.trust_all)}, none"
            f" {number(found.trust_none)}. Nothing is promised."
        )
        return
    shares = len(found.bands)
    for place, band in enumerate(found.bands):
        yield from _band_lines(found, band, units, "trusted" if place == 0 else "trusted and checked", shares)
    if shares > 1:
        yield f"Of the checked {units} alone nothing is promised."
    yield "Nothing is promised of single tasks, of another mixture of tasks, or of another model."


def policy_data(found: Found) -> dict[str, Any]:
    """Return a policy as JSON; every number is of the answers that tested it."""
    names = (
        "function", "map", "thresholds", "bands", "holds", "coverage", "error", "utility", "n_fit", "n_shown",
    )  # fmt: skip
    if isinstance(found, NoPolicy):
        return dict.fromkeys(names) | {"bands": [], "holds": False, "reasons": {"holds": found.reason}}
    saved = SavedPolicy.of(found)
    data: dict[str, Any] = {
        "function": found.scale.function,
        "map": found.scale.map,
        "thresholds": [_threshold(value) for value in saved.thresholds],
    }
    if isinstance(found, RewardPolicy):
        reasons = {"holds": "rewards promise nothing", "error": "rewards promise nothing"}
        return data | {
            "bands": [],
            "holds": None,
            "coverage": found.coverage,
            "error": None,
            "utility": found.mean_reward,
            "utility_trust_all": found.trust_all,
            "utility_trust_none": found.trust_none,
            "n_fit": found.choosing,
            "n_shown": found.testing,
            "reasons": reasons,
        }
    first = found.bands[0]
    return data | {
        "bands": [_band_data(band, name) for band, name in zip(found.bands, (TRUST, CHECK), strict=False)],
        "holds": True,
        "coverage": first.coverage,
        "error": first.pooled_error,
        "utility": None,
        "n_fit": found.choosing,
        "n_shown": found.testing,
        "reasons": {"utility": "no rewards were given"},
    }


def _band_lines(found: Policy, band: Band, units: str, name: str, shares: int) -> Iterator[str]:
    promise = band.promise
    sure = percent(1.0 - promise.delta * shares)
    what = f"at most {percent(promise.alpha)}"
    if promise.exact:
        yield f"{sure} sure: in the mean over answers, {what} of an answer's {name} {units} are wrong."
    else:
        yield f"About {sure} sure: of all {name} {units} {what} are wrong, for answers drawn like these."
    above = _side(found, band.threshold)
    seen = f"{band.wrong} of {band.trusted} were wrong ({percent(band.pooled_error)})"
    bound = "" if band.bound is None else f", at most {percent(band.bound)} with that certainty"
    yield (
        f"  {name.capitalize()}: {above}, {percent(band.coverage)} of the {units}; in {band.answers} answers that"
        f" tested it {seen}{bound}."
    )


def _band_data(band: Band, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "includes": [TRUST] if name == TRUST else [TRUST, CHECK],
        "else": WITHHOLD,
        "threshold": _threshold(band.threshold),
        "risk": band.promise.alpha,
        "delta": band.promise.delta,
        "exact": band.promise.exact,
        "coverage": band.coverage,
        "trusted": band.trusted,
        "wrong": band.wrong,
        "error": band.pooled_error,
        "bound": band.bound,
        "answers": band.answers,
    }


def _scale(found: Policy | RewardPolicy) -> str:
    scale = found.scale
    name = visible(scale.function)
    if scale.map != RAW:
        return f"{name} with the map {scale.map}"
    return name


def _side(found: Policy, threshold: float) -> str:
    """Say which units lie on the sure side of a threshold, in the function's own numbers."""
    if threshold == float("-inf"):
        return "all"
    scale = found.scale
    if scale.map == RAW and not scale.rising:
        return f"those below {confidence_text(-threshold)}"
    return f"those above {confidence_text(threshold)}"


def _reading(found: Policy | RewardPolicy) -> str:
    return f"{found.choosing} answers, a third of each task,"


def _threshold(value: float) -> float | str:
    return "-Infinity" if value == float("-inf") else value
