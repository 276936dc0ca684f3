"""`GET` and `DELETE /streams/{request_id}`: go on with the stream of a `resumable` request, or end it."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request
from starlette.responses import Response

from app.server.calls.event_stream import EventStream
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.described import answers

router = APIRouter()

RequestId = Annotated[str, Path(max_length=128)]


@router.get("/streams/{request_id}")
@requires("infer")
@answers(None, events=dict[str, Any])
async def resume(
    request: Request,
    request_id: RequestId,
    last_event_id: Annotated[int, Header(ge=0, lt=2**63)] = 0,
) -> Response:
    """The events after `Last-Event-ID`; the connection that had the stream before is ended."""
    context = server_context(request)
    events, resources = context.kept_streams.attach(request_id, after=last_event_id)
    return EventStream(events, context, resources)


@router.delete("/streams/{request_id}")
@requires("infer")
@answers(None, status=204)
async def cancel(request: Request, request_id: RequestId) -> Response:
    """Abort the request; unknown ids are ignored, because it may have finished."""
    await server_context(request).kept_streams.discard(request_id)
    return Response(status_code=204)
