"""Tools of the chat: which the model may call, and its calls in the transcript."""

import asyncio
from collections.abc import Mapping

from app.runtime.chat_tools import DEFAULT_TOOLS, ChatTools
from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import hint
from app.tui.selection import Selection
from app.tui.view.spans import Line
from app.tui.view.tool_calls import build_calls
from app.tui.widgets.text_page import TextPageScreen
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest
from engine.conversations.made_calls import read_calls
from engine.conversations.tree import NodeKind, NodeView


class ToolActions:
    """`/tools`, and the rows of calls.

    Args:
        tools: what may be called; None in what is recorded, and in a replay.
    """

    def __init__(
        self,
        screen: ChatScreen,
        selection: Selection,
        glyphs: Glyphs,
        keymap: Mapping[str, str],
        tools: ChatTools | None,
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._glyphs = glyphs
        self._fold_key = hint("files.fold", "", keymap)[0]
        self._approve_key = hint("pane.approvals", "", keymap)[0]
        self._tools = tools
        self._waiting: frozenset[str] = frozenset()
        self._unfolded: set[str] = set()
        if tools is not None:
            tools.wake = screen.wake

    async def run(self, argument: str) -> None:
        """`/tools [on|off|NAME…]`: list the tools, switch them on or off, or choose some.

        Raises:
            InvalidRequest: there are no tools in what is recorded, and in a replay.
            InvalidTask: a name is unknown, or cannot be used here.
        """
        tools = self._tools
        if tools is None:
            raise InvalidRequest("A recording has no calls of tools.")
        if not argument:
            lines = await asyncio.to_thread(listed, tools)
            self._screen.open_dialog(TextPageScreen("Tools of the chat", lines))
            return
        words = argument.replace(",", " ").split()
        if words == ["off"]:
            words = []
        elif words == ["on"]:
            words = list(DEFAULT_TOOLS)
        await asyncio.to_thread(tools.choose, words)
        self._screen.notify_safely(
            f"The model may call {', '.join(tools.chosen)}; what writes or executes asks you."
            if tools.chosen
            else "The model calls no tools."
        )

    # In the transcript.

    @property
    def in_view(self) -> bool:
        """Whether calls may wait for an approval."""
        return self._tools is not None

    def show(self, frame: Frame) -> bool:
        """Let the rows of calls say which of them waits for an approval."""
        waiting = frozenset[str]() if self._tools is None else self._tools.waiting
        if waiting != self._waiting:
            self._waiting = waiting
            transcript = self._screen.main.query_one(Transcript)
            for node in frame.session.path()[-1:]:
                transcript.refold(node.id)
        return False

    def folded(self, node: NodeView) -> tuple[str, list[Line]]:
        """The results to show of a node of calls, and a row for each call."""
        calls = read_calls(node.calls)
        if not calls:
            return node.text, []
        shown = node.id in self._unfolded
        click = f"app.perform_later('tools','fold',{node.id!r})"
        rows = build_calls(
            calls,
            node.status,
            self._glyphs,
            shown=shown,
            key=self._fold_key,
            click=click,
            waiting=self._waiting,
            approve_key=self._approve_key,
        )
        return node.text if shown else "", rows

    def can_fold(self, node_id: str | None) -> bool:
        """Whether the message, or without one the last one of the path that can be folded, has calls."""
        nodes = {node.id: node for node in self._screen.session.path()}
        node = nodes.get(node_id or "")
        return node is not None and node.kind is NodeKind.TOOL

    def fold(self, node_id: str) -> None:
        """Show or hide the results of a node of calls."""
        self._unfolded ^= {node_id}
        self._screen.main.query_one(Transcript).refold(node_id)


def listed(tools: ChatTools) -> list[str]:
    """What `/tools` shows: each tool and MCP server, whether it is chosen, and why one cannot be.

    Raises:
        InvalidTask: there are no tools here.
    """
    choices = tools.choices()
    lines = [
        "/tools on allows read, grep and glob; /tools NAME… chooses; /tools off switches off.",
        "",
    ]
    for name, description in choices.tools.items():
        mark = "on " if name in tools.chosen else "   "
        lines.append(f"{mark} {name}: {choices.refused.get(name) or description}")
    for name in choices.mcp_servers:
        mark = "on " if name in tools.chosen else "   "
        lines.append(f"{mark} {name}: an MCP server")
    return lines
