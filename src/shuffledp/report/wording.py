"""Numbers and sentences as people read them: upper ends rounded up, lower ends down, never the other way."""

from __future__ import annotations

import decimal
import math
from typing import TYPE_CHECKING

import numpy as np

from shuffledp.errors import InvalidInput
from shuffledp.guarantee import Guarantee, Kind, LevelGuarantee

if TYPE_CHECKING:
    from shuffledp.protocol.release import Release

DIGITS = 4
KIND_WORDS = {
    Kind.CERTIFIED_UPPER: "certified",
    Kind.CERTIFIED_LOWER: "witness",
    Kind.ASYMPTOTIC: "asymptotic, not a guarantee",
}
KIND_LEGEND = {
    Kind.CERTIFIED_UPPER: "proved: the leak is at most this",
    Kind.CERTIFIED_LOWER: "a real attack achieves this: the leak is at least this",
    Kind.ASYMPTOTIC: "a published approximation for many users: may be too small",
}


def up(value: float, digits: int = DIGITS) -> str:
    """Show an upper end: at most `digits` significant digits, rounded up.

    Examples
    --------
    >>> up(0.123412), up(2.0), up(float("inf"))
    ('0.1235', '2', '∞')
    """
    return _shown(value, decimal.ROUND_CEILING, digits)


def down(value: float, digits: int = DIGITS) -> str:
    """Show a lower end: at most `digits` significant digits, rounded down."""
    return _shown(value, decimal.ROUND_FLOOR, digits)


def near(value: float, digits: int = DIGITS) -> str:
    """Show an estimate: at most `digits` significant digits, rounded to the nearest."""
    return _shown(value, decimal.ROUND_HALF_EVEN, digits)


def with_error(value: float, error: float) -> str:
    """Show an estimate to the second significant digit of its standard error."""
    if not (math.isfinite(value) and math.isfinite(error) and error > 0.0):
        return near(value)
    places = 1 - math.floor(math.log10(error))
    return f"{round(value, places):,.{max(places, 0)}f}"


def probability(delta: float) -> str:
    """Show a probability as typed: 1e-6, not 1e-06."""
    return f"{delta:g}".replace("e-0", "e-")


def count(value: int) -> str:
    """Show a whole number with its thousands apart."""
    return f"{value:,}"


def share(value: float) -> str:
    """Show a share of the users to a hundredth of a percent."""
    return f"{value:.2%}"


def odds_factor(epsilon: float) -> str:
    """Show e^epsilon rounded up: the factor by which the chance of any conclusion may move, up to delta."""
    return up(math.nextafter(math.exp(epsilon), math.inf)) if epsilon < 700 else "∞"


def promise(level: LevelGuarantee, delta: float) -> str:
    """Say the guarantee of one level as a sentence."""
    if math.isinf(level.epsilon.upper):
        return f"Nothing can be promised to this level at delta = {probability(delta)}."
    return (
        "An attacker who sees everything the analyzer sees, and knows every other record, reaches any conclusion "
        f"about one user at most e^{up(level.epsilon.upper)} = {odds_factor(level.epsilon.upper)} times as likely as "
        f"if that user's record were another, plus at most {probability(delta)}."
    )


def notes(release: Release) -> list[str]:
    """Say how an estimate was made, where a reader could take it for something else."""
    said: list[str] = []
    if release.guarantee.levels_total > 1:
        said.append(
            {
                None: "The estimate weighs people by what their budget lets through; if budgets go along "
                "with the records, it leans towards those who allow more.",
                "population": "Each budget level was estimated by itself and counts by its number of people.",
                "precision": "Each budget level was estimated by itself and counts by its precision; if "
                "budgets go along with the records, the estimate leans towards those who allow more.",
            }[release.weights]
        )
    low, high = (np.asarray(end) for end in release.confidence_interval(0.95))
    estimate = np.asarray(release.estimate)
    if not bool(np.all((low <= estimate) & (estimate <= high))):
        said.append(
            "Noise has moved an estimate out of the possible range; it is left unbiased, while its interval is cut "
            "to the range."
        )
    if release.uninformative:
        said.append(
            f"{count(release.uninformative)} people with budget 0 send no information; "
            "they are taken to be like the others."
        )
    return said


def local_budget(level: LevelGuarantee) -> str:
    """Show a level's own budget: epsilon0, and delta0 where there is one."""
    return near(level.epsilon0) + (f", δ₀ {level.delta0:g}" if level.delta0 else "")


def asymptotic_epsilon(guarantee: Guarantee, key: str) -> float | None:
    """Find what a published formula claims for the worst level; None if it does not apply."""
    for evidence in guarantee.evidence:
        if evidence.key == key and evidence.epsilon is not None:
            return evidence.epsilon.upper
    return None


def some_levels(guarantee: Guarantee, most: int) -> list[LevelGuarantee]:
    """At most `most` levels, spread over those known, the first, the last and the worst among them."""
    levels = guarantee.levels
    if len(levels) <= most:
        return list(levels)
    step = (len(levels) - 1) / (most - 2)
    picked = {round(i * step) for i in range(most - 1)} | {levels.index(guarantee.worst)}
    return [levels[i] for i in sorted(picked)]


def _shown(value: float, rounding: str, digits: int) -> str:
    if math.isnan(value):
        raise InvalidInput("cannot show a value that is not a number; this is a bug in shuffledp, please report it")
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    exact = decimal.Decimal(value)
    if exact == 0:
        return "0"
    # Doubles such as 0.1 carry digits beyond the 15 that anyone wrote; they are not a reason to show 0.1001.
    if float(f"{value:.{digits}g}") == value:
        exact = decimal.Decimal(f"{value:.{digits}g}")
    rounded = exact.quantize(decimal.Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding)
    if 1e-4 <= abs(value) < 1e6:
        text = f"{rounded:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{rounded:.{digits - 1}e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
