"""Imports go one way only; the syntax trees say so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import shuffledp
from tests.trees import statements, tree_of

ROOT = Path(shuffledp.__file__).parent

FRONTS = {
    "learning": ("commands", "train", "data", "page"),
    "collection": (
        "commands", "posting", "group_commands", "answers", "serve", "rehearsal", "release_page", "kinds_view",
    ),
}  # fmt: skip
"""What of a product its users meet: commands and pages. The rest of the product imports none of it."""
PRODUCTS = ("collection", "learning", "flower", "spark", "reproduce")
"""Each may be left out of a copy, and the accountant, the estimates, the ledger, the plan and the audit still work."""

LAYERS = (
    ("errors", "progress"),
    ("whole_files", "in_words"),
    ("numerics", "params"),
    ("randomizers.base",),
    ("randomizers.linked",),
    ("budgets", "dummies", "ball"),
    ("setting",),
    ("accounting",),
    ("ledger",),
    ("randomizers", "tables"),
    ("records",),
    ("questions",),
    ("releases",),
    ("planning", "learning", "audit", "flower", "spark"),
    ("collection",),
    ("report",),
    ("shell",),
    tuple(f"{product}.{front}" for product, fronts in FRONTS.items() for front in fronts),
    ("reproduce",),
    ("cli", "__main__"),
)
"""From left to right: a module may import from its own group and from those before it."""

ACCOUNTING = (
    ("profiles.knots",),
    ("profiles.profile",),
    ("profiles",),
    ("bound",),
    ("theorems", "published"),
    ("certify",),
    ("filter",),
    ("calibrate", "dummies_needed"),
    ("",),
)
"""The same inside accounting; its `__init__`, the last one, is all that the other rooms import."""

RANDOMIZERS_MAY = ("errors", "numerics", "randomizers")
"""The randomizers' own law is stricter: they know numbers and their base class, nothing of accounting."""

OUTER_ONLY = {"matplotlib", "jinja2", "markupsafe", "typer", "rich"}
"""Presentation libraries, for reports, the command line and the fronts of products alone."""

MODULES = sorted(ROOT.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(module: str, law: tuple[tuple[str, ...], ...] = LAYERS) -> int:
    """Position of a module in the law, by its longest known prefix."""
    known = [
        (len(prefix), i)
        for i, group in enumerate(law)
        for prefix in group
        if module == prefix or (prefix and module.startswith(prefix + "."))
    ]
    assert known, f"module {module} has no place in the import law; add it to LAYERS or ACCOUNTING"
    return max(known)[1]


def is_for_types(test: ast.expr) -> bool:
    """Is it the condition that only type checkers meet?"""
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def imports(tree: ast.AST, *, for_types: bool = False) -> list[str]:
    """Absolute names of everything imported, at any depth; names for type checkers only where asked for."""
    found: list[str] = []
    typed = [node for node in statements(tree) if isinstance(node, ast.If) and is_for_types(node.test)]
    left_out = set[ast.AST]() if for_types else {part for node in typed for part in statements(node)}
    for node in statements(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                is_module = (ROOT.parent / whole.replace(".", "/")).with_suffix(".py").exists()
                found.append(
                    whole if is_module or (ROOT.parent / whole.replace(".", "/")).is_dir() else str(node.module)
                )
    return found


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    return tuple(imports(tree_of(path)))


def own(names: Iterable[str]) -> list[str]:
    return [name.removeprefix("shuffledp.") for name in names if name.startswith("shuffledp.")]


def test_no_module_imports_to_its_right():
    for path in MODULES:
        module = name_of(path)
        if module in ("", "__main__"):  # the public names come from everywhere
            continue
        for imported in own(imports_of(path)):
            assert layer(imported) <= layer(module), f"{module} imports {imported}, which stands to its right"
            if module.startswith("randomizers"):
                assert imported.startswith(RANDOMIZERS_MAY), f"{module}, a randomizer, may not import {imported}"


def presents(module: str) -> bool:
    room, _, rest = module.partition(".")
    return room in ("reproduce", "report", "shell", "cli") or rest in FRONTS.get(room, ())


def test_only_fronts_present():
    for path in MODULES:
        if not presents(name_of(path)):
            used = {name.split(".")[0] for name in imports_of(path)}
            assert not used & OUTER_ONLY, f"{name_of(path)} imports {sorted(used & OUTER_ONLY)}"


def test_nothing_that_stays_imports_a_product():
    """Besides the commands that are looked up by name, and the demonstration of a collection."""
    for path in MODULES:
        module = name_of(path)
        if module and not module.startswith((*PRODUCTS, "cli.demo")):
            assert not [name for name in own(imports_of(path)) if name.split(".")[0] in PRODUCTS], module


def test_only_reproduce_draws_and_only_when_it_does():
    """Matplotlib is the extra [figures]: nothing but the pictures of the papers needs it, and no import loads it."""
    drawing = {name_of(path) for path in MODULES for name in imports_of(path) if name.split(".")[0] == "matplotlib"}
    assert drawing <= {"reproduce.base"}
    for path in MODULES:
        nodes = [node for node in tree_of(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
        at_import = [name for node in nodes for name in imports(ast.Module([node], []))]
        assert not [name for name in at_import if name.startswith("matplotlib")], name_of(path)


def arrows() -> dict[str, set[str]]:
    """Which module imports which, names for type checkers included; the public names come from everywhere."""
    found = {name_of(path): set(own(imports(tree_of(path), for_types=True))) for path in MODULES}
    return {module: names & found.keys() - {module, ""} for module, names in found.items() if module}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return one circle of a graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []


def test_no_import_circle_inside_any_room():
    assert circle(arrows()) == []
    assert sorted(set(circle({"profile": {"knots"}, "knots": {"profile"}}))) == ["knots", "profile"]


def test_accounting_is_built_one_way():
    for path in MODULES:
        if not name_of(path).startswith("accounting"):
            continue
        module = name_of(path).removeprefix("accounting").lstrip(".")
        for imported in own(imports(tree_of(path), for_types=True)):
            if imported.startswith("accounting"):
                below = imported.removeprefix("accounting").lstrip(".")
                assert layer(below, ACCOUNTING) <= layer(module, ACCOUNTING), f"{module} imports {below}, to its right"


def test_only_accounting_imports_below_its_door():
    for path in MODULES:
        if not name_of(path).startswith("accounting"):
            named = [node.module or "" for node in statements(tree_of(path)) if isinstance(node, ast.ImportFrom)]
            assert [name for name in named if name.startswith("shuffledp.accounting.")] == [], name_of(path)


def test_the_law_is_enforced_on_a_wrong_import():
    tree = ast.parse("from shuffledp.report.page import render\nif True:\n    import shuffledp.cli")
    assert own(imports(tree)) == ["report.page", "cli"]
    assert layer("report.page") > layer("accounting") > layer("randomizers.base") > layer("numerics.floats")
    assert layer("randomizers.numeric") > layer("accounting")


PRIVACY = re.compile(r"(?<![a-z])(users?|reports?|victims?|dummy|dummies|participants?|epsilon0)(?![a-z0-9])")
"""Words of privacy, which numerics does not know."""


def words_of(text: str) -> str:
    """Return a text in small letters and its names as words: `UserCount` and `most_users` hold `user` and `users`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", text).lower()


def test_numerics_has_no_word_of_privacy():
    """Neither in comments, docstrings and messages nor in names: it speaks of trials, steps, laws and draws."""
    for path in (ROOT / "numerics").rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert not PRIVACY.search(words_of(line)), f"{path.name}:{number}: {line.strip()}"


@pytest.mark.parametrize(
    "bad", ["most_users = 1", "class UserCount:", "# the victim's", "f(epsilon0)", '"state DUMMIES"']
)
def test_the_words_of_privacy_are_seen(bad: str):
    assert PRIVACY.search(words_of(bad))
    assert not PRIVACY.search(words_of("a superuser reported epsilon00"))
