"""The pages of docs/ say what the tables say, the tables what the library says, and every link leads somewhere."""

from __future__ import annotations

import csv
import math
import re
import unicodedata
from pathlib import Path

import pytest
from tools import docs_pages, docs_tables, make_docs_figures

from shuffledp.accounting import bounds
from shuffledp.reproduce import failure_curves, failure_tables
from shuffledp.reproduce.estimation import QUIET_LAPLACE

DOCS = Path(__file__).resolve().parent.parent / "docs"
FAILURES, BOUNDS = DOCS / "where-the-papers-fail.md", DOCS / "bounds.md"
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?|\binf\b")


def read(name: str) -> list[dict[str, str]]:
    with (DOCS / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shows(printed: str, value: float) -> bool:
    """Whether a printed number is the value, rounded to the printed digits."""
    if printed == "inf":
        return math.isinf(value)
    digits = printed.replace(",", "")
    mantissa, _, power = digits.partition("e")
    decimals = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(power or 0) - decimals)
    return math.isfinite(value) and abs(float(digits) - value) <= 0.5001 * unit


# ------------------------------------------------------------------ where-the-papers-fail.md


def table_rows() -> list[tuple[int, list[str]]]:
    """Item and the cells "claimed", "attained", "certified" of the page's table."""
    found = []
    for line in FAILURES.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        item = re.match(r"\[?(\d+)", cells[0])
        if line.startswith("|") and item and len(cells) == 6:
            found.append((int(item[1]), cells[3:]))
    return found


def known(item: int) -> list[float]:
    return [float(row["value"]) for row in read("failures") if int(row["item"]) == item]


def test_every_number_of_the_failure_table_is_in_the_csv():
    rows = table_rows()
    assert {item for item, _ in rows} == set(range(1, 12))
    for item, cells in rows:
        numbers = [number for cell in cells for number in NUMBER.findall(cell)]
        assert numbers, cells
        for number in numbers:
            assert any(shows(number, value) for value in known(item)), f"item {item}: {number} is not in failures.csv"


def sections() -> dict[int, str]:
    """Text of each item."""
    parts = re.split(r"^## (\d+)\. .*$", FAILURES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {int(number): text.split("\n## ")[0] for number, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_every_item_has_a_section_and_its_measured_numbers_are_in_the_csv():
    """Numbers of three significant digits or more in the prose are in the CSV, or parameters named here."""
    window = QUIET_LAPLACE[2.0]
    given = {
        1: "1,000",
        3: "1e-6 100 0.0206",
        4: f"100 1e-4 4,000,000 99.9 {-window.low:g} {window.high:g}",
        5: "100 900 99.9 100,000 1,000,000",
        6: "10,000",
        8: "100 600 1e-5",
        9: "0.54 0.37 0.09 97.2 10,000",
        10: "1,000 1e-5",
    }
    found = sections()
    assert sorted(found) == list(range(1, 13))
    for item, text in found.items():
        plain = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
        for number in NUMBER.findall(plain):
            significant = re.sub(r"\D", "", number.partition("e")[0]).lstrip("0")
            if len(significant) < 3 or number in given.get(item, "").split():
                continue
            assert any(shows(number, value) for value in known(item)), f"item {item}: {number} is not in failures.csv"


QUICK = (
    failure_tables.one_budget_rows,
    failure_tables.approximate_rows,
    failure_tables.training_rows,
    failure_tables.estimator_rows,
    failure_tables.pure_rows,
)


@pytest.mark.costly
def test_failures_csv_is_up_to_date():
    """Its quick rows; the others are left to the slow tests, and asserted in the tests of each failure."""
    written = {(row["item"], row["case"], row["quantity"]): float(row["value"]) for row in read("failures")}
    for part in QUICK:
        for item, case, quantity, value in part():
            assert written.pop((str(item), case, quantity)) == pytest.approx(value, rel=1e-3)
    assert {item for item, _, _ in written} == {"3", "4", "5", "7", "10"}


@pytest.mark.slow
def test_the_slow_rows_of_failures_csv_are_up_to_date():
    written = {(row["item"], row["case"], row["quantity"]): float(row["value"]) for row in read("failures")}
    for item, case, quantity, value in (row for part in failure_tables.PARTS for row in part()):
        assert written.pop((str(item), case, quantity)) == pytest.approx(value, rel=5e-3)
    assert not written


@pytest.mark.costly
def test_the_curves_are_up_to_date():
    written = {(row["figure"], row["series"], float(row["x"])): float(row["y"]) for row in read("failures_curves")}
    points = list(failure_curves.one_budget())
    for figure, series, x, y in points:
        near = [
            value
            for (f, s, at), value in written.items()
            if (f, s) == (figure, series) and math.isclose(at, x, rel_tol=1e-5)
        ]
        assert near == [pytest.approx(y, rel=1e-3)]
    assert {figure for figure, _, _ in written} > {"one-budget", "laplace", "ordered", "rounds"}


# ------------------------------------------------------------------ bounds.md


def written_epsilons() -> dict[tuple[str, str, str, str, str], tuple[float, float]]:
    return {
        (row["population"], row["n"], row["seen"], row["budgets"], row["key"]): (
            float(row["lower"]),
            float(row["upper"]),
        )
        for row in read("table2")
    }


@pytest.mark.costly("Mixed")
@pytest.mark.parametrize("name", ["Constant", "Mixed"])
def test_table_2_is_up_to_date(name):
    """Every bound at n = 3,000; the uniform populations, with thousands of levels, are left to the slow tests."""
    check_population(name, 3000)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Unif 1", "Unif 2"])
def test_table_2_is_up_to_date_for_thousands_of_levels(name):
    check_population(name, 10_000)


def check_population(name: str, n: int) -> None:
    written = written_epsilons()
    for population, size, seen, counted, key, _, lower, upper, refused in docs_tables.table2((n,), (name,)):
        found = written.get((population, str(size), seen, counted, key))
        if refused:
            assert found is None
        else:
            assert found == (pytest.approx(lower, rel=1e-3, abs=1e-12), pytest.approx(upper, rel=1e-3))


def test_every_bound_is_in_the_table_or_refused_there():
    answered = {(row["population"], row["key"]) for row in read("table2")}
    refused = {(row["population"], row["key"]) for row in read("table2_refused")}
    assert answered | refused == {(name, key) for name in docs_tables.POPULATIONS for key in bounds}
    assert all(row["reason"] for row in read("table2_refused"))


def test_the_generated_part_of_bounds_is_what_the_tables_say():
    text = BOUNDS.read_text(encoding="utf-8")
    inside = text.split(docs_pages.BEGIN)[1].split(docs_pages.END)[0].strip()
    assert inside == docs_pages.generated(read("table2"), read("table2_refused")).strip()


def test_no_asymptotic_number_is_below_what_is_attained_on_these_populations():
    """What bounds.md says of the dashed lines, and that no certified bound is below a witness."""
    written = written_epsilons()
    for (name, n, seen, counted, key), (_, upper) in written.items():
        attained = written.get((name, n, "reports", "own", "count-exact"))
        if seen == "reports" and attained and counted == "own" and key not in ("count-exact", "girgis21-lower"):
            assert upper >= attained[0]


# ------------------------------------------------------------------ pictures and links


def test_every_picture_is_shown_and_every_shown_picture_exists():
    shown = set()
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            shown.add((page.parent / target).resolve())
    drawn = {path.resolve() for path in (DOCS / "figures").glob("*.svg")}
    assert {path for path in shown if path.parent == (DOCS / "figures").resolve()} == drawn


@pytest.mark.parametrize("path", sorted((DOCS / "figures").glob("*.svg")), ids=lambda path: path.name)
def test_pictures_are_small_dateless_text(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < 120_000
    assert "<text" in text
    assert not re.search(r"dc:date|<image|/home/|/work/", text)


def test_pictures_are_drawn_from_the_tables(tmp_path, monkeypatch):
    """The same table gives the same bytes twice, and the committed picture's curves."""
    drawn = []
    for folder in ("first", "second"):
        monkeypatch.setattr(make_docs_figures, "FIGURES", tmp_path / folder)
        with make_docs_figures.mpl.rc_context(make_docs_figures.STYLE):
            make_docs_figures.draw_failures(["failures-rounds"])
        drawn.append((tmp_path / folder / "failures-rounds.svg").read_text(encoding="utf-8"))
    assert drawn[0] == drawn[1]
    committed = (DOCS / "figures" / "failures-rounds.svg").read_text(encoding="utf-8")
    assert paths_of(drawn[0]) == paths_of(committed)


def test_the_pictures_of_the_first_page_are_what_pages_show():
    for name, picture in make_docs_figures.answers().items():
        assert (DOCS / "figures" / f"{name}.svg").read_text(encoding="utf-8") == picture


def paths_of(svg: str) -> list[str]:
    return re.findall(r' d="([^"]+)"', svg)


def anchor(heading: str) -> str:
    """The identifier that renderers give a heading."""
    plain = unicodedata.normalize("NFC", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@pytest.mark.parametrize("page", [FAILURES, BOUNDS], ids=lambda page: page.name)
def test_links_resolve(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if fragment:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert fragment in {anchor(heading) for heading in headings}, target


@pytest.mark.parametrize("page", [FAILURES, BOUNDS], ids=lambda page: page.name)
def test_bounds_and_commands_named_in_a_page_exist(page):
    for name in re.findall(r"python -m (tools\.\w+)", page.read_text(encoding="utf-8")):
        assert (DOCS.parent / f"{name.replace('.', '/')}.py").is_file()
    for name in re.findall(r"`(tests/[\w/]+\.py)`", page.read_text(encoding="utf-8")):
        assert (DOCS.parent / name).is_file()
