"""The command `amplify`, which certifies a plan without any record, and `calibrate`, which asks the inverse.

`calibrate` answers each question by one search of the library.

`calibrate --find dummies` finds how many dummies keep what every level is promised, whatever everybody else does.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from shuffledp import __version__
from shuffledp.accounting import (
    DUMMIES_LAWS,
    Calibration,
    DummiesNeeded,
    calibrate_batch,
    calibrate_dummies,
    calibrate_epsilon0,
    calibrate_n,
    calibrate_rounds,
    calibrate_scale,
    certify,
    profile_epsilons,
    renyi_points,
    worst_profile,
)
from shuffledp.cli.population import GAUSSIAN_NEEDS, Population, TypedSituation, parse_randomizer
from shuffledp.dummies import check_family
from shuffledp.errors import MAX_EPSILON0, InvalidInput, choice, shown
from shuffledp.report.to_json import budgets_to_json, dummies_to_json, dumps, guarantee_to_json, mu_to_json
from shuffledp.report.wording import (
    count,
    counted,
    covers,
    down,
    dummies_notes,
    enumerated,
    guarantee_notes,
    large_delta_notes,
    near,
    over_rounds,
    probability,
    situation,
    some_levels,
    two_values_notes,
    unshuffled,
    up,
)
from shuffledp.setting import Guarantee, Setting
from shuffledp.shell.output import COMMAND_LINE, console, reserved, working

# The command `amplify`: the guarantee of a plan, without any record.


MOST_LEVELS = 1000
"""Largest number of levels listed in JSON and on the page."""
OUTSIDE = 1e-3
"""Share of delta with which more than the mu that JSON states may be revealed."""
CURVE_POINTS = 61
"""Number of evenly spread points of a written privacy profile."""
CURVE_DEPTH = 1e-6
"""Ratio of the smallest delta of a written profile to the requested delta."""


@dataclass(frozen=True)
class CalibrationOutputs:
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
        paths = {
            "--report": self.report,
            "--levels-out": self.levels_out,
            "--curve": self.curve,
            "--renyi": self.renyi,
            "--board": self.board,
        }
        return {option: path for option, path in paths.items() if path is not None}


def run_amplify(setting: Setting, delta: float, outputs: CalibrationOutputs, bounds: str | None) -> None:
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
    for note in (*dummies_notes(guarantee), *two_values_notes(guarantee.setting)):
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


def tell_written(outputs: CalibrationOutputs) -> None:
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


Find = Literal["epsilon0", "n", "rounds", "scale"]
NEEDS: dict[Find, str] = {
    "epsilon0": "--n N, without --epsilon0, --level or --budgets",
    "n": "--epsilon0 E without --n, or --level or --budgets (whose counts then tell the proportions)",
    "rounds": "a whole population: --epsilon0 E --n N, or --level, or --budgets",
    "scale": "a whole population: --epsilon0 E --n N, or --level, or --budgets",
}
"""Quantities that can be searched for, and the options that each search needs."""
MOST_SHOWN = 12
"""Largest number of levels listed for people."""


def run_calibrate(
    target: float,
    delta: float,
    find: str | None,
    population: Population,
    question: TypedSituation,
    outputs: CalibrationOutputs,
) -> None:
    """Run the search, and print its result with the guarantee certified there.

    Parameters
    ----------
    target, delta : float
        The wanted central epsilon (nats) and delta.
    find : str or None
        What is searched for, the option --find; None: what the other options leave open.
    population : Population
        The population, as typed.
    question : TypedSituation
        The other parts of the setting, as typed.
    outputs : Outputs
        Where the result is written.
    """
    wanted = what_to_find(find, population)
    if wanted == "rounds" and question.rounds != 1:
        raise InvalidInput(f"--find rounds looks for the number of rounds; leave --rounds {question.rounds} out")
    with reserved(outputs.report, "--report") as page:
        with working("Searching"):
            calibration = search(wanted, target, delta, population, question)
        if page is not None:
            with working("Certifying") as progress:
                wanted_words = f"central epsilon at most {near(target)} at delta = {probability(delta)}"
                request = f"Asked for: {wanted_words}. {unshuffled(calibration.setting)}"
                page.write(
                    plan_page(
                        request,
                        certify(calibration.setting, delta, progress=progress),
                        "".join(headline(wanted, calibration)),
                    )
                )
    if outputs.json:
        print(dumps(_as_json(wanted, calibration)))
        return
    _show(wanted, calibration, target)
    tell_written(outputs)


def search(find: Find, target: float, delta: float, population: Population, question: TypedSituation) -> Calibration:
    """Return the result of the library's search.

    Parameters
    ----------
    find : str
        The quantity to find, from `what_to_find`.
    target, delta : float
        The central guarantee that must hold (epsilon in nats).
    population : Population
        The population options, without the quantity to find.
    question : TypedSituation
        The other options.
    """
    several = bool(population.levels) or population.file is not None
    if find in ("rounds", "scale") or several:
        setting = question.about(population.budgets())
        ask = {"rounds": calibrate_rounds, "scale": calibrate_scale}.get(find, calibrate_batch)
        return ask(setting, target, delta)
    population.check_columns()
    if question.randomizer == "gaussian":
        raise InvalidInput(f"{GAUSSIAN_NEEDS}; write --level E,DELTA0:COUNT and --find scale, or --find n")
    rest = question.situation(levels=1)
    if population.n is not None:
        return calibrate_epsilon0(n=population.users(), epsilon=target, delta=delta, **rest)
    return calibrate_n(epsilon0=cast(float, population.epsilon0), epsilon=target, delta=delta, **rest)


def what_to_find(find: str | None, population: Population) -> Find:
    """Return the quantity to find: the one named by --find, or the single number that the population lacks.

    Parameters
    ----------
    find : str or None
        The text after --find; None if it was left out.
    population : Population
        The population options, as typed.

    Raises
    ------
    InvalidInput
        If nothing or too much is missing, or --find contradicts the other options.
    """
    several = bool(population.levels) or population.file is not None
    numbers = (population.epsilon0 is not None, population.n is not None)
    if several and any(numbers):
        population.budgets()  # two ways at once; it tells
    possible: Sequence[Find] = ("n", "rounds", "scale") if several else _POSSIBLE[numbers]
    if not possible:
        raise InvalidInput(
            "calibrate needs --n N (to find epsilon0), --epsilon0 E (to find n), or a whole population and --find"
        )
    if find is None and len(possible) > 1:
        ways = ", ".join(f"--find {way}" for way in possible[:-1])
        raise InvalidInput(f"the population is complete, so say what to look for: {ways} or --find {possible[-1]}")
    if find is None:
        return possible[0]
    wanted: Find = choice(find, "--find", NEEDS)
    if wanted not in possible:
        raise InvalidInput(f"--find {wanted} needs {NEEDS[wanted]}")
    return wanted


_POSSIBLE: dict[tuple[bool, bool], Sequence[Find]] = {
    (False, False): (),
    (False, True): ("epsilon0",),
    (True, False): ("n",),
    (True, True): ("rounds", "scale"),
}
"""Quantities that can be found, by whether epsilon0 and n are given."""


def _as_json(find: Find, calibration: Calibration) -> dict[str, Any]:
    budgets = calibration.setting.budgets
    answers: dict[Find, Any] = {
        "epsilon0": calibration.epsilon0,
        "n": calibration.n,
        "rounds": calibration.rounds,
        "scale": calibration.scale,
    }
    levels = budgets_to_json(budgets, MOST_LEVELS) if find in ("n", "scale") and budgets.levels > 1 else {}
    capped = {"capped": True} if calibration.capped else {}
    capped |= {"unshuffled": dict(zip(("a_round", "in_all"), calibration.setting.unshuffled(), strict=True))}
    return {find: answers[find], "certified_epsilon": calibration.certified_epsilon} | capped | levels


def headline(find: Find, calibration: Calibration) -> tuple[str, str]:
    """Return the number found and words for what it is the largest or smallest of, or that the search ended there.

    Parameters
    ----------
    find : str
        The quantity that was searched for.
    calibration : Calibration
        The result.
    """
    budgets, users = calibration.setting.budgets, counted(calibration.n, "user")
    if calibration.capped:  # not the largest: only the largest that was looked at
        beyond = "the largest that is tried, is possible for " + users
        return {
            "epsilon0": (f"epsilon0 = {near(calibration.epsilon0)}", f", {beyond}"),
            "rounds": (
                f"At least {count(calibration.rounds)} rounds",
                f" (no larger number is tried) are possible for {users}",
            ),
            "scale": (
                f"A factor of {down(calibration.scale, 6)}",
                f" on every epsilon0, which brings all of them to {MAX_EPSILON0:g}, {beyond}",
            ),
        }[find]
    mix = f", mixed as stated from {count(budgets.levels)} budget levels, are the fewest"
    return {
        "epsilon0": (f"epsilon0 = {down(calibration.epsilon0, 6)}", f" is the largest local budget for {users}"),
        "n": (users, mix if budgets.levels > 1 else f" are the fewest at local budget {near(calibration.epsilon0)}"),
        "rounds": (
            f"{count(calibration.rounds)} round{'s are' if calibration.rounds > 1 else ' is'}",
            f" the most for {users}",
        ),
        "scale": (f"A factor of {down(calibration.scale, 6)}", f" on every epsilon0 is the largest for {users}"),
    }[find]


def _show(find: Find, calibration: Calibration, target: float) -> None:
    setting, out = calibration.setting, console()
    budgets = setting.budgets
    several = budgets.levels > 1
    number, of_what = headline(find, calibration)
    out.print(
        f"[bold]{number}[/]{of_what} with central epsilon at most {near(target)} at delta = "
        f"{probability(calibration.delta)}{over_rounds(setting)} "
        f"(certified there: {up(calibration.certified_epsilon)}).",
        highlight=False,
    )
    out.print(unshuffled(setting), highlight=False)
    if several and find in ("n", "scale"):
        rows = zip(budgets.epsilons.tolist(), budgets.counts.tolist(), strict=True)
        listed = [f"{count(users)} at {down(epsilon, 6)}" for epsilon, users in rows]
        more = f", ... ({count(budgets.levels)} levels)" if budgets.levels > MOST_SHOWN else ""
        out.print(f"Users at each local budget: {', '.join(listed[:MOST_SHOWN])}{more}.", highlight=False)
    covered = covers(setting)
    out.print(
        f"{situation(setting)}, seen = {setting.seen}."
        + (f" The guarantee holds {enumerated(covered)}." if covered else ""),
        style="dim",
        highlight=False,
    )


@dataclass(frozen=True)
class DummiesWish:
    """The options of --find dummies, as typed.

    Parameters
    ----------
    promises : tuple of str
        Texts such as ``"0.5=0.1"``: a local budget, and the central epsilon promised to it.
    epsilon0, target_epsilon : float or None
        A single level and its promise, instead.
    randomizer : str
        The text after --randomizer: one family for all questions, or one for each, separated by commas.
    questions : int
        Number of questions of one family.
    law : str or None
        The text after --dummies.
    reports : int
        Number of reports of one person to each question.
    others : tuple of str
        Typed options that have no meaning here.
    """

    promises: tuple[str, ...]
    epsilon0: float | None
    target_epsilon: float | None
    randomizer: str
    questions: int
    law: str | None
    reports: int
    others: tuple[str, ...]


def run_calibrate_dummies(wish: DummiesWish, delta: float, *, json: bool) -> None:
    """Find the number of dummies, and print it with the guarantees certified with them.

    Parameters
    ----------
    wish : DummiesWish
        The promises and questions, as typed.
    delta : float
        Central delta, in (0, 1).
    json : bool
        Whether to print JSON.
    """
    if wish.others:
        raise InvalidInput(
            f"{wish.others[0]} does not belong to --find dummies: the guarantee of dummies alone holds for any number "
            "of people, whatever the others do; leave it out"
        )
    if wish.law not in (None, *DUMMIES_LAWS):
        raise InvalidInput(f"--dummies is {' or '.join(DUMMIES_LAWS)} with --find dummies; got {shown(wish.law)}")
    promises = _promises(wish)
    families = [check_family(parse_randomizer(name)) for name in wish.randomizer.split(",")]
    with working("Searching"):
        needed = calibrate_dummies(
            promises,
            families[0] if len(families) == 1 else families,
            delta,
            wish.questions,
            law=wish.law or "uniform",
            reports=wish.reports,
        )
    if json:
        print(dumps(_dummies_as_json(needed)))
        return
    _show_dummies(needed, wish)


def _promises(wish: DummiesWish) -> list[tuple[float, float]]:
    """Return the promises as pairs (local budget, central epsilon)."""
    given = [value is not None for value in (wish.epsilon0, wish.target_epsilon)]
    if bool(wish.promises) == all(given) or (wish.promises and any(given)):
        raise InvalidInput(
            "--find dummies needs --promise E=EPSILON for each level (repeated), or one level's --epsilon0 E and "
            "--target-epsilon EPSILON"
        )
    if wish.epsilon0 is not None and wish.target_epsilon is not None:
        return [(wish.epsilon0, wish.target_epsilon)]
    promises: list[tuple[float, float]] = []
    for text in wish.promises:
        budget, equals, promise = text.partition("=")
        try:
            promises.append((float(budget), float(promise)))
        except ValueError:
            what = "is not E=EPSILON" if equals else "lacks what it promises"
            raise InvalidInput(f"--promise {shown(text)} {what}; write it like 0.5=0.1") from None
    return promises


def _dummies_as_json(needed: DummiesNeeded) -> dict[str, Any]:
    rows = zip(needed.promises, needed.floors, strict=True)
    return {
        "dummies": [dummies_to_json(each) for each in needed.dummies],
        "delta": needed.delta,
        "levels": [
            {"epsilon0": epsilon0, "promise": promise, "floor": {"lower": floor.lower, "upper": floor.upper}}
            for (epsilon0, promise), floor in rows
        ],
    }


def _show_dummies(needed: DummiesNeeded, wish: DummiesWish) -> None:
    out = console()
    listed = ", ".join(count(each) for each in needed.counts)
    several = len(needed.counts) > 1
    each = " (question by question)" if several else ""
    out.print(
        f"[bold]{listed} dummies[/]{each} are the fewest that keep every promise at "
        f"delta = {probability(needed.delta)}, for every batch and whatever everybody else sends"
        + (f"; --dummies {needed.dummies[0].name}." if not several else "."),
        highlight=False,
    )
    for (epsilon0, promise), floor in zip(needed.promises, needed.floors, strict=True):
        out.print(
            f"Local budget {near(epsilon0)}: promised {near(promise)}, certified {up(floor.upper)}"
            f"{' over all questions' if several else ''}.",
            highlight=False,
        )
    if wish.reports > 1:
        out.print(f"This holds for {wish.reports} reports of one person to each question.", style="dim")
