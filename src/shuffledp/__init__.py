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
    from shuffledp.audit import AuditResult, audit_pipeline, audit_randomizer
    from shuffledp.budgets import Budgets
    from shuffledp.errors import InconsistentBounds, InvalidInput, NotConverged, OutOfRegime, ShuffleDPError
    from shuffledp.guarantee import Evidence, Guarantee, Kind, LevelGuarantee
    from shuffledp.learning import ShuffledSGDClassifier, TrainingGuarantee
    from shuffledp.numerics.interval import Interval
    from shuffledp.numerics.randomness import secure_random, simulation_random
    from shuffledp.planning import Bucketing, FrequencyQuestion, MeanQuestion, Plan, bucket_budgets, plan
    from shuffledp.protocol import (
        FrequencyEstimator,
        FrequencyTally,
        HistogramEstimator,
        MeanEstimator,
        MeanTally,
        QuantileEstimator,
        RangeRelease,
        Release,
        RowBudgets,
        VarianceTally,
        VectorTally,
        estimate_frequency,
        estimate_histogram,
        estimate_mean,
        estimate_quantiles,
        estimate_variance,
        estimate_vector_mean,
        frequency_of_table,
        histogram_of_table,
        mean_of_table,
        project_to_simplex,
        quantiles_of_table,
        variance_of_table,
    )
    from shuffledp.randomizers import (
        Channel,
        CoordinateSampling,
        DirectionCodebook,
        Gaussian,
        HadamardResponse,
        Hybrid,
        Laplace,
        LocalHashing,
        OneBit,
        Piecewise,
        RandomizedResponse,
        RangeTree,
        SignedSketch,
        SubsetSelection,
        UnaryEncoding,
    )
    from shuffledp.setting import Setting

__version__ = "0.1.0"

__all__ = [
    "AuditResult",
    "Bucketing",
    "Budgets",
    "Calibration",
    "Channel",
    "CoordinateSampling",
    "DirectionCodebook",
    "Evidence",
    "FrequencyEstimator",
    "FrequencyQuestion",
    "FrequencyTally",
    "Gaussian",
    "Guarantee",
    "HadamardResponse",
    "HistogramEstimator",
    "Hybrid",
    "InconsistentBounds",
    "Interval",
    "InvalidInput",
    "Kind",
    "Laplace",
    "LevelGuarantee",
    "LocalHashing",
    "MeanEstimator",
    "MeanQuestion",
    "MeanTally",
    "NotConverged",
    "OneBit",
    "OutOfRegime",
    "Piecewise",
    "Plan",
    "QuantileEstimator",
    "RandomizedResponse",
    "RangeRelease",
    "RangeTree",
    "Release",
    "RowBudgets",
    "Setting",
    "ShuffleDPError",
    "ShuffledSGDClassifier",
    "SignedSketch",
    "SubsetSelection",
    "TrainingGuarantee",
    "UnaryEncoding",
    "VarianceTally",
    "VectorTally",
    "__version__",
    "audit_pipeline",
    "audit_randomizer",
    "bounds",
    "bucket_budgets",
    "calibrate_batch",
    "calibrate_epsilon0",
    "calibrate_n",
    "calibrate_rounds",
    "calibrate_scale",
    "certify",
    "compose",
    "estimate_frequency",
    "estimate_histogram",
    "estimate_mean",
    "estimate_quantiles",
    "estimate_variance",
    "estimate_vector_mean",
    "frequency_of_table",
    "from_dp_accounting",
    "histogram_of_table",
    "mean_of_table",
    "plan",
    "privacy_profile",
    "project_to_simplex",
    "quantiles_of_table",
    "secure_random",
    "simulation_random",
    "to_dp_accounting",
    "variance_of_table",
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
    "audit": (
        "AuditResult",
        "audit_pipeline",
        "audit_randomizer",
    ),
    "budgets": ("Budgets",),
    "errors": (
        "InconsistentBounds",
        "InvalidInput",
        "NotConverged",
        "OutOfRegime",
        "ShuffleDPError",
    ),
    "guarantee": (
        "Evidence",
        "Guarantee",
        "Kind",
        "LevelGuarantee",
    ),
    "learning": (
        "ShuffledSGDClassifier",
        "TrainingGuarantee",
    ),
    "numerics.interval": ("Interval",),
    "numerics.randomness": (
        "secure_random",
        "simulation_random",
    ),
    "planning": (
        "Bucketing",
        "FrequencyQuestion",
        "MeanQuestion",
        "Plan",
        "bucket_budgets",
        "plan",
    ),
    "protocol": (
        "FrequencyEstimator",
        "FrequencyTally",
        "HistogramEstimator",
        "MeanEstimator",
        "MeanTally",
        "QuantileEstimator",
        "RangeRelease",
        "Release",
        "RowBudgets",
        "VarianceTally",
        "VectorTally",
        "estimate_frequency",
        "estimate_histogram",
        "estimate_mean",
        "estimate_quantiles",
        "estimate_variance",
        "estimate_vector_mean",
        "frequency_of_table",
        "histogram_of_table",
        "mean_of_table",
        "project_to_simplex",
        "quantiles_of_table",
        "variance_of_table",
    ),
    "randomizers": (
        "Channel",
        "CoordinateSampling",
        "DirectionCodebook",
        "Gaussian",
        "HadamardResponse",
        "Hybrid",
        "Laplace",
        "LocalHashing",
        "OneBit",
        "Piecewise",
        "RandomizedResponse",
        "RangeTree",
        "SignedSketch",
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
