"""`/v1/vector_stores`: collections of uploaded files that are searched as one."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from app.server.calls.chunking import STRATEGY, check_chunking
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.retrieval import (
    DEFAULT_PAGE,
    Cursor,
    Limit,
    Order,
    ask_catalogue,
    list_body,
    page_request,
    retrieval_service,
    settled,
)
from app.server.calls.searching import search, unsupported
from app.server.calls.uploads import refuse_other_sites
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.retrieval.catalogue import Catalogue, NewStoreFile
from app.server.retrieval.records import (
    AttributeValue,
    FileBatch,
    FileCounts,
    FileState,
    StoreFile,
    VectorStore,
)
from app.server.retrieval.service import Opened
from app.server.wire.answers.base import Deleted, PageAnswer
from app.server.wire.answers.retrieval import (
    FileBatchObject,
    FoundPassages,
    StoreFileContent,
    StoreFileObject,
    VectorStoreObject,
)
from app.server.wire.described import answers
from app.server.wire.errors import bad_request
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.retrieval_schemas import (
    CreateFileBatch,
    CreateStoreFile,
    CreateVectorStore,
    ModifyVectorStore,
    SearchVectorStore,
    UpdateStoreFile,
)

Result = TypeVar("Result")

router = APIRouter(route_class=JsonRoute)

DEFAULT_RESULTS = 10
POLL_AFTER = {"openai-poll-after-ms": "200"}
"""How long the official client waits before it asks again whether files are indexed."""


@router.post("/v1/vector_stores")
@requires("rag")
@answers(VectorStoreObject)
async def create_vector_store(body: CreateVectorStore, request: Request) -> Response:
    """Create a vector store; its files are indexed in the background."""
    check_extra_fields(request, body)
    check_chunking(body.chunking_strategy)
    if body.chunking_strategy is not None and not body.file_ids:
        raise bad_request(
            "`chunking_strategy` is only allowed with `file_ids`.", param="chunking_strategy"
        )
    retrieval_service(server_context(request)).require_embedder()
    files = [NewStoreFile(file_id) for file_id in dict.fromkeys(body.file_ids or ())]
    store = await _changed(
        request,
        lambda it: it.create_store(
            name=body.name or "",
            description=body.description,
            metadata=body.metadata or {},
            expires_days=None if body.expires_after is None else body.expires_after.days,
            files=files,
        ),
    )
    return json_response(_store_fields(store))


@router.get("/v1/vector_stores")
@requires("rag")
@answers(PageAnswer[VectorStoreObject])
async def list_vector_stores(
    request: Request,
    limit: Limit = DEFAULT_PAGE,
    order: Order = "desc",
    after: Cursor = None,
    before: Cursor = None,
) -> Response:
    """The vector stores, newest first, in pages."""
    wanted = page_request(limit, order, after, before)
    page = await ask_catalogue(request, lambda it: it.catalogue.stores(wanted))
    return json_response(list_body(page, _store_fields))


@router.get("/v1/vector_stores/{store_id}")
@requires("rag")
@answers(VectorStoreObject)
async def retrieve_vector_store(store_id: str, request: Request) -> Response:
    """One vector store."""
    store = await ask_catalogue(request, lambda it: it.catalogue.store(store_id))
    return json_response(_store_fields(store))


@router.post("/v1/vector_stores/{store_id}")
@requires("rag")
@answers(VectorStoreObject)
async def modify_vector_store(store_id: str, body: ModifyVectorStore, request: Request) -> Response:
    """Change the name, the metadata or the expiry."""
    check_extra_fields(request, body)
    changes: dict[str, Any] = {}
    if "name" in body.model_fields_set:
        changes["name"] = body.name or ""
    if "metadata" in body.model_fields_set:
        changes["metadata"] = body.metadata or {}
    if "expires_after" in body.model_fields_set:
        changes["expires_days"] = body.expires_after and body.expires_after.days
    store = await _changed(request, lambda it: it.modify_store(store_id, changes))
    return json_response(_store_fields(store))


@router.delete("/v1/vector_stores/{store_id}")
@requires("rag")
@answers(Deleted)
async def delete_vector_store(store_id: str, request: Request) -> Response:
    """Delete a vector store and what is indexed in it; the files stay."""
    await _followed(request, store_id, lambda it: it.delete_store(store_id))
    return json_response({"id": store_id, "object": "vector_store.deleted", "deleted": True})


@router.post("/v1/vector_stores/{store_id}/search")
@requires("rag")
@answers(FoundPassages)
async def search_vector_store(store_id: str, body: SearchVectorStore, request: Request) -> Response:
    """Search a vector store, with one query or the fused results of several."""
    context = server_context(request)
    check_extra_fields(request, body)
    if body.rewrite_query:
        raise unsupported(
            "rewrite_query", "Queries are not rewritten: send the text to search for."
        )
    with context.drain.work():
        found = await search(
            request, context, [store_id], body.query, body, default_results=DEFAULT_RESULTS
        )
    return json_response(
        {
            "object": "vector_store.search_results.page",
            "search_query": list(body.query),
            "data": [
                {
                    "file_id": one.file.id,
                    "filename": one.file.filename,
                    "score": one.score,
                    "attributes": one.attributes,
                    "content": [{"type": "text", "text": one.passage.shown_text}],
                    # Beyond OpenAI's API.
                    "chunk_id": one.passage.chunk_id,
                    "start": one.passage.start,
                    "end": one.passage.end,
                    "spans_of": one.passage.spans_of,
                    "page": one.passage.page,
                    "line": one.passage.line,
                    "heading_path": list(one.passage.heading_path),
                }
                for one in found
            ],
            "has_more": False,
            "next_page": None,
        }
    )


# Files.


@router.post("/v1/vector_stores/{store_id}/files")
@requires("rag")
@answers(StoreFileObject)
async def create_store_file(store_id: str, body: CreateStoreFile, request: Request) -> Response:
    """Add a file; it is indexed in the background."""
    check_extra_fields(request, body)
    check_chunking(body.chunking_strategy)
    retrieval_service(server_context(request)).require_embedder()
    files = [NewStoreFile(body.file_id, body.attributes or {})]
    (file,) = await _changed(request, lambda it: it.add_store_files(store_id, files))
    return json_response(_store_file_fields(file))


@router.get("/v1/vector_stores/{store_id}/files")
@requires("rag")
@answers(PageAnswer[StoreFileObject])
async def list_store_files(
    store_id: str,
    request: Request,
    limit: Limit = DEFAULT_PAGE,
    order: Order = "desc",
    after: Cursor = None,
    before: Cursor = None,
    filter: FileState | None = None,  # noqa: A002  # OpenAI's name of the parameter
) -> Response:
    """The files of a vector store, all or those in one state, newest first, in pages."""
    wanted = page_request(limit, order, after, before)
    page = await ask_catalogue(
        request, lambda it: it.catalogue.store_files(store_id, wanted, state=filter)
    )
    return json_response(list_body(page, _store_file_fields))


@router.get("/v1/vector_stores/{store_id}/files/{file_id}")
@requires("rag")
@answers(StoreFileObject)
async def retrieve_store_file(store_id: str, file_id: str, request: Request) -> Response:
    """One file of a vector store."""
    file = await ask_catalogue(request, lambda it: it.catalogue.store_file(store_id, file_id))
    return json_response(_store_file_fields(file), headers=POLL_AFTER)


@router.post("/v1/vector_stores/{store_id}/files/{file_id}")
@requires("rag")
@answers(StoreFileObject)
async def update_store_file(
    store_id: str, file_id: str, body: UpdateStoreFile, request: Request
) -> Response:
    """Replace the attributes; a search filters by the new ones from now on."""
    check_extra_fields(request, body)
    attributes: Mapping[str, AttributeValue] = body.attributes or {}
    file = await _followed(
        request, store_id, lambda it: it.set_attributes(store_id, file_id, attributes)
    )
    return json_response(_store_file_fields(file))


@router.delete("/v1/vector_stores/{store_id}/files/{file_id}")
@requires("rag")
@answers(Deleted)
async def delete_store_file(store_id: str, file_id: str, request: Request) -> Response:
    """Remove a file from a vector store; the file itself stays."""
    await _followed(request, store_id, lambda it: it.remove_store_file(store_id, file_id))
    return json_response({"id": file_id, "object": "vector_store.file.deleted", "deleted": True})


@router.get("/v1/vector_stores/{store_id}/files/{file_id}/content")
@requires("rag")
@answers(StoreFileContent)
async def store_file_content(store_id: str, file_id: str, request: Request) -> Response:
    """The text of a file as it was indexed."""
    service = retrieval_service(server_context(request))
    text = await asyncio.to_thread(service.text, store_id, file_id)
    return json_response(
        {
            "object": "vector_store.file_content.page",
            "data": [{"type": "text", "text": text}],
            "has_more": False,
            "next_page": None,
        }
    )


# Batches.


@router.post("/v1/vector_stores/{store_id}/file_batches")
@requires("rag")
@answers(FileBatchObject)
async def create_file_batch(store_id: str, body: CreateFileBatch, request: Request) -> Response:
    """Add many files as one batch; they are indexed in the background."""
    check_extra_fields(request, body)
    files = _batch_files(body)
    retrieval_service(server_context(request)).require_embedder()
    batch = await _changed(request, lambda it: it.create_batch(store_id, files))
    return json_response(_batch_fields(batch), headers=POLL_AFTER)


@router.get("/v1/vector_stores/{store_id}/file_batches/{batch_id}")
@requires("rag")
@answers(FileBatchObject)
async def retrieve_file_batch(store_id: str, batch_id: str, request: Request) -> Response:
    """One batch."""
    batch = await ask_catalogue(request, lambda it: it.catalogue.batch(store_id, batch_id))
    return json_response(_batch_fields(batch), headers=POLL_AFTER)


@requires("rag")
@answers(FileBatchObject)
async def cancel_file_batch(store_id: str, batch_id: str, request: Request) -> Response:
    """Stop indexing a batch; the files that are indexed already stay."""
    refuse_other_sites(request)
    batch = await ask_catalogue(request, lambda it: it.catalogue.cancel_batch(store_id, batch_id))
    await ask_catalogue(request, lambda it: it.indexing.follow(store_id))
    return json_response(_batch_fields(batch))


# The official client sends no body here, which `JsonRoute` would refuse.
router.add_api_route(
    "/v1/vector_stores/{store_id}/file_batches/{batch_id}/cancel",
    cancel_file_batch,
    methods=["POST"],
    route_class_override=APIRoute,
)


@router.get("/v1/vector_stores/{store_id}/file_batches/{batch_id}/files")
@requires("rag")
@answers(PageAnswer[StoreFileObject])
async def list_batch_files(
    store_id: str,
    batch_id: str,
    request: Request,
    limit: Limit = DEFAULT_PAGE,
    order: Order = "desc",
    after: Cursor = None,
    before: Cursor = None,
    filter: FileState | None = None,  # noqa: A002  # OpenAI's name of the parameter
) -> Response:
    """The files of a batch, all or those in one state, newest first, in pages."""
    wanted = page_request(limit, order, after, before)
    page = await ask_catalogue(
        request,
        lambda it: it.catalogue.store_files(store_id, wanted, state=filter, batch_id=batch_id),
    )
    return json_response(list_body(page, _store_file_fields))


def _batch_files(body: CreateFileBatch) -> list[NewStoreFile]:
    """The files of a new batch, each once.

    Raises:
        ApiError: 400, not exactly one of `file_ids` and `files` is given.
    """
    if (body.file_ids is None) == (body.files is None):
        raise bad_request("Give either `file_ids` or `files`.", param="file_ids")
    if body.files is None:
        check_chunking(body.chunking_strategy)
        ids = dict.fromkeys(body.file_ids or ())
        return [NewStoreFile(file_id, body.attributes or {}) for file_id in ids]
    for name in ("attributes", "chunking_strategy"):
        if getattr(body, name) is not None:
            raise bad_request(f"With `files`, give `{name}` in each of them.", param=name)
    for one in body.files:
        check_chunking(one.chunking_strategy)
    by_id = {one.file_id: one for one in body.files}
    if len(by_id) < len(body.files):
        raise bad_request("`files` names a file twice.", param="files")
    return [NewStoreFile(one.file_id, one.attributes or {}) for one in body.files]


async def _changed(request: Request, change: Callable[[Catalogue], Result]) -> Result:
    """Change the catalogue, which the indexing thread then notices."""

    def changed(it: Opened) -> Result:
        result = change(it.catalogue)
        it.indexing.wake()
        return result

    return await ask_catalogue(request, changed)


async def _followed(
    request: Request, store_id: str, change: Callable[[Catalogue], Result]
) -> Result:
    """Change the catalogue, and wait until the collection of a vector store has followed; see `settled`."""
    result, following = await ask_catalogue(
        request, lambda it: (change(it.catalogue), it.indexing.follow(store_id))
    )
    await settled([following])
    return result


def _store_fields(store: VectorStore) -> dict[str, Any]:
    days = store.expires_days
    return {
        "id": store.id,
        "object": "vector_store",
        "created_at": store.created_at,
        "name": store.name,
        "description": store.description,
        "usage_bytes": store.usage_bytes,
        "file_counts": _count_fields(store.counts),
        "status": store.state,
        "expires_after": None if days is None else {"anchor": "last_active_at", "days": days},
        "expires_at": store.expires_at,
        "last_active_at": store.last_active_at,
        "metadata": store.metadata,
    }


def _store_file_fields(file: StoreFile) -> dict[str, Any]:
    error = None
    if file.error_code is not None:
        error = {"code": file.error_code, "message": file.error}
    return {
        "id": file.file_id,
        "object": "vector_store.file",
        "usage_bytes": file.usage_bytes,
        "created_at": file.created_at,
        "vector_store_id": file.store_id,
        "status": file.state,
        "last_error": error,
        "attributes": file.attributes,
        "chunking_strategy": STRATEGY,
    }


def _batch_fields(batch: FileBatch) -> dict[str, Any]:
    return {
        "id": batch.id,
        "object": "vector_store.files_batch",
        "created_at": batch.created_at,
        "vector_store_id": batch.store_id,
        "status": batch.state,
        "file_counts": _count_fields(batch.counts),
    }


def _count_fields(counts: FileCounts) -> dict[str, int]:
    return {**asdict(counts), "total": counts.total}
