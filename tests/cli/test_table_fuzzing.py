"""Tables of any numbers, measured and calibrated: a result in JSON, or one line, and never a warning of numpy."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.cli import run_command_line

pytestmark = pytest.mark.quick

NUMBERS = st.one_of(
    st.sampled_from(["0", "1", "0.5", "-0.0", "1e-320", "1e-17", "1e308", "-1e308", "1e150", "1e400", "", "x", "1_0"]),
    st.floats(0, 1, allow_subnormal=True).map(repr),
    st.floats(allow_nan=False).map(repr),
)
CELLS = {
    "confidence": NUMBERS,
    "correct": st.sampled_from(["0", "1", "1", "true"]),
    "group": st.sampled_from(["a", "b", "c"]),
    "weight": st.one_of(st.sampled_from(["1", "2", "1e-100", "1e100", "0"]), NUMBERS),
}
TABLES = st.lists(st.tuples(*CELLS.values()), max_size=8).map(
    lambda rows: "\n".join([",".join(CELLS), *map(",".join, rows)]) + "\n"
)
USUAL = st.lists(
    st.tuples(st.floats(0, 1).map(repr), CELLS["correct"], CELLS["group"], st.floats(0.1, 9).map(repr)), max_size=12
).map(lambda rows: "\n".join([",".join(CELLS), *map(",".join, rows)]) + "\n")
OPTIONS = (
    ["metrics", "{file}", "--json"],
    ["metrics", "{file}", "--json", "--not-probability", "--draws", "5"],
    ["metrics", "{file}", "--json", "--lower-is-confident", "--draws", "5", "--bins", "3"],
    ["metrics", "{file}", "--json", "--weight-column", "weight", "--rewards", "1,-3,0,0"],
    ["metrics", "{file}", "--curve", "risk-coverage", "--not-probability"],
    *(
        ["calibrate", method, "--fit", "{file}", "--apply", "{file}"]
        for method in ("platt", "isotonic", "beta", "temperature", "z_sigmoid", "minmax", "binned:3", "histogram:3")
    ),
    ["calibrate", "platt", "--fit", "{file}", "--apply", "{file}", "--lower-is-confident"],
)


@given(st.one_of(TABLES, USUAL), st.sampled_from(OPTIONS))
def test_a_table_is_measured_or_refused(
    tmp_path_factory: pytest.TempPathFactory, table: str, options: list[str]
) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzzed.csv"
    file.write_text(table, encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command_line([word.format(file=file) for word in options])
    said = f"{options} {code} {err.getvalue()}"
    assert "internal error" not in err.getvalue(), said
    assert code in (0, 2), said
    if code:
        assert (out.getvalue(), err.getvalue().count("\n")) == ("", 1), said
        assert str(file) in err.getvalue(), said
        return
    assert "nan" not in out.getvalue().lower(), said
    if "--json" in options:
        json.loads(out.getvalue(), parse_constant=lambda name: pytest.fail(f"{name}: {said}"))
    elif options[0] == "calibrate":
        values = [json.loads(line) for line in out.getvalue().splitlines()]
        assert len(values) == table.count("\n") - 1, said
        assert all(value is None or 0.0 <= value <= 1.0 for value in values), said
