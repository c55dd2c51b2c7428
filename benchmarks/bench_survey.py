"""What answers of a small survey are worth: half-widths and coverage of simulated collections, others beside.

    python benchmarks/bench_survey.py [--runs 500] [--lines best,limit] [--people 100,...] [--solve 5:1] [--markdown]

One question of 5 answers, delta 1e-6. Every line of `LINES` is drafted for every number of people, by the functions
that make drafts, with the dummies that its promise needs; then collections are simulated, in which half of the people
give the first answer: reports and dummies are drawn, counted and estimated by the real functions, and the 95 %
intervals of all five answers are compared with the records. Sealing and shuffling are left out, which change no count.
Printed are half-widths of the first answer, in points:

- derived: as derived before anything was built (`LINES`), two digits: sqrt((4.6/promise)^2 + 3.84 n L)/n with L the
  variance that the local noise of one person adds at a share of 1/2, of uniform dummies 1.96 standard errors;
- by law: the mean length of the intervals by the law of the count, which is what is predicted;
- found: the mean length in the simulation, and its quotient by the predicted one;
- why: what the derived number leaves out, where found and derived differ by more than rounding (see `why`);
- planned: what `task plan` promises, at the worst answers, those given by up to 7 of 8 people;
- geometric, LNF: without local noise, for each share by itself. "Geometric" is the central two-sided geometric
  mechanism of epsilon/2 (replacing a person moves two counts by one), added by somebody who sees all answers; the local
  noise-free shuffle protocol of Murakami, Sei and Eriguchi (2025) adds dummies of that law to each answer where its
  sampling rate is 1, up to the cut at 0, so it has the same half-width and k times the mean number of one answer.

The exit status is 1 if a line's coverage of all intervals is below 94 %, if found and predicted differ by more than
3 %, if `task plan` promised less, or if nothing explains a difference from the derived number. Where intervals cover
95 %, the coverage of 500 collections falls below 94 % by chance in 1 of 100 lines if the five intervals of a collection
are independent, and in 15 if they hold or fail together. So such a line is simulated again, with ten times as many
collections, which alone decide: by chance they are below in 6 lines of 10,000 at most, and both in 1 of 10,000.

Before the table, which `--runs 0` leaves out, are printed: CPU seconds to decide whether the dummies of 32 questions of
5 answers, and of 3, 4, ..., 34 answers, keep promise 2, under a ball law and under a normal one, in a process and on a
survey page that decide for the first time (the page needs node); CPU seconds to draw and seal the dummies of 10
questions of 5 answers; and the variance V of the dummies in one cell, of the ball law that a promise needs, of the
best law (a linear programme over all laws of the numbers of dummies), and of the geometric one.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from shuffledp.ball import BallDummies
from shuffledp.collection.batch import AnalyzerKey
from shuffledp.collection.draw import Family
from shuffledp.collection.estimates import Tallied, count_law, estimate_question, scaled_counts, slopes_of
from shuffledp.collection.kinds import half_width
from shuffledp.collection.laws import (
    NormalSearch,
    TaskLaw,
    drawn_columns,
    floor_of_columns,
    law_if_any,
    needed_ball,
    seal_dummies,
    written_law,
)
from shuffledp.collection.planner import Z95
from shuffledp.collection.promise import LARGEST_OFFERED, ONE_SHUFFLER, check_floor, dummies_for
from shuffledp.collection.sealing import Opener, new_identity, new_private
from shuffledp.collection.survey import draft_of_survey
from shuffledp.collection.survey_page import modules
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.dummies import StatedCells
from shuffledp.numerics.floats import UNBOUNDED
from shuffledp.numerics.randomness import simulation_random

DELTA = 1e-6
CHOICES = 5
PEOPLE = (100, 200, 500, 1000, 5000)
DEFAULT = ((0.5, 0.54, 0.1), (1.0, 0.37, 0.25), (4.0, 0.09, 1.0))
"""Budget, share of the people and promise of each level that surveys had by default in version 0.2.0."""
LINES = (
    ("0.2.0's default", 1.0, True, "default:57 default:34 default:19 default:12.5 default:5.3"),
    ("local noise alone at 1", 1.0, False, "1:33 1:23 1:15 1:10 1:4.6"),
    ("local noise alone at 0.25", 0.25, False, "0.25:150 0.25:106 0.25:67 0.25:47 0.25:21"),
    ("best at 0.1", 0.1, False, "1.5:50 2:25 3:9.8 3.5:4.9 5:.99"),
    ("best at 0.25", 0.25, False, "3:20 3.5:10 5:3.9 5:2.0 7:.39"),
    ("best at 0.5", 0.5, False, "5:9.6 5:4.9 6:2.0 7:.97 8:.20"),
    ("best at 1", 1.0, False, "6:4.9 7:2.4 7:1.0 8:.49 10:.10"),
    ("best at 2", 2.0, False, "7:2.5 8:1.2 9:.49 10:.24 11:.05"),
    ("limit at 0.1", 0.1, False, "30:46 30:23 30:9.2 30:4.6 30:.92"),
    ("limit at 0.25", 0.25, False, "30:18 30:9.2 30:3.7 30:1.8 30:.37"),
    ("limit at 0.5", 0.5, False, "30:9.2 30:4.6 30:1.8 30:.92 30:.18"),
    ("limit at 1", 1.0, False, "30:4.6 30:2.3 30:.92 30:.46 30:.09"),
    ("limit at 2", 2.0, False, "30:2.3 30:1.2 30:.46 30:.23 30:.05"),
    ("epsilon0 4 at 1", 1.0, False, "4:6.3 4:3.8 4:2.1 4:1.4 4:.61"),
    ("uniform epsilon0 4 at 1", 1.0, True, "4:12 4:6.4 4:3.0 4:1.8 4:.65"),
    ("epsilon0 4 at 0.25", 0.25, False, "4:19 4:9.7 4:4.2 4:2.3 4:.71"),
    ("uniform epsilon0 4 at 0.25", 0.25, True, "4:39 4:19 4:7.9 4:4.1 4:.98"),
)
"""Line, promise, whether the dummies are uniform, and for each of `PEOPLE` the local budget and the half-width.

The half-widths are those of the main table of the page on which this accuracy was derived (Accuracy.md, section 1).
"Best" is the least local budget within 10 % of the limit, "limit" is without local noise: at a budget of 30 one report
in 10^12 is not the answer.
"""
SOLVED = "2:0.25,2:1,2:2,3:0.25,3:1,3:2,4:1,5:2"
"""Answers and promises of which the best law is found in seconds; 5:1 takes minutes."""
LEAST, TOLERANCE, AGAIN = 0.94, 0.03, 10
MOST_INSIDE = 25.0
"""Half-width (points) from which on an interval around a share of 1/2 often ends at 0 or 1."""
AT_ONCE = 1 << 20
"""Number of reports that are drawn at a time."""
SURVEY = """
title = "Simulated"
organizer = "nobody"
contact = "nobody@example.org"
privacy_notice = "https://example.org/privacy"
delta = 1e-6
opens = 2030-01-01T08:00:00Z
closes = 2030-01-31T08:00:00Z
expires = 2030-02-28T08:00:00Z
accept_one_shuffler = true
[operated_by]
analyzer = "one"
shuffler = "another"
page = "another"
{questions}{levels}"""
LEVEL = """
[[levels]]
name = "level {place}"
epsilon0 = {epsilon0}
promise = {promise}
planned = 1000
"""


@dataclass(frozen=True)
class Setting:
    """Collections of one line of the table, for one number of people.

    Parameters
    ----------
    name : str
        The line.
    promise : float
        Promise to the level with the largest local budget.
    n : int
        Number of people.
    levels : tuple of (float, float, float)
        Local budget, share of the people and promise of each level, ascending.
    derived : str
        Half-width in points as it was derived, with its digits; see `LINES`.
    uniform : bool
        Whether the dummies are uniform ones (version 1 of the task); otherwise they are those of a ball law.
    """

    name: str
    promise: float
    n: int
    levels: tuple[tuple[float, float, float], ...]
    derived: str
    uniform: bool = False

    @property
    def draft(self) -> Draft:
        """The draft of such a collection."""
        return drafted(tuple((epsilon0, promise) for epsilon0, _, promise in self.levels), uniform=self.uniform)

    def counts(self, draft: Draft) -> tuple[int, ...]:
        """The number of people at each level of the draft, which may have a level that nobody takes."""
        planned = {epsilon0: share for epsilon0, share, _ in self.levels}
        shares = [round(1000 * planned.get(level.epsilon0, 0.0)) for level in draft.levels]
        return tuple(scaled_counts(shares, self.n))


def settings(names: Sequence[str] = (), people: Sequence[int] = PEOPLE) -> Iterator[Setting]:
    """Return the settings of the lines whose name begins with one of these, or of all lines."""
    for name, promise, uniform, cells in LINES:
        if not names or name.startswith(tuple(names)):
            for n, cell in zip(PEOPLE, cells.split(), strict=True):
                budgets, _, derived = cell.rpartition(":")
                levels = DEFAULT if budgets == "default" else ((float(budgets), 1.0, promise),)
                if n in people:
                    yield Setting(name, promise, n, levels, derived, uniform)


@lru_cache(maxsize=64)
def drafted(levels: tuple[tuple[float, float], ...], questions: int = 1, *, uniform: bool = False) -> Draft:
    """Draft a survey with levels (local budget, promise), ascending, and the dummies that keep the promises.

    A survey needs a level of at most 4, and its organizer has to accept one shuffler for budgets above; budgets above 8
    are not offered. A draft with such a budget is that of 8 with other numbers, and so is one with uniform dummies.
    """
    names = ", ".join(f'"answer {place + 1}"' for place in range(CHOICES))
    asked = f'[[questions]]\ntext = "Which?"\nchoices = [{names}]\n' * questions
    offered = [(min(epsilon0, LARGEST_OFFERED), promise) for epsilon0, promise in levels]
    if offered[0][0] > ONE_SHUFFLER:
        offered = [(ONE_SHUFFLER, offered[0][1]), *offered]
    stated = "".join(LEVEL.format(place=place, epsilon0=e, promise=own) for place, (e, own) in enumerate(offered))
    text = SURVEY.format(questions=asked, levels=stated)
    draft = draft_of_survey(text.encode(), AnalyzerKey(new_private(), new_identity(), bytes(32)))
    most = levels[-1][0]
    if most <= LARGEST_OFFERED and not uniform:
        return draft
    whole = json.loads(draft.data)
    draw = [str(question.family.threshold(most)) for question in draft.questions]
    whole["levels"][-1] |= {"epsilon0": most, "draw": draw}
    if uniform:
        whole["version"] = 1
        del whole["dummies"]
        whole["questions"] = [each | {"dummies": {"law": "uniform", "count": 0}} for each in whole["questions"]]
        for question, dummies in zip(whole["questions"], dummies_for(*needs(parsed(whole))), strict=True):
            question["dummies"]["count"] = dummies.count
    else:
        law = law_if_any(*needs(parsed(whole)))
        assert law is not None, "no law keeps this promise"
        whole["dummies"] = written_law(law)
    made = parsed(whole)
    check_floor(made)
    return made


def needs(draft: Draft) -> tuple[tuple[tuple[float, float], ...], tuple[Family, ...], float]:
    """Return what a law of dummies must keep: budget and promise of each level, the columns' families, delta."""
    levels = tuple((level.epsilon0, level.promise) for level in draft.levels)
    return levels, tuple(column.family for column in draft.columns), draft.delta


def parsed(whole: dict[str, object]) -> Draft:
    """Return the draft of a document."""
    return Draft.parse(json.dumps(whole).encode())


class Found(NamedTuple):
    """What simulated collections found: the half-width of the first answer, and coverages of all and of the least."""

    half_width: float
    coverage: float
    lowest: float


def simulated(setting: Setting, runs: int, seed: int) -> Found:
    """Simulate collections of one setting: reports and dummies are drawn, counted and estimated by the real functions.

    Half of the people give the first answer, the others in equal parts the other ones. Reports of many collections are
    drawn at a time; they are not sealed, which changes nothing in them.
    """
    draft, n, k = setting.draft, setting.n, CHOICES
    family, counts = draft.questions[0].family.library(), setting.counts(draft)
    random, rng = simulation_random(seed), np.random.default_rng(seed)
    records = np.concatenate((np.zeros(n // 2, dtype=np.int64), 1 + np.arange(n - n // 2) % (k - 1)))
    budgets = np.repeat(slopes_of(draft, 0).budgets, counts)
    true = np.bincount(records, minlength=k) / n
    width, covered, left = 0.0, np.zeros(k), runs
    while left:
        some = min(left, max(1, AT_ONCE // n))
        left -= some
        given = rng.permuted(np.tile(records, (some, 1)), axis=1)
        sent = family.randomize(given.ravel(), np.tile(budgets, some), random).reshape(some, n)
        for reports in sent:
            (dummies,) = drawn_columns(draft, random)
            rows = np.concatenate((reports, np.array(dummies, dtype=np.int64)))
            low, high = estimate_question(draft, 0, [Tallied(rows, counts)]).confidence_interval(0.95)
            width += (high[0] - low[0]) / 2.0
            covered += (low <= true) & (true <= high)
    return Found(width / runs, float(covered.mean() / runs), float(covered.min() / runs))


def expected_half_width(setting: Setting) -> float:
    """Return half the mean length of the intervals of an answer of half of the people, by the law of its count."""
    draft = setting.draft
    law = count_law(draft.questions[0], slopes_of(draft, 0), setting.counts(draft))
    start, chances = law.chances(setting.n // 2)
    likely = np.flatnonzero(chances > 1e-4)
    ends = np.array([law.interval(start + int(place), 0.05) for place in likely])
    return float(chances[likely] @ (ends[:, 1] - ends[:, 0]) / chances[likely].sum() / 2.0)


PAGE = """
import { readFileSync } from "node:fs";
import { checkPromises } from "./ball.js";
const task = JSON.parse(readFileSync(0, "utf8"));
for (const level of task.levels) level.draw = level.draw.map(BigInt);
const start = process.cpuUsage();
checkPromises(task);
const { user, system } = process.cpuUsage(start);
console.log((user + system) / 1e6);
"""


def certifying(epsilon0: float) -> None:
    """Print the CPU seconds to decide about 32 questions at promise 2, of equal and different sizes, by each law."""
    for name, sizes in (("of 5 answers", [5] * 32), ("of 3 to 34 answers", list(range(3, 35)))):
        families = tuple(Family(f"krr:{k}", k) for k in sizes)
        keep = tuple(family.threshold(epsilon0) for family in families)
        ball = needed_ball([(epsilon0, 2.0)], families, DELTA)
        normal = NormalSearch(families, ((2.0, keep),), DELTA, 1).smallest_law()
        assert normal is not None
        for law, fresh in (  # a law of which nothing is remembered
            (ball, BallDummies(ball.columns, (*ball.radius, 0), ball.centre)),
            (normal, tuple(StatedCells(cells.answers, cells.side[:-1]) for cells in normal)),
        ):
            start = time.process_time()
            floor_of_columns(fresh, keep, 1, UNBOUNDED).keeps(2.0, DELTA)
            took = time.process_time() - start
            page = on_page(law, families, keep, epsilon0)
            print(
                f"floor of 32 questions {name}, {'ball' if law is ball else 'normal'}: {took:.3f} s, on the page "
                + ("not timed without node" if page is None else f"{page:.3f} s")
            )


def on_page(law: TaskLaw, families: tuple[Family, ...], keep: tuple[int, ...], epsilon0: float) -> float | None:
    """Return the CPU seconds in which a page that has just been opened finds promise 2 kept; None without node."""
    node = shutil.which("node")
    if node is None:
        return None
    centres = law.centre if isinstance(law, BallDummies) else [cells.middle for cells in law]
    columns = [
        {"question": place, "family": {"kind": "krr", "records": k, "reports": k, "cells": k, "pieces": 1}, "centre": h}
        for place, (k, h) in enumerate(zip((family.records for family in families), centres, strict=True))
    ]
    level = {"epsilon0": epsilon0, "promise": 2.0, "draw": [str(each) for each in keep]}
    task = {"version": 2, "delta": DELTA, "admission": "codes", "dummies": written_law(law), "columns": columns}
    with tempfile.TemporaryDirectory() as folder:
        for name, source in modules().items():
            Path(folder, f"{name}.js").write_text(source, encoding="utf-8")
        Path(folder, "package.json").write_text('{"type": "module"}', encoding="utf-8")
        Path(folder, "timed.js").write_text(PAGE, encoding="utf-8")
        given = json.dumps(task | {"levels": [level]})
        command = [node, str(Path(folder, "timed.js"))]
        return float(subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout)


def closing(epsilon0: float) -> tuple[float, int, str]:
    """Return the CPU seconds to draw and seal dummies of 10 questions of 5 answers, how many these are, their law."""
    task = PostedTask.post(drafted(((epsilon0, 2.0),), 10), Opener(new_private()).public, new_identity())
    start = time.process_time()
    sealed = sum(len(reports) for _, reports in seal_dummies(task, simulation_random(26)))
    return time.process_time() - start, sealed, task.draft.questions[0].dummies.law


def geometric(epsilon: float) -> tuple[int, int, float]:
    """Return the 97.5 % point of two-sided geometric noise of epsilon/2, where its tail falls below delta/2, and V."""
    ratio = math.exp(-epsilon / 2.0)

    def least(tail: float) -> int:
        """The least t with P(noise > t) = ratio^(t + 1)/(1 + ratio) <= tail."""
        return max(0, math.ceil(math.log(tail * (1.0 + ratio)) / math.log(ratio)) - 1)

    return least(0.025), least(DELTA / 2.0), 2.0 * ratio / (1.0 - ratio) ** 2


def orbits(k: int, reach: int) -> dict[tuple[int, ...], int]:
    """Return the vectors of k whole cells that add up to 0, up to order and sign, and how many each stands for.

    Their positive cells add up to at most ``reach``.
    """

    def parts(whole: int, most: int, largest: int) -> Iterator[tuple[int, ...]]:
        """All ways to write a whole number as a sum of at most so many positive parts, descending."""
        if not whole:
            yield ()
        for first in range(min(whole, largest) if most else 0, 0, -1):
            for rest in parts(whole - first, most - 1, first):
                yield (first, *rest)

    found = Counter[tuple[int, ...]]()
    for total in range(reach + 1):
        for up in parts(total, k - 1, total):
            for down in parts(total, k - len(up), total):
                z = (*(-v for v in down), *(0,) * (k - len(up) - len(down)), *up)
                found[orbit(z)] += orders(z)
    return found


def orbit(z: Sequence[int]) -> tuple[int, ...]:
    """Return the vector that stands for all orders of the cells and both signs."""
    return min(tuple(sorted(z)), tuple(sorted(-v for v in z)))


def orders(z: Sequence[int]) -> int:
    """Return the number of orders of the cells."""
    return math.factorial(len(z)) // math.prod(map(math.factorial, Counter(z).values()))


def least_variance(k: int, reach: int, rate: float, delta: float) -> float:
    """Return the least variance of a cell under any law of z within a reach, by a linear programme.

    Averaging a law over all orders of the cells and both signs keeps its variance and its delta (both are convex), so
    the variables are the masses of the orbits, and for each pair of orbits that a report joins by how much the mass
    there exceeds e^rate times the other's. All masses are in units of delta, which the solver's tolerances fit.

    Parameters
    ----------
    k : int
        Number of cells.
    reach : int
        Largest sum of the positive cells.
    rate, delta : float
        Epsilon and delta that two reports without local noise keep.
    """
    sizes = orbits(k, reach)
    places = {z: place for place, z in enumerate(sizes)}
    pairs = Counter[tuple[tuple[int, ...], tuple[int, ...]]]()
    for name in sizes:
        for z in {name, tuple(sorted(-v for v in name))}:
            for one, two in {(i, j): None for i in range(k) for j in range(k) if i != j}:
                moved = list(z)
                moved[one], moved[two] = moved[one] + 1, moved[two] - 1
                pairs[name, orbit(moved)] += orders(z)
    each = k * (k - 1)  # which two cells a report moves: one pair of them counts
    rows = [(row, places[one], times / each / sizes[one]) for row, ((one, _), times) in enumerate(pairs.items())]
    rows += [
        (row, places[two], -math.exp(rate) * times / each / sizes[two])
        for row, ((_, two), times) in enumerate(pairs.items())
        if two in places
    ]
    m, many = len(sizes), len(pairs)
    rows += [(row, m + row, -1.0) for row in range(many)] + [(many, m + row, 1.0) for row in range(many)]
    where, column, value = zip(*rows, strict=True)
    below = csr_array((value, (where, column)), shape=(many + 1, m + many))
    equal = csr_array(([1.0] * m, ([0] * m, range(m))), shape=(1, m + many))
    cost = np.zeros(m + many)
    cost[:m] = [sum(v * v for v in z) / k * delta for z in sizes]
    bound = np.append(np.zeros(many), 1.0)
    precise = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
    found = linprog(cost, A_ub=below, b_ub=bound, A_eq=equal, b_eq=[1.0 / delta], method="highs", options=precise)
    if found.status:
        raise RuntimeError(f"the linear programme of {k} cells and reach {reach} was not solved: {found.message}")
    return float(found.fun)


def variances(solved: str) -> None:
    """Print V of the ball law that a promise needs without local noise, of the best law, and of geometric noise.

    Parameters
    ----------
    solved : str
        Numbers of answers and promises, such as `SOLVED`.
    """
    print("answers, promise: dummies, V of the ball; least V, quotient; V of geometric and LNF, LNF's dummies")
    for choices, promise in ((int(k), float(own)) for k, _, own in (word.partition(":") for word in solved.split(","))):
        law = BallDummies.of_promise([f"choice:{choices}"], [(promise, ())], DELTA)
        least = least_variance(choices, law.largest + 3, promise, DELTA)
        _, cut, other = geometric(promise)
        print(
            f"{choices:7}, {promise:7g}: {law.count:7}, {law.cell_variance(0):13.5g}; {least:7.5g}, "
            f"{law.cell_variance(0) / least:8.5f}; {other:20.5g}, {choices * cut:13}"
        )


def why(setting: Setting, found: float) -> str | None:
    """Return why a half-width differs from the derived one by more than rounding.

    Parameters
    ----------
    setting : Setting
        The setting.
    found : float
        Half-width found, in points.

    Returns
    -------
    str or None
        Empty where they agree; None if none of these reasons explains the difference. "range": shares end at 0 and 1,
        and the interval with them. "exact": intervals follow from the exact law of a whole number of reports; the
        derived number adds half-widths of noise and dummies in squares, and 4.6/promise is no whole number. It is off
        by half a report at most, which stands for 1/(2 slope) people. "worst": the derived number is that of the
        answers with most noise (7 of 8 people give them), as `task plan` has it, not that at a share of 1/2.
    """
    draft, derived = setting.draft, float(setting.derived)
    half = 0.5 * 10.0 ** -len(setting.derived.partition(".")[2])
    if abs(found - derived) <= half:
        return ""
    law = count_law(draft.questions[0], slopes_of(draft, 0), setting.counts(draft))
    report = 50.0 / law.slope
    if abs(found - derived) <= half + report:
        return "exact"
    plain, worst = (100.0 * Z95 * math.sqrt(law.variance(share)) / law.slope for share in (0.5, law.worst))
    explained = plain < derived - half and abs(worst - derived) <= half + report and abs(plain - found) <= report
    if explained:
        return "worst"
    return "range" if found < derived and derived > MOST_INSIDE else None


def line(setting: Setting, runs: int, seed: int) -> tuple[tuple[str, ...], bool]:
    """Return a line of the table, and whether it is as it should be."""
    draft = setting.draft
    predicted, planned = expected_half_width(setting), half_width(draft, 0, setting.counts(draft))
    found, again = simulated(setting, runs, seed), ""
    covers = found.coverage >= LEAST
    if not covers:
        more = simulated(setting, AGAIN * runs, seed + 1_000_000)
        covers, again = more.coverage >= LEAST, f" ({more.coverage:.3f})"
    quotient, reason = found.half_width / predicted, why(setting, 100.0 * found.half_width)
    good = covers and abs(quotient - 1.0) <= TOLERANCE and found.half_width <= planned * (1.0 + TOLERANCE)
    reach, cut, _ = geometric(setting.promise)
    cells = (
        setting.name,
        f"{setting.n:,}",
        "/".join(f"{epsilon0:g}" for epsilon0, *_ in setting.levels),
        f"{draft.questions[0].dummies.count:,}",
        setting.derived,
        f"{100.0 * predicted:.3g}",
        f"{100.0 * found.half_width:.3g}",
        f"{quotient:.3f}",
        f"{found.coverage:.3f}{again}",
        f"{found.lowest:.3f}",
        "differs" if reason is None else reason,
        f"{100.0 * planned:.3g}",
        f"{min(100.0 * reach / setting.n, 50.0):.3g}",
        f"{CHOICES * cut:,}",
    )
    return cells, good and reason is not None


COLUMNS = (
    ("line, at promise", 26),
    ("people", 6),
    ("epsilon0", 8),
    ("dummies", 7),
    ("derived", 7),
    ("by law", 6),
    ("found", 6),
    ("quotient", 8),
    ("coverage", 13),
    ("lowest", 6),
    ("why", 7),
    ("planned", 7),
    ("geometric, LNF", 14),
    ("LNF's dummies", 13),
)


def table(chosen: Sequence[Setting], runs: int, seed: int, *, markdown: bool = False) -> list[Setting]:
    """Print the table; return the settings of the lines that are not as they should be."""

    def show(cells: Sequence[str]) -> None:
        if markdown:
            print(f"| {' | '.join(cells)} |", flush=True)
        else:
            print("  ".join(cell.rjust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True)), flush=True)

    show([name for name, _ in COLUMNS])
    if markdown:
        show(["---"] * len(COLUMNS))
    wrong, every = list[Setting](), list(settings())
    for setting in chosen:
        cells, good = line(setting, runs, seed + every.index(setting))  # the same alone as in the whole table
        show(cells)
        if not good:
            wrong.append(setting)
    return wrong


def main() -> int:
    """Time, simulate, and print one line a setting; return 1 if a line is not as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--lines", default="", help="beginnings of names of lines, with a comma between them")
    parser.add_argument("--people", default=",".join(map(str, PEOPLE)))
    parser.add_argument("--solve", default=SOLVED, help="answers:promise, whose best law is found")
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--markdown", action="store_true")
    typed = parser.parse_args()
    certifying(4.0)
    took, many, law = closing(4.0)
    print(f"{many:,} {law} dummies of 10 questions of 5 answers drawn and sealed in {took:.2f} s")
    variances(typed.solve)
    if not typed.runs:
        return 0
    names = [name for name in typed.lines.split(",") if name]
    chosen = list(settings(names, [int(word) for word in typed.people.split(",")]))
    if not chosen:
        parser.error(f"no line has such a name and number of people; lines: {', '.join(name for name, *_ in LINES)}")
    wrong = table(chosen, typed.runs, typed.seed, markdown=typed.markdown)
    for setting in wrong:
        print(f"{setting.name}, {setting.n} people: not as predicted", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
