"""The classifier: every setting trains, counts what it did, and fails with one clear error."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shuffledp.errors import InvalidInput, NotConverged
from shuffledp.learning import (
    ShuffledSGDClassifier,
    assign_clients,
    cosine_projection,
    print_progress,
    read_digits,
    sample_folder,
)
from shuffledp.numerics.randomness import simulation_random

DRAW = np.random.default_rng(0)
LABELS = DRAW.integers(3, size=240)
FEATURES = np.eye(3)[LABELS] * 2.0 + DRAW.normal(size=(240, 3))
GROUPS = np.arange(240) % 8


def classifier(**changes):
    chosen = {
        "unit": "example", "seen": "users", "epsilon0": 8.0, "delta": 1e-5, "clip": 1.0, "rounds": 3, "hidden": (),
        "classes": 3, "step": 0.5, "random": simulation_random(1),
    }  # fmt: skip
    return ShuffledSGDClassifier(**(chosen | changes))


@pytest.mark.costly("client-reports-gaussian")
@pytest.mark.one_in(4)
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("seen", ["reports", "users", "levels", "sum"])
@pytest.mark.parametrize("unit", ["client", "example"])
def test_every_setting_trains_and_is_accounted(unit, seen, mechanism):
    fitted = classifier(unit=unit, seen=seen, mechanism=mechanism, hidden=(4,)).fit(FEATURES, LABELS, groups=GROUPS)
    found = fitted.guarantee_
    assert (found.unit, found.seen, found.rounds) == (unit, seen, 3)
    assert 0.0 < found.epsilon.upper < math.inf
    assert found.epsilon.lower == 0.0
    assert not found.private
    if seen == "sum" and mechanism == "gaussian":
        assert found.method == "sum"
    if unit == "example" and seen != "sum":
        assert found.method == "local"
    assert fitted.predict_proba(FEATURES).sum(axis=1) == pytest.approx(np.ones(240))
    assert fitted.score(FEATURES, LABELS) == np.mean(fitted.predict(FEATURES) == LABELS)


@pytest.mark.parametrize("seen", ["users", "reports", "sum"])
def test_it_learns(seen):
    """Three clusters two standard deviations apart; without noise about 0.88 are right."""
    fitted = classifier(seen=seen, epsilon0=50.0, rounds=15, step=2.0).fit(FEATURES, LABELS, groups=GROUPS)
    assert fitted.score(FEATURES, LABELS) > 0.75


def test_one_example_per_client_needs_no_groups():
    """The noise of 240 clients with one example each; amplified by the shuffle."""
    fitted = classifier(unit="client", seen="reports", epsilon0=1.0, rounds=1, mechanism="laplace").fit(
        FEATURES, LABELS
    )
    assert fitted.guarantee_.method == "levels"
    assert fitted.guarantee_.epsilon.upper < 0.5
    assert fitted.guarantee_.levels[0].count == 240


def test_single_examples_are_sent_as_clients_are():
    """The fast path of clients with one example, against the general one, without noise."""
    from shuffledp.learning.settings import Settings
    from shuffledp.learning.training import Run

    settings = Settings(**classifier(unit="client", seen="reports", epsilon0=700.0, hidden=(4,)).get_params())
    sender = Run.of(settings, FEATURES, LABELS, None, None, None).sender
    weights = sender.network.initial(simulation_random(3))
    some = np.array([5, 77, 3])
    fast, slow = sender.messages(some, weights), np.stack([sender.message(int(c), weights) for c in some])
    noise = sender.plan.scales.max()
    assert np.abs(fast - slow).max() < 12 * noise
    exact = np.stack([sender.gradient(int(c), weights) for c in some]) / sender.plan.grid
    assert np.abs(fast - exact).max() < 8 * noise
    assert np.abs(exact).max() > 13 * noise


def test_noise_drawn_at_once_has_the_variance_of_all_noises():
    """The sum of 400 messages' noise, drawn together and one by one; 12 numbers, so within a factor 3 surely (1e-7)."""
    from shuffledp.learning.settings import Settings
    from shuffledp.learning.training import Run

    settings = Settings(**classifier(unit="client", seen="reports", epsilon0=1.0).get_params())
    features, labels = np.tile(FEATURES, (10, 1))[:400], np.tile(LABELS, 10)[:400]
    sender = Run.of(settings, features, labels, None, None, None).sender
    everybody, zeros = np.arange(400), np.zeros(sender.network.size)
    single = (sender.messages(everybody, zeros) - sender.rounded(everybody, zeros)).sum(axis=0).astype(float)
    together = np.concatenate([sender.noise_of_sum(everybody) for _ in range(20)]).astype(float)
    expected = float(sender.plan.scales[0]) * 20.0
    assert together.std() == pytest.approx(expected, rel=0.25)
    assert expected / 3 < np.sqrt(np.mean(single**2)) < 3 * expected
    laplace = Settings(**(settings.__dict__ | {"mechanism": "laplace", "delta0": None}))
    assert Run.of(laplace, features, labels, None, None, None).sender.noise_of_sum(everybody) is None


def test_a_seed_repeats_and_secure_randomness_is_the_default():
    first, second = (classifier(random=simulation_random(7)).fit(FEATURES, LABELS, groups=GROUPS) for _ in range(2))
    assert np.array_equal(first.weights_, second.weights_)
    secure = classifier(random=None).fit(FEATURES, LABELS, groups=GROUPS)
    assert secure.guarantee_.private
    assert not np.array_equal(first.weights_, secure.weights_)
    assert first.guarantee_.describe().startswith("no privacy")


def test_the_guarantee_does_not_depend_on_the_records():
    other = np.roll(FEATURES, 1, axis=0) * 5.0
    spent = [classifier().fit(x, LABELS, groups=GROUPS).guarantee_.epsilon for x in (FEATURES, other)]
    assert spent[0] == spent[1]


def test_personal_budgets_weigh_clients_by_their_noise():
    budgets = np.array([8.0] * 4 + [1.0] * 4)
    fitted = classifier(epsilon0=budgets).fit(FEATURES, LABELS, groups=GROUPS)
    assert [level.count for level in fitted.guarantee_.levels] == [4, 4]
    small, large = fitted.guarantee_.levels
    assert small.epsilon.upper < large.epsilon.upper
    from shuffledp.learning.settings import Settings
    from shuffledp.learning.training import Run

    plan = Run.of(Settings(**fitted.get_params()), FEATURES, LABELS, GROUPS, None, None).sender.plan
    variances = plan.scales**2
    assert plan.weights[0] == 1.0
    assert plan.weights[7] == pytest.approx((1 / np.mean(1 / variances)) / variances[7], rel=1e-3)
    even = Run.of(
        Settings(**(fitted.get_params() | {"weighting": "none"})), FEATURES, LABELS, GROUPS, None, None
    ).sender.plan
    assert (even.weights == 1.0).all()


def test_budgets_belong_to_steps_at_client_level_and_to_clients_at_example_level():
    """With almost no noise at one budget and a lot at the other, who is noisy shows in the order of the steps."""
    from shuffledp.learning.rounds import step_by_step
    from shuffledp.learning.settings import Settings
    from shuffledp.learning.training import Run

    budgets = np.array([700.0] * 4 + [0.05] * 4)
    for unit, swap in (("client", True), ("example", False)):
        settings = Settings(**classifier(unit=unit, epsilon0=budgets, weighting="none", step=1.0).get_params())
        run = Run.of(settings, FEATURES, LABELS, GROUPS, None, None)
        sizes: list[float] = []
        run.server.move = lambda sent, factor, average, sizes=sizes: sizes.append(float(np.abs(sent).max()))
        step_by_step(run.sender, run.server, run.taking_part, 1.0, swap=swap, average=False)
        noisy = np.array(sizes) > 3.0 * run.settings.clip
        assert noisy.sum() == 4
        assert (noisy == (np.arange(8) >= 4)).all() == swap


def test_a_mapping_of_budgets_and_a_budget_of_zero():
    budgets = dict.fromkeys(range(8), 8.0) | {3: 0.0}
    fitted = classifier(epsilon0=budgets).fit(FEATURES, LABELS, groups=GROUPS)
    assert fitted.guarantee_.levels[0].count == 7
    assert "1 clients with epsilon0 = 0 are left out: they send nothing" in fitted.guarantee_.notes
    assert fitted.history_[0].messages == 7


def test_too_few_messages_are_not_released_and_cost_nothing():
    there = [np.ones(8, bool), np.arange(8) < 3, np.ones(8, bool)]
    fitted = classifier(min_messages=4).fit(FEATURES, LABELS, groups=GROUPS, presence=lambda t: there[t])
    assert [report.released for report in fitted.history_] == [True, False, True]
    assert fitted.guarantee_.rounds == 2
    assert "only 3 messages, not released" in fitted.history_[1].line()
    with pytest.raises(InvalidInput, match="no round was released"):
        classifier(min_messages=9).fit(FEATURES, LABELS, groups=GROUPS)


def test_training_stops_before_the_budget_is_exceeded():
    free = classifier(rounds=6).fit(FEATURES, LABELS, groups=GROUPS)
    most = 0.7 * free.guarantee_.epsilon.upper
    fitted = classifier(rounds=6, max_epsilon=most).fit(FEATURES, LABELS, groups=GROUPS)
    assert 0 < fitted.guarantee_.rounds < 6
    assert fitted.guarantee_.epsilon.upper <= most < fitted.accountant_.epsilon_after([8], 1e-5)
    assert "one more round would exceed" in fitted.stopped_
    with pytest.raises(InvalidInput, match="no round was released"):
        classifier(max_epsilon=0.01).fit(FEATURES, LABELS, groups=GROUPS)


def test_progress_tells_what_was_spent(capsys):
    told = []
    fitted = classifier(progress=told.append).fit(FEATURES, LABELS, groups=GROUPS, validation=(FEATURES, LABELS))
    assert [report.round for report in told] == [1, 2, 3]
    assert told[0].epsilon < told[1].epsilon < told[2].epsilon == fitted.guarantee_.epsilon.upper
    assert told[-1].accuracy == pytest.approx(fitted.score(FEATURES, LABELS))
    chances = fitted.predict_proba(FEATURES)[np.arange(240), LABELS]
    assert told[-1].loss == pytest.approx(-np.log(chances).mean())
    print_progress(told[-1])
    assert "round 3/3  epsilon" in capsys.readouterr().err
    silent = classifier().fit(FEATURES, LABELS, groups=GROUPS)
    assert math.isnan(silent.history_[0].accuracy)


def test_averaged_models_are_the_mean_of_what_was_seen():
    kept = []

    class Spy:
        def __call__(self, report):
            kept.append(report)

    last = classifier(seen="reports", rounds=4, averaging=0.5, progress=Spy()).fit(FEATURES, LABELS, groups=GROUPS)
    plain = [classifier(seen="reports", rounds=4).fit(FEATURES, LABELS, groups=GROUPS)]
    assert not np.array_equal(last.weights_, plain[0].weights_)
    assert len(kept) == 4


def test_it_is_shaped_like_a_scikit_learn_estimator():
    one = classifier()
    other = ShuffledSGDClassifier(**one.get_params())
    assert other.get_params() == one.get_params()
    assert one.set_params(rounds=9, clip=2.0) is one
    assert (one.rounds, one.clip) == (9, 2.0)
    with pytest.raises(InvalidInput, match="has no parameter 'epochs'"):
        one.set_params(epochs=3)
    assert "unit='example'" in repr(one)
    with pytest.raises(InvalidInput, match="not trained yet"):
        one.predict(FEATURES)


def test_components_are_fitted_to_public_data_only():
    with pytest.raises(InvalidInput, match="reveal them"):
        classifier(pca=2).fit(FEATURES, LABELS, groups=GROUPS)
    public = DRAW.normal(size=(50, 3))
    fitted = classifier(pca=2, pca_data=public).fit(FEATURES, LABELS, groups=GROUPS)
    assert fitted.network_.widths == (2, 3)
    assert "features: 2 principal components of 50 rows declared public" in fitted.guarantee_.notes
    assert fitted.predict(FEATURES).shape == (240,)
    assert classifier(pca=2, public_features=True).fit(FEATURES, LABELS, groups=GROUPS).network_.widths == (2, 3)


@pytest.mark.parametrize(
    ("changes", "data", "told"),
    [
        ({"unit": "user"}, {}, "unit must be one of"),
        ({"seen": "all"}, {}, "seen must be one of"),
        ({"mechanism": "cauchy"}, {}, "mechanism must be one of"),
        ({"clipped": "message"}, {}, "does not bound one example's part"),
        ({"clipped": "average"}, {}, "clipped must be one of"),
        ({"rounds": 0}, {}, "rounds must be a whole number"),
        ({"delta": 0.0}, {}, "delta must be in"),
        ({"momentum": 1.0}, {}, "momentum must be from 0 to below 1"),
        ({"decay": "fast"}, {}, "decay must be one of"),
        ({"epsilon0": -1.0}, {}, "epsilon0 must be from 0 to 700"),
        ({"epsilon0": 0.0}, {}, "nothing can be learned"),
        ({"epsilon0": [1.0, 2.0]}, {}, "one number for each of 8 clients"),
        ({"epsilon0": dict.fromkeys(range(9), 1.0)}, {}, "client 8 has a epsilon0, but no example"),
        ({"epsilon0": dict.fromkeys(range(7), 1.0)}, {}, "client 7 has no epsilon0"),
        ({"epsilon0": "much"}, {}, "epsilon0 must be a number"),
        ({"delta0": 0.0}, {}, "Gaussian noise is never pure"),
        ({"delta0": 1e-6, "mechanism": "laplace"}, {}, "`mechanism = 'laplace'` is pure"),
        ({"hidden": (0,)}, {}, "layer widths"),
        ({"classes": 2}, {}, r"labels must lie in 0\.\.1"),
        ({}, {"y": LABELS - 1}, r"labels must lie in 0\.\.2; row \d+ has another"),
        ({}, {"y": LABELS + 0.5}, "labels must be whole numbers"),
        ({}, {"y": LABELS[:-1]}, "one label for each of 240"),
        ({}, {"X": FEATURES[:, 0]}, "X must be a table"),
        ({}, {"X": FEATURES.astype(str)}, "X must be a table"),
        ({}, {"groups": None}, "needs `groups`"),
        ({}, {"groups": GROUPS[:5]}, "one client for each of 240"),
        ({}, {"groups": np.where(GROUPS == 0, np.nan, GROUPS)}, "missing client"),
        ({}, {"presence": lambda t: [True]}, "presence must say"),
        ({"features": lambda rows: rows[:5]}, {}, "features must keep the rows"),
        ({"checkpoint": None}, {"resume": True}, "resume needs the checkpoint"),
    ],
)
def test_bad_input_is_one_clear_error_and_leaves_no_model(changes, data, told):
    one = classifier(**changes)
    given = {"X": FEATURES, "y": LABELS, "groups": GROUPS} | data
    with pytest.raises(InvalidInput, match=told):
        one.fit(given.pop("X"), given.pop("y"), **given)
    assert not [name for name in vars(one) if name.endswith("_")]


@pytest.mark.costly
def test_clients_of_different_sizes_have_one_law_at_client_level():
    groups = np.sort(DRAW.integers(9, size=240))
    fitted = classifier(unit="client", seen="reports").fit(FEATURES, LABELS, groups=groups)
    assert len(fitted.accountant_.tiers) == 1


def test_a_client_with_one_example_is_served_with_its_own_sensitivity():
    groups = GROUPS.copy()
    groups[groups == 7] = 6
    groups[0] = 7
    fitted = classifier().fit(FEATURES, LABELS, groups=groups)
    assert len(fitted.accountant_.tiers) > 1
    largest = max(tier.sensitivity for tier in fitted.accountant_.tiers)
    assert largest / min(tier.sensitivity for tier in fitted.accountant_.tiers) == pytest.approx(60, rel=0.01)
    assert fitted.guarantee_.epsilon.upper == pytest.approx(
        classifier().fit(FEATURES, LABELS, groups=GROUPS).guarantee_.epsilon.upper, rel=1e-6
    )


def test_divergence_is_an_error_not_a_model():
    with pytest.raises(NotConverged, match="diverged"):
        classifier(hidden=(4, 4, 4), step=1e6, clip=1e90, epsilon0=700.0, rounds=9).fit(FEATURES, LABELS, groups=GROUPS)


def test_prediction_checks_what_it_is_given():
    fitted = classifier().fit(FEATURES, LABELS, groups=GROUPS)
    with pytest.raises(InvalidInput, match="takes 3 features; X has 2"):
        fitted.predict(FEATURES[:, :2])
    with pytest.raises(InvalidInput, match="labels must lie"):
        fitted.score(FEATURES, LABELS + 1)


def test_clients_are_spread_evenly():
    groups = assign_clients(10, 3, simulation_random(0))
    assert sorted(np.bincount(groups).tolist()) == [3, 3, 4]
    with pytest.raises(InvalidInput, match="clients must be at least 1 and at most the number of examples, "):
        assign_clients(2, 3)


def test_the_bundled_digits_are_learned():
    """2,000 digits, 10 clients of 200, epsilon0 = 8 a round; guessing gets 10 %."""
    train, test = (read_digits(sample_folder(), part) for part in ("train", "test"))
    fitted = classifier(
        classes=10, rounds=15, clip=0.3, step=2.0, features=cosine_projection(28, 60, scale=1 / 255)
    ).fit(train.images, train.labels, groups=assign_clients(2000, 10, simulation_random(0)))
    assert fitted.score(test.images, test.labels) > 0.6
