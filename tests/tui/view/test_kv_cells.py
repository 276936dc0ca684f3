"""The grid of the KV map against plain loops."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.tui.glyphs import ASCII, UNICODE
from app.tui.themes import GROUP_DEFAULTS
from app.tui.view.kv_cells import (
    FLASH,
    ZOOMS,
    BlockInfo,
    Cell,
    block_cells,
    block_info,
    changed_spans,
    counted,
    glyph_of,
    paired,
    role_of,
    rows_of,
    runs,
    state_counts,
    zoomed,
)
from app.tui.view.kv_colors import (
    HUE_0,
    HUES,
    STEP_0,
    STEPS,
    ColorMode,
    hue_of,
    mode_codes,
    next_mode,
)
from app.tui.view.kv_lines import (
    build_block_line,
    build_legend,
    build_mode_legend,
    build_selection,
    build_states_line,
    build_summary,
    build_swap_gauge,
    build_windows_line,
)
from app.tui.view.spans import plain, width
from engine.api.block_detail import BlockDetail
from engine.api.snapshot import (
    BlockCounts,
    BlockMap,
    BlockState,
    StateCounts,
    SwapCounts,
    WindowCounts,
)

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
        pinned=np.zeros(6, np.bool_),
        last_used=np.full(6, np.nan),
        held_blocks=np.array([1, 2, 5], np.int32),
        held_by=np.array([0, 1, 1], np.int32),
    )


def test_own_and_lit_requests_stand_out_and_cached_blocks_do_not():
    cells = block_cells(block_map(), own="mine", lit="theirs")
    assert list(cells) == [Cell.FREE, Cell.OWN, Cell.LIT, Cell.CACHED, Cell.CACHED, Cell.LIT]
    assert list(block_cells(block_map(), None, "gone"))[1:3] == [Cell.ACTIVE, Cell.SHARED]


def test_shared_and_pinned_blocks_show_it_also_in_ones_own_request():
    blocks = replace(block_map(), pinned=np.arange(6) == 3)
    cells = block_cells(blocks, own="theirs", lit=None)
    assert cells[2] == Cell.SHARED
    assert cells[3] == Cell.PINNED
    assert cells[5] == Cell.OWN
    states = state_counts(blocks, "theirs")
    assert states[Cell.SHARED] == states[Cell.PINNED] == states[Cell.OWN] == 1


def test_all_owners_of_a_shared_block_light_it():
    blocks = replace(
        block_map(),
        held_blocks=np.array([1, 2, 2, 5], np.int32),
        held_by=np.array([0, 0, 1, 1], np.int32),
    )
    for one in ("mine", "theirs"):
        assert block_cells(blocks, None, one)[2] == Cell.LIT
    assert block_info(blocks, 2).owners == ("mine", "theirs")


def test_flashing_blocks_are_above_everything():
    cells = block_cells(block_map(), "mine", "theirs", flashing=np.array([2, 4], np.int32))
    assert [index for index, cell in enumerate(cells) if cell == FLASH] == [2, 4]


@pytest.mark.parametrize("mode", [mode for mode in ColorMode if mode is not ColorMode.STATE])
def test_every_mode_has_codes_with_a_colour_and_a_character(mode):
    codes = mode_codes(mode, block_map(), block_size=16, now=100.0)
    cells = block_cells(block_map(), None, "theirs", colored_by=codes)
    assert cells[0] == Cell.FREE
    for code in {*cells.tolist(), FLASH}:
        assert role_of(code) in {f"kv-{role}" for role in GROUP_DEFAULTS["kv"]}
        assert len(glyph_of(code, ASCII)) == 1


def test_requests_have_the_hue_of_their_id():
    codes = mode_codes(ColorMode.REQUEST, block_map(), block_size=16, now=0.0)
    assert codes[1] == HUE_0 + hue_of("mine")
    assert codes[5] == HUE_0 + hue_of("theirs")
    assert 0 <= hue_of("anything") < HUES


def test_age_fill_and_references_are_scales():
    blocks = replace(block_map(), last_used=np.array([np.nan, np.nan, np.nan, 99.5, 10.0, np.nan]))
    ages = mode_codes(ColorMode.AGE, blocks, block_size=16, now=1000.0) - STEP_0
    assert (ages[1], ages[3], ages[4]) == (STEPS - 1, 0, 0)
    recent = mode_codes(ColorMode.AGE, blocks, block_size=16, now=105.0) - STEP_0
    assert recent[3] > recent[4]
    fills = mode_codes(ColorMode.FILL, blocks, block_size=16, now=0.0) - STEP_0
    assert (fills[1], fills[5]) == (STEPS - 1, 0)
    counts = mode_codes(ColorMode.REFCOUNT, blocks, block_size=16, now=0.0) - STEP_0
    assert list(counts[1:4]) == [1, 2, 0]


def test_the_key_goes_through_every_mode_and_back():
    seen, mode = [], ColorMode.STATE
    for _ in ColorMode:
        seen.append(mode)
        mode = next_mode(mode)
    assert (seen, mode) == (list(ColorMode), ColorMode.STATE)


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


def test_only_what_changed_in_a_row_is_named():
    old = np.zeros((6, 4), np.int16)
    new = old.copy()
    new[0, 1] = new[1, 2] = new[5, 0] = 3
    assert changed_spans(old, new, 2) == [(0, 1, 3), (2, 0, 1)]
    assert changed_spans(old, new, 1) == [(0, 1, 2), (1, 2, 3), (5, 0, 1)]
    assert changed_spans(old, old, 2) == []
    assert changed_spans(old, np.zeros((8, 4), np.int16), 2) is None


def test_a_selection_is_named_and_counted():
    paths = [np.array([1, 2, 3], np.int32), np.array([1, 2, 7, 8], np.int32)]

    def words(lit, *selected, cells=80):
        return plain(build_selection(lit, selected, UNICODE, cells, colored=True))

    assert words(None) == ""
    assert words("req-abcdef") == "■ request abcdef"
    assert words(None, paths[0]) == "■ selected path 3  "
    assert words(None, *paths) == "■ in both 2  ■ 1st only 1  ■ 2nd only 2  "
    assert words(None, *paths, paths[0]) == "■ shared 3  ■ 1st only 0  ■ 2nd only 2  ■ 3rd only 0  "
    assert len(build_selection(None, paths, UNICODE, 30, colored=True)) == 2
    assert "1 1st only" in plain(build_selection(None, paths, UNICODE, 80, colored=False))


def test_a_block_in_words():
    info = block_info(block_map(), 5)
    assert info == BlockInfo(5, "active", ("theirs",), 1, False, 3, 16)
    assert plain(build_block_line(info, 16, 1)) == (
        "block 5  active  refs 1  fill 3/16\ntokens 16–18  theirs"
    )
    assert "cell of 4" in plain(build_block_line(info, 16, 4))
    assert "no request holds it" in plain(build_block_line(block_info(block_map(), 0), 16, 1))
    assert "point at a cell" in plain(build_block_line(None, 16, 1))


def detail(**changes):
    values = {
        "block": 3, "state": BlockState.CACHED, "refcount": 0, "pins": 0, "owners": (), "fill": 16,
        "token_ids": tuple(range(16)), "text": "a\x1b[2Jb\nc", "first_token": 32, "last_used": 40.0,
        "parent": None, "children": (),
    }  # fmt: skip
    return BlockDetail(**values | changes)


def test_a_block_with_its_text_owners_and_age():
    info = block_info(block_map(), 3)
    shown = plain(build_block_line(info, 16, 1, detail=detail(), now=400.0))
    assert "tokens 32–47, no request holds it, used 6m ago" in shown
    assert "\x1b" not in shown
    assert shown.splitlines()[2].startswith("a")
    other = plain(build_block_line(info, 16, 1, detail=detail(block=4), now=400.0))
    assert "32" not in other  # the answer is about the block before


def test_of_an_empty_block_no_use_is_told():
    info = replace(block_info(block_map(), 3), fill=0)
    assert "used" not in plain(build_block_line(info, 16, 1, detail=detail(fill=0), now=400.0))


def test_the_swap_tier_has_a_gauge_of_its_own():
    assert build_swap_gauge(SwapCounts(), UNICODE, 80) == []
    swap = SwapCounts(blocks=30, capacity=40, swapped_in=1200, swapped_out=5)
    (row,) = build_swap_gauge(swap, ASCII, 80)
    assert plain([row]) == "swap #########--- 30/40  in 1.2k  out 5"


def test_the_gauge_of_the_swap_tier_fits_into_a_row():
    swap = SwapCounts(blocks=1300, capacity=5500, swapped_in=1200, swapped_out=5)
    (row,) = build_swap_gauge(swap, ASCII, 37)
    assert plain([row]) == "swap #----- 1.3k/5.5k  in 1.2k  out 5"
    assert all(width(build_swap_gauge(swap, ASCII, cells)[0]) <= cells for cells in range(1, 60))


def test_states_have_a_line_of_their_own():
    assert build_states_line(StateCounts(), 80) == []
    states = StateCounts(total=40, free=10, checkpoints=25, slot_bytes=19 << 20)
    (row,) = build_states_line(states, 80)
    assert plain([row]) == "states 5 active  25 kept  10 free  19 MiB each"
    assert all(width(build_states_line(states, cells)[0]) <= cells for cells in range(1, 60))


def test_windows_have_a_line_of_their_own():
    assert build_windows_line(WindowCounts(), 80) == []
    windows = WindowCounts(total=40, free=10, active=5, windows=12, tokens=512)
    (row,) = build_windows_line(windows, 80)
    assert plain([row]) == "windows 5 active  25 cached  10 free  12 kept of 512 tokens"
    assert all(width(build_windows_line(windows, cells)[0]) <= cells for cells in range(1, 70))


def test_blocks_with_a_kept_state_are_marked():
    blocks = replace(block_map(), checkpoints=np.array([3, 5], np.int32))
    cells = block_cells(blocks, own=None, lit=None)
    assert [cells[3], cells[5]] == [Cell.CHECKPOINT, Cell.CHECKPOINT]
    assert "state kept 2" in plain(build_legend(state_counts(blocks, None), UNICODE, colored=True))
    assert ", state kept" in plain(build_block_line(block_info(blocks, 3), 16, 1))
    assert "state kept" not in plain(build_block_line(block_info(blocks, 4), 16, 1))


@pytest.mark.parametrize("mode", [mode for mode in ColorMode if mode is not ColorMode.STATE])
def test_the_legend_of_a_mode_names_what_its_colours_mean(mode):
    rows = build_mode_legend(mode, ("req-abc", "req-def"), UNICODE, colored=True, cells=40)
    words = plain(rows)
    assert words.startswith(mode.value)
    assert len(rows) == 2
    assert all(width(row) <= 40 for row in rows)


@pytest.mark.parametrize(("glyphs", "colored"), [(UNICODE, True), (UNICODE, False), (ASCII, True)])
def test_the_legend_has_glyph_word_and_count(glyphs, colored):
    states = {Cell.ACTIVE: 2, Cell.OWN: 1, Cell.CACHED: 2, Cell.FREE: 5, Cell.SHARED: 0}
    words = plain(build_legend(states, glyphs, colored=colored))
    assert "this chat 1" in words
    assert "active 2" in words
    assert "cached 2" in words
    assert "free 5" in words
    assert "shared" not in words
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
        1, states, (states == 1).astype(np.uint16), states, np.full(3, -1, np.int32), (),
        states.astype(np.int32),
        states > 9, states.astype(np.float64), np.zeros(0, np.int32), np.zeros(0, np.int32),
    )  # fmt: skip
    cells = block_cells(everything, None, None)
    assert list(cells) == [Cell.FREE, Cell.ACTIVE, Cell.CACHED]
