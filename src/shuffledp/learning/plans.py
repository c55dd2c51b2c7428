"""The plan of a run before its first round: who sends what with which noise, and the empty count of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import MAX_EPSILON0
from shuffledp.errors import InvalidInput
from shuffledp.learning.accounting import TrainingAccountant
from shuffledp.learning.clipping import Unit
from shuffledp.learning.inputs import Clients, per_client
from shuffledp.learning.noise import mechanism_of
from shuffledp.learning.rounds import SendPlan, plan_messages
from shuffledp.learning.settings import Settings
from shuffledp.learning.sketches import Weighting, plan_sketches
from shuffledp.numerics.floats import LARGEST_BELOW_ONE
from shuffledp.numerics.interval import FloatArray
from shuffledp.setting import Seen


def accountant_of(s: Settings, plan: SendPlan) -> TrainingAccountant:
    """Return the empty count of a run with these message laws."""
    gaussian, bits = s.mechanism == "gaussian", s.mechanism == "sketch"
    return TrainingAccountant(cast(Unit, s.unit), cast(Seen, s.seen), gaussian, plan.tiers, bits=bits)


def plan_run(s: Settings, clients: Clients, numbers: int, notes: list[str]) -> tuple[SendPlan, NDArray[np.int64]]:
    """Return the messages' plan over all clients, and who takes part."""
    budgets, deltas = per_client(s.epsilon0, clients, "epsilon0"), s.deltas(clients)
    for name, values, top in (("epsilon0", budgets, MAX_EPSILON0), ("delta0", deltas, LARGEST_BELOW_ONE)):
        bad = np.flatnonzero(~((values >= 0.0) & (values <= top)))
        if bad.size:
            who = clients.names[bad[0]]
            raise InvalidInput(f"{name} must be from 0 to {top:g}; client {who} has {values[bad[0]]}")
    taking_part = np.flatnonzero(budgets > 0.0)
    if not taking_part.size:
        raise InvalidInput("every client has the budget epsilon0 = 0: nothing can be learned; give some a positive one")
    if taking_part.size < clients.count:
        notes.append(f"{clients.count - taking_part.size} clients with epsilon0 = 0 are left out: they send nothing")
    if s.mechanism == "sketch":
        part = plan_sketches(budgets[taking_part], float(s.clip), weighting=_weighting_of_bits(s, budgets[taking_part]))
        return _spread(part, taking_part, clients.count), taking_part
    ratios = mechanism_of(s.mechanism).multiples(budgets[taking_part], deltas[taking_part])
    sensitivities = s.clipping.sensitivity(clients.sizes[taking_part], numbers)
    differ = np.ptp(ratios * sensitivities) > 1e-9 * float((ratios * sensitivities).max())
    part = plan_messages(
        budgets[taking_part],
        deltas[taking_part],
        clients.sizes[taking_part],
        clipping=s.clipping,
        mechanism=mechanism_of(s.mechanism),
        numbers=numbers,
        inverse_variance=s.weighting == "inverse-variance" or (s.weighting == "auto" and bool(differ)),
        summed=s.seen == "sum",
    )
    return _spread(part, taking_part, clients.count), taking_part


def _weighting_of_bits(s: Settings, budgets: FloatArray) -> Weighting:
    """Choose how the server weighs bits: by their budgets only where it sees them."""
    if s.seen == "levels":
        return "people" if s.weighting == "none" else "precision"
    if s.weighting != "auto" and np.ptp(budgets) > 0.0:
        raise InvalidInput(
            f"`weighting = '{s.weighting}'` needs the budget of every bit, which a server with `seen = 'reports'` does "
            "not see; leave `weighting = 'auto'`, where all bits count the same, or say `seen = 'levels'`"
        )
    return "bits"


def _spread(plan: SendPlan, taking_part: NDArray[np.int64], clients: int) -> SendPlan:
    """Return the same plan, its arrays as long as there are clients; who is left out is never asked for."""

    def over_all(values: NDArray[Any]) -> NDArray[Any]:
        out = np.zeros(clients, dtype=values.dtype)
        out[taking_part] = values
        return out

    return replace(
        plan,
        gains=over_all(plan.gains),
        scales=over_all(plan.scales),
        weights=over_all(plan.weights),
        tier_of=over_all(plan.tier_of),
    )
