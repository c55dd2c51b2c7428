"""`amplify` and `calibrate`: guarantees for a plan, no record involved."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from shuffledp.accounting import calibrate_epsilon0, calibrate_n, certify
from shuffledp.cli.output import COMMAND_LINE, console, reserved, working
from shuffledp.cli.population import Population, make_setting
from shuffledp.errors import InvalidInput
from shuffledp.guarantee import Guarantee
from shuffledp.report.to_json import dumps, guarantee_to_json
from shuffledp.report.wording import count, down, near, probability, some_levels, up
from shuffledp.setting import Setting

MOST_LEVELS = 1000
"""Levels listed in JSON and on the page (contract)."""


@dataclass(frozen=True)
class Outputs:
    """Where results go: JSON instead of tables, a page, a file with all levels."""

    json: bool = False
    report: Path | None = None
    levels_out: Path | None = None


def run_amplify(setting: Setting, delta: float, outputs: Outputs) -> None:
    """Certify a setting and show the guarantee."""
    with contextlib.ExitStack() as stack:
        page = stack.enter_context(reserved(outputs.report, "--report"))
        every = stack.enter_context(reserved(outputs.levels_out, "--levels-out"))
        with working("Certifying"):
            wanted = MOST_LEVELS if every is None else max(MOST_LEVELS, setting.budgets.levels)
            guarantee = certify(setting, delta, max_levels=wanted)
        if every is not None:
            every.write("epsilon0,delta0,count,epsilon_lower,epsilon_upper\n")
            every.writelines(
                f"{level.epsilon0!r},{level.delta0!r},{level.count},{level.epsilon.lower!r},{level.epsilon.upper!r}\n"
                for level in guarantee.levels
            )
            guarantee = dataclasses.replace(guarantee, levels=tuple(some_levels(guarantee, MOST_LEVELS)))
        if page is not None:
            page.write(plan_page("How private is the shuffled output?", guarantee))
    if outputs.json:
        print(dumps(guarantee_to_json(guarantee)))
        return
    from shuffledp.report.terminal import print_guarantee

    print_guarantee(console(), guarantee)
    for written in (outputs.report, outputs.levels_out):
        if written is not None:
            console().print(f"Written: {written.resolve()}", soft_wrap=True, highlight=False)


def refuse_levels(*others: object) -> None:
    """Calibrate searches over one number, so only one budget for everybody makes sense."""
    if any(other for other in others):
        raise InvalidInput(
            "calibrate looks for one budget, or one number of users, so --level and --budgets do not fit; "
            "give --n N or --epsilon0 E, and check several levels with amplify"
        )


def run_calibrate(
    target: float,
    delta: float,
    epsilon0: float | None,
    n: int | None,
    *,
    randomizer: str,
    seen: str | None,
    rounds: int,
    outputs: Outputs,
) -> None:
    """Answer the inverse question and show what was certified there."""
    if (epsilon0 is None) == (n is None):
        raise InvalidInput(
            "calibrate needs --n N (to find epsilon0) or --epsilon0 E (to find n), not both, not neither"
        )
    # Every option is checked by the setting it will end in; the number looked for is filled in below.
    users = 1 if n is None else n
    shape = make_setting(
        Population(epsilon0=1.0 if epsilon0 is None else epsilon0, n=users),
        randomizer=randomizer,
        seen=seen,
        rounds=rounds,
    )
    with reserved(outputs.report, "--report") as page:
        with working("Searching"):
            if epsilon0 is None:
                found = calibrate_epsilon0(n=users, epsilon=target, delta=delta, randomizer=shape.randomizer)
            else:
                found = calibrate_n(epsilon0=epsilon0, epsilon=target, delta=delta, randomizer=shape.randomizer)
        if page is not None:
            budgets = Population(epsilon0=found.epsilon0, n=found.n).budgets()
            guarantee = certify(dataclasses.replace(shape, budgets=budgets), delta)
            page.write(plan_page(f"What keeps the central epsilon at {near(target)} or less?", guarantee))
    if outputs.json:
        answer = {"epsilon0": found.epsilon0} if n is not None else {"n": found.n}
        print(dumps(answer | {"certified_epsilon": found.certified_epsilon}))
        return
    if n is not None:
        words = f"[bold]epsilon0 = {down(found.epsilon0, 6)}[/] is the largest local budget for {count(n)} users"
    else:
        words = f"[bold]{count(found.n)} users[/] are the fewest at local budget {near(found.epsilon0)}"
    console().print(
        f"{words} with central epsilon at most {near(target)} at delta = {probability(delta)} "
        f"(certified there: {up(found.certified_epsilon)})."
    )
    if outputs.report is not None:
        console().print(f"Written: {outputs.report.resolve()}", soft_wrap=True, highlight=False)


def plan_page(question: str, guarantee: Guarantee) -> str:
    """Render the page of a guarantee without an estimate."""
    from shuffledp.report.page import Answer, render

    return render(
        "A shuffled collection and its guarantee",
        [Answer(question, guarantee)],
        command=COMMAND_LINE.get(),
        version=version("shuffledp"),
    )
