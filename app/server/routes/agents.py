"""`/v1/agents`: start runs of agents and pipelines, follow, cancel and approve them."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from agents.api.errors import AgentError, UnknownAgent
from agents.api.events import event_fields
from agents.runs.approvals import ApprovalRequest
from agents.service.run_request import request_from_fields
from agents.service.run_service import RunService
from agents.service.run_view import RunView
from app.server.calls.agent_service import agent_service
from app.server.calls.event_stream import EventStream
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.model import engine_used
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire import sse
from app.server.wire.answers.agents import (
    AgentCatalogue,
    AgentRunEvent,
    AgentRunObject,
    ApprovalAnswer,
    ApprovalObject,
)
from app.server.wire.answers.base import ListAnswer
from app.server.wire.described import answers
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import AgentRunRequest, ApprovalDecision
from engine.runtime.served_model import ModelLease

router = APIRouter(route_class=JsonRoute)

_FALLBACK_S = 5.0
"""A follower looks for new events at least this often, should a wake-up be missed."""


@router.get("/v1/agents")
@requires("agents")
@answers(AgentCatalogue)
async def catalogue(request: Request) -> Response:
    """The agents and pipelines that can be run, and the layers around the commands that they execute."""
    service = agent_service(request)
    listed = await asyncio.to_thread(service.catalogue)
    layers = server_context(request).config.sandbox_layers
    return json_response({"object": "list", "data": listed, "sandbox_layers": layers})


@router.post("/v1/agents/runs")
@requires("agents")
@answers(AgentRunObject)
async def start(body: AgentRunRequest, request: Request) -> Response:
    """Start a run. The answer is its view; `/events` follows it."""
    context, service = server_context(request), agent_service(request)
    check_extra_fields(request, body)
    engine_used(context, None)
    fields = body.model_dump(include=set(type(body).model_fields))
    try:
        wanted = request_from_fields(fields)
        run_id = await asyncio.to_thread(service.start, wanted)
    except UnknownAgent as error:
        raise ApiError(404, str(error), param="name", code="agent_not_found") from error
    except (AgentError, OSError) as error:
        raise bad_request(str(error)) from error
    # The run's own requests are not ours, and there are pauses between them.
    lease = context.models.use()
    holding = asyncio.create_task(_release_after(context, lease, service, run_id))
    context.holding.add(holding)
    holding.add_done_callback(context.holding.discard)
    return json_response(_run_fields(_view(service, run_id), None))


@router.get("/v1/agents/runs")
@requires("agents")
@answers(ListAnswer[AgentRunObject])
async def runs(request: Request) -> Response:
    """The active and the last finished runs, newest first, without their results."""
    views = agent_service(request).runs()
    return json_response({"object": "list", "data": [_run_fields(view, None) for view in views]})


@router.get("/v1/agents/runs/{run_id}")
@requires("agents")
@answers(AgentRunObject)
async def run(run_id: str, request: Request) -> Response:
    """One run, with its result once it has finished."""
    service = agent_service(request)
    view = _view(service, run_id)
    return json_response(_run_fields(view, service.result(run_id)))


@router.get("/v1/agents/runs/{run_id}/events")
@requires("agents")
@answers(ListAnswer[AgentRunEvent], events=AgentRunEvent)
async def events(
    run_id: str,
    request: Request,
    since: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    stream: bool = False,
) -> Response:
    """The events from number `since` on: those there are, or with `stream` all until the run's end.

    A stream that is opened again with `Last-Event-ID` goes on after that event.
    """
    service = agent_service(request)
    _view(service, run_id)
    if not stream:
        found = [event_fields(event) for event in service.events(run_id, since)]
        return json_response({"object": "list", "data": found})
    last = request.headers.get("last-event-id", "")
    begin = int(last) + 1 if last.isascii() and last.isdigit() and len(last) < 10 else since
    follower = _follow(service, run_id, begin)
    return EventStream(follower, server_context(request), AsyncExitStack())


@router.post("/v1/agents/runs/{run_id}/cancel")
@requires("agents")
@answers(AgentRunObject)
async def cancel(run_id: str, request: Request) -> Response:
    """Stop a run; its result is what there is."""
    service = agent_service(request)
    view = _view(service, run_id)
    service.cancel(run_id)
    return json_response(_run_fields(view, None))


@router.get("/v1/agents/approvals")
@requires("agents")
@answers(ListAnswer[ApprovalObject])
async def approvals(request: Request) -> Response:
    """The tool calls that wait for a decision, oldest first."""
    pending = [_approval_fields(one) for one in agent_service(request).approvals()]
    return json_response({"object": "list", "data": pending})


@router.post("/v1/agents/approvals/{approval_id}")
@requires("agents")
@answers(ApprovalAnswer)
async def decide(approval_id: str, body: ApprovalDecision, request: Request) -> Response:
    """Allow or deny a call; the first answer wins."""
    service = agent_service(request)
    check_extra_fields(request, body)
    taken = await asyncio.to_thread(service.decide, approval_id, body.decision, reason=body.reason)
    if not taken:
        raise ApiError(
            404, "There is no such approval, or it was answered already.", code="approval_not_found"
        )
    return json_response({"id": approval_id, "decision": body.decision})


def _view(service: RunService, run_id: str) -> RunView:
    view = next((one for one in service.runs() if one.id == run_id), None)
    if view is None:
        raise ApiError(404, f"There is no run {run_id!r:.60}.", code="run_not_found")
    return view


def _run_fields(view: RunView, result: dict[str, Any] | None) -> dict[str, Any]:
    fields = asdict(view)
    del fields["finding_ids"]
    return {"object": "agent.run", **fields, "summary": view.summary(), "result": result}


def _approval_fields(approval: ApprovalRequest) -> dict[str, Any]:
    fields = asdict(approval) | {"effects": sorted(approval.effects)}
    return {"object": "agent.approval", **fields}


async def _release_after(
    context: ServerContext, lease: ModelLease, service: RunService, run_id: str
) -> None:
    """End the use of the model when a run has finished."""
    try:
        async for _ in _follow(service, run_id, sys.maxsize):
            pass
    finally:
        context.models.release(lease)


async def _follow(service: RunService, run_id: str, since: int) -> AsyncGenerator[bytes, None]:
    """All events from number `since` on, then `[DONE]` once the run has a result."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(changed.set)

    stop = service.on_change(wake)
    try:
        while True:
            changed.clear()
            finished = service.result(run_id) is not None
            for event in service.events(run_id, since):
                since = event.sequence + 1
                yield sse.numbered(event.sequence, sse.event(event_fields(event)))
            if finished:
                yield sse.DONE
                return
            try:
                async with asyncio.timeout(_FALLBACK_S):
                    await changed.wait()
            except TimeoutError:
                pass
    finally:
        stop()
