"""Exports: the three formats, and targets that must not be harmed."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from salt_tui.exports.export import export_work
from salt_tui.exports.formats import EXPORT_FORMATS
from salt_tui.store.errors import StoreFailure
from salt_tui.store.queries import open_queries
from salt_tui.store.records import Work
from salt_tui.store.store import StoreError, open_store
from salt_tui.usage_error import UsageError


def names(folder):
    return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("x.db"))


def test_csv_has_one_row_per_atom_and_empty_cells_for_null(path, filled, tmp_path):
    target = tmp_path / "run.csv"
    export_work(path, Work(filled), target)
    with target.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows[:3]] == ["correct", "wrong", "missing"]
    assert len(rows) == 8
    assert (rows[1]["text"], rows[1]["reference"], rows[1]["max_probability"]) == ("A", "C", "0.9")
    assert (rows[2]["text"], rows[2]["max_probability"], rows[2]["correct"]) == ("", "", "")


def test_csv_keeps_line_ends_inside_a_cell(path, create, begin, finish, atom, tmp_path):
    run = create(count=1)
    texts = ["a\rb", "\r", "a\nb", "a\r\nb", '"', "", "a,b"]
    finish(begin(run), [replace(atom(place), text=text) for place, text in enumerate(texts)])
    export_work(path, Work(run), tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == texts
    content = (tmp_path / "run.csv").read_bytes()
    assert content.count(b"\r\n") == 1
    assert content.endswith(b"\n")
    assert b'"a\rb"' in content


def test_jsonl_has_one_answer_per_line_with_units_and_tokens(path, filled, tmp_path):
    target = tmp_path / "run.jsonl"
    export_work(path, Work(filled), target)
    answers = [json.loads(line) for line in target.read_text().splitlines()]
    assert [len(answer["units"]) for answer in answers] == [3, 3, 1, 1, 0]
    assert [len(answer["tokens"]) for answer in answers] == [3, 3, 3, 3, 0]
    first = answers[0]
    assert (first["model"], first["task"], first["seed"], first["reply"]) == ("tiny", "dna", str(2**64 - 1), "AAA")
    assert first["units"][1]["max_probability"] == 0.9
    assert first["tokens"][0]["alternatives"] == [[65, -0.25], [66, -2.5]]
    assert answers[4]["reply"] is None


def test_jsonl_keeps_bytes_that_are_no_characters(path, store, create, begin, token, end, tmp_path):
    run = create(count=1)
    generation = begin(run)
    store.add_tokens(generation, [token(0, id=97), token(1, id=255)])
    store.end_generation(generation, end(reply=b"a\xff"))
    export_work(path, Work(run), tmp_path / "run.jsonl")
    answer = json.loads((tmp_path / "run.jsonl").read_text())
    assert (answer["reply"], answer["reply_base64"]) == ("a\ufffd", "Yf8=")
    assert (answer["tokens"][1]["text"], answer["tokens"][1]["text_base64"]) == ("\ufffd", "/w==")


def test_a_database_of_its_own_holds_only_that_run_and_can_be_opened(path, store, create, filled, tmp_path):
    create(sha256="b" * 64)
    target = tmp_path / "run.db"
    export_work(path, Work(filled), target)
    assert names(tmp_path) == ["run.db"]
    with open_queries(path) as before, open_queries(target) as after:
        assert [listing.run for listing in after.list_runs()] == [filled]
        assert after.list_runs()[0].state == "interrupted"
        assert after.task_counts(filled) == before.task_counts(filled)
        generation = after.answers(filled)[0].generation
        assert after.tokens(generation) == before.tokens(generation)
        assert after.units(generation) == before.units(generation)
    connection = sqlite3.connect(target)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("SELECT count(*) FROM model").fetchone() == (1,)
    connection.close()
    with open_store(target) as opened:
        opened.claim(Work(filled))
        assert len(opened.pending_problems(filled)) == 2
        opened.release(Work(filled), "interrupted")


@pytest.mark.parametrize("name", ["run.xlsx", "run", "run.csv.gz", ".csv"])
def test_an_unknown_suffix_names_the_valid_ones(path, filled, tmp_path, name):
    with pytest.raises(StoreError, match=r"\.csv, \.jsonl, \.parquet, \.db"):
        export_work(path, Work(filled), tmp_path / name)
    assert names(tmp_path) == []


@pytest.mark.parametrize("suffix", list(EXPORT_FORMATS))
def test_an_existing_target_is_kept_unless_overwriting_is_asked_for(path, filled, tmp_path, suffix):
    target = tmp_path / f"run{suffix}"
    target.write_text("precious")
    with pytest.raises(StoreError, match="exists; choose another name or overwrite it with --force"):
        export_work(path, Work(filled), target)
    assert target.read_text() == "precious"
    export_work(path, Work(filled), target, overwrite=True)
    assert target.read_bytes()[:8] != b"precious"
    assert names(tmp_path) == [target.name]


def test_the_database_itself_is_never_a_target(path, filled):
    with pytest.raises(StoreError, match="the database itself"):
        export_work(path, Work(filled), path, overwrite=True)
    with open_queries(path) as queries:
        assert queries.find_run("latest") == filled


@pytest.mark.parametrize("suffix", list(EXPORT_FORMATS))
def test_an_unknown_run_or_folder_leaves_nothing(path, filled, tmp_path, suffix):
    with pytest.raises(StoreError, match="no run 99"):
        export_work(path, Work(99), tmp_path / f"run{suffix}")
    with pytest.raises(StoreError) as caught:
        export_work(path, Work(filled), tmp_path / "nowhere" / f"run{suffix}")
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize("suffix", list(EXPORT_FORMATS))
def test_a_failure_in_the_middle_leaves_the_old_file_and_nothing_else(path, filled, tmp_path, suffix, monkeypatch):
    target = tmp_path / f"run{suffix}"
    target.write_text("precious")
    format_ = EXPORT_FORMATS[suffix]

    def fail(queries, work, temporary, options):
        format_.write(queries, work, temporary, options)
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(EXPORT_FORMATS, suffix, replace(format_, write=fail))
    with pytest.raises(StoreFailure, match="No space left on device"):
        export_work(path, Work(filled), target, overwrite=True)
    assert target.read_text() == "precious"
    assert names(tmp_path) == [target.name]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("suffix", list(EXPORT_FORMATS))
def test_a_target_that_is_no_file_is_left_as_it_is(
    path, filled, tmp_path, monkeypatch, time_limit, make_special, suffix, linked, overwrite
):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    target = special = Path(f"special{suffix}")
    make_special(special)
    if linked:
        target = Path(f"link{suffix}")
        target.symlink_to(special)
    before, found = special.stat(), names(tmp_path)
    with pytest.raises(StoreError, match="is a device, pipe or socket; it was left as it is") as caught:
        export_work(path, Work(filled), target, overwrite=overwrite)
    assert "\n" not in str(caught.value)
    after = special.stat()
    assert (after.st_ino, after.st_mode, after.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)
    assert names(tmp_path) == found


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("suffix", list(EXPORT_FORMATS))
def test_a_folder_is_no_target(path, filled, tmp_path, suffix, overwrite):
    target = tmp_path / f"folder{suffix}"
    target.mkdir()
    with pytest.raises(StoreError, match="is a folder"):
        export_work(path, Work(filled), target, overwrite=overwrite)
    assert names(tmp_path) == [target.name]
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("suffix", list(EXPORT_FORMATS))
def test_a_link_stays_a_link_and_what_it_leads_to_is_written(path, filled, tmp_path, suffix):
    (tmp_path / "far").mkdir()
    real, target = tmp_path / "far" / "real", tmp_path / f"link{suffix}"
    target.symlink_to(real)
    export_work(path, Work(filled), target)
    first = real.read_bytes()
    real.write_text("precious")
    with pytest.raises(StoreError, match="exists"):
        export_work(path, Work(filled), target)
    export_work(path, Work(filled), target, overwrite=True)
    assert target.is_symlink()
    assert real.read_bytes()[:16] == first[:16] != b"precious"
    assert names(tmp_path / "far") == ["real"]


@pytest.mark.parametrize("suffix", list(EXPORT_FORMATS))
def test_a_name_that_is_too_long_or_just_short_enough_is_the_users_own(path, filled, tmp_path, suffix):
    longest = tmp_path / ("n" * (255 - len("-journal" if suffix == ".db" else "") - len(suffix)) + suffix)
    export_work(path, Work(filled), longest)
    assert names(tmp_path) == [longest.name]
    longer = tmp_path / ("n" * (256 - len(suffix)) + suffix)
    with pytest.raises(StoreError) as caught:
        export_work(path, Work(filled), longer)
    assert str(caught.value) == f"{longer} cannot be written (File name too long); nothing was left behind"
    assert not isinstance(caught.value, StoreFailure)


@pytest.fixture
def mounted(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a disk")
@pytest.mark.parametrize("suffix", list(EXPORT_FORMATS))
@pytest.mark.process
def test_a_read_only_disk_is_named_with_the_users_target(path, filled, mounted, suffix):
    subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)
    target = mounted / f"run{suffix}"
    with pytest.raises(StoreError, match="cannot be") as caught:
        export_work(path, Work(filled), target)
    assert str(caught.value).startswith(f"{target} ")
    assert "\n" not in str(caught.value)
    assert ".new" not in str(caught.value)
    assert not isinstance(caught.value, StoreFailure)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk")
@pytest.mark.parametrize("suffix", list(EXPORT_FORMATS))
@pytest.mark.process
def test_a_full_disk_is_named_with_the_users_target_and_nothing_to_resume(path, filled, mounted, suffix):
    status = os.statvfs(mounted)
    (mounted / "ballast").write_bytes(b"x" * status.f_bavail * status.f_frsize)
    target = mounted / f"run{suffix}"
    # A database is as large as its source: that is looked at before it is begun.
    with pytest.raises(UsageError if suffix == ".db" else StoreFailure) as caught:
        export_work(path, Work(filled), target)
    assert str(target) in str(caught.value)
    assert "resume" not in str(caught.value)
    assert ".new" not in str(caught.value)
    assert names(mounted) == ["ballast"]


@pytest.mark.parametrize("suffix", list(EXPORT_FORMATS))
def test_a_target_that_appears_meanwhile_is_kept(path, filled, tmp_path, suffix, monkeypatch):
    target = tmp_path / f"run{suffix}"
    format_ = EXPORT_FORMATS[suffix]

    def slow(queries, work, temporary, options):
        format_.write(queries, work, temporary, options)
        target.write_text("precious")

    monkeypatch.setitem(EXPORT_FORMATS, suffix, replace(format_, write=slow))
    with pytest.raises(StoreError, match=r"appeared meanwhile; .* --force"):
        export_work(path, Work(filled), target)
    assert target.read_text() == "precious"
    assert names(tmp_path) == [target.name]


def test_a_database_with_a_journal_of_its_own_is_not_replaced_under_it(path, filled, tmp_path):
    target = tmp_path / "run.db"
    export_work(path, Work(filled), target)
    content = target.read_bytes()
    journal = tmp_path / "run.db-wal"
    journal.write_bytes(b"frames of what stands there")
    with pytest.raises(StoreError, match=r"run\.db-wal beside it belongs to another database"):
        export_work(path, Work(filled), target, overwrite=True)
    assert (target.read_bytes(), journal.read_bytes()) == (content, b"frames of what stands there")
