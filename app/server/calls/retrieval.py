"""What all endpoints of files and vector stores share: the opened service, errors, pages, waiting."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from app.server.process.context import ServerContext, server_context
from app.server.retrieval.errors import (
    BeingChanged,
    EmbeddingModelMissing,
    InvalidCursor,
    NoSuchObject,
    OutOfDisk,
    RetrievalError,
    RetrievalUnavailable,
    StoreExpired,
    TooManyUploads,
)
from app.server.retrieval.paging import Page, PageRequest
from app.server.retrieval.service import Opened, RetrievalService
from app.server.wire.errors import ApiError, bad_request, error_response, retry_hints, unavailable
from engine.api.errors import PravahaError

Result = TypeVar("Result")
Item = TypeVar("Item")

DEFAULT_PAGE, MAX_PAGE = 20, 100
_RETRY_S = 1
_PERMANENT = {"x-should-retry": "false"}

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Cursor = Annotated[str | None, Query(max_length=128)]
Order = Literal["asc", "desc"]


def retrieval_service(context: ServerContext) -> RetrievalService:
    """The service.

    Raises:
        ApiError: 404, this server has none.
    """
    if context.retrieval is None:
        raise ApiError(404, "This server keeps no files.", code="no_files")
    return context.retrieval


async def opened(context: ServerContext) -> Opened:
    """The opened service.

    Raises:
        ApiError: 404, this server has none.
        RetrievalUnavailable: it cannot be opened.
    """
    return await asyncio.to_thread(retrieval_service(context).open)


async def ask_catalogue(request: Request, ask: Callable[[Opened], Result]) -> Result:
    """Call methods of the opened service off the event loop."""
    service = retrieval_service(server_context(request))
    return await asyncio.to_thread(lambda: ask(service.open()))


async def settled(following: "Iterable[Future[None]]") -> None:
    """Wait until the library has followed the catalogue, whether the client stays or not.

    Args:
        following: what `IndexingThread.follow` returned.

    Raises:
        ApiError: 503, it could not be done yet. It is tried again, and invisible meanwhile.
    """
    try:
        for one in following:
            await asyncio.wrap_future(one)
    except RetrievalUnavailable:
        raise
    except Exception as error:
        why = f": {error}" if isinstance(error, PravahaError | RetrievalError) else "."
        raise unavailable(
            f"The change is noted but not carried out yet, and is tried again later{why}"
        ) from error


def list_body(
    page: Page[Item], fields: Callable[[Item], dict[str, Any]], *, object_id: str = "id"
) -> dict[str, Any]:
    """A page as OpenAI's `list` object."""
    data = [fields(one) for one in page.items]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0][object_id] if data else None,
        "last_id": data[-1][object_id] if data else None,
        "has_more": page.has_more,
    }


def page_request(limit: int, order: Order, after: str | None, before: str | None) -> PageRequest:
    """The parameters of a list."""
    return PageRequest(limit, order, after, before)


def to_api_error(error: Exception) -> ApiError:
    """The HTTP error for a `RetrievalError`."""
    message = str(error)
    match error:
        case NoSuchObject():
            return ApiError(404, message, code="not_found")
        case InvalidCursor():
            return bad_request(message, param=error.param)
        case StoreExpired():
            return bad_request(message, param="vector_store_id", code="vector_store_expired")
        case BeingChanged():
            return ApiError(409, message, headers=retry_hints(_RETRY_S))
        case TooManyUploads():
            return ApiError(429, message, code="too_many_uploads", headers=_PERMANENT)
        case OutOfDisk():
            return ApiError(507, message, code="insufficient_storage", headers=_PERMANENT)
        case EmbeddingModelMissing():
            return ApiError(503, message, code="embedding_model_missing", headers=_PERMANENT)
        case RetrievalUnavailable():
            return unavailable(message)
    return bad_request(message)


async def on_retrieval_error(_: Request, error: Exception) -> Response:
    """Exception handler of the application."""
    return error_response(to_api_error(error))
