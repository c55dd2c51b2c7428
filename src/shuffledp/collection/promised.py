"""What a person is promised, in words: one function for the drafting command, the client and the page's data.

Three numbers, each with its own enemy: the promise, told first, holds if the shuffler is honest, the local one against
everybody, the crowd's if besides most others are honest. Where one hand runs analyzer and shuffler, only the local one
is told; the crowd's is left out where it is hardly smaller than the promise. A local budget says little in words, so
beside it stands how often what was sent is the true answer.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from shuffledp.collection.asked import same_hand
from shuffledp.collection.draw import WHOLE
from shuffledp.collection.task import Draft
from shuffledp.errors import InvalidInput
from shuffledp.errors import shown as entry_shown

LANGUAGES = ("en", "de", "fr")
CROWD_TELLS = 0.95
"""The number of an honest crowd is told where it is below this share of the promise: else the crowd hides nobody."""
READ = frozenset(
    ("together_reads", "together_reads_open", "together_reads_part", "one_hand_reads", "one_hand_reads_part")
)
"""Sentences that tell what those who work together can read."""
WOULD_READ = 5.0
"""From this local budget on, whoever reads what was sent reads the answer: that is said so."""
ONE_SHUFFLER = 4.0
"""A larger local budget leaves a person to one hand alone: an organizer has to accept that, and it is said."""
_SHOWN = Context(prec=3, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class Promised:
    """The numbers of one level and the sentences about them.

    Parameters
    ----------
    headline : float
        The number that is told first: `promise`, or `local` where one hand runs analyzer and shuffler.
    local : float
        Holds against analyzer and shuffler together, over all questions; two answers of a person under open admission.
    promise : float
        Holds if the shuffler is honest, whoever the others are.
    crowd : float
        Holds if besides as many as planned answer and 95 % of the others are honest.
    sentences : tuple of (str, str)
        Key and text, in the order they are shown.
    """

    headline: float
    local: float
    promise: float
    crowd: float
    sentences: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """All sentences, one a line."""
        return "\n".join(sentence for _, sentence in self.sentences)


def what_is_promised(draft: Draft, level: int, language: str = "en", *, browser: bool = False) -> Promised:
    """Tell what a person at one level is promised.

    Parameters
    ----------
    draft : Draft
        The task.
    level : int
        Place of the level, from 0.
    language : {"en", "de", "fr"}
        Of the sentences; the task's own words come in it if the task has it, else in the task's first language.
    browser : bool
        Whether the answer is given on a web page, which whoever serves it could change.

    Raises
    ------
    InvalidInput
        If there is no such level or language.
    """
    if not 0 <= level < len(draft.levels) or language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise InvalidInput(f"there is no level {level}, or no language {entry_shown(language)} (known: {known})")
    chosen = draft.levels[level]
    one_hand = draft.operated_by.one_hand
    local = chosen.epsilon0 * len(draft.columns) * (1 if draft.admission == "codes" else 2)
    promise, crowd = min(chosen.promise, local), min(chosen.crowd, local)
    reads, shares = what_is_read(draft, level)
    context = {
        "one_hand": one_hand,
        "reads": reads,
        "open": chosen.epsilon0 >= WOULD_READ,
        "above_four": chosen.epsilon0 > ONE_SHUFFLER,
        "crowd_tells": crowd_tells(crowd, promise),
        "several": len(draft.questions) > 1,
        "codes": draft.admission == "codes",
        "browser": browser,
        "page_same_hand": same_hand(draft.operated_by.page, draft.operated_by.shuffler, draft.operated_by.analyzer),
    }
    names = {"level": in_language(chosen.name, language), "organizer": draft.organizer} | vars(draft.operated_by)
    words = {name: quoted(text, language) for name, text in names.items()} | {
        "local": shown(local, language),
        "promise": shown(promise, language),
        "crowd": shown(crowd, language),
        "local_factor": shown(math.exp(local), language),
        "promise_factor": shown(math.exp(promise), language),
        "odds": _grouped(math.floor((1.0 / draft.delta) * (1.0 + 2.0**-40))),
        "planned": _grouped(draft.planned),
        "questions": str(len(draft.questions)),
    }
    data = promises_data()
    words["cases"] = ("" if len(shares) == 1 else data["up_to"][language]) + in_100(max(shares), language)
    keys = [entry["key"] for entry in data["order"] if all(context[k] == v for k, v in entry["when"].items())]
    sentences = tuple((key, data["sentences"][language][key].format_map(words)) for key in keys)
    return Promised(local if one_hand else promise, local, promise, crowd, sentences)


def what_is_read(draft: Draft, level: int) -> tuple[str, frozenset[Fraction]]:
    """Tell what somebody learns who reads the reports of one person.

    Parameters
    ----------
    draft : Draft
        The task.
    level : int
        Place of the level, from 0.

    Returns
    -------
    str and frozenset of Fraction
        "answer" and, for each question whose report can be the true answer, the chance that it is; where there is no
        such question, "part" and for each question the chance that the report depends on the answer.
    """
    asked = [(question.family, keep) for question, keep in zip(draft.questions, draft.levels[level].draw, strict=True)]
    true = frozenset(family.true_share(keep) for family, keep in asked if family.kind in ("rr", "krr"))
    return ("answer", true) if true else ("part", frozenset(Fraction(keep, WHOLE) for _, keep in asked))


def in_100(share: Fraction, language: str = "en") -> str:
    """Write a chance below 1 as so many of 100 cases: rounded to the nearest, and never to all of them.

    Examples
    --------
    >>> in_100(Fraction(932, 1000)), in_100(Fraction(9997, 10000)), in_100(Fraction(9975, 10000), "de")
    ('93', '99.97', '99,8')
    """
    digits = 0
    while (cases := math.floor(share * 100 * 10**digits + Fraction(1, 2))) >= 100 * 10**digits:
        digits += 1
    return f"{Decimal(cases).scaleb(-digits):f}".replace(".", "." if language == "en" else ",")


def crowd_tells(crowd: float | None, promise: float) -> bool:
    """Tell whether the number of an honest crowd is worth telling beside the promise; None where nobody has a level."""
    return crowd is not None and crowd < CROWD_TELLS * promise


def spent_by_answering(draft: Draft, level: int) -> tuple[float, float]:
    """Tell what one answer adds to a device's ledger: the local budgets of its reports, and what is promised for them.

    Where one hand runs analyzer and shuffler nothing below the local budgets is promised. The survey page's record has
    the same two numbers (page/promise.js).

    Parameters
    ----------
    draft : Draft
        The task.
    level : int
        Place of the level, from 0.
    """
    chosen = draft.levels[level]
    local = chosen.epsilon0 * len(draft.columns)
    return local, local if draft.operated_by.one_hand else min(chosen.promise, local)


@cache
def promises_data() -> dict[str, Any]:
    """Return the sentences and when each is shown: what the page embeds."""
    return json.loads(files("shuffledp.collection").joinpath("promises.json").read_text(encoding="utf-8"))


def in_language(text: Any, language: str) -> str:
    """Return a text of a task in this language if it has it, else in its first."""
    return text[language] if language in text else next(iter(text.values()))


def quoted(text: str, language: str = "en") -> str:
    """Put words of a task between quotation marks that they cannot end: whoever wrote them is not the program.

    Parameters
    ----------
    text : str
        Of the organizer.
    language : {"en", "de", "fr"}
        Of the quotation marks.

    Examples
    --------
    >>> print(quoted('careful”: your number is 0.001. Level “open'))
    “careful': your number is 0.001. Level 'open”
    """
    data = promises_data()
    (opening, closing), single = data["quotes"][language], set(data["apostrophes"])
    run = re.compile(f"[{re.escape(data['marks'] + data['apostrophes'])}]+")
    return opening + run.sub(lambda found: found[0] if found[0] in single else "'", text) + closing


def shown(value: float, language: str = "en") -> str:
    """Write a number for people: three significant digits, rounded up, with a comma where the language has one.

    Examples
    --------
    >>> shown(0.1), shown(0.23371), shown(2.7182818), shown(1234.5), shown(0.25, "de")
    ('0.1', '0.234', '2.72', '1240', '0,25')
    """
    rounded = _SHOWN.create_decimal(Decimal(repr(value)))
    return f"{rounded.normalize():f}".replace(".", "." if language == "en" else ",")


def _grouped(count: int) -> str:
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
