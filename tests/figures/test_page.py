"""The page of a run: well-formed, without a request, everything escaped, and it says what the report says."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from salt_tui.cli import run_command_line
from salt_tui.reports.html_answer import PageAnswer, PageToken, Piece
from salt_tui.reports.html_page import Page, Picture, Section, page_html
from salt_tui.reports.text_tables import TextTable
from tests.stored_runs import store_run

HOSTILE = "</script><img src=x onerror=alert(1)>&\"'`\x1b[31m\u202e{{ 7*7 }}"
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def page(database: Path) -> str:
    """The page of the first run, as the command prints it."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        words = ["report", "1", "--format", "html", "--draws", "20", "--answers", "4", "--db", str(database)]
        assert run_command_line(words) == 0
    return stream.getvalue()


def tree(page: str) -> ElementTree.Element:
    return ElementTree.fromstring(page.replace("<!doctype html>", "", 1))


def words(page: str) -> str:
    return " ".join(" ".join(tree(page).itertext()).split())


def test_a_page_is_well_formed_and_asks_for_nothing(page: str) -> None:
    ids = []
    for element in tree(page).iter():
        for name, value in element.attrib.items():
            if name.rpartition("}")[2] in ("href", "src", "action", "poster", "data"):
                assert value.startswith(("#", "data:"))
            assert not name.startswith("on")
            assert not re.search(r"url\((?!#)", value)
            if name == "id":
                ids.append(value)
        assert element.tag.rpartition("}")[2] not in ("iframe", "object", "embed", "base", "form")
    assert "@import" not in page
    assert len(ids) == len(set(ids))


def test_the_policy_allows_the_own_script_alone(page: str) -> None:
    policy = next(one for one in tree(page).iter("meta") if one.get("http-equiv") == "Content-Security-Policy")
    content = str(policy.get("content"))
    scripts = [str(one.text) for one in tree(page).iter("script")]
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in content
    assert content.startswith("default-src 'none'; ")
    assert "http" not in content


def test_a_page_says_what_the_report_says(page: str, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["report", "1", "--format", "json", "--draws", "20", "--db", str(database)]) == 0
    report = json.loads(capsys.readouterr().out)
    shown = words(page)
    for finding in report["findings"]:
        assert " ".join(finding["sentence"].split()) in shown
    assert "Which confidence function?" in shown
    assert "Study 1.1: interventions" in shown
    assert "maze: flipping may change the right answer" in shown
    assert "Study 1.2: activations" in shown
    assert "Study 1.3: second-model" in shown
    assert "Where would another model go elsewhere?" in shown
    assert page.count("<svg ") >= 8
    assert "4 of 36 finished answers" in shown
    assert "--answers N" in shown


def test_every_token_has_its_verdict_and_alternatives_without_a_script(page: str) -> None:
    replies = [one for one in tree(page).iter("div") if one.get("class") == "reply"]
    assert len(replies) == 4
    tokens = [one for one in replies[0] if one.get("class") == "t"]
    assert len(tokens) == 3
    for token in tokens:
        piece, box = list(token)
        assert re.fullmatch(r"[rw][0-4] (correct|wrong)|n abstained", str(piece.get("class")))
        said = " ".join("".join(box.itertext()).split())
        assert re.match(r"p \.607, entropy \.50, atom \d+ . \w+, .*A .607B .223", said)


def test_hostile_text_does_nothing_wherever_it_stands() -> None:
    table = TextTable(HOSTILE, (HOSTILE,), ((HOSTILE,),), notes=(HOSTILE,))
    picture = Picture(HOSTILE, (HOSTILE,), '<svg xmlns="http://www.w3.org/2000/svg"/>')
    section = Section(HOSTILE, (HOSTILE,), ((HOSTILE, HOSTILE),), (table,), (picture,), (HOSTILE,))
    safe = "</script><img src=x onerror=alert(1)>&\"'`\\x1b[31m\\u202e{{ 7*7 }}"
    token = PageToken((Piece(safe, "r1", "correct"),), HOSTILE, ((safe, ".5"),))
    answer = PageAnswer(safe, HOSTILE, safe, safe, (token,), (safe,))
    text = page_html(Page(HOSTILE, (section, section), (answer,), HOSTILE))
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "{{ 7*7 }}" in text
    assert [one.tag for one in tree(text).iter("script")] == ["script"]


def test_a_hostile_run_ends_in_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=(HOSTILE, "maze"), answers=2, atoms=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib.figure", None)
        assert run_command_line(["report", "--format", "html", "--draws", "0", "--db", str(database)]) == 0
    text = capsys.readouterr().out
    assert "<img" not in text
    assert "\x1b" not in text
    assert "No figures: figures need matplotlib: pip install 'saltbench-tui[plots]'." in words(text)
    assert "4 of 4 finished answers" in words(text)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--format", "html", "--answers", "201"], "--answers 201: a number from 0 to 200"),
        (["--format", "md", "--answers", "3"], "--answers goes with --format html"),
    ],
)
def test_bad_numbers_of_answers(
    options: list[str], says: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["report", "1", "--draws", "0", *options, "--db", str(database)]) == 2
    assert says in capsys.readouterr().err


def test_a_comparison_is_a_page_too(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["compare", "1", "2", "--format", "html", "--db", str(database)]) == 0
    text = capsys.readouterr().out
    assert "36 problems answered by both" in words(text)
    assert text.count("<svg ") == 1


@pytest.mark.process
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_shows_it_without_a_request_or_a_complaint(page: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    log = tmp_path / "net.json"
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    done = subprocess.run(
        [
            str(CHROMIUM), *flags.split(), "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={log}", "--window-size=1280,2000",
            f"--screenshot={tmp_path / 'page.png'}", (tmp_path / "page.html").as_uri(),
        ],
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert (tmp_path / "page.png").stat().st_size > 20_000, done.stderr
    assert "CONSOLE" not in done.stderr
    asked = set(re.findall(r'"url":"(\w+://[^"]*)"', log.read_text(encoding="utf-8", errors="replace")))
    assert {url for url in asked if url.startswith(("http", "ws")) and "google" not in url} == set()
