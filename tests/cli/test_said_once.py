"""No command prints a sentence twice, and no page has a paragraph twice."""

from __future__ import annotations

import re
from collections import Counter

import polars as pl
import pytest

SURE = ("--epsilon0", 2, "--delta", 1e-6)
MIXED = ("--epsilon0", "budget", "--delta", 1e-6, "--seen", "reports")
RANGE = ("--low", 0, "--high", 90)
BY = ("--by", "city", "--groups", "Oslo,Bergen")
TWO = ("release", "p.csv", "--ask", "frequency vote yes,no", "--ask", "frequency side north,south")
THREE = (*TWO, "--ask", "mean age 0 90")
ANSWERS = {
    "mean": ("mean", "p.csv", "--value", "age", *RANGE, "--clip", *MIXED, "--verbose"),
    "mean of those who answered": ("mean", "p.csv", "--value", "hours", *RANGE, "--missing-as", "no-answer", *SURE),
    "frequency": ("frequency", "p.csv", "--value", "vote", "--categories", "yes,no", "--simplex", "--counts", *SURE),
    "crosstab": ("crosstab", "p.csv", "--values", "side,vote", "--rows", "north,south", "--columns", "yes,no", *SURE),
    "histogram": ("histogram", "p.csv", "--value", "age", *RANGE, "--bins", 5, *SURE, "--simulation-seed", 1),
    "quantiles": ("quantiles", "p.csv", "--value", "age", *RANGE, "--bins", 16, *SURE),
    "variance": ("variance", "p.csv", "--value", "age", *RANGE, "--where", "city=Oslo", *SURE),
    "vector mean": ("vector-mean", "p.csv", "--values", "age", "--norm", 90, *SURE),
    "items": ("frequent-items", "p.csv", "--value", "side", "--max-length", 5, "--alphabet", "lower", "--epsilon0", 6,
              "--delta", 1e-6),
    "items of groups": ("frequent-items", "p.csv", "--value", "side", "--candidates", "north,south,west", *BY, *SURE),
    "groups": ("mean", "p.csv", "--value", "age", *RANGE, *BY, *MIXED),
    "tables of groups": ("crosstab", "p.csv", "--values", "side,vote", "--rows", "north,south", "--columns", "yes,no",
                         *BY, *SURE),
    "answers of groups": ("mean", "p.csv", "--value", "hours", *RANGE, "--missing-as", "no-answer", *BY, *SURE),
    "two": (*TWO, *SURE, "--simulation-seed", 1),
    "three": (*THREE, "--where", "city=Oslo", *MIXED),
    "three of groups": (*THREE, *BY, *MIXED),
}  # fmt: skip
PLANS = {
    "amplify": ("amplify", "--level", "1:500", "--level", "2:500", "--seen", "reports", "--delta", 1e-6),
    "calibrate": ("calibrate", "--target-epsilon", 1, "--n", 1000, "--delta", 1e-6),
    "plan": ("plan", "--question", "mean", "--low", 0, "--high", 1, "--budgets", "p.csv", "--column", "budget",
             "--target-epsilon", 1, "--delta", 1e-6),
    "plan of shares": ("plan", "--question", "frequency", "--categories", "yes,no", "--epsilon0", 2, "--n", 1000,
                       "--target-epsilon", 1, "--delta", 1e-6),
    "audit": ("audit", "--randomizer", "krr:3", "--epsilon0", 1, "--trials", 2000, "--simulation-seed", 1),
}  # fmt: skip


@pytest.fixture(autouse=True)
def people(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    rows, hours = 600, [20, None, 40, 60]
    table = {"side": ["north", "south"], "vote": ["yes", "no", "yes"], "age": [20, 30, 50], "budget": [1.0, 2.0, 2.0]}
    columns = {name: (values * rows)[:rows] for name, values in {**table, "hours": hours}.items()}
    pl.DataFrame(columns | {"city": ["Oslo"] * 250 + ["Bergen"] * 350}).write_csv(tmp_path / "p.csv")


def sentences(text):
    """What is no line of a table and no title of one, cut after full stops; of four words and more."""
    every = text.splitlines()
    below = zip(every, [*every[1:], ""], strict=True)
    lines = (line.strip() for line, after in below if line[:1] not in tuple("┏┡└│┃") and after[:1] != "┏")
    cut = (part for line in lines for part in re.split(r"(?<=[.?!])\s+(?=[A-Z])", line))
    return [part for part in cut if len(part.split()) > 3]


def paragraphs(page):
    """Paragraphs of four words and more.

    Without numbers and mechanisms, which may be those of several answers, and without the checklist, a form that is
    handed on by itself and has to be complete.
    """
    body = re.sub(r'<style.*?</style>|<dl class="checklist">.*?</dl>', "", page, flags=re.S)
    found = re.findall(r'<p(?! class="(?:headline|fact)")[^>]*>(.*?)</p>', body, flags=re.S)
    return [
        part for part in (" ".join(re.sub(r"<[^>]+>", "", each).split()) for each in found) if len(part.split()) > 3
    ]


def twice(parts):
    return [part for part, times in Counter(parts).items() if times > 1]


@pytest.mark.costly
@pytest.mark.parametrize("name", ANSWERS)
def test_answers(run, tmp_path, name):
    out = run(*ANSWERS[name], "--report", "page.html").out
    assert len(sentences(out)) > 3
    assert twice(sentences(out)) == []
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(paragraphs(page)) > 5
    assert twice(paragraphs(page)) == []


@pytest.mark.costly(but=("audit",))
@pytest.mark.parametrize("name", PLANS)
def test_plans(run, tmp_path, name):
    report = () if name == "audit" else ("--report", "page.html")
    assert twice(sentences(run(*PLANS[name], *report).out)) == []
    if report:
        assert twice(paragraphs((tmp_path / "page.html").read_text(encoding="utf-8"))) == []


@pytest.mark.costly
def test_differences_and_ledgers(run, tmp_path):
    for name in ("a.json", "b.json"):
        written = run(*ANSWERS["groups"], "--json", "--ledger", "l.db") if name == "b.json" else None
        if written is None:
            run("ledger", "l.db", "--limit", "9,1e-5")
            written = run(*ANSWERS["groups"], "--json", "--ledger", "l.db")
        (tmp_path / name).write_text(written.out)
    (tmp_path / "c.json").write_text(run(*ANSWERS["frequency"][:6], *SURE, "--json").out)
    (tmp_path / "d.json").write_text(run(*ANSWERS["frequency"][:6], *SURE, "--json").out)
    for words in (
        ("difference", "a.json", "--between", "Oslo", "Bergen", "--delta", 1e-6, "--report", "page.html"),
        ("difference", "c.json", "d.json", "--delta", 1e-5, "--report", "page.html"),
        ("ledger", "l.db", "--report", "page.html"),
        ("total", "a.json", "b.json", "--delta", 1e-5),
    ):
        assert twice(sentences(run(*words).out)) == [], words
        if "page.html" in words:
            assert twice(paragraphs((tmp_path / "page.html").read_text(encoding="utf-8"))) == [], words


@pytest.mark.costly
def test_each_of_several_answers_says_what_it_costs(run):
    out = run(*THREE, *BY, *MIXED).out
    assert out.count("What each answer costs alone") == 1
    assert [out.count(f"│ {name}") for name in ("frequency vote", "frequency side", "mean age")] == [1, 1, 1]
    assert out.count("An attacker who sees everything") == 1
    together = re.search(r"All 3 answers together: central epsilon at most ([\d.]+)", out)
    assert together is not None
    assert f"at most e^{together[1]} = " in out
