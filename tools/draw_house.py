"""Draw the rooms of the package and which uses which: docs/figures/house.svg.

Run from the project's root: ``python -m tools.draw_house``; tests/test_architecture.py holds the picture to the code.

A room is a folder of src/shuffledp; the files beside the folders form two more: what everybody may use, and what a
question about privacy is made of. A line leads from a room down to one
that it imports. A line that follows from two others is left out, so that the picture shows the order and no tangle.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path

from tools.count_house import House

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "figures" / "house.svg"
BESIDE = {
    "words": ("errors", "in_words", "params", "progress", "whole_files"),
    "setting": ("ball", "budgets", "dummies", "setting"),
}
"""The files beside the folders, by the room that they form."""
WIDE, HIGH, ACROSS, DOWN, EDGE = 150, 34, 20, 46, 16
"""Sizes of a box, of the gaps between boxes and between rows, and of the margin, in pixels."""


def room_of(module: str) -> str:
    """Return the room of a module; "" for the package's own head, which imports from everywhere."""
    parts = module.split(".")[1:]
    if not parts or parts[0].startswith("__"):
        return ""
    for room, files in BESIDE.items():
        if parts[0] in files:
            return room
    return parts[0]


def rooms(house: House) -> dict[str, set[str]]:
    """Return for each room those that it imports."""
    found: dict[str, set[str]] = {room_of(module): set() for module in house.trees}
    for module, origin in house.arrows:
        found[room_of(module)].add(room_of(origin))
    found.pop("", None)
    return {room: {other for other in others if other not in ("", room)} for room, others in found.items()}


def below(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return for each room all that stand below it, however far."""
    reached: dict[str, set[str]] = {}
    for room in TopologicalSorter(uses).static_order():
        reached[room] = uses[room].union(*(reached[other] for other in uses[room]))
    return reached


def lines(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the lines to draw: those that follow from no two others."""
    reached = below(uses)
    return {room: {o for o in others if not any(o in reached[p] for p in others)} for room, others in uses.items()}


def rows(uses: dict[str, set[str]]) -> list[list[str]]:
    """Return the rooms by height, the lowest first: a room stands one row above the highest that it uses."""
    height: dict[str, int] = {}
    for room in TopologicalSorter(uses).static_order():
        height[room] = 1 + max((height[other] for other in uses[room]), default=-1)
    return [sorted(room for room in height if height[room] == h) for h in range(1 + max(height.values()))]


def picture(uses: dict[str, set[str]]) -> str:
    """Return the picture as SVG."""
    stacked = rows(uses)[::-1]
    most = max(map(len, stacked))
    wide = 2 * EDGE + most * WIDE + (most - 1) * ACROSS
    high = 2 * EDGE + len(stacked) * HIGH + (len(stacked) - 1) * DOWN
    corner = {}
    for i, row in enumerate(stacked):
        left = (wide - len(row) * WIDE - (len(row) - 1) * ACROSS) // 2
        corner |= {room: (left + j * (WIDE + ACROSS), EDGE + i * (HIGH + DOWN)) for j, room in enumerate(row)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img" '
        f'font-family="sans-serif" font-size="13" aria-label="The rooms of the package, those used below their users">',
        f'<rect width="{wide}" height="{high}" fill="#fff"/>',
    ]
    for room, others in sorted(lines(uses).items()):
        x, y = corner[room]
        for other in sorted(others):
            u, v = corner[other]
            parts.append(f'<path d="M{x + WIDE // 2} {y + HIGH}L{u + WIDE // 2} {v}" stroke="#9aa5b1" fill="none"/>')
    for room, (x, y) in sorted(corner.items()):
        parts.append(f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="5" fill="#eef3f8" stroke="#33475b"/>')
        parts.append(f'<text x="{x + WIDE // 2}" y="{y + HIGH // 2 + 5}" text-anchor="middle">{room}</text>')
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(picture(rooms(House())), encoding="utf-8")
