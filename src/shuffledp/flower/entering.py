"""A federated run in a ledger: all its rounds are entered before a client is asked for the first message.

Who will answer is not known by then, so what is entered is the cost of the rounds with the fewest messages that are
released at all. More messages only cost less: others' messages do not depend on the record, so what they add to a sum
or to a shuffle is a post-processing. So a round with fewer messages than were entered must not be released.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from shuffledp.errors import InvalidInput, shown
from shuffledp.flower.terms import Terms
from shuffledp.learning.accounting import TrainingAccountant
from shuffledp.learning.entering import Priced, admit, spending_by_level
from shuffledp.learning.inputs import whole_number
from shuffledp.ledger import Draft, Spending
from shuffledp.releases.entering import Entering


def fewest_of(terms: Terms, least: Mapping[str, int] | None) -> tuple[int, ...]:
    """Return the fewest messages of each level in a round that is released, in the order of the terms' names.

    Parameters
    ----------
    terms : Terms
        Of the run.
    least : mapping of str to int, or None
        By the level's name; levels that are left out, and None, mean 0.

    Raises
    ------
    InvalidInput
        If a level is unknown, or a number is not a whole number from 0 on.
    """
    known = dict(least or {})
    for name in known:
        if name not in terms.names:
            raise InvalidInput(f"`least` names the level {shown(name)}; the terms have {', '.join(terms.names)}")
    return tuple(whole_number(f"least of level {name!r}", known.get(name, 0), 0) for name in terms.names)


def spending_of_rounds(
    accountant: TrainingAccountant, fewest: Sequence[int], min_messages: int, rounds: int, delta: float
) -> Spending:
    """Return what rounds cost in which no fewer messages than these are released.

    Parameters
    ----------
    accountant : TrainingAccountant
        Of the run; it is not changed.
    fewest : sequence of int, one per tier
        The fewest messages of each tier.
    min_messages : int
        The fewest messages of all tiers together.
    rounds : int
        How many rounds; at least 1.
    delta : float
        Central delta, in (0, 1).
    """
    found: list[Priced] = []
    summed = accountant.seen == "sum" and not accountant.bits
    narrowest = min(accountant.tiers, key=lambda tier: tier.scale)
    for index, tier in enumerate(accountant.tiers):
        counts = [max(count, int(place == index)) for place, count in enumerate(fewest)]
        # to a sum everybody adds no less than the narrowest noise; it stands apart, since it need not be of one level
        others = max(min_messages - sum(counts), 0) if summed else 0
        spent = {(*counts, others): rounds}
        alone = replace(accountant, tiers=(*accountant.tiers, narrowest), spent=spent, _profiles={}, _answers={})
        found.append(Priced(tier, alone.tier_answer(index, delta)[1], alone.tier_profile(index)))
    return spending_by_level(found, delta, max(min_messages, sum(fewest), 1))


def enter_federated(
    entering: Entering,
    terms: Terms,
    accountant: TrainingAccountant,
    tier_of: Sequence[int],
    *,
    fewest: Sequence[int],
    min_messages: int,
    rounds: int,
    delta: float,
) -> None:
    """Enter all rounds of a run, before its first message.

    Parameters
    ----------
    entering : Entering
        The ledger, and what the run is entered under.
    terms : Terms
        Of the run.
    accountant : TrainingAccountant
        Fresh.
    tier_of : sequence of int
        Tier of each level.
    fewest : sequence of int
        Fewest messages of each level in a round that is released.
    min_messages, rounds, delta
        As for `spending_of_rounds`.

    Raises
    ------
    InvalidInput
        If the limit has no room; the message says how many rounds would fit.
    """
    counts = [0] * len(accountant.tiers)
    for tier, count in zip(tier_of, fewest, strict=True):
        counts[tier] += count
    task = f"{terms.fingerprint}/{secrets.token_hex(8)}"

    def draft(some: int) -> Draft:
        words = f"unit client, {some} rounds, seen {terms.seen}, {terms.mechanism}, {min_messages} messages or more"
        cost = spending_of_rounds(accountant, counts, min_messages, some, delta)
        return Draft(f"federated training, {some} rounds", task, words, cost)

    admit(entering, draft, rounds)
