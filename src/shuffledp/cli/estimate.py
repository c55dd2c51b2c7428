"""`mean` and `frequency`: from a table to a private estimate that carries its guarantee."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.cli.output import COMMAND_LINE, console, reserved, working
from shuffledp.cli.population import parse_seen
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import Randomness, secure_random, simulation_random
from shuffledp.protocol import Release, estimate_frequency, estimate_mean
from shuffledp.report.to_json import dumps, frequency_to_json, mean_to_json
from shuffledp.setting import Seen
from shuffledp.tables import Columns, read_columns

MEAN_MECHANISMS = ("one-bit",)
FREQUENCY_MECHANISMS = ("krr", "rr")
LATER = ("laplace", "gaussian", "piecewise", "hybrid", "sue", "oue", "olh", "hadamard", "subset")
"""Mechanisms the contract names which this version does not have."""


@dataclass(frozen=True)
class Run:
    """The options `mean` and `frequency` share, as typed."""

    table: Path
    value: str
    epsilon0: str
    delta: float
    seen: str | None
    mechanism: str
    simulation_seed: int | None
    json: bool
    report: Path | None

    def random(self) -> Randomness:
        """Open the source of noise: secure, unless a simulation was asked for."""
        return choose_random(self.simulation_seed)

    def budgets(self) -> float | None:
        """Read the one budget for everybody; None if --epsilon0 names a column."""
        try:
            return float(self.epsilon0)
        except ValueError:
            return None

    def column_names(self) -> list[str]:
        """List the budget column, if there is one."""
        return [] if self.budgets() is not None else [self.epsilon0]


def choose_random(simulation_seed: int | None) -> Randomness:
    """Choose secure randomness, unless a simulation was asked for."""
    return secure_random() if simulation_seed is None else simulation_random(simulation_seed)


def run_mean(run: Run, low: float | None, high: float | None, *, clip: bool) -> None:
    """Estimate a mean and show it."""
    check_mechanism(run.mechanism, MEAN_MECHANISMS)
    if low is None or high is None:
        missing = "--low" if low is None else "--high"
        raise InvalidInput(
            f"{missing} is needed: the range must be known beforehand, as reading it off the data would leak"
        )
    ends = (low, high)

    def estimate(columns: Columns, epsilon0: float | NDArray[np.float64], seen: Seen) -> Release:
        return estimate_mean(
            columns.numbers[run.value],
            *ends,
            epsilon0,
            mechanism=run.mechanism,
            seen=seen,
            delta=run.delta,
            clip=clip,
            random=run.random(),
        )

    def show(release: Release) -> None:
        from shuffledp.report.terminal import print_mean

        print_mean(console(), release)

    release = _release(run, estimate, f"What is the mean of {run.value}?", ends)
    _show(run, release, mean_to_json(release), show)


def run_frequency(run: Run, categories: str | None) -> None:
    """Estimate frequencies and show them."""
    check_mechanism(run.mechanism, FREQUENCY_MECHANISMS)
    names = parse_categories(categories)

    def estimate(columns: Columns, epsilon0: float | NDArray[np.float64], seen: Seen) -> Release:
        return estimate_frequency(
            columns.texts[run.value],
            names,
            epsilon0,
            mechanism=run.mechanism,
            seen=seen,
            delta=run.delta,
            random=run.random(),
        )

    def show(release: Release) -> None:
        from shuffledp.report.terminal import print_frequency

        print_frequency(console(), release)

    release = _release(run, estimate, f"How often does each {run.value} occur?", None)
    _show(run, release, frequency_to_json(release), show)


def parse_categories(text: str | None) -> list[str]:
    """Read --categories: a comma-separated list (quotes as in CSV), or a file with one per line."""
    if text is None:
        raise InvalidInput(
            "--categories is needed: they must be known beforehand, as reading them off the data would leak; "
            "write --categories A,B,C or name a text file with one per line"
        )
    if "," in text and not Path(text).exists():
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]
        if not all(names):
            raise InvalidInput(f"--categories {text!r} holds an empty name; take out the comma that is too many")
        return names
    try:
        lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(
            f"--categories {text!r} is neither a list of two or more (A,B,C) nor a file with one per line"
        ) from None
    return [line.strip() for line in lines if line.strip()]


def check_mechanism(name: str, available: tuple[str, ...]) -> None:
    """Refuse a mechanism that is unknown, or not in this version."""
    if name not in available:
        what = "is not in this version" if name in LATER else "is unknown"
        raise InvalidInput(f"--mechanism {name} {what} here; choose {' or '.join(available)}")


def _release(
    run: Run,
    estimate: Callable[[Columns, float | NDArray[np.float64], Seen], Release],
    question: str,
    bounds: tuple[float, float] | None,
) -> Release:
    """Read the columns, estimate, and write the page; its path is reserved before any record is read."""
    with reserved(run.report, "--report") as page:
        numeric, textual = ([run.value], []) if bounds is not None else ([], [run.value])
        with working(f"Reading {run.table.name}"):
            columns = read_columns(run.table, numbers=[*numeric, *run.column_names()], texts=textual)
        epsilon0 = run.budgets()
        budgets = columns.numbers[run.epsilon0] if epsilon0 is None else epsilon0
        seen = parse_seen(run.seen, 1 if run.seen is not None else _level_count(budgets))
        with working("Randomizing, shuffling, estimating"):
            release = estimate(columns, budgets, seen)
        if page is not None:
            from shuffledp.report.page import Answer, render

            answer = Answer(question, release.guarantee, release, bounds)
            page.write(render("A private estimate", [answer], command=COMMAND_LINE.get(), version=version("shuffledp")))
    return release


def _level_count(epsilon0: float | NDArray[np.float64]) -> int:
    return int(np.unique(epsilon0).size)


def _show(run: Run, release: Release, as_json: Mapping[str, Any], show: Callable[[Release], None]) -> None:
    if run.json:
        print(dumps(as_json))
        return
    show(release)
    if run.report is not None:
        console().print(f"Written: {run.report.resolve()}", soft_wrap=True, highlight=False)
