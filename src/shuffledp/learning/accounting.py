"""What training costs: the accountant of all rounds, and the worst share of tiers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting import (
    GaussianPointsProfile,
    GaussianSumProfile,
    LocalProfile,
    OrderedProfile,
    PrivacyProfile,
    SmallestProfile,
    bounds,
    chain_or_alone,
    chain_profile,
    compose,
    composed,
    one_budget_profile,
    weigh,
)
from shuffledp.budgets import Budgets
from shuffledp.errors import MAX_EPSILON0, InvalidInput, OutOfRegime, Told, check_delta
from shuffledp.in_words import up
from shuffledp.learning.messages import UNIT_MEANING, Unit
from shuffledp.numerics.floats import Interval, round_down, round_up
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.setting import Evidence, Kind, LevelGuarantee, Seen, Setting

# What may be claimed of a training run, and the message laws it rests on.

SERVER_SEES: dict[str, str] = {
    "reports": "the server sees the shuffled messages of a round, all computed at one model",
    "users": "the server sees every message, clients in a fresh random order, and moves the model after each",
    "levels": "the server sees the shuffled messages of a round with their budgets, all computed at one model",
    "sum": "the server sees only the sum of a round's messages",
}

REFERENCES: dict[str, str] = {
    "local": "plain composition of the message's own noise: no shuffling is counted on",
    "levels": "clone theorem within the budget level (own proof), fresh shuffle every round, composed",
    "approximate": "clone theorem within the budget level, Gaussian noise charged (own proof), fresh shuffle, composed",
    "chain": "chain theorem for Gaussian noise within the budget level (own proof), fresh shuffle, composed",
    "ordered": "clone theorem for ordered, adaptive steps (own proof), fresh permutation every round, composed",
    "blanket": "one-bit messages of all budgets hide each other (blanket of fair bits under public seeds, own proof), "
    "fresh shuffle every round, composed",
    "sum": "the noises of all messages of a round add; rounds composed",
}


@dataclass(frozen=True)
class Tier:
    """Message law of the clients that share one budget, sensitivity and noise scale.

    Parameters
    ----------
    epsilon0, delta0 : float
        Local budget of one message; epsilon0 in (0, 700], delta0 in [0, 1).
    sensitivity : float
        Largest distance by which replacing one unit (client or example) moves the message, in grid steps and in the
        mechanism's norm.
    scale : float
        Certified noise scale in grid steps: standard deviation of Gaussian noise, or Laplace scale.
    """

    epsilon0: float
    delta0: float
    sensitivity: float
    scale: float

    @property
    def ratio(self) -> float:
        """Ratio sensitivity/scale, rounded up: mu of Gaussian noise, epsilon (nats) of Laplace noise."""
        return round_up(self.sensitivity / self.scale, 2)


@dataclass(frozen=True, repr=False)
class TrainingGuarantee(Told):
    """Certified central guarantee of a training run.

    Parameters
    ----------
    unit : {"client", "example"}
        What neighbouring data sets replace: all data of one client, or one example.
    seen : {"reports", "users", "levels", "sum"}
        What the server sees.
    delta : float
        Central delta.
    rounds : int
        Rounds that were released.
    levels : tuple of LevelGuarantee
        Per budget level; upper ends are certified, lower ends are 0: no attack is claimed.
    levels_total : int
        Number of all levels; if there are more than 1000, ``levels`` lists only some, the worst among them.
    evidence : tuple of Evidence
        Every bound consulted for the worst level, with its value or its refusal.
    method : str
        Key of the bound that gave the worst level's number.
    notes : tuple of str
        Further assumptions of the guarantee, one sentence each.
    private : bool
        False if the noise came from a seeded generator: then nothing is guaranteed.
    """

    unit: Unit
    seen: Seen
    delta: float
    rounds: int
    levels: tuple[LevelGuarantee, ...]
    levels_total: int
    evidence: tuple[Evidence, ...]
    method: str
    notes: tuple[str, ...] = ()
    private: bool = True

    def _told(self) -> str:
        rounds = f"{self.rounds} round{'' if self.rounds == 1 else 's'}"
        return (
            f"central epsilon at most {self.epsilon.upper!r} at delta = {self.delta!r}, by {self.method}: {rounds}, "
            f"neighbours replace one {self.unit}, seen = {self.seen}" + ("" if self.private else "; NOT PRIVATE")
        )

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        return ("budget of a message", f"{self.unit}s", "central epsilon at most"), (
            (level.epsilon0, f"{level.count:,}", level.epsilon.upper) for level in self.levels
        )

    @property
    def epsilon(self) -> Interval:
        """Interval of the largest central epsilon over all levels, in nats; its ``.upper`` is the value to publish."""
        return Interval(0.0, max((level.epsilon.upper for level in self.levels), default=0.0))

    @property
    def worst(self) -> LevelGuarantee:
        """Guarantee of the level with the largest certified epsilon."""
        return max(self.levels, key=lambda level: (level.epsilon.upper, level.epsilon0))

    def describe(self) -> str:
        """Return the guarantee in sentences, one per line."""
        head = (
            f"({up(self.epsilon.upper)}, {self.delta:g})-differential privacy after {self.rounds} rounds"
            if self.private
            else "no privacy: the noise came from a seeded generator; with secure randomness it would be "
            f"({up(self.epsilon.upper)}, {self.delta:g})"
        )
        return "\n".join(
            (
                f"{head}, by {self.method}: {REFERENCES[self.method]}.",
                f"Neighbours: {UNIT_MEANING[self.unit]}. {SERVER_SEES[self.seen].capitalize()}.",
                *(f"{note[0].upper()}{note[1:]}." for note in self.notes),
            )
        )


# Which tiers of very many are asked what they cost, so that the worst is among them.


def tiers_to_ask(
    tiers: Sequence[Tier], rounds: Iterable[tuple[int, ...]], *, most: int, hidden: int
) -> NDArray[np.int64]:
    """Return the positions of the tiers whose epsilon must be computed to find the largest one.

    A tier is a message law; tiers that sent nothing are left out. If more than ``most`` tiers sent something, an even
    choice of them is taken, together with every tier that may be the worst.

    Tiers with several messages in a round, whose clients hide each other, are all evaluated if there are at most
    ``hidden`` of them; beyond, nobody is taken to hide. Among the other tiers of the same rounds the cost grows with
    the ratio sensitivity/scale, where a client's own noise protects it, and with the sensitivity, where the noise of a
    sum does: the tiers that no other exceeds in both are evaluated.

    Parameters
    ----------
    tiers : sequence of Tier
        All of them.
    rounds : iterable of tuple of int
        Messages per tier of every kind of round.
    most : int
        Number of tiers beyond which only an even choice of them is evaluated.
    hidden : int
        Largest number of tiers with several messages in a round for which amplification is evaluated.

    Returns
    -------
    ndarray of int64, shape (asked,)
        Positions in ``tiers``, ascending.

    Examples
    --------
    >>> tiers = [Tier(e, 0.0, e, 1.0) for e in (0.5, 1.0, 2.0)]
    >>> tiers_to_ask(tiers, [(1, 1, 50)], most=1, hidden=32).tolist()
    [0, 1, 2]
    """
    counts = np.array(list(rounds), dtype=np.int64).reshape(-1, len(tiers))
    there = np.flatnonzero(counts.any(axis=0))
    if there.size <= most:
        return there
    ratio, moved = np.array([tier.ratio for tier in tiers]), np.array([tier.sensitivity for tier in tiers])
    even = there[np.argsort(ratio[there], kind="stable")][
        np.unique(np.linspace(0, there.size - 1, most).astype(np.int64))
    ]
    crowds = there[(counts[:, there] > 1).any(axis=0)]
    if crowds.size > hidden:
        crowds = crowds[:0]
    alone = np.setdiff1d(there, crowds)
    if alone.size == 0:
        return np.union1d(even, crowds)
    _, pattern = np.unique(counts[:, alone] > 0, axis=1, return_inverse=True)
    pattern, front, largest = pattern.ravel(), list[int](), dict[int, float]()
    for at in np.lexsort((-moved[alone], -ratio[alone], pattern)).tolist():
        kind, tier = int(pattern[at]), int(alone[at])
        if kind not in largest or moved[tier] > largest[kind]:
            largest[kind] = float(moved[tier])
            front.append(tier)
    return np.unique(np.concatenate((even, crowds, np.array(front, dtype=np.int64))))


# From what a training run did to the guarantee it has: which theorem may be used, over how many rounds.
#
# Of each round the messages of each tier (budget, sensitivity, noise) are counted. What may be claimed depends on the
# unit and on what the server sees (docs/learning.md):
#
# - every message, example level: nothing hides in a shuffle, as clients' messages differ by far more than their noise;
#   plain composition of the noise, exactly, mu = sensitivity/scale a round (`local`);
# - shuffled messages computed at one model, client level, fresh shuffle every round: also the clone pair within a
#   budget level (`levels`; Gaussian noise with a charge: `approximate`), `chain`; of one bit, budgets not seen,
# `blanket`; - ordered messages of permuted clients, each at the newest model: the clone theorem for adaptive steps
#   (`ordered`) of pure budgets; else plain composition with the narrowest noise, since steps belong to nobody;
# - only the sum: the noises add (`sum`); and what is true of the shuffled messages, of which their sum is a function.
#
# `shuffledp.accounting.weigh` decides which of these applies, as for collections.

MOST_TIERS = 1000


MOST_HIDDEN_TIERS = 32
"""Largest number of tiers of several messages whose amplification is evaluated.

With more, plain composition is used.
"""


MOST_ORDERED_TIERS = 250
"""Largest number of different budgets of steps for which the ordered theorem is evaluated."""


@dataclass
class TrainingAccountant:
    """Accountant that records released training rounds and computes their certified central epsilon.

    Parameters
    ----------
    unit : {"client", "example"}
        What neighbours replace.
    seen : {"reports", "users", "levels", "sum"}
        What the server sees.
    gaussian : bool
        True for Gaussian noise, False for Laplace noise.
    tiers : tuple of Tier
        All message laws of the run, fixed before the first round.
    bits : bool
        Whether a message is one bit by randomized response, given a public seed that no record influences
        (`shuffledp.learning.rounds`).
    spent : dict
        Maps the number of messages of each tier in a round (a tuple as long as ``tiers``) to the number of such rounds.
    """

    unit: Unit
    seen: Seen
    gaussian: bool
    tiers: tuple[Tier, ...]
    spent: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])
    bits: bool = False
    _profiles: dict[object, PrivacyProfile] = field(default_factory=dict[object, PrivacyProfile], repr=False)
    _crowds: tuple[int, int] = field(default=(0, -1), repr=False)
    _answers: dict[tuple[int, float], tuple[PrivacyProfile, Interval]] = field(
        default_factory=dict[tuple[int, float], tuple[PrivacyProfile, Interval]], repr=False
    )

    @property
    def rounds(self) -> int:
        """Number of released rounds recorded so far."""
        return sum(self.spent.values())

    def spend(self, messages: Sequence[int], rounds: int = 1) -> None:
        """Record released rounds.

        Parameters
        ----------
        messages : sequence of int, one per tier
            Messages of each tier in a round. Who takes part must not depend on the records.
        rounds : int
            Number of released rounds with these messages; at least 1.
        """
        if len(key := tuple(int(m) for m in messages)) != len(self.tiers) or min(key) < 0 or sum(key) == 0:
            raise InvalidInput(f"a round needs a count for each of {len(self.tiers)} tiers, one message or more")
        self.spent[key] = self.spent.get(key, 0) + rounds

    def epsilon_after(self, messages: Sequence[int], delta: float, rounds: int = 1, *, enough: float = 0.0) -> float:
        """Return the largest certified epsilon, in nats, over all tiers after further rounds; nothing is recorded.

        Parameters
        ----------
        messages : sequence of int, one per tier
            Messages of each tier in one of these rounds.
        delta : float
            Central delta, in (0, 1).
        rounds : int
            Number of further rounds.
        enough : float
            Epsilon at which the search for smaller bounds of a tier stops.
        """
        ahead = replace(self, spent=dict(self.spent))  # it shares the profiles
        ahead.spend(messages, rounds)
        return ahead.epsilon(delta, enough=enough)

    def guess_after(self, messages: Sequence[int], delta: float, rounds: int) -> float:
        """Return the epsilon of the tier with the least noise after further rounds; an estimate, not a bound.

        That tier is usually the worst one, so the value is mostly that of `epsilon_after`, and faster. Parameters are
        as there.
        """
        ahead = replace(self, spent=dict(self.spent))
        ahead.spend(messages, rounds)
        worst = max((i for i, count in enumerate(messages) if count), key=lambda i: self.tiers[i].ratio)
        return ahead.tier_answer(worst, delta)[1]

    def epsilon(self, delta: float, *, enough: float = 0.0) -> float:
        """Return the largest certified epsilon over all tiers so far, in nats; 0 before the first round.

        ``enough`` is an epsilon at which the search for smaller bounds of a tier stops.
        """
        target, listed = check_delta(delta), self._listed()
        if listed and self.unit == "example" and self.seen != "sum":  # plain composition: the largest shift is worst
            listed = [max(listed, key=lambda i: self.tiers[i].ratio * math.sqrt(self._rounds_of(i)))]
        return max((self.tier_answer(index, target, enough)[1] for index in listed), default=0.0)

    def guarantee(self, delta: float, *, notes: tuple[str, ...] = (), private: bool = True) -> TrainingGuarantee:
        """Return the certified central guarantee of the rounds recorded so far, level by level.

        Parameters
        ----------
        delta : float
            Central delta, in (0, 1).
        notes : tuple of str
            Further assumptions to list in the guarantee, one sentence each.
        private : bool
            False if the noise came from a seeded generator.
        """
        target = check_delta(delta)
        by_tier = {index: self.tier_answer(index, target) for index in self._listed()}
        if not by_tier:
            return TrainingGuarantee(self.unit, self.seen, target, 0, (), 0, (), "local", notes, private)
        worst = max(by_tier, key=lambda index: (by_tier[index][1], self.tiers[index].epsilon0))
        levels: dict[tuple[float, float], LevelGuarantee] = {}
        for index in sorted(by_tier, key=lambda i: (self.tiers[i].epsilon0, self.tiers[i].delta0)):
            tier, key = self.tiers[index], (self.tiers[index].epsilon0, self.tiers[index].delta0)
            before = levels.get(key, LevelGuarantee(*key, 0, Interval(0.0, 0.0)))
            upper = max(before.epsilon.upper, by_tier[index][1])
            most = max(messages[index] for messages in self.spent)
            levels[key] = LevelGuarantee(tier.epsilon0, tier.delta0, before.count + most, Interval(0.0, upper))
        total = len({(tier.epsilon0, tier.delta0) for tier in self.tiers})
        return TrainingGuarantee(
            self.unit,
            self.seen,
            target,
            self.rounds,
            tuple(levels.values()),
            total,
            by_tier[worst][2],
            by_tier[worst][0],
            notes,
            private,
        )

    def _listed(self) -> list[int]:
        """Tiers that sent something; of very many some, the worst among them."""
        return tiers_to_ask(self.tiers, self.spent, most=MOST_TIERS, hidden=MOST_HIDDEN_TIERS).tolist()

    def tier_answer(self, index: int, delta: float, enough: float = 0.0) -> tuple[str, float, tuple[Evidence, ...]]:
        """Return the smallest certified epsilon of one tier, the bound that gave it, and all evidence.

        Parameters
        ----------
        index : int
            Position in ``tiers``.
        delta : float
            Central delta, in (0, 1).
        enough : float
            Epsilon at which the search stops: no further bound is evaluated once one is at most this. Closed forms come
            first.

        Returns
        -------
        tuple
            Key of the smallest valid bound, its certified epsilon in nats (inf if none is finite), and all evidence.
        """
        chosen = self._theorems()
        evidence: list[Evidence] = []
        best, smallest = "local", math.inf
        for answer in weigh(chosen, lambda key: self._epsilon(chosen[key](index), delta)):
            key, epsilon = answer.bound, answer.value
            evidence.append(Evidence(key, Kind.CERTIFIED_UPPER, REFERENCES[key], epsilon, answer.refused))
            if epsilon is not None and epsilon.upper < smallest:
                best, smallest = key, epsilon.upper
            if smallest <= enough:
                break
        return best, smallest, tuple(evidence)

    def _epsilon(self, profile: PrivacyProfile, delta: float) -> Interval:
        """Invert a profile once, also where it serves many tiers: that takes longest. Ends as published."""
        entry = self._answers.get((id(profile), delta))
        if entry is None or entry[0] is not profile:
            entry = profile, profile.epsilon(delta).published()
            self._answers[id(profile), delta] = entry  # it keeps the profile, so that no other gets its id
        return entry[1]

    def tier_profile(self, index: int) -> PrivacyProfile:
        """Return the certified profile delta(epsilon) of one tier: the smallest of the bounds that apply.

        Parameters
        ----------
        index : int
            Position in ``tiers`` of a tier that sent at least one message.
        """
        chosen = self._theorems()
        answers = weigh(chosen, lambda key: chosen[key](index))
        return SmallestProfile(tuple(answer.value for answer in answers if answer.value is not None))

    def widest_local(self) -> PrivacyProfile:
        """Return a profile delta(epsilon) that bounds every tier: composition of all rounds with the least noise.

        A message of wider noise is a post-processing of one of narrower noise, and so is the absence of one.
        """
        everybody = max(range(len(self.tiers)), key=lambda i: self.tiers[i].ratio)
        always = tuple(int(i == everybody) for i in range(len(self.tiers)))
        return replace(self, spent={always: self.rounds})._local(everybody)

    def _theorems(self) -> dict[str, Callable[[int], PrivacyProfile]]:
        return {
            "local": self._local,
            "sum": self._sum,
            "levels": self._levels,
            "blanket": self._blanket,
            "chain": self._chain,
            "approximate": self._approximate,
            "ordered": self._ordered,
        }

    def _rounds_of(self, index: int) -> int:
        """Return the rounds in which somebody of the tier sent a message: the victim took part in each."""
        return sum(times for messages, times in self.spent.items() if messages[index])

    def _local(self, index: int) -> PrivacyProfile:
        """Gaussian rounds are one shift sqrt(rounds) mu; pure rounds compose as randomized response does."""
        at_steps = self.seen == "users" and self.unit == "client"  # the victim may get any step
        ratio = max(tier.ratio for tier in self.tiers) if at_steps else self.tiers[index].ratio
        rounds = self.rounds if at_steps else self._rounds_of(index)
        if self.gaussian:
            return GaussianSumProfile(ratio * math.sqrt(rounds))
        if ratio > MAX_EPSILON0:
            raise OutOfRegime(f"local pure composition needs epsilon0 up to {MAX_EPSILON0:g}; got {ratio:g}")
        if self.bits and len(self.tiers) > MOST_HIDDEN_TIERS:
            # more budgets than can be asked for one by one; `blanket` says more anyway
            ratio = round_up(self._anchor(self.tiers[index].epsilon0), 2)
        return self._once(
            ("local", ratio, rounds),
            lambda: composed(self._once(("local", ratio), lambda: LocalProfile(ratio, 0.0)), rounds),
        )

    def _levels(self, index: int) -> PrivacyProfile:
        self._require_shuffled_clients("levels")
        if self.gaussian:
            raise OutOfRegime("levels needs pure budgets; Gaussian noise is served by 'approximate'")
        tier = self.tiers[index]
        return self._composed_by_company(
            index,
            lambda n: one_budget_profile(tier.ratio, n, coarse=False) if n > 1 else LocalProfile(tier.ratio, 0.0),
        )

    def _blanket(self, index: int) -> PrivacyProfile:
        """Bits of all budgets hide each other: any seed with a fair bit is the same for all (docs/learning.md)."""
        if not self.bits:
            raise OutOfRegime("blanket with several budgets needs messages of one bit (`mechanism = 'sketch'`)")
        self._require_shuffled_clients("blanket", levels_apart=False)
        if self.seen != "reports":
            raise OutOfRegime(f"blanket needs shuffled bits without their budgets; got `seen = '{self.seen}'`")
        if len(self.tiers) == 1:
            raise OutOfRegime("all messages have one budget: blanket and levels are the same number")
        victim = self._anchor(self.tiers[index].epsilon0)

        def one(messages: tuple[int, ...]) -> PrivacyProfile:
            some = [i for i, m in enumerate(messages) if m]
            budgets = Budgets([self.tiers[i].epsilon0 for i in some], [messages[i] for i in some])
            setting = Setting(budgets, RandomizedResponse(2), seen="reports", neighboring="replace-one")
            return bounds["blanket"].any_victim(setting)(victim)

        taken = tuple((m, times) for m, times in self.spent.items() if m[index])
        parts = [(self._once(("blanket", m, victim), lambda m=m: one(m)), times) for m, times in taken]
        return self._once(("blanket", taken, victim), lambda: compose(parts))

    def _anchor(self, epsilon0: float) -> float:
        """One of a few budgets that stand for all: the next above. A larger budget of the victim's only costs more."""
        budgets = np.unique([tier.epsilon0 for tier in self.tiers])
        if budgets.size > MOST_HIDDEN_TIERS:
            budgets = budgets[np.unique(np.linspace(0, budgets.size - 1, MOST_HIDDEN_TIERS).astype(np.int64))]
        return float(budgets[np.searchsorted(budgets, epsilon0)])

    def _approximate(self, index: int) -> PrivacyProfile:
        self._require_shuffled_clients("approximate")
        if not self.gaussian:
            raise OutOfRegime("approximate is for Gaussian noise; pure budgets are served by 'levels'")
        ratio = self.tiers[index].ratio
        return self._composed_by_company(
            index,
            lambda n: GaussianPointsProfile(round_down(1.0 / ratio, 2), n) if n > 1 else GaussianSumProfile(ratio),
        )

    def _chain(self, index: int) -> PrivacyProfile:
        self._require_shuffled_clients("chain")  # clipped messages lie in one ball around 0
        if not self.gaussian:
            raise OutOfRegime("chain is for Gaussian noise; pure budgets are served by 'levels'")
        ratio = self.tiers[index].ratio
        chain_profile(ratio, max(messages[index] for messages in self.spent))  # or refuse, and say why
        return self._composed_by_company(index, lambda n: chain_or_alone(ratio, n), "chain")

    def _ordered(self, index: int) -> PrivacyProfile:
        del index  # one number for everybody
        if self.seen != "users" or self.unit != "client":
            raise OutOfRegime("ordered is for permuted clients whose messages are seen in order, `unit = 'client'`")
        if self.gaussian:
            raise OutOfRegime("ordered needs pure budgets; Gaussian noise has none: use `mechanism = 'laplace'`")
        steps = [tier.ratio for tier in self.tiers]
        if len(steps) > MOST_ORDERED_TIERS:
            raise OutOfRegime(f"ordered is evaluated for up to {MOST_ORDERED_TIERS} budget levels; bucket the budgets")

        def one(messages: tuple[int, ...]) -> PrivacyProfile:
            some = [i for i, m in enumerate(messages) if m]
            return OrderedProfile(Budgets([steps[i] for i in some], [messages[i] for i in some]))

        parts = [(self._once(("ordered", m), lambda m=m: one(m)), times) for m, times in self.spent.items()]
        return self._once(("ordered", tuple(self.spent.items())), lambda: compose(parts))

    def _sum(self, index: int) -> PrivacyProfile:
        if self.seen != "sum":
            raise OutOfRegime(f"sum is for released sums; got seen = {self.seen}")
        moved = self.tiers[index].sensitivity
        if not self.gaussian:  # the widest noise alone, in the norm of absolute values
            parts = [
                (
                    LocalProfile(
                        round_up(moved / max(t.scale for t, m in zip(self.tiers, messages, strict=True) if m), 2), 0.0
                    ),
                    times,
                )
                for messages, times in self.spent.items()
                if messages[index]
            ]
            return compose(parts)
        squares = 0.0
        for messages, times in self.spent.items():
            if messages[index]:
                variance = math.fsum(m * tier.scale**2 for m, tier in zip(messages, self.tiers, strict=True))
                squares += times * moved**2 / variance
        return GaussianSumProfile(round_up(math.sqrt(squares), 4 + len(self.spent)))

    def _require_shuffled_clients(self, key: str, *, levels_apart: bool = True) -> None:
        if self.unit == "example":
            raise OutOfRegime(
                f"{key} needs messages that are alike for any two records of the shuffled unit; at example level one "
                "client's message is told from another's by its other examples, so the shuffle hides nothing"
            )
        if self.seen == "users":
            raise OutOfRegime(f"{key} is for messages computed at one model and shuffled; each step sees the newest")
        if levels_apart and self._several() > MOST_HIDDEN_TIERS:
            raise OutOfRegime(f"{key} is evaluated for up to {MOST_HIDDEN_TIERS} budget levels; bucket the budgets")

    def _several(self) -> int:
        """Tiers that had several messages in a round."""
        if self._crowds[0] != (key := hash(tuple(self.spent))):
            self._crowds = key, sum(max(each) > 1 for each in zip(*self.spent, strict=True))
        return self._crowds[1]

    def _composed_by_company(
        self, index: int, one: Callable[[int], PrivacyProfile], key: str = "clones"
    ) -> PrivacyProfile:
        """Compose rounds by how many messages of the tier each had; other levels' messages hide none."""
        if max(messages[index] for messages in self.spent) == 1:
            raise OutOfRegime("nobody else in a round has this budget: nothing hides its message, and local says all")
        tier, company = self.tiers[index], dict[int, int]()
        for messages, times in self.spent.items():
            if messages[index]:
                company[messages[index]] = company.get(messages[index], 0) + times
        kept = (key, self.gaussian, tier.ratio)
        return compose([(self._once((*kept, n), lambda n=n: one(n)), times) for n, times in company.items()])

    def _once(self, key: object, make: Callable[[], PrivacyProfile]) -> PrivacyProfile:
        """Keep the profile: its tables are used again by later questions."""
        if key not in self._profiles:
            self._profiles[key] = make()
        return self._profiles[key]
