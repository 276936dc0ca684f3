"""Text around the KV map: the legend and the description of one block."""

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.numbers import percent, size
from app.tui.view.kv_cells import ROLES, WORDS, BlockInfo, Cell
from app.tui.view.spans import Line, Span
from engine.api.snapshot import BlockCounts


def build_legend(counts: BlockCounts, glyphs: Glyphs, *, own: int, colored: bool) -> list[Line]:
    """Swatch, name and count of each state: blocks in use in the first row, the others in the second.

    Args:
        counts: blocks by state.
        glyphs: the character table.
        own: number of active blocks of the open conversation.
        colored: whether swatches are coloured squares instead of glyphs.
    """
    rows = (
        ((Cell.ACTIVE, counts.active - own), (Cell.OWN, own)),
        ((Cell.CACHED, counts.cached), (Cell.FREE, counts.free)),
    )
    return [
        tuple(
            span
            for cell, count in row
            if count or cell is not Cell.OWN
            for span in _entry(cell, count, glyphs, colored)
        )
        for row in rows
    ]


def _entry(cell: Cell, count: int, glyphs: Glyphs, colored: bool) -> Line:
    swatch = "■" if colored and glyphs.half_blocks else glyphs.kv[cell]
    return (
        Span(f"{swatch} ", f"${ROLES[cell]}"),
        Span(f"{WORDS[cell]} ", "$muted"),
        Span(f"{count}  "),
    )


def build_summary(counts: BlockCounts) -> str:
    """Pool use for the map's border: `37/2048 · 2% · 24 MiB`."""
    if not counts.total:
        return "no pool yet"
    nbytes = size(counts.total * counts.block_bytes)
    return f"{counts.active}/{counts.total} · {percent(counts.usage)} of {nbytes}"


def build_block_line(info: BlockInfo | None, block_size: int, zoom: int) -> list[Line]:
    """Two rows about the block under the cursor; a hint if there is none."""
    if info is None:
        return [(Span("point at a cell, or focus and move", "$faint"),), (Span(""),)]
    scale = f" (cell of {zoom})" if zoom > 1 else ""
    head = (
        Span(f"block {info.block}{scale}", "bold"),
        Span(f"  {info.state}", "$muted"),
        Span(f"  refs {info.refs}", "$muted"),
        Span(f"  fill {info.fill}/{block_size}", "$muted"),
    )
    if info.owner is None or info.first_token < 0:
        return [head, (Span("no request holds it", "$faint"),)]
    last = info.first_token + max(info.fill, 1) - 1
    tail = (
        Span(f"tokens {info.first_token}–{last}", "$muted"),
        Span(f"  {safe_line(info.owner)[:16]}", "$muted"),
    )
    return [head, tail]
