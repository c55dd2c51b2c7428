"""`--board FILE`: the three numbers of a board page, certified for `amplify`, `plan` and `release`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from shuffledp import __version__
from shuffledp.accounting import certify
from shuffledp.guarantee import Guarantee
from shuffledp.ledger import Spending, composed_epsilon
from shuffledp.numerics.floats import decimal_up
from shuffledp.report.board import Board, Enemy, board_page
from shuffledp.report.wording import count
from shuffledp.setting import Setting
from shuffledp.shell.output import COMMAND_LINE

A_TENTH = 10
"""The second enemy has one of so many people on their side, unless more are stated to collude."""


def board_of(
    guarantees: Sequence[Guarantee], epsilon: float, heading: str, besides: Sequence[str] = (), people: str = "people"
) -> str:
    """Write the page of one or several answers about the same people.

    Parameters
    ----------
    guarantees : sequence of Guarantee
        Of each answer, at one delta.
    epsilon : float
        Certified for all of them together.
    heading : str
        Title of the page.
    besides : sequence of str
        More sentences.
    people : str
        What is counted.
    """
    setting, delta = guarantees[0].setting, guarantees[0].delta
    others = setting.budgets.n // A_TENTH
    colluding = others if others > setting.colluding else min(2 * setting.colluding + 1, setting.budgets.n - 1)
    enemies = (
        Enemy("Whoever sees the result and the mixed reports", epsilon, delta),
        Enemy(f"The same, with {count(colluding)} of the others on their side", _with(guarantees, colluding), delta),
        _unshuffled([each.setting for each in guarantees]),
    )
    board = Board(heading, tuple(each.setting for each in guarantees), enemies, tuple(besides), people)
    return board_page(board, command=COMMAND_LINE.get(), version=__version__)


def _with(guarantees: Sequence[Guarantee], colluding: int) -> float:
    """Certify the same answers if so many collude."""
    worse = [certify(replace(each.setting, colluding=colluding), each.delta) for each in guarantees]
    if len(worse) == 1:
        return worse[0].epsilon.upper
    return composed_epsilon([Spending.of(each).worst for each in worse], worse[0].delta)


def _unshuffled(settings: Sequence[Setting]) -> Enemy:
    """Add up what holds before the shuffle, answer by answer."""
    total = decimal_up(sum((Decimal(repr(float(setting.unshuffled()[1]))) for setting in settings), Decimal(0)))
    delta0 = max(float(setting.budgets.deltas.max()) for setting in settings)
    reports = sum(setting.rounds * setting.changed_reports for setting in settings)
    return Enemy("Whoever sees the reports before they are mixed", total, min(delta0 * reports, 1.0))
