"""What is claimed, what a real protocol leaks, and what is proved, as rows: item, case, quantity, value.

The items are those of docs/where-the-papers-fail.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from shuffledp.accounting import bounds, certify, gaussian_epsilon
from shuffledp.budgets import Budgets
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.channel import Channel
from shuffledp.randomizers.noise import Laplace
from shuffledp.reproduce import estimation as real
from shuffledp.reproduce.base import Cell
from shuffledp.reproduce.normal_limit import normal_distance
from shuffledp.setting import Kind, Setting

Row = tuple[Cell, ...]
STEPS = ((0.01, 900), (4.0, 100))
"""Ordered outputs: 900 steps at 0.01 and 100 at 4."""
ROUNDS, ROUND_BUDGET, ROUND_USERS = 20, 0.5, 1000
CLIP, BLOCK, TRAINING_DELTA = 2.0, 600, 1e-5
FRACTIONS = ((0.1, 0.54), (0.5, 0.37), (1.0, 0.09))
"""Budgets and shares of users in GSPA's Figure 3."""
DENSITY, RANGE, PEOPLE = 0.7, 60.0, 10_000


def setting(
    budgets: Budgets, randomizer: object = "any", seen: str = "reports", rounds: int = 1, **more: object
) -> Setting:
    """Return an accounting setting with replace-one neighbours; the other arguments are those of `Setting`."""
    return Setting(budgets, randomizer, seen=seen, neighboring="replace-one", rounds=rounds, **more)  # type: ignore[arg-type]


def same(epsilon0: float, n: int, **more: object) -> Setting:
    """Return an accounting setting in which all n users have the local budget ``epsilon0`` (nats); see `setting`."""
    return setting(Budgets([epsilon0], [n]), **more)  # type: ignore[arg-type]


def epsilon(key: str, setting: Setting, victim: float, delta: float) -> float:
    """Return the epsilon, in nats, that a bound states: its lower end for a witness, else its upper end.

    Parameters
    ----------
    key : str
        Name of the bound.
    setting : Setting
        The setting.
    victim : float
        Local budget of the analysed user, nats.
    delta : float
        Central delta, in (0, 1).
    """
    bound = bounds[key]
    interval = bound.profile(setting, victim).epsilon(delta)
    return interval.lower if bound.kind is Kind.CERTIFIED_LOWER else interval.upper


def one_budget_rows(delta: float = 1e-6, *, quick: bool = False) -> Iterator[Row]:
    """Yield the rows (item, case, quantity, value) of items 1 and 2: claimed, attained and certified epsilon.

    All users have one budget.

    Parameters
    ----------
    delta : float
        Central delta, in (0, 1).
    quick : bool
        Whether to omit simulations and cases that take long.
    """
    del quick
    cases = ((1, 4.0, 1000), (1, 5.0, 1000), (1, 6.0, 10_000), (2, 0.1, 1000), (2, 0.5, 10_000))
    for item, e0, n in cases:
        case = f"epsilon0 = {e0:g}, n = {n}, delta = {delta:g}"
        attack = same(e0, n, randomizer=RandomizedResponse(k=2))
        yield item, case, "claimed epsilon", epsilon("gspa", same(e0, n), e0, delta)
        yield item, case, "attained epsilon", epsilon("count-exact", attack, e0, delta)
        yield item, case, "certified epsilon", epsilon("clones", same(e0, n), e0, delta)


def error_term_rows(*, quick: bool = False) -> Iterator[Row]:
    """Return the rows of item 3: total variation between the others' counts and their normal law.

    Parameters are as for `one_budget_rows`.
    """
    del quick
    for n in (100, 300):
        share = 0.99 / (1 + math.exp(0.1))
        distance = normal_distance(n - 1, share)
        case = f"epsilon0 = 0.1, delta0 = 0.01, n = {n}"
        yield 3, case, "total variation", distance
        yield 3, case, "smallest delta with the error term", 2 * distance
        yield 3, case, "total variation times sqrt(n)", distance * math.sqrt(n)
    yield (
        3,
        "half the clone probability, n = 100",
        "total variation",
        normal_distance(99, 0.495 / (1 + math.exp(0.1))),
    )


def laplace_rows(delta: float = 1e-4, *, quick: bool = False) -> Iterator[Row]:
    """Return the rows of item 4: one user with a large budget among users with very noisy Laplace reports.

    Parameters are as for `one_budget_rows`.
    """
    for victim, window in real.QUIET_LAPLACE.items():
        case = f"victim at {victim:g}, 9999 at 0.01, delta = {delta:g}"
        protocol = setting(Budgets([0.01, victim], [9999, 1]), Laplace(0.0, 1.0))
        claimed = epsilon("gspa", protocol, victim, delta)
        yield 4, case, "claimed epsilon", claimed
        yield 4, case, "attained epsilon", window.epsilon(delta)
        yield 4, case, "certified epsilon", epsilon("blanket", protocol, victim, delta)
        yield 4, case, "epsilon of the window witness", epsilon("window", protocol, victim, delta)
        yield 4, case, "attained delta at the claimed epsilon", window.delta(claimed)
        if not quick:
            simulated = window.simulated_delta(claimed, 4_000_000, seed=1, alpha=1e-3)
            yield 4, case, "simulated delta at the claimed epsilon at least", simulated


def ordered_rows(*, quick: bool = False) -> Iterator[Row]:
    """Return the rows of item 5: delta for permuted users who answer in order, with budgets fixed to steps.

    Parameters are as for `one_budget_rows`.
    """
    protocol = setting(Budgets([e0 for e0, _ in STEPS], [count for _, count in STEPS]), seen="users")
    for at in (0.2, 0.4):
        case = f"epsilon = {at:g}"
        yield 5, case, "claimed delta", bounds["gspa"].profile(protocol, 4.0).delta(at).upper
        yield 5, case, "attained delta", real.three_symbol_delta(STEPS, at)
        yield 5, case, "certified delta", bounds["ordered"].profile(protocol, 4.0).delta(at).upper
        if quick:
            continue
        sampled = real.importance_delta(STEPS, at, 1_000_000, seed=5, confidence=0.999)
        yield 5, case, "sampled delta", sampled.value
        yield 5, case, "sampled delta at least", sampled.lower
        yield 5, case, "sampled delta at most", sampled.upper
    if quick:
        return
    ran = real.simulated_protocol_delta(STEPS, 0.2, 100_000, seed=5, confidence=0.999)
    yield 5, "epsilon = 0.2", "simulated delta", ran.value
    yield 5, "epsilon = 0.2", "simulated delta at least", ran.lower
    yield 5, "epsilon = 0.2", "simulated delta at most", ran.upper


def approximate_rows(
    e0: float = 0.5, d0: float = 1e-3, n: int = 10_000, delta: float = 1e-4, *, quick: bool = False
) -> Iterator[Row]:
    """Return the rows of item 6: randomized response that sends the record in clear with chance delta0.

    ``e0`` is epsilon0, ``d0`` is delta0, ``n`` is the number of users. Other parameters are as for `one_budget_rows`.
    """
    del quick
    case = f"epsilon0 = {e0:g}, delta0 = {d0:g}, n = {n}"
    protocol = setting(Budgets([e0], [n], [d0]))
    claimed = bounds["gspa"].profile(protocol, e0)
    yield 6, case, f"claimed epsilon at delta = {delta:g}", claimed.epsilon(delta).upper
    yield 6, case, "claimed delta at epsilon = 0.25", claimed.delta(0.25).upper
    yield 6, case, "attained delta at every epsilon", d0
    yield 6, case, f"certified epsilon at delta = {delta:g}", certify(protocol, delta).epsilon.upper


def renyi_rows(*, quick: bool = False) -> Iterator[Row]:
    """Return the rows of item 7: Corollary 2 of the RDP paper for n = 1000 users.

    Parameters are as for `one_budget_rows`.
    """
    del quick
    for e0, order in ((4.0, 8), (3.0, 32), (2.0, 4)):
        case = f"epsilon0 = {e0:g}, n = 1000, order = {order}"
        attack = same(e0, 1000, randomizer=RandomizedResponse(k=2))
        yield 7, case, "claimed divergence", 2 * math.exp(e0) * order / 999
        yield 7, case, "attained divergence", bounds["count-exact"].profile(attack, e0).renyi(order).lower
        yield 7, case, "certified divergence", bounds["clones"].profile(same(e0, 1000), e0).renyi(order).upper
        own_pair = bounds["clones-2022"].profile(same(e0, 1000), e0).renyi(order).upper
        yield 7, case, "divergence of the paper's own pair", own_pair


def training_rows(*, quick: bool = False) -> Iterator[Row]:
    """Return the rows of item 8: those claims on the training algorithms that arithmetic can check.

    Parameters are as for `one_budget_rows`.
    """
    del quick
    k = math.sqrt(2 * math.log(1.25 / TRAINING_DELTA))
    sigma = 2 * CLIP / BLOCK * k / 0.5
    case = f"one step, clip {CLIP:g}, blocks of {BLOCK}, nominal epsilon 0.5, delta = {TRAINING_DELTA:g}"
    yield 8, case, "claimed movement of the message", 2 * CLIP / BLOCK
    yield 8, case, "real movement of the message", 2 * CLIP
    yield 8, case, "claimed epsilon", 0.5
    yield 8, case, "real epsilon", gaussian_epsilon(TRAINING_DELTA, 2 * CLIP / sigma)
    case = f"100 messages, epsilon0 = 0.5, 50 epochs, delta = {TRAINING_DELTA:g}"
    protocol = setting(Budgets([0.5], [100], [TRAINING_DELTA]), rounds=50)
    yield 8, case, "claimed epsilon with shuffling", epsilon("gspa", protocol, 0.5, TRAINING_DELTA)
    yield 8, case, "epsilon of the same noise without", gaussian_epsilon(TRAINING_DELTA, math.sqrt(50) * 0.5 / k)


def weighted_mean(ones: dict[float, float]) -> float:
    """Return the expected estimate of Algorithm 2 for records 0 and 1.

    Parameters
    ----------
    ones : dict of float to float
        For a local budget e, the share of all users who have budget e and hold 1.
    """
    weight = {e0: math.tanh(e0 / 2) for e0, _ in FRACTIONS}
    return sum(weight[e0] * share for e0, share in ones.items()) / sum(weight[e0] * share for e0, share in FRACTIONS)


def estimator_rows(*, quick: bool = False) -> Iterator[Row]:
    """Return the rows of item 9: expectation and error of the estimators of Algorithms 1 and 2.

    Parameters are as for `one_budget_rows`.
    """
    del quick
    yield 9, "density", "true", DENSITY
    rest = 1 - DENSITY
    yield (
        9,
        "zeros among the most cautious",
        "expected estimate",
        weighted_mean({0.1: 0.54 - rest, 0.5: 0.37, 1.0: 0.09}),
    )
    yield 9, "zeros among the least cautious", "expected estimate", weighted_mean({0.1: 0.54, 0.5: DENSITY - 0.54})
    precision = {e0: share * PEOPLE / e0**2 for e0, share in FRACTIONS}
    yield 9, "mean over [20, 80], n = 10000", "share of the noise from 0.1", precision[0.1] / sum(precision.values())
    plain = RANGE * math.sqrt(2 * sum(precision.values())) / PEOPLE
    weighed = RANGE * math.sqrt(2 / sum(share * PEOPLE * e0**2 for e0, share in FRACTIONS))
    yield 9, "mean over [20, 80], n = 10000", "standard error of the plain average", plain
    yield 9, "mean over [20, 80], n = 10000", "standard error with weights epsilon0 squared", weighed


def linked_channel(rounds: int) -> Channel:
    """Return the law of the number of ones among one user's linked answers to several rounds."""
    zero, _ = real.round_counts(ROUND_BUDGET, rounds)
    return Channel(np.stack([zero, zero[::-1]]))


def linked_setting(rounds: int) -> Setting:
    """Return the setting of randomized response over several rounds under one permutation of the users."""
    channel = linked_channel(rounds)
    return same(channel.epsilon0, ROUND_USERS, randomizer=channel)


def permutation_rows(delta: float = 1e-5, *, quick: bool = False) -> Iterator[Row]:
    """Return the rows of item 10: epsilon if one permutation of the users serves all rounds.

    Parameters are as for `one_budget_rows`.
    """
    del quick
    case = f"{ROUNDS} rounds at {ROUND_BUDGET:g}, n = {ROUND_USERS}, delta = {delta:g}"
    fresh = same(ROUND_BUDGET, ROUND_USERS, randomizer=RandomizedResponse(k=2), rounds=ROUNDS)
    linked = linked_setting(ROUNDS)
    yield 10, case, "claimed epsilon", epsilon("gspa", fresh, ROUND_BUDGET, delta)
    yield 10, case, "attained epsilon", linked_epsilon(ROUNDS, delta)
    yield 10, case, "certified epsilon", epsilon("blanket", linked, linked.budgets.epsilons[-1], delta)
    yield 10, case, "certified epsilon, fresh permutations", epsilon("clones", fresh, ROUND_BUDGET, delta)
    yield 10, case, "epsilon without shuffling", real.unshuffled_rounds_epsilon(ROUND_BUDGET, ROUNDS, delta)


def linked_epsilon(rounds: int, delta: float) -> float:
    """Return the epsilon that an attack on linked answers attains, in nats, to 1e-4."""
    low, high = 0.0, ROUND_BUDGET * rounds
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        more = real.linked_rounds_delta(ROUND_BUDGET, rounds, ROUND_USERS, middle) > delta
        low, high = (middle, high) if more else (low, middle)
    return low


def pure_rows(delta0: float = 1e-3, *, quick: bool = False) -> Iterator[Row]:
    """Return the rows of item 11: distance of an approximate randomizer from every pure randomizer.

    ``delta0`` is the local delta. Other parameters are as for `one_budget_rows`.
    """
    del quick
    for k in (6, 10):
        _, matrix = real.pairs_randomizer(k, 1.0, delta0)
        yield 11, f"{k} values, epsilon0 = 1", "claimed distance over delta0", 1 + 1 / (2 * math.e)
        yield 11, f"{k} values, epsilon0 = 1", "real distance over delta0", real.nearest_pure(matrix, 1.0) / delta0
    yield 11, "two laws moved by 0.1 each", "claimed delta at epsilon = 0", 0.1
    yield 11, "two laws moved by 0.1 each", "real delta at epsilon = 0", 0.2


PARTS = (
    one_budget_rows,
    error_term_rows,
    laplace_rows,
    ordered_rows,
    approximate_rows,
    renyi_rows,
    training_rows,
    estimator_rows,
    permutation_rows,
    pure_rows,
)
"""Every number of docs/where-the-papers-fail.md, item by item; quick leaves out the simulations."""
