"""Mod and strategy together, in this process: what leaves a client, what is released, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra shuffledp[flower]")

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAdam, FedAvg

from shuffledp.accounting import GaussianSumProfile
from shuffledp.errors import InvalidInput
from shuffledp.flower import LocalRandomizer, ShuffledStrategy, Terms
from shuffledp.flower.mod import MARK_KEY, TERMS_KEY
from shuffledp.numerics.randomness import simulation_random

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "flower_app"))
from in_process import InProcessGrid

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Flower's own dependencies

SHAPES = {"matrix": (3, 4), "bias": (4,)}
NUMBERS = 16


def record(values: np.ndarray | float, kind: str = "<f4") -> ArrayRecord:
    parts = np.split(np.broadcast_to(values, NUMBERS).astype(kind), [12])
    return ArrayRecord({k: Array(p.reshape(s)) for (k, s), p in zip(SHAPES.items(), parts, strict=True)})


def flat(arrays: ArrayRecord) -> np.ndarray:
    return np.concatenate([array.numpy().ravel() for array in arrays.values()])


def terms(**more) -> Terms:
    asked = {"clip": 1.0, "levels": {"low": (1.0, 1e-7), "high": (8.0, 1e-7)}, "release": "sum"}
    return Terms(**asked | more)


def app_of(agreed: Terms, update=1.0, **more) -> ClientApp:
    """Clients whose training adds a constant, or what a function of the node makes of the model."""
    more.setdefault("level", lambda context: context.node_config["level"])
    more.setdefault("max_messages", 1000)
    app = ClientApp(mods=[LocalRandomizer(agreed, **more)])

    @app.train()
    def train(message, context):
        model = flat(message.content["arrays"])
        after = update(model, context) if callable(update) else model + update
        content = {"arrays": record(after), "metrics": MetricRecord({"num-examples": 7, "loss": 0.123})}
        return Message(RecordDict(content), reply_to=message)

    return app


def nodes(n: int) -> list[dict[str, str]]:
    return [{"level": "high" if i % 2 else "low"} for i in range(n)]


def strategy(agreed: Terms, inner=None, **more) -> ShuffledStrategy:
    asked = {"min_messages": 10, "delta": 1e-5} | more
    return ShuffledStrategy(inner or FedAvg(fraction_evaluate=0.0), agreed, **asked)


def request(agreed: Terms, model=0.0, kind: str = "train") -> Message:
    InProcessGrid(ClientApp(), [])  # sets who makes messages
    content = {"arrays": record(model), "config": ConfigRecord({TERMS_KEY: agreed.fingerprint})}
    return Message(RecordDict(content), dst_node_id=100, message_type=kind)


def answer(app: ClientApp, message: Message, level: str = "high") -> Message:
    return app(message, InProcessGrid(app, [{"level": level}]).contexts[100])


# ------------------------------------------------------------------ clients


def test_nothing_but_the_noised_update_and_the_level_leaves_a_client():
    agreed = terms()
    reply = answer(app_of(agreed), request(agreed))
    assert set(reply.content) == {"arrays", MARK_KEY}
    assert dict(reply.content[MARK_KEY]) == {"terms": agreed.fingerprint, "level": "high", "private": True}
    sent = flat(reply.content["arrays"])
    assert sent.dtype == np.int64
    assert list(reply.content["arrays"]) == list(SHAPES)


@pytest.mark.parametrize("update", [0.0, 1.0, 1e30])
@pytest.mark.parametrize(("mechanism", "delta0", "order"), [("gaussian", 1e-7, 2), ("laplace", 0.0, 1)])
def test_updates_are_clipped_as_a_whole_and_zero_stays_zero(monkeypatch, update, mechanism, delta0, order):
    """Without noise, the message is the clipped update up to half a grid step per number."""
    agreed = terms(levels={"high": (8.0, delta0)}, mechanism=mechanism, clip=0.5)
    monkeypatch.setattr(type(agreed.noise), "draw", lambda self, scale, n, random: np.zeros(n, dtype=np.int64))
    sent = flat(answer(app_of(agreed, update), request(agreed)).content["arrays"])
    grid = agreed.plan(NUMBERS).grid
    wanted = np.full(NUMBERS, min(update, 0.5 / NUMBERS ** (1.0 / order)))
    np.testing.assert_allclose(sent * grid, wanted, rtol=1e-12, atol=0.5 * grid)
    assert np.linalg.norm(sent * grid, ord=order) <= 0.5 + grid * NUMBERS


def test_sensitivity_is_twice_the_clip_and_noise_follows():
    """sigma in units of 2 clip meets Balle and Wang's condition for each level, and hardly more."""
    agreed = terms(clip=3.0, weighting="none")
    plan = agreed.plan(NUMBERS)
    for name, index in zip(agreed.names, plan.tier_of, strict=True):
        tier, (epsilon0, delta0) = plan.tiers[index], agreed.levels[name]
        assert 6.0 <= tier.sensitivity * plan.grid <= 6.0 * 1.002
        profile = GaussianSumProfile(tier.ratio)
        assert profile.delta(epsilon0).upper <= delta0 * (1 + 1e-6)
        assert profile.delta(epsilon0 * 0.99).lower > delta0


@pytest.mark.parametrize("broken", [lambda m, c: m + np.nan, lambda m, c: m / 0.0, lambda m, c: 1 / 0])
def test_an_update_that_cannot_be_used_never_leaves(broken):
    agreed = terms()
    with np.errstate(all="ignore"):
        noise = answer(app_of(agreed, broken), request(agreed, 1.0))
        assert np.isfinite(flat(noise.content["arrays"])).all()
        assert set(noise.content) == {"arrays", MARK_KEY}
        with pytest.raises(InvalidInput, match="no update that can be used"):
            answer(app_of(agreed, broken, unusable="refuse"), request(agreed, 1.0))


@pytest.mark.parametrize("kind", ["evaluate", "query", "query.private"])
def test_only_training_passes(kind):
    agreed = terms()
    with pytest.raises(InvalidInput, match="no budget pays for it"):
        LocalRandomizer(agreed, "high", max_messages=1)(
            request(agreed, kind=kind), None, lambda message, context: message
        )


def test_a_server_with_other_terms_gets_nothing():
    agreed = terms()
    for other in (request(terms(clip=2.0)), request(agreed)):
        if other.content["config"][TERMS_KEY] == agreed.fingerprint:
            del other.content["config"][TERMS_KEY]
        with pytest.raises(InvalidInput, match="other terms"):
            answer(app_of(agreed), other)
    with pytest.raises(InvalidInput, match="not finite"):
        answer(app_of(agreed), request(agreed, np.nan))
    with pytest.raises(InvalidInput, match="level must be one of"):
        answer(app_of(agreed), request(agreed), level="none")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"clip": 0.0}, "clip must be"),
        ({"clip": np.nan}, "clip must be"),
        ({"levels": {}}, "at least one budget level"),
        ({"levels": {"a": (0.0, 1e-7)}}, "leave such clients out"),
        ({"levels": {"a": (-1.0, 1e-7)}}, "epsilon0 of level 'a'"),
        ({"levels": {"a": 1.0}}, "needs the pair"),
        ({"levels": {"a": (1.0, 0.0)}}, "delta"),
        ({"levels": {"a": (20.0, 1.0)}}, "delta0 of level 'a'"),
        ({"mechanism": "laplace"}, "Laplace noise is pure"),
        ({"mechanism": "cauchy"}, "mechanism must be"),
        ({"release": "all"}, "release must be"),
        ({"weighting": "examples"}, "weighting must be"),
    ],
)
def test_terms_that_cannot_be_kept(more, message):
    with pytest.raises(InvalidInput, match=message):
        terms(**more)


# ------------------------------------------------------------------ server


@pytest.mark.parametrize("release", ["sum", "messages"])
@pytest.mark.parametrize("weighting", ["none", "inverse-variance"])
def test_a_round_is_the_weighted_mean_of_the_messages(monkeypatch, release, weighting):
    """Without noise: every client moves by its own constant, weighted by its level."""
    agreed = terms(release=release, weighting=weighting, clip=100.0)
    monkeypatch.setattr(type(agreed.noise), "draw", lambda self, scale, n, random: np.zeros(n, dtype=np.int64))
    moves = {"low": 1.0, "high": 3.0}
    app = app_of(agreed, lambda model, context: model + moves[context.node_config["level"]])
    result = strategy(agreed).start(InProcessGrid(app, nodes(20)), record(0.5), num_rounds=1)
    plan = agreed.plan(NUMBERS)
    shares = plan.weights * plan.gains
    if weighting == "inverse-variance":
        assert shares[agreed.names.index("low")] < 0.1 < shares[agreed.names.index("high")]
    wanted = 0.5 + np.average([moves[name] for name in agreed.names], weights=shares)
    np.testing.assert_allclose(flat(result.arrays), wanted, rtol=1e-3)
    assert flat(result.arrays).dtype == np.float32


def test_noise_of_a_round_is_what_is_counted():
    """Mean of 1,600 squared numbers in units of the counted variance: chi-square.

    False alarm below 1e-6 (5 standard deviations).
    """
    agreed = terms(levels={"only": (2.0, 1e-7)})
    plan = agreed.plan(NUMBERS)
    sigma = plan.tiers[0].scale * plan.grid / 20**0.5
    whole = strategy(agreed)
    grid, draws = InProcessGrid(app_of(agreed, 0.0, level="only"), [{}] * 20), []
    for number in range(100):
        asked = whole.configure_train(number, record(0.0), ConfigRecord(), grid)
        draws.append(flat(whole.aggregate_train(number, grid.send_and_receive(asked))[0]))
    spread = np.mean(np.square(np.concatenate(draws))) / sigma**2
    assert abs(spread - 1.0) < 5.0 * (2.0 / 1600) ** 0.5


def test_too_few_messages_release_nothing():
    agreed = terms()
    whole = strategy(agreed, min_messages=30)
    result = whole.start(InProcessGrid(app_of(agreed), nodes(20)), record(0.0), num_rounds=2)
    assert not result.arrays
    found = whole.report()
    assert [number for number, _ in found.refused] == [1, 2]
    assert "fewer than 30" in found.describe()
    assert found.guarantee.rounds == 0
    assert found.guarantee.epsilon.upper == 0.0
    assert all(level.epsilon == 0.0 < level.epsilon_operator for level in found.levels)  # they did send


def test_replies_without_the_mod_are_dropped():
    agreed = terms()
    app = app_of(agreed)
    bare = ClientApp()

    @bare.train()
    def train(message, context):
        content = {"arrays": record(1e6), "metrics": MetricRecord({"num-examples": 10**6})}
        return Message(RecordDict(content), reply_to=message)

    grid = InProcessGrid(lambda m, c: (bare if c.node_id % 2 else app)(m, c), nodes(40))
    whole = strategy(agreed, min_messages=20)
    result = whole.start(grid, record(0.0), num_rounds=1)
    assert np.abs(flat(result.arrays)).max() < 100.0
    assert sum(level.count for level in whole.report().guarantee.levels) == 20


def test_training_stops_before_the_budget_is_exceeded():
    agreed = terms()
    free = strategy(agreed)
    free.start(InProcessGrid(app_of(agreed), nodes(20)), record(0.0), num_rounds=2)
    most = free.report().guarantee.epsilon.upper * 1.01
    tight = strategy(agreed, max_epsilon=most)
    result = tight.start(InProcessGrid(app_of(agreed), nodes(20)), record(0.0), num_rounds=5)
    found = tight.report()
    assert found.guarantee.rounds == 2
    assert found.guarantee.epsilon.upper <= most
    assert "exceed" in found.stopped
    assert sorted(result.train_metrics_clientapp) == [1, 2]
    assert not list(tight.configure_train(6, record(0.0), ConfigRecord(), InProcessGrid(app_of(agreed), nodes(20))))
    never = strategy(agreed, max_epsilon=most * 0.01)
    assert not never.start(InProcessGrid(app_of(agreed), nodes(20)), record(0.0), num_rounds=2).arrays
    assert never.report().guarantee.rounds == 0


def test_the_report_takes_the_smallest_valid_bound_of_each_level():
    messages = strategy(terms(release="messages"))
    messages.start(InProcessGrid(app_of(messages.terms), nodes(40)), record(0.0), num_rounds=1)
    found = messages.report()
    assert {name for level in found.levels for name in level.names} == {"low", "high"}
    assert found.guarantee.seen == "levels"
    assert max(level.epsilon for level in found.levels) == found.guarantee.epsilon.upper
    for level in found.levels:
        assert level.method in ("local", "approximate", "chain")
        assert level.epsilon <= level.epsilon_operator
    summed = strategy(terms())
    summed.start(InProcessGrid(app_of(summed.terms), nodes(40)), record(0.0), num_rounds=1)
    assert {level.method for level in summed.report().levels} == {"sum"}
    assert summed.report().guarantee.epsilon.upper < found.guarantee.epsilon.upper / 2
    assert "only simulates a shuffler" in summed.report().describe()


def test_pure_noise_is_amplified_within_its_level():
    pure = terms(levels={"one": (1.0, 0.0)}, mechanism="laplace", release="messages")
    whole = strategy(pure)
    whole.start(InProcessGrid(app_of(pure, level="one"), nodes(200)), record(0.0), num_rounds=1)
    (level,) = whole.report().levels
    assert level.method == "levels"
    assert level.epsilon < 0.6 < 0.999 < level.epsilon_operator


def test_seeded_noise_or_shuffle_is_said_to_be_no_privacy():
    agreed = terms()
    for more, shuffle in (({"random": simulation_random(1)}, None), ({}, simulation_random(1))):
        whole = strategy(agreed, random=shuffle)
        whole.start(InProcessGrid(app_of(agreed, **more), nodes(20)), record(0.0), num_rounds=1)
        assert "no privacy" in whole.report().describe()


def test_other_strategies_fit_inside():
    agreed = terms()
    whole = strategy(agreed, FedAdam(fraction_evaluate=0.0, eta=0.1))
    result = whole.start(InProcessGrid(app_of(agreed), nodes(20)), record(0.0), num_rounds=2)
    assert np.isfinite(flat(result.arrays)).all()
    assert whole.report().guarantee.rounds == 2


class AskTwice(FedAvg):
    """Asks everybody twice."""

    def configure_train(self, *arguments):
        found = list(super().configure_train(*arguments))
        return found + found


class OwnModels(FedAvg):
    """Sends every client a model of its own."""

    def configure_train(self, server_round, arrays, config, grid):
        return [
            Message(RecordDict({"arrays": record(node), "config": config}), dst_node_id=node, message_type="train")
            for node in grid.get_node_ids()
        ]


@pytest.mark.parametrize(("inner", "message"), [(AskTwice, "asks a client twice"), (OwnModels, "same model to every")])
def test_strategies_that_break_the_count_are_refused(inner, message):
    agreed = terms()
    with pytest.raises(InvalidInput, match=message):
        strategy(agreed, inner(fraction_evaluate=0.0)).start(InProcessGrid(app_of(agreed), nodes(20)), record(0.0))


def test_bad_settings_of_the_strategy():
    for more in ({"min_messages": 0}, {"delta": 0.0}, {"delta": 1.0}, {"max_epsilon": -1.0}, {"max_epsilon": np.nan}):
        with pytest.raises(InvalidInput):
            strategy(terms(), **more)
    with pytest.raises(InvalidInput, match="nothing to report"):
        strategy(terms()).report()
    with pytest.raises(InvalidInput, match="cannot carry noise"):
        strategy(terms()).start(InProcessGrid(app_of(terms()), nodes(20)), record(0, "<i8"), num_rounds=1)


def test_the_example_app_runs_in_this_process(monkeypatch):
    import run_local
    import server_app

    monkeypatch.setattr(server_app, "ROUNDS", 1)
    arrays, strategy_ = server_app.train(InProcessGrid(run_local.app, run_local.NODES[:600]))
    found = strategy_.report()
    assert found.guarantee.rounds == 1
    assert found.guarantee.epsilon.upper < 1.0
    assert list(arrays) == ["matrix", "bias"]
