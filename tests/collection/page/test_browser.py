"""The page in headless chromium; what a person does is told in answering.mjs and around.mjs."""

from __future__ import annotations

import os
import subprocess

import pytest

from shuffledp.cli.demo.clients import Chromium
from shuffledp.collection.fields import to_base64
from shuffledp.collection.survey_page import page_for
from tests.collection.page.chromium import CHROMIUM, HERE, NODE, no_browser
from tests.collection.page.samples import SMOKE, release_of, task
from tests.collection.page.server import Server
from tests.collection.tasks import ANALYST, IDENTITY

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(no_browser()), reason=no_browser())]
SCENARIOS = (
    *("answered", "waiting", "offline", "lost", "closed", "another", "newLink", "tabs", "keyboard"),
    *("numbers", "languages", "failures", "memory", "noscript", "access"),
)
MARKUP = SMOKE | {"text": dict.fromkeys(("en", "de", "fr"), "<img src=x onerror=alert(1)> & <b>bold</b>")}


def play(name: str, server: Server, **more: str) -> None:
    environment = os.environ | {"PAGE_LINK": server.link, "CHROMIUM": CHROMIUM} | more
    done = subprocess.run(
        [NODE, str(HERE / "scenarios.mjs"), name], env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_person_and_the_page(name):
    with Server(task()) as server:
        play(name, server)


def test_every_state_of_a_task_and_its_release():
    with Server(task()) as server:
        server.releases = {"good": release_of(server.task, ANALYST), "forged": release_of(server.task, IDENTITY)}
        play("states", server)


def test_the_page_served_by_another_host():
    with Server(task()) as server, Server(server.task, page_for(server.task, server.url), plain=True) as host:
        play("elsewhere", server, PAGE_ELSEWHERE=host.link)


def test_what_the_organizer_writes_stays_text_and_the_policy_holds():
    with Server(task(MARKUP)) as server, Server(task()) as other:
        play("policy", server, PAGE_ELSEWHERE=other.link)


def test_the_demonstration_s_browser_answers_as_a_person_does():
    with Server(task()) as server, Chromium(CHROMIUM) as browser:
        server.codes = ["00" * 16, "11" * 16]
        links = [f"{server.link}#{to_base64(bytes([place]) * 16)}" for place in (0x00, 0x11, 0x22)]
        told = [browser.answer(link, level, [level, 33.5]) for level, link in enumerate(links)]
        assert told == ["held", "held", "refused"]
        assert [(one["level"], one["code"]) for one in server.opened()] == [(0, "00" * 16), (1, "11" * 16)]
        server.mode = 503
        assert browser.answer(links[0], 0, [0, 1]) == "waiting"
        server.tampered = True
        assert browser.answer(links[0], 0, [0, 1]) == "problem"


STANDS = """
(async () => {
  while (!document.querySelector("#answer, #problem")) await new Promise((resolve) => setTimeout(resolve, 10));
  const at = (selector) => document.querySelector(selector);
  const inputs = document.querySelectorAll("#level input, #level button").length;
  return [at("#languages").hidden, inputs, at("main").innerText];
})()
"""


def test_one_level_and_one_language_are_not_asked_for():
    german = {
        "text": {"de": "Essen Sie mittags hier?"},
        "choices": [{"de": "ja"}, {"de": "nein"}, {"de": "weiß nicht"}],
    }
    one = task(SMOKE | german, title={"de": "Mittagessen"}, levels=((0.5, 540, 0.1),))
    with Server(one) as server, Chromium(CHROMIUM) as browser:
        link = f"{server.link}#{to_base64(bytes(16))}"
        hidden, inputs, text = browser.evaluate(link, STANDS)
        assert (hidden, inputs) == (True, 0)
        for words in ("Was Ihnen versprochen wird", "Essen Sie mittags hier?", "survey@example.org", "Datenschutz"):
            assert words in text
        assert "Stufe, die Sie wählen" not in text
        assert browser.answer(link, 0, [1]) == "held"
        assert [one["level"] for one in server.opened()] == [0]
