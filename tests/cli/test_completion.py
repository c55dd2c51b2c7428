"""The scripts of shells complete commands, options and files, in the shells themselves."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time

import pytest

from shuffledp.cli.app import COMMANDS

BELOW = {"draft", "post", "link", "codes", "status", "close", "destroy", "verify"}
PATIENCE = 300.0
"""Seconds that a shell on a busy machine may take to answer a key."""


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"no {shell} on this machine")


def in_bash(script: str, *words: str) -> set[str]:
    """What bash offers for the last of the words."""
    typed = " ".join(repr(word) for word in words)
    ask = f'COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _shuffledp; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def in_fish(script: str, *words: str) -> set[str]:
    """What fish offers for the last of the words."""
    ask = f"{script}\ncomplete -C '{' '.join(words)}'"
    done = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return {line.partition("\t")[0] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("completed", [pytest.param(in_bash, marks=needs("bash")),
                                       pytest.param(in_fish, marks=needs("fish"))])  # fmt: skip
def test_a_shell_offers_what_there_is(run, tmp_path, completed):
    script = run("completion", completed.__name__.removeprefix("in_")).out
    (tmp_path / "people.csv").touch()
    assert set(COMMANDS) <= completed(script, "shuffledp", "")
    assert completed(script, "shuffledp", "mea") == {"mean"}
    assert completed(script, "shuffledp", "--v") == {"--version"}
    found = completed(script, "shuffledp", "mean", "--")
    assert {"--value", "--low", "--counts"} <= found
    assert not {"--disjoint", "--between"} & found
    assert completed(script, "shuffledp", "difference", "--dis") == {"--disjoint"}
    assert completed(script, "shuffledp", "task", "") >= BELOW
    assert "--report" not in completed(script, "shuffledp", "task", "codes", "--")
    assert completed(script, "shuffledp", "task", "codes", "--lin") == {"--links"}
    # a word that is the name of another command, where it is a value: bash leaves files to itself
    files = {"people.csv"} if completed is in_fish else set()
    assert completed(script, "shuffledp", "mean", "open", "--sep") == {"--separator"}
    assert completed(script, "shuffledp", "mean", "peo") == files
    assert completed(script, "shuffledp", "mean", "--ledger", "peo") == files


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, words: list[str]) -> None:
        self.seen = ""
        self.child, self.screen = pty.fork()
        if self.child == 0:
            os.environ.update(TERM="dumb", COLUMNS="200", LINES="50")
            os.execvp(words[0], words)

    def until(self, wanted: str) -> None:
        """Read until the text is there, and go on behind it."""
        end = time.monotonic() + PATIENCE
        while wanted not in self.seen and time.monotonic() < end:
            if select.select([self.screen], [], [], 0.2)[0]:
                self.seen += os.read(self.screen, 65536).decode(errors="replace")
        assert wanted in self.seen, self.seen[-500:]
        self.seen = self.seen.partition(wanted)[2]

    def press(self, keys: str) -> None:
        os.write(self.screen, keys.encode())

    def close(self) -> None:
        os.close(self.screen)
        os.waitpid(self.child, 0)


@needs("zsh")
def test_zsh_completes_at_the_press_of_the_key(run, tmp_path):
    (tmp_path / "s").write_text(run("completion", "zsh").out, encoding="utf-8")
    (tmp_path / "people.csv").touch()
    zsh = Terminal(["zsh", "-f", "-i"])
    try:
        zsh.press("PS1='> '; autoload -U compinit; compinit -u -D; source ./s; print rea''dy\n")
        zsh.until("ready\r\n")
        zsh.until("> ")  # what is typed before the prompt is not completed
        for typed, completed in (("shuffledp mea", "mean "), ("--lo", "--low "), ("peo", "people.csv "),
                                 ("--led", "--ledger "), ("peop", "people.csv ")):  # fmt: skip
            zsh.press(f"{typed}\t")
            zsh.until(completed[len(typed.rpartition(" ")[2]) :])
        zsh.press("\x15shuffledp task cod\t")
        zsh.until("es ")
        zsh.press("--lin\t")
        zsh.until("ks ")
    finally:
        zsh.close()


@needs("zsh")
def test_zsh_can_load_it_by_itself(run, tmp_path):
    """A file on fpath is autoloaded: the first press must complete, too."""
    (tmp_path / "_shuffledp").write_text(run("completion", "zsh").out, encoding="utf-8")
    zsh = Terminal(["zsh", "-f", "-i"])
    try:
        zsh.press("PS1='> '; fpath=($PWD $fpath); autoload -U compinit; compinit -u -D; print rea''dy\n")
        zsh.until("ready\r\n")
        zsh.until("> ")  # what is typed before the prompt is not completed
        zsh.press("shuffledp diff\t")
        zsh.until("erence ")
    finally:
        zsh.close()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_have_all_commands(run, tmp_path, shell):
    script = run("completion", shell).out
    for command in (*COMMANDS, *BELOW):
        assert command in script
    options = "-l disjoint" if shell == "fish" else "--disjoint"
    assert options in script
    if shutil.which(shell) is not None:
        (tmp_path / "s").write_text(script, encoding="utf-8")
        subprocess.run([shell, "-n", str(tmp_path / "s")], check=True)


def test_another_shell_is_refused(run):
    assert "bash" in run("completion", "tcsh").error
