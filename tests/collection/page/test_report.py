"""task.js and report.js: the frozen task is read as Python reads it, and Python opens the page's reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shuffledp.collection.batch import Outer, open_outer, split_inners
from shuffledp.collection.codes import code_text, draw_codes, read_code
from shuffledp.collection.sealing import Opener, sign
from shuffledp.collection.task import PostedTask
from tests.collection.page.samples import task
from tests.collection.tasks import ANALYZER, IDENTITY, SHUFFLER, choice, document, number, posted

VECTORS = json.loads((Path(__file__).parent.parent / "vectors.json").read_text(encoding="utf-8"))
READ = 'import { readTask, readCode, fromBase64url, toBase64url } from "./task.js";\n'
SEAL = READ + 'import { drawReport, sealReport } from "./report.js";\n'


def opened(task: PostedTask, sealed: bytes) -> tuple[Outer, list[bytes]]:
    outer = open_outer(task, sealed, Opener(SHUFFLER))
    assert isinstance(outer, Outer)
    analyzer = Opener(ANALYZER)
    columns = enumerate(split_inners(task, outer.inners))
    inners = [analyzer.open(inner, task.inner_info(j)) for j, pieces in columns for inner in pieces]
    assert None not in inners
    return outer, [inner or b"" for inner in inners]


def test_the_frozen_task(node):
    frozen = VECTORS["task"]
    task = PostedTask.parse(bytes.fromhex(frozen["posted"]))
    read = node(
        READ
        + """
const task = await readTask(bytes(given.posted), given.id);
give({ signed: task.signed, size: task.size, digest: hex(task.digest), shuffler: hex(task.shufflerKey),
  analyzer: hex(task.analyzerKey), code: task.codeBytes, draw: task.levels.map((level) => level.draw),
  records: task.questions.map((question) => question.family.records), title: task.title });
""",
        frozen,
    )
    draft = task.draft
    assert read == {
        "signed": True,
        "size": frozen["size"],
        "digest": frozen["digest"],
        "shuffler": task.shuffler_key.hex(),
        "analyzer": draft.analyzer_key.hex(),
        "code": 16,
        "draw": [[str(keep) for keep in level.draw] for level in draft.levels],
        "records": [question.family.records for question in draft.questions],
        "title": dict(draft.title),
    }


def test_the_page_seals_the_frozen_report_anew_around_its_inner_messages(node):
    """The outer message is fresh every time; what the shuffler reads in it is the frozen one, byte for byte."""
    frozen = VECTORS["report"]
    sealed = node(
        SEAL
        + """
const task = await readTask(bytes(given.task.posted), given.task.id);
const { level, code, inners } = given.report;
give(hex(await sealReport(task, level, bytes(code), inners.map(bytes))));
""",
        VECTORS,
    )
    task = PostedTask.parse(bytes.fromhex(VECTORS["task"]["posted"]))
    assert opened(task, bytes.fromhex(sealed)) == opened(task, bytes.fromhex(frozen["sealed"]))
    assert sealed != frozen["sealed"]


@pytest.mark.costly("codes")
@pytest.mark.parametrize("admission", ["codes", "open"])
def test_python_opens_the_page_s_reports_whatever_level_and_answer(node, admission):
    asked = posted(choice(5), choice(300, family="hadamard:300"), number(0, 80, 0.5), choice(2), admission=admission)
    given = {"posted": asked.data.hex(), "id": asked.id, "code": None if admission == "open" else "0f" * 16}
    answers = [[0, 0, 0, 0], [4, 299, 160, 1], [2, 123, 75, 0]]
    sealed = node(
        SEAL
        + """
const task = await readTask(bytes(given.posted), given.id);
const code = given.code && bytes(given.code);
const made = [];
for (const answers of given.answers)
  for (let level = 0; level < task.levels.length; level++)
    made.push(hex(await sealReport(task, level, code, await drawReport(task, level, answers))));
give(made);
""",
        given | {"answers": answers},
    )
    assert {len(one) // 2 for one in sealed} == {asked.size}
    for place, one in enumerate(sealed):
        outer, inners = opened(asked, bytes.fromhex(one))
        assert outer.level == place % 3
        assert outer.code == (None if admission == "open" else b"\x0f" * 16)
        for question, inner in zip(asked.draft.questions, inners, strict=True):
            assert len(inner) == question.report_bytes
            assert int.from_bytes(inner, "little") < question.family.reports


def test_a_wrong_number_of_answers_or_a_missing_code_is_refused(node):
    asked = posted(choice(5))
    told = node(
        SEAL
        + """
const task = await readTask(bytes(given.posted), given.id);
const drawn = await drawReport(task, 0, [1]);
give(await Promise.all([
  refusal(() => drawReport(task, 0, [1, 1])),
  refusal(() => drawReport(task, 0, [5])),
  refusal(() => drawReport(task, 0, [null])),
  refusal(() => sealReport(task, 0, null, drawn)), refusal(() => sealReport(task, 0, new Uint8Array(15), drawn)),
  refusal(() => sealReport(task, 0, new Uint8Array(16), [])),
]));
""",
        {"posted": asked.data.hex(), "id": asked.id},
    )
    assert None not in told


def test_changed_bytes_are_not_the_task_that_the_link_names(node):
    data = task().data
    changed = [data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] for place in (0, 5, 20, 400, len(data) - 1)]
    cases = [(one, task().id) for one in [*changed, data[:-1], data + b"\0", b""]] + [(data, "A" * 43)]
    assert refusals(node, cases) == ["name"] * len(cases)


def test_a_wrong_signature_is_refused_even_under_its_own_name(node):
    data = task().data
    cases = [data[:-1] + bytes([data[-1] ^ 1]), data[: -64 - 32] + bytes(32) + data[-64:]]
    assert refusals(node, [(one, None) for one in cases]) == ["signature"] * 2


def resigned(**changed: object) -> bytes:
    """Posted bytes of a draft that Python would refuse, signed all the same."""
    whole = posted(choice(5))
    body = json.dumps(document(choice(5)) | changed).encode()
    head = whole.data[:5] + len(body).to_bytes(4, "little") + body + whole.data[-128:-64]
    return head + sign(IDENTITY, b"shuffledp/1 posted\0" + head)


LEVEL = document(choice(5))["levels"][0]
QUESTION = choice(5)
BAD = {
    "an unknown key": {"views": "sum"},
    "another suite": {"suite": 2},
    "another version": {"version": 2},
    "no level": {"levels": []},
    "no question": {"questions": []},
    "another admission": {"admission": "anybody"},
    "levels that do not ascend": {"levels": [LEVEL, LEVEL]},
    "an integer that tells too much": {"levels": [LEVEL | {"epsilon0": 0.4}]},
    "an integer that is a number": {"levels": [LEVEL | {"draw": [1]}]},
    "two integers for a question": {"levels": [LEVEL | {"draw": LEVEL["draw"] * 2}]},
    "an unknown key of a level": {"levels": [LEVEL | {"bonus": 1}]},
    "an infinite budget": {"levels": [LEVEL | {"epsilon0": 1e999}]},
    "a family that tells levels apart": {"questions": [QUESTION | {"family": "sue:5"}]},
    "a family of another size": {"questions": [QUESTION | {"family": "krr:6"}]},
    "more bytes than the report": {"questions": [QUESTION | {"report_bytes": 2}]},
    "an unknown kind": {"questions": [QUESTION | {"kind": "text"}]},
    "a range without steps": {"questions": [number(0, 0)]},
    "a short key": {"analyzer_key": "AAAA"},
    "padding in a key": {"analyzer_key": document(choice(5))["analyzer_key"] + "="},
    "a delta of zero": {"delta": 0},
    "a day that is none": {"closes": "2030-99-99T08:00:00Z"},
    "digits of another script": {"closes": "\u0662\u0660\u0663\u0660-01-31T08:00:00Z"},
    "an integer that begins with 0": {"levels": [LEVEL | {"draw": ["01"]}]},
    "an integer in digits of another script": {"levels": [LEVEL | {"draw": ["1\u0662"]}]},
    "a crowd's number above the promise": {"levels": [LEVEL | {"crowd": 0.2}]},
    "a link that runs a script": {"privacy_notice": "javascript:alert(1)"},
}


def test_a_task_that_is_not_made_as_it_must_be_is_refused(node):
    told = refusals(node, [(resigned(**changed), None) for changed in BAD.values()])
    assert dict(zip(BAD, told, strict=True)) == dict.fromkeys(BAD, "format")


def test_the_same_task_unchanged_is_read(node):
    assert refusals(node, [(resigned(), None)]) == [None]


def refusals(node, cases):
    """What readTask says to each of (bytes, name); a name of None is that of the bytes."""
    given = [{"posted": data.hex(), "id": name} for data, name in cases]
    return node(
        READ
        + """
import { sha256 } from "./hpke.js";
const told = [];
for (const { posted, id } of given)
  told.push(await refusal(async () => readTask(bytes(posted), id ?? toBase64url(await sha256(bytes(posted))))));
give(told);
""",
        given,
    )


def test_short_codes_are_read_as_the_command_reads_them(node):
    code = draw_codes(1, short=True)[0]
    text = code_text(code)
    given = [text, text.lower(), text.replace("-", " "), f"https://example.org/t/{'A' * 43}#{text}", "OIL0-0000-00zz"]
    given += [text[:-1], text + "0", "U" * 12, "0000-0000-000é"]
    told = node(READ + "give(given.map((text) => { const c = readCode(text); return c && hex(c); }));", given)
    assert told[:4] == [code.hex()] * 4
    assert told == [found and found.hex() for found in (read_code(one.rpartition("#")[2]) for one in given)]
    assert told[5:] == [None] * 4


def test_codes_are_read_from_codes_and_from_links(node):
    code = "AAECAwQFBgcICQoLDA0ODw"
    good = [code, f"  {code}\n", f"https://example.org/t/{'A' * 43}#{code}", f"#{code}"]
    bad = ["", code[:-1], code + "A", code[:-1] + "x", code[:-1] + "=", "https://example.org/t/" + "A" * 43, "?" * 22]
    told = node(READ + "give(given.map((text) => { const c = readCode(text); return c && hex(c); }));", good + bad)
    assert told == [bytes(range(16)).hex()] * len(good) + [None] * len(bad)
