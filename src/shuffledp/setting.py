"""The question an accountant answers, and its answer: a Setting (population, randomizer, view, rounds), a Guarantee.

The answer is a central guarantee, the only result meant for publication: per level, with the evidence for it.

`shuffledp.certify` rounds every end outward to 10 significant digits. The last digits of exp and log differ between
processors; numbers that are published, compared and certified again elsewhere should not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.dummies import Dummies, check_dummies
from shuffledp.errors import MAX_EPSILON0, InvalidInput, OutOfRegime, Told, choice, shown, whole_number
from shuffledp.in_words import counted
from shuffledp.numerics.floats import LARGEST_BELOW_ONE, Interval, Upper, decimal_up
from shuffledp.randomizers.base import AnyLaw, MadeFromMemo, NoiseLaw, RandomizerLaw

Seen = Literal["reports", "users", "levels", "sum"]
SEEN: tuple[Seen, ...] = ("reports", "users", "levels", "sum")
SEEN_MEANING: dict[str, str] = {
    "reports": "the analyzer sees the shuffled reports, without their senders' budgets",
    "users": "the analyzer sees the reports in order, but the users were permuted first, and budgets go with positions",
    "levels": "the analyzer sees the shuffled reports, each with its sender's budget",
    "sum": "the analyzer sees only the sum of the reports",
}
NEIGHBORING = ("replace-one",)


@dataclass(frozen=True)
class Setting:
    """The question an accountant answers: whose privacy is bounded, in which collection, against whom.

    Parameters
    ----------
    budgets : Budgets
        The population; public, and independent of the records.
    randomizer : RandomizerLaw, NoiseLaw or "any"
        A family of local randomizers, or "any": every randomizer that keeps the budgets, the same one for all
        users of a level.
    seen : {"reports", "users", "levels", "sum"}
        What the analyzer sees after the shuffle (`SEEN_MEANING`): shuffled reports; reports in the order of
        permuted users, with budgets; shuffled reports with their budgets; or only the sum. No default.
    neighboring : {"replace-one"}
        The neighbouring relation: one user's record is replaced; n is public. No default.
    rounds : int
        Number of collections from the same users, fixed in advance, each with fresh randomness and a fresh
        shuffle; default 1.
    linked : bool
        Whether one permutation serves all rounds, so that a user's outputs can be linked across them; default
        False. Records may differ from round to round; outputs of other users must not influence later rounds, and
        whoever is missing is missing in all of them (docs/theorems/linked.md).
    colluding : int
        Users who may show the analyzer their own reports, from 0 to n - 1; default 0. The victim, the user whose
        privacy is analysed, is not among them.
    missing : float
        Largest fraction of the users who may be absent, or send junk, in [0, 1); who they are must not depend on
        the victim's record. At least the victim takes part. Default 0.
    group_size : int
        Number of records replaced together, from 1 to n, for a guarantee to groups of that many users of one level;
        default 1.
    reports_per_user : int
        Reports each user sends in a round, each within the budget and shuffled by itself, of the same item or of
        different ones; default 1. The guarantee is for a user with all her reports. Linked rounds take one report a
        round: state a user's m reports in each of T rounds as m T rounds.
    dummies : Uniform, DiscreteLaplace, OnesLaw, NormalDummies or BallDummies, optional
        Reports of nobody that the shuffler adds in each round; their number is public. Nobody colludes with them, none
        is missing, and n does not count them. They need ``seen="reports"`` and a stated randomizer of the families
        rr, krr, one-bit or hadamard (ball and normal dummies: rr, krr or one-bit). Default None.
    records : {2}, optional
        2 if every record is one of two values, or is rounded to one of them by a coin of the user's own before it is
        randomized; with randomizer "any" it also states that all users of a budget run one and the same randomizer
        (docs/theorems/count.md). None, the default, if nothing is known of them.
    same_record : bool
        Of linked rounds: whether every user's record is the same in all rounds, and a number is rounded by one coin for
        all of them (docs/theorems/linked.md); default False.

    Raises
    ------
    InvalidInput
        If a choice is unknown, a number is out of range, or the randomizer cannot serve the budgets.

    Examples
    --------
    >>> Setting(Budgets.of([1.0] * 1000), "any", seen="reports", neighboring="replace-one").budgets.n
    1000
    """

    budgets: Budgets
    randomizer: AnyLaw | Literal["any"]
    seen: Seen
    neighboring: Literal["replace-one"]
    rounds: int = 1
    linked: bool = False
    colluding: int = 0
    missing: float = 0.0
    group_size: int = 1
    reports_per_user: int = 1
    dummies: Dummies | None = None
    records: int | None = None
    same_record: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.budgets, Budgets):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"budgets must be a Budgets; got {shown(self.budgets)}; use Budgets.of(array)")
        choice(self.seen, "seen", SEEN)
        if self.neighboring not in NEIGHBORING:
            raise InvalidInput(f"neighboring must be 'replace-one'; got {shown(self.neighboring)}")
        if not isinstance(self.randomizer, str):
            if self.discrete is None and self.adds_noise is None:
                raise InvalidInput(f"randomizer must be 'any' or a local randomizer; got {shown(self.randomizer)}")
            self.randomizer.check_budgets(self.budgets.epsilons, self.budgets.deltas)
        elif self.randomizer != "any":
            raise InvalidInput(f"randomizer must be 'any' or a local randomizer; got {shown(self.randomizer)}")
        object.__setattr__(self, "rounds", whole_number(self.rounds, "rounds", 1))
        if not isinstance(self.linked, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"linked must be True or False; got {shown(self.linked)}")
        self._check_same_record()
        self._check_links()
        object.__setattr__(self, "colluding", whole_number(self.colluding, "colluding", 0, self.budgets.n - 1))
        object.__setattr__(self, "group_size", whole_number(self.group_size, "group_size", 1, self.budgets.n))
        if isinstance(self.missing, bool) or not isinstance(self.missing, int | float) or not 0.0 <= self.missing < 1.0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"missing must be a fraction of the users, in [0, 1); got {shown(self.missing)}")
        if self.records is not None and (isinstance(self.records, bool) or self.records != 2):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                f"records must be 2 (every record is one of two values), or left out; got {shown(self.records)}"
            )
        if self.dummies is not None:
            self._check_dummies()
        if self.budgets.n * self.reports_per_user > 2**53:
            raise InvalidInput(
                "at most 2^53 (about 9e15) reports can be counted exactly; "
                f"got {self.budgets.n} users with {self.reports_per_user} each; state fewer"
            )

    def _check_same_record(self) -> None:
        if not isinstance(self.same_record, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"same_record must be True or False; got {shown(self.same_record)}")
        if self.same_record and not self.linked:
            raise InvalidInput(
                "`same_record` is about linked rounds, and linked is False; set `linked` too, or leave both out"
            )
        if not isinstance(self.randomizer, MadeFromMemo):
            return
        if self.rounds > 1 and not self.same_record:
            raise InvalidInput(
                "memoised reports of several rounds are made from one memo of one record; "
                "set `linked` and `same_record`"
            )
        if self.reports_per_user != 1:
            raise InvalidInput(
                f"memoised reports are accounted one a round; got `reports_per_user = {shown(self.reports_per_user)}`"
            )

    def _check_links(self) -> None:
        several = whole_number(self.reports_per_user, "reports_per_user", 1)
        object.__setattr__(self, "reports_per_user", several)
        if self.linked and self.rounds > 1 and self.reports_per_user > 1:
            # one permutation links all m T reports of a user; m bundles of T reports would promise too little
            together = self.rounds * self.reports_per_user
            raise InvalidInput(
                f"linked rounds take one report a user and round; got `reports_per_user = {self.reports_per_user}`; "
                f"state `rounds = {together}`: all {together} reports of a user then travel together"
            )

    def _check_dummies(self) -> None:
        check_dummies(self.randomizer, self.dummies)
        if self.seen != "reports":
            raise InvalidInput(
                f"dummies hide reports without their senders' budgets, `seen = 'reports'`; got {shown(self.seen)}"
            )
        if self.linked and self.rounds > 1:
            raise InvalidInput(
                "dummies are drawn anew for every round, so linked rounds expose them; got linked = True"
            )

    @property
    def randomizer_name(self) -> str:
        """The randomizer as the command line spells it, such as ``"krr:10"`` or ``"any"``."""
        return self.randomizer if isinstance(self.randomizer, str) else self.randomizer.name

    @property
    def law(self) -> AnyLaw | None:
        """The stated randomizer, discrete or with continuous noise; None for "any"."""
        return None if isinstance(self.randomizer, str) else self.randomizer

    # kept, because asking a structural type about an object takes longer than many a bound's answer
    @cached_property
    def discrete(self) -> RandomizerLaw | None:
        """The stated randomizer if its reports are discrete; None for "any" and for continuous noise."""
        return self.randomizer if isinstance(self.randomizer, RandomizerLaw) else None

    @cached_property
    def adds_noise(self) -> NoiseLaw | None:
        """The stated randomizer if it adds continuous noise; None for "any" and for discrete reports."""
        return self.randomizer if isinstance(self.randomizer, NoiseLaw) else None

    @property
    def exposed(self) -> int:
        """Largest number of users whose reports may not hide the victim's: colluding, absent or malicious ones.

        The victim is the user whose privacy is analysed; the number is at most n - 1.
        """
        return min(self.colluding + math.ceil(self.missing * self.budgets.n), self.budgets.n - 1)

    @property
    def changed_reports(self) -> int:
        """Number of reports that differ between neighbours in one round: group size times reports per user."""
        return self.group_size * self.reports_per_user

    def unshuffled(self) -> tuple[Upper, Upper]:
        """Return the largest local epsilon of one round, and of all rounds, in nats: the guarantee without a shuffle.

        Epsilons of the reports of one person, or of all people of one group, add up; a memoised randomizer's budget
        already covers all rounds. Budgets are taken as the decimals that they are written as; sums are rounded up.

        Examples
        --------
        >>> Setting(Budgets([7.23], [10**6]), "any", "reports", "replace-one", rounds=12).unshuffled()
        (7.23, 86.76)
        """
        rounds = 1 if isinstance(self.randomizer, MadeFromMemo) else self.rounds
        one = Decimal(repr(float(self.budgets.epsilons[-1])))
        return decimal_up(one * self.changed_reports), decimal_up(one * self.changed_reports * rounds)

    def as_one_round(self) -> Setting:
        """Return linked rounds as one round, in which a user sends one report with the sum of her budgets.

        This holds for rounds fixed in advance. The randomizer of the new setting is "any", as the stated one describes
        a single round only. The budget of a memoised randomizer already covers all rounds and is kept.
        """
        share = 1.0 if isinstance(self.randomizer, MadeFromMemo) else self.rounds * (1 + 2.0**-51)
        total = self.budgets.epsilons * share
        deltas = np.minimum(self.budgets.deltas * share, LARGEST_BELOW_ONE)
        if not total[-1] <= MAX_EPSILON0:
            raise OutOfRegime(f"linked rounds add up to epsilon0 = {total[-1]:g}, beyond {MAX_EPSILON0:g}")
        return replace(
            self,
            budgets=Budgets(total, self.budgets.counts, deltas),
            randomizer="any",
            rounds=1,
            linked=False,
            same_record=False,
            records=None,  # a record of all rounds together takes more values
        )

    @property
    def is_plain(self) -> bool:
        """Whether there is one round, one report per user, one replaced record, and everybody is honest and present."""
        return all(getattr(self, name) == value for name, value in _PLAIN.items())

    def plain(self, budgets: Budgets) -> Setting:
        """Return this setting with another population and one plain round (see `is_plain`)."""
        return self if budgets is self.budgets and self.is_plain else replace(self, budgets=budgets, **_PLAIN)


_PLAIN: dict[str, Any] = {
    "rounds": 1,
    "linked": False,
    "same_record": False,
    "colluding": 0,
    "missing": 0.0,
    "group_size": 1,
    "reports_per_user": 1,
}
"""Fields of `Setting.is_plain` and their values."""


class Kind(StrEnum):
    """What the number of a bound means: a certified upper or lower end of epsilon, or an asymptotic value.

    The direction of rounding and the side from which a search approaches follow from it.
    """

    CERTIFIED_UPPER = "certified-upper"
    CERTIFIED_LOWER = "certified-lower"
    ASYMPTOTIC = "asymptotic"


@dataclass(frozen=True)
class Evidence:
    """The result of one bound for the worst level of a population, or the reason why it does not apply.

    Parameters
    ----------
    key : str
        The bound's key in ``shuffledp.bounds``.
    kind : Kind
        Certified upper bound, certified lower bound (witness) or asymptotic formula.
    reference : str
        Citation of the theorem.
    epsilon : Interval or None
        The bound's own central epsilon (nats), the largest over levels; the width of the interval is its numerical
        error. None if the bound does not apply.
    refused : str or None
        Why the bound does not apply; None if it does.
    """

    key: str
    kind: Kind
    reference: str
    epsilon: Interval | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class LevelGuarantee:
    """Central guarantee of the users at one budget level.

    Parameters
    ----------
    epsilon0, delta0 : float
        The level's local budget, epsilon0 in nats.
    count : int
        Number of users at the level.
    epsilon : Interval
        Certified bracket of the central epsilon (nats) at the guarantee's delta: the upper end holds for
        these users, the lower end is attained by a real attack on a randomizer within the setting.
    floor, crowd : Interval or None
        With dummies (fake reports that the shuffler adds) only, otherwise None. ``floor`` brackets the central
        epsilon that the dummies alone guarantee if all other users collude; ``crowd`` that of honest others and
        dummies together. The smaller upper end of the two is that of ``epsilon``.
    """

    epsilon0: float
    delta0: float
    count: int
    epsilon: Interval
    floor: Interval | None = None
    crowd: Interval | None = None


@dataclass(frozen=True, repr=False)
class Guarantee(Told):
    """A certified central (epsilon, delta) guarantee of one shuffled collection.

    Parameters
    ----------
    setting : Setting
        The question that the guarantee answers: population, randomizer, what is seen, rounds.
    delta : float
        Central delta, in (0, 1).
    levels : tuple of LevelGuarantee
        Guarantees of at most as many levels as were asked for, ascending in epsilon0; the worst level is always
        among them.
    levels_total : int
        Number of levels of the population.
    evidence : tuple of Evidence
        Every bound consulted, with its value or its refusal.
    domination : callable, optional
        Function that computes `mu`; set by `certify`.
    """

    setting: Setting
    delta: float
    levels: tuple[LevelGuarantee, ...]
    levels_total: int
    evidence: tuple[Evidence, ...]
    domination: Callable[[float], float] | None = field(default=None, repr=False, compare=False)

    def _told(self) -> str:
        setting, epsilon = self.setting, self.epsilon
        rounds = f", all {setting.rounds} rounds together" if setting.rounds > 1 else ""
        return (
            f"central epsilon at most {epsilon.upper!r} and at least {epsilon.lower!r} at delta = {self.delta!r}: "
            f"{counted(setting.budgets.n, 'user')}, randomizer {setting.randomizer_name}, seen = {setting.seen}{rounds}"
        )

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        headings = ("local epsilon0", "users", "central epsilon at most", "at least")
        return headings, (
            (level.epsilon0, f"{level.count:,}", level.epsilon.upper, level.epsilon.lower) for level in self.levels
        )

    def mu(self, outside: float) -> float:
        """Return a Gaussian shift mu that dominates this collection's privacy profile up to a probability.

        For every user and every epsilon >= 0

            delta(epsilon) <= outside + (1 - outside) (Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)).

        The collection is thus a function of the following: with probability ``outside`` everything is revealed, else a
        normal number of standard deviation 1 whose mean the record moves by mu. Probabilities ``outside`` and squares
        of mu add up over collections, also over those chosen by what earlier ones released, as long as a limit is kept
        (`PrivacyFilter`).

        Parameters
        ----------
        outside : float
            Probability, in [0, 1), with which more than mu may be revealed; 1e-3 of delta is customary.

        Returns
        -------
        float
            About the smallest such mu (2e-4 relative; 2e-3 for added noise), rounded up; inf if there is none up to 80.

        Raises
        ------
        InvalidInput
            If ``outside`` is no probability, or the guarantee states epsilons without a privacy profile.
        OutOfRegime
            If some user's delta does not fall to ``outside`` at any epsilon, as for a larger local delta0; or if there
            are more than 32 levels of added noise.

        Notes
        -----
        Source: docs/theorems/mu.md.

        Examples
        --------
        >>> import shuffledp as sdp
        >>> one = sdp.Setting(sdp.Budgets([1.0], [10_000]), "any", seen="reports", neighboring="replace-one")
        >>> 0.0118 < sdp.certify(one, delta=1e-6).mu(outside=1e-9) < 0.0119
        True
        """
        if self.domination is None:
            raise InvalidInput("this guarantee states epsilons without a privacy profile, so it has no mu; use certify")
        return self.domination(outside)

    @property
    def epsilon(self) -> Interval:
        """Largest central epsilon over levels, in nats; publish ``.upper``, which `certify` rounds up to 10 digits."""
        return Interval(
            max(level.epsilon.lower for level in self.levels),
            max(level.epsilon.upper for level in self.levels),
        )

    @property
    def floor(self) -> Interval | None:
        """Largest central epsilon over levels (nats) even if all other users collude; None without dummies."""
        return _worst([level.floor for level in self.levels if level.floor is not None])

    @property
    def crowd(self) -> Interval | None:
        """Largest central epsilon over levels (nats) with others honest as the setting says; None without dummies."""
        return _worst([level.crowd for level in self.levels if level.crowd is not None])

    @property
    def worst(self) -> LevelGuarantee:
        """The level with the largest certified epsilon; ties go to the largest lower end, then the largest budget."""
        return max(self.levels, key=lambda level: (level.epsilon.upper, level.epsilon.lower, level.epsilon0))


def _worst(intervals: list[Interval]) -> Interval | None:
    return Interval(max(each.lower for each in intervals), max(each.upper for each in intervals)) if intervals else None
