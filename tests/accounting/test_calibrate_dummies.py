"""The least number of dummies: it keeps every promise, and one fewer does not."""

from __future__ import annotations

import math

import pytest

import shuffledp as sdp

PROMISES = {0.5: 0.1, 1.0: 0.25, 4.0: 1.0}
BIT = sdp.RandomizedResponse(2)


def keeps(family: object, dummies: sdp.Uniform | sdp.DiscreteLaplace, **kwargs: int) -> bool:
    return all(
        sdp.floor_profile(family, epsilon0, dummies, **kwargs).keeps(promise, 1e-6)
        for epsilon0, promise in PROMISES.items()
    )


@pytest.mark.costly("krr:10-289-289")
@pytest.mark.parametrize(
    ("family", "asked", "least"),
    [
        (sdp.RandomizedResponse(5), 172, 172),
        (BIT, 316, 315),
        (sdp.OneBit(0.0, 10.0), 316, 315),
        (sdp.RandomizedResponse(10), 289, 289),
        (sdp.RandomizedResponse(100), 350, 350),
    ],
    ids=lambda part: getattr(part, "name", None),
)
def test_the_numbers_asked_for_serve_and_two_fewer_fail(family, asked, least):
    found = sdp.calibrate_dummies(PROMISES, family, 1e-6)
    assert found.counts == (least,)
    assert keeps(family, sdp.Uniform(asked))
    assert keeps(family, sdp.Uniform(least))
    assert not keeps(family, sdp.Uniform(least - 1))
    assert not keeps(family, sdp.Uniform(asked - 2))
    for (_, promise), floor in zip(found.promises, found.floors, strict=True):
        assert floor.upper <= promise
        assert floor.width <= 1e-9 * floor.upper


def test_sixty_with_a_laplace_number_of_ones_serve_and_two_fewer_fail_at_every_ratio():
    found = sdp.calibrate_dummies(PROMISES, BIT, 1e-6, law="laplace")
    (dummies,) = found.dummies
    assert dummies.count == 59
    assert keeps(BIT, sdp.DiscreteLaplace(60, dummies.ratio))
    for step in range(1, 400):
        assert not keeps(BIT, sdp.DiscreteLaplace(58, math.exp(step / 400.0)))


@pytest.mark.costly("promises1-family1-860", "promises2-family2-956")
@pytest.mark.parametrize(
    ("promises", "family", "most"),
    [
        ({0.5: 0.05, 1.0: 0.1, 4.0: 0.5}, BIT, 1152),
        ({0.5: 0.05, 1.0: 0.1, 4.0: 0.5}, sdp.RandomizedResponse(5), 860),
        ({0.5: 0.05, 1.0: 0.1, 4.0: 0.5}, sdp.RandomizedResponse(10), 956),
        ({4.0: 0.25}, BIT, 892),
    ],
)
def test_the_table_of_the_theory(promises, family, most):
    (found,) = sdp.calibrate_dummies(promises, family, 1e-6).counts
    assert most - 3 <= found <= most


@pytest.mark.costly
def test_several_reports_of_one_person():
    """Four times as many uniform dummies are not quite enough for two reports, nor twice as many Laplace ones."""
    one, two = (sdp.calibrate_dummies(PROMISES, BIT, 1e-6, reports=r).counts[0] for r in (1, 2))
    assert (one, two) == (315, 1262)
    assert not keeps(BIT, sdp.Uniform(4 * one), reports=2)
    laplace = sdp.calibrate_dummies(PROMISES, BIT, 1e-6, law="laplace", reports=2)
    assert laplace.counts == (120,)
    assert not keeps(BIT, sdp.DiscreteLaplace(118, laplace.dummies[0].ratio), reports=2)
    krr = sdp.calibrate_dummies(PROMISES, sdp.RandomizedResponse(5), 1e-6, reports=2)
    assert krr.counts == (692,)


@pytest.mark.costly
def test_two_questions_of_different_families():
    families = [sdp.RandomizedResponse(5), sdp.OneBit(0.0, 1.0)]
    found = sdp.calibrate_dummies(PROMISES, families, 1e-6)

    def serves(counts):
        return all(
            sdp.compose_floors(
                [sdp.floor_profile(r, e, sdp.Uniform(m)) for r, m in zip(families, counts, strict=True)]
            ).keeps(promise, 1e-6)
            for e, promise in PROMISES.items()
        )

    first, second = found.counts
    assert serves((first, second))
    assert not serves((first - 1, second))
    assert not serves((first, second - 1))
    assert first + second < 1100


@pytest.mark.costly
def test_two_questions_of_one_family_and_a_mixture_of_laws():
    assert sdp.calibrate_dummies(PROMISES, sdp.RandomizedResponse(5), 1e-6, 2).counts == (346, 346)
    mixed = sdp.calibrate_dummies(PROMISES, [sdp.RandomizedResponse(5), BIT], 1e-6, law="laplace")
    assert isinstance(mixed.dummies[0], sdp.Uniform)
    assert isinstance(mixed.dummies[1], sdp.DiscreteLaplace)
    assert mixed.dummies[1].count < 130


def test_a_promise_that_is_no_promise_needs_no_dummies():
    assert sdp.calibrate_dummies({1.0: 1.0}, BIT, 1e-6).counts == (0,)
    assert sdp.calibrate_dummies({1.0: 1.0}, BIT, 1e-6, law="laplace").counts == (0,)


@pytest.mark.parametrize(
    ("arguments", "options", "what"),
    [
        (({0.5: 1e-4}, sdp.RandomizedResponse(5), 1e-6), {"most": 500}, "no number of dummies up to 500"),
        (({0.5: 1e-4}, BIT, 1e-6), {"most": 500, "law": "laplace"}, "no number of dummies up to 500"),
        (({}, BIT, 1e-6), {}, "promises must state"),
        (({0.5: 0.0}, BIT, 1e-6), {}, "an epsilon above 0"),
        (([(0.5, 0.1), (0.5, 0.2)], BIT, 1e-6), {}, "two promises"),
        (({0.5: 0.1}, BIT, 0.0), {}, "delta must be in"),
        (({0.5: 0.1}, BIT, 1e-6, 0), {}, "questions must be"),
        (({0.5: 0.1}, [BIT, BIT], 1e-6, 3), {}, "2 randomizers for 3 questions"),
        (({0.5: 0.1}, sdp.UnaryEncoding(3), 1e-6), {}, "dummies serve the families"),
        (({0.5: 0.1}, sdp.RandomizedResponse(3), 1e-6), {"law": "laplace"}, "one bit"),
        (({0.5: 0.1}, BIT, 1e-6), {"law": "gaussian"}, "uniform, laplace, ball, normal"),
    ],
)
def test_refusals(arguments, options, what):
    with pytest.raises(sdp.InvalidInput, match=what):
        sdp.calibrate_dummies(*arguments, **options)
