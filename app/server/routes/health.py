"""`GET /health` and `GET /ready`: probes. They need no key, so their bodies contain no details."""

import time

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.answers.base import StatusAnswer
from app.server.wire.described import answers
from app.server.wire.errors import UNAVAILABLE_RETRY_S, retry_hints
from app.server.wire.json_response import json_response
from engine.api.snapshot import EngineSnapshot, EngineState

router = APIRouter()


@router.get("/health")
@requires("public")
@answers(StatusAnswer)
async def health() -> Response:
    """Always ok while the event loop runs."""
    return json_response({"status": "ok"})


@router.get("/ready")
@requires("public")
@answers(StatusAnswer, also={503: "Requests should not be sent here."})
async def ready(request: Request) -> Response:
    """Whether requests should be sent here: a model loaded, not draining, its engine not stalled, sandbox."""
    if is_ready(server_context(request), now=time.monotonic()):
        return json_response({"status": "ready"})
    response = json_response({"status": "not ready"}, status=503)
    response.headers.update(retry_hints(UNAVAILABLE_RETRY_S))
    return response


def is_ready(context: ServerContext, *, now: float) -> bool:
    """The answer of `/ready` at the monotonic instant `now`."""
    if context.drain.draining or context.config.sandbox_layers == ():
        return False
    return any(
        _takes_requests(one.engine.snapshot(), now=now, stall_s=context.config.stall_s)
        for one in context.models.all()
    )


def _takes_requests(snapshot: EngineSnapshot, *, now: float, stall_s: float) -> bool:
    has_work = snapshot.running + snapshot.waiting > 0
    stalled = has_work and now - snapshot.time > stall_s
    return snapshot.state is EngineState.READY and not stalled
