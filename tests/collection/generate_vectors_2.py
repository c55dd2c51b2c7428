"""Write vectors_2.json anew: `python -m tests.collection.generate_vectors_2`; only after a change of version 2."""

from __future__ import annotations

import json
from pathlib import Path

from shuffledp.collection.batch import permuted_column, seal_inner, seal_outer, write_batch
from shuffledp.collection.laws import drawn_columns
from shuffledp.collection.sealing import Sealer
from shuffledp.numerics.randomness import simulation_random
from tests.collection.tasks import IDENTITY, KINDS, posted_second

FILE = Path(__file__).parent / "vectors_2.json"
CODE = bytes(range(16))
PIECES = [[3], [1], [0, 1, 1, 0, 1], [4], [1], [0], [0], [1], [5], [19]]
"""What a person sends to each column: one piece, and five bits of a number."""


def main() -> None:
    """Draw new ephemeral keys and freeze what comes out."""
    task = posted_second(*KINDS.values(), levels=((2.0, 60, 2.0), (4.0, 180, 2.0)))
    to_analyzer, to_shuffler = Sealer(task.draft.analyzer_key), Sealer(task.shuffler_key)
    inners = [[seal_inner(task, place, piece, to_analyzer) for piece in own] for place, own in enumerate(PIECES)]
    sealed = seal_outer(task, 1, CODE, [piece for own in inners for piece in own], to_shuffler)
    random = simulation_random(1)
    columns = [
        permuted_column([*own, *(seal_inner(task, place, cell, to_analyzer) for cell in drawn)], random)
        for place, (own, drawn) in enumerate(zip(inners, drawn_columns(task.draft, random), strict=True))
    ]
    batch = write_batch(
        task,
        columns,
        [0, 1],
        refusals={"unreadable": 1, "unfit": 0, "code": 2},
        floor=[1.9, 1.9],
        day="2030-02-01",
        software={"shuffledp": "0.3.0"},
        identity=IDENTITY,
    )
    vectors = {
        "what": "Frozen bytes of version 2, hexadecimal; the private keys are those of vectors.json",
        "task": {
            "posted": task.data.hex(),
            "id": task.id,
            "size": task.size,
            "kinds": [question.kind for question in task.draft.questions],
        },
        "report": {"level": 1, "code": CODE.hex(), "pieces": PIECES, "sealed": sealed.hex()},
        "batch": batch.hex(),
    }
    FILE.write_text(json.dumps(vectors, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
