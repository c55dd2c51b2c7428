"""Tasks for the page's tests, in three languages."""

from __future__ import annotations

import json
import struct
from typing import Any

from shuffledp.collection.sealing import Opener, sign
from shuffledp.collection.task import Draft, PostedTask
from tests.collection.tasks import ANALYST, IDENTITY, SHUFFLER, choice, document, number

SMOKE = choice(3) | {
    "text": {
        "en": "Have you smoked a cigarette in the last seven days?",
        "de": "Haben Sie in den letzten sieben Tagen eine Zigarette geraucht?",
        "fr": "Avez-vous fumé une cigarette ces sept derniers jours ?",
    },
    "choices": [
        {"en": "Yes", "de": "Ja", "fr": "Oui"},
        {"en": "No", "de": "Nein", "fr": "Non"},
        {"en": "No answer", "de": "Keine Antwort", "fr": "Sans réponse"},
    ],
}
HOURS = number(0, 80, 0.5) | {
    "text": {
        "en": "How many hours did you work last week?",
        "de": "Wie viele Stunden haben Sie letzte Woche gearbeitet?",
        "fr": "Combien d’heures avez-vous travaillé la semaine dernière ?",
    }
}
TITLE = {"en": "Health at work", "de": "Gesundheit im Betrieb", "fr": "La santé au travail"}
NAMES = (
    {"en": "careful", "de": "vorsichtig", "fr": "prudent"},
    {"en": "middle", "de": "mittel", "fr": "moyen"},
    {"en": "open", "de": "offen", "fr": "ouvert"},
)


def task(*questions: dict[str, Any], **changed: Any) -> PostedTask:
    """Two questions at three levels, unless told otherwise."""
    asked = questions or (SMOKE, HOURS)
    plain = {"title": TITLE, "organizer": "Institute of Occupational Health", "contact": "survey@example.org"}
    hands = {"analyzer": "Institute of Occupational Health", "shuffler": "Works council", "page": "Works council"}
    whole = document(*asked, **({"operated_by": hands} | plain | changed))
    for level, name in zip(whole["levels"], NAMES, strict=False):
        level["name"] = {language: name[language] for language in whole["title"]}
    return PostedTask.post(Draft.parse(json.dumps(whole).encode()), Opener(SHUFFLER).public, IDENTITY)


def release_of(posted: PostedTask, signer: bytes = ANALYST) -> bytes:
    """A release with made-up figures, signed by the analyzer."""
    shares = [(0.312, [0.27, 0.354]), (0.634, [0.59, 0.678]), (0.054, [-0.01, 0.102])]
    levels = [level.name["en"] for level in posted.draft.levels]
    document = {
        "releases": [
            {
                "question": "frequency",
                "n": 1000,
                "estimates": [
                    {"category": str(j), "frequency": share, "standard_error": 0.02, "confidence_interval": ends}
                    for j, (share, ends) in enumerate(shares)
                ],
            },
            {
                "question": "mean",
                "n": 1000,
                "estimate": 36.81,
                "standard_error": 0.73,
                "confidence_interval": [35.38, 38.24],
            },
        ],
        "collection": {
            "id": posted.id,
            "counts": dict(zip(levels, (540, 370, 90), strict=True)),
            "floor": dict(zip(levels, (0.0999, 0.2499, 0.9999), strict=True)),
            "crowd": dict(zip(levels, (0.0131, 0.0312, 0.1203), strict=True)),
            "dummies": [172, 315],
            "junk_seen": 3,
            "promise_kept": True,
        },
    }
    body = json.dumps(document).encode()
    head = b"SHFR\1" + struct.pack("<I", len(body))
    return head + body + sign(signer, b"shuffledp/1 release\0" + posted.digest + body)
