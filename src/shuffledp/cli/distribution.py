"""`histogram`, `quantiles` and `variance`: what a number in a known range looks like, privately."""

from __future__ import annotations

from shuffledp.cli.estimate import Run, check_mechanism, parse_range, release_with_page, show_release
from shuffledp.cli.output import console
from shuffledp.errors import InvalidInput
from shuffledp.protocol import RangeRelease, Release
from shuffledp.protocol.histogram import HISTOGRAM_SEEN, Bins
from shuffledp.protocol.mechanisms import FREQUENCY_MECHANISMS
from shuffledp.protocol.quantiles import QUANTILE_SEEN
from shuffledp.protocol.tabular_ranges import histogram_of_table, quantiles_of_table, variance_of_table
from shuffledp.protocol.variances import VARIANCE_SEEN
from shuffledp.randomizers.checks import real_range
from shuffledp.report.to_json import histogram_to_json, quantiles_to_json, variance_to_json


def run_histogram(run: Run, low: float | None, high: float | None, bins: int, *, clip: bool, simplex: bool) -> None:
    """Estimate a histogram and show it."""
    check_mechanism(run.mechanism, tuple(FREQUENCY_MECHANISMS))
    grid = Bins(*parse_range(low, high), bins)

    def estimate() -> Release:
        return histogram_of_table(
            run.table, run.value, grid.low, grid.high, grid.count, run.budgets(), mechanism=run.mechanism,
            seen=run.view(HISTOGRAM_SEEN), delta=run.delta, clip=clip, weights=run.weights, random=run.random(),
        )  # fmt: skip

    def show(release: Release) -> None:
        from shuffledp.report.distribution import print_histogram

        print_histogram(console(), release, simplex=simplex)

    question = f"How is {run.value} distributed?"
    release = release_with_page(run, estimate, question, kind="histogram", simplex=simplex)
    show_release(run, histogram_to_json(release, simplex=simplex), lambda: show(release))


def run_quantiles(
    run: Run, low: float | None, high: float | None, at: str, bins: int, branching: int, *, clip: bool
) -> None:
    """Estimate quantiles and show them."""
    grid, wanted = Bins(*parse_range(low, high), bins), parse_at(at)

    def estimate() -> RangeRelease:
        return quantiles_of_table(
            run.table, run.value, grid.low, grid.high, wanted, run.budgets(), bins=grid.count, branching=branching,
            seen=run.view(QUANTILE_SEEN), delta=run.delta, clip=clip, weights=run.weights, random=run.random(),
        )  # fmt: skip

    def show(release: RangeRelease) -> None:
        from shuffledp.report.distribution import print_quantiles

        print_quantiles(console(), release)

    release = release_with_page(run, estimate, f"What are the quantiles of {run.value}?", kind="quantiles")
    show_release(run, quantiles_to_json(release), lambda: show(release))


def run_variance(run: Run, low: float | None, high: float | None, *, clip: bool) -> None:
    """Estimate a variance and show it."""
    first, last = real_range(*parse_range(low, high))

    def estimate() -> Release:
        return variance_of_table(
            run.table, run.value, first, last, run.budgets(), seen=run.view(VARIANCE_SEEN), delta=run.delta,
            clip=clip, weights=run.weights, random=run.random(),
        )  # fmt: skip

    def show(release: Release) -> None:
        from shuffledp.report.distribution import print_variance

        print_variance(console(), release)

    release = release_with_page(run, estimate, f"What is the variance of {run.value}?", kind="variance")
    show_release(run, variance_to_json(release), lambda: show(release))


def parse_at(text: str) -> list[float]:
    """Read --at: numbers strictly between 0 and 1, a comma between them."""
    wanted: list[float] = []
    for word in text.split(","):
        try:
            value = float(word)
        except ValueError:
            value = -1.0
        if not 0.0 < value < 1.0:
            raise InvalidInput(
                f"--at needs numbers strictly between 0 and 1 with a comma between them, such as 0.25,0.5,0.75; "
                f"got {text!r}"
            )
        if value in wanted:
            raise InvalidInput(f"--at names {word.strip()} twice; name each quantile once")
        wanted.append(value)
    return wanted
