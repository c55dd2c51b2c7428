"""Time: what is due and when, and that a clock in doubt destroys nothing."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from shuffledp.collection.closing import Keeper, batch_path, close_task
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import GRACE, IN_DOUBT, Store, Watch, due, is_trusted, system_clock
from tests.collection.service import CLOSES, DAY, EXPIRES, NOON, Reports, Time, store_at, task_of
from tests.collection.tasks import SHUFFLER

TASK = task_of(at_least=5)


@contextmanager
def kept(folder, n: int, now: int = NOON):
    """A store with n reports and its keeper, whose thread does not run: the tests look themselves."""
    store, clock = store_at(folder, TASK, now=now), Time(now)
    hold(store, [open_reports(b"".join(Reports(TASK).many(n)), TASK, Opener(SHUFFLER))])
    ended: list[bytes] = []
    keeper = Keeper(store.path, clock, ended=ended.append)
    yield store, clock, keeper, ended
    keeper._store.close()
    store.close()


def state(store: Store) -> str:
    row = store.task(TASK.digest)
    assert row is not None
    return row.state


def live(keeper: Keeper, clock: Time, until: int, step: int = DAY // 2, store: Store | None = None) -> None:
    """Let time pass in steps that are no jump."""
    while clock.now < until:
        clock.now = min(clock.now + step, until)
        keeper.look()
        if store is not None and state(store) != "open":
            return


def test_a_task_closes_when_it_is_time_and_the_log_says_so(tmp_path, caplog):
    caplog.set_level("INFO")
    with kept(tmp_path, 5) as (store, clock, keeper, ended):
        live(keeper, clock, CLOSES - 1)
        assert state(store) == "open"
        live(keeper, clock, CLOSES)
        assert state(store) == "released"
        assert batch_path(store, TASK).exists()
        keeper.look()
        assert ended[-1] == TASK.digest
        assert [record.getMessage() for record in caplog.records] == [
            f"task 'Lunch' ({TASK.id}) has closed by itself: its batch is in the outbox"
        ]


def test_with_too_few_it_waits_for_more_until_it_expires(tmp_path):
    with kept(tmp_path, 4) as (store, clock, keeper, _):
        live(keeper, clock, CLOSES + DAY)
        assert state(store) == "open"
        hold(store, [open_reports(Reports(TASK).one(level=2), TASK, Opener(SHUFFLER))])
        live(keeper, clock, CLOSES + 2 * DAY)
        assert state(store) == "released"


def test_with_too_few_to_the_end_it_is_destroyed_after_a_week_of_running_time(tmp_path, monkeypatch):
    monkeypatch.setattr("shuffledp.collection.store.GRACE", 7200)  # a week in small
    with kept(tmp_path, 4) as (store, clock, keeper, _):
        live(keeper, clock, EXPIRES + 3 * DAY, step=DAY)
        assert state(store) == "open", "running time is asked for, and steps of a day are not running"
        began = clock.now
        live(keeper, clock, EXPIRES + 30 * DAY, step=60, store=store)
        assert state(store) == "destroyed"
        assert clock.now - began == pytest.approx(7200, abs=600)
        row = store.task(TASK.digest)
        assert row is not None
        assert row.reason == "too few people took part for a useful answer"
        assert list(store.reports(TASK.digest)) == []


@pytest.mark.parametrize("jump", [30 * DAY, 40 * 365 * DAY, DAY + 1, -1, -40 * 365 * DAY])
def test_a_clock_that_jumps_makes_timers_wait(tmp_path, jump):
    with kept(tmp_path, 5) as (store, clock, keeper, _):
        live(keeper, clock, CLOSES - 60)
        clock.now = CLOSES - 60 + jump
        for _ in range(5):
            keeper.look()
        assert state(store) == "open"
        assert hold(store, [open_reports(Reports(TASK).one(), TASK, Opener(SHUFFLER))]) == [b"\0"]
        store.confirm_clock(clock.now)
        keeper.look()
        assert state(store) == ("released" if jump > 0 else "open")


@contextmanager
def watched(folder, n: int, now: int):
    """As `kept`, with steady time of its own; `pass_time` lets both run, and setting the clock moves it alone."""
    with kept(folder, n, now) as (store, clock, _, _):
        steady = Time(500)
        keeper = Keeper(store.path, clock, ended=lambda _: None, steady=steady)

        def pass_time(seconds: int, look: bool = True) -> None:
            clock.now, steady.now = clock.now + seconds, steady.now + seconds
            if look:
                keeper.look()

        keeper.look()
        yield store, clock, keeper, pass_time
        keeper._store.close()


@pytest.mark.parametrize("hours", [1, 5, 23, -1, -23])
def test_a_step_of_the_clock_below_a_day_closes_nothing_early(tmp_path, hours):
    """Up to a day after its last tick a clock was trusted, however little time had passed."""
    with watched(tmp_path, 5, CLOSES - 1800) as (store, clock, keeper, pass_time):
        pass_time(60)
        clock.now += hours * 3600
        assert not keeper.trusts(clock.now, clock.now), "also before it was looked at"
        for _ in range(3):
            pass_time(5)
        assert state(store) == "open"
        again = Keeper(store.path, clock, ended=lambda _: None)  # a service that starts now knows nothing of the step
        again.look()
        again._store.close()
        assert state(store) == "open"
        assert hold(store, [open_reports(Reports(TASK).one(), TASK, Opener(SHUFFLER))]) == [b"\0"]
        clock.now -= hours * 3600
        pass_time(5)
        pass_time(2000)
        assert state(store) == "open", "only an operator knows which of the two was right"
        store.confirm_clock(clock.now)
        pass_time(5)
        assert state(store) == "released"


def test_a_step_of_the_clock_below_a_day_deletes_nothing_early(tmp_path):
    with watched(tmp_path, 5, CLOSES) as (store, clock, _, pass_time):
        assert state(store) == "released"
        for _ in range(60):
            pass_time(DAY // 2 - 60)
        clock.now += DAY // 2
        pass_time(5)
        assert (state(store), batch_path(store, TASK).exists()) == ("released", True)
        store.confirm_clock(clock.now)
        pass_time(5)
        assert state(store) == "deleted"


def test_small_corrections_and_time_asleep_are_no_steps(tmp_path):
    with watched(tmp_path, 5, CLOSES - 3 * DAY) as (store, clock, _, pass_time):
        for correction in (3, -3, 100, -100, 119, -119):
            clock.now += correction
            pass_time(60)
        pass_time(DAY - 60, look=False)  # a machine asleep: steady time counts it
        pass_time(5)
        pass_time(DAY // 2)
        pass_time(DAY)
        pass_time(DAY // 2)
        assert state(store) == "released"


def test_steady_time_is_the_systems_and_no_setting_of_the_clock_moves_it(monkeypatch):
    watch = Watch(system_clock)
    now = system_clock()
    assert not watch.jumped(now)
    assert watch.jumped(now + 3600)
    monkeypatch.setattr("time.time", lambda: now + 7200.0)
    assert system_clock() == now + 7200
    assert watch.jumped(system_clock())
    watch.accept(system_clock())
    assert not watch.jumped(system_clock())
    assert not is_trusted(0, IN_DOUBT)
    assert not is_trusted(now, IN_DOUBT)


def test_a_machine_asleep_for_a_month_destroys_nothing_by_itself(tmp_path):
    with kept(tmp_path, 4) as (store, clock, keeper, _):
        live(keeper, clock, EXPIRES - DAY)
        clock.now = EXPIRES + 30 * DAY
        for _ in range(20):
            clock.now += DAY // 2
            keeper.look()
        assert state(store) == "open"
        store.confirm_clock(clock.now)
        keeper.look()
        assert state(store) == "open", "the week of running time begins only now"


def test_a_restart_after_more_than_a_day_waits_and_after_less_does_not(tmp_path):
    with kept(tmp_path, 5, CLOSES - 2 * DAY) as (store, _, _, _):
        for later, expected in ((CLOSES + 1, "open"), (CLOSES + 2, "open")):
            again = Keeper(store.path, Time(later), ended=lambda _: None)
            again.look()
            again._store.close()
            assert state(store) == expected
        store.confirm_clock(CLOSES + 2)
        again = Keeper(store.path, Time(CLOSES + DAY), ended=lambda _: None)
        again.look()
        again._store.close()
        assert state(store) == "released"


def test_a_small_step_back_heals_by_itself(tmp_path):
    with kept(tmp_path, 5, CLOSES - 1200) as (store, clock, keeper, _):
        live(keeper, clock, CLOSES - 600, step=60)
        clock.now -= 90
        live(keeper, clock, CLOSES, step=60)
        assert state(store) == "released"


def test_batch_and_release_are_deleted_after_their_days(tmp_path):
    with kept(tmp_path, 5) as (store, clock, keeper, _):
        live(keeper, clock, CLOSES)
        store.publish(TASK.digest, b"a release")
        live(keeper, clock, CLOSES + 30 * DAY - 1, step=DAY // 2)
        assert (state(store), batch_path(store, TASK).exists()) == ("released", True)
        live(keeper, clock, CLOSES + 30 * DAY)
        assert (state(store), batch_path(store, TASK).exists()) == ("deleted", False)
        assert store.release(TASK.digest) is None


def test_a_task_in_closing_is_finished_whatever_the_clock_says(tmp_path):
    with kept(tmp_path, 5) as (store, clock, keeper, _):
        with store.writing() as db:
            db.execute("UPDATE task SET state = 'closing'")
            sealed = [(TASK.digest, 0, bytes([place]) * TASK.inner_sizes[0]) for place in range(20)]
            db.executemany("INSERT INTO dummy VALUES (?, ?, ?)", sealed)
        clock.now -= 400 * DAY
        keeper.look()
        assert state(store) == "released"


def test_one_task_that_fails_does_not_keep_others_waiting(tmp_path, monkeypatch, caplog):
    other = task_of(at_least=1, title={"en": "Another task"})
    with kept(tmp_path, 5) as (store, clock, keeper, _):
        store.post(other, SHUFFLER, (1.0, 1.0, 1.0), NOON)
        hold(store, [open_reports(Reports(other).one(), other, Opener(SHUFFLER))])
        failing = min(TASK.digest, other.digest)

        def close(opened, task, *, clock):
            if task == failing:
                raise OSError("no room for the secret")
            return close_task(opened, task, clock=clock)

        monkeypatch.setattr("shuffledp.collection.closing.close_task", close)
        live(keeper, clock, CLOSES)
        assert {row.digest: row.state for row in store.tasks()} == {
            failing: "open",
            max(TASK.digest, other.digest): "released",
        }
        assert "OSError at test_keeper.py:" in caplog.text
        assert "secret" not in caplog.text
        monkeypatch.undo()
        keeper.look()
        assert [row.state for row in store.tasks()] == ["released", "released"]


def test_two_keepers_count_running_time_once(tmp_path):
    with kept(tmp_path, 4, EXPIRES) as (store, clock, keeper, _):
        second = Keeper(store.path, clock, ended=lambda _: None)
        for _ in range(600):
            clock.now += 30
            keeper.look()
            second.look()
        row = store.task(TASK.digest)
        assert row is not None
        assert row.ran <= clock.now - EXPIRES
        second._store.close()


@pytest.mark.parametrize(
    ("now", "tick", "trusted"), [(0, 0, True), (DAY, 0, True), (DAY + 1, 0, False), (-1, 0, False), (5, 4, True)]
)
def test_a_clock_is_trusted_up_to_a_day_after_its_last_tick(now, tick, trusted):
    assert is_trusted(now, tick) is trusted


def test_what_is_due():
    draft = TASK.draft
    assert due("open", draft, 5, CLOSES - 1, 0, 0) is None
    assert due("open", draft, 5, CLOSES, 0, 0) == "close"
    assert due("open", draft, 4, CLOSES, 0, 10 * GRACE) is None
    assert due("open", draft, 4, EXPIRES, 0, GRACE - 1) is None
    assert due("open", draft, 4, EXPIRES, 0, GRACE) == "destroy"
    assert due("open", draft, 5, EXPIRES, 0, GRACE) == "close", "enough people are never destroyed"
    assert due("released", draft, 5, NOON + 30 * DAY - 1, NOON, 0) is None
    assert due("released", draft, 5, NOON + 30 * DAY, NOON, 0) == "delete"
    for ended in ("closing", "destroyed", "deleted"):
        assert due(ended, draft, 5, EXPIRES * 2, 0, 10 * GRACE) is None
