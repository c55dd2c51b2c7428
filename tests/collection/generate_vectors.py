"""Write vectors.json anew: `python -m tests.collection.generate_vectors`; only after a change of the formats."""

from __future__ import annotations

import json
from pathlib import Path

from shuffledp.collection.batch import permuted_column, seal_inner, seal_outer, write_batch
from shuffledp.collection.sealing import Sealer
from shuffledp.numerics.randomness import simulation_random
from tests.collection.tasks import ANALYST, ANALYZER, IDENTITY, SHUFFLER, choice, number, posted

FILE = Path(__file__).parent / "vectors.json"
CODE = bytes(range(16))


def main() -> None:
    """Draw new ephemeral keys and freeze what comes out."""
    task = posted(choice(5, 3), number(dummies=2), choice(6, 1, "hadamard:6"))
    to_analyzer, to_shuffler = Sealer(task.draft.analyzer_key), Sealer(task.shuffler_key)
    answers = [3, 1, 13]
    inners = [seal_inner(task, place, report, to_analyzer) for place, report in enumerate(answers)]
    sealed = seal_outer(task, 1, CODE, inners, to_shuffler)
    random = simulation_random(1)
    dummies = [[0, 4, 2], [1, 0], [15]]
    columns = [
        permuted_column([inner, *(seal_inner(task, place, report, to_analyzer) for report in drawn)], random)
        for place, (inner, drawn) in enumerate(zip(inners, dummies, strict=True))
    ]
    counts = [0, 1, 0]
    batch = write_batch(
        task,
        columns,
        counts,
        refusals={"unreadable": 1, "unfit": 0, "code": 2},
        floor=[0.1, 0.2, 0.9],
        day="2030-02-01",
        software={"shuffledp": "0.2.0"},
        identity=IDENTITY,
    )
    vectors = {
        "what": "Frozen bytes, hexadecimal; keys are public, for tests alone",
        "private": {
            "analyzer_key": ANALYZER.hex(),
            "analyzer_identity": ANALYST.hex(),
            "shuffler_key": SHUFFLER.hex(),
            "shuffler_identity": IDENTITY.hex(),
        },
        "task": {"posted": task.data.hex(), "id": task.id, "digest": task.digest.hex(), "size": task.size},
        "report": {
            "level": 1,
            "code": CODE.hex(),
            "reports": answers,
            "inners": [inner.hex() for inner in inners],
            "sealed": sealed.hex(),
        },
        "batch": {
            "counts": counts,
            "data": batch.hex(),
            "reports": [sorted([answers[place], *drawn]) for place, drawn in enumerate(dummies)],
        },
    }
    FILE.write_text(json.dumps(vectors, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
