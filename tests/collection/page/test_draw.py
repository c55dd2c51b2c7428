"""draw.js: the same exact law as the library's, and draws that compare integers with it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from shuffledp.collection.draw import WHOLE, Family, most_implied
from shuffledp.numerics.randomness import simulation_random
from tests.collection.laws import exact_law

FAMILIES = [
    Family("rr", 2),
    Family("krr:3", 3),
    Family("krr:17", 17),
    Family("hadamard:2", 2),
    Family("hadamard:7", 7),
    Family("hadamard:8", 8),
    Family("one-bit", 2),
    Family("one-bit", 101),
]
BUDGETS = (0.001, 0.5, 1.0, 4.0, 30.0)


@pytest.mark.costly("hadamard:7-7", "hadamard:8-8", "krr:17-17")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: f"{family.name}-{family.records}")
def test_the_law_is_the_library_s_exactly(node, family):
    keeps = [0, 1, WHOLE - 1, *(family.threshold(epsilon0) for epsilon0 in BUDGETS)]
    cases = [(keep, record) for keep in keeps for record in range(family.records)]
    told = node(
        """
import { chances, readFamily, reportBytes } from "./draw.js";
const family = readFamily(given.name, given.records);
const laws = given.cases.map(([keep, record]) => chances(family, BigInt(keep), record));
give({ reports: family.reports, bytes: reportBytes(family), laws });
""",
        {"name": family.name, "records": family.records, "cases": [[str(keep), record] for keep, record in cases]},
    )
    assert (told["reports"], told["bytes"]) == (family.reports, family.report_bytes)
    for (keep, record), law in zip(cases, told["laws"], strict=True):
        parts = [int(part) for part in law]
        assert tuple(Fraction(part, sum(parts)) for part in parts) == exact_law(family, keep, record)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: f"{family.name}-{family.records}")
def test_a_law_beyond_its_budget_is_refused(node, family):
    """Budgets where one integer more is visible in the largest ratio: 2^-40 is many integers."""
    cases = []
    for epsilon0 in BUDGETS[:-1]:
        most = most_implied(family, epsilon0)
        step = max(most >> 30, 1)
        cases += [(epsilon0, family.threshold(epsilon0), True), (epsilon0, min(most + step, WHOLE - 1), False)]
    cases += [(0.5, -1, False), (0.5, WHOLE, False)]
    told = node(
        """
import { checkLaw, readFamily } from "./draw.js";
const family = readFamily(given.name, given.records);
const refused = given.cases.map(([epsilon0, keep]) => refusal(() => checkLaw(family, BigInt(keep), epsilon0)));
give((await Promise.all(refused)).map((said) => said === null));
""",
        {"name": family.name, "records": family.records, "cases": [[case[0], str(case[1])] for case in cases]},
    )
    assert told == [case[2] for case in cases]


def test_a_draw_is_the_place_of_a_uniform_integer_among_the_running_sums(node):
    """A family whose sum of chances has 66 bits: every report comes from exactly its share of the integers."""
    family = Family("krr:3", 3)
    keep = family.threshold(1.0)
    law = exact_law(family, keep, 1)
    bounds = [0]
    for share in law:
        bounds.append(bounds[-1] + int(share * 3 * WHOLE))
    wanted = {}
    for report in range(3):
        wanted |= {bounds[report]: report, bounds[report + 1] - 1: report}
    told = node(
        """
import { draw, readFamily } from "./draw.js";
const family = readFamily("krr:3", 3);
const bits = (3n << 64n).toString(2).length;
const feed = (value) => (bytes) => {
  const shifted = BigInt(value) << BigInt(8 * bytes.length - bits);
  bytes.forEach((_, i) => (bytes[i] = Number((shifted >> BigInt(8 * (bytes.length - 1 - i))) & 255n)));
};
give(given.values.map((value) => draw(family, BigInt(given.keep), 1, feed(value))));
""",
        {"keep": str(keep), "values": [str(value) for value in wanted]},
    )
    assert told == list(wanted.values())


def test_a_uniform_integer_rejects_what_would_bias_it(node):
    told = node(
        """
import { below } from "./draw.js";
const fed = [];
const feed = (values) => (bytes) => { bytes[0] = values.shift(); fed.push(bytes.length); };
give([String(below(5n, feed([0b10100000, 0b11111111, 0b10011111]))), String(below(1n, feed([0b01111111]))), fed]);
"""
    )
    assert told == ["4", "0", [1, 1, 1, 1]]


@pytest.mark.costly
def test_draws_by_the_browser_s_own_randomness(node):
    """Chi-square of 20,000 draws of krr:5 against its law; false-alarm rate 1e-6."""
    family = Family("krr:5", 5)
    keep = family.threshold(1.0)
    counts = node(
        """
import { draw, readFamily } from "./draw.js";
const counts = [0, 0, 0, 0, 0];
for (let i = 0; i < 20000; i++) counts[draw(readFamily("krr:5", 5), BigInt(given), 2)] += 1;
give(counts);
""",
        str(keep),
    )
    expected = [float(share) * 20_000 for share in exact_law(family, keep, 2)]
    assert sum((seen - mean) ** 2 / mean for seen, mean in zip(counts, expected, strict=True)) < 33.4


def test_an_impossible_answer_or_family_is_refused(node):
    told = node(
        """
import { draw, readFamily } from "./draw.js";
const families = [["krr:5", 4], ["sue:5", 5], ["krr:2", 2], ["rr", 3], ["krr:1025", 1025], ["hadamard:1", 1], ["", 2]];
const unknown = await Promise.all(families.map(([name, records]) => refusal(() => readFamily(name, records))));
const family = readFamily("rr", 2);
const wrong = [-1, 2, 0.5, NaN, "1", null];
const answers = await Promise.all(wrong.map((answer) => refusal(() => draw(family, 1n, answer))));
give([...unknown, ...answers]);
"""
    )
    assert len(told) == 13
    assert None not in told


def test_bytes_of_a_report(node):
    random = simulation_random(5)
    for family in (Family("krr:1000", 1000), Family("hadamard:300", 300), Family("rr", 2)):
        reports = [int(report) for report in random.integers(family.reports, 20)]
        told = node(
            'import { pack, readFamily } from "./draw.js"; const f = readFamily(given.name, given.records);'
            "give(given.reports.map((report) => hex(pack(f, report))));",
            {"name": family.name, "records": family.records, "reports": reports},
        )
        assert told == [family.to_bytes(report).hex() for report in reports]
