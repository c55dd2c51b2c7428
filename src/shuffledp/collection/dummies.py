"""The shuffler's dummies: reports of nobody, drawn from the task's public law and sealed like a person's.

They are drawn and sealed when the task closes, and stored before any batch is written: two batches of one task with
different dummies would expose all of them by intersection. And they follow from two keys, the one of the task, which is
deleted when it ends, and ``shuffler.key``: from a machine that was put back to a state before closing come the same
bytes.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from shuffledp.ball import below_of
from shuffledp.collection.asked import Dummies, Question
from shuffledp.collection.draw import WHOLE
from shuffledp.collection.laws import draw_columns
from shuffledp.collection.report import seal_inner
from shuffledp.collection.sealing import Sealer
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.numerics.randomness import Randomness, keyed_random

PIECE = 10_000
"""Dummies stored in one transaction: other tasks' reports wait for no more than that."""
_TIMED = 50


def ones_law(dummies: Dummies) -> tuple[Fraction, ...]:
    """Return the law of the number of ones among dummies of one bit, D = 0..count, as exact quotients."""
    if dummies.law == "uniform":
        row = [1]
        for _ in range(dummies.count):
            row = [a + b for a, b in zip([0, *row], [*row, 0], strict=True)]
        return tuple(Fraction(ways, 2**dummies.count) for ways in row)
    steps = (0, *dummies.draw, WHOLE)
    return tuple(Fraction(two - one, WHOLE) for one, two in pairwise(steps))


def ones_moments(dummies: Dummies) -> tuple[Fraction, Fraction]:
    """Return mean and variance of the number of ones among dummies of one bit, exactly."""
    if dummies.law == "uniform":
        return Fraction(dummies.count, 2), Fraction(dummies.count, 4)
    law = ones_law(dummies)
    mean = sum((j * p for j, p in enumerate(law)), Fraction(0))
    return mean, sum((j * j * p for j, p in enumerate(law)), Fraction(0)) - mean * mean


def draw_dummies(question: Question, random: Randomness) -> list[int]:
    """Draw the reports of one question's dummies; the order says nothing that the law does not.

    Parameters
    ----------
    question : Question
        Its family and its dummies.
    random : Randomness
        `secure_random()`.
    """
    dummies = question.dummies
    if dummies.law == "uniform":
        return random.integers(question.family.reports, dummies.count).tolist()
    word = int(random.words(1)[0])
    ones = sum(1 for threshold in dummies.draw if word >= threshold)
    return [1] * ones + [0] * (dummies.count - ones)


def chance_of(identity: bytes, task: PostedTask, key: bytes, *use: bytes) -> Randomness:
    """Return the randomness of one use in closing a task: the same for the same keys and use.

    Neither key alone tells it. So a thief of ``shuffler.key`` learns nothing about the dummies of a task that has
    ended, for the task's key is deleted then, and a copy of the store tells nothing without ``shuffler.key``.

    Parameters
    ----------
    identity : bytes
        The shuffler's private signing key, which lies outside the store.
    task : PostedTask
        The task.
    key : bytes
        The task's private HPKE key, which lies in the store.
    use : bytes
        What it is for, such as ``b"dummies"``; further ones of fixed length.
    """
    message = task.label("chance") + b"\0".join((task.digest, key, *use))
    return keyed_random(hmac.digest(identity, message, "sha256"))


def seal_dummies(task: PostedTask, random: Randomness, piece: int = PIECE) -> Iterator[tuple[int, list[bytes]]]:
    """Draw all dummies of a task and seal them piece by piece.

    Parameters
    ----------
    task : PostedTask
        The task.
    random : Randomness
        `chance_of`, which repeats itself after a restoration; the ephemeral keys are drawn from it too.
    piece : int
        Most dummies in a piece.

    Yields
    ------
    tuple of int and list of bytes
        The column's place, from 0, and sealed reports of its dummies.
    """
    sealer = Sealer(task.draft.analyzer_key, lambda: random.words(4).tobytes())
    for place, reports in enumerate(drawn_columns(task.draft, random)):
        for start in range(0, len(reports), piece):
            yield place, [seal_inner(task, place, report, sealer) for report in reports[start : start + piece]]


def drawn_columns(draft: Draft, random: Randomness) -> Iterator[list[int]]:
    """Draw the dummies of every column, in the order of the columns; under a ball law all of them at once.

    Parameters
    ----------
    draft : Draft
        The task's draft.
    random : Randomness
        `chance_of`.
    """
    if draft.version == 1:
        for question in draft.questions:
            yield draw_dummies(question, random)
        return
    for cells in draw_columns(draft, below_of(random)):
        yield [cell for cell, count in enumerate(cells.tolist()) for _ in range(count)]


def number_of_dummies(draft: Draft) -> int:
    """Return how many dummies closing adds, over all columns."""
    return sum(column.dummies.count for column in draft.columns)


def seconds_to_seal(draft: Draft) -> float:
    """Estimate how long this machine draws and seals the dummies when the task closes; a few are sealed to know it."""
    sealer, start = Sealer(draft.analyzer_key), time.perf_counter()
    for _ in range(_TIMED):
        sealer.seal(b"\0", b"shuffledp: timing")
    return number_of_dummies(draft) * (time.perf_counter() - start) / _TIMED
