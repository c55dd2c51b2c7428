"""`--missing-person`: rows without a person."""

from __future__ import annotations

ASK = ("frequency", "v.csv", "--value", "vote", "--categories", "yes,no", "--epsilon0", 1, "--delta", 1e-4)


def test_rows_without_a_person(run, tmp_path):
    rows = [f"p{i},yes" for i in range(100)] + [",no"] * 50
    (tmp_path / "v.csv").write_text("\n".join(["who,vote", *rows]), encoding="utf-8")
    assert run(*ASK, "--person", "who").error == (
        "who in row 101 is empty, so nobody knows whose row it is; give every row its person, or say --missing-person "
        "own if each such row is the only one of a person of its own (50 such rows in all)"
    )
    found = run(*ASK, "--person", "who", "--missing-person", "own", "--json").json
    assert (found["n"], found["unit"]) == (150, "people")
    alone = run(*ASK, "--missing-person", "own").error
    assert "needs the column that tells whose row it is; name it with --person" in alone
