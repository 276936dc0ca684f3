"""Text around the KV map: the legend, the swap tier's gauge and the description of one block."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs, gauge
from app.tui.numbers import age, compact, percent, size
from app.tui.view.kv_cells import (
    LIT_ABOVE,
    PATH_0,
    ROLES,
    WORDS,
    BlockInfo,
    Cell,
    glyph_of,
    role_of,
    shared_blocks,
)
from app.tui.view.kv_colors import SCALES, ColorMode, hue_of
from app.tui.view.kv_events import request_span
from app.tui.view.spans import Line, Span, cut, width
from engine.api.block_detail import BlockDetail
from engine.api.snapshot import BlockCounts, StateCounts, SwapCounts, WindowCounts

_ROWS = (
    (Cell.ACTIVE, Cell.SHARED, Cell.OWN),
    (Cell.CHECKPOINT, Cell.PINNED, Cell.CACHED, Cell.FREE),
)
_ALWAYS = (Cell.ACTIVE, Cell.CACHED, Cell.FREE)
_GAUGE_CELLS = 12


def build_legend(states: Mapping[Cell, int], glyphs: Glyphs, *, colored: bool) -> list[Line]:
    """Swatch, name and count of each state: blocks in use in the first row, the others in the second.

    Args:
        states: number of blocks in each state.
        glyphs: the character table.
        colored: whether swatches are coloured squares instead of glyphs.
    """
    return [
        tuple(
            span
            for cell in row
            if states.get(cell) or cell in _ALWAYS
            for span in _entry(cell, states.get(cell, 0), glyphs, colored)
        )
        for row in _ROWS
    ]


def _entry(cell: Cell, count: int, glyphs: Glyphs, colored: bool) -> Line:
    swatch = "■" if colored and glyphs.half_blocks else glyphs.kv[cell]
    return (
        Span(f"{swatch} ", f"${ROLES[cell]}"),
        Span(f"{WORDS[cell]} ", "$muted"),
        Span(f"{count}  "),
    )


def build_mode_legend(
    mode: ColorMode, owners: Sequence[str], glyphs: Glyphs, *, colored: bool, cells: int
) -> list[Line]:
    """Two rows: what the colours of a mode other than the state mean.

    Args:
        mode: the mode.
        owners: ids of the requests in the map.
        glyphs: the character table.
        colored: whether swatches are coloured squares instead of letters and digits.
        cells: width of a row.
    """
    square = colored and glyphs.half_blocks
    entries: list[Line]
    if mode is ColorMode.REQUEST:
        entries = [
            (
                Span(
                    f"{'■' if square else chr(ord('a') + hue_of(one))} ", f"$kv-hue-{hue_of(one)}"
                ),
                request_span(one),
                Span("  "),
            )
            for one in owners
        ]
    else:
        entries = [
            (
                Span(f"{'■' if square else step} ", f"$kv-step-{step}"),
                Span(f"{word}  ", "$muted"),
            )
            for step, word in enumerate(SCALES[mode])
        ]
    rows: list[list[Span]] = [[Span(f"{mode.value}  ", "bold")], []]
    for entry in entries:
        target = rows[0] if not rows[1] and width([*rows[0], *entry]) <= cells else rows[1]
        target.extend(entry)
    return [cut(row, cells) for row in rows]


_ORDINALS = ("1st", "2nd", "3rd", "4th")


def build_selection(
    lit: str | None,
    paths: Sequence[NDArray[np.int32]],
    glyphs: Glyphs,
    cells: int,
    *,
    colored: bool,
) -> list[Line]:
    """Rows that say what is highlighted: a request, a path, or what several paths share; none without.

    Args:
        lit: the selected request, or None.
        paths: the blocks of each selected path.
        glyphs: the character table.
        cells: width of a row.
        colored: whether swatches are coloured squares instead of glyphs.
    """

    def entry(code: int, text: str, count: int | None = None) -> Line:
        swatch = "■" if colored and glyphs.half_blocks else glyph_of(code, glyphs)
        number = () if count is None else (Span(f"{count}  "),)
        return (Span(f"{swatch} ", f"${role_of(code)}"), Span(f"{text} ", "$muted"), *number)

    if lit is not None:
        return [cut((*entry(Cell.LIT, "request"), request_span(lit)), cells)]
    if len(paths) == 1:
        return [cut(entry(Cell.LIT, "selected path", len(paths[0])), cells)]
    if not paths:
        return []
    shared = shared_blocks(paths)
    own = [
        entry(PATH_0 + number, f"{_ORDINALS[number]} only", len(np.setdiff1d(path, shared)))
        for number, path in enumerate(paths)
    ]
    word = "in both" if len(paths) == 2 else "shared"
    rows: list[list[Span]] = [[*entry(LIT_ABOVE, word, len(shared))]]
    for one in own:
        if width([*rows[-1], *one]) > cells:
            rows.append([])
        rows[-1].extend(one)
    return [cut(row, cells) for row in rows]


def build_swap_gauge(swap: SwapCounts, glyphs: Glyphs, cells: int) -> list[Line]:
    """One row of at most `cells`: how full the swap tier is and what was copied; none without a tier."""
    if not swap.capacity:
        return []
    name = Span("swap ", "$muted")
    figures = (
        Span(f" {compact(swap.blocks)}/{compact(swap.capacity)}"),
        Span(f"  in {compact(swap.swapped_in)}  out {compact(swap.swapped_out)}", "$muted"),
    )
    room = cells - width((name, *figures))
    full, empty = gauge(glyphs, swap.blocks / swap.capacity, max(1, min(_GAUGE_CELLS, room)))
    return [cut((name, Span(full, "$secondary"), Span(empty, "$panel"), *figures), cells)]


def build_states_line(states: StateCounts, cells: int) -> list[Line]:
    """One row: slots of recurrent states by what they hold; none for a model without recurrent layers."""
    if not states.total:
        return []
    text = (
        Span("states ", "$muted"),
        Span(f"{states.active} active  {states.checkpoints} kept  {states.free} free"),
        Span(f"  {size(states.slot_bytes)} each", "$muted"),
    )
    return [cut(text, cells)]


def build_windows_line(windows: WindowCounts, cells: int) -> list[Line]:
    """One row: window blocks by state; none for a model all of whose layers keep every token."""
    if not windows.total:
        return []
    text = (
        Span("windows ", "$muted"),
        Span(f"{windows.active} active  {windows.cached} cached  {windows.free} free"),
        Span(f"  {windows.windows} kept of {compact(windows.tokens)} tokens", "$muted"),
    )
    return [cut(text, cells)]


def build_summary(counts: BlockCounts) -> str:
    """Pool use for the map's border: `37/2048 · 2% · 24 MiB`."""
    if not counts.total:
        return "no pool yet"
    nbytes = size(counts.total * counts.block_bytes)
    return f"{counts.active}/{counts.total} · {percent(counts.usage)} of {nbytes}"


def build_block_line(
    info: BlockInfo | None,
    block_size: int,
    zoom: int,
    *,
    detail: BlockDetail | None = None,
    now: float = 0.0,
    cells: int = 80,
) -> list[Line]:
    """Two rows about the block under the cursor, and its text if it is known; a hint without a block.

    Args:
        info: the block by the map.
        block_size: tokens in a block.
        zoom: blocks in a cell.
        detail: the same block by the engine, or None.
        now: the current instant, on the clock of `BlockDetail.last_used`.
        cells: width of a row.
    """
    if info is None:
        return [(Span("point at a cell, or focus and move", "$faint"),), (Span(""),)]
    scale = f" (cell of {zoom})" if zoom > 1 else ""
    marks = " pinned" if info.pinned else ""
    marks += ", state kept" if info.checkpoint else ""
    head = (
        Span(f"block {info.block}{scale}", "bold"),
        Span(f"  {info.state}{marks}", "$muted"),
        Span(f"  refs {info.refs}", "$muted"),
        Span(f"  fill {info.fill}/{block_size}", "$muted"),
    )
    known = detail if detail is not None and detail.block == info.block else None
    rows = [cut(head, cells), cut(_held_by(info, known, now), cells)]
    if known is not None and known.text:
        text = Span(safe_line(known.text), "italic")
        rows.append(cut((text,), cells))
    return rows


def _held_by(info: BlockInfo, detail: BlockDetail | None, now: float) -> Line:
    """Positions and owners; for a block without owner, when it was used."""
    if info.owners and info.first_token >= 0:
        last = info.first_token + max(info.fill, 1) - 1
        owners = tuple(
            Span(f"  {safe_line(one)[:16]}", f"$kv-hue-{hue_of(one)}") for one in info.owners
        )
        return (Span(f"tokens {info.first_token}–{last}", "$muted"), *owners)
    used = ""
    if detail is not None and detail.last_used is not None and info.fill:
        since = age(max(0.0, now - detail.last_used))
        used = ", just used" if since == "now" else f", used {since} ago"
    position = ""
    if detail is not None and detail.first_token is not None and detail.fill:
        position = f"tokens {detail.first_token}–{detail.first_token + detail.fill - 1}, "
    return (Span(f"{position}no request holds it{used}", "$faint"),)
