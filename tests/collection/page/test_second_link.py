"""A device that has answered opens another link: the page asks who it is, before it draws a second time.

The page runs in node on a document of a few lines, so that this is tested where there is no browser, too.
"""

from __future__ import annotations

from typing import Any

import pytest

from shuffledp.collection.batch import Outer, open_outer
from shuffledp.collection.fields import to_base64
from shuffledp.collection.sealing import Opener
from tests.collection.page.samples import SMOKE, task
from tests.collection.tasks import SHUFFLER

CODES = [bytes([place] * 16) for place in range(1, 4)]
DOCUMENT = """
class Element {
  constructor(name) {
    Object.assign(this, { name, attributes: {}, listeners: {}, children: [], dataset: {} });
  }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  replaceWith(other) {
    for (const one of all()) one.children = one.children.map((child) => (child === this ? other : child));
  }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  addEventListener(kind, listener) { this.listeners[kind] = listener; }
  focus() {}
  below() { return [this, ...this.children.flatMap((child) => (child instanceof Element ? child.below() : []))]; }
  get text() { return this.children.map((child) => (child instanceof Element ? child.text : String(child))).join(" "); }
  querySelectorAll(selector) { return this.below().filter(({ name }) => name === selector.split(":")[0]); }
}
const standing = ["main", "status", "languages"].map((id) => Object.assign(new Element("div"), { attributes: { id } }));
const all = () => standing.flatMap((one) => one.below());
const element = (id) => all().find(({ attributes }) => attributes.id === id) ?? null;
Object.assign(globalThis, {
  document: { createElement: (name) => new Element(name), getElementById: element, documentElement: {} },
  navigator: { languages: ["en"] },
  location: { pathname: `/t/${given.id}`, search: "", hash: `#${given.codes[0]}` },
  history: { replaceState: () => { location.hash = ""; } },
  sessionStorage: { setItem() {}, getItem: () => null },
  addEventListener: (kind, listener) => { listeners[kind] = listener; },
});
const listeners = {};
const sent = [];
globalThis.fetch = async (path, { body } = {}) => {
  if (body) {
    sent.push(hex(body));
    return new Response(Uint8Array.of(given.answers.shift()));
  }
  return path.endsWith("/status") ? Response.json({ state: "open" }) : new Response(bytes(given.posted));
};
const settle = async (done) => { while (!done()) await new Promise((resolve) => setTimeout(resolve, 5)); };
const named = (name, words) => all().find((one) => one.name === name && one.text.includes(words));
const press = async (words) => {
  await settle(() => named("button", words));
  return named("button", words).listeners.click();
};
const choose = async (group) => {
  const chosen = () => all().find(({ attributes }) => attributes.name === group && attributes.value === "1");
  await settle(chosen);
  chosen().listeners.change();
};
const answer = async () => {
  await choose("level");
  await press("Answer at this level");
  await choose("q0");
  await press("Send");
};
const state = (name) => settle(() => element("sent")?.dataset.state === name);
const follow = async (code) => { location.hash = `#${code}`; await listeners.hashchange(); };
await import("./survey.js");
await answer();
"""


def played(node: Any, script: str, answers: list[int]) -> tuple[dict[str, Any], list[Outer]]:
    """What a script gives, and what the shuffler opens of what the page has sent."""
    asked = task(SMOKE)
    given = {
        "id": asked.id,
        "posted": asked.data.hex(),
        "codes": [to_base64(code) for code in CODES],
        "answers": answers,
    }
    made = node(DOCUMENT + script + "\nprocess.exit();", given)
    opened = [open_outer(asked, bytes.fromhex(body), Opener(SHUFFLER)) for body in made["sent"]]
    assert all(isinstance(one, Outer) for one in opened)
    return made, opened  # type: ignore[return-value]


def test_a_person_whose_code_was_refused_sends_the_same_report_under_the_next_link(node):
    """The relay forged the refusal. A second draw would have told twice as much, and both reports were held."""
    script = """
await state("refused");
const said = element("main").text;
await follow(given.codes[1]);
await settle(() => element("who"));
const asked = element("main").text;
await press("It was me");
await state("held");
await follow(given.codes[1]);
give({ sent, said, asked, held: element("sent").dataset.state });
"""
    made, (one, two) = played(node, script, [3, 0])
    assert "or somebody on the way to the shuffler says so" in made["said"]
    for words in ("said", "asked"):
        assert "could hand it over twice" in made[words]
    assert one.inners == two.inners
    assert (one.code, two.code) == (CODES[0], CODES[1])
    assert made["held"] == "held"


@pytest.mark.costly(but=("0",))
@pytest.mark.parametrize("verdict", [0, 1, 2])
def test_a_device_that_has_answered_asks_before_it_draws_for_another_link(node, verdict):
    made, opened = played(
        node,
        """
await settle(() => ["held", "refused"].includes(element("sent")?.dataset.state));
await follow(given.codes[1]);
await settle(() => element("who"));
const same = named("button", "It was me");
const before = sent.length;
await press("Another person on this device");
await answer();
await state("held");
give({ sent, before, offered: Boolean(same) });
""",
        [verdict, 0],
    )
    assert made["before"] == 1
    assert made["offered"] is False, "nothing waits for another code"
    assert [one.code for one in opened] == CODES[:2]
    assert opened[0].inners != opened[1].inners, "another person"
