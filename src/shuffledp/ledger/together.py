"""Which populations may share a person: all of them, unless two are stated to be disjoint."""

from __future__ import annotations

from collections.abc import Collection, Iterable

MOST = 24
"""Populations beyond which all of one ledger are taken to overlap, which is safe."""


def shared_by_one(populations: Collection[str], apart: Iterable[tuple[str, str]]) -> list[frozenset[str]]:
    """Return the largest sets of populations that one person may belong to.

    Parameters
    ----------
    populations : collection of str
        Names.
    apart : iterable of (str, str)
        Pairs of names that share nobody.

    Returns
    -------
    list of frozenset of str
        Every set of names that are pairwise not apart lies in one of them.

    Notes
    -----
    These are the maximal cliques of the graph of overlaps (Bron and Kerbosch 1973, with pivots).

    Examples
    --------
    >>> sorted(sorted(s) for s in shared_by_one(["all", "north", "south"], [("north", "south")]))
    [['all', 'north'], ['all', 'south']]
    """
    names = frozenset(populations)
    distinct = {frozenset(pair) for pair in apart if set(pair) <= names and len(set(pair)) == 2}
    if not distinct or len(names) > MOST:
        return [names]
    near = {a: frozenset(b for b in names if b != a and frozenset((a, b)) not in distinct) for a in names}
    found: list[frozenset[str]] = []

    def grow(chosen: frozenset[str], left: frozenset[str], done: frozenset[str]) -> None:
        if not left and not done:
            found.append(chosen)
            return
        pivot = max(sorted(left | done), key=lambda name: len(near[name] & left))
        for name in sorted(left - near[pivot]):
            grow(chosen | {name}, left & near[name], done & near[name])
            left, done = left - {name}, done | {name}

    grow(frozenset(), names, frozenset())
    return found
