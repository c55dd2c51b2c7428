"""Imports go one way only; the syntax trees say so."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import shuffledp

ROOT = Path(shuffledp.__file__).parent

LAYERS = (
    ("errors",),
    ("numerics", "params"),
    ("randomizers.base",),
    ("budgets", "dummies"),
    ("setting",),
    ("guarantee",),
    ("accounting",),
    ("randomizers", "protocol", "csv_rows", "tables"),
    ("planning", "learning", "audit", "flower"),
    ("collection",),
    ("report",),
    ("reproduce",),
    ("cli",),
)
"""From left to right: a module may import from its own group and from those before it."""

RANDOMIZERS_MAY = ("errors", "numerics", "randomizers")
"""The randomizers' own law is stricter: they know numbers and their base class, nothing of accounting."""

OUTER_ONLY = {"matplotlib", "jinja2", "markupsafe", "typer", "rich"}
"""Presentation libraries, for reproduce, report and cli alone."""

MODULES = sorted(ROOT.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(module: str) -> int:
    """Position of a module in the law, by its longest known prefix."""
    known = [
        (len(prefix), i)
        for i, group in enumerate(LAYERS)
        for prefix in group
        if (module + ".").startswith(prefix + ".")
    ]
    assert known, f"module {module} has no place in the import law; add it to LAYERS"
    return max(known)[1]


def imports(tree: ast.AST) -> list[str]:
    """Absolute names of everything imported, at any depth; names for type checkers only do not count."""
    found: list[str] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
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
        found += imports(node)
    return found


def own(names: list[str]) -> list[str]:
    return [name.removeprefix("shuffledp.") for name in names if name.startswith("shuffledp.")]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_imports_to_its_right(path):
    module = name_of(path)
    if module in ("", "__main__"):  # the public names come from everywhere
        return
    for imported in own(imports(ast.parse(path.read_text(encoding="utf-8")))):
        assert layer(imported) <= layer(module), f"{module} imports {imported}, which stands to its right"
        if module.startswith("randomizers"):
            assert imported.startswith(RANDOMIZERS_MAY), f"a randomizer may not import {imported}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_report_and_cli_present(path):
    if name_of(path).split(".")[0] in ("reproduce", "report", "cli"):
        return
    used = {name.split(".")[0] for name in imports(ast.parse(path.read_text(encoding="utf-8")))}
    assert not used & OUTER_ONLY, f"{name_of(path)} imports {sorted(used & OUTER_ONLY)}"


def test_the_law_is_enforced_on_a_wrong_import():
    tree = ast.parse("from shuffledp.report.page import render\nif True:\n    import shuffledp.cli")
    assert own(imports(tree)) == ["report.page", "cli"]
    assert layer("report.page") > layer("accounting.certify") > layer("randomizers.base") > layer("numerics.floats")
    assert layer("randomizers.numeric") > layer("accounting")
