"""A collection without a server: people answer, the shuffler adds dummies and hands over."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from shuffledp.collection.batch import AnalyzerKey, permuted_column, seal_inner, write_batch
from shuffledp.collection.draw import draw_report, pieces_of
from shuffledp.collection.laws import drawn_columns
from shuffledp.collection.sealing import Sealer
from shuffledp.collection.task import PostedTask
from shuffledp.numerics.randomness import Randomness, secure_random
from tests.collection.tasks import ANALYST, ANALYZER, IDENTITY


def analyzer_key(task: PostedTask) -> AnalyzerKey:
    return AnalyzerKey(ANALYZER, ANALYST, hashlib.sha256(task.draft.data).digest())


def reports_of_people(
    task: PostedTask, people: Sequence[tuple[int, Sequence[int]]], random: Randomness
) -> tuple[list[list[int]], list[int]]:
    """Reports of each question, and the counts per level, of people (level, answers)."""
    draft = task.draft
    columns: list[list[int]] = [[] for _ in draft.columns]
    counts = [0] * len(draft.levels)
    for level, answers in people:
        counts[level] += 1
        keeps = draft.levels[level].draw
        records = [
            record for question, code in zip(draft.questions, answers, strict=True) for record in question.records(code)
        ]
        for place, (column, record) in enumerate(zip(draft.columns, records, strict=True)):
            report = draw_report(column.family, keeps[column.question], record, random)
            columns[place] += pieces_of(column.family, report, random)
    return columns, counts


def sealed_columns(task: PostedTask, columns: Sequence[Sequence[int]]) -> list[list[bytes]]:
    sealer = Sealer(task.draft.analyzer_key)
    return [[seal_inner(task, place, report, sealer) for report in rows] for place, rows in enumerate(columns)]


def batch_of(task: PostedTask, columns: Sequence[Sequence[int]], counts: Sequence[int], **changed: object) -> bytes:
    """The batch of these people's reports, with dummies that the law has drawn."""
    random = secure_random()
    drawn = drawn_columns(task.draft, random)
    whole = [[*rows, *dummies] for rows, dummies in zip(columns, drawn, strict=True)]
    return signed_batch(task, sealed_columns(task, whole), counts, **changed)


def signed_batch(task: PostedTask, rows: Sequence[Sequence[bytes]], counts: Sequence[int], **changed: object) -> bytes:
    options = {
        "refusals": {"unreadable": 0, "unfit": 0, "code": 0},
        "floor": [0.0] * len(task.draft.levels),
        "day": "2030-02-01",
        "software": {"shuffledp": "0.2.0"},
        "identity": IDENTITY,
    } | changed
    return write_batch(task, [permuted_column(column, secure_random()) for column in rows], counts, **options)  # type: ignore[arg-type]


def people(rng: np.random.Generator, counts: Sequence[int], *answers: int) -> list[tuple[int, list[int]]]:
    """People at each level with answers drawn uniformly from so many."""
    return [(level, [int(rng.integers(k)) for k in answers]) for level, n in enumerate(counts) for _ in range(n)]
