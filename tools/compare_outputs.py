"""Compare what leaves two checkouts: the JSON of many commands with a simulation seed, byte for byte.

    git worktree add build/before COMMIT
    python -m tools.compare_outputs build/before .

Each command runs once with each checkout's ``src`` on the path, on the bundled table of the first; a page or a CSV that
a command writes is compared too. Exit status 1 if anything differs; what differs is named, with the first unlike place.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

POPULATIONS = (
    "--epsilon0 1 --n 10000",
    "--level 0.5:9000 --level 2:1000 --seen reports",
    "--level 1:500 --level 3:500 --seen levels",
)
RANDOMIZERS = (
    "any",
    "rr",
    "krr:5",
    "oue:5",
    "sue:5",
    "olh:8",
    "hadamard:10",
    "subset:10",
    "one-bit",
    "laplace",
    "gaussian",
)
SITUATIONS = (
    "--rounds 12",
    "--rounds 4 --linked",
    "--missing 0.05 --colluding 10",
    "--group-size 2",
    "--reports-per-user 2",
    "--dummies 200",
    "--bounds all",
)
ASKED = {
    "mean hours_per_week": "--low 1 --high 99",
    "variance hours_per_week": "--low 1 --high 99",
    "histogram hours_per_week": "--low 0 --high 100 --bins 10",
    "quantiles hours_per_week": "--low 0 --high 100 --at 0.1,0.5,0.9 --bins 50",
    "frequency income": "--categories <=50K,>50K",
    "frequency education": "--categories HS-grad,Bachelors,other --other other --mechanism krr",
}
VARIANTS = (
    "--epsilon0 0.5",
    "--epsilon0 1 --by income --groups <=50K,>50K",
    "--epsilon0 2 --simplex",
    "--epsilon0 4 --clip",
)
OTHERS = (
    "calibrate --target-epsilon 1 --n 10000 --delta 1e-6",
    "calibrate --target-epsilon 0.5 --epsilon0 2 --delta 1e-6",
    "calibrate --target-epsilon 0.5 --epsilon0 1 --n 100000 --find rounds --delta 1e-6",
    "calibrate --find dummies --epsilon0 1 --randomizer krr:5 --target-epsilon 0.3 --delta 1e-6",
    "plan --level 0.5:9000 --level 2:1000 --question frequency --k 10 --seen reports --target-epsilon 0.1 --delta 1e-6",
    "plan --epsilon0 1 --n 10000 --question mean --low 0 --high 1 --target-epsilon 0.1 --delta 1e-6",
    "audit --randomizer krr:10 --epsilon0 1 --trials 20000 SEED",
    "audit --pipeline --randomizer rr --epsilon0 1 --n 50 --delta 1e-3 --trials 2000 SEED",
    "train mnist-sample --unit example --seen users --clients 20 --epsilon0 4 --delta 1e-5 --rounds 3 SEED",
    "frequent-items TABLE --value education --max-length 12 --alphabet ascii --epsilon0 4 --delta 1e-6 SEED",
    "vector-mean TABLE --values hours_per_week --norm 99 --epsilon0 1 --delta 1e-6 SEED",
    "release TABLE --ask mean+hours_per_week+1+99 --ask frequency+income+<=50K,>50K --epsilon0 0.5 --delta 1e-6 SEED",
    "reproduce gspa-lemma-2 --quick --out OUT",
    "demo SEED",
    "--help",
)


def commands() -> Iterator[list[str]]:
    """Every command that is compared, as its words."""
    for population, randomizer in itertools.product(POPULATIONS[:2], RANDOMIZERS):
        delta0 = ",1e-9" if randomizer == "gaussian" else ""
        named = population.replace("0.5:", f"0.5{delta0}:").replace("2:", f"2{delta0}:")
        if randomizer == "gaussian" and population == POPULATIONS[0]:
            named = "--level 1,1e-9:10000"
        yield f"amplify {named} --randomizer {randomizer} --delta 1e-6".split()
    for situation in SITUATIONS:
        yield f"amplify {POPULATIONS[0]} --seen reports --randomizer rr {situation} --delta 1e-6".split()
        yield f"amplify {POPULATIONS[2]} --randomizer krr:5 {situation} --delta 1e-6".split()
    for (question, own), variant in itertools.product(ASKED.items(), VARIANTS):
        name, value = question.split()
        if (
            ("--simplex" in variant and name not in ("frequency", "histogram"))
            or ("--clip" in variant and name == "frequency")
            or (f"--by {value}" in variant)
        ):
            continue
        yield f"{name} TABLE --value {value} {own} {variant} --delta 1e-6 SEED --csv OUT".split()
    for line in OTHERS:
        yield [
            w.replace("_1_99", " 1 99").replace("mean_", "mean ").replace("frequency_income_", "frequency income ")
            for w in line.split()
        ]


def answer(source: Path, table: str, words: list[str]) -> tuple[int, bytes]:
    """Exit status, and all that the command wrote."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        stands = {"TABLE": [table], "OUT": [str(out)], "SEED": ["--simulation-seed", "1"]}
        given = [each for word in words for each in stands.get(word, [word.replace("+", " ")])]
        given += [] if words[0] in ("reproduce", "--help") else ["--json"]
        script = "from shuffledp.cli import main; main()"
        places = {"PYTHONPATH": str(source / "src"), "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, "-c", script, *given], capture_output=True, env=os.environ | places)
        files = sorted(out.rglob("*.csv")) if out.is_dir() else [out] * out.exists()
        said = b"".join([done.stdout, done.stderr, *(path.read_bytes() for path in files)])
        said = re.sub(rb'("cpu_seconds": )[0-9.]+', rb"\1SECONDS", said)  # of the machine's load, not of the checkout
        return done.returncode, said.replace(folder.encode(), b"FOLDER")


def main() -> None:
    """Compare two checkouts."""
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tools.compare_outputs BEFORE AFTER (two checkouts)")
    before, after = (Path(word).resolve() for word in sys.argv[1:])
    table = str(before / "src" / "shuffledp" / "data" / "adult.parquet")
    every, unlike, refused = list(commands()), 0, 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pairs = pool.map(lambda words: (answer(before, table, words), answer(after, table, words)), every)
        for words, (old, new) in zip(every, pairs, strict=True):
            refused += old[0] == 2
            if old == new:
                continue
            unlike += 1
            at = next((i for i, (a, b) in enumerate(zip(old[1], new[1], strict=False)) if a != b), 0)
            print(f"differs: shuffledp {' '.join(words)}\n  before ({old[0]}): {old[1][max(at - 60, 0) : at + 60]!r}")
            print(f"  after  ({new[0]}): {new[1][max(at - 60, 0) : at + 60]!r}", flush=True)
    digest = hashlib.sha256(repr(every).encode()).hexdigest()[:12]
    print(f"{len(every)} commands (list {digest}), {refused} refused before, {unlike} differ")
    sys.exit(unlike > 0)


if __name__ == "__main__":
    main()
