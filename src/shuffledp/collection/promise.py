"""The certified promises of a task: the floor from its dummies, and the smaller epsilon for an honest crowd.

The only module of the collection that asks the accountant. The *floor* (docs/theorems/floor.md) holds for every batch
size and against every other participant: it depends on the integers by which a level draws, the dummies' law, and
nothing else.

**What a person is promised, in words**: one function for the drafting command, the client and the page's data.

Three numbers, one for each attacker: the promise, stated first, holds if the shuffler is honest, the local one against
everybody, the crowd's if besides most others are honest. Where one hand runs analyzer and shuffler, only the local one
is told; the crowd's is left out where it is hardly smaller than the promise. A local budget says little in words, so
beside it stands how often what was sent is the true answer.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from shuffledp.accounting import (
    ComposedProfile,
    LocalProfile,
    PrivacyProfile,
    bounds,
    calibrate_dummies,
    compose,
    compose_floors,
    floor_profile,
    remembered_by_thread,
)
from shuffledp.ball import BallDummies
from shuffledp.budgets import Budgets
from shuffledp.collection.asked import Level, StatedDummies, same_hand
from shuffledp.collection.draw import SLACK, Family
from shuffledp.collection.laws import (
    CROWD_SLACK,
    FLOOR_SLACK,
    JointFloor,
    certified_epsilon,
    check_law_work,
    covers,
    floor_of_columns,
    law_of_task,
    published,
)
from shuffledp.collection.task import Draft
from shuffledp.dummies import DiscreteLaplace, OnesLaw, Uniform
from shuffledp.errors import InvalidInput, OutOfRegime, Refused, attempt
from shuffledp.errors import shown as entry_shown
from shuffledp.numerics.floats import few_digits_up, round_down, round_up
from shuffledp.setting import Setting

# How much work a task's certificate is, told before any of it is done: a task comes from somebody else.
#
# What is counted are the atoms of the pairs of laws that the floor sums over (`numerics.fake_reports`), and a fixed
# number for each law: about a million are a second and some 50 MB where laws are composed. Equal questions are one
# law.

MOST_WORK = 1 << 24
"""Largest work, about a quarter of a minute: 100 different laws, such as of 32 different questions at three levels."""
_A_LAW = 150_000
_ALONE = 4
"""Factor by which the certificate of a single question is faster, since its pair is composed with no other."""
_TAIL = 110.0
"""Negative logarithm of the probability of counts that are left out."""


def work_of(
    draws: Sequence[Sequence[int]], questions: Sequence[Family], dummies: Sequence[StatedDummies], reports: int
) -> int:
    """Return a measure of the work of certifying a floor for each level.

    Parameters
    ----------
    draws, questions, dummies, reports
        As for `promise.floor`.
    """
    laws = {
        (family.kind, family.records if family.kind == "krr" else 0, law, keep)
        for draw in draws
        for family, law, keep in zip(questions, dummies, draw, strict=True)
    }
    families = {(family.kind, family.records if family.kind == "krr" else 0): family for family in questions}
    alone = _ALONE if len(questions) == 1 else 1
    return sum(_A_LAW + _atoms(families[kind, records], law, reports) // alone for kind, records, law, _ in laws)


def check_work(
    draws: Sequence[Sequence[int]], questions: Sequence[Family], dummies: Sequence[StatedDummies], reports: int
) -> None:
    """Refuse a task whose certification takes longer than anybody should wait for somebody else's task.

    Parameters
    ----------
    draws, questions, dummies, reports
        As for `promise.floor`.
    """
    work = work_of(draws, questions, dummies, reports)
    if work > MOST_WORK:
        raise InvalidInput(
            f"certifying this task sums over {work:,} counts of {len(questions)} questions and {len(draws)} levels, "
            f"above the limit of {MOST_WORK:,}; ask fewer different questions, or with fewer levels or dummies"
        )


def _atoms(family: Family, law: StatedDummies, reports: int) -> int:
    """Return the number of counts that one question needs at one level.

    Where the reports of an answer are not one of two halves, pairs of counts are needed.
    """
    if law.law == "laplace":
        return law.count + reports
    share, total = float(family.own_share), law.count + reports
    spread = total * share * (1.0 - share)
    reach = _TAIL / 3.0 + math.sqrt((_TAIL / 3.0) ** 2 + 2.0 * _TAIL * spread)
    span = int(min(total * share, reach) + min(total * (1.0 - share), reach)) + 2
    if family.kind in ("rr", "one-bit"):
        return span
    return span**2 if reports == 1 else 4 * span**2  # of two reports every draw is followed, and two pairs are made


FAKE = 0.05
"""Share of the other participants who may be fake in the epsilon for an honest crowd."""
CHORDS = 5e-3
"""Relative width allowed to the composition of an honest crowd's questions, which saves four fifths of the time."""
_STEPS = 30


def floor(
    draws: Sequence[Sequence[int]],
    questions: Sequence[Family],
    dummies: Sequence[StatedDummies],
    delta: float,
    reports: int = 1,
) -> tuple[float, ...]:
    """Certify the central epsilon (nats) of each level, whatever all other participants do.

    Parameters
    ----------
    draws : sequence of sequence of int
        For each level and question an integer K: K/2^64 is the probability of a report that is the record's own.
    questions : sequence of Family
        Randomizers of the questions.
    dummies : sequence of StatedDummies
        Dummies that the shuffler adds to each question.
    delta : float
        Central delta, in (0, 1).
    reports : {1, 2}
        Number of reports that one person may send to each question: 2 under open admission.

    Returns
    -------
    tuple of float
        For each level the certified upper end, over all questions together, for a person with all reports.

    Raises
    ------
    InvalidInput
        If the dummies are too many to be certified, or all laws together; `collection.work` counts before.
    """
    check_work(draws, questions, dummies, reports)
    return tuple(_floor(tuple(draw), tuple(questions), tuple(dummies), delta, reports) for draw in draws)


def floor_of(draft: Draft) -> tuple[float, ...]:
    """Certify the floor of each level of a draft, rounded outward as it is published; see `floor` and `balls`."""
    if draft.version > 1:
        floors = zip(_joint_floors(draft), draft.levels, strict=True)
        return tuple(
            published(certified_epsilon(each, draft.delta, level.promise), level.promise) for each, level in floors
        )
    questions = draft.questions
    certified = floor(
        [level.draw for level in draft.levels],
        [question.family for question in questions],
        [question.dummies for question in questions],
        draft.delta,
        reports_of(draft),
    )
    return tuple(published(value, level.promise) for value, level in zip(certified, draft.levels, strict=True))


def check_floor(draft: Draft) -> tuple[float, ...]:
    """Return the floor of each level, after checking that every promise is kept.

    Raises
    ------
    InvalidInput
        If a floor exceeds its level's promise by more than the tolerance between machines.
    """
    floors = floor_of(draft)
    for level, certified in zip(draft.levels, floors, strict=True):
        if not covers(level.promise, certified):
            name = next(iter(level.name.values()))
            raise InvalidInput(
                f"level {entry_shown(name)} promises epsilon {level.promise:g}, but the dummies of this task only make "
                f"{certified:.6g} true at delta {draft.delta:g}; draft it again, with more dummies or a larger promise"
            )
    return floors


def dummies_for(
    levels: Sequence[tuple[float, float]], families: Sequence[Family], delta: float, reports: int = 1
) -> tuple[StatedDummies, ...]:
    """Return the smallest dummies of each question that keep every level's promise.

    Questions of one bit take the discrete Laplace law, which needs the fewest. A promise that needs dummies is kept
    with so much room that another machine, whose last digits are others, finds it kept as well.

    Parameters
    ----------
    levels : sequence of (float, float)
        Local budget of each question, and promise over all questions, of each level.
    families : sequence of Family
        One for each question.
    delta : float
        Central delta of the promises.
    reports : {1, 2}
        Number of reports that one person may send to each question.

    Raises
    ------
    InvalidInput
        If no number of dummies up to 100,000 a question keeps the promises.
    """
    calibration = calibrate_dummies(
        [(epsilon0, _with_room(epsilon0, promise, len(families) * reports)) for epsilon0, promise in levels],
        [family.library() for family in families],
        delta,
        law="laplace" if any(family.reports == 2 for family in families) else "uniform",
        reports=reports,
    )
    return tuple(
        StatedDummies("laplace", each.count, each.thresholds)
        if isinstance(each, DiscreteLaplace)
        else StatedDummies("uniform", each.count)
        for each in calibration.dummies
    )


@lru_cache(maxsize=64)
def dummies_if_any(
    levels: tuple[tuple[float, float], ...], families: tuple[Family, ...], delta: float, reports: int
) -> tuple[StatedDummies, ...] | Refused:
    """Return what `dummies_for` returns, or its refusal, or that of a draft that takes too long to certify.

    Parameters
    ----------
    levels, families, delta, reports
        As for `dummies_for`.
    """

    def certifiable() -> tuple[StatedDummies, ...]:
        dummies = dummies_for(levels, families, delta, reports)
        draws = [[family.threshold(epsilon0) for family in families] for epsilon0, _ in levels]
        check_work(draws, families, dummies, reports)
        return dummies

    return attempt(certifiable, (InvalidInput,))


LARGEST_OFFERED = 8.0
"""Largest local budget that a survey may offer."""


def check_budgets(draft: Draft, *, accept_one_shuffler: bool) -> None:
    """Refuse a draft whose local budgets are larger than a survey may have.

    Parameters
    ----------
    draft : Draft
        The draft.
    accept_one_shuffler : bool
        Whether the organizer accepts that a single shuffler stands between an answer and the analyzer.
    """
    budgets = [level.epsilon0 for level in draft.levels]
    most = budgets[-1]
    if most > LARGEST_OFFERED:
        raise InvalidInput(
            f"the survey: epsilon0 must be at most {LARGEST_OFFERED:g}; got {most:g}; beyond it answers gain next to "
            f"nothing: write {LARGEST_OFFERED:g} or less"
        )
    if budgets[0] > ONE_SHUFFLER:
        raise InvalidInput(
            f"the survey: one level must have an epsilon0 of at most {ONE_SHUFFLER:g}, so that nobody has to give the "
            f"local budget up; the smallest is {budgets[0]:g}; add a level"
        )
    if most > ONE_SHUFFLER and draft.operated_by.one_hand:
        raise InvalidInput(
            f"the survey: {entry_shown(draft.operated_by.analyzer)} both shuffles and analyzes, so that only epsilon0 "
            f"protects: it must be at most {ONE_SHUFFLER:g}; got {most:g}; lower it, or let somebody else shuffle"
        )
    if most > ONE_SHUFFLER and not accept_one_shuffler:
        raise InvalidInput(
            f"the survey: epsilon0 above {ONE_SHUFFLER:g} leaves people to {entry_shown(draft.operated_by.shuffler)} "
            f"alone; got {most:g}; lower it, or write accept_one_shuffler = true, which people are told"
        )


def check_to_post(draft: Draft) -> tuple[float, ...]:
    """Return what `check_floor` certifies, if a draft may be posted: its budgets, promises and crowds are checked.

    One shuffler counts as accepted above an epsilon0 of 4: such a draft says on every page who has accepted it.
    """
    check_budgets(draft, accept_one_shuffler=True)
    floors = check_floor(draft)
    check_crowd(draft)
    return floors


def _with_room(epsilon0: float, promise: float, reports: int) -> float:
    """Return the epsilon that the dummies must certify for a promise: lower, by the tolerance between machines.

    A promise of at least the local budget of all reports needs no dummies and is returned unchanged.
    """
    return promise if promise >= epsilon0 * reports else promise * (1.0 - FLOOR_SLACK)


def crowd_of(draft: Draft, counts: Sequence[int]) -> tuple[float | None, ...]:
    """Certify the central epsilon of each level if at most 5 % of the participants are fake.

    Which ones is not known; the accountant removes those who hide most. The result is rounded outward as it is
    published, and never above the floor.

    Parameters
    ----------
    draft : Draft
        The draft.
    counts : sequence of int
        Number of people at each level.

    Returns
    -------
    tuple of float or None
        For each level; None where nobody has it.
    """
    floors = floor_of(draft)
    # integers may imply epsilon0 + 2^-40; the larger budget hides less, as victim and as company
    budgets = [float(round_up(level.epsilon0 + float(SLACK))) for level in draft.levels]
    people = tuple((budget, n) for budget, n in zip(budgets, counts, strict=True) if n)
    # the law of version 2 is known to no bound of a crowd, and dummies that are left out can only hide more
    laws = Counter((column.family, column.dummies if draft.version == 1 else None) for column in draft.columns)
    parts = tuple(laws.items())
    reports = reports_of(draft)
    return tuple(
        min(certified, few_digits_up(_crowd(parts, people, budget, draft.delta, reports, certified))) if n else None
        for certified, budget, n in zip(floors, budgets, counts, strict=True)
    )


def check_crowd(draft: Draft) -> None:
    """Refuse a draft that states a smaller epsilon for an honest crowd than is certified here.

    It may be smaller by the factor `CROWD_SLACK`, as the draft was made on another machine.
    """
    planned = [level.planned for level in draft.levels]
    for level, certified in zip(draft.levels, crowd_of(draft, planned), strict=True):
        least = level.promise if certified is None else min(certified, level.promise)
        if not covers(level.crowd, least, CROWD_SLACK):
            name = next(iter(level.name.values()))
            raise InvalidInput(
                f"level {entry_shown(name)} tells epsilon {level.crowd:g} for an honest crowd, but {least:.6g} is what "
                "can be certified for the planned people; draft it again"
            )


def reports_of(draft: Draft) -> int:
    """Return the number of reports that one person may send to a question.

    2 under open admission, where nobody can count the reports of a person (a private window sends a second one).
    """
    return 2 if draft.admission == "open" else 1


def law_of(dummies: StatedDummies) -> Uniform | OnesLaw:
    """Return the dummies of a task of version 1 as an object of `shuffledp.dummies`."""
    return Uniform(dummies.count) if dummies.law == "uniform" else OnesLaw(dummies.draw)


def cost_of_answer(draft: Draft, place: int) -> tuple[float, ...]:
    """Return the certified epsilon (nats) of answers to one question alone, for each level, whoever the others are.

    Rounded outward, as it is published. That is the question's floor; under one ball law for all questions it is the
    floor of all of them. Where one organisation runs shuffler and analyzer, it is the local budgets of its reports.

    Parameters
    ----------
    draft : Draft
        The draft.
    place : int
        Index of the question, from 0.
    """
    reports, question = reports_of(draft), draft.questions[place]
    if draft.operated_by.one_hand:
        profiles = [compose([(_local(level), reports * question.width)]) for level in draft.levels]
        return tuple(few_digits_up(profile.epsilon(draft.delta).upper) for profile in profiles)
    if draft.version > 1:
        if question.dummies.law == "ball":
            return floor_of(draft)
        floors = zip(_joint_floors(draft, place), draft.levels, strict=True)
        return tuple(few_digits_up(certified_epsilon(each, draft.delta, level.promise)) for each, level in floors)
    draws = [[level.draw[place]] for level in draft.levels]
    certified = floor(draws, [question.family], [question.dummies], draft.delta, reports)
    return tuple(few_digits_up(value) for value in certified)


def _local(level: Level) -> LocalProfile:
    """Return the local guarantee of one report; integers may imply a budget of epsilon0 + 2^-40."""
    return LocalProfile(float(round_up(level.epsilon0 + float(SLACK))), 0.0)


def promised_profiles(draft: Draft) -> tuple[PrivacyProfile, ...]:
    """Return the privacy profile of answering at each level, whoever the others are, which a ledger enters.

    That is the floor, over all questions. Where one organisation runs shuffler and analyzer, it can see the reports
    unshuffled, so it is the local budgets of all reports.

    Parameters
    ----------
    draft : Draft
        The draft.
    """
    if draft.operated_by.one_hand:
        reports = len(draft.columns) * reports_of(draft)
        return tuple(compose([(_local(level), reports)]) for level in draft.levels)
    if draft.version > 1:
        return _joint_floors(draft)
    families = tuple(question.family for question in draft.questions)
    dummies = tuple(question.dummies for question in draft.questions)
    reports = reports_of(draft)
    check_work([level.draw for level in draft.levels], families, dummies, reports)
    return tuple(_floor_profile(level.draw, families, dummies, reports) for level in draft.levels)


def _joint_floors(draft: Draft, place: int | None = None) -> tuple[JointFloor, ...]:
    """Return the floor of each level of a task of version 2, of all columns or of one question with normal dummies."""
    check_law_work([(column.family, column.dummies) for column in draft.columns])
    law, columns, reports = law_of_task(draft), draft.columns, reports_of(draft)
    if place is not None and not isinstance(law, BallDummies):
        law = tuple(cells for cells, column in zip(law, columns, strict=True) if column.question == place)
        columns = tuple(column for column in columns if column.question == place)
    floors: list[JointFloor] = []
    for level in draft.levels:
        keep = [level.draw[column.question] for column in columns]
        local = round_up((level.epsilon0 + float(SLACK)) * len(columns) * reports)
        floors.append(floor_of_columns(law, keep, reports, local))
    return tuple(floors)


@lru_cache(maxsize=512)
def _floor(
    draw: tuple[int, ...], families: tuple[Family, ...], dummies: tuple[StatedDummies, ...], delta: float, reports: int
) -> float:
    return float(_floor_profile(draw, families, dummies, reports).epsilon(delta).upper)


@remembered_by_thread(16)
def _floor_profile(
    draw: tuple[int, ...], families: tuple[Family, ...], dummies: tuple[StatedDummies, ...], reports: int
) -> PrivacyProfile:
    columns = list(zip(families, dummies, draw, strict=True))

    def composed() -> PrivacyProfile:
        each = {  # equal questions share one floor
            (family, law, keep): floor_profile(family.library(), None, law_of(law), draw=keep, reports=reports)
            for family, law, keep in set(columns)
        }
        return compose_floors([each[one] for one in columns])

    profile = attempt(composed, (OutOfRegime,))
    if isinstance(profile, Refused):
        raise InvalidInput(f"the dummies of this task cannot be certified: {profile.reason}")
    return profile


@lru_cache(maxsize=512)
def _crowd(
    parts: tuple[tuple[tuple[Family, StatedDummies | None], int], ...],
    people: tuple[tuple[float, int], ...],
    budget: float,
    delta: float,
    reports: int,
    floor: float,
) -> float:
    """Return the epsilon of an honest crowd; infinite where it seems to be above the floor, which is stated then."""
    population = Budgets(*zip(*people, strict=True))
    settings = [
        Setting(
            population,
            family.library(),
            seen="reports",
            neighboring="replace-one",
            missing=FAKE,
            dummies=None if dummies is None else law_of(dummies),
        )
        for (family, dummies), _ in parts
    ]
    profiles = [bounds["blanket"].profile(setting, epsilon0=budget) for setting in settings]
    profile = compose(list(zip(profiles, (times for _, times in parts), strict=True)), chords=CHORDS)

    def epsilon(at: float) -> float:
        ceiling = floor / reports
        if isinstance(profile, ComposedProfile) and profile.seems_above(at, ceiling):
            return math.inf
        return float(profile.epsilon_below(at, ceiling).upper)

    return epsilon(delta) if reports == 1 else _two_reports(epsilon, delta)


def _two_reports(epsilon_at: Callable[[float], float], delta: float) -> float:
    """Return the central epsilon for two reports of one person, changed one after the other.

    H(P0, P2; 2e) <= H(P0, P1; e) + e^e H(P1, P2; e) <= d (1 + e^e) if each step has delta(e) <= d.
    """
    share = delta / 4.0
    for _ in range(_STEPS):
        if math.isinf(epsilon := epsilon_at(share)):
            break
        allowed = float(round_down(delta / (1.0 + round_up(math.exp(epsilon)))))
        if share <= allowed:
            return float(round_up(2.0 * epsilon))
        share = allowed * 0.999
    return math.inf


LANGUAGES = ("en", "de", "fr")
CROWD_TELLS = 0.95
"""Share of the promise below which the epsilon for an honest crowd is stated: above it, it is nearly the promise."""
READ = frozenset(
    ("together_reads", "together_reads_open", "together_reads_part", "one_hand_reads", "one_hand_reads_part")
)
"""Keys of the sentences on what colluding parties can read."""
WOULD_READ = 5.0
"""Local budget from which on a sentence says that whoever reads the report reads the answer."""
ONE_SHUFFLER = 4.0
"""Largest local budget without a warning: above it a person depends on a single shuffler, as organizers must accept."""
_SHOWN = Context(prec=3, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class Promised:
    """The numbers of one level and the sentences about them.

    Parameters
    ----------
    headline : float
        The number that is stated first: `promise`, or `local` where one organisation runs analyzer and shuffler.
    local : float
        Epsilon against analyzer and shuffler together, over all questions; for two answers of a person under open
        admission.
    promise : float
        Epsilon if the shuffler is honest, whoever the others are.
    crowd : float
        Epsilon if, besides, as many as planned answer and 95 % of the others are honest.
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
        """All sentences, one on each line."""
        return "\n".join(sentence for _, sentence in self.sentences)


def what_is_promised(draft: Draft, level: int, language: str = "en", *, browser: bool = False) -> Promised:
    """Return the promises to a person at one level, in numbers and sentences.

    Parameters
    ----------
    draft : Draft
        The task.
    level : int
        Index of the level, from 0.
    language : {"en", "de", "fr"}
        Language of the sentences; the task's own words are in it if the task has it, else in the task's first language.
    browser : bool
        Whether the answer is given on a web page, which whoever serves it could change.

    Raises
    ------
    InvalidInput
        If there is no such level or language.
    """
    if not 0 <= level < len(draft.levels) or language not in LANGUAGES:
        languages = ", ".join(LANGUAGES)
        raise InvalidInput(f"there is no level {level}, or no language {entry_shown(language)} (known: {languages})")
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
    """Return what somebody who reads the reports of one person learns.

    Parameters
    ----------
    draft : Draft
        The task.
    level : int
        Index of the level, from 0.

    Returns
    -------
    str and frozenset of Fraction
        "answer" and, for each question whose report can be the true answer, the chance that it is; where there is no
        such question, "part" and for each question the chance that the report depends on the answer.
    """
    questions = list(zip(draft.questions, draft.levels[level].draw, strict=True))
    true = frozenset(question.true_share(keep) for question, keep in questions if question.family.is_answer)
    return ("answer", true) if true else ("part", frozenset(question.true_share(keep) for question, keep in questions))


def in_100(share: Fraction, language: str = "en") -> str:
    """Return a probability below 1 as a number of 100 cases, rounded to the nearest but never to 100.

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
    """Return whether the epsilon for an honest crowd is worth stating beside the promise.

    It is None for an empty level.
    """
    return crowd is not None and crowd < CROWD_TELLS * promise


def spent_by_answering(draft: Draft, level: int) -> tuple[float, float]:
    """Return what one answer adds to a device's ledger: the sum of its reports' local budgets, and the promise.

    Where one organisation runs analyzer and shuffler nothing below the local budgets is promised. The survey page's
    record has the same two numbers (page/promise.js).

    Parameters
    ----------
    draft : Draft
        The task.
    level : int
        Index of the level, from 0.
    """
    chosen = draft.levels[level]
    local = chosen.epsilon0 * len(draft.columns)
    return local, local if draft.operated_by.one_hand else min(chosen.promise, local)


@cache
def promises_data() -> dict[str, Any]:
    """Return the sentences with the conditions under which each is shown, as embedded in the page."""
    return json.loads(files("shuffledp.collection").joinpath("promises.json").read_text(encoding="utf-8"))


def in_language(text: Any, language: str) -> str:
    """Return a text of a task in this language if it has it, else in its first."""
    return text[language] if language in text else next(iter(text.values()))


def quoted(text: str, language: str = "en") -> str:
    """Return an organizer's words between quotation marks, which the words themselves cannot close.

    Parameters
    ----------
    text : str
        Words of the organizer.
    language : {"en", "de", "fr"}
        Language of the quotation marks.

    Examples
    --------
    >>> print(quoted('careful”: your number is 0.001. Level “open'))
    “careful': your number is 0.001. Level 'open”
    """
    data = promises_data()
    (opening, closing), single = data["quotes"][language], set(data["apostrophes"])
    run = re.compile(f"[{re.escape(data['marks'] + data['apostrophes'])}]+")
    return opening + run.sub(lambda match: match[0] if match[0] in single else "'", text) + closing


def shown(value: float, language: str = "en") -> str:
    """Return a number for people: three significant digits, rounded up, with the language's decimal separator.

    Examples
    --------
    >>> shown(0.1), shown(0.23371), shown(2.7182818), shown(1234.5), shown(0.25, "de")
    ('0.1', '0.234', '2.72', '1240', '0,25')
    """
    rounded = _SHOWN.create_decimal(Decimal(repr(value)))
    return f"{rounded.normalize():f}".replace(".", "." if language == "en" else ",")


def _grouped(count: int) -> str:
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
