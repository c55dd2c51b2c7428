"""`frequency --by ... --margins`: shares of all people, from those who answered."""

from __future__ import annotations

import json

import pytest

from shuffledp.ledger import Ledger

HEAD = "variable,category,people\n"
ASK = ("frequency", "votes.csv", "--value", "vote", "--categories", "yes,no", "--epsilon0", "8", "--delta", "1e-6",
       "--seen", "reports", "--by", "side", "--groups", "north,south", "--simulation-seed", "1")  # fmt: skip


@pytest.fixture
def votes(tmp_path):
    """Of 300 in the north 200 say yes, of 100 in the south 10."""
    rows = ["yes,north"] * 200 + ["no,north"] * 100 + ["yes,south"] * 10 + ["no,south"] * 90
    (tmp_path / "votes.csv").write_text("vote,side\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def test_groups_are_weighted_to_margins(votes, run):
    (votes / "margins.csv").write_text(HEAD + "side,north,400\nside,south,1200\n", encoding="utf-8")
    told = json.loads(run(*ASK, "--margins", "margins.csv", "--json").out)
    weighted, groups = told["weighted"], told["groups"]
    yes = [group["estimates"][0] for group in groups]
    assert weighted["estimates"][0]["frequency"] == pytest.approx(
        0.25 * yes[0]["frequency"] + 0.75 * yes[1]["frequency"]
    )
    assert weighted["estimates"][0]["frequency"] == pytest.approx(0.25 * 2 / 3 + 0.75 * 0.1, abs=0.02)
    sampling = 0.25**2 * (2 / 9) / 299 + 0.75**2 * 0.09 / 99
    assert weighted["estimates"][0]["standard_error"] == pytest.approx(sampling**0.5, rel=0.05)
    assert (weighted["answered"], weighted["population"], weighted["missing"]) == (400, 1600, 1200)
    shown = run(*ASK, "--margins", "margins.csv").out
    assert "1,200 of 1,600 people did not answer" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("side,north,400\n", "lack 'south'"),
        ("side,north,400\nside,south,0\n", "An empty category"),
        ("side,north,4\nside,south,4\nside,east,4\n", "of which nothing was asked"),
    ],
)
def test_margins_that_do_not_fit_are_refused_before_anything_is_read(votes, run, text, message):
    (votes / "margins.csv").write_text(HEAD + text, encoding="utf-8")
    found = run(*ASK, "--margins", "margins.csv")
    assert (found.status, found.out) == (2, "")
    assert message in found.err
    assert found.err.count("\n") == 1


TWO = ("--by", "side,age", "--epsilon0", "8", "--delta", "1e-6", "--simulation-seed", "1")


@pytest.fixture
def pairs(votes):
    """Of the old in the north 160 of 200 say yes, of the young 40 of 100; in the south 5 of 50 and 5 of 50."""
    groups = (("yes,north,old", 160), ("no,north,old", 40), ("yes,north,young", 40), ("no,north,young", 60),
              ("yes,south,old", 5), ("no,south,old", 45), ("yes,south,young", 5), ("no,south,young", 45))  # fmt: skip
    rows = "".join(f"{line},{20 + place % 40}\n" for line, many in groups for place in range(many))
    (votes / "votes.csv").write_text(f"vote,side,age,hours\n{rows}", encoding="utf-8")
    text = HEAD + "side,north,400\nside,south,1200\nage,old,800\nage,young,800\n"
    (votes / "margins.csv").write_text(text, encoding="utf-8")
    return votes


def test_groups_by_two_columns_are_those_of_the_margins_and_raked(pairs, run):
    asked = (*ASK[:6], *TWO, "--margins", "margins.csv")
    told = json.loads(run(*asked, "--json").out)
    assert [group["group"] for group in told["groups"]] == [
        "north / old", "north / young", "south / old", "south / young"]  # fmt: skip
    # (200, 100, 50, 50) raked to (.25, .75) and (.5, .5), whose odds ratio stays 2: .1464, .1036, .3536, .3964
    expected = 0.1464 * 0.8 + 0.1036 * 0.4 + 0.3536 * 0.1 + 0.3964 * 0.1
    assert told["weighted"]["estimates"][0]["frequency"] == pytest.approx(expected, abs=0.02)
    assert told["weighted"]["missing"] == 1200
    shown = " ".join(run(*asked, "--report", "votes.html").out.split())
    assert "All groups of side,age, weighted to the margins" in shown
    named = ("--groups", "north / old,north / young,south / old,south / young")
    assert json.loads(run(*asked, *named, "--json").out) == told


@pytest.mark.costly
def test_release_weights_every_question(pairs, run):
    ask = ("release", "votes.csv", "--ask", "frequency vote yes,no", "--ask", "mean hours 0 80", *TWO)
    alone = json.loads(run(*ASK[:6], *TWO, "--margins", "margins.csv", "--json").out)["weighted"]
    asked = (*ask, "--margins", "margins.csv", "--report", "votes.html", "--board", "board.html")
    told = json.loads(run(*asked, "--json").out)
    first, second = told["releases"]
    assert (first["column"], first["by"], first["weighted"]["missing"]) == ("vote", "side,age", 1200)
    assert first["weighted"]["estimates"][0]["frequency"] == pytest.approx(alone["estimates"][0]["frequency"], abs=0.03)
    assert second["weighted"]["estimates"][0]["estimate"] == pytest.approx(38.0, abs=6.0)
    assert told["together"]["epsilon"]["upper"] > first["guarantee"]["epsilon"]["upper"]
    shown = run(*asked).out
    page = (pairs / "votes.html").read_text(encoding="utf-8")
    for text in (" ".join(shown.split()), " ".join(page.split())):
        assert "1,200 of 1,600 people did not answer" in text
        assert "the number of the group north / old" in text
    assert page.count("<h2>All groups: ") == 2
    assert "weighted" not in json.loads(run(*ask, "--groups", "north / old,north / young,south / old,south / young",
                                            "--json").out)["releases"][0]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("side,north,400\nside,south,1200\n", "lack the variable 'age'"),
        ("side,north,400\nside,south,1200\nage,old,800\nage,young,700\n", "do not add up: side has 1600 and age"),
        ("side,north,400\nside,south,1200\nage,old,1600\nage,young,0\n", "An empty category cannot be weighted"),
        ("side,north,400\nside,south,1200\nage,old,800\nage,young,700\nage,mid,100\n", "nobody is in the group"),
        ("side,north,299\nside,south,1200\nage,old,800\nage,young,699\n", "300 people of side 'north' answered"),
    ],
)
def test_margins_of_two_columns_that_do_not_fit_draw_nothing(pairs, run, lines, message):
    (pairs / "margins.csv").write_text(HEAD + lines, encoding="utf-8")
    found = run(
        "release", "votes.csv", "--ask", "mean hours 0 80", *TWO, "--margins", "margins.csv", "--report", "r.html"
    )
    assert (found.status, found.out) == (2, "")
    assert message in found.err
    assert found.err.count("\n") == 1
    assert not (pairs / "r.html").exists()


def test_margins_need_groups(votes, run):
    (votes / "margins.csv").write_text(HEAD + "side,north,400\nside,south,9\n", encoding="utf-8")
    found = run(*ASK[:12], "--margins", "margins.csv")
    assert found.status == 2
    assert "--margins weights public groups" in found.err


@pytest.mark.parametrize(("north", "south"), [(100, 100), (299, 1200)])
def test_margins_of_fewer_people_than_answered_spend_nothing(votes, run, north, south):
    """Refused only when the answer was shown: the ledger held it, and the table of groups was printed."""
    (votes / "margins.csv").write_text(HEAD + f"side,north,{north}\nside,south,{south}\n", encoding="utf-8")
    asked = [option for option in ASK if option not in ("--simulation-seed", "1")]
    assert run("ledger", "p.ledger", "--new").status == 0
    found = run(*asked, "--margins", "margins.csv", "--ledger", "p.ledger", "--csv", "out.csv")
    assert (found.status, found.out) == (2, "")
    assert f"300 people of side 'north' answered, and the margins count {north}" in found.err
    assert found.err.count("\n") == 1
    with Ledger(votes / "p.ledger") as ledger:
        assert ledger.entries() == []
    assert not (votes / "out.csv").exists()


@pytest.mark.costly("question0-estimate")
@pytest.mark.parametrize(
    ("question", "label"),
    [
        (("mean", "--low", "0", "--high", "1"), "estimate"),
        (("histogram", "--low", "0", "--high", "1", "--bins", "2"), "frequency"),
    ],
)
def test_a_mean_and_a_histogram_are_weighted(votes, run, question, label):
    text = (votes / "votes.csv").read_text(encoding="utf-8").replace("yes", "1").replace("no,", "0,")
    (votes / "votes.csv").write_text(text, encoding="utf-8")
    (votes / "margins.csv").write_text(HEAD + "side,north,400\nside,south,1200\n", encoding="utf-8")
    ask = (question[0], *ASK[1:4], *question[1:], *ASK[6:], "--margins", "margins.csv")
    told = json.loads(run(*ask, "--json").out)["weighted"]
    assert told["estimates"][-1][label] == pytest.approx(0.25 * 2 / 3 + 0.75 * 0.1, abs=0.03)
    assert told["missing"] == 1200
    shown = run(*ask, "--report", "votes.html").out
    for text in (shown, (votes / "votes.html").read_text(encoding="utf-8")):
        words = " ".join(text.split())
        assert "weighted to the margins" in words
        assert "These intervals cover the people for whom the answers stand: noise and sampling are in them" in words
        assert "1,200 of 1,600 people did not answer" in words
