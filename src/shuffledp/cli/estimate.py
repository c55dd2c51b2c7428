"""`mean` and `frequency`: from a table to a private estimate with its guarantee; and what all estimates share."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from shuffledp.cli.output import COMMAND_LINE, console, reserved, working
from shuffledp.cli.population import parse_seen
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import Randomness, secure_random, simulation_random
from shuffledp.protocol import RangeRelease, Release
from shuffledp.protocol.mechanisms import FREQUENCY_MECHANISMS
from shuffledp.protocol.numbers import ADDED_NOISE, NUMBER_MECHANISMS, NUMBER_SEEN
from shuffledp.protocol.pipeline import FREQUENCY_SEEN
from shuffledp.protocol.tabular import RowBudgets, frequency_of_table, mean_of_table
from shuffledp.protocol.weights import WEIGHTS, Weights
from shuffledp.report.to_json import dumps, frequency_to_json, mean_to_json
from shuffledp.setting import Seen
from shuffledp.tables import Table

if TYPE_CHECKING:
    from shuffledp.report.answer import Kind

R = TypeVar("R", Release, RangeRelease)


class About(TypedDict, total=False):
    """What a page must know besides question and release, see `shuffledp.report.answer.Answer`."""

    bounds: tuple[float, float]
    kind: Kind
    simplex: bool


@dataclass(frozen=True)
class Run:
    """The options all estimates share, as typed; `mechanism` is empty where there is no choice."""

    table: Path
    value: str
    epsilon0: str
    delta: float
    seen: str | None
    mechanism: str
    simulation_seed: int | None
    json: bool
    report: Path | None
    consent: tuple[str, ...] = ()
    delta0: float = 0.0
    weights: Weights = "population"

    def __post_init__(self) -> None:
        if self.weights == "precision" and self.seen != "levels":
            got = "--seen was left out" if self.seen is None else f"got --seen {self.seen}"
            raise InvalidInput(
                f"--weights precision weighs the reports of each budget level, so it needs --seen levels; {got}"
            )

    def random(self) -> Randomness:
        """Open the source of noise: secure, unless a simulation was asked for."""
        return choose_random(self.simulation_seed)

    def budgets(self) -> RowBudgets:
        """Read where the budgets come from: one number, a column of numbers, or a column of words."""
        words = parse_consent(self.consent)
        where: float | str = self.epsilon0
        with contextlib.suppress(ValueError):
            where = float(self.epsilon0)
        if words is not None and isinstance(where, float):
            raise InvalidInput(
                "--consent says what the words of a column stand for, so --epsilon0 must name that column; "
                f"got {self.epsilon0}; name the column, or leave --consent out"
            )
        return RowBudgets(where, words, self.delta0)

    def view(self, known: tuple[Seen, ...]) -> Seen:
        """Read --seen, one of those known, which may be left out where there is one budget."""
        budgets = self.budgets()
        if self.seen is not None or not budgets.columns:
            return parse_seen(self.seen, 1, known)
        return parse_seen(None, budgets.population(Table.of(self.table)).levels, known)

    @contextlib.contextmanager
    def explaining(self) -> Generator[None]:
        """Tell of --consent where the column of budgets holds words."""
        try:
            yield
        except InvalidInput as error:
            words = str(error).startswith(f"{self.epsilon0} in row ") and "not a number; " in str(error)
            if not words or self.consent:
                raise
            raise InvalidInput(f"{error}; if words stand for budgets, add --consent WORD=E for each") from None


def choose_random(simulation_seed: int | None) -> Randomness:
    """Choose secure randomness, unless a simulation was asked for."""
    return secure_random() if simulation_seed is None else simulation_random(simulation_seed)


def parse_consent(texts: tuple[str, ...]) -> dict[str, float] | None:
    """Read --consent WORD=E, repeated; None without."""
    words: dict[str, float] = {}
    for text in texts:
        word, equals, budget = text.rpartition("=")
        try:
            epsilon0 = float(budget)
        except ValueError:
            equals = ""
            epsilon0 = 0.0
        if not equals or not word.strip():
            raise InvalidInput(f"--consent must be WORD=E with a number E, such as strict=0.1; got {text!r}")
        if word.strip() in words:
            raise InvalidInput(f"--consent gives {word.strip()!r} twice; give each word one budget")
        words[word.strip()] = epsilon0
    return words or None


def parse_weights(text: str) -> Weights:
    """Read --weights."""
    for known in WEIGHTS:
        if text == known:
            return known
    raise InvalidInput(f"--weights must be one of {', '.join(WEIGHTS)}; got {text!r}")


def run_mean(run: Run, low: float | None, high: float | None, *, clip: bool) -> None:
    """Estimate a mean and show it."""
    check_mechanism(run.mechanism, tuple(NUMBER_MECHANISMS))
    ends = parse_range(low, high)
    # Of sums of added noise the library says why they are refused.
    seen = FREQUENCY_SEEN if run.mechanism in ADDED_NOISE and run.seen != "sum" else NUMBER_SEEN

    def estimate() -> Release:
        return mean_of_table(
            run.table, run.value, *ends, run.budgets(), mechanism=run.mechanism, seen=run.view(seen),
            delta=run.delta, clip=clip, weights=run.weights, random=run.random(),
        )  # fmt: skip

    def show(release: Release) -> None:
        from shuffledp.report.terminal import print_mean

        print_mean(console(), release)

    release = release_with_page(run, estimate, f"What is the mean of {run.value}?", bounds=ends, kind="mean")
    show_release(run, mean_to_json(release), lambda: show(release))


def run_frequency(run: Run, categories: str | None, *, simplex: bool) -> None:
    """Estimate frequencies and show them."""
    check_mechanism(run.mechanism, tuple(FREQUENCY_MECHANISMS))
    names = parse_categories(categories)
    if run.delta0:
        raise InvalidInput(f"--delta0 {run.delta0:g} is of no use here: no mechanism for categories needs it")

    def estimate() -> Release:
        return frequency_of_table(
            run.table, run.value, names, run.budgets(), mechanism=run.mechanism,
            seen=run.view(FREQUENCY_SEEN), delta=run.delta, weights=run.weights, random=run.random(),
        )  # fmt: skip

    def show(release: Release) -> None:
        from shuffledp.report.terminal import print_frequency

        print_frequency(console(), release, simplex=simplex)

    question = f"How often does each {run.value} occur?"
    release = release_with_page(run, estimate, question, kind="frequency", simplex=simplex)
    show_release(run, frequency_to_json(release, simplex=simplex), lambda: show(release))


def parse_range(low: float | None, high: float | None) -> tuple[float, float]:
    """Read --low and --high, both needed; what they may be is the library's to say."""
    if low is None or high is None:
        missing = "--low" if low is None else "--high"
        raise InvalidInput(
            f"{missing} is needed: the range must be known beforehand, as reading it off the data would leak"
        )
    return low, high


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
    names = [line.strip() for line in lines if line.strip()]
    if len(names) < 2:
        raise InvalidInput(f"--categories {text} holds {len(names)} of the categories; write two or more, one per line")
    return names


def check_mechanism(name: str, available: tuple[str, ...]) -> None:
    """Refuse a mechanism that is unknown."""
    if name not in available:
        raise InvalidInput(f"--mechanism {name} is unknown here; choose one of {', '.join(available)}")


def release_with_page(run: Run, estimate: Callable[[], R], question: str, **about: Unpack[About]) -> R:
    """Estimate, and write the page; its path is reserved before any record is read.

    Parameters
    ----------
    run : Run
        The options.
    estimate : callable
        Makes the release.
    question : str
        In words, for the page.
    **about
        What else the page's `Answer` needs.
    """
    with reserved(run.report, "--report") as page:
        with working(f"Reading {run.table.name}, randomizing, counting"), run.explaining():
            release = estimate()
        if page is not None:
            from shuffledp.report.page import Answer, render

            answer = Answer(question, release.guarantee, release, **about)
            page.write(render("A private estimate", [answer], command=COMMAND_LINE.get(), version=version("shuffledp")))
    return release


def show_release(run: Run, as_json: Mapping[str, Any], show: Callable[[], None]) -> None:
    """Print the release for a program, or for a person."""
    if run.json:
        print(dumps(as_json))
        return
    show()
    if run.report is not None:
        console().print(f"Written: {run.report.resolve()}", soft_wrap=True, highlight=False)
