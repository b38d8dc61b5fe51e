"""Names and texts of somebody else's file in every output: terminal, CSV, JSON, Markdown, LaTeX, HTML, SVG, databases.

Which formats and figures there are, the registries say.
"""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shutil
import sqlite3
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from salt_tui.cli import run_command_line
from salt_tui.exports.formats import EXPORT_FORMATS
from tests.cli.every_command import READING, command_lines
from tests.stored_runs import store_run

pytestmark = pytest.mark.quick

HOSTILE = (
    "\x1b[2J\x1b]0;x\x07\x9b31m\u202e\u2066\u200b\r\n\t<script>alert(1)</script><img src=x onerror=alert(2)>"
    "|a|b [c](javascript:alert(3)) ![d](http://e) `f` $\\input{/etc/passwd}$ %g & h_i #j {k} ~ ^l \\<b> =1+2 '\" [/red]"
)
WITH_NUL = HOSTILE.replace("\t", "\x00")
BYTES = HOSTILE.encode() + b"\x00\xff\xfe\xed\xa0\x80\xf0\x9f"
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ud800-\udfff]")
"""Control characters but for line ends, marks of direction, and what has no width."""

ANSWER = "{answer}"


def test_the_hostile_text_is_hostile():
    assert {unicodedata.category(character) for character in HOSTILE} >= {"Cc", "Cf"}
    assert FORBIDDEN.search(HOSTILE)


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with two runs and a study whose every text is hostile."""
    database = tmp_path_factory.mktemp("spoilt") / "x.db"
    for _ in range(2):
        store_run(database, tasks=("maze", "code"), answers=3, atoms=8)
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(
            "INSERT INTO study (run, number, kind, model, model_name, model_path, model_entry, plan, plan_hash,"
            " environment, environment_hash, statistics, warnings, state, created_at, finished_at)"
            " SELECT id, 1, 'samples', model, model_name, model_path, model_entry, ?, plan_hash, environment,"
            " environment_hash, statistics, warnings, 'finished', created_at, finished_at FROM run WHERE id = 1",
            (json.dumps(STUDY_PLAN),),
        )
        connection.execute(
            'INSERT INTO signal (run, study, generation, kind, "index", name, value, reason) SELECT 1, 1, generation,'
            " kind, \"index\", ?, 0.5, ? FROM unit WHERE status <> 'missing' AND kind <> 'generation'"
            " AND generation IN (SELECT generation.id FROM generation JOIN problem ON problem.id = problem"
            " WHERE run = 1)",
            (f"s{HOSTILE}", HOSTILE),
        )
        connection.execute(
            "UPDATE run SET model_name = ?, model_path = ?, message = ?, warnings = json_array(?), note = ?,"
            " template = ?, environment = json_set(environment, '$.devices', json_array(?), '$.key_type', ?)",
            (HOSTILE,) * 8,
        )
        connection.execute("UPDATE study SET model_name = ?, message = ?, warnings = json_array(?)", (HOSTILE,) * 3)
        connection.execute(
            "UPDATE model SET name = ?, path = ?, description = ?, architecture = ?, quantisation = ?", (HOSTILE,) * 5
        )
        connection.execute(
            "UPDATE problem SET task = task || ?, text = ?, reference = ?", (WITH_NUL, WITH_NUL, WITH_NUL)
        )
        connection.execute("UPDATE problem SET difficulty = ?, method = ?, slices = json_object(?, ?)", (HOSTILE,) * 4)
        connection.execute(
            "UPDATE unit SET text = ? || text, reference = ? WHERE text IS NOT NULL", (WITH_NUL, HOSTILE)
        )
        connection.execute("UPDATE generation SET reply = ?, error = ?", (BYTES, HOSTILE))
        connection.execute("UPDATE vocabulary SET bytes = ?", (BYTES,))
        connection.execute("UPDATE token SET bytes = ?", (BYTES,))
    connection.close()
    return database


STUDY_PLAN = {
    "kind": "samples",
    "run_plan_hash": HOSTILE,
    "options": {"samples": 2, "temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "sampler_seed": 0,
                "aligned": False},
    "answers": {},
    "answers_hash": HOSTILE,
    "jobs": 0,
    "context": 512,
    "width": 4,
}  # fmt: skip


class Page(HTMLParser):
    """Collects what a browser would run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.active: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at a tag and its attributes."""
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.active.append(f"{tag} {name}={value}")
        if tag in {"script", "iframe", "object", "img", "link", "base", "form"} and "alert" in str(attrs):
            self.active.append(tag)

    def handle_data(self, data: str) -> None:
        """Look at the text inside scripts."""
        if self.cdata_elem == "script" and "alert(" in data:
            self.active.append(f"script {data[:60]}")


def no_control(text: str, what: str) -> None:
    found = FORBIDDEN.search(text)
    assert found is None, f"{what}: {found.group()!r} in {text[max(0, found.start() - 60) : found.end() + 20]!r}"


def check_markdown(text: str) -> None:
    no_control(text, "Markdown")
    for line in text.splitlines():
        plain = re.sub(r"\\[^\w\s]", "", line)
        assert not re.search(r"<[A-Za-z/!?]|\]\(|`", plain), line
        if line.startswith("|"):
            assert plain.endswith("|"), line
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    for table in tables:
        assert len({re.sub(r"\\[^\w\s]", "", row).count("|") for row in table.splitlines()}) == 1, table[:400]


def check_latex(text: str) -> None:
    no_control(text, "LaTeX")
    for line in text.splitlines():
        if not line.startswith("%"):
            assert r"\input" not in line, line
            assert not re.search(r"(?<!\\)[%#]", line), line
            assert not re.search(r"(?<!\\)\$(?!\\|'\$|-\$|\.|\s|&|$)[^$]*passwd", line), line


def check_html(text: str) -> None:
    no_control(text, "HTML")
    assert Page(text).active == []


def check_svg(text: str) -> None:
    tree = ElementTree.fromstring(text)
    assert not [node.tag for node in tree.iter() if node.tag.rpartition("}")[2] == "script"]
    no_control(text, "SVG")


def check_json(text: str) -> None:
    json.loads(text, parse_constant=pytest.fail)
    assert not re.search("[\x00-\x09\x0b-\x1f]", text)


def check_csv(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert len({len(row) for row in rows if row}) == 1


CHECKS = {
    "md": check_markdown,
    "latex": check_latex,
    "html": check_html,
    "json": check_json,
    ".svg": check_svg,
    ".csv": check_csv,
    "csv": check_csv,
}

DATA = ("json", "csv")
"""What programs read is written as it is; a terminal is shown it by `OutputStream`, see `test_data_on_a_terminal`."""

QUICK_PLOTS = ("reliability", "compare")


def lines() -> Iterator[Any]:
    for line in command_lines(READING):
        slow = "--full" in line or "--analyses" in line or line[0] == "probe"
        slow |= line[0] == "plot" and line[1] not in QUICK_PLOTS
        yield pytest.param(line, marks=pytest.mark.soak) if slow else line


@pytest.mark.parametrize("line", list(lines()), ids=" ".join)
def test_hostile_texts_in_every_output(line, spoilt, tmp_path, capsys):
    database = tmp_path / "y.db"
    shutil.copy(spoilt, database)
    words = [word.format(folder=tmp_path, answer=f"maze{WITH_NUL}:1") for word in line]
    code = run_command_line([*words, "--db", str(database)])
    captured = capsys.readouterr()
    said = captured.err[:500]
    assert "internal error" not in said
    assert "Traceback" not in said
    no_control(captured.err, "stderr")
    assert code in (0, 1, 2), said
    format_ = line[line.index("--format") + 1] if "--format" in line else "json" if "--json" in line else "text"
    if format_ not in DATA:
        no_control(captured.out, "stdout")
    if code == 0 and captured.out and format_ in CHECKS:
        CHECKS[format_](captured.out)
    for path in tmp_path.glob("out.*"):
        if path.suffix in CHECKS:
            CHECKS[path.suffix](path.read_bytes().decode())
        elif path.suffix == ".jsonl":
            for row in path.read_text(encoding="utf-8").split("\n"):
                if row:
                    check_json(row)
    if line[0] in ("report", "runs", "compare") and "1.1" not in line:
        assert code == 0, said


NAME = b"\x1b[2J\xff\xed\xa0\x80<script>alert(1)</script>$x$[b]" + "\u202egnp\u2066.".encode()


@pytest.mark.parametrize("suffix", [*EXPORT_FORMATS, ".svg"])
def test_hostile_names_of_files(suffix, tmp_path, capsys):
    name = NAME.replace(b"/", b"|")
    database = tmp_path / os.fsdecode(name + b"db")
    store_run(database, tasks=("maze",), answers=1, atoms=4)
    target = os.fsdecode(name + suffix[1:].encode())
    first = ["plot", "position", "1"] if suffix == ".svg" else ["export", "1"]
    for words in (
        [*first, "-o", str(tmp_path / f"1{target}")],
        [*first, "-o", str(tmp_path / "nowhere" / target)],
        [*first, "-o", str(tmp_path / f"{target}.what")],
        ["export", "9", "-o", str(tmp_path / target)],
        ["runs"],
        ["db", "delete", "9", "--yes"],
    ):
        code = run_command_line([*words, "--db", str(database)])
        captured = capsys.readouterr()
        assert "internal error" not in captured.err, captured.err
        assert "Traceback" not in captured.err
        no_control(captured.err + captured.out, " ".join(words)[:40])
        assert code in (0, 1, 2)
    assert (tmp_path / f"1{target}").exists()


@pytest.mark.process
@pytest.mark.parametrize(
    "line",
    [
        ["report", "1", "--draws", "0", "--format", "json"],
        ["export", "1", "-o", "-", "--format", "jsonl"],
    ],
    ids=" ".join,
)
def test_data_on_a_terminal(line, spoilt):
    outer, inner = pty.openpty()
    # Line ends as they are written: a terminal makes two signs of them.
    words = ["sh", "-c", 'stty -opost; exec "$@"', "-", sys.executable, "-m", "salt_tui", *line, "--db", str(spoilt)]
    process = subprocess.Popen(words, stdin=inner, stdout=inner, stderr=inner, close_fds=True)
    os.close(inner)
    shown = b""
    while True:
        try:
            data = os.read(outer, 1 << 16)
        except OSError:
            break
        shown += data
    os.close(outer)
    assert process.wait() == 0
    text = shown.decode()
    no_control(text.replace("\t", " "), "terminal")
    assert "\\u202e" in text
    for row in filter(None, text.split("\n")):
        json.loads(row)
