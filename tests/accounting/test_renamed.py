from __future__ import annotations

import pytest

from shuffledp import bounds
from shuffledp.accounting.certify import RENAMED


@pytest.mark.parametrize("old", sorted(RENAMED))
def test_an_old_key_answers_and_names_the_new_one(old):
    with pytest.warns(FutureWarning, match=f"'{old}' is now '{RENAMED[old]}'") as told:
        assert bounds[old] is bounds[RENAMED[old]]
    assert told[0].filename == __file__


def test_old_keys_are_not_listed():
    assert not set(RENAMED) & set(bounds)
    assert set(RENAMED.values()) <= set(bounds)
    assert len(bounds) == len(list(bounds))


def test_what_never_was_is_not_found():
    with pytest.raises(KeyError):
        bounds["rr"]
