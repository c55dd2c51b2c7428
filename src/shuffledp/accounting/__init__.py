"""Budgets to guarantees: every theorem, and the one function that weighs them.

Nobody outside imports below this file. Inside, one way: profiles (what a curve is), bound (what a theorem
is), theorems and published (one file or folder per key), certify, calibrate.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound, Answer, remembered, weigh
from shuffledp.accounting.certify import (
    ProfileCurve,
    bounds,
    certified_uppers,
    certify,
    drawn_profile,
    privacy_profile,
    profile_epsilons,
    renyi_points,
    worst_profile,
)
from shuffledp.accounting.profiles.composition import ComposedProfile, SmallestProfile, compose, composed
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon, remembered_by_thread
from shuffledp.accounting.profiles.stored import StoredProfile
from shuffledp.accounting.published.closed import ErlingssonProfile, gspa_mu
from shuffledp.accounting.theorems.approximate import GaussianPointsProfile
from shuffledp.accounting.theorems.chain.bound import chain_or_alone, chain_profile
from shuffledp.accounting.theorems.clones.pair import one_budget_profile
from shuffledp.accounting.theorems.floor.bound import BallFloor, Floor, ball_floor, compose_floors, floor_profile
from shuffledp.accounting.theorems.floor.normal import NormalFloor
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.accounting.theorems.ordered import OrderedProfile
from shuffledp.accounting.theorems.sum import GaussianSumProfile
from shuffledp.errors import check_delta

if TYPE_CHECKING:
    from shuffledp.accounting.calibrate import (
        LARGEST_N,
        Calibration,
        Target,
        apportioned,
        calibrate_batch,
        calibrate_epsilon0,
        calibrate_n,
        calibrate_rounds,
        calibrate_scale,
        last_within,
    )
    from shuffledp.accounting.dummies_needed import DUMMIES_LAWS, EMPTY, DummiesNeeded, calibrate_dummies
    from shuffledp.accounting.filter import Allowance, PrivacyFilter, allowed_mu, largest_pure
    from shuffledp.accounting.profiles.domination import dominating_mu, from_dp_accounting, to_dp_accounting

_LATE = {
    "calibrate": (
        "LARGEST_N",
        "Calibration",
        "Target",
        "apportioned",
        "calibrate_batch",
        "calibrate_epsilon0",
        "calibrate_n",
        "calibrate_rounds",
        "calibrate_scale",
        "last_within",
    ),
    "dummies_needed": (
        "DUMMIES_LAWS",
        "EMPTY",
        "DummiesNeeded",
        "calibrate_dummies",
    ),
    "filter": (
        "Allowance",
        "PrivacyFilter",
        "allowed_mu",
        "largest_pure",
    ),
    "profiles.domination": (
        "dominating_mu",
        "from_dp_accounting",
        "to_dp_accounting",
    ),
}
"""Names that no certificate needs, with their modules, which are imported when a name is first used."""

__all__ = [
    "DUMMIES_LAWS",
    "EMPTY",
    "LARGEST_N",
    "MANY_LEVELS",
    "Allowance",
    "AmplificationBound",
    "Answer",
    "BallFloor",
    "Calibration",
    "ComposedProfile",
    "DummiesNeeded",
    "ErlingssonProfile",
    "Floor",
    "GaussianPointsProfile",
    "GaussianSumProfile",
    "LocalProfile",
    "NormalFloor",
    "OrderedProfile",
    "PrivacyFilter",
    "PrivacyProfile",
    "ProfileCurve",
    "SmallestProfile",
    "StoredProfile",
    "Target",
    "allowed_mu",
    "apportioned",
    "ball_floor",
    "bounds",
    "calibrate_batch",
    "calibrate_dummies",
    "calibrate_epsilon0",
    "calibrate_n",
    "calibrate_rounds",
    "calibrate_scale",
    "certified_uppers",
    "certify",
    "chain_or_alone",
    "chain_profile",
    "check_delta",
    "compose",
    "compose_floors",
    "composed",
    "dominating_mu",
    "drawn_profile",
    "floor_profile",
    "from_dp_accounting",
    "gaussian_epsilon",
    "gspa_mu",
    "largest_pure",
    "last_within",
    "one_budget_profile",
    "privacy_profile",
    "profile_epsilons",
    "remembered",
    "remembered_by_thread",
    "renyi_points",
    "to_dp_accounting",
    "weigh",
    "worst_profile",
]


def __getattr__(name: str) -> Any:
    for home, names in _LATE.items():
        if name in names:
            return getattr(import_module(f"shuffledp.accounting.{home}"), name)
    raise AttributeError(f"module 'shuffledp.accounting' has no attribute {name!r}")
