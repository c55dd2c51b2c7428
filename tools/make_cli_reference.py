"""Write the reference of the command line, docs/cli.md and a page a command in docs/cli/, from the commands themselves.

    python -m tools.make_cli_reference

tests/test_docs_site.py checks that the pages are up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from shuffledp.cli.app import COMMANDS, app
from shuffledp.cli.front import PANELS

DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDER = "cli"
NO_PANEL = "Options"
WRITTEN = "<!-- Written by `python -m tools.make_cli_reference`; change the commands, not this page. -->"
HEAD = """\
`shuffledp COMMAND [ARGUMENTS]`. `shuffledp COMMAND --help` shows the same as the command's page.

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | internal failure; nothing was released |
| 2 | bad input, or a question that no theorem answers; one line on stderr says what to do |
| 3 | `audit` broke the claim |

With `--json` a command prints one JSON object on stdout and nothing else: certified ends rounded outward to 10
significant digits, so that every machine states the same, other numbers at full precision, infinity as the
string `"inf"`.
Noise comes from secure randomness. `--simulation-seed` repeats a run for testing, and marks its output as not private.

"""
"""What docs/cli.md says before it lists the commands."""
TRUSTED = """\
If a trusted hand holds the table, [noise on the answer errs less](../decide.md#0-does-a-trusted-hand-hold-the-table)
at the same epsilon.

"""
"""What the page of every command that asks a table says first; docs/how-to says the same."""


def words(text: str) -> str:
    """One line of Markdown: no line breaks, and no character that ends a table's cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def signature(parameter: Any) -> str:
    """How an option or an argument is typed, as code."""
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    shown = names if parameter.is_flag else f"{names} {parameter.metavar or parameter.name.upper()}"
    return "`" + shown.replace("|", "\\|") + "`"


def remark(parameter: Any) -> str:
    """Return what must be known besides the help: required, repeated, the default."""
    if parameter.required:
        return " **Required.**"
    if getattr(parameter, "is_flag", False) or parameter.default in (None, ""):
        return " May be repeated." if getattr(parameter, "multiple", False) else ""
    return f" Default: `{parameter.default}`."


def options(command: Any) -> Iterator[str]:
    """One table per panel, in the order in which the panels appear."""
    panels: dict[str, list[Any]] = {}
    for parameter in command.params:
        if not getattr(parameter, "hidden", False):
            panels.setdefault(parameter.rich_help_panel or NO_PANEL, []).append(parameter)
    for panel, members in panels.items():
        yield f"**{panel}**\n\n| option | meaning |\n|---|---|\n" + "".join(
            f"| {signature(member)} | {words(member.help or '')}{remark(member)} |\n" for member in members
        )


def described(help_text: str) -> str:
    """Return the command's docstring as Markdown: its example becomes a block of code."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", help_text.replace("\b", "").strip()):
        if paragraph.lstrip().startswith("shuffledp "):
            parts.append(f"```bash\n{paragraph.strip()}\n```")
        else:
            parts.append(" ".join(paragraph.split()))
    return "\n\n".join(parts)


def section(name: str, command: Any, mark: str) -> str:
    """Return a command under its heading; a group of commands with each of them under its own."""
    text = f"{mark} {name}\n\n{described(command.help)}\n\n{TRUSTED if name in next(iter(PANELS.values())) else ''}"
    inner: dict[str, Any] = getattr(command, "commands", {})
    if inner:
        return text + "\n".join(section(f"{name} {each}", inner[each], mark + "#") for each in inner)
    return text + "\n".join(options(command))


def row(name: str, command: Any, place: str, heading: str) -> str:
    """Return a command's line in the index; links to the one page that once had all commands find it by its anchor."""
    anchor = f'<a id="{name.replace(" ", "-")}"></a>' if name != heading.lower() else ""
    return f"| {anchor}[`{name}`]({FOLDER}/{place}) | {words(command.help.split(chr(10))[0])} |\n"


def index(commands: dict[str, Any]) -> str:
    """Return docs/cli.md: every command in its group, and every command below a command."""
    grouped = ""
    for panel, names in PANELS.items():
        heading, rows = panel.partition(" (")[0], ""
        for name in (each for each in COMMANDS if each in names):
            rows += row(name, commands[name], f"{name}.md", heading)
            for each, inner in getattr(commands[name], "commands", {}).items():
                rows += row(f"{name} {each}", inner, f"{name}.md#{name}-{each}", heading)
        grouped += f"## {heading}\n\n| command | what it does |\n|---|---|\n{rows}\n"
    entries = "".join(f"{name} <{FOLDER}/{name}>\n" for name in COMMANDS)
    return f"# Command line\n\n{WRITTEN}\n\n{HEAD}{grouped}" + "```{toctree}\n:hidden:\n\n" + entries + "```\n"


def pages() -> dict[str, str]:
    """Return the text of every page by its path below docs/."""
    group: Any = typer.main.get_command(app)
    found = {f"{FOLDER}.md": index(group.commands)}
    for name in COMMANDS:
        head, _, rest = section(name, group.commands[name], "#").partition("\n")
        found[f"{FOLDER}/{name}.md"] = f"{head}\n\n{WRITTEN}\n{rest.rstrip()}\n"
    return found


def main() -> None:
    """Write the pages, and remove those of commands that are gone."""
    (DOCS / FOLDER).mkdir(exist_ok=True)
    found = pages()
    for old in (DOCS / FOLDER).glob("*.md"):
        if f"{FOLDER}/{old.name}" not in found:
            old.unlink()
    for name, text in found.items():
        (DOCS / name).write_text(text, encoding="utf-8")
    print(f"wrote {FOLDER}.md and {len(COMMANDS)} pages in {FOLDER}/")


if __name__ == "__main__":
    main()
