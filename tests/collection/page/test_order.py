"""Questions and answers in an order drawn for each person: shown, and never kept or sent."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from shuffledp.cli.demo.clients import Chromium
from shuffledp.collection.fields import to_base64
from shuffledp.collection.sealing import Opener, sign
from shuffledp.collection.task import PostedTask, label
from tests.collection.page.chromium import CHROMIUM, UNTIL
from tests.collection.page.nodejs import REFUSED
from tests.collection.page.server import Server
from tests.collection.tasks import (
    IDENTITY,
    SHUFFLER,
    bits,
    choice,
    parse,
    posted_second,
    scale,
    second,
    several,
    table,
    words,
)

RANDOM = {"order": "random"}
TIMES = {"opens": "2020-01-01T00:00:00Z", "closes": "2090-01-01T00:00:00Z", "expires": "2090-02-01T00:00:00Z"}
ASKED = (
    choice(5) | RANDOM,
    choice(6) | {"kind": "scale", "values": [1, 2, 3, 4, 5], "optional": True},
    several(4) | RANDOM | {"optional": True},
    table(3, 4) | RANDOM | {"optional": True},
    choice(3),
)
DRAWN = """
import { readTask } from "./task.js";
import { inOrder } from "./order.js";
const task = await readTask(bytes(given.posted), given.id);
const found = [];
for (let i = 0; i < given.times; i++) {
  const { shown, questions } = inOrder(task);
  found.push([shown, questions.map((question) => question.shown)]);
}
give(found);
"""
ANSWERED = (
    UNTIL
    + """
  const texts = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent);
  await until(() => at("#answer"));
  const orders = () => [
    texts("#answer > fieldset > legend"),
    texts("#q0 label"),
    texts("#q1 label"),
    texts("#q2 label"),
    texts("#q3 fieldset:nth-of-type(1) label"),
  ];
  const first = orders();
  at("#languages button[lang=de]").click(); // the page is written anew
  at("#languages button[lang=en]").click();
  const again = JSON.stringify(orders()) === JSON.stringify(first);
  at("#send button").click(); // q0 and q4 are not answered yet
  const focused = document.activeElement.name;
  const labels = (name) => [...document.querySelectorAll(`${name} label`)];
  const choose = (name, text) => labels(name).find((one) => one.textContent === text).click();
  choose("#q0", "choice 4");
  choose("#q2", "option 1");
  choose("#q2", "option 3");
  choose("#q3 fieldset:nth-of-type(1)", "row 2");
  choose("#q3 fieldset:nth-of-type(2)", "column 3");
  choose("#q4", "choice 2");
  at("#send button").click();
  await until(() => at("#sent"));
  const kept = await new Promise((done) => {
    indexedDB.open("shuffledp").onsuccess = ({ target }) => {
      const all = target.result.transaction("people").objectStore("people").getAll();
      all.onsuccess = () => done(all.result);
    };
  });
  const keys = kept.map((one) => Object.keys(one));
  return [first, again, focused, at("#sent").dataset.state, keys, { ...sessionStorage }];
})()
"""
)


@pytest.mark.costly
def test_orders_are_drawn_uniformly_and_no_answer_stays_last(node: Callable[..., Any]):
    """6,000 draws: of each order 250 of 24 or 50 of 120 are expected, and 5 sigma are allowed."""
    task = posted_second(*ASKED, **RANDOM)
    found = node(DRAWN, {"posted": task.data.hex(), "id": task.id, "times": 6000})
    assert all(sorted(shown) == list(range(5)) for shown, _ in found)
    for kinds in (Counter(tuple(shown) for shown, _ in found), Counter(tuple(q[0]) for _, q in found)):
        assert len(kinds) == 120
        assert max(abs(count - 50) for count in kinds.values()) <= 5 * 50**0.5
    options = Counter(tuple(q[2]) for _, q in found)
    assert len(options) == 6
    assert all(order[-1] == 3 for order in options)
    assert max(abs(count - 1000) for count in options.values()) <= 5 * 1000**0.5
    assert {(tuple(q[3][0]), tuple(q[3][1])) for _, q in found} == {
        ((*rows, 2), (*columns, 3))
        for rows in ((0, 1), (1, 0))
        for columns in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    }
    assert all(q[1] == [0, 1, 2, 3, 4, 5] and q[4] == [0, 1, 2] for _, q in found)


def test_a_task_that_asks_for_no_order_is_shown_as_it_is(node: Callable[..., Any]):
    task = posted_second(choice(5), table(2, 3), bits(), words(4))
    found = node(DRAWN, {"posted": task.data.hex(), "id": task.id, "times": 3})
    assert found == [[[0, 1, 2, 3], [[0, 1, 2, 3, 4], [[0, 1], [0, 1, 2]], [], [0, 1, 2, 3]]]] * 3


def test_the_page_refuses_orders_that_the_command_refuses(node: Callable[..., Any]):
    changes = (
        (scale(), b'"kind": "scale"', b'"kind": "scale", "order": "random"'),
        (words(4), b'"kind": "list"', b'"kind": "list", "order": "random"'),
        (bits(), b'"kind": "number"', b'"kind": "number", "order": "random"'),
        (choice(3), b'"kind": "choice"', b'"kind": "choice", "order": "by age"'),
        (choice(3), b'"delta"', b'"order": true, "delta"'),
        (choice(3), b'"delta"', b'"order": "random", "delta"'),
    )
    given: list[list[str]] = []
    for asked, old, new in changes:
        task = posted_second(asked)
        text = task.draft.data.replace(old, new)
        assert text != task.draft.data
        head = b"SHFT\2" + len(text).to_bytes(4, "little") + text + task.data[9 + len(task.draft.data) : -64]
        data = head + sign(IDENTITY, label(2, "posted") + head)
        given.append([data.hex(), to_base64(hashlib.sha256(data).digest())])
    assert node(REFUSED, given) == ["format"] * 5 + [None]


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_what_is_sent_does_not_depend_on_the_order_shown():
    whole = second(*ASKED, levels=((30.0, 9, 800.0),), at_least=1, admission="open", **TIMES, **RANDOM)
    task = PostedTask.post(parse(in_two_languages(whole)), Opener(SHUFFLER).public, IDENTITY)
    orders: list[list[list[str]]] = []
    with Server(task) as server, Chromium(CHROMIUM) as browser:
        for _ in range(4):
            first, again, focused, state, kept, session = browser.evaluate(server.link, ANSWERED)
            orders.append(first)
            assert (again, state) == (True, "held")
            assert focused in ("q0", "q4")
            unanswered = [text for text in first[0] if text in ("Which of 5?", "Which of 3?")]
            assert focused == {"Which of 5?": "q0", "Which of 3?": "q4"}[unanswered[0]]
            assert not any({"order", "shown"} & set(names) for names in kept)
            assert not session
        sent = server.opened()
    assert len({str(order[0]) for order in orders}) > 1  # four times the same of 120: one in 1.7 million
    assert all(sorted(order[1]) == [f"choice {j + 1}" for j in range(5)] for order in orders)
    assert all(order[2] == [f"choice {j + 1}" for j in range(6)] for order in orders)
    assert all(order[3][-1] == "option 4" and order[4][-1] == "row 3" for order in orders)
    assert [each["reports"] for each in sent] == [[3, 5, 1, 0, 1, 0, 1 * 4 + 2, 1]] * 4  # no noise to speak of


def in_two_languages(value: Any) -> Any:
    """A draft whose texts are given in German, too."""
    if isinstance(value, dict):
        if set(value) == {"en"}:
            return value | {"de": value["en"]}
        return {key: in_two_languages(one) for key, one in value.items()}
    return [in_two_languages(one) for one in value] if isinstance(value, list) else value
