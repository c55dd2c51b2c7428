"""A checkpoint is gone on from once: an old copy, and a second process at the same time, are refused."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning import keeping, rounds, training
from shuffledp.learning.keeping import WITHOUT_LEDGER
from shuffledp.ledger import Ledger, Turn
from shuffledp.numerics.randomness import secure_random
from tests.learning.test_training import FEATURES, GROUPS, LABELS, classifier


class Stop(Exception):
    """Pulls the plug."""


def fitted(path, ledger=None, *, resume=False, **changes):
    model = classifier(random=secure_random(), checkpoint=path, **({"rounds": 6} | changes))
    return model.fit(FEATURES, LABELS, groups=GROUPS, resume=resume, ledger=ledger)


def cut_after(number, *given, **changes):
    """A run that dies when so many rounds of it are behind."""

    def stop(report):
        if report.round == number:
            raise Stop

    with pytest.raises(Stop):
        fitted(*given, progress=stop, **changes)


@pytest.fixture(params=[True, False], ids=["ledger", "lock file"])
def ledger(request, tmp_path):
    """A ledger, or none."""
    if not request.param:
        yield None
        return
    with Ledger(tmp_path / "l", make=True) as book:
        yield book


def rounds_sent(monkeypatch):
    """Count the rounds whose messages left, over all runs of a test."""
    sent, whole = [], training.Run._round
    monkeypatch.setattr(training.Run, "_round", lambda run, who: (sent.append(1), whole(run, who))[1])
    return sent


@pytest.mark.costly("ledger")
def test_a_checkpoint_put_back_eight_times_is_refused_eight_times(tmp_path, ledger, monkeypatch):
    """41 rounds were sent, and each run claimed what one costs; the ledger held one entry."""
    path, copy = tmp_path / "run.npz", tmp_path / "copy.npz"
    sent = rounds_sent(monkeypatch)
    cut_after(1, path, ledger)
    shutil.copy(path, copy)
    model = fitted(path, ledger, resume=True)
    for _ in range(8):
        shutil.copy(copy, path)
        with pytest.raises(InvalidInput, match=r"run\.npz is an old copy: its run has gone on from there"):
            fitted(path, ledger, resume=True)
    assert (len(sent), model.guarantee_.rounds) == (6, 6)
    assert ledger is None or len(ledger.entries()) == 1


@pytest.mark.costly("ledger-1", "ledger-2", "ledger-4")
@pytest.mark.parametrize("copied", [1, 2, 4])
def test_a_copy_from_the_middle_of_a_run_that_was_never_resumed(tmp_path, ledger, copied):
    """The run's own entry covers its rounds once: a copy made on the way had the rest of them for nothing."""
    path, copy = tmp_path / "run.npz", tmp_path / "copy.npz"

    def keep_one(report):
        if report.round == copied:
            shutil.copy(path, copy)

    fitted(path, ledger, progress=keep_one)
    shutil.copy(copy, path)
    with pytest.raises(InvalidInput, match="is an old copy"):
        fitted(path, ledger, resume=True)


@pytest.mark.costly("ledger")
def test_two_processes_at_once(tmp_path, ledger):
    """Both claimed what one of them costs."""
    path, refused = tmp_path / "run.npz", []

    def meanwhile(report):
        with pytest.raises(InvalidInput, match="another process trains with the checkpoint") as found:
            fitted(path, ledger, resume=True)
        refused.append(found)

    cut_after(1, path, ledger)
    assert fitted(path, ledger, resume=True, progress=meanwhile).guarantee_.rounds == 6
    assert len(refused) == 5
    assert fitted(path, ledger, resume=True).guarantee_.rounds == 6  # the lock went with the run


def test_two_copies_in_one_ledger_at_once(tmp_path):
    """Under two names no lock file tells; the ledger lets one of them go on, and what both sent is entered."""
    path, copy = tmp_path / "run.npz", tmp_path / "other" / "run.npz"
    copy.parent.mkdir()
    with Ledger(tmp_path / "l", make=True) as ledger:
        cut_after(1, path, ledger)

        def meanwhile(report):
            if report.round == 3:
                shutil.copy(path, copy)
                other.append(fitted(copy, ledger, resume=True))

        other = []
        with pytest.raises(InvalidInput, match="another process has gone on with this run"):
            fitted(path, ledger, resume=True, progress=meanwhile)
        assert other[0].guarantee_.rounds == 6
        (entry,) = ledger.entries()
        assert entry.spending.epsilon == other[0].guarantee_.epsilon.upper
        with pytest.raises(InvalidInput, match="is an old copy"):
            fitted(path, ledger, resume=True)


@pytest.mark.costly
def test_what_is_sent_anew_is_entered_before_it_is_sent(tmp_path, monkeypatch):
    path, entered = tmp_path / "run.npz", []
    with Ledger(tmp_path / "l", make=True) as ledger:
        cut_after(2, path, ledger)
        run_round = training.Run._round
        monkeypatch.setattr(
            training.Run, "_round", lambda run, who: (entered.append(len(ledger.entries())), run_round(run, who))[1]
        )
        fitted(path, ledger, resume=True, rounds=9)
        first, second = ledger.entries()
    assert ("6 rounds" in first.setting, "3 rounds" in second.setting) == (True, True)
    assert entered == [2] * 7


@pytest.mark.costly("ledger-take", "ledger-write")
@pytest.mark.parametrize("cut", ["write", "take"])
def test_a_crash_between_checkpoint_and_keeper_loses_nothing(tmp_path, ledger, monkeypatch, cut):
    """The checkpoint is one turn ahead of its keeper; no message of that turn has left, and the run goes on."""
    path = tmp_path / "run.npz"
    cut_after(2, path, ledger)
    keeper = keeping.LockFile if ledger is None else Ledger
    name = "enter" if ledger is not None and cut == "write" else "take"
    with monkeypatch.context() as patch:
        patch.setattr(keeper, name, lambda *_, **__: (_ for _ in ()).throw(Stop))
        with pytest.raises(Stop):
            fitted(path, ledger, resume=True, rounds=8 if name == "enter" else 6)
    assert fitted(path, ledger, resume=True).guarantee_.rounds == 6
    assert ledger is None or len(ledger.entries()) == 1


@pytest.mark.costly
def test_a_run_that_cannot_begin_leaves_no_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    with Ledger(tmp_path / "l", make=True) as ledger:
        ledger.set_limit(0.1, 1e-6)
        with pytest.raises(InvalidInput, match="nothing was released"):
            fitted(path, ledger)
        assert not path.exists()
        monkeypatch.setattr(Ledger, "enter", lambda *_: (_ for _ in ()).throw(Stop))
    with Ledger(tmp_path / "free", make=True) as ledger:
        with pytest.raises(Stop):
            fitted(path, ledger)
        assert not path.exists()
        assert ledger.entries() == []


def test_nothing_is_entered_if_the_checkpoint_cannot_be_written(tmp_path):
    """All rounds were entered before it failed."""
    with Ledger(tmp_path / "l", make=True) as ledger:
        for path in (tmp_path / "none" / "run.npz", tmp_path / "l" / "run.npz"):
            with pytest.raises(InvalidInput, match=r"cannot be opened|cannot be written"):
                fitted(path, ledger)
        assert ledger.entries() == []


def test_without_its_lock_file_a_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    cut_after(1, path)
    lock = tmp_path / "run.npz.lock"
    known = lock.read_bytes()
    for content in (b"", known.replace(b"turn 1 ", b"turn 1 0"), b"x" * 80):
        lock.write_bytes(content)
        with pytest.raises(InvalidInput, match=r"does not know the run|is no lock file"):
            fitted(path, resume=True)
    lock.unlink()
    with pytest.raises(InvalidInput, match=r"run\.npz\.lock does not know the run .*; keep the two files together"):
        fitted(path, resume=True)
    lock.write_bytes(known)
    assert fitted(path, resume=True).guarantee_.rounds == 6


def test_a_new_run_leaves_an_old_checkpoint_behind(tmp_path):
    """Its lock file names the new run; the old checkpoint, put back, may have been gone on from elsewhere."""
    path, copy = tmp_path / "run.npz", tmp_path / "copy.npz"
    cut_after(1, path)
    path.rename(copy)
    fitted(path)
    shutil.copy(copy, path)
    with pytest.raises(InvalidInput, match="does not know the run"):
        fitted(path, resume=True)


@pytest.mark.costly("ledger")
def test_the_guarantee_says_what_nobody_can_notice(tmp_path, ledger):
    assert (WITHOUT_LEDGER in fitted(tmp_path / "run.npz", ledger).guarantee_.notes) == (ledger is None)


def test_a_checkpoint_without_a_turn_is_refused(tmp_path, monkeypatch):
    """Version 0.2.0 wrote format 2, of which nobody can tell whether it was gone on from."""
    path = tmp_path / "run.npz"
    with monkeypatch.context() as patch:
        patch.setattr(keeping, "FORMAT", 2)
        cut_after(1, path)
    with pytest.raises(InvalidInput, match="was written in format 2; this version reads format 3"):
        fitted(path, resume=True)


# ------------------------------------------------------------------ another machine's last digits


@pytest.mark.costly("ledger")
def test_another_machine_goes_on(tmp_path, ledger, monkeypatch):
    """Noise scales that differ in their last digit were another model, and a run was not in its own ledger."""
    path = tmp_path / "run.npz"
    cut_after(2, path, ledger)
    whole = training.plan_run

    def elsewhere(*given):
        plan, present = whole(*given)
        tiers = tuple(rounds.Tier(t.epsilon0, t.delta0, t.sensitivity, np.nextafter(t.scale, 9e9)) for t in plan.tiers)
        return training.replace(plan, tiers=tiers, scales=np.nextafter(plan.scales, 9e9)), present

    here = fitted(tmp_path / "here.npz").guarantee_
    monkeypatch.setattr(training, "plan_run", elsewhere)
    monkeypatch.setattr(training, "probed", lambda *given: [1.0 - 1e-14])
    with pytest.raises(InvalidInput, match="another model: its features is"):  # no last digits
        fitted(path, ledger, resume=True)
    monkeypatch.undo()
    monkeypatch.setattr(training, "plan_run", elsewhere)
    there = fitted(path, ledger, resume=True).guarantee_
    assert there.rounds == 6
    assert there.epsilon.upper == here.epsilon.upper  # counted with the narrower noise of the two
    assert ledger is None or len(ledger.entries()) == 1


def test_features_agree_to_their_last_digits_only():
    rows = np.zeros((5, 7))
    for features in (np.tanh, lambda x: -x, lambda x: np.zeros_like(x)):
        known = training.probed(rows, features, None)
        assert keeping.agrees(known, training.probed(rows, lambda x, f=features: f(x) * (1.0 + 1e-14), None))
        for other in (lambda x, f=features: f(x) + 1e-5, lambda x, f=features: f(x)[:, :6]):
            assert not keeping.agrees(known, training.probed(rows, other, None))
    assert not keeping.agrees(training.probed(rows, lambda x: -x, None), training.probed(rows, None, None))


def test_turns_follow_each_other():
    first = Turn.first()
    first.check_taken_from(None, "it")
    second = first.next(first.name)
    second.check_taken_from(first.name, "it")
    assert (second.run, second.number) == (first.run, 2)
    for kept in (None, second.name, "other"):
        with pytest.raises(InvalidInput, match="it holds a later turn"):
            second.check_taken_from(kept, "it")
