"""``.parquet``: a table in the columns of Apache Parquet, for pandas, polars, DuckDB and R."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from salt_tui.exports.tables import Table
from salt_tui.store.errors import StoreError

ROWS_AT_ONCE = 20_000
"""A million atoms with 30 columns as Python objects would take 2 GB."""


def write_parquet_file(table: Table, path: Path) -> None:
    """Write a table; None is null.

    Raises:
        StoreError: pyarrow is not installed, or a value is not of its column's type.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise StoreError("parquet needs pyarrow: pip install 'saltbench-tui[parquet]'") from error
    types = {
        "integer": pyarrow.int64(),
        "real": pyarrow.float64(),
        "text": pyarrow.string(),
        "bytes": pyarrow.binary(),
    }
    schema = pyarrow.schema([(column.name, types[column.type]) for column in table.columns])
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        left = iter(table.rows)
        while rows := list(islice(left, ROWS_AT_ONCE)):
            columns = zip(*rows, strict=True)
            arrays = []
            for field, values in zip(schema, columns, strict=True):
                try:
                    arrays.append(pyarrow.array(values, field.type))
                except (pyarrow.ArrowException, OverflowError) as error:
                    raise StoreError(f"column {field.name} holds what is no {field.type}: {error}") from error
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))
