"""The analyzer: unbiased estimates with their intervals, junk counted, and every lie refused."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.collection.analyzer import Opened, open_batch
from shuffledp.collection.batch import AnalyzerKey, Batch, seal_inner
from shuffledp.collection.draw import WHOLE
from shuffledp.collection.estimates import Tallied, effective_budget, estimate_question, scaled_counts, slopes_of
from shuffledp.collection.laws import CROWD_SLACK, FLOOR_SLACK, draw_dummies
from shuffledp.collection.release import write_release
from shuffledp.collection.release_page import release_document
from shuffledp.collection.sealing import Opener, Sealer, identity_of
from shuffledp.collection.task import PostedTask
from shuffledp.collection.verify import verify
from shuffledp.dummies import DiscreteLaplace
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.frequency import frequency
from shuffledp.questions.mean import mean
from shuffledp.questions.tally import ShuffledReports
from tests.collection.batches import (
    analyzer_key,
    batch_of,
    people,
    reports_of_people,
    sealed_columns,
    signed_batch,
)
from tests.collection.tasks import ANALYST, ANALYZER, choice, document, draft, number, parse, posted

COUNTS = (54, 37, 9)
TWO = ((0.5, 60, 0.3), (1.0, 40, 0.6))
LAPLACE = {"law": "laplace", "count": 40, "draw": [str(t) for t in DiscreteLaplace(40, 1.1).thresholds]}
ASKED = {
    "krr": choice(5, 60),
    "rr": choice(2, 50),
    "rr, laplace": choice(2) | {"dummies": LAPLACE},
    "hadamard": choice(5, 60, "hadamard:5"),
    "one-bit": number(dummies=60),
    "one-bit, laplace": number() | {"dummies": LAPLACE},
}


def drawn(asked, rng, random, counts):  # type: ignore[no-untyped-def]
    """Records of a question and the reports of people and dummies, vectorised."""
    question = asked.questions[0]
    budgets = np.repeat([level.epsilon0 for level in asked.levels], counts)
    n = len(budgets)
    family = question.family.library(question.low, question.high)
    if question.kind == "number":
        records = np.linspace(question.low, question.high, n) ** 2 / question.high
    else:
        records = np.arange(n) % question.answers * (np.arange(n) % 3 > 0)
    records = rng.permutation(records)
    reports = family.randomize(records, budgets, random)
    return records, np.concatenate((reports, np.array(draw_dummies(question, random), dtype=np.int64)))


@pytest.mark.costly
@pytest.mark.parametrize("name", ASKED)
def test_the_estimate_without_the_dummies_is_unbiased_and_its_interval_covers(name):
    """500 collections; mean and variance within 4.5 sigma (false alarm 1e-5 a category), coverage of 95 % >= .94."""
    asked = draft(ASKED[name])
    rng, random, counts = np.random.default_rng(5), simulation_random(5), [4 * n for n in COUNTS]
    misses, errors, inside = [], [], []
    for _ in range(500):
        records, reports = drawn(asked, rng, random, counts)
        found = estimate_question(asked, 0, [Tallied(reports, tuple(counts))])
        question = asked.questions[0]
        shares = np.bincount(records.astype(int), minlength=question.answers) / len(records)
        true = np.mean(records) if question.kind == "number" else shares
        low, high = found.confidence_interval(0.95)
        misses.append(np.ravel(found.value - true))
        errors.append(np.ravel(found.standard_error))
        inside.append(np.ravel((low <= true) & (true <= high)))
    missed, told = np.array(misses), np.array(errors)
    assert np.all(np.abs(missed.mean(axis=0)) < 4.5 * missed.std(axis=0) / np.sqrt(500))
    assert np.mean(inside) >= 0.94
    assert np.all(np.abs(missed.var(axis=0) / (told**2).mean(axis=0) - 1.0) < 4.5 * np.sqrt(2 / 499))


@pytest.mark.parametrize("name", ASKED)
def test_dummies_aside_the_estimate_is_the_librarys_to_the_last_bit(name):
    question = ASKED[name] | {"dummies": {"law": "uniform", "count": 0}}
    asked = draft(question)
    _, reports = drawn(asked, np.random.default_rng(1), simulation_random(1), COUNTS)
    known = asked.questions[0]
    shuffled = ShuffledReports(reports, np.repeat([0.5, 1.0, 4.0], COUNTS), seen="reports")
    family = known.family.library(known.low, known.high)
    theirs = mean(shuffled, family) if known.kind == "number" else frequency(shuffled, family)  # type: ignore[arg-type]
    ours = estimate_question(asked, 0, [Tallied(np.random.default_rng(2).permutation(reports), COUNTS)])
    assert np.array_equal(ours.value, theirs.value)
    assert np.array_equal(ours.standard_error, theirs.standard_error)


def test_the_dummies_mean_is_subtracted_exactly():
    asked = draft(choice(5, 60))
    _, reports = drawn(asked, np.random.default_rng(1), simulation_random(1), COUNTS)
    found = estimate_question(asked, 0, [Tallied(reports, COUNTS)])
    keeps = [Fraction(level.draw[0], WHOLE) for level in asked.levels]
    slope = sum((n * keep for n, keep in zip(COUNTS, keeps, strict=True)), Fraction(0))
    noise = sum((n * (1 - keep) / 5 for n, keep in zip(COUNTS, keeps, strict=True)), Fraction(60, 5))
    for place, count in enumerate(np.bincount(reports, minlength=5)):
        assert float((int(count) - noise) / slope) == pytest.approx(float(found.value[place]), abs=1e-12)


def test_a_task_that_draws_more_privately_than_it_must_is_inverted_as_it_draws():
    whole = document(choice(5, 0))
    for level in whole["levels"]:
        level["draw"] = [str(int(level["draw"][0]) // 2)]
    asked = parse(whole)
    slopes = slopes_of(asked, 0)
    for level, budget in zip(asked.levels, slopes.budgets, strict=True):
        question = asked.questions[0]
        assert budget < level.epsilon0
        assert question.family.threshold(budget) == pytest.approx(level.draw[0], rel=2.0**-44)
        assert effective_budget(question.family, question.family.threshold(0.7), 0.7) == 0.7


def test_scaled_counts_add_up():
    for kept in range(100):
        found = scaled_counts(COUNTS, kept)
        assert sum(found) == kept
        assert all(abs(one - kept * n / 100) < 1 for one, n in zip(found, COUNTS, strict=True))


@pytest.fixture(scope="module")
def collected() -> tuple[PostedTask, list[list[int]], list[int]]:
    task = posted(choice(5, 172), choice(2, 100), levels=TWO)
    columns, counts = reports_of_people(task, people(np.random.default_rng(3), (60, 40), 5, 2), simulation_random(3))
    return task, columns, counts


@pytest.fixture(scope="module")
def opened(collected) -> Opened:  # type: ignore[no-untyped-def]
    task, columns, counts = collected
    return open_batch(batch_of(task, columns, counts), analyzer_key(task))


@pytest.mark.costly
def test_an_opened_batch_agrees_with_the_rows(collected, opened):
    task, columns, counts = collected
    assert opened.junk_seen == 0
    assert opened.promise_kept
    for place, release in enumerate(opened.releases):
        question = task.draft.questions[place]
        without = dataclasses.replace(
            task.draft,
            questions=tuple(
                dataclasses.replace(q, dummies=dataclasses.replace(q.dummies, count=0)) for q in task.draft.questions
            ),
        )
        people_only = estimate_question(without, place, [Tallied(np.array(columns[place]), tuple(counts))])
        slope = sum(n * s for n, s in zip(counts, slopes_of(task.draft, place).slopes, strict=True))
        spread = np.sqrt(question.dummies.count * 0.25) / slope
        assert np.all(np.abs(release.analysis.value - people_only.value) < 6 * spread)
        assert release.n == 100
        assert release.guarantee.epsilon.upper < opened.floor[-1]


def junk_rows(task: PostedTask) -> dict[str, list[bytes]]:
    sealer = Sealer(task.draft.analyzer_key)
    info = task.inner_info(0)
    other = seal_inner(task, 1, 0, sealer)
    impossible = [sealer.seal(bytes([value]), info) for value in (5, 6, 255)]
    stranger = Sealer(Opener(bytes(range(32))).public).seal(b"\0", info)
    return {"unreadable": [bytes(49), other, stranger], "impossible": impossible}


def test_junk_is_counted_and_spoils_nothing(collected):
    task, columns, counts = collected
    rows = sealed_columns(task, [[*column, *dummies_of(task, place)] for place, column in enumerate(columns)])
    junk = junk_rows(task)
    spoiled = [[*junk["unreadable"], *junk["impossible"], rows[0][20], rows[0][20], *rows[0][8:]], rows[1]]
    found = open_batch(signed_batch(task, spoiled, counts), analyzer_key(task))
    first = found.junk[0]
    assert (first.unreadable, first.impossible, first.repeated) == (3, 3, 2)
    assert found.junk_seen == first.total == 8
    assert found.junk[1].total == 0
    slope = slopes_of(task.draft, 0).mean(counts)
    assert first.effect_seen == pytest.approx(8 / 100 / slope)
    assert first.effect_of_share == pytest.approx(0.05 / slope)
    assert found.releases[0].n == 100
    assert found.promise_kept


def dummies_of(task: PostedTask, place: int) -> list[int]:
    return draw_dummies(task.draft.questions[place], simulation_random(place))


@pytest.mark.costly
def test_several_processes_find_the_same(collected, monkeypatch):
    task, columns, counts = collected
    data = batch_of(task, columns, counts)
    alone = open_batch(data, analyzer_key(task), processes=1)
    monkeypatch.setattr("shuffledp.collection.opening.SEVERAL", 100)
    monkeypatch.setattr("shuffledp.collection.opening._PIECE", 100)
    both = open_batch(data, analyzer_key(task), processes=2)
    assert release_document(alone) == release_document(both)


def test_a_batch_without_people_or_of_another_key_is_not_opened(collected):
    task, columns, counts = collected
    with pytest.raises(InvalidInput, match="dummies alone"):
        open_batch(batch_of(task, [[], []], [0, 0]), analyzer_key(task))
    data = batch_of(task, columns, counts)
    with pytest.raises(InvalidInput, match="is not the one"):
        open_batch(data, AnalyzerKey(bytes(32), ANALYST, analyzer_key(task).draft_sha256))
    with pytest.raises(InvalidInput, match="shuffler has changed it"):
        open_batch(data, AnalyzerKey(ANALYZER, ANALYST, bytes(32)))


@pytest.mark.parametrize("change", [-1, 1])
def test_a_row_too_many_or_too_few_is_refused(collected, change):
    task, columns, counts = collected
    rows = sealed_columns(task, [[*column, *dummies_of(task, place)] for place, column in enumerate(columns)])
    spoiled = [rows[0][:-1] if change < 0 else [*rows[0], rows[0][0][::-1]], rows[1]]
    with pytest.raises(InvalidInput, match="rows"):
        signed_batch(task, spoiled, counts)
    data = signed_batch(task, rows, counts)
    with pytest.raises(InvalidInput):
        Batch.parse(data[:-64][: change * 49] + data[-64:] if change < 0 else data[:-64] + bytes(49) + data[-64:])


def test_swapped_columns_edited_manifests_and_foreign_signatures_are_refused(collected):
    task, columns, counts = collected
    data = batch_of(task, columns, counts)
    size = int.from_bytes(data[5:9], "little")
    manifest, body, signature = data[9 : 9 + size], data[9 + size : -64], data[-64:]
    swapped = body[272 * 49 :] + body[: 272 * 49]
    with pytest.raises(InvalidInput, match="signed"):
        Batch.parse(data[: 9 + size] + swapped + signature)
    edited = manifest.replace(b'"counts":[60,40]', b'"counts":[61,39]')
    assert edited != manifest
    with pytest.raises(InvalidInput, match="not signed by the task's shuffler"):
        Batch.parse(data[:9] + edited + body + signature)
    with pytest.raises(InvalidInput, match="not signed by the task's shuffler"):
        batch_of(task, columns, counts, identity=bytes(32))
    fewer = manifest.replace(b'"rows":[272,', b'"rows":[271,')
    with pytest.raises(InvalidInput, match="make"):
        Batch.parse(data[:9] + fewer + body + signature)


@pytest.mark.parametrize(
    "day", ["0000-99-99", "2030-02-30", "\u0662\u0660\u0663\u0660-01-31", "2030-1-31", "", 20300131]
)
def test_the_day_of_a_manifest_is_a_day_of_the_calendar(collected, day):
    """0.2.0 took 0000-99-99 and digits of another script."""
    task, columns, counts = collected
    with pytest.raises(InvalidInput, match="day of the calendar such as 2030-01-31"):
        batch_of(task, columns, counts, day=day)


def lied(opened: Opened, change) -> bytes:  # type: ignore[no-untyped-def]
    """The analyzer's own release after a change, signed by the analyzer."""
    document_ = json.loads(release_document(opened))
    change(document_)
    return write_release(json.dumps(document_).encode(), opened.batch.task, ANALYST)


def set_(*path):  # type: ignore[no-untyped-def]
    *steps, last, value = path

    def change(whole):  # type: ignore[no-untyped-def]
        for step in steps:
            whole = whole[step]
        whole[last] = value

    return change


LIES = {
    "counts": set_("collection", "counts", "careful", 61),
    "dummies": set_("collection", "dummies", [172, 101]),
    "id": set_("collection", "id", "A" * 43),
    "floor": set_("collection", "floor", "careful", 0.01),
    "floor left out": set_("collection", "floor", {}),
    "crowd": set_("collection", "crowd", "middle", 0.001),
    "promise_kept": set_("collection", "promise_kept", False),
    "n": set_("releases", 0, "n", 101),
    "mechanism": set_("releases", 1, "mechanism", "krr:5"),
    "guarantee": set_("releases", 0, "guarantee", "levels", 0, "epsilon", "upper", 0.01),
    "lower end": set_("releases", 0, "guarantee", "levels", 0, "epsilon", "lower", 0.01),
    "delta": set_("releases", 0, "guarantee", "delta", 1e-9),
    "level": set_("releases", 0, "guarantee", "levels", 0, "count", 59),
    "no guarantee": set_("releases", 0, "guarantee", None),
}


def test_a_release_is_verified_without_a_key(opened):
    task = opened.batch.task
    found = verify(task, write_release(release_document(opened), task, ANALYST))
    assert found.promise_kept
    assert list(found.floor.values()) == list(opened.floor)
    assert any("272" in check or "472" in check for check in found.checks)
    assert len(found.cannot) == 5
    told = json.loads(release_document(opened))["releases"][0]["level_effect"]
    assert 0.0 < told["of_1_percent"] < told["of_5_percent"] < told["of_10_percent"]


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_analyzer_is_found_out(opened, lie):
    with pytest.raises(InvalidInput, match="release"):
        verify(opened.batch.task, lied(opened, LIES[lie]))


NUMBERS = {
    "floor": (("collection", "floor", "careful"), FLOOR_SLACK),
    "crowd": (("collection", "crowd", "middle"), CROWD_SLACK),
    "guarantee": (("releases", 0, "guarantee", "levels", 0, "epsilon", "upper"), FLOOR_SLACK),
}


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_of_another_machine_is_taken_up_to_the_slack_and_no_further(opened, number):
    path, slack = NUMBERS[number]
    true = json.loads(release_document(opened))
    for step in path:
        true = true[step]
    verify(opened.batch.task, lied(opened, set_(*path, true * (1.0 - 0.5 * slack))))
    with pytest.raises(InvalidInput, match="can be certified"):
        verify(opened.batch.task, lied(opened, set_(*path, true * (1.0 - 2.0 * slack))))


def test_a_shuffler_whose_last_digits_are_larger_breaks_no_promise(collected, opened):
    """Its certificate of a promise that is kept to the last digit is a little above the promise."""
    task, columns, counts = collected
    promises = [level.promise for level in task.draft.levels]
    for share, kept in ((0.5, True), (2.0, False)):
        floor = [promise * (1.0 + share * FLOOR_SLACK) for promise in promises]
        found = open_batch(batch_of(task, columns, counts, floor=floor), analyzer_key(task))
        assert found.promise_kept is kept
        assert verify(task, write_release(release_document(found), task, ANALYST)).promise_kept is kept


def test_a_release_is_bound_to_task_batch_and_analyzer(collected, opened):
    task = opened.batch.task
    good = write_release(release_document(opened), task, ANALYST)
    other = posted(choice(5, 172), choice(2, 100), levels=TWO[:1])
    with pytest.raises(InvalidInput, match="not signed by the task's analyzer"):
        verify(other, good)
    with pytest.raises(InvalidInput, match="not signed"):
        write_release(release_document(opened), task, bytes(32))
    assert identity_of(ANALYST) == task.draft.analyzer_identity
    _, columns, counts = collected
    with pytest.raises(InvalidInput, match="manifests differ"):
        verify(task, good, batch_of(task, columns, counts))
    for place in (3, 40, len(good) - 1):
        data = bytearray(good)
        data[place] ^= 1
        with pytest.raises(InvalidInput):
            verify(task, bytes(data))


def test_a_broken_promise_is_published_not_hidden():
    task = posted(choice(5, 20))
    columns, counts = reports_of_people(task, people(np.random.default_rng(3), COUNTS, 5), simulation_random(3))
    found = open_batch(batch_of(task, columns, counts, floor=[0.3, 0.2, 9.0]), analyzer_key(task))
    assert not found.promise_kept
    assert found.floor[2] == 9.0  # the larger of the certified number and the shuffler's
    assert found.floor[0] == 0.3
    assert not verify(task, write_release(release_document(found), task, ANALYST)).promise_kept
