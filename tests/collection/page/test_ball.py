"""The page decides as Python does whether the dummies of a task keep its promises, and draws what version 2 asks."""

from __future__ import annotations

from fractions import Fraction

import pytest

from shuffledp.collection.draw import Family
from shuffledp.collection.laws import law_of_task
from shuffledp.collection.promise import check_floor
from shuffledp.collection.sealing import Opener
from shuffledp.collection.task import PostedTask
from shuffledp.errors import InvalidInput, attempt
from shuffledp.numerics.functions import exp_lower
from tests.collection.laws import exact_law
from tests.collection.tasks import (
    ANALYZER,
    IDENTITY,
    KINDS,
    SHUFFLER,
    bits,
    choice,
    parse,
    posted_second,
    second,
    several,
    words,
)
from tests.collection.test_version_2 import with_mixers

READ = 'import { readTask } from "./task.js";\n'
LEVELS = ((2.0, 60, 1.0), (4.0, 180, 1.0), (6.0, 60, 1.0))
ASKED = {
    "one choice": (choice(5),),
    "one bit": (choice(2),),
    "a number": (bits(7),),
    "several and a number": (several(4), bits(5)),
    "three choices": (choice(3), choice(5), choice(5)),
    "thirty-two bits": (several(32),),
    "fifty words": (words(50),),
}


def answer_of(node, task):  # type: ignore[no-untyped-def]
    given = {"posted": task.data.hex(), "id": task.id}
    return node(READ + "give(await refusal(() => readTask(bytes(given.posted), given.id)));", given)


@pytest.mark.costly(but=("several and a number-open",))
@pytest.mark.parametrize("admission", ["codes", "open"])
@pytest.mark.parametrize("name", ASKED)
def test_the_page_and_python_agree_on_dummies_that_are_just_enough_and_just_too_few(node, name, admission):
    whole = second(*ASKED[name], levels=LEVELS, admission=admission)
    centre = whole["dummies"]["centre"]
    for less in (0, 1):
        whole["dummies"]["centre"] = [own - less for own in centre]
        task = PostedTask.post(parse(whole), Opener(SHUFFLER).public, IDENTITY)
        refused = attempt(lambda draft=task.draft: check_floor(draft), (InvalidInput,))
        told = answer_of(node, task)
        assert (told is None) == isinstance(refused, tuple)
        assert told in (None, "promise")
        assert less == 0 or told == "promise" or len(centre) > 1


@pytest.mark.costly
def test_the_page_and_python_agree_to_the_last_digits_of_delta(node):
    """Delta itself is moved to just above and just below what the dummies make true."""
    for question in (choice(5), several(3), bits(4)):
        whole = second(question, levels=((4.0, 60, 1.0),))
        draft = parse(whole)
        law, edge = law_of_task(draft), 1.0 + 1e-8
        kept = tuple(draft.levels[0].draw[column.question] for column in draft.columns)
        exact = float(law.floor(edge, tuple(Fraction(each, 2**64) for each in kept)))
        for delta, holds in ((exact * (1 + 1e-12), True), (exact * (1 - 1e-12), False)):
            task = PostedTask.post(parse(whole | {"delta": delta}), Opener(SHUFFLER).public, IDENTITY)
            assert (answer_of(node, task) is None) == holds
            assert isinstance(attempt(lambda t=task: check_floor(t.draft), (InvalidInput,)), tuple) == holds


def test_powers_of_e_are_never_above_python_s_and_equal_to_thirty_digits(node):
    values = [1e-6, 0.1, 0.25, 1.0, 1.00000001, 2.5, 8.0, 100.0]
    told = node('import { expBelow } from "./ball.js"; give(given.map((x) => expBelow(x)));', values)
    for value, text in zip(values, told, strict=True):
        ours, theirs = exp_lower(Fraction(value)), Fraction(int(text), 2**128)
        assert theirs <= ours
        assert ours - theirs < Fraction(2, 2**128) * max(ours, 1)


@pytest.mark.parametrize("mixers", [1, 3])
def test_a_task_that_names_mixers_is_refused_as_newer(node, mixers):
    data = with_mixers(posted_second(), mixers)
    script = """
import { sha256 } from "./hpke.js";
import { toBase64url } from "./task.js";
const data = bytes(given);
give(await refusal(async () => readTask(data, toBase64url(await sha256(data)))));
"""
    assert node(READ + script, data.hex()) == "newer"


def test_the_page_reads_every_kind_as_python_does(node):
    task = posted_second(*KINDS.values(), levels=((4.0, 180, 2.0),))
    told = node(
        READ
        + """
const task = await readTask(bytes(given.posted), given.id);
const columns = task.columns.map(({ question, dummies }) => [question, dummies]);
const english = (texts) => texts.map(({ en }) => en);
const kinds = task.questions.map((each) => [each.kind, each.width, english(each.choices), each.family.records]);
give({ size: task.size, version: task.version, columns, kinds });
""",
        {"posted": task.data.hex(), "id": task.id},
    )
    draft = task.draft
    assert (told["size"], told["version"]) == (task.size, 2)
    assert told["columns"] == [[column.question, column.dummies.count] for column in draft.columns]
    assert told["kinds"] == [
        [each.kind, each.width, [choice["en"] for choice in each.choices], each.family.records]
        for each in draft.questions
    ]


def test_chances_of_a_number_of_several_bits_are_the_stated_ones(node):
    keep = Family("bits:5", 9).threshold(3.0)
    told = node(
        """
import { chances, readFamily } from "./draw.js";
const family = readFamily("bits:5", 9);
give(Array.from({ length: 9 }, (_, answer) => chances(family, BigInt(given), answer)));
""",
        str(keep),
    )
    for record, parts in enumerate(told):
        total = sum(map(int, parts))
        assert [int(part) for part in parts] == [total * each for each in exact_law(Family("bits:5", 9), keep, record)]


def test_a_report_of_the_page_opens_to_what_was_answered(node):
    """At a budget of 30 hardly anything is random: options, a number's ones and a cell come through."""
    task = posted_second(several(4), bits(5), KINDS["table"], levels=((30.0, 9, 400.0),))
    told = node(
        READ
        + """
import { drawReport } from "./report.js";
const task = await readTask(bytes(given.posted), given.id);
give((await drawReport(task, 0, [0b1010, 60, 4])).map(hex));
""",
        {"posted": task.data.hex(), "id": task.id},
    )
    columns = [0, 1, 2, 3, 4, 4, 4, 4, 4, 5]
    opened = [
        Opener(ANALYZER).open(bytes.fromhex(row), task.inner_info(j)) for row, j in zip(told, columns, strict=True)
    ]
    values = [each[0] if each else None for each in opened]
    assert values[:4] == [0, 1, 0, 1]
    assert sum(v or 0 for v in values[4:9]) == 3
    assert values[9] == 4
