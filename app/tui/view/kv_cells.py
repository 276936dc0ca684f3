"""The KV pool as a grid of cells, which `widgets/kv_map.py` draws. Pure numpy; a change costs O(blocks).

A cell represents `zoom` consecutive blocks and shows the highest of their `Cell` values. Index spaces:
*block* (0 … total-1), *cell* = block // zoom, *cell row* = cell // columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from app.tui.glyphs import Glyphs
from app.tui.view.kv_colors import HUE_0, STEP_0
from engine.api.snapshot import BlockCounts, BlockMap, BlockState

ZOOMS = (1, 2, 4, 8)
"""Possible numbers of blocks in a cell."""


class Cell(IntEnum):
    """The state that a cell shows; of several blocks in a cell, the greatest value is shown."""

    FREE = 0
    CACHED = 1
    ACTIVE = 2
    SHARED = 3
    OWN = 4
    CHECKPOINT = 5
    PINNED = 6
    LIT = 7


PATH_0 = 90
"""Code of a block that only the first of several selected paths has; those of the next paths follow."""
_PATH_HUES = (3, 5, 2, 4)
"""Hues of the paths: those that themes use least for states of blocks."""
LIT_ABOVE = 99
"""Code of a highlighted block in a mode that does not show states, above hues and steps."""
FLASH = 100
"""Code of a block that an event made flash, above every other one."""

WORDS = {
    Cell.FREE: "free",
    Cell.CACHED: "cached",
    Cell.ACTIVE: "active",
    Cell.SHARED: "shared",
    Cell.OWN: "this chat",
    Cell.CHECKPOINT: "state kept",
    Cell.PINNED: "pinned",
    Cell.LIT: "selected",
}
ROLES = {
    Cell.FREE: "kv-free",
    Cell.CACHED: "kv-cached",
    Cell.ACTIVE: "kv-active",
    Cell.SHARED: "kv-shared",
    Cell.OWN: "kv-own",
    Cell.CHECKPOINT: "kv-checkpoint",
    Cell.PINNED: "kv-pinned",
    Cell.LIT: "kv-lit",
}
"""Cell → theme variable."""

# No block of the pool is ever `BlockState.SWAPPED`: swapped blocks are in the swap tier.
_BY_STATE = np.zeros(len(BlockState), dtype=np.uint8)
_BY_STATE[BlockState.FREE] = Cell.FREE
_BY_STATE[BlockState.CACHED] = Cell.CACHED
_BY_STATE[BlockState.ACTIVE] = Cell.ACTIVE


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """One block, for the lines under the map."""

    block: int
    state: str
    owners: tuple[str, ...]
    refs: int
    pinned: bool
    fill: int
    first_token: int
    checkpoint: bool = False


def block_cells(
    blocks: BlockMap,
    own: str | None,
    lit: str | None,
    *,
    colored_by: NDArray[np.uint8] | None = None,
    flashing: NDArray[np.int32] | None = None,
    paths: Sequence[NDArray[np.int32]] = (),
) -> NDArray[np.uint8]:
    """[blocks] the code of every block: its `Cell`, or what a colour mode says.

    Args:
        blocks: the map.
        own: request of the open conversation, drawn in a separate colour; None for none.
        lit: request whose blocks are highlighted; None for none.
        colored_by: [blocks] codes of `kv_colors.mode_codes` for blocks that are not free; None shows
            states.
        flashing: blocks to draw as flashing.
        paths: the blocks of selected paths. Of several, blocks that two of them have are highlighted, and
            the others have a code for each path.
    """
    cells = _BY_STATE[blocks.state]
    if colored_by is None:
        if own is not None:
            cells[blocks.blocks_of(own)] = Cell.OWN
        cells[blocks.refcount > 1] = Cell.SHARED
        cells[blocks.checkpoints] = Cell.CHECKPOINT
        cells[blocks.pinned] = Cell.PINNED
    else:
        cells = np.where((cells == Cell.FREE) | (colored_by == 0), cells, colored_by)
    if lit is not None:
        cells[blocks.blocks_of(lit)] = Cell.LIT if colored_by is None else LIT_ABOVE
    if len(paths) == 1:
        cells[paths[0]] = Cell.LIT if colored_by is None else LIT_ABOVE
    elif paths:
        for number, path in enumerate(paths):
            cells[path] = PATH_0 + number
        cells[shared_blocks(paths)] = LIT_ABOVE
    if flashing is not None:
        cells[flashing] = FLASH
    return cells


def shared_blocks(paths: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """[S] int32, the blocks that at least two of the paths have."""
    blocks, times = np.unique(np.concatenate(paths), return_counts=True)
    return blocks[times > 1]


def state_counts(blocks: BlockMap, own: str | None) -> dict[Cell, int]:
    """How many blocks are in each state, as the map shows them without a selection."""
    numbers = np.bincount(block_cells(blocks, own, None), minlength=len(Cell))
    return {cell: int(numbers[cell]) for cell in Cell}


def counted(blocks: BlockMap, counts: BlockCounts) -> BlockCounts:
    """`counts` with the numbers of this map, which can be one step older than the snapshot's."""
    number = np.bincount(blocks.state, minlength=len(BlockState))
    return replace(
        counts,
        free=int(number[BlockState.FREE]),
        active=int(number[BlockState.ACTIVE]),
        cached=int(number[BlockState.CACHED]),
        pinned=int(np.count_nonzero(blocks.pinned)),
    )


def zoomed(cells: NDArray[np.uint8], zoom: int) -> NDArray[np.uint8]:
    """[ceil(blocks / zoom)] the greatest `Cell` of each group of `zoom` blocks."""
    if zoom == 1 or len(cells) == 0:
        return cells
    return np.maximum.reduceat(cells, np.arange(0, len(cells), zoom))


def rows_of(cells: NDArray[np.uint8], columns: int) -> NDArray[np.int16]:
    """[rows, columns] the cells in reading order; -1 past the last block."""
    rows = -(-len(cells) // columns) if columns else 0
    grid = np.full(rows * columns, -1, dtype=np.int16)
    grid[: len(cells)] = cells
    return grid.reshape(rows, columns)


def paired(rows: NDArray[np.int16]) -> NDArray[np.int16]:
    """Pad to an even number of rows, because two share a text row."""
    if len(rows) % 2:
        return np.vstack([rows, np.full((1, rows.shape[1]), -1, dtype=np.int16)])
    return rows


def changed_spans(
    old: NDArray[np.int16], new: NDArray[np.int16], rows_per_line: int
) -> list[tuple[int, int, int]] | None:
    """(text row, first column, column after the last) of the cells that differ in each text row.

    None if the shape changed and all must be redrawn.
    """
    if old.shape != new.shape:
        return None
    differ = old != new
    lines = differ.reshape(-1, rows_per_line, differ.shape[1]).any(axis=1)
    rows = np.flatnonzero(lines.any(axis=1))
    first = lines[rows].argmax(axis=1)
    stop = lines.shape[1] - lines[rows, ::-1].argmax(axis=1)
    return list(zip(rows.tolist(), first.tolist(), stop.tolist(), strict=True))


def runs(upper: NDArray[np.int16], lower: NDArray[np.int16]) -> list[tuple[int, int, int]]:
    """(upper cell, lower cell, length) for each run of equal pairs along one text row."""
    if len(upper) == 0:
        return []
    edges = np.flatnonzero((upper[1:] != upper[:-1]) | (lower[1:] != lower[:-1])) + 1
    starts = np.concatenate(([0], edges))
    lengths = np.diff(starts, append=len(upper))
    return list(zip(upper[starts].tolist(), lower[starts].tolist(), lengths.tolist(), strict=True))


def block_info(blocks: BlockMap, block: int) -> BlockInfo:
    """State, owners, references and fill of one block."""
    return BlockInfo(
        block=block,
        state=BlockState(int(blocks.state[block])).name.lower(),
        owners=blocks.owners_of(block),
        refs=int(blocks.refcount[block]),
        pinned=bool(blocks.pinned[block]),
        fill=int(blocks.fill[block]),
        first_token=int(blocks.first_token[block]),
        checkpoint=block in blocks.checkpoints,
    )


def role_of(code: int) -> str:
    """The theme variable of a code."""
    if code in (FLASH, LIT_ABOVE):
        return ROLES[Cell.LIT]
    if code >= PATH_0:
        return f"kv-hue-{_PATH_HUES[code - PATH_0]}"
    if code >= STEP_0:
        return f"kv-step-{code - STEP_0}"
    if code >= HUE_0:
        return f"kv-hue-{code - HUE_0}"
    return ROLES[Cell(code)]


def glyph_of(code: int, glyphs: Glyphs) -> str:
    """The character of a code on a screen without colour: a letter for a hue, a digit for a step."""
    if code in (FLASH, LIT_ABOVE):
        return glyphs.kv[Cell.LIT]
    if code >= PATH_0:
        return str(code - PATH_0 + 1)
    if code >= STEP_0:
        return str(code - STEP_0)
    if code >= HUE_0:
        return chr(ord("a") + code - HUE_0)
    return glyphs.kv[code]
