"""Build the wheel, install it into an empty environment with the pinned requirements, and use it from an empty folder.

    python -m tools.wheel_test [--python python3.11]

What a user gets is tested here: files that the wheel lacks, or a package that only the tests need, show up.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRA = (
    "error: reproduce needs matplotlib, which is not installed; in the folder with shuffledp's sources, run: "
    "pip install '.[figures]'"
)


def run(*command: str | Path, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command without this environment's variables for Python, and stop unless it ends as expected."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )
    if done.returncode != status:
        sys.exit(
            f"{' '.join(str(word) for word in command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done


def built(folder: Path) -> Path:
    """Build the wheel into a folder."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("shuffledp-*.whl")
    return wheel


def installed(python: str, wheel: Path, environment: Path) -> Path:
    """Install the pinned requirements, and the wheel without asking for more, into a new environment."""
    run(python, "-m", "venv", environment, cwd=ROOT)
    own = environment / "bin" / "python"
    pip = (own, "-m", "pip", "install", "--quiet")
    run(*pip, "--require-hashes", "-r", ROOT / "requirements" / "runtime.txt", cwd=ROOT)
    run(*pip, "--no-deps", "--no-index", wheel, cwd=ROOT)
    run(own, "-m", "pip", "check", cwd=ROOT)
    return environment / "bin"


def used(programs: Path, folder: Path) -> None:
    """Use the installed command as a stranger would, from a folder that has nothing to do with the sources."""
    command = programs / "shuffledp"
    where = run(programs / "python", "-c", "import shuffledp; print(shuffledp.__file__)", cwd=folder).stdout.strip()
    if not Path(where).is_relative_to(programs.parent):
        sys.exit(f"the installed package was not used: {where}")
    print(run(command, "--version", cwd=folder).stdout.strip(), "from", where)
    listed = "from importlib.metadata import entry_points as e; print(*sorted(e(group='shuffledp.commands').names))"
    products = run(programs / "python", "-c", listed, cwd=folder).stdout.split()
    commands = run(command, "--help", cwd=folder).stdout
    if products != ["collection", "learning", "reproduce"] or " train " not in commands:
        sys.exit(f"the products' commands are not all in the wheel: {products}")
    shown = run(command, "demo", "--report", "demo.html", cwd=folder).stdout
    page = (folder / "demo.html").read_text(encoding="utf-8")
    if "48,842 people of UCI Adult" not in shown or "</html>" not in page:
        sys.exit(f"the demo did not show its answers:\n{shown}")
    print(shown.splitlines()[0])
    refused = run(command, "reproduce", "gspa-lemma-2", "--quick", cwd=folder, status=2)
    if refused.stderr.strip() != EXTRA:
        sys.exit(f"without Matplotlib, reproduce must name the extra; it said:\n{refused.stderr}")


def main() -> None:
    """Build, install, use."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="makes the empty environment")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = built(folder / "dist")
        programs = installed(asked.python, wheel, folder / "environment")
        (folder / "elsewhere").mkdir()
        used(programs, folder / "elsewhere")
        print(f"{wheel.name} works ({wheel.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
