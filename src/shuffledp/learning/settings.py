"""What a training run was asked for, checked before anything is done; and its search for a wanted central epsilon.

What is searched (budgets, or a number of rounds) is only a choice among plans. Every plan that is accepted was
certified to cost at most the target, so the search may be as coarse as it likes: it gallops by factors of two, then
halves, and never tries a plan of more than twice the budgets, or rounds, of one that is too expensive.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import MAX_EPSILON0, InvalidInput, check_delta, choice, number, whole_number
from shuffledp.learning.accounting import TrainingAccountant
from shuffledp.learning.features import Features, Projection, public_projection
from shuffledp.learning.inputs import Clients, checked_features, per_client
from shuffledp.learning.messages import CLIPPED, UNITS, Clipping, Unit, mechanism_of
from shuffledp.learning.rounds import SendPlan, Weighting, plan_messages, plan_sketches
from shuffledp.numerics.floats import LARGEST_BELOW_ONE, FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.setting import SEEN, Seen

# What is told after every round of training.


@dataclass(frozen=True)
class RoundReport:
    """Progress of a training run after one round.

    Parameters
    ----------
    round : int
        Number of completed rounds, from 1.
    rounds : int
        Number of requested rounds.
    messages : int
        Number of messages of this round.
    released : bool
        False if there were too few messages: the round was dropped, and costs nothing.
    epsilon : float
        Certified central epsilon spent so far, worst level; NaN if nobody asked for it.
    loss, accuracy : float
        On the validation data, mean cross-entropy in nats and share predicted correctly; NaN without such data.
    """

    round: int
    rounds: int
    messages: int
    released: bool
    epsilon: float = math.nan
    loss: float = math.nan
    accuracy: float = math.nan

    def line(self) -> str:
        """Return the report as one line of text."""
        done = round(20 * self.round / self.rounds)
        parts = [f"[{'#' * done}{'.' * (20 - done)}] round {self.round}/{self.rounds}"]
        if not self.released:
            parts.append(f"only {self.messages} messages, not released")
        if not math.isnan(self.epsilon):
            parts.append(f"epsilon {self.epsilon:.3f}")
        if not math.isnan(self.loss):
            parts.append(f"loss {self.loss:.3f}, accuracy {100 * self.accuracy:.1f} %")
        return "  ".join(parts)


Progress = Callable[[RoundReport], None]
"""Function called with a report after every round."""


def print_progress(report: RoundReport) -> None:
    """Show the progress as one line on standard error, rewritten every round."""
    end = "\n" if report.round == report.rounds else ""
    print(f"\r{report.line():<100}", end=end, file=sys.stderr, flush=True)


DECAYS: dict[str, Callable[[float], float]] = {
    "none": lambda done: 1.0,
    "linear": lambda done: 1.0 - done,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
}
"""Functions from the share of the rounds that is done to the factor on the step length, by name."""
NAMES = ("gaussian", "laplace", "sketch")
WEIGHTINGS = ("auto", "none", "inverse-variance")


@dataclass(frozen=True)
class Settings:
    """Arguments of a private training run, as `ShuffledSGDClassifier` defines them."""

    unit: str
    seen: str
    epsilon0: Any
    delta: float
    clip: float
    rounds: Any
    hidden: tuple[int, ...]
    mechanism: str
    delta0: Any
    clipped: str | None
    step: float
    momentum: float
    decay: str
    averaging: float
    weighting: str
    min_messages: int
    classes: int | None
    features: Features | None
    pca: int | None
    pca_data: ArrayLike | None
    public_features: bool
    max_epsilon: float | None
    target_epsilon: float | None
    patience: int | None
    checkpoint: str | Path | None
    progress: Progress | None
    random: Randomness | None

    def checked(self) -> Settings:
        """Return the same settings after checking every choice and number that needs no data."""
        choice(self.unit, "unit", UNITS)
        choice(self.seen, "seen", SEEN)
        choice(self.decay, "decay", tuple(DECAYS))
        choice(self.weighting, "weighting", WEIGHTINGS)
        choice(self.mechanism, "mechanism", NAMES)
        check_delta(self.delta)
        if self.rounds is not None:
            whole_number(self.rounds, "rounds", 1)
        elif self.target_epsilon is None:
            raise InvalidInput("`rounds` is missing: say how many, or give `target_epsilon`, from which they are found")
        whole_number(self.min_messages, "min_messages", 1)
        number(self.step, "step", 0.0, 1e6)
        number(self.momentum, "momentum", 0.0, 1.0, below=True)
        number(self.averaging, "averaging", 0.0, 1.0)
        if self.max_epsilon is not None:
            number(self.max_epsilon, "max_epsilon", 0.0, math.inf)
        if self.target_epsilon is not None and not number(self.target_epsilon, "target_epsilon", 0.0, 1e6) > 0.0:
            raise InvalidInput("target_epsilon must be positive; got 0")
        if self.patience is not None:
            whole_number(self.patience, "patience", 1)
            if self.checkpoint is not None:
                raise InvalidInput("`patience` does not go with `checkpoint`, which keeps no best model; leave one out")
        if self.pure and self.delta0 is not None:
            raise InvalidInput(
                f"`mechanism = '{self.mechanism}'` is pure: leave `delta0` out, or use `mechanism = 'gaussian'`"
            )
        if self.mechanism == "sketch" and (self.unit != "client" or self.seen not in ("reports", "levels")):
            raise InvalidInput(
                "`mechanism = 'sketch'` sends one bit a client, all at one model: it needs `unit = 'client'` and "
                f"`seen = 'reports'` or `seen = 'levels'`; got `unit = '{self.unit}'`, `seen = '{self.seen}'`"
            )
        return self

    @property
    def pure(self) -> bool:
        """True if messages satisfy pure local differential privacy, delta0 = 0."""
        return self.mechanism != "gaussian"

    @property
    def clipping(self) -> Clipping:
        """Clipping rule of these settings; raises InvalidInput if the rule would not be private."""
        what = self.clipped if self.clipped is not None else ("examples" if self.unit == "example" else "message")
        choice(what, "clipped", CLIPPED)
        order: Literal[1, 2] = 1 if self.mechanism == "laplace" else 2
        return Clipping(cast(Unit, self.unit), cast(Any, what), self.clip, order)

    def deltas(self, clients: Clients) -> FloatArray:
        """Return delta0 of each client's messages, shape (clients,)."""
        if self.pure:
            return np.zeros(clients.count)
        if self.delta0 is None:
            alone = self.unit == "example" or self.seen == "sum"
            return np.full(clients.count, self.delta if alone else self.delta / clients.count)
        return per_client(self.delta0, clients, "delta0")


def prepared(
    rows: NDArray[np.generic], features: Features | None, projection: Projection | None
) -> NDArray[np.generic]:
    """Return the network's inputs, shape (n, inputs): rows after the fixed feature map and the projection, if given.

    A record that the map cannot turn into finite numbers is not refused: its gradient is zero, so it contributes
    nothing.
    """
    with np.errstate(all="ignore"):
        out = rows if features is None else checked_features(features(rows), private=True)
    if out.shape[0] != rows.shape[0]:
        raise InvalidInput(f"features must keep the rows; got {out.shape[0]} rows from {rows.shape[0]}")
    with np.errstate(all="ignore"):
        return out if projection is None else projection(out)


def probed(rows: NDArray[np.generic], features: Features | None, projection: Projection | None) -> list[float]:
    """Return a fingerprint of the fixed map before the network: sums of its outputs for three made-up rows.

    Sums of numbers that are not negative, with public weights: another machine's last digits move them by no more than
    their own last digits, while another map moves them far.

    Parameters
    ----------
    rows : ndarray, shape (n, inputs)
        Their number of columns and their type are used, and no number in them.
    features, projection : callable or None
        As for `prepared`.
    """
    made_up = (np.arange(3 * rows.shape[1]) * 37 % 101).reshape(3, -1).astype(rows.dtype)
    outputs = np.nan_to_num(np.asarray(prepared(made_up, features, projection), dtype=np.float64)).ravel()
    size, places = np.abs(outputs), np.arange(outputs.size)
    weights = [1.0 + (places * prime % 101) / 101.0 for prime in (7, 11, 13, 17)]
    sums = [float((w * v).sum()) for w in weights for v in (size, size + np.maximum(outputs, 0.0))]
    return [float(outputs.size), *sums]


def public_components(s: Settings, rows: NDArray[np.generic], notes: list[str]) -> Projection | None:
    """Return principal components fitted to public data, and note it; None if the settings ask for none.

    Parameters
    ----------
    s : Settings
        Settings of the run; they say which data are public.
    rows : ndarray, shape (n, inputs)
        Features of the training data, used only if the settings declare them public.
    notes : list of str
        A sentence on the components is appended.

    Raises
    ------
    InvalidInput
        If the data are not declared public.
    """
    if s.pca is None:
        return None
    if s.pca_data is None and s.public_features is not True:
        raise InvalidInput(
            "principal components fitted on the private training data reveal them, and no budget here pays for that; "
            "give pca_data, public data of other people, or say public_features=True if X is public, "
            "or use features=cosine_projection(...), which needs no data"
        )
    public = rows if s.pca_data is None else checked_features(s.pca_data, inputs=rows.shape[1])
    projection = public_projection(prepared(public, s.features, None), s.pca, public=True)
    notes.append(f"features: {projection.origin}")
    return projection


def assumptions(s: Settings, read_classes: bool) -> list[str]:
    """Return the assumptions of the guarantee, apart from the number of rounds, one sentence each.

    Parameters
    ----------
    s : Settings
        Settings of the run.
    read_classes : bool
        Whether the number of classes was read off the labels.
    """
    notes = [
        "budgets, and who takes part in which round, are public and do not depend on the records",
        "a contribution that is not finite becomes zero, so that no error and no missing message tells of a record",
    ]
    if s.unit == "example":
        notes.append("how many examples each client has is public")
    if s.seen in ("reports", "levels") and s.unit == "client":
        notes.append("a trusted shuffler permutes the messages of every round afresh; here it is only simulated")
    if s.seen == "sum":
        notes.append("nothing but the sum of a round is released, and every client of the round adds its noise")
    if s.features is not None:
        origin = getattr(s.features, "origin", "a map given by the caller, who states that no private data made it")
        notes.append(f"features: {origin}")
    if read_classes:
        notes.append("the number of classes was read off the labels and is public")
    return notes


# The plan of a run before its first round: who sends what with which noise, and the empty count of it.


def accountant_of(s: Settings, plan: SendPlan) -> TrainingAccountant:
    """Return the empty accountant of a run with these settings and this message plan."""
    gaussian, bits = s.mechanism == "gaussian", s.mechanism == "sketch"
    return TrainingAccountant(cast(Unit, s.unit), cast(Seen, s.seen), gaussian, plan.tiers, bits=bits)


def plan_run(s: Settings, clients: Clients, numbers: int, notes: list[str]) -> tuple[SendPlan, NDArray[np.int64]]:
    """Return the message plan of all clients, and the indices of the clients that take part.

    Clients take part if their budget is positive.

    Parameters
    ----------
    s : Settings
        Checked settings of the run.
    clients : Clients
        The clients and their examples.
    numbers : int
        Numbers in a message.
    notes : list of str
        Remarks for the guarantee are appended.
    """
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


LARGEST_BUDGET, SMALLEST_BUDGET = 64.0, 2.0**-13
"""Range of the largest budget of a message in searches; below it a message is next to nothing but noise."""
CAPPED = ", where the search ends: more might stay within the target as well"
"""Words for an answer that is the largest one in the search."""
MOST_ROUNDS = 10_000
_HALVINGS = 5
"""Number of bisection steps within a factor of two: budgets are found to 2^(1/32), or 2.2 %."""


def largest_budget(target: float, epsilon_of: Callable[[float], float]) -> float:
    """Return the largest budget found, in nats, whose certified epsilon is at most the target.

    Parameters
    ----------
    target : float
        Wanted central epsilon in nats, positive.
    epsilon_of : callable
        Certified epsilon of the whole training if the largest budget of a message is the given one; infinite where
        nothing is certified.

    Returns
    -------
    float
        In [2^-13, 64], within 2.2 % of the first one found to be too large; 64 if none was found, as no larger one is
        tried.

    Raises
    ------
    InvalidInput
        If even the smallest budget costs more.

    Examples
    --------
    >>> round(largest_budget(1.0, lambda budget: budget / 4.0), 2)
    4.0
    """
    fine, low = 0.0, 1.0
    while not fine and low >= SMALLEST_BUDGET:
        fine, low = (low, low) if epsilon_of(low) <= target else (0.0, low / 2.0)
    if not fine:
        raise InvalidInput(
            f"no budgets down to epsilon0 = {SMALLEST_BUDGET:.2g} keep all rounds within "
            f"`target_epsilon = {target:g}`; ask for fewer `rounds`, or a larger `target_epsilon`"
        )
    while fine < LARGEST_BUDGET and fine >= 1.0 and epsilon_of(2.0 * fine) <= target:
        fine *= 2.0
    if fine >= LARGEST_BUDGET:
        return fine
    step = math.sqrt(2.0)
    for _ in range(_HALVINGS):
        fine = fine * step if epsilon_of(fine * step) <= target else fine
        step = math.sqrt(step)
    return fine


def most_rounds(target: float, epsilon_of: Callable[[int], float]) -> int:
    """Return the largest number of rounds found, at most 10,000, whose certified epsilon is at most the target.

    Parameters
    ----------
    target : float
        Wanted central epsilon, positive.
    epsilon_of : callable
        Certified epsilon, in nats, of a given number of rounds.

    Raises
    ------
    InvalidInput
        If one round costs more.

    Examples
    --------
    >>> most_rounds(1.0, lambda rounds: rounds / 100.0)
    100
    """
    if epsilon_of(1) > target:
        raise InvalidInput(
            f"one round costs more than `target_epsilon = {target:g}`; give smaller budgets, or a "
            "larger `target_epsilon`"
        )
    fine, bad = 1, MOST_ROUNDS + 1
    while fine < MOST_ROUNDS and bad > MOST_ROUNDS:
        tried = min(2 * fine, MOST_ROUNDS)
        fine, bad = (tried, bad) if epsilon_of(tried) <= target else (fine, tried)
    while bad - fine > 1 and fine < MOST_ROUNDS:
        middle = (fine + bad) // 2
        fine, bad = (middle, bad) if epsilon_of(middle) <= target else (fine, middle)
    return fine


def noise_of_a_step(s: Settings, plan: SendPlan, numbers: int) -> float:
    """Return the typical length of the noise in one model step, in units of the clipping bound.

    Parameters
    ----------
    s : Settings
        Settings of the run.
    plan : SendPlan
        Message plan with all clients' noise scales and weights.
    numbers : int
        Numbers in a message.
    """
    present = np.flatnonzero(plan.weights * plan.gains > 0.0)
    wide: FloatArray = plan.scales[present] * (math.sqrt(2.0) if s.mechanism == "laplace" else 1.0)
    if s.seen == "users":
        spread = float(np.median(wide))
    else:
        weights, gains = plan.weights[present], plan.gains[present]
        spread = math.sqrt(float(((weights * wide) ** 2).sum())) / float((weights * gains).sum())
    return spread * plan.grid * math.sqrt(numbers) / float(s.clip)


def aimed(s: Settings, clients: Clients, numbers: int, notes: list[str]) -> Settings:
    """Return the settings with budgets, or rounds, chosen to meet ``target_epsilon``; unchanged without a target.

    Parameters
    ----------
    s : Settings
        Checked settings of the run.
    clients : Clients
        The clients and their examples.
    numbers : int
        Numbers in a message.
    notes : list of str
        A sentence on the chosen budgets or rounds is appended.

    Raises
    ------
    InvalidInput
        If nothing that may be tried meets the target, or budgets are bad.
    """
    if s.target_epsilon is None:
        return s
    budgets, target = per_client(s.epsilon0, clients, "epsilon0"), float(s.target_epsilon)
    if not ((budgets >= 0.0) & (budgets <= MAX_EPSILON0)).all() or not budgets.any():
        plan_run(s, clients, numbers, [])  # says what is wrong with them

    chosen = _searched(s, budgets, target, clients, numbers, certified=False)
    plan, cost = _cost(chosen, clients, numbers, certified=True)
    if cost > target:  # the tier with the least noise was not the worst
        chosen = _searched(s, budgets, target, clients, numbers, certified=True)
        plan, cost = _cost(chosen, clients, numbers, certified=True)
    if s.rounds is None:
        end = CAPPED if chosen.rounds == MOST_ROUNDS else ""
        what = f"{chosen.rounds:,} rounds were found{end}"
    else:
        kept: FloatArray = np.asarray(chosen.epsilon0)[budgets > 0.0]
        low, high = float(kept.min()), float(kept.max())
        end = CAPPED if high >= LARGEST_BUDGET else ""
        each = f"{high:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        what = f"budgets of a message of {each} ({high / float(budgets.max()):.4g} times those given) were found{end}"
    noise = noise_of_a_step(chosen, plan, numbers)
    notes.append(
        f"for a target epsilon of {target:g} {what}: {chosen.rounds:,} rounds with everybody there cost {cost:.4g}, "
        f"and the noise of one step is {noise:.3g} times as long as the longest clipped gradient"
    )
    return chosen


def _cost(s: Settings, clients: Clients, numbers: int, *, certified: bool) -> tuple[SendPlan, float]:
    """Return the plan, and what all its rounds cost with everybody there; only a guess unless ``certified``."""
    plan, present = plan_run(s, clients, numbers, [])
    accountant = accountant_of(s, plan)
    ask = accountant.epsilon_after if certified else accountant.guess_after
    return plan, ask(plan.messages(present), s.delta, s.rounds)


def _searched(
    s: Settings, budgets: FloatArray, target: float, clients: Clients, numbers: int, *, certified: bool
) -> Settings:
    """Return the settings with the budgets, or rounds, that the search ends at."""
    if s.rounds is not None:
        top = float(budgets.max())

        def scaled(largest: float) -> Settings:
            return replace(s, epsilon0=budgets * (largest / top))

        return scaled(
            largest_budget(target, lambda largest: _cost(scaled(largest), clients, numbers, certified=certified)[1])
        )
    plan, present = plan_run(s, clients, numbers, [])
    accountant, counts = accountant_of(s, plan), plan.messages(present)  # one for all, for it keeps the profiles
    ask = accountant.epsilon_after if certified else accountant.guess_after
    return replace(s, rounds=most_rounds(target, lambda rounds: ask(counts, s.delta, rounds)))
