"""`search`: searches vector stores off the event loop, for as long as the client is there."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from starlette.requests import Request

from app.server.calls.retrieval import retrieval_service
from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.retrieval.store_search import Found, search_stores
from app.server.wire.errors import bad_request, server_error
from app.server.wire.retrieval_schemas import RankingOptions, SearchFields
from engine.api.errors import InvalidRequest, ModelError
from engine.retrieval.library.search_across import Order
from engine.retrieval.store.errors import RetrievalStoreError

Result = TypeVar("Result")

_RANKERS = (None, "auto", "none")


async def search(
    request: Request,
    context: ServerContext,
    store_ids: Sequence[str],
    queries: Sequence[str],
    fields: SearchFields,
    *,
    default_results: int,
) -> list[Found]:
    """The passages that fit best, highest score first.

    Args:
        request: the HTTP request.
        context: the server.
        store_ids: vector stores.
        queries: one or more texts.
        fields: filters and ranking options.
        default_results: the largest number of passages, if the fields have none.

    Raises:
        ApiError, RetrievalError, QueueFull, ClientDisconnected: as `store_search` and `searching`.
    """
    find = store_search(context, store_ids, fields, default_results=default_results, order="score")
    return await searching(request, context, lambda: find(queries))


def store_search(
    context: ServerContext,
    store_ids: Sequence[str],
    fields: SearchFields,
    *,
    default_results: int,
    order: Order = "rank",
) -> Callable[[Sequence[str]], list[Found]]:
    """What searches for queries, and blocks; arguments as `search` and `search_across`.

    Raises:
        ApiError: 400 for an option that cannot be honoured.
    """
    options = _ranking(fields.ranking_options or RankingOptions())
    return partial(
        search_stores,
        retrieval_service(context),
        store_ids,
        k=fields.max_num_results or default_results,
        where=fields.filters,
        min_score=options.score_threshold or 0.0,
        order=order,
    )


async def searching(
    request: Request, context: ServerContext, search: Callable[[], Result]
) -> Result:
    """The result of searches off the event loop.

    Raises:
        ApiError: 400 for a filter that cannot be honoured, 500 for a library that cannot be read.
        RetrievalError: an unknown or expired vector store, or no embedding model.
        QueueFull: too many texts wait to be embedded.
        ClientDisconnected: the client left.
    """
    try:
        return await while_connected(request, context, asyncio.to_thread(search))
    except InvalidRequest as error:
        param = "filters" if error.param == "where" else error.param
        raise bad_request(str(error), param=param) from error
    except (ModelError, RetrievalStoreError) as error:
        raise server_error(str(error), code="search_failed") from error


def _ranking(options: RankingOptions) -> RankingOptions:
    """The ranking options.

    Raises:
        ApiError: 400 for one that cannot be honoured.
    """
    if options.ranker not in _RANKERS:
        raise unsupported(
            "ranking_options.ranker", f"There is no ranker {options.ranker!r} here; use 'auto'."
        )
    if options.hybrid_search is not None:
        raise unsupported(
            "ranking_options.hybrid_search", "The weights of the two searches are fixed here."
        )
    return options


def unsupported(param: str, message: str) -> Exception:
    """A 400 for a value that cannot be honoured."""
    return bad_request(message, param=param, code="unsupported_parameter")
