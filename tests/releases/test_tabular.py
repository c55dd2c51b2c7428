"""Tables in batches: the same estimate however they are cut, budgets from columns and from words."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.records.columns import Recode, category_codes
from shuffledp.records.people import RowBudgets
from shuffledp.releases.wrappers import estimate_frequency, estimate_mean, frequency_of_table, mean_of_table

N = 3000
CATEGORIES = ["a", "b", "c", "d"]
DELTA = 1e-6
TRUTHFUL = RowBudgets("consent", {"strict": 699.0, "open": 700.0})
"""Budgets at which k-ary randomized response reports the record itself."""


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    random = np.random.default_rng(7)
    return pl.DataFrame(
        {
            "answer": random.choice(CATEGORIES, N, p=[0.5, 0.3, 0.15, 0.05]),
            "hours": random.uniform(0.0, 99.0, N).round(1),
            "budget": random.choice([0.5, 1.0, 3.0], N),
            "consent": random.choice(["strict", "open"], N),
        }
    )


def truth(people: pl.DataFrame) -> np.ndarray:
    return people["answer"].value_counts().sort("answer")["count"].to_numpy() / N


@pytest.mark.costly(but=("oue-reports",))
@pytest.mark.one_in(3)
@pytest.mark.parametrize("seen", ["reports", "levels"])
@pytest.mark.parametrize("mechanism", ["krr", "oue", "hadamard", "subset"])
def test_frequencies_do_not_depend_on_the_batches(people, seen, mechanism):
    """Exact where reports are the records; else within six standard errors (2e-9 a number), and seeded."""
    for rows in (N, 700, 97):
        release = frequency_of_table(
            people, "answer", CATEGORIES, TRUTHFUL, seen=seen, delta=DELTA, mechanism=mechanism,
            random=simulation_random(1), rows=rows,
        )  # fmt: skip
        assert release.n == N
        allowed = 1e-12 if mechanism == "krr" else 6.0 * np.asarray(release.standard_error)
        assert (np.abs(np.asarray(release.estimate) - truth(people)) <= allowed).all()


@pytest.mark.costly
def test_one_batch_is_the_estimate_in_memory(people):
    """With the same words drawn, the table's estimate is that of the column, exactly."""
    release = frequency_of_table(
        people, "answer", CATEGORIES, "budget", seen="reports", delta=DELTA, random=simulation_random(3), rows=N
    )
    other = estimate_frequency(
        people["answer"], CATEGORIES, people["budget"].to_numpy(), seen="reports", delta=DELTA,
        random=simulation_random(3),
    )  # fmt: skip
    assert np.array_equal(np.asarray(release.estimate), np.asarray(other.estimate))
    assert np.array_equal(np.asarray(release.standard_error), np.asarray(other.standard_error))
    assert release.guarantee.epsilon == other.guarantee.epsilon
    means = [
        mean_of_table(
            people, "hours", 0, 99, "budget", seen="levels", delta=DELTA, random=simulation_random(3), rows=N
        ),
        estimate_mean(
            people["hours"], 0, 99, people["budget"].to_numpy(), seen="levels", delta=DELTA, random=simulation_random(3)
        ),
    ]
    assert means[0].estimate == pytest.approx(means[1].estimate, rel=1e-12)
    assert means[0].guarantee.epsilon == means[1].guarantee.epsilon


@pytest.mark.costly(but=("one-bit",))
@pytest.mark.parametrize("mechanism", ["one-bit", "laplace", "gaussian", "piecewise", "hybrid"])
def test_means_of_tables_are_near_the_truth(people, mechanism):
    """Within six standard errors: a false alarm in 1e8 runs, and the run is seeded."""
    asked = RowBudgets("budget", delta0=1e-8 if mechanism == "gaussian" else 0.0)
    release = mean_of_table(
        people, "hours", 0, 99, asked, seen="levels", delta=1e-4, mechanism=mechanism,
        random=simulation_random(5), rows=1000,
    )  # fmt: skip
    truth = float(people["hours"].mean())  # type: ignore[arg-type]
    assert abs(float(release.estimate) - truth) < 6 * float(release.standard_error)
    assert not release.private


def test_words_of_consent_are_budgets(people):
    words = {"strict": 0.5, "open": 2.0}
    release = frequency_of_table(people, "answer", CATEGORIES, RowBudgets("consent", words), seen="levels", delta=DELTA)
    assert release.guarantee.setting.budgets.epsilons.tolist() == [0.5, 2.0]
    assert release.private
    strict = int((people["consent"] == "strict").sum())
    assert release.guarantee.setting.budgets.counts.tolist() == [strict, N - strict]


@pytest.mark.costly
def test_files_of_both_kinds(people, tmp_path):
    people.write_csv(tmp_path / "people.csv")
    people.write_parquet(tmp_path / "people.parquet", row_group_size=100)
    found = [
        frequency_of_table(
            path, "answer", CATEGORIES, TRUTHFUL, seen="reports", delta=DELTA, random=simulation_random(2), rows=500
        ).estimate
        for path in (tmp_path / "people.csv", str(tmp_path / "people.parquet"))
    ]
    assert np.asarray(found) == pytest.approx(np.tile(truth(people), (2, 1)), abs=1e-12)


@pytest.mark.parametrize(
    ("epsilon0", "seen", "message"),
    [
        ("budget", None, r"^there are 3 different budgets, so `seen` is needed; choose one of reports"),
        ("budget", "sum", r"^seen must be one of reports, levels; got 'sum'$"),
        (
            RowBudgets("consent", {"strict": 1.0}),
            "reports",
            r"^consent in row \d+ is a word that `consent` does not explain; say there what it stands for$",
        ),
        (0.0, None, r"^every epsilon0 is 0, so no report carries information"),
        (-1.0, None, r"^epsilon0 must be a finite number of nats from 0 to 700; got -1"),
        ("nothing", None, r"^no column 'nothing' in the table"),
    ],
)
def test_bad_budgets(people, epsilon0, seen, message):
    with pytest.raises(InvalidInput, match=message):
        frequency_of_table(people, "answer", CATEGORIES, epsilon0, seen=seen, delta=DELTA)


def test_a_bad_record_in_a_late_batch_is_named_by_its_row(people):
    worse = people.with_columns(
        pl.when(pl.int_range(N) == 2500).then(pl.lit("e")).otherwise("answer").alias("answer"),
        pl.when(pl.int_range(N) == 2600).then(1e6).otherwise("hours").alias("hours"),
    )
    with pytest.raises(InvalidInput, match=r"^the record in row 2501 is none of the categories"):
        frequency_of_table(worse, "answer", CATEGORIES, 1.0, seen=None, delta=DELTA, rows=100)
    with pytest.raises(InvalidInput, match=r"^the value in row 2601 is outside \[0.0, 99.0\]; say `clip`"):
        mean_of_table(worse, "hours", 0, 99, 1.0, seen=None, delta=DELTA, rows=100)


def test_consent_needs_words_and_a_column():
    with pytest.raises(InvalidInput, match=r"^consent needs the name of a column as epsilon0; got 1.0$"):
        RowBudgets(1.0, {"strict": 1.0})
    with pytest.raises(InvalidInput, match=r"^consent names no word"):
        RowBudgets("consent", {})


def test_budgets_of_a_list_are_refused():
    """It was a TypeError of float()."""
    with pytest.raises(InvalidInput, match="got list: put the budgets into a column"):
        RowBudgets([1.0, 2.0])


def test_words_are_found_with_white_space_and_in_other_spellings():
    """As they stand first, then without white space, then in their one spelling; blanks are missing, whatever names."""
    written = ["yes", " yes", "True", " TRUE ", "1.0", "", "  ", "no\t"]
    column = pl.Series(written)
    codes = category_codes(column, ("yes", "true", 1, "no", "?"), recode=Recode(missing_as="?"))
    assert codes.tolist() == [0, 0, 1, 1, 2, 4, 4, 3]
    blank = category_codes(column, ("yes", "true", 1, "no", " ", ""), recode=Recode(missing_as="no"))
    assert blank.tolist() == [0, 0, 1, 1, 2, 3, 3, 3]
    with pytest.raises(InvalidInput, match=r"row 3 is none of the categories"):
        category_codes(pl.Series([" yes", "no", " maybe"]), ("yes", "no"))


def test_an_unexplained_word_of_consent_is_named_and_not_a_padded_one(people):
    padded = people.with_columns(pl.col("consent") + " ")
    padded[2000, "consent"] = "perhaps "
    with pytest.raises(InvalidInput, match="consent in row 2001 is a word that `consent` does not explain"):
        frequency_of_table(padded, "answer", CATEGORIES, TRUTHFUL, seen="reports", delta=DELTA)


def test_levels_drawn_by_themselves_keep_their_budgets():
    """Rows enough for each level to be drawn at once; at 0 nobody tells anything, at 700 everybody the truth."""
    level = np.arange(30_000) % 3
    table = {"vote": np.where(level == 2, "b", "a"), "budget": np.array([0.0, 0.0, 700.0])[level]}
    release = sdp.release(
        sdp.Frequency(["a", "b"]), table, value="vote", budgets="budget", mechanism="krr", seen="levels", delta=1e-6,
        random=simulation_random(5),
    )  # fmt: skip
    assert release.n == 30_000
    assert release.estimate.tolist() == pytest.approx([0.0, 1.0], abs=1e-9)
    assert release.uninformative == 20_000


@pytest.mark.parametrize("rare", [0, 1, 77_777])
def test_few_budgets_among_many_rows_are_all_counted(rare):
    """A budget that a sample of the rows does not show is counted like the others; -0.0 is 0."""
    budgets = np.where(np.arange(100_000) % 4 == 0, -0.0, 2.0)
    budgets[rare] = 1.5
    counted = Budgets.of(budgets)
    levels, counts = np.unique(np.abs(budgets), return_counts=True)
    assert counted.epsilons.tolist() == levels.tolist()
    assert counted.counts.tolist() == counts.tolist()
    assert not np.signbit(counted.epsilons).any()
