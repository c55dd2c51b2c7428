"""`mean --missing-as no-answer`: the mean and the share of those who answered, on every door."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp

ASK = ("mean", "p.csv", "--value", "hours", "--low", 0, "--high", 40, "--epsilon0", 2, "--delta", 1e-6)
AS = ("--missing-as", "no-answer")


@pytest.fixture(autouse=True)
def people(tmp_path):
    hours = np.where(np.arange(900) % 3 == 0, None, 30.0)
    pl.DataFrame({"hours": hours.tolist(), "side": ["north"] * 300 + ["south"] * 600}).write_csv(tmp_path / "p.csv")


def test_screen_object_and_page(run, tmp_path):
    seed = ("--simulation-seed", 1)
    out = " ".join(run(*ASK, *AS, *seed, "--report", "m.html").out.split())
    found = run(*ASK, *AS, *seed, "--json").json
    assert out.startswith("Mean among those who answered ")
    share = found["answered_share"]
    assert f"Of the people {share['estimate']:.2%} answered (95% interval" in out
    low, high = share["confidence_interval"]
    assert low < share["estimate"] < high
    assert found["mechanism"] == "krr:3"
    assert "sum" not in found
    assert "step" not in found
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "What is the mean of hours among those who answered?" in page
    assert "Of the people" in page


def test_each_group_has_its_share(run):
    groups = ("--by", "side", "--groups", "north,south", "--simulation-seed", 1)
    found = run(*ASK, *AS, *groups, "--json").json["groups"]
    shares = [group["answered_share"]["estimate"] for group in found]
    assert shares == pytest.approx([2 / 3, 2 / 3], abs=0.15)  # 300 and 600 people: 3 standard errors or more
    lines = [line for line in run(*ASK, *AS, *groups).out.splitlines() if "Of the people" in line]
    assert [line.partition(" answered")[0] for line in lines] == [
        f"{side}: Of the people {share:.2%}" for side, share in zip(("north", "south"), shares, strict=True)
    ]


def test_in_a_file_of_questions(run, tmp_path):
    (tmp_path / "q.toml").write_text(
        '[[questions]]\ncolumn = "hours"\nkind = "mean"\nlow = 0\nhigh = 40\nmissing_as = "no-answer"\n'
    )
    found = run(
        "release", "p.csv", "--questions", "q.toml", "--epsilon0", 2, "--delta", 1e-6, "--simulation-seed", 1, "--json"
    ).json
    assert found["releases"][0]["answered_share"]["estimate"] == pytest.approx(2 / 3, abs=0.2)


def test_a_mechanism_that_was_stated_is_not_replaced(run):
    """`--mechanism one-bit` ran krr:3, and said nothing."""
    told = "--mechanism one-bit has no report for no answer; leave it out"
    assert told in run(*ASK, *AS, "--mechanism", "one-bit").error
    assert "--mechanism must be one of one-bit, laplace" in run(*ASK, *AS, "--mechanism", "cauchy").error
    assert run(*ASK, *AS, "--mechanism", "krr", "--json").json["mechanism"].startswith("krr")
    with pytest.raises(sdp.InvalidInput, match="`mechanism` laplace has no report for no answer"):
        sdp.estimate_mean([1.0, None], 0, 4, 1.0, delta=1e-6, mechanism="laplace", missing_as="no-answer")


def test_what_is_refused(run, tmp_path):
    assert "--counts adds the sum over all records" in run(*ASK, *AS, "--counts").error
    assert "or no-answer for the mean among those who answered" in run(*ASK).error
    assert "--missing-as must be a number of the range [0.0, 40.0] or no-answer; got none" in run(
        *ASK, "--missing-as", "none"
    ).error  # fmt: skip
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(run(*ASK, *AS, "--json").out)
    assert "shares and means have a difference here; got Mean among those who answered" in run(
        "difference", "a.json", "b.json", "--delta", 1e-6
    ).error  # fmt: skip


def test_total_takes_it(run, tmp_path):
    (tmp_path / "a.json").write_text(run(*ASK, *AS, "--json").out)
    assert run("total", "a.json", "--delta", 1e-6, "--json").json["files"][0]["recomputed"]
