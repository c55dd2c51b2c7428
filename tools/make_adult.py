"""Make src/shuffledp/data/adult.parquet from the two files of UCI Adult.

    python tools/make_adult.py adult.data.gz adult.test.gz [OUT.parquet]

Keeps every row of both files and three columns: hours_per_week, income (whether over 50K) and education.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import polars as pl

EDUCATION, HOURS, INCOME = 3, 12, 14
FIELDS = 15
DEFAULT_OUT = Path(__file__).resolve().parent.parent / "src" / "shuffledp" / "data" / "adult.parquet"


def rows(path: Path) -> list[tuple[int, str, str]]:
    """(hours per week, income class, education) of every person in one file."""
    kept: list[tuple[int, str, str]] = []
    with gzip.open(path, "rt", encoding="ascii") as stream:
        for line in stream:
            fields = [field.strip() for field in line.split(",")]
            if len(fields) != FIELDS:  # the test file's first line, and the empty last line of both
                continue
            kept.append((int(fields[HOURS]), fields[INCOME].removesuffix("."), fields[EDUCATION]))
    return kept


def main(arguments: list[str]) -> None:
    """Write the table."""
    if len(arguments) not in (2, 3):
        raise SystemExit(__doc__)
    people = [person for path in arguments[:2] for person in rows(Path(path))]
    table = pl.DataFrame(
        people,
        schema={"hours_per_week": pl.UInt8, "income": pl.String, "education": pl.String},
        orient="row",
    )
    out = Path(arguments[2]) if len(arguments) == 3 else DEFAULT_OUT
    table.write_parquet(out, compression="zstd", compression_level=19)
    print(f"{out}: {table.height} rows, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
