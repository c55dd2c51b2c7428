"""Reading of tables: text files, Parquet files, dataframes and standard input."""

from __future__ import annotations

from shuffledp.tables.options import TableOptions, canonical, canonical_texts
from shuffledp.tables.table import BATCH, Columns, Table, read_columns, read_frame

__all__ = ["BATCH", "Columns", "Table", "TableOptions", "canonical", "canonical_texts", "read_columns", "read_frame"]
