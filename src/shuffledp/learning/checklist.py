"""The checklist of NIST SP 800-226 for the page of a training run; see `checklist`."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shuffledp.learning.clipping import UNIT_MEANING
from shuffledp.learning.guarantee import SERVER_SEES
from shuffledp.learning.outcome import Training
from shuffledp.report import wording
from shuffledp.report.checklist import (
    ONE_PROGRAM,
    OPEN,
    OTHERS,
    SECURE_DRAW,
    SEEDED_DRAW,
    TABLE,
    TIMES,
    Point,
    points,
)


def training_checklist(training: Training) -> list[Point]:
    """Answer the questions for a training run on one table.

    Parameters
    ----------
    training : Training
        The run.
    """
    guarantee = training.guarantee
    one = "One client, with all its examples." if guarantee.unit == "client" else "One example of one client."
    summed = guarantee.seen == "sum"
    seen = SERVER_SEES[guarantee.seen]
    return points(
        [one, f"{OPEN}whether a person can be several clients; such a person is protected less than stated."],
        _training_model(training),
        [
            f"Replacement (bounded differential privacy): {UNIT_MEANING[guarantee.unit]}. The clients "
            f"({wording.count(training.clients)}), their budgets and when each takes part are the same in both, and "
            "public.",
            "Whether somebody took part is not protected.",
        ],
        _training_parameters(training),
        [
            "Whoever adds up the messages of a round must show the server nothing but the sum."
            if summed
            else "The shuffler must mix the messages of a round uniformly, and strip names, times and order.",
            "Each client must clip its message and draw its noise as stated. The server need not be honest.",
            ONE_PROGRAM,
        ],
        [
            f"{seen[0].upper()}{seen[1:]}.",
            "Everybody who gets the model: what the server sees, at most.",
            "Whoever ran the program: the records themselves.",
        ],
        TABLE,
        [SECURE_DRAW if guarantee.private else SEEDED_DRAW, TIMES],
        [f"{OPEN}who may reach the table, this program, its logs and its checkpoints, and who may train again."],
        _training_composition(training),
    )


def _training_model(training: Training) -> Iterator[str]:
    if training.guarantee.seen == "sum":
        yield (
            "Distributed noise: each client adds noise of its own to its message, and only the sum of all messages "
            "is seen. The stated epsilon and delta are those of approximate differential privacy of all sums."
        )
    else:
        yield (
            "The shuffle model: each message is clipped and noised by itself within its own local budget, then the "
            "messages of a round are mixed. The stated epsilon and delta are those of approximate differential "
            "privacy of what the server sees over all rounds."
        )
    if all(level.delta0 == 0.0 for level in training.guarantee.levels):
        yield "Each single message keeps its local budget without exception (pure local differential privacy)."
    else:
        yield "A single message keeps its local budget up to its own delta (approximate local differential privacy)."


def _training_parameters(training: Training) -> Iterator[str]:
    guarantee = training.guarantee
    budgets = sorted(level.epsilon0 for level in guarantee.levels)
    low, high = wording.near(budgets[0]), wording.near(budgets[-1])
    local = f"local budgets of a message from {low} to {high}" if low != high else f"local budget of a message {low}"
    worst = " for the worst budget level" if guarantee.levels_total > 1 else ""
    delta = wording.probability(guarantee.delta)
    epsilon = wording.up(guarantee.epsilon.upper)
    yield f"Central epsilon at most {epsilon} at delta = {delta}{worst}, certified; {local}."
    if math.isinf(guarantee.epsilon.upper):
        yield f"{OPEN}a delta, or a setting, at which a finite epsilon holds."
    if guarantee.delta * training.clients >= 1.0:
        yield f"{OPEN}a delta below 1/clients; this one allows one client's records to be published."


def _training_composition(training: Training) -> Iterator[str]:
    rounds = training.guarantee.rounds
    yield f"All {wording.count(rounds)} rounds are counted together." if rounds > 1 else "The one round is counted."
    if training.test_rows:
        yield f"{OPEN}the accuracy was measured on {training.tested_on}; nothing here protects those rows."
    yield f"{OPEN}earlier runs on the same records, such as those by which settings were chosen; each costs on top."
    yield OTHERS
