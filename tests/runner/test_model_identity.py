"""A model file that changes while it is used is noticed; one that only looks changed is not."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from salt_tui.engine.engine import ModelError
from salt_tui.runner.model_identity import ModelIdentity

pytestmark = pytest.mark.quick


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, ...]:
    paths = tmp_path / "a", tmp_path / "b"
    for path in paths:
        path.write_text(f"weights {path.name}")
        os.utime(path, ns=(1, 1))
    return paths


def test_the_hash_is_of_all_parts_in_order(parts: tuple[Path, ...]) -> None:
    identity = ModelIdentity(parts)
    assert identity.sha256() == hashlib.sha256(b"weights aweights b").hexdigest()
    assert identity.is_unchanged()


def test_a_touched_file_is_hashed_again_and_is_the_same(parts: tuple[Path, ...]) -> None:
    identity = ModelIdentity(parts)
    identity.sha256()
    os.utime(parts[1], ns=(2, 2))
    assert identity.is_unchanged()
    assert not identity.was_written_to()


def test_another_file_in_its_place_is_another_model_for_whoever_loads_again(parts: tuple[Path, ...]) -> None:
    identity = ModelIdentity(parts)
    identity.sha256()
    other = parts[0].with_name("other")
    other.write_text("WEIGHTS a")
    other.replace(parts[0])
    assert not identity.is_unchanged()
    assert not identity.was_written_to()  # who has it mapped keeps the old one


def test_what_is_written_into_the_file_reaches_who_has_it_mapped(parts: tuple[Path, ...]) -> None:
    identity = ModelIdentity(parts)
    identity.sha256()
    parts[0].write_text("WEIGHTS a")
    assert identity.was_written_to()
    assert not identity.is_unchanged()


def test_a_file_that_changes_while_it_is_loaded_is_refused(parts: tuple[Path, ...]) -> None:
    identity = ModelIdentity(parts)
    parts[0].write_text("WEIGHTS a")
    with pytest.raises(ModelError, match="changed while it was loaded"):
        identity.sha256()


def test_a_file_that_is_gone_is_one_line(parts: tuple[Path, ...]) -> None:
    identity = ModelIdentity(parts)
    identity.sha256()
    parts[0].unlink()
    with pytest.raises(ModelError, match="cannot read the model file"):
        identity.is_unchanged()
    assert not identity.was_written_to()
