"""What one machine states another one takes: certified here, and where elementary functions end in other digits.

A processor or a NumPy of its own is played by functions that are off by one unit in the last place, at random.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shuffledp.collection.laws import CROWD_SLACK, FLOOR_SLACK, covers, stated_crowd
from shuffledp.collection.promise import check_crowd, check_floor, crowd_of, floor_of
from tests.collection.tasks import choice, document, number, parse

ROOT = Path(__file__).parents[2]
TASKS = {
    "one question": document(),
    "two questions": document(choice(5, 400), number(dummies=700), delta=3e-7),
    "two answers": document(choice(5, 700), admission="open"),
    "hadamard": document(choice(7, 300, "hadamard:7")),
}
COUNTS = [540, 370, 90]
ELSEWHERE = """
import json, math, sys
import numpy as np

chance = np.random.default_rng(int(sys.argv[1]))

def off(function):
    def one_unit(value, *rest, **named):
        found = function(value, *rest, **named)
        if np.iscomplexobj(found) or named:
            return found
        step = chance.integers(-1, 2, np.shape(found))
        moved = np.where(step == 0, found, np.nextafter(found, np.where(step > 0, np.inf, -np.inf)))
        moved = np.where(np.isfinite(found) & (found != 0.0), moved, found)
        return moved if np.ndim(found) else type(found)(moved)
    return one_unit

for name in ("exp", "expm1", "log", "log1p"):
    setattr(np, name, off(getattr(np, name)))
    setattr(math, name, off(getattr(math, name)))

from shuffledp.collection.promise import crowd_of, floor_of
from shuffledp.collection.task import Draft

told = {}
for name, document in json.load(sys.stdin).items():
    draft = Draft.parse(json.dumps(document).encode())
    told[name] = [floor_of(draft), crowd_of(draft, [540, 370, 90])]
print(json.dumps(told))
"""


@pytest.fixture(scope="module", params=[1, 2])
def elsewhere(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Floors and crowds of the tasks, certified on another machine."""
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(request.param)],
        input=json.dumps(TASKS),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.costly("1-one question", "1-two questions", "2-one question")
@pytest.mark.parametrize("name", TASKS)
def test_numbers_of_two_machines_are_within_the_slack(elsewhere, name):
    asked = parse(TASKS[name])
    floors, crowds = elsewhere[name]
    for mine, other in zip(floor_of(asked), floors, strict=True):
        assert covers(mine, other, FLOOR_SLACK)
        assert covers(other, mine, FLOOR_SLACK)
    for mine, other in zip(crowd_of(asked, COUNTS), crowds, strict=True):
        assert mine is not None
        assert covers(mine, other, CROWD_SLACK)
        assert covers(other, mine, CROWD_SLACK)


@pytest.mark.parametrize("name", TASKS)
def test_a_draft_of_another_machine_is_posted_here(elsewhere, name):
    """Promised to the last digit there, and the crowd as it is stated there."""
    floors, crowds = elsewhere[name]
    whole = json.loads(json.dumps(TASKS[name]))
    for level, floor, crowd in zip(whole["levels"], floors, crowds, strict=True):
        level["promise"], level["crowd"] = floor, min(stated_crowd(crowd), floor)
    check_floor(parse(whole))
    check_crowd(parse(whole))
    for level, crowd in zip(whole["levels"], crowds, strict=True):
        level["crowd"] = crowd  # as 0.2.0 stated it, without room
    check_crowd(parse(whole))
