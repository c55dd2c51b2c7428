"""docs/architecture.md names each room of the package, and its picture is the one that the imports draw."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from tools.count_house import House
from tools.draw_house import BESIDE, PICTURE, below, lines, picture, rooms, rows

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@cache
def imported() -> dict[str, set[str]]:
    """Rooms that each room imports; read once for all tests."""
    return rooms(House())


ROOMS = PAGE[PAGE.index("## The rooms") : PAGE.index("## Three ways")]


@pytest.mark.costly
def test_the_page_has_a_paragraph_for_each_room():
    named = {
        room for line in re.findall(r"^\*\*\w+.*", ROOMS, re.MULTILINE) for room in re.findall(r"\*\*(\w+)\*\*", line)
    }
    assert named == set(imported())


def test_the_page_names_every_file_that_stands_beside_the_folders():
    beside = {path.stem for path in (ROOT / "src" / "shuffledp").glob("*.py") if not path.stem.startswith("__")}
    assert beside == {file for files in BESIDE.values() for file in files}
    for file in beside:
        assert f"`{file}.py`" in ROOMS, file


def test_what_the_page_points_to_is_there():
    for word in re.findall(r"`([\w./-]+)`", PAGE):
        places = (ROOT / word, ROOT / "src" / "shuffledp" / word, ROOT / "tests" / "accounting" / word)
        inside = (ROOT / "src" / "shuffledp" / "accounting" / word, ROOT / "src" / "shuffledp" / "collection" / word)
        if "/" in word or word.endswith((".py", ".md")):
            assert any(place.exists() for place in (*places, *inside)), word


def test_the_picture_is_the_one_that_the_imports_draw():
    assert PICTURE.read_text(encoding="utf-8") == picture(imported()), "run python -m tools.draw_house"


def test_a_line_that_follows_from_two_others_is_left_out():
    uses = {"top": {"middle", "base"}, "middle": {"base"}, "base": set[str]()}
    assert lines(uses) == {"top": {"middle"}, "middle": {"base"}, "base": set()}
    assert below(uses)["top"] == {"middle", "base"}
    assert rows(uses) == [["base"], ["middle"], ["top"]]
    drawn = picture(uses)
    assert drawn.count("<path") == 2
    assert all(f">{room}</text>" in drawn for room in uses)
