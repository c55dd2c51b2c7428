"""Where the papers fail: claimed, attained, certified, one picture per item."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shuffledp.reproduce import failure_curves, failure_tables, normal_limit
from shuffledp.reproduce import failure_pictures as draw
from shuffledp.reproduce.base import Cell, Outcome, Picture, Progress, Reproduction, Table, silent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADERS = {
    "failures": ("item", "case", "quantity", "value"),
    "failures_curves": ("figure", "series", "x", "y"),
}
Drawing = Callable[["Figure", Table, Table], None]
PICTURES: dict[str, tuple[Drawing, tuple[float, float], str]] = {
    "failures-one-budget": (draw.one_budget, (7.2, 4.2), "Items 1 and 2: central epsilon by local budget"),
    "failures-own-budgets": (draw.own_budgets, (9.6, 4.0), "Items 4 and 5: delta by epsilon, own budgets"),
    "failures-approximate": (draw.approximate, (7.2, 4.0), "Item 6: delta by epsilon, approximate budgets"),
    "failures-renyi": (draw.renyi, (9.6, 3.9), "Item 7: Renyi divergence by order"),
    "failures-training": (draw.training, (9.6, 3.6), "Item 8: claims about training, and the truth"),
    "failures-estimators": (draw.estimators, (9.6, 3.8), "Item 9: what the estimators estimate"),
    "failures-rounds": (draw.rounds, (9.6, 4.0), "Item 10: central epsilon by number of rounds"),
    "failures-pure": (draw.pure, (7.2, 4.0), "Item 11: distance from every pure randomizer"),
}
"""By file name: who draws it from the two tables, its size, what it shows. Item 3 is `gspa-lemma-2`'s picture."""


def run(quick: bool, progress: Progress) -> Outcome:
    """Compute every number; quick leaves out the simulations and takes fewer points of the slow curves."""
    rows: list[tuple[Cell, ...]] = []
    points: list[tuple[Cell, ...]] = []
    total = len(failure_tables.PARTS) + len(failure_curves.PARTS) + 1
    for done, part in enumerate(failure_tables.PARTS):
        rows += part(quick=quick)
        progress((done + 1) / total)
    for done, part in enumerate(failure_curves.PARTS, start=len(failure_tables.PARTS)):
        points += part(quick=quick)
        progress((done + 1) / total)
    failures = Table(HEADERS["failures"], rows)
    curves = Table(HEADERS["failures_curves"], points)
    limit = normal_limit.run(quick, silent)
    pictures = {
        name: Picture(lambda figure, of=drawing: of(figure, failures, curves), size, title)
        for name, (drawing, size, title) in PICTURES.items()
    }
    pictures["failures-normal-limit"] = Picture(
        limit.pictures["gspa-lemma-2"].draw, (7.2, 4.4), "Item 3: distance of the counts from their normal law"
    )
    progress(1.0)
    return Outcome({"failures": failures, "failures_curves": curves}, pictures, caption(quick))


def caption(quick: bool) -> list[str]:
    """Return what is in the pictures."""
    left_out = " This quick variant leaves out the simulations and takes fewer points." if quick else ""
    return [
        "**Computed.** Every place we know of where a number published in one of the two papers is not what a real "
        "protocol does: the number claimed, the number a real protocol attains (exactly, or by an attack), and the "
        f"number that is proved.{left_out} Items are numbered as on the documentation page *Where the papers fail*; "
        "item 12, misprints, needs no picture.",
        "**The papers show** none of these cases; they say that their formulas are approximate.",
        "**Agrees.** The shape: all curves fall with the crowd as the papers say, and Theorem 2 is right in the limit "
        "of many users for one budget.",
        "**Does not**: wherever the dashed claim lies below the solid black curve, it is refuted by a real protocol; "
        "where it lies far above the blue one, it is needlessly large.",
    ]


FAILURES = Reproduction("failures", "both papers", "Where published numbers are not what real protocols do", run, 3.0)
