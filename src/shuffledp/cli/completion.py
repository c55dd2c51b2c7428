"""`completion`: scripts by which a shell completes commands and options, written from the commands themselves.

The scripts hold all names, so that a shell need not start Python at each press of the key. A word that starts with a
dash is an option; after the command, and the command below it, every other word is a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer

Words = Mapping[str, tuple[str, ...]]
"""Names by the command that they follow, which may be one below another, such as ``task draft``."""

ALWAYS = "--help --version"

BASH = """\
_shuffledp() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" known=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        known="{commands} {always}"
    elif [ "${{word:0:1}}" = "-" ]; then
        case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{options}
        esac
    elif [ "$COMP_CWORD" -eq 2 ]; then
        case "${{COMP_WORDS[1]}}" in
{below}
        esac
    fi
    COMPREPLY=($(compgen -W "$known" -- "$word"))
}}
complete -o default -F _shuffledp shuffledp
"""
ZSH = """\
#compdef shuffledp
_shuffledp() {{
    local -a known
    if (( CURRENT == 2 )); then
        known=({commands} {always})
    elif [[ "$PREFIX" == -* ]]; then
        case "${{words[2]}} ${{words[3]}}" in
{options}
        esac
    elif (( CURRENT == 3 )); then
        case "${{words[2]}}" in
{below}
        esac
    fi
    if (( $#known )); then
        compadd -- $known
    else
        _files
    fi
}}
if [[ "$funcstack[1]" == "_shuffledp" ]]; then
    _shuffledp "$@"
else
    compdef _shuffledp shuffledp
fi
"""
FISH = """\
function __shuffledp_after
    set -l typed (commandline -opc)
    set -l last (math 1 + (count $argv))
    test (count $typed) -ge $last; and test "$typed[2..$last]" = "$argv"
end
function __shuffledp_next
    test (count (commandline -opc)) -eq (math 1 + (count $argv)); and __shuffledp_after $argv
end
complete -c shuffledp -n 'test (count (commandline -opc)) -eq 1' -f -a '{commands}'
complete -c shuffledp -n 'test (count (commandline -opc)) -eq 1' -l help -l version
{rest}
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
    below: dict[str, tuple[str, ...]] = {}
    options: dict[str, tuple[str, ...]] = {}
    for name in names:
        group = getattr(commands_of[name], "commands", {})
        if group:
            below[name] = tuple(group)
        for inner, each in {f"{name} {sub}": each for sub, each in group.items()}.items():
            options[inner] = _options(each)
        options[name] = _options(commands_of[name])
    commands = " ".join(names)
    if shell == "fish":
        return FISH.format(commands=commands, rest="\n".join(_fish(below, options)))
    return (ZSH if shell == "zsh" else BASH).format(
        commands=commands,
        always=ALWAYS,
        options="\n".join(_cases({_pattern(name): known for name, known in options.items()}, shell)),
        below="\n".join(_cases(below, shell)),
    )


def _options(command: Any) -> tuple[str, ...]:
    known = (option for parameter in command.params for option in parameter.opts if option.startswith("--"))
    return tuple(dict.fromkeys((*known, "--help")))


def _pattern(name: str) -> str:
    """Read the command: one below another is two words and comes first; any other is followed by whatever there is."""
    return f'"{name}"' if " " in name else f'"{name} "*'


def _cases(words: Words, shell: str) -> Iterator[str]:
    opening, closing = ("(", ")") if shell == "zsh" else ('"', '"')
    for name, known in words.items():
        yield f"        {name}) known={opening}{' '.join(known)}{closing} ;;"


def _fish(below: Words, options: Words) -> Iterator[str]:
    for name, known in below.items():
        yield f"complete -c shuffledp -n '__shuffledp_next {name}' -f -a '{' '.join(known)}'"
    for name, known in options.items():
        for option in known:
            yield f"complete -c shuffledp -n '__shuffledp_after {name}' -l {option[2:]}"
