"""A batch in a ledger: the floor of all questions, entered before a row is opened, and one batch is entered once."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp.accounting import LocalProfile, compose
from shuffledp.cli.ledger import read_guarantees
from shuffledp.collection import analyzer
from shuffledp.collection.analyzer import batch_draft, enter_batches, open_batch
from shuffledp.collection.batch import Batch
from shuffledp.collection.promise import floor_of
from shuffledp.collection.release_page import collection_checklist, release_document, release_object, release_page
from shuffledp.collection.task import PostedTask
from shuffledp.errors import InvalidInput
from shuffledp.ledger import Ledger, Spending, composed_epsilon
from shuffledp.numerics.randomness import simulation_random
from shuffledp.report.checklist import QUESTIONS
from shuffledp.report.wording import up
from tests.collection.batches import analyzer_key, batch_of, people, reports_of_people, signed_batch
from tests.collection.tasks import choice, posted

TWO = ((0.5, 60, 0.3), (1.0, 40, 0.6))


def collected(**changed):  # type: ignore[no-untyped-def]
    task = posted(choice(5, 172), choice(2, 100), levels=TWO, **changed)
    columns, counts = reports_of_people(task, people(np.random.default_rng(3), (60, 40), 5, 2), simulation_random(3))
    return task, batch_of(task, columns, counts), (columns, counts)


def test_what_is_entered_is_the_floor_of_all_questions():
    task, data, _ = collected()
    spent = batch_draft(Batch.parse(data)).spending
    floors = floor_of(task.draft)
    assert spent.epsilon == max(floors)
    assert spent.n == 100
    for level, certified, (epsilon0, _, _) in zip(spent.levels, floors, TWO, strict=True):
        assert level.epsilon0 == epsilon0
        assert certified <= level.profile.epsilon(task.draft.delta).upper <= certified * 1.01  # chords lie above


@pytest.mark.costly("open")
@pytest.mark.parametrize("admission", ["codes", "open"])
def test_where_one_hand_runs_both_the_local_budgets_are_entered(admission):
    hands = {"analyzer": "One Hand", "shuffler": "one hand", "page": "another"}
    task, data, _ = collected(operated_by=hands, admission=admission)
    spent = batch_draft(Batch.parse(data)).spending
    reports = 2 if admission == "codes" else 4
    assert spent.epsilon == pytest.approx(compose([(LocalProfile(1.0, 0.0), reports)]).epsilon(task.draft.delta).upper)
    assert spent.epsilon > max(floor_of(task.draft))


@pytest.mark.costly("open")
@pytest.mark.parametrize("admission", ["codes", "open"])
def test_where_one_hand_runs_both_an_answer_states_its_local_budget(tmp_path, admission):
    """It stated the floor, .0996 and .2337 for the first question with codes, as if somebody else had shuffled."""
    hands = {"analyzer": "One Hand", "shuffler": "one hand", "page": "another"}
    task, data, _ = collected(operated_by=hands, admission=admission)
    opened = open_batch(data, analyzer_key(task))
    told = release_object(opened)
    for answer in told["releases"]:
        known = answer["guarantee"]
        stated = [level["epsilon"]["upper"] for level in known["levels"]]
        reports = 1 if admission == "codes" else 2
        local = [float(compose([(LocalProfile(e0, 0.0), reports)]).epsilon(1e-6).upper) for e0 in (0.5, 1.0)]
        assert stated == pytest.approx(local)
        assert stated >= local
        assert known["epsilon"]["upper"] == max(stated)
        assert "floor" not in known
    file = tmp_path / "open.json"
    file.write_bytes(release_document(opened))
    total = composed_epsilon([stated.cost.worst for stated in read_guarantees(file)], 1e-5)
    assert total >= compose([(LocalProfile(1.0, 0.0), 2 * reports)]).epsilon(1e-5).upper
    checklist = {point.question: " ".join(point.answers) for point in collection_checklist(opened)}
    assert checklist["Privacy model"].startswith("The local model")
    assert "nothing more is promised" in checklist["Parameters"]


def test_the_checklist_of_a_collection_is_filled():
    task, data, _ = collected()
    opened = open_batch(data, analyzer_key(task))
    found = {point.question: " ".join(point.answers) for point in collection_checklist(opened)}
    assert list(found) == list(QUESTIONS)
    assert f"Level careful: epsilon at most {up(opened.floor[0])} at delta = 1e-6, certified" in found["Parameters"]
    assert "(together 100)" in found["Neighbouring relation"]
    hands = task.draft.operated_by
    assert hands.shuffler in found["Trust: who must be honest"]
    assert hands.analyzer in found["Who can see what"]
    assert "open: what keeps shuffler and analyzer apart" in found["Trust: who must be honest"]
    assert "All 2 questions are counted together" in found["Composition and other releases"]
    assert release_page(opened, command="shuffledp", version="1").count("<dt>") == len(QUESTIONS)


def test_one_question_is_not_all_1_questions():
    asked = posted(choice(3))
    opened = open_batch(batch_of(asked, [[0] * 5], [5, 0, 0]), analyzer_key(asked), processes=1)
    assert collection_checklist(opened)[0].answers[0] == "One person, with the answer to the one question."


def test_the_checklist_of_groups_names_what_differs_between_them():
    """Two groups under different promises and of other sizes; what is the same of both is said once."""
    opened = []
    for n, dummies in ((5, 172), (9, 400)):
        asked = posted(choice(3, dummies=dummies))
        opened.append(open_batch(batch_of(asked, [[0] * n], [n, 0, 0]), analyzer_key(asked), processes=1))
    found = {point.question: point.answers for point in collection_checklist(*opened, names=["Hall", "Office"])}
    assert "(“Hall” together 5, “Office” together 9)" in found["Neighbouring relation"][0]
    first = [f"“{name}”: Level careful: epsilon at most {up(each.floor[0])} at delta = 1e-6, certified"
             for name, each in zip(("Hall", "Office"), opened, strict=True)]  # fmt: skip
    assert opened[0].floor[0] > opened[1].floor[0]
    assert found["Parameters"][0].startswith(first[0])
    assert found["Parameters"][3].startswith(first[1])
    assert found["Unit of privacy"][0] == "One person, with the answer to the one question."
    assert "so the groups' costs do not add up." in found["Composition and other releases"][1]
    twice = {point.question: point.answers for point in collection_checklist(*opened[:1] * 2, names=["Hall", "Office"])}
    assert len(twice["Parameters"]) == 3
    assert "“" not in "".join(twice["Parameters"])


def test_a_batch_is_entered_once_however_often_it_is_opened(tmp_path):
    task, data, _ = collected()
    with Ledger(tmp_path / "p.ledger", make=True) as ledger:
        ledger.set_limit(1.0, 1e-5)
        opened = [open_batch(data, analyzer_key(task), ledger=ledger, population="town") for _ in range(2)]
        assert [each.entered for each in opened] == [True, False]
        (entry,) = ledger.entries()
    assert entry.population == "town"
    assert entry.spending.epsilon == max(opened[0].floor)
    assert open_batch(data, analyzer_key(task)).entered is None


def test_another_batch_of_the_same_task_is_refused(tmp_path):
    task, data, (columns, counts) = collected()
    Ledger(tmp_path / "p.ledger", make=True).close()
    open_batch(data, analyzer_key(task), ledger=tmp_path / "p.ledger")
    again = batch_of(task, columns, counts)  # the same reports, and dummies drawn anew
    with pytest.raises(InvalidInput, match="another batch of this collection"):
        open_batch(again, analyzer_key(task), ledger=tmp_path / "p.ledger")


@pytest.mark.costly("names1")
@pytest.mark.parametrize("names", [{"population": "village"}, {"fixed_in_advance": "plan"}])
def test_an_entry_keeps_its_names(tmp_path, names):
    task, data, _ = collected()
    Ledger(tmp_path / "p.ledger", make=True).close()
    open_batch(data, analyzer_key(task), ledger=tmp_path / "p.ledger")
    with pytest.raises(InvalidInput, match="repeat those names"):
        open_batch(data, analyzer_key(task), ledger=tmp_path / "p.ledger", **names)


def test_no_row_is_opened_before_the_batch_is_entered(tmp_path, monkeypatch):
    task, data, _ = collected()
    path = tmp_path / "p.ledger"
    Ledger(path, make=True).close()

    def dies(*_: object, **__: object) -> None:
        with Ledger(path) as seen:
            assert len(seen.entries()) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(analyzer, "open_column", dies)
    with pytest.raises(KeyboardInterrupt):
        open_batch(data, analyzer_key(task), ledger=path)


def test_a_limit_without_room_leaves_the_batch_closed(tmp_path, monkeypatch):
    task, data, _ = collected()
    monkeypatch.setattr(analyzer, "open_column", lambda *_, **__: pytest.fail("a row was opened"))
    with Ledger(tmp_path / "p.ledger", make=True) as ledger:
        ledger.set_limit(0.01, 1e-6)
        with pytest.raises(InvalidInput, match="the batch stays closed"):
            open_batch(data, analyzer_key(task), ledger=ledger)
        assert ledger.entries() == []


def in_groups() -> tuple[list[PostedTask], list[Batch]]:
    """Three groups of a survey, the second of which costs its people most, for it has the fewest dummies."""
    tasks = [posted(choice(5, count), choice(2, 100), levels=TWO) for count in (172, 100, 200)]
    found: list[Batch] = []
    for place, task in enumerate(tasks):
        answers = people(np.random.default_rng(place), (60, 40), 5, 2)
        found.append(Batch.parse(batch_of(task, *reports_of_people(task, answers, simulation_random(place)))))
    return tasks, found


@pytest.mark.costly
def test_groups_are_one_entry_with_the_cost_of_the_group_that_spends_most(tmp_path):
    _, batches = in_groups()
    costs = [batch_draft(batch).spending for batch in batches]
    assert costs[1].epsilon > 1.05 * max(costs[0].epsilon, costs[2].epsilon)
    with Ledger(tmp_path / "p.ledger", make=True) as ledger:
        assert enter_batches(batches, ledger, "town", survey="Lunch") == 3
        (entry,) = ledger.entries()
        assert (entry.question, entry.population, entry.spending.n) == ("collection Lunch, by group", "town", 300)
        assert entry.spending.epsilon == costs[1].epsilon
        for delta in (1e-6, 1e-4):  # whoever composes it with other releases finds the largest curve, too
            assert entry.spending.worst.epsilon(delta).upper >= max(c.worst.epsilon(delta).upper for c in costs)
            together = composed_epsilon([cost.worst for cost in costs], delta)
            assert composed_epsilon([entry.spending.worst], delta) < 0.8 * together
        assert [level.epsilon0 for level in entry.spending.levels] == [0.5, 1.0]


def test_groups_of_two_deltas_are_entered_at_the_larger_one():
    one, two = Spending.stated([(1.0, 0.5)], 1e-6, 10), Spending.stated([(1.0, 0.4)], 1e-5, 20)
    for parts in ((one, two), (two, one)):
        found = Spending.apart(parts)
        assert (found.epsilon, found.delta, found.n) == (0.5, 1e-5, 30)


@pytest.mark.costly
def test_a_group_that_is_in_the_ledger_costs_nothing_more(tmp_path):
    tasks, batches = in_groups()
    with Ledger(tmp_path / "p.ledger", make=True) as ledger:
        assert enter_batches(batches[:2], ledger, survey="Lunch") == 2
        assert enter_batches(batches[:2], ledger, survey="Lunch") == 0
        assert open_batch(batches[1], analyzer_key(tasks[1]), ledger=ledger).entered is False
        assert enter_batches(batches, ledger, survey="Lunch") == 1
        assert enter_batches(batches, ledger, survey="Lunch") == 0
        first, second = ledger.entries()
        assert (first.spending.n, second.spending.n) == (200, 100)
        assert second.spending.epsilon == batch_draft(batches[2]).spending.epsilon


def test_another_batch_of_one_group_is_refused_by_itself_and_among_the_groups(tmp_path):
    tasks, batches = in_groups()
    answers = reports_of_people(tasks[1], people(np.random.default_rng(1), (60, 40), 5, 2), simulation_random(1))
    again = Batch.parse(batch_of(tasks[1], *answers))
    with Ledger(tmp_path / "p.ledger", make=True) as ledger:
        enter_batches(batches, ledger, survey="Lunch")
        for late in ([again], [batches[0], again, batches[2]]):
            with pytest.raises(InvalidInput, match="another batch of this collection"):
                enter_batches(late, ledger, survey="Lunch")
        with pytest.raises(InvalidInput, match="repeat those names"):
            enter_batches(batches[1:2], ledger, "village")
        assert len(ledger.entries()) == 1


def test_a_limit_without_room_keeps_all_groups_closed(tmp_path):
    _, batches = in_groups()
    with Ledger(tmp_path / "p.ledger", make=True) as ledger:
        ledger.set_limit(0.01, 1e-6)
        with pytest.raises(InvalidInput, match="the batch stays closed"):
            enter_batches(batches, ledger, survey="Lunch")
        assert ledger.entries() == []


def test_a_batch_that_cannot_be_used_is_entered_all_the_same(tmp_path):
    """That no row can be used is itself seen in the rows, so it is told only after the entry."""
    task, _, (_, counts) = collected()
    rubbish = [[bytes(size)] * (100 + m) for size, m in zip(task.inner_sizes, (172, 100), strict=True)]
    with Ledger(tmp_path / "p.ledger", make=True) as ledger:
        with pytest.raises(InvalidInput, match="no estimate"):
            open_batch(signed_batch(task, rubbish, counts), analyzer_key(task), ledger=ledger)
        assert len(ledger.entries()) == 1
