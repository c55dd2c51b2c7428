"""`calibrate --find dummies`: how many dummies keep what every level is promised, whatever everybody else does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shuffledp.accounting import DUMMIES_LAWS, DummiesNeeded, calibrate_dummies
from shuffledp.cli.randomizer import parse_randomizer
from shuffledp.dummies import check_family
from shuffledp.errors import InvalidInput, shown
from shuffledp.report.to_json import dummies_to_json, dumps
from shuffledp.report.wording import count, near, probability, up
from shuffledp.shell.output import console, working


@dataclass(frozen=True)
class DummiesWish:
    """The options of --find dummies as typed.

    Parameters
    ----------
    promises : tuple of str
        Texts such as ``"0.5=0.1"``: a local budget and the central epsilon it is promised.
    epsilon0, target_epsilon : float or None
        One level and its promise, instead.
    randomizer : str
        The text after --randomizer: one family for all questions, or one for each, separated by commas.
    questions : int
        Number of questions of one family.
    law : str or None
        The text after --dummies.
    reports : int
        Reports of one person to each question.
    others : tuple of str
        Options typed that say nothing here.
    """

    promises: tuple[str, ...]
    epsilon0: float | None
    target_epsilon: float | None
    randomizer: str
    questions: int
    law: str | None
    reports: int
    others: tuple[str, ...]


def run_calibrate_dummies(wish: DummiesWish, delta: float, *, json: bool) -> None:
    """Find the dummies and show what was certified with them."""
    if wish.others:
        raise InvalidInput(
            f"{wish.others[0]} does not belong to --find dummies: what dummies keep holds for every batch and against "
            "everybody else; leave it out"
        )
    if wish.law not in (None, *DUMMIES_LAWS):
        raise InvalidInput(f"--dummies is {' or '.join(DUMMIES_LAWS)} with --find dummies; got {shown(wish.law)}")
    promises = _promises(wish)
    families = [check_family(parse_randomizer(name)) for name in wish.randomizer.split(",")]
    with working("Searching"):
        found = calibrate_dummies(
            promises,
            families[0] if len(families) == 1 else families,
            delta,
            wish.questions,
            law=wish.law or "uniform",
            reports=wish.reports,
        )
    if json:
        print(dumps(_as_json(found)))
        return
    _show(found, wish)


def _promises(wish: DummiesWish) -> list[tuple[float, float]]:
    """Read what each level is promised."""
    given = [value is not None for value in (wish.epsilon0, wish.target_epsilon)]
    if bool(wish.promises) == all(given) or (wish.promises and any(given)):
        raise InvalidInput(
            "--find dummies needs --promise E=EPSILON for each level (repeated), or one level's --epsilon0 E and "
            "--target-epsilon EPSILON"
        )
    if wish.epsilon0 is not None and wish.target_epsilon is not None:
        return [(wish.epsilon0, wish.target_epsilon)]
    found: list[tuple[float, float]] = []
    for text in wish.promises:
        budget, equals, promise = text.partition("=")
        try:
            found.append((float(budget), float(promise)))
        except ValueError:
            what = "is not E=EPSILON" if equals else "lacks what it promises"
            raise InvalidInput(f"--promise {shown(text)} {what}; write it like 0.5=0.1") from None
    return found


def _as_json(found: DummiesNeeded) -> dict[str, Any]:
    rows = zip(found.promises, found.floors, strict=True)
    return {
        "dummies": [dummies_to_json(each) for each in found.dummies],
        "delta": found.delta,
        "levels": [
            {"epsilon0": epsilon0, "promise": promise, "floor": {"lower": floor.lower, "upper": floor.upper}}
            for (epsilon0, promise), floor in rows
        ],
    }


def _show(found: DummiesNeeded, wish: DummiesWish) -> None:
    out = console()
    listed = ", ".join(count(each) for each in found.counts)
    several = len(found.counts) > 1
    each = " (question by question)" if several else ""
    out.print(
        f"[bold]{listed} dummies[/]{each} are the fewest that keep every promise at "
        f"delta = {probability(found.delta)}, for every batch and whatever everybody else sends"
        + (f"; --dummies {found.dummies[0].name}." if not several else "."),
        highlight=False,
    )
    for (epsilon0, promise), floor in zip(found.promises, found.floors, strict=True):
        out.print(
            f"Local budget {near(epsilon0)}: promised {near(promise)}, certified {up(floor.upper)}"
            f"{' over all questions' if several else ''}.",
            highlight=False,
        )
    if wish.reports > 1:
        out.print(f"This holds for {wish.reports} reports of one person to each question.", style="dim")
