"""Optional questions and explanations on the page: as a task is read, and as a person leaves them out."""

from __future__ import annotations

import hashlib

import pytest

from shuffledp.cli.demo.clients import Chromium
from shuffledp.collection.fields import to_base64
from shuffledp.collection.sealing import sign
from shuffledp.collection.task import label
from tests.collection.page.chromium import CHROMIUM, NODE, UNTIL
from tests.collection.page.nodejs import lay_out, run
from tests.collection.page.server import Server
from tests.collection.tasks import IDENTITY, bits, choice, posted_second, scale, several, table, words

TIMES = {"opens": "2020-01-01T00:00:00Z", "closes": "2090-01-01T00:00:00Z", "expires": "2090-02-01T00:00:00Z"}
ASKED = (
    choice(3) | {"optional": True, "explanation": {"en": "Of the last year."}},
    choice(6) | {"kind": "scale", "values": [1, 2, 3, 4, 5], "optional": True},
    several(3) | {"optional": True},
    table(2, 3) | {"optional": True},
    words(4) | {"optional": True},
    bits(),
    several(3),
)
READ = """
import { readTask } from "./task.js";
import { unanswered } from "./steps.js";
const found = [];
for (const [posted, id] of given) {
  const begun = async () => JSON.stringify(unanswered(await readTask(bytes(posted), id)));
  found.push(await refusal(async () => { throw new Error(await begun()); }));
}
give(found);
"""
LEFT_OUT = (
    UNTIL
    + """
  await until(() => at("#answer"));
  const told = at("#q0").textContent;
  at('#q2 input[value="0"]').click(); // an option: "no answer" goes
  const one = [...document.querySelectorAll("#q2 input")].map((input) => input.checked);
  at('#q2 input[value="2"]').click(); // and comes back alone
  const none = [...document.querySelectorAll("#q2 input")].map((input) => input.checked);
  const typed = at("#q5-number");
  typed.value = 60;
  typed.dispatchEvent(new Event("input"));
  at("#send button").click();
  await until(() => at("#sent"));
  return [told, one, none, at("#sent").dataset.state];
})()
"""
)


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_page_reads_what_is_optional_and_begins_with_no_answer(tmp_path):
    good = posted_second(*ASKED)
    assert run(lay_out(tmp_path), READ, [[good.data.hex(), good.id]]) == ["[2,5,4,5,3,null,0]"]


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_page_refuses_what_the_command_refuses(tmp_path):
    """A draft whose keys were exchanged after signing: the page reads the bytes by its own rules."""
    changes = (
        (scale(), b'"values": [1, 2, 3, 4, 5]', b'"values": [1, 2, 3, 4, 5], "optional": true'),
        (bits(), b'"low": 0', b'"low": 0, "optional": true'),
        (choice(3), b'"kind": "choice"', b'"kind": "choice", "optional": 1'),
    )
    given = []
    for asked, old, new in changes:
        task = posted_second(asked)
        text = task.draft.data.replace(old, new)
        assert text != task.draft.data
        head = b"SHFT\2" + len(text).to_bytes(4, "little") + text + task.data[9 + len(task.draft.data) : -64]
        data = head + sign(IDENTITY, label(2, "posted") + head)
        given.append([data.hex(), to_base64(hashlib.sha256(data).digest())])
    assert run(lay_out(tmp_path), READ, given) == ["format"] * 3


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_a_person_who_leaves_questions_out_sends_no_answer():
    task = posted_second(*ASKED, levels=((30.0, 9, 800.0),), at_least=1, admission="open", **TIMES)
    with Server(task) as server, Chromium(CHROMIUM) as browser:
        told, one, none, state = browser.evaluate(server.link, LEFT_OUT)
        (sent,) = server.opened()
    assert "Of the last year." in told
    assert "then “choice 3” is sent" in told
    assert (one, none, state) == ([True, False, False], [False, False, True], "held")
    assert sent["reports"][:2] == [2, 5]  # no noise to speak of at a budget of 30
    assert sent["reports"][2:5] == [0, 0, 1]
    assert sent["reports"][5:7] == [5, 3]
