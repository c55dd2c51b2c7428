"""The tests that carry bytes, decisions and seeds, as other machines would run them: `make test-machines`.

    python -m tools.test_machines --here               # this environment, with other instructions of the processor
    python -m tools.test_machines [--python PATH] ...  # environments of all kinds in build/machines

Settings are: the processor's newer instructions switched off in NumPy, another kernel of OpenBLAS, one thread and two,
other last digits of exp and log (tests/perturbed.py); environments are the oldest allowed NumPy, SciPy and polars and
the newest ones, on each of Python 3.11, 3.12 and 3.13 that is here. Every setting writes files of all kinds, and every
other one reads them (tests/machine_files.py).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "machines"
VERSIONS = ("3.11", "3.12", "3.13")
OLDEST = ("numpy", "scipy", "polars")
TESTS = ("pytest", "hypothesis", "mpmath", "httpx", "pyhpke", "python-flint")
FEATURES = (
    "from numpy._core._multiarray_umath import __cpu_dispatch__ as d, __cpu_features__ as f;"
    "print(*[name for name in d if f.get(name)])"
)


@dataclass(frozen=True)
class Machine:
    """One way to run: an environment's Python, and what it is told.

    Parameters
    ----------
    name : str
        For people.
    python : Path
        Of an environment with the package's requirements.
    environment : dict
        Variables added to those of this process.
    seed : int, optional
        Of other last digits of exp and log.
    """

    name: str
    python: Path
    environment: dict[str, str] = field(default_factory=dict)
    seed: int | None = None

    def run(self, *call: str) -> subprocess.CompletedProcess[str]:
        """Run a module of this repository, with its own sources."""
        own = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"} | self.environment
        imitated = () if self.seed is None else ("tests.perturbed", str(self.seed))
        command = [str(self.python), "-m", *imitated, *call]
        return subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False)


def features(python: Path) -> list[str]:
    """Return the processor's instructions that NumPy of an environment chooses at run time, oldest first."""
    done = subprocess.run([str(python), "-c", FEATURES], capture_output=True, text=True, check=True)
    return done.stdout.split()


def settings(name: str, python: Path) -> Iterator[Machine]:
    """Yield what an environment's Python is told: each setting once."""
    known = features(python)
    newest = [feature for feature in known if "512" in feature or "V4" in feature or "SVE" in feature]
    yield Machine(name, python)
    for label, off in (("without the newest instructions", newest), ("with the oldest instructions", known)):
        if off:
            yield Machine(f"{name}, {label}", python, {"NPY_DISABLE_CPU_FEATURES": " ".join(off)})
    blas = {"OPENBLAS_CORETYPE": "Prescott", "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    yield Machine(f"{name}, another OpenBLAS on two threads", python, blas)
    yield Machine(f"{name}, other last digits", python, seed=5)


def marked() -> list[str]:
    """Return the files that have marked tests: the others need not be collected."""
    files = (path for path in sorted((ROOT / "tests").rglob("test_*.py")))
    return [str(path.relative_to(ROOT)) for path in files if "mark.machine" in path.read_text(encoding="utf-8")]


def tested(machine: Machine) -> bool:
    """Run the marked tests, and say how that went."""
    chosen = ("-p", "no:cacheprovider", "-m", "machine and not slow", "--hypothesis-profile=repeatable")
    done = machine.run("pytest", *chosen, *marked())
    last = (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]
    told(machine.name, done.returncode == 0, last)
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:], sep="\n")
    return done.returncode == 0


def told(what: str, good: bool, more: str) -> None:
    """Print a line of the table."""
    print(f"{'passed' if good else 'FAILED'}  {what:56s} {more}", flush=True)


def exchanged(machines: list[Machine]) -> bool:
    """Let every machine write files, and every one read those of all."""
    shutil.rmtree(BUILD / "files", ignore_errors=True)
    folders = [BUILD / "files" / str(place) for place in range(len(machines))]
    good = True
    for machine, folder in zip(machines, folders, strict=True):
        done = machine.run("tests.machine_files", "make", str(folder))
        told(f"{machine.name}, writes", done.returncode == 0, done.stderr[-600:])
        good &= done.returncode == 0
    written = [str(folder) for folder in folders if (folder / "told.json").is_file()]
    for machine in machines:
        done = machine.run("tests.machine_files", "read", *written)
        told(f"{machine.name}, reads {len(written)}", done.returncode == 0, done.stderr[-600:])
        good &= done.returncode == 0
    return good


def lowest() -> list[str]:
    """Return the oldest allowed versions as requirements, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [re.match(r"([a-z]+)>=([\d.]+)", line) for line in project["dependencies"]]
    bounds = {match[1]: match[2] for match in found if match}
    whole = {name: bound if bound.count(".") > 1 else f"{bound}.0" for name, bound in bounds.items()}
    return [f"{name}=={whole[name]}" for name in OLDEST]


def environment(python: str, name: str, more: list[str]) -> Path | None:
    """Make an environment in build/machines unless it is there; None, with the reason, if that fails."""
    folder = BUILD / name
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        print(f"making {folder.relative_to(ROOT)} (a minute)", flush=True)
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *more, *TESTS, "-e", ".[service]"]
        for call in ([python, "-m", "venv", str(folder)], install):
            done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                told(name, False, f"cannot be made: {done.stderr.strip()[-400:]}")
                return None
        (folder / "ready").touch()
    return folder / "bin" / "python"


def pythons(more: list[str]) -> Iterator[tuple[str, str]]:
    """Yield version and path of each Python that is here; one that is not is said."""
    found: dict[str, str] = {}
    for path in [*more, *(f"python{version}" for version in VERSIONS)]:
        where = shutil.which(path)
        call = [where or path, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(call, capture_output=True, text=True, check=False) if where else None
        if done is not None and done.returncode == 0 and where:
            found.setdefault(done.stdout.strip(), where)
    for version in VERSIONS:
        if version in found:
            yield version, found[version]
        else:
            print(f"left out  Python {version} is not here; name one with --python PATH", flush=True)


def main() -> None:
    """Run what the command line asks for; exit with 1 if anything fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--here", action="store_true", help="this environment alone, with the oldest instructions")
    parser.add_argument("--python", action="append", default=[], metavar="PATH", help="another Python to take")
    asked = parser.parse_args()
    if asked.here:
        own = Path(sys.executable)
        off = {"NPY_DISABLE_CPU_FEATURES": " ".join(features(own)), "OPENBLAS_CORETYPE": "Prescott"}
        sys.exit(not tested(Machine("this environment with the oldest instructions", own, off)))
    machines: list[Machine] = []
    good = True
    for place, (version, path) in enumerate(pythons(asked.python)):
        kinds = [("newest", ["--upgrade"])] + ([("oldest", lowest())] if place == 0 else [])
        for kind, more in kinds:
            python = environment(path, f"{version}-{kind}", more)
            good &= python is not None
            if python is not None:
                first = place == 0 and kind == "newest"  # settings of the processor once, and for the oldest NumPy
                ways = list(settings(f"Python {version}, {kind}", python))
                machines += ways if first or kind == "oldest" else ways[:1]
    for machine in machines:
        good &= tested(machine)
    good &= exchanged(machines)
    sys.exit(not good)


if __name__ == "__main__":
    main()
