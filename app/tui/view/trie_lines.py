"""The prefix cache as an outline: one row for each chain of blocks, below the chain it continues."""

from collections.abc import Sequence

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.numbers import compact
from app.tui.view.kv_events import request_span
from app.tui.view.spans import Line, Span, cut, fit, width
from engine.api.block_detail import PrefixChain, PrefixTree

_WIDE = 60
"""Cells from which on references and owners are shown."""
_MAX_INDENT = 12
"""Deeper chains are not indented further, so that their text stays visible."""
_MAX_OWNERS = 2


def in_outline(tree: PrefixTree) -> list[tuple[int, int]]:
    """(index in `tree.chains`, depth) of all chains, each followed by those that continue it."""
    below: dict[int, list[int]] = {}
    for index, chain in enumerate(tree.chains):
        below.setdefault(chain.parent, []).append(index)
    rows: list[tuple[int, int]] = []
    pending = [(index, 0) for index in reversed(below.get(-1, ()))]
    while pending:
        index, depth = pending.pop()
        rows.append((index, depth))
        pending += [(child, depth + 1) for child in reversed(below.get(index, ()))]
    return rows


def build_trie_head(tree: PrefixTree | None, cells: int) -> Line:
    """How much is cached."""
    if tree is None:
        return (Span("reading the prefix cache", "$faint"),)
    if not tree.chains:
        return (Span("the prefix cache is empty", "$faint"),)
    blocks = sum(chain.num_blocks for chain in tree.chains)
    chains = len(tree.chains)
    text = f"{chains} chain{'' if chains == 1 else 's'}, {compact(blocks)} block{'' if blocks == 1 else 's'}"
    text += f", {compact(blocks * tree.block_size)} tokens"
    if tree.truncated:
        text += "; the deepest chains are left out"
    return cut((Span(text, "$muted"),), cells)


def build_trie_row(
    chain: PrefixChain,
    depth: int,
    owners: Sequence[str],
    glyphs: Glyphs,
    cells: int,
    *,
    block_size: int,
    selected: bool = False,
) -> Line:
    """State, tokens, blocks, references, requests and text of one chain.

    Args:
        chain: the chain.
        depth: number of chains above it.
        owners: the requests that hold its first block.
        glyphs: the terminal's glyphs.
        cells: width.
        block_size: tokens in a block.
        selected: whether the cursor is on it.
    """
    back = " on $panel" if selected else ""
    indent = " " * min(2 * depth, _MAX_INDENT)
    active = chain.refcount > 0
    spans = [
        Span(f"{glyphs.current if selected else ' '}{indent}", f"bold $accent{back}"),
        Span(
            f"{glyphs.dot if active else glyphs.ring} ",
            f"{'$kv-active' if active else '$kv-cached'}{back}",
        ),
        Span(f"{compact(chain.num_blocks * block_size)} tok ", f"bold{back}"),
        Span(f"{chain.num_blocks} blk ", f"$muted{back}"),
    ]
    if chain.pinned:
        spans.append(Span(f"{chain.pinned} pinned ", f"$kv-pinned{back}"))
    if active and cells >= _WIDE:
        count = f"{chain.refcount} request{'' if chain.refcount == 1 else 's'} "
        spans.append(Span(count, f"$muted{back}"))
        for owner in owners[:_MAX_OWNERS]:
            name = request_span(owner)
            spans.append(Span(f"{name.text} ", f"{name.style}{back}"))
        if len(owners) > _MAX_OWNERS:
            spans.append(Span(f"+{len(owners) - _MAX_OWNERS} ", f"$muted{back}"))
    elif active:
        spans.append(Span(f"x{chain.refcount} ", f"$muted{back}"))
    text = fit(safe_line(chain.text), max(0, cells - width(spans)), glyphs.ellipsis)
    spans.append(Span(text, f"$foreground{back}" if active else f"$muted{back}"))
    return cut(spans, cells)
