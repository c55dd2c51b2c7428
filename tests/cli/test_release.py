"""`release`: several questions in one pass, through the real command line and in Python."""

from __future__ import annotations

import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.ledger import Ledger
from shuffledp.releases import engine
from shuffledp.releases import run as flow

COLUMNS = {"hours": [20.0, 40.0] * 1000, "vote": ["yes", "no"] * 1000, "budget": [0.5, 0.5, 2.0, 2.0] * 500}
BOTH = ("release", "people.csv", "--ask", "mean hours 0 80", "--ask", "frequency vote yes,no", "--delta", 1e-6)


@pytest.fixture(autouse=True)
def people(tmp_path):
    pl.DataFrame(COLUMNS).write_csv(tmp_path / "people.csv")


def asked():
    return [sdp.Ask(sdp.Mean(0, 80), "hours"), sdp.Ask(sdp.Frequency(["yes", "no"]), "vote")]


@pytest.mark.costly
def test_the_joint_guarantee_is_the_composition(run):
    found = run(*BOTH, "--epsilon0", "budget", "--seen", "reports", "--json").json
    assert [entry["question"] for entry in found["releases"]] == ["mean", "frequency"]
    for level, epsilon0 in zip(found["together"]["levels"], (0.5, 2.0), strict=True):
        parts = []
        for randomizer in (sdp.OneBit(0, 80), sdp.RandomizedResponse(2)):
            budgets = sdp.Budgets([0.5, 2.0], [1000, 1000])
            setting = sdp.Setting(budgets, randomizer, seen="reports", neighboring="replace-one")
            parts.append((sdp.privacy_profile(setting, epsilon0=epsilon0), 1))
        exact = sdp.compose(parts).epsilon(1e-6)
        assert level["epsilon0"] == epsilon0
        assert exact.lower <= level["epsilon"]["upper"] <= exact.upper * 1.005
    worst = found["together"]["levels"][-1]["epsilon"]["upper"]
    assert found["together"]["epsilon"]["upper"] == pytest.approx(worst, rel=1e-3)


@pytest.mark.costly
def test_the_answers_are_those_of_single_questions():
    """With the same seed the first question draws what it draws alone."""
    given = {"budgets": "budget", "seen": "reports", "delta": 1e-6}
    both = sdp.release_together(asked(), COLUMNS, **given, random=sdp.simulation_random(1))
    alone = sdp.release(sdp.Mean(0, 80), COLUMNS, value="hours", **given, random=sdp.simulation_random(1))
    assert both.releases[0].estimate == alone.estimate
    assert both.releases[0].guarantee.epsilon == alone.guarantee.epsilon
    low, high = both.releases[1].confidence_interval(1 - 1e-6)
    assert low[0] < 0.5 < high[0]


def test_the_records_are_read_once_and_after_every_guarantee(monkeypatch):
    order: list[str] = []
    certify, collect = flow.certify, engine.collect
    monkeypatch.setattr(flow, "certify", lambda *a, **k: order.append("certify") or certify(*a, **k))
    monkeypatch.setattr(engine, "collect", lambda *a: order.append("collect") or collect(*a))
    sdp.release_together(asked(), COLUMNS, budgets=1.0, seen="reports", delta=1e-6)
    assert order == ["certify", "certify", "collect"]


@pytest.mark.costly
def test_all_are_entered_as_one_run_or_none(run):
    run("ledger", "p.ledger", "--new")
    run(*BOTH, "--epsilon0", 1, "--ledger", "p.ledger")
    with Ledger("p.ledger") as ledger:
        first, second = ledger.entries()
        assert first.run == second.run
        assert ledger.total().fixed
    run("ledger", "q.ledger", "--limit", "0.12,1e-6")
    error = run(*BOTH, "--epsilon0", 1, "--ledger", "q.ledger").error
    assert "the first 1 of the 2 questions" in error
    assert run("ledger", "q.ledger", "--json").json["entries"] == []


@pytest.mark.costly
def test_questions_of_a_file_and_one_page(run, tmp_path):
    (tmp_path / "q.toml").write_text(
        '[[questions]]\ntext = "Vote?"\ncolumn = "vote"\nchoices = [{en = "yes"}, "no"]\nfamily = "krr:2"\n'
        '[[questions]]\ncolumn = "hours"\nkind = "quantiles"\nlow = 0\nhigh = 80\nbins = 8\nat = [0.5]\n',
        encoding="utf-8",
    )
    found = run(
        "release", "people.csv", "--questions", "q.toml", "--epsilon0", 1, "--delta", 1e-6, "--report", "r.html"
    )
    assert found.status == 0, found.err
    assert "All 2 answers together" in found.out
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "All 2 answers together" in page
    assert "How often does each value of vote occur?" in page
    assert "What are the quantiles of hours?" in page


@pytest.mark.costly("options17-question 1: `low` is needed: the range must be known beforehand")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "there is no question"),
        (("--ask", "mean hours 0"), "--ask must be like"),
        (("--ask", "mode hours"), "--ask must be like"),
        (("--ask", 'mean "hours 0 80'), "--ask must be like"),
        (("--ask", "mean hours 0 eighty"), "--ask must be like"),
        (("--ask", "mean hours 80 0"), "80"),
        (("--ask", "mean nothing 0 80"), "nothing"),
        (("--ask", "quantiles hours 0 80 2"), "--ask 'quantiles hours 0 80 2': the list of shares needs numbers"),
        (("--ask", "crosstab vote a,b c,d"), "--ask 'crosstab vote a,b c,d': it must name 2 columns for a crosstab"),
        (("--ask", "frequent-items vote -1 upper"), "items take a whole length from 1 to 64"),
        (("--ask", "frequency hours 20,40", "--ask", "mean hours 0 80"), "as words and as numbers"),
        (("--questions", "none.toml"), "cannot be read"),
        (("--questions", "people.csv"), "is not TOML"),
        (("--questions", "empty.toml"), "no [[questions]]"),
        (("--questions", "column.toml"), "question 1 needs its column"),
        (("--questions", "key.toml"), "which is unknown"),
        (("--questions", "kind.toml"), "kind must be one of"),
        (("--questions", "low.toml"), "question 1: `low` is needed: the range must be known beforehand"),
    ],
)
def test_bad_questions_are_one_line(run, tmp_path, options, told):
    for name, text in {
        "empty": "title = 'x'",
        "column": "[[questions]]\nlow = 0",
        "key": "[[questions]]\ncolumn = 'vote'\nwhat = 1",
        "kind": "[[questions]]\ncolumn = 'vote'\nkind = 'mode'",
        "low": "[[questions]]\ncolumn = 'hours'\nhigh = 1",
    }.items():
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    assert told in run("release", "people.csv", *options, "--epsilon0", 1, "--delta", 1e-6).error


def test_no_question_in_python():
    with pytest.raises(sdp.InvalidInput, match="there is no question"):
        sdp.release_together([], COLUMNS, budgets=1.0, seen="reports", delta=1e-6)
