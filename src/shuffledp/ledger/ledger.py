"""The ledger, its limit and its total, and the sets of populations that may share a person."""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from shuffledp.accounting import StoredProfile, allowed_mu, compose
from shuffledp.errors import InvalidInput, check_delta, named, path_shown, shown
from shuffledp.ledger.entry import COLUMNS, Entry, NewEntry, Use, check_name
from shuffledp.ledger.store import VERSION, Turn, connect, damage_explained, unchained, version, writing
from shuffledp.numerics.floats import deflated, few_digits_up, inflated

# The numbers of a ledger: its limit, what its releases cost together, and whether they were fixed in advance.

OUTSIDE_SHARE = 0.1
"""Share of the limit's delta available for probabilities of revealing a record."""


@dataclass(frozen=True)
class Limit:
    """The joint guarantee that all releases of a ledger must keep for everybody, set before the first of them.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee (epsilon in nats), which holds however the questions are chosen.
    """

    epsilon: float
    delta: float

    @staticmethod
    def checked(epsilon: float, delta: float) -> Limit:
        """Return a limit of this epsilon (nats) and delta, or raise InvalidInput if either is out of range."""
        check_delta(delta)
        if not (isinstance(epsilon, int | float) and 0.0 < epsilon < math.inf):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"a `limit` needs an epsilon above 0; got {shown(epsilon)}")
        return Limit(float(epsilon), float(delta))

    @property
    def outside(self) -> float:
        """Upper bound on the sum, over all releases, of the probabilities of revealing a record."""
        return OUTSIDE_SHARE * self.delta

    @property
    def mu(self) -> float:
        """Square root of the upper bound on the sum of the releases' squared mu."""
        return allowed_mu(self.epsilon, self.delta, self.outside)

    def share_of(self, number: int) -> float:
        """Return the probability of revealing a record that the release of this number spends by default.

        Half of the sum over i of 1/(i (i+1)) = 1 is spent that way, however many releases come.
        """
        return 0.5 * self.outside / (number * (number + 1.0))


@dataclass(frozen=True)
class LevelTotal:
    """The joint cost to people who had the same local budget in every release.

    Parameters
    ----------
    epsilon0 : float
        The local budget.
    epsilon : float
        Central epsilon (nats) of all releases together, certified from above.
    """

    epsilon0: float
    epsilon: float


@dataclass(frozen=True)
class Total:
    """The joint cost of a ledger's releases to the people who spent most.

    Parameters
    ----------
    epsilon, delta : float
        Exact composition, certified from above: it holds if all releases were fixed in advance.
    fixed : bool
        Whether the ledger shows that all releases which concern one person were fixed in advance: by one plan, or in
        one run.
    populations : tuple of str
        The populations whose members spent most.
    levels : tuple of LevelTotal
        Totals of the budgets that occur in every one of those releases.
    mu, outside : float
        Square root of the sum of squared mu, and sum of the probabilities `outside`.
    """

    epsilon: float
    delta: float
    fixed: bool
    populations: tuple[str, ...]
    levels: tuple[LevelTotal, ...]
    mu: float
    outside: float


def composed_epsilon(profiles: Iterable[StoredProfile], delta: float) -> float:
    """Return a certified upper bound on the joint epsilon (nats) of releases fixed in advance, rounded up to 10 digits.

    Parameters
    ----------
    profiles : iterable of StoredProfile
        One per release; equal ones are composed together.
    delta : float
        In (0, 1).
    """
    alike: dict[tuple[Any, Any], tuple[StoredProfile, int]] = {}
    for profile in profiles:
        key = profile.knots, profile.log_delta
        alike[key] = alike.get(key, (profile, 0))[0], alike.get(key, (profile, 0))[1] + 1
    return few_digits_up(compose(list(alike.values())).epsilon(delta).upper)


def fixed_together(entries: Sequence[Entry]) -> bool:
    """Return whether releases were fixed before the first of their answers: by one plan, or in one run."""
    plans, runs = {entry.plan for entry in entries}, {entry.run for entry in entries}
    return len(runs) == 1 or (len(plans) == 1 and None not in plans)


def levels_together(entries: Sequence[Entry], delta: float) -> Iterable[LevelTotal]:
    """Yield, for each budget that occurs in every one of the releases, their joint cost at it.

    Parameters
    ----------
    entries : sequence of Entry
        The releases.
    delta : float
        Central delta of all together, in (0, 1).
    """
    kept = [{level.epsilon0: level.profile for level in entry.spending.levels} for entry in entries]
    for epsilon0 in sorted(set.intersection(*(set(levels) for levels in kept))):
        yield LevelTotal(epsilon0, composed_epsilon([levels[epsilon0] for levels in kept], delta))


MOST = 24
"""Number of populations of one ledger beyond which all are assumed to overlap, which is safe."""


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
    cliques: list[frozenset[str]] = []

    def grow(chosen: frozenset[str], left: frozenset[str], done: frozenset[str]) -> None:
        if not left and not done:
            cliques.append(chosen)
            return
        pivot = max(sorted(left | done), key=lambda name: len(near[name] & left))
        for name in sorted(left - near[pivot]):
            grow(chosen | {name}, left & near[name], done & near[name])
            left, done = left - {name}, done | {name}

    grow(frozenset(), names, frozenset())
    return cliques


# A ledger: what the same people have spent over many releases, and the number that holds for all of it together.
#
# Two statements are kept apart (docs/theorems/ledger.md). If all releases were fixed before the first answer was seen,
# their exact composition holds. If questions were chosen on the way, the sum seen so far proves nothing; what holds is
# the limit that was set before the first entry, because every release is admitted by a filter that never exceeds it.

METER_SHARE = 1e-3
"""Share of each release's own delta spent as probability of revealing a record, in a ledger without a limit.

Without a limit mu and outside prove nothing.
"""


class Ledger:
    """A file of releases that concern the same people, with their joint guarantee.

    Parameters
    ----------
    path : str or Path
        The SQLite file, on a local disk. Several processes may use it at once.
    make : bool
        Whether a missing file is created; else it is an error, so that a mistyped name starts no second ledger.

    Raises
    ------
    InvalidInput
        If the file is no ledger, was changed other than by this library, or cannot be read and written.

    Examples
    --------
    >>> import tempfile
    >>> import shuffledp as sdp
    >>> people = {"vote": ["yes", "no"] * 500}
    >>> with tempfile.TemporaryDirectory() as folder, sdp.Ledger(f"{folder}/l", make=True) as ledger:
    ...     ledger.set_limit(1.0, 1e-5)
    ...     ask = dict(value="vote", budgets=1.0, seen="reports", delta=1e-6, ledger=ledger)
    ...     release = sdp.release(sdp.Frequency(["yes", "no"]), people, **ask)
    ...     len(ledger.entries()), ledger.limit.epsilon
    (1, 1.0)
    """

    def __init__(self, path: str | Path, *, make: bool = False) -> None:
        if not isinstance(path, str | Path) or not str(path):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"`ledger` must be the name of a file; got {shown(path)}")
        self.path = Path(path)
        self._name = path_shown(path)
        self._runs: list[str] = []
        self._db = connect(self.path, make=make)

    def __repr__(self) -> str:
        """Name the file; it is not read."""
        return f"<Ledger {named(self.path.name)}: ask .entries() and .total()>"

    def close(self) -> None:
        """Close the ledger's file."""
        self._db.close()

    def __enter__(self) -> Ledger:
        """Return this ledger."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the ledger's file."""
        self.close()

    def entries(self) -> list[Entry]:
        """Return all entries, in the order in which they were entered.

        Raises
        ------
        InvalidInput
            If the file cannot be read.
        """
        with damage_explained(self._name):
            return [Entry.of(row) for row in self._read(f"SELECT {COLUMNS} FROM entry ORDER BY id")]

    def entered_here(self) -> list[int]:
        """Return the numbers of the entries that were entered through this object and are in the file now."""
        rows = self._read("SELECT id, run FROM entry ORDER BY id")
        return [number for number, run in rows if run in self._runs]

    @property
    def unchained(self) -> int:
        """Number of entries made before the chain of hashes began, for which earlier changes cannot be detected."""
        if version(self._db) < VERSION:
            return len(self._read("SELECT id FROM entry"))
        return unchained(self._db)

    @property
    def limit(self) -> Limit | None:
        """The limit on all releases together (epsilon in nats, and delta); None if none was set."""
        rows = self._read("SELECT epsilon, delta FROM allowance")
        return Limit(*rows[0]) if rows else None

    def set_limit(self, epsilon: float, delta: float) -> None:
        """Set the limit, which is possible once, before the first entry.

        Parameters
        ----------
        epsilon, delta : float
            Joint guarantee of all releases, however they are chosen; epsilon (nats) above 0, delta in (0, 1).

        Raises
        ------
        InvalidInput
            If a value is out of range, there is an entry, or a limit was set.
        """
        wanted = Limit.checked(epsilon, delta)
        with writing(self._db, self._name) as db:
            if db.execute("SELECT count(*) FROM allowance").fetchone()[0]:
                raise InvalidInput(f"the ledger {self._name} has its limit, which is set once; start another ledger")
            if db.execute("SELECT count(*) FROM entry").fetchone()[0]:
                raise InvalidInput(
                    f"the ledger {self._name} has entries, and a limit proves something only if it was set before the "
                    "first; start another ledger for what comes"
                )
            db.execute("INSERT INTO allowance VALUES (1, ?, ?)", (wanted.epsilon, wanted.delta))

    def state_disjoint(self, names: Sequence[str]) -> None:
        """State that no person belongs to two of these populations.

        Parameters
        ----------
        names : sequence of str
            At least two names.

        Raises
        ------
        InvalidInput
            If there are fewer, or one is given twice.
        """
        populations = [check_name("population", name) for name in names]
        if len(set(populations)) < max(len(populations), 2):
            raise InvalidInput(
                f"name two or more different populations that share nobody; got {', '.join(populations)}"
            )
        with writing(self._db, self._name) as db:
            there = set(db.execute("SELECT first, second FROM apart"))
            db.executemany("INSERT INTO apart VALUES (?, ?)", sorted(set(combinations(sorted(populations), 2)) - there))

    @property
    def disjoint(self) -> list[tuple[str, str]]:
        """Pairs of populations that are stated to have no common member."""
        return [(first, second) for first, second in self._read("SELECT first, second FROM apart")]

    def refusal(self, drafts: Sequence[NewEntry], use: Use) -> str | None:
        """Return why the limit has no room for these releases together; None if it has room, or there is no limit.

        Parameters
        ----------
        drafts : sequence of NewEntry
            Releases of one run.
        use : Use
            The names under which they are to be entered.
        """
        return None if self.limit is None else self._admitted(drafts, use)[1]

    def enter(self, drafts: Sequence[NewEntry], use: Use, turn: Turn | None = None) -> int:
        """Enter releases, all or none, in one transaction that is on the disk on return.

        Parameters
        ----------
        drafts : sequence of NewEntry
            Releases of one run.
        use : Use
            The names under which they are entered.
        turn : Turn, optional
            Turn of a training run with a checkpoint, taken in the same transaction.

        Returns
        -------
        int
            Number of releases entered, without those whose very reports are entered already.

        Raises
        ------
        InvalidInput
            If the limit has no room for them, another batch of the same collection is entered, the run has gone on
            past the turn, or the file cannot be written: then nothing may be shown.
        """
        columns = COLUMNS.partition(", ")[2]
        places = ", ".join("?" * len(columns.split(", ")))
        with writing(self._db, self._name) as db:
            if any(draft.batches for draft in drafts):
                entries = self.entries()
                drafts = [draft for draft in drafts if not draft.is_in(entries, use)]
            covers, refused = self._admitted(drafts, use)  # again: another process may have entered in between
            if refused is not None:
                raise InvalidInput(refused)
            run = secrets.token_hex(8)
            self._runs.append(run)
            for draft, cover in zip(drafts, covers, strict=True):
                done = db.execute(f"INSERT INTO entry ({columns}) VALUES ({places})", draft.row(use, run, cover))
                if draft.training:
                    db.execute("INSERT INTO rounds VALUES (?, ?, ?)", (done.lastrowid, draft.training, draft.rounds))
            if turn is not None:
                self._take(turn)
        return len(drafts)

    def rounds_of(self, training: str) -> list[str]:
        """Return the rounds of a training run that are entered, as its drafts named them.

        Parameters
        ----------
        training : str
            Name of the run.
        """
        if version(self._db) < VERSION:
            return []
        return [row for (row,) in self._read("SELECT counts FROM rounds WHERE training = ?", training)]

    def kept(self, training: str) -> str | None:
        """Return the name of the last turn of a training run; None if the ledger does not know the run."""
        if version(self._db) < VERSION:
            return None
        rows = self._read("SELECT name FROM turn WHERE training = ?", training)
        return rows[0][0] if rows else None

    def take(self, turn: Turn) -> None:
        """Record that a training run goes on by one turn.

        Parameters
        ----------
        turn : Turn
            The next turn.

        Raises
        ------
        InvalidInput
            If another process has gone on with the run, or the file cannot be written.
        """
        with writing(self._db, self._name, for_good=False):
            self._take(turn)

    def _take(self, turn: Turn) -> None:
        """Record a turn, in an open writing transaction."""
        turn.check_taken_from(self.kept(turn.run), f"the ledger {self._name}")
        self._db.execute("DELETE FROM turn WHERE training = ?", (turn.run,))
        self._db.execute("INSERT INTO turn VALUES (?, ?, ?)", (turn.run, turn.number, turn.name))

    def total(self, delta: float | None = None) -> Total:
        """Return the joint cost of the releases to the people who spent most.

        Parameters
        ----------
        delta : float, optional
            In (0, 1); default: the limit's, else the largest of the entries'.

        Raises
        ------
        InvalidInput
            If delta is not in (0, 1).
        """
        entries, limit = self.entries(), self.limit
        deltas = [entry.spending.delta for entry in entries]
        at = check_delta(delta) if delta is not None else limit.delta if limit else max(deltas, default=1e-6)
        if not entries:
            return Total(0.0, at, fixed=True, populations=(), levels=(), mu=0.0, outside=0.0)
        groups = shared_by_one({entry.population for entry in entries}, self.disjoint)
        parts = [[entry for entry in entries if entry.population in group] for group in groups]
        cost = [composed_epsilon([entry.spending.worst for entry in part], at) for part in parts]
        most = parts[max(range(len(parts)), key=lambda k: cost[k])]
        meters = [(math.fsum(e.mu**2 for e in part), math.fsum(e.outside for e in part)) for part in parts]
        return Total(
            max(cost),
            at,
            fixed=all(fixed_together(part) for part in parts),
            populations=tuple(sorted({entry.population for entry in most})),
            levels=tuple(levels_together(most, at)),
            mu=math.sqrt(max(square for square, _ in meters)),
            outside=max(outside for _, outside in meters),
        )

    def _admitted(self, drafts: Sequence[NewEntry], use: Use) -> tuple[list[tuple[float, float]], str | None]:
        """Return (mu, outside) of each release, and why the limit has no room for them, or None."""
        limit = self.limit
        spent = self._read("SELECT population, mu, outside FROM entry")
        if limit is None:
            return [draft.cover(METER_SHARE * draft.spending.delta) for draft in drafts], None
        covers = [draft.cover(limit.share_of(len(spent) + 1 + i)) for i, draft in enumerate(drafts)]
        groups = shared_by_one({population for population, _, _ in spent} | {use.population}, self.disjoint)
        for group in groups:
            if use.population not in group:
                continue
            before = [(mu, outside) for population, mu, outside in spent if population in group]
            squares = inflated(math.fsum(mu * mu for mu, _ in [*before, *covers]), 8)
            chances = inflated(math.fsum(outside for _, outside in [*before, *covers]), 8)
            if not (squares <= deflated(limit.mu**2, 8) and chances <= limit.outside):
                return covers, self._refused(limit, before, covers, chances > limit.outside)
        return covers, None

    def _refused(
        self, limit: Limit, before: Sequence[tuple[float, float]], covers: Sequence[tuple[float, float]], chance: bool
    ) -> str:
        """Return words on what is left of the limit and what is needed."""
        whose = f"the ledger {named(self.path.name)} is limited to epsilon {limit.epsilon:g} at delta {limit.delta:g}"
        if chance:
            left = limit.outside - math.fsum(outside for _, outside in before)
            wanted = math.fsum(outside for _, outside in covers)
            return (
                f"{whose}; this release may reveal a record with chance {wanted:.3g}, of which {max(left, 0.0):.3g} is "
                "left; nothing was released"
            )
        used = math.fsum(mu * mu for mu, _ in before) / limit.mu**2
        wanted = math.fsum(mu * mu for mu, _ in covers) / limit.mu**2
        return (
            f"{whose}; {100.0 * (1.0 - used):.3g}% of that is left, and this release needs {100.0 * wanted:.3g}% of "
            "it; nothing was released"
        )

    def _read(self, statement: str, *values: str) -> list[Any]:
        with damage_explained(self._name):
            return self._db.execute(statement, values).fetchall()
