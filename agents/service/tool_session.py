"""`ToolSession`: the tools of one answer to a person, used from another thread than the agents' own.

The tools run on the event loop of the agents, where approvals wait and where their work keeps no front end
from drawing or answering.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

from agents.service.loop_thread import LoopThread
from agents.tool_loop.opening import OpenLoop
from engine.api.tools import Tool, ToolCall, ToolRound

Opening = Callable[[], Coroutine[Any, Any, OpenLoop]]


class ToolSession:
    """Open tools. Every method may be called from any thread and none waits.

    Attributes:
        closed: whether `close` was called.
        tasks: what still runs for it on the agents' loop.
    """

    def __init__(self, opening: Opening, loop: LoopThread) -> None:
        """Call `opening` on `loop`."""
        self.closed = False
        self.tasks: set[asyncio.Task[Any]] = set()
        self._loop = loop
        self._opened: OpenLoop | None = None
        self._ready = loop.submit(self._kept(lambda: self._open(opening)))

    def offered(self) -> "Future[Sequence[Tool]]":
        """The tools as the model is offered them, once their MCP servers are connected."""
        return self._ready

    def act(self, calls: Sequence[ToolCall]) -> "Future[ToolRound]":
        """Make the calls of an answer, after `offered`. Cancelling the future stops the call that runs.

        The future is cancelled if the session is closed.
        """
        return self._loop.submit(self._kept(lambda: self._act(calls)))

    def close(self) -> None:
        """Stop what runs and end the MCP servers. Idempotent."""
        if not self.closed:
            self.closed = True
            self._loop.call_soon(self._begin_closing)

    # On the agents' loop.

    async def _kept(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Await `work` as a task that `close` cancels."""
        if self.closed:
            raise asyncio.CancelledError
        task = asyncio.ensure_future(work())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return await task

    async def _open(self, opening: Opening) -> Sequence[Tool]:
        self._opened = await opening()
        return self._opened.offered

    async def _act(self, calls: Sequence[ToolCall]) -> ToolRound:
        if self._opened is None:
            raise RuntimeError("the tools are not open yet")
        return await self._opened.loop.act(calls)

    def _begin_closing(self) -> None:
        running = tuple(self.tasks)
        for task in running:
            task.cancel()
        closing = asyncio.ensure_future(self._close(running))
        self.tasks.add(closing)
        closing.add_done_callback(self.tasks.discard)

    async def _close(self, running: Sequence[asyncio.Task[Any]]) -> None:
        await asyncio.gather(*running, return_exceptions=True)
        if self._opened is not None:
            await self._opened.close()
