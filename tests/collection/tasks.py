"""Tasks for the tests: a draft's document from a few words, and keys that everybody knows."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from shuffledp.collection.draw import Family
from shuffledp.collection.fields import to_base64
from shuffledp.collection.laws import NormalSearch, needed_ball, written_law
from shuffledp.collection.promise import reports_of
from shuffledp.collection.sealing import Opener, identity_of
from shuffledp.collection.task import Draft, PostedTask


def key(name: str) -> bytes:
    """32 bytes, the same for the same name: a private key of either kind."""
    return hashlib.sha256(b"a key of the tests: " + name.encode()).digest()


ANALYZER, ANALYST, SHUFFLER, IDENTITY = (key(name) for name in ("analyzer", "analyst", "shuffler", "identity"))
"""Private keys: the analyzer's HPKE key and signing key, the shuffler's HPKE key and signing key."""
LEVELS = ((0.5, 540, 0.1), (1.0, 370, 0.25), (4.0, 90, 1.0))
"""Budget, planned people, promise."""
NAMES = ("careful", "middle", "open", "fourth", "fifth", "sixth", "seventh", "eighth")


def choice(k: int = 5, dummies: int = 172, family: str | None = None) -> dict[str, Any]:
    name = family or ("rr" if k == 2 else f"krr:{k}")
    return {
        "text": {"en": f"Which of {k}?"},
        "kind": "choice",
        "choices": [{"en": f"choice {j + 1}"} for j in range(k)],
        "family": name,
        "report_bytes": Family(name, k).report_bytes,
        "dummies": {"law": "uniform", "count": dummies},
    }


def number(low: float = 0, high: float = 100, step: float = 1, dummies: int = 315) -> dict[str, Any]:
    return {
        "text": {"en": "How many?"},
        "kind": "number",
        "low": low,
        "high": high,
        "step": step,
        "family": "one-bit",
        "report_bytes": 1,
        "dummies": {"law": "uniform", "count": dummies},
    }


def records_of(question: dict[str, Any]) -> int:
    if question["kind"] == "number":
        return round((question["high"] - question["low"]) / question["step"]) + 1
    if question["kind"] == "table":
        return len(question["rows"]) * len(question["columns"])
    if question["kind"] == "dictionary":
        return 1024
    return 2 if question["kind"] == "several" else len(question.get("words") or question["choices"])


def document(*questions: dict[str, Any], levels: Any = LEVELS, **changed: Any) -> dict[str, Any]:
    """The draft of a task with these questions (one of five choices by default); keys as in `changed`."""
    asked = questions or (choice(),)
    return {
        "version": 1,
        "suite": 1,
        "title": {"en": "Lunch"},
        "organizer": "The kitchen",
        "contact": "kitchen@example.org",
        "privacy_notice": "https://example.org/privacy",
        "operated_by": {"analyzer": "The kitchen", "shuffler": "The works council", "page": "The works council"},
        "questions": list(asked),
        "levels": [
            {
                "name": {"en": NAMES[place]},
                "epsilon0": epsilon0,
                "draw": [str(Family(q["family"], records_of(q)).threshold(epsilon0)) for q in asked],
                "planned": planned,
                "promise": promise,
                "crowd": promise / 2,
            }
            for place, (epsilon0, planned, promise) in enumerate(levels)
        ],
        "delta": 1e-6,
        "admission": "codes",
        "at_least": 100,
        "opens": "2030-01-01T08:00:00Z",
        "closes": "2030-01-31T08:00:00Z",
        "expires": "2030-02-28T08:00:00Z",
        "stop_at": 100_000,
        "analyzer_key": to_base64(Opener(ANALYZER).public),
        "analyzer_identity": to_base64(identity_of(ANALYST)),
        "retention_days": 30,
    } | changed


def second(
    *questions: dict[str, Any], centre: int | None = None, normal: bool = False, **changed: Any
) -> dict[str, Any]:
    """The draft of a task of version 2: the least dummies that keep its promises, or so many a cell and no radius.

    They are those of a ball law, or normal ones.
    """
    asked = [{key: value for key, value in each.items() if key != "dummies"} for each in questions or (choice(),)]
    widths = [2 if each["kind"] == "dictionary" else len(each.get("options", "1")) for each in asked]
    none = {"law": "ball", "radius": [str(1 << 64)], "centre": [centre or 0] * sum(widths)}
    whole = document(*asked, **({"version": 2, "dummies": none} | changed))
    if centre is None:
        draft = parse(whole)
        families = tuple(column.family for column in draft.columns)
        if normal:
            levels = tuple(
                (level.promise, tuple(level.draw[column.question] for column in draft.columns))
                for level in draft.levels
            )
            law = NormalSearch(families, levels, draft.delta, reports_of(draft)).smallest_law()
            assert law is not None
        else:
            levels = [(level.epsilon0, level.promise) for level in draft.levels]
            law = needed_ball(levels, families, draft.delta, reports_of(draft))
        whole["dummies"] = written_law(law)
    return whole


def posted_second(*questions: dict[str, Any], **changed: Any) -> PostedTask:
    return PostedTask.post(parse(second(*questions, **changed)), Opener(SHUFFLER).public, IDENTITY)


def bits(size: int = 5, low: float = 0, high: float = 100, step: float = 1) -> dict[str, Any]:
    return number(low, high, step) | {"family": f"bits:{size}"}


def scale(values: tuple[float, ...] = (1, 2, 3, 4, 5)) -> dict[str, Any]:
    return choice(len(values)) | {"kind": "scale", "values": list(values)}


def several(k: int = 4) -> dict[str, Any]:
    asked = choice(2) | {"kind": "several", "options": [{"en": f"option {j + 1}"} for j in range(k)]}
    del asked["choices"]
    return asked


def table(rows: int = 2, columns: int = 3) -> dict[str, Any]:
    asked = choice(rows * columns) | {"kind": "table", "rows": [{"en": f"row {j + 1}"} for j in range(rows)]}
    del asked["choices"]
    return asked | {"columns": [{"en": f"column {j + 1}"} for j in range(columns)]}


def words(k: int = 20) -> dict[str, Any]:
    asked = choice(k) | {"kind": "list", "words": [{"en": f"word {j + 1}"} for j in range(k)]}
    del asked["choices"]
    return asked


def dictionary(k: int = 1200, more: int = 1) -> dict[str, Any]:
    return {
        "text": {"en": "Which word?"},
        "kind": "dictionary",
        "words": "\n".join(f"word {j + 1}" for j in range(k)),
        "more": [{"en": name} for name in ("another word", "no answer")[:more]],
        "family": "krr:1024",
        "report_bytes": 2,
    } | ({"optional": True} if more > 1 else {})


KINDS = {
    "choice": choice(),
    "bit": choice(2),
    "number": bits(),
    "scale": scale(),
    "several": several(),
    "table": table(),
    "list": words(),
}


def parse(whole: dict[str, Any]) -> Draft:
    return Draft.parse(json.dumps(whole).encode())


def draft(*questions: dict[str, Any], **changed: Any) -> Draft:
    return parse(document(*questions, **changed))


def posted(*questions: dict[str, Any], **changed: Any) -> PostedTask:
    return PostedTask.post(draft(*questions, **changed), Opener(SHUFFLER).public, IDENTITY)
