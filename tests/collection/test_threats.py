"""Lines of the table of roles, of failures and of the threat-model page that no other file of tests holds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.batch import permuted_column, seal_inner
from shuffledp.collection.closing import close_task
from shuffledp.collection.estimates import slopes_of
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.laws import draw_dummies
from shuffledp.collection.promise import floor_of
from shuffledp.collection.release import write_release
from shuffledp.collection.release_page import release_document
from shuffledp.collection.sealing import Opener, Sealer
from shuffledp.collection.verify import verify
from shuffledp.numerics.randomness import simulation_random
from tests.collection.batches import analyzer_key
from tests.collection.service import FLOOR, Reports, Time, store_at, task_of
from tests.collection.tasks import ANALYST, LEVELS, SHUFFLER, choice, parse, posted, second
from tests.collection.test_promise import WITHOUT_DUMMIES

ROOT = Path(__file__).parents[2]
MODEL = (ROOT / "docs/collection/threat-model.md").read_text(encoding="utf-8")


DEFAULT = ((2.0, 200, 1.0), (4.0, 600, 1.0), (6.0, 200, 1.0))


def numbers(row: str) -> list[float]:
    """The three numbers of the row of the page's table that begins so."""
    (line,) = [line for line in MODEL.splitlines() if line.startswith(f"| {row}")]
    return [float(number) for number in re.findall(r"\d*\.\d+", line.split("|")[2])]


def test_the_table_of_fakes_on_the_page_is_what_is_true():
    assert numbers("the same, what is true") == pytest.approx(WITHOUT_DUMMIES, abs=0.005)
    for row, levels, count in (("whoever takes part", LEVELS, 130), ("levels 2 / 4 / 6", DEFAULT, 85)):
        asked = parse(second(choice(5), levels=levels))
        assert asked.columns[0].dummies.count == count
        assert f"the {count} dummies" in next(line for line in MODEL.splitlines() if line.startswith(f"| {row}"))
        told = numbers(row)
        assert told == pytest.approx(floor_of(asked), abs=0.0005)


PARTIES = ["others", "relay", "shuffler", "analyzer", "host", "live thief", "late thief", "restorer", "recorder"]


def test_each_pair_of_parties_has_a_test_or_a_sentence():
    page = (ROOT / "docs/collection/pairs.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    pairs = [row[0] for row in rows if ", " in row[0] and set(row[0].split(", ")) <= set(PARTIES)]
    assert pairs == [f"{one}, {two}" for place, one in enumerate(PARTIES) for two in PARTIES[place + 1 :]]
    assert all(len(row) == 3 and all(row) for row in rows)
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 30
    assert [name for name in named if f"def {name}(" not in source] == []


def test_the_shift_of_chosen_dummies_on_the_page_is_what_a_shuffler_can_do():
    ((count, told),) = re.findall(
        r"all (\d+) on one of five answers shift it by ([\d.]+) points at 1,000 people", MODEL
    )
    asked = parse(second(choice(5), levels=DEFAULT))
    assert int(count) == asked.columns[0].dummies.count
    known = slopes_of(asked, 0)
    assert float(told) == pytest.approx(100 * int(count) * (1 - 1 / 5) / (1000 * known.mean([200, 600, 200])), abs=0.05)


@pytest.mark.costly
def test_a_level_that_nobody_chose_is_no_trouble(tmp_path):
    task = task_of(choice(5, 1000), at_least=5)
    store = store_at(tmp_path, task)
    bodies = [Reports(task).one(1) for _ in range(40)]
    hold(store, [open_reports(b"".join(bodies), task, Opener(SHUFFLER))])
    opened = open_batch(close_task(store, task.digest, clock=Time()).read_bytes(), analyzer_key(task))
    store.close()
    assert opened.batch.manifest.counts == (0, 40, 0)
    assert opened.crowd[0] is opened.crowd[2] is None
    assert opened.floor == FLOOR, "the shuffler's numbers, which are the larger ones"
    found = verify(task, write_release(release_document(opened), task, ANALYST))
    assert found.promise_kept
    assert tuple(found.floor.values()) == floor_of(task.draft)


def test_cryptography_stands_in_one_short_file():
    """Beside the keystream of `secure_random`, which is no part of the protocol."""
    folder = ROOT / "src/shuffledp/collection"
    users = [path.name for path in folder.glob("*.py") if "from cryptography" in path.read_text(encoding="utf-8")]
    assert users == ["sealing.py"]
    assert (folder / "sealing.py").read_text(encoding="utf-8").count("\n") < 160  # with the keys of small order


@pytest.mark.slow
def test_dummies_cannot_be_told_from_reports_over_a_hundred_thousand_rows():
    """Half are dummies. Chi-square of every byte's value, and of places in 100 parts, each at a false alarm of 1e-9."""
    task, half = posted(choice(5, 50_000)), 50_000
    sealer, random = Sealer(task.draft.analyzer_key), simulation_random(8)
    people = [seal_inner(task, 0, place % 5, sealer) for place in range(half)]
    dummies = [seal_inner(task, 0, report, sealer) for report in draw_dummies(task.draft.questions[0], random)]
    assert {len(row) for row in people} == {len(row) for row in dummies} == {49}
    seen = [np.bincount(np.frombuffer(b"".join(rows), dtype=np.uint8), minlength=256) for rows in (people, dummies)]
    mean = (seen[0] + seen[1]) / 2
    assert float(((seen[0] - mean) ** 2 / mean + (seen[1] - mean) ** 2 / mean).sum()) < 255 + 6.5 * np.sqrt(2 * 255)
    column = permuted_column([*people, *dummies], random)
    known = set(dummies)
    parts = np.zeros(100)
    for place in range(2 * half):
        parts[place // 1000] += column[49 * place : 49 * place + 49] in known
    assert parts.sum() == half
    assert float(((parts - 500) ** 2 / 250).sum()) < 99 + 6.5 * np.sqrt(2 * 99)
