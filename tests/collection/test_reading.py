"""Files that come from elsewhere: head first, and never more than they may hold."""

from __future__ import annotations

import ast
import io
import os
from pathlib import Path

import pytest

import shuffledp
from shuffledp.cli.ledger import LONGEST_RESULT
from shuffledp.collection.batch import AnalyzerKey, Batch, read_batch
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from tests.collection.batches import analyzer_key, batch_of, people, reports_of_people
from tests.collection.tasks import choice, posted
from tests.trees import nodes_of

HUGE = 6 << 30
TASK = posted(choice(5, 20))


@pytest.fixture(scope="module")
def whole() -> bytes:
    import numpy as np

    columns, counts = reports_of_people(TASK, people(np.random.default_rng(1), (4, 3, 2), 5), simulation_random(1))
    return batch_of(TASK, columns, counts)


class Counting(io.FileIO):
    """A file that counts what is read of it."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size >= 0, "everything is asked for"
        found = super().read(size) or b""
        self.taken += len(found)
        return found


def file_of(folder: Path, beginning: bytes, size: int) -> Counting:
    """A file of this size that takes no room: after its beginning it is empty."""
    path = folder / "lunch.batch"
    path.write_bytes(beginning)
    os.truncate(path, size)
    return Counting(path)


def test_a_file_of_six_gigabytes_that_is_no_batch_is_looked_at_for_nine_bytes(tmp_path):
    """It was read whole before the first four bytes were looked at."""
    for beginning in (
        b"",
        b"SHFT\x01",
        b"SHFB\x03\x00\x00\x00\x00",
        b"SHFB\x02\x02\0\0\0",
        b"SHFB\x01\xff\xff\xff\xff",
    ):
        with file_of(tmp_path, beginning, HUGE) as stream:
            with pytest.raises(
                InvalidInput, match=r"no batch|of version 3|by 2 shufflers|announces a manifest of 4294967295"
            ):
                Batch.read(stream)
            assert stream.taken == 9


def test_no_more_is_read_than_the_manifest_announces(tmp_path, whole):
    columns = len(Batch.parse(whole).columns[0])
    before = len(whole) - 64 - columns
    for size in (HUGE, len(whole) + 1, len(whole) - 1, before, before + 64):
        with file_of(tmp_path, whole[:size], size) as stream:
            with pytest.raises(InvalidInput, match=rf"the columns have \d+ bytes; .* rows need {columns}$"):
                Batch.read(stream)
            assert stream.taken == before
    with file_of(tmp_path, whole, len(whole)) as stream:
        assert Batch.read(stream).manifest.n == 9
    for size in (0, 4, 8, 9, before - 1):
        with pytest.raises(InvalidInput, match=r"no batch|cut short"):
            Batch.parse(whole[:size])


def test_of_a_pipe_no_more_is_read_either(whole, tmp_path):
    class Pipe(Counting):
        def seekable(self) -> bool:
            return False

    path = tmp_path / "pipe"
    for more in (b"", b"x" * 5000):
        path.write_bytes(whole + more)
        with Pipe(path) as stream:
            if more:
                with pytest.raises(InvalidInput, match="the columns have"):
                    Batch.read(stream)
                assert stream.taken == len(whole) + 1
            else:
                assert Batch.read(stream).manifest.n == 9


def test_a_batch_for_another_key_is_refused_before_its_columns_are_read(tmp_path, whole):
    key, other = analyzer_key(TASK), AnalyzerKey(bytes(31) + b"\1", bytes(31) + b"\2", bytes(32))
    key.check_task(TASK)
    path = tmp_path / "lunch.batch"
    path.write_bytes(whole)
    assert read_batch(path, key.check_task).manifest.n == 9
    with Counting(path) as stream:
        with pytest.raises(InvalidInput, match="this key is not the one"):
            Batch.read(stream, other.check_task)
        assert stream.taken == len(whole) - 64 - len(Batch.parse(whole).columns[0])


def test_columns_beyond_memory_are_one_line(whole):
    class Small(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if size is not None and size > 1000 and self.tell() > 9:
                columns = len(whole) - self.tell() - 64
                if size == columns:
                    raise MemoryError
            return super().read(size)

    with pytest.raises(InvalidInput, match="more than this machine's memory holds"):
        Batch.read(Small(whole))


ROOT = Path(shuffledp.__file__).parent
WHOLE = {
    "collection/closing.py": 1,  # what was written the line before, read back
    "cli/demo/service.py": 1,  # the demo's own batch
}
"""Calls that read a file to its end, wherever that is; besides files of the package."""


@pytest.mark.costly
def test_every_reader_of_a_file_has_a_bound():
    for room in ("collection", "shell", "cli", "ledger"):
        for path in (ROOT / room).rglob("*.py"):
            calls = [node for node in nodes_of(path) if isinstance(node, ast.Call)]
            whole = [
                call
                for call in calls
                if isinstance(call.func, ast.Attribute)
                and call.func.attr in ("read_bytes", "read_text")
                and "folder" not in ast.unparse(call.func)
                and "files(" not in ast.unparse(call.func)
            ]
            name = str(path.relative_to(ROOT))
            assert len(whole) == WHOLE.get(name, 0), f"{name}: use shuffledp.whole_files.read_bytes"
            endless = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "read"]
            for call in endless:
                assert call.args or name.startswith("cli/demo/"), f"{name}: {ast.unparse(call)} has no bound"
    assert LONGEST_RESULT < HUGE
