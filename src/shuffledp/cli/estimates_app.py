"""The commands that read a table of records, and their options; bodies as in `shuffledp.cli.app`."""

from __future__ import annotations

from shuffledp.cli import options as o


def mean(
    table: o.Table,
    value: o.Value,
    epsilon0: o.OwnEpsilon0,
    delta: o.Delta,
    low: o.Low = None,
    high: o.High = None,
    seen: o.SeenRecords = None,
    mechanism: o.NumberMechanism = "one-bit",
    clip: o.Clip = False,
    consent: o.Consent = None,
    delta0: o.OwnDelta0 = 0.0,
    weights: o.Weights = "population",
    simulation_seed: o.SimulationSeed = None,
    json: o.Json = False,
    report: o.Report = None,
) -> None:
    r"""Estimate a mean from a table, privately.

    Example (on the table that comes with the package):

    shuffledp mean "$(shuffledp demo --where)" --value hours_per_week \
    --low 1 --high 99 --epsilon0 0.5 --delta 1e-6
    """
    from shuffledp.cli.estimate import Run, parse_weights, run_mean

    way = parse_weights(weights)
    run = Run(
        table, value, epsilon0, delta, seen, mechanism, simulation_seed, json, report, tuple(consent or ()), delta0, way
    )
    run_mean(run, low, high, clip=clip)


def frequency(
    table: o.Table,
    value: o.Value,
    epsilon0: o.OwnEpsilon0,
    delta: o.Delta,
    categories: o.Categories = None,
    seen: o.SeenRecords = None,
    mechanism: o.FrequencyMechanism = "krr",
    simplex: o.Simplex = False,
    consent: o.Consent = None,
    weights: o.Weights = "population",
    simulation_seed: o.SimulationSeed = None,
    json: o.Json = False,
    report: o.Report = None,
) -> None:
    r"""Estimate how often each category occurs in a table, privately.

    Example (on the table that comes with the package):

    shuffledp frequency "$(shuffledp demo --where)" --value income \
    --categories "<=50K,>50K" --epsilon0 0.5 --delta 1e-6
    """
    from shuffledp.cli.estimate import Run, parse_weights, run_frequency

    way = parse_weights(weights)
    run = Run(
        table, value, epsilon0, delta, seen, mechanism, simulation_seed, json, report, tuple(consent or ()), weights=way
    )
    run_frequency(run, categories, simplex=simplex)


def histogram(
    table: o.Table,
    value: o.Value,
    bins: o.Bins,
    epsilon0: o.OwnEpsilon0,
    delta: o.Delta,
    low: o.Low = None,
    high: o.High = None,
    seen: o.SeenRecords = None,
    mechanism: o.FrequencyMechanism = "subset",
    clip: o.Clip = False,
    simplex: o.Simplex = False,
    consent: o.Consent = None,
    weights: o.Weights = "population",
    simulation_seed: o.SimulationSeed = None,
    json: o.Json = False,
    report: o.Report = None,
) -> None:
    r"""Estimate the histogram of a number in a table, privately.

    Example (on the table that comes with the package):

    shuffledp histogram "$(shuffledp demo --where)" --value hours_per_week \
    --low 0 --high 100 --bins 10 --epsilon0 1 --delta 1e-6
    """
    from shuffledp.cli.distribution import run_histogram
    from shuffledp.cli.estimate import Run, parse_weights

    way = parse_weights(weights)
    run = Run(
        table, value, epsilon0, delta, seen, mechanism, simulation_seed, json, report, tuple(consent or ()), weights=way
    )
    run_histogram(run, low, high, bins, clip=clip, simplex=simplex)


def quantiles(
    table: o.Table,
    value: o.Value,
    epsilon0: o.OwnEpsilon0,
    delta: o.Delta,
    low: o.Low = None,
    high: o.High = None,
    at: o.At = "0.25,0.5,0.75",
    bins: o.QuantileBins = 256,
    branching: o.Branching = 4,
    seen: o.SeenRecords = None,
    clip: o.Clip = False,
    consent: o.Consent = None,
    weights: o.Weights = "population",
    simulation_seed: o.SimulationSeed = None,
    json: o.Json = False,
    report: o.Report = None,
) -> None:
    r"""Estimate quantiles and the distribution function of a number in a table, privately.

    Example (on the table that comes with the package):

    shuffledp quantiles "$(shuffledp demo --where)" --value hours_per_week \
    --low 0 --high 100 --at 0.1,0.5,0.9 --bins 100 --epsilon0 1 --delta 1e-6
    """
    from shuffledp.cli.distribution import run_quantiles
    from shuffledp.cli.estimate import Run, parse_weights

    way = parse_weights(weights)
    run = Run(table, value, epsilon0, delta, seen, "", simulation_seed, json, report, tuple(consent or ()), weights=way)
    run_quantiles(run, low, high, at, bins, branching, clip=clip)


def variance(
    table: o.Table,
    value: o.Value,
    epsilon0: o.OwnEpsilon0,
    delta: o.Delta,
    low: o.Low = None,
    high: o.High = None,
    seen: o.SeenRecords = None,
    clip: o.Clip = False,
    consent: o.Consent = None,
    weights: o.Weights = "population",
    simulation_seed: o.SimulationSeed = None,
    json: o.Json = False,
    report: o.Report = None,
) -> None:
    r"""Estimate the variance and the standard deviation of a number in a table, privately.

    Example (on the table that comes with the package):

    shuffledp variance "$(shuffledp demo --where)" --value hours_per_week \
    --low 1 --high 99 --epsilon0 1 --delta 1e-6
    """
    from shuffledp.cli.distribution import run_variance
    from shuffledp.cli.estimate import Run, parse_weights

    way = parse_weights(weights)
    run = Run(table, value, epsilon0, delta, seen, "", simulation_seed, json, report, tuple(consent or ()), weights=way)
    run_variance(run, low, high, clip=clip)
