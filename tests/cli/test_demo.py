"""The first screen: what `demo` prints fits a terminal, helps, and is private; and the table that it writes."""

from __future__ import annotations

import re

import polars as pl
import pytest

from shuffledp.cli.demo.table import EDUCATIONS


@pytest.fixture
def screen(run, monkeypatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("demo")
    assert shown.status == 0, shown.err
    return [line.rstrip() for line in shown.out.splitlines()]


@pytest.mark.costly
def test_the_first_screen_fits_a_terminal_and_helps(screen):
    """Noise is secure, so no seed: a share is off by 2 points, 6 standard errors, in less than 1 run of 10^8."""
    assert len(screen) <= 40
    assert max(map(len, screen)) <= 80
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in screen if line.startswith("│")]
    assert not any(line[0] == "" for line in cells)  # no cell takes a second line
    rows = {line[0]: line[1:] for line in cells if len(line) == 4 and line[1].endswith("%")}
    assert set(rows) == {"Income over 50K", *EDUCATIONS}
    for estimate, interval, truth in rows.values():
        estimate, truth = float(estimate[:-1]), float(truth[:-1])
        low, high = (float(end[:-1]) for end in interval.split(" to "))
        assert estimate > 0.0
        assert abs(estimate - truth) < 2.0
        assert high - low < 2.0
    (most,) = re.findall(r"answers all three questions is protected by epsilon <= ([\d.]+)", " ".join(screen))
    assert float(most) < 0.2


def test_the_table_that_the_examples_ask(run, tmp_path):
    assert "48,842 people" in run("demo", "--table", "people.csv").out
    people = pl.read_csv(tmp_path / "people.csv")
    assert people.columns == ["hours", "income", "education", "budget", "consent"]
    assert set(people["education"]) == set(EDUCATIONS)
    assert dict(people.select("budget", "consent").unique().rows()) == {1: "careful", 2: "medium", 4: "open"}
    assert people["budget"].value_counts(sort=True).rows() == [(1, 26374), (2, 18072), (4, 4396)]
    assert people["hours"].mean() == pytest.approx(40.422382, abs=1e-6)
