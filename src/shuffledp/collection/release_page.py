"""The release of a collection as one self-contained page."""

from __future__ import annotations

from typing import Any

from shuffledp.collection.analyzer import Junk, Opened
from shuffledp.collection.asked import Question
from shuffledp.collection.checklist import collection_checklist
from shuffledp.collection.kinds_view import TOGETHER, covers_line, more_lines, weighted_lines
from shuffledp.collection.promised import crowd_tells, in_100, quoted, what_is_promised, what_is_read
from shuffledp.collection.result_words import results_in_words
from shuffledp.collection.task import Draft
from shuffledp.collection.verify import cannot_be_checked
from shuffledp.releases.release import Release
from shuffledp.report import wording
from shuffledp.report.answer import Answer
from shuffledp.report.page import estimate_parts, page_template

_CENTRAL = ("promised", "whoever takes part", "if 95 % are honest", "shuffler and analyzer one")


def release_page(opened: Opened, *, command: str, version: str, truths: dict[int, list[float]] | None = None) -> str:
    """Write the page.

    Parameters
    ----------
    opened : Opened
        A batch, opened.
    command, version : str
        What made the page.
    truths : dict, optional
        True values by question, counted from 0, where the data are public anyway (the demo).

    Returns
    -------
    str
        An HTML document that loads nothing from elsewhere.
    """
    draft, manifest = opened.batch.task.draft, opened.batch.manifest
    known = truths or {}
    rows_of = [0] * len(draft.questions)
    for column, rows in zip(draft.columns, manifest.rows, strict=True):
        rows_of[column.question] += rows
    answers = [
        _answer(
            question,
            release,
            junk,
            [*more_lines(question, more), *weighted_lines(question, weighted)],
            rows_of[place],
            known.get(place),
        )
        for place, (question, release, junk, more, weighted) in enumerate(
            zip(draft.questions, opened.releases, opened.junk, opened.more, opened.weighted, strict=True)
        )
    ]
    return page_template("collection.html").render(
        heading=next(iter(draft.title.values())),
        organizer=draft.organizer,
        people=manifest.n,
        dummies=sum(manifest.dummies),
        answers=answers,
        common=[covers_line(manifest.n), *_common(answers)],
        in_words=results_in_words(opened),
        headings=_CENTRAL[-1:] if draft.operated_by.one_hand else _CENTRAL,
        levels=_levels(opened),
        sentences=_sentences(opened),
        promise_kept=opened.promise_kept,
        operated_by=draft.operated_by,
        day=manifest.day,
        cannot=cannot_be_checked(draft, manifest.counts),
        checklist=collection_checklist(opened),
        id=opened.batch.task.id,
        command=command,
        version=version,
    )


def _common(answers: list[dict[str, Any]]) -> list[str]:
    """Return the notes that every answer has, where there are several: they are shown once."""
    notes = [answer["estimate"]["notes"] for answer in answers]
    return [note for note in notes[0] if all(note in other for other in notes)] if len(notes) > 1 else []


def _answer(
    question: Question, release: Release, junk: Junk, more: list[str], rows: int, truth: list[float] | None
) -> dict[str, Any]:
    title = next(iter(question.text.values()))
    shares = question.kind != "number"
    return {
        "question": title,
        "estimate": estimate_parts(
            Answer(title, release.guarantee, release, truth, simultaneous=question.kind in TOGETHER)
        ),
        "more": more,
        "junk": junk.total,
        "rows": rows,
        "effect_seen": wording.distance(junk.effect_seen, shares=shares),
        "effect_of_share": wording.distance(junk.effect_of_share, shares=shares),
    }


def _levels(opened: Opened) -> list[dict[str, Any]]:
    draft, counts = opened.batch.task.draft, opened.batch.manifest.counts
    rows: list[dict[str, Any]] = []
    for place, level in enumerate(draft.levels):
        crowd = opened.crowd[place]
        numbers: list[str] = []
        if not draft.operated_by.one_hand:
            numbers += [wording.up(level.promise), wording.up(opened.floor[place])]
            numbers.append(wording.up(crowd) if crowd is not None and crowd_tells(crowd, level.promise) else "–")
        numbers.append(wording.up(what_is_promised(draft, place).local))
        rows.append({"name": next(iter(level.name.values())), "people": counts[place], "numbers": numbers})
    return rows


def _sentences(opened: Opened) -> list[str]:
    draft = opened.batch.task.draft
    read = _read(draft)
    if draft.operated_by.one_hand:
        only = f"{draft.operated_by.analyzer} both shuffled and analyzed, so only this number is a promise."
        return [only, *read]
    return [
        f"The numbers are epsilon over all questions, at delta = {wording.probability(draft.delta)}. The first was "
        "promised, and the second certified: it holds if the shuffler was honest, even if every other participant was "
        "fake. The third holds if, besides, at least 95 % of the other participants were honest; it is left out where "
        "it is within 5 % of the promise. The last holds even if shuffler and analyzer work together: the person's own "
        "device makes it so.",
        *read,
    ]


def _read(draft: Draft) -> list[str]:
    """Say what those who work together can read, in one sentence with the cases of every level."""
    analyzer, shuffler = quoted(draft.operated_by.analyzer), quoted(draft.operated_by.shuffler)
    found = [what_is_read(draft, place) for place in range(len(draft.levels))]
    names = [quoted(next(iter(level.name.values()))) for level in draft.levels]
    cases = [
        f"{'up to ' if len(shares) > 1 else ''}{in_100(max(shares))} at level {name}"
        for name, (_, shares) in zip(names, found, strict=True)
    ]
    told = "are the person's true answer" if found[0][0] == "answer" else "depend on the person's answer"
    who = (
        f"{analyzer} can"
        if draft.operated_by.one_hand
        else f"If {shuffler} worked together with {analyzer}, they could"
    )
    return [f"{who} read what a device sent. Of 100 such reports {', '.join(cases)} {told}."]
