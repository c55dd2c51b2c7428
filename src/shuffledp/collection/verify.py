"""Checking a release without a key: signatures, counts, rows, and every certified number anew.

What a release says of a question must follow from the shares that it publishes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp.collection.asked import MOST_PEOPLE, WORD_CELLS, SurveyQuestion, Text
from shuffledp.collection.batch import Batch
from shuffledp.collection.dictionary import WordsEstimate, words_to_json
from shuffledp.collection.estimates import FALSE_LEVELS, Tallied, estimate_question, scaled_counts, shift_of_levels
from shuffledp.collection.kinds import more_of
from shuffledp.collection.laws import CROWD_SLACK, FLOOR_SLACK, covers
from shuffledp.collection.promise import cost_of_answer, crowd_of, floor_of
from shuffledp.collection.release import SignedRelease
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.collection.weights import places_of
from shuffledp.errors import InvalidInput, shown
from shuffledp.in_words import ENGLISH, Translation
from shuffledp.numerics.floats import FloatArray, few_digits_up
from shuffledp.releases.margins import raked

NEAR = 1e-6
"""Tolerance between numbers that follow from each other: shares are written with all digits, raked shares are not."""
Answer = Mapping[str, Any]


def check_kind(question: SurveyQuestion, answer: Answer, what: str) -> None:
    """Check that an answer has the fields of its kind, and that their values follow from the shares.

    Parameters
    ----------
    question : SurveyQuestion
        The question.
    answer : mapping
        The answer's object in the release.
    what : str
        Name of the question in messages.

    Raises
    ------
    InvalidInput
        If something is missing, or does not follow.
    """
    try:
        if answer.get("kind", question.kind) != question.kind:
            raise InvalidInput(
                f"the release: {what} is told to be a {shown(answer['kind'])}, and was a {question.kind}"
            )
        if question.kind == "number":
            return
        if question.kind == "dictionary":  # `_check_words` computes it anew
            return
        names = [_first(text) for text in question.choices]
        shares = _listed(answer["estimates"], names, f"{what}, shares")
        share_of = dict(zip(names, shares.tolist(), strict=True))
        for each in answer.get("differences", ()):
            _near(f"{what}, difference", each["estimate"], share_of[each["of"]] - share_of[each["minus"]])
        if question.kind == "scale" and "mean" in answer:
            _near(f"{what}, mean", answer["mean"]["estimate"], _mean(question, shares))
        if question.kind == "table":
            _check_table(question, answer, shares, what)
        if "present" in answer:
            there = [share_of[word] for word in answer["present"]]
            absent = [share for word, share in share_of.items() if word not in set(answer["present"])]
            if there and absent and min(there) < max(absent):
                raise InvalidInput(f"the release: {what} calls a word present that fewer sent than one that is not")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidInput(
            f"the release: {what} has not the answer of a {question.kind}: {shown(str(error))}"
        ) from None


def check_words(draft: Draft, place: int, counts: Sequence[int], answer: Answer) -> None:
    """Check the answer to a question with a dictionary by computing it anew from the cells that it publishes.

    Parameters
    ----------
    draft : Draft
        The draft.
    place : int
        Index of the question, from 0.
    counts : sequence of int
        Number of people at each level.
    answer : mapping
        The answer's object in the release.

    Raises
    ------
    InvalidInput
        If something is missing, or does not follow.
    """
    question, what = draft.questions[place], f"question {place + 1}"
    try:
        cells = [[_whole(cell) for cell in column] for column in answer["cells"]]
        if [len(column) for column in cells] != [WORD_CELLS] * question.width:
            raise InvalidInput(f"the release: {what} must have the counts of {question.width} x {WORD_CELLS:,} cells")
        kept = [sum(column) - question.dummies.count for column in cells]
        if not 0 < min(kept) <= max(kept) <= sum(counts):
            raise InvalidInput(f"the release: {what}, the cells hold more or fewer rows than people and dummies")
        columns = [
            Tallied(np.repeat(np.arange(WORD_CELLS), column), tuple(scaled_counts(counts, people)))
            for column, people in zip(cells, kept, strict=True)
        ]
        estimate = estimate_question(draft, place, columns)
        words = more_of(draft, place, estimate, columns[0].counts).words
        if words is None or not isinstance(estimate, WordsEstimate):
            raise InvalidInput(
                f"the release: {what} lists words, but the survey asks this question without a dictionary"
            )
        for key, true in words_to_json(question, words).items():
            _same(f"{what}, {key}", answer[key], true)
        named = estimate.some(words.named)
        published = [[each["frequency"], *each["confidence_interval"]] for each in answer["estimates"]]
        _same(f"{what}, words", [each["category"] for each in answer["estimates"]],
              [_first(question.choices[word]) for word in words.named])  # fmt: skip
        recomputed = np.column_stack([named.value, *named.confidence_interval()])
        for row, true in zip(published, recomputed.tolist(), strict=True):
            for value, expected in zip(row, true, strict=True):
                _near(f"{what}, words", value, expected)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidInput(f"the release: {what} has not the answer of a dictionary: {shown(str(error))}") from None


def _whole(cell: object) -> int:
    if isinstance(cell, bool) or not isinstance(cell, int) or not 0 <= cell <= MOST_PEOPLE:
        raise ValueError(f"a count of a cell is {shown(cell)}")
    return cell


def _mean(question: SurveyQuestion, shares: FloatArray) -> float:
    """Return the mean of a scale from its shares; for an optional scale, the mean among those who answered."""
    values = np.array(question.values)
    if not question.optional:
        return float(shares @ values)
    answered = float(shares[:-1].sum())
    mean = float(shares[:-1] @ values) / answered if answered > 0.0 else 0.5 * float(values[0] + values[-1])
    return min(max(mean, float(values[0])), float(values[-1]))


def _check_table(question: SurveyQuestion, answer: Answer, shares: FloatArray, what: str) -> None:
    places = places_of(question)
    named = {name: [_first(text) for text in texts] for name, texts in _axes(question)}
    sums = [np.bincount(place, weights=shares) for place in places]
    for (name, texts), expected in zip(named.items(), sums, strict=True):
        published = _listed(answer["margins"][name], texts, f"{what}, {name}")
        for value, true in zip(published.tolist(), expected.tolist(), strict=True):
            _near(f"{what}, {name}", value, true)
    grid = shares.reshape(len(question.rows), len(question.columns))
    for each in answer.get("group_differences", ()):
        column = named["columns"].index(each["answer"])
        one, two = (named["rows"].index(each[side]) for side in ("of", "minus"))
        within = grid[[one, two], column] / sums[0][[one, two]]
        _near(f"{what}, difference of rows", each["estimate"], float(within[0] - within[1]))
    if "weighted" in answer:
        _check_weighted(question, answer["weighted"], answer["n"], shares, what)


def _check_weighted(question: SurveyQuestion, weighted: Answer, n: int, shares: FloatArray, what: str) -> None:
    """Check the weighted answer by weighting the published cells to the published margins again."""
    which, targets, free = [], [], []
    for (name, texts), place in zip(_axes(question), places_of(question), strict=True):
        if name not in weighted["margins"]:
            free.append((name, texts, place))
            continue
        public = {each["category"]: float(each["share"]) for each in weighted["margins"][name]["shares"]}
        if list(public) != [_first(text) for text in texts] or not min(public.values()) > 0.0:
            raise InvalidInput(f"the release: {what}, the margins are not those of its {name}")
        which.append(place)
        targets.append(np.array(list(public.values())))
        _near(f"{what}, sum of the margins", float(targets[-1].sum()), 1.0)
    if (weighted["answered"], weighted["population"] is None) != (n, weighted["missing"] is None):
        raise InvalidInput(f"the release: {what}, weighted: {n} people answered; got {shown(weighted['answered'])}")
    if weighted["population"] is not None and weighted["population"] - n != weighted["missing"]:
        raise InvalidInput(f"the release: {what}, weighted: {shown(weighted['missing'])} people are not those missing")
    expected = raked(shares, np.zeros((shares.size, shares.size)), which, targets, n).value
    published = _listed(weighted["estimates"], [_first(text) for text in question.choices], f"{what}, weighted")
    for value, true in zip(published.tolist(), expected.tolist(), strict=True):
        _near(f"{what}, weighted", value, true)
    for name, texts, place in free:
        sums = _listed(weighted[name], [_first(text) for text in texts], f"{what}, weighted {name}")
        for value, true in zip(sums.tolist(), np.bincount(place, weights=expected).tolist(), strict=True):
            _near(f"{what}, weighted {name}", value, true)


def _axes(question: SurveyQuestion) -> tuple[tuple[str, tuple[Text, ...]], tuple[str, tuple[Text, ...]]]:
    return ("rows", question.rows), ("columns", question.columns)


def _listed(entries: Sequence[Answer], names: Sequence[str], what: str) -> FloatArray:
    """Return the shares in a list, after checking that it has exactly these names in this order."""
    if [each["category"] for each in entries] != list(names):
        raise InvalidInput(f"the release: {what} must list the survey's answers, in the survey's order")
    return np.array([float(each["frequency"]) for each in entries])


def _near(what: str, published: float, true: float) -> None:
    if not abs(float(published) - true) <= NEAR * max(1.0, abs(true)):
        raise InvalidInput(f"the release: {what} is told as {shown(published)}, but {true:.6g} follows from the shares")


def _first(text: Text) -> str:
    return next(iter(text.values()))


_CANNOT = (
    "that the shuffler drew the dummies from the law, once, and forgot them",
    "that it permuted the rows and kept no record of who sent what",
    "that every participant is a person, and another one",
    "that the estimates, and the number of rows that could not be used, follow from the rows: only the analyzer's key "
    "opens them",
)


def cannot_be_checked(draft: Draft, counts: Sequence[int], words: Translation = ENGLISH) -> tuple[str, ...]:
    """Return sentences on what nobody can check from the files of a collection, and on its possible effect.

    Parameters
    ----------
    draft : Draft
        The draft.
    counts : sequence of int
        Number of people at each level, as stated.
    words : Translation
        The language.
    """
    always = tuple(map(words, _CANNOT))
    if len(draft.levels) == 1 or not sum(counts):
        return always
    effects: list[str] = []
    for place, question in enumerate(draft.questions):
        scale = 1.0 if question.kind == "number" else 100.0
        shifts = [scale * shift_of_levels(draft, place, counts, share, stated=True) for share in FALSE_LEVELS]
        amounts = words.number(" / ".join(f"{few_digits_up(shift, 2):g}" for shift in shifts))
        effect = "question {place} by up to {amounts}" + ("" if question.kind == "number" else " points")
        effects.append(words(effect, place=place + 1, amounts=amounts))
    sentence = (
        "that every person is counted at the level that the person chose: false counts of {shares} % of the people "
        "shift {effects}"
    )
    shares = " / ".join(f"{100 * share:g}" for share in FALSE_LEVELS)
    return (*always, words(sentence, shares=words.number(shares), effects=", ".join(effects)))


@dataclass(frozen=True)
class Verified:
    """The result of a successful verification.

    Parameters
    ----------
    checks : tuple of str
        What was checked, in sentences.
    cannot : tuple of str
        What nobody can check from these files.
    floor : dict
        Certified central epsilon by level, rounded outward.
    promise_kept : bool
        Whether every floor is at most its promise, up to `FLOOR_SLACK`.
    """

    checks: tuple[str, ...]
    cannot: tuple[str, ...]
    floor: Mapping[str, float]
    promise_kept: bool


def verify(task: PostedTask, release: bytes, batch: Batch | bytes | None = None) -> Verified:
    """Check a release against its task, and against the batch if it is given.

    Parameters
    ----------
    task : PostedTask
        The task.
    release : bytes
        The signed release.
    batch : Batch or bytes, optional
        The batch that was handed over.

    Returns
    -------
    Verified
        What was checked, what cannot be, and the recomputed floors.

    Raises
    ------
    InvalidInput
        If a check fails; the message says which.
    """
    task.check_keys()
    signed = SignedRelease.parse(release, task)
    draft, manifest, collection = task.draft, signed.manifest, signed.collection
    names = [next(iter(level.name.values())) for level in draft.levels]
    _same("id", collection.take("id"), task.id)
    _same("counts", collection.take("counts"), dict(zip(names, manifest.counts, strict=True)))
    _same("dummies", collection.take("dummies"), [column.dummies.count for column in draft.columns])
    floors = floor_of(draft)
    published = _at_least("floor", collection.take("floor"), names, floors, FLOOR_SLACK)
    _at_least("crowd", collection.take("crowd"), names, crowd_of(draft, manifest.counts), CROWD_SLACK)
    kept = all(covers(level.promise, value) for value, level in zip(published, draft.levels, strict=True))
    _same("promise_kept", collection.take("promise_kept"), kept)
    for place, answer in enumerate(signed.releases):
        _check_answer(signed, place, answer)
    checks = [
        f"the task {task.called} is signed by its shuffler",
        "the release is signed by the task's analyzer",
        "the manifest is signed by the task's shuffler and carries this task",
        f"{manifest.n} {'person' if manifest.n == 1 else 'people'} and {sum(manifest.dummies)} dummies make "
        f"{sum(manifest.rows)} rows",
        "floor, crowd and the guarantee of every question, certified anew, are not above the published ones, but for "
        f"what two machines differ by (at most {FLOOR_SLACK:g} of a floor and {CROWD_SLACK:g} of a crowd)",
    ]
    checks.append(
        "each question has the answer of its kind: means, differences, margins and weights follow from the shares, the "
        "words of a dictionary from its cells"
    )
    if batch is not None:
        if (batch if isinstance(batch, Batch) else Batch.parse(batch)).manifest.data != manifest.data:
            raise InvalidInput("the release is not about this batch: their manifests differ")
        checks.append("the batch's columns have the signed hash and as many rows as people and dummies")
    cannot = cannot_be_checked(draft, manifest.counts)
    return Verified(tuple(checks), cannot, dict(zip(names, floors, strict=True)), kept)


def _check_answer(signed: SignedRelease, place: int, answer: object) -> None:
    """Check people, mechanism and guarantee of one question's answer."""
    draft, counts = signed.task.draft, signed.manifest.counts
    question = draft.questions[place]
    what = f"question {place + 1}"
    if not isinstance(answer, dict):
        raise InvalidInput(f"the release: the answer to {what} must be a JSON object")
    _same(f"{what}, n", answer.get("n"), signed.manifest.n)
    _same(f"{what}, mechanism", answer.get("mechanism"), question.family.name)
    check_kind(question, answer, what)
    if question.kind == "dictionary":
        check_words(draft, place, counts, answer)
    guarantee = answer.get("guarantee")
    levels = guarantee.get("levels") if isinstance(guarantee, dict) else None
    chosen = [(level, count) for level, count in zip(draft.levels, counts, strict=True) if count]
    present = [(level.epsilon0, count) for level, count in chosen]
    if not isinstance(levels, list) or len(levels) != len(present):
        raise InvalidInput(f"the release: {what} must give a guarantee for each of {len(present)} levels with people")
    _same(f"{what}, delta", guarantee.get("delta") if isinstance(guarantee, dict) else None, draft.delta)
    costs = [cost for cost, count in zip(cost_of_answer(draft, place), counts, strict=True) if count]
    for published, (epsilon0, count), certified in zip(levels, present, costs, strict=True):
        fields = published if isinstance(published, dict) else {}
        _same(f"{what}, level", (fields.get("epsilon0"), fields.get("count")), (epsilon0, count))
        epsilon = fields.get("epsilon")
        ends = epsilon if isinstance(epsilon, dict) else {}
        _number(f"{what}, guarantee", ends.get("upper"), certified, FLOOR_SLACK)
        _same(f"{what}, lower end of the guarantee", ends.get("lower"), 0.0)  # no attack is claimed for a floor


def _same(what: str, published: object, true: object) -> None:
    if published != true:
        raise InvalidInput(f"the release: {what} is told as {str(published)[:80]}, but must be {str(true)[:80]}")


def _at_least(
    what: str, published: object, names: Sequence[str], true: Sequence[float | None], slack: float
) -> list[float]:
    """Return the published numbers, if none is below the certified one by more than the tolerance between machines."""
    if not isinstance(published, dict) or list(published) != list(names):
        raise InvalidInput(f"the release: {what} must have one number a level: {', '.join(names)}")
    return [
        _number(f"{what} of level {name!r}", published[name], value, slack)
        for name, value in zip(names, true, strict=True)
    ]


def _number(what: str, published: object, true: float | None, slack: float) -> float:
    if true is None and published is None:
        return 0.0
    if (
        true is None
        or isinstance(published, bool)
        or not isinstance(published, int | float)
        or not covers(published, true, slack)
    ):
        raise InvalidInput(f"the release: {what} is told as {str(published)[:40]}, but {true} is what can be certified")
    return float(published)
