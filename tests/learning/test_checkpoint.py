"""Going on from a checkpoint: the count goes on, another model is refused, a file is never half written."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning import checkpoint as module
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
        ({"rounds": 7}, "its rounds is"),
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
        classifier(checkpoint=path).fit(FEATURES, LABELS, groups=GROUPS)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_the_file_holds_no_records(tmp_path):
    """Only vectors of the model's size, and a header."""
    path = tmp_path / "run.npz"
    interrupted(path, 1)
    with np.load(path) as stored:
        assert set(stored.files) == {"header", "weights", "velocity", "total"}
        assert {stored[name].size for name in ("weights", "velocity", "total")} == {12}
