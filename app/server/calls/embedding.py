"""`embedded`: vectors of texts for every face that embeds; `with_embedder` also for reranking."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from starlette.requests import Request

from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.wire.errors import ApiError, unavailable
from engine.api.embeddings import Embeddings
from engine.api.errors import ModelError, ModelNotFound

Result = TypeVar("Result")


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
        ApiError, ClientDisconnected: as `with_embedder`.
        InvalidRequest, QueueFull: as `Embedder.submit`.
    """

    async def work() -> Embeddings:
        embedder = context.models.embedder
        return await asyncio.wrap_future(
            embedder.submit(texts, truncate=truncate, dimensions=dimensions)
        )

    return await with_embedder(request, context, work, keep_alive_s=keep_alive_s)


async def with_embedder(
    request: Request,
    context: ServerContext,
    work: Callable[[], Coroutine[Any, Any, Result]],
    *,
    keep_alive_s: float | None,
) -> Result:
    """The result of some work of the embedding model, while the client is connected.

    Args:
        request: the HTTP request.
        context: the server.
        work: begins it.
        keep_alive_s: how long the model stays loaded afterwards; None for the server's own time.

    Raises:
        ApiError: 404 for a model that is not installed, 503 for one that cannot be used, or while draining.
        ClientDisconnected: the client left meanwhile.
    """
    try:
        with context.drain.work():
            return await while_connected(request, context, work())
    except ModelNotFound as error:
        raise ApiError(404, str(error), param="model", code="model_not_found") from error
    except ModelError as error:
        raise unavailable(str(error)) from error
    finally:
        context.models.use_embedder(keep_alive_s)
