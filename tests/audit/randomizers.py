"""Randomizers to attack: broken ones of every kind, and sound ones, written from their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.randomness import Randomness

Array = NDArray[np.float64]


def generator(random: Randomness) -> np.random.Generator:
    return np.random.default_rng(int(random.words(1)[0]))


def unary(own: float, other: float, k: int = 6, *, packed: bool) -> Callable[..., NDArray[np.uint8]]:
    """k bits, 1 with chance `own` on the record's place, else `other`."""

    def randomize(records, random):
        place = np.arange(k) == records[:, None]
        bits = generator(random).random(place.shape) < np.where(place, own, other)
        return np.packbits(bits, axis=1) if packed else bits.astype(np.uint8)

    return randomize


def sue(epsilon: float) -> tuple[float, float]:
    p = 1 / (1 + math.exp(-epsilon / 2))
    return p, 1 - p


def oue(epsilon: float) -> tuple[float, float]:
    return 0.5, 1 / (1 + math.exp(epsilon))


def laplace(scale: float) -> Callable[..., Array]:
    """Laplace noise, the sum rounded to multiples of 2^-30: its digits say nothing of the record."""
    noisy = laplace_in_doubles(scale)
    return lambda records, random: np.round(noisy(records, random) * 2.0**30) / 2.0**30


def laplace_in_doubles(scale: float) -> Callable[..., Array]:
    """The textbook's Laplace noise as doubles: noise added to 1 has fewer digits below 2^-53 than noise added to 0."""

    def randomize(records, random):
        return records + generator(random).laplace(0.0, scale, len(records))

    return randomize


def in_clear(randomize: Callable[..., Array], which: Callable[[int], NDArray[np.intp]]) -> Callable[..., Array]:
    """A randomizer that sends some rows of each call as they are; `which` names them, given the call's length."""

    def broken(records, random):
        reports = np.array(randomize(records, random))
        rows = which(len(records))
        reports[rows] = records[rows]
        return reports

    return broken


def response(epsilon: float, uniform: Callable[[int], Array]) -> Callable[[Array], Array]:
    """Randomized response on 0 and 1 from given uniform numbers, one per user."""

    def randomize(records):
        truth = uniform(len(records)) < 1 / (1 + math.exp(-epsilon))
        return np.where(truth, records, 1 - records)

    return randomize


def alike_in_a_call(n: int, calls: list[int]) -> Array:
    """The same number for all users of a call, a new one for each call."""
    calls.append(n)
    return np.full(n, np.random.default_rng(len(calls)).random())


def alike_always(n: int) -> Array:
    return np.full(n, np.random.default_rng(1).random())


def again_in_every_call(n: int) -> Array:
    """Good within a call, but seeded anew with the same seed for the next one."""
    return np.random.default_rng(1).random(n)


def workers_alike(n: int, calls: list[int]) -> Array:
    """Four workers, each started with the seed of the call."""
    calls.append(n)
    part = np.random.default_rng(len(calls)).random(-(-n // 4))
    return np.tile(part, 4)[:n]


def some_alike(n: int, calls: list[int]) -> Array:
    """One user in ten repeats her neighbour's number."""
    calls.append(n)
    random = np.random.default_rng(len(calls))
    numbers = random.random(n)
    again = np.flatnonzero(random.random(n - 1) < 0.1)
    numbers[again + 1] = numbers[again]
    return numbers
