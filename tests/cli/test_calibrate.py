"""`calibrate`: four inverse questions, each answered on the safe side and as far as possible."""

from __future__ import annotations

import html
import os
import re

import polars as pl
import pytest

TARGET = ("calibrate", "--target-epsilon", "0.5", "--delta", "1e-6")
MIX = ("--level", "0.3:900", "--level", "1:100", "--seen", "levels")


def upper(run, *arguments) -> float:
    return run("amplify", *arguments, "--delta", "1e-6", "--json").json["epsilon"]["upper"]


def levels(found) -> list[str]:
    return [part for level in found["levels"] for part in ("--level", f"{level['epsilon0']!r}:{level['count']}")]


@pytest.mark.costly
@pytest.mark.parametrize("find", [(), ("--find", "epsilon0")])
def test_the_largest_budget(run, find):
    found = run(*TARGET, "--n", "10000", *find, "--json").json
    assert set(found) == {"epsilon0", "certified_epsilon", "unshuffled"}
    assert found["certified_epsilon"] <= 0.5
    assert upper(run, "--epsilon0", found["epsilon0"], "--n", "10000") <= 0.5
    assert upper(run, "--epsilon0", found["epsilon0"] * 1.01, "--n", "10000") > 0.5


@pytest.mark.costly("find0")
@pytest.mark.parametrize("find", [(), ("--find", "n")])
def test_the_fewest_users(run, find):
    found = run(*TARGET, "--epsilon0", "2", *find, "--json").json
    assert set(found) == {"n", "certified_epsilon", "unshuffled"}
    assert found["certified_epsilon"] <= 0.5
    assert upper(run, "--epsilon0", "2", "--n", found["n"]) <= 0.5
    assert upper(run, "--epsilon0", "2", "--n", found["n"] - 1) > 0.5


@pytest.mark.costly
def test_the_fewest_users_of_a_mix(run):
    found = run(*TARGET, *MIX, "--find", "n", "--json").json
    assert set(found) == {"n", "certified_epsilon", "levels", "levels_total", "unshuffled"}
    assert sum(level["count"] for level in found["levels"]) == found["n"]
    assert upper(run, *levels(found), "--seen", "levels") <= 0.5
    text = " ".join(run(*TARGET, *MIX, "--find", "n").out.split())
    assert f"{found['n']:,} users, mixed as stated from 2 budget levels, are the fewest" in text
    assert f"Users at each local budget: {found['levels'][0]['count']} at 0.3," in text


@pytest.mark.slow
def test_the_most_rounds(run):
    found = run(*TARGET, "--epsilon0", "1", "--n", "300", "--find", "rounds", "--json").json
    assert set(found) == {"rounds", "certified_epsilon", "unshuffled"}
    assert found["rounds"] > 1
    assert found["certified_epsilon"] <= 0.5
    assert upper(run, "--epsilon0", "1", "--n", "300", "--rounds", found["rounds"] + 1) > 0.5


@pytest.mark.costly
def test_the_largest_factor(run):
    found = run(*TARGET, *MIX, "--find", "scale", "--json").json
    assert set(found) == {"scale", "certified_epsilon", "levels", "levels_total", "unshuffled"}
    assert [level["epsilon0"] for level in found["levels"]] == pytest.approx([0.3 * found["scale"], found["scale"]])
    assert upper(run, *levels(found), "--seen", "levels") <= 0.5
    more = ("--level", f"{0.3 * found['scale'] * 1.01!r}:900", "--level", f"{found['scale'] * 1.01!r}:100")
    assert upper(run, *more, "--seen", "levels") > 0.5
    assert "on every epsilon0 is the largest for 1,000 users" in run(*TARGET, *MIX, "--find", "scale").out


@pytest.mark.parametrize(
    ("asked", "key", "answer", "said"),
    [
        (
            ("--find", "rounds", "--epsilon0", "0", "--n", "10", "--target-epsilon", "0.5"),
            "rounds",
            10**12,
            "At least 1,000,000,000,000 rounds (no larger number is tried) are possible for 10 users with central",
        ),
        (
            ("--n", "1", "--target-epsilon", "1e6"),
            "epsilon0",
            700.0,
            "epsilon0 = 700, the largest that is tried, is possible for 1 user with central epsilon at most",
        ),
        (
            ("--find", "scale", "--level", "1:3", "--level", "7:4", "--seen", "levels", "--target-epsilon", "1e6"),
            "scale",
            700.0,
            "A factor of 700 on every epsilon0, which brings all of them to 700, the largest that is tried,",
        ),
    ],
)
def test_the_end_of_a_search_is_said_as_an_end_and_not_as_the_answer(run, asked, key, answer, said):
    """0.2.0 said "1,000,000 rounds are the most" where 5,000,000 are certified."""
    found = run("calibrate", *asked, "--delta", "1e-6", "--json").json
    assert (found[key], found["capped"]) == (answer, True)
    assert said in " ".join(run("calibrate", *asked, "--delta", "1e-6").out.split())


def test_the_situation_counts_and_is_told(run, tmp_path):
    alone = run(*TARGET, "--epsilon0", "1", "--json").json["n"]
    situation = ("--colluding", "30", "--missing", "0.2")
    result = run(*TARGET, "--epsilon0", "1", *situation, "--report", "page.html")
    users = int(re.match(r"([0-9,]+) users are the fewest", result.out)[1].replace(",", ""))
    assert users > alone + 30
    text = " ".join(result.out.split())
    assert "The guarantee holds even if 30 other users collude with the attacker, and even if 20% of the users" in text
    page = " ".join(re.sub(r"<[^>]+>", " ", html.unescape((tmp_path / "page.html").read_text())).split())
    assert f"{users:,} users are the fewest at local budget 1" in page
    assert "Asked for: central epsilon at most 0.5 at delta = 1e-6" in page
    assert "This holds even if 30 other users collude" in page


def test_budgets_from_a_file(run, tmp_path):
    pl.DataFrame({"e": [0.3] * 900 + [1.0] * 100}).write_csv(tmp_path / "b.csv")
    by_file = run(*TARGET, "--budgets", "b.csv", "--column", "e", "--seen", "levels", "--find", "n", "--json").json
    assert by_file == run(*TARGET, *MIX, "--find", "n", "--json").json


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (),
            r"calibrate needs --n N \(to find epsilon0\), --epsilon0 E \(to find n\), or a whole population and --find",
        ),
        (
            ("--n", "9", "--epsilon0", "1"),
            "the population is complete, so say what to look for: --find rounds or --find",
        ),
        (MIX, "so say what to look for: --find n, --find rounds or --find scale"),
        ((*MIX, "--n", "5"), "give the population in exactly one way"),
        (("--n", "9", "--find", "users"), "--find must be one of epsilon0, n, rounds, scale; got 'users'"),
        (("--n", "9", "--find", "n"), "--find n needs --epsilon0 E without --n, or --level or --budgets"),
        (("--epsilon0", "1", "--find", "epsilon0"), "--find epsilon0 needs --n N, without --epsilon0, --level or"),
        ((*MIX, "--find", "epsilon0"), "--find epsilon0 needs --n N, without --epsilon0, --level or --budgets"),
        (("--n", "9", "--find", "rounds"), "--find rounds needs a whole population: --epsilon0 E --n N, or --level"),
        (("--epsilon0", "1", "--find", "scale"), "--find scale needs a whole population: --epsilon0 E --n N"),
        ((*MIX, "--find", "rounds", "--rounds", "3"), "--find rounds looks for the number of rounds; leave --rounds 3"),
        ((*MIX[:-2], "--find", "scale"), "--seen is needed, because there are 2 budget levels"),
        (
            ("--n", "9", "--column", "e"),
            "--column and --delta-column name columns of --budgets FILE; give the file too",
        ),
        (("--n", "0"), "--n must be at least 1; got 0"),
        (("--n", "9", "--colluding", "9"), "colluding must be a whole number from 0 to 8; got 9"),
        (("--epsilon0", "-1"), "epsilon0 must be .*; got -1"),
        (("--n", "9", "--randomizer", "gaussian"), "gaussian needs a delta0 above 0 .* and --find scale, or --find n"),
        (("--n", "9", "--randomizer", "magic"), "--randomizer 'magic' is unknown"),
        (("--epsilon0", "2", "--n", "3", "--find", "rounds"), "one round already has epsilon = .*, more than 0.5"),
    ],
)
def test_what_cannot_be_asked(run, tmp_path, arguments, message):
    assert re.search(message, run(*TARGET, *arguments, "--report", "page.html").error)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target-epsilon", "-1", "--delta", "1e-6"), "epsilon must .*; got -1"),
        (("--target-epsilon", "nan", "--delta", "1e-6"), "epsilon must .*; got nan"),
        (("--target-epsilon", "1", "--delta", "2"), "delta must .*; got 2"),
    ],
)
def test_targets_that_make_no_sense(run, arguments, message):
    assert re.search(message, run("calibrate", *arguments, "--n", "100").error)
