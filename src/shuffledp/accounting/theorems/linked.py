"""Linked rounds: a user's reports of all rounds travel together and are one report (docs/theorems/linked.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound, epsilons_by_anchors, level_alone, shows_levels
from shuffledp.accounting.profiles.composition import SmallestProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.blanket.bound import BlanketBound
from shuffledp.accounting.theorems.blanket.pairs import LargestProfile, OneBudgetProfile
from shuffledp.accounting.theorems.count.bound import worst_count
from shuffledp.accounting.theorems.equal_crowd import MOST_TRANSFORMS
from shuffledp.accounting.theorems.reports_exact import RecordsProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.floats import Enclosure, FloatArray
from shuffledp.randomizers.base import HiddenByFakes, MadeFromMemo, RandomizerLaw, StatesBundles
from shuffledp.randomizers.linked import ChangingRecords, SameRecord
from shuffledp.setting import Kind, Setting

MOST_CHANGING = 64
"""Largest number of rounds for which pairs of record sequences are compared."""
MOST_SAME = 1000
MOST_TYPES = 1_000_000


class LinkedBound(AmplificationBound):
    """Upper bound for linked rounds: a user's reports of all rounds are one report of a product channel.

    Theorem (I), the common blanket, is applied to that channel.

    See docs/theorems/linked.md.
    """

    key = "linked"
    kind = Kind.CERTIFIED_UPPER
    reference = "common blanket theorem (own proof) for the product channel of all linked rounds"

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the smallest of the upper bounds known for the product channel; see `AmplificationBound.profile`."""
        profiles = [super(LinkedBound, self).profile(whole, epsilon0) for whole in self._bundled(setting, epsilon0)]
        return profiles[0] if len(profiles) == 1 else SmallestProfile(tuple(profiles))

    def links_matter(self, setting: Setting) -> bool:
        """Return False: this bound itself combines the reports of all rounds, from the law of a single round."""
        del setting
        return False

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Enclose each listed level's epsilon (nats); see `AmplificationBound.level_epsilons`.

        For more than 32 levels the weaker bound for records that may change between rounds is used.
        """
        if setting.budgets.levels <= MANY_LEVELS:
            return super().level_epsilons(setting, delta, levels, ceilings)
        if setting.seen == "levels":
            raise OutOfRegime(f"linked is not evaluated for more than {MANY_LEVELS} visible levels")
        return super().level_epsilons(self._changing(setting), delta, levels, ceilings)

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the common blanket theorem's profile (I) for a victim whose reports of all rounds are one.

        See `AmplificationBound.one_round`.
        """
        if setting.seen == "levels":
            setting = level_alone(setting, epsilon0)
        blanket, law, n = BlanketBound().one_round(setting, epsilon0), setting.law, setting.budgets.n
        if not isinstance(law, MadeFromMemo) or n == 1:
            return blanket
        # all reports of a user are made from her memo, and by everybody alike: no more than the memos themselves
        return SmallestProfile((worst_count(Budgets([law.permanent], [n]), 0), blanket))

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Remove the exposed users in the worst way: of the smallest budgets, or of the victim's visible level.

        See `AmplificationBound.company`.
        """
        if setting.seen != "levels":
            return super().company(setting, budgets, level, exposed)
        counts = budgets.counts.copy()
        counts[level] = max(int(counts[level]) - exposed, 1)
        return Budgets(budgets.epsilons, counts, budgets.deltas)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Enclose each listed level's epsilon (nats) from the profiles of a few victims.

        Epsilon is not capped at the local budget of one report, because a user sends several. See
        `AmplificationBound.many_levels`.
        """
        epsilons = setting.budgets.epsilons[levels]
        enclosure = epsilons_by_anchors(epsilons, delta, self.any_victim(setting), capped=False)
        return Enclosure(np.zeros_like(enclosure.lower), enclosure.upper)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Return a function from a victim's budget to a profile, the likeliest blanket user being left out.

        See `AmplificationBound.any_victim`.
        """
        return BlanketBound().any_victim(setting)

    def _bundled(self, setting: Setting, epsilon0: float) -> list[Setting]:
        """Return the setting as one round of the product channel, for each channel that is accounted."""
        check_linked(setting, self.key)
        law, rounds = setting.law, setting.rounds
        if isinstance(law, StatesBundles):
            return [one_round_of(setting, law.together(rounds))]
        if setting.same_record and not (rounds <= MOST_CHANGING and _too_many_types(setting)):
            same = same_record_laws(setting, epsilon0)
            if same:
                return [one_round_of(setting, each) for each in same]
        return [self._changing(setting)]

    def _changing(self, setting: Setting) -> Setting:
        check_linked(setting, self.key)
        law, rounds = setting.law, setting.rounds
        if not isinstance(law, HiddenByFakes):
            raise OutOfRegime(
                f"linked needs reports of rr, krr, one-bit or hadamard if records may change; got "
                f"{setting.randomizer_name}"
            )
        if rounds > MOST_CHANGING:
            raise OutOfRegime(f"linked is evaluated up to {MOST_CHANGING} rounds if records may change; got {rounds}")
        bundle = ChangingRecords(law.report_sets, rounds, setting.same_record)
        if float(bundle.blanket_mass(setting.budgets.epsilons).max()) < 1e-200:
            raise OutOfRegime("the blanket of linked rounds of these budgets has a mass below 1e-200: it hides no user")
        return one_round_of(setting, bundle)


def check_linked(setting: Setting, key: str) -> None:
    """Refuse settings that are not about linked rounds of pure reports.

    Parameters
    ----------
    setting : Setting
        The collection.
    key : str
        Key of the bound that refuses, for the message.

    Raises
    ------
    OutOfRegime
        If rounds are not linked, budgets are not pure, or the sum alone is seen.
    """
    if not isinstance(setting.law, MadeFromMemo) and not (setting.linked and setting.rounds > 1):
        raise OutOfRegime(f"{key} is about several rounds that are linked; got rounds that are not")
    if not setting.budgets.is_pure:
        raise OutOfRegime(f"{key} needs pure local budgets (delta0 = 0); got delta0 = {setting.budgets.deltas.max():g}")
    if setting.seen == "sum":
        raise OutOfRegime(f"{key} needs reports; only their sum is seen")
    if setting.seen == "users" and setting.budgets.levels > 1:
        raise OutOfRegime(f"{key} with several budgets needs unordered reports; got seen = users")


def one_round_of(setting: Setting, law: RandomizerLaw) -> Setting:
    """Return the setting with all linked rounds as one round of another law; budgets stay those of a single report.

    Parameters
    ----------
    setting : Setting
        The collection, with linked rounds.
    law : RandomizerLaw
        The law of the reports of all rounds as one report.
    """
    return replace(setting, randomizer=law, rounds=1, linked=False, same_record=False, records=None)


def same_record_laws(setting: Setting, epsilon0: float) -> list[RandomizerLaw]:
    """Return laws for the reports of all rounds as one, if records do not change; empty if the family has none.

    They are product channels whose reports are counted by type: how often each symbol occurs.

    Parameters
    ----------
    setting : Setting
        The collection, with linked rounds and `Setting.same_record`.
    epsilon0 : float
        The victim's budget of a single report, nats.

    Raises
    ------
    OutOfRegime
        If there are more than a thousand rounds, or too many types.
    """
    law, rounds = setting.law, setting.rounds
    if not (isinstance(law, HiddenByFakes) and law.report_sets.disjoint):
        return []
    k = law.report_sets.one_in
    if rounds > MOST_SAME:
        raise OutOfRegime(f"linked is evaluated up to {MOST_SAME} rounds of one record; got {rounds}")
    if _too_many_types(setting):
        raise OutOfRegime(
            f"linked compares at most {MOST_TYPES:,} types of reports; {rounds} rounds of {law.name} have more"
        )
    several = k == 2 and 1 < setting.budgets.levels <= MANY_LEVELS and setting.seen != "levels"
    # the reference 0 is the blanket of records that may change
    references = [0.0, *setting.budgets.epsilons.tolist()] if several else [epsilon0]
    return [
        min(
            (SameRecord(k, rounds, each) for each in references),
            key=lambda law: _spread(law, setting.budgets, epsilon0),
        )
    ]


def _too_many_types(setting: Setting) -> bool:
    """Whether a family of sets, with one record in all rounds, has more types of reports than are compared."""
    law = setting.law
    if not (isinstance(law, HiddenByFakes) and law.report_sets.disjoint):
        return False
    return math.comb(setting.rounds + law.report_sets.one_in - 1, law.report_sets.one_in - 1) > MOST_TYPES


def _spread(law: SameRecord, budgets: Budgets, epsilon0: float) -> float:
    """Return n mu^2 of the Gaussian limit: which reference to choose (any is a bound)."""
    pair = law.pair_blankets(epsilon0)[0]
    hidden = float(budgets.counts @ law.blanket_mass(budgets.epsilons))
    with np.errstate(over="ignore"):  # of very many rounds: infinite, and no worse choice than any other
        second = float(pair.masses @ (pair.ratios0 - pair.ratios1) ** 2)
    return second / hidden if hidden > 0.0 else math.inf


# ------------------------------------------------------------------ linked exact
# Attacks on linked rounds that use the links (docs/theorems/linked-exact.md).


class LinkedWitness(AmplificationBound):
    """Lower bound by an attack on the reports of all rounds together, every user on one record throughout.

    It holds whether records may change between rounds or not. See docs/theorems/linked-exact.md.
    """

    key = "linked-exact"
    kind = Kind.CERTIFIED_LOWER
    reference = "exact shuffled bundles of all linked rounds, the others on one record"

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of the best of the attacks tried; see `AmplificationBound.profile`."""
        profiles = [super(LinkedWitness, self).profile(whole, epsilon0) for whole in self._bundled(setting, epsilon0)]
        return profiles[0] if len(profiles) == 1 else LargestProfile(tuple(profiles))

    def links_matter(self, setting: Setting) -> bool:
        """Return False: this attack itself combines the reports of all rounds."""
        del setting
        return False

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of the attack on the combined reports; see `AmplificationBound.one_round`."""
        if shows_levels(setting):
            setting = level_alone(setting, epsilon0)
        if setting.budgets.levels > 1:
            raise OutOfRegime(
                f"linked-exact needs others with one budget; got {setting.budgets.levels} levels that do not show"
            )
        family = setting.discrete
        pairs = None if family is None else family.witness_pairs(epsilon0)
        if pairs is None:
            raise OutOfRegime("linked-exact finds a record without which some reports are impossible or too rare")
        n = setting.budgets.n
        forward, backward = (OneBudgetProfile(pair.largest_loss, pair, n, enclosed=True) for pair in pairs)
        return RecordsProfile(forward, backward, MOST_TRANSFORMS // 4)

    def _bundled(self, setting: Setting, epsilon0: float) -> list[Setting]:
        check_linked(setting, self.key)
        law, rounds = setting.law, setting.rounds
        bundles: list[RandomizerLaw]
        if isinstance(law, StatesBundles):
            bundles = [law.together(rounds)]
        elif law is None:
            if rounds > MOST_SAME:
                raise OutOfRegime(f"linked-exact is evaluated up to {MOST_SAME} rounds; got {rounds}")
            ks = (2,) if setting.records == 2 else (2, 3)
            bundles = [SameRecord(k, rounds, epsilon0) for k in ks]
        else:
            bundles = [_with_thirds(bundle, setting.records is None) for bundle in same_record_laws(setting, epsilon0)]
        if not bundles:
            raise OutOfRegime(f"linked-exact attacks rr, krr, one-bit, memoised; got {setting.randomizer_name}")
        return [one_round_of(setting, bundle) for bundle in bundles]


def _with_thirds(bundle: RandomizerLaw, thirds: bool) -> RandomizerLaw:
    if isinstance(bundle, SameRecord):
        return SameRecord(bundle.k, bundle.rounds, bundle.reference, thirds)
    return bundle
