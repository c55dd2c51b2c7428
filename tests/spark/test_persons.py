"""Whose row it is, in Spark: the same words as in one process, and the same persons in both passes."""

from __future__ import annotations

import polars as pl
import pytest

import shuffledp as sdp
import shuffledp.spark as sps
from shuffledp.errors import InvalidInput
from shuffledp.releases import run as flow

from .tables import TOLD, frame_of, people, reader_of

pytestmark = pytest.mark.spark
TABLE = people()
VOTE = sdp.Frequency(["yes", "no", "none"])


@pytest.mark.parametrize("rule", ["refuse", 2])
def test_persons_that_change_between_the_passes_are_found_out(spark, tmp_path, monkeypatch, rule):
    """As many rows of each budget, but two of them are of one person, or persons have rows of two budgets."""
    file = tmp_path / "people.parquet"
    table = TABLE.with_columns(who=pl.Series([f"p{k // (1 if rule == 'refuse' else 2)}" for k in range(TABLE.height)]))
    table = table.with_columns(budget=pl.Series([0.5, 0.5, 2.0, 2.0] * (TABLE.height // 4)))
    table.write_parquet(file)
    certify = flow.certify

    def rewritten(*given, **named):
        own = ["p1", "p1"] if rule == "refuse" else ["p0", "p1"]
        table.with_columns(who=pl.Series([own[0], own[0], own[1], own[1], *table["who"][4:]])).write_parquet(file)
        if rule == 2:
            swapped = pl.Series([0.5, 2.0, 0.5, 2.0, *table["budget"][4:]])
            table.with_columns(budget=swapped).write_parquet(file)
        return certify(*given, **named)

    frame = spark.range(1).mapInArrow(reader_of(str(file), "who"), "vote string, budget double, who string")
    told = {"value": "vote", "seen": "reports", "person": "who", "rows_per_person": rule, **TOLD}
    assert sps.release(VOTE, frame, **told).rows == table.height
    monkeypatch.setattr(flow, "certify", rewritten)
    with pytest.raises(InvalidInput, match="had other rows or budgets when the records were read"):
        sps.release(VOTE, frame, **told)


def test_two_spellings_of_a_person_are_one_person(spark):
    """Ids 5 and 5.0 were two people: .0862 was claimed where .181 holds."""
    names = ["5", "5.0", " 5", "Zo\u00eb", "Zoe\u0308", "7", "07", "-0", "0.0", "True", "true"]
    table = pl.DataFrame({"who": names, "vote": ["yes"] * len(names)})
    told = {"value": "vote", "seen": "reports", "delta": 1e-3, "person": "who", "budgets": 1.0}
    with pytest.raises(InvalidInput, match=r"^4 of 6 people own several rows \(one owns 3\)"):
        sps.release(VOTE, frame_of(spark, table), **told)
    numbers = pl.DataFrame({"who": [1e16, 0.0, -0.0, 2.5], "vote": ["yes"] * 4})
    with pytest.raises(InvalidInput, match=r"^1 of 3 people owns several rows \(one owns 2\)"):
        sps.release(VOTE, frame_of(spark, numbers), **told)
