"""How many of those who were invited have answered: in the store, on status, for the page."""

from __future__ import annotations

import contextlib
import json

import pytest

from shuffledp.collection import store as schema
from shuffledp.collection.closing import close_task
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.sealing import Opener
from shuffledp.collection.serve import response
from shuffledp.collection.store import Store
from tests.collection.page.chromium import NODE
from tests.collection.page.nodejs import lay_out, run
from tests.collection.service import Reports, Time, codes_of, face, hash_of, store_at, task_of
from tests.collection.tasks import SHUFFLER

CODES = codes_of(60)


def asked(tmp_path, answers: int):
    task = task_of(admission="codes")
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
    levels = [{"held": 200}, {"held": 82}]
    assert response({"levels": levels, "invited": 300}) == "282 of 300 codes used (94 %)"
    both = response({"levels": levels, "invited": 300}, {"levels": [{"held": 0}], "invited": 100})
    assert both == "282 of 400 codes used (70 %)"


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
