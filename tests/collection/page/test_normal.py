"""The page decides as Python does whether normal dummies keep a task's promises."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import Any

import numpy as np
import pytest

from shuffledp.accounting import NormalFloor
from shuffledp.collection.fields import to_base64
from shuffledp.collection.laws import floor_of_columns, law_of_task
from shuffledp.collection.promise import check_floor
from shuffledp.collection.sealing import Opener, sign
from shuffledp.collection.task import PostedTask
from shuffledp.dummies import WHOLE, StatedCells, normal_side
from shuffledp.errors import InvalidInput, attempt
from shuffledp.numerics.floats import UNBOUNDED
from tests.collection.page.test_ball import READ, answer_of
from tests.collection.tasks import IDENTITY, SHUFFLER, bits, choice, parse, second, several, table, words

LEVELS = ((2.0, 60, 1.0), (4.0, 180, 1.0), (6.0, 60, 1.0))
ASKED = {
    "one choice": (choice(5),),
    "two bits": (choice(2), choice(2)),
    "ten of five": (choice(5),) * 10,
    "all kinds": (choice(3), several(6), table(3, 4), words(40)),
}


def told(node, whole):  # type: ignore[no-untyped-def]
    """Whether Python finds the promises kept, and what the page says."""
    task = PostedTask.post(parse(whole), Opener(SHUFFLER).public, IDENTITY)
    return isinstance(attempt(lambda: check_floor(task.draft), (InvalidInput,)), tuple), answer_of(node, task)


@pytest.mark.costly(but=("one choice-codes",))
@pytest.mark.parametrize("admission", ["codes", "open"])
@pytest.mark.parametrize("name", ASKED)
def test_the_page_and_python_agree_on_dummies_that_are_just_enough_and_just_too_few(node, name, admission):
    whole = second(*ASKED[name], normal=True, levels=LEVELS, admission=admission)
    assert told(node, whole) == (True, None)
    for level in whole["levels"]:
        level["promise"] *= 0.97  # the spread is searched in steps of 1 %
    assert told(node, whole) == (False, "promise")


MANY_SIZES = tuple(choice(k) for k in range(3, 35))
MANY_LAW = {
    "law": "normal",
    "weights": [str(each) for each in normal_side(16.0, 90)],
    "centre": [80 + k % 3 * 5 for k in range(32)],
}


@pytest.mark.costly(but=("questions0",))
@pytest.mark.parametrize("questions", [(choice(5),), (several(3),), (choice(2), choice(7)), MANY_SIZES])
def test_the_page_and_python_agree_to_the_last_digits_of_delta(node, questions):
    """Delta itself is moved to just above and just below what the dummies make true."""
    if questions is MANY_SIZES:
        whole, promise = second(*questions, centre=1, levels=((4.0, 60, 2.0),)) | {"dummies": MANY_LAW}, 2.0
    else:
        whole, promise = second(*questions, normal=True, levels=((4.0, 60, 1.0),)), 1.0
    draft = parse(whole)
    keep = [draft.levels[0].draw[column.question] for column in draft.columns]
    floor = floor_of_columns(law_of_task(draft), keep, 1, UNBOUNDED)
    exact = float(floor.delta_at(promise * (1 + 1e-8)).upper)
    for delta, holds in ((exact * (1 + 1e-12), True), (exact * (1 - 1e-12), False)):
        assert told(node, whole | {"delta": delta}) == (holds, None if holds else "promise")


def page_law(seed: int) -> tuple[dict[str, Any], NormalFloor]:
    """A random law as the page reads it, and as Python does."""
    rng = np.random.default_rng(seed)
    side = normal_side(float(np.exp(rng.uniform(-0.9, 2.7))), int(rng.integers(2, 70)))
    side = tuple(each for each in side if each)
    if seed % 3 == 0:
        side = tuple(max(each >> 45, 1) for each in side)
    kinds = [(int(rng.integers(2, 20)), int(rng.integers(1, len(side)))) for _ in range(int(rng.integers(1, 6)))] * 2
    keep = [(WHOLE, 0, int(rng.integers(WHOLE, dtype=np.uint64)))[int(rng.integers(3))] for _ in kinds]
    columns = [{"question": place, "family": {"records": size}, "centre": h} for place, (size, h) in enumerate(kinds)]
    weights = [str(each) for each in side]
    law = NormalFloor(tuple(StatedCells(size, side[: h + 1]) for size, h in kinds), tuple(keep), 1, UNBOUNDED)
    return {"dummies": {"weights": weights}, "columns": columns, "draw": [str(each) for each in keep]}, law


def test_the_page_encloses_in_doubles_what_python_finds_in_whole_numbers(node):
    """At five factors each of forty laws; where the page refuses a law, Python does."""
    drawn = [page_law(seed) for seed in range(40)]
    factors = [1.0, 1.25, 2.0, 20.0, 2.0**20]
    script = """
import { roughFloor } from "./doubles.js";
import { kindsOf } from "./normal.js";
const found = given.laws.map((law) => {
  try {
    const rough = roughFloor(kindsOf(law))({ draw: law.draw.map(BigInt) });
    return given.factors.map((factor) => rough(factor).map((end) => (end === Infinity ? null : end)));
  } catch (error) {
    return error.message;
  }
});
give(found);
"""
    told = node(script, {"laws": [law for law, _ in drawn], "factors": factors})
    known, widths = 0, list[float]()
    for ends, (_, law) in zip(told, drawn, strict=True):
        if ends == "dummies":
            with pytest.raises(InvalidInput, match="not nearly those"):
                law.delta_rational(1.0)
            continue
        for (low, high), factor in zip(ends, factors, strict=True):
            exact = law.delta_rational(math.log(factor))  # whose factor is another in the last digit
            if high is not None:
                known += 1
                assert min(low * (1 - 1e-12) - 1e-14, 1.0) <= exact <= high * (1 + 1e-12) + 1e-14
                widths.append((high - low) / max(high, 1e-9))
    assert known > 100
    assert sorted(widths)[len(widths) // 2] < 1e-8


def test_the_page_decides_in_doubles_what_is_not_on_the_edge(node):
    """Its answers are those of the whole numbers, which it does not ask away from the edge."""
    given, law = page_law(4)
    exact = float(law.delta_rational(1.0))
    script = """
import { expBelow } from "./ball.js";
import { roughFloor } from "./doubles.js";
import { kindsOf, NORMAL, normalFloor } from "./normal.js";
const kinds = kindsOf(given);
const level = { draw: given.draw.map(BigInt) };
const power = expBelow(1);
const exact = normalFloor(kinds)(level)(power << 32n);
give([...roughFloor(kinds)(level)(Number(power) / 2 ** 128), Number(exact) / 2 ** 96]);
"""
    low, high, found = node(script, given)
    assert low <= found <= high
    assert found == pytest.approx(exact, rel=1e-14)
    assert high - low < 1e-8 * exact


WRONG: dict[str, tuple[str, Any]] = {
    "the weights end too early": ("weights", lambda law: law["weights"][:-1]),
    "the weights end too late": ("weights", lambda law: [*law["weights"], "1"]),
    "rising weights": ("weights", lambda law: law["weights"][::-1]),
    "a weight of 0": ("weights", lambda law: [*law["weights"][:-1], "0"]),
    "a weight above 64 bits": ("weights", lambda law: [str(1 << 64), *law["weights"][1:]]),
    "a number in the place of text": ("weights", lambda law: [1, *law["weights"][1:]]),
    "no dummies": ("centre", lambda law: [0] * len(law["centre"])),
    "a centre is missing": ("centre", lambda law: law["centre"][1:]),
    "a key of another law": ("radius", lambda law: ["1"]),
    "another law": ("law", lambda law: "gaussian"),
}


def refused_by_both(node, whole):  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput) as refused:
        parse(whole)
    assert "\n" not in str(refused.value)
    draft = json.dumps(whole).encode()
    task = PostedTask.post(parse(second(choice(5), centre=1)), Opener(SHUFFLER).public, IDENTITY)
    body = struct.pack("<4sBI", b"SHFT", 2, len(draft)) + draft + task.data[-129:-64]
    data = body + sign(IDENTITY, b"shuffledp/2 posted\0" + body)
    given = {"posted": data.hex(), "id": to_base64(hashlib.sha256(data).digest())}
    return node(READ + "give(await refusal(() => readTask(bytes(given.posted), given.id)));", given) == "format"


@pytest.mark.parametrize("name", WRONG)
def test_a_law_that_is_none_is_refused_by_both(node, name):
    whole = second(choice(5), choice(5), normal=True, levels=LEVELS)
    key, changed = WRONG[name]
    whole["dummies"] |= {key: changed(whole["dummies"])}
    assert refused_by_both(node, whole)


@pytest.mark.parametrize("question", [bits(5), words(65)], ids=["number", "65 words"])
def test_questions_that_normal_dummies_do_not_serve_are_refused_by_both(node, question):
    whole = second(question, centre=1)
    whole["dummies"] = {"law": "normal", "weights": ["9", "3"], "centre": [1]}
    assert refused_by_both(node, whole)
