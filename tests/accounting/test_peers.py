"""Other people's programs: the same numbers where they compute the same thing, and their known failures.

The failures are tests of ours against exact values and need nobody's program. The comparisons run if the environment
names folders with checked-out peers, as for `benchmarks/bench_accountant.py`, whose adapters they use.
"""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from benchmarks import bench_accountant as peers
from scipy.special import gammaln

from shuffledp.accounting import bounds, certify
from shuffledp.budgets import Budgets
from shuffledp.randomizers import Laplace, RandomizedResponse
from shuffledp.setting import Setting
from tests import oracles

DELTA = peers.DELTA
SLACK = 1e-9
"""Relative slack of an exact delta at a rounded epsilon."""


def one_budget(e0: float, n: int, randomizer: object = "any", rounds: int = 1) -> Setting:
    return Setting(Budgets([e0], [n]), randomizer, seen="reports", neighboring="replace-one", rounds=rounds)


def interval(key: str, e0: float, n: int, randomizer: object = "any", rounds: int = 1):
    return bounds[key].profile(one_budget(e0, n, randomizer, rounds), e0).epsilon(DELTA)


# ------------------------------------------------------------------ failures of peers, without the peers

EMPTY_LOOP = 0.00098
"""apple/ml-shuffling-amplification, epsilon0 = 1, n <= step = 100: its loop over clone counts is empty, delta is 0."""


@pytest.mark.costly("100")
@pytest.mark.parametrize("n", [50, 100])
def test_few_users_are_not_declared_nearly_perfectly_private(n):
    others = [1.0] * (n - 1)
    assert max(oracles.rr_count_deltas(1.0, others, 0, EMPTY_LOOP)) > 1e4 * DELTA  # what a real protocol leaks there
    found = certify(one_budget(1.0, n), DELTA).epsilon
    upper = float(oracles.clone_pair_delta(1.0, others, found.upper))
    assert upper <= DELTA * (1 + SLACK)  # certified,
    assert (
        float(oracles.clone_pair_delta(1.0, others, found.upper * (1 - 1e-4))) > DELTA
    )  # and no looser than it must be
    attack = certify(one_budget(1.0, n, RandomizedResponse(2)), DELTA).epsilon.lower
    assert float(max(oracles.rr_count_deltas(1.0, others, 0, attack))) >= DELTA * (1 - SLACK)
    assert EMPTY_LOOP < attack <= found.upper


DROPPED_TAILS = 1.85105
"""DPBayes/numerical-shuffler-experiments, epsilon0 = 4, n = 1000: mass 1.3e-8 of the pair is left out of its grid."""


def test_mass_left_out_is_charged():
    def exact(epsilon: float) -> float:
        return oracles.clone_pair_delta_levels(4.0, {4.0: 999}, epsilon)

    error = 1e-11  # of the oracle, absolute
    assert exact(DROPPED_TAILS) - error > 1.005 * DELTA
    assert exact(1.8529) - error > DELTA
    found = interval("clones", 4.0, 1000)
    assert found.upper >= 1.8529
    assert exact(found.upper) - error <= DELTA
    assert found.upper <= 1.85293


# ------------------------------------------------------------------ with the peers


def folder(name: str) -> str:
    path = os.environ.get(f"SHUFFLEDP_PEER_{name}")
    if not path:
        pytest.skip(f"SHUFFLEDP_PEER_{name} does not name a folder with that program")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("e0", "n"), [(0.5, 1000), (1.0, 1000), (2.0, 10_000), (4.0, 1000)])
def test_wangsw_agrees_on_the_clone_pair(e0, n):
    there, ours = folder("WANGSW"), interval("clones", e0, n)
    module = peers.module_of(there, "unifiedamplification.py")
    parameters = module.computeUBParameters(e0, None, None)
    below = peers.quietly(module.amplificationLB, *parameters, n, DELTA, 20)
    above = peers.quietly(peers.wangsw, there, e0, n)
    resolution = e0 * 2.0**-20
    assert below <= ours.upper
    assert ours.lower <= above
    assert above - below <= 2e-3 * above + 2 * resolution  # so that both comparisons say something


def all_counts_delta(k: int, e0: float, n: int, epsilon: float) -> float:
    """Exact delta of the histogram of k-ary randomized response, the others on symbol 2; in doubles, good to 1e-12.

    Relative to everybody on symbol 2 a histogram has density (1/n) sum_y count_y R_x(y)/R_2(y) if the victim holds x.
    """
    counts = np.array(list(oracles.compositions(n, k)), dtype=float)
    law = np.full((3, k), 1.0 / (math.exp(e0) + k - 1))
    law[range(3), range(3)] *= math.exp(e0)
    weight = np.exp(gammaln(n + 1) - gammaln(counts + 1).sum(axis=1) + counts @ np.log(law[2]))
    return float(weight @ np.maximum(counts @ ((law[0] - math.exp(epsilon) * law[1]) / law[2]), 0.0)) / n


@pytest.mark.slow
@pytest.mark.parametrize(("e0", "n", "factor"), [(2.0, 60, 2.9), (1.0, 120, 1.05), (3.0, 120, 6.0)])
def test_wangsw_on_randomized_response_is_below_what_its_reports_leak(e0, n, factor):
    claimed = peers.quietly(peers.wangsw, folder("WANGSW"), e0, n, "krr", 4)
    assert all_counts_delta(4, e0, n, claimed) > factor * DELTA
    ours = interval("blanket", e0, n, RandomizedResponse(4))
    assert all_counts_delta(4, e0, n, ours.upper) <= DELTA
    attack = interval("reports-exact", e0, n, RandomizedResponse(4))
    assert claimed < attack.lower <= ours.upper


@pytest.mark.slow
@pytest.mark.parametrize(("e0", "n"), [(0.5, 1000), (1.0, 10_000), (2.0, 10_000)])
def test_apple_is_above_its_own_pair(e0, n):
    theirs, ours = peers.quietly(peers.apple, folder("APPLE"), e0, n), interval("clones-2022", e0, n)
    assert ours.lower <= theirs <= 1.2 * ours.upper


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 100])
def test_apple_is_wrong_for_few_users(n):
    claimed = peers.quietly(peers.apple, folder("APPLE"), 1.0, n)
    assert claimed < 0.01 * interval("count-exact", 1.0, n, RandomizedResponse(2)).lower


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 10])
def test_su_rounds_the_same_blanket_sum_up_and_down(k):
    there, e0, n = folder("SU"), 1.0, 1000
    laws, found = peers.module_of(there, "mechanisms.py"), peers.module_of(there, "amplification_bounds.py")
    profile = bounds["blanket"].profile(one_budget(e0, n, RandomizedResponse(k)), e0)
    for epsilon in (0.02, 0.08):
        ours = profile.delta(epsilon)
        above = peers.quietly(found.FFTbound(laws.RRMechanism(e0, k)).get_delta, epsilon, e0, n)
        below = peers.quietly(found.FFTLowerBound(laws.RRMechanism(e0, k)).get_delta, epsilon, e0, n)
        assert below <= ours.upper
        assert ours.lower <= above
        assert above <= 1.3 * below


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "options", "randomizer"),
    [
        ("RRMechanism", (2,), RandomizedResponse(2)),
        ("RRMechanism", (10,), RandomizedResponse(10)),
        ("LaplaceMechanism", (), Laplace(0, 1)),
    ],
)
@pytest.mark.parametrize(("bound", "key"), [("BennettExact", "balle19-bennett"), ("Hoeffding", "balle19-hoeffding")])
@pytest.mark.parametrize(("e0", "n"), [(0.5, 1000), (1.0, 10_000)])
def test_balle_computes_the_same_numbers(mechanism, options, randomizer, bound, key, e0, n):
    theirs = peers.quietly(peers.balle, folder("BALLE"), e0, n, bound, mechanism, *options)
    assert interval(key, e0, n, randomizer).upper == pytest.approx(theirs, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 4, 16])
def test_dpbayes_composes_to_the_same_numbers(rounds):
    theirs = peers.quietly(peers.dpbayes, folder("DPBAYES"), 1.0, 1000, rounds)
    ours = interval("clones", 1.0, 1000, rounds=rounds)
    grid = 1e-5 * rounds  # its losses are rounded up to multiples of 20/2e6, which counts once per round
    assert ours.lower - 1e-6 <= theirs <= ours.upper + grid


@pytest.mark.slow
def test_dpbayes_leaves_mass_out():
    theirs = peers.quietly(peers.dpbayes, folder("DPBAYES"), 4.0, 1000)
    assert theirs == pytest.approx(DROPPED_TAILS, abs=2e-4)
    assert theirs < interval("clones", 4.0, 1000).lower
    assert math.isfinite(theirs)
