"""The generated part of docs/bounds.md: every bound at the smallest and the largest population, and who refused."""

from __future__ import annotations

from pathlib import Path

from tools.docs_tables import POPULATIONS, SIZES

Rows = list[dict[str, str]]
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"
KINDS = {"certified-upper": "upper", "certified-lower": "witness", "asymptotic": "asymptotic"}
ENDS = (SIZES[0], SIZES[-1])
SEEN = {
    "reports": "Shuffled reports of randomized response",
    "ordered": "Any randomizer, users permuted and answering in order, budgets at steps",
    "levels": "Any randomizer, shuffled reports, levels visible",
}


def cell(rows: Rows, population: str, n: int, seen: str, key: str) -> str:
    """Return one epsilon with four digits, rounded to nearest: a witness's lower end, otherwise the upper end."""
    for row in rows:
        if (row["population"], row["n"], row["seen"], row["key"]) == (population, str(n), seen, key):
            value = float(row["lower" if row["kind"] == "certified-lower" else "upper"])
            return f"{value:.4g}" + ("*" if row["budgets"] == "largest" else "")
    return "-"


def table(rows: Rows, seen: str) -> list[str]:
    """Return the Markdown table of one view."""
    keys = {row["key"]: row["kind"] for row in rows if row["seen"] == seen}
    heads = [f"{name}, {n:,}" for name in POPULATIONS for n in ENDS]
    lines = [
        "| bound | kind | " + " | ".join(heads) + " |",
        "|---|---|" + "---|" * len(heads),
    ]
    for key, kind in sorted(keys.items(), key=lambda item: list(KINDS).index(item[1])):
        cells = [cell(rows, name, n, seen, key) for name in POPULATIONS for n in ENDS]
        lines.append(f"| [{key}](theorems/{key}.md) | {KINDS[kind]} | " + " | ".join(cells) + " |")
    return lines


def refusals(refused: Rows, seen: str) -> list[str]:
    """Return one line per bound and reason, naming the populations; those that need one budget share a line."""
    met: dict[tuple[str, str], list[str]] = {}
    equal: dict[str, None] = {}
    for row in refused:
        if row["seen"] != seen:
            continue
        if "needs one budget for all users" in row["reason"]:
            equal[row["key"]] = None
            continue
        first, last = row["sizes"].split(" to ")
        sizes = "" if (first, last) == (str(SIZES[0]), str(SIZES[-1])) else f", n up to {last}"
        counted = " at the largest budget" if row["budgets"] == "largest" else ""
        met.setdefault((row["key"], row["reason"]), []).append(row["population"] + counted + sizes)
    lines = [f"- {', '.join(f'`{key}`' for key in equal)}: need one budget for all users."] if equal else []
    for (key, reason), names in met.items():
        where = "all four" if len(names) == len(POPULATIONS) else ", ".join(names)
        lines.append(f"- `{key}` ({where}): {reason.removeprefix(key + ' ')}.")
    return lines


def generated(rows: Rows, refused: Rows) -> str:
    """Return everything between the two marks."""
    lines: list[str] = []
    for seen, title in SEEN.items():
        lines += [f"### {title}", "", *table(rows, seen), "", "Refused:", "", *refusals(refused, seen), ""]
    return "\n".join(lines)


def put(page: Path, rows: Rows, refused: Rows) -> None:
    """Write the generated part into the page, between its marks."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n\n{generated(rows, refused)}\n{END}{after}", encoding="utf-8")
