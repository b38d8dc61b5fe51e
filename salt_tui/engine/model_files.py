"""Find the file of a model and say what is wrong with it, before anything is loaded."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
import shlex
import stat
from pathlib import Path

from salt_tui.engine.errors import ModelError
from salt_tui.engine.gguf_header import GGUFHeader, HeaderError, read_header
from salt_tui.engine.model_registry import ModelEntry
from salt_tui.paths import hub_cache_directory, models_directory
from salt_tui.similar_names import did_you_mean
from salt_tui.visible_text import visible

_EMBEDDINGS = frozenset({"gemma-embedding", "t5encoder", "llama-embed"})
"""Architectures of llama.cpp that make embeddings; those of the BERT family have its name in theirs."""

_SHOWN_NAMES = 3
_MOST_CONTEXT = 2**31 - 1  # llama.cpp's integer

_SPLIT = re.compile(r"-(?P<number>\d{5})-of-(?P<count>(?!00000)\d{5})\.gguf$")


class MissingModelError(ModelError):
    """The model is not on this machine; ``command`` fetches it, None where the way is unknown."""

    def __init__(self, message: str, command: str | None) -> None:
        """Keep the command beside the message, for lists."""
        super().__init__(message)
        self.command = command


def fetch_command(name: str, entry: ModelEntry) -> str | None:
    """Return the shell command that fetches the model, None for an entry that is a path."""
    if entry.package:
        return f"pip install {entry.package.partition('.')[0].replace('_', '-')}"
    return f"salt-tui models pull {shlex.quote(name)}" if entry.repository else None


def locate(name: str, entry: ModelEntry) -> Path:
    """Find the file of an entry; the file itself is not looked into.

    Hub files are looked for in `salt_tui.paths.models_directory` and in the cache of the hub's own client.

    Raises:
        MissingModelError: the file, the package or the file in it is not there; says how to get it.
    """
    if entry.path:
        return Path(entry.path)
    if entry.package:
        return _in_package(name, entry.package, entry.file or "")
    return _in_downloads(name, entry)


def _in_package(name: str, package: str, pattern: str) -> Path:
    """Find a file in an installed package without importing it or any package above it."""
    command = fetch_command(name, ModelEntry(package=package, file=pattern))
    first, *rest = package.split(".")
    try:
        # Only a top-level name: find_spec of a dotted one imports the packages above it.
        spec: importlib.machinery.ModuleSpec | None = importlib.util.find_spec(first) if first else None
    except (ImportError, ValueError):
        spec = None
    folders = [Path(place, *rest) for place in (spec.submodule_search_locations or ())] if spec else []
    folders = [folder for folder in folders if folder.is_dir()]
    if not folders:
        raise MissingModelError(
            f"model {name}: the Python package {visible(package)} is not installed; run: {command}", command
        )
    for folder in folders:
        if (folder / pattern).is_file():
            return folder / pattern
        found = sorted(path for path in folder.glob(pattern) if path.is_file())
        firsts = [path for path in found if not (match := _SPLIT.search(path.name)) or int(match["number"]) == 1]
        if len(firsts) > 1:
            # Few enough that the line is not shortened in the middle of one.
            names = ", ".join(visible(path.name, 80) for path in firsts[:_SHOWN_NAMES])
            names += f" and {len(firsts) - _SHOWN_NAMES} more" if len(firsts) > _SHOWN_NAMES else ""
            raise ModelError(
                f"model {name}: {visible(pattern)} matches several files of {package} ({names}); "
                "name one in models.toml"
            )
        if firsts:
            return firsts[0]
    raise MissingModelError(
        f"model {name}: the Python package {package} holds no {visible(pattern)}; run: {command} --upgrade", command
    )


def _in_downloads(name: str, entry: ModelEntry) -> Path:
    file = entry.file or ""
    downloaded = models_directory() / file
    if downloaded.is_file():
        return downloaded
    cached = hub_cache_directory() / f"models--{(entry.repository or '').replace('/', '--')}"
    for snapshot in _snapshots(cached):
        if (snapshot / file).is_file():
            return snapshot / file
    command = fetch_command(name, entry)
    raise MissingModelError(
        f"model {name} is not on this machine; run: {command} "
        f"(looked for {visible(str(downloaded))} and in {visible(str(cached))})",
        command,
    )


def _snapshots(cached: Path) -> list[Path]:
    """Return the snapshots of a cached repository, the one that ``main`` points to first, then the newest."""
    try:
        snapshots = sorted((cached / "snapshots").iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    except OSError:
        return []
    reference = cached / "refs" / "main"
    main = reference.read_text("utf-8").strip() if reference.is_file() else ""
    return sorted(snapshots, key=lambda path: path.name != main)


def check_file(path: Path) -> GGUFHeader:
    """Check that a path is a whole GGUF of a language model, all its parts there, and return its header.

    Raises:
        ModelError: what is wrong, on one line, and what to do.
    """
    header = _checked_part(path)
    if match := _SPLIT.search(path.name):
        first, *others = [path.with_name(name) for name in split_names(path.name)]
        if path != first:
            raise ModelError(
                f"{visible(str(path))} is part {int(match['number'])} of a model; give the first: {first.name}"
            )
        for other in others:
            if not other.exists():
                raise ModelError(
                    f"{visible(str(path))}: its part {visible(other.name)} is missing; fetch it to the same folder"
                )
            _checked_part(other)
    elif (parts := header.integer("split.count") or 1) > 1:
        raise ModelError(
            f"{visible(str(path))} is one of {parts} parts, renamed; "
            f"give all parts their names back: NAME-00001-of-{parts:05}.gguf"
        )
    kind = header.text("general.type") or "model"
    if header.architecture == "clip" or kind in ("mmproj", "adapter", "imatrix"):
        what = "an image projector" if header.architecture == "clip" else f'of type "{visible(kind)}"'
        raise ModelError(f"{visible(str(path))} is {what}, not a language model; give the GGUF of the model itself")
    if header.architecture is None or "tokenizer.ggml.model" not in header.metadata:
        raise ModelError(
            f"{visible(str(path))} has no architecture or no tokenizer in its header; it is no language model"
        )
    if _makes_embeddings(header):
        raise ModelError(
            f"{visible(str(path))} makes embeddings ({visible(header.architecture)}): it does not continue text; give "
            "the GGUF of a language model"
        )
    context = header.trained_context
    if context is not None and not 0 < context <= _MOST_CONTEXT:
        raise ModelError(
            f"{visible(str(path))}: its header says that it was trained on {context:,} tokens, which cannot be; the "
            "file was converted wrongly"
        )
    if not header.tensors:
        raise ModelError(f"{visible(str(path))} holds a vocabulary only, no weights; give the GGUF of the model itself")
    return header


def _makes_embeddings(header: GGUFHeader) -> bool:
    """Tell models in which every token sees those behind it: they have no next token."""
    architecture = header.architecture or ""
    causal = header.metadata.get(f"{architecture}.attention.causal")
    return causal is False or "bert" in architecture or architecture in _EMBEDDINGS


def check_readable(path: Path) -> None:
    """Check that a path is a file that can be opened; raises `ModelError`."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise ModelError(f"{visible(str(path))} is a directory; give a file{_example(path)}")
        if not stat.S_ISREG(mode):
            raise ModelError(f"{visible(str(path))} is not a regular file")
        path.open("rb").close()
    except (FileNotFoundError, NotADirectoryError):
        raise MissingModelError(f"{visible(str(path))} does not exist{_neighbour(path)}", None) from None
    except PermissionError:
        raise ModelError(f"{visible(str(path))} may not be read by you (permission denied); see: ls -l") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _checked_part(path: Path) -> GGUFHeader:
    check_readable(path)
    try:
        header = read_header(path)
    except HeaderError as error:
        raise ModelError(f"{visible(str(path))} {error}") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if header.end_of_tensors > header.file_bytes:
        missing = header.end_of_tensors - header.file_bytes
        raise ModelError(
            f"{visible(str(path))} is truncated: {missing:,} of {header.end_of_tensors:,} bytes missing; fetch it again"
        )
    return header


def _unreadable(path: Path, error: OSError | ValueError) -> ModelError:
    return ModelError(f"{visible(str(path))} cannot be read: {getattr(error, 'strerror', None) or error}")


def split_names(name: str) -> tuple[str, ...]:
    """Return the names of all parts of a split model in order; a file that is not split is its only part."""
    match = _SPLIT.search(name)
    if not match:
        return (name,)
    stem, count = name[: match.start()], match["count"]
    return tuple(f"{stem}-{number:05}-of-{count}.gguf" for number in range(1, int(count) + 1))


def _example(folder: Path) -> str:
    files = sorted(path.name for path in folder.glob("*.gguf")) if os.access(folder, os.R_OK) else []
    return f" in it, such as {visible(files[0])}" if files else ""


def _neighbour(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"; there is no folder {visible(str(path.parent))}" if not path.parent.exists() else ""
    return did_you_mean(path.name, names)
