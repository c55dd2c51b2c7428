"""A collection's release for readers: one self-contained page with its checklist, and the JSON object of the contract.

The checklist is that of NIST SP 800-226; see `checklist`. The page speaks every language that the survey and the survey
page have: first the result in the words of the survey page, then what stands for those who check it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from shuffledp.collection.analyzer import Opened, by_level
from shuffledp.collection.asked import SurveyQuestion, Text
from shuffledp.collection.codes import response
from shuffledp.collection.dictionary import FoundWords
from shuffledp.collection.estimates import FALSE_LEVELS, shift_of_levels
from shuffledp.collection.fields import to_base64
from shuffledp.collection.kinds import More
from shuffledp.collection.kinds_view import (
    COVERS,
    covers_line,
    excludes_zero,
    more_lines,
    more_to_json,
    together_of,
    weighted_lines,
    weighted_to_json,
)
from shuffledp.collection.promise import crowd_tells, in_100, in_language, quoted, what_is_promised, what_is_read
from shuffledp.collection.survey_page import LANGUAGES
from shuffledp.collection.task import Draft
from shuffledp.collection.verify import cannot_be_checked
from shuffledp.collection.weights import WeightedTable
from shuffledp.in_words import ENGLISH, Translation
from shuffledp.questions.question import CONFIDENCE
from shuffledp.releases.release import Release
from shuffledp.report import wording
from shuffledp.report.answer import Answer
from shuffledp.report.checklist import OPEN, OTHERS, Point, points
from shuffledp.report.page import estimate_parts, once, page_template
from shuffledp.report.to_json import dumps, release_to_json
from shuffledp.report.wording import numbers_with_error


def release_document(opened: Opened) -> bytes:
    """Return the JSON that `shuffledp open --json` prints and the analyzer signs.

    Parameters
    ----------
    opened : Opened
        An opened batch.
    """
    return dumps(release_object(opened)).encode("utf-8")


def release_object(opened: Opened) -> dict[str, Any]:
    """Return the object: one answer for each question, and what concerns the whole collection."""
    draft, manifest = opened.batch.task.draft, opened.batch.manifest
    answers: list[dict[str, Any]] = []
    per_question = zip(draft.questions, opened.releases, opened.junk, opened.more, opened.weighted, strict=True)
    for place, (question, release, junk, more, weighted) in enumerate(per_question):
        answer = release_to_json(release, simplex=question.kind == "table", simultaneous=question.together)
        answer |= {"kind": question.kind, "covers": COVERS} | more_to_json(question, more)
        if draft.version > 1:  # its part of the law of all columns, which is known to no setting
            law = {"law": question.dummies.law, "count": question.dummies.count}
            answer["guarantee"]["setting"]["dummies"] = law
        if weighted is not None:
            answer["weighted"] = weighted_to_json(question, weighted)
        rows = {"unreadable": junk.unreadable, "repeated": junk.repeated, "impossible": junk.impossible}
        effect = {"of_5_percent": junk.effect_of_share, "seen": junk.effect_seen}
        falsely = {
            f"of_{100 * share:g}_percent": shift_of_levels(draft, place, manifest.counts, share, stated=True)
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


def results_in_words(opened: Opened) -> list[dict[str, Any]]:
    """Return the result in every language that both the survey and the survey page have.

    Parameters
    ----------
    opened : Opened
        An opened batch.

    Returns
    -------
    list of dict
        For each language its name, and title, sentences, questions with their lines and what was certified; empty for a
        survey in English alone, which the rest of the page serves.
    """
    return [_in(opened, language) for language in spoken_in(opened.batch.task.draft)]


def spoken_in(draft: Draft) -> list[str]:
    """Return the languages in which a result is told, the organizer's first; none if it is told in English anyway.

    Parameters
    ----------
    draft : Draft
        The draft.
    """
    spoken = [name for name in draft.title if name in LANGUAGES]
    return [] if spoken == ["en"] else spoken


def _in(opened: Opened, language: str) -> dict[str, Any]:
    draft, manifest, words = opened.batch.task.draft, opened.batch.manifest, words_of(language)
    return {
        "language": language,
        "name": words["name"],
        "title": in_language(draft.title, language),
        "result": words["resultTitle"],
        "asks": words["asks"].format(organizer=quoted(draft.organizer, language)),
        "people": people_in_words(manifest.n, manifest.codes, words, language),
        "how": words["how"].format(count=translation_of(language).count(sum(manifest.dummies))),
        "questions": [
            {
                "text": in_language(question.text, language),
                "lines": [
                    *_lines(question, release, more, words, language),
                    *_compared(question, more, words, language),
                    *_weighted(question, weighted, words, language),
                ],
            }
            for question, release, more, weighted in zip(
                draft.questions, opened.releases, opened.more, opened.weighted, strict=True
            )
        ],
        "sure": words["resultSure"].format(confidence=round(100 * CONFIDENCE)),
        "kept": words["resultKept" if opened.promise_kept else "resultNotKept"],
        "certified": words["resultPromise"],
        "headings": [words[key] for key in (_SAID[:2] + _SAID[-1:] if draft.operated_by.one_hand else _SAID)],
        "levels": [
            [row["name"], row["people"], *row["numbers"]]
            for row in _levels(opened, translation_of(language), promised=False)
        ],
        "who": who_in_words(draft, words, language),
        "rest": words["rest"],
    }


def who_in_words(draft: Draft, words: dict[str, str], language: str) -> str:
    """Return who did what, and who answers questions.

    Parameters
    ----------
    draft : Draft
        The draft.
    words : dict of str
        The words of `words_of`.
    language : {"en", "de", "fr"}
        The language.
    """
    hands = draft.operated_by
    names = {"analyzer": hands.analyzer, "shuffler": hands.shuffler, "page": hands.page}
    who = words["who"].format(**{hand: quoted(name, language) for hand, name in names.items()})
    return f"{who} {words['contact'].format(contact=quoted(draft.contact, language))}"


_SAID = ("resultLevel", "resultPeople", "resultFloor", "resultCrowd", "resultLocal")
"""Names of the words above the columns of what is certified for each level."""


def people_in_words(people: int, invited: int | None, words: dict[str, str], language: str) -> str:
    """Return words on how many answered, of those who were invited where the shuffler tells it.

    Parameters
    ----------
    people : int
        Number of people who answered.
    invited : int or None
        Number of codes that were made, if it is known.
    words : dict of str
        The words of `words_of`.
    language : {"en", "de", "fr"}
        The language.
    """
    count = translation_of(language).count(people)
    if invited is None:
        return words["resultFrom"].format(count=count)
    return words["resultOf"].format(count=count, invited=translation_of(language).count(invited))


def _lines(question: SurveyQuestion, release: Release, more: More, words: dict[str, str], language: str) -> list[str]:
    """Return one line for each answer, for each present word of a list or dictionary, or one line for a number."""
    together = question.together
    low, high = release.confidence_interval(CONFIDENCE, simultaneous=together)
    if question.kind == "number":
        numbers = np.clip([float(release.estimate), float(low), float(high)], question.low, question.high).tolist()
        rounded = numbers_with_error(numbers, numbers[1], numbers[2], float(release.standard_error))
        value, least, most = (translation_of(language).number(text) for text in rounded)
        return [words["resultNumber"].format(value=value, low=least, high=most)]
    shares = np.clip(np.column_stack((release.estimate, low, high)), 0.0, 1.0)
    texts = [in_language(choice, language) for choice in question.choices]
    if more.words is not None:
        texts = [texts[word] for word in more.words.named]
        return [
            *(_line(words, texts[j], shares[j].tolist()) for j in range(len(more.words.present))),
            *_possible(question, more.words, words, language),
        ]
    present = more.present
    listed = range(len(shares)) if present is None else [place for place, there in enumerate(present) if there]
    return [_line(words, texts[place], shares[place].tolist()) for place in listed]


def _possible(question: SurveyQuestion, decoded: FoundWords, words: dict[str, str], language: str) -> list[str]:
    """Say which words of a dictionary cannot be told apart from others, as the survey page does."""
    if not decoded.possible:
        return []
    pairs = [
        words["resultOr"].format(
            word=in_language(question.choices[word], language),
            others=", ".join(in_language(question.choices[other], language) for other in rivals),
        )
        for word, rivals in decoded.possible
    ]
    return [words["resultPossible"].format(pairs="; ".join(pairs))]


def _compared(question: SurveyQuestion, more: More, words: dict[str, str], language: str) -> list[str]:
    """Say which answers differ, and which rows of a table, all comparisons together, as the survey page does."""

    def points(value: float) -> str:
        return translation_of(language).number(f"{100 * value:.1f}")

    def told(key: str, count: int, pairs: list[str]) -> list[str]:
        return [words[key].format(count=count, pairs="; ".join(pairs) or words["resultNone"])] if count else []

    answers = [
        words["resultPair"].format(**_of_two(question.choices, one, two, language))
        for one, two, estimate in more.differences
        if excludes_zero(estimate, len(more.differences))
    ]
    rows: list[str] = []
    for one, two, column, estimate in more.groups:
        if excludes_zero(estimate, len(more.groups)):
            low, high = (points(float(end)) for end in together_of(estimate, len(more.groups)))
            answer, value = in_language(question.columns[column], language), points(float(estimate.value))
            pair = _of_two(question.rows, one, two, language)
            rows.append(words["resultLess"].format(answer=answer, value=value, low=low, high=high, **pair))
    return told("resultDiffer", len(more.differences), answers) + told("resultGroups", len(more.groups), rows)


def _of_two(texts: Sequence[Text], one: int, two: int, language: str) -> dict[str, str]:
    return {"one": in_language(texts[one], language), "two": in_language(texts[two], language)}


def _weighted(
    question: SurveyQuestion, weighted: WeightedTable | None, words: dict[str, str], language: str
) -> list[str]:
    """Say what a table led to public counts says of all people, and how many of them did not answer."""
    if weighted is None:
        return []
    texts, estimates = question.choices, weighted.cells
    if weighted.sums is not None:
        texts, estimates = (question.rows if weighted.variables[0] is None else question.columns), weighted.sums
    low, high = estimates.confidence_interval(CONFIDENCE, simultaneous=True)
    shares = np.clip(np.column_stack((estimates.value, low, high)), 0.0, 1.0).tolist()
    listed = [_line(words, in_language(text, language), each) for text, each in zip(texts, shares, strict=True)]
    variables = ", ".join(name for name in weighted.variables if name is not None)
    whom = words["resultWhom"]
    if weighted.missing is not None and weighted.population is not None:
        absent = {
            "missing": translation_of(language).count(weighted.missing),
            "population": translation_of(language).count(weighted.population),
        }
        whom = f"{words['resultMissing'].format(**absent)} {whom}"
    return [f"{words['resultWeighted'].format(variables=variables)} {'; '.join(listed)}. {whom}"]


def _line(words: dict[str, str], text: str, numbers: list[float]) -> str:
    """Return an answer with its share and interval, in whole percent as on the survey page."""
    share, low, high = (f"{100 * number:.0f}" for number in numbers)
    return words["line"].format(text=text, said=words["resultChoice"].format(share=share, low=low, high=high))


@cache
def words_of(language: str) -> dict[str, str]:
    """Return the words of the survey page and of the pages of releases in one language.

    Parameters
    ----------
    language : {"en", "de", "fr"}
        The language.
    """
    folder = files("shuffledp.collection") / "page"
    page_words, released = (
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in (language, "release")
    )
    return page_words | released[language]


@cache
def translation_of(language: str) -> Translation:
    """Return a language of the pages of releases; of English, with texts in the first language that they have, "".

    Parameters
    ----------
    language : {"", "en", "de", "fr"}
        The language.
    """
    if language in ("", "en"):
        return Translation(language)
    folder = files("shuffledp.collection") / "page"
    sentences: dict[str, str] = {}
    for name in ("results.json", "checks.json"):
        part = json.loads((folder / name).read_text("utf-8"))
        sentences |= {english: each[language] for english, each in part.items()}
    return Translation(language, sentences)


def in_each_group(names: Sequence[str], per_group: Sequence[list[str]], words: Translation = ENGLISH) -> list[str]:
    """Return what is said of each group: once if it is the same of all, else with the group's name before it.

    Parameters
    ----------
    names : sequence of str
        Names of the groups.
    per_group : sequence of list of str
        For each group its sentences.
    words : Translation
        The language.
    """
    if all(sentences == per_group[0] for sentences in per_group):
        return per_group[0]
    return [
        f"{_quoted(name, words)}: {each}"
        for name, sentences in zip(names, per_group, strict=True)
        for each in sentences
    ]


def collection_checklist(*opened: Opened, names: Sequence[str] = (), words: Translation = ENGLISH) -> list[Point]:
    """Return the answers to the checklist's questions for an opened batch of a collection, or for those of its groups.

    Parameters
    ----------
    *opened : Opened
        The opened batch; of a survey with groups one for each group.
    names : sequence of str
        Names of the groups; none for a single batch.
    words : Translation
        The language.
    """
    draft, groups = opened[0].batch.task.draft, len(opened) > 1
    question_count = len(draft.questions)
    people = [words("together {count}", count=words.count(each.batch.manifest.n)) for each in opened]
    if groups:
        people = [f"{_quoted(name, words)} {each}" for name, each in zip(names, people, strict=True)]
    return points(
        _collection_unit(draft, groups, words),
        _collection_model(draft, words),
        [
            words(
                "Replacement (bounded differential privacy): one person's answers are replaced by any others. How many "
                "people answered at each level ({people}) is the same in both worlds, and public.",
                people=", ".join(people),
            ),
            words("Whether somebody took part is not protected."),
        ],
        in_each_group(names, [list(_collection_parameters(each, words)) for each in opened], words),
        _collection_trust(draft, words),
        _collection_views(draft, words),
        [
            words("An answer does not leave the person's device; what leaves it is the randomized report, sealed."),
            OPEN + words("how long sealed reports, opened reports and the shuffler's logs are kept."),
        ],
        [
            words(
                "Each device draws its own noise from the browser's or the system's generator, by comparing integers."
            ),
            OPEN + words("whether the devices, and whatever served them the page, were honest."),
            OPEN + words("when somebody answered, and from where, may be seen on the network."),
        ],
        [
            OPEN + words("who holds the analyzer's and the shuffler's keys, and who may reach the store and its logs."),
        ],
        [
            words(
                f"{'The one question is' if question_count == 1 else 'All {count} questions are'} counted together; "
                "whatever else is computed from the same batch costs nothing on top.",
                count=question_count,
            ),
            *([words("Everybody was invited in one group, so the groups' costs do not add up.")] if groups else []),
            OPEN + words(OTHERS.removeprefix(OPEN)),
        ],
        words=words,
    )


def _collection_unit(draft: Draft, groups: bool, words: Translation) -> Iterator[str]:
    codes, count = draft.admission == "codes", len(draft.questions)
    one = "One person" if codes else "One person, who may have answered twice"
    what = "the answers to all {count} questions" if count > 1 else "the answer to the one question"
    yield words(f"{one}, with {what}.", count=count)
    several = "whether somebody was given several codes"
    if codes:
        yield OPEN + words(f"{several}, of one group or of several." if groups else f"{several}.")
    else:
        yield OPEN + words("whether somebody answered more than twice; such a person is protected less than stated.")


def _collection_views(draft: Draft, words: Translation) -> Iterator[str]:
    yield words(
        "Shuffler ({shuffler}): sealed answers, their levels, and the addresses that they came from; never what is in "
        "an answer.",
        shuffler=draft.operated_by.shuffler,
    )
    yield words(
        "Analyzer ({analyzer}): the randomized reports of each question, shuffled among dummies, and how many people "
        "chose each level.",
        analyzer=draft.operated_by.analyzer,
    )
    yield words("Everybody: what this page shows, and the signed files behind it.")


def _quoted(text: str, words: Translation) -> str:
    return quoted(text, words.language or "en")


def _collection_model(draft: Draft, words: Translation) -> Iterator[str]:
    if draft.operated_by.one_hand:
        yield words(
            "The local model: shuffler and analyzer are one hand, so that only the noise of each person's own device "
            "protects (pure local differential privacy)."
        )
        return
    yield words(
        "The shuffle model with dummies: each answer is randomized on the person's device, then shuffled among dummy "
        "reports. The stated epsilon and delta are those of approximate differential privacy of what the analyzer sees."
    )
    yield words("Each single report keeps its local budget without exception (pure local differential privacy).")


def _collection_parameters(opened: Opened, words: Translation) -> Iterator[str]:
    draft = opened.batch.task.draft
    for place, level in enumerate(draft.levels):
        fields = {
            "level": words.of(level.name),
            "local": words.number(wording.up(what_is_promised(draft, place).local)),
            "central": words.number(wording.up(opened.floor[place])),
            "delta": wording.probability(draft.delta),
        }
        if draft.operated_by.one_hand:
            yield words("Level {level}: local epsilon {local} over all questions; nothing more is promised.", **fields)
        else:
            yield words(
                "Level {level}: epsilon at most {central} at delta = {delta}, certified, whoever takes part; local "
                "epsilon {local} over all questions.",
                **fields,
            )


def _collection_trust(draft: Draft, words: Translation) -> Iterator[str]:
    hands = vars(draft.operated_by)
    if draft.operated_by.one_hand:
        yield words(
            "{analyzer} both shuffles and analyzes; nobody but the person's own device need be honest.", **hands
        )
    else:
        yield words(
            "The shuffler ({shuffler}) must add the dummies, permute, forget who sent what, and not collude with the "
            "analyzer ({analyzer}); if it does, only the local guarantee holds.",
            **hands,
        )
    yield words("Whoever serves the survey page ({page}) must serve the true one.", **hands)
    if not draft.operated_by.one_hand:
        yield OPEN + words("what keeps shuffler and analyzer apart besides their names.")


ONE_OF_SEVERAL = (
    "This is one group of several. Opened one by one, the groups' intervals do not hold together; this opens them "
    "together, from the folder of their batches: {command}."
)
_CENTRAL = ("promised", "whoever takes part", "if 95 % are honest", "shuffler and analyzer one")


def release_page(
    opened: Opened,
    *,
    command: str,
    version: str,
    truths: dict[int, list[float]] | None = None,
    together: str | None = None,
) -> str:
    """Return the page of a collection's release, in every language that both the survey and the survey page have.

    Parameters
    ----------
    opened : Opened
        An opened batch.
    command, version : str
        The command, and the version of the library, that made the page.
    truths : dict, optional
        True values by question, counted from 0, where the data are public anyway (the demo).
    together : str, optional
        Of one group of several: the command that opens all of them together.

    Returns
    -------
    str
        An HTML document that loads nothing from elsewhere.
    """
    draft, in_words = opened.batch.task.draft, results_in_words(opened)
    return page_template("collection.html").render(
        heading=next(iter(draft.title.values())),
        language=in_words[0]["language"] if in_words else "en",
        parts=[
            _checks(opened, translation_of(each["language"]), truths or {}, together) | {"summary": each}
            for each in in_words
        ]
        or [_checks(opened, ENGLISH, truths or {}, together) | {"summary": None}],
        organizer=draft.organizer,
        people=opened.batch.manifest.n,
        dummies=sum(opened.batch.manifest.dummies),
        promise_kept=opened.promise_kept,
        operated_by=draft.operated_by,
        day=opened.batch.manifest.day,
        id=opened.batch.task.id,
        command=command,
        version=version,
    )


def _checks(opened: Opened, words: Translation, truths: dict[int, list[float]], together: str | None) -> dict[str, Any]:
    """Return what stands in one language for those who check: tables, standard errors, promises, and the checklist."""
    draft, manifest = opened.batch.task.draft, opened.batch.manifest
    rows_of = [0] * len(draft.questions)
    for column, rows in zip(draft.columns, manifest.rows, strict=True):
        rows_of[column.question] += rows
    answers = [_answer(opened, place, rows, truths.get(place), words) for place, rows in enumerate(rows_of)]
    printed = set[str]()
    for answer in answers:  # how to read estimates stands with the first answer that it holds for
        answer["estimate"]["read"] = once(answer["estimate"]["read"], printed)
    besides = [words(ONE_OF_SEVERAL, command=together)] if together else []
    return {
        "language": words.language or "en",
        "words": words,
        "response": "" if manifest.codes is None else response(manifest.n, manifest.codes),
        "answers": answers,
        "common": [covers_line(manifest.n, words), *_common(answers), *besides],
        "headings": [words(each) for each in (_CENTRAL[-1:] if draft.operated_by.one_hand else _CENTRAL)],
        "levels": _levels(opened, words),
        "sentences": _sentences(opened, words),
        "cannot": cannot_be_checked(draft, manifest.counts, words),
        "checklist": collection_checklist(opened, words=words),
    }


def _common(answers: list[dict[str, Any]]) -> list[str]:
    """Return the notes that every one of several answers has, which are shown once."""
    notes = [answer["estimate"]["notes"] for answer in answers]
    return [note for note in notes[0] if all(note in other for other in notes)] if len(notes) > 1 else []


def _answer(opened: Opened, place: int, rows: int, truth: list[float] | None, words: Translation) -> dict[str, Any]:
    question, release = opened.batch.task.draft.questions[place], opened.releases[place]
    junk, more = opened.junk[place], opened.more[place]
    title, shares = words.of(question.text), question.kind != "number"
    named = range(len(question.choices)) if more.words is None else more.words.named
    names = [words.of(question.choices[each]) for each in named]
    answer = Answer(title, release.guarantee, release, truth, simultaneous=question.together, names=names)
    return {
        "question": title,
        "estimate": estimate_parts(answer, words),
        "more": [*more_lines(question, more, words), *weighted_lines(question, opened.weighted[place], words)],
        "junk": junk.total,
        "rows": rows,
        "effect_seen": words.distance(junk.effect_seen, shares=shares),
        "effect_of_share": words.distance(junk.effect_of_share, shares=shares),
    }


def _levels(opened: Opened, words: Translation, *, promised: bool = True) -> list[dict[str, Any]]:
    """Return name, people and numbers of each level, without the promised number where only certified ones stand."""
    draft, counts = opened.batch.task.draft, opened.batch.manifest.counts
    rows: list[dict[str, Any]] = []
    for place, level in enumerate(draft.levels):
        crowd = opened.crowd[place]
        numbers: list[str] = []
        if not draft.operated_by.one_hand:
            numbers += [*([wording.up(level.promise)] if promised else []), wording.up(opened.floor[place])]
            numbers.append(wording.up(crowd) if crowd is not None and crowd_tells(crowd, level.promise) else "–")
        numbers.append(wording.up(what_is_promised(draft, place).local))
        people = words.count(counts[place])
        rows.append({"name": words.of(level.name), "people": people, "numbers": [*map(words.number, numbers)]})
    return rows


def _sentences(opened: Opened, words: Translation) -> list[str]:
    draft = opened.batch.task.draft
    read = could_be_read(draft, words)
    if draft.operated_by.one_hand:
        sentence = "{analyzer} both shuffled and analyzed, so only this number is a promise."
        return [words(sentence, analyzer=draft.operated_by.analyzer), *read]
    return [
        words(
            "The numbers are epsilon over all questions, at delta = {delta}. The first was promised, and the second "
            "certified: it holds if the shuffler was honest, even if every other participant was fake. The third holds "
            "if, besides, at least 95 % of the other participants were honest; it is left out where it is within 5 % "
            "of the promise. The last holds even if shuffler and analyzer work together: the person's own device makes "
            "it so.",
            delta=wording.probability(draft.delta),
        ),
        *read,
    ]


def could_be_read(draft: Draft, words: Translation = ENGLISH) -> list[str]:
    """Return a sentence on what colluding parties can read, with the number of cases for every level.

    Parameters
    ----------
    draft : Draft
        The task.
    words : Translation
        The language.
    """
    hands = {name: _quoted(hand, words) for name, hand in vars(draft.operated_by).items()}
    readable = [what_is_read(draft, place) for place in range(len(draft.levels))]
    cases = [
        words(
            f"{'up to ' if len(shares) > 1 else ''}{{cases}} at level {{level}}",
            cases=in_100(max(shares), words.language or "en"),
            level=_quoted(words.of(level.name), words),
        )
        for level, (_, shares) in zip(draft.levels, readable, strict=True)
    ]
    predicate = "are the person's true answer" if readable[0][0] == "answer" else "depend on the person's answer"
    who = (
        "{analyzer} can" if draft.operated_by.one_hand else "If {shuffler} worked together with {analyzer}, they could"
    )
    sentence = f"{who} read what a device sent. Of 100 such reports {{cases}} {predicate}."
    return [words(sentence, cases=", ".join(cases), **hands)]
