"""The questions that NIST SP 800-226 asks of a differentially private release, answered from its settings.

The publication: J. Near, D. Darais, N. Lefkovitz and G. Howarth, Guidelines for Evaluating Differential Privacy
Guarantees, NIST Special Publication 800-226, 2025. The questions follow its pyramid from the top (parameters, unit of
privacy) to the bottom (trust, side channels, access, exposure of collected data). A point that the settings do not
determine is marked as open, never guessed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shuffledp.in_words import ENGLISH, Translation
from shuffledp.report import wording
from shuffledp.report.answer import Answer
from shuffledp.setting import SEEN_MEANING, Guarantee, Setting

OPEN = "open: "
"""Prefix of an answer that the settings do not determine."""
QUESTIONS = (
    "Unit of privacy",
    "Privacy model",
    "Neighbouring relation",
    "Parameters",
    "Trust: who must be honest",
    "Who can see what",
    "Collection and retention",
    "Side channels",
    "Access control",
    "Composition and other releases",
)
"""The questions, in their order on the page."""
SEVERAL_ROWS = (
    "whether anybody owns several rows; such a person is protected less than stated. Name the column that tells whose "
    "row it is (--person)."
)
TIMES = f"{OPEN}running time, memory, traffic and refusals may depend on records; the guarantee leaves them out."
SECURE_DRAW = "Noise is keyed by the operating system and drawn by exact integer sampling."
SEEDED_DRAW = f"{OPEN}the noise came from a known seed (simulation): nothing on this page is private."
ONE_PROGRAM = "One program played all parts on one table: whoever ran it must be honest, as in the central model."
TABLE = (
    "The records lay in a table before the run, and lie there after it; the guarantee says nothing of them.",
    f"{OPEN}how the table was collected, who has copies, and when it is deleted.",
)
OTHERS = f"{OPEN}other releases about the same people, which cost more on top; a ledger (--ledger) adds them up."


@dataclass(frozen=True)
class Point:
    """One question of the checklist, with its answers.

    Parameters
    ----------
    question : str
        The question, in a word or two.
    answers : tuple of str
        Sentences; those that start with `OPEN` say what a reader must still find out.
    """

    question: str
    answers: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether an answer is left for the reader to find out."""
        return any(answer.startswith(OPEN) for answer in self.answers)


def checklist(answers: Sequence[Answer], *, groups: bool = False) -> list[Point]:
    """Return the answers to the questions of NIST SP 800-226 for the content of a page.

    Parameters
    ----------
    answers : sequence of Answer
        The page's answers, at least one; all are about one population and one view.
    groups : bool
        Whether the answers are of disjoint public groups.

    Returns
    -------
    list of Point
        Ten, in their order on the page.
    """
    return points(
        _unit(answers[0]),
        _model(answers),
        _neighbours(answers),
        _parameters(answers),
        _trust(answers[0]),
        _views(answers[0]),
        _exposure(answers[0]),
        _side_channels(answers),
        _access(answers[0]),
        _composition(answers, groups),
    )


def points(*answers: Iterable[str], words: Translation = ENGLISH) -> list[Point]:
    """Return the checklist with the given answers.

    Parameters
    ----------
    *answers : iterable of str
        Sentences for each of `QUESTIONS`, in their order.
    words : Translation
        The language of the questions.
    """
    return [Point(words(question), tuple(sentences)) for question, sentences in zip(QUESTIONS, answers, strict=True)]


def _unit(answer: Answer) -> Iterator[str]:
    setting, release = answer.guarantee.setting, answer.release
    size = wording.count(setting.group_size)
    if release is None:
        if setting.group_size > 1:
            yield f"Any {size} users together, with all their reports."
        else:
            yield "One user, with all of that user's reports."
        yield f"{OPEN}whether one person can be several users."
    elif release.unit == "people":
        yield f"One person, with at most {size} rows." if setting.group_size > 1 else "One person, with one row."
    elif release.unit == "reports":
        yield "One report."
        yield f"{OPEN}whether anybody sent several reports; such a person is protected less than stated."
    else:
        yield "One row of the table."
        yield f"{OPEN}{SEVERAL_ROWS}"


def _model(answers: Sequence[Answer]) -> Iterator[str]:
    yield (
        "The shuffle model: each record is randomized by itself within its own local budget, then all reports are "
        "mixed. The stated epsilon and delta are those of approximate differential privacy of what the analyzer sees."
    )
    if all(answer.guarantee.setting.budgets.is_pure for answer in answers):
        yield "Each single report keeps its local budget without exception (pure local differential privacy)."
    else:
        yield "A single report keeps its local budget up to its own delta (approximate local differential privacy)."


def _neighbours(answers: Sequence[Answer]) -> Iterator[str]:
    setting = answers[0].guarantee.setting
    sizes = {answer.guarantee.setting.budgets.n for answer in answers}  # groups differ in theirs
    size = f" ({wording.count(sizes.pop())})" if len(sizes) == 1 else " in each group"
    what = f"{wording.count(setting.group_size)} records" if setting.group_size > 1 else "one record"
    yield (
        f"Replacement (bounded differential privacy): neighbours differ in {what}. The number of people{size} "
        "and the list of budgets are the same in both, and public."
    )
    yield "Whether somebody took part is not protected."


def _parameters(answers: Sequence[Answer]) -> Iterator[str]:
    for answer in answers:
        guarantee = answer.guarantee
        budgets = guarantee.setting.budgets
        whose = f" (“{answer.question}”)" if len(answers) > 1 else ""
        low, high = wording.near(float(budgets.epsilons[0])), wording.near(float(budgets.epsilons[-1]))
        local = f"local budgets from {low} to {high}" if budgets.levels > 1 else f"local budget {low}"
        yield f"{_certified(guarantee)}; {local}{whose}."
        if math.isinf(guarantee.epsilon.upper):
            yield f"{OPEN}a delta, or a setting, at which a finite epsilon holds{whose}."
        if guarantee.delta * budgets.n >= 1.0:
            yield f"{OPEN}a delta below 1/n; this one allows one person's record to be published{whose}."


def _certified(guarantee: Guarantee) -> str:
    worst = " for the worst budget level" if guarantee.levels_total > 1 else ""
    delta = wording.probability(guarantee.delta)
    return f"Central epsilon at most {wording.up(guarantee.epsilon.upper)} at delta = {delta}{worst}, certified"


def _trust(answer: Answer) -> Iterator[str]:
    setting = answer.guarantee.setting
    yield (
        "The shuffler must mix uniformly, strip names, times and order, and not collude with the analyzer; if it "
        "does, only the local guarantee holds."
    )
    yield "The program that randomizes a record must draw its noise as stated. The analyzer need not be honest."
    if _one_program(answer):
        yield ONE_PROGRAM
        return
    if setting.colluding or setting.missing:
        yield f"The guarantee holds {wording.enumerated(_allowed(setting))}."
    else:
        yield f"{OPEN}whether others collude, stay away or send junk; the guarantee counts on all of them."
    yield f"{OPEN}who runs the shuffler, and what keeps it apart from the analyzer."


def _allowed(setting: Setting) -> list[str]:
    named = {
        f"if at most {wording.count(setting.colluding)} of the other users collude with the analyzer": setting.colluding
        > 0,
        f"if at most {wording.percent_down(setting.missing)} stay away or send junk": setting.missing > 0.0,
    }
    return [words for words, applies in named.items() if applies]


def _views(answer: Answer) -> Iterator[str]:
    setting = answer.guarantee.setting
    yield "The shuffler: randomized reports and their senders, never a record."
    yield f"The analyzer: {SEEN_MEANING[setting.seen].removeprefix('the analyzer sees ')}."
    yield "Everybody: the number of people, the budgets without names, and what is published."
    if _one_program(answer):
        yield "Whoever ran the program: the records themselves."


def _exposure(answer: Answer) -> Iterator[str]:
    if _one_program(answer):
        yield from TABLE
    else:
        yield "A record need not leave the person's device; what leaves it is the randomized report."
        yield f"{OPEN}whether records are randomized on people's own devices, and how long reports are kept."


def _side_channels(answers: Sequence[Answer]) -> Iterator[str]:
    releases = [answer.release for answer in answers if answer.release is not None]
    if not releases:
        yield f"{OPEN}what draws the noise; this page is about a plan."
    elif all(release.private for release in releases):
        yield SECURE_DRAW
    else:
        yield SEEDED_DRAW
    yield TIMES


def _access(answer: Answer) -> Iterator[str]:
    what = "the table, this program and its logs" if _one_program(answer) else "reports, keys and the shuffler's logs"
    yield f"{OPEN}who may reach {what}, and who may ask again."


def _composition(answers: Sequence[Answer], groups: bool) -> Iterator[str]:
    setting = answers[0].guarantee.setting
    if setting.rounds > 1:
        yield f"All {wording.count(setting.rounds)} rounds are counted together."
    if groups:
        yield "Nobody is in two groups, so the groups' costs do not add up."
    elif len(answers) > 1:
        yield "Each number is of one question alone; all questions of this page together cost at most the sum."
    else:
        yield "This release alone is counted."
    yield OTHERS


def _one_program(answer: Answer) -> bool:
    """Return whether one program held all records, as it did if there is an estimate from rows or people."""
    return answer.release is not None and answer.release.unit != "reports"
