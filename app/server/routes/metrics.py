"""`GET /metrics`: the engine's counters and the server's, in Prometheus text format."""

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from app.server.middleware.auth import requires
from app.server.process.context import server_context

router = APIRouter()


@router.get("/metrics")
@requires("metrics")
async def metrics(request: Request) -> Response:
    """All metrics."""
    context = server_context(request)
    text = context.engine.metrics.render() + context.counters.render()
    return Response(text, media_type=CONTENT_TYPE_LATEST)
