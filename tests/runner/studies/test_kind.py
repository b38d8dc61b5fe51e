"""What every kind of study promises: its options, what it needs of an engine, and how much context its jobs take."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from salt_tui.engine.model_info import Capabilities
from salt_tui.engine.requests import Aside, Choice, Forced, Free, Generate
from salt_tui.runner.jobs import Job
from salt_tui.runner.studies.preparation import tokens_of
from salt_tui.runner.studies.registry import STUDY_KINDS, study_kind
from salt_tui.usage_error import UsageError

pytestmark = pytest.mark.quick

EVERYTHING = Capabilities("vocabulary", 6, 64, vocabulary=True, forced=True, cut=True)


@pytest.mark.parametrize("kind", STUDY_KINDS.values(), ids=list(STUDY_KINDS))
def test_the_defaults_of_a_kind_are_allowed_and_its_flags_are_its_own(kind) -> None:
    # What has no sensible default has to be given.
    given = {"model": "nano"} if kind.computed_by == "another model" else {}
    assert kind.complete(given) == {option.name: option.default for option in kind.options} | given
    flags = [flag for option in kind.options for flag in option.flags]
    assert len(set(flags)) == len(flags)
    assert not set(flags) & {"-c", "-t", "--db", "--display", "--json", "-h", "--help"}
    assert kind.summary.endswith(".")
    kind.refuse_engine(EVERYTHING)


def test_an_engine_that_cannot_do_what_a_kind_needs_is_refused_in_one_line() -> None:
    asking = replace(study_kind("samples"), needs=("statistics", "activations", "forced"))
    asking.refuse_engine(EVERYTHING)
    remote = Capabilities("top_k", 0, 0, vocabulary=False, forced=False, cut=False)
    with pytest.raises(UsageError) as refusal:
        asking.refuse_engine(remote)
    assert str(refusal.value) == (
        "a study of kind samples needs an engine with log-probabilities over the whole vocabulary and activations and"
        " forced tokens; this has none"
    )
    with pytest.raises(UsageError, match="needs an engine with activations; this has none"):
        asking.refuse_engine(replace(EVERYTHING, activation_layers=0))


def test_going_back_is_asked_for_only_where_a_job_does_it() -> None:
    recurrent, asking = replace(EVERYTHING, cut=False), study_kind("verbalised")
    asking.refuse_engine(recurrent)
    labels, several, aside = Choice(((3,), (4,))), Choice(((3,), (4, 5))), Aside((6,))
    asking.refuse_cuts(recurrent, [asked(labels), asked(labels)])
    for segment in (several, aside):
        asking.refuse_cuts(EVERYTHING, [asked(segment)])
        with pytest.raises(UsageError, match="a study of kind verbalised has to go back to earlier tokens"):
            asking.refuse_cuts(recurrent, [asked(labels), asked(segment)])


def asked(segment: Choice | Aside) -> Job:
    """Return a job whose request has a segment among others."""
    request = Generate(1, (9,) * 4, 0, (Forced((1,)), segment, Free(2)))
    return cast(Job, SimpleNamespace(request=lambda key: request))


def test_a_kind_that_is_not_there_is_named_beside_those_that_are() -> None:
    with pytest.raises(UsageError, match="unknown kind of study 'sampels': one of samples"):
        study_kind("sampels")


def test_the_context_of_a_job_is_its_prompt_and_the_most_that_its_segments_take() -> None:
    segments = (Forced((1, 2)), Choice(((3,), (4, 5))), Free(7))
    assert tokens_of(Generate(1, (9,) * 10, 0, segments)) == 10 + 2 + 2 + 7
