"""Budgets to guarantees: every theorem, and the one function that weighs them."""

from shuffledp.accounting.calibrate import Calibration, calibrate_epsilon0, calibrate_n
from shuffledp.accounting.certify import bounds, certify, privacy_profile

__all__ = ["Calibration", "bounds", "calibrate_epsilon0", "calibrate_n", "certify", "privacy_profile"]
