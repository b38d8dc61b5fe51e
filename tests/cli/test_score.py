"""`score` on the release's own answers and the hand-made ones: the labels of `golden.json` through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line

pytestmark = pytest.mark.quick

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text(encoding="utf-8"))
UNITS = sorted({(case["unit"], case["aligned"]) for case in GOLDEN["answers"]["cases"]})


def scored(
    capsys: pytest.CaptureFixture[str], file: Path, rows: list[dict[str, Any]], *more: str
) -> list[dict[str, Any]]:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert run_command_line(["score", str(file), "--json", *more]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found: list[dict[str, Any]] = json.loads(captured.out)["rows"]
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize(("unit", "aligned"), UNITS)
def test_the_release_labels_its_answers_so(
    unit: str, aligned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [case for case in GOLDEN["answers"]["cases"] if (case["unit"], case["aligned"]) == (unit, aligned)]
    rows = [
        {name: case[name] for name in ("task", "response", "reference", "delimiter") if name in case} for case in cases
    ]
    more = ("--unit", unit, *(["--aligned"] if aligned else []))
    if not aligned:  # our own extraction and labels agree; our own alignment has other scores
        for case, found in zip(cases, scored(capsys, tmp_path / "a.jsonl", rows, *more), strict=True):
            assert found["statuses"] == case["statuses"], case["case"]
    for case, found in zip(cases, scored(capsys, tmp_path / "a.jsonl", rows, *more, "--compat"), strict=True):
        assert found["statuses"] == case["statuses"], case["case"]
        for name in ("precision", "recall"):
            assert (found[name] or 0.0) == pytest.approx(case[name] or 0.0, abs=1e-9)
        assert (found["redundant"], found["missing"]) == (case["redundant"], case["missing"])


def test_answers_by_hand_in_both_modes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = GOLDEN["answers_by_hand"]
    rows = [
        {"task": block["task"], "response": case["response"], "reference": block["reference"]}
        for case in block["cases"]
    ]
    for found, case in zip(scored(capsys, tmp_path / "a.jsonl", rows), block["cases"], strict=True):
        assert found["statuses"] == case["statuses"], case["response"]
    for found, case in zip(scored(capsys, tmp_path / "a.jsonl", rows, "--compat"), block["cases"], strict=True):
        assert found["statuses"] == case.get("compat", found["statuses"]), case["response"]


def test_alignment_of_the_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = GOLDEN["alignment_paper"]
    row = {
        "task": "kronecker_product",
        "response": f"********\n{' '.join(block['response'])}\n********",
        "reference": " ".join(block["reference"]),
    }
    for name, more in (("strict", ()), ("aligned", ("--aligned",))):
        (found,) = scored(capsys, tmp_path / "a.jsonl", [row], *more)
        assert {rate: found[rate] for rate in ("precision", "recall")} == block[name]


def test_an_answer_with_nothing_in_it_has_no_precision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"task": "dna_translation", "response": "I do not know.", "reference": "TAA GGG"}
    (found,) = scored(capsys, tmp_path / "a.jsonl", [row])
    assert found["statuses"] == ["missing", "missing"]
    assert (found["answer_status"], found["precision"], found["recall"]) == ("no_answer", None, 0.0)
    assert found["reasons"] == {
        "precision": "nothing generated",
        "answer_status": "no fence: the answer is wanted between two lines of ********",
    }


@pytest.mark.parametrize(
    ("response", "more", "why"),
    [
        ("U D", (), "no fence: the answer is wanted between two lines of ********"),
        ("<think>\n****\nU D\n****\n</think>", (), "nothing outside the thinking"),
        ("********\n\n********", (), "no text after a fence"),
        ("********\nthe answer is U D\n********", ("--compat",), "no fenced text without a word that voids it"),
        ("", ("--compat",), "nothing written"),
    ],
)
def test_a_row_without_an_answer_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], response: str, more: tuple[str, ...], why: str
) -> None:
    row = {"task": "maze", "response": response, "reference": "U D"}
    (found,) = scored(capsys, tmp_path / "a.jsonl", [row], *more)
    assert found["reasons"]["answer_status"] == why
    assert run_command_line(["score", str(tmp_path / "a.jsonl"), *more]) == 0
    assert f"no answer ({why})" in capsys.readouterr().out


@pytest.mark.parametrize("unit", ["atom", "line", "generation"])
@pytest.mark.parametrize(
    ("response", "reference"), [("1,2\n3,4", "1, 2\n3, 4"), ("1 ,  2\r\n 3,4,", "1,2\n3,4"), ("1 0,2", "1  0, 2")]
)
def test_spaces_around_a_delimiter_do_not_count_at_any_granularity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unit: str, response: str, reference: str
) -> None:
    fenced = f"********\n{response}\n********"
    row = {"task": "matrix_multiplication", "response": fenced, "reference": reference, "delimiter": ","}
    (found,) = scored(capsys, tmp_path / "a.jsonl", [row], "--unit", unit)
    assert set(found["statuses"]) == {"correct"}
    wrong = {**row, "response": fenced.replace("2", "7")}
    (found,) = scored(capsys, tmp_path / "a.jsonl", [wrong], "--unit", unit)
    assert "wrong" in found["statuses"]


@pytest.mark.parametrize("more", [(), ("--compat",)])
def test_an_empty_delimiter_is_the_task_s_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    row = {"task": "maze", "response": "********\nU D\n********", "reference": "U D", "delimiter": ""}
    (found,) = scored(capsys, tmp_path / "a.jsonl", [row], *more)
    assert found["statuses"] == ["correct", "correct"]


@pytest.mark.parametrize(
    ("response", "ours", "compat"),
    [
        ("TAC", "no_answer", "complete"),  # without a fence the release grades the whole reply
        ("****\nTAC\n****", "complete", "complete"),
        ("****\nTAC", "unclosed", "unclosed"),
        ("****\nTAC\n****\n****\nGGG", "unclosed", "complete"),  # there a pair beats a later unclosed fence
        ("****\nTAC\n****\n****\nthe end\n****", "complete", "complete"),
        ("****\nthe answer is TAC\n****", "complete", "no_answer"),  # a word of the release's list drops the region
        ("***", "no_answer", "no_answer"),
        ("", "no_answer", "no_answer"),
    ],
)
def test_the_status_is_that_of_the_answer_that_was_labelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], response: str, ours: str, compat: str
) -> None:
    row = {"task": "dna_translation", "response": response, "reference": "TAC"}
    for status, more in ((ours, ()), (compat, ("--compat",))):
        (found,) = scored(capsys, tmp_path / "a.jsonl", [row], *more)
        assert found["answer_status"] == status
        assert (status == "no_answer") == (found["precision"] is None)


def test_a_delimiter_separates_atoms_and_dk_abstains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "task": "words_collection",
        "response": "********\nred, DK, <DK>, blue\n********",
        "reference": "red, green, blue, blue",
        "delimiter": ",",
    }
    (found,) = scored(capsys, tmp_path / "a.jsonl", [row])
    assert found["statuses"] == ["correct", "abstained", "abstained", "correct"]
    assert (found["precision"], found["recall"]) == (0.5, 0.5)


def test_a_file_without_rows_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "empty.jsonl"
    for content in ("", "\n\n"):
        file.write_text(content)
        for more in ([], ["--json"]):
            assert run_command_line(["score", str(file), *more]) == 2
            captured = capsys.readouterr()
            assert captured.out == ""
            assert captured.err.splitlines() == [f"salt-tui: {file}: holds no rows"]


FENCED = f"{'*' * 8}\nACG 😀 TTA TTT\n{'*' * 8}"


def tokens_of(*texts: str) -> list[dict[str, Any]]:
    return [
        {"token": text, "logprob": -0.1 * (number + 1), "bytes": None, "top_logprobs": []}
        for number, text in enumerate(texts)
    ]


def test_tokens_give_confidences_and_lost_halves_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = tokens_of(f"{'*' * 8}\n", "AC", "G ", "", "", " TT", "A", f" TTT\n{'*' * 8}", "<|im_end|>")
    row = {"task": "dna_translation", "response": FENCED, "reference": "ACG TTA TTT TTT GGG"}
    (found,) = scored(capsys, tmp_path / "a.jsonl", [{**row, "logprobs": {"content": said}}])
    assert found["statuses"] == ["correct", "wrong", "wrong", "correct", "missing"]
    lost = "bytes that no reported token accounts for"
    assert found["confidence_reasons"] == [None, lost, None, None, "missing"]
    assert [None if entry is None else entry["logprob_sum"] for entry in found["confidences"]] == [
        pytest.approx(-0.5), None, pytest.approx(-1.3), pytest.approx(-0.8), None
    ]  # fmt: skip
    assert found["confidences"][0]["mean_entropy"] is None
    assert found["reasons"]["mean_entropy"] == "top-k only"
    # The same in another order of the statuses, and for the whole answer.
    aligned = scored(capsys, tmp_path / "a.jsonl", [{**row, "logprobs": said}], "--aligned")[0]
    given = [entry for entry in found["confidences"] if entry is not None]
    assert [entry for entry in aligned["confidences"] if entry is not None] == given
    assert [entry is None for entry in aligned["confidences"]] == [
        status == "missing" or reason is not None
        for status, reason in zip(aligned["statuses"], aligned["confidence_reasons"], strict=True)
    ]
    whole = scored(capsys, tmp_path / "a.jsonl", [{**row, "logprobs": said}], "--unit", "generation")[0]
    assert whole["confidence_reasons"] == [lost]
    for more, changed in ((["--compat"], row), ([], {**row, "delimiter": ","})):
        (without,) = scored(capsys, tmp_path / "a.jsonl", [{**changed, "logprobs": said}], *more)
        assert "confidences" not in without
        assert "byte ranges" in without["reasons"]["confidences"]


def test_ranges_of_a_table_of_ones_own_are_tokens_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = FENCED.encode().index(b"ACG")
    tokens = [{"byte_start": start, "byte_end": start + 4, "log_probability": -0.25, "entropy": 0.5}]
    row = {"task": "dna_translation", "response": FENCED, "reference": "ACG", "tokens": tokens}
    (found,) = scored(capsys, tmp_path / "a.jsonl", [row])
    assert found["confidences"][0]["mean_entropy"] == 0.5
    assert found["confidences"][0]["log_perplexity"] == 0.25
    assert found["confidences"][1:] == [None] * 3


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"logprobs": tokens_of("other")}, "1: 'logprobs': a token says 'other' where the text says"),
        ({"logprobs": 3}, "1: 'logprobs': logprobs is no object"),
        ({"tokens": [{"byte_start": 0, "byte_end": 99, "log_probability": 0}]}, "token 0 has bytes 0 to 99"),
        ({"tokens": [{"byte_start": 0, "byte_end": 4, "log_probability": -(10**400)}]}, "a number, at most 0"),
        ({"tokens": [{"byte_start": 0, "byte_end": 4, "log_probability": -1e308}]}, "not below -1e100"),
        ({"tokens": [{"byte_start": 0, "byte_end": 4, "entropy": 10**400}]}, "a number, at least 0"),
        ({"tokens": [{}], "logprobs": [{}]}, "say the same; leave one out"),
    ],
)  # fmt: skip
def test_tokens_of_another_text_are_refused(
    more: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"task": "dna_translation", "response": FENCED, "reference": "ACG", **more}))
    assert run_command_line(["score", str(file), "--json"]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert said in captured.err
