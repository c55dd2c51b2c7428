"""The command `demo`: three questions about the people of UCI Adult, each with its guarantee and the true value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.table import Table

import shuffledp
from shuffledp import __version__
from shuffledp.numerics.floats import next_above
from shuffledp.numerics.randomness import Randomness, choose_random
from shuffledp.questions.question import CONFIDENCE
from shuffledp.releases.release import Release
from shuffledp.releases.wrappers import estimate_frequency, estimate_mean
from shuffledp.report.answer import interval_words, view_of
from shuffledp.report.terminal import NOT_PRIVATE
from shuffledp.report.to_json import dumps, release_to_json
from shuffledp.report.wording import asymptotic_epsilon, count, down, near, probability, share, up, with_error
from shuffledp.setting import LevelGuarantee
from shuffledp.shell.output import COMMAND_LINE, console, reserved, working
from shuffledp.tables import read_columns

TABLE = Path(shuffledp.__file__).parent / "data" / "adult.parquet"
HOURS = (1.0, 99.0)
"""Range of hours per week that the questionnaire allowed."""
INCOMES = ("<=50K", ">50K")
EDUCATIONS = {
    "no diploma": ("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"),
    "high school": ("HS-grad",),
    "some college": ("Some-college", "Assoc-voc", "Assoc-acdm"),
    "bachelor up": ("Bachelors", "Masters", "Prof-school", "Doctorate"),
}
"""The categories, each with the entries of the table that belong to it."""
FRACTIONS = ((0.54, 1.0), (0.37, 2.0), (0.09, 4.0))
"""Shares of cautious, medium and liberal users (those of GSPA, Figure 3), and the local budget of each."""
CONSENTS = ("careful", "medium", "open")
"""Words for the budgets of `FRACTIONS`."""
TABLE_COLUMNS = "hours, income, education, budget (1, 2 or 4) and consent (careful, medium or open)"
"""What `write_table` writes."""
SEEN = "reports"
GSPA = "gspa"
HOW_TO_READ = (
    "Each answer is computed from randomized, shuffled reports only: noise moves it off the true value, and the "
    "interval says how far. Each row of the table is taken as a person. The first number of a bracket is what a real "
    "attack attains; the second is proved."
)


@dataclass(frozen=True)
class DemoAnswer:
    """One question of the demo, with its private answer and the true one.

    Parameters
    ----------
    question : str
        The question in words.
    release : Release
        The private answer.
    truth : tuple of float
        The true value or values.
    bounds : tuple of float or None
        The range of a number; None for shares.
    """

    question: str
    release: Release
    truth: tuple[float, ...]
    bounds: tuple[float, float] | None = None


def run_demo(delta: float, simulation_seed: int | None, *, as_json: bool, report: Path | None) -> None:
    """Ask the three questions, and print the answers.

    Parameters
    ----------
    delta : float
        Central delta of each question, in (0, 1).
    simulation_seed : int or None
        Seed of a simulation, which is not private; None: secure noise.
    as_json : bool
        Whether to print JSON.
    report : Path or None
        HTML page to write.
    """
    random = choose_random(simulation_seed)
    with reserved(report, "--report") as page:
        with working("Asking 48,842 people three questions"):
            answers = ask(delta, random)
        if page is not None:
            page.write(_page(answers))
    if as_json:
        print(
            dumps(
                {
                    "question": "demo",
                    "private": answers[0].release.private,
                    "answers": [_json(a) for a in answers],
                }
            )
        )
        return
    _print(answers, delta)
    if report is not None:
        console().print(f"The same as a page: {report.resolve()}", soft_wrap=True, highlight=False)


def ask(delta: float, random: Randomness) -> list[DemoAnswer]:
    """Return estimates of the mean of hours and of shares of incomes and educations, with independent noise."""
    columns = read_columns(TABLE, numbers=["hours_per_week"], texts=["income", "education"])
    hours = columns.numbers["hours_per_week"]
    epsilon0 = assign_budgets(hours.size, random)
    answers = [
        DemoAnswer(
            "Mean hours per week",
            estimate_mean(hours, *HOURS, epsilon0, mechanism="one-bit", seen=SEEN, delta=delta, random=random),
            (float(hours.mean()),),
            HOURS,
        )
    ]
    for question, records, categories, mechanism in (
        ("Income over 50K", columns.texts["income"], INCOMES, "rr"),
        ("Education", grouped(columns.texts["education"]), tuple(EDUCATIONS), "krr"),
    ):
        release = estimate_frequency(
            records, list(categories), epsilon0, mechanism=mechanism, seen=SEEN, delta=delta, random=random
        )
        answers.append(
            DemoAnswer(question, release, tuple(int((records == name).sum()) / len(records) for name in categories))
        )
    return answers


def grouped(educations: pl.Series) -> pl.Series:
    """Return the entries of the table replaced by the categories of `EDUCATIONS`."""
    groups = {entry: group for group, entries in EDUCATIONS.items() for entry in entries}
    return educations.replace_strict(groups)


def assign_budgets(n: int, random: Randomness) -> NDArray[np.float64]:
    """Return a budget for every user: exact shares by `FRACTIONS`, assigned at random."""
    counts = [round(fraction * n) for fraction, _ in FRACTIONS[1:]]
    levels = np.repeat([budget for _, budget in FRACTIONS], [n - sum(counts), *counts])
    return levels[random.permutation(n)]


def write_table(path: Path) -> None:
    """Write the people, with random budgets and the word of each budget, as the CSV that the examples use."""
    columns = read_columns(TABLE, numbers=["hours_per_week"], texts=["income", "education"])
    hours = columns.numbers["hours_per_week"]
    budgets = assign_budgets(hours.size, choose_random(None)).astype(np.int64)
    frame = pl.DataFrame(
        {
            "hours": hours.astype(np.int64),
            "income": columns.texts["income"],
            "education": grouped(columns.texts["education"]),
            "budget": budgets,
            "consent": np.array(CONSENTS)[np.searchsorted([budget for _, budget in FRACTIONS], budgets)],
        }
    )
    with reserved(path, "--table") as file:
        if file is not None:
            file.write(frame.write_csv())


def total_epsilon(levels: Iterable[LevelGuarantee]) -> float:
    """Return an upper bound on the joint epsilon of all questions for one level: the sum (basic composition)."""
    return next_above(math.fsum(level.epsilon.upper for level in levels))


def worst_total(answers: list[DemoAnswer]) -> float:
    """Return an upper bound on the joint epsilon of all questions for anybody."""
    return total_epsilon(a.release.guarantee.worst for a in answers)


def _json(answer: DemoAnswer) -> dict[str, Any]:
    fields = release_to_json(answer.release)
    truth = answer.truth[0] if answer.bounds is not None else list(answer.truth)
    return fields | {
        "asked": answer.question,
        "truth": truth,
        "gspa_claim": asymptotic_epsilon(answer.release.guarantee, GSPA),
    }


def _page(answers: list[DemoAnswer]) -> str:
    from shuffledp.accounting import drawn_profile
    from shuffledp.report.answer import Answer
    from shuffledp.report.page import render

    total_delta = len(answers) * answers[0].release.guarantee.delta
    return render(
        "Three private estimates of 48,842 people",
        [
            Answer(a.question, a.release.guarantee, a.release, a.truth, profile=drawn_profile(a.release.guarantee))
            for a in answers
        ],
        command=COMMAND_LINE.get(),
        version=__version__,
        remark="The people of UCI Adult (Becker and Kohavi 1996, CC BY 4.0), with budgets drawn at random. "
        f"Whoever answers all three questions is protected by ε ≤ {up(worst_total(answers))} in total "
        f"at δ = {probability(total_delta)}, the sum of the three guarantees.",
    )


def _print(answers: list[DemoAnswer], delta: float) -> None:
    """Print answers, guarantees, and how to read them: 40 lines of 80 columns, the first output that users see."""
    out = console()
    if not answers[0].release.private:
        out.print(NOT_PRIVATE, style="bold red")
    out.print(_answers_table(answers))
    out.print(_guarantees_table(answers, delta))
    out.print(HOW_TO_READ)
    most = near(answers[0].release.guarantee.levels[-1].epsilon0)
    out.print(
        f"Whoever answers all three questions is protected by epsilon <= {up(worst_total(answers), 3)} at delta = "
        f"{probability(len(answers) * delta)}: the guarantees add up. If somebody sees a report before it is shuffled, "
        f"only the own budget protects: at most {most} for each question.",
        highlight=False,
    )


def _answers_table(answers: list[DemoAnswer]) -> Table:
    table = Table(title=f"{count(answers[0].release.n)} people of UCI Adult, three questions", title_justify="left")
    for heading in ("question", "estimate", f"{CONFIDENCE:.0%} interval", "true value"):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for a in answers:
        if a.bounds is not None:
            low, high = a.release.confidence_interval(CONFIDENCE)
            numbers = (a.release.estimate, low, high, a.truth[0])
            value, low, high, truth = (with_error(float(x), float(a.release.standard_error)) for x in numbers)
            table.add_row(a.question, value, f"{low} to {high}", truth)
            continue
        rows = list(zip(view_of(a.release).entries(), a.truth, strict=True))
        if len(rows) > 2:
            table.add_section()
            table.add_row(a.question, "", "", "")
        for row, truth in rows if len(rows) > 2 else rows[1:]:  # of two shares the second tells both
            label = f"  {row.name}" if len(rows) > 2 else a.question
            table.add_row(label, share(row.value), interval_words(row), share(truth))
    return table


def _guarantees_table(answers: list[DemoAnswer], delta: float) -> Table:
    """Return a row per question and a column per level: the epsilon that an attack attains, and the proven one."""
    table = Table(title=f"What they cost: central epsilon at delta = {probability(delta)}", title_justify="left")
    table.add_column("own budget")
    levels = [a.release.guarantee.levels for a in answers]
    for level in levels[0]:
        table.add_column(f"{near(level.epsilon0)}: {count(level.count)} people", justify="right")
    for a in answers:
        ends = (level.epsilon for level in a.release.guarantee.levels)
        table.add_row(a.question, *(f"{down(end.lower, 3)} to {up(end.upper, 3)}" for end in ends))
    table.add_section()
    totals = (total_epsilon(same) for same in zip(*levels, strict=True))
    table.add_row("all three together", *(f"at most {up(total, 3)}" for total in totals))
    return table
