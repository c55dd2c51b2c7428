"""The plan of a collection, before any key is made: levels, half-widths, and why a wish cannot be met.

`task plan` shows what `task draft` writes: levels, families and dummies of both come from `offer_of`, and the
half-widths of both from `shuffledp.collection.estimates.predicted_half_width`. They are those of the intervals that
will be printed, at the level of `shuffledp.collection.kinds.miss_of`: those of a table or a list hold together. The
dummies are those of the law that keeps the promises with the smaller error, a ball law or normal ones
(`shuffledp.collection.laws.law_if_any`), or dummies of each question's own beside a question of the family
``hadamard:K``. The *limit* is the least half-width of the plan's budgets and of reports without any local noise, whose
error is that of the dummies alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from shuffledp.collection.asked import LARGEST_EPSILON0, TOGETHER, Kind, StatedDummies, either_cell
from shuffledp.collection.dictionary import seen_from, seen_line
from shuffledp.collection.draw import WHOLE, Family
from shuffledp.collection.estimates import (
    JUNK,
    Slopes,
    best_bits,
    law_of_count,
    predicted_half_width,
    scaled_counts,
    shift_of_future_junk,
    slope_of,
)
from shuffledp.collection.kinds import MOST, least_number, margins_line, margins_of, miss_of
from shuffledp.collection.laws import (
    TaskLaw,
    in_words_of_promises,
    law_if_any,
    least_promises,
    no_law,
    parts_of,
)
from shuffledp.collection.promise import ONE_SHUFFLER, dummies_if_any
from shuffledp.errors import InvalidInput, Refused, whole_number
from shuffledp.in_words import count, counted, half_width_words
from shuffledp.numerics.floats import few_digits_up

Z95 = 1.959963984540054
"""Half-width of a normal 95 % interval in standard errors."""
BUDGETS = tuple(2.0 + step / 2.0 for step in range(13))
"""Local budgets among which the planner chooses: 2, 2.5, ..., 8 nats."""
MANY = 3
"""Largest number of questions, whatever their columns, with a default promise of 1; beyond it is 2."""
MOST_PROMISED = 8.0
"""Largest promise that is named as a way to a wanted half-width."""
_MOST_TRIES = 12
_MOST_SIZES = 6
"""Number of different sizes of groups beyond which only the smallest and the largest are shown."""
OFFERED = (("careful", 2.0), ("usual", 4.0), ("open", 6.0))
"""The levels of a survey that states neither levels nor a wanted half-width."""


@dataclass(frozen=True)
class Planned:
    """A column of a question as the planner sees it; columns of one question are equal.

    Parameters
    ----------
    text : str
        The question, in the survey's first language.
    family : Family
        Its randomizer. A number of the family ``one-bit`` gets the family ``bits:B`` with the B of least noise, at most
        the number of its steps; beside a question of ``hadamard:K`` it stays ``one-bit``.
    low, high : float
        The range of its answer: 0 and 1 for a share.
    kind : Kind
        Kind of its question.
    shape : tuple of int
        Number of rows and of columns of a table; empty for other kinds.
    answers : int
        Number of shares that are estimated, 1 of a number; 0: as many as the family has answers.
    groups : int
        Number of groups whose answers are compared; 1 without groups.
    """

    text: str
    family: Family
    low: float = 0.0
    high: float = 1.0
    kind: Kind = "choice"
    shape: tuple[int, ...] = ()
    answers: int = 0
    groups: int = 1

    @property
    def is_share(self) -> bool:
        """Whether the answer is a share, stated in percentage points."""
        return self.family.kind not in ("one-bit", "bits")

    @property
    def words(self) -> int:
        """Number of answers of a dictionary, of which this is one of two columns; 0 for other questions."""
        return self.answers if self.kind == "dictionary" else 0

    @property
    def miss(self) -> float:
        """Probability with which each printed interval of its answers may miss."""
        return miss_of(self.kind, self.answers or self.family.records, self.groups)


Levels = tuple[tuple[str, float, int], ...]
"""Name, local budget and planned number of people of each level, by ascending budget."""


@dataclass(frozen=True)
class Request:
    """The inputs of a plan: questions, people, promise and wishes.

    Parameters
    ----------
    questions : tuple of Planned
        At least one.
    people : int
        Number of people expected to answer, at least 1.
    promise : float
        Central epsilon over all questions, the same for every level.
    delta : float
        Central delta.
    wanted : float or None
        Half-width as a share of the range, in (0, 1/2); None: the default levels.
    shufflers : int
        Number of shufflers that add dummies, from 1 to 8.
    reports : {1, 2}
        Number of reports that one person may send: 2 under open admission.
    levels : Levels
        The survey's own levels, with its people; none: the planner chooses.
    promises : tuple of float
        The promise to each of these levels, of which `promise` is the largest.
    accepted : bool
        Whether the organizer accepts an epsilon0 above 4 with a single shuffler.
    one_hand : bool
        Whether one hand shuffles and analyzes, which allows at most 4.
    at_least : int
        Smallest number of people from whom anything is handed over.
    groups : tuple of int
        Number of people in each group of the survey, of which one is planned; none without groups.

    Raises
    ------
    InvalidInput
        If a number is out of its range.
    """

    questions: tuple[Planned, ...]
    people: int
    promise: float
    delta: float
    wanted: float | None = None
    shufflers: int = 1
    reports: int = 1
    levels: Levels = ()
    promises: tuple[float, ...] = ()
    accepted: bool = False
    one_hand: bool = False
    at_least: int = 0
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, most in (("people", MOST), ("shufflers", 8)):
            object.__setattr__(self, name, whole_number(getattr(self, name), name, 1, most))
        if self.wanted is not None and not 0.0 < self.wanted < 0.5:
            raise InvalidInput(
                f"wanted, the half-width in percentage points, must lie between 0 and 50; got {100.0 * self.wanted:g}"
            )
        if not 1e-6 <= self.promise <= 1e3:
            raise InvalidInput(f"the promise must be a central epsilon from 1e-6 to 1000; got {self.promise:g}")

    @property
    def largest(self) -> float:
        """The largest budget that the planner may choose."""
        alone = self.shufflers == 1 and not self.accepted
        return ONE_SHUFFLER if alone or self.one_hand else BUDGETS[-1]

    @property
    def budgets(self) -> tuple[float, ...]:
        """The budgets among which the planner may choose, ascending."""
        return tuple(e for e in BUDGETS if e <= self.largest)

    def of(self, people: int) -> Request:
        """Return the request for another number of people, in the same proportions over the survey's own levels."""
        counts = [planned for _, _, planned in self.levels]
        scaled = zip(self.levels, scaled_counts(counts, people) if self.levels else (), strict=True)
        return replace(self, people=people, levels=tuple((name, e, n) for (name, e, _), n in scaled))

    def among(self, groups: Sequence[int]) -> Request:
        """Return the request for one of several groups that are compared, given how many people each has."""
        questions = tuple(replace(each, groups=max(len(groups), 1)) for each in self.questions)
        return replace(self, questions=questions, groups=tuple(groups))

    def promising(self, promise: float) -> Request:
        """Return the request with another promise, the same for every level."""
        return replace(self, promise=promise, promises=(promise,) * len(self.promises))


@dataclass(frozen=True)
class Offer:
    """What a draft offers: its levels, and what follows from them.

    Parameters
    ----------
    request : Request
        The inputs.
    levels : Levels
        The levels.
    questions : tuple of Planned
        The request's questions, with the families of the draft.
    dummies : tuple of StatedDummies
        Dummies of each shuffler, for each of them.
    law : TaskLaw or None
        The law of these dummies; None for a task of version 1, where each question has its own.
    """

    request: Request
    levels: Levels
    questions: tuple[Planned, ...]
    dummies: tuple[StatedDummies, ...]
    law: TaskLaw | None

    def width(self, place: int) -> float:
        """Return the half-width of one question's answer, as a share of the range, if people answer as planned."""
        return half_width_of(self.questions[place], self.dummies[place], self.levels, self.request.shufflers)

    def margins(self, place: int) -> tuple[float, ...]:
        """Return the half-widths of a table's rows and columns, as shares, if people answer as planned."""
        question, people = self.questions[place], tuple(people for _, _, people in self.levels)
        slopes = tuple(_slope(question.family, epsilon0) for _, epsilon0, _ in self.levels)
        shufflers = self.request.shufflers
        return margins_of(question.family, self.dummies[place], question.shape, slopes, people, shufflers)

    @property
    def widest(self) -> float:
        """The largest half-width of all questions' answers."""
        return max(map(self.width, _first_of_each(self.questions)))


@dataclass(frozen=True)
class Row:
    """The accuracy and privacy of one question at one local budget.

    Parameters
    ----------
    epsilon0 : float
        The local budget, nats.
    true_share : Fraction
        The probability that the report is the true answer or, of a number, that it depends on it; below 1.
    half_width : float
        Half-width of the interval that will be printed if everybody answers at this budget, as a share of the range.
    junk_shift : float
        Largest shift of the answer by 5 % of invalid reports, as a share of the range.
    dummies : int
        Number of dummies of each shuffler; of a budget above those offered, if it were offered.
    """

    epsilon0: float
    true_share: Fraction
    half_width: float
    junk_shift: float
    dummies: int


@dataclass(frozen=True)
class Choice:
    """The planner's result for one question.

    Parameters
    ----------
    question : Planned
        The question, with the family of the draft.
    dummies : StatedDummies
        Dummies of each shuffler.
    limit : float
        Half-width without local noise, as a share of the range: no local budget gives a smaller one.
    rows : tuple of Row
        One for each budget, ascending.
    cannot : str
        Reason why the wanted half-width is impossible, with numbers that are possible; empty where it is possible.
    mixed : float
        Half-width if people spread over the levels as planned, as a share of the range.
    margins : tuple of float
        The same for the rows and the columns of a table; empty for other kinds.
    groups : tuple of (int, float)
        Number of people of some groups, the smallest and the largest among them, and half-width in each, as a share.
    """

    question: Planned
    dummies: StatedDummies
    limit: float
    rows: tuple[Row, ...]
    cannot: str
    mixed: float
    margins: tuple[float, ...]
    groups: tuple[tuple[int, float], ...] = ()


def default_levels(largest: float, people: int) -> Levels:
    """Return the levels of a survey that states neither levels nor a wanted half-width.

    Parameters
    ----------
    largest : float
        The largest local budget that may be offered.
    people : int
        Number of people expected, a fifth of whom are planned at each level but the usual one.
    """
    offered, fifth = [level for level in OFFERED if level[1] <= largest], people // 5
    usual = people - fifth * (len(offered) - 1)
    return tuple((name, e, usual if e == ONE_SHUFFLER else fifth) for name, e in offered)


def levels_up_to(chosen: float, people: int) -> Levels:
    """Return the levels that are offered for a wanted half-width, a fifth of the people at each but the last one.

    Every task offers a level of at most 4, so that nobody has to give the local budget up.

    Parameters
    ----------
    chosen : float
        The largest local budget.
    people : int
        Number of people expected.
    """
    fifth = people // 5
    if chosen <= OFFERED[0][1]:
        return (("careful", chosen, people),)
    if chosen <= ONE_SHUFFLER:
        return (("careful", OFFERED[0][1], fifth), ("usual", chosen, people - fifth))
    return (("careful", OFFERED[0][1], fifth), ("usual", ONE_SHUFFLER, fifth), ("open", chosen, people - 2 * fifth))


def everybody_at(chosen: float, people: int) -> Levels:
    """Return the levels where a wanted half-width is reached only if nobody answers below one budget.

    No smaller budget is offered or, for a budget above 4, one at which nobody is planned.

    Parameters
    ----------
    chosen, people
        As for `levels_up_to`.
    """
    if chosen <= ONE_SHUFFLER:
        return (("usual", chosen, people),)
    return (("usual", ONE_SHUFFLER, 0), ("open", chosen, people))


@dataclass(frozen=True)
class CollectionPlan:
    """The plan of a collection; made by `plan_collection`.

    Parameters
    ----------
    offer : Offer
        What the draft offers.
    choices : tuple of Choice
        One for each question.
    """

    offer: Offer
    choices: tuple[Choice, ...]

    @property
    def request(self) -> Request:
        """The inputs of the plan."""
        return self.offer.request

    @property
    def chosen(self) -> float:
        """The local budget of the level at which most people are planned; of equal ones the largest."""
        return max((people, epsilon0) for _, epsilon0, people in self.offer.levels)[1]

    @cached_property
    def sampling(self) -> float:
        """Half-width of sampling alone if the people represent a much larger population, at a share of 1/2."""
        return min(Z95 * math.sqrt(0.25 / self.request.people), 0.5)


def plan_collection(request: Request) -> CollectionPlan:
    """Return the plan of a collection.

    Parameters
    ----------
    request : Request
        The inputs: questions, people, promise and wishes.

    Raises
    ------
    InvalidInput
        If no number of dummies up to 100,000 a question keeps the promise.

    Examples
    --------
    >>> request = Request((Planned("lunch", Family("rr", 2)),), 500, 1.0, 1e-6)
    >>> plan = plan_collection(request)
    >>> plan.chosen, float(plan.choices[0].rows[-1].true_share) > 0.98
    (4.0, True)
    """
    offer = offer_of(request)
    free = replace(request, levels=(), promises=()), (("", LARGEST_EPSILON0, request.people),)
    # where no law serves without local noise, the offered one has fewer dummies, so it bounds all half-widths as well
    bare = offer if _has_hadamard(request.questions) else _if_any(*free) or offer
    budgets, top = sorted({epsilon0 for _, epsilon0, _ in offer.levels}), offer.levels[-1][1]
    above = offer
    if not request.levels:
        budgets = [e for e in request.budgets if e <= (top if request.wanted is None else request.largest)]
        above = (_if_any(request, everybody_at(budgets[-1], request.people)) if budgets[-1] > top else None) or offer
        budgets = budgets if above is not offer else [e for e in budgets if e <= top]
    sizes = sorted(set(request.groups))
    others = [(n, offer_of(request.of(n))) for n in (sizes if len(sizes) <= _MOST_SIZES else (sizes[0], sizes[-1]))]
    missed = request.wanted is not None and not request.levels and offer.widest > request.wanted
    tried = _everybody(request) if missed else ()  # one more may have dummies with which a question is less wide
    choices: dict[Planned, Choice] = {}  # columns of one question have one answer
    for place in _first_of_each(offer.questions):
        question, dummies, limit = offer.questions[place], offer.dummies[place], _limit(bare, place)
        rows = tuple(_row(offer if epsilon0 <= top else above, place, epsilon0) for epsilon0 in budgets)
        limit = min(limit, *(row.half_width for row in rows), *(other.width(place) for other in tried))
        cannot, widths = _cannot(offer, place, limit), (offer.width(place), offer.margins(place))
        groups = tuple((people, other.width(place)) for people, other in others)
        choices[question] = Choice(question, dummies, limit, rows, cannot, *widths, groups)
    return CollectionPlan(offer, tuple(choices[question] for question in offer.questions))


def offer_of(request: Request) -> Offer:
    """Return what the draft of a survey offers, which its plan shows.

    Its levels are the survey's own; without a wanted half-width the default ones; and else those up to the smallest
    budget at which all half-widths are as wanted. If none is large enough, everybody is planned at the largest one.

    Parameters
    ----------
    request : Request
        The inputs.

    Raises
    ------
    InvalidInput
        If no number of dummies up to 100,000 a question keeps the promise.
    """
    levels = request.levels or _levels_reaching(request)
    if (offer := _if_any(request, levels)) is None:
        raise InvalidInput(_no_dummies(request, levels))
    return offer


def _no_dummies(request: Request, levels: Levels) -> str:
    """Return words on promises that no dummies keep, and on what would do, which was tried."""
    arguments = _law_arguments(request, levels)
    if _has_hadamard(request.questions):
        plain = tuple(replace(each, family=each.family.without_hadamard) for each in request.questions)
        other, refused = replace(request, questions=plain), dummies_if_any(*arguments)
        why = f"{refused.reason if isinstance(refused, Refused) else ''}".partition(";")[0]
        more = _beside(other) if _if_any(other, levels) else f": {_no_dummies(other, levels)}"
        return f"{why}; leave the family hadamard out{more}"
    if request.wanted is not None and (promise := _promise(request)):
        return f"{no_law(*arguments[:3])}; promise {promise:g} would do"
    promises = least_promises(*arguments)
    if not promises:
        return f"{no_law(*arguments[:3])}; ask fewer questions"
    able = replace(request, promise=max(promises), promises=promises[: len(request.promises)])
    return f"{no_law(*arguments[:3])}; {in_words_of_promises(promises)}{_beside(able)} would do"


def _beside(request: Request) -> str:
    """Return words on the half-width that can be wanted, if the wanted one cannot."""
    if request.wanted is None or _is_enough(request, _best(request)):
        return ""
    least, people = _least_wanted(request)
    return f" with wanted = {least:g} and {people:,} people"


def _levels_reaching(request: Request) -> Levels:
    """Return the levels that the planner chooses.

    Every budget is tried, from the smallest: the dummies change with it, so that a larger one may widen an interval.
    """
    if request.wanted is None:
        return default_levels(request.largest, request.people)
    for spread in (levels_up_to, everybody_at):
        for epsilon0 in request.budgets:
            if _is_enough(request, levels := spread(epsilon0, request.people)):
                return levels
    return _best(request)


def _is_enough(request: Request, levels: Levels) -> bool:
    """Return whether all half-widths are at most the wanted one at some levels."""
    offer = _if_any(request, levels)
    wanted = request.wanted or 0.0
    return offer is not None and all(offer.width(place) <= wanted for place in _first_of_each(offer.questions))


@lru_cache(maxsize=16)
def _everybody(request: Request) -> tuple[Offer, ...]:
    """Return what is offered if everybody answers at one budget, for each one for which there are dummies."""
    tried = (_if_any(request, everybody_at(epsilon0, request.people)) for epsilon0 in request.budgets)
    return tuple(offer for offer in tried if offer is not None)


def _best(request: Request) -> Levels:
    """Return the levels with the smallest half-widths: a survey's own, or everybody at the best budget."""
    if request.levels:
        return request.levels
    # of equally good budgets the largest, which is also named where no budget has dummies
    best = min(reversed(_everybody(request)), key=lambda offer: offer.widest, default=None)
    return best.levels if best else everybody_at(request.largest, request.people)


def _widest(more: Request, request: Request) -> float:
    """Return the widest half-width of a changed request, with its own levels or everybody at one of two budgets.

    They are the largest, and the best one before the change: to try all of them at every step would take too long.
    """
    budgets = {more.largest, _best(request)[-1][1]}
    tried = [more.levels] if more.levels else [everybody_at(epsilon0, more.people) for epsilon0 in budgets]
    offers = [_if_any(more, levels) for levels in tried]
    return min((offer.widest for offer in offers if offer is not None), default=math.inf)


def _law_arguments(
    request: Request, levels: Levels
) -> tuple[tuple[tuple[float, float], ...], tuple[Family, ...], float, int]:
    """Return the arguments of `law_if_any`, with the families of a draft."""
    promises = request.promises or (request.promise,) * len(levels)
    families = [question.family for question in request.questions]
    if not _has_hadamard(request.questions):
        mix = tuple((epsilon0, people) for _, epsilon0, people in levels)
        families = [best_bits(family, mix) if family.kind == "one-bit" else family for family in families]
    promised = tuple((epsilon0, promise) for (_, epsilon0, _), promise in zip(levels, promises, strict=True))
    return promised, tuple(families), request.delta, request.reports


def _if_any(request: Request, levels: Levels) -> Offer | None:
    """Return what is offered at some levels; None if no dummies keep the promises."""
    arguments, law = _law_arguments(request, levels), None
    if _has_hadamard(request.questions):
        dummies = dummies_if_any(*arguments)
    else:
        law = law_if_any(*arguments)
        dummies = Refused("") if law is None else parts_of(law)
    if isinstance(dummies, Refused):
        return None
    questions = (replace(each, family=family) for each, family in zip(request.questions, arguments[1], strict=True))
    return Offer(request, levels, tuple(questions), dummies, law)


def _has_hadamard(questions: Iterable[Planned]) -> bool:
    """Return whether the task is of version 1, where each question has its own dummies."""
    return any(question.family.kind == "hadamard" for question in questions)


def _first_of_each(questions: Sequence[Planned]) -> list[int]:
    """Return the index of the first column of every question."""
    return [place for place, question in enumerate(questions) if questions.index(question) == place]


@lru_cache(maxsize=1024)
def half_width_of(question: Planned, dummies: StatedDummies, levels: Levels, shufflers: int = 1) -> float:
    """Return the half-width if people answer at several budgets, as a share of the range.

    Parameters
    ----------
    question : Planned
        The question.
    dummies, shufflers
        As for `law_of_count`.
    levels : Levels
        Levels; their names are ignored.
    """
    slopes = tuple(_slope(question.family, epsilon0) for _, epsilon0, _ in levels)
    counts = tuple(people for _, _, people in levels)
    return predicted_half_width(question.family, dummies, slopes, counts, question.miss, shufflers)


def seen_at(offer: Offer, choice: Choice) -> int | None:
    """Return about the number of people from which on a word of a dictionary is called present; see `seen_from`.

    Parameters
    ----------
    offer, choice
        What the draft offers, and the planner's result for a column of a dictionary.
    """
    slopes = tuple(_slope(choice.question.family, epsilon0) for _, epsilon0, _ in offer.levels)
    counts, shufflers = tuple(people for _, _, people in offer.levels), offer.request.shufflers
    law = law_of_count(choice.question.family, choice.dummies, slopes, counts, shufflers)
    return seen_from(law, choice.question.words)


def _slope(family: Family, epsilon0: float) -> float:
    return slope_of(family, family.threshold(epsilon0))


def _limit(bare: Offer, place: int) -> float:
    """Return the half-width of reports without local noise, given what is offered for them."""
    question, request = bare.questions[place], bare.request
    slopes = (slope_of(question.family, WHOLE),)
    return predicted_half_width(
        question.family, bare.dummies[place], slopes, (request.people,), question.miss, request.shufflers
    )


def _row(offer: Offer, place: int, epsilon0: float) -> Row:
    question, dummies, request = offer.questions[place], offer.dummies[place], offer.request
    family = question.family
    shift = shift_of_future_junk(Slopes((epsilon0,), (_slope(family, epsilon0),)), (1,), JUNK)
    share = family.true_share(family.threshold(epsilon0))
    width = half_width_of(question, dummies, (("", epsilon0, request.people),), request.shufflers)
    return Row(epsilon0, either_cell(share) if question.words else share, width, shift, dummies.count)


def _cannot(offer: Offer, place: int, limit: float) -> str:
    """Return why a question's half-width is not the wanted one, and what would do; "" if it is."""
    request, question, width = offer.request, offer.questions[place], offer.width(place)
    if (wanted := request.wanted) is None or width <= wanted:
        return ""
    scale, unit = (100.0, " points") if question.is_share else (question.high - question.low, "")
    about = f"± {wanted * scale:.6g}{unit} from {request.people:,} people at promise {request.promise:g} cannot be had"
    if larger := _larger_budget(request):
        hand = "one hand that shuffles and analyzes" if request.one_hand else "one shuffler"
        reason = f"it needs epsilon0 = {larger:g}, and {hand} allows {request.largest:g}"
    elif limit > wanted:
        reason = (
            f"no budget of its plan, and no report without local noise, gives less than {in_words(question, limit)}"
        )
    elif request.levels:
        reason = f"its levels give {in_words(question, width)}"
    else:
        best = offer.levels[-1][1]
        which = "the largest" if best == request.largest else "the best of its budgets"
        reason = f"at epsilon0 = {best:g}, {which}, it is {in_words(question, width)}"
    return f"{about}: {reason}. {_ways(request)}{_alone(offer, place)}"


@lru_cache(maxsize=16)
def _larger_budget(request: Request) -> float | None:
    """Return the budget at which a wanted half-width would be reached if one shuffler were accepted."""
    accepted = replace(request, accepted=True, one_hand=False)
    budgets = [epsilon0 for epsilon0 in accepted.budgets if epsilon0 > request.largest]
    if request.levels or not budgets or not _is_enough(accepted, levels := _levels_reaching(accepted)):
        return None
    return levels[-1][1]


@lru_cache(maxsize=16)
def _ways(request: Request) -> str:
    """Return words on what would do where a survey does not reach a wanted half-width; each way was tried."""
    ways: list[str] = []
    if people := _people(request):
        ways.append(f"{people:,} people")
    if promise := _promise(request):
        ways.append(f"promise {promise:g}{' at every level' if request.levels else ''}")
    if _larger_budget(request):
        ways.append(f"{'another hand that shuffles and ' if request.one_hand else ''}accept_one_shuffler = true")
    planned = replace(request, levels=(), promises=())
    if request.levels and _is_enough(planned, _best(planned)):
        ways.append(f"people = {request.people} and promise = {request.promise:g} in the place of levels")
    one = replace(request, shufflers=1)
    if request.shufflers > 1 and _is_enough(one, _best(one)):
        ways.append("one shuffler")
    sentence = f"It takes {' or '.join([', '.join(ways[:-1]), ways[-1]] if ways[1:] else ways)}." if ways else ""
    least, people = _least_wanted(request)
    if people == request.people:
        return f"{sentence} wanted = {least:g} can be had.".lstrip()
    return sentence or f"wanted = {least:g} can be had from {people:,} people."


def _people(request: Request) -> int | None:
    """Return about the smallest number of people with the wanted half-width; None beyond 10^9."""

    def enough(people: int) -> bool:
        return _widest(request.of(people), request) <= (request.wanted or 0.0)

    return least_number(enough, request.people, MOST) if enough(MOST) else None


def _promise(request: Request) -> float | None:
    """Return a promise of two digits with the wanted half-width, about the smallest; None beyond `MOST_PROMISED`."""

    def widest(promise: float) -> float:
        return _widest(request.promising(promise), request)

    wanted, promise = request.wanted or 0.0, request.promise
    if promise > MOST_PROMISED or widest(MOST_PROMISED) > wanted:
        return None
    for _ in range(_MOST_TRIES):
        width = widest(promise)
        if width <= wanted:
            return promise
        promise = float(few_digits_up(promise * min(max(width / wanted, 1.02), 4.0), 2))
        if promise >= MOST_PROMISED:
            break
    return MOST_PROMISED


def _least_wanted(request: Request) -> tuple[float, int]:
    """Return the smallest half-width that can be wanted, in points rounded up to two digits, and of how many people.

    That is the number expected, or if these know nothing about any answer, a larger one.
    """
    for people in (request.people, 10**3, 10**6, MOST):
        offer = _if_any(request.of(people), _best(request.of(people)))
        points = 100.0 * offer.widest if offer is not None else 50.0
        while (points := float(few_digits_up(points, 2))) < 50.0:
            if offer is not None and offer.widest <= points / 100.0:
                return points, people
            points *= 1.001
    return 50.0, MOST


def _alone(offer: Offer, place: int) -> str:
    """Return words on the half-width of a question asked alone, if that is the wanted one."""
    request, questions = offer.request, offer.request.questions
    alone = replace(request, questions=tuple(each for each in questions if each == questions[place]))
    width = _widest(alone, request) if len(alone.questions) < len(questions) else math.inf
    if width > (request.wanted or 0.0):
        return ""
    return f" Asked alone at promise {request.promise:g}: {in_words(questions[place], width)}."


def sentences_of(plan: CollectionPlan, choice: Choice) -> Iterator[str]:
    """Return what the plan says of one question below its table.

    Parameters
    ----------
    plan : CollectionPlan
        The plan.
    choice : Choice
        Its result for the question.
    """
    people = plan.request.people
    if choice.question.words:
        yield f"{seen_line(seen_at(plan.offer, choice), people)}."
    yield f"± is half of the 95 % interval for the worst answers{_together(choice.question)}, give or take a person."
    yield f"Limit: {in_words(choice.question, choice.limit)}, the least of these budgets and of no local noise at all."
    others = [level for level in plan.offer.levels if level[2] and level[1] != plan.chosen]
    if others:
        elsewhere = " and ".join(f"{count(planned)} at {epsilon0:g}" for _, epsilon0, planned in others)
        yield f"With {elsewhere}: {in_words(choice.question, choice.mixed)}."
    if choice.groups:
        sizes = [(counted(n, "person", "people"), in_words(choice.question, width)) for n, width in choice.groups]
        widths = ", ".join(f"of {size}: {width}" for size, width in sizes)
        yield f"The intervals of all {count(choice.question.groups)} groups hold together. In a group {widths}."
    if choice.margins:
        yield f"{margins_line(choice.margins)}."
    if choice.question.is_share:
        wanted = plan.request.wanted
        alone = ": more than is wanted, even without privacy" if wanted is not None and wanted < plan.sampling else ""
        stand = in_words(choice.question, plan.sampling)
        yield f"If the {count(people)} stand for more people, {stand} comes on top{alone}."
    if max(row.half_width for row in choice.rows if row.epsilon0 <= plan.chosen) >= 0.5:
        yield "A half-width of half the range says nothing yet."
    if choice.cannot:
        yield choice.cannot


def remarks_of(plan: CollectionPlan) -> Iterator[str]:
    """Return what the plan says of the whole survey."""
    people, least = plan.request.people, plan.request.at_least
    if people < least:
        yield (
            f"Of {counted(people, 'person', 'people')} nothing is handed over, for at_least is {count(least)}: lower "
            "it, or ask more people."
        )


def _together(question: Planned) -> str:
    """Return words on intervals that hold together; "" for a question whose intervals hold one by one."""
    if question.groups > 1:
        return ", all intervals of the question in all groups together"
    return ", all intervals of the question together" if question.kind in TOGETHER else ""


def in_words(question: Planned, half_width: float) -> str:
    """Return a half-width in words, rounded up: percentage points of a share, else the question's unit.

    Examples
    --------
    >>> in_words(Planned("lunch", Family("rr", 2)), 0.0231)
    '± 2.31 points'
    """
    scale = 1.0 if question.is_share else question.high - question.low
    return half_width_words(half_width * scale, shares=question.is_share)
