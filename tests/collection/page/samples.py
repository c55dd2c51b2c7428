"""Tasks for the page's tests, in three languages."""

from __future__ import annotations

import json
from typing import Any

from shuffledp.collection.sealing import Opener
from shuffledp.collection.task import Draft, PostedTask
from tests.collection.tasks import IDENTITY, SHUFFLER, choice, document, number

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
        level["name"] = {language: name[language] for language in TITLE}
    return PostedTask.post(Draft.parse(json.dumps(whole).encode()), Opener(SHUFFLER).public, IDENTITY)
