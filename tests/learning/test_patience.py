"""Early stop on public data: the best model is kept, and all rounds are counted."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from tests.learning.test_training import FEATURES, GROUPS, LABELS, classifier


@pytest.mark.costly("40.0")
@pytest.mark.parametrize("most", [None, 40.0])
def test_patience_ends_training_and_counts_all_rounds(most):
    """A step of 0 never gets better: round 1 is the best, and the cost is that of a run without patience."""
    common = {"step": 0.0, "rounds": 12, "max_epsilon": most}
    asked = classifier(**common, patience=3)
    fitted = asked.fit(FEATURES, LABELS, groups=GROUPS, validation=(FEATURES, LABELS))
    whole = classifier(**common).fit(FEATURES, LABELS, groups=GROUPS)
    assert [report.round for report in fitted.history_] == [1, 2, 3, 4]
    assert fitted.stopped_ == "no better accuracy on the public data since round 1"
    assert fitted.guarantee_.epsilon == whole.guarantee_.epsilon
    assert fitted.guarantee_.rounds == whole.guarantee_.rounds > 4
    assert any("rounds that were not run are counted too" in note for note in fitted.guarantee_.notes)


def test_patience_keeps_the_best_model():
    asked = classifier(rounds=40, epsilon0=4.0, step=2.0, patience=6, decay="none")
    fitted = asked.fit(FEATURES, LABELS, groups=GROUPS, validation=(FEATURES, LABELS))
    best = max(report.accuracy for report in fitted.history_)
    assert fitted.history_[-1].accuracy < best
    assert fitted.score(FEATURES, LABELS) == best


@pytest.mark.parametrize(
    ("changes", "fit", "told"),
    [
        ({}, {}, "needs validation data that are public"),
        ({}, {"validation": (FEATURES, LABELS), "presence": lambda _: np.ones(8, dtype=bool)}, "everybody there"),
        ({"patience": 0}, {"validation": (FEATURES, LABELS)}, "patience must be a whole number of at least 1"),
        ({"checkpoint": "x.npz"}, {"validation": (FEATURES, LABELS)}, "does not go with `checkpoint`"),
    ],
)
def test_patience_is_refused_where_it_does_not_fit(changes, fit, told):
    with pytest.raises(InvalidInput, match=told):
        classifier(**({"patience": 2} | changes)).fit(FEATURES, LABELS, groups=GROUPS, **fit)
