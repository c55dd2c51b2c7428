"""Frequent items: what is found, what is not named, intervals of what the data chose, and exact tallies."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

import shuffledp as sdp
from shuffledp.questions.items import Counted, ItemsEstimate, ItemTally, most_tried, smallest_found
from shuffledp.questions.tally import tally_from_state
from shuffledp.randomizers.hashing import LeveledHashing
from shuffledp.randomizers.item_domain import BITS, ListedItems, WordItems
from shuffledp.randomizers.walsh import walsh_hadamard
from shuffledp.records.columns import Recode
from tests.questions.tallying import tallied, task_of

OPTIONS = {"value": "item", "seen": "reports", "delta": 1e-6}


def zipf(n, words, seed, power=1.1):
    """So many people, whose items are words with shares that fall with a power of their rank."""
    random = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, len(words) + 1) ** power
    return np.array(words)[random.choice(len(words), n, p=shares / shares.sum())]


def some_words(count, length, seed, letters="ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
    random = np.random.default_rng(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(random.choice(list(letters), random.integers(1, length + 1)))] = None
    return list(found)


def ask(items, question, seed, budgets=4.0, **options):
    data = {"item": items, **options.pop("columns", {})}
    return sdp.release(
        question, data, budgets=budgets, random=sdp.simulation_random(seed), **(OPTIONS | options)
    )  # fmt: skip


@pytest.mark.costly
def test_words_that_nobody_listed_are_found():
    """2,000 words among 60,000 people: all of the share that is said to be found, none that nobody has."""
    words = some_words(2000, 6, 1)
    items = zipf(60_000, words, 2)
    true = {word: count / items.size for word, count in Counter(items.tolist()).items()}
    found = ask(items, sdp.FrequentItems(max_length=6, alphabet="upper"), 3)
    assert found.finds < 0.02
    assert {word for word, share in true.items() if share >= found.finds} <= set(found.categories)
    assert set(found.categories) <= set(true)
    assert len(found.categories) >= 8
    low, high = found.confidence_interval()
    for word, share, below, above in zip(found.categories, found.estimate, low, high, strict=True):
        assert below <= true[word] <= above
        assert abs(share - true[word]) < 5 * found.standard_error.max()
    assert list(found.estimate) == sorted(found.estimate, reverse=True)
    assert not found.tried.full
    assert found.finds == pytest.approx(found.question.finds(found.guarantee.setting.budgets), rel=0.05)


def binomial_reports(domain, n, budget, shares, random):
    """Supports of all codes of a list, straight from the law: the sum of own and other supports."""
    family = LeveledHashing(domain.bits, 1, 8, domain)
    law = family.support_law(budget)
    own = random.multinomial(n, shares)
    return random.binomial(own, law.own) + random.binomial(n - own, law.other), Counted.of_equal(
        n, float(law.own - law.other), 8
    )


def test_nothing_is_named_that_nobody_has_but_with_the_chance_asked_for():
    """500 tries of 300 items that nobody has, at 20 %: at most 100 named in the mean; false alarm below 1e-4."""
    random = np.random.default_rng(5)
    level = Counted.of_equal(2000, 0.3, 8)
    counts = random.binomial(2000, 1 / 8, (500, 300))
    above = (counts - 2000 / 8) / level.total > level.exceeded(0.2 / 300)
    named = int(above.any(axis=1).sum())
    assert stats.binomtest(named, 500, 0.2, alternative="greater").pvalue > 1e-4
    assert named > 50  # not by naming nothing


@pytest.mark.parametrize(("n", "chance"), [(40, 1e-3), (2000, 1e-5), (10**6, 1e-7)])
def test_the_threshold_is_the_binomial_one(n, chance):
    """Against the tail summed from its largest terms on, in exact fractions for the small one."""
    level = Counted.of_equal(n, 0.25, 4)
    least = round(level.exceeded(chance) * level.total + n / 4 - 0.5)
    assert stats.binom.sf(least, n, 0.25) <= chance < stats.binom.sf(least - 1, n, 0.25)
    if n == 40:
        tail = [Fraction(math.comb(n, k) * 3 ** (n - k), 4**n) for k in range(n + 1)]
        assert sum(tail[least + 1 :]) <= Fraction(chance) < sum(tail[least:])


def test_bennetts_threshold_is_above_the_binomial_one():
    """Where coefficients differ the chance is bounded, not computed; here both are known."""
    for n, chance in ((100, 1e-2), (5000, 1e-6)):
        equal = Counted.of_equal(n, 0.4, 16)
        assert equal._replace(n=0).exceeded(chance) > equal.exceeded(chance)
        assert equal._replace(n=0).exceeded(chance, surely=False) == pytest.approx(equal.exceeded(chance), rel=0.1)


@pytest.mark.costly("False-25")
@pytest.mark.parametrize(("equal", "runs"), [(True, 200), (False, 25)])
def test_intervals_of_named_items_hold_together(equal, runs):
    """At 80 %, items chosen by the data: a miss in a fifth of the runs at most; false alarm below 1e-4."""
    random, shares = np.random.default_rng(7), np.array([0.1, 0.05, 0.04, 0.03, 0.03, *[0.75 / 25] * 25])
    domain, missed, named = ListedItems(shares.size), 0, 0
    for _ in range(runs):
        counts, level = binomial_reports(domain, 4000, 2.0, shares, random)
        level = level if equal else level._replace(n=0)
        value = (counts - 4000 / 8) / level.total
        places, error = tuple(range(shares.size)), level.error(np.clip(value, 0, 1))
        found = ItemsEstimate(value, error, level.step, (0.0, 1.0), 0, places, (level,), domain, 4000, False)
        chosen = found.named(0.05)
        low, high = found.at(chosen).confidence_interval(0.8)
        named += chosen.size
        missed += bool(((shares[chosen] < low) | (shares[chosen] > high)).any())
    assert named > runs
    assert stats.binomtest(missed, runs, 0.2, alternative="greater").pvalue > 1e-4


def test_the_share_said_to_be_found_is_found():
    """300 tries at one level: found at least as often as 95 %, less a false alarm of 1e-4."""
    level, domain = Counted.of_equal(3000, 0.3, 8), ListedItems(500)
    share = smallest_found(domain, [level], 0.05)
    counts = np.random.default_rng(9).binomial(3000, 1 / 8 + 0.3 * share, 300)
    found = int(np.sum((counts - 3000 / 8) / level.total > level.exceeded(0.05 / 500)))
    assert stats.binomtest(found, 300, 0.95, alternative="less").pvalue > 1e-4
    assert found < 300  # and not much larger than needed


def test_what_is_tried_is_what_can_be_tried():
    assert most_tried(ListedItems(7)) == [7]
    domain = WordItems("lower", 8)
    assert most_tried(domain)[0] == domain.block_values(4).size
    assert most_tried(domain)[-1] == domain.kept
    assert most_tried(domain)[1] == domain.kept * domain.block_values(2).size <= 1 << BITS


LISTED = LeveledHashing(3, 1, 8, ListedItems(6))
WORDS = sdp.FrequentItems(max_length=3, alphabet="upper")


@pytest.mark.parametrize("seen", ["reports", "levels"])
@pytest.mark.parametrize("many", [False, True])
def test_a_tally_is_the_same_in_any_order_and_any_pieces(seen, many):
    """As bytes; `many`: more budgets than are kept apart."""
    random = np.random.default_rng(1)
    epsilons = random.choice(np.linspace(0.5, 3.0, 90 if many else 3), 600)
    task = task_of(LISTED, epsilons, seen)
    reports = LISTED.randomize(random.integers(0, 6, 600), epsilons, sdp.simulation_random(2))
    (whole,) = tallied(task, reports, epsilons)
    order = random.permutation(600)
    pieces = np.split(order, [100, 350])
    parts = tallied(task, reports, epsilons, pieces)
    for part in reversed(parts[1:]):
        parts[0].merge(tally_from_state(task, part.state()))
    assert parts[0].state() == whole.state()
    assert isinstance(whole, ItemTally)
    assert np.array_equal(parts[0].estimate().value, whole.estimate().value)
    one = tallied(task, reports[order], epsilons[order])[0]
    assert one.state() == whole.state()


def test_tallies_of_other_domains_are_not_merged():
    task = task_of(LISTED, np.ones(10), "reports")
    other = task_of(LeveledHashing(3, 1, 8, ListedItems(6, "another list")), np.ones(10), "reports")
    with pytest.raises(sdp.InvalidInput, match="tallies of different tasks"):
        sdp.tally_for(task).merge(sdp.tally_for(other))
    with pytest.raises(sdp.InvalidInput, match=r"cannot be read from reports of .* without their domain"):
        sdp.tally_for(task_of(LeveledHashing(3, 1, 8), np.ones(10), "reports"))
    assert sdp.FrequentItems(["a", "b"]).domain != sdp.FrequentItems(["a", "c"]).domain


@pytest.mark.costly("population")
@pytest.mark.parametrize("weights", ["population", "precision"])
def test_levels_that_are_seen_are_weighted(weights):
    """Shares of a list at two budgets, each estimate within five standard errors; seeded."""
    n, names = 12_000, ["a", "b", "c", "d"]
    items = np.repeat(names, [n // 2, n // 4, n // 8, n // 8])
    columns = {"budget": np.tile([3.0, 4.0], n // 2)}
    found = ask(
        items, sdp.FrequentItems([*names, "e"]), 4, "budget", columns=columns, seen="levels", weights=weights
    )  # fmt: skip
    assert set(found.categories) == set(names)
    wanted = dict(zip(names, (0.5, 0.25, 0.125, 0.125), strict=True))
    for name, share, error in zip(found.categories, found.estimate, found.standard_error, strict=True):
        assert abs(share - wanted[name]) < 5 * error
    low, high = found.confidence_interval()
    assert np.all(low < found.estimate)
    assert np.all(found.estimate < high)
    withheld = ask(items, sdp.FrequentItems([*names, "e"]), 4, "budget", columns=columns)
    assert set(withheld.categories) == set(names)


def test_estimates_are_unbiased_and_errors_are_right():
    """200 draws of one item's cell at two levels of a word: mean and spread of the z-scores; false alarm 1e-4."""
    family = LeveledHashing(6, 2, 4)
    codes = np.repeat([[5, 9], [33, 40]], [150, 350], axis=0)
    scores = []
    for seed in range(200):
        reports = family.randomize(codes, 2.0, sdp.simulation_random(seed))
        total = np.zeros(2 << 6, dtype=np.int64)
        family.add_signs(reports, total)
        for level, code in ((0, 5), (1, 9)):
            own = int(np.sum(reports[:, 0] == level))
            law = family.support_law(2.0)
            known = Counted.of_equal(own, float(law.own - law.other), 4)
            value = walsh_hadamard(total[level << 6 :][: 1 << 6])[code] / (4 * known.total)
            scores.append((value - 0.3) / float(known.error(0.3)))
    assert abs(np.mean(scores)) < 3.9 / 20
    assert 0.85 < np.std(scores) < 1.15


# ------------------------------------------------------------------ what a record becomes


def codes_of(question, column, **recode):
    return question.records([column], question.settled(Recode(**recode)), 0)


def test_one_spelling_of_an_entry_has_one_code():
    """Text, arrays and polars columns; numbers and truth as text and as themselves (docs/how-to/tables.md)."""
    question = sdp.FrequentItems(max_length=5)
    wanted = codes_of(question, pl.Series(["true", "3", "AB", "3"]))
    assert wanted.shape == (4, question.domain.levels)
    assert np.array_equal(wanted[1], wanted[3])
    for column in (
        pl.Series(["True", "3.0", " AB ", "3"]),
        [True, 3, "AB", 3.0],
        np.array([True, 3, "AB", 3.0], dtype=object),
    ):
        assert np.array_equal(codes_of(question, column), wanted)


def test_records_outside_the_domain_are_mapped_or_refused():
    words = sdp.FrequentItems(max_length=3, alphabet="upper")
    column = pl.Series(["ORD", None, "LONG", "x", "A\0B", "ÄA"])
    mapped = codes_of(words, column, missing_as="NA", other="ZZZ")
    assert np.array_equal(mapped[1], codes_of(words, ["NA"])[0])
    assert np.array_equal(mapped[2:], np.repeat(codes_of(words, ["ZZZ"]), 4, axis=0))
    cut = sdp.FrequentItems(max_length=3, alphabet="upper", cut=True)
    assert np.array_equal(codes_of(cut, ["LONGER"]), codes_of(cut, ["LON"]))
    spaced = sdp.FrequentItems(max_length=4, cut=True)
    assert np.array_equal(codes_of(spaced, ["New York"]), codes_of(spaced, ["New"]))
    utf8 = sdp.FrequentItems(max_length=4, alphabet="utf-8", cut=True)
    assert np.array_equal(codes_of(utf8, ["abcé"]), codes_of(utf8, ["abc"]))  # no half characters
    listed = sdp.FrequentItems(["a", "b", 3])
    assert codes_of(listed, ["b", "zz", 3, "a"])[:, 0].tolist() == [1, 3, 2, 0]
    assert codes_of(listed, ["b", None], missing_as="nothing")[:, 0].tolist() == [1, 3]
    assert codes_of(listed, ["b", None, "?"], missing_as="a", other="b")[:, 0].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("column", "question", "options", "message"),
    [
        (["ORD", ""], WORDS, {}, "the record in row 2 is missing; name the item .* with `missing_as`"),
        (["ORD", None], sdp.FrequentItems(["a", "b"]), {"other": "a"}, "the record in row 2 is missing"),
        (["ORD", "LGAX"], WORDS, {}, "row 2 is longer than 3 characters; allow a larger `max_length`"),
        (["ord"], WORDS, {}, "row 1 is not a word of the alphabet 'upper'; name another"),
        ([["a"]], WORDS, {}, "not a word but of type list"),
        (["ORD"], WORDS, {"other": "long"}, "`other` must be an item of at most 3 characters of the alphabet 'upper'"),
        (["ORD"], WORDS, {"missing_as": "é"}, "`missing_as` must be an item"),
        (["ORD"], WORDS, {"clip": True}, "`clip` moves numbers into a range, and items have none; `cut` shortens"),
        (["a"], sdp.FrequentItems(["a", "b"]), {"other": "c"}, "`other` must be a candidate; got 'c'"),
    ],
)
def test_bad_records(column, question, options, message):
    with pytest.raises(sdp.InvalidInput, match=message):
        ask(column, question, 1, **options, delta=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sdp.FrequentItems(["a"]), "at least two categories"),
        (lambda: sdp.FrequentItems(["a", "a"]), "given twice"),
        (lambda: sdp.FrequentItems(["a", "b"], max_length=3), "`candidates` list the items, so `max_length`"),
        (lambda: sdp.FrequentItems(false_positives=1.0), "`false_positives` must be a chance"),
        (lambda: sdp.FrequentItems(false_positives="few"), "`false_positives` must be a chance"),
        (lambda: sdp.FrequentItems(max_length=1.5), "a whole `max_length`"),
    ],
)
def test_bad_questions(make, message):
    with pytest.raises(sdp.InvalidInput, match=message):
        make()


def test_a_question_is_a_value():
    question = pickle.loads(pickle.dumps(WORDS))
    assert np.array_equal(codes_of(question, ["ORD", "LAX"]), codes_of(WORDS, ["ORD", "LAX"]))
    listed = pickle.loads(pickle.dumps(sdp.FrequentItems(["a", "b"])))
    assert codes_of(listed, ["b", "none of the candidates"])[:, 0].tolist() == [1, 2]
    assert sdp.FrequentItems(max_length=3) == sdp.FrequentItems(max_length=3)
    assert len({sdp.FrequentItems(["a", "b"]), sdp.FrequentItems(("a", "b"))}) == 1


# ------------------------------------------------------------------ releases


def test_a_release_tells_its_items():
    items = ["A"] * 700 + ["B"] * 300
    found = ask(items, sdp.FrequentItems(["A", "B", "C"]), 1, 5.0)
    assert found.categories == ("A", "B")
    assert found.to_frame(amounts=True)["label"].to_list() == ["A", "B"]
    assert found.counts().records == 1000
    assert "frequent-items: 0." in repr(found)
    assert found.confidence_interval(simultaneous=False)[0].tolist() == found.confidence_interval()[0].tolist()
    assert found.threshold < found.estimate.min()
    nothing = ask(items, sdp.FrequentItems(["C", "D"]), 1, 5.0)
    assert nothing.categories == ()
    assert nothing.estimate.shape == nothing.to_frame()["estimate"].shape == (0,)
    assert "frequent-items" in repr(nothing)
    with pytest.raises(sdp.InvalidInput, match="only means have sums"):
        found.sum()


@pytest.mark.costly("words-1", "words-2", "words-5")
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("question", [WORDS, sdp.FrequentItems(["A", "B"])], ids=["words", "listed"])
def test_few_people_get_an_answer(question, n):
    """Levels may be without any report; nothing is named then, and nothing is said to be found."""
    columns = {"budget": np.resize([0.0, 1.0], n)} if n > 1 else {"budget": np.ones(n)}
    for seen in ("reports", "levels"):
        found = ask(np.array(["A"] * n), question, 1, "budget", columns=columns, seen=seen, delta=1e-3)
        assert found.categories == ()
        assert found.finds > 0.5
        assert [end.size for end in found.confidence_interval()] == [0, 0]


def test_the_fronts_ask_the_same():
    items = np.array(["ORD"] * 300 + ["ATL"] * 200)
    options = {"seen": "reports", "delta": 1e-6, "candidates": ["ATL", "LAX", "ORD"]}
    first = sdp.estimate_frequent_items(items, 4.0, random=sdp.simulation_random(3), **options)
    table = pl.DataFrame({"dest": items})
    second = sdp.frequent_items_of_table(table, "dest", 4.0, random=sdp.simulation_random(3), **options)
    third = sdp.FrequentItemsEstimator(["ATL", "LAX", "ORD"], delta=1e-6, random=sdp.simulation_random(3))
    assert first.categories == second.categories == third.fit(items, budgets=4.0).items_ == ("ORD", "ATL")
    assert np.array_equal(first.estimate, second.estimate)
    assert np.array_equal(first.estimate, third.frequencies_)


def test_people_with_several_rows_and_groups():
    people = np.repeat(np.arange(500), 2)
    columns = {"who": people, "side": np.repeat(["north", "south"], 500)}
    items = np.where(people < 250, "A", "B")
    question = sdp.FrequentItems(["A", "B"])
    one = ask(items, question, 1, 5.0, columns=columns, person="who", rows_per_person="one", delta=1e-4)
    assert (one.n, one.rows) == (500, 500)
    both = ask(items, question, 1, 5.0, columns=columns, person="who", rows_per_person=2, delta=1e-4)
    assert (both.n, both.rows, both.guarantee.setting.group_size) == (500, 1000, 2)
    with pytest.raises(sdp.InvalidInput, match="rows"):
        ask(items, question, 1, 5.0, columns=columns, person="who", delta=1e-4)
    found = sdp.release_by(
        question, {"item": items, **columns}, by="side", groups=["north", "south"], value="item", budgets=5.0,
        seen="reports", delta=1e-4, random=sdp.simulation_random(2),
    )  # fmt: skip
    assert [each.categories for each in found.releases.values()] == [("A",), ("B",)]
    assert found.to_frame()["label"].to_list() == ["A", "B"]
