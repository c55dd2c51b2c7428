"""Take pictures of every step of the page in FOLDER: `python -m tests.collection.page.pictures FOLDER [phone-dark]`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.collection.page.chromium import CHROMIUM, HERE, NODE
from tests.collection.page.samples import release_of, task
from tests.collection.page.server import Server


def main() -> None:
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    with Server(task()) as server:
        server.releases["good"] = release_of(server.task)
        server.release_named = "good"
        command = [NODE, str(HERE / "pictures.mjs"), *sys.argv[1:]]
        subprocess.run(command, check=True, env=os.environ | {"PAGE_LINK": server.link, "CHROMIUM": CHROMIUM})


if __name__ == "__main__":
    main()
