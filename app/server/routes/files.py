"""`/v1/files`: files that clients upload, list, read and delete."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import FileResponse, Response

from app.server.calls.file_fields import file_fields
from app.server.calls.retrieval import (
    Cursor,
    Order,
    ask_catalogue,
    list_body,
    page_request,
    retrieval_service,
    settled,
)
from app.server.calls.uploads import receive_upload
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.answers.base import Deleted, PageAnswer
from app.server.wire.answers.retrieval import FileObject
from app.server.wire.described import FORM, answers, reads
from app.server.wire.forms import FileForm
from app.server.wire.json_response import json_response

router = APIRouter()

MAX_FILE_PAGE = 10_000


@router.post("/v1/files")
@requires("files")
@reads(FileForm, FORM)
@answers(FileObject)
async def create_file(request: Request) -> Response:
    """Upload one file of a multipart form; it is written to disk while it arrives."""
    context = server_context(request)
    service = retrieval_service(context)
    with context.drain.work():
        file = await receive_upload(request, context, service)
    return json_response(file_fields(file))


@router.get("/v1/files")
@requires("files")
@answers(PageAnswer[FileObject])
async def list_files(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_FILE_PAGE)] = MAX_FILE_PAGE,
    order: Order = "desc",
    after: Cursor = None,
    purpose: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """The files, newest first, in pages."""
    wanted = page_request(limit, order, after, None)
    page = await ask_catalogue(request, lambda it: it.catalogue.files(wanted, purpose=purpose))
    return json_response(list_body(page, file_fields))


@router.get("/v1/files/{file_id}")
@requires("files")
@answers(FileObject)
async def retrieve_file(file_id: str, request: Request) -> Response:
    """One file, without its bytes."""
    file = await ask_catalogue(request, lambda it: it.catalogue.file(file_id))
    return json_response(file_fields(file))


@router.get("/v1/files/{file_id}/content")
@requires("files")
@answers(bytes, media_type="application/octet-stream")
async def file_content(file_id: str, request: Request) -> Response:
    """The bytes of a file, as they were uploaded."""
    file, path = await ask_catalogue(
        request, lambda it: (file := it.catalogue.file(file_id), it.folder.path(file))
    )
    return FileResponse(
        path,
        filename=file.filename,
        # A browser must not run what a client has uploaded as a page of this server.
        media_type="application/octet-stream",
        headers={"x-content-type-options": "nosniff"},
    )


@router.delete("/v1/files/{file_id}")
@requires("files")
@answers(Deleted)
async def delete_file(file_id: str, request: Request) -> Response:
    """Delete a file: its bytes, and its chunks and vectors in every vector store."""
    await settled(
        await ask_catalogue(
            request, lambda it: it.indexing.follow_gone(it.catalogue.delete_file(file_id))
        )
    )
    return json_response({"id": file_id, "object": "file", "deleted": True})
