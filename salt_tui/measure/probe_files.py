"""A trained probe in a file, and what it says about the answers of a later run.

The file is a NumPy archive of plain arrays and one JSON text.  Nothing in it is code: arrays of objects are refused
when they are read, and everything is checked before it is used.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from salt_tui.inputs.text_lines import refuse_named_pipe
from salt_tui.measure.probes import Subject
from salt_tui.store.records import SignalRecord
from salt_tui.usage_error import UsageError
from scoring.forest_arrays import ForestArrays, ForestError
from scoring.probes import FULL

KIND = "salt-tui probe"
FORMAT = 1

MOST_BYTES = 2**30
"""Of an archive, unpacked: a thousand trees of 20,000 units take 0.4 GB."""

_MOST = 2**31
"""No count, width or number of a layer reaches it; SQLite could not be asked for every larger one."""

_TEXT = "about"
_TYPES = {"int": int, "str": str, "bool": bool}

TRAINED_ON = "the probe was trained on this problem"


@dataclass(frozen=True, slots=True)
class SavedProbe:
    """A forest on one layer's vectors, and what it belongs to.

    Attributes:
        model: identity of the model whose activations it reads.
        model_name: of that model, for people.
        unit, positions: what it reads.
        layer: number of the layer.
        width: of its vectors.
        units, answers: what it was trained on.
        post_norm: the study that it was trained on has the last layer from behind the final norm.
        problems: hashes of the problems that it was trained on; nothing is said about these.
        forest: the trees.
    """

    model: str
    model_name: str
    unit: str
    positions: str
    layer: int
    width: int
    units: int
    answers: int
    post_norm: bool
    problems: tuple[str, ...]
    forest: ForestArrays


def train(subject: Subject, layer: int, model: str, model_name: str) -> SavedProbe:
    """Train a probe on all units of a layer."""
    units = subject.units
    vectors = np.asarray(units.pools[units.layers.index(layer)], dtype=np.float64)
    return SavedProbe(
        model=model,
        model_name=model_name,
        unit=subject.kind,
        positions=subject.positions,
        layer=layer,
        width=vectors.shape[1],
        units=len(vectors),
        answers=subject.answers,
        post_norm=subject.post_norm,
        problems=subject.problems,
        forest=ForestArrays.grown(vectors, units.correct, FULL),
    )


def write_probe(probe: SavedProbe, path: Path) -> None:
    """Write a probe.

    Args:
        probe: to write.
        path: of an open, empty file; it is not renamed.
    """
    about = {"kind": KIND, "format": FORMAT} | {
        entry.name: getattr(probe, entry.name) for entry in fields(SavedProbe) if entry.name != "forest"
    }
    arrays = {entry.name: getattr(probe.forest, entry.name) for entry in fields(ForestArrays)}
    text = np.frombuffer(json.dumps(about, ensure_ascii=False).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **{_TEXT: text}, **arrays)


def read_probe(path: Path) -> SavedProbe:
    """Read a probe.

    Raises:
        UsageError: the file cannot be read or holds no probe; nothing in it was run.
    """
    refuse_named_pipe(path)
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST_BYTES:
            raise UsageError(f"{path}: unpacked it has {size / 1e6:,.0f} MB, more than a probe can have")
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return _probe(arrays)
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror or error})") from error
    # What a damaged or foreign archive makes of the libraries that read it; none of them runs what it holds.
    except (
        ValueError,
        KeyError,
        TypeError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        RecursionError,
        OverflowError,
        MemoryError,  # an array may name a length that it does not have
    ) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"{path}: no saved probe ({reason}); probe RUN --save {path} writes one") from error


def probe_signals(probe: SavedProbe, subject: Subject, name: str) -> list[SignalRecord]:
    """Return what a probe says about units: nothing about those of problems that it was trained on.

    Args:
        probe: of the same kind, positions and layer as the subject's vectors.
        subject: units of a run of the same model.
        name: of the signal.
    """
    confidence = probe.forest.predict(np.asarray(subject.units.pools[0], dtype=np.float64))
    known = set(probe.problems)
    found = []
    for number, value in enumerate(confidence.tolist()):
        trained = subject.problems[int(subject.units.problem[number])] in known
        found.append(
            SignalRecord(
                generation=int(subject.generation[number]),
                kind=subject.kind,
                index=int(subject.index[number]),
                name=name,
                value=None if trained else value,
                reason=TRAINED_ON if trained else None,
            )
        )
    return found


def _probe(arrays: Mapping[str, Any]) -> SavedProbe:
    text = arrays[_TEXT]
    if text.dtype != np.uint8 or text.ndim != 1:
        raise ValueError("no description")
    about = json.loads(text.tobytes())
    if not isinstance(about, dict) or about.get("kind") != KIND or about.get("format") != FORMAT:
        raise ValueError(f"not format {FORMAT} of a probe")
    values: dict[str, Any] = {}
    for entry in fields(SavedProbe):
        if entry.name == "forest":
            continue
        value = about[entry.name]
        if entry.name == "problems":
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise ValueError("problems that are no texts")
            values[entry.name] = tuple(value)
        elif type(value) is not _TYPES[str(entry.type)] or (isinstance(value, int) and not 0 <= value < _MOST):
            raise ValueError(f"{entry.name} is {value!r}")
        else:
            values[entry.name] = value
    if values["unit"] not in {"generation", "line", "atom"} or values["positions"] not in {"producing", "own"}:
        raise ValueError("units or positions of another kind")
    if values["width"] < 1 or values["layer"] < 1:
        raise ValueError("no layer or no width")
    try:
        return SavedProbe(**values, forest=ForestArrays.checked(arrays, values["width"]))
    except ForestError as error:
        raise ValueError(str(error)) from error
