"""`difference`: two releases of one question, read from what they printed with --json."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shuffledp import __version__
from shuffledp.accounting import check_delta
from shuffledp.cli.sides import check_apart, holds_several, side_of_file, side_of_group
from shuffledp.errors import InvalidInput
from shuffledp.releases.difference import Difference, subtract
from shuffledp.report.difference import difference_to_json, print_difference
from shuffledp.report.difference_page import difference_page
from shuffledp.report.to_json import dumps
from shuffledp.shell.output import COMMAND_LINE, console, reserved, working


@dataclass(frozen=True)
class Compared:
    """What is subtracted from what.

    Parameters
    ----------
    files : list of Path
        Two files, or one of groups.
    between : tuple of str or None
        Two groups of one file.
    question : str or None
        Which of several questions.
    delta : float
        Central delta of both together.
    disjoint : bool
        Whether nobody is in both files.
    """

    files: list[Path]
    between: tuple[str, str] | None
    question: str | None
    delta: float
    disjoint: bool

    def check(self) -> None:
        """Refuse what is not two releases."""
        check_delta(self.delta)
        if len(self.files) != (2 if self.between is None else 1):
            raise InvalidInput(
                f"difference needs two files, or one file of groups with --between A B; got {len(self.files)}"
                + ("" if self.between is None else " with --between")
            )
        twice = (
            self.between[0] == self.between[1]
            if self.between is not None
            else self.files[0].resolve() == self.files[1].resolve()
        )
        if twice:  # the noise of both would be the same noise, and the interval is that of independent ones
            raise InvalidInput("difference needs two releases, each with noise of its own; got the same one twice")
        if self.question is not None and not any(map(holds_several, self.files)):
            raise InvalidInput(
                "--question chooses among the several questions of a file of release or open, and there is none; "
                "leave it out"
            )

    def found(self) -> tuple[Difference, tuple[str, str]]:
        """Subtract the first from the second; return what both are called, too."""
        if self.between is not None:
            before, after = (side_of_group(self.files[0], name) for name in self.between)
            return subtract(before, after, delta=self.delta, disjoint=True), self.between
        before, after = (side_of_file(path, self.question) for path in self.files)
        check_apart(self.files)
        first, second = (path.name for path in self.files)
        names = ("before", "after") if first == second else (first, second)
        return subtract(before, after, delta=self.delta, disjoint=self.disjoint), names


def run_difference(
    asked: Compared, *, simultaneous: bool, as_json: bool, report: Path | None, title: str | None
) -> None:
    """Subtract the first from the second, and say what both cost together."""
    asked.check()
    with reserved(report, "--report") as page:
        with working("Subtracting"):
            found, names = asked.found()
        if page is not None:
            heading = title or "A difference of two private estimates"
            made = {"command": COMMAND_LINE.get(), "version": __version__}
            page.write(difference_page(heading, found, names, simultaneous=simultaneous, **made))
    if as_json:
        print(dumps(difference_to_json(found, simultaneous=simultaneous)))
        return
    print_difference(console(), found, names, simultaneous=simultaneous)
    if report is not None:
        console().print(f"Written: {report.resolve()}", soft_wrap=True, highlight=False)
