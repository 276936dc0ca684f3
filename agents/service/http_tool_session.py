"""`HttpToolSession`: the tools of one answer on a server, for `pravaha --attach`.

They are open as long as a stream from the server is read; each answer's calls are one request beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import httpx
import orjson

from agents.api.errors import AgentError, InvalidTask
from agents.service.loop_thread import LoopThread
from agents.tool_loop.values import LoopEvent, LoopEventType, ToolLoopRequest
from engine.api.tools import CallResult, CallState, Tool, ToolCall, ToolRound
from engine.clients.http_connection import READ_TIMEOUT_S

CONNECT_S = 10.0
_TIMEOUT = httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_S)
_CALLS_TIMEOUT = httpx.Timeout(None, connect=CONNECT_S)  # a call waits for its approval
_CLOSED = "The server has closed the tools."


class HttpToolSession:
    """An `OpenTools` over HTTP."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        loop: LoopThread,
        wanted: ToolLoopRequest,
        report: Callable[[LoopEvent], None],
    ) -> None:
        """Open tools.

        Args:
            http: for the server; used on `loop` alone.
            loop: runs in a thread of its own.
            wanted: which tools; their root is the server's.
            report: is given what happens, on the thread of `loop`.
        """
        self._http = http
        self._loop = loop
        self._report = report
        self._id = ""
        self._offered: Future[Sequence[Tool]] = Future()
        self._reading = loop.submit(self._read(wanted))
        self._reading.add_done_callback(lambda _: self._offered.cancel())

    def offered(self) -> "Future[Sequence[Tool]]":
        """See `OpenTools`."""
        return self._offered

    def act(self, calls: Sequence[ToolCall]) -> "Future[ToolRound]":
        """See `OpenTools`."""
        return self._loop.submit(self._act(calls))

    def close(self) -> None:
        """See `OpenTools`: ends the stream, with which the server ends what runs."""
        self._reading.cancel()

    # On the loop.

    async def _read(self, wanted: ToolLoopRequest) -> None:
        try:
            async with self._http.stream(
                "POST", "/v1/agents/tools", json=_wanted_fields(wanted), timeout=_TIMEOUT
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_of(response)
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        self._take(orjson.loads(line.removeprefix("data: ")))
            raise InvalidTask(_CLOSED)
        except (AgentError, httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            if not self._offered.done():
                self._offered.set_exception(_agent_error(error))

    def _take(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "opened":
                self._id = str(event["id"])
            case "offered":
                tools = [
                    Tool(str(one["name"]), str(one["description"]), dict(one["parameters"]))
                    for one in event["tools"]
                ]
                self._offered.set_result(tools)
            case "refused":
                raise InvalidTask(str(event["reason"]))
            case name if name in set(LoopEventType):
                data = {key: one for key, one in event.items() if key not in ("type", "call_id")}
                self._report(LoopEvent(LoopEventType(name), str(event.get("call_id", "")), data))

    async def _act(self, calls: Sequence[ToolCall]) -> ToolRound:
        given = [{"id": one.id, "name": one.name, "arguments": one.arguments} for one in calls]
        try:
            response = await self._http.post(
                f"/v1/agents/tools/{self._id}/calls", json={"calls": given}, timeout=_CALLS_TIMEOUT
            )
            if not response.is_success:
                raise error_of(response)
            return _round(response.json(), calls)
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise _agent_error(error) from error


def error_of(response: httpx.Response) -> InvalidTask:
    """The error that an answer of the server says."""
    try:
        return InvalidTask(str(response.json()["error"]["message"]))
    except (ValueError, KeyError, TypeError):
        return InvalidTask(f"The server answered with status {response.status_code}.")


def _agent_error(error: Exception) -> AgentError:
    if isinstance(error, AgentError):
        return error
    if isinstance(error, httpx.HTTPError):
        return AgentError(f"The server does not answer ({error or type(error).__name__}).")
    return AgentError(f"The server's answer is not in Pravāha's format ({error}).")


def _wanted_fields(wanted: ToolLoopRequest) -> dict[str, Any]:
    return {
        "tools": None if wanted.tools is None else list(wanted.tools),
        "mcp_servers": list(wanted.mcp_servers),
        "max_rounds": wanted.max_rounds,
        "mode": wanted.mode,
        "conversation": wanted.conversation,
        "text": wanted.text,
        "has_results": wanted.has_results,
    }


def _round(fields: Mapping[str, Any], calls: Sequence[ToolCall]) -> ToolRound:
    results = [
        CallResult(call, str(one["text"]), CallState(one["state"]), float(one["seconds"]))
        for call, one in zip(calls, fields["results"], strict=True)
    ]
    return ToolRound(results, bool(fields["may_call"]))
