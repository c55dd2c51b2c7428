"""The command `amplify`: the guarantee of a plan, without any record."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shuffledp import __version__
from shuffledp.accounting import certify, profile_epsilons, renyi_points, worst_profile
from shuffledp.report.to_json import dumps, guarantee_to_json, mu_to_json
from shuffledp.report.wording import dummies_notes, guarantee_notes, large_delta_notes, some_levels
from shuffledp.setting import Guarantee, Setting
from shuffledp.shell.output import COMMAND_LINE, console, reserved, working

MOST_LEVELS = 1000
"""Largest number of levels listed in JSON and on the page."""
OUTSIDE = 1e-3
"""Share of delta with which more than the mu that JSON states may be revealed."""
CURVE_POINTS = 61
"""Number of evenly spread points of a written privacy profile."""
CURVE_DEPTH = 1e-6
"""Ratio of the smallest delta of a written profile to the requested delta."""


@dataclass(frozen=True)
class Outputs:
    """The options that say where results go: JSON instead of tables, and the path of each file, None without it.

    The files are an HTML page (`report`), all levels, the privacy profile (`curve`), Renyi divergences and a page for a
    board.
    """

    json: bool = False
    report: Path | None = None
    levels_out: Path | None = None
    curve: Path | None = None
    renyi: Path | None = None
    board: Path | None = None

    @property
    def files(self) -> dict[str, Path]:
        """The requested files, by option."""
        asked = {
            "--report": self.report,
            "--levels-out": self.levels_out,
            "--curve": self.curve,
            "--renyi": self.renyi,
            "--board": self.board,
        }
        return {option: path for option, path in asked.items() if path is not None}


def run_amplify(setting: Setting, delta: float, outputs: Outputs, bounds: str | None) -> None:
    """Certify a setting, print the guarantee, and write the files that were asked for.

    Parameters
    ----------
    setting : Setting
        The setting.
    delta : float
        Central delta, in (0, 1).
    outputs : Outputs
        Where the result is written.
    bounds : {"certified", "all"} or None
        Which bounds are listed; "all" evaluates every published bound too. None lists none of them.
    """
    with contextlib.ExitStack() as stack:
        reservations = {o: stack.enter_context(reserved(path, o)) for o, path in outputs.files.items()}
        files = {option: file for option, file in reservations.items() if file is not None}
        every = outputs.levels_out is not None
        with working("Certifying") as progress:
            wanted = max(MOST_LEVELS, setting.budgets.levels) if every else MOST_LEVELS
            whole = certify(setting, delta, max_levels=wanted, published=bounds == "all", progress=progress)
            guarantee = dataclasses.replace(whole, levels=tuple(some_levels(whole, MOST_LEVELS))) if every else whole
            for option, file in files.items():
                file.writelines(_contents(option, guarantee, whole))
            mu = mu_to_json(guarantee, OUTSIDE * delta) if outputs.json else None
    if mu is not None:
        print(dumps(guarantee_to_json(guarantee) | {"mu": mu, "notes": guarantee_notes(guarantee)}))
        return
    from shuffledp.report.terminal import print_guarantee

    for note in large_delta_notes(guarantee):  # before the number, which means little at such a delta
        console().print(f"[bold red]Warning:[/] {note}")
    print_guarantee(console(), guarantee, bounds=bounds is not None)
    for note in dummies_notes(guarantee):
        console().print(note)
    tell_written(outputs)


def _contents(option: str, guarantee: Guarantee, whole: Guarantee) -> Iterable[str]:
    """Return the text of the file that an option asks for, in pieces."""
    if option == "--report":
        return [plan_page("How private is the shuffled output?", guarantee)]
    if option == "--board":
        from shuffledp.cli.board import board_of

        return [board_of([guarantee], guarantee.epsilon.upper, "What is promised to the people who are asked")]
    if option == "--levels-out":
        return _levels_csv(whole)
    return _curve_csv(guarantee) if option == "--curve" else _renyi_csv(guarantee)


def _levels_csv(guarantee: Guarantee) -> Iterator[str]:
    yield "epsilon0,delta0,count,epsilon_lower,epsilon_upper\n"
    for level in guarantee.levels:
        yield f"{level.epsilon0!r},{level.delta0!r},{level.count},{level.epsilon.lower!r},{level.epsilon.upper!r}\n"


def _curve_csv(guarantee: Guarantee) -> Iterator[str]:
    profile = worst_profile(guarantee)
    yield "epsilon,delta_upper,delta_lower\n"
    for epsilon in profile_epsilons(guarantee, profile, CURVE_POINTS, CURVE_DEPTH):
        delta = profile.delta(epsilon)
        yield f"{epsilon!r},{delta.upper!r},{delta.lower!r}\n"


def _renyi_csv(guarantee: Guarantee) -> Iterator[str]:
    yield "order,lower,upper\n"
    for order, divergence in renyi_points(worst_profile(guarantee)):
        yield f"{order!r},{divergence.lower!r},{divergence.upper!r}\n"


def tell_written(outputs: Outputs) -> None:
    """Print the names of the files that were written."""
    for path in outputs.files.values():
        console().print(f"Written: {path.resolve()}", soft_wrap=True, highlight=False)


def plan_page(question: str, guarantee: Guarantee, heading: str = "A shuffled collection and its guarantee") -> str:
    """Return the page of a guarantee without an estimate.

    Parameters
    ----------
    question : str
        The question in words.
    guarantee : Guarantee
        The guarantee that answers it.
    heading : str
        Title of the page.
    """
    from shuffledp.accounting import drawn_profile
    from shuffledp.report.answer import Answer
    from shuffledp.report.page import render

    return render(
        heading,
        [Answer(question, guarantee, profile=drawn_profile(guarantee))],
        command=COMMAND_LINE.get(),
        version=__version__,
    )
