"""Every kind of question on the real page, in chromium, through the real service, and the result read there."""

from __future__ import annotations

import pytest

from shuffledp.cli.demo.clients import Chromium
from shuffledp.cli.demo.service import running
from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.closing import close_task
from shuffledp.collection.fields import from_base64, to_base64
from shuffledp.collection.promise import floor_of
from shuffledp.collection.release import write_release
from shuffledp.collection.release_page import release_document
from shuffledp.collection.store import Store
from tests.collection.batches import analyzer_key
from tests.collection.page.chromium import CHROMIUM, UNTIL
from tests.collection.page.server import Server
from tests.collection.service import hash_of
from tests.collection.tasks import ANALYST, IDENTITY, KINDS, SHUFFLER, posted_second

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")]
TIMES = {"opens": "2020-01-01T00:00:00Z", "closes": "2090-01-01T00:00:00Z", "expires": "2090-02-01T00:00:00Z"}
CODES = ("AAECAwQFBgcICQoLDA0ODw", "EBESExQVFhcYGRobHB0eHw")
ASKED = ("choice", "number", "scale", "several", "table", "list")
ANSWERS = (3, 60, 4, [0, 2], [1, 2], 7)
SHOWN = """
(async () => {
  for (;;) {
    const found = document.querySelector("#result, #problem");
    if (found) return found.textContent;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
})()
"""


def test_people_answer_every_kind_and_read_the_result(tmp_path):
    task = posted_second(*(KINDS[kind] for kind in ASKED), levels=((30.0, 9, 400.0),), at_least=1, **TIMES)
    (tmp_path / "shuffler.key").write_text(to_base64(IDENTITY))
    store = Store(tmp_path / "store.db")
    store.post(task, SHUFFLER, floor_of(task.draft), 1_600_000_000)
    store.add_codes(task.digest, [hash_of(from_base64(code) or b"") for code in CODES])
    with running(store.path) as service, Chromium(CHROMIUM) as browser:
        link = f"{service.url}/t/{task.id}"
        assert [browser.answer(f"{link}#{code}", 0, ANSWERS) for code in CODES] == ["held", "held"]
        opened = open_batch(close_task(store, task.digest).read_bytes(), analyzer_key(task), processes=1)
        assert (opened.batch.manifest.counts, opened.junk_seen) == ((2,), 0)
        found = [release.estimate for release in opened.releases]  # no noise to speak of at a budget of 30
        assert [found[0].argmax(), round(found[1]), found[2].argmax()] == [3, 60, 4]
        assert (found[3] > 0.9).tolist() == [True, False, True, False]
        assert (found[4].argmax(), found[5].argmax()) == (1 * 3 + 2, 7)
        store.publish(task.digest, write_release(release_document(opened), task, ANALYST))
        shown = browser.evaluate(link, SHOWN)
    store.close()
    assert "2 of 2 people who were invited took part" in shown
    for text in ("option 3", "row 2", "column 3", "Both parts together", "word 8", "On average 60"):
        assert text in shown


TOUCHED = (
    UNTIL
    + """
  await until(() => at("#answer select"));
  const box = at("#answer input[type=checkbox]");
  const tall = (element) => element.getBoundingClientRect().height;
  return [tall(at("#answer select")), tall(box.closest(".row")), getComputedStyle(box).accentColor];
})()
"""
)


def test_a_menu_can_be_touched_and_boxes_have_the_color_of_the_page():
    """A menu of words was 19 pixels tall, in the browser's own colors, also on a dark page."""
    task = posted_second(
        KINDS["list"], KINDS["several"], levels=((30.0, 9, 400.0),), at_least=1, admission="open", **TIMES
    )
    with Server(task) as server, Chromium(CHROMIUM) as browser:
        menu, row, color = browser.evaluate(server.link, TOUCHED)
    assert menu >= 44
    assert row >= 44
    assert color != "auto"
