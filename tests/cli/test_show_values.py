"""`--show-values`: whoever holds the table may see what is refused; nobody else does."""

from __future__ import annotations


def test_values_are_shown_to_whoever_asks(run, tmp_path):
    (tmp_path / "t.csv").write_text("vote,x\n" + "yes,1\nno,2\n" * 20 + "HIV,97.5\n")
    told = ("--epsilon0", "1", "--delta", "1e-6")
    vote = ("frequency", "t.csv", "--value", "vote", "--categories", "yes,no", *told)
    age = ("mean", "t.csv", "--value", "x", "--low", "0", "--high", "90", *told)
    both = ("release", "t.csv", "--ask", "frequency vote yes,no", "--ask", "mean x 0 90", *told)
    assert "the record in row 41 is none of the categories" in run(*vote).error
    assert "the value in row 41 is outside [0.0, 90.0]" in run(*age).error
    for ask, value in ((vote, "'HIV'"), (age, "97.5"), (both, "'HIV'")):
        assert value not in run(*ask).error
        assert f"is {value}, " in run(*ask, "--show-values").error
