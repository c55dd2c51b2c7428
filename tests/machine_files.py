"""Files of every kind, made on one machine and read on another, and the reports that a seed draws.

    python -m tests.machine_files make FOLDER
    python -m tests.machine_files read FOLDER ...
    python -m tests.machine_files digests

The first writes a task, a batch, a state of a tally, a ledger, a checkpoint and the digests of seeded reports; the
second reads a copy of them, goes on with each, and compares what must be the same to the last bit. The third prints the
digests that are frozen in machine_digests.json. `make test-machines` does this between environments; with
`python -m tests.perturbed SEED` before it, one of them has other last digits.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.collection.batch import Batch
from shuffledp.collection.promise import check_floor
from shuffledp.collection.sealing import Opener
from shuffledp.collection.task import PostedTask
from shuffledp.ledger import Ledger, NewEntry, Spending, Use
from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.question import Task
from shuffledp.questions.tally import tally_for, tally_from_state
from shuffledp.randomizers import (
    CoordinateSampling,
    Gaussian,
    HadamardResponse,
    Hybrid,
    Laplace,
    LeveledHashing,
    LocalHashing,
    OneBit,
    Piecewise,
    RandomizedResponse,
    RangeTree,
    SignedSketch,
    SubsetSelection,
    UnaryEncoding,
)
from tests.collection.batches import batch_of, people, reports_of_people
from tests.collection.tasks import ANALYZER, choice, number, posted

LEVELS = ((0.5, 540, 0.2), (1.0, 370, 0.4), (4.0, 90, 1.5))
"""Budget, planned people and promise, of the task."""
PEOPLE = 3000
"""Rows of each seeded run."""
BUDGETS = (0.0, 0.1, 0.25, 0.5, 0.6931471805599453, 1.0, 1.0986122886681098, 1.5, 2.0, 3.0, 4.0, 8.0, 20.0)
ITEMS = {
    "rr": RandomizedResponse(2),
    "krr:30": RandomizedResponse(30),
    "hadamard:30": HadamardResponse(30),
    "olh:30:8": LocalHashing(30, 8),
    "subset:30:7": SubsetSelection(30, 7),
    "oue:30": UnaryEncoding(30),
    "sue:30": UnaryEncoding(30, optimized=False),
    "tree:30:4": RangeTree(30, 4),
    "leveled": LeveledHashing(6, 3, 8),
}
NUMBERS = {
    "one-bit": OneBit(0, 1),
    "piecewise": Piecewise(0, 1, 4096, 1001),
    "hybrid": Hybrid(0, 1, 4096, (1400, 9_000_000, 800)),
    "laplace": Laplace(0, 1),
    "gaussian:2.5": Gaussian(0, 1, 2.5),
}
VECTORS = {"coordinates:5": CoordinateSampling(5), "sketch:5:3": SignedSketch(5, 3)}


def digest(reports: np.ndarray) -> str:
    little = np.ascontiguousarray(reports.astype(reports.dtype.newbyteorder("<")))
    return hashlib.sha256(little.tobytes()).hexdigest()[:32]


def digests() -> dict[str, str]:
    """Digests of the reports that one seed draws, by family; each person has a budget of her own."""
    budgets = np.resize(np.array(BUDGETS), PEOPLE)
    records, fractions = np.arange(PEOPLE) % 30, (np.arange(PEOPLE) % 257) / 256.0
    vectors = (fractions[:, None] * np.array([1.0, -0.5, 0.25, 0.125, -0.0625])) / 2.0
    found: dict[str, str] = {}
    for name, family in ITEMS.items():
        codes = records % 2 if name == "rr" else records
        found[name] = digest(family.randomize(codes, budgets, simulation_random(29)))
    for name, family in NUMBERS.items():
        if isinstance(family, Gaussian):
            reports = family.randomize(fractions, 8.0, simulation_random(29), delta0=0.9)
        else:
            reports = family.randomize(fractions, budgets, simulation_random(29))
        found[name] = digest(reports)
    for name, family in VECTORS.items():
        found[name] = digest(family.randomize(vectors, budgets, simulation_random(29)))
    return found


def task() -> PostedTask:
    return posted(choice(), number(dummies=400), levels=LEVELS)


def tallies() -> tuple[Task, bytes, bytes]:
    """A task, and the states of two halves of its seeded reports."""
    asked = Task(RandomizedResponse(5), Budgets((0.5, 2.0), (300, 300)), "levels", "precision")
    levels, states = np.arange(600) % 2, []
    reports = asked.randomizer.randomize(np.arange(600) % 5, np.array([0.5, 2.0])[levels], simulation_random(5))
    for half in (slice(0, 300), slice(300, 600)):
        tally = tally_for(asked)
        tally.add(reports[half], levels[half])
        states.append(tally.state())
    return asked, states[0], states[1]


def entered(turn: int) -> NewEntry:
    return NewEntry(f"wave {turn}", f"{turn:02x}", "rr", Spending.stated([(1.0, 0.25)], 1e-9, 100))


def fitted(checkpoint: Path, **more: object) -> object:
    from tests.learning.test_training import FEATURES, GROUPS, LABELS, classifier

    resume = bool(more.pop("resume", False))
    return classifier(checkpoint=checkpoint, **more).fit(FEATURES, LABELS, groups=GROUPS, resume=resume)


def make(folder: Path) -> None:
    """Write one file of each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = task()
    (folder / "task").write_bytes(asked.data)
    random = simulation_random(3)
    columns, counts = reports_of_people(asked, people(np.random.default_rng(1), (60, 40, 20), 5, 101), random)
    (folder / "batch").write_bytes(batch_of(asked, columns, counts))
    (folder / "tally").write_bytes(tallies()[1])
    with Ledger(folder / "people.ledger", make=True) as ledger:
        ledger.set_limit(3.0, 1e-5)
        ledger.enter([entered(1), entered(2)], Use())
        total = ledger.total(1e-6).epsilon
    fitted(folder / "run.npz", rounds=2)
    question, *states = tallies()
    tally = tally_from_state(question, states[0])
    tally.merge(tally_from_state(question, states[1]))
    told = {
        "digests": digests(),
        "columns": [len(rows) for rows in columns],
        "estimate": tally.estimate().value.tolist(),
        "total": total,
    }
    (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")


def read(folder: Path) -> None:
    """Read the files of another machine, go on with each, and compare what must be the same."""
    told = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    assert told["digests"] == digests(), "one seed draws other reports"
    asked = PostedTask.parse((folder / "task").read_bytes())
    assert asked.data == task().data, "the same draft states other bytes"
    check_floor(asked.draft)
    batch = Batch.parse((folder / "batch").read_bytes())
    for place, size in enumerate(batch.task.inner_sizes):
        column, info, analyzer = batch.columns[place], batch.task.inner_info(place), Opener(ANALYZER)
        rows = [analyzer.open(column[at : at + size], info) for at in range(0, len(column), size)]
        assert (
            len([row for row in rows if row is not None])
            == told["columns"][place] + asked.draft.questions[place].dummies.count
        )
    question, first, second = tallies()
    assert (folder / "tally").read_bytes() == first, "the same reports give another state"
    tally = tally_from_state(question, (folder / "tally").read_bytes())
    tally.merge(tally_from_state(question, second))
    assert np.allclose(tally.estimate().value, told["estimate"], rtol=1e-12, atol=0.0)
    with Ledger(folder / "people.ledger", make=False) as ledger:
        assert abs(ledger.total(1e-6).epsilon / told["total"] - 1.0) < 1e-9
        ledger.enter([entered(3)], Use())
        assert [entry.title for entry in ledger.entries()] == ["wave 1", "wave 2", "wave 3"]
    assert fitted(folder / "run.npz", rounds=3, resume=True).guarantee_.rounds == 3  # type: ignore[attr-defined]


def main() -> None:
    words = sys.argv[1:]
    if words[0] == "digests":
        print(json.dumps(digests(), indent=0))
    elif words[0] == "make":
        make(Path(words[1]))
    else:
        for folder in words[1:]:
            with tempfile.TemporaryDirectory() as copy:  # whoever reads goes on with the files
                read(Path(shutil.copytree(folder, Path(copy) / "files")))


if __name__ == "__main__":
    main()
