"""A collection's release as the JSON object of the contract."""

from __future__ import annotations

from typing import Any

from shuffledp.collection.analyzer import Opened, by_level
from shuffledp.collection.estimates import FALSE_LEVELS, shift_of_levels
from shuffledp.collection.fields import to_base64
from shuffledp.collection.kinds_view import COVERS, TOGETHER, more_to_json, weighted_to_json
from shuffledp.report.to_json import dumps, release_to_json


def release_document(opened: Opened) -> bytes:
    """Write what `shuffledp open --json` prints and the analyzer signs.

    Parameters
    ----------
    opened : Opened
        A batch, opened.
    """
    return dumps(release_object(opened)).encode("utf-8")


def release_object(opened: Opened) -> dict[str, Any]:
    """Build the object: one answer a question, and what concerns the whole collection."""
    draft, manifest = opened.batch.task.draft, opened.batch.manifest
    answers: list[dict[str, Any]] = []
    asked = zip(draft.questions, opened.releases, opened.junk, opened.more, opened.weighted, strict=True)
    for place, (question, release, junk, more, weighted) in enumerate(asked):
        answer = release_to_json(release, simplex=question.kind == "table", simultaneous=question.kind in TOGETHER)
        answer |= {"kind": question.kind, "covers": COVERS} | more_to_json(question, more)
        if draft.version > 1:  # its part of the law of all columns, which is known to no setting
            law = {"law": question.dummies.law, "count": question.dummies.count}
            answer["guarantee"]["setting"]["dummies"] = law
        if weighted is not None:
            answer["weighted"] = weighted_to_json(question, weighted)
        rows = {"unreadable": junk.unreadable, "repeated": junk.repeated, "impossible": junk.impossible}
        effect = {"of_5_percent": junk.effect_of_share, "seen": junk.effect_seen}
        falsely = {
            f"of_{100 * share:g}_percent": shift_of_levels(draft, place, manifest.counts, share, told=True)
            for share in FALSE_LEVELS
        }
        untold = {"junk": rows, "junk_effect": effect, "level_effect": falsely}
        answers.append({"text": next(iter(question.text.values()))} | answer | untold)
    return {
        "releases": answers,
        "collection": {
            "id": opened.batch.task.id,
            "title": next(iter(draft.title.values())),
            "counts": by_level(opened, manifest.counts),
            "dummies": list(manifest.dummies),
            "delta": draft.delta,
            "floor": by_level(opened, opened.floor),
            "promise": by_level(opened, [level.promise for level in draft.levels]),
            "promise_kept": opened.promise_kept,
            "crowd": by_level(opened, opened.crowd),
            "junk_seen": opened.junk_seen,
            "junk_effect": [answer["junk_effect"] for answer in answers],
            "one_hand": draft.operated_by.one_hand,
            "manifest": manifest.data.decode("utf-8"),
            "signature": to_base64(opened.batch.signature),
        },
    }
