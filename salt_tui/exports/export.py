"""Writing one run or study to a file: under a temporary name beside its target, put in place when it is complete."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

from salt_tui.exports.formats import EXPORT_FORMATS, ExportFormat
from salt_tui.paths import expanded
from salt_tui.store.errors import StoreError, StoreFailure
from salt_tui.store.placing import Standing, complete_file, standing
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import Work

_WAY_OUT = "choose another name or overwrite it with --force"
_FAILED_AT_WORK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""What a disk says that would take the file at another time; everything else is wrong with the place itself."""


def export_run(
    database: Path | str, run: int, target: Path | str, *, overwrite: bool = False, excel_safe: bool = False
) -> None:
    """Write one run to a file; its suffix names the format, see `EXPORT_FORMATS`.

    Args:
        database: the file to read.
        run: the run's number.
        target: the file to write.
        overwrite: replace a target that exists.
        excel_safe: in CSV, keep spreadsheets from running texts as formulas.

    Raises:
        StoreError: an unknown suffix, a target that exists or cannot be written, no such run; the target is then as
            it was before.
    """

    def write(chosen: ExportFormat, queries: Queries, temporary: Path) -> None:
        queries.run_record(run)
        chosen.write(queries, run, temporary, **_options(chosen, target, excel_safe))

    _export(database, target, write, overwrite=overwrite)


def export_study(
    database: Path | str, study: Work, target: Path | str, *, overwrite: bool = False, excel_safe: bool = False
) -> None:
    """Write one study to a file; a database holds its run and no other study.

    Args:
        database: the file to read.
        study: as `Queries.find_work` gives it.
        target: the file to write.
        overwrite: replace a target that exists.
        excel_safe: in CSV, keep spreadsheets from running texts as formulas.

    Raises:
        StoreError: as `export_run`.
    """

    def write(chosen: ExportFormat, queries: Queries, temporary: Path) -> None:
        queries.study_record(study)
        chosen.write_study(queries, study, temporary, **_options(chosen, target, excel_safe))

    _export(database, target, write, overwrite=overwrite)


def _options(chosen: ExportFormat, target: Path | str, excel_safe: bool) -> dict[str, bool]:
    if excel_safe and not chosen.spreadsheet:
        raise StoreError(f"--excel-safe is for .csv, not for {target}")
    return {"excel_safe": True} if excel_safe else {}


def _export(
    database: Path | str,
    target: Path | str,
    write: Callable[[ExportFormat, Queries, Path], None],
    *,
    overwrite: bool,
) -> None:
    database, target = expanded(database, StoreError), expanded(target, StoreError)
    chosen = EXPORT_FORMATS.get(target.suffix.lower())
    if chosen is None:
        raise StoreError(f"cannot tell the format of {target}: its name must end in {', '.join(EXPORT_FORMATS)}")
    try:
        _refuse_target(target, database, overwrite=overwrite)
        with open_queries(database) as queries:
            replaced: tuple[Standing, ...] = ("empty", "file") if overwrite else ()
            with complete_file(target, replaced, database=chosen.database) as temporary:
                _write(write, chosen, queries, temporary, target)
    except FileExistsError as error:
        raise StoreError(f"{target} appeared meanwhile; {_WAY_OUT}") from error
    except OSError as error:
        kind = StoreFailure if error.errno in _FAILED_AT_WORK else StoreError
        raise kind(f"{target} cannot be written ({error.strerror}); nothing was left behind") from error


def _write(
    write: Callable[[ExportFormat, Queries, Path], None],
    chosen: ExportFormat,
    queries: Queries,
    temporary: Path,
    target: Path,
) -> None:
    """Write the file; a message about the temporary name speaks of the target, which is the name the user knows."""
    try:
        write(chosen, queries, temporary)
    except StoreError as error:
        raise type(error)(str(error).replace(str(temporary), str(target))) from error


def _refuse_target(target: Path, database: Path, *, overwrite: bool) -> None:
    found = standing(target)
    if found == "folder":
        raise StoreError(f"{target} is a folder; give a file name")
    if found == "special":
        raise StoreError(f"{target} is a device, pipe or socket; it was left as it is; give a file name")
    if found == "absent":
        return
    if database.exists() and target.samefile(database):
        raise StoreError(f"{target} is the database itself; choose another name")
    if not overwrite:
        raise StoreError(f"{target} exists; {_WAY_OUT}")
