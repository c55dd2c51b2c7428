"""Going on from a checkpoint: the count goes on, another model is refused, a file is never half written."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning import keeping as module
from shuffledp.numerics.randomness import secure_random
from tests.learning.test_training import FEATURES, GROUPS, LABELS, classifier


class Stop(Exception):
    """Pulls the plug."""


def interrupted(path, after, **changes):
    def stop(report):
        if report.round == after:
            raise Stop

    with pytest.raises(Stop):
        classifier(checkpoint=path, progress=stop, **changes).fit(FEATURES, LABELS, groups=GROUPS)


@pytest.mark.parametrize("averaging", [0.0, 1.0])
def test_the_count_and_the_model_go_on(tmp_path, averaging):
    path = tmp_path / "run.npz"
    interrupted(path, 2, rounds=4, momentum=0.5, averaging=averaging)
    stored = module.load(path, module_model(path))
    assert stored.done == 2
    whole = classifier(rounds=4, momentum=0.5, averaging=averaging).fit(FEATURES, LABELS, groups=GROUPS)
    again = classifier(rounds=4, momentum=0.5, averaging=averaging, checkpoint=path)
    again.fit(FEATURES, LABELS, groups=GROUPS, resume=True)
    assert [report.round for report in again.history_] == [3, 4]
    assert again.guarantee_.epsilon == whole.guarantee_.epsilon
    assert again.guarantee_.rounds == 4
    assert not np.array_equal(stored.weights, again.weights_)


def module_model(path):
    with np.load(path) as stored:
        import json

        return json.loads(stored["header"].tobytes())["model"]


@pytest.mark.machine
def test_a_finished_run_resumes_to_itself(tmp_path):
    path = tmp_path / "run.npz"
    first = classifier(checkpoint=path).fit(FEATURES, LABELS, groups=GROUPS)
    again = classifier(checkpoint=path).fit(FEATURES, LABELS, groups=GROUPS, resume=True)
    assert np.array_equal(first.weights_, again.weights_)
    assert again.guarantee_.epsilon == first.guarantee_.epsilon


def test_noise_from_a_seed_is_not_forgotten(tmp_path):
    path = tmp_path / "run.npz"
    interrupted(path, 1)
    again = classifier(checkpoint=path, random=secure_random()).fit(FEATURES, LABELS, groups=GROUPS, resume=True)
    assert not again.guarantee_.private


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"hidden": (5,)}, "its widths is"),
        ({"clip": 2.0}, "its clip is 1.0, not 2.0"),
        ({"epsilon0": 1.0}, "its tiers is"),
        ({"seen": "reports"}, 'its seen is "users"'),
        ({"delta": 1e-6, "delta0": 1e-5}, "its delta is 1e-05, not 1e-06"),
        ({"weighting": "none"}, "its weighting is"),
        ({"min_messages": 2}, "its min_messages is"),
        ({"features": lambda rows: rows * 2.0}, "its features is"),
        ({"epsilon0": [8.0] * 7 + [0.0]}, "its budgets of clients is"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(tmp_path, changes, told):
    path = tmp_path / "run.npz"
    interrupted(path, 1)
    other = classifier(checkpoint=path, **changes)
    with pytest.raises(InvalidInput, match=f"another model: .*{told}"):
        other.fit(FEATURES, LABELS, groups=GROUPS, resume=True)
    assert not hasattr(other, "weights_")


def test_a_checkpoint_is_not_written_over(tmp_path):
    """Its count of messages that were sent would be lost."""
    path = tmp_path / "run.npz"
    classifier(checkpoint=path).fit(FEATURES, LABELS, groups=GROUPS)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=r"run\.npz exists already, and holds the count of what its run has spent"):
        classifier(checkpoint=path).fit(FEATURES, LABELS, groups=GROUPS)
    assert path.read_bytes() == before


def test_a_missing_or_damaged_file_is_named(tmp_path):
    path = tmp_path / "run.npz"
    one = classifier(checkpoint=path)
    with pytest.raises(InvalidInput, match="there is no checkpoint"):
        one.fit(FEATURES, LABELS, groups=GROUPS, resume=True)
    interrupted(path, 1)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"not a checkpoint"):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match="is no checkpoint of this library, or is damaged"):
            one.fit(FEATURES, LABELS, groups=GROUPS, resume=True)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    interrupted(path, 1)
    before = path.read_bytes()

    def fail(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "replace", fail)
    with pytest.raises(InvalidInput, match="cannot be written: No space left"):
        classifier(checkpoint=path).fit(FEATURES, LABELS, groups=GROUPS, resume=True)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.npz", "run.npz.lock"]


def test_the_file_holds_no_records(tmp_path):
    """Only vectors of the model's size, and a header."""
    path = tmp_path / "run.npz"
    interrupted(path, 1)
    with np.load(path) as stored:
        assert set(stored.files) == {"header", "weights", "velocity", "total"}
        assert {stored[name].size for name in ("weights", "velocity", "total")} == {12}


def cut_short(path, at, **changes):
    """Pull the plug after so many messages of this run; return the messages that left, by client."""
    from shuffledp.learning.rounds import Sender

    sent = np.zeros(8, dtype=int)
    send = Sender.with_noise

    def spy(self, gradient, law, noise):
        message = send(self, gradient, law, noise)
        sent[law] += 1
        if sent.sum() == at:
            raise Stop
        return message

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sender, "with_noise", spy)
        if at is None:
            return sent, classifier(checkpoint=path, **changes).fit(FEATURES, LABELS, groups=GROUPS, resume=True)
        with pytest.raises(Stop):
            classifier(checkpoint=path, **changes).fit(FEATURES, LABELS, groups=GROUPS, resume=path.exists())
    return sent, None


def test_messages_of_a_round_that_was_cut_short_are_counted(tmp_path):
    """Five crashes, each after 7 of 8 messages of a round: 6 rounds asked for, up to 11 messages of a client sent."""
    path = tmp_path / "run.npz"
    crashes = [cut_short(path, at, rounds=6)[0] for at in (15, 7, 7, 7, 7)]
    last, fitted = cut_short(path, None, rounds=6)
    sent = sum(crashes) + last
    assert sent.max() == 11
    assert fitted.guarantee_.rounds == 11
    whole = classifier(rounds=11).fit(FEATURES, LABELS, groups=GROUPS)
    assert fitted.guarantee_.epsilon == whole.guarantee_.epsilon


def test_the_count_is_on_the_disk_before_the_first_message(tmp_path):
    path = tmp_path / "run.npz"
    cut_short(path, 1)
    stored = module.load(path, module_model(path))
    assert (stored.done, stored.spent) == (0, [([8], 1)])


def test_crashed_rounds_count_toward_the_largest_epsilon(tmp_path):
    path = tmp_path / "run.npz"
    most = classifier(rounds=3).fit(FEATURES, LABELS, groups=GROUPS).guarantee_.epsilon.upper
    for at in (7, 7):
        cut_short(path, at, max_epsilon=most)
    fitted = classifier(max_epsilon=most, checkpoint=path).fit(FEATURES, LABELS, groups=GROUPS, resume=True)
    assert fitted.guarantee_.rounds == 3
    assert len(fitted.history_) == 1
    assert "would exceed" in fitted.stopped_


def test_other_clients_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    interrupted(path, 1)
    for groups in (GROUPS + 1, np.where(np.arange(240) == 0, 7, GROUPS)):  # other names; other sizes
        with pytest.raises(InvalidInput, match=r"another model: its (names of clients|tiers) is"):
            classifier(checkpoint=path).fit(FEATURES, LABELS, groups=groups, resume=True)


@pytest.mark.parametrize("averaging", [0.0, 0.5])
def test_a_finished_run_can_be_made_longer(tmp_path, averaging):
    path = tmp_path / "run.npz"
    classifier(checkpoint=path, rounds=2, averaging=averaging).fit(FEATURES, LABELS, groups=GROUPS)
    longer = classifier(checkpoint=path, rounds=6, averaging=averaging)
    longer.fit(FEATURES, LABELS, groups=GROUPS, resume=True)
    assert longer.guarantee_.rounds == 6
    assert [report.round for report in longer.history_] == [3, 4, 5, 6]
    stored = module.load(path, module_model(path))
    assert stored.averaged == 8 * 6 * averaging  # a model after every message
    with pytest.raises(InvalidInput, match="has 6 rounds behind it; ask for so many `rounds` or more, got 5"):
        classifier(checkpoint=path, rounds=5, averaging=averaging).fit(FEATURES, LABELS, groups=GROUPS, resume=True)


def test_a_checkpoint_of_another_format_is_named(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    with monkeypatch.context() as patch:
        patch.setattr(module, "FORMAT", 1)
        interrupted(path, 1)
    with pytest.raises(InvalidInput, match="was written in format 1; this version reads format 3"):
        classifier(checkpoint=path).fit(FEATURES, LABELS, groups=GROUPS, resume=True)


@pytest.mark.costly
def test_a_flipped_bit_gives_the_same_run_or_one_clear_error(tmp_path):
    """RuntimeError came out bare, 1 of 250 times: zipfile takes a flipped flag for encryption."""
    path, flipped = tmp_path / "run.npz", tmp_path / "flipped.npz"
    interrupted(path, 1)
    whole, chance, model = path.read_bytes(), random.Random(7), module_model(path)
    true, refused = module.load(path, model), 0
    places = range(8 * len(whole))
    flags = [at for at in range(len(whole)) if whole[at : at + 4] in (b"PK\x01\x02", b"PK\x03\x04")]
    for place in [*(8 * (at + 6) for at in flags), *(8 * (at + 8) for at in flags), *chance.sample(places, 600)]:
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        flipped.write_bytes(content)
        try:
            found = module.load(flipped, model)
        except InvalidInput:
            refused += 1
        else:
            assert (found.spent, found.turn, found.done, found.private) == (true.spent, true.turn, 1, False), place
            assert np.array_equal(found.weights, true.weights), place
    assert refused > 500
