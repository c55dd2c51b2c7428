"""Attacks on linked rounds that use the links (docs/theorems/linked-exact.md)."""

from __future__ import annotations

from shuffledp.accounting.bound import AmplificationBound, level_alone, shows_levels
from shuffledp.accounting.engines.blanket import LargestProfile, OneBudgetProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.linked import MOST_SAME, check_linked, one_round_of, same_record_laws
from shuffledp.accounting.theorems.reports_exact import RecordsProfile
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.randomizers.base import RandomizerLaw, StatesBundles
from shuffledp.randomizers.linked import SameRecord
from shuffledp.setting import Setting


class LinkedWitness(AmplificationBound):
    """The reports of all rounds together, every user on one record throughout: attained whether records change or not.

    See docs/theorems/linked-exact.md.
    """

    key = "linked-exact"
    kind = Kind.CERTIFIED_LOWER
    reference = "exact shuffled bundles of all linked rounds, the others on one record"

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of the worst attack tried; see `AmplificationBound.profile`."""
        found = [super(LinkedWitness, self).profile(whole, epsilon0) for whole in self._bundled(setting, epsilon0)]
        return found[0] if len(found) == 1 else LargestProfile(tuple(found))

    def links_matter(self, setting: Setting) -> bool:
        """The reports of all rounds are put together here."""
        del setting
        return False

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of the attack on reports taken together; see `AmplificationBound.one_round`."""
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
        return RecordsProfile(*(OneBudgetProfile(pair.largest_loss, pair, n, enclosed=True) for pair in pairs))

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
