"""Releases from dataframes of Spark: the numbers, the order of the passes, what is refused, and what no error tells."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark", reason="needs the extra shuffledp[spark]")

from pyspark.sql import functions as F  # noqa: N812

import shuffledp as sdp
import shuffledp.spark as sps
from shuffledp.errors import InvalidInput
from shuffledp.releases import run as flow
from shuffledp.spark import engine

from .tables import TOLD, frame_of, in_partitions, people, reader_of

pytestmark = pytest.mark.spark

TABLE = people()
VOTE = sdp.Frequency(["yes", "no", "none"])
CASES = [
    (VOTE, "vote", "reports", 7),
    (VOTE, "vote", "levels", 1),
    (sdp.FrequentItems(["yes", "no", "none"]), "vote", "reports", 2),
    (sdp.FrequentItems(max_length=4, alphabet="lower"), "vote", "levels", 1),
    (sdp.Mean(0, 80), "hours", "reports", 1),
    (sdp.Mean(0, 80), "hours", "levels", 2),
    (sdp.Mean(0, 80), "hours", "sum", 7),
    (sdp.Histogram(0, 80, 8), "hours", "reports", 2),
    (sdp.Histogram(0, 80, 8), "hours", "levels", 7),
    (sdp.Quantiles(0, 80, bins=16), "hours", "reports", 7),
    (sdp.Quantiles(0, 80, bins=16), "hours", "levels", 2),
    (sdp.Variance(0, 80), "hours", "reports", 1),
    (sdp.Variance(0, 80), "hours", "levels", 7),
    (sdp.VectorMean(2, 100.0), ("hours", "more"), "reports", 2),
    (sdp.VectorMean(2, 100.0), ("hours", "more"), "levels", 1),
]


@pytest.fixture(scope="module")
def cut(spark):
    """The table in 1, 2 and 7 partitions."""
    return {count: in_partitions(spark, TABLE, count) for count in (1, 2, 7)}


@pytest.fixture(scope="module")
def frame(cut):
    return cut[2][0]


@pytest.mark.parametrize(("question", "value", "seen", "count"), CASES)
def test_spark_releases_what_one_process_releases(cut, question, value, seen, count):
    frame, parts = cut[count]
    told = {"value": value, "seen": seen, **TOLD}
    found = sps.release(question, frame, **told, random=sdp.simulation_random(3))
    alone = sps.simulate_partitions(question, parts, **told, random=sdp.simulation_random(3))
    np.testing.assert_array_equal(found.estimate, alone.estimate)
    np.testing.assert_array_equal(found.confidence_interval(), alone.confidence_interval())
    local = sdp.release(question, TABLE, **told)
    assert found.guarantee.epsilon == local.guarantee.epsilon
    assert found.fingerprint == local.fingerprint == alone.fingerprint
    assert (found.n, found.rows, found.private, local.private) == (TABLE.height, TABLE.height, False, True)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ({"vote": "yes"}, TABLE["vote"] == "yes"),
        ({"vote": ["yes", "none"], "budget": 0.5}, (TABLE["vote"] != "no") & (TABLE["budget"] == 0.5)),
        ({"budget": ["0.5", 2]}, TABLE["budget"] != 1.0),
    ],
)
def test_rows_of_public_values_are_those_that_one_process_chooses(cut, where, rows):
    frame, parts = cut[2]
    told = {"value": "hours", "seen": "levels", "where": where, **TOLD}
    found = sps.mean(frame, "hours", 0, 80, "budget", seen="levels", delta=1e-6, where=where)
    local = sdp.release(sdp.Mean(0, 80), TABLE, **told)
    assert (found.n, found.where) == (rows.sum(), local.where)
    assert found.guarantee.epsilon == local.guarantee.epsilon
    seeded = sps.release(sdp.Mean(0, 80), frame, **told, random=sdp.simulation_random(3))
    alone = sps.simulate_partitions(sdp.Mean(0, 80), parts, **told, random=sdp.simulation_random(3))
    assert seeded.estimate == alone.estimate


def test_a_value_that_no_row_has_is_refused(frame):
    told = {"value": "hours", "seen": "levels", **TOLD}
    with pytest.raises(InvalidInput, match="has vote = maybe, as `where` asks; name one of the column's"):
        sps.release(sdp.Mean(0, 80), frame, **told, where={"vote": "maybe"})
    with pytest.raises(InvalidInput, match="no column 'town' in the dataframe"):
        sps.release(sdp.Mean(0, 80), frame, **told, where={"town": "Oslo"})


def test_large_answers_are_merged_by_tasks_first(cut, monkeypatch):
    """To the same numbers."""
    frame, parts = cut[7]
    told = {"value": "hours", "seen": "levels", **TOLD}
    monkeypatch.setattr(engine, "LARGE_STATE", 0)
    found = sps.release(sdp.Quantiles(0, 80, bins=16), frame, **told, random=sdp.simulation_random(3))
    alone = sps.simulate_partitions(sdp.Quantiles(0, 80, bins=16), parts, **told, random=sdp.simulation_random(3))
    np.testing.assert_array_equal(found.estimate, alone.estimate)


def test_a_secure_release_is_near_the_truth(frame):
    """The interval misses with probability 1e-6; two releases agree with probability below 1e-6."""
    one, two = (sps.frequency(frame, "vote", VOTE.categories, 2.0, seen="reports", delta=1e-6) for _ in range(2))
    low, high = one.confidence_interval(1 - 1e-6, simultaneous=True)
    truth = [(TABLE["vote"] == word).mean() for word in VOTE.categories]
    assert ((low < truth) & (truth < high)).all()
    assert one.private
    assert (one.estimate != two.estimate).any()


def test_the_wrappers_ask_the_same_questions(frame):
    options = {"seen": "reports", "delta": 1e-6, "random": sdp.simulation_random(1)}
    assert sps.mean(frame, "hours", 0, 80, 1.0, **options).question == sdp.Mean(0, 80)
    assert sps.histogram(frame, "hours", 0, 80, 4, 1.0, **options).estimate.shape == (4,)
    assert sps.quantiles(frame, "hours", 0, 80, [0.5], 1.0, bins=16, **options).estimate.shape == (1,)
    assert sps.variance(frame, "hours", 0, 80, 1.0, **options).guarantee.epsilon.upper > 0


# ------------------------------------------------------------------ the order of the passes


def read_columns(plan):
    """What the scans of a physical plan read."""
    import re

    return re.findall(r"ReadSchema: struct<([^>]*)>", plan)


def test_budgets_are_read_alone_and_the_guarantee_comes_before_the_records(spark, tmp_path, monkeypatch):
    """Seen in the physical plans of all that is evaluated, in order."""
    frame_of(spark, TABLE).write.parquet(str(tmp_path / "people"))
    stored = spark.read.parquet(str(tmp_path / "people"))
    order = []
    gathered, certify = engine.gathered, flow.certify

    def spied(evaluated):
        plan = evaluated._jdf.queryExecution().executedPlan().toString()
        order.extend(("read", columns) for columns in read_columns(plan))
        return gathered(evaluated)

    monkeypatch.setattr(engine, "gathered", spied)
    monkeypatch.setattr(flow, "certify", lambda *a, **k: order.append(("certify",)) or certify(*a, **k))
    sps.release(VOTE, stored, value="vote", person="who", seen="reports", **TOLD)
    assert [tuple(sorted(what.split(","))) for _, *rest in order for what in rest or ["certify"]] == [
        ("budget:double",),
        ("who:string",),
        ("certify",),
        ("budget:double", "vote:string", "who:string"),  # whose row it is, once more
    ]


class Certified(Exception):
    """The guarantee has been asked for."""


def test_records_that_cannot_be_evaluated_are_not_touched_before_the_guarantee(frame, monkeypatch):
    failing = frame.withColumn("vote", F.col("vote").cast("double"))

    def certify(*given, **named):
        raise Certified

    with monkeypatch.context() as patch:
        patch.setattr(flow, "certify", certify)
        with pytest.raises(Certified):
            sps.release(sdp.Mean(0, 1), failing, value="vote", seen="reports", **TOLD)
    with pytest.raises(InvalidInput, match=r"^Spark could not evaluate the dataframe \(CAST_INVALID_INPUT\)") as caught:
        sps.release(sdp.Mean(0, 1), failing, value="vote", seen="reports", **TOLD)
    assert caught.value.__context__ is None


def test_only_sums_leave_the_tasks(frame, monkeypatch):
    seen = []
    gathered = engine.gathered
    monkeypatch.setattr(engine, "gathered", lambda asked: seen.append(gathered(asked)) or seen[-1])
    sps.release(VOTE, frame, value="vote", seen="levels", **TOLD)
    answers = seen[-1]
    assert answers.columns == ["version", "n", "bad", "state"]
    assert answers.height == 2
    assert answers["state"].bin.size().max() < 2000


# ------------------------------------------------------------------ what is refused

NOT_FIXED = {
    "rand": lambda f: f.filter(F.rand() < 0.5),
    "seeded rand": lambda f: f.filter(F.rand(3) < 0.5),
    "rand elsewhere": lambda f: f.join(f.sample(0.5).select("who"), "who"),
    "in a subquery": lambda f: f.filter(F.expr("who in (select cast(id as string) from range(9) limit 3)")),
    "sample": lambda f: f.sample(0.5),
    "limit": lambda f: f.limit(3000),
    "ordered limit": lambda f: f.orderBy("hours").limit(3000),
    "offset": lambda f: f.offset(10),
    "one row of each": lambda f: f.dropDuplicates(["vote"]),
    "cached": lambda f: f.withColumn("r", F.rand()).cache(),
    "order": lambda f: f.orderBy(F.rand()),
}


@pytest.mark.parametrize("name", NOT_FIXED)
def test_plans_that_may_change_are_refused(frame, name):
    with pytest.raises(InvalidInput, match=r"may have other rows each time .* write the rows to a table first"):
        sps.release(VOTE, NOT_FIXED[name](frame), value="vote", seen="reports", **TOLD)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t[:-1],
        lambda t: pl.concat([t, t[:1]]),
        lambda t: t.with_columns(budget=pl.when(pl.col("who") == "5").then(3.0).otherwise("budget")),
        lambda t: t.with_columns(budget=pl.lit(1.0)),
        lambda t: pl.concat([t] * 2),
    ],
    ids=["one row less", "one row more", "a new budget", "other counts", "all twice"],
)
@pytest.mark.parametrize("seen", ["reports", "levels"])
def test_rows_that_change_between_the_passes_are_found_out(spark, tmp_path, monkeypatch, change, seen):
    """Behind a function that Spark takes for a fixed one."""
    file = tmp_path / "people.parquet"
    TABLE.write_parquet(file)
    certify = flow.certify

    def rewritten(*given, **named):
        change(TABLE).write_parquet(file)
        return certify(*given, **named)

    monkeypatch.setattr(flow, "certify", rewritten)
    frame = spark.range(1).mapInArrow(reader_of(str(file)), "vote string, budget double")
    with pytest.raises(InvalidInput, match="had other rows or budgets when the records were read"):
        sps.release(VOTE, frame, value="vote", seen=seen, **TOLD)


def test_files_that_are_gone_are_one_line(spark, tmp_path, monkeypatch):
    where = str(tmp_path / "people")
    frame_of(spark, TABLE).write.parquet(where)
    stored = spark.read.parquet(where)
    frame_of(spark, TABLE).write.mode("overwrite").parquet(where)
    with pytest.raises(InvalidInput, match=r"^Spark could not evaluate the dataframe \(\w+\); [^\n]+$"):
        sps.release(VOTE, stored, value="vote", seen="reports", **TOLD)


BAD = {
    "no column": ({"value": "votes"}, "no column 'votes' in the dataframe; did you mean 'vote'?"),
    "no budget column": ({"budgets": "bugdet"}, "did you mean 'budget'?"),
    "no seen": ({"seen": None}, "there are 3 different budgets, so `seen` is needed"),
    "large delta": ({"delta": 0.1}, "`delta` must be below 1/n"),
    "unlisted": ({"question": sdp.Frequency(["yes", "no"])}, "rows hold in vote a record that is missing, outside"),
    "outside": ({"question": sdp.Mean(0, 40), "value": "hours"}, "rows hold in hours a record that is missing"),
    "no numbers": ({"question": sdp.Mean(0, 40), "value": "vote"}, "rows hold in vote a record that is missing"),
    "one row each": ({"person": "who", "rows_per_person": "one"}, "`rows_per_person = 'one'` is not offered on Spark"),
    "people without a name": ({"person": "copy"}, "rows, or says NA or the like, so nobody knows whose rows they are"),
    "words as budgets": ({"budgets": "copy"}, "at least 6,000 rows hold no local budget in copy"),
    "words not explained": ({"budgets": "copy", "consent": {"yes": 1.0}}, "say with `consent` what every word stands"),
    "all without": ({"budgets": 0.0}, "every epsilon0 is 0"),
    "a bad source": ({"random": np.random.default_rng(1)}, "random must come from secure_random"),
    "mechanism": ({"mechanism": "magic"}, "mechanism must be one of"),
    "two columns": ({"value": ("vote", "hours")}, "value must name 1 column for a frequency"),
    "an array": ({"value": "list"}, "column 'list' holds List(Float64), not one word a row"),
    "a date as number": ({"question": sdp.Mean(0, 40), "value": "day"}, "column 'day' holds Date, not numbers"),
    "the asked column": ({"budgets": "vote"}, "`epsilon0` makes the column 'vote' public, and it is the"),
    "an array as person": ({"person": "list"}, "column 'list' holds List(Float64), not one word a row"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_without_a_cell(frame, name):
    given, message = BAD[name]
    wide = frame.withColumn("list", F.array("hours")).withColumn("day", F.lit("2020-01-01").cast("date"))
    wide = wide.withColumn("copy", F.col("vote"))
    told = {"question": VOTE, "value": "vote", "seen": "reports", **TOLD, **given}
    with pytest.raises(InvalidInput) as caught:
        sps.release(told.pop("question"), wide, **told)
    text = str(caught.value)
    assert message in text
    assert "\n" not in text
    assert not any(f"{hours:.3f}" in text for hours in TABLE["hours"])
    assert "none" not in text.replace("none of the categories", "").replace("gives nobody", "").split()


HOLES = [
    # value, budget, person; how many rows are refused, and on which side
    (None, 1.0, "1", "record"),
    ("", 1.0, "1", "record"),
    ("  ", 1.0, "1", "record"),
    ("maybe", 1.0, "1", "record"),
    ("YES", 1.0, "1", "record"),
    (" yes ", 1.0, "1", None),
    ("yes", None, "1", "budget"),
    ("yes", float("nan"), "1", "budget"),
    ("yes", -1.0, "1", "budget"),
    ("yes", float("inf"), "1", "budget"),
    ("yes", 701.0, "1", "budget"),
    ("yes", -0.0, "1", None),
    ("yes", 1.0, None, "person"),
    ("yes", 1.0, "", "person"),
    ("yes", 1.0, "\u2003", "person"),
    ("yes", 1.0, " x0", "rows"),
]


@pytest.mark.parametrize(("value", "budget", "person", "refused"), HOLES)
def test_the_same_rows_are_refused_as_in_one_process(spark, value, budget, person, refused):
    rows = [(("yes", "no")[i % 2], (0.0, 1.0)[i % 2], f"x{i}") for i in range(200)] + [(value, budget, person)]
    table = pl.DataFrame(rows, schema={"vote": pl.String, "budget": pl.Float64, "who": pl.String}, orient="row")
    told = {"value": "vote", "person": "who", "seen": "reports", **TOLD}
    if refused is None:
        found = sps.release(sdp.Frequency(["yes", "no"]), frame_of(spark, table), **told)
        local = sdp.release(sdp.Frequency(["yes", "no"]), table, **told)
        assert (found.n, found.fingerprint) == (local.n, local.fingerprint)
        return
    with pytest.raises(InvalidInput):
        sdp.release(sdp.Frequency(["yes", "no"]), table, **told)
    expected = {
        "record": "at least 1 rows hold in vote",
        "budget": "at least 1 rows hold no local budget in budget",
        "person": "who is empty in 1 rows",
        "rows": "1 of 200 people owns several rows",
    }
    with pytest.raises(InvalidInput) as caught:
        sps.release(sdp.Frequency(["yes", "no"]), frame_of(spark, table), **told)
    assert expected[refused] in str(caught.value)


def test_no_rows_no_spark_and_no_fixed_rows(spark, frame):
    for given in ("budget", 1.0):
        with pytest.raises(InvalidInput, match="the dataframe has no rows"):
            sps.release(VOTE, frame.filter("false"), value="vote", budgets=given, seen="reports", delta=1e-6)
    with pytest.raises(InvalidInput, match="reads a dataframe of Spark; got dict"):
        sps.release(VOTE, {"vote": ["yes"]}, value="vote", budgets=1.0, seen="reports", delta=1e-6)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(InvalidInput, match="a stream has no end"):
        sps.release(VOTE, stream, value="value", budgets=1.0, seen="reports", delta=1e-6)


# ------------------------------------------------------------------ what else one process offers


def test_gaps_words_people_and_columns_with_strange_names(spark):
    """Missing records and budgets that are explained, consent in words, rows of people, names that need quotes."""
    table = pl.DataFrame(
        {
            "the.vote `x`": ["yes", None, "maybe", " no"] * 100,
            "consent": ["strict", "strict", None, None, "open", " open ", "open", "open"] * 50,
            "who": [str(i // 2) for i in range(400)],
        }
    )
    frame = frame_of(spark, table).repartition(2, "who")
    parts = [pl.DataFrame(frame.filter(f"spark_partition_id() = {place}").toArrow()) for place in range(2)]
    told = {
        "value": "the.vote `x`", "budgets": "consent", "consent": {"strict": 0.5, "open": 2.0}, "missing_budget": 0.0,
        "missing_as": "no", "other": "no", "person": "who", "rows_per_person": 2, "seen": "reports", "delta": 1e-6,
    }  # fmt: skip
    question = sdp.Frequency(["yes", "no"])
    found = sps.release(question, frame, **told, random=sdp.simulation_random(2))
    alone = sps.simulate_partitions(question, parts, **told, random=sdp.simulation_random(2))
    np.testing.assert_array_equal(found.estimate, alone.estimate)
    assert (found.n, found.rows, found.unit, found.uninformative) == (200, 400, "people", 100)
    assert found.guarantee.setting.group_size == 2
    assert found.guarantee.epsilon == alone.guarantee.epsilon
    assert found.fingerprint == alone.fingerprint


def test_rows_of_one_person_have_one_budget(spark):
    table = pl.DataFrame({"vote": ["yes"] * 400, "budget": [1.0] * 399 + [0.5], "who": [i // 2 for i in range(400)]})
    told = {"value": "vote", "person": "who", "rows_per_person": 2, "seen": "levels", "budgets": "budget"}
    with pytest.raises(InvalidInput, match="1 of 200 people have rows of different budgets") as refused:
        sps.release(VOTE, frame_of(spark, table), **told, delta=1e-4)
    with pytest.raises(InvalidInput) as alone:
        sdp.release(VOTE, table, **told, delta=1e-4)
    assert str(alone.value) == f"{refused.value}, or use one row of each person with `rows_per_person = 'one'`"


def test_local_delta_comes_from_a_column_too(frame):
    who = sdp.RowBudgets("budget", delta0="small")
    small = frame.withColumn("small", F.lit(1e-7))
    found = sps.release(sdp.Mean(0, 80), small, value="hours", budgets=who, seen="reports", delta=1e-6,
                        mechanism="gaussian")  # fmt: skip
    assert found.guarantee.setting.budgets.deltas.tolist() == [1e-7] * 3


def test_a_release_is_entered_in_a_ledger_and_refused_without_room(frame, tmp_path):
    told = {"value": "hours", "seen": "reports", **TOLD, "ledger": tmp_path / "people.ledger"}
    sdp.Ledger(told["ledger"], make=True).close()
    sps.release(sdp.Mean(0, 80), frame, **told)
    with sdp.Ledger(tmp_path / "people.ledger") as ledger:
        assert len(ledger.entries()) == 1
    with pytest.raises(InvalidInput, match="no `ledger` takes it"):
        sps.release(sdp.Mean(0, 80), frame, **told, random=sdp.simulation_random(1))


def test_several_questions_in_one_pass(cut):
    frame, _ = cut[2]
    asked = [sdp.Ask(VOTE, "vote"), sdp.Ask(sdp.Mean(0, 80), "hours")]
    found = sps.release_together(asked, frame, **TOLD, seen="levels")
    local = sdp.release_together(asked, TABLE, **TOLD, seen="levels")
    assert found.epsilon == local.epsilon
    low, high = found.releases[1].confidence_interval(1 - 1e-6)
    assert low < TABLE["hours"].mean() < high
