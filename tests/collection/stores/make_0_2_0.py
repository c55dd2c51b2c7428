"""How ``store_0_2_0.db`` was made: `python -m tests.collection.stores.make_0_2_0 FOLDER`, with the code of 0.2.0.

That version named a held report by the SHA-256 of the sealed bytes, so a content that came again under another code was
held twice. The store holds four tasks:

- ``codes`` is open and holds 6 rows of 5 people: the content of the first came again under the sixth code;
- ``open`` is open and holds 3 reports;
- ``closing`` died between the two transactions of closing, with 4 reports and its dummies drawn;
- ``released`` has ended with 2 people, of whom only the tally is left.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from unittest import mock

from shuffledp.collection import closing
from shuffledp.collection.batch import seal_inner, seal_outer
from shuffledp.collection.closing import close_task
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.sealing import Opener, Sealer
from shuffledp.collection.store import Store
from shuffledp.collection.task import PostedTask
from tests.collection.service import Reports, Time, codes_of, hash_of, store_at, task_of
from tests.collection.tasks import SHUFFLER, choice, number

TASKS = {
    "codes": task_of(choice(5, 20), number(dummies=11), admission="codes", title={"en": "By codes"}),
    "open": task_of(title={"en": "Open to all"}),
    "closing": task_of(title={"en": "Half closed"}),
    "released": task_of(title={"en": "Handed over"}),
}


def send(store: Store, task: PostedTask, *reports: bytes) -> None:
    hold(store, [open_reports(b"".join(reports), task, Opener(SHUFFLER))])


def made(folder: Path) -> Path:
    store = store_at(folder, *TASKS.values())
    task, codes = TASKS["codes"], codes_of(6)
    store.add_codes(task.digest, [hash_of(code) for code in codes])
    reports = Reports(task)
    send(store, task, *(reports.one(place % 3, place % 2, codes[place]) for place in range(1, 5)), bytes(task.size))
    inners = [seal_inner(task, place, 1, Sealer(task.draft.analyzer_key)) for place in range(2)]
    for code in (codes[0], codes[5]):
        send(store, task, seal_outer(task, 0, code, inners, Sealer(task.shuffler_key)))
    for name, people in (("open", 3), ("closing", 4), ("released", 2)):
        send(store, TASKS[name], *Reports(TASKS[name]).many(people))
    close_task(store, TASKS["released"].digest, clock=Time())
    dies = mock.patch.object(closing, "_write", side_effect=KeyboardInterrupt)
    with dies, contextlib.suppress(KeyboardInterrupt):
        close_task(store, TASKS["closing"].digest, clock=Time())
    assert store.rebuild()
    assert store.checkpoint()
    store.close()
    return folder / "store.db"


if __name__ == "__main__":
    print(made(Path(sys.argv[1])))
