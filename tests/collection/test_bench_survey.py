"""The benchmark of small surveys: every line has a draft whose promises are kept, and a wrong line is noticed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks import bench_survey
from benchmarks.bench_survey import LINES, PEOPLE, Found, Setting, line, orbits, settings, simulated, table, why

from shuffledp.ball import Column
from shuffledp.collection.laws import covers
from shuffledp.collection.promise import LARGEST_OFFERED, ONE_SHUFFLER, check_budgets, check_floor
from shuffledp.errors import InvalidInput

LIMIT = next(settings(["limit at 1"], [200]))


def test_every_line_has_a_half_width_for_every_number_of_people():
    every = list(settings())
    assert len(every) == len(LINES) * len(PEOPLE)
    assert len({(each.name, each.n) for each in every}) == len(every)
    assert all(0.0 < float(each.derived) <= 150.0 for each in every)


@pytest.mark.costly("best at 0.1", "uniform epsilon0 4 at 0.25")
@pytest.mark.parametrize("name", [name for name, *_ in LINES])
def test_every_line_has_a_draft_that_keeps_its_promises(name):
    """Budgets above 4 stop no line: another level is offered, one shuffler is accepted, and 8 is left behind."""
    largest = max(settings([name]), key=lambda each: (each.name == name, each.levels[-1][0]))
    draft = largest.draft
    floors = check_floor(draft)
    budgets = [level.epsilon0 for level in draft.levels]
    assert budgets[0] <= ONE_SHUFFLER
    assert budgets[-1] == largest.levels[-1][0]
    assert all(covers(level.promise, floor) for floor, level in zip(floors, draft.levels, strict=True))
    assert draft.levels[-1].promise == largest.promise
    counts = largest.counts(draft)
    assert sum(counts) == largest.n
    assert len(budgets) == 1 + (budgets[-1] > ONE_SHUFFLER) or largest.name.startswith("0.2.0")
    assert (draft.version == 1) == largest.uniform
    if budgets[-1] <= LARGEST_OFFERED:
        check_budgets(draft, accept_one_shuffler=True)
        if budgets[-1] > ONE_SHUFFLER:
            with pytest.raises(InvalidInput, match="accept_one_shuffler = true"):
                check_budgets(draft, accept_one_shuffler=False)
    else:
        with pytest.raises(InvalidInput, match="epsilon0 must be at most 8"):
            check_budgets(draft, accept_one_shuffler=True)


@pytest.mark.parametrize(
    ("name", "dummies"),
    [
        ("limit at 0.25", 310),
        ("limit at 0.5", 165),
        ("limit at 1", 85),
        ("limit at 2", 45),
        ("uniform epsilon0 4 at 1", 172),
        ("uniform epsilon0 4 at 0.25", 2005),
        ("0.2.0's default", 172),
        ("local noise alone at 1", 0),
    ],
)
def test_the_dummies_of_a_line_are_those_derived(name, dummies):
    """Accuracy.md, section 1."""
    assert (
        next(each for each in settings([name], [100]) if each.name == name).draft.questions[0].dummies.count == dummies
    )


@pytest.mark.costly
def test_simulated_collections_are_as_predicted():
    """100 collections: the mean length is known to .5 %, and coverage below .9 has a chance of less than 1e-6."""
    for setting in settings(["best at 1"], [200, 1000]):
        found = simulated(setting, 100, 5)
        assert found.half_width == pytest.approx(bench_survey.expected_half_width(setting), rel=0.01)
        assert 0.9 < found.coverage <= 1.0
        assert found.lowest <= found.coverage
        assert found == simulated(setting, 100, 5)


def test_levels_are_dealt_to_people_whatever_they_answer():
    (setting,) = settings(["0.2.0"], [200])
    assert setting.counts(setting.draft) == (108, 74, 18)
    found = simulated(setting, 40, 1)
    assert found.half_width == pytest.approx(bench_survey.expected_half_width(setting), rel=0.03)


GOOD = Found(0.0225, 0.951, 0.94)


@pytest.mark.parametrize(
    ("first", "again", "good"),
    [
        (GOOD, None, True),
        (GOOD._replace(coverage=0.93), GOOD, True),
        (GOOD._replace(coverage=0.93), GOOD._replace(coverage=0.939), False),
        (GOOD._replace(half_width=0.0233), None, False),
        (GOOD._replace(half_width=0.0217), None, False),
    ],
    ids=["good", "by chance", "covers too little", "too wide", "too narrow"],
)
def test_a_line_that_is_not_as_predicted_is_noticed(first, again, good, monkeypatch):
    told = [first, again]
    seeds: list[int] = []

    def simulate(setting: Setting, runs: int, seed: int) -> Found | None:
        seeds.append(seed)
        assert runs == (500 if len(seeds) == 1 else 5000)
        return told.pop(0)

    monkeypatch.setattr(bench_survey, "simulated", simulate)
    cells, found = line(LIMIT, 500, 26)
    assert found == good
    assert len(cells) == len(bench_survey.COLUMNS)
    assert len(set(seeds)) == len(seeds) == (2 if again else 1)


def test_a_planned_width_that_is_too_small_is_noticed(monkeypatch):
    monkeypatch.setattr(bench_survey, "simulated", lambda *asked: GOOD)
    assert line(LIMIT, 500, 26)[1]
    monkeypatch.setattr(bench_survey, "half_width", lambda *asked: 0.0217)
    assert not line(LIMIT, 500, 26)[1]


def test_the_exit_status_tells_of_a_wrong_line(monkeypatch, capsys):
    for part, found in (("certifying", None), ("closing", (0.1, 9, "ball")), ("variances", None)):
        monkeypatch.setattr(bench_survey, part, lambda *asked, found=found: found)
    monkeypatch.setattr("sys.argv", ["bench_survey.py", "--lines", "limit at 1", "--people", "200", "--runs", "3"])
    monkeypatch.setattr(bench_survey, "simulated", lambda *asked: GOOD)
    assert bench_survey.main() == 0
    monkeypatch.setattr(bench_survey, "simulated", lambda *asked: GOOD._replace(coverage=0.5))
    assert bench_survey.main() == 1
    told = capsys.readouterr()
    assert told.err == "limit at 1, 200 people: not as predicted\n"
    monkeypatch.setattr("sys.argv", ["bench_survey.py", "--lines", "limits"])
    with pytest.raises(SystemExit) as refused:
        bench_survey.main()
    assert refused.value.code == 2
    assert "no line has such a name" in capsys.readouterr().err
    assert table([LIMIT], 3, 1, markdown=True) == [LIMIT]
    assert capsys.readouterr().out.startswith("| line, at promise |")


@pytest.mark.costly
def test_a_line_is_the_same_alone_as_in_the_whole_table(monkeypatch):
    seeds: list[int] = []
    monkeypatch.setattr(bench_survey, "simulated", lambda setting, runs, seed: seeds.append(seed) or GOOD)
    for names in ([], ["limit at 1"]):
        table(list(settings(names, [200])), 3, 26)
    assert seeds[-1] in seeds[:-1]
    assert len(set(seeds)) == len(LINES)


@pytest.mark.costly
def test_a_difference_from_the_derived_number_has_a_reason():
    assert why(LIMIT, 2.34) == ""
    assert why(LIMIT, 2.5) == "exact"  # five people, not 4.6
    assert why(LIMIT, 1.85) is None
    assert why(LIMIT, 2.7) is None
    (default,) = settings(["0.2.0"], [5000])
    assert why(default, 5.01) == "worst"
    assert why(replace(default, derived="5.9"), 5.01) is None
    assert why(replace(LIMIT, derived="46"), 40.0) == "range"
    assert why(replace(LIMIT, derived="46"), 50.0) is None


@pytest.mark.parametrize(("k", "reach"), [(2, 5), (3, 6), (4, 4), (5, 3)])
def test_orbits_hold_every_vector_of_the_ball(k, reach):
    assert sum(orbits(k, reach).values()) == Column("choice", k).balls(reach)[-1]
    assert all(sum(z) == 0 for z in orbits(k, reach))


def test_half_of_the_people_give_the_first_answer(monkeypatch):
    seen: list[np.ndarray] = []
    real = bench_survey.estimate_question

    def estimate(draft, place, tallied):
        seen.append(tallied[0].reports)
        return real(draft, place, tallied)

    monkeypatch.setattr(bench_survey, "estimate_question", estimate)
    simulated(LIMIT, 2, 3)
    for reports in seen:
        counts = np.bincount(reports, minlength=5)
        assert counts.sum() == 200 + 85
        assert abs(counts - [117, 42, 42, 42, 42]).max() <= 17


def test_dummies_of_another_law_show_in_the_coverage(monkeypatch):
    real = bench_survey.drawn_columns

    def drawn(draft, random):
        for rows in real(draft, random):
            yield [1] * 4 + rows[4:]  # the first of the rows are those of the first answer

    assert simulated(LIMIT, 40, 3).lowest > 0.85
    monkeypatch.setattr(bench_survey, "drawn_columns", drawn)
    assert simulated(LIMIT, 40, 3).lowest < 0.8
