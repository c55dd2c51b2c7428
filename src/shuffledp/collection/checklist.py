"""The checklist of NIST SP 800-226 for the release page of a collection; see `checklist`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shuffledp.collection.promised import what_is_promised
from shuffledp.report import wording
from shuffledp.report.checklist import OPEN, OTHERS, Point, points

if TYPE_CHECKING:
    from shuffledp.collection.analyzer import Opened
    from shuffledp.collection.task import Draft


def collection_checklist(opened: Opened) -> list[Point]:
    """Answer the questions for an opened batch of a collection.

    Parameters
    ----------
    opened : Opened
        What the analyzer opened.
    """
    draft = opened.batch.task.draft
    codes = draft.admission == "codes"
    one = "One person" if codes else "One person, who may have answered twice"
    return points(
        [
            f"{one}, with the answers to all {len(draft.questions)} questions.",
            f"{OPEN}whether somebody was given several codes."
            if codes
            else f"{OPEN}whether somebody answered more than twice; such a person is protected less than stated.",
        ],
        _collection_model(draft),
        [
            "Replacement (bounded differential privacy): one person's answers are replaced by any others. How many "
            f"people answered at each level (together {wording.count(opened.batch.manifest.n)}) is the same in both "
            "worlds, and public.",
            "Whether somebody took part is not protected.",
        ],
        _collection_parameters(opened),
        _collection_trust(draft),
        [
            f"Shuffler ({draft.operated_by.shuffler}): sealed answers, their levels, and the addresses that they came "
            "from; never what is in an answer.",
            f"Analyzer ({draft.operated_by.analyzer}): the randomized reports of each question, shuffled among "
            "dummies, and how many people chose each level.",
            "Everybody: what this page shows, and the signed files behind it.",
        ],
        [
            "An answer does not leave the person's device; what leaves it is the randomized report, sealed.",
            f"{OPEN}how long sealed reports, opened reports and the shuffler's logs are kept.",
        ],
        [
            "Each device draws its own noise from the browser's or the system's generator, by comparing integers.",
            f"{OPEN}whether the devices, and whatever served them the page, were honest.",
            f"{OPEN}when somebody answered, and from where, may be seen on the network.",
        ],
        [
            f"{OPEN}who holds the analyzer's and the shuffler's keys, and who may reach the store and its logs.",
        ],
        [
            ("The one question is" if len(draft.questions) == 1 else f"All {len(draft.questions)} questions are")
            + " counted together; whatever else is computed from the same "
            "batch costs nothing on top.",
            OTHERS,
        ],
    )


def _collection_model(draft: Draft) -> Iterator[str]:
    if draft.operated_by.one_hand:
        yield (
            "The local model: shuffler and analyzer are one hand, so that only the noise of each person's own device "
            "protects (pure local differential privacy)."
        )
        return
    yield (
        "The shuffle model with dummies: each answer is randomized on the person's device, then shuffled among dummy "
        "reports. The stated epsilon and delta are those of approximate differential privacy of what the analyzer sees."
    )
    yield "Each single report keeps its local budget without exception (pure local differential privacy)."


def _collection_parameters(opened: Opened) -> Iterator[str]:
    draft = opened.batch.task.draft
    for place, level in enumerate(draft.levels):
        name, local = next(iter(level.name.values())), wording.up(what_is_promised(draft, place).local)
        own = f"local epsilon {local} over all questions"
        if draft.operated_by.one_hand:
            yield f"Level {name}: {own}; nothing more is promised."
        else:
            central, delta = wording.up(opened.floor[place]), wording.probability(draft.delta)
            yield f"Level {name}: epsilon at most {central} at delta = {delta}, certified, whoever takes part; {own}."


def _collection_trust(draft: Draft) -> Iterator[str]:
    hands = draft.operated_by
    if hands.one_hand:
        yield f"{hands.analyzer} both shuffles and analyzes; nobody but the person's own device need be honest."
    else:
        yield (
            f"The shuffler ({hands.shuffler}) must add the dummies, permute, forget who sent what, and not side with "
            f"the analyzer ({hands.analyzer}); if it does side with the analyzer, only the local budget protects."
        )
    yield f"Whoever serves the survey page ({hands.page}) must serve the true one."
    if not hands.one_hand:
        yield f"{OPEN}what keeps shuffler and analyzer apart besides their names."
