"""Shuffled private stochastic gradient descent: honest accounting of what is really protected."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shuffledp.learning.accounting import TrainingAccountant, TrainingGuarantee
    from shuffledp.learning.audits import audit_budget_leak, audit_client_swap, audit_example_swap
    from shuffledp.learning.features import (
        OrientedGradients,
        Projection,
        Scattering,
        StrokeScattering,
        cosine_projection,
        public_projection,
    )
    from shuffledp.learning.inputs import Digits, assign_clients, read_digits, read_idx, sample_folder
    from shuffledp.learning.network import TrainedModel, load_model
    from shuffledp.learning.settings import RoundReport, print_progress
    from shuffledp.learning.training import ShuffledSGDClassifier

__all__ = [
    "Digits",
    "OrientedGradients",
    "Projection",
    "RoundReport",
    "Scattering",
    "ShuffledSGDClassifier",
    "StrokeScattering",
    "TrainedModel",
    "TrainingAccountant",
    "TrainingGuarantee",
    "assign_clients",
    "audit_budget_leak",
    "audit_client_swap",
    "audit_example_swap",
    "cosine_projection",
    "load_model",
    "print_progress",
    "public_projection",
    "read_digits",
    "read_idx",
    "sample_folder",
]

_HOME = {
    "Digits": "inputs",
    "OrientedGradients": "features",
    "Projection": "features",
    "RoundReport": "settings",
    "Scattering": "features",
    "ShuffledSGDClassifier": "training",
    "StrokeScattering": "features",
    "TrainedModel": "network",
    "TrainingAccountant": "accounting",
    "TrainingGuarantee": "accounting",
    "assign_clients": "inputs",
    "audit_budget_leak": "audits",
    "audit_client_swap": "audits",
    "audit_example_swap": "audits",
    "cosine_projection": "features",
    "load_model": "network",
    "print_progress": "settings",
    "public_projection": "features",
    "read_digits": "inputs",
    "read_idx": "inputs",
    "sample_folder": "inputs",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"shuffledp.learning.{_HOME[name]}"), name)
    raise AttributeError(f"module 'shuffledp.learning' has no attribute {name!r}")
