"""The prefix cache as an outline: order, words, width."""

import pytest

from app.tui.glyphs import ASCII, UNICODE
from app.tui.view.spans import plain, width
from app.tui.view.trie_lines import build_trie_head, build_trie_row, in_outline
from engine.api.block_detail import PrefixChain, PrefixTree


def chain(parent: int, first: int, blocks: int = 2, *, refs: int = 0, text: str = "", pinned=0):
    return PrefixChain(
        parent, first, blocks, 0, refs, pinned, text, tuple(range(first, first + blocks))
    )


TREE = PrefixTree(
    (
        chain(-1, 0, 4, refs=2, text="You are\n\x1b[2J a river"),
        chain(-1, 10, text="Another"),
        chain(0, 20, refs=1, text="Hello"),
        chain(0, 30, text="Bye", pinned=2),
        chain(2, 40, text="deep"),
    ),
    16,
    truncated=False,
)


def row(index, depth=0, cells=100, glyphs=UNICODE, owners=(), selected=False):
    return build_trie_row(
        TREE.chains[index], depth, owners, glyphs, cells, block_size=16, selected=selected
    )


def test_each_chain_is_followed_by_those_that_continue_it():
    assert in_outline(TREE) == [(0, 0), (2, 1), (4, 2), (3, 1), (1, 0)]


def test_a_row_has_tokens_blocks_requests_and_text():
    text = plain([row(0, owners=("req-aaaa", "req-bbbb", "req-cccc"))])
    for words in ("64 tok", "4 blk", "2 requests", "+1", "You are", "a river"):
        assert words in text
    assert "\x1b" not in text
    assert "2 pinned" in plain([row(3, 1)])
    assert plain([row(1)]).split()[0] == UNICODE.ring


def test_a_continuing_chain_is_indented_and_the_cursor_marked():
    assert plain([row(4, 2)]).startswith(" " * 5)
    assert plain([row(1, selected=True)]).startswith(UNICODE.current)
    assert plain([row(1, 40)]).endswith("Another")


@pytest.mark.parametrize("cells", [20, 38, 80, 160])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_rows_fit(cells, glyphs):
    for index in range(5):
        assert width(row(index, 9, cells, glyphs, owners=("req-aaaa",) * 4)) <= cells
    assert width(build_trie_head(TREE, cells)) <= cells


def test_the_head_counts():
    assert plain([build_trie_head(TREE, 80)]) == "5 chains, 12 blocks, 192 tokens"
    assert "empty" in plain([build_trie_head(PrefixTree((), 16, truncated=False), 80)])
    assert "reading" in plain([build_trie_head(None, 80)])
    cut = PrefixTree(TREE.chains, 16, truncated=True)
    assert "left out" in plain([build_trie_head(cut, 80)])
