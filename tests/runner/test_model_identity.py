"""A model file that changes while it is used is noticed; one that only looks changed is not."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from salt_tui.engine.errors import ModelError
from salt_tui.engine.model_info import Build, Capabilities, ModelInfo
from salt_tui.runner.model_identity import FileIdentity, identity_of, sha256_of

pytestmark = pytest.mark.quick


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, ...]:
    paths = tmp_path / "a", tmp_path / "b"
    for path in paths:
        path.write_text(f"weights {path.name}")
        os.utime(path, ns=(1, 1))
    return paths


def test_the_hash_is_of_all_parts_in_order(parts: tuple[Path, ...]) -> None:
    identity = FileIdentity(parts)
    assert identity.sha256() == hashlib.sha256(b"weights aweights b").hexdigest()
    assert identity.is_unchanged()


def test_a_touched_file_is_hashed_again_and_is_the_same(parts: tuple[Path, ...]) -> None:
    identity = FileIdentity(parts)
    identity.sha256()
    os.utime(parts[1], ns=(2, 2))
    assert identity.is_unchanged()
    assert not identity.was_written_to()


def test_another_file_in_its_place_is_another_model_for_whoever_loads_again(parts: tuple[Path, ...]) -> None:
    identity = FileIdentity(parts)
    identity.sha256()
    other = parts[0].with_name("other")
    other.write_text("WEIGHTS a")
    other.replace(parts[0])
    assert not identity.is_unchanged()
    assert not identity.was_written_to()  # who has it mapped keeps the old one


def test_what_is_written_into_the_file_reaches_who_has_it_mapped(parts: tuple[Path, ...]) -> None:
    identity = FileIdentity(parts)
    identity.sha256()
    parts[0].write_text("WEIGHTS a")
    assert identity.was_written_to()
    assert not identity.is_unchanged()


def test_a_file_that_changes_while_it_is_loaded_is_refused(parts: tuple[Path, ...]) -> None:
    identity = FileIdentity(parts)
    parts[0].write_text("WEIGHTS a")
    with pytest.raises(ModelError, match="changed while it was loaded"):
        identity.sha256()


def test_a_file_that_is_gone_is_one_line(parts: tuple[Path, ...]) -> None:
    identity = FileIdentity(parts)
    identity.sha256()
    parts[0].unlink()
    with pytest.raises(ModelError, match="cannot read the model file"):
        identity.is_unchanged()
    assert not identity.was_written_to()


def test_a_file_is_named_by_its_hash_and_a_server_by_what_it_says(parts: tuple[Path, ...]) -> None:
    def info(identity: str | None) -> ModelInfo:
        build = Build("remote", {}, False, (), "")
        can = Capabilities("top_k", 0, 0, vocabulary=False, forced=False, cut=False)
        shape = ("served", None, None, None, None, None, None, 0, 0, 0, None, False, (), build, can)
        return ModelInfo(*shape, identity)

    named = identity_of(parts).text(info(None))
    assert sha256_of(named) == hashlib.sha256(b"weights aweights b").hexdigest()
    assert named == f"sha256:{sha256_of(named)}"
    served = identity_of(())
    assert served.text(info("remote:localhost:8000/v1|tiny|")) == "remote:localhost:8000/v1|tiny|"
    assert sha256_of(served.text(info("remote:x"))) is None
    assert served.is_unchanged()
    assert not served.was_written_to()
    with pytest.raises(ModelError, match="does not say which model"):
        served.text(info(None))
