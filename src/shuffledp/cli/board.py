"""`--board FILE`: a page for a board, with one sentence, one picture, three enemies, and what would make it false.

What each enemy can do is certified first, for `amplify`, `plan` and `release`; the page computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from html import escape

from markupsafe import Markup

from shuffledp import __version__
from shuffledp.accounting import certify
from shuffledp.errors import printable
from shuffledp.ledger import Spending, composed_epsilon
from shuffledp.numerics.floats import decimal_up
from shuffledp.report.page import WIDTH, Axis, page_template
from shuffledp.report.wording import count, counted, odds_factor, percent_down, probability, up
from shuffledp.setting import Guarantee, Setting
from shuffledp.shell.output import COMMAND_LINE

_NAMES, _ROW, _WIDEST = 8.0, 58.0, 50.0
"""Left edge, height of a row, and the epsilon from which on all bars have the same length."""


@dataclass(frozen=True)
class Enemy:
    """An attacker, and the guarantee that holds against that attacker.

    Parameters
    ----------
    who : str
        Such as "Whoever reads the result".
    epsilon : float
        Nats, certified from above; inf: nothing is promised.
    delta : float
        Probability with which the bound may fail.
    """

    who: str
    epsilon: float
    delta: float

    @property
    def factor(self) -> str:
        """The factor by which any conclusion may become likelier, in words."""
        return "without a limit" if math.isinf(self.epsilon) else f"up to {odds_factor(self.epsilon)} times"


@dataclass(frozen=True)
class Board:
    """The content of a page for a board.

    Parameters
    ----------
    heading : str
        Title of the page.
    settings : tuple of Setting
        The certified settings: one for each answer, all about the same people.
    enemies : tuple of Enemy
        Three attackers, first the one against whom the promise is made.
    besides : tuple of str
        Sentences below the first one, such as the error to expect.
    people : str
        What is counted: "people", or "rows, taken as people".
    n : int, optional
        Number of people in all groups; that of the first setting by default, where there are no groups.
    """

    heading: str
    settings: tuple[Setting, ...]
    enemies: tuple[Enemy, ...]
    besides: tuple[str, ...] = ()
    people: str = "people"
    n: int | None = None

    @property
    def sentence(self) -> str:
        """The promise in one sentence."""
        first, setting = self.enemies[0], self.settings[0]
        everybody = count(setting.budgets.n if self.n is None else self.n)
        whom = "any one" if setting.group_size == 1 else f"any {count(setting.group_size)}"
        of = "" if setting.rounds == 1 else f", after all {count(setting.rounds)} rounds"
        if math.isinf(first.epsilon):
            return f"Nothing is promised to the {everybody} {self.people} at this delta."
        return (
            f"Whoever reads the result can become at most {odds_factor(first.epsilon)} times surer of anything about "
            f"{whom} of the {everybody} {self.people}{of}, but for a chance of "
            f"{probability(first.delta)}."
        )


def made_false_by(settings: Sequence[Setting]) -> list[str]:
    """Return the circumstances that would make the first number false, derived from the settings.

    Parameters
    ----------
    settings : sequence of Setting
        The certified settings, at least one.
    """
    setting = settings[0]
    named = {"a randomizer within budget" if each.law is None else each.randomizer_name for each in settings}
    circumstances = [
        "One hand runs the shuffler and reads the result, or sees reports before they are mixed: then the last of the "
        "three numbers holds.",
        "The same people are asked again: every further round adds to the number.",
        "A budget, or the decision to take part, depends on what the person would answer.",
        f"Reports are drawn by something else than {' and '.join(sorted(named))}, or are sent again instead of drawn "
        "afresh.",
    ]
    if setting.seen == "reports" and setting.budgets.levels > 1:
        circumstances.append("A report shows which local budget it was made with.")
    if setting.seen == "sum":
        circumstances.append("A single report is kept, logged or seen by anybody, and not only the sum.")
    allowed = [counted(setting.colluding, "person", "people") + " on the reader's side"] if setting.colluding else []
    allowed += [f"{percent_down(setting.missing)} who stay away or send junk"] if setting.missing else []
    if allowed:
        circumstances.append(f"More of the people are not there, or not honest, than {' and '.join(allowed)}.")
    else:
        circumstances.append(
            "Some of the people are made up, stay away, or collude with the reader: the number counts on all."
        )
    if setting.dummies is not None:
        circumstances.append(
            "The shuffler leaves out the reports of nobody that it promised to add, or tells which they are."
        )
    if setting.linked and setting.same_record:
        circumstances.append("A person's record changes between the rounds.")
    return circumstances


def board_page(board: Board, *, command: str, version: str) -> str:
    """Return the self-contained HTML page.

    Parameters
    ----------
    board : Board
        The content.
    command : str
        The command that made it.
    version : str
        Version of the library.
    """
    return page_template("board.html").render(
        heading=printable(board.heading),
        sentence=board.sentence,
        besides=board.besides,
        enemies=board.enemies,
        picture=Markup(enemies_picture(board.enemies)),
        false_by=made_false_by(board.settings),
        command=printable(command),
        version=version,
    )


def enemies_picture(enemies: Sequence[Enemy]) -> str:
    """Return an SVG of how much surer each attacker may become: bars whose length grows with epsilon.

    Parameters
    ----------
    enemies : sequence of Enemy
        From the weakest to the strongest.
    """
    longest = max(0.1, *(min(enemy.epsilon, _WIDEST) for enemy in enemies))
    axis = Axis(0.0, longest, _NAMES, WIDTH - 96)
    parts: list[str] = []
    for place, enemy in enumerate(enemies):
        y = place * _ROW
        width = max(axis.at(min(enemy.epsilon, _WIDEST)) - _NAMES, 1.5)
        parts.append(f'<text x="{_NAMES}" y="{y + 16:.0f}">{escape(enemy.who)}</text>')
        parts.append(f'<rect class="bar" x="{_NAMES}" y="{y + 24:.0f}" width="{width:.1f}" height="18"/>')
        parts.append(f'<text x="{_NAMES + width + 6:.1f}" y="{y + 38:.0f}">ε {escape(up(enemy.epsilon))}</text>')
    label = "; ".join(f"{enemy.who}: epsilon {up(enemy.epsilon)}" for enemy in enemies)
    height = len(enemies) * _ROW
    return f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


A_TENTH = 10
"""Without stated colluders, the second attacker colludes with one in this many people."""


def board_of(
    guarantees: Sequence[Guarantee],
    epsilon: float,
    heading: str,
    besides: Sequence[str] = (),
    people: str = "people",
    others: Sequence[tuple[Sequence[Guarantee], float]] = (),
) -> str:
    """Return the board page of one or several answers about the same people, or about each of several groups.

    Parameters
    ----------
    guarantees : sequence of Guarantee
        Guarantee of each answer, all at one delta.
    epsilon : float
        Certified epsilon (nats) of all of them together.
    heading : str
        Title of the page.
    besides : sequence of str
        Further sentences.
    people : str
        What is counted, such as "people".
    others : sequence of pairs of sequence of Guarantee and float
        The same for each further group; nobody is in two. Each attacker's number is that of the group in which it is
        largest, so that it holds for everybody.
    """
    groups = [(guarantees, epsilon), *others]
    enemies = [_enemies(*group) for group in groups]
    worst = tuple(
        Enemy(same[0].who, max(each.epsilon for each in same), max(each.delta for each in same))
        for same in zip(*enemies, strict=True)
    )
    if others:
        aided = replace(worst[1], who="The same, with a tenth of a group on their side")
        worst = (worst[0], aided, worst[2])
    n = sum(each[0].setting.budgets.n for each, _ in groups)
    board = Board(heading, tuple(each.setting for each in guarantees), worst, tuple(besides), people, n)
    return board_page(board, command=COMMAND_LINE.get(), version=__version__)


def _enemies(guarantees: Sequence[Guarantee], epsilon: float) -> tuple[Enemy, Enemy, Enemy]:
    """Return the three attackers of one group's answers, from the weakest to the strongest."""
    setting, delta = guarantees[0].setting, guarantees[0].delta
    tenth = setting.budgets.n // A_TENTH
    colluding = tenth if tenth > setting.colluding else min(2 * setting.colluding + 1, setting.budgets.n - 1)
    return (
        Enemy("Whoever sees the result and the mixed reports", epsilon, delta),
        Enemy(f"The same, with {count(colluding)} of the others on their side", _with(guarantees, colluding), delta),
        _unshuffled([each.setting for each in guarantees]),
    )


def _with(guarantees: Sequence[Guarantee], colluding: int) -> float:
    """Return the joint certified epsilon (nats) of the same answers if ``colluding`` people collude."""
    worse = [certify(replace(each.setting, colluding=colluding), each.delta) for each in guarantees]
    if len(worse) == 1:
        return worse[0].epsilon.upper
    return composed_epsilon([Spending.of(each).worst for each in worse], worse[0].delta)


def _unshuffled(settings: Sequence[Setting]) -> Enemy:
    """Return the attacker who sees reports before the shuffle, with the sum of the answers' local guarantees."""
    total = decimal_up(sum((Decimal(repr(float(setting.unshuffled()[1]))) for setting in settings), Decimal(0)))
    delta0 = max(float(setting.budgets.deltas.max()) for setting in settings)
    reports = sum(setting.rounds * setting.changed_reports for setting in settings)
    return Enemy("Whoever sees the reports before they are mixed", total, min(delta0 * reports, 1.0))
