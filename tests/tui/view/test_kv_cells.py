"""The grid of the KV map against plain loops."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.tui.glyphs import ASCII, UNICODE
from app.tui.view.kv_cells import (
    ZOOMS,
    BlockInfo,
    Cell,
    block_cells,
    block_info,
    changed_lines,
    counted,
    paired,
    rows_of,
    runs,
    zoomed,
)
from app.tui.view.kv_lines import build_block_line, build_legend, build_summary
from app.tui.view.spans import plain
from engine.api.snapshot import BlockCounts, BlockMap, BlockState

CELLS = st.lists(st.integers(0, max(Cell)), max_size=60).map(
    lambda values: np.array(values, np.uint8)
)


def block_map():
    return BlockMap(
        epoch=1,
        state=np.array([0, 1, 1, 2, 2, 1], np.uint8),
        refcount=np.array([0, 1, 2, 0, 0, 1], np.uint16),
        fill=np.array([0, 16, 16, 16, 16, 3], np.uint8),
        owner=np.array([-1, 0, 1, 0, -1, 1], np.int32),
        owners=("mine", "theirs"),
        first_token=np.array([-1, 0, 0, -1, -1, 16], np.int32),
    )


def test_own_and_lit_requests_stand_out_and_cached_blocks_do_not():
    cells = block_cells(block_map(), own="mine", lit="theirs")
    assert list(cells) == [Cell.FREE, Cell.OWN, Cell.LIT, Cell.CACHED, Cell.CACHED, Cell.LIT]
    assert list(block_cells(block_map(), None, "gone"))[1:3] == [Cell.ACTIVE, Cell.ACTIVE]


@given(CELLS, st.sampled_from(ZOOMS))
def test_a_cell_shows_the_worst_of_its_blocks(cells, zoom):
    expected = [max(cells[i : i + zoom]) for i in range(0, len(cells), zoom)]
    assert list(zoomed(cells, zoom)) == expected


@given(CELLS, st.integers(1, 12))
def test_rows_hold_every_cell_in_reading_order(cells, columns):
    rows = paired(rows_of(cells, columns))
    flat = rows.reshape(-1)
    assert list(flat[: len(cells)]) == list(cells)
    assert (flat[len(cells) :] == -1).all()
    assert len(rows) % 2 == 0


@given(CELLS, st.integers(1, 12))
def test_runs_give_back_their_rows(cells, columns):
    rows = paired(rows_of(cells, columns))
    for upper, lower in zip(rows[::2], rows[1::2], strict=True):
        found = runs(upper, lower)
        assert [a for a, _, n in found for _ in range(n)] == list(upper)
        assert [b for _, b, n in found for _ in range(n)] == list(lower)
        assert all(a[:2] != b[:2] for a, b in pairwise(found))


def test_only_lines_that_changed_are_named():
    old = np.zeros((6, 4), np.int16)
    new = old.copy()
    new[1, 2] = new[5, 0] = 3
    assert changed_lines(old, new, 2) == [0, 2]
    assert changed_lines(old, old, 2) == []
    assert changed_lines(old, np.zeros((8, 4), np.int16), 2) is None


def test_a_block_in_words():
    info = block_info(block_map(), 5)
    assert info == BlockInfo(5, "active", "theirs", 1, 3, 16)
    assert plain(build_block_line(info, 16, 1)) == (
        "block 5  active  refs 1  fill 3/16\ntokens 16–18  theirs"
    )
    assert "cell of 4" in plain(build_block_line(info, 16, 4))
    assert "no request holds it" in plain(build_block_line(block_info(block_map(), 0), 16, 1))
    assert "point at a cell" in plain(build_block_line(None, 16, 1))


@pytest.mark.parametrize(("glyphs", "colored"), [(UNICODE, True), (UNICODE, False), (ASCII, True)])
def test_the_legend_has_glyph_word_and_count(glyphs, colored):
    counts = BlockCounts(total=10, free=5, active=3, cached=2, block_size=16, block_bytes=1024)
    words = plain(build_legend(counts, glyphs, own=1, colored=colored))
    assert "this chat 1" in words
    assert "active 2" in words
    assert "cached 2" in words
    assert "free 5" in words
    assert "swapped" not in words
    if not colored:
        assert len({glyphs.kv[cell] for cell in Cell}) == len(Cell)


def test_the_summary_states_use_and_size():
    counts = BlockCounts(total=10, free=7, active=3, block_size=16, block_bytes=1024**2)
    assert build_summary(counts) == "3/10 · 30% of 10 MiB"
    assert build_summary(BlockCounts()) == "no pool yet"


def test_counts_are_those_of_the_map():
    stale = BlockCounts(total=6, free=6, block_size=16, block_bytes=7)
    assert counted(block_map(), stale) == BlockCounts(
        total=6, free=1, active=3, cached=2, block_size=16, block_bytes=7
    )


def test_every_state_of_a_block_in_the_pool_has_a_cell():
    states = np.array([BlockState.FREE, BlockState.ACTIVE, BlockState.CACHED], np.uint8)
    everything = BlockMap(
        1, states, states.astype(np.uint16), states, np.full(3, -1, np.int32), (), states.astype(np.int32)
    )  # fmt: skip
    cells = block_cells(everything, None, None)
    assert list(cells) == [Cell.FREE, Cell.ACTIVE, Cell.CACHED]
