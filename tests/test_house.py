"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest
from tools.count_house import code_lines

import shuffledp.accounting as accounting
from shuffledp.accounting.published import PUBLISHED
from tests.trees import PYTHON, ROOT, nodes_of, statements, tree_of

MOST_LINES, MOST_CODE_LINES, MOST_FUNCTION_LINES = 800, 500, 60
TEXT = [
    ROOT / name
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "Makefile", "pyproject.toml")
]


MACHINE = r"(?<![\w.])/(home|work|root|Users)/\w|pypi\.org/simple|--index-url"


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_file_and_no_function_is_too_long():
    for path in PYTHON:
        lines = path.read_text(encoding="utf-8").count("\n")
        assert lines <= MOST_LINES, f"{short(path)} has {lines} lines"
        if lines > MOST_CODE_LINES and path.suffix == ".py":
            code = code_lines(path)
            assert code <= MOST_CODE_LINES, f"{short(path)} has {code} lines of code"
        for node in statements(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body
                length = (node.end_lineno or node.lineno) - body[0].lineno + 1
                named = f"{short(path)}: {node.name} has {length} lines besides its docstring"
                assert length <= MOST_FUNCTION_LINES, named


@pytest.mark.parametrize("key", sorted(accounting.bounds))
def test_every_bound_has_its_theorem_written_down(key):
    page = ROOT / "docs" / "theorems" / f"{key}.md"
    assert page.is_file(), f"docs/theorems/{key}.md is missing: statement, hypotheses, rounding argument"
    assert len(page.read_text(encoding="utf-8")) > 200


OWN = sorted(key for key, bound in accounting.bounds.items() if bound not in PUBLISHED)


THEOREMS = ROOT / "src" / "shuffledp" / "accounting" / "theorems"
WITNESS_OF = {"count-exact": "count.exact", "linked-exact": "linked", "sum-exact": "sum"}
"""Witnesses that stand with the theorem whose evaluation they share."""


@pytest.mark.parametrize("key", OWN)
def test_every_own_theorem_lives_in_the_file_of_its_name(key):
    """A key is found by the name of its file, or of its folder, where `bound` holds it."""
    name = WITNESS_OF.get(key, key.replace("-", "_"))
    name = f"{name}.bound" if (THEOREMS / name).is_dir() else name
    assert type(accounting.bounds[key]).__module__ == f"shuffledp.accounting.theorems.{name}"
    source = (THEOREMS / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
    keys = re.findall(r'^    key = "(.*)"$', source, re.MULTILINE)
    assert key in keys
    assert {own for own in keys if own not in WITNESS_OF} <= {key, key.removesuffix("-exact")}


def test_every_place_of_theorems_is_one_of_the_keys():
    places = {path.stem for path in THEOREMS.iterdir() if path.name not in ("__init__.py", "__pycache__")}
    assert places == {key.replace("-", "_") for key in OWN if key not in WITNESS_OF}
    assert len(OWN) >= 12


ELSEWHERE = {"shuffleddp/amplification_bounds.py"}
"""Files of other projects that pages name."""
PLACES = (ROOT / "src" / "shuffledp", ROOT / "docs", ROOT)


def test_files_named_in_the_pages_exist():
    """A path is of the package, or begins at the project's folder."""
    for page in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        if not page.name.startswith("changelog"):
            named = set(re.findall(r"(?<![\w./])[a-z_]+/[\w/]+\.py\b", page.read_text(encoding="utf-8"))) - ELSEWHERE
            gone = {name for name in named if not any((place / name).is_file() for place in PLACES)}
            assert gone == set(), short(page)


def catches(path: Path, error: str) -> int:
    """How many handlers of a file name the error."""
    handlers = [node for node in statements(tree_of(path)) if isinstance(node, ast.ExceptHandler)]
    return sum(n.type is not None and error in ast.unparse(n.type) for n in handlers)


def test_which_bound_applies_is_decided_in_one_place():
    """`weigh` catches a refusal; besides it only who tries several ways (planning, training) and the command line."""
    source = ROOT / "src" / "shuffledp"
    found = {short(path): catches(path, "OutOfRegime") for path in source.rglob("*.py")}
    places = {name: count for name, count in found.items() if count}
    assert places["src/shuffledp/accounting/bound.py"] == 1
    assert sum(places.values()) <= 4, f"ask bounds through accounting.weigh, ways through planning.attempt: {places}"


ROUNDING = {"EPS", "nextafter", "spacing", "ulp", "fromhex", "float_info", "finfo"}
SMALL = 1e-9
"""A literal below is taken for a rounding error."""
NO_ROUNDINGS = {
    "accounting/theorems/count/cover.py": {1e-60, 1e-30, 1e-16, 1e-11},  # quantiles
    "accounting/theorems/blanket/noise.py": {1e-40, 1e-200},  # where a search for cores ends
    "accounting/theorems/blanket/bound.py": {1e-41},  # the least delta of which anything is proved
    "accounting/theorems/blanket/pairs.py": {1e-13, 1e-18},  # chances that may be charged
    "accounting/profiles/stored.py": {1e-11},  # how deep a curve is stored
    "accounting/profiles/profile.py": {1e-12},  # where a search for a guess ends
    "accounting/theorems/reports_exact.py": {1e-180},  # a variance that is told from 0, in a guess
    "accounting/theorems/linked.py": {1e-200},  # a blanket that hides nobody
    "audit/pipeline.py": {1e-90},  # a chance that a score needs positive
    "learning/features.py": {1e-150},  # a vector without direction
    "learning/messages.py": {1e-76},  # unevenness of drawn noise, proved there
    "planning/bucketing.py": {1e-12},  # where a search gives up
    "questions/variance.py": {1e-70},  # the narrowest range
    "randomizers/vector.py": {1e-18},  # tails left out of a quadrature
    "randomizers/numeric.py": {2.742e-11},  # a table of optimal settings
    "randomizers/subset.py": {1e-150},  # symbols that cannot be told apart
    "in_words.py": {1e-15},  # digits without end
    "reproduce/failures.py": {1e-12, 1e-30},  # axes
}
"""Small literals that are no rounding errors; a rounding error has a name, or is counted, in numerics."""


SIDED = {"Upper", "Lower", "Interval", "Enclosure"}
"""Types of results that promise a side; a function that returns one may count its rounding errors itself."""
COUNTING = {
    "accounting/theorems/blanket/noise.py": {"", "shared_chances", "rounded_groups"},
    "accounting/theorems/chain/bound.py": {""},
    "accounting/theorems/chain/normal.py": {"", "remainders"},
    "accounting/theorems/chain/pure.py": {""},
    "accounting/theorems/count/channel.py": {"log_values"},
    "accounting/theorems/count/cover.py": {"", "of", "evaluate", "_possible", "_powers"},
    "accounting/theorems/floor/bound.py": {"", "among_ones", "among_cells", "_counts"},
}
"""Functions of theorems that return arrays or tables and count the rounding errors of them; "": its constants."""


def rounding_in(path: Path) -> dict[str, set[object]]:
    """Names that tell of the format of doubles, and small literals, by the outermost function that holds them."""
    found: dict[str, set[object]] = {}

    def look(node: ast.AST, function: str, sided: bool) -> None:
        if isinstance(node, ast.FunctionDef) and not sided:
            sided = node.returns is not None and any(kind in ast.unparse(node.returns) for kind in SIDED)
            function = function or node.name
        names = {getattr(node, field, None) for field in ("id", "attr")}
        if isinstance(node, ast.ImportFrom) and node.module != "shuffledp.numerics.floats":
            names |= {name for alias in node.names for name in (alias.name, alias.asname)}
        here: set[object] = {name for name in names if isinstance(name, str)} & ROUNDING
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and 0.0 < node.value < SMALL:
            here.add(node.value)
        if here and not sided:
            found.setdefault(function, set()).update(here)
        for part in ast.iter_child_nodes(node):
            look(part, function, sided)

    look(tree_of(path), "", False)
    return found


OUTSIDE = [p for p in PYTHON if "src" in p.parts and "numerics" not in p.parts]


def test_rounding_errors_are_counted_where_a_side_is_promised():
    """Elsewhere intervals add and multiply outward, and one-sided doubles are `Upper` and `Lower`."""
    for path in OUTSIDE:
        name = str(path.relative_to(ROOT / "src" / "shuffledp"))
        counting, literals = COUNTING.get(name, set()), NO_ROUNDINGS.get(name, set())
        there = rounding_in(path)
        found = {function: here - literals for function, here in there.items()}
        left = {function: here for function, here in found.items() if here}
        assert left.keys() == counting, f"{name}: {left}; see shuffledp.numerics.floats, .interval"
        seen = {value for here in there.values() for value in here}
        assert literals <= seen, f"{name}: {literals - seen} no longer stand there"


def test_the_rule_about_rounding_sees_what_it_forbids(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(
        "from math import nextafter as n\nimport sys\nx = sys.float_info, np.finfo, float.fromhex, 1 + 1e-12"
    )
    assert rounding_in(bad) == {"": {"nextafter", "float_info", "finfo", "fromhex", 1e-12}}
    other = tmp_path / "other.py"
    other.write_text(
        "def inside(x: float) -> float:\n    return x + EPS\ndef above(x: float) -> Upper:\n    return Upper(x + EPS)"
    )
    assert rounding_in(other) == {"inside": {"EPS"}}


@pytest.mark.parametrize("room", ["profiles", "theorems", "published"])
def test_where_a_profile_vanishes_is_an_upper_end(room):
    """A bare float there was once below the truth: pyright refuses one where `Upper` is promised."""
    for path in (ROOT / "src" / "shuffledp" / "accounting" / room).rglob("*.py"):
        for node in statements(tree_of(path)):
            if isinstance(node, ast.FunctionDef) and node.name == "vanishes_at":
                assert node.returns is not None, short(path)
                assert ast.unparse(node.returns) == "Upper", short(path)


@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt", "docs.txt"])
def test_requirements_are_pinned_with_hashes_and_without_addresses(name):
    lines = (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert pinned
    assert [line for line in pinned if not re.match(r"[\w.\-\[\]]+==\S+ (;.*)?\\$", line)] == []
    assert len([line for line in lines if "--hash=sha256:" in line]) >= len(pinned)
    assert [line for line in lines if "://" in line or "--find-links" in line or "index-url" in line] == []


@pytest.mark.parametrize("name", ["dev.txt", "docs.txt"])
def test_what_is_asked_for_with_an_extra_is_pinned_with_it(name):
    """`coverage==7.17.4` did not pin pytest-cov's `coverage[toml]`: a day later pip met 7.17.5, without a hash."""
    lines = (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
    pins = dict(found.groups() for line in lines if (found := re.match(r"([\w.-]+)(\[[^]]+\])?==", line)))
    pinned = [dist for dist in distributions() if canonical(dist.name) in pins]
    asked = [need for dist in pinned for need in dist.requires or () if "extra ==" not in need]
    found = [re.match(r"([\w.-]+)(\[[^]]+\])", need) for need in asked]
    needed = {canonical(match[1]): match[2] for match in found if match}
    assert "coverage" in needed
    assert {package: pins.get(package) for package in needed} == needed


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_readme_commands_exist():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", readme, re.MULTILINE))  # commands, not the verb
    assert {"demo", "test"} <= named <= targets
    from shuffledp.cli.app import COMMANDS

    assert set(re.findall(r"^\$ shuffledp ([a-z-]+)", readme, re.MULTILINE)) <= set(COMMANDS)


def test_no_test_packs_the_time():
    """In a parameter it becomes part of the test's name, and two workers then collect different tests."""
    for path in PYTHON:
        if path != Path(__file__).resolve():
            assert not re.search(r"gzip\.compress\((?!.*mtime=0)", path.read_text(encoding="utf-8")), short(path)


CLOCKS = {"perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "thread_time", "getrusage"}


def test_no_test_asserts_how_long_something_takes():
    """A machine may be slow or busy: work is counted (tests/work.py), seconds belong in benchmarks."""
    for path in PYTHON:
        if path.is_relative_to(ROOT / "tests"):
            for node in (node for node in nodes_of(path) if isinstance(node, ast.Assert)):
                read = {getattr(part, "attr", getattr(part, "id", None)) for part in ast.walk(node.test)}
                assert not read & CLOCKS, f"{short(path)}:{node.lineno} asserts on a clock"


def test_no_path_of_one_machine_and_no_package_index():
    for path in (*PYTHON, *TEXT):
        if path != Path(__file__).resolve():
            found = re.search(MACHINE, path.read_text(encoding="utf-8"))
            assert not found, f"{short(path)}: {found}"


def test_the_package_is_typed_and_licensed():
    assert (ROOT / "src" / "shuffledp" / "py.typed").is_file()
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "CC BY 4.0" in (ROOT / "src" / "shuffledp" / "data" / "README.md").read_text(encoding="utf-8")


ERRORS = {"InvalidInput", "OutOfRegime", "NotConverged", "InconsistentBounds"}


def test_every_entry_that_an_error_shows_is_cut():
    """`errors.shown` cuts an entry to 80 characters; ``!r`` in a message would show all of it."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in ERRORS:
                for part in ast.walk(node):
                    whole = isinstance(part, ast.FormattedValue) and part.conversion == ord("r")
                    assert not whole, f"{short(path)}, line {part.lineno}: show an entry by errors.shown"


UNMARKED = re.compile(r"(?<![`\w])[a-z]\w* = '")


def test_a_parameter_that_a_message_gives_a_value_stands_between_backticks():
    """The command line, which names options itself, makes one of it (cli/front.py)."""
    assert UNMARKED.search("say seen = 'sum'")
    assert not UNMARKED.search("say `seen = 'sum'`")
    for path in (ROOT / "src").rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in ERRORS and "cli" not in path.parts:
                said = "".join(str(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant))
                assert not UNMARKED.search(said), f"{short(path)}:{node.lineno}: {said}"


def test_a_public_docstring_says_more_than_a_word():
    for path in (ROOT / "src").rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                said = ast.get_docstring(node)
                assert said is None or len(said) >= 20, f"{short(path)}:{node.lineno}: {said}"


def test_the_version_stands_in_one_place():
    import shuffledp

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/shuffledp/__init__.py"
    for name in ("CITATION.cff", "pyproject.toml"):
        assert shuffledp.__version__ not in (ROOT / name).read_text(encoding="utf-8"), name
    for path in PYTHON:
        if path.is_relative_to(ROOT / "src"):
            assert 'version("shuffledp")' not in path.read_text(encoding="utf-8"), short(path)


def test_every_version_of_the_changelog_bears_a_date():
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heads[0].endswith("(unreleased)")
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d(, .*)?\)", head) for head in heads[1:])


def test_checks_of_whole_numbers_and_choices_are_worded_once():
    """`shuffledp.errors` words them; what refuses in other words says more than the rule."""
    worded = re.compile(r"must be a whole number (from \{|of at least \{)|must be one of ")
    for path in PYTHON:
        if short(path).startswith("src/") and path.name != "errors.py":
            assert not worded.search(path.read_text(encoding="utf-8")), short(path)


def test_the_largest_local_budget_is_stated_once():
    """Theorems and numerics know the number on their own account: there it keeps an exponential from overflowing."""
    for path in (ROOT / "src").rglob("*.py"):
        if path.name != "errors.py":
            told = {id(node.value) for node in nodes_of(path) if isinstance(node, ast.Expr)}  # docstrings
            plain = [node.value for node in nodes_of(path) if isinstance(node, ast.Constant) and id(node) not in told]
            words = [value for value in plain if isinstance(value, str) and re.search(r"\b700\b", value)]
            own = {"accounting", "numerics"} & {*path.parts}
            found = words if own else [*words, *(value for value in plain if value == 700)]
            assert found == [], f"{short(path)}: take MAX_EPSILON0, or BUDGET_RULE, of shuffledp.errors"


TWICE = """
Answer Batch Choice Column Compared Counted Curve Cut Keeper Kept LocalRandomizer LossLaw Offer Opened Outcome Picture
Point Refused Row Run Settings Table Terms WindowFamily
"""
REPEATED = dict.fromkeys(TWICE.split(), 2) | {"Groups": 3, "Shape": 3}
"""Public names of classes that stand in several files, with the number of files; the list may only shrink."""


def test_no_more_classes_share_a_public_name():
    files: dict[str, set[Path]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files.setdefault(node.name, set()).add(path)
    repeated = {name: sorted(map(short, found)) for name, found in files.items() if len(found) > 1}
    more = {name: found for name, found in repeated.items() if len(found) > REPEATED.get(name, 1)}
    assert more == {}, "a class has a name of its own"
    fewer = {name for name, number in REPEATED.items() if len(repeated.get(name, ())) < number}
    assert fewer == set(), "take it off REPEATED"


OLD_ENGLISH = (
    r"\bhides? nobody\b",
    r"\bso many times as far\b",
    r"\"\"\"at once\.",
    r"^nowhere\.$|\"\"\"nowhere\.",
    r"\bthe rest does not tell\b",
    r"\bsid(e|es|ed|ing)\s+with\s+(the|an?)\s+(analyzer|observer|reader|shuffler)\b",
    r"\bmany\s+different\s+chances\s+as\b|\bcoin\s+that\s+is\s+told\b",
    r"\bcertainly\s+smaller\s+and\s+levels\b",
    r"\btells?\s+the\s+budget\b",
    r"\bis\s+told\s+the\s+digest\b",
    r"\bmay\s+lead\s+beyond\b",
)
"""Key phrases of sentences that read as a dialect and were once replaced, one for each; they shall not come back."""


def dialect(text: str) -> list[str]:
    return [found[0] for phrase in OLD_ENGLISH if (found := re.search(phrase, text, re.IGNORECASE | re.MULTILINE))]


def test_the_sentences_that_were_replaced_have_not_come_back():
    said = ("so many others hide nobody", "Nowhere.", "if it sides with\nthe analyzer", "the range tells the budget")
    assert all(dialect(text) for text in said)
    assert dialect("the shuffler colludes with the analyzer, and the range reveals the budget") == []
    folders = [path for folder in ("src", "docs") for path in (ROOT / folder).rglob("*")]
    for path in (ROOT / "README.md", *folders):
        if path.suffix in (".py", ".md", ".html", ".js", ".json", ".toml"):
            assert dialect(path.read_text(encoding="utf-8")) == [], short(path)
