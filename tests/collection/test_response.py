"""How many of those who were invited have answered: in the store, on status, for the page."""

from __future__ import annotations

import contextlib
import json

import pytest

from shuffledp.collection import store as schema
from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.batch import Batch, read_batch
from shuffledp.collection.closing import close_task
from shuffledp.collection.codes import response
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.release_page import release_page
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import Store
from shuffledp.collection.task import PostedTask
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from tests.collection.batches import analyzer_key, batch_of, reports_of_people
from tests.collection.page.chromium import NODE
from tests.collection.page.nodejs import lay_out, run
from tests.collection.service import TIMES, Reports, Time, codes_of, face, hash_of, store_at, task_of
from tests.collection.tasks import IDENTITY, SHUFFLER, choice, parse, second

CODES = codes_of(60)


def asked(tmp_path, answers: int, version: int = 1):
    task = task_of(admission="codes")
    if version == 2:
        whole = second(admission="codes", at_least=1, **TIMES)
        task = PostedTask.post(parse(whole), Opener(SHUFFLER).public, IDENTITY)
    store = store_at(tmp_path, task)
    store.add_codes(task.digest, map(hash_of, CODES[:40]))
    store.add_codes(task.digest, map(hash_of, CODES[30:]))  # ten of them are known
    reports = b"".join(Reports(task).one(code=code) for code in CODES[:answers])
    hold(store, [open_reports(reports, task, Opener(SHUFFLER))])
    return store, task


def test_codes_are_counted_once_and_their_number_outlives_them(tmp_path):
    store, task = asked(tmp_path, 55)
    assert (store.invited(task.digest), store.held(task.digest)) == (60, 55)
    close_task(store, task.digest, clock=Time())
    assert (store.invited(task.digest), store.held(task.digest)) == (60, 55)


def test_the_public_status_tells_the_invited_and_the_answers_rounded_down(tmp_path):
    store, task = asked(tmp_path, 55)
    with face(store) as service:
        found = json.loads(service.ask("GET", f"/v1/{task.id}/status").body)
    assert (found["held"], found["invited"]) == (50, 60)


def test_the_batch_and_its_page_tell_how_many_codes_were_used(tmp_path):
    asked = second(choice(3), levels=((30.0, 9, 800.0),), at_least=1, admission="codes", **TIMES)
    task = PostedTask.post(parse(asked), Opener(SHUFFLER).public, IDENTITY)
    columns, counts = reports_of_people(task, [(0, [1])] * 9, simulation_random(1))
    batch = batch_of(task, columns, counts, codes=12)
    assert Batch.parse(batch).manifest.codes == 12
    opened = open_batch(batch, analyzer_key(task), processes=1)
    assert ": 9 of 12 codes used (75 %). Every" in release_page(opened, command="open", version="0")
    unsaid = open_batch(batch_of(task, columns, counts), analyzer_key(task), processes=1)
    assert "codes used" not in release_page(unsaid, command="open", version="0")
    with pytest.raises(InvalidInput, match="8 codes; 9 people answered, each with a code"):
        batch_of(task, columns, counts, codes=8)


def test_closing_puts_the_number_of_codes_into_a_batch_of_version_2_alone(tmp_path):
    for version, wanted in ((1, None), (2, 60)):
        (tmp_path / str(version)).mkdir()
        store, task = asked(tmp_path / str(version), 55, version)
        closed = close_task(store, task.digest, clock=Time())
        assert read_batch(closed).manifest.codes == wanted


def test_a_task_without_codes_has_no_rate(tmp_path):
    task = task_of()
    store = store_at(tmp_path, task)
    with face(store) as service:
        assert "invited" not in json.loads(service.ask("GET", f"/v1/{task.id}/status").body)


def test_a_store_of_before_is_led_on(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:2])
    monkeypatch.setattr(Store, "add_codes", _add_codes_as_before)
    store, task = asked(tmp_path, 3)
    store.close()
    monkeypatch.undo()
    with contextlib.closing(Store(tmp_path / "store.db")) as led_on:
        assert (led_on.invited(task.digest), led_on.held(task.digest)) == (60, 3)


def _add_codes_as_before(self: Store, task: bytes, hashes) -> None:
    with self.writing() as db:
        db.executemany("INSERT OR IGNORE INTO code VALUES (?, ?, 0)", ((task, entry) for entry in sorted(hashes)))


def test_what_status_says():
    assert response(282, 300) == "282 of 300 codes used (94 %)"
    assert response(1, 12_345) == "1 of 12,345 codes used (0 %)"


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_what_the_page_says(tmp_path):
    """Only where people were invited by codes, and so many have answered that the number is not rounded to nothing."""
    script = """
    import { responseWords } from "./steps.js";
    const number = (value, options) => (options ? `${Math.round(100 * value)} %` : String(value));
    const reader = { say: (key, values) => [key, values], number };
    give(given.map((status) => responseWords(reader, status)));
    """
    given = [{"held": 250, "invited": 300}, {"held": 0, "invited": 300}, {"held": 250}, {"held": 50, "invited": 0}, {}]
    shown = ["response", {"held": "250", "invited": "300", "share": "83 %"}]
    assert run(lay_out(tmp_path), script, given) == [shown, None, None, None, None]
