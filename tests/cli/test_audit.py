"""The audit command: exit status, JSON, words, and one line for each bad input."""

from __future__ import annotations

import json
import math
import re

import pytest

MINE = """
import numpy


def laplace(records, random):
    noisy = records + numpy.random.default_rng(random.words(4)).laplace(0.0, 0.5, len(records))
    return numpy.round(noisy * 2.0**30) / 2.0**30


def fails(records):
    raise RuntimeError("no luck")


def short(records):
    return records[1:]
"""
QUIET = ("--level", "2:1", "--level", "0.01:9999", "--seen", "reports", "--delta", "1e-4", "--randomizer", "laplace")
KEYS = {"claimed", "epsilon_lower_bound", "confidence", "violated"}


@pytest.fixture
def mine(run, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    return "mine.py:laplace"


def audit(run, *arguments):
    return run("audit", "--simulation-seed", "1", *arguments)


def test_a_sound_randomizer_leaves_with_0(run):
    found = audit(run, "--randomizer", "krr:5", "--epsilon0", "1", "--json").json
    assert set(found) >= KEYS
    assert (found["claimed"], found["confidence"], found["violated"]) == (1.0, 0.999, False)
    assert 0.85 < found["epsilon_lower_bound"] <= 1.0
    assert found["private"] is False


def test_a_broken_randomizer_leaves_with_3(run, mine):
    """Laplace noise of half the scale."""
    result = audit(run, "--randomizer", mine, "--epsilon0", "1", "--json")
    assert (result.status, result.err) == (3, "")
    found = json.loads(result.out)
    assert found["violated"] is True
    assert 1.8 < found["epsilon_lower_bound"] <= 2.0
    assert found["records"] == ["0", "1"]
    assert [world["world"] for world in found["worlds"]] == ["record 0", "record 1"]


def test_a_violation_is_told_in_full(run, mine):
    result = audit(run, "--randomizer", mine, "--epsilon0", "1")
    assert result.status == 3
    text = " ".join(result.out.split())
    assert "VIOLATED: epsilon = 1 was claimed, but epsilon is at least 1.9" in text
    assert "at confidence 0.999." in text
    assert "Attacked: mine.py:laplace, records 0 and 1." in text
    assert re.search(
        r"The event: the .*report('s bytes)? (is at least|is at most|lies in) .*How often it happened", text
    )
    assert "accused with chance at most 0.001." in text
    assert "An audit can only accuse" not in text


def test_a_pass_is_told_with_its_limits(run):
    result = audit(run, "--randomizer", "one-bit", "--epsilon0", "1", "--trials", "1e4", "--confidence", "0.99")
    assert result.status == 0
    text = " ".join(result.out.split())
    assert text.startswith("Not violated: epsilon = 1 is claimed; the attack shows epsilon to be at least 0.8")
    assert "at confidence 0.99." in text
    assert "An audit can only accuse: that this attack found nothing does not prove the claim." in text


@pytest.mark.costly
def test_the_published_formula_under_noise_of_different_scales_leaves_with_3(run):
    result = audit(run, "--pipeline", "--counts", "--claimed-epsilon", "0.0441", *QUIET)
    assert result.status == 3
    assert "VIOLATED: epsilon = 0.0441, delta = 0.0001 was claimed, but epsilon is at least 0.1" in result.out


def test_a_certified_collection_leaves_with_0(run):
    arguments = ("--randomizer", "rr", "--epsilon0", "2", "--n", "100", "--delta", "1e-6", "--trials", "2000")
    found = audit(run, "--pipeline", *arguments, "--json").json
    assert found["violated"] is False
    assert found["delta"] == 1e-6
    assert math.isfinite(found["claimed"])


def test_records_are_numbers_or_words(run, tmp_path):
    (tmp_path / "kind.py").write_text("def f(records):\n    assert records.dtype.kind == 'KIND'\n    return records\n")
    for records, kind in (("0,1,2", "i"), ("0.5,1", "f"), ("yes,no", "U"), ('"a,b",c', "U")):
        source = (tmp_path / "kind.py").read_text()
        (tmp_path / f"kind_{kind}.py").write_text(source.replace("KIND", kind))
        arguments = ("--randomizer", f"kind_{kind}.py:f", "--epsilon0", "1", "--records", records, "--trials", "1000")
        assert audit(run, *arguments).status == 3


ONE = ("--randomizer", "rr", "--epsilon0", "1")
ALL = (*ONE, "--pipeline")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--randomizer", "mine.py:fails", "--epsilon0", "1"), "mine.py:fails raised RuntimeError: no luck"),
        (("--randomizer", "mine.py:short", "--epsilon0", "1"), "returned 12499 reports for 12500 records"),
        (("--randomizer", "mine.py:other", "--epsilon0", "1"), "no function 'other'; it has fails, laplace, short"),
        (("--randomizer", "other.py:f", "--epsilon0", "1"), "other.py does not exist"),
        (("--randomizer", "mine.py", "--epsilon0", "1"), "names no function; write mine.py:FUNCTION"),
        (("--randomizer", "command:false", "--epsilon0", "1"), "command 'false' failed with status 1"),
        (("--randomizer", "command:true", "--epsilon0", "1"), "printed 0 lines for 12500 records"),
        (("--randomizer", "magic", "--epsilon0", "1"), "--randomizer 'magic' is unknown"),
        (("--randomizer", "any", "--epsilon0", "1"), "any is no randomizer that could be run"),
        (("--randomizer", "krr", "--epsilon0", "1"), "needs its number of categories"),
        (("--epsilon0", "1"), "Missing option '--randomizer'"),
        (("--randomizer", "rr"), "--epsilon0 is needed: the claim that the audit attacks"),
        (("--randomizer", "gaussian", "--epsilon0", "1"), "never pure"),
        ((*ONE, "--epsilon0", "-1"), "at least 0; got -1"),
        ((*ONE, "--delta0", "1"), r"probability in \[0, 1\); got 1"),
        ((*ONE, "--records", "0"), "--records needs two different records or more; got '0'"),
        ((*ONE, "--records", "0,"), "--records needs two different records"),
        ((*ONE, "--records", "0,5"), "it must be one from 0 to 1"),
        ((*ONE, "--trials", "10"), "trials must be a whole number of at least 1,000; got 10"),
        ((*ONE, "--confidence", "1"), "confidence must lie strictly between 0 and 1"),
        ((*ONE, "--n", "10"), "--n describes a whole collection; add --pipeline"),
        ((*ONE, "--counts"), "--counts describes a whole collection; add --pipeline"),
        ((*ALL, "--n", "10"), "--delta is needed with --pipeline"),
        ((*ALL, "--delta", "1e-6"), "give the population: --epsilon0 E --n N, or --level E:COUNT"),
        ((*ALL, "--delta", "1e-6", "--n", "0"), "--n must be at least 1; got 0"),
        ((*ALL, "--delta", "1e-6", "--n", "10", "--level", "1:5"), r"--n N, or --level E:COUNT \(repeated\)$"),
        ((*ALL, "--delta", "0", "--n", "10"), "delta must"),
        (
            (*ALL, "--delta", "1e-6", "--n", "10", "--counts", "--records", "0,1"),
            "leave records and score out, or counts",
        ),
        ((*ALL, "--delta", "1e-6", "--n", "10", "--seen", "users"), "--seen must be one of reports, levels; got 'us"),
        (
            ("--randomizer", "rr", "--pipeline", "--delta", "1e-6", "--level", "1:5", "--level", "2:5"),
            r"--seen is needed, because there are 2 budget levels; choose one of reports \(.*\) or levels \(",
        ),
    ],
)
def test_bad_input(run, mine, arguments, message):
    assert re.search(message, audit(run, *arguments).error)
