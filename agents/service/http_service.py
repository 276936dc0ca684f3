"""`HttpRunService`: the agents of a server, for `pravaha --attach`.

A thread asks the server for what changed. It asks often while runs are active, and seldom otherwise. All
methods but `start`, `decide`, `catalogue` and `tool_choices`, which are a round trip, return what is known.
The tools of chats have a thread of their own.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from agents.api.agent_spec import PermissionMode
from agents.api.errors import AgentError, UnknownAgent
from agents.api.events import RunEvent, event_from_fields
from agents.runs.approvals import ApprovalRequest, Decision
from agents.service.http_tool_session import HttpToolSession, error_of
from agents.service.loop_thread import LoopThread
from agents.service.run_request import RunRequest
from agents.service.run_view import RunView, fold
from agents.tool_loop.opening import ToolChoices
from agents.tool_loop.values import LoopEvent, LoopEventType, ToolLoopRequest
from agents.tools.tool import Effect
from engine.api.tools import OpenTools

ACTIVE_POLL_S = 0.5
IDLE_POLL_S = 5.0
ROUND_TRIP_S = 10.0


class HttpRunService:
    """A `RunService` over HTTP."""

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        """Start the thread; the server need not answer yet.

        Args:
            url: the server's address, as for `--attach`.
            api_key: its key.
        """
        url = url.rstrip("/").removesuffix("/v1")
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=ROUND_TRIP_S)
        self._events: dict[str, list[RunEvent]] = {}
        self._views: dict[str, RunView] = {}
        self._results: dict[str, dict[str, Any]] = {}
        self._approvals: tuple[ApprovalRequest, ...] = ()
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._tools_http = httpx.AsyncClient(base_url=url, headers=headers)
        self._tools_loop = LoopThread("chat-tools-http")
        self._thread = threading.Thread(target=self._poll_all, name="agents-http", daemon=True)
        self._thread.start()

    def start(self, request: RunRequest) -> str:
        """See `RunService.start`."""
        run_id = str(self._call("POST", "/v1/agents/runs", json=request.fields())["id"])
        self._wake.set()
        return run_id

    def cancel(self, run: str) -> None:
        """See `RunService.cancel`."""
        threading.Thread(target=self._cancel, args=(run,), daemon=True).start()

    def runs(self) -> Sequence[RunView]:
        """See `RunService.runs`."""
        with self._lock:
            return list(self._views.values())

    def events(self, run: str, since: int) -> Sequence[RunEvent]:
        """See `RunService.events`."""
        with self._lock:
            return self._events.get(run, [])[max(0, since) :]

    def result(self, run: str) -> dict[str, Any] | None:
        """See `RunService.result`."""
        return self._results.get(run)

    def approvals(self) -> Sequence[ApprovalRequest]:
        """See `RunService.approvals`."""
        return self._approvals

    def decide(self, approval: str, decision: Decision, *, reason: str = "") -> bool:
        """See `RunService.decide`."""
        body = {"decision": decision, "reason": reason}
        try:
            self._call("POST", f"/v1/agents/approvals/{approval}", json=body)
        except UnknownAgent:
            return False
        self._wake.set()
        return True

    def catalogue(self) -> Sequence[dict[str, Any]]:
        """See `RunService.catalogue`."""
        found: list[dict[str, Any]] = self._call("GET", "/v1/agents")["data"]
        return found

    def open_tools(self, wanted: ToolLoopRequest, report: Callable[[LoopEvent], None]) -> OpenTools:
        """See `RunService.open_tools`; the tools are the server's, and so is the folder in which they act."""

        def reported(event: LoopEvent) -> None:
            if event.type is LoopEventType.APPROVAL_REQUESTED:
                self._wake.set()
            report(event)

        return HttpToolSession(self._tools_http, self._tools_loop, wanted, reported)

    def tool_choices(self, mode: PermissionMode, root: Path | None) -> ToolChoices:
        """See `RunService.tool_choices`; a round trip."""
        found = self._call("GET", "/v1/agents/tools", params={"mode": mode})
        return ToolChoices(
            {one["name"]: one["description"] for one in found["data"]},
            {one["name"]: one["refused"] for one in found["data"] if one["refused"]},
            dict.fromkeys(found["mcp_servers"], ""),
        )

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See `RunService.on_change`."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def close(self) -> None:
        """End the threads, and the tools of chats; the server's runs go on. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._wake.set()
        self._thread.join(ROUND_TRIP_S)
        self._http.close()
        self._tools_loop.close(self._end_tools(), within_s=ROUND_TRIP_S)

    # Internal.

    def _call(self, method: str, path: str, **more: Any) -> Any:
        try:
            response = self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            raise AgentError(
                f"The server at {self._http.base_url} does not answer ({error})."
            ) from error
        if response.is_success:
            return response.json()
        refusal = error_of(response)
        raise UnknownAgent(str(refusal)) if response.status_code == 404 else refusal

    async def _end_tools(self) -> None:
        """Stop the tools of chats."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._tools_http.aclose()

    def _cancel(self, run: str) -> None:
        try:
            self._call("POST", f"/v1/agents/runs/{run}/cancel", json={})
        except AgentError:
            pass  # it has finished, or the server is gone
        self._wake.set()

    def _poll_all(self) -> None:
        while not self._closed:
            try:
                active = self._poll()
            except (AgentError, KeyError, TypeError, ValueError):
                active = False
            self._wake.wait(ACTIVE_POLL_S if active else IDLE_POLL_S)
            self._wake.clear()

    def _poll(self) -> bool:
        """Ask for what changed; whether runs are active or approvals wait."""
        listed = self._call("GET", "/v1/agents/runs")["data"]
        changed = False
        for fields in listed:
            changed |= self._follow(fields)
        with self._lock:
            self._views = {one["id"]: self._views[one["id"]] for one in listed}
        pending = self._call("GET", "/v1/agents/approvals")["data"]
        approvals = tuple(_approval(one) for one in pending)
        changed |= approvals != self._approvals
        self._approvals = approvals
        if changed:
            for callback in tuple(self._callbacks):
                callback()
        return bool(approvals) or any(one["finished"] is None for one in listed)

    def _follow(self, fields: Mapping[str, Any]) -> bool:
        run_id = fields["id"]
        known = self._events.setdefault(run_id, [])
        view = self._views.get(run_id) or RunView(run_id, fields["name"], fields["goal"])
        if len(known) >= fields["num_events"] and run_id in self._views:
            return False
        path = f"/v1/agents/runs/{run_id}/events"
        fresh = [
            event_from_fields(one)
            for one in self._call("GET", path, params={"since": len(known)})["data"]
        ]
        with self._lock:
            known += fresh
            self._views[run_id] = fold(view, fresh)
        if self._views[run_id].state.finished and run_id not in self._results:
            result = self._call("GET", f"/v1/agents/runs/{run_id}")["result"]
            if result is not None:
                self._results[run_id] = result
        return bool(fresh)


def _approval(fields: Mapping[str, Any]) -> ApprovalRequest:
    names = (
        "id", "run", "agent", "tool", "arguments", "target", "folder", "reason", "conversation",
        "expires_at",
    )  # fmt: skip
    return ApprovalRequest(
        **{name: fields[name] for name in names},
        effects=frozenset(Effect(one) for one in fields["effects"]),
        diff=fields.get("diff", ""),
    )
