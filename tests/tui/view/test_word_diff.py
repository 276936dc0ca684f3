"""Words and the blocks that two texts have in common; bounded for long texts."""

import random
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.tui.view import word_diff
from app.tui.view.word_diff import equal_blocks, split_words


def test_words_have_their_spaces_and_line_breaks_are_words():
    assert split_words("the  river\n  flows ") == ["the", "  river", "\n", "  flows"]


def test_scripts_without_spaces_are_split_by_character():
    assert split_words("日本 is にほん") == ["日", "本", " is", " に", "ほ", "ん"]


def test_equal_words_around_a_change():
    a, b = split_words("the river is long today"), split_words("the river was  long today")
    assert equal_blocks(a, b) == [(0, 0, 2), (3, 3, 2)]


def assert_valid(a, b):
    keys_a, keys_b = ([word.strip() for word in one] for one in (a, b))
    at = (0, 0)
    for start_a, start_b, size in equal_blocks(a, b):
        assert size > 0
        assert (start_a, start_b) >= at
        assert start_a >= at[0]
        assert start_b >= at[1]
        assert keys_a[start_a : start_a + size] == keys_b[start_b : start_b + size]
        at = (start_a + size, start_b + size)


@given(*[st.lists(st.sampled_from(["a", "b.", "\n", " c"]), max_size=30)] * 2)
def test_blocks_ascend_and_are_equal(a, b):
    assert_valid(a, b)


@pytest.fixture
def compared(monkeypatch):
    """The product of the lengths of every run of `SequenceMatcher`."""
    sizes = []
    original = word_diff.SequenceMatcher

    def recorded(junk, a, b, **options):
        sizes.append(len(a) * len(b))
        return original(junk, a, b, **options)

    monkeypatch.setattr(word_diff, "SequenceMatcher", recorded)
    return sizes


def sentences(generator, count):
    return [
        [f" w{generator.randrange(3000)}" for _ in range(9)] + [f" w{index}."]
        for index in range(count)
    ]


def test_ten_thousand_words_are_compared_by_sentences_first(compared):
    generator = random.Random(1)
    a = sentences(generator, 1000)
    b = [list(sentence) for sentence in a]
    for index in range(0, 1000, 50):
        b[index][4] = " changed"
    a, b = list(chain(*a)), list(chain(*b))
    blocks = equal_blocks(a, b)
    assert sum(size for *_, size in blocks) == len(a) - 20
    assert max(compared) <= 1000 * 1000  # sentences, not words
    assert_valid(a, b)


def test_ten_thousand_words_that_have_nothing_in_common_are_not_compared_by_words(compared):
    a, b = ([f" {name}{index}" for index in range(10_000)] for name in "ab")
    assert equal_blocks(a, b) == []
    assert max(compared) == 1  # each text is one line


def test_a_repeated_sentence_is_compared_once(compared):
    a, b = [" again", " and", " again."] * 3000, [" again", " or", " again."] * 3000
    assert equal_blocks(a, b) == [(0, 0, 1), (8999, 8999, 1)]
    assert_valid(a, b)
