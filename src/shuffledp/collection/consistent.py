"""What a release says of a question must follow from the shares that it publishes: checked without a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shuffledp.collection.asked import Question, Text
from shuffledp.collection.weights import places_of
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.releases.margins import raked

NEAR = 1e-6
"""By so much numbers that follow from each other may differ: shares are written to all their digits, raking is not."""
Answer = Mapping[str, Any]


def check_kind(question: Question, answer: Answer, what: str) -> None:
    """Check that a question's answer has what its kind has, and that this follows from the shares.

    Parameters
    ----------
    question : Question
        What was asked.
    answer : mapping
        As the release tells it.
    what : str
        What the question is called in messages.

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
        names = [_first(text) for text in question.choices]
        shares = _listed(answer["estimates"], names, f"{what}, shares")
        known = dict(zip(names, shares.tolist(), strict=True))
        for each in answer.get("differences", ()):
            _near(f"{what}, difference", each["estimate"], known[each["of"]] - known[each["minus"]])
        if question.kind == "scale" and "mean" in answer:
            _near(f"{what}, mean", answer["mean"]["estimate"], _mean(question, shares))
        if question.kind == "table":
            _check_table(question, answer, shares, what)
        if "present" in answer:
            there = [known[word] for word in answer["present"]]
            absent = [share for word, share in known.items() if word not in set(answer["present"])]
            if there and absent and min(there) < max(absent):
                raise InvalidInput(f"the release: {what} calls a word present that fewer sent than one that is not")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidInput(
            f"the release: {what} has not the answer of a {question.kind}: {shown(str(error))}"
        ) from None


def _mean(question: Question, shares: FloatArray) -> float:
    """Return the mean of a scale from its shares; of an optional one among those who answered."""
    values = np.array(question.values)
    if not question.optional:
        return float(shares @ values)
    answered = float(shares[:-1].sum())
    mean = float(shares[:-1] @ values) / answered if answered > 0.0 else 0.5 * float(values[0] + values[-1])
    return min(max(mean, float(values[0])), float(values[-1]))


def _check_table(question: Question, answer: Answer, shares: FloatArray, what: str) -> None:
    places = places_of(question)
    named = {name: [_first(text) for text in texts] for name, texts in _axes(question)}
    sums = [np.bincount(place, weights=shares) for place in places]
    for (name, texts), expected in zip(named.items(), sums, strict=True):
        found = _listed(answer["margins"][name], texts, f"{what}, {name}")
        for value, true in zip(found.tolist(), expected.tolist(), strict=True):
            _near(f"{what}, {name}", value, true)
    grid = shares.reshape(len(question.rows), len(question.columns))
    for each in answer.get("group_differences", ()):
        column = named["columns"].index(each["answer"])
        one, two = (named["rows"].index(each[side]) for side in ("of", "minus"))
        within = grid[[one, two], column] / sums[0][[one, two]]
        _near(f"{what}, difference of rows", each["estimate"], float(within[0] - within[1]))
    if "weighted" in answer:
        _check_weighted(question, answer["weighted"], answer["n"], shares, what)


def _check_weighted(question: Question, weighted: Answer, n: int, shares: FloatArray, what: str) -> None:
    """Weight the published cells to the published margins again."""
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
    found = _listed(weighted["estimates"], [_first(text) for text in question.choices], f"{what}, weighted")
    for value, true in zip(found.tolist(), expected.tolist(), strict=True):
        _near(f"{what}, weighted", value, true)
    for name, texts, place in free:
        sums = _listed(weighted[name], [_first(text) for text in texts], f"{what}, weighted {name}")
        for value, true in zip(sums.tolist(), np.bincount(place, weights=expected).tolist(), strict=True):
            _near(f"{what}, weighted {name}", value, true)


def _axes(question: Question) -> tuple[tuple[str, tuple[Text, ...]], tuple[str, tuple[Text, ...]]]:
    return ("rows", question.rows), ("columns", question.columns)


def _listed(entries: Sequence[Answer], names: Sequence[str], what: str) -> FloatArray:
    """Return the shares of a list that names exactly these, in their order."""
    if [each["category"] for each in entries] != list(names):
        raise InvalidInput(f"the release: {what} are not those of the answers that were asked for")
    return np.array([float(each["frequency"]) for each in entries])


def _near(what: str, told: float, true: float) -> None:
    if not abs(float(told) - true) <= NEAR * max(1.0, abs(true)):
        raise InvalidInput(f"the release: {what} is told as {shown(told)}, but {true:.6g} follows from the shares")


def _first(text: Text) -> str:
    return next(iter(text.values()))
