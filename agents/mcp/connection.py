"""`McpConnection`: one server in use. Open it, call tools, close it; use from one event loop.

The SDK's session lives in a task of its own, because its cancel scopes must be left by the task that
entered them. A server that crashes, hangs or writes nonsense fails the call at hand with `McpError`; the
next call starts it anew, a few times.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import metadata
from typing import Any, TypeVar

from mcp import types
from mcp.client.session import ClientSession, IncomingMessage
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agents.mcp.definition import MAX_TOOLS, ToolDefinition, refused_definition
from agents.mcp.errors import McpError
from agents.mcp.http import http_client, http_streams
from agents.mcp.results import CallResult, Listing
from agents.mcp.server import McpServer
from agents.mcp.stdio import StdioProcess, stdio_streams
from agents.text.plain import plain_line

Answer = TypeVar("Answer")
MAX_STARTS = 4
"""How often a server is started for one run."""
_MAX_PAGES = 20
_CLOSE_S = 5.0


class _Ended(Exception):
    """The session has ended; the text says why, if the process does not."""


class _Session(ClientSession):
    """A session that does not check results by the server's own schemas.

    Their patterns would run in Python's `re`, which may match for hours, on text of the same server.
    """

    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        """Accept any result; it is untrusted either way."""


class McpConnection:
    """A server in use by one run."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.listing: Listing | None = None
        self.stale = False
        self._starts = 0
        self._task: asyncio.Task[None] | None = None
        self._session: _Session | None = None
        self._process: StdioProcess | None = None
        self._closing = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None

    async def list_tools(self) -> Listing:
        """The tools that are offered now; starts the server if it does not run.

        Raises:
            McpError: it cannot be started, has stopped, or takes longer than `connect_s`.
        """
        late = f"did not answer within {self.server.connect_s:g} s"
        self.listing = await self._bounded(self._connect_and_list(), self.server.connect_s, late)
        return self.listing

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool of a running server.

        Raises:
            McpError: the server has stopped, takes longer than `call_s`, or answers with an error.
        """
        session = self._session
        if session is None:
            raise self._error("is not running")
        request = session.call_tool(tool, dict(arguments))
        late = f"took more than {self.server.call_s:g} s"
        result = await self._bounded(self._requested(request), self.server.call_s, late)
        return CallResult(_text_of(result.content), result.structured_content, result.is_error)

    @property
    def running(self) -> bool:
        """Whether calls can be made."""
        return self._session is not None and self._task is not None and not self._task.done()

    async def close(self) -> None:
        """End the session and the program. It can be opened again."""
        if self._ending is None or self._ending.done():
            task, session = self._task, self._session
            self._task = self._session = None
            if task is None:
                return
            self._ending = asyncio.ensure_future(_end(task, self._closing, session is not None))
        await asyncio.shield(self._ending)  # it goes on if the caller is cancelled

    # The session's task.

    async def _connected(self) -> _Session:
        if self._session is not None and self.running:
            return self._session
        await self.close()
        if self._starts >= MAX_STARTS:
            raise self._error(f"has stopped {MAX_STARTS} times and is not started again")
        self._starts += 1
        self._closing = asyncio.Event()
        ready: asyncio.Future[_Session] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._serve(ready, self._closing))
        try:
            self._session = await ready
        except McpError:
            await self.close()
            raise
        return self._session

    async def _serve(self, ready: "asyncio.Future[_Session]", closing: asyncio.Event) -> None:
        try:
            async with self._streams() as (incoming, outgoing):
                session = _Session(
                    incoming,
                    outgoing,
                    message_handler=self._notified,
                    client_info=types.Implementation(
                        name="pravaha", version=metadata.version("pravaha")
                    ),
                )
                async with session:
                    await _negotiate(session)
                    if not ready.done():
                        ready.set_result(session)
                    await closing.wait()
        except asyncio.CancelledError:
            raise
        except McpError as error:
            _fail(ready, error)
        except Exception as error:  # anyio groups whatever its tasks raised
            ended = self._process is not None and self._process.ended
            why = (
                self._process.last_words()
                if self._process is not None and ended
                else _reason(error)
            )
            _fail(ready, self._error(f"cannot be used: {why}"))
        finally:
            _fail(ready, self._error("was stopped"))

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[tuple[Any, Any]]:
        async with AsyncExitStack() as stack:
            if self.server.url:
                client = await stack.enter_async_context(http_client(self.server))
                yield await stack.enter_async_context(http_streams(self.server, client))
            else:
                incoming, outgoing, process = await stack.enter_async_context(
                    stdio_streams(self.server)
                )
                self._process = process
                yield incoming, outgoing

    async def _notified(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.stale = True

    # Requests.

    async def _bounded(
        self, work: Coroutine[Any, Any, Answer], seconds: float, late: str
    ) -> Answer:
        """The result of a request within its time; otherwise the server is stopped.

        Raises:
            McpError: it took longer, or the server has stopped.
        """
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            await self.close()  # whatever it is busy with, it is busy for nobody
            raise self._error(late) from None
        except _Ended as error:
            await self.close()
            said = str(error) or (self._process.last_words() if self._process else "")
            raise self._error(f"has stopped: {said or 'the connection was closed'}") from error

    async def _connect_and_list(self) -> Listing:
        session = await self._connected()
        self.stale = False
        return await self._listed(session)

    async def _listed(self, session: _Session) -> Listing:
        tools: dict[str, ToolDefinition] = {}
        refused: list[str] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor)
            page = await self._requested(session.list_tools(params=params))
            for one in page.tools:
                definition = _definition(one)
                problem = refused_definition(definition)
                if not problem and definition.name in tools:
                    problem = f"{definition.name} is offered twice"
                if not problem and len(tools) >= MAX_TOOLS:
                    problem = f"{definition.name} is beyond the first {MAX_TOOLS} tools"
                if problem:
                    refused.append(problem)
                else:
                    tools[definition.name] = definition
            cursor = page.next_cursor
            if not cursor or len(refused) > MAX_TOOLS:
                break
        return Listing(tuple(tools.values()), tuple(refused[:MAX_TOOLS]))

    async def _requested(self, request: Any) -> Any:
        """The answer to a request.

        Raises:
            McpError: it is an error or no answer.
            _Ended: the session is of no more use.
        """
        try:
            return await request
        except MCPError as error:
            if self._process is not None and self._process.ended:
                raise _Ended from error
            message = plain_line(error.message, 300)
            raise self._error(f"answered with an error: {message}") from error
        except ValidationError as error:
            raise self._error("answered with what is no answer") from error
        except Exception as error:
            raise _Ended(_reason(error)) from error

    def _error(self, what: str) -> McpError:
        return McpError(f"The MCP server {self.server.name} {what}.")


async def _end(task: asyncio.Task[None], closing: asyncio.Event, ready: bool) -> None:
    """Let the session's task end by itself if it is at a point where it can, or cancel it."""
    closing.set()
    if ready:
        await asyncio.wait({task}, timeout=_CLOSE_S)
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=_CLOSE_S)


async def _negotiate(session: ClientSession) -> None:
    """Agree on a version: by the handshake that most servers know, else by the discovery of newer ones."""
    try:
        await session.initialize()
    except MCPError as error:
        try:
            await session.discover()
        except (MCPError, RuntimeError, ValidationError):
            raise error from None  # what the handshake said is what most servers mean


def _fail(ready: "asyncio.Future[_Session]", error: McpError) -> None:
    if not ready.done():
        ready.set_exception(error)
        ready.exception()  # nobody may wait any more


def _definition(tool: types.Tool) -> ToolDefinition:
    hints = (
        {}
        if tool.annotations is None
        else tool.annotations.model_dump(by_alias=True, exclude_none=True)
    )
    return ToolDefinition(
        name=tool.name,
        description=tool.description or "",
        schema=tool.input_schema,
        title=tool.title or "",
        output_schema=tool.output_schema,
        annotations=hints,
    )


def _text_of(content: list[Any]) -> str:
    parts = []
    for one in content:
        if isinstance(one, types.TextContent):
            parts.append(one.text)
        elif isinstance(one, types.EmbeddedResource) and isinstance(
            one.resource, types.TextResourceContents
        ):
            parts.append(one.resource.text)
        elif isinstance(one, types.ResourceLink):
            parts.append(f"[resource {one.uri}]")
        else:
            parts.append(f"[{one.type} left out]")
    return "\n".join(parts)


def _reason(error: BaseException) -> str:
    """The first cause of a group of exceptions, in one line."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, McpError):
        return str(error)
    return plain_line(f"{type(error).__name__}: {error}", 300)


@contextlib.asynccontextmanager
async def opened(server: McpServer) -> AsyncIterator[McpConnection]:
    """A connection that is closed at the end."""
    connection = McpConnection(server)
    try:
        yield connection
    finally:
        await connection.close()
