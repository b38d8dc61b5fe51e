"""Tables and answers of any size, plain or compressed, in memory that does not follow their texts."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from salt_tui.inputs import score_tables, text_lines
from salt_tui.inputs.score_tables import read_scores
from salt_tui.usage_error import UsageError

TABLE = "confidence,correct,group\n" + "".join(f"0.{row % 97:02},{row % 2},a{row // 10}\n" for row in range(500))
ANSWER = {"task": "words_collection", "response": "```\na b\n```", "reference": "a b"}


def both(tmp_path: Path, text: str) -> tuple[Path, Path]:
    """Write a text plain and compressed; the name says nothing about which."""
    plain, compressed = tmp_path / "plain", tmp_path / "compressed"
    plain.write_text(text, encoding="utf-8")
    compressed.write_bytes(gzip.compress(text.encode()))
    return plain, compressed


@pytest.mark.parametrize(
    "command",
    [
        ["metrics", "{file}", "--json"],
        ["calibrate", "platt", "--fit", "{file}", "--apply", "{file}"],
        ["metrics", "{file}", "--confidence-column", "correct", "--json"],
    ],
)
def test_a_compressed_table_gives_what_the_plain_one_gives(command, tmp_path, capsys):
    printed = []
    for file in both(tmp_path, TABLE):
        assert run_command_line([word.format(file=file) for word in command]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


def test_compressed_answers_give_what_plain_ones_give(tmp_path, capsys):
    printed = []
    for file in both(tmp_path, f"{json.dumps(ANSWER)}\n" * 5):
        for options in ([], ["--json"]):
            assert run_command_line(["score", str(file), *options]) == 0
            printed.append(capsys.readouterr().out)
    assert printed[:2] == printed[2:]
    assert len(json.loads(printed[1])["rows"]) == 5


def test_an_error_at_the_end_leaves_nothing_printed(tmp_path, capsys):
    for file in both(tmp_path, f"{json.dumps(ANSWER)}\n" * 5 + "{}\n"):
        assert run_command_line(["score", str(file)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert f"{file}:6" in captured.err


@pytest.mark.parametrize("damage", ["cut", "changed", "not UTF-8"])
def test_damaged_files_are_one_line(damage, tmp_path, capsys):
    file = tmp_path / "x.csv.gz"
    data = gzip.compress(TABLE.encode())
    if damage == "cut":
        data = data[:-20]
    elif damage == "changed":
        data = data[:60] + bytes(20) + data[80:]
    else:
        data = gzip.compress(TABLE.encode() + b"0.5,1,\xff\n")
    file.write_bytes(data)
    assert run_command_line(["metrics", str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert str(file) in captured.err
    assert ("gzip" in captured.err) == (damage != "not UTF-8")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("packed", [False, True])
def test_the_line_that_is_not_utf_8_is_named(end, packed, tmp_path, capsys):
    rows = TABLE.replace("\n", end).encode().split(end.encode())
    rows[400] = b"0.5,1,\xff"
    data = end.encode().join(rows)
    file = tmp_path / "x.csv"
    file.write_bytes(gzip.compress(data) if packed else data)
    assert run_command_line(["metrics", str(file)]) == 2
    assert f"{file}: not UTF-8 text (invalid start byte, in line 401)" in capsys.readouterr().err
    file.write_bytes(b"".join(json.dumps(ANSWER).encode() + b"\n" for _ in range(3000)) + b'{"task": "\xc3\x28"}\n')
    assert run_command_line(["score", str(file)]) == 2
    assert "in line 3001)" in capsys.readouterr().err


def test_compressed_problems_are_read(tmp_path, capsys):
    question = {"id": 1, "kind": "words", "prompt": "Say a b.", "reference": ["a", "b"]}
    printed = []
    for file in both(tmp_path, json.dumps(question)):
        assert run_command_line(["tasks", "check", str(file), "--json"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    for text in ('{"input": "ATT CCC"}\n', "ATT CCC"):
        for file in both(tmp_path, text):
            assert run_command_line(["tasks", "solve", "dna_translation", str(file)]) == 0
            assert "TAA GGG" in capsys.readouterr().out
    damaged = tmp_path / "x.jsonl.gz"
    damaged.write_bytes(gzip.compress(json.dumps(question).encode())[:-10])
    for command in (["tasks", "check"], ["tasks", "solve", "maze"]):
        assert run_command_line([*command, str(damaged)]) == 2
        assert "damaged gzip file" in capsys.readouterr().err


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 1000)
    file = tmp_path / "x.csv.gz"
    file.write_bytes(gzip.compress(TABLE.encode() + b"0" * 10**7))
    with pytest.raises(UsageError, match=r"x\.csv\.gz:502: a line longer than 1,000 characters"):
        read_scores(file)


@pytest.mark.parametrize(
    "command", [["metrics", "{file}"], ["calibrate", "--map", "{map}", "--apply", "{file}"]], ids=["metrics", "apply"]
)
def test_more_rows_than_memory_holds_are_refused(command, tmp_path, monkeypatch, capsys):
    (plain, _), saved = both(tmp_path, TABLE), tmp_path / "map.json"
    assert run_command_line(["calibrate", "platt", "--fit", str(plain), "--save", str(saved)]) == 0
    monkeypatch.setattr(score_tables, "MOST_ROWS", 400)
    assert run_command_line([word.format(file=plain, map=saved) for word in command]) == 2
    assert "plain:402: more than 400 rows; nothing after this one was read" in capsys.readouterr().err


GROWTH = """
import resource, sys
from salt_tui.cli import run_command_line
assert run_command_line(["metrics", sys.argv[1], "--json"]) == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss differs")
@pytest.mark.parametrize("rows", [100_000, pytest.param(5_000_000, marks=pytest.mark.soak)])
def test_a_large_table_takes_a_few_numbers_a_row(rows, tmp_path):
    peaks = []
    for count in (1_000, rows):
        file = tmp_path / f"{count}.csv.gz"
        with gzip.open(file, "wt", compresslevel=1) as table:
            table.write("confidence,correct,group,note\n")
            for row in range(count):
                table.write(
                    f"0.{row * 7919 % 999983:06},{row % 3 % 2},a{row // 1000},{'long text that nobody reads' * 4}\n"
                )
        done = subprocess.run([sys.executable, "-c", GROWTH, str(file)], capture_output=True, text=True, check=True)
        peaks.append(int(done.stderr.split()[-1]) * 1024)
    assert (peaks[1] - peaks[0]) / rows < 400
