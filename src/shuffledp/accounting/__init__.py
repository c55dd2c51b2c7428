"""Budgets to guarantees: every theorem, and the one function that weighs them."""

from shuffledp.accounting.calibrate import (
    Calibration,
    calibrate_batch,
    calibrate_epsilon0,
    calibrate_n,
    calibrate_rounds,
    calibrate_scale,
)
from shuffledp.accounting.calibrate_dummies import DummiesNeeded, calibrate_dummies
from shuffledp.accounting.certify import bounds, certify, privacy_profile
from shuffledp.accounting.composition import compose
from shuffledp.accounting.floor import Floor, compose_floors, floor_profile
from shuffledp.accounting.interchange import from_dp_accounting, to_dp_accounting

__all__ = [
    "Calibration",
    "DummiesNeeded",
    "Floor",
    "bounds",
    "calibrate_batch",
    "calibrate_dummies",
    "calibrate_epsilon0",
    "calibrate_n",
    "calibrate_rounds",
    "calibrate_scale",
    "certify",
    "compose",
    "compose_floors",
    "floor_profile",
    "from_dp_accounting",
    "privacy_profile",
    "to_dp_accounting",
]
