"""`--thousands`: every command that estimates takes it, and a hint says what can be typed."""

from __future__ import annotations

import pytest

ROWS = '"1,000",yes\n"28,454",no\n' * 20
COMMANDS = {
    "mean": (),
    "variance": (),
    "histogram": ("--bins", "4"),
    "quantiles": ("--bins", "4"),
}
ASKED = ("--low", "0", "--high", "40000", "--epsilon0", "700", "--delta", "1e-6", "--any-delta")


@pytest.mark.costly("histogram", "quantiles")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_number_of_two_readings_is_refused_with_both(run, tmp_path, command):
    """The hint named --decimal, which then read one of a thousand."""
    (tmp_path / "t.csv").write_text("x,vote\n" + ROWS)
    ask = (command, "t.csv", "--value", "x", *ASKED, *COMMANDS[command])
    error = run(*ask).error
    assert "1,234 is 1.234 with --decimal ,, and 1234 with --thousands ,; say which it is" in error
    assert run(*ask, "--thousands", ",", "--json").json["n"] == 40


def test_release_takes_it_too(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,vote\n" + ROWS)
    ask = ("release", "t.csv", "--ask", "mean x 0 40000", "--epsilon0", "700", "--delta", "1e-6", "--any-delta")
    assert "--thousands ," in run(*ask).error
    assert run(*ask, "--thousands", ",").status == 0


def test_a_mark_that_is_none(run, tmp_path):
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    error = run("mean", "t.csv", "--value", "x", *ASKED, "--thousands", ".").error
    assert error == "--thousands must be , . _ apostrophe or space, and not the decimal mark; got '.'"
