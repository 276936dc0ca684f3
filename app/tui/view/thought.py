"""The row of an answer's reasoning, which is folded below the head of the message."""

from app.tui.glyphs import Glyphs
from app.tui.numbers import duration
from app.tui.view.spans import Line, Span
from engine.conversations.tree import NodeStatus, NodeView


def is_thinking(node: NodeView) -> bool:
    """Whether an answer reasons and has no text yet."""
    return bool(node.n_reasoning) and node.status is NodeStatus.STREAMING and not node.text


def build_thought(
    node: NodeView, glyphs: Glyphs, *, shown: bool, fold: tuple[str, str], end: tuple[str, str]
) -> Line:
    """`▸ thought for 12 s, 240 tokens`, or that it thinks; empty without reasoning.

    Args:
        node: the answer.
        glyphs: of the terminal.
        shown: whether the reasoning is unfolded.
        fold: the key that shows or hides it, and what a click does.
        end: the key that ends it while the answer reasons, and what a click does.
    """
    if not node.n_reasoning:
        return ()
    arrow = glyphs.more_down if shown else glyphs.current
    count = f"{node.n_reasoning} token{'' if node.n_reasoning == 1 else 's'}"
    thinks = is_thinking(node)
    took = "" if node.reasoning_us is None else f" for {duration(node.reasoning_us / 1e6)}"
    words = f"thinking{took}, {count}" if thinks else f"thought{took}, {count}"
    line = [
        Span(f"{arrow} ", "$accent", fold[1]),
        Span(words, "$muted", fold[1]),
        Span(f"  {fold[0]} {'hides' if shown else 'shows'} it", "$faint", fold[1]),
    ]
    if thinks:
        line.append(Span(f"  {end[0]} has it answer now", "$faint", end[1]))
    return tuple(line)
