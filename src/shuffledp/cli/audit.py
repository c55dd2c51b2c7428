"""The command `audit`: an attack on a randomizer or on a whole collection; exit status 3 if it refutes the claim."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import Any

import typer

from shuffledp import randomizers
from shuffledp.audit import AuditResult, audit_pipeline, audit_randomizer
from shuffledp.audit.loading import COMMAND
from shuffledp.cli.population import FAMILIES, Population, parse_randomizer, parse_seen
from shuffledp.errors import InvalidInput, cut_at_commas, shown
from shuffledp.numerics.randomness import choose_random
from shuffledp.report.terminal import print_audit
from shuffledp.report.to_json import audit_to_json, dumps
from shuffledp.shell.output import console, working

VIOLATED = 3
"""Exit status if an attack succeeds."""
AVAILABLE = f"{FAMILIES}, the name of a .csv file with a channel matrix, FILE.py:FUNCTION, or command:PROGRAM"
_UNIT_RANGE = {"piecewise": "Piecewise", "hybrid": "Hybrid"}


@dataclass(frozen=True)
class Attack:
    """The options, as typed, that both kinds of audit share; each field has the name of its option.

    `audit_randomizer` and `audit_pipeline` define them.
    """

    randomizer: str
    records: str | None
    trials: int | None
    confidence: float
    simulation_seed: int | None
    json: bool

    def shared(self) -> dict[str, Any]:
        """Return the keyword arguments that both kinds of audit take."""
        keywords: dict[str, Any] = {"confidence": self.confidence, "random": choose_random(self.simulation_seed)}
        if self.trials is not None:
            keywords["trials"] = self.trials
        if self.records is not None:
            keywords["records"] = parse_records(self.records)
        return keywords


@dataclass(frozen=True)
class Collection:
    """The options, as typed, that describe a collection; each field has the name of its option.

    `audit_pipeline` defines them.
    """

    n: int | None
    levels: tuple[str, ...]
    seen: str | None
    delta: float | None
    claimed_epsilon: float | None
    counts: bool

    def given(self) -> str | None:
        """Return the first of these options that was typed; None if none was."""
        options = {
            "--n": self.n,
            "--level": self.levels or None,
            "--seen": self.seen,
            "--delta": self.delta,
            "--claimed-epsilon": self.claimed_epsilon,
            "--counts": self.counts or None,
        }
        return next((name for name, entry in options.items() if entry is not None), None)


def run_audit(attack: Attack, epsilon0: float | None, delta0: float, collection: Collection, *, pipeline: bool) -> None:
    """Run the attack, print its result, and exit with status 3 if the claim is refuted.

    Parameters
    ----------
    attack : Attack
        The options that both kinds of audit share.
    epsilon0, delta0 : float
        The claim about a local randomizer; None and 0 for an audit of a whole collection.
    collection : Collection
        The options that describe a collection; none may be given without `pipeline`.
    pipeline : bool
        Whether a whole collection is attacked.
    """
    target = parse_target(attack.randomizer)
    with working("Attacking"), contextlib.redirect_stdout(sys.stderr):  # whatever the attacked code prints
        if pipeline:
            result = _pipeline(target, attack, epsilon0, delta0, collection)
        else:
            if collection.given() is not None:
                raise InvalidInput(
                    f"{collection.given()} describes a whole collection; add --pipeline, or leave it out"
                )
            if epsilon0 is None:
                raise InvalidInput("--epsilon0 is needed: the claim that the audit attacks")
            result = audit_randomizer(target, epsilon0, delta0, **attack.shared())
    if attack.json:
        print(dumps(audit_to_json(result)))
    else:
        print_audit(console(), result)
    if result.violated:
        raise typer.Exit(VIOLATED)


def _pipeline(
    target: Any, attack: Attack, epsilon0: float | None, delta0: float, collection: Collection
) -> AuditResult:
    if collection.delta is None:
        raise InvalidInput("--delta is needed with --pipeline: the delta of the central claim")
    levels = collection.levels
    if delta0 and levels:
        raise InvalidInput("--delta0 goes with --epsilon0; write --level E,DELTA0:COUNT instead")
    if delta0 and epsilon0 is not None and collection.n is not None:
        levels, epsilon0, n = (f"{epsilon0!r},{delta0!r}:{collection.n}",), None, None
    else:
        n = collection.n
    if not levels and (epsilon0 is None or n is None):
        raise InvalidInput("give the population: --epsilon0 E --n N, or --level E:COUNT (repeated)")
    budgets = Population(epsilon0, n, levels, or_file=False).budgets()
    seen = parse_seen(collection.seen, budgets.levels, ("reports", "levels"))
    return audit_pipeline(
        target,
        budgets,
        collection.delta,
        seen=seen,
        claimed_epsilon=collection.claimed_epsilon,
        counts=collection.counts,
        **attack.shared(),
    )


def parse_target(text: str) -> Any:
    """Return the target of an audit from the text after --randomizer: a family, or a text that the audits parse.

    Parameters
    ----------
    text : str
        A name, FILE.py:FUNCTION, or command:PROGRAM.

    Raises
    ------
    InvalidInput
        If it is none of these.
    """
    if text.startswith(COMMAND) or text.rpartition(":")[0].endswith(".py"):
        return text
    if text.endswith(".py"):
        raise InvalidInput(f"--randomizer {text} names no function; write {text}:FUNCTION")
    if text == "any":
        raise InvalidInput("--randomizer any is no randomizer that could be run; name one, or FILE.py:FUNCTION")
    family = getattr(randomizers, _UNIT_RANGE.get(text, ""), None)
    return parse_randomizer(text, AVAILABLE) if family is None else family(0.0, 1.0)


def parse_records(text: str) -> list[int] | list[float] | list[str]:
    """Return the values of --records: whole numbers or else numbers, if all are, else words (quotes as in CSV)."""
    words = list(cut_at_commas(text))
    if len(set(words)) < 2 or not all(words):
        raise InvalidInput(f"--records needs two different records or more; got {shown(text)}; write it like 0,1")
    try:
        return [int(word) for word in words]
    except ValueError:
        pass
    try:
        return [float(word) for word in words]
    except ValueError:
        return words
