"""A dictionary on the page: the cells of every word as in Python, what is read and refused, and a person who types."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any

import pytest

from shuffledp.cli.demo.clients import Chromium
from shuffledp.collection.asked import MOST_WORDS, cells_of_word
from shuffledp.collection.fields import to_base64
from shuffledp.collection.promise import in_100, what_is_read
from shuffledp.collection.sealing import sign
from shuffledp.collection.task import PostedTask, label
from tests.collection.page.chromium import CHROMIUM, NODE, UNTIL
from tests.collection.page.nodejs import REFUSED, lay_out, run
from tests.collection.page.server import Server
from tests.collection.tasks import IDENTITY, choice, dictionary, posted_second

TIMES = {"opens": "2020-01-01T00:00:00Z", "closes": "2090-01-01T00:00:00Z", "expires": "2090-02-01T00:00:00Z"}
READ = """
import { readTask, cellsOfWord } from "./task.js";
import { recordsOf } from "./report.js";
import { unanswered } from "./steps.js";
import { casesOf } from "./promise.js";
const [[posted, id], words] = given;
const task = await readTask(bytes(posted), id);
const [first, second] = task.questions;
const after = await refusal(() => recordsOf(first, first.choices.length));
give({
  cells: Array.from({ length: words }, (_, i) => cellsOfWord(i)),
  records: [recordsOf(first, 5), recordsOf(first, 1200), recordsOf(second, 2)],
  choices: [first.choices.length, first.choices[0], first.choices[1200], first.choices[1201]],
  begun: unanswered(task),
  widths: task.columns.map(({ question, dummies }) => [question, dummies]),
  cases: task.levels.map((level) => { const { least, most } = casesOf(task, level, "en"); return [least, most]; }),
  after,
});
"""
TYPED = (
    UNTIL
    + """
  await until(() => at("#answer")); // there is one level
  const type = (words) => {
    at("#q0-word").value = words;
    at("#q0-word").dispatchEvent(new Event("input"));
    at("#send button").click();
  };
  type("no such word");
  const refused = !at("#q0-error").hidden && at("#sent") === null;
  const listed = document.querySelectorAll("#q0-words option").length;
  at("#q1 button").click();
  const other = at("#q1-word").value;
  type("  WORD  1100 ");
  await until(() => at("#sent"));
  return [refused, other, listed, at("#sent").dataset.state];
})()
"""
)


@lru_cache(maxsize=1)
def asked() -> PostedTask:
    return posted_second(dictionary(1200, 2), choice(3), levels=((4.0, 40, 4.0), (8.0, 140, 4.0)))


def exchanged(task: PostedTask, whole: dict[str, Any]) -> list[str]:
    """A posted task with another draft, signed: its bytes, and its name."""
    text = json.dumps(whole, ensure_ascii=False).encode()
    head = b"SHFT\2" + len(text).to_bytes(4, "little") + text + task.data[9 + len(task.draft.data) : -64]
    data = head + sign(IDENTITY, label(2, "posted") + head)
    return [data.hex(), to_base64(hashlib.sha256(data).digest())]


@pytest.mark.costly
@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_words_have_the_cells_that_python_gives_them(tmp_path):
    task = asked()
    told = run(lay_out(tmp_path), READ, [[task.data.hex(), task.id], MOST_WORDS + 2])
    assert told["cells"] == [list(cells_of_word(index)) for index in range(MOST_WORDS + 2)]
    assert told["records"] == [[5, 5], [176, 177], [2]]
    assert told["choices"] == [1202, {"en": "word 1"}, {"en": "another word"}, {"en": "no answer"}]
    assert told["begun"] == [1201, None]
    assert told["widths"] == [[column.question, column.dummies.count] for column in task.draft.columns]
    assert told["after"] == "no such answer"
    for level, (least, most) in enumerate(told["cases"]):
        shares = what_is_read(task.draft, level)[1]
        assert (least, most) == (in_100(min(shares)), in_100(max(shares)))


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_page_refuses_a_dictionary_that_the_command_refuses(tmp_path):
    """A draft whose words were exchanged after signing: the page reads the bytes by its own rules."""
    task = asked()
    whole = json.loads(task.draft.data)
    words, given = whole["questions"][0]["words"].split("\n"), []
    for changed in (words[:900], [*words[:-1], words[0]], [*words[:-1], ""], [*words[:-1], "u\u0308ber"], words * 20):
        whole["questions"][0]["words"] = "\n".join(changed)
        given.append(exchanged(task, whole))
    assert run(lay_out(tmp_path), REFUSED, given) == ["format"] * 5


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_a_choice_has_at_most_1000_answers_on_the_page_too(tmp_path):
    """A column of a dictionary has 1,024 cells. No report depends on the answer here, so nothing else is in the way."""
    task = posted_second(choice(3), levels=((4.0, 140, 4.0),))
    whole, given = json.loads(task.draft.data), []
    whole["levels"][0]["draw"] = ["0"]
    for count in (1000, 1001):
        choices = [{"en": f"choice {j}"} for j in range(count)]
        whole["questions"][0] |= {"choices": choices, "family": f"krr:{count}", "report_bytes": 2}
        given.append(exchanged(task, whole))
    assert run(lay_out(tmp_path), REFUSED, given) == [None, "format"]


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_a_person_types_a_word_and_takes_another():
    questions = (dictionary(1200), dictionary(1100))
    task = posted_second(*questions, levels=((30.0, 9, 800.0),), at_least=1, admission="open", **TIMES)
    with Server(task) as server, Chromium(CHROMIUM) as browser:
        refused, other, listed, state = browser.evaluate(server.link, TYPED)
        (sent,) = server.opened()
    assert (refused, other, listed, state) == (True, "another word", 1201, "held")
    assert sent["reports"] == [*cells_of_word(1099), *cells_of_word(1100)]  # no noise to speak of at a budget of 30
