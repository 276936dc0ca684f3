"""`/v1/uploads`: files that clients upload in parts."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.file_fields import file_fields
from app.server.calls.retrieval import ask_catalogue, opened, retrieval_service
from app.server.calls.upload_form import plain_filename, read_form
from app.server.calls.uploads import (
    check_purpose,
    refuse_other_sites,
    report_unknown,
    upload_turn,
)
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.retrieval.file_folder import PartialFile
from app.server.retrieval.parted_uploads import MAX_PART_BYTES, Part, PartedUpload
from app.server.retrieval.records import UploadedFile
from app.server.retrieval.service import new_file_id
from app.server.wire.answers.retrieval import UploadObject, UploadPartObject
from app.server.wire.described import FORM, answers, reads
from app.server.wire.errors import bad_request
from app.server.wire.forms import PartForm
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.multipart import MultipartDecoder
from app.server.wire.retrieval_schemas import CompleteUpload, CreateUpload

router = APIRouter()
_json = APIRouter(route_class=JsonRoute)
"""The calls whose body is JSON."""


@_json.post("/v1/uploads")
@requires("files")
@answers(UploadObject)
async def create_upload(body: CreateUpload, request: Request) -> Response:
    """Begin an upload of a known length."""
    check_extra_fields(request, body)
    context = server_context(request)
    check_purpose(body.purpose)
    filename = plain_filename(body.filename)
    if not filename:
        raise bad_request("The file has no name.", param="filename")
    if body.bytes > context.config.max_upload_bytes:
        raise bad_request(
            f"A file has at most {context.config.max_upload_bytes} bytes.", param="bytes"
        )
    lifetime_s = None if body.expires_after is None else body.expires_after.seconds
    upload = await ask_catalogue(
        request,
        lambda it: it.uploads.create(
            filename=filename, purpose=body.purpose, size=body.bytes, lifetime_s=lifetime_s
        ),
    )
    return json_response(_upload_fields(upload))


@router.post("/v1/uploads/{upload_id}/parts")
@requires("files")
@reads(PartForm, FORM)
@answers(UploadPartObject)
async def add_upload_part(upload_id: str, request: Request) -> Response:
    """Add the bytes of one part, the field `data` of a multipart form."""
    context = server_context(request)
    retrieval_service(context)
    refuse_other_sites(request)
    decoder = MultipartDecoder(request.headers.get("content-type", ""))
    uploads = (await opened(context)).uploads
    with context.drain.work():
        async with upload_turn(context):
            data = await asyncio.to_thread(uploads.begin_part, upload_id)
            try:
                form = await read_form(
                    request, decoder, data, file_field="data", limit_bytes=MAX_PART_BYTES
                )
                report_unknown(request, context, form.unknown)
                part = await asyncio.to_thread(uploads.add_part, upload_id, data)
            finally:
                # Also if the client left: behind an `await` this would not run in a cancelled task.
                data.discard()
    return json_response(_part_fields(part))


@_json.post("/v1/uploads/{upload_id}/complete")
@requires("files")
@answers(UploadObject)
async def complete_upload(upload_id: str, body: CompleteUpload, request: Request) -> Response:
    """Join the parts to a file."""
    check_extra_fields(request, body)
    context = server_context(request)
    service = retrieval_service(context)
    parts = await opened(context)
    file_id = new_file_id()

    def keep(data: PartialFile, upload: PartedUpload) -> UploadedFile:
        return service.new_file(
            data,
            file_id=file_id,
            filename=upload.filename,
            purpose=upload.purpose,
            lifetime_s=upload.lifetime_s,
        )

    with context.drain.work():
        upload = await asyncio.to_thread(
            parts.uploads.complete,
            upload_id,
            body.part_ids,
            md5=body.md5,
            begin=lambda: parts.folder.begin(file_id),
            keep=keep,
        )
    return json_response(_upload_fields(upload))


@router.post("/v1/uploads/{upload_id}/cancel")
@requires("files")
@answers(UploadObject)
async def cancel_upload(upload_id: str, request: Request) -> Response:
    """Give an upload up; its bytes are erased."""
    upload = await ask_catalogue(request, lambda it: it.uploads.cancel(upload_id))
    return json_response(_upload_fields(upload))


router.include_router(_json)


def _upload_fields(upload: PartedUpload) -> dict[str, Any]:
    return {
        "id": upload.id,
        "object": "upload",
        "bytes": upload.size,
        "created_at": upload.created_at,
        "expires_at": upload.expires_at,
        "filename": upload.filename,
        "purpose": upload.purpose,
        "status": upload.state,
        "file": None if upload.file is None else file_fields(upload.file),
    }


def _part_fields(part: Part) -> dict[str, Any]:
    return {
        "id": part.id,
        "object": "upload.part",
        "created_at": part.created_at,
        "upload_id": part.upload_id,
    }
