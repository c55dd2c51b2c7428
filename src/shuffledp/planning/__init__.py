"""Planning of a collection before a record is read: predicted errors, public levels, batches, alternatives."""

from __future__ import annotations

from shuffledp.planning.bucketing import bucket_budgets
from shuffledp.planning.plan import MOST_FACTOR, Alternative, Plan, plan
from shuffledp.planning.question import DummiesPrice, Guess, Prediction, dummies_price
from shuffledp.planning.target import Bucketing

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
