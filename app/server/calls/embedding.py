"""`embedded`: vectors of texts for every face that embeds."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request

from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.wire.errors import ApiError, unavailable
from engine.api.embeddings import Embeddings
from engine.api.errors import ModelError, ModelNotFound


async def embedded(
    request: Request,
    context: ServerContext,
    texts: Sequence[str],
    *,
    truncate: int | None,
    dimensions: int | None,
    keep_alive_s: float | None,
) -> Embeddings:
    """The vectors of texts, while the client is connected.

    Args:
        request: the HTTP request.
        context: the server.
        texts: what is embedded.
        truncate: tokens of each text that are read; None refuses longer ones.
        dimensions: of the vectors; None for all.
        keep_alive_s: how long the model stays loaded afterwards; None for the server's own time.

    Raises:
        ApiError: 404 for a model that is not installed, 503 for one that cannot be used, or while draining.
        ClientDisconnected: the client left meanwhile.
        InvalidRequest, QueueFull: as `Embedder.submit`.
    """

    async def work() -> Embeddings:
        submitted = context.models.embedder.submit(texts, truncate=truncate, dimensions=dimensions)
        try:
            return await asyncio.wrap_future(submitted)
        except ModelNotFound as error:
            raise ApiError(404, str(error), param="model", code="model_not_found") from error
        except ModelError as error:
            raise unavailable(str(error)) from error

    try:
        with context.drain.work():
            return await while_connected(request, context, work())
    finally:
        context.models.use_embedder(keep_alive_s)
