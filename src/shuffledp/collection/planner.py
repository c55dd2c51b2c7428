"""The plan of a collection, before any key is made: local budget, half-widths, and why a wish cannot be met.

For every question and local budget the half-width is that of the interval that will be printed
(`shuffledp.questions.estimate`; of a number `shuffledp.collection.estimates`), if everybody answers at that budget;
the dummies are those of the law that keeps the promise at the largest budget offered with the smaller error, a ball law
or normal ones (`shuffledp.collection.laws.needed_law`), or dummies of each question's own beside a question of the
family ``hadamard:K``. The *limit* is the half-width of reports without any local noise: the dummies of the promise
alone remain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from shuffledp.checks import whole_number
from shuffledp.collection.asked import LARGEST_EPSILON0, Dummies, either_cell
from shuffledp.collection.dictionary import seen_from
from shuffledp.collection.draw import MOST_BITS, WHOLE, Family
from shuffledp.collection.estimates import (
    FALSE_LEVELS,
    JUNK,
    NO_DUMMIES,
    Slopes,
    bits_law,
    count_law,
    law_of_count,
    predicted_half_width,
    predicted_variance,
    scaled_counts,
    shift_of_future_junk,
    shift_of_levels,
    slopes_of,
    width_of,
)
from shuffledp.collection.laws import needed_law, parts_of
from shuffledp.collection.promise import ONE_SHUFFLER, dummies_for
from shuffledp.collection.task import Draft
from shuffledp.errors import InvalidInput, attempt
from shuffledp.numerics.floats import few_digits_up

# What an answer will be worth, before anybody is invited: half-widths, people needed, the cost of dummies and junk.

MISS = 0.05
"""Probability that an interval misses: 95 % intervals are promised and printed."""
Z95 = 1.959963984540054
"""Half-width of a normal 95 % interval in standard errors, from which the search for an exact one starts."""
POINTS = 0.05
"""Half-width, as a share of the range, for which the needed number of people is stated."""
MOST = 10**9


@dataclass(frozen=True)
class Price:
    """The accuracy of the answer to one question, for the worst answers.

    Parameters
    ----------
    planned : float
        Half-width of a 95 % interval if as many people as planned answer, in the answer's unit.
    at_least : float
        The same for the smallest number of people for whom the batch is handed over.
    for_five_points : int or None
        Number of people, mixed as planned, for a half-width of 5 % of the range; None beyond 10^9.
    widening : float
        Factor by which the dummies widen the interval at the planned number.
    junk_shift : float
        Largest shift of the answer by 5 % of invalid reports, in its unit, whichever level they state.
    level_shift : tuple of float
        Largest shift of the answer if 1, 5 and 10 % of the people are counted at another level than theirs.
    present_from : int or None
        Approximate number of people from which on a word of a dictionary is called present; None of other questions,
        and where no number is enough.
    """

    planned: float
    at_least: float
    for_five_points: int | None
    widening: float
    junk_shift: float
    level_shift: tuple[float, ...]
    present_from: int | None = None


def prices(draft: Draft) -> tuple[Price, ...]:
    """Return the accuracy of the answers to a draft's questions.

    Parameters
    ----------
    draft : Draft
        The draft; people are mixed over levels as planned.
    """
    mix = [level.planned for level in draft.levels]
    if not sum(mix):
        mix = [1] * len(draft.levels)
    return tuple(_price(draft, place, mix) for place in range(len(draft.questions)))


def half_width(draft: Draft, place: int, counts: Sequence[int], *, dummies: bool = True) -> float:
    """Return half the length of the 95 % interval that will be printed, in the answer's unit, at the worst answers.

    Parameters
    ----------
    draft : Draft
        The draft.
    place : int
        Index of the question, from 0.
    counts : sequence of int
        Number of people at each level.
    dummies : bool
        Whether the dummies' variance is included.

    Returns
    -------
    float
        At most half the range, which is no information; inf if nobody answers.
    """
    if not sum(counts):
        return math.inf
    question, known = draft.questions[place], slopes_of(draft, place)
    return width_of(question) * predicted_half_width(question, known, counts, MISS, dummies=dummies)


def _price(draft: Draft, place: int, mix: Sequence[int]) -> Price:
    question = draft.questions[place]
    planned = half_width(draft, place, mix)
    return Price(
        planned=planned,
        at_least=half_width(draft, place, scaled_counts(mix, draft.at_least)),
        for_five_points=_people_for(draft, place, mix, POINTS * width_of(question)),
        widening=planned / half_width(draft, place, mix, dummies=False),
        junk_shift=shift_of_future_junk(slopes_of(draft, place), mix, JUNK, width_of(question)),
        level_shift=tuple(shift_of_levels(draft, place, mix, share, told=False) for share in FALSE_LEVELS),
        present_from=(
            seen_from(count_law(question, slopes_of(draft, place), mix), len(question.choices))
            if question.kind == "dictionary"
            else None
        ),
    )


def _people_for(draft: Draft, place: int, mix: Sequence[int], wanted: float) -> int | None:
    """Return the smallest number of people, mixed as planned, with the wanted half-width, up to half a per cent.

    The normal law gives an approximate number; the exact laws are inverted around it.
    """
    question, known = draft.questions[place], slopes_of(draft, place)
    share = wanted / width_of(question)

    def normal(people: int) -> bool:
        return Z95 * math.sqrt(predicted_variance(question, known, scaled_counts(mix, people))) <= share

    def printed(people: int) -> bool:
        return half_width(draft, place, scaled_counts(mix, people)) <= wanted

    if not normal(MOST):
        return None
    about = least_number(normal, 0, MOST)
    low, high = about - about // 20 - 1, about + about // 20 + 1
    while not printed(high):
        low, high = high, high + high // 5 + 1
    return least_number(printed, max(low, 0), high)


def least_number(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return about the smallest whole number from ``low`` to ``high`` for which a condition holds.

    Parameters
    ----------
    holds : callable
        The condition; it holds at ``high``.
    low, high : int
        Ends of the search.
    """
    while high - low > max(1, high // 200):
        middle = (low + high) // 2 if low else math.isqrt(high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


BUDGETS = tuple(2.0 + step / 2.0 for step in range(13))
"""Local budgets among which the planner chooses: 2, 2.5, ..., 8 nats."""
NEAR = 1.1
"""Without a wanted half-width, the smallest budget is chosen whose half-width is at most this multiple of the limit."""
MANY = 3
"""Largest number of questions with a default promise of 1; with more questions the default is 2."""
LARGEST_PROMISE = 8.0
OFFERED = (("careful", 2.0), ("usual", 4.0), ("open", 6.0))


@dataclass(frozen=True)
class Planned:
    """A question as the planner sees it.

    Parameters
    ----------
    text : str
        The question, in the survey's first language.
    family : Family
        Its randomizer. A number of the family ``one-bit`` is planned as ``bits:B``, as it is drafted, with the B of
        least noise at the largest budget offered; beside a question of ``hadamard:K`` it stays ``one-bit``.
    low, high : float
        The range of its answer: 0 and 1 for a share.
    several : bool
        Whether it is one of the options of a question of which any may be checked.
    words : int
        Number of answers of a dictionary, of which this is one of two columns; 0 for other questions.
    """

    text: str
    family: Family
    low: float = 0.0
    high: float = 1.0
    several: bool = False
    words: int = 0

    @property
    def is_share(self) -> bool:
        """Whether the answer is a share, stated in percentage points."""
        return self.family.kind not in ("one-bit", "bits")


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
        Half-width as a share of the range, in (0, 1/2); None: as precise as the promise allows, within 10 %.
    shufflers : int
        Number of shufflers that add dummies, from 1 to 8.
    reports : {1, 2}
        Number of reports that one person may send: 2 under open admission.
    budgets : tuple of float
        Local budgets of the survey's levels; none: the planner chooses.
    promises : tuple of float
        The promise to each of these levels; none: `promise` to all. Otherwise `promise` is the largest of them.

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
    budgets: tuple[float, ...] = ()
    promises: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "people", whole_number(self.people, "people", 1, MOST))
        if self.wanted is not None and not 0.0 < self.wanted < 0.5:
            raise InvalidInput(
                f"wanted, the half-width in percentage points, must lie between 0 and 50; got {100.0 * self.wanted:g}"
            )
        object.__setattr__(self, "shufflers", whole_number(self.shufflers, "shufflers", 1, 8))
        if not 1e-6 <= self.promise <= 1e3:
            raise InvalidInput(f"the promise must be a central epsilon from 1e-6 to 1000; got {self.promise:g}")

    @property
    def largest(self) -> float:
        """The largest budget that is offered: the survey's own, or the one that the number of shufflers allows."""
        if self.budgets:
            return max(self.budgets)
        return ONE_SHUFFLER if self.shufflers == 1 else BUDGETS[-1]


@dataclass(frozen=True)
class Row:
    """The accuracy and privacy of one question at one local budget.

    Parameters
    ----------
    epsilon0 : float
        The local budget, nats.
    true_share : Fraction
        The probability that the report supports the true answer, below 1.
    half_width : float
        Half-width of the 95 % interval if everybody answers at this budget, as a share of the range.
    junk_shift : float
        Largest shift of the answer by 5 % of invalid reports, as a share of the range.
    """

    epsilon0: float
    true_share: Fraction
    half_width: float
    junk_shift: float


@dataclass(frozen=True)
class Choice:
    """The planner's result for one question.

    Parameters
    ----------
    question : Planned
        The question.
    dummies : Dummies
        Dummies of each shuffler, at the largest budget offered.
    chosen : float
        The local budget that this question needs.
    limit : float
        Half-width without local noise, as a share of the range: no local budget gives a smaller one.
    rows : tuple of Row
        One for each budget, ascending.
    cannot : str
        Reason why the wanted half-width is impossible, with numbers that are possible; empty where it is possible.
    mixed : float
        Half-width if people spread over the levels of `levels_up_to` at the chosen budget, as a share of the range.
    """

    question: Planned
    dummies: Dummies
    chosen: float
    limit: float
    rows: tuple[Row, ...]
    cannot: str
    mixed: float


Levels = tuple[tuple[str, float, int], ...]
"""Name, local budget and planned number of people of each level."""


def levels_up_to(chosen: float, people: int) -> Levels:
    """Return the levels that a survey without levels offers, a fifth of the people at each but the usual one.

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


@dataclass(frozen=True)
class CollectionPlan:
    """The plan of a collection; made by `plan_collection`.

    Parameters
    ----------
    request : Request
        The inputs.
    choices : tuple of Choice
        One for each question.
    """

    request: Request
    choices: tuple[Choice, ...]

    @property
    def chosen(self) -> float:
        """The local budget of the level "usual": the largest that a question needs."""
        return max(choice.chosen for choice in self.choices)

    @property
    def cannot(self) -> tuple[str, ...]:
        """Reasons why wanted half-widths are impossible, one sentence for each such question.

        Empty if all are possible.
        """
        return tuple(choice.cannot for choice in self.choices if choice.cannot)

    @cached_property
    def sampling(self) -> float:
        """Half-width of sampling alone if the people represent a much larger population, at a share of 1/2."""
        return min(Z95 * math.sqrt(0.25 / self.request.people), 0.5)

    def levels(self) -> Levels:
        """Return the levels that a survey without levels offers: `levels_up_to` the chosen budget.

        If the wanted half-width is reached only when nobody answers below that budget, no smaller budget is offered or,
        for a budget above 4, one at which nobody is planned.
        """
        n, chosen, wanted = self.request.people, self.chosen, self.request.wanted
        if wanted is None or all(self._mixed(place) <= wanted for place in range(len(self.choices))):
            return levels_up_to(chosen, n)
        return (("usual", chosen, n),) if chosen <= ONE_SHUFFLER else (("usual", ONE_SHUFFLER, 0), ("open", chosen, n))

    def _mixed(self, place: int) -> float:
        """Return a question's half-width if people spread over the levels of all questions' chosen budget."""
        choice = self.choices[place]
        if choice.chosen == self.chosen:
            return choice.mixed
        return half_width_of(self.request, place, choice.dummies, levels_up_to(self.chosen, self.request.people))


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
    >>> asked = Request((Planned("lunch", Family("rr", 2)),), 500, 1.0, 1e-6)
    >>> found = plan_collection(asked).choices[0]
    >>> found.chosen, float(found.rows[-1].true_share) > 0.98
    (4.0, True)
    """
    request = _as_drafted(request)
    dummies = _dummies(request, request.largest, request.promise)
    known: dict[Family, Choice] = {}  # questions of one family have one answer, but for text and range
    for place, (question, law) in enumerate(zip(request.questions, dummies, strict=True)):
        if question.family not in known:
            known[question.family] = _choice(request, place, law)
    asked = request.questions
    return CollectionPlan(request, tuple(replace(known[question.family], question=question) for question in asked))


def _dummies(request: Request, epsilon0: float, promise: float) -> tuple[Dummies, ...]:
    """Return the dummies that keep a promise up to a budget; a survey's own promises are scaled in proportion."""
    families = tuple(question.family for question in request.questions)
    levels = ((epsilon0, promise),)
    if request.promises and epsilon0 == request.largest:
        scale = promise / request.promise
        levels = tuple((own, scale * kept) for own, kept in zip(request.budgets, request.promises, strict=True))
    return _dummies_for(families, levels, request.delta, request.reports)


@lru_cache(maxsize=64)
def _dummies_for(
    families: tuple[Family, ...], levels: tuple[tuple[float, float], ...], delta: float, reports: int
) -> tuple[Dummies, ...]:
    if _has_hadamard(families):
        return dummies_for(levels, families, delta, reports)
    return parts_of(needed_law(levels, families, delta, reports))


def _has_hadamard(families: Iterable[Family]) -> bool:
    """Return whether the task is of version 1, where each question has its own dummies."""
    return any(family.kind == "hadamard" for family in families)


def _as_drafted(request: Request) -> Request:
    """Return the request with the family that a draft gives to numbers."""
    if _has_hadamard(question.family for question in request.questions):
        return request
    bits = _best_bits(request.largest)
    asked = tuple(
        replace(question, family=bits) if question.family.kind == "one-bit" else question
        for question in request.questions
    )
    return replace(request, questions=asked)


def _best_bits(epsilon0: float) -> Family:
    families = [Family(f"bits:{size}", 2) for size in range(1, MOST_BITS + 1)]
    return min(
        families,
        key=lambda family: float(bits_law(family, NO_DUMMIES, (_slope(family, epsilon0),), (1,)).standard_error),
    )


def half_width_at(request: Request, place: int, dummies: Dummies, epsilon0: float, people: int) -> float:
    """Return the half-width if everybody answers at one budget, as a share of the range.

    Parameters
    ----------
    request : Request
        The inputs of the plan.
    place : int
        Index of the question, from 0.
    dummies : Dummies
        Dummies of each shuffler.
    epsilon0 : float
        The local budget; infinite: no local noise.
    people : int
        Number of people who answer.
    """
    return half_width_of(request, place, dummies, (("", epsilon0, people),))


def half_width_of(request: Request, place: int, dummies: Dummies, levels: Levels) -> float:
    """Return the half-width if people answer at several budgets, as a share of the range.

    Parameters
    ----------
    request, place, dummies
        As for `half_width_at`.
    levels : Levels
        Levels; their names are ignored.
    """
    family, counts = request.questions[place].family, tuple(people for _, _, people in levels)
    slopes = tuple(_slope(family, epsilon0) for _, epsilon0, _ in levels)
    if family.kind != "bits":
        return law_of_count(family, dummies, slopes, counts, request.shufflers).half_width(MISS)
    found = bits_law(family, dummies, slopes, counts, request.shufflers)
    return min(float(found.half_width(MISS, found.standard_error)), 0.5)


def words_seen_from(plan: CollectionPlan, choice: Choice) -> int | None:
    """Return about the number of people from which on a word of a dictionary is called present; see `seen_from`.

    Parameters
    ----------
    plan : CollectionPlan
        The plan.
    choice : Choice
        Its result for a column of a dictionary.
    """
    request, family = plan.request, choice.question.family
    levels = plan.levels() if not request.budgets else (("", plan.chosen, request.people),)
    slopes = tuple(_slope(family, epsilon0) for _, epsilon0, _ in levels)
    counts = tuple(people for _, _, people in levels)
    law = law_of_count(family, choice.dummies, slopes, counts, request.shufflers)
    return seen_from(law, choice.question.words)


def _slope(family: Family, epsilon0: float) -> float:
    kept = 1.0 if math.isinf(epsilon0) else family.threshold(epsilon0) / WHOLE
    return kept * (0.5 if family.kind == "hadamard" else 1.0)


def _choice(request: Request, place: int, dummies: Dummies) -> Choice:
    """Return the result for one question: its rows at every budget, the chosen budget, and why a wish is impossible."""
    question, offered = request.questions[place], _budgets(request)
    widths = {e: half_width_at(request, place, dummies, e, request.people) for e in offered}
    limit = half_width_at(request, place, _without_noise(request, place, dummies), math.inf, request.people)
    enough = NEAR * limit if request.wanted is None else request.wanted
    fitting = [epsilon0 for epsilon0 in offered if widths[epsilon0] <= enough]

    def mixed(epsilon0: float) -> float:
        """Return the half-width over the levels that would be offered; with a survey's own levels, at one budget."""
        if request.budgets:
            return widths[epsilon0]
        return half_width_of(request, place, dummies, levels_up_to(epsilon0, request.people))

    spread = [] if request.wanted is None else [epsilon0 for epsilon0 in fitting if mixed(epsilon0) <= enough]
    chosen = [*spread, *fitting, offered[-1]][0]
    cannot = "" if fitting or request.wanted is None else _cannot(request, place, dummies, limit)
    rows = tuple(_row(question, e, widths[e]) for e in offered)
    return Choice(question, dummies, chosen, limit, rows, cannot, mixed(chosen))


def _without_noise(request: Request, place: int, dummies: Dummies) -> Dummies:
    """Return the dummies that keep the promise for reports without local noise.

    The dummies of version 1, one law for each question, are returned unchanged.
    """
    if _has_hadamard(question.family for question in request.questions):
        return dummies
    return _dummies(request, LARGEST_EPSILON0, request.promise)[place]


def _budgets(request: Request) -> tuple[float, ...]:
    if request.budgets:
        return tuple(sorted(set(request.budgets)))
    return tuple(epsilon0 for epsilon0 in BUDGETS if epsilon0 <= request.largest)


def _row(question: Planned, epsilon0: float, width: float) -> Row:
    family = question.family
    shift = shift_of_future_junk(Slopes((epsilon0,), (_slope(family, epsilon0),)), (1,), JUNK)
    share = family.true_share(family.threshold(epsilon0))
    return Row(epsilon0, either_cell(share) if question.words else share, width, shift)


def _cannot(request: Request, place: int, dummies: Dummies, limit: float) -> str:
    """Return why no offered budget gives the wanted half-width, and what would."""
    question, wanted = request.questions[place], request.wanted or 0.0
    scale, unit = (100.0, " points") if question.is_share else (question.high - question.low, "")
    about = f"± {wanted * scale:.6g}{unit} from {request.people:,} people at promise {request.promise:g} cannot be had"
    if limit <= wanted:
        return f"{about}: {_larger_budget(request, place, wanted)}"
    said = f"{about}: even reports without any local noise would give {in_words(question, limit)}."
    ways = [_people(request, place, dummies, wanted), _promise(request, place, wanted)]
    would_do = " or ".join(way for way in ways if way)
    more = f" It takes {would_do}." if would_do else ""
    return said + more + _fewer(request, place, wanted)


def _larger_budget(request: Request, place: int, wanted: float) -> str:
    """Return words on the larger budget that would suffice where only the local noise is in the way."""
    for epsilon0 in BUDGETS:
        if epsilon0 <= request.largest:
            continue
        found = attempt(lambda budget=epsilon0: _dummies(request, budget, request.promise), (InvalidInput,))
        if isinstance(found, tuple) and (
            half_width_at(request, place, found[place], epsilon0, request.people) <= wanted
        ):
            allowed = "one shuffler allows" if request.shufflers == 1 else "the survey offers"
            return f"it needs epsilon0 = {epsilon0:g}, and {allowed} {request.largest:g}."
    return f"it needs an epsilon0 above {BUDGETS[-1]:g}, which is not offered."


def _people(request: Request, place: int, dummies: Dummies, wanted: float) -> str:
    def enough(people: int) -> bool:
        return half_width_at(request, place, dummies, request.largest, people) <= wanted

    if not enough(MOST):
        return ""
    return f"{least_number(enough, request.people, MOST):,} people"


def _promise(request: Request, place: int, wanted: float) -> str:
    """Return words on a promise at which the wanted half-width is reached, rounded up to two digits; "" if none."""
    promise = request.promise
    for _ in range(8):
        found = attempt(lambda value=promise: _dummies(request, request.largest, value), (InvalidInput,))
        if not isinstance(found, tuple):
            return ""
        width = half_width_at(request, place, found[place], request.largest, request.people)
        if width <= wanted:
            return f"promise {promise:g}"
        promise = float(few_digits_up(promise * max(1.02, width / wanted), 2))
        if promise > LARGEST_PROMISE:
            return ""
    return ""


def _fewer(request: Request, place: int, wanted: float) -> str:
    """Return words on whether the question alone, or a single shuffler, would suffice."""
    said, question = "", request.questions[place]
    if request.shufflers > 1:
        one = replace(request, shufflers=1)
        law = _dummies(one, one.largest, one.promise)[place]
        said += f" With one shuffler: {in_words(question, half_width_at(one, place, law, one.largest, one.people))}."
    if len(request.questions) > 1:
        alone = replace(request, questions=(question,))
        law = _dummies(alone, alone.largest, alone.promise)[0]
        said += f" Asked alone: {in_words(question, half_width_at(alone, 0, law, alone.largest, alone.people))}."
    return said


def in_words(question: Planned, half_width: float) -> str:
    """Return a half-width in words, rounded up to two digits: percentage points of a share, else the question's unit.

    Examples
    --------
    >>> in_words(Planned("lunch", Family("rr", 2)), 0.0231)
    '± 2.4 points'
    """
    value = float(few_digits_up(half_width * (100.0 if question.is_share else question.high - question.low), 2))
    return f"± {value:g}{' points' if question.is_share else ''}"


def curve_of(plan: CollectionPlan, place: int, people: Sequence[int]) -> list[float]:
    """Return half-widths of one question at the chosen budget for several numbers of people, as shares of the range.

    Parameters
    ----------
    plan : CollectionPlan
        The plan.
    place : int
        Index of the question, from 0.
    people : sequence of int
        Numbers of people.
    """
    dummies = plan.choices[place].dummies
    return [half_width_at(plan.request, place, dummies, plan.chosen, n) for n in people]
