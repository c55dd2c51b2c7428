"""The floor against releases of the real service with two people, over all draws of the dummies.

`close_task` runs on a store that holds the sealed reports of two people: it draws the dummies, seals them, joins them
to the reports and writes the batch, whose rows `open_column` opens, as `open_batch` does. What is drawn comes from a
source that walks through the whole tree of choices with exact chances, in the place of ``chance_of``:

- A whole number below a small bound (the point of a ball) takes every value.
- A whole number below 2^64 or a sum of weights (the radius, a normal cell) takes the first and the last value of each
  class that the task's text states. The code compares it with ascending ends, so that the values between mean the same.
- Draws that the code repeats are left out, and chances are given that it does not repeat: each try is a fresh one.
- The order of the rows takes every permutation in one case; elsewhere it is drawn as always, and the release is what an
  order without information leaves, the numbers of rows of each content (`test_closing` tests that order).
- Keys for sealing are drawn as always: rows are compared by their contents, for the analyzer opens all of them.

The chances of a person's reports come from such a tree, too, through `draw_report`; every report is then sent to a
service of its own. The other person's reports stay the same, and are known.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp import ball
from shuffledp.ball import BallDummies, below_of
from shuffledp.collection import closing, laws
from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.batch import Batch, seal_inner
from shuffledp.collection.client import outer_of
from shuffledp.collection.closing import close_task
from shuffledp.collection.draw import WHOLE
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.laws import TaskLaw, drawn_columns, floor_of_columns, law_of_task, written_law
from shuffledp.collection.opening import open_column
from shuffledp.collection.sealing import Opener, Sealer
from shuffledp.collection.task import PostedTask
from shuffledp.dummies import StatedCells, normal_side
from shuffledp.numerics.floats import UNBOUNDED
from shuffledp.numerics.functions import exp_lower
from shuffledp.numerics.randomness import Randomness, secure_random
from tests.accounting.test_normal_floor import divergence
from tests.collection.batches import analyzer_key, reports_of_people
from tests.collection.service import TIMES, Time, codes_of, hash_of, store_at
from tests.collection.tasks import ANALYZER, IDENTITY, SHUFFLER, bits, choice, parse, second
from tests.collection.test_draw import Tree
from tests.test_ball import law_of

LEVELS = ((1.0, 1, 30.0), (2.0, 1, 30.0), (4.0, 1, 30.0))
"""Promises that the local budgets keep: the dummies may be as few as an enumeration needs."""
FACTORS = [Fraction(1), Fraction(5, 4), Fraction(2), Fraction(7, 2)]
EPSILONS = [0.0, 0.3, 0.9]
Report = tuple[tuple[int, ...], ...]
"""The pieces that one person sends to each column."""


class Again(Exception):
    """The code repeats a draw."""


class Draws(Tree):
    """One path through all that closing draws, with its chance.

    Parameters
    ----------
    path : list of int
        Choices; beyond its end the first is taken, and `open` gets the others.
    classes : dict of int to tuple of int
        For each bound the ascending ends of the classes in which its numbers mean the same.
    tries : int
        How often the first bound is asked for until the code repeats its draw.
    ordered : bool
        Whether the order of the rows is a choice, too.
    """

    def __init__(self, path: list[int], classes: dict[int, tuple[int, ...]], tries: int, ordered: bool) -> None:
        super().__init__(path)
        self.classes, self.tries, self.ordered = classes, tries, ordered
        self.bounds: list[int] = []
        self.secret = secure_random()

    def words(self, n: int) -> np.ndarray:
        return self.secret.words(n)  # keys for sealing

    def below(self, bound: int) -> int:
        self.bounds.append(bound)
        if self.bounds.count(self.bounds[0]) > self.tries:
            raise Again
        ends = self.classes.get(bound)
        if ends is None:
            return self.choose([Fraction(1, bound)] * bound)
        values: list[tuple[int, Fraction]] = []
        for low, high in pairwise(sorted({0, *ends, bound})):
            values += [(low, Fraction(1, bound))] * (high > low)
            values += [(high - 1, Fraction(high - low - 1, bound))] * (high - low > 1)
        return values[self.choose([chance for _, chance in values])][0]

    def permutation(self, n: int) -> np.ndarray:
        if not self.ordered:
            return self.secret.permutation(n)
        return np.array(list(permutations(range(n)))[self.choose([Fraction(1, math.factorial(n))] * math.factorial(n))])


@dataclass(frozen=True)
class Case:
    """A task for two people, with few dummies.

    Parameters
    ----------
    questions : tuple of dict
        The questions.
    law : BallDummies or tuple of StatedCells
        Law of the dummies.
    ordered : bool
        Whether the release is the contents in their order.
    """

    questions: tuple[dict[str, Any], ...]
    law: TaskLaw
    ordered: bool = False

    @property
    def task(self) -> PostedTask:
        whole = second(*self.questions, centre=1, levels=LEVELS, at_least=2, **TIMES)
        return PostedTask.post(parse(whole | {"dummies": written_law(self.law)}), Opener(SHUFFLER).public, IDENTITY)

    def draws(self, path: list[int]) -> Draws:
        if isinstance(self.law, BallDummies):
            return Draws(path, {WHOLE: tuple(accumulate(self.law.radius))}, 1, self.ordered)
        (cells,) = self.law
        classes = {sum(cells.weights): tuple(accumulate(cells.weights)), cells.side[0]: cells.side}
        return Draws(path, classes, cells.answers - 1, self.ordered)


def multiples(*columns: str, radius: int, centre: Sequence[int] | None = None, odd: int = 3) -> BallDummies:
    """A ball law whose radii have weights that are multiples of their numbers of points: its floor has no rounding."""
    full = BallDummies.of_rate(columns, 0.7, radius)
    points = [math.prod(column.balls(radius)[r] for column in full.columns) for r in range(radius + 1)]
    rest = [WHOLE // (odd * (radius + 1) * count) * count for count in points[1:]]
    return BallDummies(full.columns, (WHOLE - sum(rest), *rest), tuple(centre or full.centre))


def paths_of(case: Case, task: PostedTask) -> Iterator[tuple[list[int], Fraction]]:
    """Every path of `drawn_columns` that is not repeated, with its chance."""
    waiting: list[list[int]] = [[]]
    while waiting:
        draws = case.draws(waiting.pop())
        try:
            list(drawn_columns(task.draft, draws))
        except Again:
            pass
        else:
            yield draws.path, draws.weight
        waiting += draws.open


def of_whom(task: PostedTask, report: Report, place: int) -> bytes:
    """A person's report, sealed to the analyzer and then to the shuffler, as a device does it."""
    sealer = Sealer(task.draft.analyzer_key)
    inners = [seal_inner(task, column, piece, sealer) for column, pieces in enumerate(report) for piece in pieces]
    return outer_of(task, inners, 1, codes_of(2)[place])


def service_of(task: PostedTask, reports: Sequence[Report], folder: Path) -> Path:
    """The folder of a service that holds the reports of two people."""
    store = store_at(folder, task)
    store.add_codes(task.digest, [hash_of(code) for code in codes_of(2)])
    sent = b"".join(of_whom(task, report, place) for place, report in enumerate(reports))
    (verdicts,) = hold(store, [open_reports(sent, task, Opener(SHUFFLER))])
    assert verdicts == bytes(2)
    store.checkpoint()
    store.close()
    return folder


def opened(batch: Batch, ordered: bool) -> Hashable:
    """What the analyzer sees of every column: its contents in their order, or how many rows there are of each."""
    found: list[tuple[int, ...]] = []
    for number, column in enumerate(batch.task.draft.columns):
        size, info = batch.task.inner_sizes[number], batch.task.inner_info(number)
        width = column.family.report_bytes
        rows = open_column(batch.columns[number], size, ANALYZER, info, width, processes=1)
        assert rows.unreadable == rows.repeated == 0
        contents = rows.contents[:, 0].tolist()
        found.append(tuple(contents if ordered else np.bincount(contents, minlength=column.family.cells).tolist()))
    return tuple(found)


@dataclass
class Releases:
    """Releases of the real service, for each report of a person beside another one's.

    Parameters
    ----------
    case : Case
        The task.
    patch : MonkeyPatch
        Puts the walk in the place of the service's randomness.
    folder : Path
        A folder of its own.
    """

    case: Case
    patch: pytest.MonkeyPatch
    folder: Path

    def __post_init__(self) -> None:
        self.task = self.case.task
        self.law = law_of_task(self.task.draft)
        self.closed = 0
        self.patch.setattr(laws, "below_of", lambda random: random.below)
        self.patch.setattr("os.fsync", lambda file: None)  # no test here dies

    @property
    def every(self) -> list[Report]:
        """All reports that a person can send, pieces in one order."""
        families = [column.family for column in self.task.draft.columns]
        values = product(*(range(family.reports) for family in families))
        return [
            tuple(
                (value,) if family.kind != "bits" else (1,) * value + (0,) * (family.pieces - value)
                for value, family in zip(each, families, strict=True)
            )
            for each in values
        ]

    @cached_property
    def seen(self) -> dict[Report, dict[Hashable, Fraction]]:
        """The law of what the analyzer sees, for each report of a person."""
        return {report: self.of(report) for report in self.every}

    def of(self, report: Report) -> dict[Hashable, Fraction]:
        """The law of what the analyzer sees if a person sends this report, and another one the first of all."""
        held = service_of(self.task, (report, self.every[0]), Path(tempfile.mkdtemp(dir=self.folder)))
        found = defaultdict[Hashable, Fraction](Fraction)
        for path, _ in paths_of(self.case, self.task):
            waiting = [path]
            while waiting:  # the orders of one draw of dummies
                draws = self.case.draws(waiting.pop())
                found[self.closing(held, draws)] += draws.weight
                waiting += draws.open
        total = sum(found.values())  # less than 1 where draws are repeated
        return {seen: chance / total for seen, chance in found.items()}

    def closing(self, held: Path, draws: Draws) -> Hashable:
        """Close a copy of the service with these draws, and open the batch."""
        copy = Path(tempfile.mkdtemp(dir=self.folder)) / "service"
        shutil.copytree(held, copy)

        def chance_of(identity: bytes, task: PostedTask, key: bytes, *use: bytes) -> Randomness:
            return draws if use[0] == b"dummies" or draws.ordered else secure_random()

        self.patch.setattr(closing, "chance_of", chance_of)
        store = closing.Store(copy / "store.db")
        store._db.execute("PRAGMA synchronous=OFF")
        batch = Batch.parse(close_task(store, self.task.digest, clock=Time()).read_bytes())
        store.close()
        shutil.rmtree(copy.parent)
        self.closed += 1
        self.last = batch
        return opened(batch, self.case.ordered)

    def by_level(self, record: Sequence[int], level: int) -> dict[Report, Fraction]:
        """The chances of a person's reports, over all paths of the device's draws."""
        found, waiting = defaultdict[Report, Fraction](Fraction), [list[int]()]
        while waiting:
            tree = Tree(waiting.pop())
            columns, _ = reports_of_people(self.task, [(level, record)], tree)
            found[tuple(tuple(sorted(pieces, reverse=True)) for pieces in columns)] += tree.weight
            waiting += tree.open
        assert sum(found.values()) == 1
        return found


def mixed(seen: dict[Report, dict[Hashable, Fraction]], chances: dict[Report, Fraction]) -> dict[Hashable, Fraction]:
    found = defaultdict[Hashable, Fraction](Fraction)
    for report, chance in chances.items():
        for what, own in seen[report].items():
            found[what] += chance * own
    return found


def law_is_stated(releases: Releases) -> bool:
    """Whether the released numbers of rows, less those of the people, have the law of the task's text."""
    law = releases.law
    assert isinstance(law, BallDummies)
    both = zip(releases.every[0], law.columns, strict=True)  # what the two people send
    own = [[2 * pieces.count(cell) for cell in range(column.cells)] for pieces, column in both]
    stated = {
        tuple(
            tuple(h + v + more for v, more in zip(cells, added, strict=True))
            for h, cells, added in zip(law.centre, z, own, strict=True)
        ): chance
        for z, chance in law_of(law).items()
    }
    return releases.seen[releases.every[0]] == stated


def worst(releases: Releases, factor: Fraction) -> Fraction:
    """The largest divergence of two reports of a person, each sent as it is."""
    return max(divergence(one, two, factor) for one, two in product(releases.seen.values(), repeat=2))


def worst_with_noise(releases: Releases, level: int, epsilon: float) -> Fraction:
    """The divergence of two records that differ most, whose reports are drawn at a level."""
    questions = releases.task.draft.questions
    records = [[0] * len(questions), [question.answers - 1 for question in questions]]
    worlds = [mixed(releases.seen, releases.by_level(record, level)) for record in records]
    return max(divergence(*pair, exp_lower(Fraction(epsilon))) for pair in (worlds, worlds[::-1]))


TWO, THREE, BITS = choice(2), choice(3), bits(2, 0, 2, 1)
CASES = {
    "choice:2": Case((TWO,), multiples("choice:2", radius=3)),
    "choice:3": Case((THREE,), multiples("choice:3", radius=1)),
    "choice:3 farther": Case((THREE,), multiples("choice:3", radius=2, odd=5)),
    "bits:2": Case((BITS,), multiples("bits:2", radius=1)),
    "bits:2 farther": Case((BITS,), multiples("bits:2", radius=2)),
    "two columns": Case((TWO, TWO), multiples("choice:2", "choice:2", radius=1)),
    "two columns farther": Case((TWO, TWO), multiples("choice:2", "choice:2", radius=2)),
    "a choice and bits": Case((TWO, BITS), multiples("choice:2", "bits:2", radius=1)),
    "in order": Case((TWO,), multiples("choice:2", radius=1), ordered=True),
    "choice:2 again": Case((TWO,), multiples("choice:2", radius=3, centre=(2,), odd=2)),
    "choice:3 again": Case((THREE,), multiples("choice:3", radius=2, centre=(1,), odd=2)),
    "bits:2 again": Case((BITS,), multiples("bits:2", radius=1, centre=(1,), odd=2)),
    "two columns again": Case((TWO, TWO), multiples("choice:2", "choice:2", radius=2, centre=(1, 2), odd=2)),
    "normal 2": Case((TWO,), (StatedCells(2, normal_side(0.9, 2)),)),
    "normal 3": Case((THREE,), (StatedCells(3, normal_side(0.8, 1)),)),
}
SLOW = [name for name in CASES if "farther" in name] + [
    "in order", "choice:3 again", "two columns again", "a choice and bits", "normal 3"
]  # fmt: skip


@pytest.mark.costly(but=("bits:2 again",))
@pytest.mark.parametrize("name", CASES)
def test_a_real_release_of_two_people_keeps_the_floor(name, monkeypatch, tmp_path):
    """(B1) is attained, as an equation of fractions; (B2), (B4) and the floor of normal dummies are kept."""
    releases = Releases(CASES[name], monkeypatch, tmp_path)
    law, draft = releases.law, releases.task.draft
    if isinstance(law, BallDummies):
        assert releases.case.ordered or law_is_stated(releases)
        for factor in FACTORS:
            found = worst(releases, factor)
            assert found == law.delta(factor) if not law.redraw else 0 < found <= law.delta(factor)
    else:
        floor = floor_of_columns(law, [WHOLE] * len(law), 1, UNBOUNDED)
        for epsilon in EPSILONS:
            assert 0 < worst(releases, exp_lower(Fraction(epsilon))) <= Fraction(floor.delta(epsilon).upper)
    for place, level in enumerate(draft.levels):
        keep = [level.draw[column.question] for column in draft.columns]
        floor = floor_of_columns(law, keep, 1, UNBOUNDED)
        for epsilon in EPSILONS:
            assert 0 < worst_with_noise(releases, place, epsilon) <= Fraction(floor.delta(epsilon).upper)
    whole = open_batch(releases.last, analyzer_key(releases.task), processes=1)
    assert (whole.promise_kept, whole.junk_seen) == (True, 0)
    assert releases.closed >= 2 * len(releases.every)


def one_weight_less(patch: pytest.MonkeyPatch) -> None:
    """The last radius is drawn once in 2^64 times less often than stated, and radius 0 more often."""

    def ends(law: BallDummies) -> tuple[int, ...]:
        return (*(end + 1 for end in accumulate(law.radius[:-1])), WHOLE)

    patch.setattr(BallDummies, "_thresholds", property(ends))


def one_point_twice(patch: pytest.MonkeyPatch) -> None:
    """The last point of every ball is drawn as the first one."""
    real = ball._point

    def point(column: ball.Column, radius: int, below: ball.Below) -> np.ndarray:
        return real(column, radius, lambda bound: below(bound) % max(bound - 1, 1))

    patch.setattr(ball, "_point", point)


def one_for_another(patch: pytest.MonkeyPatch) -> None:
    """Where the first cell has one dummy more (bits: a report's), the second one has it."""
    real = ball._point

    def point(column: ball.Column, radius: int, below: ball.Below) -> np.ndarray:
        found = real(column, radius, below)
        if found[0] == column.step:
            found[0], found[1] = found[0] - column.step, found[1] + column.step
        return found

    patch.setattr(ball, "_point", point)


@pytest.mark.costly
@pytest.mark.parametrize("wrong", [one_weight_less, one_point_twice, one_for_another], ids=lambda part: part.__name__)
@pytest.mark.parametrize("name", ["choice:3", "bits:2"])
def test_dummies_of_another_law_are_noticed(name, wrong, monkeypatch, tmp_path):
    """The law that is drawn is wrong, the stated one is as above: both comparisons fail."""
    wrong(monkeypatch)
    releases = Releases(CASES[name], monkeypatch, tmp_path)
    assert not law_is_stated(releases)
    law = releases.law
    assert isinstance(law, BallDummies)
    assert any(worst(releases, factor) != law.delta(factor) for factor in FACTORS)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 8, 9, 1 << 64, 3 << 64])
def test_whole_numbers_below_a_bound_are_uniform_over_all_words(bound):
    """All leading digits of the words that it may draw: each number comes from as many, others are drawn again."""

    class Told(Randomness):
        private = False

        def __init__(self, told: list[int]) -> None:
            self.told = told

        def words(self, n: int) -> np.ndarray:
            return np.frombuffer(self.told.pop(0).to_bytes(8 * n, "little"), "<u8").astype(np.uint64)

    digits = (bound - 1).bit_length()
    length = 64 * -(-digits // 64)
    some = range(1 << digits) if digits < 8 else [0, 1, bound // 2, bound - 1, bound % (1 << digits), (1 << digits) - 1]
    for drawn in some:
        low = drawn << length - digits
        high = low + (1 << length - digits) - 1
        for word in (low, high) if digits else (0,):
            found = below_of(Told([word, 0]))(bound)
            assert found == (drawn if drawn < bound else 0)
