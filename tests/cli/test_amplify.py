"""`amplify`: every randomizer, every situation, all bounds, whole curves."""

from __future__ import annotations

import html
import math
import os
import re
from dataclasses import replace

import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.accounting import bounds, privacy_profile

PLAIN = ("amplify", "--epsilon0", "1", "--n", "300", "--delta", "1e-5")
AT_HALF = ("--epsilon0", "0.5", "--n", "300", "--delta", "1e-5")
SITUATION = ("--rounds", "2", "--colluding", "5", "--missing", "0.1", "--group-size", "2", "--reports-per-user", "2")
PUBLISHED = (
    "erlingsson19", "balle19-hoeffding", "balle19-bennett", "fmt22-closed", "fmt23-closed", "girgis21",
    "girgis21-lower", "liu23",
)  # fmt: skip


def plain_setting(**situation) -> sdp.Setting:
    return sdp.Setting(sdp.Budgets((1.0,), (300,)), "any", seen="reports", neighboring="replace-one", **situation)


@pytest.mark.costly(but=("krr:5",))
@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "name", ["any", "rr", "krr:5", "sue:4", "oue:4", "olh:8", "hadamard:5", "subset:6", "one-bit", "laplace"]
)
def test_every_randomizer_of_a_pure_budget(run, name):
    answer = run(*PLAIN, "--randomizer", name, "--json").json
    assert answer["setting"]["randomizer"] == name
    assert 0.0 <= answer["epsilon"]["lower"] <= answer["epsilon"]["upper"] < 1.0


@pytest.mark.costly
def test_gaussian_noise_needs_a_delta0_and_is_amplified(run):
    arguments = ("amplify", "--delta", "1e-5", "--randomizer", "gaussian")
    assert "write --level E,DELTA0:COUNT" in run(*arguments, "--epsilon0", "1", "--n", "300").error
    answer = run(*arguments, "--level", "1,1e-6:300", "--json").json
    assert answer["setting"]["levels"] == [{"epsilon0": 1.0, "delta0": 1e-6, "count": 300}]
    assert 0.0 < answer["epsilon"]["upper"] < 0.9


def test_levels_with_delta0_of_any_randomizer(run):
    answer = run("amplify", "--level", "1,1e-14:10000", "--delta", "1e-6", "--json").json
    pure = run("amplify", "--level", "1:10000", "--delta", "1e-6", "--json").json
    assert pure["epsilon"]["upper"] <= answer["epsilon"]["upper"] < 0.1


def test_a_channel_matrix_from_a_file(run, tmp_path):
    truth = math.exp(1.0) / (1.0 + math.exp(1.0))
    (tmp_path / "m.csv").write_text(f"{truth!r},{1 - truth!r}\n{1 - truth!r},{truth!r}\n")
    assert "the channel's own epsilon is 1.0" in run("amplify", *AT_HALF, "--randomizer", "m.csv").error
    own = run("amplify", "--level", "1.000001:300", "--delta", "1e-5", "--randomizer", "m.csv", "--json").json
    known = run(*PLAIN, "--randomizer", "rr", "--json").json  # two outcomes: counted, as rr is
    assert own["setting"]["randomizer"] == "channel"
    assert own["epsilon"]["upper"] == pytest.approx(known["epsilon"]["upper"], rel=1e-3)


@pytest.mark.parametrize(
    ("content", "about"),
    [("", "m.csv"), ("0.5,0.5\n0.5\n", "m.csv"), ("0.5,x\n0.5,0.5\n", "m.csv"), ("0.9,0.2\n0.5,0.5\n", "1"),
     ("1.5,-0.5\n0.5,0.5\n", "-0.5")],
)  # fmt: skip
def test_files_that_are_no_channel_matrix(run, tmp_path, content, about):
    (tmp_path / "m.csv").write_text(content)
    assert about in run(*PLAIN, "--randomizer", "m.csv", "--report", "page.html").error
    assert os.listdir(tmp_path) == ["m.csv"]


def test_the_situation_is_part_of_the_question_and_of_the_promise(run, monkeypatch):
    asked = {"rounds": 2, "colluding": 5, "missing": 0.1, "group_size": 2, "reports_per_user": 2}
    known = sdp.certify(plain_setting(), 1e-5)
    monkeypatch.setattr("shuffledp.cli.calibrate.certify", lambda setting, *_, **__: replace(known, setting=setting))
    answer = run(*PLAIN, *SITUATION, "--json").json["setting"]
    assert {key: answer[key] for key in asked} == asked
    text = " ".join(run(*PLAIN, *SITUATION).out.split())
    for words in (
        "300 users, randomizer any, 2 rounds, 2 reports per user, groups of 2, 5 colluding, 10% missing",
        "about a group of 2 people",
        "over all 2 rounds together",
        "for all 2 reports that a user sends in a round",
        "even if 5 other users collude with the attacker",
        "even if 10% of the users stay away or send junk",
    ):
        assert words in text


@pytest.mark.costly(but=("option1",))
@pytest.mark.parametrize("option", list(zip(SITUATION[2::2], SITUATION[3::2], strict=True)))
def test_each_part_of_the_situation_costs_something(run, option):
    usual, harder = (run(*PLAIN, *more, "--json").json["epsilon"]["upper"] for more in ((), option))
    assert usual < harder


@pytest.mark.slow
def test_rounds_cost_something_and_more_if_they_can_be_linked(run):
    twice = ("--rounds", "2")
    once, fresh, linked = (run(*PLAIN, *more, "--json").json for more in ((), twice, (*twice, "--linked")))
    assert linked["setting"]["linked"] is True
    uppers = [answer["epsilon"]["upper"] for answer in (once, fresh, linked)]
    assert uppers == sorted(set(uppers))


def test_the_page_says_what_is_covered_too(run, tmp_path):
    run(*PLAIN, "--colluding", "5", "--missing", "0.1", "--report", "page.html")
    page = " ".join(re.sub(r"<[^>]+>", " ", html.unescape((tmp_path / "page.html").read_text())).split())
    assert "This holds even if 5 other users collude with the attacker, and even if 10% of the users stay away" in page
    assert "At most 5 other people show the analyzer which reports are theirs" in page
    assert "At most 10% of the people stay away or send junk" in page


def test_published_bounds_are_shown_only_when_asked_for(run):
    usual = {entry["key"]: entry for entry in run(*PLAIN, "--json").json["bounds"]}
    every = {entry["key"]: entry for entry in run(*PLAIN, "--bounds", "all", "--json").json["bounds"]}
    assert {"clones", "krr-exact", "gspa", "rdp-gdp", "rdp-renyi"} <= set(usual)
    assert "clones-2022" not in usual  # never below `clones`, and as costly
    assert every["clones-2022"]["epsilon"] > usual["clones"]["epsilon"]
    assert not set(PUBLISHED) & set(usual)
    assert set(every) == set(bounds)
    assert set(PUBLISHED) <= set(every)
    for key in PUBLISHED:
        assert every[key]["source"] in ("paper", "code", "second")
        assert "published" in every[key] or every[key]["kind"] == "asymptotic"
    assert "needs" in every["erlingsson19"]["refused"]
    for key in usual:
        assert usual[key] == every[key]


@pytest.mark.costly
def test_bounds_are_listed_only_where_asked_for(run):
    assert "What was consulted" not in run(*PLAIN).out
    assert "certified upper bound:" in run(*PLAIN, "--bounds", "certified").out
    assert run(*PLAIN, "--json").json == run(*PLAIN, "--bounds", "certified", "--json").json
    assert run(*PLAIN, "--bounds", "most").error == "--bounds must be certified or all; got 'most'"


@pytest.mark.costly
def test_the_head_says_over_how_many_rounds(run):
    assert ", over all 12 rounds (" in run(*PLAIN, "--rounds", 12).out.splitlines()[0]
    assert "round" not in run(*PLAIN).out.splitlines()[0]


def test_all_bounds_can_be_read_in_80_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(*PLAIN, "--bounds", "all").out.splitlines()
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for words in (
        "certified upper bound:",
        "witness (lower bound):",
        "published bound (its proof is not ours):",
        "asymptotic (not a guarantee):",
        "does not apply here:",
    ):
        assert words in text
    for key in bounds:
        assert re.search(rf"^ {key} ", text, re.MULTILINE), key


def test_the_curve_is_the_certified_profile(run, tmp_path):
    answer = run(*PLAIN, "--curve", "curve.csv", "--json").json
    curve = pl.read_csv(tmp_path / "curve.csv")
    assert curve.columns == ["epsilon", "delta_upper", "delta_lower"]
    assert curve.height >= 60
    profile = privacy_profile(plain_setting(), epsilon0=1.0)
    for epsilon, upper, lower in curve.gather_every(20).iter_rows():
        known = profile.delta(epsilon)
        assert (lower, upper) == (known.lower, known.upper)
    assert (curve["delta_lower"] <= curve["delta_upper"]).all()
    assert curve["delta_upper"].is_sorted(descending=True)
    published = curve.filter(pl.col("epsilon") == answer["epsilon"]["upper"])
    assert published.height == 1
    assert published["delta_upper"][0] <= 1e-5
    assert curve["delta_upper"][-1] <= 1e-11


@pytest.mark.costly
def test_the_renyi_curve(run, tmp_path):
    assert run(*PLAIN, "--renyi", "renyi.csv", "--curve", "curve.csv").out.count("Written: ") == 2
    curve = pl.read_csv(tmp_path / "renyi.csv")
    assert curve.columns == ["order", "lower", "upper"]
    assert {2.0, 8.0, 32.0} <= set(curve["order"])
    assert (curve["lower"] <= curve["upper"]).all()
    assert curve["upper"].is_sorted()  # in the order, as every Rényi divergence is
    # Theorem of van Erven and Harremoes: never above the largest log-likelihood ratio
    assert curve["upper"].max() <= 1.0 + 1e-9
    known = privacy_profile(plain_setting(), epsilon0=1.0).renyi(8.0)
    assert curve.filter(pl.col("order") == 8.0).row(0)[1:] == pytest.approx((known.lower, known.upper), rel=1e-3)


def test_curves_where_nothing_finite_can_be_promised(run, tmp_path):
    arguments = ("amplify", "--level", "1,0.1:50", "--delta", "1e-6")
    run(*arguments, "--curve", "curve.csv", "--json")
    curve = pl.read_csv(tmp_path / "curve.csv")
    assert (curve["delta_upper"] >= 0.1 * 0.9).all()


@pytest.mark.parametrize("option", ["--curve", "--renyi"])
def test_curves_that_cannot_be_written_are_refused_first(run, tmp_path, option):
    assert "cannot be written (No such file or directory)" in run(*PLAIN, option, "no/such.csv").error
    assert "another output of this command" in run(*PLAIN, option, "x.csv", "--levels-out", "x.csv").error
    assert os.listdir(tmp_path) == []


def test_an_epsilon_of_0_never_stands_without_the_delta_it_costs(run, tmp_path):
    """Version 0.1.0 said "Central epsilon at most 0 ... 1 times as likely" of 100 people at delta = 0.5."""
    result = run("amplify", "--epsilon0", "1", "--n", "100", "--delta", "0.5", "--report", "p.html")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "Central epsilon at most 0 at delta = 0.5" in result.out
    assert '<p class="headline">ε ≤ 0, <span class="whole">δ = 0.5</span> <span' in page
    for text in (" ".join(result.out.split()), " ".join(page.split())):
        assert "with a chance that differs by at most 0.5 from the chance it would have" in text
        assert "1 times as likely" not in text
        for sentence in re.split(r"(?<=[a-z.])[.:;] ", text):
            assert not re.search(r"(epsilon|ε) (at most|≤|<=|=) 0\b(?!\.)", sentence) or re.search("0[.]5", sentence)


@pytest.mark.parametrize(
    ("randomizer", "advised"), [("laplace", True), ("krr:10", True), ("rr", False), ("one-bit", False)]
)
def test_records_of_two_values_are_pointed_to_rr(run, randomizer, advised):
    asked = ("amplify", "--epsilon0", 1, "--n", 1000, "--delta", 1e-6, "--randomizer", randomizer)
    advice = f"Records of two values may be sent by rr, which errs less than {randomizer} at the same local budget."
    assert (advice in " ".join(run(*asked, "--records", 2).out.split())) == advised
    assert "may be sent by rr" not in run(*asked).out


@pytest.mark.costly
def test_two_valued_records_are_accounted_by_the_count_theorem(run):
    told = ("amplify", "--epsilon0", 1, "--n", 10_000, "--delta", 1e-6, "--json")
    stated, unknown = run(*told, "--records", 2).json, run(*told).json
    assert stated["setting"]["records"] == 2
    assert stated["epsilon"]["upper"] <= 0.03602 < unknown["epsilon"]["upper"]
    assert run(*told, "--records", 3).error == (
        "--records must be 2 (every record is one of two values), or left out; got 3"
    )
