"""What the chain theorem needs of pure reports: moments by kind of place, and groups that must exist."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from shuffledp.accounting.theorems.chain.moments import RatioMoments, finite_moments, laplace_moments
from shuffledp.accounting.theorems.chain.patterns import any_moments, two_level_moments
from shuffledp.accounting.theorems.chain.pure import MOST_COPIES, MOST_SPARSE_COPIES, PureLaw, copies_of
from shuffledp.numerics.floats import round_up
from shuffledp.randomizers.base import StatesTriples


def any_law(epsilon0: float) -> PureLaw:
    """Whatever is epsilon0-LDP: the linear programme over patterns of likelihood, and any group.

    Parameters
    ----------
    epsilon0 : float
        Budget, nats, in (0, 8].
    """
    moments = partial(any_moments, epsilon0)
    return PureLaw(epsilon0, lambda growth: (moments(growth),), 1.0, (partial(of_anybody, epsilon0, MOST_COPIES),))


def laplace_law(epsilon0: float) -> PureLaw:
    """Return what is known of reports with Laplace noise, where records in one bin of the range form a group.

    Parameters
    ----------
    epsilon0 : float
        Width of the range over the scale, in (0, 8], rounded up.
    """
    moments = laplace_moments(epsilon0)
    return PureLaw(epsilon0, lambda growth: (moments.at(growth),), 1.0, (partial(in_one_bin, epsilon0),))


def stated_law(family: StatesTriples) -> Callable[[float], PureLaw] | None:
    """Return the law at a budget of reports of two likelihoods; None if too little is stated of them.

    Parameters
    ----------
    family : StatesTriples
        If any three records are alike, there must be three.
    """
    if family.triples == "free":
        return partial(_free_law, family)
    if family.triples == "alike by parts" or (family.triples == "alike" and family.k > 2):
        return partial(_alike_law, family)
    return None


def _free_law(family: StatesTriples, epsilon0: float) -> PureLaw:
    """All records are likely on a share of the reports: the linear programme over the overlaps of three of them."""
    moments = partial(two_level_moments, epsilon0, family.share(epsilon0))
    active = _active(family, epsilon0)
    groups = (partial(of_anybody, epsilon0, most_copies(active)),)
    return PureLaw(epsilon0, lambda growth: (moments(growth),), active, groups)


def _alike_law(family: StatesTriples, epsilon0: float) -> PureLaw:
    """Three kinds: the third record is the first one, the second one, or another; by parts places mix them.

    On a part where the first two records are one, |L - E L| = (e^eps - 1)|R_0/R_J - 1|: below the first kind.
    """
    pair, third = family.pair_blankets(epsilon0)[0], family.triple(epsilon0)
    weight, own = pair.masses * pair.ratios1, pair.ratios0 / pair.ratios1  # the third record is the second one
    one = np.ones_like(own)
    places = [(weight, own, one), (weight, one, own), (third.masses, third.ratios0, third.ratios1)]
    active = _active(family, epsilon0)
    most = most_copies(active)
    groups = (partial(of_anybody, epsilon0, most),)
    if family.triples == "alike":
        groups = (partial(of_one_record, family.k, most), partial(of_few_or_anybody, epsilon0, family.k, most))

    def kinds(growth: float) -> list[RatioMoments]:
        return [finite_moments(*place, growth) for place in places]

    return PureLaw(epsilon0, kinds, active, groups, mixed=family.triples != "alike")


def _active(family: StatesTriples, epsilon0: float) -> float:
    """How likely a ratio of two records is not 1, rounded up: largest for the worst pair."""
    pair = family.pair_blankets(epsilon0)[0]
    off = pair.ratios0 != pair.ratios1
    return min(round_up(float((pair.masses * pair.ratios1)[off].sum()), 64), 1.0)


# ------------------------------------------------------------------ groups
# From how many others there are and a wished size, in users of one record, to the size m of a group A_2 that must
# exist, and N; (0, 0) if there is none.


def in_one_bin(epsilon0: float, others: int, wish: float) -> tuple[int, int]:
    """Numbers with Laplace noise: by the pigeonhole principle one of (others // m) bins of the range holds m.

    Parameters
    ----------
    epsilon0, others, wish
        As `of_anybody`.
    """
    size = math.ceil(wish)
    bins = others // size
    return (size, copies_of(size, epsilon0 / bins)) if bins else (0, 0)


def of_one_record(records: int, most: int, others: int, wish: float) -> tuple[int, int]:
    """By the pigeonhole principle some record is held by others/records users.

    Parameters
    ----------
    records : int
        How many records there are.
    most, others, wish
        As `of_anybody`.
    """
    size = min(math.ceil(wish), others // records, most)
    return size, size


def of_anybody(epsilon0: float, most: int, others: int, wish: float) -> tuple[int, int]:
    """Any m others: no record is more than e^epsilon0 times as likely to have sent the hub's report as another one.

    Parameters
    ----------
    epsilon0 : float
        Budget, nats.
    most : int
        Copies that are evaluated.
    others : int
        Users besides the victim.
    wish : float
        Wished size if all had one record, at least 1.
    """
    size = min(math.ceil(wish * math.exp(0.5 * epsilon0)), math.ceil(most * math.exp(epsilon0)), others)
    return size, min(copies_of(size, epsilon0), most)


def of_few_or_anybody(epsilon0: float, records: int, most: int, others: int, wish: float) -> tuple[int, int]:
    """Users of one record if there are as many as wished, else anybody.

    Parameters
    ----------
    epsilon0, records, most, others, wish
        As `of_one_record`, `of_anybody`.
    """
    found = of_one_record(records, most, others, wish)
    return found if found[0] >= min(wish, most) else of_anybody(epsilon0, most, others, wish)


def most_copies(active: float) -> int:
    """Return the largest N that is evaluated: a ratio that may be 1 makes a law of two counts."""
    return MOST_COPIES if active == 1.0 else MOST_SPARSE_COPIES
