"""What answers of a small survey are worth: half-widths and coverage of simulated collections, others beside.

    python benchmarks/bench_survey.py [--runs 500] [--choices 5] [--epsilon0 4] [--promises 0.25,1] [--people 100,...]

One question of so many answers, one level, delta 1e-6. A collection is drafted from a survey.toml by the real
functions, so it has the dummies that its promise needs; then, for every number of people, reports of random records and
dummies are drawn, estimated by `estimate_question`, and the 95 % intervals of all shares are compared with the records.
Printed are the half-width that `task plan` promises at the worst answers, the one expected where all answers are as
frequent, the one found there, the quotient of these two, and the coverage of all intervals together with the lowest of
one answer. Before the table, which `--runs 0` leaves out: CPU seconds to decide whether the dummies of 32 questions of
5 answers, and of 3, 4, ..., 34 answers, keep promise 2, under a ball law and under a normal one, in a process and on a
survey page that decide for the first time (the page needs node); and CPU seconds to draw and seal the dummies of 10
questions of 5 answers.

Beside stand two mechanisms without local noise, for each share by itself: "geometric" is the central two-sided
geometric mechanism of epsilon/2 (replacing a person moves two counts by one), added by somebody who sees all answers;
the local noise-free shuffle protocol of Murakami, Sei and Eriguchi (2025) adds dummies of that law to each answer where
its sampling rate is 1, up to the cut at 0, so it has the same half-width and k times the mean number of one answer.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from shuffledp.ball import BallDummies
from shuffledp.collection.draw import Family
from shuffledp.collection.estimates import Tallied, count_law, estimate_question, slopes_of
from shuffledp.collection.keys import AnalyzerKey
from shuffledp.collection.laws import (
    NormalSearch,
    TaskLaw,
    drawn_columns,
    floor_of_columns,
    needed_ball,
    seal_dummies,
    written_law,
)
from shuffledp.collection.planner import half_width
from shuffledp.collection.sealing import Opener, new_identity, new_private
from shuffledp.collection.survey import draft_of_survey
from shuffledp.collection.survey_page import modules
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.dummies import StatedCells
from shuffledp.numerics.floats import UNBOUNDED
from shuffledp.numerics.randomness import Randomness, simulation_random

DELTA = 1e-6
SURVEY = """
title = "Simulated"
organizer = "nobody"
contact = "nobody@example.org"
privacy_notice = "https://example.org/privacy"
delta = 1e-6
opens = 2030-01-01T08:00:00Z
closes = 2030-01-31T08:00:00Z
expires = 2030-02-28T08:00:00Z
[operated_by]
analyzer = "one"
shuffler = "another"
page = "another"
{questions}
[[levels]]
name = "usual"
epsilon0 = {epsilon0}
promise = {promise}
planned = 1000
"""


def drafted(choices: int, epsilon0: float, promise: float, questions: int = 1) -> Draft:
    """Draft a survey of some questions of so many answers."""
    names = ", ".join(f'"answer {place + 1}"' for place in range(choices))
    asked = f'[[questions]]\ntext = "Which?"\nchoices = [{names}]\n' * questions
    text = SURVEY.format(questions=asked, epsilon0=epsilon0, promise=promise)
    return draft_of_survey(text.encode(), AnalyzerKey(new_private(), new_identity(), bytes(32)))


def simulated(draft: Draft, n: int, runs: int, random: Randomness) -> tuple[float, float, float]:
    """Return the mean half-width, the coverage of all intervals, and that of the answer covered least."""
    question, level = draft.questions[0], draft.levels[0]
    family, k = question.family.library(), question.answers
    rng, widths, covered = np.random.default_rng(26), np.zeros(k), np.zeros(k)
    for _ in range(runs):
        records = rng.integers(k, size=n)
        reports = family.randomize(records, np.full(n, level.epsilon0), random)
        (dummies,) = drawn_columns(draft, random)
        rows = np.concatenate((reports, np.array(dummies, dtype=np.int64)))
        low, high = estimate_question(draft, 0, [Tallied(rows, (n,))]).confidence_interval(0.95)
        true = np.bincount(records, minlength=k) / n
        widths += (high - low) / 2.0
        covered += (low <= true) & (true <= high)
    return float(widths.mean() / runs), float(covered.mean() / runs), float(covered.min() / runs)


def expected_half_width(draft: Draft, n: int) -> float:
    """Return half the mean length of the intervals of an answer that one in k people gives, by the law of its count."""
    question = draft.questions[0]
    law = count_law(question, slopes_of(draft, 0), [n])
    start, chances = law.chances(round(n / question.answers))
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
        normal = NormalSearch(families, ((2.0, keep),), DELTA, 1).found()
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
    task = PostedTask.post(drafted(5, epsilon0, 2.0, 10), Opener(new_private()).public, new_identity())
    start = time.process_time()
    sealed = sum(len(reports) for _, reports in seal_dummies(task, simulation_random(26)))
    return time.process_time() - start, sealed, task.draft.questions[0].dummies.law


def geometric(epsilon: float) -> tuple[int, int]:
    """Return the 97.5 % point of two-sided geometric noise of epsilon/2, and where its tail falls below delta/2."""
    ratio = math.exp(-epsilon / 2.0)

    def least(tail: float) -> int:
        """The least t with P(noise > t) = ratio^(t + 1)/(1 + ratio) <= tail."""
        return max(0, math.ceil(math.log(tail * (1.0 + ratio)) / math.log(ratio)) - 1)

    return least(0.025), least(DELTA / 2.0)


def main() -> None:
    """Simulate, and print one line a promise and number of people."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--choices", type=int, default=5)
    parser.add_argument("--epsilon0", type=float, default=4.0)
    parser.add_argument("--promises", default="0.25,1")
    parser.add_argument("--people", default="100,200,500,1000,5000")
    typed = parser.parse_args()
    random = simulation_random(26)
    certifying(typed.epsilon0)
    took, many, law = closing(typed.epsilon0)
    print(f"{many:,} {law} dummies of 10 questions of 5 answers drawn and sealed in {took:.2f} s")
    if not typed.runs:
        return
    print("promise     n  dummies  promised expected  found  quotient  coverage  lowest  geometric, LNF  LNF's dummies")
    for promise in (float(word) for word in typed.promises.split(",")):
        draft = drafted(typed.choices, typed.epsilon0, promise)
        reach, cut = geometric(promise)
        for n in (int(word) for word in typed.people.split(",")):
            promised = half_width(draft, 0, [n])
            expected = expected_half_width(draft, n)
            found, coverage, lowest = simulated(draft, n, typed.runs, random)
            print(
                f"{promise:7g} {n:5} {draft.questions[0].dummies.count:8} {100 * promised:9.2f} {100 * expected:8.2f} "
                f"{100 * found:6.2f} {found / expected:9.3f} {coverage:9.3f} {lowest:7.3f} "
                f"{min(100 * reach / n, 50.0):15.2f} "
                f"{typed.choices * cut:14}"
            )


if __name__ == "__main__":
    main()
