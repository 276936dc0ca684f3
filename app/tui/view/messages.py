"""Rows around a message: the head with its author, and the mark with its figures and status."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from app.runtime.project_tests import BY_TESTS
from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.view.bars import build_timing
from app.tui.view.spans import Line, Span, fit
from engine.conversations.answer import CONTENT_FILTER, REPETITION
from engine.conversations.node_words import FILTERED, INCOMPLETE
from engine.conversations.tree import NodeKind, NodeStatus, NodeView, Verdict, awaits_agent

_LABEL_CELLS = 24
_VERDICT_STYLES = {Verdict.PASSED.value: "$success", Verdict.FAILED.value: "$error"}
_NAMES = {
    NodeKind.USER: "you",
    NodeKind.SYSTEM: "system",
    NodeKind.TOOL: "tool",
    NodeKind.NOTE: "note",
    NodeKind.SUMMARY: "summary",
}


@dataclass(frozen=True, slots=True)
class SiblingPlace:
    """Which of its siblings a message is, in the order of creation.

    Attributes:
        number: from 1 to `count`.
        count: siblings, the message included.
    """

    number: int = 1
    count: int = 1


ONLY_CHILD = SiblingPlace()


def sibling_place(siblings: Sequence[str], node_id: str) -> SiblingPlace:
    """The place of a node among its siblings, itself included, in the order of creation."""
    return SiblingPlace(siblings.index(node_id) + 1, len(siblings))


def build_head(
    node: NodeView, glyphs: Glyphs, place: SiblingPlace = ONLY_CHILD, *, marked: bool = False
) -> Line:
    """Glyph, author, time of day, `◀ 2/3 ▶` if there are siblings, bookmark, label and mark."""
    clock = Span(time.strftime("  %H:%M", time.localtime(node.created_at)), "$faint")
    head = (_author(node, glyphs), clock, *_siblings(node, place, glyphs), *_flags(node, glyphs))
    return (*head, Span(f"  {glyphs.mark} marked", "bold $warning")) if marked else head


def _author(node: NodeView, glyphs: Glyphs) -> Span:
    if node.kind is NodeKind.ASSISTANT:
        name = safe_line(node.model or "assistant")
        return Span(f"{glyphs.assistant} {name}", "bold $role-assistant")
    if node.kind is NodeKind.USER:
        return Span(f"{glyphs.user} you", "bold $role-user")
    return Span(f"{glyphs.system} {_NAMES[node.kind]}", "bold $role-system")


def _siblings(node: NodeView, place: SiblingPlace, glyphs: Glyphs) -> Line:
    if place.count < 2:
        return ()
    first, last = place.number == 1, place.number == place.count
    earlier = "" if first else f"app.perform_later('go','sibling',-1,{node.id!r})"
    later = "" if last else f"app.perform_later('go','sibling',1,{node.id!r})"
    return (
        Span("  "),
        Span(f"{glyphs.earlier} ", "$faint" if first else "$accent", earlier),
        Span(f"{place.number}/{place.count}", "$muted"),
        Span(f" {glyphs.later}", "$faint" if last else "$accent", later),
    )


def _flags(node: NodeView, glyphs: Glyphs) -> Line:
    spans: list[Span] = []
    if node.rating:
        spans.append(Span(f"  {glyphs.bookmark}", "$warning"))
    if node.label:
        spans.append(Span(f"  [{fit(safe_line(node.label), _LABEL_CELLS)}]", "$accent"))
    return tuple(spans)


def build_mark(node: NodeView, glyphs: Glyphs) -> Line:
    """The row under an answer: stopped or failed, and its figures. Empty while it is streamed.

    Under a summary, which has no figures, that it is incomplete.
    """
    if node.kind is NodeKind.SUMMARY:
        missing = cut_summary(node)
        return (Span(f"{glyphs.stopped} {missing}", "$warning"),) if missing else ()
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
            incomplete = INCOMPLETE.get(node.finish or "")
            if node.finish in _VERDICT_STYLES:
                return (build_verdict(node, glyphs),)
            if incomplete is None:
                return (Span(timing, "$faint"),) if timing else ()
            mark = Span(f"{glyphs.stopped} {incomplete}", "$warning")
    return (mark, Span(f"  {timing}" if timing else "", "$faint"))


def cut_summary(node: NodeView) -> str:
    """What is wrong with a summary that was written; empty if nothing is."""
    if node.status is NodeStatus.STREAMING:
        return ""
    if not node.text.strip():
        return "nothing was written: earlier messages stay in the context"
    if node.status is NodeStatus.ERROR:
        return f"cut off: {safe_line(node.error or 'it failed')}"
    if node.status is NodeStatus.STOPPED:
        return f"cut off: {_stop_words(node)}"
    incomplete = INCOMPLETE.get(node.finish or "")
    return f"cut off: {incomplete}; the model does not know what is missing" if incomplete else ""


def build_remarks(node: NodeView, glyphs: Glyphs) -> list[Line]:
    """One row for each remark of the guardrails on a message; none while it is streamed."""
    if node.status is NodeStatus.STREAMING:
        return []
    return [
        (Span(f"{glyphs.stopped} guardrails: {safe_line(one)}", "$warning"),)
        for one in node.remarks
    ]


def _stop_words(node: NodeView) -> str:
    if node.finish == REPETITION:
        return "stopped: repetition; r to retry"
    if node.finish == CONTENT_FILTER:
        return FILTERED
    # Without a finish reason the process was killed, and the partial text was recovered.
    return "stopped" if node.finish else "interrupted: the text up to there is kept"


def build_verdict(node: NodeView, glyphs: Glyphs) -> Span:
    """What tests say about what an agent wrote: a glyph and a word."""
    glyph = glyphs.passed if node.finish == Verdict.PASSED else glyphs.failed
    return Span(f"{glyph} {node.finish}", _VERDICT_STYLES[node.finish or ""])


def awaited_words(node: NodeView) -> str:
    """What is said in place of what an agent, or the project's tests, will write."""
    if node.model == BY_TESTS:
        return "the tests are running"
    return f"{safe_line(node.model or '')} is running"


def build_waiting(node: NodeView, glyphs: Glyphs) -> Line:
    """The row in place of an answer's text until its first token.

    The length of its prompt is known when the engine has the request: until then it is being sent, or the
    model is loading.
    """
    words = "sending" if node.n_prompt is None else f"reading {node.n_prompt} tokens"
    if awaits_agent(node):
        words = awaited_words(node)
        words += "; d stops them" if node.model == BY_TESTS else "; f4 shows it"
    return (Span(f"{glyphs.queued} {words}", "$faint"),)
