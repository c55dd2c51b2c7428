"""--dummies and --find dummies."""

from __future__ import annotations

import pytest

import shuffledp as sdp

CROWD = ("amplify", "--level", "0.5:16", "--level", "1:11", "--level", "4:3", "--seen", "reports", "--delta", "1e-6")
FIND = ("calibrate", "--find", "dummies", "--delta", "1e-6")
PROMISES = ("--promise", "0.5=0.1", "--promise", "1=0.25", "--promise", "4=1")


@pytest.mark.costly
def test_floor_and_crowd_in_json(run):
    answer = run(*CROWD, "--randomizer", "krr:5", "--dummies", "172", "--json").json
    assert answer["setting"]["dummies"] == {"law": "uniform", "count": 172}
    for level in answer["levels"]:
        assert level["epsilon"]["upper"] == min(level["floor"]["upper"], level["crowd"]["upper"])
        known = sdp.floor_profile(sdp.RandomizedResponse(5), level["epsilon0"], sdp.Uniform(172)).epsilon(1e-6)
        assert level["floor"]["lower"] <= known.lower <= known.upper <= level["floor"]["upper"]
        assert level["floor"]["upper"] - level["floor"]["lower"] <= known.upper - known.lower + 2e-10
    assert answer["floor"]["upper"] == max(level["floor"]["upper"] for level in answer["levels"])
    assert answer["crowd"]["upper"] == max(level["crowd"]["upper"] for level in answer["levels"])
    assert "an honest shuffler keeps epsilon at 0.9976" in " ".join(answer["notes"])
    without = run(*CROWD, "--randomizer", "krr:5", "--json").json
    assert not {"floor", "crowd"} & (without.keys() | without["levels"][0].keys())
    assert "dummies" not in without["setting"]


def test_words_for_people_and_the_page(run, tmp_path):
    page = tmp_path / "page.html"
    said = run(*CROWD, "--randomizer", "krr:5", "--dummies", "172", "--report", str(page)).out
    assert "172 dummies" in said
    assert all(word in said for word in ("alone", "crowd", "0.9976", "0.9247"))
    text = page.read_text(encoding="utf-8")
    assert "an honest shuffler keeps epsilon at 0.9976" in text
    assert "dummies of the shuffler alone" in text


def test_a_laplace_law_has_a_ratio_of_its_own(run):
    arguments = ("amplify", "--epsilon0", "1", "--n", "100", "--randomizer", "rr", "--delta", "1e-6", "--json")
    found = run(*arguments, "--dummies", "laplace:60").json
    law = sdp.DiscreteLaplace.reaching(60, 1e-6)
    assert found["setting"]["dummies"] == {"law": "laplace", "count": 60, "ratio": law.ratio}
    assert run(*arguments, "--dummies", "laplace:60:1.5").json["setting"]["dummies"]["ratio"] == 1.5


@pytest.mark.costly
def test_the_fewest_dummies(run):
    found = run(*FIND, *PROMISES, "--randomizer", "krr:5", "--json").json
    assert found["dummies"] == [{"law": "uniform", "count": 172}]
    assert [level["promise"] for level in found["levels"]] == [0.1, 0.25, 1.0]
    assert all(level["floor"]["upper"] <= level["promise"] for level in found["levels"])
    single = run(*FIND, "--epsilon0", "4", "--target-epsilon", "1", "--randomizer", "rr", "--dummies", "laplace")
    assert "--dummies laplace:26:" in single.out
    found = run(
        *FIND, "--epsilon0", "4", "--target-epsilon", "1", "--randomizer", "rr", "--dummies", "laplace", "--json"
    )
    assert found.json["dummies"][0]["law"] == "laplace"
    assert found.json["dummies"][0]["count"] == 26
    several = run(*FIND, *PROMISES, "--randomizer", "krr:5,one-bit", "--json").json
    assert [each["law"] for each in several["dummies"]] == ["uniform", "uniform"]
    twice = run(*FIND, *PROMISES, "--randomizer", "krr:5", "--questions", "2", "--json").json
    assert [each["count"] for each in twice["dummies"]] == [346, 346]
    window = run(*FIND, *PROMISES, "--randomizer", "rr", "--reports-per-user", "2")
    assert "1,262 dummies" in window.out
    assert "2 reports of one person" in window.out


@pytest.mark.costly("arguments14-no number of dummies up to 100000")
@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((*CROWD, "--randomizer", "krr:5", "--dummies", "x"), "must be M, laplace:M, laplace:M:RATIO, ball:EPSILON"),
        ((*CROWD, "--randomizer", "krr:5", "--dummies", "laplace"), "--dummies must be M, laplace:M"),
        ((*CROWD, "--randomizer", "krr:5", "--dummies", "laplace:60"), "take uniform or ball dummies"),
        ((*CROWD, "--randomizer", "rr", "--dummies", "laplace:1"), "take more of them"),
        ((*CROWD, "--randomizer", "rr", "--dummies", "-3"), "from 0 to 10,000,000; got -3"),
        ((*CROWD, "--dummies", "4"), "got 'any'"),
        (FIND, "--find dummies needs --promise E=EPSILON"),
        ((*FIND, *PROMISES, "--epsilon0", "1"), "--find dummies needs --promise E=EPSILON"),
        ((*FIND, *PROMISES, "--n", "5", "--randomizer", "rr"), "--n does not belong to --find dummies"),
        ((*FIND, *PROMISES, "--rounds", "2", "--randomizer", "rr"), "--rounds does not belong to --find dummies"),
        ((*FIND, *PROMISES), "got 'any'"),
        ((*FIND, "--promise", "0.5", "--randomizer", "rr"), "write it like 0.5=0.1"),
        ((*FIND, "--promise", "0.5=x", "--randomizer", "rr"), "is not E=EPSILON"),
        ((*FIND, *PROMISES, "--randomizer", "rr", "--dummies", "60"), "uniform or laplace or ball or normal"),
        ((*FIND, "--promise", "0.5=1e-5", "--randomizer", "krr:5"), "no number of dummies up to 100000"),
        (("calibrate", "--delta", "1e-6", "--n", "9"), "--target-epsilon E is needed"),
        (("calibrate", "--delta", "1e-6", "--n", "9", "--target-epsilon", "1", *PROMISES), "belong to --find dummies"),
    ],
)  # fmt: skip
def test_refusals(run, arguments, what):
    assert what in run(*arguments).error


def test_ball_dummies_are_found_spelled_and_certified(run):
    options = ("--randomizer", "krr:5", "--delta", "1e-6", "--json")
    told = run("calibrate", "--find", "dummies", "--dummies", "ball", "--promise", "4=1", *options).json["dummies"]
    (law,) = told
    assert law["law"] == "ball"
    assert law["columns"] == ["choice:5"]
    assert law["count"] == 5 * law["centre"][0]
    assert sum(map(int, law["radius"])) == 2**64
    (found,) = sdp.calibrate_dummies({4.0: 1.0}, sdp.RandomizedResponse(5), 1e-6, law="ball").dummies
    for spelled in (found.name, "ball:1"):
        answer = run("amplify", "--epsilon0", "4", "--n", "50", "--dummies", spelled, *options).json
        assert 0.9 < answer["epsilon"]["upper"] <= 1.0 + 1e-8
        assert (answer["setting"]["dummies"] == law) == (spelled == found.name)
    said = run("calibrate", "--find", "dummies", "--dummies", "ball", "--promise", "4=1", "--randomizer", "krr:5,rr",
               "--delta", "1e-6").out  # fmt: skip
    assert "95, 44 dummies" in said


@pytest.mark.parametrize("wrong", ["ball:", "ball:1:2", "ball:x:3:3", "ball:1:3.5:2", "ball:1:2:3:4"])
def test_a_misspelled_ball_law_is_refused(run, wrong):
    said = run("amplify", "--epsilon0", "4", "--n", "9", "--delta", "1e-6", "--randomizer", "krr:5", "--dummies", wrong)
    assert "ball:EPSILON, ball:RATE:RADIUS:CENTRE or normal:SPREAD:CENTRE" in said.error
    any_randomizer = run("amplify", "--epsilon0", "4", "--n", "9", "--delta", "1e-6", "--dummies", "ball:1")
    assert "name it with --randomizer krr:K" in any_randomizer.error


def test_normal_dummies_are_found_spelled_and_certified(run):
    options = ("--randomizer", "krr:5", "--delta", "1e-6", "--json")
    told = run("calibrate", "--find", "dummies", "--dummies", "normal", "--promise", "4=1", *options).json["dummies"]
    (law,) = told
    assert law["law"] == "normal"
    assert law["count"] == 5 * law["centre"]
    spelled = f"normal:{law['spread']!r}:{law['centre']}"
    answer = run("amplify", "--epsilon0", "4", "--n", "50", "--dummies", spelled, *options).json
    assert 0.9 < answer["epsilon"]["upper"] <= 1.0
    assert answer["setting"]["dummies"] == law
