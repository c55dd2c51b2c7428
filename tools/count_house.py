"""Count the house: files, imports between files, the way of a typed option, modules that a command loads.

Run from the project's root: ``python -m tools.count_house``; ``--walk`` prints each stay of the walk.

What is counted
- *files*, *lines*, *code lines*: Python files under src, tests, tools and benchmarks; a code line is neither blank,
  comment nor docstring.
- *imports between files*: pairs (file, file) of src in which the first imports the second or a name of it.
- *walk*: be the typed options of ``shuffledp mean`` (`START`) and follow, in source order and statically, every call
  that takes you or what was made of you; a function is entered once. A *stay* is a run of entered functions in one
  file; a *return* is a stay in a file that was left before. A method whose name several classes define is not followed,
  nor one that a text, a list, a mapping, a path or an array has too: the text does not tell whose it is.
- *repeated lines*: lines of src that belong to a run of six or more code lines which stands twice.
- *modules*: what ``shuffledp mean`` has imported when it has answered.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
START = ("shuffledp.cli.estimate", "run", "typed")
QUESTION = ("mean", "{table}", "--value", "v", "--low", "0", "--high", "1", "--epsilon0", "1", "--delta", "1e-6")
OTHERS = frozenset().union(*map(dir, (str, list, dict, set, float, Path, np.ndarray)))
"""Methods of what is not the package's."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef


class Function(NamedTuple):
    """A function or method of the package: where it stands, and its syntax."""

    module: str
    owner: str
    node: Definition


class House:
    """The package as syntax: what each module defines and imports."""

    def __init__(self, source: Path = SOURCE) -> None:
        self.trees = {
            ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
                path.read_text(encoding="utf-8")
            )
            for path in sorted(source.rglob("*.py"))
        }

    def imports(self, module: str) -> Iterator[tuple[str, str, str]]:
        """Name in the module, module it comes from, name there ("" for the module itself)."""
        for node in ast.walk(self.trees[module]):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.asname or alias.name, alias.name, ""
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    here = (whole, "") if whole in self.trees else (node.module, alias.name)
                    yield (alias.asname or alias.name, *here)

    @cached_property
    def arrows(self) -> set[tuple[str, str]]:
        """Pairs of modules of which the first imports the second."""
        return {
            (module, origin)
            for module in self.trees
            for _, origin, _ in self.imports(module)
            if origin in self.trees and origin != module
        }

    @cached_property
    def names(self) -> dict[str, dict[str, tuple[str, str]]]:
        """What a name of a module stands for: (module, name), its own definitions included."""
        found: dict[str, dict[str, tuple[str, str]]] = {}
        for module, tree in self.trees.items():
            found[module] = {name: (origin, there) for name, origin, there in self.imports(module)}
            found[module] |= {n.name: (module, n.name) for n in tree.body if isinstance(n, Definition | ast.ClassDef)}
        return found

    @cached_property
    def definitions(self) -> dict[tuple[str, str], ast.ClassDef | Definition]:
        """Each class and function at the head of a module."""
        kinds = Definition | ast.ClassDef
        return {(m, n.name): n for m, tree in self.trees.items() for n in tree.body if isinstance(n, kinds)}

    @cached_property
    def methods(self) -> dict[str, list[Function]]:
        """Methods of the package by name."""
        found: dict[str, list[Function]] = {}
        for (module, name), node in self.definitions.items():
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, Definition):
                        found.setdefault(part.name, []).append(Function(module, name, part))
        return found

    def resolved(self, module: str, name: str) -> tuple[str, str]:
        """Follow a name through the modules that only hand it on, to where it is defined."""
        for _ in range(8):
            there = self.names.get(module, {}).get(name)
            if there is None or there == (module, name):
                break
            module, name = there
        return module, name

    def callee(self, inside: Function, called: ast.expr) -> Function | None:
        """Return the function of the package that an expression calls, if the text tells which."""
        if isinstance(called, ast.Name):
            return self._at_head(*self.resolved(inside.module, called.id))
        if not isinstance(called, ast.Attribute):
            return None
        if isinstance(called.value, ast.Name):
            origin, name = self.names[inside.module].get(called.value.id, ("", ""))
            if origin in self.trees and not name:
                return self._at_head(*self.resolved(origin, called.attr))
            if called.value.id in ("self", "cls"):
                own = [f for f in self.methods.get(called.attr, ()) if (f.module, f.owner) == inside[:2]]
                if own:
                    return own[0]
        known = [] if called.attr in OTHERS else self.methods.get(called.attr, [])
        return known[0] if len(known) == 1 else None

    def _at_head(self, module: str, name: str) -> Function | None:
        node = self.definitions.get((module, name))
        if isinstance(node, ast.ClassDef):
            made = [n for n in node.body if isinstance(n, Definition) and n.name in ("__init__", "__post_init__")]
            return Function(module, name, made[0]) if made else None
        return None if node is None else Function(module, "", node)


class Walk:
    """The trip of one parameter through the calls that pass it on."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.entered: set[tuple[str, str, str]] = set()
        self.stays: list[str] = []

    def enter(self, function: Function, carried: frozenset[str]) -> None:
        """Go through a function in which the names `carried` are the parameter or made of it."""
        key = (function.module, function.owner, function.node.name)
        if key in self.entered:
            return
        self.entered.add(key)
        if not self.stays or self.stays[-1] != function.module:
            self.stays.append(function.module)
        known = set(carried)
        for statement in function.node.body:
            self._pass(function, statement, known)

    def _pass(self, function: Function, node: ast.AST, known: set[str]) -> None:
        for part in ast.iter_child_nodes(node):
            self._pass(function, part, known)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.comprehension | ast.withitem):
            self._assign(node, known)
        elif isinstance(node, ast.Call):
            self._call(function, node, known)

    def _assign(self, node: ast.AST, known: set[str]) -> None:
        value = next((getattr(node, f) for f in ("value", "iter", "context_expr") if getattr(node, f, None)), None)
        if value is not None and _mentions(value, known):
            targets = getattr(node, "targets", None) or [getattr(node, "target", getattr(node, "optional_vars", None))]
            known |= {n.id for t in targets if t is not None for n in ast.walk(t) if isinstance(n, ast.Name)}

    def _call(self, function: Function, node: ast.Call, known: set[str]) -> None:
        callee = self.house.callee(function, node.func)
        if callee is None:
            return
        rules = callee.node.args
        names = [a.arg for a in (*rules.posonlyargs, *rules.args)]
        carried: set[str] = set()
        if callee.owner:
            receiver = isinstance(node.func, ast.Attribute) and _mentions(node.func.value, known)
            first, names = names[:1], names[1:]
            if receiver or any(_mentions(a, known) for a in (*node.args, *(k.value for k in node.keywords))):
                carried |= set(first)
        for name, given in zip(names, node.args, strict=False):
            if _mentions(given, known):
                carried.add(name)
        for word in node.keywords:
            if _mentions(word.value, known):
                carried.add(word.arg or (rules.kwarg.arg if rules.kwarg else ""))
        if any(isinstance(given, ast.Starred) and _mentions(given, known) for given in node.args) and rules.vararg:
            carried.add(rules.vararg.arg)
        if carried - {""}:
            self.enter(callee, frozenset(carried - {""}))


def _mentions(node: ast.AST, known: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in known for part in ast.walk(node))


def walk(house: House, start: tuple[str, str, str] = START) -> list[str]:
    """Return the stays, module by module, of a parameter that enters at (module, function, parameter)."""
    module, name, parameter = start
    trip = Walk(house)
    function = house.definitions[module, name]
    assert isinstance(function, Definition)
    trip.enter(Function(module, "", function), frozenset({parameter}))
    return trip.stays


def code_lines(path: Path) -> int:
    """Lines of a file that are neither blank, comment nor docstring."""
    text = path.read_text(encoding="utf-8")
    lines = {i for i, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def repeated_lines(files: list[Path], run: int = 6) -> int:
    """Count the lines in runs of code lines, imports left out, that stand more than once."""
    places: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for number, path in enumerate(files):
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
        lines = [line for line in lines if len(line) > 3 and not line.startswith(("#", "from ", "import "))]
        for start in range(len(lines) - run + 1):
            places.setdefault(tuple(lines[start : start + run]), []).append((number, start))
    twice = [place for found in places.values() if len(found) > 1 for place in found]
    return len({(number, start + i) for number, start in twice for i in range(run)})


def modules_loaded() -> list[str]:
    """Return the package's modules that ``shuffledp mean`` has loaded when it has answered."""
    script = (
        "import json, sys, tempfile, pathlib\n"
        "from shuffledp.cli import main\n"
        "table = pathlib.Path(tempfile.mkdtemp()) / 't.csv'\n"
        "table.write_text('v\\n' + '0\\n1\\n' * 500)\n"
        f"sys.argv = ['shuffledp'] + [str(table) if a == '{{table}}' else a for a in {QUESTION!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(json.dumps([m for m in sys.modules if m.split('.')[0] == 'shuffledp']), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(done.stderr.splitlines()[-1])


def main() -> None:
    """Print the counts."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--walk", action="store_true", help="print each stay of the walk")
    asked = options.parse_args()
    house = House()
    for room in ("src", "tests", "tools", "benchmarks"):
        files = sorted((ROOT / room).rglob("*.py"))
        lines = sum(path.read_text(encoding="utf-8").count("\n") for path in files)
        print(f"{room}: {len(files)} files, {lines:,} lines, {sum(map(code_lines, files)):,} of code")
    print(f"imports between files of src: {len(house.arrows):,}")
    print(f"repeated lines of src: {repeated_lines(sorted(SOURCE.rglob('*.py'))):,}")
    stays, rooms = (found := walk(house)), len(set(found))
    print(f"walk of mean's typed options: {len(stays)} stays in {rooms} files, {len(stays) - rooms} returns")
    if asked.walk:
        print("\n".join(f"  {i:3d}. {module}" for i, module in enumerate(stays, 1)))
    print(f"modules of ours that mean loads: {len(modules_loaded())}")


if __name__ == "__main__":
    main()
