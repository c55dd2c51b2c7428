"""What a promise costs: dummies, and the variance of one answer's count of them, of every law that keeps it.

    python benchmarks/bench_dummies.py [--choices 2,3,5,10,50] [--promises 0.25,1] [--questions 1,2,3,5,10,20]

Reports without local noise, delta 1e-6. First one question: "ball", "normal" and "uniform" are the laws that the
library finds and certifies. Then questionnaires of yes/no and of 5 answers at the last promise: the ball law of all
questions, and a normal law of each.
"LNF" is the local noise-free shuffle protocol of Murakami, Sei and Eriguchi (2025) at the sampling rate that serves it
best, 1: to every answer a number of dummies with a two-sided geometric law of epsilon/2, cut at 0, independent of the
others (replacing a person moves two counts by one). Printed is the mean number of its dummies.
"""

from __future__ import annotations

import argparse
import math

import shuffledp as sdp
from shuffledp.dummies import WHOLE

DELTA = 1e-6
NO_NOISE = 30.0
"""A local budget at which a report is the answer but for one in 10^12."""


def uniform(choices: int, promise: float) -> tuple[int, float]:
    """Return the least number of uniform dummies that keeps the promise, and the variance of one answer's count."""
    family = sdp.RandomizedResponse(choices)

    def keeps(count: int) -> bool:
        return sdp.floor_profile(family, None, sdp.Uniform(count), draw=WHOLE).keeps(promise, DELTA)

    low, high = 0, 64
    while not keeps(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high, high / choices * (1.0 - 1.0 / choices)


def ball(choices: int, promise: float, questions: int = 1) -> tuple[int, float]:
    """Return the same of the ball law with the fewest dummies, for each of several questions."""
    law = sdp.BallDummies.of_promise([f"choice:{choices}"] * questions, [(promise, ())], DELTA)
    return law.rows[0], law.cell_variance(0)


def normal(choices: int, promise: float, questions: int = 1) -> tuple[int, float]:
    """Return the same of normal laws, one a question."""
    family = sdp.RandomizedResponse(choices)
    law = sdp.calibrate_dummies({NO_NOISE: promise}, family, DELTA, questions, law="normal").dummies[0]
    assert isinstance(law, sdp.NormalDummies)
    return law.count, law.cell_variance


def noise_free(choices: int, promise: float) -> tuple[int, float]:
    """Return the same of LNF: the mean number of dummies, and the variance of a geometric law of promise/2."""
    ratio = math.exp(-promise / 2.0)
    cut = math.ceil(math.log(DELTA / 2.0 * (1.0 + ratio)) / math.log(ratio)) - 1
    return choices * cut, 2.0 * ratio / (1.0 - ratio) ** 2


def main() -> None:
    """Print a table in Markdown, as docs/theorems/ball.md has it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--choices", default="2,3,5,10,50")
    parser.add_argument("--promises", default="0.25,1")
    parser.add_argument("--questions", default="1,2,3,5,10,20")
    typed = parser.parse_args()
    laws = {"ball": ball, "normal": normal, "uniform": uniform, "LNF": noise_free}
    print(f"| promise, answers | {' | '.join(f'{name}: dummies, variance' for name in laws)} |")
    print(f"|---|{'---|' * len(laws)}")
    for promise in (float(word) for word in typed.promises.split(",")):
        for choices in (int(word) for word in typed.choices.split(",")):
            found = [law(choices, promise) for law in laws.values()]
            cells = " | ".join(f"{count:,}, {variance:,.3g}" for count, variance in found)
            print(f"| {promise:g}, {choices} | {cells} |", flush=True)
    promise = float(typed.promises.split(",")[-1])
    print(f"\n| questions, answers | ball: dummies, variance at promise {promise:g} | normal |\n|---|---|---|")
    for choices in (2, 5):
        for questions in (int(word) for word in typed.questions.split(",")):
            found = [law(choices, promise, questions) for law in (ball, normal)]
            cells = " | ".join(f"{count:,}, {variance:,.3g}" for count, variance in found)
            print(f"| {questions}, {choices} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
