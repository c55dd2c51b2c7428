"""Differential privacy in the shuffle model: certified central guarantees from personal local budgets."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shuffledp.accounting import (
        Calibration,
        bounds,
        calibrate_batch,
        calibrate_epsilon0,
        calibrate_n,
        calibrate_rounds,
        calibrate_scale,
        certify,
        compose,
        from_dp_accounting,
        privacy_profile,
        to_dp_accounting,
    )
    from shuffledp.budgets import Budgets
    from shuffledp.errors import InconsistentBounds, InvalidInput, NotConverged, OutOfRegime, ShuffleDPError
    from shuffledp.guarantee import Evidence, Guarantee, Kind, LevelGuarantee
    from shuffledp.numerics.interval import Interval
    from shuffledp.numerics.randomness import secure_random, simulation_random
    from shuffledp.protocol import Release, estimate_frequency, estimate_mean
    from shuffledp.randomizers import (
        Channel,
        Gaussian,
        HadamardResponse,
        Laplace,
        LocalHashing,
        OneBit,
        RandomizedResponse,
        SubsetSelection,
        UnaryEncoding,
    )
    from shuffledp.setting import Setting

__version__ = "0.1.0"

__all__ = [
    "Budgets",
    "Calibration",
    "Channel",
    "Evidence",
    "Gaussian",
    "Guarantee",
    "HadamardResponse",
    "InconsistentBounds",
    "Interval",
    "InvalidInput",
    "Kind",
    "Laplace",
    "LevelGuarantee",
    "LocalHashing",
    "NotConverged",
    "OneBit",
    "OutOfRegime",
    "RandomizedResponse",
    "Release",
    "Setting",
    "ShuffleDPError",
    "SubsetSelection",
    "UnaryEncoding",
    "__version__",
    "bounds",
    "calibrate_batch",
    "calibrate_epsilon0",
    "calibrate_n",
    "calibrate_rounds",
    "calibrate_scale",
    "certify",
    "compose",
    "estimate_frequency",
    "estimate_mean",
    "from_dp_accounting",
    "privacy_profile",
    "secure_random",
    "simulation_random",
    "to_dp_accounting",
]

# loaded on first use: the command line answers --help without NumPy or SciPy
_HOME = {
    "accounting": (
        "Calibration",
        "bounds",
        "calibrate_batch",
        "calibrate_epsilon0",
        "calibrate_n",
        "calibrate_rounds",
        "calibrate_scale",
        "certify",
        "compose",
        "from_dp_accounting",
        "privacy_profile",
        "to_dp_accounting",
    ),
    "budgets": ("Budgets",),
    "errors": ("InconsistentBounds", "InvalidInput", "NotConverged", "OutOfRegime", "ShuffleDPError"),
    "guarantee": ("Evidence", "Guarantee", "Kind", "LevelGuarantee"),
    "numerics.interval": ("Interval",),
    "numerics.randomness": ("secure_random", "simulation_random"),
    "protocol": ("Release", "estimate_frequency", "estimate_mean"),
    "randomizers": (
        "Channel",
        "Gaussian",
        "HadamardResponse",
        "Laplace",
        "LocalHashing",
        "OneBit",
        "RandomizedResponse",
        "SubsetSelection",
        "UnaryEncoding",
    ),
    "setting": ("Setting",),
}


def __getattr__(name: str) -> object:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"shuffledp.{module}"), name)
    raise AttributeError(f"module 'shuffledp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
