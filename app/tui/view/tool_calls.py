"""The calls of tools in the transcript: a row for each, below which its results can be shown."""

from collections.abc import Sequence, Set
from typing import Any

import orjson

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.view.spans import Line, Span, fit
from engine.conversations.made_calls import MadeCall
from engine.conversations.tree import NodeStatus

_ARGUMENT_CELLS = 48
_TEXTS = frozenset({"old", "new", "content"})
"""Arguments of edits of a file, which its diff shows."""
_WAITING_CELLS = 28
"""Of the arguments of a call that waits: what has to be done about it must not be cut off."""


def build_calls(
    calls: Sequence[MadeCall],
    status: NodeStatus,
    glyphs: Glyphs,
    *,
    shown: bool,
    key: str,
    click: str,
    waiting: Set[str] = frozenset(),
    approve_key: str = "",
) -> list[Line]:
    """A row for each call: name, arguments, how it ended and how long it took.

    Args:
        calls: of one node.
        status: of the node.
        glyphs: of the terminal.
        shown: whether the results are shown.
        key: shows or hides them.
        click: the same for the mouse.
        waiting: names of the tools whose running call waits for an approval.
        approve_key: opens the pane of approvals.
    """
    arrow = glyphs.more_down if shown else glyphs.current
    rows: list[Line] = []
    for number, call in enumerate(calls):
        hint = f"  {key} {'hides' if shown else 'shows'} it" if not number and key else ""
        if status is NodeStatus.STREAMING:
            hint = ""
        waits = status is NodeStatus.STREAMING and call.name in waiting
        arguments = fit(
            build_arguments(call.arguments), _WAITING_CELLS if waits else _ARGUMENT_CELLS
        )
        rows.append(
            (
                Span(f"{arrow} ", "$accent", click),
                Span(safe_line(call.name), "bold", click),
                Span(f" {arguments}", "$muted", click),
                _waiting(glyphs, approve_key) if waits else _state(call, status, glyphs),
                Span(hint, "$faint", click),
            )
        )
    return rows


def build_arguments(arguments: str) -> str:
    """Arguments on one line, as `name=value` without those that are null; other JSON text as it is.

    Args:
        arguments: JSON text.
    """
    try:
        given = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        return safe_line(arguments)
    pairs = [
        (name, _value(value))
        for name, value in given.items()
        if value is not None and not ("path" in given and name in _TEXTS)
    ]
    return "  ".join(safe_line(f"{name}={value}") for name, value in pairs)


def _value(value: Any) -> str:
    """A value as JSON; a text of one word without its quotes."""
    if isinstance(value, str) and value and not any(one.isspace() for one in value):
        return value
    return orjson.dumps(value).decode()


def _waiting(glyphs: Glyphs, key: str) -> Span:
    return Span(f"  {glyphs.queued} waits for your approval: {key}", "$warning")


def _state(call: MadeCall, status: NodeStatus, glyphs: Glyphs) -> Span:
    took = "" if call.seconds is None else f" {call.seconds:.1f} s"
    if status is NodeStatus.STREAMING:
        return Span(f"  {glyphs.queued} running", "$accent")
    if call.state == "ok":
        return Span(f"  ok{took}", "$success")
    if call.state:
        return Span(f"  {glyphs.failed} {safe_line(call.state)}{took}", "$error")
    return Span(f"  {glyphs.stopped} stopped", "$warning")
