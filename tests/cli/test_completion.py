"""The scripts of shells name every command and its options."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from shuffledp.cli.app import COMMANDS


def completed(script: str, *words: str) -> set[str]:
    """What bash offers for the last of the words."""
    typed = " ".join(repr(word) for word in words)
    ask = f'COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _shuffledp; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
def test_bash_offers_what_there_is(run):
    script = run("completion", "bash").out
    assert completed(script, "shuffledp", "") == {*COMMANDS, "--help", "--version"}
    assert completed(script, "shuffledp", "mea") == {"mean"}
    assert {"--value", "--low", "--counts"} <= completed(script, "shuffledp", "mean", "--")
    assert completed(script, "shuffledp", "difference", "--dis") == {"--disjoint"}
    assert completed(script, "shuffledp", "mean", "people") == set()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_all_commands(run, tmp_path, shell):
    script = run("completion", shell).out
    for command in COMMANDS:
        assert command in script
    options = "-l disjoint" if shell == "fish" else "--disjoint"
    assert options in script
    if shutil.which(shell) is not None:
        (tmp_path / "s").write_text(script, encoding="utf-8")
        subprocess.run([shell, "-n", str(tmp_path / "s")], check=True)


def test_another_shell_is_refused(run):
    assert "bash" in run("completion", "tcsh").error
