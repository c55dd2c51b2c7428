"""Pages on a telephone: in a window of 390 pixels neither a page nor a table in it is wider than what holds it."""

from __future__ import annotations

import html

import pytest

from shuffledp.cli.demo.clients import Chromium
from shuffledp.collection.lettering import letters_html
from tests.cli.conftest import Run
from tests.cli.test_collection import ok
from tests.collection.page.chromium import CHROMIUM
from tests.collection.page.samples import task

TABLE = "hours,town\n" + "".join(f"{place % 100},{town}\n" for place in range(500) for town in ("one of the two", "b"))
RANDOM = ("--epsilon0", "2", "--delta", "1e-6")
TOWNS = ("frequency", "t.csv", "--value", "town", "--categories", "one of the two,b", *RANDOM)
COMMANDS = {
    "histogram": ("histogram", "t.csv", "--value", "hours", "--low", "0", "--high", "100", "--bins", "5", *RANDOM),
    "plan": ("plan", "--question", "mean", "--low", "0", "--high", "9", "--epsilon0", "1", "--n", "9000",
             "--target-epsilon", "0.1", "--delta", "1e-6", "--target-error", "0.5"),
    "frequency": (*TOWNS, "--ledger", "people.ledger"),
    "ledger": ("ledger", "people.ledger"),
    "difference": ("difference", "a.json", "b.json", "--delta", "1e-6"),
}  # fmt: skip
WIDER = """
new Promise((loaded) => (document.readyState === "complete" ? loaded() : addEventListener("load", loaded))).then(() =>
  [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument;
    page.querySelectorAll("details").forEach((each) => (each.open = true));
    const held = [page.documentElement, ...page.querySelectorAll(".scroll, pre")];
    const wider = held.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.innerText.slice(0, 40));
    return { page: page.title, held: held.length, wider };
  }),
)
"""


def framed(name: str, page: str) -> str:
    return f'<iframe id="{name}" width="390" height="800" srcdoc="{html.escape(page)}"></iframe>'


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_no_page_is_scrolled_sideways_on_a_telephone(run: Run, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    ok(run, "ledger", "people.ledger", "--limit", "1,1e-6")
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(ok(run, *TOWNS, "--json"), encoding="utf-8")
    frames = ""
    for name, command in COMMANDS.items():
        ok(run, *command, "--report", f"{name}.html")
        frames += framed(name, (tmp_path / f"{name}.html").read_text(encoding="utf-8"))
    link = f"https://collect.example.org/t/{'x' * 43}#{'y' * 22}"
    for language in ("en", "de", "fr"):
        frames += framed(f"letter-{language}", letters_html(task(), [link], language))
    (tmp_path / "all.html").write_text(f"<!doctype html>{frames}", encoding="utf-8")
    with Chromium(CHROMIUM) as browser:
        found = browser.evaluate((tmp_path / "all.html").as_uri(), WIDER)
    assert [each["wider"] for each in found] == [[]] * (len(COMMANDS) + 3), found
    assert all(each["held"] > 2 for each in found[:-3])  # the pages were there, with their tables
