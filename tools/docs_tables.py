"""The numbers behind docs/where-the-papers-fail.md and docs/bounds.md, as rows of CSV tables.

Written by `python -m tools.make_docs_figures`; checked, a quick part of them, by tests/test_docs.py. Uppers come from
the library, what real protocols leak from second implementations in tests/accounting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from tests.accounting import failure_oracles as real

import shuffledp as sdp
from shuffledp.accounting import bounds
from shuffledp.accounting.bound import AmplificationBound
from shuffledp.accounting.gaussian import gaussian_epsilon
from shuffledp.errors import NotConverged, OutOfRegime

Row = tuple[object, ...]
STEPS = ((0.01, 900), (4.0, 100))
"""Ordered outputs: 900 steps at 0.01 and 100 at 4."""
ROUNDS, ROUND_BUDGET, ROUND_USERS = 20, 0.5, 1000
CLIP, BLOCK, TRAINING_DELTA = 2.0, 600, 1e-5
FRACTIONS = ((0.1, 0.54), (0.5, 0.37), (1.0, 0.09))
"""Budgets and shares of users in GSPA's Figure 3."""
DENSITY, RANGE, PEOPLE = 0.7, 60.0, 10_000


def setting(
    budgets: sdp.Budgets, randomizer: object = "any", seen: str = "reports", rounds: int = 1, **more: object
) -> sdp.Setting:
    """Return a setting with replace-one neighbours."""
    return sdp.Setting(budgets, randomizer, seen=seen, neighboring="replace-one", rounds=rounds, **more)  # type: ignore[arg-type]


def same(epsilon0: float, n: int, **more: object) -> sdp.Setting:
    """Return a setting in which all have one budget."""
    return setting(sdp.Budgets([epsilon0], [n]), **more)  # type: ignore[arg-type]


def epsilon(key: str, asked: sdp.Setting, victim: float, delta: float) -> float:
    """Return the safe end of a bound's epsilon: lower for a witness, else upper."""
    bound = bounds[key]
    found = bound.profile(asked, victim).epsilon(delta)
    return found.lower if bound.kind is sdp.Kind.CERTIFIED_LOWER else found.upper


# ------------------------------------------------------------------ failures.csv: item, case, quantity, value


def failures() -> Iterator[Row]:
    """Return every number of docs/where-the-papers-fail.md."""
    yield from one_budget_rows()
    yield from error_term_rows()
    yield from laplace_rows()
    yield from ordered_rows()
    yield from approximate_rows()
    yield from renyi_rows()
    yield from training_rows()
    yield from estimator_rows()
    yield from permutation_rows()
    yield from pure_rows()


def one_budget_rows(delta: float = 1e-6) -> Iterator[Row]:
    """Items 1 and 2: one budget, one plain round."""
    cases = ((1, 4.0, 1000), (1, 5.0, 1000), (1, 6.0, 10_000), (2, 0.1, 1000), (2, 0.5, 10_000))
    for item, e0, n in cases:
        case = f"epsilon0 = {e0:g}, n = {n}, delta = {delta:g}"
        attack = same(e0, n, randomizer=sdp.RandomizedResponse(k=2))
        yield item, case, "claimed epsilon", epsilon("gspa", same(e0, n), e0, delta)
        yield item, case, "attained epsilon", epsilon("rr-exact", attack, e0, delta)
        yield item, case, "certified epsilon", epsilon("clones", same(e0, n), e0, delta)


def error_term_rows() -> Iterator[Row]:
    """Item 3: distance between the others' counts and their normal law."""
    for n in (100, 300):
        share = 0.99 / (1 + math.exp(0.1))
        distance = real.normal_distance(n - 1, share)
        case = f"epsilon0 = 0.1, delta0 = 0.01, n = {n}"
        yield 3, case, "total variation", distance
        yield 3, case, "smallest delta with the error term", 2 * distance
        yield 3, case, "total variation times sqrt(n)", distance * math.sqrt(n)
    yield (
        3,
        "half the clone probability, n = 100",
        "total variation",
        real.normal_distance(99, 0.495 / (1 + math.exp(0.1))),
    )


def laplace_rows(delta: float = 1e-4) -> Iterator[Row]:
    """Item 4: one user with Laplace noise of her own scale among quiet ones."""
    for victim, window in real.QUIET_LAPLACE.items():
        case = f"victim at {victim:g}, 9999 at 0.01, delta = {delta:g}"
        asked = setting(sdp.Budgets([0.01, victim], [9999, 1]), sdp.Laplace(0.0, 1.0))
        claimed = epsilon("gspa", asked, victim, delta)
        yield 4, case, "claimed epsilon", claimed
        yield 4, case, "attained epsilon", window.epsilon(delta)
        yield 4, case, "certified epsilon", epsilon("blanket", asked, victim, delta)
        yield 4, case, "epsilon of the window witness", epsilon("window", asked, victim, delta)
        yield 4, case, "attained delta at the claimed epsilon", window.delta(claimed)
        simulated = window.simulated_delta(claimed, 4_000_000, seed=1, alpha=1e-3)
        yield 4, case, "simulated delta at the claimed epsilon at least", simulated


def ordered_rows() -> Iterator[Row]:
    """Item 5: permuted users who answer in order, budgets at steps."""
    asked = setting(sdp.Budgets([e0 for e0, _ in STEPS], [count for _, count in STEPS]), seen="users")
    for at in (0.2, 0.4):
        case = f"epsilon = {at:g}"
        yield 5, case, "claimed delta", bounds["gspa"].profile(asked, 4.0).delta(at).upper
        yield 5, case, "attained delta", real.three_symbol_delta(STEPS, at)
        yield 5, case, "certified delta", bounds["ordered"].profile(asked, 4.0).delta(at).upper
        sampled = real.importance_delta(STEPS, at, 1_000_000, seed=5, confidence=0.999)
        yield 5, case, "sampled delta", sampled.value
        yield 5, case, "sampled delta at least", sampled.lower
        yield 5, case, "sampled delta at most", sampled.upper
    ran = real.simulated_protocol_delta(STEPS, 0.2, 100_000, seed=5, confidence=0.999)
    yield 5, "epsilon = 0.2", "simulated delta", ran.value
    yield 5, "epsilon = 0.2", "simulated delta at least", ran.lower
    yield 5, "epsilon = 0.2", "simulated delta at most", ran.upper


def approximate_rows(e0: float = 0.5, d0: float = 1e-3, n: int = 10_000, delta: float = 1e-4) -> Iterator[Row]:
    """Item 6: randomized response that sends the record in clear with probability delta0."""
    case = f"epsilon0 = {e0:g}, delta0 = {d0:g}, n = {n}"
    asked = setting(sdp.Budgets([e0], [n], [d0]))
    claimed = bounds["gspa"].profile(asked, e0)
    yield 6, case, f"claimed epsilon at delta = {delta:g}", claimed.epsilon(delta).upper
    yield 6, case, "claimed delta at epsilon = 0.25", claimed.delta(0.25).upper
    yield 6, case, "attained delta at every epsilon", d0
    yield 6, case, f"certified epsilon at delta = {delta:g}", sdp.certify(asked, delta).epsilon.upper


def renyi_rows() -> Iterator[Row]:
    """Item 7: Corollary 2 of the RDP paper, n = 1000."""
    for e0, order in ((4.0, 8), (3.0, 32), (2.0, 4)):
        case = f"epsilon0 = {e0:g}, n = 1000, order = {order}"
        attack = same(e0, 1000, randomizer=sdp.RandomizedResponse(k=2))
        yield 7, case, "claimed divergence", 2 * math.exp(e0) * order / 999
        yield 7, case, "attained divergence", bounds["rr-exact"].profile(attack, e0).renyi(order).lower
        yield 7, case, "certified divergence", bounds["clones"].profile(same(e0, 1000), e0).renyi(order).upper
        own_pair = real.clone_pair_renyi(e0, 1000, order, math.exp(-e0))
        yield 7, case, "divergence of the paper's own pair", own_pair


def training_rows() -> Iterator[Row]:
    """Item 8: what is arithmetic in the training algorithms."""
    k = math.sqrt(2 * math.log(1.25 / TRAINING_DELTA))
    sigma = 2 * CLIP / BLOCK * k / 0.5
    case = f"one step, clip {CLIP:g}, blocks of {BLOCK}, nominal epsilon 0.5, delta = {TRAINING_DELTA:g}"
    yield 8, case, "claimed movement of the message", 2 * CLIP / BLOCK
    yield 8, case, "real movement of the message", 2 * CLIP
    yield 8, case, "claimed epsilon", 0.5
    yield 8, case, "real epsilon", gaussian_epsilon(TRAINING_DELTA, 2 * CLIP / sigma)
    case = f"100 messages, epsilon0 = 0.5, 50 epochs, delta = {TRAINING_DELTA:g}"
    asked = setting(sdp.Budgets([0.5], [100], [TRAINING_DELTA]), rounds=50)
    yield 8, case, "claimed epsilon with shuffling", epsilon("gspa", asked, 0.5, TRAINING_DELTA)
    yield 8, case, "epsilon of the same noise without", gaussian_epsilon(TRAINING_DELTA, math.sqrt(50) * 0.5 / k)


def weighted_mean(ones: dict[float, float]) -> float:
    """Return E of Algorithm 2's estimate when a share ones[e] of all users has budget e and holds a one."""
    weight = {e0: math.tanh(e0 / 2) for e0, _ in FRACTIONS}
    return sum(weight[e0] * share for e0, share in ones.items()) / sum(weight[e0] * share for e0, share in FRACTIONS)


def estimator_rows() -> Iterator[Row]:
    """Item 9: what the estimators of Algorithms 1 and 2 estimate, and how well."""
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


def linked_channel(rounds: int) -> sdp.Channel:
    """Return one user's linked answers to so many rounds, as the number of ones among them."""
    zero, _ = real.round_counts(ROUND_BUDGET, rounds)
    return sdp.Channel(np.stack([zero, zero[::-1]]))


def linked_setting(rounds: int) -> sdp.Setting:
    """Return randomized response over several rounds under one permutation."""
    channel = linked_channel(rounds)
    return same(channel.epsilon0, ROUND_USERS, randomizer=channel)


def permutation_rows(delta: float = 1e-5) -> Iterator[Row]:
    """Item 10: one permutation for all rounds."""
    case = f"{ROUNDS} rounds at {ROUND_BUDGET:g}, n = {ROUND_USERS}, delta = {delta:g}"
    fresh = same(ROUND_BUDGET, ROUND_USERS, randomizer=sdp.RandomizedResponse(k=2), rounds=ROUNDS)
    linked = linked_setting(ROUNDS)
    yield 10, case, "claimed epsilon", epsilon("gspa", fresh, ROUND_BUDGET, delta)
    yield 10, case, "attained epsilon", linked_epsilon(ROUNDS, delta)
    yield 10, case, "certified epsilon", epsilon("blanket", linked, linked.budgets.epsilons[-1], delta)
    yield 10, case, "certified epsilon, fresh permutations", epsilon("clones", fresh, ROUND_BUDGET, delta)
    yield 10, case, "epsilon without shuffling", real.unshuffled_rounds_epsilon(ROUND_BUDGET, ROUNDS, delta)


def linked_epsilon(rounds: int, delta: float) -> float:
    """Return the epsilon that linked answers attain, to 1e-4."""
    low, high = 0.0, ROUND_BUDGET * rounds
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        more = real.linked_rounds_delta(ROUND_BUDGET, rounds, ROUND_USERS, middle) > delta
        low, high = (middle, high) if more else (low, middle)
    return low


def pure_rows(delta0: float = 1e-3) -> Iterator[Row]:
    """Item 11: how far an approximate randomizer may be from every pure one."""
    for k in (6, 10):
        _, matrix = real.pairs_randomizer(k, 1.0, delta0)
        yield 11, f"{k} values, epsilon0 = 1", "claimed distance over delta0", 1 + 1 / (2 * math.e)
        yield 11, f"{k} values, epsilon0 = 1", "real distance over delta0", real.nearest_pure(matrix, 1.0) / delta0
    yield 11, "two laws moved by 0.1 each", "claimed delta at epsilon = 0", 0.1
    yield 11, "two laws moved by 0.1 each", "real delta at epsilon = 0", 0.2


# ------------------------------------------------------------------ GSPA's Table 2 populations under every bound

TABLE2_DELTA = 1e-4
SIZES = tuple(range(1000, 10_001, 1000))
POPULATIONS = ("Unif 1", "Unif 2", "Constant", "Mixed")
MEANING = {
    "Unif 1": "budgets uniform on [0.01, 1]",
    "Unif 2": "budgets uniform on [0.01, 2]",
    "Constant": "everybody at 0.5",
    "Mixed": "half at 0.5, half at 0.01",
}
VIEWS = {
    "reports": ("rr", "reports"),
    "levels": ("any", "levels"),
    "ordered": ("any", "users"),
}
"""What is asked: shuffled randomized response; any randomizer, levels visible; any, ordered, budgets at steps."""


def population(name: str, n: int) -> sdp.Budgets:
    """Return the first n users of a Table 2 population (numpy default_rng(0))."""
    random = np.random.default_rng(0)
    most = SIZES[-1]
    drawn = {
        "Unif 1": lambda: random.uniform(0.01, 1.0, most),
        "Unif 2": lambda: random.uniform(0.01, 2.0, most),
        "Constant": lambda: np.full(most, 0.5),
        "Mixed": lambda: np.tile([0.5, 0.01], most // 2),
    }
    return sdp.Budgets.of(drawn[name]()[:n])


def table2_setting(name: str, n: int, view: str, *, largest: bool = False) -> sdp.Setting:
    """Return the question of one cell; with ``largest``, everybody counts as having the largest budget."""
    randomizer, seen = VIEWS[view]
    budgets = population(name, n)
    if largest:
        budgets = sdp.Budgets([budgets.epsilons[-1]], [n])
    return setting(budgets, sdp.RandomizedResponse(k=2) if randomizer == "rr" else "any", seen)


def worst_epsilon(bound: AmplificationBound, asked: sdp.Setting) -> sdp.Interval | str:
    """Return a bound's epsilon, the largest of all levels, or its refusal."""
    levels = np.arange(asked.budgets.levels)
    listed = levels if levels.size <= 1000 else np.unique(np.linspace(0, levels.size - 1, 200).astype(np.int64))
    try:
        found = bound.level_epsilons(asked, TABLE2_DELTA, listed)
    except (OutOfRegime, NotConverged) as refusal:
        return str(refusal)
    return sdp.Interval(float(found.lower.max()), float(found.upper.max()))


def asks_for_one_budget(bound: AmplificationBound, refusal: str) -> bool:
    """Whether everybody at the largest budget is worth asking: never of a witness, which may only be rounded down."""
    return bound.kind is not sdp.Kind.CERTIFIED_LOWER and "one budget" in refusal


def table2(sizes: tuple[int, ...] = SIZES, names: tuple[str, ...] = POPULATIONS) -> Iterator[Row]:
    """Return population, n, seen, budgets, key, kind, lower, upper, refused for every bound.

    A bound that needs one budget for all refuses three populations; it is asked again with everybody at the
    largest budget ("largest"), which is a valid, weaker question for randomized response.
    """
    for name in names:
        for n in sizes:
            for view in VIEWS:
                asked = table2_setting(name, n, view)
                for key, bound in bounds.items():
                    found, counted = worst_epsilon(bound, asked), "own"
                    if isinstance(found, str) and view == "reports" and asks_for_one_budget(bound, found):
                        yield name, n, view, counted, key, bound.kind.value, "", "", found
                        found, counted = worst_epsilon(bound, table2_setting(name, n, view, largest=True)), "largest"
                    ends = ("", "", found) if isinstance(found, str) else (found.lower, found.upper, "")
                    yield name, n, view, counted, key, bound.kind.value, *ends
