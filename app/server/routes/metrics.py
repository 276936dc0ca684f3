"""`GET /metrics`: the engines' counters and the server's, in Prometheus text format."""

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.described import answers
from engine.observability.metrics import MetricsCollector

router = APIRouter()


@router.get("/metrics")
@requires("metrics")
@answers(str, media_type="text/plain")
async def metrics(request: Request) -> Response:
    """All metrics."""
    context = server_context(request)
    text = _engine_metrics(context) + context.counters.render()
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def _engine_metrics(context: ServerContext) -> bytes:
    """The metrics of all models, told apart by the label `model_name`."""
    models = context.models.all()
    if len(models) == 1:
        return models[0].engine.metrics.render()
    return MetricsCollector.render_all(one.engine.metrics for one in models)
