"""`task extend` on the command line, and what a participant is shown."""

from __future__ import annotations

import time

import pytest

from shuffledp.cli.demo.service import running
from shuffledp.collection.fields import write_time
from tests.cli.conftest import Run
from tests.collection.service import DAY, store_at
from tests.collection.tasks import posted_second


@pytest.mark.costly
def test_the_command_extends_and_status_says_so(run: Run, tmp_path):
    now = int(time.time())
    times = {"opens": now - DAY, "closes": now + DAY, "expires": now + 2 * DAY}
    task = posted_second(admission="open", at_least=1, **{name: write_time(when) for name, when in times.items()})
    store_at(tmp_path, task, now=now, name="shuffledp.db").close()
    later = write_time(now + 3 * DAY)
    found = run("task", "extend", "--closes", later)
    assert (found.status, found.err) == (0, "")
    assert f"closes {later} and expires {later}" in found.out
    assert f"closes {later}" in run("task", "status").out
    assert "must be a time with a zone" in run("task", "extend", "--closes", "tomorrow").error
    assert "never shortened" in run("task", "extend", "--closes", write_time(now + DAY)).error
    with running(tmp_path / "shuffledp.db") as service:
        shown = run("answer", f"{service.url}/t/{task.id}", "--show")
    assert f"Its end was moved: it is open to {later}." in shown.out
    assert shown.out.index("Its end was moved") < shown.out.index("Level “"), "beside the end that it replaces"
