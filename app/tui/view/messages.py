"""Rows around a message: the head with its author, and the mark with its figures and status."""

import time

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.view.bars import build_timing
from app.tui.view.spans import Line, Span
from engine.conversations.answer import REPETITION
from engine.conversations.tree import NodeKind, NodeStatus, NodeView

_NAMES = {
    NodeKind.USER: "you",
    NodeKind.SYSTEM: "system",
    NodeKind.TOOL: "tool",
    NodeKind.NOTE: "note",
    NodeKind.SUMMARY: "summary",
}


def build_head(node: NodeView, glyphs: Glyphs) -> Line:
    """Glyph, author and time of day."""
    clock = Span(time.strftime("  %H:%M", time.localtime(node.created_at)), "$faint")
    if node.kind is NodeKind.ASSISTANT:
        name = safe_line(node.model or "assistant")
        return (Span(f"{glyphs.assistant} {name}", "bold $role-assistant"), clock)
    if node.kind is NodeKind.USER:
        return (Span(f"{glyphs.user} you", "bold $role-user"), clock)
    return (Span(f"{glyphs.system} {_NAMES[node.kind]}", "bold $role-system"), clock)


def build_mark(node: NodeView, glyphs: Glyphs) -> Line:
    """The row under an answer: stopped or failed, and its figures. Empty while it is streamed."""
    if node.kind is not NodeKind.ASSISTANT:
        return ()
    timing = build_timing(node.n_gen or 0, node.ttft_us, node.decode_us)
    match node.status:
        case NodeStatus.STREAMING:
            return ()
        case NodeStatus.STOPPED:
            mark = Span(f"{glyphs.stopped} {_stop_words(node)}", "$warning")
        case NodeStatus.ERROR:
            reason = safe_line(node.error or "the answer failed")
            mark = Span(f"{glyphs.failed} {reason}", "$error")
        case NodeStatus.DONE:
            if node.finish != "length":
                return (Span(timing, "$faint"),) if timing else ()
            mark = Span(f"{glyphs.stopped} cut at the token limit", "$warning")
    return (mark, Span(f"  {timing}" if timing else "", "$faint"))


def _stop_words(node: NodeView) -> str:
    if node.finish == REPETITION:
        return "stopped: repetition; r to retry"
    # Without a finish reason the process was killed, and the partial text was recovered.
    return "stopped" if node.finish else "interrupted: the text up to there is kept"


def build_waiting(glyphs: Glyphs, *, prompt_tokens: int | None) -> Line:
    """The row in place of an answer's text until its first token."""
    count = f" {prompt_tokens} tokens" if prompt_tokens else ""
    return (Span(f"{glyphs.queued} reading{count}", "$faint"),)
