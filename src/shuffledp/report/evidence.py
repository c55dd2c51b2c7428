"""The rows of the evidence, one per bound that was consulted, as every renderer lists them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from shuffledp.accounting import bounds
from shuffledp.guarantee import Evidence, Guarantee, Kind
from shuffledp.report.wording import down, near, up


class Standing(StrEnum):
    """What a bound's number is worth to a reader, best first."""

    CERTIFIED = "certified"
    WITNESS = "witness"
    PUBLISHED = "published"
    ASYMPTOTIC = "asymptotic"

    @property
    def words(self) -> str:
        """The kind as a reader is told it."""
        return _WORDS[self]

    @property
    def meaning(self) -> str:
        """What may be concluded from the number."""
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
    """One bound, what it said about the worst level or why it said nothing.

    Parameters
    ----------
    key : str
        The bound's key in ``shuffledp.bounds``.
    standing : Standing
        What its number is worth.
    is_lower : bool
        Whether it bounds the leak from below.
    epsilon : float or None
        The end of its enclosure that counts, nats, possibly inf; None if it does not apply.
    shown : str
        That end as read by people, rounded to the safe side; "≥" marks lower bounds.
    words : str
        Where the theorem stands, and how surely its formula is known; or why it does not apply.
    """

    key: str
    standing: Standing
    is_lower: bool
    epsilon: float | None
    shown: str
    words: str

    @property
    def drawable(self) -> bool:
        """Whether the value has a place on a logarithmic scale."""
        return self.epsilon is not None and 0.0 < self.epsilon < math.inf


@dataclass(frozen=True)
class Section:
    """The bounds of one kind that answered, or those of all kinds that did not.

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
    """Group the evidence by kind, the strongest kind first; what does not apply comes last."""
    rows = sorted((_row(entry) for entry in guarantee.evidence), key=_strength)
    sections = [Section(kind, kind.words, kind.meaning, _answered(rows, kind)) for kind in Standing]
    refusing = tuple(row for row in rows if row.epsilon is None)
    sections.append(Section(None, "does not apply here", "for the reason given", refusing))
    return [section for section in sections if section.rows]


def _answered(rows: Sequence[EvidenceRow], kind: Standing) -> tuple[EvidenceRow, ...]:
    """Upper bounds of the kind, then lower ones."""
    chosen = [row for row in rows if row.standing is kind and row.epsilon is not None]
    return tuple(sorted(chosen, key=lambda row: row.is_lower))


def standing(entry: Evidence) -> Standing:
    """Tell what a bound's number is worth."""
    if entry.kind is Kind.ASYMPTOTIC:
        return Standing.ASYMPTOTIC
    bound = bounds.get(entry.key)
    if bound is not None and not bound.enters_bracket:
        return Standing.PUBLISHED
    return Standing.WITNESS if entry.kind is Kind.CERTIFIED_LOWER else Standing.CERTIFIED


def source(entry: Evidence) -> str | None:
    """Tell how surely a published formula is known: "paper", "code", "second" or "own"; None where no one asks."""
    known: object = getattr(bounds.get(entry.key), "source", None)
    return None if known is None else str(known)


def value(entry: Evidence) -> float | None:
    """Return the end of a bound's enclosure that counts: the lower one of a lower bound, else the upper one."""
    if entry.epsilon is None:
        return None
    return entry.epsilon.lower if entry.kind is Kind.CERTIFIED_LOWER else entry.epsilon.upper


def _row(entry: Evidence) -> EvidenceRow:
    epsilon, is_lower, worth = value(entry), entry.kind is Kind.CERTIFIED_LOWER, standing(entry)
    if epsilon is None:
        shown = "–"
    elif is_lower:
        shown = f"≥ {down(epsilon)}"
    else:
        shown = near(epsilon) if worth is Standing.ASYMPTOTIC else up(epsilon)
    known = source(entry)
    words = f"{entry.reference} ({_SOURCE_WORDS[known]})" if known in _SOURCE_WORDS else entry.reference
    return EvidenceRow(entry.key, worth, is_lower, epsilon, shown, words if entry.refused is None else entry.refused)


def _strength(row: EvidenceRow) -> float:
    """Small for strong statements: the smallest upper bound, the largest lower one."""
    if row.epsilon is None:
        return 0.0
    return -row.epsilon if row.is_lower else row.epsilon
