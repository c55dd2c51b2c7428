"""What a task promises, certified: the floor that its dummies make, and the smaller number of an honest crowd.

The only module of the collection that asks the accountant. A *floor* (theory F, theorem D3) holds for every batch size
and against every other participant: it depends on the victim's level, the dummies' law, and nothing else. Uniform
dummies are users of budget 0 whose report is the blanket, so the floor of one question is the certified upper end of
bound ``blanket`` for one victim among m such users; several questions compose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from shuffledp.accounting import bounds, compose
from shuffledp.accounting.profile import PrivacyProfile
from shuffledp.budgets import Budgets
from shuffledp.collection.draw import SLACK, Family
from shuffledp.collection.task import Draft, Dummies
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import round_down, round_up
from shuffledp.setting import Setting

FAKE = 0.05
"""Share of the others who may be fake in the number of the honest crowd."""
MOST = 100_000
"""Dummies of one question beyond which a promise is refused."""
_STEPS = 30


def floor(
    levels: Sequence[float], questions: Sequence[Family], dummies: Sequence[Dummies], delta: float, reports: int = 1
) -> tuple[float, ...]:
    """Certify the central epsilon of each level against every other participant.

    Parameters
    ----------
    levels : sequence of float
        Local budgets epsilon0 of one question, nats.
    questions : sequence of Family
        Their randomizers.
    dummies : sequence of Dummies
        What the shuffler adds to each question.
    delta : float
        Central delta, in (0, 1).
    reports : {1, 2}
        Reports that one person may send to each question: 2 under open admission.

    Returns
    -------
    tuple of float
        For each level the certified upper end, over all questions together, for a person with all her reports.

    Raises
    ------
    InvalidInput
        If a law of dummies cannot be certified.
    """
    return tuple(
        _epsilon(
            tuple((family, law, ()) for family, law in zip(questions, dummies, strict=True)), level, delta, reports
        )
        for level in levels
    )


def floor_of(draft: Draft) -> tuple[float, ...]:
    """Certify the floor of each level of a draft; see `floor`."""
    questions = draft.questions
    return floor(
        [level.epsilon0 for level in draft.levels],
        [question.family for question in questions],
        [question.dummies for question in questions],
        draft.delta,
        reports_of(draft),
    )


def crowd_of(draft: Draft, counts: Sequence[int]) -> tuple[float | None, ...]:
    """Certify the central epsilon of each level if at most 5 % of the other participants are fake.

    The fakes may be any of the others; hiding least remains if they are those of the smallest budgets, so those are
    left out, rounded up to whole people. The result is never above the floor.

    Parameters
    ----------
    draft : Draft
        What is asked.
    counts : sequence of int
        People per level.

    Returns
    -------
    tuple of float or None
        For each level; None where nobody has it.
    """
    floors = floor_of(draft)
    found: list[float | None] = []
    for place, level in enumerate(draft.levels):
        if counts[place] == 0:
            found.append(None)
            continue
        company = tuple(zip((one.epsilon0 for one in draft.levels), _honest(counts, place), strict=True))
        parts = tuple((question.family, question.dummies, company) for question in draft.questions)
        found.append(min(floors[place], _epsilon(parts, level.epsilon0, draft.delta, reports_of(draft))))
    return tuple(found)


def reports_of(draft: Draft) -> int:
    """Reports that one person may send to a question: 2 where nobody counts them, for a private window."""
    return 2 if draft.admission == "open" else 1


def check_floor(draft: Draft) -> tuple[float, ...]:
    """Return the floor of each level if every promise is kept.

    Raises
    ------
    InvalidInput
        If a floor is above its level's promise.
    """
    floors = floor_of(draft)
    for level, certified in zip(draft.levels, floors, strict=True):
        if not certified <= level.promise:
            name = next(iter(level.name.values()))
            raise InvalidInput(
                f"level {name!r} promises epsilon {level.promise:g}, but the dummies of this task only make "
                f"{certified:.6g} true at delta {draft.delta:g}; draft it again, with more dummies or a larger promise"
            )
    return floors


def check_crowd(draft: Draft) -> None:
    """Raise InvalidInput if a draft tells a smaller number for an honest crowd than can be certified."""
    planned = [level.planned for level in draft.levels]
    for level, certified in zip(draft.levels, crowd_of(draft, planned), strict=True):
        least = level.promise if certified is None else min(certified, level.promise)
        if not level.crowd >= least:
            name = next(iter(level.name.values()))
            raise InvalidInput(
                f"level {name!r} tells epsilon {level.crowd:g} for an honest crowd, but {least:.6g} is what can be "
                "certified for the planned people; draft it again"
            )


def needed_dummies(draft: Draft) -> tuple[Dummies, ...]:
    """Find dummies that keep every level's promise, whatever dummies the draft has.

    Every question takes the same share of the promises, the largest that serves; of the shares 2^(-1/8), 2^(-2/8), ...

    Parameters
    ----------
    draft : Draft
        What is asked.

    Raises
    ------
    InvalidInput
        If no number of dummies up to 100,000 a question keeps the promises.
    """
    budgets = [level.epsilon0 for level in draft.levels]
    promises = [level.promise for level in draft.levels]
    families, reports = [question.family for question in draft.questions], reports_of(draft)

    def keeps(asked: Sequence[Family], counts: Sequence[int], share: float) -> bool:
        found = floor(budgets, asked, [Dummies("uniform", m) for m in counts], draft.delta, reports)
        return all(one <= share * promise for one, promise in zip(found, promises, strict=True))

    def least(family: Family, share: float) -> int:
        high = 1
        while not keeps([family], [high], share):
            high *= 2
            if high > MOST:
                told = ", ".join(f"{e:g} to {promise:g}" for e, promise in zip(budgets, promises, strict=True))
                raise InvalidInput(
                    f"no {MOST} dummies bring the levels {told} at delta {draft.delta:g}; promise less, ask fewer "
                    "questions, or raise delta"
                )
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if keeps([family], [middle], share) else (middle, high)
        return high

    step = 0 if len(families) == 1 else 1
    while True:
        counts = [least(family, 2.0 ** (-step / 8.0)) for family in families]
        if keeps(families, counts, 1.0):
            return tuple(Dummies("uniform", count) for count in counts)
        step += 1


def _honest(counts: Sequence[int], victim: int) -> list[int]:
    """Return the people per level with the victim, without the fakes among the others."""
    others = [count - (place == victim) for place, count in enumerate(counts)]
    fakes = math.ceil(FAKE * sum(others))
    for place, count in enumerate(others):  # levels ascend: the smallest budgets hide most
        others[place] = max(count - fakes, 0)
        fakes -= count - others[place]
    return [count + (place == victim) for place, count in enumerate(others)]


Part = tuple[Family, Dummies, tuple[tuple[float, int], ...]]
"""A question: randomizer, dummies, and honest company by budget (none for the floor)."""


@lru_cache(maxsize=512)
def _epsilon(parts: tuple[Part, ...], epsilon0: float, delta: float, reports: int) -> float:
    # The integers of a task may imply epsilon0 + 2^-40, and a smaller budget is never worse: its pair of laws is a
    # mixture of the larger one's with the blanket, and the divergence is jointly convex.
    budget = round_up(epsilon0 + float(SLACK))
    profile = compose([(_profile(part, budget, epsilon0), 1) for part in parts])
    local = round_up(budget * len(parts) * reports)
    if reports == 1:
        return min(float(profile.epsilon(delta).upper), local)
    return min(_two_reports(profile, delta), local)


def _two_reports(profile: PrivacyProfile, delta: float) -> float:
    """Central epsilon for two reports of one person, changed one after the other.

    H(P0, P2; 2e) <= H(P0, P1; e) + e^e H(P1, P2; e) <= d (1 + e^e) if each step has delta(e) <= d.
    """
    share = delta / 4.0
    for _ in range(_STEPS):
        epsilon = float(profile.epsilon(share).upper)
        allowed = float(round_down(delta / (1.0 + round_up(math.exp(epsilon)))))
        if share <= allowed:
            return float(round_up(2.0 * epsilon))
        share = allowed * 0.999
    return math.inf


@lru_cache(maxsize=512)
def _profile(part: Part, budget: float, epsilon0: float) -> PrivacyProfile:
    """Return the certified profile of one question for a victim of that budget."""
    family, dummies, company = part
    if dummies.law != "uniform" and dummies.count:
        raise InvalidInput(f"dummies of the law {dummies.law} cannot be certified by this version; use uniform ones")
    users = {0.0: dummies.count} | {e: n for e, n in company if e != epsilon0}
    users[budget] = 1 + sum(n - 1 for e, n in company if e == epsilon0)
    known = {e: n for e, n in users.items() if n > 0}
    budgets = Budgets(tuple(known), tuple(known.values()))
    setting = Setting(budgets, family.library(), seen="reports", neighboring="replace-one")
    return bounds["blanket"].profile(setting, epsilon0=budget)
