"""The kinds of study that there are."""

from __future__ import annotations

from salt_tui.runner.studies.activations import ACTIVATIONS
from salt_tui.runner.studies.combine import COMBINE
from salt_tui.runner.studies.interventions import INTERVENTIONS
from salt_tui.runner.studies.kind import StudyKind
from salt_tui.runner.studies.manual import MANUAL
from salt_tui.runner.studies.samples import SAMPLES
from salt_tui.runner.studies.second_model import SECOND_MODEL
from salt_tui.runner.studies.verbalised import VERBALISED
from salt_tui.usage_error import UsageError

STUDY_KINDS: dict[str, StudyKind] = {
    kind.name: kind for kind in (SAMPLES, VERBALISED, INTERVENTIONS, ACTIVATIONS, MANUAL, SECOND_MODEL, COMBINE)
}
"""In the order in which they are listed."""


def study_kind(name: str) -> StudyKind:
    """Return a kind by its name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in STUDY_KINDS:
        raise UsageError(f"unknown kind of study {name!r}: one of {', '.join(STUDY_KINDS)}")
    return STUDY_KINDS[name]
