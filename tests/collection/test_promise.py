"""Floors are certified, promises refused that they do not make true, and people told what is true for them."""

from __future__ import annotations

import json
import math
import re

import pytest

from shuffledp.accounting.profiles.composition import ComposedProfile
from shuffledp.collection.laws import CROWD_SLACK, FLOOR_SLACK, stated_crowd
from shuffledp.collection.promise import (
    CHORDS,
    LANGUAGES,
    check_crowd,
    check_floor,
    crowd_of,
    dummies_for,
    floor,
    floor_of,
    promises_data,
    reports_of,
    shown,
    what_is_promised,
)
from shuffledp.collection.task import Draft
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import few_digits_up
from tests.collection.tasks import LEVELS, choice, document, draft, number, parse, second

SYBILS = {
    # theory F: what is true of krr:5 with 172 dummies, levels .5/1/4, delta 1e-6
    "30 honest among 3,000 fakes": (0.094, 0.220, 0.925),
    "one victim with a private link among 241 fakes": (0.100, 0.234, 0.998),
}
WITHOUT_DUMMIES = (0.28, 0.64, 3.42)
"""True epsilon of 30 honest people among 3,000 fakes without dummies; an honest crowd's number is .024/.056/.22."""


@pytest.mark.machine
def test_the_floor_of_172_dummies_is_theory_fs():
    floors = floor_of(draft())
    assert [round(value, 4) for value in floors] == [0.0996, 0.2337, 0.9976]
    assert check_floor(draft()) == floors


def test_one_dummy_fewer_keeps_no_promise():
    with pytest.raises(InvalidInput, match="level 'open' promises epsilon 1, but"):
        check_floor(draft(choice(5, 171)))


def test_several_questions_are_one_promise():
    alone = floor_of(draft())
    both = floor_of(draft(choice(), choice()))
    assert all(2 * one > two > one for one, two in zip(alone, both, strict=True))
    with pytest.raises(InvalidInput, match="promises"):
        check_floor(draft(choice(), number()))


def test_open_admission_counts_two_reports_of_one_person():
    """Theory F: four times as many uniform dummies do for two reports what they do for one."""
    one, two = floor_of(draft()), floor_of(draft(choice(5, 688), admission="open"))
    assert all(0.9 * a < b < 1.02 * a for a, b in zip(one, two, strict=True))
    with pytest.raises(InvalidInput, match="promises"):
        check_floor(draft(admission="open"))


NEEDED = [(choice(5, 0), "uniform", 172), (number(dummies=0), "laplace", 60)]


def needed_dummies(draft):
    levels = [(level.epsilon0, level.promise) for level in draft.levels]
    return dummies_for(levels, [question.family for question in draft.questions], draft.delta, reports_of(draft))


@pytest.mark.parametrize(("question", "law", "most"), NEEDED)
def test_the_dummies_a_draft_needs_are_theory_fs(question, law, most):
    needed = needed_dummies(draft(question))
    assert [each.law for each in needed] == [law]
    assert most - 1 <= needed[0].count <= most


def test_a_crowd_is_smaller_and_never_above_the_floor():
    asked = draft()
    floors = floor_of(asked)
    crowds = crowd_of(asked, [5400, 3700, 900])
    assert all(crowd is not None and crowd < floor / 3 for crowd, floor in zip(crowds, floors, strict=True))
    assert crowd_of(asked, [1, 0, 0]) == (floors[0], None, None)
    few = crowd_of(asked, [5, 3, 1])
    assert all(crowd is not None and crowd <= floor for crowd, floor in zip(few, floors, strict=True))


def test_a_told_crowd_that_is_too_small_is_refused():
    whole = document()
    crowds = crowd_of(parse(whole), [540, 370, 90])
    for level, crowd in zip(whole["levels"], crowds, strict=True):
        level["crowd"] = crowd
    check_crowd(parse(whole))
    whole["levels"][1]["crowd"] *= 0.99
    with pytest.raises(InvalidInput, match="honest crowd"):
        check_crowd(parse(whole))


def told_elsewhere(share: float) -> Draft:
    """A draft whose crowds were certified on a machine that found them so much smaller."""
    whole = document()
    for level, crowd in zip(whole["levels"], crowd_of(parse(whole), [540, 370, 90]), strict=True):
        level["crowd"] = crowd * (1.0 - share)
    return parse(whole)


def test_a_crowd_of_another_machine_is_taken_up_to_the_slack_and_no_further():
    """0.2.0 refused the last digit: a draft of one machine could not be posted on another."""
    check_crowd(told_elsewhere(2.0**-52))
    check_crowd(told_elsewhere(0.9 * CROWD_SLACK))
    with pytest.raises(InvalidInput, match="honest crowd"):
        check_crowd(told_elsewhere(1.1 * CROWD_SLACK))


def promised_as_certified(share: float) -> Draft:
    """A draft that promises the floor as another machine has certified it, so much smaller."""
    whole = document()
    for level, certified in zip(whole["levels"], raw_floor(parse(whole)), strict=True):
        level["promise"], level["crowd"] = certified * (1.0 - share), 0.01
    return parse(whole)


def raw_floor(asked: Draft) -> tuple[float, ...]:
    parts = ([each.family for each in asked.questions], [each.dummies for each in asked.questions])
    return floor([level.draw for level in asked.levels], *parts, asked.delta)


def test_a_promise_of_another_machine_is_kept_up_to_the_slack_and_no_further():
    assert check_floor(promised_as_certified(0.0)) == raw_floor(draft())  # not rounded beyond what is promised
    check_floor(promised_as_certified(0.9 * FLOOR_SLACK))
    with pytest.raises(InvalidInput, match="promises"):
        check_floor(promised_as_certified(1.1 * FLOOR_SLACK))


def test_a_draft_leaves_room_for_machines_that_certify_a_little_more():
    """The promise is the floor of 172 dummies, to the last digit: so many would do on this machine alone."""
    whole = document()
    for level, certified in zip(whole["levels"], raw_floor(parse(whole)), strict=True):
        level["promise"], level["crowd"] = certified, 0.01
    (needed,) = needed_dummies(parse(whole))
    assert needed.count == 173
    assert needed_dummies(draft(operated_by=OTHER, levels=((0.5, 5, 0.5), (4.0, 5, 4.0))))[0].count == 0


def test_published_ends_are_rounded_outward_to_ten_digits():
    asked = draft()
    for told, certified in zip(floor_of(asked), raw_floor(asked), strict=True):
        assert certified < told < certified * (1.0 + 1e-9)
        assert told == float(f"{told:.10g}")
    for crowd in crowd_of(asked, [5400, 3700, 900]):
        assert crowd == float(f"{crowd:.10g}")


def test_a_number_is_never_rounded_inward():
    values = [math.nextafter(0.1, 1.0), 0.1, 1e-9, 2.0**-1074, 123456789.01234, math.pi, 0.0, math.inf]
    for value in values:
        assert value <= few_digits_up(value)
        assert value <= few_digits_up(value, 3)
    assert few_digits_up(math.nextafter(0.1, 1.0)) == 0.1000000001
    assert few_digits_up(0.1) == 0.1
    assert stated_crowd(0.25) > 0.25 * (1.0 + CROWD_SLACK)


ONE, OTHER = {"analyzer": "A", "shuffler": "B", "page": "C"}, {"analyzer": "A", "shuffler": " a ", "page": "C"}
TABLE = [
    # admission, operated by, level: headline, local, and the keys that must and must not be told
    ("codes", ONE, 0, 0.1, 0.5, {"headline_floor", "together", "codes", "codes_tell"}, {"headline_local", "open"}),
    ("codes", ONE, 2, 1.0, 4.0, {"headline_floor", "meaning_floor"}, {"one_hand_learns"}),
    ("open", ONE, 0, 0.1, 1.0, {"headline_floor", "open"}, {"codes", "codes_tell"}),
    ("codes", OTHER, 0, 0.5, 0.5, {"headline_local", "one_hand_learns"}, {"headline_floor", "crowd", "together"}),
    ("open", OTHER, 1, 2.0, 2.0, {"headline_local", "open"}, {"crowd", "headline_floor"}),
]


@pytest.mark.parametrize(("admission", "hands", "level", "headline", "local", "there", "absent"), TABLE)
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_person_is_told_the_number_that_holds(admission, hands, level, headline, local, there, absent, language):
    told = what_is_promised(draft(admission=admission, operated_by=hands), level, language)
    keys = {key for key, _ in told.sentences}
    assert there <= keys
    assert not absent & keys
    assert (told.headline, told.local) == (headline, local)
    assert shown(headline, language) in dict(told.sentences)[next(iter(keys & {"headline_floor", "headline_local"}))]
    if hands is OTHER:  # one hand: no central number is told anywhere
        promise = LEVELS[level][2]
        assert all(f" {shown(promise, language)} " not in text.replace(".", " ") for _, text in told.sentences)


@pytest.mark.parametrize("world", SYBILS)
@pytest.mark.parametrize("admission", ["codes", "open"])
def test_what_is_told_is_true_among_fakes_and_for_one_victim(world, admission):
    """The headline is not below what is true, and the only smaller number names the condition that fails there."""
    asked = draft(choice(5, 172 if admission == "codes" else 700), admission=admission, operated_by=ONE)
    for place, true in enumerate(SYBILS[world]):
        told = what_is_promised(asked, place)
        assert told.headline >= true - 0.0005
        texts = dict(told.sentences)
        assert "even if every other participant is fake" in texts["headline_floor"]
        assert "at least 95 % of the others are honest" in texts["crowd"]
        assert shown(told.crowd) in texts["crowd"]
        assert check_floor(asked)[place] <= told.headline


def test_without_dummies_the_same_promises_cannot_be_posted():
    bare = draft(choice(5, 0))
    assert all(floor > true for floor, true in zip(floor_of(bare), WITHOUT_DUMMIES, strict=True))
    with pytest.raises(InvalidInput, match="promises"):
        check_floor(bare)


@pytest.mark.parametrize("page", ["A", "B", "C"])
def test_a_page_of_the_same_hand_is_called_so(page):
    asked = draft(operated_by={"analyzer": "A", "shuffler": "B", "page": page})
    keys = [key for key, _ in what_is_promised(asked, 0, browser=True).sentences]
    assert ("page_same_hand" in keys, "page_other_hand" in keys) == (page != "C", page == "C")
    assert not any(key.startswith("page") for key, _ in what_is_promised(asked, 0).sentences)


def test_every_sentence_exists_in_every_language_with_the_same_numbers():
    data = promises_data()
    keys = [entry["key"] for entry in data["order"]]
    placeholders = [
        {key: set(re.findall(r"{(\w+)}", text)) for key, text in data["sentences"][name].items()} for name in LANGUAGES
    ]
    assert all(set(each) == set(keys) for each in placeholders)
    for key in keys:
        assert all(each[key] == placeholders[0][key] for each in placeholders), key


@pytest.mark.machine
def test_a_shown_number_is_never_too_small():
    for value in (0.1, 1 / 3, math.pi, 1e-7, 123456.7):
        assert float(shown(value)) >= value
        assert float(shown(value)) <= value * 1.01


def test_no_language_and_no_level_but_the_known_ones():
    for level, language in ((3, "en"), (-1, "en"), (0, "it")):
        with pytest.raises(InvalidInput):
            what_is_promised(draft(), level, language)


def test_the_numbers_of_a_person_with_several_questions_are_sums():
    told = what_is_promised(draft(choice(), choice()), 1)
    assert told.local == 2.0
    assert "2 questions" in dict(told.sentences)["several"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_no_random_task_is_accepted_with_a_floor_above_a_promise(seed):
    import random

    rng = random.Random(seed)
    questions = [rng.choice([choice(rng.randint(2, 8), rng.randint(0, 400)), number(dummies=rng.randint(0, 400))])]
    levels = sorted({round(rng.uniform(0.05, 6), 3) for _ in range(rng.randint(1, 4))})
    whole = document(*questions, levels=[(e, 10, round(rng.uniform(0.02, 1.5), 3)) for e in levels])
    asked = Draft.parse(json.dumps(whole).encode())
    floors = floor_of(asked)
    try:
        check_floor(asked)
    except InvalidInput:
        assert any(f > level.promise for f, level in zip(floors, asked.levels, strict=True))
    else:
        assert all(f <= level.promise for f, level in zip(floors, asked.levels, strict=True))
    assert all(f <= level.epsilon0 + 1e-9 for f, level in zip(floors, asked.levels, strict=True))


def test_a_crowd_that_hides_less_than_the_dummies_is_not_composed(monkeypatch):
    """A survey of 60 groups took 50 s: each crowd was certified to ten digits, and then the floor was stated."""
    few = parse(second(choice(3), choice(3), levels=((4.0, 100, 1.0),)))
    before = crowd_of(few, [70])
    assert before == floor_of(few)

    inverse = ComposedProfile._inverse

    def composed(profile, target):
        assert profile.chords > CHORDS, "the crowd's profile was composed of all its values"
        return inverse(profile, target)

    monkeypatch.setattr(ComposedProfile, "_inverse", composed)
    assert crowd_of(few, [71]) == before
    monkeypatch.undo()
    assert crowd_of(few, [20_000])[0] < 0.5 * before[0]


def test_a_crowd_that_seems_infinite_is_the_floor_also_for_two_reports():
    asked = parse(second(choice(3), choice(3), levels=((4.0, 100, 1.0),), admission="open"))
    assert crowd_of(asked, [30]) == floor_of(asked)
