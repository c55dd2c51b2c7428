"""The evidence as readers meet it: kinds told apart, strongest first, nothing left out."""

from __future__ import annotations

import dataclasses
import math

import pytest
from rich.console import Console

import shuffledp as sdp
from shuffledp.numerics.floats import Interval
from shuffledp.report.page import bounds_picture
from shuffledp.report.terminal import print_guarantee
from shuffledp.report.to_json import guarantee_to_json
from shuffledp.report.wording import Standing, evidence_sections, source, standing
from shuffledp.setting import Evidence, Kind

UPPER, LOWER, ASYMPTOTIC = Kind.CERTIFIED_UPPER, Kind.CERTIFIED_LOWER, Kind.ASYMPTOTIC
EVIDENCE = (
    Evidence("local", UPPER, "post-processing", Interval(1.0, 1.0)),
    Evidence("clones", UPPER, "clone theorem", Interval(0.123, 0.12341)),
    Evidence("blanket", UPPER, "blanket theorem", refused="needs a stated randomizer"),
    Evidence("count-exact", LOWER, "count", Interval(0.10009, 0.2)),
    Evidence("krr-exact", LOWER, "pair of counts", Interval(0.0, 0.2)),
    Evidence("gspa", ASYMPTOTIC, "GSPA", Interval(0.05, 0.05)),
    Evidence("girgis21", UPPER, "Girgis upper", Interval(math.inf, math.inf)),
    Evidence("girgis21-lower", LOWER, "Girgis lower", Interval(0.02, 0.02)),
    Evidence("fmt23-closed", UPPER, "closed form", Interval(0.3, 0.3)),
)


@pytest.fixture(scope="module")
def guarantee() -> sdp.Guarantee:
    setting = sdp.Setting(sdp.Budgets([1.0], [300]), "any", seen="reports", neighboring="replace-one")
    return dataclasses.replace(sdp.certify(setting, 1e-5), evidence=EVIDENCE)


def test_sections_tell_the_kinds_apart_strongest_first(guarantee):
    found = [(s.standing, [row.key for row in s.rows]) for s in evidence_sections(guarantee)]
    assert found == [
        (Standing.CERTIFIED, ["clones", "local"]),
        (Standing.WITNESS, ["count-exact", "krr-exact"]),
        (Standing.PUBLISHED, ["fmt23-closed", "girgis21", "girgis21-lower"]),
        (Standing.ASYMPTOTIC, ["gspa"]),
        (None, ["blanket"]),
    ]


def test_every_bound_of_the_library_has_a_standing_and_a_published_one_its_source():
    for key, bound in sdp.bounds.items():
        entry = Evidence(key, bound.kind, bound.reference, Interval(0.1, 0.1))
        if standing(entry) is Standing.PUBLISHED:
            assert source(entry) in ("paper", "code", "second")
        assert (standing(entry) is Standing.ASYMPTOTIC) == (bound.kind is ASYMPTOTIC)
        assert (standing(entry) in (Standing.CERTIFIED, Standing.WITNESS)) == bound.enters_bracket


def test_numbers_are_rounded_to_the_side_that_is_claimed(guarantee):
    shown = {row.key: row.shown for section in evidence_sections(guarantee) for row in section.rows}
    assert shown["clones"] == "0.1235"
    assert shown["count-exact"] == "≥ 0.1"
    assert shown["girgis21"] == "∞"
    assert shown["girgis21-lower"] == "≥ 0.02"
    assert shown["blanket"] == "–"


def test_the_source_is_told_beside_the_reference(guarantee):
    words = {row.key: row.words for section in evidence_sections(guarantee) for row in section.rows}
    assert words["fmt23-closed"] == "closed form (formula from its authors' code)"
    assert words["clones"] == "clone theorem"
    assert words["blanket"] == "needs a stated randomizer"


def test_json_keeps_the_kinds_of_the_contract_and_adds_what_is_published(guarantee):
    rows = {row["key"]: row for row in guarantee_to_json(guarantee)["bounds"]}
    assert [*rows] == [entry.key for entry in EVIDENCE]
    assert rows["fmt23-closed"] == {
        "key": "fmt23-closed",
        "kind": "certified-upper",
        "epsilon": 0.3,
        "published": True,
        "source": "code",
        "reference": "closed form",
    }
    assert rows["clones"] == {
        "key": "clones",
        "kind": "certified-upper",
        "epsilon": 0.12341,
        "reference": "clone theorem",
    }
    assert rows["count-exact"]["epsilon"] == 0.10009
    assert rows["blanket"]["refused"] == "needs a stated randomizer"
    assert "published" not in rows["gspa"]


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_fits_and_loses_nothing(guarantee, capsys, width):
    print_guarantee(Console(width=width), guarantee)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for section in evidence_sections(guarantee):
        assert section.title in text
        for row in section.rows:
            line = next(line for line in lines if line.startswith(f" {row.key} "))
            assert row.epsilon is None or row.shown in line


def test_the_picture_has_a_dot_per_drawable_bound_and_shades_the_interval(guarantee):
    rows = [row for section in evidence_sections(guarantee) for row in section.rows if row.epsilon is not None]
    picture = bounds_picture(rows, 0.1, 0.12341)
    assert picture.count("<circle") == sum(row.drawable for row in rows) == 6
    assert picture.count('class="dot asymptotic"') == 1
    assert picture.count('class="bracket"') == 1
    assert "∞" in picture
    places = {row.key: _x(picture, row.key) for row in rows if row.drawable}
    assert sorted(places, key=places.__getitem__) == sorted(places, key={r.key: r.epsilon for r in rows}.__getitem__)


def test_the_picture_of_a_bracket_that_starts_at_zero(guarantee):
    rows = [row for section in evidence_sections(guarantee) for row in section.rows if row.key == "clones"]
    assert 'class="bracket" x="128.0"' in bounds_picture(rows, 0.0, 0.12341)


def _x(picture: str, key: str) -> float:
    after = picture.split(f">{key}<", 1)[1]
    return float(after.split('cx="', 1)[1].split('"', 1)[0])
