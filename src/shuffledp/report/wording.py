"""Sentences about guarantees and releases as people read them, and the rows of the evidence, one a bound.

Numbers are written by `shuffledp.in_words`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from shuffledp.accounting import bounds
from shuffledp.dummies import Uniform
from shuffledp.errors import MAX_EPSILON0
from shuffledp.in_words import (
    DIGITS,
    SAYS_NOTHING,
    count,
    counted,
    distance,
    down,
    interval_with_error,
    near,
    numbers_with_error,
    percent_down,
    plus_minus,
    points,
    probability,
    share,
    up,
    with_error,
)
from shuffledp.numerics.floats import Interval, next_above
from shuffledp.randomizers import Channel
from shuffledp.randomizers.base import HiddenByFakes, ReportSets
from shuffledp.setting import Evidence, Guarantee, Kind, LevelGuarantee, Setting

if TYPE_CHECKING:
    from shuffledp.releases.release import Release

__all__ = [
    "DIGITS",
    "PROJECTED",
    "SAYS_NOTHING",
    "asymptotic_epsilon",
    "count",
    "counted",
    "counted_dummies",
    "covers",
    "distance",
    "down",
    "dummies_notes",
    "enumerated",
    "guarantee_notes",
    "interval_with_error",
    "local_budget",
    "lower_end",
    "moves",
    "near",
    "numbers_with_error",
    "odds_factor",
    "over_rounds",
    "percent_down",
    "plus_minus",
    "points",
    "probability",
    "promise",
    "share",
    "situation",
    "some_levels",
    "two_values_notes",
    "unit",
    "unshuffled",
    "up",
    "weighted_by",
    "with_error",
]


PROJECTED = (
    "Projected: the nearest shares that are at least 0 and add up to 1; small ones come out too large on average, and "
    "the standard errors and intervals are those of the unbiased estimates."
)


def unit(release: Release | None) -> str:
    """Return the word for what a setting counts: "user" without a release, else "person".

    For the rows of people who own several it is "row".
    """
    if release is None:
        return "user"
    return "row" if release.unit == "people" and release.guarantee.setting.group_size > 1 else "person"


def plural(unit: str) -> str:
    """Return the plural of a word that `unit` returns.

    Examples
    --------
    >>> plural("user"), plural("person")
    ('users', 'people')
    """
    return "people" if unit == "person" else f"{unit}s"


def odds_factor(epsilon: float) -> str:
    """Return e^epsilon, rounded up, as a text: the factor by which the chance of any conclusion may grow, up to delta.

    Examples
    --------
    >>> odds_factor(0.0), odds_factor(0.0005), odds_factor(0.1)
    ('1', '1.00051', '1.106')
    """
    if epsilon <= 0.0:
        return "1"
    digits = DIGITS if epsilon >= 1e-3 else min(2 - math.floor(math.log10(epsilon)), 8)
    return up(next_above(math.exp(epsilon)), digits) if epsilon < MAX_EPSILON0 else "∞"


def moves(epsilon: float, delta: float) -> str:
    """Return words for the largest change of the chance of any conclusion; at an epsilon of 0 that is delta.

    Examples
    --------
    >>> moves(0.1, 1e-6), moves(0.0, 0.5)
    ('x 1.106', '+ 0.5')
    """
    return f"x {odds_factor(epsilon)}" if epsilon > 0.0 else f"+ {probability(delta)}"


def promise(level: LevelGuarantee, delta: float, setting: Setting, counts: str = "user") -> str:
    """Return the guarantee of one level in one or two sentences.

    Parameters
    ----------
    level : LevelGuarantee
        The level's guarantee.
    delta : float
        Central delta, in (0, 1).
    setting : Setting
        The setting.
    counts : str
        The word for what the setting counts, see `unit`.
    """
    if math.isinf(level.epsilon.upper):
        return f"Nothing can be promised to this level at delta = {probability(delta)}."
    size, of_one_budget = count(setting.group_size), " of one budget" if setting.budgets.levels > 1 else ""
    if setting.group_size == 1:
        whom, otherwise = f"one {counts}", f"that {counts}'s record were another"
    elif counts == "row":  # nobody's rows have several budgets (docs/theorems/situations.md)
        whom, otherwise = f"one person with at most {size} rows", "that person's records were others"
    else:
        whom, otherwise = f"a group of {size} people{of_one_budget}", "the records of that group were others"
    text = "An attacker who sees everything the analyzer sees, and knows every other record, reaches any conclusion "
    if level.epsilon.upper > 0.0:
        text += (
            f"about {whom} at most e^{up(level.epsilon.upper)} = {odds_factor(level.epsilon.upper)} times as likely as "
            f"if {otherwise}, plus at most {probability(delta)}."
        )
    else:
        text += (
            f"about {whom} with a chance that differs by at most {probability(delta)} from the chance it would have if "
            f"{otherwise}."
        )
    covered = covers(setting)
    return f"{text} This holds {enumerated(covered)}." if covered else text


def covers(setting: Setting) -> list[str]:
    """Return words for what a guarantee covers beyond one report of each honest and present user in one round.

    Examples
    --------
    >>> from shuffledp.budgets import Budgets
    >>> covers(Setting(Budgets([1.0], [100]), "any", "reports", "replace-one", rounds=12, colluding=3))
    ['over all 12 rounds together', 'even if 3 other users collude with the attacker']
    """
    others = f"{count(setting.colluding)} other user{'s collude' if setting.colluding > 1 else ' colludes'}"
    clauses = {
        f"over all {count(setting.rounds)} rounds together": setting.rounds > 1,
        "even if a user's reports can be linked across the rounds": setting.rounds > 1 and setting.linked,
        "provided that every user's record is the same in all rounds": setting.rounds > 1 and setting.same_record,
        f"for all {count(setting.reports_per_user)} reports that a user sends in a round": setting.reports_per_user > 1,
        f"even if {others} with the attacker": setting.colluding > 0,
        f"even if {percent_down(setting.missing)} of the users stay away or send junk": setting.missing > 0.0,
        "provided that every record is one of two values": setting.records is not None and setting.law is not None,
        # docs/theorems/count.md: reports are a function of shuffled bits only if one function serves everybody
        "provided that every record is one of two values and all users of a budget run one and the same randomizer": (
            setting.records is not None and setting.law is None
        ),
    }
    return [words for words, applies in clauses.items() if applies]


_WIDE = 1.1
"""Ratio of upper to lower end from which on a sentence explains the gap."""


def lower_end(epsilon: Interval) -> str:
    """Return words in brackets on the epsilon that a known attack reaches, and on the cause of the gap above it.

    Examples
    --------
    >>> lower_end(Interval(0.56, 0.57)), lower_end(Interval(0.0, 0.57))
    ('(and at least 0.56: a real attack shows it)', "(no attack was found: the gap below is the proof's)")
    >>> lower_end(Interval(0.2, 0.57))
    "(and at least 0.2: a real attack shows it; no attack is known above, the gap is the proof's)"
    """
    if not epsilon.upper:
        return ""
    if not epsilon.lower:
        return "(no attack was found: the gap below is the proof's)"
    gap = "; no attack is known above, the gap is the proof's" if epsilon.upper > _WIDE * epsilon.lower else ""
    return f"(and at least {down(epsilon.lower)}: a real attack shows it{gap})"


def over_rounds(setting: Setting) -> str:
    """Return words for the number of rounds that a preceding number covers; "" for a single round."""
    return f", over all {count(setting.rounds)} rounds" if setting.rounds > 1 else ""


def unshuffled(setting: Setting) -> str:
    """Return a sentence on the guarantee against whoever sees the reports before they are shuffled.

    Budgets add up: over rounds, over the reports of a round, and over the records of a group.

    Examples
    --------
    >>> from shuffledp.budgets import Budgets
    >>> unshuffled(Setting(Budgets([7.225], [10**6]), "any", "reports", "replace-one", rounds=12))
    'To whoever sees reports unshuffled: 7.225 a round, 86.7 in all.'
    """
    delta0, (a_round, in_all) = float(setting.budgets.deltas.max()), setting.unshuffled()
    text = f"To whoever sees reports unshuffled: {up(a_round)}"
    if setting.rounds > 1:
        text += f" a round, {up(in_all)} in all"
    return text + (f" (at delta0 = {probability(delta0)} for each report)." if delta0 else ".")


def enumerated(parts: Sequence[str]) -> str:
    """Return parts of a sentence, at least one, joined by commas and "and".

    Examples
    --------
    >>> enumerated(["here", "there", "elsewhere"]), enumerated(["here", "there"])
    ('here, there, and elsewhere', 'here, and there')
    """
    return ", and ".join([*([", ".join(parts[:-1])] if len(parts) > 1 else []), parts[-1]])


def situation(setting: Setting, counts: str = "user") -> str:
    """Return a setting's numbers in a line: users or rows, randomizer, rounds, and options that are not the default.

    Examples
    --------
    >>> from shuffledp.budgets import Budgets
    >>> situation(Setting(Budgets([1.0], [1000]), "any", "reports", "replace-one", missing=0.1))
    '1,000 users, randomizer any, 1 round, 10% missing'
    """
    usual = [
        counted(setting.budgets.n, counts, plural(counts)),
        f"randomizer {setting.randomizer_name}",
        counted(setting.rounds, "round"),
    ]
    unusual = {
        "linked": setting.rounds > 1 and setting.linked,
        "the same record in all rounds": setting.rounds > 1 and setting.same_record,
        f"{count(setting.reports_per_user)} reports per user": setting.reports_per_user > 1,
        f"groups of {count(setting.group_size)}": setting.group_size > 1,
        f"{count(setting.colluding)} colluding": setting.colluding > 0,
        f"{percent_down(setting.missing)} missing": setting.missing > 0.0,
        "records of two values": setting.records is not None,
        counted_dummies(setting): setting.dummies is not None,
    }
    return ", ".join(usual + [words for words, applies in unusual.items() if applies])


def counted_dummies(setting: Setting) -> str:
    """Return the number of dummies, and their distribution if it is not uniform, in words; "" without dummies.

    Examples
    --------
    >>> from shuffledp.budgets import Budgets
    >>> from shuffledp.dummies import Uniform
    >>> setting = Setting(Budgets([1.0], [10]), "any", "reports", "replace-one")
    >>> counted_dummies(setting)
    ''
    """
    if setting.dummies is None:
        return ""
    law = "" if isinstance(setting.dummies, Uniform) else f" ({setting.dummies.name})"
    return f"{count(setting.dummies.count)} dumm{'y' if setting.dummies.count == 1 else 'ies'}{law}"


def weighted_by(release: Release) -> str:
    """Return a word for what determines a person's weight in an estimate: "people", "precision" or "budget".

    "people": everybody has the same weight. "precision" (levels seen, on request) and "budget" (levels withheld):
    people with larger budgets have larger weights, which biases the estimate towards them if budgets depend on the
    records.
    """
    if release.guarantee.levels_total == 1:
        return "people"
    return {None: "budget", "population": "people", "precision": "precision"}[release.weights]


def guarantee_notes(guarantee: Guarantee, people: int | None = None) -> list[str]:
    """Return sentences on the limits of a guarantee, where a reader could expect more; ``people`` is their number."""
    return [*dummies_notes(guarantee), *two_values_notes(guarantee.setting), *large_delta_notes(guarantee, people)]


def two_values_notes(setting: Setting) -> list[str]:
    """Return advice where records of two values are randomized as if they had many: `rr` is made for them.

    Of all randomizers of a budget, randomized response estimates the share of one of two values with the least error
    (Kairouz, Oh and Viswanath 2016).
    """
    law = setting.law
    bit = isinstance(law, HiddenByFakes) and law.report_sets == ReportSets(2, disjoint=True)
    if setting.records is None or law is None or bit or isinstance(setting.randomizer, Channel):
        return []
    return [f"Records of two values may be sent by rr, which errs less than {law.name} at the same local budget."]


def large_delta_notes(guarantee: Guarantee, people: int | None = None) -> list[str]:
    """Return a warning that a delta above 1/n protects nobody for certain, n being the number of people."""
    n = guarantee.setting.budgets.n if people is None else people
    if guarantee.delta * n <= 1.0:
        return []
    return [
        f"delta = {probability(guarantee.delta)} is above 1/n: such a guarantee allows one person's record to be "
        "published; choose a delta well below 1/n.",
    ]


def dummies_notes(guarantee: Guarantee) -> list[str]:
    """Return sentences, for a collection with dummies, on the attacker against whom each of its two numbers holds."""
    floor, crowd = guarantee.floor, guarantee.crowd
    if floor is None or crowd is None:
        return []
    return [
        f"With {counted_dummies(guarantee.setting)} an honest shuffler keeps epsilon at {up(floor.upper)} for every "
        f"number of people and whatever all the others send; if the others are as the setting says, "
        f"{up(crowd.upper)} holds. If the shuffler colludes with the analyzer, only the local guarantee holds."
    ]


def local_budget(level: LevelGuarantee) -> str:
    """Return a level's own budget as a text: epsilon0, and delta0 where there is one."""
    return near(level.epsilon0) + (f", δ₀ {probability(level.delta0)}" if level.delta0 else "")


def asymptotic_epsilon(guarantee: Guarantee, key: str) -> float | None:
    """Return the epsilon (nats) that the published formula ``key`` claims for the worst level; None if it has none."""
    for evidence in guarantee.evidence:
        if evidence.key == key and evidence.epsilon is not None:
            return evidence.epsilon.upper
    return None


def some_levels(guarantee: Guarantee, most: int) -> list[LevelGuarantee]:
    """Return at most `most` levels, spread over those known and including the first, the last and the worst."""
    levels = guarantee.levels
    if len(levels) <= most:
        return list(levels)
    step = (len(levels) - 1) / (most - 2)
    picked = {round(i * step) for i in range(most - 1)} | {levels.index(guarantee.worst)}
    return [levels[i] for i in sorted(picked)]


class Standing(StrEnum):
    """How far a bound's number can be relied on, the most reliable kind first."""

    CERTIFIED = "certified"
    WITNESS = "witness"
    PUBLISHED = "published"
    ASYMPTOTIC = "asymptotic"

    @property
    def words(self) -> str:
        """The name of the kind in words."""
        return _WORDS[self]

    @property
    def meaning(self) -> str:
        """What may be concluded from a number of this kind."""
        return _MEANING[self]


_WORDS = {
    Standing.CERTIFIED: "certified upper bound",
    Standing.WITNESS: "witness (lower bound)",
    Standing.PUBLISHED: "published bound (its proof is not ours)",
    Standing.ASYMPTOTIC: "asymptotic (not a guarantee)",
}
_MEANING = {
    Standing.CERTIFIED: "the leak is at most this; proved, rounding errors counted in",
    Standing.WITNESS: "the leak is at least this; a real attack achieves it",
    Standing.PUBLISHED: "as good as its authors' proof; never part of the guarantee",
    Standing.ASYMPTOTIC: "an approximation for many users; may be too small",
}
_SOURCE_WORDS = {
    "paper": "formula from the paper",
    "code": "formula from its authors' code",
    "second": "formula from a secondary source",
}


@dataclass(frozen=True)
class EvidenceRow:
    """One bound with its value at the worst level, or the reason why it has none.

    Parameters
    ----------
    key : str
        The bound's key in ``shuffledp.bounds``.
    standing : Standing
        How far its number can be relied on.
    is_lower : bool
        Whether it bounds the leak from below.
    epsilon : float or None
        The end of its enclosure that counts, nats, possibly inf; None if it does not apply.
    shown : str
        That end as a text, rounded to the safe side; "≥" marks lower bounds.
    words : str
        The source of the theorem, and how surely its formula is known; or why it does not apply.
    """

    key: str
    standing: Standing
    is_lower: bool
    epsilon: float | None
    shown: str
    words: str

    @property
    def drawable(self) -> bool:
        """Whether epsilon is positive and finite, and so has a place on a logarithmic scale."""
        return self.epsilon is not None and 0.0 < self.epsilon < math.inf


@dataclass(frozen=True)
class Section:
    """The bounds of one kind that apply, or all bounds that do not.

    Parameters
    ----------
    standing : Standing or None
        The kind; None for bounds that do not apply.
    title, meaning : str
        The kind in words, and what may be concluded from its numbers.
    rows : tuple of EvidenceRow
        At least one, the strongest statement first.
    """

    standing: Standing | None
    title: str
    meaning: str
    rows: tuple[EvidenceRow, ...]


def evidence_sections(guarantee: Guarantee) -> list[Section]:
    """Return the evidence grouped by kind, the most reliable kind first; bounds that do not apply come last."""
    rows = sorted((_row(entry) for entry in guarantee.evidence), key=_strength)
    sections = [Section(kind, kind.words, kind.meaning, _answered(rows, kind)) for kind in Standing]
    refusing = tuple(row for row in rows if row.epsilon is None)
    sections.append(Section(None, "does not apply here", "for the reason given", refusing))
    return [section for section in sections if section.rows]


def _answered(rows: Sequence[EvidenceRow], kind: Standing) -> tuple[EvidenceRow, ...]:
    """Return the rows of a kind that have a value: upper bounds, then lower ones."""
    chosen = [row for row in rows if row.standing is kind and row.epsilon is not None]
    return tuple(sorted(chosen, key=lambda row: row.is_lower))


def standing(entry: Evidence) -> Standing:
    """Return how far a bound's number can be relied on."""
    if entry.kind is Kind.ASYMPTOTIC:
        return Standing.ASYMPTOTIC
    bound = bounds.get(entry.key)
    if bound is not None and not bound.enters_bracket:
        return Standing.PUBLISHED
    return Standing.WITNESS if entry.kind is Kind.CERTIFIED_LOWER else Standing.CERTIFIED


def source(entry: Evidence) -> str | None:
    """Return how surely a published formula is known: "paper", "code", "second" or "own"; None for other bounds."""
    origin: object = getattr(bounds.get(entry.key), "source", None)
    return None if origin is None else str(origin)


def value(entry: Evidence) -> float | None:
    """Return the end of a bound's enclosure that counts: the lower end of a lower bound, else the upper end."""
    if entry.epsilon is None:
        return None
    return entry.epsilon.lower if entry.kind is Kind.CERTIFIED_LOWER else entry.epsilon.upper


def _row(entry: Evidence) -> EvidenceRow:
    epsilon, is_lower, worth = value(entry), entry.kind is Kind.CERTIFIED_LOWER, standing(entry)
    if epsilon is None:
        number = "–"
    elif is_lower:
        number = f"≥ {down(epsilon)}"
    else:
        number = near(epsilon) if worth is Standing.ASYMPTOTIC else up(epsilon)
    origin = source(entry)
    words = f"{entry.reference} ({_SOURCE_WORDS[origin]})" if origin in _SOURCE_WORDS else entry.reference
    return EvidenceRow(entry.key, worth, is_lower, epsilon, number, words if entry.refused is None else entry.refused)


def _strength(row: EvidenceRow) -> float:
    """Return a number that is smaller for stronger statements: small upper bounds, large lower ones."""
    if row.epsilon is None:
        return 0.0
    return -row.epsilon if row.is_lower else row.epsilon
