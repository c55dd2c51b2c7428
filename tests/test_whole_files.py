"""A file is there whole or not at all, and never through somebody else's link."""

from __future__ import annotations

import os
import stat

import pytest

from shuffledp.errors import InvalidInput
from shuffledp.whole_files import replaced


def test_a_block_that_fails_leaves_what_was_there(tmp_path):
    target = tmp_path / "page.html"
    target.write_bytes(b"old")

    def fail():
        with replaced(target, "the page") as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize("there", [True, False], ids=["link", "dangling"])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_link_is_refused(tmp_path, there, fresh):
    """`write_bytes` of 0.2.0's first drafts wrote beside the file that a link named."""
    aim = tmp_path / "elsewhere"
    if there:
        aim.write_bytes(b"theirs")
    (tmp_path / "link").symlink_to(aim)
    with (
        pytest.raises(InvalidInput, match="the key is a symbolic link; name the file itself"),
        replaced(tmp_path / "link", "the key", fresh=fresh),
    ):
        pass
    assert aim.exists() == there


def test_a_fresh_file_never_replaces_one_that_came_meanwhile(tmp_path):
    target = tmp_path / "key"

    def late():
        with replaced(target, "the key", fresh=True) as file:
            file.write(b"mine")
            target.write_bytes(b"theirs")

    with pytest.raises(InvalidInput, match="the key exists and would be lost"):
        late()
    assert target.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["key"]


def test_modes(tmp_path):
    for private, mode in ((True, 0o600), (False, 0o644)):
        old = os.umask(0o022)
        try:
            with replaced(tmp_path / "file", "file", private=private) as file:
                file.write(b"x")
        finally:
            os.umask(old)
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_a_missing_folder_is_named_before_any_work(tmp_path):
    wanted = r"out/page.html cannot be written \(No such file or directory\); choose an"
    with pytest.raises(InvalidInput, match=wanted), replaced(tmp_path / "no" / "page.html", "out/page.html"):
        pytest.fail("the block was entered")
