"""Guarantees, releases, groups and audits on a terminal: the answer, its interval, the guarantee, and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.numerics.floats import Interval
from shuffledp.questions.question import CONFIDENCE, Shape, View
from shuffledp.report.answer import (
    amounts_table,
    cells,
    first_of,
    grouped_headings,
    grouped_lines,
    grouped_notes,
    headings,
    notes,
    people,
    view_of,
    weighted_cells,
    whom_weights_cover,
)
from shuffledp.report.to_json import weighted_to_json
from shuffledp.report.wording import (
    PROJECTED,
    EvidenceRow,
    Section,
    Standing,
    count,
    counted,
    down,
    evidence_sections,
    local_budget,
    lower_end,
    moves,
    near,
    over_rounds,
    plural,
    probability,
    promise,
    situation,
    some_levels,
    unit,
    up,
)
from shuffledp.setting import SEEN_MEANING, Guarantee

if TYPE_CHECKING:
    from shuffledp.audit.result import AuditResult
    from shuffledp.releases.margins import Margins
    from shuffledp.releases.release import Release
    from shuffledp.releases.run import GroupedRelease

MOST_LEVELS = 12
MOST_ROWS = 60
"""Largest number of categories, bins or coordinates in a table on the terminal."""
BAR = 12
"""Length of the longest bar, in characters."""
NOT_PRIVATE = "NOT PRIVATE: this is a simulation with a known seed; anyone can undo the noise. Do not publish it."
STANDING_STYLE = {
    Standing.CERTIFIED: "green",
    Standing.WITNESS: "cyan",
    Standing.PUBLISHED: "magenta",
    Standing.ASYMPTOTIC: "yellow",
}


def print_guarantee(console: Console, guarantee: Guarantee, *, bounds: bool = True, counts: str = "user") -> None:
    """Print one guarantee: the number to publish, the levels, the bounds evaluated, and the promise in words.

    Parameters
    ----------
    console : Console
        The console to print on.
    guarantee : Guarantee
        The guarantee.
    bounds : bool
        Whether to list the bounds that were evaluated.
    counts : str
        What the setting counts, see `wording.unit`.
    """
    setting = guarantee.setting
    console.print(
        f"[bold]Central epsilon at most {up(guarantee.epsilon.upper)} at delta = {probability(guarantee.delta)}"
        f"{over_rounds(setting)}[/] " + lower_end(guarantee.epsilon)
    )
    console.print(
        f"{situation(setting, counts)}, seen = {setting.seen}: {SEEN_MEANING[setting.seen]}.",
        style="dim",
        highlight=False,
    )
    if bounds or guarantee.levels_total > 1:
        console.print(_level_table(guarantee, counts))
    if bounds:
        _print_evidence(console, guarantee)
    console.print(promise(guarantee.worst, guarantee.delta, setting, counts))


def _level_table(guarantee: Guarantee, counts: str) -> Table:
    levels = some_levels(guarantee, MOST_LEVELS)
    title = f"Each level's own guarantee at delta = {probability(guarantee.delta)}"
    if len(levels) < guarantee.levels_total:
        title += f" ({len(levels)} of {count(guarantee.levels_total)} levels, the worst among them)"
    table = Table(title=title, title_justify="left")
    floors = ["by dummies alone", "by the crowd"] if guarantee.setting.dummies is not None else []
    headings = [plural(counts), "central epsilon at most", *floors, "at least", "chances move at most by"]
    for heading in ("local epsilon0", *headings):
        table.add_column(heading, justify="right")
    for level in levels:
        table.add_row(
            local_budget(level),
            count(level.count),
            up(level.epsilon.upper),
            *["–" if kept is None else up(kept.upper) for kept in (level.floor, level.crowd)][: len(floors)],
            down(level.epsilon.lower),
            moves(level.epsilon.upper, guarantee.delta),
            style="bold" if level is guarantee.worst and len(levels) > 1 else None,
        )
    return table


def _print_evidence(console: Console, guarantee: Guarantee) -> None:
    """Print a section per kind of bound; without a column for the kind, the words fit into 80 characters."""
    sections = evidence_sections(guarantee)
    heading = f"What was consulted (for the worst level, at delta = {probability(guarantee.delta)})"
    console.print(heading, style="italic", highlight=False)
    widest = [row for section in sections for row in section.rows]
    for section in sections:
        style = "dim" if section.standing is None else STANDING_STYLE[section.standing]
        console.print(f"[bold {style}]{section.title}[/]: {section.meaning}", highlight=False)
        console.print(_evidence_table(section, widest), style="dim" if section.standing is None else None)


def _evidence_table(section: Section, every: Sequence[EvidenceRow]) -> Table:
    """Return the table of a section, with column widths that fit all sections, so that the columns are aligned."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 1))
    table.add_column("bound", no_wrap=True, min_width=max(len(row.key) for row in every))
    if section.standing is not None:
        table.add_column("epsilon", justify="right", no_wrap=True, min_width=max(len(row.shown) for row in every))
    table.add_column("where it stands, or why it does not apply", overflow="fold")
    for row in section.rows:
        table.add_row(row.key, *([] if section.standing is None else [row.shown]), Text(row.words))
    return table


# Releases, and releases of public groups.


@dataclass(frozen=True)
class Shown:
    """The optional parts of the output, besides the answer and its guarantee.

    Parameters
    ----------
    simplex : bool
        Shares projected to the simplex, beside the unbiased ones.
    simultaneous : bool
        Intervals that hold together.
    bounds : bool
        The bounds that were evaluated.
    counts : bool
        Counts beside shares, and sums beside means.
    """

    simplex: bool = False
    simultaneous: bool = False
    bounds: bool = False
    counts: bool = False

    def of(self, shape: Shape) -> Shown:
        """Return the same with simultaneous intervals, if those of the question can only hold together."""
        return replace(self, simultaneous=True) if shape.chosen else self

    @property
    def interval(self) -> str:
        """Heading of the intervals, which says whether they hold together."""
        return f"{CONFIDENCE:.0%} interval" + (", all together" if self.simultaneous else ", one by one")


LEFT = ("category", "item", "cell")
"""Headings of columns of words, which are aligned to the left."""


def print_release(console: Console, release: Release, display: Shown, printed: set[str] | None = None) -> None:
    """Print a release: answer with interval, guarantee, and what a reader must know.

    Parameters
    ----------
    console : Console
        The console to print on.
    release : Release
        The release of any question.
    display : Shown
        The optional parts to print.
    printed : set of str, optional
        Of one of several answers: sentences that are printed already, which are left out and added to. Its guarantee
        is then printed by `print_guarantees`.
    """
    display = display.of(release.question.shape)
    view = view_of(release, simplex=display.simplex, simultaneous=display.simultaneous)
    (_print_entries if view.shape.label else _print_number)(console, release, view, display)
    if display.counts:
        print_amounts(console, {"": release}, display)
    once = set[str]() if printed is None else printed
    if not release.private:
        _print_new(console, [NOT_PRIVATE], once, "bold red")
    _print_new(console, [*notes(release, view), *([PROJECTED] if display.simplex else [])], once)
    if printed is None:
        console.print()
        print_guarantee(console, release.guarantee, bounds=display.bounds, counts=unit(release))


def _print_new(console: Console, sentences: Sequence[str], printed: set[str], style: str = "") -> None:
    """Print the sentences that are not printed yet, and add them to ``printed``."""
    for sentence in sentences:
        if sentence not in printed:
            console.print(Text(sentence, style=style))
    printed.update(sentences)


def print_guarantees(
    console: Console, answers: Sequence[tuple[str, Release]], epsilon: float, delta: float, *, bounds: bool
) -> None:
    """Print what each of several answers about the same people costs alone, and what all of them promise together.

    Parameters
    ----------
    console : Console
        The console to print on.
    answers : sequence of (str, Release)
        Name and release of each; of groups those of the group to which all of them together cost most.
    epsilon, delta : float
        The guarantee (epsilon in nats) of all of them together.
    bounds : bool
        Whether to list the bounds that were evaluated for each answer.
    """
    first, several = answers[0][1], len(answers) > 1
    table = Table(title=f"What {'each answer' if several else 'the answer'} costs alone", title_justify="left")
    for heading in ("answer", "randomizer", "central epsilon at most", "at least"):
        table.add_column(heading, justify="left" if heading in ("answer", "randomizer") else "right")
    for name, each in answers:
        epsilons = each.guarantee.epsilon
        table.add_row(Text(name), each.mechanism, up(epsilons.upper), down(epsilons.lower))
    console.print(table)
    number = counted(first.guarantee.setting.budgets.n, unit(first), plural(unit(first)))
    for seen in dict.fromkeys(each.guarantee.setting.seen for _, each in answers):
        console.print(f"{number}, seen = {seen}: {SEEN_MEANING[seen]}.", style="dim", highlight=False)
    worst, setting = first.guarantee.worst, first.guarantee.setting
    together = replace(worst, epsilon=Interval(0.0, epsilon))
    console.print(promise(together, delta, setting, unit(first)), highlight=False)
    for name, each in answers if bounds else ():
        console.print(Text(f"{name}:", style="bold"))
        _print_evidence(console, each.guarantee)


def _print_number(console: Console, release: Release, view: View, display: Shown) -> None:
    """Print an answer of one number as a sentence."""
    del display
    (entry,), what = view.entries(), view.shape.title
    if release.clipped and view.range is not None:
        what += f" of the values moved into {near(view.range[0])}..{near(view.range[1])}:"
    value, error, ends = cells(view, entry)
    console.print(
        f"[bold]{what} {value}[/], standard error {error}, "
        f"{CONFIDENCE:.0%} confidence interval {ends} "
        f"({people(release)}, {release.mechanism})",
        highlight=False,
    )
    if view.more:
        console.print(view.more, highlight=False)


def _print_entries(console: Console, release: Release, view: View, display: Shown) -> None:
    """Print an answer of several numbers as a table, with as many lines as its shape allows."""
    shape, places = view.shape, view.places(MOST_ROWS)
    title = f"{shape.title} of {people(release)} ({release.mechanism})"
    if not view.size:
        console.print(f"{title}: {shape.nothing}", highlight=False)
        return
    fewer = len(places) < view.size
    if fewer and shape.excerpt == "spread":
        title += f", {len(places)} of {count(view.size)} {shape.noun}; --json and --csv list all"
    bars = shape.picture is not None and shape.picture.kind == "bins"
    listed = view.entries(places)
    table = Table(title=title, title_justify="left")
    first, *others = headings(shape, display.interval)
    if shape.short:
        others[:2] = shape.short
    for heading in (first, *others, *(["projected"] if view.projected is not None else [])):
        # where bars stand beside, what gives way are long names
        table.add_column(heading, justify="left" if heading in LEFT else "right", no_wrap=bars and heading != first)
    if bars:
        table.add_column("", no_wrap=True)
    longest = max(entry.value for entry in listed)
    for entry in listed:
        row = [Text(cell) for cell in (entry.name, *cells(view, entry, hedged=not shape.chosen))]
        if bars:
            bar = "█" * round(BAR * max(entry.value, 0.0) / longest) if longest > 0.0 else ""
            row.append(Text(bar, style="cyan"))
        table.add_row(*row)
    console.print(table)
    if fewer and shape.excerpt != "spread":
        which = f"{MOST_ROWS} largest" if shape.excerpt == "largest" else f"first {MOST_ROWS}"
        console.print(f"The {which} of {count(view.size)} {shape.noun}; --json and --csv give all.")
    if view.more:
        console.print(view.more, highlight=False)


def print_amounts(console: Console, releases: Mapping[str, Release], display: Shown, by: str = "") -> None:
    """Print counts of shares, or sums of means; nothing where the question has neither.

    Parameters
    ----------
    console : Console
        The console to print on.
    releases : mapping of str to Release
        Releases of one question, by the name of the group.
    display : Shown
        How intervals are shown.
    by : str
        The column with the groups; "" without groups.
    """
    tables = {
        name: amounts_table(view_of(each, simultaneous=display.simultaneous), display.interval)
        for name, each in releases.items()
    }
    first = next(iter(tables.values()))
    if first is None:
        return
    table = Table(title=f"{first['title'].split()[0]} by {by}" if by else first["title"], title_justify="left")
    for heading in (*([by, "records"] if by else []), *first["headings"]):
        table.add_column(Text(heading), justify="left" if heading in (by, *LEFT) else "right")
    lines: list[list[str]] = []
    for name, part in tables.items():
        before = [name, count(releases[name].rows)] if by else []
        for row in part["rows"] if part is not None else ():
            lines.append([*before, *row])
            before = [""] * len(before)
    for row in lines[:MOST_ROWS]:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
    if len(lines) > MOST_ROWS:
        console.print(f"The first {MOST_ROWS} of {count(len(lines))} lines; --json and --csv give all.")


def print_grouped(console: Console, grouped: GroupedRelease, display: Shown, printed: set[str] | None = None) -> None:
    """Print all groups in one table, and the guarantee that holds for everybody.

    Parameters
    ----------
    console : Console
        The console to print on.
    grouped : GroupedRelease
        The releases.
    display : Shown
        The optional parts to print.
    printed : set of str, optional
        As for `print_release`.
    """
    display = display.of(first_of(grouped).question.shape)
    names = grouped_headings(grouped, display.interval)
    table = Table(
        title=f"By {grouped.by}: {counted(grouped.n, 'person', 'people')} ({first_of(grouped).mechanism})",
        title_justify="left",
    )
    for place, heading in enumerate(names):
        table.add_column(heading, justify="left" if place == 0 or heading in LEFT else "right")
    every = list(grouped_lines(grouped, simultaneous=display.simultaneous))
    for row in every[:MOST_ROWS]:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
    if len(every) > MOST_ROWS:
        console.print(f"The first {MOST_ROWS} of {count(len(every))} lines; --json and --csv give all.")
    if display.counts:
        print_amounts(console, {str(name): release for name, release in grouped.releases.items()}, display, grouped.by)
    once = set[str]() if printed is None else printed
    if not grouped.private:
        _print_new(console, [NOT_PRIVATE], once, "bold red")
    _print_new(console, grouped_notes(grouped), once)
    if printed is None:
        console.print()
        print_guarantee(console, grouped.guarantee, bounds=display.bounds, counts=unit(first_of(grouped)))


def print_weighted(
    console: Console, grouped: GroupedRelease, margins: Margins, printed: set[str] | None = None
) -> None:
    """Print shares, or a mean, weighted to margins, and how many did not answer; see `weighted_to_json`.

    Parameters
    ----------
    console, grouped, printed
        As for `print_grouped`.
    margins : Margins
        Public margins of the groups.
    """
    weighted, shape = weighted_to_json(grouped, margins), first_of(grouped).question.shape
    table = Table(title=f"All groups of {grouped.by}, weighted to the margins", title_justify="left")
    for heading in headings(shape, f"{CONFIDENCE:.0%} interval"):
        table.add_column(heading, justify="left" if heading in LEFT else "right")
    for line in weighted_cells(weighted, shape):
        table.add_row(*map(Text, line))
    console.print(table)
    _print_new(console, [whom_weights_cover(weighted)], set() if printed is None else printed)


# Audits.

CAN_ONLY_ACCUSE = "An audit can only accuse: that this attack found nothing does not prove the claim."


def print_audit(console: Console, result: AuditResult) -> None:
    """Print the verdict, the event that supports it, how often it happened, and what the verdict means."""
    claim = f"epsilon = {result.claimed:g}" + (f", delta = {probability(result.delta)}" if result.delta else "")
    sure = f"at confidence {result.confidence:.10g}"
    least = f"at least [bold]{down(result.epsilon_lower_bound)}[/] {sure}"
    if result.violated:
        console.print(f"[bold red]VIOLATED[/]: {claim} was claimed, but epsilon is {least}.", highlight=False)
    else:
        verdict = f"{claim} is claimed; the attack shows epsilon to be {least}."
        console.print(f"[bold green]Not violated[/]: {verdict}", highlight=False)
    console.print(Text(f"Attacked: {result.subject}, records {result.records[0]} and {result.records[1]}."))
    console.print(Text(f"What was looked at: {result.attack}."))
    console.print(Text(f"The event: {result.event}."))
    table = Table(title="How often it happened", title_justify="left")
    for heading in ("world", "trials", "times", "share"):
        table.add_column(heading, justify="left" if heading == "world" else "right")
    for world, hits, trials in zip(result.worlds, result.hits.counts, result.hits.trials, strict=True):
        table.add_row(Text(world), count(trials), count(hits), f"{hits / max(trials, 1):.4g}")
    console.print(table)
    console.print(
        f"What keeps its claim is accused with chance at most {result.false_alarm:.3g}."
        + ("" if result.violated else f" {CAN_ONLY_ACCUSE}"),
        highlight=False,
    )
    if not result.private:
        console.print("The attacker's noise came from a known seed: the audit can be repeated.", style="dim")
