"""The page for a board: its sentence, its three enemies, and what would make it false."""

from __future__ import annotations

import html
import math
import re
from xml.etree import ElementTree

import pytest

import shuffledp as sdp
from shuffledp.cli import main
from shuffledp.cli.board import Board, Enemy, board_of, enemies_picture, made_false_by

BUDGETS, DELTA = sdp.Budgets([0.5, 2.0], [900, 100]), 1e-6


def setting(**more: object) -> sdp.Setting:
    return sdp.Setting(BUDGETS, sdp.RandomizedResponse(2), **({"seen": "reports", "neighboring": "replace-one"} | more))


def words(page: str) -> str:
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", page[page.index("<main>") :]).split()))


@pytest.mark.costly
def test_the_three_numbers_are_certified():
    found = sdp.certify(setting(rounds=3), DELTA)
    page = words(board_of([found], found.epsilon.upper, "A promise"))
    worse = sdp.certify(setting(rounds=3, colluding=100), DELTA).epsilon.upper
    assert found.epsilon.upper < worse < 6.0
    for epsilon in (found.epsilon.upper, worse):
        assert f"(ε ≤ {sdp_up(epsilon)}, δ = 1e-6)" in page
    assert "Whoever sees the reports before they are mixed: up to 403.5 times surer (ε ≤ 6)." in page
    assert "of anything about any one of the 1,000 people, after all 3 rounds, but for a chance of 1e-6." in page


def sdp_up(epsilon: float) -> str:
    from shuffledp.report.wording import up

    return up(epsilon)


def test_stated_colluders_are_exceeded():
    found = sdp.certify(setting(colluding=200), DELTA)
    assert "The same, with 401 of the others on their side" in words(board_of([found], found.epsilon.upper, "x"))


@pytest.mark.costly
def test_several_answers_add_up_before_the_shuffle(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("vote,hours\n" + "yes,10\nno,40\n" * 500)
    asked = ["--ask", "frequency vote yes,no", "--ask", "mean hours 0 50", "--epsilon0", "1.1", "--delta", "1e-5"]
    with pytest.raises(SystemExit) as stopped:
        main(["release", "t.csv", *asked, "--board", "b.html", "--json"])
    assert stopped.value.code == 0, capsys.readouterr().err
    page = words((tmp_path / "b.html").read_text(encoding="utf-8"))
    assert "2 answers, and what they promise" in page
    assert "(ε ≤ 2.2)." in page
    assert "drawn by something else than one-bit and rr" in page
    assert "1,000 rows, taken as people" in page


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "Some of the people are made up, stay away, or collude with the reader"),
        ({"colluding": 3, "missing": 0.1}, "than 3 people on the reader's side and 10% who stay away or send junk"),
        ({"linked": True, "rounds": 2, "same_record": True}, "A person's record changes between the rounds"),
    ],
)
def test_what_would_make_it_false_follows_from_the_setting(more, said):
    listed = made_false_by([setting(**more)])
    assert any(said in line for line in listed)
    assert any("which local budget" in line for line in listed)


def test_nothing_is_promised_where_nothing_is():
    enemies = tuple(Enemy(who, math.inf, 0.1) for who in "abc")
    assert Board("x", (setting(),), enemies).sentence == "Nothing is promised to the 1,000 people at this delta."
    assert enemies[0].factor == "without a limit"


def test_the_picture_shows_each_number_to_those_who_hear_it():
    picture = ElementTree.fromstring(enemies_picture([Enemy("<a>", 0.1, 0), Enemy("b", 2.0, 0), Enemy("c", 400.0, 0)]))
    bars = [float(bar.get("width", "")) for bar in picture.iter("rect")]
    assert bars == sorted(bars)
    assert picture.get("aria-label") == "<a>: epsilon 0.1; b: epsilon 2; c: epsilon 400"
