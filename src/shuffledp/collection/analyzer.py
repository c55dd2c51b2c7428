"""The analyzer: it opens a batch, recomputes the certified floor, estimates, and signs the release."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting import StoredProfile, bounds
from shuffledp.budgets import Budgets
from shuffledp.collection.batch import AnalyzerKey, Batch
from shuffledp.collection.dictionary import WordsEstimate
from shuffledp.collection.estimates import (
    JUNK,
    Tallied,
    estimate_question,
    scaled_counts,
    shift_of_junk,
    slopes_of,
    width_of,
)
from shuffledp.collection.kinds import More, more_of
from shuffledp.collection.laws import covers, published
from shuffledp.collection.opening import open_column
from shuffledp.collection.promise import cost_of_answer, crowd_of, floor_of, law_of, promised_profiles
from shuffledp.collection.weights import WeightedTable, fit_margins, weigh
from shuffledp.errors import InvalidInput, Told
from shuffledp.ledger import EVERYBODY, TAKEN_AS_PEOPLE, Ledger, LevelSpending, NewEntry, Spending
from shuffledp.numerics.floats import Interval
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.mean import Mean
from shuffledp.randomizers.wire import unpack_each
from shuffledp.releases.margins import Margins
from shuffledp.releases.release import Release
from shuffledp.releases.run import Entering
from shuffledp.setting import Evidence, Guarantee, LevelGuarantee, Setting

# A batch in a ledger: what opening it costs the people in it, entered before a row is opened.


def batch_draft(batch: Batch) -> NewEntry:
    """Return the ledger's draft of an entry for a batch: all its questions together, with the guarantee of the floor.

    Parameters
    ----------
    batch : Batch
        The batch. Its manifest, which names the columns by their SHA-256, identifies it.

    Raises
    ------
    InvalidInput
        If the task's dummies cannot be certified.
    """
    task, manifest = batch.task, batch.manifest
    draft = task.draft
    profiles = promised_profiles(draft)
    levels = tuple(
        LevelSpending(level.epsilon0, 0.0, StoredProfile.of(profile))
        for level, profile in zip(draft.levels, profiles, strict=True)
    )
    if draft.version > 1 and not draft.operated_by.one_hand:
        epsilon = max(floor_of(draft))
    else:
        epsilon = max(
            published(profile.epsilon(draft.delta).upper, level.promise)
            for profile, level in zip(profiles, draft.levels, strict=True)
        )
    worst = StoredProfile.largest([level.profile for level in levels])
    spent = Spending(epsilon, draft.delta, manifest.n, len(levels), worst, levels)
    held = "local, one hand" if draft.operated_by.one_hand else "floor"
    taken = "" if task.has_codes else f" reports{TAKEN_AS_PEOPLE}"
    words = f"{len(draft.questions)} questions, n = {manifest.n}{taken}, {len(levels)} levels, {held}"
    title = next(iter(draft.title.values()))
    digest = task.digest.hex()
    reports = ((digest, hashlib.sha256(manifest.data).hexdigest()),)
    return NewEntry(f"collection {title}", digest, words, spent, reports)


def enter_batches(
    batches: Sequence[Batch],
    ledger: Ledger | str | Path | None,
    population: str = EVERYBODY,
    fixed_in_advance: str | None = None,
    title: str = "",
    survey: str = "",
) -> int | None:
    """Enter batches of disjoint groups in a ledger as one release, without those that are already entered.

    Nobody is in two groups, so nobody spends more than the group in which answering costs most: that is entered, once.

    Parameters
    ----------
    batches : sequence of Batch
        The batches that are about to be opened, at least one.
    ledger, population, fixed_in_advance, title
        As for `shuffledp.release`.
    survey : str
        Title of the survey whose groups they are; without effect on one batch.

    Returns
    -------
    int or None
        Number of batches entered now; None without a ledger.

    Raises
    ------
    InvalidInput
        If the limit has no room, another batch of one of the tasks is entered, or these under other names.
    """
    entering = Entering.into(ledger, population, fixed_in_advance, title)
    if entering is None:
        return None
    try:
        entries = entering.ledger.entries()
        drafts = [draft for draft in map(batch_draft, batches) if not draft.is_in(entries, entering.use)]
        if not drafts:
            return 0
        draft = NewEntry.apart(drafts, f"collection {survey}, by group") if len(drafts) > 1 else drafts[0]
        refused = entering.ledger.refusal([draft], entering.use)
        if refused is not None:
            raise InvalidInput(
                f"{refused}; the batch stays closed: what its people were promised cannot be made smaller now, so "
                "draft the next collection with smaller promises or fewer questions"
            )
        return len(drafts) if entering.ledger.enter([draft], entering.use) else 0
    finally:
        if not isinstance(ledger, Ledger):
            entering.ledger.close()


@dataclass(frozen=True)
class Junk:
    """Unusable rows of one question, and the effect that invalid reports can have.

    Parameters
    ----------
    unreadable, repeated, impossible : int
        Rows that do not open, copies of other rows, and reports that the randomizer never makes.
    effect_of_share : float
        Largest shift of the estimate, in its unit, by 5 % of invalid reports.
    effect_seen : float
        Largest shift of the estimate by the unusable rows.
    """

    unreadable: int
    repeated: int
    impossible: int
    effect_of_share: float
    effect_seen: float

    @property
    def total(self) -> int:
        """Number of all unusable rows."""
        return self.unreadable + self.repeated + self.impossible


@dataclass(frozen=True, eq=False, repr=False)
class Opened(Told):
    """An opened and estimated batch; nothing in it shows whose row was which.

    Parameters
    ----------
    batch : Batch
        The batch.
    releases : tuple of Release
        One for each question; the guarantee of each is the floor of that question alone, or the local budget of its
        reports where one organisation runs both shuffler and analyzer.
    junk : tuple of Junk
        For each question: the number of unusable rows, and how far invalid reports can shift the estimate.
    floor : tuple of float
        Central epsilon (nats) per level over all questions, valid whatever other participants do: recomputed, or the
        shuffler's number if that is larger.
    crowd : tuple of float or None
        The smaller epsilon that holds if at most 5 % of the other participants are fake; None where nobody has a level.
    more : tuple of More
        One for each question: the results of its kind besides the shares.
    weighted : tuple of (WeightedTable or None)
        One for each question: estimates weighted to a population; None where they are not weighted.
    entered : bool or None
        Whether the ledger has entered the batch now; False if it was entered before; None without a ledger.
    """

    batch: Batch
    releases: tuple[Release, ...]
    junk: tuple[Junk, ...]
    floor: tuple[float, ...]
    crowd: tuple[float | None, ...]
    more: tuple[More, ...]
    weighted: tuple[WeightedTable | None, ...]
    entered: bool | None = None

    def _told(self) -> str:
        answers, floors = len(self.releases), ", ".join(map(repr, self.floor))
        kept = "kept" if self.promise_kept else "broken"
        return (
            f"Opened: {answers} answer{'' if answers == 1 else 's'}, epsilon {floors} by level, promise {kept}; "
            "ask .releases"
        )

    @property
    def promise_kept(self) -> bool:
        """Whether no level's floor exceeds its promise, up to the rounding difference between machines."""
        levels = self.batch.task.draft.levels
        return all(covers(level.promise, certified) for certified, level in zip(self.floor, levels, strict=True))

    @property
    def junk_seen(self) -> int:
        """Number of unusable rows over all questions."""
        return sum(junk.total for junk in self.junk)


def open_batch(
    batch: Batch | bytes,
    key: AnalyzerKey,
    *,
    processes: int | None = None,
    ledger: Ledger | str | Path | None = None,
    population: str = EVERYBODY,
    fixed_in_advance: str | None = None,
    title: str = "",
    margins: Margins | None = None,
) -> Opened:
    """Open a batch and estimate every question.

    Parameters
    ----------
    batch : Batch or bytes
        The batch that the shuffler wrote.
    key : AnalyzerKey
        The key that was made with the draft.
    processes : int, optional
        Largest number of processes; one per core by default.
    ledger : Ledger, str or Path, optional
        Ledger in which the batch is entered before a row is opened, with the guarantee of the floor. The same
        batch is entered once, however often it is opened.
    population, fixed_in_advance, title
        As for `shuffledp.release`; the title's default is the task's.
    margins : Margins, optional
        Public shares to which tables are weighted. If they fit no table, nothing is entered or opened.

    Returns
    -------
    Opened
        Estimates, certified floor, crowd, and numbers of unusable rows.

    Raises
    ------
    InvalidInput
        If a signature, hash or length is wrong, the task is not the key's, nobody answered, no row can be used, or the
        ledger refuses the batch.
    """
    opened = batch if isinstance(batch, Batch) else Batch.parse(batch)
    draft, manifest = opened.task.draft, opened.manifest
    check_openable(opened, key)
    if margins is not None:
        fit_margins(draft, margins)
        margins.check_people(manifest.n)
    entered = enter_batches([opened], ledger, population, fixed_in_advance, title)
    floors = tuple(
        max(certified, published(floor, level.promise))
        for certified, floor, level in zip(floor_of(draft), manifest.floor, draft.levels, strict=True)
    )
    crowd = crowd_of(draft, manifest.counts)
    answers = [_question(opened, key, place, processes, margins) for place in range(len(draft.questions))]
    releases, junk, more, weighted = zip(*answers, strict=True)
    return Opened(opened, releases, junk, floors, crowd, more, weighted, None if entered is None else entered > 0)


def check_openable(batch: Batch, key: AnalyzerKey) -> None:
    """Refuse a batch whose task is not the key's, or that nobody answered, before anything is entered or opened."""
    key.check_task(batch.task)
    if batch.manifest.n == 0:
        raise InvalidInput("nobody answered: the batch holds dummies alone")


def _question(
    batch: Batch, key: AnalyzerKey, place: int, processes: int | None, margins: Margins | None
) -> tuple[Release, Junk, More, WeightedTable | None]:
    task, manifest = batch.task, batch.manifest
    question, columns = task.draft.questions[place], task.draft.columns
    own = [number for number, column in enumerate(columns) if column.question == place]
    read = [_column(batch, key, number, processes) for number in own]
    unusable = [sum(dropped) for _, dropped in read]
    slopes, width = slopes_of(task.draft, place), width_of(question)
    worst = max(unusable) / (manifest.n * question.family.pieces)
    unreadable, repeated, impossible = (sum(kinds) for kinds in zip(*(dropped for _, dropped in read), strict=True))
    junk = Junk(
        unreadable,
        repeated,
        impossible,
        shift_of_junk(slopes, manifest.counts, JUNK, width),
        shift_of_junk(slopes, manifest.counts, worst, width),
    )
    tallied: list[Tallied] = []
    for number, (reports, dropped) in zip(own, read, strict=True):
        kept = manifest.n - -(-sum(dropped) // question.family.pieces)
        if kept <= 0:
            raise InvalidInput(
                f"question {place + 1}: {sum(dropped)} of {manifest.rows[number]} rows cannot be used; no estimate"
            )
        tallied.append(Tallied(reports, tuple(scaled_counts(manifest.counts, kept))))
    estimate = estimate_question(task.draft, place, tallied)
    counts = tallied[0].counts
    more = more_of(task.draft, place, estimate, counts)
    labels = [next(iter(choice.values())) for choice in question.choices]
    if more.words is not None and isinstance(estimate, WordsEstimate):  # of so many words a release names some
        estimate = estimate.some(more.words.named)
        labels = [labels[word] for word in more.words.named]
    release = Release(
        question=Frequency(labels) if labels else Mean(question.low, question.high),
        analysis=estimate,
        guarantee=_guarantee(batch, place),
        n=manifest.n,
        rows=manifest.n,
        mechanism=question.family.name,
        private=True,
        unit="people" if task.has_codes else "reports",
        fingerprint=task.digest.hex(),
    )
    weighted = None
    if margins is not None and place in fit_margins(task.draft, margins):
        weighted = weigh(task.draft, place, estimate, counts, margins, manifest.n)
    return release, junk, more, weighted


def _column(
    batch: Batch, key: AnalyzerKey, number: int, processes: int | None
) -> tuple[NDArray[np.int64], tuple[int, int, int]]:
    """Open one column; return its pieces, and the numbers of unreadable, repeated and impossible rows."""
    task, family = batch.task, batch.task.draft.columns[number].family
    size = task.inner_sizes[number]
    rows = open_column(
        batch.columns[number], size, key.key, task.inner_info(number), family.report_bytes, processes=processes
    )
    reports, possible = unpack_each(rows.contents, family.of_pieces())
    return reports, (rows.unreadable, rows.repeated, int((~possible).sum()))


def _guarantee(batch: Batch, place: int) -> Guarantee:
    """Return one question's guarantee for the levels in use: its floor, or the local one without a shuffler."""
    draft, counts = batch.task.draft, batch.manifest.counts
    question, shuffled = draft.questions[place], not draft.operated_by.one_hand
    costs = cost_of_answer(draft, place)
    levels = [(level.epsilon0, count, cost) for level, count, cost in zip(draft.levels, counts, costs, strict=True)]
    levels = [entry for entry in levels if entry[1]]
    present = [(epsilon0, count) for epsilon0, count, _ in levels]
    budgets = Budgets(tuple(e for e, _ in present), tuple(count for _, count in present))
    family = question.family.library(question.low, question.high)
    dummies = law_of(question.dummies) if draft.version == 1 else None
    setting = Setting(budgets, family, seen="reports", neighboring="replace-one", dummies=dummies)
    guarantees = tuple(
        LevelGuarantee(epsilon0, 0.0, count, Interval(0.0, cost), floor=Interval(0.0, cost) if shuffled else None)
        for epsilon0, count, cost in levels
    )
    bound = bounds["floor" if shuffled else "local"]
    evidence = Evidence(bound.key, bound.kind, bound.reference, epsilon=Interval(0.0, max(cost for *_, cost in levels)))
    return Guarantee(setting, draft.delta, guarantees, len(guarantees), (evidence,))


def by_level(opened: Opened, values: Sequence[object]) -> dict[str, object]:
    """Return values by the levels' names in the task's first language."""
    levels = opened.batch.task.draft.levels
    return {next(iter(level.name.values())): value for level, value in zip(levels, values, strict=True)}
