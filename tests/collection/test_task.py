"""Drafts and posted tasks: every rule, one clear refusal, and no other exception whatever comes."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.collection.batch import AnalyzerKey, Batch, Manifest
from shuffledp.collection.client import Link
from shuffledp.collection.fields import from_base64, read_json, to_base64
from shuffledp.collection.release import SignedRelease
from shuffledp.collection.sealing import identity_of, sign
from shuffledp.collection.survey import draft_of_survey
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.errors import InvalidInput
from tests.collection.batches import batch_of
from tests.collection.tasks import IDENTITY, choice, document, draft, number, parse, posted


def changed(path: str, value: Any) -> dict[str, Any]:
    """A good draft with one value replaced; a path such as ``questions.0.kind``; ... deletes."""
    whole = copy.deepcopy(document(choice(), number()))
    place: Any = whole
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return whole


ARABIC = str.maketrans("0123456789", "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669")
REFUSED: list[tuple[str, Any, str]] = [
    ("closes", "2030-01-31T08:00:00Z".translate(ARABIC), "time in UTC"),
    ("closes", "2030-02-31T08:00:00Z", "time in UTC"),
    ("levels.0.draw.0", "12".translate(ARABIC), "decimal digits"),
    ("levels.0.draw.0", "1\u0662", "decimal digits"),
    ("version", 3, "version"),
    ("version", True, "version"),
    ("suite", 0, "suite"),
    ("surprise", 1, "unknown key 'surprise'"),
    ("questions.0.surprise", 1, "unknown key"),
    ("levels.0.surprise", 1, "unknown key"),
    ("operated_by.surprise", 1, "unknown key"),
    ("title", "Lunch", "by language"),
    ("title", {}, "by language"),
    ("title", {"EN": "Lunch"}, "by language"),
    ("title", {"en": "a\nb"}, "one line"),
    ("title", {"en": "\u202eevil"}, "one line"),
    ("title", {"en": " "}, "one line"),
    ("questions.0.text", {"de": "Was?"}, "languages of the title"),
    ("organizer", "", "one line"),
    ("organizer", ..., "missing"),
    ("privacy_notice", "javascript:alert(1)", "https"),
    ("questions", [], "a list of 1 to 32"),
    ("questions.0.choices", [{"en": "one"}], "a list of 2"),
    ("questions.0.choices.1", {"en": "choice 1"}, "read the same"),
    ("questions.0.kind", "text", "choice, number"),
    ("questions.0.family", "oue:5", "look alike"),
    ("questions.0.family", "krr:4", "krr:5"),
    ("questions.0.report_bytes", 2, "report_bytes"),
    ("questions.0.dummies", {"law": "laplace", "count": 1, "draw": [str(2**63)]}, "one bit"),
    ("questions.0.dummies.law", "normal", "uniform, laplace"),
    ("questions.0.dummies.count", -1, "count"),
    ("questions.1.dummies", {"law": "laplace", "count": 2, "draw": ["2", "1"]}, "symmetric"),
    ("questions.1.dummies", {"law": "laplace", "count": 2, "draw": ["1", "2"]}, "symmetric"),
    ("questions.1.dummies", {"law": "laplace", "count": 1, "draw": [2**63]}, "decimal digits"),
    ("questions.1.step", 0, "positive step"),
    ("questions.1.step", 7, "whole number of steps"),
    ("questions.1.step", 1e-9, "whole number of steps"),
    ("questions.1.low", 100, "low < high"),
    ("questions.1.low", 1e300, "number"),
    ("levels", [], "a list of 1 to 8"),
    ("levels.0.epsilon0", 1.0, "ascend"),
    ("levels.0.epsilon0", 0, "number"),
    ("levels.0.epsilon0", "0.5", "number"),
    ("levels.0.name", {"en": "Middle"}, "same name"),
    ("levels.0.draw.0", str(2**64), "decimal digits"),
    ("levels.0.draw.0", "01", "decimal digits"),
    ("levels.0.draw.0", 12, "decimal digits"),
    ("levels.0.draw", ["1"], "a list of 2"),
    ("levels.0.draw.0", str(2**64 - 1), "implies a budget above"),
    ("levels.0.planned", -1, "planned"),
    ("levels.0.promise", 0, "promise"),
    ("levels.0.crowd", 0.2, "crowd"),
    ("delta", 1.01e-6, "at most 1/"),
    ("delta", 0, "positive"),
    ("delta", 0.002, "and 0.001, here"),
    ("delta", "1e-6", "number"),
    ("admission", "invited", "codes, open"),
    ("at_least", 0, "at_least"),
    ("at_least", 100_001, "at_least"),
    ("opens", "2030-01-01", "UTC"),
    ("opens", "2030-02-31T08:00:00Z", "UTC"),
    ("opens", "2031-01-01T08:00:00Z", "before it closes"),
    ("expires", "2030-01-30T08:00:00Z", "expires"),
    ("stop_at", 0, "stop_at"),
    ("analyzer_key", "AAAA", "32 bytes"),
    ("analyzer_key", "A" * 43 + "=", "32 bytes"),
    ("retention_days", 0, "retention_days"),
]


@pytest.mark.parametrize(("path", "value", "said"), REFUSED, ids=[f"{p}={str(v)[:20]!r}" for p, v, _ in REFUSED])
def test_a_draft_that_breaks_a_rule_is_refused(path, value, said):
    with pytest.raises(InvalidInput) as refusal:
        parse(changed(path, value))
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_good_draft_is_read():
    found = draft(choice(), number(0, 1, 0.1), choice(2), choice(5, 3, "hadamard:5"))
    assert [question.answers for question in found.questions] == [5, 11, 2, 5]
    assert [question.report_bytes for question in found.questions] == [1, 1, 1, 1]
    assert found.planned == 1000


@pytest.mark.parametrize("data", [
    b"", b"null", b"[]", b"{", b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":1e999}', b"\xff", b"[" * 100_000,
    b'{"version":' + b"9" * 5000 + b"}",
])  # fmt: skip
def test_what_is_no_json_of_ours_is_refused(data):
    with pytest.raises(InvalidInput):
        Draft.parse(data)


def test_a_lone_surrogate_is_no_text():
    with pytest.raises(InvalidInput, match="one line"):
        Draft.parse(json.dumps(changed("organizer", "\ud800")).encode())


def resigned(task: PostedTask, body: bytes) -> bytes:
    return body + sign(IDENTITY, b"shuffledp/1 posted\0" + body)


def test_a_posted_task_that_was_changed_is_refused():
    task = posted()
    for place in range(0, len(task.data), 7):
        data = bytearray(task.data)
        data[place] ^= 1
        with pytest.raises(InvalidInput):
            PostedTask.parse(bytes(data))
    for data in (task.data[:-1], task.data + b"\0", b"", task.data[:9]):
        with pytest.raises(InvalidInput):
            PostedTask.parse(data)
    assert PostedTask.parse(resigned(task, task.data[:-64])).id == task.id
    with pytest.raises(InvalidInput, match="version 3 and needs a newer shuffledp"):
        PostedTask.parse(resigned(task, b"SHFT\3" + task.data[5:-64]))


def test_another_shuffler_makes_another_task():
    task = posted()
    other = PostedTask.post(task.draft, task.shuffler_key, bytes(32))
    assert other.draft.data == task.draft.data
    assert other.id != task.id
    assert other.shuffler_identity == identity_of(bytes(32))


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.just([]) | st.just({})
ANY = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3), max_leaves=6)  # fmt: skip  # noqa: E501


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        found += paths_of(inner, (*path, key))
    return found


GOOD = document(choice(), number())
PATHS = paths_of(GOOD)


@pytest.mark.costly
@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PATHS), ANY)
def test_any_value_anywhere_in_a_draft_is_read_or_refused(path, value):
    whole = copy.deepcopy(GOOD)
    place: Any = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    try:
        data = json.dumps(whole).encode()
        found = Draft.parse(data)
    except InvalidInput:
        return
    assert found.data == data


TASK = posted(choice(3, 2))
BATCH = batch_of(TASK, [[0, 1]], [1, 1, 0])
MANIFEST = Batch.parse(BATCH).manifest.data
KEY = AnalyzerKey(bytes(32), bytes(32), bytes(32))
PARSERS = {
    "draft": (Draft.parse, TASK.draft.data),
    "task": (PostedTask.parse, TASK.data),
    "manifest": (Manifest.parse, MANIFEST),
    "batch": (Batch.parse, BATCH),
    "release": (lambda data: SignedRelease.parse(data, TASK), b"SHFR\1\2\0\0\0{}" + bytes(64)),
    "key": (AnalyzerKey.parse, KEY.document()),
    "survey": (lambda data: draft_of_survey(data, KEY), b"title = 'x'\n[[levels]]\nname='y'\nepsilon0=1\n"),
    "link": (lambda data: Link.parse(data.decode("latin-1")), b"https://example.org/t/" + TASK.id.encode()),
}


@pytest.mark.costly(but=("task",))
@pytest.mark.parametrize("name", sorted(PARSERS))
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_parsers_raise_invalid_input_and_nothing_else(name, data):
    parse_it, good = PARSERS[name]
    changed_bytes = bytearray(good)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(changed_bytes)))
        cut = data.draw(st.integers(0, 8))
        changed_bytes[at : at + cut] = data.draw(st.binary(max_size=8))
    try:
        parse_it(bytes(changed_bytes))
    except InvalidInput:
        return


SNIPPETS = (
    b"null",
    b"-0",
    b"1e999",
    b'"',
    b"[",
    b"{}",
    b"\\ud800",
    b"\xff\xfe",
    b"9" * 400,
    b"\0",
    b",",
    b"NaN",
    b"true",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_twenty_thousand_changed_documents_a_parser(name):
    """Bytes put in, taken out and exchanged, a few at a time: read, or refused in one line."""
    parse_it, good = PARSERS[name]
    random, said = Random(name), set[str]()
    for _ in range(20_000):
        changed = bytearray(good)
        for _ in range(random.randint(1, 4)):
            at = random.randint(0, len(changed))
            piece = random.choice((random.randbytes(random.randint(0, 8)), random.choice(SNIPPETS)))
            changed[at : at + random.choice((0, 0, 1, 8, 300))] = piece
        try:
            parse_it(bytes(changed))
        except InvalidInput as error:
            said.add(str(error))
    assert not any("\n" in message for message in said)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_base64_has_one_spelling(data):
    assert from_base64(to_base64(data)) == data
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        return
    found = from_base64(text)
    assert found is None or to_base64(found) == text


def test_a_document_that_is_too_long_is_refused():
    with pytest.raises(InvalidInput, match="at most 10"):
        read_json(b" " * 11, "the thing", 10)


SAME = [
    "The\u00a0kitchen",
    "the KITCHEN.",
    "The kit\u200dchen",
    "The kitchen\u200b",
    "The kit\u00adchen",
    "\uff34he kitchen",
]
SAME += ["The kitchen\ufe0f", "The kitchen\u3164"]


@pytest.mark.parametrize("name", SAME, ids=ascii)
def test_a_name_that_reads_the_same_is_the_same_hand(name):
    """Else one hand could promise the central number by a letter that nobody sees."""
    by = {"analyzer": "The kitchen", "shuffler": name, "page": "The library"}
    assert draft(operated_by=by).operated_by.one_hand
    assert not draft(operated_by=by | {"shuffler": "The kitchens"}).operated_by.one_hand


@pytest.mark.parametrize("name", ["careful\u200b", " Careful ", "careful\ufe0f", "care\u00adful"], ids=ascii)
def test_levels_whose_names_read_the_same_are_refused(name):
    levels = document()["levels"]
    levels[1]["name"] = {"en": name}
    with pytest.raises(InvalidInput, match="same name"):
        parse(document() | {"levels": levels})
