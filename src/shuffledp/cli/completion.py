"""`completion`: scripts by which a shell completes commands and options, written from the commands themselves.

The scripts hold all names, so that a shell need not start Python at each press of the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer

Words = Mapping[str, tuple[str, ...]]
"""What may follow a command, its options and commands of its own, by the command's name."""

BASH = """\
_shuffledp() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" options=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands} --help --version" -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$options" -- "$word"))
}}
complete -o default -F _shuffledp shuffledp
"""
ZSH = """\
#compdef shuffledp
_shuffledp() {{
    local -a options
    if (( CURRENT == 2 )); then
        compadd -- {commands} --help --version
        return
    fi
    case "${{words[2]}}" in
{cases}
    esac
    compadd -- $options
    _files
}}
compdef _shuffledp shuffledp
"""


def script(shell: str, app: typer.Typer, names: Sequence[str]) -> str:
    """Return the script of a shell.

    Parameters
    ----------
    shell : {"bash", "zsh", "fish"}
        Which.
    app : Typer
        The command line.
    names : sequence of str
        Its commands, in order.
    """
    commands_of: Mapping[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    words = {name: tuple(dict.fromkeys(_below(commands_of[name]))) for name in names}
    commands = " ".join(words)
    if shell == "fish":
        return "\n".join(_fish(words)) + "\n"
    opening, closing = ("(", ")") if shell == "zsh" else ('"', '"')
    cases = "\n".join(f"    {name}) options={opening}{' '.join(known)}{closing} ;;" for name, known in words.items())
    return (ZSH if shell == "zsh" else BASH).format(commands=commands, cases=cases)


def _below(command: Any) -> Iterator[str]:
    """Yield the commands below a command, and the options of all of them."""
    for name, each in getattr(command, "commands", {}).items():
        yield name
        yield from _below(each)
    for parameter in command.params:
        yield from (option for option in parameter.opts if option.startswith("--"))
    yield "--help"


def _fish(words: Words) -> Iterator[str]:
    yield f"complete -c shuffledp -n __fish_use_subcommand -f -a '{' '.join(words)}'"
    yield "complete -c shuffledp -n __fish_use_subcommand -l help -l version"
    for name, known in words.items():
        when = f"complete -c shuffledp -n '__fish_seen_subcommand_from {name}'"
        yield from (f"{when} -l {word[2:]}" if word.startswith("--") else f"{when} -a {word}" for word in known)
