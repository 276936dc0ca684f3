"""`ChatTools`: the tools that the model may call in the screen's chat, over the service that runs agents."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from agents.api.agent_spec import PermissionMode
from agents.api.errors import InvalidTask
from agents.tool_loop.values import CHAT, LoopEvent, ToolLoopRequest
from engine.api.tools import CallFormName, OpenTools, Tool, ToolCall, ToolDecision, ToolRound

if TYPE_CHECKING:
    from agents.mcp.servers import McpServers
    from agents.service.run_service import RunService
    from agents.tool_loop.opening import ToolChoices
    from agents.tools.file_access import FileAccess

MODE: PermissionMode = "ask"
"""A person sits at the screen: calls with side effects are asked."""
DEFAULT_TOOLS = ("read", "grep", "glob")
"""What `/tools on` switches on."""


class ChatTools:
    """A `ToolSource`. Used by the screen's thread; the agents are opened on a thread of its own.

    Attributes:
        chosen: names of tools and of MCP servers; empty while tools are off.
        wake: called, on any thread, when something has changed.
        report: called, on any thread, with what the tools do.
        mode: of calls with side effects, from the next message on.
        form, decision: as of `ToolSource`.
    """

    def __init__(
        self,
        service: "RunService",
        root: Path,
        chosen: Sequence[str] = (),
        *,
        form: CallFormName = "auto",
        decision: ToolDecision = "auto",
        files: "FileAccess | None" = None,
        mcp: "McpServers | None" = None,
    ) -> None:
        """Tools that act in `root`; `files` and `mcp` as of `ToolLoopRequest`."""
        self.chosen = tuple(chosen)
        self.form = form
        self.decision = decision
        self.wake: Callable[[], None] = lambda: None
        self.report: Callable[[LoopEvent], None] = lambda event: None
        self.mode = MODE
        self._files = files
        self._mcp = mcp
        self._service = service
        self._root = root
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chat-tools")

    def open(self, tree_id: str, text: str, *, has_results: bool) -> "OpeningTools | None":
        """See `ToolSource.open`."""
        if not self.chosen:
            return None
        chosen, mode = self.chosen, self.mode

        def opened() -> OpenTools:
            servers = (
                self.choices().mcp_servers if self._mcp is None else {one.name for one in self._mcp}
            )
            wanted = ToolLoopRequest(
                tuple(name for name in chosen if name not in servers),
                tuple(name for name in chosen if name in servers),
                mode=mode,
                root=self._root,
                conversation=tree_id,
                text=text,
                has_results=has_results,
                files=self._files,
                mcp=self._mcp,
            )
            return self._service.open_tools(wanted, self._happened)

        return OpeningTools(self._thread.submit(opened), self.wake)

    @property
    def waiting(self) -> frozenset[str]:
        """The names of tools whose call waits for the user's approval."""
        return frozenset(one.tool for one in self._service.approvals() if one.agent == CHAT)

    def choices(self) -> "ToolChoices":
        """What can be chosen. Opens the agents, which reads files.

        Raises:
            InvalidTask: no tools here.
        """
        return self._service.tool_choices(self.mode, self._root)

    def choose(self, names: Sequence[str]) -> None:
        """Choose tools and MCP servers by their names; none switches tools off. Opens the agents.

        Raises:
            InvalidTask: a name is unknown, or cannot be used here.
        """
        if not names:
            self.chosen = ()
            return
        choices = self.choices()
        for name in names:
            if name in choices.refused:
                raise InvalidTask(choices.refused[name])
            if name not in choices.tools and name not in choices.mcp_servers:
                known = ", ".join((*choices.tools, *choices.mcp_servers))
                raise InvalidTask(f"There is no tool {name!r:.60}; there are: {known}.")
        self.chosen = tuple(dict.fromkeys(names))

    def _happened(self, event: LoopEvent) -> None:
        self.report(event)
        self.wake()

    def close(self) -> None:
        """End the thread; what is open belongs to its answers."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class OpeningTools:
    """`OpenTools` that are being opened."""

    def __init__(self, opening: "Future[OpenTools]", wake: Callable[[], None]) -> None:
        self._opening = opening
        self._wake = wake
        self._closed = False
        self._offered: Future[Sequence[Tool]] = Future()
        opening.add_done_callback(self._take)

    def offered(self) -> "Future[Sequence[Tool]]":
        """See `OpenTools.offered`."""
        return self._offered

    def act(self, calls: Sequence[ToolCall]) -> "Future[ToolRound]":
        """See `OpenTools.act`."""
        acting = self._opening.result().act(calls)
        acting.add_done_callback(lambda done: self._wake())
        return acting

    def close(self) -> None:
        """See `OpenTools.close`."""
        self._closed = True
        self._opening.cancel()
        if self._opening.done() and not self._failed:
            self._opening.result().close()

    @property
    def _failed(self) -> bool:
        return self._opening.cancelled() or self._opening.exception() is not None

    def _take(self, opening: "Future[OpenTools]") -> None:
        if opening.cancelled():
            self._offered.cancel()
        elif (error := opening.exception()) is not None:
            self._offered.set_exception(error)
        else:
            session = opening.result()
            session.offered().add_done_callback(self._pass_on)
            if self._closed:
                session.close()
        self._wake()

    def _pass_on(self, offered: "Future[Sequence[Tool]]") -> None:
        if offered.cancelled():
            self._offered.cancel()
        elif (error := offered.exception()) is not None:
            self._offered.set_exception(error)
        else:
            self._offered.set_result(offered.result())
        self._wake()
