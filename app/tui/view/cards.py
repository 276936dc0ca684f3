"""Rows of the cards that show answers generated side by side, and of the row above them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.text.safe_text import safe_text
from app.tui.glyphs import Glyphs
from app.tui.numbers import rate
from app.tui.view.price import spaced
from app.tui.view.spans import Line, Span, cut, justify, width
from app.tui.view.wrapping import last_rows
from engine.conversations.answer import CONTEXT_FULL, REPETITION
from engine.conversations.tree import NodeStatus, NodeView

MIN_CARD_CELLS = 24
"""Least width of a card, borders included, if there is more than one column: four fit beside the KV map on a
screen of 140 columns."""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """One answer.

    Attributes:
        number: from 1, the key that selects the card.
        open: whether the answer is on the open path; such a card has a glyph after its number.
        perplexity: so far; None if unknown.
        marked: whether the answer is marked for comparison.
    """

    number: int
    node: NodeView
    open: bool
    perplexity: float | None
    marked: bool = False


@dataclass(frozen=True, slots=True)
class CardPage:
    """Cards [start, end) that are shown side by side."""

    start: int
    end: int
    number: int
    pages: int


def card_page(count: int, selected: int, cells: int) -> CardPage:
    """The page that holds the selected one of `count` cards in a strip `cells` wide."""
    columns = max(1, min(count, cells // MIN_CARD_CELLS))
    number = selected // columns
    start = number * columns
    return CardPage(start, min(count, start + columns), number, max(1, math.ceil(count / columns)))


def build_card(card: CardFacts, cells: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """Exactly `rows` rows: state, the end of the text, figures; the speed only where it fits."""
    node = card.node
    number = f"{card.number} "
    number += f"{glyphs.current} " if card.open else ""
    number += f"{glyphs.mark} " if card.marked else ""
    state = (Span(number, "bold $accent"), *_state(node, glyphs))
    speed = _speed(node)
    head = justify(state, speed if width(state) + width(speed) < cells else (), cells)
    body: list[Line] = [
        (Span(row),) for row in last_rows(safe_text(node.text), cells, max(0, rows - 2))
    ]
    body += [()] * (rows - 2 - len(body))
    return [head, *body, cut((Span(_figures(node, card.perplexity, glyphs), "$muted"),), cells)]


def _state(node: NodeView, glyphs: Glyphs) -> Line:
    match node.status:
        case NodeStatus.STREAMING if not node.text:
            return (Span(f"{glyphs.queued} reading", "$faint"),)
        case NodeStatus.STREAMING:
            return (Span(f"{glyphs.busy} running", "$status-busy"),)
        case NodeStatus.DONE if node.finish == "length":
            return (Span(f"{glyphs.stopped} max tokens", "$warning"),)
        case NodeStatus.DONE if node.finish == CONTEXT_FULL:
            return (Span(f"{glyphs.stopped} context full", "$warning"),)
        case NodeStatus.DONE:
            return (Span(f"{glyphs.dot} done", "$success"),)
        case NodeStatus.STOPPED:
            why = "repetition" if node.finish == REPETITION else "stopped"
            return (Span(f"{glyphs.stopped} {why}", "$warning"),)
        case NodeStatus.ERROR:
            return (Span(f"{glyphs.failed} failed", "$error"),)


def _figures(node: NodeView, perplexity: float | None, glyphs: Glyphs) -> str:
    parts = [f"{node.n_gen or 0} tokens"]
    if perplexity is not None:
        parts.append(f"ppl {perplexity:.2f}")
    return f" {glyphs.separator} ".join(parts)


def _speed(node: NodeView) -> Line:
    tokens = node.n_gen or 0
    if not node.decode_us or tokens < 2:
        return ()
    return (Span(f"{rate((tokens - 1) * 1e6 / node.decode_us)} tok/s", "$muted"),)


def build_cards_head(
    nodes: Sequence[NodeView], page: CardPage, glyphs: Glyphs, cells: int, hints: Line
) -> Line:
    """Number of answers, what the shared prefill saved, the page; keys on the right."""
    running = sum(node.status is NodeStatus.STREAMING for node in nodes)
    words = f"{len(nodes)} answer{'' if len(nodes) == 1 else 's'}"
    if running:
        words += f", {running} running"
    left = [Span(words, "bold")]
    if page.pages > 1:
        shown = f"{page.start + 1}–{page.end}" if page.end - page.start > 1 else f"{page.end}"
        left.append(Span(f"  {shown} of {len(nodes)}", "$accent"))
    saving = build_saving(nodes)
    if saving:
        left.append(Span(f"  {saving}", "$primary"))
    return justify(left, hints, cells)


def build_saving(nodes: Sequence[NodeView]) -> str:
    """`4 × 1 812 → 1 824 prefilled`: prompt tokens of all answers, and those that were computed.

    Empty until the engine has reported the cached tokens of every answer.
    """
    if len(nodes) < 2 or any(node.n_prompt is None or node.n_cached is None for node in nodes):
        return ""
    prompts = {node.n_prompt or 0 for node in nodes}
    computed = sum((node.n_prompt or 0) - (node.n_cached or 0) for node in nodes)
    total = f"{len(nodes)} × {spaced(max(prompts))}"
    return f"{total} → {spaced(computed)} prefilled"


def build_ask_count(key: str, most: int, price: str, glyphs: Glyphs) -> Line:
    """The row that is shown between the key and the number.

    Args:
        key: the key that asked.
        most: the largest number.
        price: what is computed once for all answers; empty if unknown.
        glyphs: for the separator.
    """
    dot = f" {glyphs.separator} "
    cost = f"{dot}{price}, shared by all" if price else ""
    return (
        Span(f"{key}… ", "bold $accent"),
        Span(f"how many answers side by side? 2–{most}"),
        Span(f"{cost}{dot}esc cancels", "$muted"),
    )
