"""The calls of tools in the transcript: a row for each, below which its results can be shown."""

from collections.abc import Sequence

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.view.spans import Line, Span, fit
from engine.conversations.made_calls import MadeCall
from engine.conversations.tree import NodeStatus

_ARGUMENT_CELLS = 48


def build_calls(
    calls: Sequence[MadeCall],
    status: NodeStatus,
    glyphs: Glyphs,
    *,
    shown: bool,
    key: str,
    click: str,
) -> list[Line]:
    """A row for each call: name, arguments, how it ended and how long it took.

    Args:
        calls: of one node.
        status: of the node.
        glyphs: of the terminal.
        shown: whether the results are shown.
        key: shows or hides them.
        click: the same for the mouse.
    """
    arrow = glyphs.more_down if shown else glyphs.current
    rows: list[Line] = []
    for number, call in enumerate(calls):
        hint = f"  {key} {'hides' if shown else 'shows'} it" if not number and key else ""
        if status is NodeStatus.STREAMING:
            hint = ""
        rows.append(
            (
                Span(f"{arrow} ", "$accent", click),
                Span(safe_line(call.name), "bold", click),
                Span(f" {fit(safe_line(call.arguments), _ARGUMENT_CELLS)}", "$muted", click),
                _state(call, status, glyphs),
                Span(hint, "$faint", click),
            )
        )
    return rows


def _state(call: MadeCall, status: NodeStatus, glyphs: Glyphs) -> Span:
    took = "" if call.seconds is None else f" {call.seconds:.1f} s"
    if status is NodeStatus.STREAMING:
        return Span(f"  {glyphs.queued} running", "$accent")
    if call.state == "ok":
        return Span(f"  ok{took}", "$success")
    if call.state:
        return Span(f"  {glyphs.failed} {safe_line(call.state)}{took}", "$error")
    return Span(f"  {glyphs.stopped} stopped", "$warning")
