"""Tasks with normal dummies: what they promise, draw, and estimate, and how a law is chosen."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from shuffledp.collection import laws
from shuffledp.collection.analyzer import batch_draft, open_batch
from shuffledp.collection.asked import StatedDummies
from shuffledp.collection.batch import Batch
from shuffledp.collection.client import Client
from shuffledp.collection.closing import close_task
from shuffledp.collection.draw import Family
from shuffledp.collection.estimates import Tallied, dummies_along, dummies_between, estimate_question
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.laws import (
    MOST_LAW_WORK,
    NormalSearch,
    cells_of,
    drawn_columns,
    law_if_any,
    needed_ball,
    parts_of,
)
from shuffledp.collection.planner import Planned, Request, half_width_of, levels_up_to, offer_of, plan_collection
from shuffledp.collection.promise import check_floor, cost_of_answer, floor_of, promised_profiles
from shuffledp.collection.release import write_release
from shuffledp.collection.release_page import release_document
from shuffledp.collection.sealing import Opener
from shuffledp.collection.task import PostedTask
from shuffledp.collection.verify import verify
from shuffledp.dummies import StatedCells, normal_side
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from tests.collection.batches import analyzer_key
from tests.collection.service import TIMES, Time, codes_of, hash_of, store_at
from tests.collection.tasks import (
    ANALYST,
    IDENTITY,
    KINDS,
    SHUFFLER,
    choice,
    parse,
    posted_second,
    second,
)

USUAL = ((2.0, 60, 1.0), (4.0, 180, 1.0), (6.0, 60, 1.0))
FIVE, BIT = Family("krr:5", 5), Family("rr", 2)
SERVED = [name for name in KINDS if name != "number"]


def test_the_bytes_of_a_normal_law_are_frozen():
    """Spread 8, two questions: weights e^(-t^2/128) 2^60, as whole numbers in decimal text."""
    side = normal_side(8.0, 48)
    law = {"law": "normal", "weights": [str(each) for each in side], "centre": [48, 40]}
    whole = second(choice(5), choice(2), centre=1, levels=((4.0, 60, 6.0),)) | {"dummies": law}
    assert [side[0], side[1], side[-1]] == [1 << 60, 1143949398276903552, 17558971162]
    task = PostedTask.post(parse(whole), Opener(SHUFFLER).public, IDENTITY)
    assert [(d.law, d.count, len(d.draw)) for d in (q.dummies for q in task.draft.questions)] == [
        ("normal", 240, 49),
        ("normal", 80, 41),
    ]
    assert hashlib.sha256(b"|".join(each.encode() for each in law["weights"])).hexdigest()[:16] == "c6674ad38bb0d164"
    assert floor_of(task.draft) == (1.006842546,)


@pytest.mark.costly(but=("bit",))
@pytest.mark.parametrize("name", SERVED)
def test_every_kind_of_choice_is_promised_drawn_closed_opened_and_verified(name, tmp_path):
    task = posted_second(KINDS[name], normal=True, levels=USUAL, **TIMES, at_least=20)
    check_floor(task.draft)
    store = store_at(tmp_path, task)
    codes = codes_of(40)
    store.add_codes(task.digest, [hash_of(code) for code in codes])
    answers = task.draft.questions[0].answers
    sent = b"".join(Client(task).seal([place % answers], place % 3, code) for place, code in enumerate(codes))
    (verdicts,) = hold(store, [open_reports(sent, task, Opener(SHUFFLER))])
    assert verdicts == bytes(40)
    batch = Batch.parse(close_task(store, task.digest, clock=Time()).read_bytes())
    store.close()
    assert list(batch.manifest.rows) == [column.rows(40) for column in task.draft.columns]
    opened = open_batch(batch, analyzer_key(task))
    assert (opened.promise_kept, opened.junk_seen) == (True, 0)
    release = write_release(release_document(opened), task, ANALYST)
    assert verify(task, release, batch).promise_kept
    assert batch_draft(batch).spending.epsilon == max(floor_of(task.draft))


def test_a_promise_that_normal_dummies_do_not_keep_is_refused_by_everybody():
    whole = second(choice(5), choice(5), normal=True, levels=USUAL)
    for level in whole["levels"]:
        level["promise"] *= 0.97
    with pytest.raises(InvalidInput, match="only make"):
        check_floor(parse(whole))
    task = PostedTask.post(parse(whole), Opener(SHUFFLER).public, IDENTITY)
    with pytest.raises(InvalidInput, match="draft it again"):
        Client(task)


def test_one_answer_costs_less_than_all_and_the_ledger_enters_all():
    draft = parse(second(*(choice(5),) * 6, choice(2), normal=True, levels=USUAL))
    floors = check_floor(draft)
    for place in (0, 6):
        assert all(one < 0.55 * every for one, every in zip(cost_of_answer(draft, place), floors, strict=True))
    for profile, floor in zip(promised_profiles(draft), floors, strict=True):
        assert abs(profile.epsilon(draft.delta).upper / floor - 1.0) < 1e-6


def test_under_open_admission_two_answers_are_covered():
    one, two = (
        parse(second(choice(5), normal=True, levels=((4.0, 9, 1.0),), admission=admission))
        for admission in ("codes", "open")
    )
    assert two.columns[0].dummies.count > 1.8 * one.columns[0].dummies.count
    assert check_floor(two)[0] <= 1.0


def test_a_task_of_somebody_else_cannot_keep_a_client_busy():
    side = normal_side(150.0, 1024)
    whole = second(choice(5), choice(6), centre=1)
    whole["dummies"] = {"law": "normal", "weights": [str(each) for each in side], "centre": [1024, 1024]}
    with pytest.raises(InvalidInput, match=f"limit of {MOST_LAW_WORK:,}"):
        check_floor(parse(whole))


@pytest.mark.costly("sixty-four bits", "twenty of five")
@pytest.mark.parametrize(
    ("families", "promise", "law"),
    [((FIVE,), 1.0, "ball"), ((FIVE,) * 20, 1.0, "normal"), ((BIT,) * 20, 1.0, "ball"), ((BIT,) * 64, 1.0, "normal")],
    ids=["one of five", "twenty of five", "twenty bits", "sixty-four bits"],
)
def test_the_law_with_the_smaller_variance_is_taken(families, promise, law):
    """Accuracy.md, section 2: the ball up to about 50 yes/no questions, or 10 of five answers."""
    found = parts_of(law_if_any(((2.0, promise), (4.0, promise)), families, 1e-6))
    assert {each.law for each in found} == {law}


def test_a_number_beside_many_choices_keeps_the_ball():
    found = parts_of(law_if_any(((4.0, 2.0),), (*(FIVE,) * 12, Family("bits:5", 11)), 1e-6))
    assert {each.law for each in found} == {"ball"}


def test_where_no_ball_serves_a_normal_law_is_found(monkeypatch):
    def none(*asked: object) -> None:
        raise InvalidInput("no ball law")

    monkeypatch.setattr(laws, "needed_ball", none)
    laws.law_if_any.cache_clear()
    assert {each.law for each in parts_of(law_if_any(((4.0, 1.0),), (FIVE,), 1e-6))} == {"normal"}
    with pytest.raises(InvalidInput, match=r"no law with up to .* delta = 1e-06; ask fewer questions"):
        offer_of(Request((Planned("How much?", Family("bits:5", 11)),), 500, 1.0, 1e-6))
    laws.law_if_any.cache_clear()


def test_the_least_spread_is_found_from_far_away():
    search = NormalSearch((FIVE,) * 3, ((1.0, (1 << 63,) * 3),), 1e-6, 1)
    found = search.smallest_law()
    assert found is not None
    assert search.keeps(found)
    for factor in (0.5, 2.0):
        far = NormalSearch(search.families, search.levels, search.delta, 1)
        far.__dict__["spread"] = search.spread * factor  # the guess alone: what is found is the same
        assert far.smallest_law() == found


SMALL = [
    (3, 1.0, 4, (0, 1, 3)),
    (4, 0.8, 3, (0, 1, 2, 3)),
    (2, 1.5, 5, (0, 1)),
    (4, 0.8, 3, (1, 1, 0, 0)),
    (3, 1.0, 4, (1, -1, 0)),
]


@pytest.mark.parametrize(("k", "spread", "h", "values"), SMALL)
def test_the_law_along_values_is_that_of_enumeration(k, spread, h, values):
    dummies = StatedDummies("normal", k * h, normal_side(spread, h))
    cells, real = cells_of(Family(f"krr:{k}", k), dummies), Counter[int]()
    for counts in product(range(2 * h + 1), repeat=k):
        if sum(counts) == k * h:
            chance = float(np.prod([float(cells.weights[count]) for count in counts]))
            real[sum(v * (count - h) for v, count in zip(values, counts, strict=True))] += chance
    total, found = sum(real.values()), dummies_along(Family(f"krr:{k}", k), dummies, values)
    reach = len(found) // 2
    assert sum(found) == pytest.approx(1.0, abs=1e-7)
    for place, chance in enumerate(found):
        assert chance == pytest.approx(real[place - reach] / total, abs=1e-7)
    assert sum(chance for value, chance in real.items() if abs(value) > reach) < 1e-7 * total


def test_two_options_differ_by_independent_dummies():
    dummies = StatedDummies("normal", 12, normal_side(2.0, 6))
    law = np.array(StatedCells(2, dummies.draw).cell_law)
    found, values = np.array(dummies_between(dummies)), np.arange(-12, 13)
    assert found.sum() == pytest.approx(1.0)
    assert float(found @ values**2) == pytest.approx(2.0 * float(law @ (np.arange(13) - 6.0) ** 2))


def test_intervals_cover_and_estimates_are_unbiased():
    """Over 300 collections of 300 people: four standard errors, a false alarm of 6e-5 a share; coverage >= .94."""
    draft, n, runs = parse(second(*(choice(4),) * 2, normal=True, levels=((4.0, 300, 0.5),))), 300, 300
    random, rng = simulation_random(26), np.random.default_rng(5)
    family, off, covered = draft.questions[0].family.library(), np.zeros(4), 0
    true = np.array([0.5, 0.3, 0.2, 0.0])
    records = np.repeat(np.arange(4), (true * n).astype(int))
    for _ in range(runs):
        reports = family.randomize(rng.permutation(records), np.full(n, 4.0), random)
        dummies = next(drawn_columns(draft, random))
        found = estimate_question(draft, 0, [Tallied(np.concatenate((reports, np.array(dummies))), (n,))])
        low, high = found.confidence_interval(0.95)
        covered += int(((low <= true) & (true <= high)).sum())
        off += found.value - true
        error = found.standard_error
    assert np.all(np.abs(off / runs) < 4.0 * error / np.sqrt(runs))
    assert covered >= 0.94 * 4 * runs


def test_a_wish_that_only_a_middle_budget_reaches_is_met():
    """A number of 50 people: 6 gives 22.77 % of the range, 8 gives 23.11, and "22.9 cannot be had" was said."""
    number = Planned("age", Family("one-bit", 61), 0.0, 60.0, "number", answers=1)
    request = Request((number,), 50, 0.5, 1e-6, 0.229, accepted=True)
    plan = plan_collection(request)
    assert plan.offer.levels == (("usual", 4.0, 0), ("open", 6.0, 50))
    assert plan.choices[0].cannot == ""
    assert plan.offer.widest == pytest.approx(0.2277, abs=1e-4)
    own = (("usual", 4.0, 0), ("open", 6.5, 50))
    least = plan_collection(replace(request, wanted=None, levels=own, promises=(0.5, 0.5))).offer.widest
    assert least < plan.offer.widest
    missed = plan_collection(replace(request, wanted=least * (1.0 - 1e-6)))
    assert missed.offer.levels == own
    assert missed.choices[0].limit == least
    assert "gives less than ± 13.6. It takes" in missed.choices[0].cannot
    assert missed.choices[0].cannot.endswith("wanted = 23 can be had.")


def test_the_careful_level_is_kept_where_it_can_be():
    """Levels 2 and 2.5 reach 25.3 points, 2, 4 and 8 do not: so 2.5 alone was drafted, without a careful level."""
    five = Planned("lunch", Family("krr:5", 5))
    plan = plan_collection(Request((five,), 200, 0.1, 1e-6, 0.253, accepted=True))
    assert plan.offer.levels == levels_up_to(2.5, 200)
    assert plan.offer.widest <= 0.253
    law = needed_ball(((2.0, 0.1), (4.0, 0.1), (8.0, 0.1)), (five.family,), 1e-6)
    assert half_width_of(five, parts_of(law)[0], levels_up_to(8.0, 200)) > 0.253
