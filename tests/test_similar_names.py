"""One hint for every name that nobody knows, and the errors of the pure packages that get it."""

from __future__ import annotations

import pytest

from salt_tui.similar_names import did_you_mean, message_of
from scoring.calibrators import calibrator
from tasks.registry import get_task

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("mazes", ("code", "maze"), "; did you mean maze?"),
        ("Z-Sigmoid", ("z_sigmoid", "minmax"), "; did you mean z_sigmoid?"),
        ("SMOLM2", ("SmolLM2", "nano"), "; did you mean SmolLM2?"),
        ("qqqq", ("code", "maze"), ""),
        ("", ("code", "maze"), ""),
        ("maze", (), ""),
        ("evil", ("ev\x1bil",), r"; did you mean ev\x1bil?"),
    ],
)
def test_the_nearest_name_is_named_and_no_other(name: str, known: tuple[str, ...], hint: str) -> None:
    assert did_you_mean(name, known) == hint


def test_errors_of_tasks_and_scoring_get_the_hint() -> None:
    with pytest.raises(ValueError, match="unknown task") as unknown_task:
        get_task("kronecker")
    assert message_of(unknown_task.value).endswith("words_collection; did you mean kronecker_product?")
    with pytest.raises(ValueError, match="no calibrator") as unknown_map:
        calibrator("Z-Sigmoid")
    assert message_of(unknown_map.value).endswith("; did you mean z_sigmoid?")
    assert message_of(ValueError("nothing to say")) == "nothing to say"
