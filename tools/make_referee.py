"""Write docs/referee.md: formulas that packages ship for shuffling, beside attained and certified values.

    python -m tools.make_referee

Every formula is written here anew from what the cited line computes; no code is copied. tests/test_referee_page.py
checks that the page is up to date.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

import shuffledp as sdp

PAGE = Path(__file__).resolve().parent.parent / "docs" / "referee.md"
BEGIN, END = "<!-- begin of what tools/make_referee.py writes -->", "<!-- end -->"
DELTA = 1e-6
CELLS = [(k, epsilon0, n) for k in (4, 10) for epsilon0 in (1.0, 2.0, 4.0) for n in (1_000, 10_000)]
PLAIN = [(1.0, 1_000), (1.0, 10_000), (4.0, 10_000), (8.0, 10_000), (8.0, 1_000_000)]
PEERS = [(1.0, 1_000), (2.0, 10_000), (4.0, 10_000)]


def setting(epsilon0: float, n: int, randomizer: sdp.RandomizedResponse | None = None) -> sdp.Setting:
    """One round of shuffled reports of n people with one budget; "any" if no randomizer is named."""
    law = "any" if randomizer is None else randomizer
    return sdp.Setting(sdp.Budgets([epsilon0], [n]), law, "reports", "replace-one")


def epsilon(key: str, epsilon0: float, n: int, randomizer: sdp.RandomizedResponse | None = None) -> sdp.Interval:
    """Enclose the epsilon of one theorem at DELTA."""
    return sdp.bounds[key].profile(setting(epsilon0, n, randomizer), epsilon0).epsilon(DELTA)


def square_root(epsilon0: float, n: int) -> float:
    """epsilon0 sqrt(log(1/delta)/n)."""
    return epsilon0 * math.sqrt(math.log(1.0 / DELTA) / n)


def logarithm(epsilon0: float, n: int) -> float:
    """(1 - 1/n) log(1 + (e^epsilon0 - 1)/n) + epsilon0/n."""
    return (1.0 - 1.0 / n) * math.log1p(math.expm1(epsilon0) / n) + epsilon0 / n


def decomposed(epsilon0: float, n: int) -> float:
    """Epsilon of (1/n) E(G_1 + ... + G_n)_+ for one bit, atoms rounded up to a grid of (e^epsilon0 - 1)/1200."""
    ratio, chance = math.exp(epsilon0), 2.0 / (1.0 + math.exp(epsilon0))
    step, spread = (ratio - 1.0) / 1200.0, 9.0 * math.sqrt(n * chance)
    told = np.arange(max(0, int(n * chance - spread)), min(n, int(n * chance + spread)) + 1)[:, None]
    first = np.arange(int(told[-1, 0]) + 1)[None, :]
    weights = binom.pmf(told, n, chance) * binom.pmf(first, told, 0.5) / n

    def excess(eps: float) -> float:
        atoms = [math.ceil(atom / step) * step for atom in (ratio - math.exp(eps), 1.0 - ratio * math.exp(eps))]
        return float((weights * np.maximum(atoms[0] * first + atoms[1] * (told - first), 0.0)).sum()) - DELTA

    found: float = brentq(excess, 0.01 * epsilon0, 0.9 * epsilon0, xtol=1e-7)  # pyright: ignore[reportAssignmentType]
    return found


def judged(claimed: sdp.Interval, attained: float, certified: float) -> str:
    """Say what an enclosed claim of an upper bound is worth."""
    if claimed.upper >= attained:
        return "holds" if claimed.lower >= certified else "not refuted"
    more = attained / claimed.upper
    how_much = f"{100 * (more - 1):.2g} % more" if more < 2.0 else f"{more:.3g} times as much"
    return f"**too small**: {how_much} is attained"


def plain_rows() -> Iterator[str]:
    """Rows about ShuffleModelDP."""
    for epsilon0, n in PLAIN:
        law = sdp.RandomizedResponse(2)
        attained, certified = epsilon("count-exact", epsilon0, n, law).lower, epsilon("clones", epsilon0, n).upper
        claimed = min(square_root(epsilon0, n), logarithm(epsilon0, n))
        parts = f"{logarithm(epsilon0, n):.4g}, {square_root(epsilon0, n):.4g}"
        yield (
            f"| {epsilon0:g} | {n:,} | {parts} | {claimed:.4g} | {attained:.4g} | {certified:.4g} | "
            f"{judged(sdp.Interval(claimed, claimed), attained, certified)} |"
        )


def categories_rows() -> Iterator[str]:
    """Rows about the variation-ratio bound of k-ary randomized response: the law of two counts, exactly."""
    for k, epsilon0, n in CELLS:
        law = sdp.RandomizedResponse(k)
        claimed = epsilon("krr-exact", epsilon0, n, law)
        attained = epsilon("reports-exact", epsilon0, n, law).lower
        certified = epsilon("blanket", epsilon0, n, law).upper
        yield (
            f"| {k} | {epsilon0:g} | {n:,} | {claimed.upper:.6f} | {attained:.6f} | {certified:.6f} | "
            f"{judged(claimed, attained, certified)} |"
        )


def peer_rows() -> Iterator[str]:
    """Rows about formulas that hold."""
    for epsilon0, n in PEERS:
        law = sdp.RandomizedResponse(2)
        known = [epsilon(key, epsilon0, n).upper for key in ("balle19-bennett", "clones-2022", "clones")]
        bit = epsilon("count", epsilon0, n, law).upper
        attained = epsilon("count-exact", epsilon0, n, law).lower
        published = [*known[:2], decomposed(epsilon0, n), known[2]]
        yield f"| {epsilon0:g} | {n:,} | {' | '.join(f'{e:.4g}' for e in [*published, bit, attained])} |"


def generated() -> str:
    """Return the tables of the page."""
    return "\n".join([
        "### AiDotNet: ShuffleModelDP", "",
        "| local epsilon | n | its two formulas | its claim | attained | certified, any randomizer | verdict |",
        "|---|---|---|---|---|---|---|", *plain_rows(), "",
        "### wangsw/PrivacyAmplification: k-ary randomized response", "",
        "| k | epsilon0 | n | its claim | attained | certified | verdict |",
        "|---|---|---|---|---|---|---|", *categories_rows(), "",
        "### Formulas that hold", "",
        "| epsilon0 | n | Balle et al., Bennett | Apple, numerical | Su et al., one bit | clones, certified | one bit, "
        "certified | one bit, attained |",
        "|---|---|---|---|---|---|---|---|", *peer_rows(),
    ])  # fmt: skip


def page(text: str) -> str:
    """Return a page with its generated part written anew."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{generated()}\n\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
