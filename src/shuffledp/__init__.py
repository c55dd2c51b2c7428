"""Differential privacy in the shuffle model: certified central guarantees from personal local budgets.

The imports below are the list of public names, each on one line. They are read by type checkers when they check, and
by `_homes` when a name is first used: so importing the package loads nothing, and the command line answers `--help`
without NumPy or SciPy.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shuffledp.accounting import Calibration as Calibration
    from shuffledp.accounting import PrivacyFilter as PrivacyFilter
    from shuffledp.accounting import ball_floor as ball_floor
    from shuffledp.accounting import bounds as bounds
    from shuffledp.accounting import calibrate_batch as calibrate_batch
    from shuffledp.accounting import calibrate_dummies as calibrate_dummies
    from shuffledp.accounting import calibrate_epsilon0 as calibrate_epsilon0
    from shuffledp.accounting import calibrate_n as calibrate_n
    from shuffledp.accounting import calibrate_rounds as calibrate_rounds
    from shuffledp.accounting import calibrate_scale as calibrate_scale
    from shuffledp.accounting import certify as certify
    from shuffledp.accounting import compose as compose
    from shuffledp.accounting import compose_floors as compose_floors
    from shuffledp.accounting import floor_profile as floor_profile
    from shuffledp.accounting import from_dp_accounting as from_dp_accounting
    from shuffledp.accounting import privacy_profile as privacy_profile
    from shuffledp.accounting import to_dp_accounting as to_dp_accounting
    from shuffledp.audit import AuditResult as AuditResult
    from shuffledp.audit import audit_pipeline as audit_pipeline
    from shuffledp.audit import audit_randomizer as audit_randomizer
    from shuffledp.ball import BallDummies as BallDummies
    from shuffledp.budgets import Budgets as Budgets
    from shuffledp.budgets import level_indices as level_indices
    from shuffledp.dummies import DiscreteLaplace as DiscreteLaplace
    from shuffledp.dummies import NormalDummies as NormalDummies
    from shuffledp.dummies import OnesLaw as OnesLaw
    from shuffledp.dummies import Uniform as Uniform
    from shuffledp.errors import InconsistentBounds as InconsistentBounds
    from shuffledp.errors import InvalidInput as InvalidInput
    from shuffledp.errors import NotConverged as NotConverged
    from shuffledp.errors import OutOfRegime as OutOfRegime
    from shuffledp.errors import ShuffleDPError as ShuffleDPError
    from shuffledp.learning import ShuffledSGDClassifier as ShuffledSGDClassifier
    from shuffledp.learning import TrainingGuarantee as TrainingGuarantee
    from shuffledp.learning import load_model as load_model
    from shuffledp.ledger import Ledger as Ledger
    from shuffledp.numerics.floats import Interval as Interval
    from shuffledp.numerics.randomness import secure_random as secure_random
    from shuffledp.numerics.randomness import simulation_random as simulation_random
    from shuffledp.planning import Bucketing as Bucketing
    from shuffledp.planning import DummiesPrice as DummiesPrice
    from shuffledp.planning import Guess as Guess
    from shuffledp.planning import Plan as Plan
    from shuffledp.planning import bucket_budgets as bucket_budgets
    from shuffledp.planning import dummies_price as dummies_price
    from shuffledp.planning import plan as plan
    from shuffledp.questions.crosstab import Crosstab as Crosstab
    from shuffledp.questions.frequency import Frequency as Frequency
    from shuffledp.questions.frequency import FrequencyTally as FrequencyTally
    from shuffledp.questions.frequency import project_to_simplex as project_to_simplex
    from shuffledp.questions.items import FrequentItems as FrequentItems
    from shuffledp.questions.items import ItemTally as ItemTally
    from shuffledp.questions.mean import Mean as Mean
    from shuffledp.questions.mean import MeanTally as MeanTally
    from shuffledp.questions.question import Task as Task
    from shuffledp.questions.ranges import Histogram as Histogram
    from shuffledp.questions.ranges import Quantiles as Quantiles
    from shuffledp.questions.tally import Tally as Tally
    from shuffledp.questions.tally import tally_for as tally_for
    from shuffledp.questions.tally import tally_from_state as tally_from_state
    from shuffledp.questions.variance import Variance as Variance
    from shuffledp.questions.variance import VarianceTally as VarianceTally
    from shuffledp.questions.vectors import VectorMean as VectorMean
    from shuffledp.questions.vectors import VectorTally as VectorTally
    from shuffledp.randomizers import Channel as Channel
    from shuffledp.randomizers import CoordinateSampling as CoordinateSampling
    from shuffledp.randomizers import DirectionCodebook as DirectionCodebook
    from shuffledp.randomizers import Gaussian as Gaussian
    from shuffledp.randomizers import HadamardResponse as HadamardResponse
    from shuffledp.randomizers import Hybrid as Hybrid
    from shuffledp.randomizers import Laplace as Laplace
    from shuffledp.randomizers import LeveledHashing as LeveledHashing
    from shuffledp.randomizers import LocalHashing as LocalHashing
    from shuffledp.randomizers import Memoised as Memoised
    from shuffledp.randomizers import OneBit as OneBit
    from shuffledp.randomizers import Piecewise as Piecewise
    from shuffledp.randomizers import RandomizedResponse as RandomizedResponse
    from shuffledp.randomizers import RangeTree as RangeTree
    from shuffledp.randomizers import SignedSketch as SignedSketch
    from shuffledp.randomizers import SubsetSelection as SubsetSelection
    from shuffledp.randomizers import UnaryEncoding as UnaryEncoding
    from shuffledp.records.people import RowBudgets as RowBudgets
    from shuffledp.releases.difference import Difference as Difference
    from shuffledp.releases.difference import difference as difference
    from shuffledp.releases.estimators import FrequencyEstimator as FrequencyEstimator
    from shuffledp.releases.estimators import FrequentItemsEstimator as FrequentItemsEstimator
    from shuffledp.releases.estimators import HistogramEstimator as HistogramEstimator
    from shuffledp.releases.estimators import MeanEstimator as MeanEstimator
    from shuffledp.releases.estimators import QuantileEstimator as QuantileEstimator
    from shuffledp.releases.estimators import VarianceEstimator as VarianceEstimator
    from shuffledp.releases.estimators import VectorMeanEstimator as VectorMeanEstimator
    from shuffledp.releases.keywords import release as release
    from shuffledp.releases.keywords import release_by as release_by
    from shuffledp.releases.keywords import release_together as release_together
    from shuffledp.releases.release import Amounts as Amounts
    from shuffledp.releases.release import CrosstabRelease as CrosstabRelease
    from shuffledp.releases.release import GroupedRelease as GroupedRelease
    from shuffledp.releases.release import ItemsRelease as ItemsRelease
    from shuffledp.releases.release import JointByGroup as JointByGroup
    from shuffledp.releases.release import JointRelease as JointRelease
    from shuffledp.releases.release import NumberRelease as NumberRelease
    from shuffledp.releases.release import RangeRelease as RangeRelease
    from shuffledp.releases.release import Release as Release
    from shuffledp.releases.release import SharesRelease as SharesRelease
    from shuffledp.releases.release import VectorRelease as VectorRelease
    from shuffledp.releases.terms import Ask as Ask
    from shuffledp.releases.terms import People as People
    from shuffledp.releases.terms import Terms as Terms
    from shuffledp.releases.wrappers import estimate_frequency as estimate_frequency
    from shuffledp.releases.wrappers import estimate_frequent_items as estimate_frequent_items
    from shuffledp.releases.wrappers import estimate_histogram as estimate_histogram
    from shuffledp.releases.wrappers import estimate_mean as estimate_mean
    from shuffledp.releases.wrappers import estimate_quantiles as estimate_quantiles
    from shuffledp.releases.wrappers import estimate_variance as estimate_variance
    from shuffledp.releases.wrappers import estimate_vector_mean as estimate_vector_mean
    from shuffledp.releases.wrappers import frequency_of_table as frequency_of_table
    from shuffledp.releases.wrappers import frequent_items_of_table as frequent_items_of_table
    from shuffledp.releases.wrappers import histogram_of_table as histogram_of_table
    from shuffledp.releases.wrappers import mean_of_table as mean_of_table
    from shuffledp.releases.wrappers import quantiles_of_table as quantiles_of_table
    from shuffledp.releases.wrappers import variance_of_table as variance_of_table
    from shuffledp.releases.wrappers import vector_mean_of_table as vector_mean_of_table
    from shuffledp.setting import Evidence as Evidence
    from shuffledp.setting import Guarantee as Guarantee
    from shuffledp.setting import Kind as Kind
    from shuffledp.setting import LevelGuarantee as LevelGuarantee
    from shuffledp.setting import Setting as Setting

__version__ = "0.3.0.dev0"


@cache
def _homes() -> dict[str, str]:
    """Return the module of each public name, from the imports above."""
    from re import MULTILINE, findall

    source = __loader__.get_source(__name__)  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
    if not source:
        raise ImportError("shuffledp needs its source files: the list of its public names stands in __init__.py")
    return {
        name: home for home, name in findall(r"^    from (shuffledp\.[\w.]+) import (\w+) as \2$", source, MULTILINE)
    }


def __getattr__(name: str) -> object:
    if name == "__all__":
        return __dir__()
    if name.startswith("_") or name not in _homes():
        raise AttributeError(f"module 'shuffledp' has no attribute {name!r}")
    return getattr(import_module(_homes()[name]), name)


def __dir__() -> list[str]:
    return sorted([*_homes(), "__version__"])
