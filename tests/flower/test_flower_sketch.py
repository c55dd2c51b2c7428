"""One bit a message in Flower: what leaves a client, what the server reads from it, and what it costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra shuffledp[flower]")

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

from shuffledp.accounting import bounds
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.flower import LocalRandomizer, Terms
from shuffledp.flower.mod import BIT_KEY, MARK_KEY, TERMS_KEY
from shuffledp.learning.rounds import signs
from shuffledp.numerics.randomness import simulation_random
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.setting import Setting
from tests.flower.test_client_count import asked, context_of
from tests.flower.test_flower import NUMBERS, InProcessGrid, answer, app_of, flat, nodes, record, request, strategy

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Flower's own dependencies


def terms(**more) -> Terms:
    given = {"clip": 1.0, "levels": {"low": (1.0, 0.0), "high": (3.0, 0.0)}, "release": "sum", "mechanism": "sketch"}
    return Terms(**given | more)


def test_a_seed_and_a_bit_leave_a_client_and_nothing_else():
    agreed = terms()
    reply = answer(app_of(agreed), request(agreed))
    assert set(reply.content) == {"arrays", MARK_KEY}
    (name,), (sent,) = reply.content["arrays"].keys(), reply.content["arrays"].values()
    assert (name, sent.numpy().dtype, sent.numpy().shape) == (BIT_KEY, np.int64, (2,))
    assert sent.numpy()[1] in (0, 1)


@pytest.mark.parametrize(("length", "inside"), [(5.0, 1.0), (0.25, 0.25), (0.0, 0.0)])
def test_the_bit_is_the_side_by_randomized_response(length, inside):
    """It is the side of an update of norm C with chance 1/(1 + e^-epsilon0), of a zero update with chance 1/2.

    2,000 bits, 5 standard deviations: a false alarm once in 1.7 million runs of a case.
    """
    agreed, random = terms(levels={"high": (3.0, 0.0)}), simulation_random(3)
    direction = np.random.default_rng(1).standard_normal(NUMBERS)
    update = direction * (length / np.linalg.norm(direction))
    sent = np.array([agreed.message(update, "high", random) for _ in range(2000)])
    side = signs(sent[:, 0].view(np.uint64).copy(), NUMBERS) @ direction >= 0.0
    assert np.unique(sent[:, 0]).size == 2000
    expected = 0.5 + 0.5 * math.tanh(1.5) * inside
    assert abs((sent[:, 1] == side).mean() - expected) < 5 * 0.5 / math.sqrt(2000)


def test_an_update_of_any_size_sends_a_bit_without_a_warning():
    agreed = terms()
    for size in (1e30, 1e300, 1.7e308):
        with np.errstate(all="raise"):
            found = agreed.message(np.full(NUMBERS, size), "high", simulation_random(0))
        assert found.shape == (2,)


def test_the_server_reads_the_mean_update():
    """Six standard errors a number, 600 clients of two levels in 3 rounds, seeded: 16 numbers, alarm once in 3e7."""
    agreed, move = terms(clip=4.0), np.linspace(-1.0, 1.0, NUMBERS)  # its norm is 2.5
    app = app_of(agreed, lambda model, context: move, random=simulation_random(5))
    outer, read = strategy(agreed, random=simulation_random(1)), np.zeros(NUMBERS)
    grid = InProcessGrid(app, nodes(600))
    for turn in (1, 2, 3):
        told = {"server-round": turn, TERMS_KEY: agreed.fingerprint}
        requests = outer.configure_train(turn, record(0.0), ConfigRecord(told), grid)
        arrays, _ = outer.aggregate_train(turn, grid.send_and_receive(requests))
        read += flat(arrays) / 3
    plan = agreed.plan(NUMBERS)
    error = plan.grid * math.sqrt(600 * 3) / (3 * plan.gains.sum() * 300)
    # 5 % besides: the slope is that of updates spread over very many numbers
    assert np.abs(read - move).max() < 6 * error + 0.05
    assert read @ move / (move @ move) > 0.5


def test_bits_of_all_levels_hide_each_other():
    agreed = terms()
    outer = strategy(agreed)
    outer.start(InProcessGrid(app_of(agreed), nodes(400)), record(0.0), num_rounds=1)
    found = outer.report()
    law = Setting(Budgets([1.0, 3.0], [200, 200]), RandomizedResponse(2), seen="reports", neighboring="replace-one")
    for level in found.levels:
        known = bounds["blanket"].any_victim(law)(level.epsilon0).epsilon(1e-5).upper
        assert level.method == "blanket"
        assert level.epsilon == pytest.approx(known, rel=1e-9)
        assert level.epsilon_operator == pytest.approx(level.epsilon0, rel=1e-4)  # at delta 1e-5, a little below
    assert found.guarantee.seen == "reports"
    assert found.guarantee.epsilon.upper < 1.0


def test_a_client_refuses_beyond_its_own_limits_and_repeats_a_round():
    agreed = terms()
    app, context = app_of(agreed, max_messages=2), context_of()
    first, again = (app(asked(agreed, 1, model), context).content["arrays"] for model in (0.0, 9.0))
    assert first[BIT_KEY].data == again[BIT_KEY].data
    app(asked(agreed, 2), context)
    with pytest.raises(InvalidInput, match="at most 2 messages in a run"):
        app(asked(agreed, 3), context)
    mod = LocalRandomizer(agreed, "high", max_messages=2)
    assert mod.report(context).epsilon == pytest.approx(6.0, rel=1e-3)
    app, context = app_of(agreed, max_messages=None, max_epsilon=3.5), context_of()
    app(asked(agreed, 1), context)
    with pytest.raises(InvalidInput, match=r"would exceed this client's own epsilon of 3\.5"):
        app(asked(agreed, 2), context)


@pytest.mark.parametrize("sent", [[7, 2], [7, -1], [7, 0, 1], [7.0, 1.0]])
def test_what_is_no_bit_is_dropped(sent):
    agreed = terms()
    liar = ClientApp()
    mark = answer(app_of(agreed), request(agreed)).content[MARK_KEY]

    @liar.train()
    def train(message, context):
        return Message(
            RecordDict({"arrays": ArrayRecord({BIT_KEY: Array(np.array(sent))}), MARK_KEY: mark}), reply_to=message
        )

    honest = app_of(agreed)
    grid = InProcessGrid(lambda m, c: (liar if c.node_id % 2 else honest)(m, c), nodes(24))
    outer = strategy(agreed)
    outer.start(grid, record(0.0), num_rounds=1)
    assert sum(level.count for level in outer.report().guarantee.levels) == 12


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"release": "messages"}, "one bit is no update by itself"),
        ({"levels": {"a": (1.0, 1e-7)}}, "a bit is pure"),
        ({"weighting": "inverse-variance"}, "would need every bit's level"),
        ({"clip": 0.0}, "clip must be"),
        ({"mechanism": "bits"}, "mechanism must be one of gaussian, laplace, sketch"),
    ],
)
def test_terms_that_bits_cannot_keep(more, told):
    with pytest.raises(InvalidInput, match=told):
        terms(**more)
