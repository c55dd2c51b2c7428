"""`difference`: two waves, or two groups, with interval and joint guarantee."""

from __future__ import annotations

import contextlib
import html
import io
import json
import re

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.cli import main
from shuffledp.questions.mean import LongTailedEstimate
from shuffledp.report.wording import up

REST = ("--epsilon0", 2, "--delta", 1e-6)
COMMANDS = {
    "mean": ("mean", "p.csv", "--value", "hours", "--low", 0, "--high", 40, *REST),
    "frequency": ("frequency", "p.csv", "--value", "vote", "--categories", "yes,no", *REST),
    "histogram": ("histogram", "p.csv", "--value", "hours", "--low", 0, "--high", 40, "--bins", 4, *REST),
    "vector-mean": ("vector-mean", "p.csv", "--values", "hours", "--norm", 40, *REST),
}


SOUTH_HAS_MORE = "The numbers of north are subtracted from those of south: above 0 means that south has more."

MADE: dict[tuple[object, ...], str] = {}
"""What releases printed; each is made once, whichever tests subtract it."""


@pytest.fixture
def wave(run, tmp_path):
    """Write a wave's release to a file."""

    def written(name: str, *command: object, yes: int = 300) -> dict:
        votes = ["yes"] * yes + ["no"] * (900 - yes)
        columns = {"hours": [20.0, 30.0] * 450, "vote": votes, "side": ["north"] * 300 + ["south"] * 600}
        pl.DataFrame(columns).write_csv(tmp_path / "p.csv")
        if (*command, yes) not in MADE:
            MADE[*command, yes] = run(*command, "--json").out
        out = MADE[*command, yes]
        (tmp_path / name).write_text(out, encoding="utf-8")
        return json.loads(out)

    return written


@pytest.mark.costly(but=("vector-mean",))
@pytest.mark.parametrize("kind", COMMANDS)
def test_the_difference_of_two_waves(run, wave, kind):
    a, b = wave("a.json", *COMMANDS[kind]), wave("b.json", *COMMANDS[kind], yes=700)
    found = run("difference", "a.json", "b.json", "--delta", 1e-6, "--json").json
    name = "frequency" if kind in ("frequency", "histogram") else "estimate"
    before, after = ([known] if kind == "mean" else known["estimates"] for known in (a, b))
    for old, new, entry in zip(before, after, found["estimates"], strict=True):
        assert entry["difference"] == new[name] - old[name]
        assert entry["standard_error"] == pytest.approx(
            (old["standard_error"] ** 2 + new["standard_error"] ** 2) ** 0.5
        )
        low, high = entry["confidence_interval"]
        assert low < entry["difference"] < high
    assert (found["n"], found["disjoint"]) == ([900, 900], False)
    total = run("total", "a.json", "b.json", "--delta", 1e-6, "--json").json
    assert found["epsilon"] == total["epsilon"]


@pytest.mark.costly
def test_people_who_are_in_one_only_pay_the_larger(run, wave):
    a = wave("a.json", *COMMANDS["frequency"])
    b = wave("b.json", *COMMANDS["frequency"][:-3], 1, *REST[2:], yes=500)
    apart = run("difference", "a.json", "b.json", "--delta", 1e-6, "--disjoint", "--json").json
    both = run("difference", "a.json", "b.json", "--delta", 1e-6, "--json").json
    assert apart["epsilon"]["upper"] == a["guarantee"]["epsilon"]["upper"]
    assert apart["epsilon"]["upper"] >= b["guarantee"]["epsilon"]["upper"]
    assert apart["epsilon"]["upper"] < both["epsilon"]["upper"]
    assert "Nobody is in both" in apart["notes"][0]


@pytest.mark.costly
def test_two_groups_of_one_file(run, wave):
    groups = ("--by", "side", "--groups", "north,south")
    known = wave("g.json", *COMMANDS["frequency"], *groups)
    found = run("difference", "g.json", "--between", "north", "south", "--delta", 1e-6, "--json").json
    north, south = (group["estimates"][0]["frequency"] for group in known["groups"])
    assert found["estimates"][0]["difference"] == south - north
    assert found["direction"] == SOUTH_HAS_MORE
    assert found["disjoint"] is True
    assert found["n"] == [300, 600]
    assert found["epsilon"]["upper"] == known["guarantee"]["epsilon"]["upper"]
    out = run("difference", "g.json", "--between", "north", "south", "--delta", 1e-6).out
    assert "south minus north, in percentage points" in out
    assert SOUTH_HAS_MORE in " ".join(out.split())
    assert "Both together: epsilon at most" in out


@pytest.mark.costly
def test_noise_without_bound_keeps_its_wider_interval(run, wave):
    laplace = (*COMMANDS["mean"][:-4], "--epsilon0", 0.5, "--delta", 1e-6)
    noisy, bit = wave("a.json", *laplace, "--mechanism", "laplace"), wave("b.json", *laplace)
    assert (noisy["long_tailed"], bit["long_tailed"]) == (True, False)
    apart = ("--disjoint", "--delta", 1e-6, "--json")  # the guarantee of both together is not asked for here
    (entry,) = run("difference", "a.json", "b.json", *apart).json["estimates"]
    (other,) = run("difference", "b.json", "a.json", *apart).json["estimates"]
    found = LongTailedEstimate(np.array(entry["difference"]), np.array(entry["standard_error"]),
                               max(noisy["step"], bit["step"]), (-40.0, 40.0), 0)  # fmt: skip
    assert entry["confidence_interval"] == [float(end) for end in found.confidence_interval()]
    assert other["confidence_interval"] == [-end for end in reversed(entry["confidence_interval"])]


@pytest.mark.costly(but=("vector-mean",))
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_person_can_read_it(run, wave, kind):
    wave("a.json", *COMMANDS[kind])
    wave("b.json", *COMMANDS[kind], yes=500)
    out = run("difference", "a.json", "b.json", "--delta", 1e-6).out
    assert "b.json minus a.json" in out
    assert "95% interval" in out
    assert "Where an interval contains 0" in " ".join(out.split())


@pytest.mark.costly(
    "arguments0-needs two files, or one file of groups",
    "arguments1-the same one twice",
    "arguments2-a frequency and a mean",
    "arguments3-name two of them with --between A B",
    "arguments5-'east', none of the groups of g.json: north, south",
    "arguments7-s.json is a simulation",
)
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("a.json",), "needs two files, or one file of groups"),
        (("a.json", "./a.json"), "the same one twice"),
        (("a.json", "m.json"), "a frequency and a mean"),
        (("a.json", "g.json"), "name two of them with --between A B"),
        (("g.json", "--between", "north", "north"), "the same one twice"),
        (("g.json", "--between", "north", "east"), "'east', none of the groups of g.json: north, south"),
        (("a.json", "--between", "north", "south"), "a.json holds no groups"),
        (("a.json", "s.json"), "s.json is a simulation"),
        (("a.json", "old.json"), "old.json is no release of one question"),
        (("a.json", "zero.json"), "zero.json is no release of one question"),
        (("a.json", "v.json"), "have a difference here; got variance"),
        (("a.json", "other.json"), "the same categories, bins or columns"),
        (("a.json", "p.csv"), "p.csv is no release of one question"),
        (("a.json", "m.json", "--question", "vote"), "there is none; leave it out"),
    ],
)
def test_what_has_no_difference_is_refused(run, wave, tmp_path, arguments, told):
    known = wave("a.json", *COMMANDS["frequency"])
    wave("m.json", *COMMANDS["mean"])
    wave("v.json", "variance", *COMMANDS["mean"][1:])
    wave("g.json", *COMMANDS["frequency"], "--by", "side", "--groups", "north,south")
    wave("other.json", *COMMANDS["frequency"][:5], "no,yes", *REST)
    wave("s.json", *COMMANDS["frequency"], "--simulation-seed", 1)
    old = {key: value for key, value in known.items() if key != "step"}
    (tmp_path / "old.json").write_text(json.dumps(old), encoding="utf-8")
    (tmp_path / "zero.json").write_text(json.dumps(known | {"step": 0.0}), encoding="utf-8")
    assert told in run("difference", *arguments, "--delta", 1e-6).error


@pytest.mark.costly(but=("vector-mean",))
@pytest.mark.parametrize("kind", COMMANDS)
def test_the_page_says_what_the_terminal_says(run, wave, tmp_path, kind):
    wave("a.json", *COMMANDS[kind])
    wave("b.json", *COMMANDS[kind], yes=500)
    both = ("difference", "a.json", "b.json", "--delta", 1e-5)
    found = run(*both, "--report", "d.html", "--title", "Spring & autumn", "--json").json
    page = (tmp_path / "d.html").read_text(encoding="utf-8")
    assert "<h1>Spring &amp; autumn</h1>" in page
    assert "b.json minus a.json" in page
    assert page.count("<dt>") == 10
    assert ("<svg" in page) == (kind != "vector-mean")
    assert f"ε ≤ {up(float(found['epsilon']['upper']))}" in page
    out = " ".join(run(*both).out.split())
    for row in re.findall(r"<td role=\"cell\"[^>]*>([^<]*)</td>", page):
        assert html.unescape(row) in out
    assert "http" not in page.replace("http://www.w3.org", "")


@pytest.mark.costly
def test_the_page_of_two_groups_says_that_nobody_is_in_both(run, wave, tmp_path):
    wave("g.json", *COMMANDS["frequency"], "--by", "side", "--groups", "north,south")
    out = run("difference", "g.json", "--between", "north", "south", "--delta", 1e-6, "--report", "d.html").out
    assert "Written:" in out
    page = (tmp_path / "d.html").read_text(encoding="utf-8")
    assert "south minus north" in page
    assert SOUTH_HAS_MORE in page
    assert "Nobody is in both" in page


RUN = ("release", "p.csv", "--ask", "frequency vote yes,no", "--ask", "mean hours 0 40",
       "--ask", "histogram hours 0 40 4", *REST)  # fmt: skip


@pytest.mark.costly
def test_one_of_several_questions_is_chosen_by_name(run, wave):
    a, b = wave("a.json", *RUN), wave("b.json", *RUN, yes=500)
    for name, place in (("vote", 0), ("frequency vote", 0), ("Mean  hours", 1), ("histogram hours", 2), ("2", 1)):
        found = run("difference", "a.json", "b.json", "--question", name, "--delta", 1e-6, "--json").json
        old, new = (known["releases"][place] for known in (a, b))
        assert found["question"] == new["question"]
        if place == 1:
            assert found["estimates"][0]["difference"] == new["estimate"] - old["estimate"]
        assert "shuffledp total composes all" in found["notes"][1]
    wave("m.json", *COMMANDS["mean"])
    mixed = run("difference", "a.json", "m.json", "--question", "mean hours", "--delta", 1e-6, "--json").json
    assert mixed["question"] == "mean"


@pytest.mark.costly(
    but=(
        "words3-means none",
        "words4-means none",
    )
)
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "a.json answers several questions; choose one with --question: 1 frequency 'vote', 2 mean 'hours', "
             "3 histogram 'hours'"),
        (("--question", "hours"), "--question 'hours' means several of the questions of a.json"),
        (("--question", "age"), "--question 'age' means none of the questions of a.json; name one of them, by column"),
        (("--question", "4"), "means none"),
        (("--question", "mean vote"), "means none"),
    ],
)  # fmt: skip
def test_a_name_that_does_not_settle_the_question_is_refused(run, tmp_path, waves, words, told):
    for name, text in waves.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert told in run("difference", "a.json", "b.json", *words, "--delta", 1e-6).error


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    """Two runs of several questions, as they were printed."""
    table = tmp_path_factory.mktemp("waves") / "p.csv"
    pl.DataFrame({"hours": [20.0, 30.0] * 450, "vote": ["yes", "no"] * 450}).write_csv(table)
    kept = {}
    for name in ("a.json", "b.json"):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
            main([str(word) for word in (RUN[0], table, *RUN[2:], "--json")])
        kept[name] = out.getvalue()
    return kept


def test_two_batches_of_one_task_are_refused(run, tmp_path, waves):
    for name, text in waves.items():
        known = json.loads(text) | {"collection": {"id": "task"}}
        (tmp_path / name).write_text(json.dumps(known), encoding="utf-8")
    told = run("difference", "a.json", "b.json", "--question", "vote", "--delta", 1e-6).error
    assert "both files are of one task" in told


def test_in_python_a_simulation_and_a_variance_are_refused():
    ask = {"seen": "reports", "delta": 1e-6}
    first = sdp.estimate_mean([1.0, 3.0] * 300, 0.0, 4.0, 2.0, **ask)
    seeded = sdp.estimate_mean([1.0, 3.0] * 300, 0.0, 4.0, 2.0, random=sdp.simulation_random(1), **ask)
    with pytest.raises(sdp.InvalidInput, match="simulation"):
        sdp.difference(first, seeded, delta=1e-6)
    spread = sdp.estimate_variance([1.0, 3.0] * 300, 0.0, 4.0, 2.0, **ask)
    with pytest.raises(sdp.InvalidInput, match="got variance"):
        sdp.difference(spread, spread, delta=1e-6)
    wider = sdp.estimate_mean([1.0, 3.0] * 300, 0.0, 5.0, 2.0, **ask)
    with pytest.raises(sdp.InvalidInput, match="only estimates of one question"):
        sdp.difference(first, wider, delta=1e-6)


@pytest.mark.costly
@pytest.mark.parametrize("kind", ["frequency", "mean"])
def test_two_groups_of_34_have_the_interval_of_their_joint_law(run, tmp_path, kind):
    """The laws are read from what a release printed; by Bennett's inequality it is 3.1 standard errors wide."""
    columns = {"hours": [10.0, 30.0] * 34, "vote": ["yes", "no"] * 34, "side": ["north"] * 34 + ["south"] * 34}
    pl.DataFrame(columns).write_csv(tmp_path / "p.csv")
    groups = ("--by", "side", "--groups", "north,south", "--json")
    known = run(*COMMANDS[kind], *groups).json
    (tmp_path / "g.json").write_text(json.dumps(known), encoding="utf-8")
    between = ("difference", "g.json", "--between", "north", "south", "--delta", 1e-6)
    for entry in run(*between, "--json").json["estimates"]:
        low, high = entry["confidence_interval"]
        assert 1.5 < (high - low) / 2.0 / entry["standard_error"] < 2.3
    assert "inequality" not in run(*between).out
    for group in known["groups"]:  # a law that does not fit the numbers is no law of theirs
        if kind == "mean":
            group["estimate"] += 0.01
        else:
            group["estimates"][0]["frequency"] += 0.001
    (tmp_path / "g.json").write_text(json.dumps(known), encoding="utf-8")
    for entry in run(*between, "--json").json["estimates"]:
        low, high = entry["confidence_interval"]
        assert (high - low) / 2.0 / entry["standard_error"] > 2.3
    assert "Bennett's inequality: with so few reports the interval is one that holds for any law" in " ".join(
        run(*between).out.split()
    )


@pytest.mark.costly
def test_an_interval_by_an_inequality_says_so(run, tmp_path):
    pl.DataFrame({"hours": [10.0, 30.0] * 17}).write_csv(tmp_path / "p.csv")
    ask = ("mean", "p.csv", "--value", "hours", "--low", 0, "--high", 40, *REST)
    assert "Bernstein's inequality: with so few reports" in " ".join(run(*ask, "--mechanism", "laplace").out.split())
    assert "inequality" not in run(*ask).out
