"""A batch in a ledger: what opening it costs the people in it, entered before a row is opened."""

from __future__ import annotations

import hashlib
from pathlib import Path

from shuffledp.accounting import StoredProfile
from shuffledp.collection.agreement import published
from shuffledp.collection.batch import Batch
from shuffledp.collection.promise import floor_of, promised_profiles
from shuffledp.errors import InvalidInput
from shuffledp.ledger import TAKEN_AS_PEOPLE, Draft, Ledger, LevelSpending, Spending
from shuffledp.releases.entering import Entering


def batch_draft(batch: Batch) -> Draft:
    """Return what a ledger enters of a batch: all its questions at once, and what holds whoever the others are.

    Parameters
    ----------
    batch : Batch
        What the shuffler handed over. Its manifest, which names the columns by their SHA-256, is its fingerprint.

    Raises
    ------
    InvalidInput
        If the task's dummies cannot be certified.
    """
    task, manifest = batch.task, batch.manifest
    asked = task.draft
    profiles = promised_profiles(asked)
    levels = tuple(
        LevelSpending(level.epsilon0, 0.0, StoredProfile.of(profile))
        for level, profile in zip(asked.levels, profiles, strict=True)
    )
    if asked.version > 1 and not asked.operated_by.one_hand:
        epsilon = max(floor_of(asked))
    else:
        epsilon = max(
            published(profile.epsilon(asked.delta).upper, level.promise)
            for profile, level in zip(profiles, asked.levels, strict=True)
        )
    worst = StoredProfile.largest([level.profile for level in levels])
    spent = Spending(epsilon, asked.delta, manifest.n, len(levels), worst, levels)
    held = "local, one hand" if asked.operated_by.one_hand else "floor"
    taken = "" if task.has_codes else f" reports{TAKEN_AS_PEOPLE}"
    words = f"{len(asked.questions)} questions, n = {manifest.n}{taken}, {len(levels)} levels, {held}"
    title = next(iter(asked.title.values()))
    return Draft(f"collection {title}", task.digest.hex(), words, spent, hashlib.sha256(manifest.data).hexdigest())


def enter_batch(
    batch: Batch,
    ledger: Ledger | str | Path | None,
    population: str,
    fixed_in_advance: str | None,
    title: str,
) -> bool | None:
    """Enter a batch, unless this very batch is entered.

    Parameters
    ----------
    batch : Batch
        What is about to be opened.
    ledger, population, fixed_in_advance, title
        As for `shuffledp.release`.

    Returns
    -------
    bool or None
        Whether it was entered now; False if it was entered before; None without a ledger.

    Raises
    ------
    InvalidInput
        If the limit has no room, another batch of the same task is entered, or this one under other names.
    """
    entering = Entering.into(ledger, population, fixed_in_advance, title)
    if entering is None:
        return None
    draft = batch_draft(batch)
    try:
        if draft.is_in(entering.ledger.entries(), entering.use):
            return False
        refused = entering.ledger.refusal([draft], entering.use)
        if refused is not None:
            raise InvalidInput(
                f"{refused}; the batch stays closed: what its people were promised cannot be made smaller now, so "
                "draft the next collection with smaller promises or fewer questions"
            )
        return entering.ledger.enter([draft], entering.use) > 0
    finally:
        if not isinstance(ledger, Ledger):
            entering.ledger.close()
