"""The command `demo collection`: 300 people answer two questions through the real service."""

from __future__ import annotations

import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from shuffledp import __version__
from shuffledp.errors import InvalidInput, what_is_missing
from shuffledp.questions.question import CONFIDENCE
from shuffledp.report.answer import interval_words, view_of
from shuffledp.report.to_json import dumps
from shuffledp.report.wording import count, probability, share, up, with_error
from shuffledp.shell.output import COMMAND_LINE, console, reserved, working
from shuffledp.whole_files import check_can_hold

if TYPE_CHECKING:
    from shuffledp.cli.demo.service import Held

CLIENTS = 300
NEEDED = ("shuffledp.collection.sealing", "uvicorn", "httptools", "segno")
"""Modules that the extra `service` installs."""


def run_demo_collection(
    delta: float,
    simulation_seed: int | None,
    *,
    as_json: bool,
    report: Path | None,
    clients: int = CLIENTS,
    browser: bool = True,
) -> None:
    """Hold the collection in a temporary folder, and print estimates, guarantees, and what each party saw.

    Parameters
    ----------
    delta : float
        Central delta of the promises.
    simulation_seed : int or None
        Must be None: the demo has no simulation.
    as_json : bool
        Whether to print JSON.
    report : Path or None
        HTML page to write.
    clients : int
        Number of people who are invited.
    browser : bool
        Whether some people answer in Chromium, where it is installed.
    """
    if simulation_seed is not None:
        raise InvalidInput(
            "demo collection takes no --simulation-seed: devices and shuffler use secure randomness; leave it out"
        )
    check_can_hold()
    _check_extra()
    from shuffledp.cli.demo.service import hold
    from shuffledp.collection.release_page import release_object, release_page

    out, since = console(), time.monotonic()

    def tell(sentence: str) -> None:
        if not as_json:
            out.print(f"{time.monotonic() - since:5.1f} s  {sentence}", highlight=False, soft_wrap=True)

    with reserved(report, "--report") as page:
        with working("Holding a collection"), tempfile.TemporaryDirectory(prefix="shuffledp-demo-") as folder:
            held = hold(Path(folder), clients, delta, tell, browser=browser)
        held.seconds["total"] = round(time.monotonic() - since, 3)
        truths = dict(enumerate(held.truths))
        text = release_page(held.release, command=COMMAND_LINE.get(), version=__version__, truths=truths)
        if page is not None:
            page.write(text)
    if as_json:
        truth = [held.truths[0], held.truths[1][0]]
        print(
            dumps(release_object(held.release) | {"truth": truth, "seconds": held.seconds, "clients": _clients(held)})
        )
        return
    _show(held)
    where = report.resolve() if report is not None else _kept(text)
    out.print(f"The release as a page, beside the true values: {where}", soft_wrap=True, highlight=False)


def _check_extra() -> None:
    """Refuse unless every module of the extra `service` is installed."""
    for name in NEEDED:
        try:
            import_module(name)
        except (ImportError, InvalidInput) as error:  # the latter: cryptography is too old
            if str(getattr(error, "name", None)).startswith("shuffledp."):  # a copy without the collection
                raise
            missing = "cryptography 47 or newer" if name == NEEDED[0] else name
            raise InvalidInput(what_is_missing("demo collection", missing, "service")) from None


def _kept(text: str) -> Path:
    """Write the page to a new file that is not deleted, and return its path."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="shuffledp-demo-", suffix=".html", encoding="utf-8", delete=False
    ) as file:
        file.write(text)
    return Path(file.name)


def _clients(held: Held) -> dict[str, object]:
    manifest = held.release.batch.manifest
    return {
        "invited": held.clients,
        "held": manifest.n,
        "in_chromium": held.in_browser,
        "sent_again": held.again,
        "junk": {"invited": held.insiders, "uninvited": held.strangers},
        "refused": dict(manifest.refusals),
        "acknowledged_before_kill": held.acknowledged,
        "on_disk_after_kill": held.kept,
    }


def _show(held: Held) -> None:
    out, opened = console(), held.release
    draft = opened.batch.task.draft
    out.print(_estimates(held))
    out.print(_promises(held))
    out.print(
        f"Each epsilon is over both questions at delta = {probability(draft.delta)}. "
        f"{'Every promise is kept.' if opened.promise_kept else 'A PROMISE IS NOT KEPT.'} "
        f"Junk: the analyzer saw {opened.junk_seen} rows that are no reports ({held.insiders} people), "
        f"and the shuffler refused {sum(opened.batch.manifest.refusals.values())} messages.",
        highlight=False,
    )
    out.print(_parties(held))
    out.print(f"{held.seconds['total']:.1f} seconds in all.", highlight=False)


def _estimates(held: Held) -> Table:
    """Return a table of the estimates beside the true values."""
    table = Table(title=f"{count(held.release.batch.manifest.n)} people of UCI Adult", title_justify="left")
    for heading in ("answer", "private estimate", f"{CONFIDENCE:.0%} confidence interval", "true value"):
        table.add_column(heading, justify="left" if heading == "answer" else "right", max_width=36)
    questions = held.release.batch.task.draft.questions
    for question, release, truth in zip(questions, held.release.releases, held.truths, strict=True):
        title = question.text["en"]
        if release.categories is None:
            low, high = release.confidence_interval(CONFIDENCE)
            numbers = (release.estimate, low, high, truth[0])
            value, low, high, true = (with_error(float(x), float(release.standard_error)) for x in numbers)
            table.add_row(f"{title} Mean", value, f"{low} to {high}", true)
            continue
        table.add_row(title)
        for row, true in zip(view_of(release).entries(), truth, strict=True):
            table.add_row(f"  {row.name}", share(row.value), interval_words(row), share(true))
        table.add_section()
    return table


def _promises(held: Held) -> Table:
    """Return a table of three epsilons for each level, one for each attacker."""
    from shuffledp.collection.promise import crowd_tells, what_is_promised

    opened = held.release
    draft, manifest = opened.batch.task.draft, opened.batch.manifest
    table = Table(title="Epsilon, and against whom it holds", title_justify="left")
    for heading in (
        "level", "people", "promised", "analyzer and all other people", "analyzer and 5 % of the others",
        "shuffler and analyzer together",
    ):  # fmt: skip
        table.add_column(heading, justify="left" if heading == "level" else "right", max_width=17)
    for place, level in enumerate(draft.levels):
        crowd = opened.crowd[place]
        local = up(what_is_promised(draft, place).local)
        last = up(crowd) if crowd is not None and crowd_tells(crowd, level.promise) else "–"
        table.add_row(
            level.name["en"], count(manifest.counts[place]), up(level.promise), up(opened.floor[place]), last, local
        )
    return table


def _parties(held: Held) -> Table:
    """Return a table of what each party saw, and what it did not see."""
    task, manifest = held.release.batch.task, held.release.batch.manifest
    people, rows = count(manifest.n), " and ".join(count(rows) for rows in manifest.rows)
    table = Table(title="What each party saw", title_justify="left", show_lines=True)
    for heading, width in (("party", 18), ("saw", 30), ("did not see", 22)):
        table.add_column(heading, max_width=width)  # a pipe has no width of its own to wrap at
    table.add_row(
        "participant",
        "the signed task with its promises, its own answer, the release",
        "anything of another person",
    )
    table.add_row(
        "relay, network",
        f"who sent when: {count(task.size)} sealed bytes for every report, whatever level and answer",
        "levels, codes, answers",
    )
    table.add_row(
        f"shuffler ({task.draft.operated_by.shuffler})",
        f"who sent when, {people} levels and one-time codes, and sealed messages to the analyzer",
        "any answer: it has no key for them",
    )
    table.add_row(
        f"analyzer ({task.draft.operated_by.analyzer})",
        f"{rows} permuted rows, dummies among them, each a randomized report; people per level",
        "whose a row is, its level, which two rows belong together, which rows are dummies",
    )
    return table
