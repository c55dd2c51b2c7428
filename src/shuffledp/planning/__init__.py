"""Planning a collection before a record is read: predicted errors, public levels, batches, alternatives."""

from __future__ import annotations

from shuffledp.planning.bucketing import bucket_budgets
from shuffledp.planning.dummies_price import DummiesPrice, dummies_price
from shuffledp.planning.error import Prediction
from shuffledp.planning.plan import Alternative, Plan, plan
from shuffledp.planning.question import Guess
from shuffledp.planning.remedies import MOST_FACTOR
from shuffledp.planning.rule import Bucketing

__all__ = [
    "MOST_FACTOR",
    "Alternative",
    "Bucketing",
    "DummiesPrice",
    "Guess",
    "Plan",
    "Prediction",
    "bucket_budgets",
    "dummies_price",
    "plan",
]
