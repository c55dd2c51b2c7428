"""A Flower client counts its own messages, and stops answering."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra shuffledp[flower]")

from flwr.app import ConfigRecord, RecordDict
from flwr.clientapp import ClientApp

from shuffledp.accounting import GaussianSumProfile
from shuffledp.errors import InvalidInput
from shuffledp.flower import LocalRandomizer
from shuffledp.flower.mod import COUNT_KEY, TERMS_KEY
from shuffledp.numerics.randomness import simulation_random
from tests.flower.test_flower import NUMBERS, InProcessGrid, app_of, flat, request, strategy, terms
from tests.flower.test_flower import record as model_of

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Flower's own dependencies


def context_of(level: str = "high"):
    return InProcessGrid(ClientApp(), [{"level": level}]).contexts[100]


def asked(agreed, server_round=None, model=0.0):
    message = request(agreed, model)
    told = {TERMS_KEY: agreed.fingerprint} | ({} if server_round is None else {"server-round": server_round})
    message.content["config"] = ConfigRecord(told)
    return message


def test_4000_answers_to_one_round_are_one_answer():
    agreed = terms()
    app, context = app_of(agreed, max_messages=3), context_of()
    sent = [flat(app(asked(agreed, 1, model), context).content["arrays"]) for model in (0.0, 5.0) for _ in range(40)]
    assert all(np.array_equal(one, sent[0]) for one in sent)
    assert context.state[COUNT_KEY]["messages"] == 1


def test_the_bytes_of_a_repeated_answer_are_the_same():
    agreed = terms()
    app, context = app_of(agreed), context_of()
    first, again = (app(asked(agreed, 4), context).content for _ in range(2))
    assert {k: a.data for k, a in first["arrays"].items()} == {k: a.data for k, a in again["arrays"].items()}
    assert dict(first["shuffledp"]) == dict(again["shuffledp"])


@pytest.mark.parametrize("numbered", [True, False])
def test_no_message_beyond_the_limit(numbered):
    agreed = terms()
    app, context = app_of(agreed, max_messages=3), context_of()
    for server_round in (1, 2, 3):
        app(asked(agreed, server_round if numbered else None), context)
    for server_round in (4, 5):
        with pytest.raises(InvalidInput, match="at most 3 messages in a run"):
            app(asked(agreed, server_round if numbered else None), context)
    assert context.state[COUNT_KEY]["messages"] == 3
    if numbered:  # the last answer may still be repeated
        app(asked(agreed, 3), context)
        with pytest.raises(InvalidInput, match="round 2 after round 3"):
            app(asked(agreed, 2), context)


def test_no_message_beyond_the_largest_epsilon():
    """Own composition of k messages: a shift of sqrt(k) mu."""
    agreed = terms()
    tier = agreed.plan(NUMBERS).tiers[int(agreed.plan(NUMBERS).tier_of[agreed.names.index("high")])]
    three = GaussianSumProfile(tier.ratio * math.sqrt(3.0)).epsilon(1e-5).upper
    app, context = app_of(agreed, max_messages=None, max_epsilon=three * (1 + 1e-9), delta=1e-5), context_of()
    for server_round in (1, 2, 3):
        app(asked(agreed, server_round), context)
    with pytest.raises(InvalidInput, match="would exceed this client's own epsilon"):
        app(asked(agreed, 4), context)
    report = LocalRandomizer(agreed, "high", max_epsilon=three, delta=1e-5).report(context)
    assert (report.messages, report.level, report.private) == (3, "high", True)
    assert report.epsilon == pytest.approx(three, rel=1e-9)
    assert "has sent 3 messages in this run; its limit is epsilon" in report.describe()
    assert "against everybody including whoever runs the server" in report.describe()


def test_before_the_first_message_nothing_is_spent():
    report = LocalRandomizer(terms(), "high", max_messages=5).report(context_of())
    assert (report.messages, report.epsilon, report.level) == (0, 0.0, "")


def test_the_count_outlasts_a_state_that_is_stored_and_read_again():
    agreed = terms()
    app, context = app_of(agreed, max_messages=2), context_of()
    for server_round in (1, 2):
        app(asked(agreed, server_round), context)
        context.state = RecordDict(dict(context.state.items()))
    with pytest.raises(InvalidInput, match="at most 2 messages"):
        app(asked(agreed, 3), context)


def test_level_terms_and_size_are_fixed_by_the_first_message():
    agreed, names = terms(), ["high", "low"]
    app, context = app_of(agreed, level=lambda _: names[0]), context_of()
    app(asked(agreed, 1), context)
    names.reverse()
    with pytest.raises(InvalidInput, match="fixed by a client's first message"):
        app(asked(agreed, 2), context)
    other = terms(clip=2.0)
    with pytest.raises(InvalidInput, match="fixed by a client's first message"):
        app_of(other)(asked(other, 2), context)


def test_noise_from_a_seed_is_not_forgotten():
    agreed = terms()
    context = context_of()
    app_of(agreed, random=simulation_random(0))(asked(agreed, 1), context)
    app_of(agreed)(asked(agreed, 2), context)
    report = LocalRandomizer(agreed, "high", max_messages=9).report(context)
    assert not report.private
    assert "no privacy" in report.describe().lower()


def test_a_damaged_count_sends_nothing():
    agreed = terms()
    app, context = app_of(agreed), context_of()
    app(asked(agreed, 1), context)
    context.state[COUNT_KEY] = ConfigRecord({"messages": "many"})
    with pytest.raises(InvalidInput, match="count of messages is damaged"):
        app(asked(agreed, 2), context)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({}, "a client needs a limit of its own"),
        ({"max_messages": 0}, "max_messages must be a whole number"),
        ({"max_epsilon": -1.0}, "max_epsilon must be"),
        ({"max_epsilon": 1.0, "delta": 0.0}, "delta must be"),
    ],
)
def test_limits_are_checked(limits, told):
    with pytest.raises(InvalidInput, match=told):
        LocalRandomizer(terms(), "high", **limits)


def test_a_training_ends_when_its_clients_stop():
    """Twelve clients send four messages each at most: the rounds after that are not released."""
    agreed = terms()
    outer = strategy(agreed, min_messages=12)
    grid = InProcessGrid(app_of(agreed, max_messages=4), [{"level": "high"}] * 12)
    outer.start(grid, model_of(0.0), num_rounds=6)
    assert outer.report().guarantee.rounds == 4
    assert [number for number, _ in outer.report().refused] == [5, 6]
