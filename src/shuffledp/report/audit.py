"""What an audit found, for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.audit.result import AuditResult
from shuffledp.report.wording import count, down, probability

CAN_ONLY_ACCUSE = "An audit can only accuse: that this attack found nothing does not prove the claim."


def print_audit(console: Console, result: AuditResult) -> None:
    """Print the verdict, the event that supports it, how often it happened, and what the verdict is worth."""
    claim = f"epsilon = {result.claimed:g}" + (f", delta = {probability(result.delta)}" if result.delta else "")
    sure = f"at confidence {result.confidence:.10g}"
    least = f"at least [bold]{down(result.epsilon_lower_bound)}[/] {sure}"
    if result.violated:
        console.print(f"[bold red]VIOLATED[/]: {claim} was claimed, but epsilon is {least}.", highlight=False)
    else:
        shown = f"{claim} is claimed; the attack shows epsilon to be {least}."
        console.print(f"[bold green]Not violated[/]: {shown}", highlight=False)
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
