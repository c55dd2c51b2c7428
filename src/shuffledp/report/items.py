"""Frequent items as people read them: what was found, what would have been, and what the names do not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shuffledp.releases.release import ItemsRelease
from shuffledp.report.remarks import notes
from shuffledp.report.rows import CONFIDENCE, frequency_rows
from shuffledp.report.wording import count, percent, points, share

if TYPE_CHECKING:
    from shuffledp.randomizers.item_domain import ItemDomain
    from shuffledp.releases.release import Release

NOTHING = "No item is frequent enough to be named."


def chosen(release: Release) -> bool:
    """Whether the entries of an answer were chosen by the data, so that their intervals can only hold together."""
    return isinstance(release, ItemsRelease)


def all_notes(release: Release) -> list[str]:
    """Say what the name of an item stands for, and whatever else `notes` has to say.

    Parameters
    ----------
    release : Release
        Of any question.
    """
    return [*(_items(release) if isinstance(release, ItemsRelease) else []), *notes(release)]


def _items(release: ItemsRelease) -> list[str]:
    chance = percent(release.question.false_positives)  # type: ignore[attr-defined]
    finds, domain = release.finds, release.tried.domain
    said = [_searched(domain)]
    if finds < 1.0:
        said.append(f"An item that at least {share(finds)} of the people have is found with a chance of 95 %.")
    else:
        said.append("With so few people at such budgets, no item would surely be found, however frequent.")
    said[1] += f" The chance that any item is named that nobody has is at most {chance}."
    if len(release.categories):
        said.append(
            f"The {CONFIDENCE:.0%} intervals hold all together, although the data chose the items; one that begins at "
            "0 says that few may have the item."
        )
    from shuffledp.randomizers.item_domain import ListedItems

    if not isinstance(domain, ListedItems):
        said.append(
            "Names and shares are up to a public hash: a share is that of an item and of all words that fall into the "
            f"same one of {count(1 << domain.bits)} cells."
        )
    if release.tried.full:
        said.append(
            "More beginnings of words were frequent than the search follows, so items may be missing; ask about "
            "shorter words, or with a smaller alphabet."
        )
    return said


def items_to_json(release: ItemsRelease) -> dict[str, Any]:
    """Return what the object of the contract says of the search.

    Parameters
    ----------
    release : ItemsRelease
        What was found.
    """
    domain = release.tried.domain
    return {
        "threshold": release.threshold,
        "finds": release.finds,
        "false_positives": release.question.false_positives,  # type: ignore[attr-defined]
        "levels": domain.levels,
        "cells": 1 << domain.bits,
        "tried": len(release.tried.items),
        "complete": not release.tried.full,
    }


def items_table(release: ItemsRelease, interval: str) -> Mapping[str, Any]:
    """Return headings and rows of the table of items.

    Parameters
    ----------
    release : ItemsRelease
        What was found.
    interval : str
        Heading of the intervals.
    """
    rows = [
        [
            row.category,
            share(row.frequency),
            points(row.standard_error),
            f"{share(row.low)} to {share(row.high)}",
        ]
        for row in frequency_rows(release)
    ]
    return {"headings": ["item", "share", "standard error", interval], "rows": rows, "remark": ""}


def _searched(domain: ItemDomain) -> str:
    from shuffledp.randomizers.item_domain import ListedItems

    if isinstance(domain, ListedItems):
        return f"Items were looked for among {count(domain.count)} candidates; all others count as none of them."
    return (
        f"Items were searched for letter by letter, at {domain.levels} levels, each answered by one in {domain.levels} "
        "of the people, on average."
    )
