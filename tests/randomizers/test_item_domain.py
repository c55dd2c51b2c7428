from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shuffledp.errors import InvalidInput
from shuffledp.randomizers.item_domain import BITS, LARGEST_BLOCK, MOST_KEPT, PRESETS, UTF8, ListedItems, WordItems

DOMAINS = [
    WordItems("ascii", 16),
    WordItems("upper+digits", 6),
    WordItems("digits", 11),
    WordItems(UTF8, 12),
    WordItems("ab", 64),
    WordItems("lower", 1),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_blocks_cover_the_word_and_can_be_tried(domain):
    assert sum(domain.blocks) == domain.length
    assert domain.levels == len(domain.blocks) + 1
    assert domain.size ** domain.blocks[0] <= 1 << BITS
    assert all(domain.size**block <= LARGEST_BLOCK for block in domain.blocks[1:])
    assert all(domain.kept * domain.size**block <= 1 << BITS for block in domain.blocks[1:])
    assert 1 <= domain.kept <= MOST_KEPT


def test_how_long_words_are_searched():
    assert WordItems("ascii", 16).blocks == (3, 2, 2, 2, 2, 2, 2, 1)
    assert WordItems("upper+digits", 6).blocks == (3, 2, 1)
    assert WordItems(UTF8, 8).blocks == (2, 1, 1, 1, 1, 1, 1)
    assert (WordItems("ascii", 16).kept, WordItems("lower", 8).kept) == (113, 256)


def test_codes_are_frozen():
    """Reports that one version draws are read by another; the salt, the level and the prefix all tell."""
    domain = WordItems("lower", 8, salt=1)
    assert domain.blocks == (4, 2, 2)
    symbols = np.array([[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 0, 0, 0, 0], [26, 0, 0, 0, 0, 0, 0, 0]], dtype=np.uint8)
    found = domain.codes(symbols)
    assert found.tolist() == FROZEN
    assert found[0, 0] == found[1, 0]
    assert len({*found[:, 1].tolist(), *found[:, 2].tolist(), *found[:, 3].tolist()}) == 9
    assert not np.any(found == WordItems("lower", 8, salt=2).codes(symbols))


FROZEN = [[416106, 150823, 375922, 527421], [416106, 206328, 5902, 665747], [811439, 210533, 124068, 455256]]


def test_codes_of_the_search_are_codes_of_the_records():
    """Following a word block by block gives the codes that its holders report about."""
    domain = WordItems("upper", 7)
    random = np.random.default_rng(3)
    symbols = random.integers(1, domain.size, (40, 7)).astype(np.uint32)
    symbols[::3, 4:] = 0
    codes, state, start = domain.codes(symbols), domain.root(40), 0
    values = []
    for level, block in enumerate(domain.blocks):
        value = np.zeros(40, dtype=np.uint64)
        for place in range(start, start + block):
            value = value * np.uint64(domain.size) + symbols[:, place]
        assert np.isin(value, domain.block_values(block)).all()
        values.append(value)
        state, start = domain.extended(state, value), start + block
        assert np.array_equal(domain.code(state, level), codes[:, level])
    assert np.array_equal(domain.code(state, domain.levels - 1), codes[:, -1])
    words = [domain.word(path) for path in np.stack(values, axis=1)]
    assert words == ["".join(chr(64 + symbol) for symbol in row if symbol) for row in symbols.tolist()]


def test_block_values_are_the_blocks_in_which_nothing_follows_an_end():
    domain = WordItems("ab", 3)
    values = domain.block_values(3)
    texts = {tuple(int(value) // 3**place % 3 for place in (2, 1, 0)) for value in values}
    assert texts == {
        (a, b, c) for a in range(3) for b in range(3) for c in range(3) if (a or not (b or c)) and (b or not c)
    }
    assert values.size == len(texts)


def test_bytes_of_no_text_are_no_word():
    domain = WordItems(UTF8, 2)
    assert domain.word(np.array([0xC3 * 256 + 0xA9], dtype=np.uint64)) == "é"
    assert domain.word(np.array([0xC3 * 256], dtype=np.uint64)) is None
    assert domain.word(np.array([0x61 * 256], dtype=np.uint64)) == "a"


def test_hashes_fill_the_cells_evenly():
    """Codes of all words of three letters at both levels: a chi-square of 256 classes each."""
    domain = WordItems("upper", 3)
    values = domain.block_values(3)
    state = domain.extended(domain.root(values.size), values)
    for level in range(2):
        counts = np.bincount(domain.code(state, level) >> (BITS - 8), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-7
    assert np.unique(domain.code(state, 0)).size > 0.98 * values.size


def test_presets_are_joined():
    assert WordItems("digits+upper", 3).characters == PRESETS["digits"] + PRESETS["upper"]
    assert WordItems("xyz ", 3).characters == "xyz "
    assert len(WordItems("letters+upper", 3).characters) == 52


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: WordItems("ascii", 0), "`max_length` from 1 to 64; got 0"),
        (lambda: WordItems("ascii", 65), "got 65"),
        (lambda: WordItems("a", 3), "at least two different characters; got 'a'"),
        (lambda: WordItems("aba", 3), "different characters; got 'aba'"),
        (lambda: WordItems("", 3), "`alphabet` must be ascii, lower"),
        (lambda: WordItems("a\0", 3), "different characters"),
        (lambda: WordItems(UTF8, 40), "take 40 levels, above 32"),
        (lambda: WordItems("ascii", 3, salt=-1), "whole `salt`"),
        (lambda: ListedItems(1), "from 2 to"),
        (lambda: ListedItems(2**24), "from 2 to"),
    ],
)
def test_bad_domains(ask, message):
    with pytest.raises(InvalidInput, match=message):
        ask()


def test_a_list_leaves_a_code_for_none_of_them():
    for count in (2, 3, 4, 1000, 1023, 1024):
        assert 2 ** ListedItems(count).bits > count
