"""The page, the real service and the analyzer together: people answer in chromium; the result and the front page."""

from __future__ import annotations

import hashlib
import os
import subprocess

import pytest

from shuffledp.cli.demo.service import running
from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.batch import AnalyzerKey
from shuffledp.collection.closing import close_task, destroy_task
from shuffledp.collection.fields import from_base64, to_base64
from shuffledp.collection.promise import floor_of
from shuffledp.collection.release import write_release
from shuffledp.collection.release_page import release_document
from shuffledp.collection.store import Store
from tests.collection.page.chromium import CHROMIUM, HERE, NODE, no_browser
from tests.collection.page.samples import HOURS, SMOKE, task
from tests.collection.tasks import ANALYST, ANALYZER, IDENTITY, SHUFFLER

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(no_browser()), reason=no_browser())]
CODES = ("AAECAwQFBgcICQoLDA0ODw", "EBESExQVFhcYGRobHB0eHw")
TIMES = {"opens": "2020-01-01T00:00:00Z", "closes": "2090-01-01T00:00:00Z", "expires": "2090-02-01T00:00:00Z"}
LEVELS = ((0.5, 540, 0.5), (1.0, 370, 1.0), (4.0, 90, 4.0))


def play(name: str, link: str) -> None:
    environment = os.environ | {"PAGE_LINK": link, "CHROMIUM": CHROMIUM}
    command = [NODE, str(HERE / "scenarios.mjs"), name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]


def test_the_front_page_and_unknown_links_on_a_phone(tmp_path):
    (tmp_path / "shuffler.key").write_text(to_base64(IDENTITY))
    store = Store(tmp_path / "store.db")
    long = dict.fromkeys(("en", "de", "fr"), "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen")
    posted = [task(SMOKE, HOURS, at_least=1, levels=LEVELS, **TIMES, **more) for more in ({}, {"title": long})]
    for each in posted:
        store.post(each, SHUFFLER, floor_of(each.draft), 1_600_000_000)
    with running(store.path) as service:
        play("front", f"{service.url}/t/{posted[0].id}")
        for each in posted:
            destroy_task(store, each.digest)
        play("frontClosed", f"{service.url}/t/{posted[0].id}")
    store.close()


def test_two_people_answer_and_see_the_result(tmp_path):
    posted = task(SMOKE, HOURS, at_least=1, levels=LEVELS, **TIMES)
    (tmp_path / "shuffler.key").write_text(to_base64(IDENTITY))
    store = Store(tmp_path / "store.db")
    store.post(posted, SHUFFLER, floor_of(posted.draft), 1_600_000_000)
    store.add_codes(posted.digest, [hashlib.sha256(from_base64(code) or b"").digest() for code in CODES])
    with running(store.path) as service:
        link = f"{service.url}/t/{posted.id}"
        play("real", link)
        batch = close_task(store, posted.digest).read_bytes()
        opened = open_batch(
            batch, AnalyzerKey(ANALYZER, ANALYST, hashlib.sha256(posted.draft.data).digest()), processes=1
        )
        assert opened.batch.manifest.counts == (1, 0, 1)
        assert opened.junk_seen == 0
        assert opened.promise_kept
        store.publish(posted.digest, write_release(release_document(opened), posted, ANALYST))
        play("realResult", link)
    store.close()
