"""The audit of a randomizer: what it must catch, what it must pass. Each sound run alarms with chance 1e-3 at most."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from shuffledp.audit import AuditResult, audit_randomizer
from shuffledp.cli.audit import parse_target
from shuffledp.cli.population import families
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.randomizers import RandomizedResponse
from shuffledp.randomizers.numeric import Hybrid, Piecewise
from shuffledp.randomizers.sketch import CoordinateSampling, SignedSketch
from tests.audit import randomizers as some


def attack(randomizer, epsilon=1.0, delta=0.0, *, seed=1, trials=60_000, **options) -> AuditResult:
    return audit_randomizer(randomizer, epsilon, delta, trials=trials, random=simulation_random(seed), **options)


# ------------------------------------------------------------------ broken

BROKEN_UNARY = {
    # SUE's flips drawn with the chance that OUE has for a 0: e^epsilon/(1 + e^epsilon) where e^{epsilon/2} belongs
    "sue with oue's flips": ((math.e / (1 + math.e), 1 / (1 + math.e)), 2.0),
    # OUE's own bit with SUE's chance, and SUE's own bit with OUE's other bits
    "own bit of sue, other bits of oue": ((some.sue(1.0)[0], some.oue(1.0)[1]), 1.5),
}


@pytest.mark.costly("own bit of sue, other bits of oue-True", "sue with oue's flips-False")
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", BROKEN_UNARY)
def test_a_unary_encoder_whose_flips_are_mixed_up_is_caught(name, packed):
    chances, true = BROKEN_UNARY[name]
    found = attack(some.unary(*chances, packed=packed))
    assert found.violated
    assert 0.85 * true < found.epsilon_lower_bound <= true


@pytest.mark.costly("chances1")
@pytest.mark.parametrize("chances", [some.sue(1.0), some.oue(1.0)])
def test_own_and_other_bits_exchanged_is_a_useless_encoder_of_the_same_epsilon(chances):
    """(p, q) and (q, p) have one epsilon, |log(p (1-q)/(q (1-p)))|: for an estimator, not for an audit, to notice."""
    found = attack(some.unary(chances[1], chances[0], packed=True))
    assert not found.violated
    assert found.epsilon_lower_bound > 0.85


def test_laplace_noise_of_half_the_scale_is_caught():
    found = attack(some.laplace(0.5))
    assert found.violated
    assert 1.75 < found.epsilon_lower_bound <= 2.0
    assert not attack(some.laplace(1.0)).violated


SEEDED_ALIKE = {
    "all users of a call": partial(some.alike_in_a_call, calls=[]),
    "all users always": some.alike_always,
    "every call anew": some.again_in_every_call,
    "workers": partial(some.workers_alike, calls=[]),
    "one user in ten": partial(some.some_alike, calls=[]),
}


@pytest.mark.parametrize("name", SEEDED_ALIKE)
def test_a_sampler_seeded_alike_for_several_users_is_caught(name):
    found = attack(some.response(1.0, SEEDED_ALIKE[name]), trials=100_000)
    assert found.violated, found
    if name != "one user in ten":
        assert found.epsilon_lower_bound > 5.0


def test_the_same_users_with_numbers_of_their_own_pass():
    """The harness of the seeded samplers, sound: what is caught above is the seeding."""
    random = np.random.default_rng(8)
    found = attack(some.response(1.0, random.random))
    assert not found.violated
    assert found.epsilon_lower_bound > 0.9


@pytest.mark.parametrize("shared", ["call", "user"])
def test_noise_shared_by_users_can_be_subtracted(shared):
    """Laplace noise of the right scale, the same for everybody in a call, or the same for a place in every call."""

    def randomize(records, random):
        source = some.generator(random) if shared == "call" else np.random.default_rng(5)
        return records + source.laplace(0.0, 1.0, 1 if shared == "call" else len(records))

    found = attack(randomize)
    assert found.violated
    assert "two" in found.attack


# ------------------------------------------------------------------ a few rows in clear


def rr(records, random):
    return RandomizedResponse(2).randomize(records, 1.0, random)


IN_CLEAR = {
    "calls with 1 row": (lambda n: np.arange(n if n == 1 else 0), "a call with 1 row"),
    "calls with 2 rows": (lambda n: np.arange(n if n == 2 else 0), "a call with 2 rows"),
    "calls with 17 rows": (lambda n: np.arange(n if n == 17 else 0), "a call with 17 rows"),
    "calls below 1000 rows": (lambda n: np.arange(n if n < 1000 else 0), "a call with few rows"),
    "first row": (lambda n: np.array([0]), "the first row of a call with few rows"),
    "last row": (lambda n: np.array([n - 1]), "the last row of a call with few rows"),
    "rest after blocks of 16": (lambda n: np.arange(n // 16 * 16, n), "the last row of a call with few rows"),
    "rest after blocks of 8, if any": (lambda n: np.arange(n // 8 * 8 if n > 8 else n, n), "row 17 of a call with 17"),
    "first 1 %": (lambda n: np.arange(n // 100), "the first 1 % of a call's rows"),
    "last 1 %": (lambda n: np.arange(n - n // 100, n), "the last 1 % of a call's rows"),
    "rows from 37 % to 38 %": (lambda n: np.arange(n * 37 // 100, n * 38 // 100), "the rows from 37 % to 38 %"),
}


@pytest.mark.costly(
    but=(
        "rest after blocks of 16",
        "rest after blocks of 8, if any",
    )
)
@pytest.mark.parametrize("name", IN_CLEAR)
def test_rows_that_are_sent_in_clear_at_one_place_of_a_call_are_caught(name):
    """Version 0.1.0 called with 12,500 rows only, and passed all of these."""
    which, where = IN_CLEAR[name]
    found = attack(some.in_clear(rr, which), trials=200_000)
    assert found.violated
    assert found.epsilon_lower_bound > 1.9
    assert found.attack.startswith(f"the value of the report, in {where}")
    assert found.event.startswith("the report is ")


def test_the_path_of_short_calls_is_caught():
    """The script of the finding, word for word."""

    def single(records, random):
        source = np.random.default_rng(random.words(4))
        y = records.astype(int)
        if len(y) < 1000:
            return y
        return np.where(source.random(len(y)) < np.e / (np.e + 1), y, 1 - y)

    assert audit_randomizer(single, 1.0, random=simulation_random(1)).violated


def test_noise_that_small_calls_share_is_caught():
    """Calls of one user take the same number again and again for ten calls: each report is sound, two are not."""
    count, numbers = itertools.count(), np.random.default_rng(3)

    def uniform(n: int):
        return numbers.random(n) if n > 1 else np.random.default_rng(next(count) // 10).random(1)

    found = attack(some.response(1.0, uniform), trials=200_000)
    assert found.violated
    assert found.attack == "the reports of one place in two calls (1 apart), in calls with 1 row"


def test_calls_have_1_2_and_17_rows_too():
    sizes = collections.Counter()

    def counted(records, random):
        sizes[len(records)] += 1
        return rr(records, random)

    attack(counted, trials=200_000)
    assert sizes == {1: 640, 2: 192, 17: 256, 12_500: 16}


# ------------------------------------------------------------------ the digits of a float


@pytest.mark.parametrize(
    "hide",
    [
        lambda records, reports: np.where(records == 1, -0.0, 0.0),
        lambda records, reports: np.copysign(reports, 0.5 - records),
        lambda records, reports: np.copysign(reports, 0.5 - records).astype(np.float32),
        lambda records, reports: np.nextafter(reports, records * 9.0),
    ],
)
def test_a_record_hidden_in_the_bytes_of_a_float_is_caught(hide):
    """In the sign of a zero (version 0.1.0 took 0.0 and -0.0 for one report), or in the last bit."""
    found = attack(lambda records, random: hide(records, rr(records, random).astype(np.float64)))
    assert found.violated
    assert found.epsilon_lower_bound > 5.0


def test_the_last_bit_of_continuous_noise_is_read():
    """Noise on a grid of 2^-20, and the record added at 2^-40: no interval of values shows it."""

    def randomize(records, random):
        noisy = np.round((records + some.generator(random).laplace(0.0, 1.0, len(records))) * 2.0**20) / 2.0**20
        return noisy + records * 2.0**-40

    found = attack(randomize)
    assert found.epsilon_lower_bound > 5.0
    assert found.attack == "the last binary digit of the report"


def test_noise_added_in_doubles_betrays_the_record():
    """Mironov 2012: the textbook's Laplace noise, true on paper, has an infinite epsilon in floating point."""
    found = attack(some.laplace_in_doubles(1.0))
    assert found.violated
    assert found.attack == "the last binary digit of the report"
    assert found.event.startswith("the last binary digit of the report is 2^-")
    vectors = attack(lambda records, random: np.stack([some.laplace_in_doubles(1.0)(records, random)] * 2, axis=1))
    assert vectors.violated


def test_the_limit_grows_with_the_trials_for_a_deterministic_mechanism():
    limits = [attack(lambda records: records, trials=trials).epsilon_lower_bound for trials in (2_000, 20_000, 200_000)]
    assert limits[1] - limits[0] > 2.0
    assert limits[2] - limits[1] > 2.0


def test_a_leak_in_one_record_in_a_thousand_is_caught():
    """delta = 5e-4 is claimed, but the record is sent in clear, with a mark, with chance 3e-3."""

    def randomize(records, random):
        clear = some.generator(random).random(len(records)) < 3e-3
        return np.where(clear, records + 2, RandomizedResponse(2).randomize(records, 1.0, random))

    assert attack(randomize, 1.0, 5e-4, trials=200_000).violated
    assert not attack(randomize, 1.0, 4e-3, trials=200_000).violated


@pytest.mark.costly
def test_a_score_of_ones_own_finds_what_the_learned_ones_do_not():
    """The record is hidden in the parity of 40 fair bits: no single bit, nor any sum of bits, says anything."""

    def randomize(records, random):
        bits = some.generator(random).integers(0, 2, (len(records), 40))
        bits[:, 0] = (records + bits[:, 1:].sum(axis=1)) % 2
        return bits

    def parity(reports, record):
        return (reports.sum(axis=1) % 2 == record).astype(float)

    assert not attack(randomize).violated
    assert attack(randomize, score=parity).violated


# ------------------------------------------------------------------ sound

NAMES = [f"{name}:5" if family.fewest == 1 else name for name, family in families().items() if family.fewest < 2]
VECTORS = {
    "coordinates": lambda: CoordinateSampling(4, 1.0),
    "sketch": lambda: SignedSketch(8, 2),
    "piecewise": lambda: Piecewise(0.0, 1.0),
    "hybrid": lambda: Hybrid(0.0, 1.0),
}


@pytest.mark.costly("hybrid-3.0", "subset:5-3.0", "sue:5-3.0")
@pytest.mark.one_in(4)
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("name", NAMES)
def test_every_family_of_the_command_line_keeps_its_claim(name, epsilon):
    family = parse_target(name)
    if not hasattr(family, "randomize"):
        pytest.skip(f"{name} has no sampler yet")
    delta = 1e-3 if name == "gaussian" else 0.0
    found = attack(family, epsilon, delta, seed=4)
    assert not found.violated, found
    assert found.epsilon_lower_bound > (0.3 if name == "gaussian" else 0.8) * epsilon - 0.15  # the attack is not blind


@pytest.mark.costly(but=("coordinates",))
@pytest.mark.parametrize("name", VECTORS)
def test_families_of_vectors_and_windows_keep_their_claim(name):
    found = attack(VECTORS[name](), 2.0, seed=4)
    assert not found.violated, found
    assert found.epsilon_lower_bound > 1.2


@pytest.mark.costly("oue:5")
@pytest.mark.parametrize("name", ["krr:5", "oue:5", "laplace", "one-bit"])
def test_every_family_run_at_twice_its_claim_is_caught(name):
    """The same samplers, the budget doubled behind the audit's back."""
    family = parse_target(name)
    ends = [0.0, 1.0] if hasattr(family, "low") else [0, 1]
    found = attack(lambda records, random: family.randomize(records, 2.0, random), records=ends)
    assert found.violated
    assert found.epsilon_lower_bound <= 2.0


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated():
    """100 audits of uniform reports, which keep the claim epsilon0 = 0 exactly, at confidence 0.5.

    More than 69 alarms have a chance below 5e-5. Judging on the reports that chose the event gives 99.
    """
    found = [attack(RandomizedResponse(5), 0.0, seed=seed, trials=4_000, confidence=0.5) for seed in range(100)]
    assert sum(result.violated for result in found) <= 69
    assert any(result.violated for result in found)  # accusing is rare, not impossible


@pytest.mark.costly
def test_the_limit_is_below_the_true_epsilon_as_often_as_stated_and_not_far_below():
    """As above, at the true epsilon 1."""
    found = [attack(RandomizedResponse(2), 1.0, seed=seed, trials=4_000, confidence=0.5) for seed in range(100)]
    assert sum(result.violated for result in found) <= 69
    assert sum(result.epsilon_lower_bound > 0.8 for result in found) >= 50


# ------------------------------------------------------------------ docs/audit.md

SHOWN = {
    "honest": lambda: RandomizedResponse(2),
    "one seed for all users of a call": lambda: some.response(1.0, partial(some.alike_in_a_call, calls=[])),
    "one seed for all users and calls": lambda: some.response(1.0, some.alike_always),
    "seeded alike in every call, noise of its own for each user of a call": lambda: some.response(
        1.0, some.again_in_every_call
    ),
    "four workers started with the same seed": lambda: some.response(1.0, partial(some.workers_alike, calls=[])),
    "one user in ten repeats her neighbour's noise": lambda: some.response(1.0, partial(some.some_alike, calls=[])),
    "Laplace noise, right scale, rounded to multiples of 2⁻³⁰": lambda: some.laplace(1.0),
    "Laplace noise, half the scale, rounded": lambda: some.laplace(0.5),
    "Laplace noise, right scale, added in double precision": lambda: some.laplace_in_doubles(1.0),
    "the record in the sign of a zero": lambda: lambda records, random: np.copysign(0.0, 0.5 - records),
    "in clear in a call with one row": lambda: some.in_clear(rr, IN_CLEAR["calls with 1 row"][0]),
    "the last row of a call in clear": lambda: some.in_clear(rr, IN_CLEAR["last row"][0]),
    "the first 1 % of a call in clear": lambda: some.in_clear(rr, IN_CLEAR["first 1 %"][0]),
    "symmetric unary encoding that flips with the chance of the optimized one": lambda: some.unary(
        *BROKEN_UNARY["sue with oue's flips"][0], packed=True
    ),
    "own bit as in symmetric, other bits as in optimized unary encoding": lambda: some.unary(
        *BROKEN_UNARY["own bit of sue, other bits of oue"][0], packed=True
    ),
    "optimized unary encoding, own and other bits' chances exchanged": lambda: some.unary(
        *some.oue(1.0)[::-1], packed=True
    ),
}


@pytest.mark.slow
def test_the_page_shows_what_is_found():
    """Every row of its two tables, at the default number of trials; digits beyond those printed are cut off."""
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    shown = {row[0]: row[-1] for row in rows if re.fullmatch(r"[\d.]+", row[-1])}
    assert set(shown) == set(SHOWN)
    for name, printed in shown.items():
        decimals = len(printed.partition(".")[2])
        limit = attack(SHOWN[name](), trials=200_000).epsilon_lower_bound
        assert f"{math.floor(limit * 10**decimals) / 10**decimals:.{decimals}f}" == printed, name


# ------------------------------------------------------------------ the rest


def test_a_result_says_what_was_found():
    found = attack(lambda records: records)
    assert found.records == ("0", "1")
    assert found.worlds == ("record 0", "record 1")
    assert found.event in ("the report is 0", "the report is 1")
    assert sum(found.hits.trials) == 30_000
    assert (found.confidence, found.false_alarm, found.private) == (0.999, 0.001, False)


def test_the_same_seed_gives_the_same_audit():
    first, second, other = (attack(RandomizedResponse(3), seed=seed) for seed in (6, 6, 7))
    assert first == second
    assert first != other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1.0}, "claimed epsilon must be a finite number of nats of at least 0; got -1.0"),
        ({"epsilon": math.inf}, "got inf"),
        ({"epsilon": math.nan}, "got nan"),
        ({"delta": 1.0}, r"claimed delta must be a probability in \[0, 1\); got 1.0"),
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        ({"confidence": 0.0}, "confidence must lie strictly between 0 and 1"),
        ({"trials": 999}, "trials must be a whole number of at least 1,000; got 999"),
        ({"trials": 10**13}, "trials must be at most 100,000,000, whose reports fit in memory; got 10000000000000"),
        ({"trials": 2e4}, "trials must be a whole number of at least 1,000; got 20000.0"),
        ({"records": [1]}, r"at least two different records; got \[1\]"),
        ({"records": [1, 1]}, "at least two different records"),
        ({"records": range(17)}, "at most 16 records; got 17"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(InvalidInput, match=message):
        attack(RandomizedResponse(2), **options)


def test_last_digits_of_a_claim_are_no_violation():
    """A claim that another machine certifies anew differs in its last digits."""
    found = attack(some.laplace(1.0))
    for bound, violated in ((1.0 + 1e-12, False), (1.0 + 1e-8, True)):
        assert dataclasses.replace(found, claimed=1.0, epsilon_lower_bound=bound).violated is violated
