"""A central guarantee, the only result meant for publication: per level, with the evidence for it.

`shuffledp.certify` rounds every end outward to 10 significant digits. The last digits of exp and log differ between
processors; numbers that are published, compared and certified again elsewhere should not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from shuffledp.errors import InvalidInput, Told
from shuffledp.numerics.interval import Interval
from shuffledp.setting import Setting


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
            f"{setting.budgets.n:,} users, randomizer {setting.randomizer_name}, seen = {setting.seen}{rounds}"
        )

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        headings = ("local epsilon0", "users", "central epsilon at most", "at least")
        return headings, (
            (level.epsilon0, f"{level.count:,}", level.epsilon.upper, level.epsilon.lower) for level in self.levels
        )

    def mu(self, outside: float) -> float:
        """Return a Gaussian parameter mu that dominates this collection's privacy profile, but for a share ``outside``.

        For every user and every epsilon >= 0

            delta(epsilon) <= outside + (1 - outside) (Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)).

        The collection is thus a function of the following: with probability ``outside`` everything is revealed, else a
        normal number of standard deviation 1 whose mean the record moves by mu. Shares ``outside`` and squares of mu
        add up over collections, also over those chosen by what earlier ones released, as long as a limit is kept
        (`PrivacyFilter`).

        Parameters
        ----------
        outside : float
            Share of the privacy loss that mu does not cover, a probability in [0, 1); 1e-3 of delta is customary.

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


def _worst(known: list[Interval]) -> Interval | None:
    return Interval(max(each.lower for each in known), max(each.upper for each in known)) if known else None
