"""Writing one run or study to a file: under a temporary name beside its target, put in place when it is complete."""

from __future__ import annotations

import errno
from pathlib import Path

from salt_tui.exports.formats import EXPORT_FORMATS, ExportFormat, ExportOptions
from salt_tui.paths import expanded
from salt_tui.store.disk_space import TOKEN_BYTES, room_for
from salt_tui.store.errors import StoreError, StoreFailure
from salt_tui.store.placing import Standing, complete_file, standing
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import Work
from salt_tui.visible_text import visible

_WAY_OUT = "choose another name or overwrite it with --force"
_FAILED_AT_WORK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""What a disk says that would take the file at another time; everything else is wrong with the place itself."""


def export_work(
    database: Path | str,
    work: Work,
    target: Path | str,
    *,
    overwrite: bool = False,
    options: ExportOptions | None = None,
) -> None:
    """Write one run or study to a file; its suffix names the format, see `EXPORT_FORMATS`.

    Args:
        database: the file to read.
        work: the run or study, as `Queries.find_work` gives it; a database of a study holds its run and no other study.
        target: the file to write.
        overwrite: replace a target that exists.
        options: what else is asked.

    Raises:
        StoreError: an unknown suffix, an option that the format does not take, a target that exists or cannot be
            written, no such run; the target is then as it was before.
    """
    database, target, wanted = expanded(database, StoreError), expanded(target, StoreError), options or ExportOptions()
    chosen = _format(target, wanted)
    try:
        _refuse_target(target, database, overwrite=overwrite)
        with open_queries(database) as queries:
            if chosen.database:
                room_for(queries.token_count(work.run) * TOKEN_BYTES, target, f"the export to {visible(str(target))}")
            replaced: tuple[Standing, ...] = ("empty", "file") if overwrite else ()
            with complete_file(target, replaced, database=chosen.database) as temporary:
                _write(chosen, queries, work, temporary, target, wanted)
    except FileExistsError as error:
        raise StoreError(f"{target} appeared meanwhile; {_WAY_OUT}") from error
    except OSError as error:
        kind = StoreFailure if error.errno in _FAILED_AT_WORK else StoreError
        raise kind(f"{target} cannot be written ({error.strerror}); nothing was left behind") from error


def _format(target: Path, options: ExportOptions) -> ExportFormat:
    chosen = EXPORT_FORMATS.get(target.suffix.lower())
    if chosen is None:
        raise StoreError(f"cannot tell the format of {target}: its name must end in {', '.join(EXPORT_FORMATS)}")
    if options.excel_safe and not chosen.spreadsheet:
        raise StoreError(f"--excel-safe is for .csv, not for {target.suffix}")
    if options.tokens and not chosen.table:
        tables = " and ".join(suffix for suffix, entry in EXPORT_FORMATS.items() if entry.table)
        raise StoreError(f"--tokens is for {tables}, not for {target.suffix}")
    return chosen


def _write(
    chosen: ExportFormat, queries: Queries, work: Work, temporary: Path, target: Path, options: ExportOptions
) -> None:
    """Write the file; a message about the temporary name speaks of the target, which is the name the user knows."""
    try:
        if work.study is None:
            queries.run_record(work.run)
        else:
            queries.study_record(work)
        chosen.write(queries, work, temporary, options)
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
