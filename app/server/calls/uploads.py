"""`receive_upload`: the form of `POST /v1/files`, written to disk while it arrives."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from starlette.requests import Request

from app.server.calls.retrieval import opened
from app.server.calls.upload_form import read_form
from app.server.process.context import MAX_UPLOADS, ServerContext, server_context
from app.server.retrieval.records import UploadedFile
from app.server.retrieval.service import RetrievalService, new_file_id
from app.server.wire.errors import ApiError, bad_request, retry_hints
from app.server.wire.fields import header_value
from app.server.wire.forms import PURPOSES
from app.server.wire.multipart import MultipartDecoder
from app.server.wire.retrieval_schemas import MAX_LIFETIME_S, MIN_LIFETIME_S

_UPLOAD_RETRY_S = 2
_FIELDS = ("purpose", "expires_after[anchor]", "expires_after[seconds]")


async def receive_upload(
    request: Request, context: ServerContext, service: RetrievalService
) -> UploadedFile:
    """Receive a form and keep its file.

    Raises:
        ApiError: 400 for a form that is not valid, 403 from a page of another site, 415 for another
            content type, 429 for too many uploads at a time.
        RetrievalError: from the service.
    """
    refuse_other_sites(request)
    decoder = MultipartDecoder(request.headers.get("content-type", ""))
    async with upload_turn(context):
        return await _receive(request, context, service, decoder)


@asynccontextmanager
async def upload_turn(context: ServerContext) -> AsyncIterator[None]:
    """One of the files that are received at a time.

    Raises:
        ApiError: 429, as many are being received already.
    """
    if context.uploads.locked():
        raise ApiError(
            429,
            f"{MAX_UPLOADS} files are being uploaded; try again.",
            code="too_many_uploads",
            headers=retry_hints(_UPLOAD_RETRY_S),
        )
    async with context.uploads:
        yield


async def _receive(
    request: Request, context: ServerContext, service: RetrievalService, decoder: MultipartDecoder
) -> UploadedFile:
    file_id = new_file_id()
    parts = await opened(context)
    upload = await asyncio.to_thread(parts.folder.begin, file_id)
    try:
        form = await read_form(request, decoder, upload, file_field="file", fields=_FIELDS)
        report_unknown(request, context, form.unknown)
        if not form.filename:
            raise bad_request("The file has no name.", param="file")
        purpose, lifetime_s = check_purpose(form.fields.get("purpose")), _lifetime(form.fields)
        keep = asyncio.to_thread(
            service.new_file,
            upload,
            file_id=file_id,
            filename=form.filename,
            purpose=purpose,
            lifetime_s=lifetime_s,
        )
        return await keep
    finally:
        # Also if the client left: after an `await` this would not run while a task is being cancelled.
        upload.discard()


def check_purpose(purpose: str | None) -> str:
    """What a file is for.

    Raises:
        ApiError: 400, this server does not have that purpose, or none is given.
    """
    if purpose not in PURPOSES:
        given = "missing" if purpose is None else repr(purpose[:40])
        raise bad_request(
            f"`purpose` is {given}; this server has {', '.join(map(repr, PURPOSES))}.",
            param="purpose",
        )
    return purpose


def _lifetime(fields: dict[str, str]) -> int | None:
    anchor, seconds = fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]")
    if anchor is None and seconds is None:
        return None
    if anchor != "created_at":
        raise bad_request("`expires_after.anchor` must be 'created_at'.", param="expires_after")
    with suppress(TypeError, ValueError):
        if MIN_LIFETIME_S <= int(seconds or "") <= MAX_LIFETIME_S:
            return int(seconds or "")
    raise bad_request(
        f"`expires_after.seconds` must be between {MIN_LIFETIME_S} and {MAX_LIFETIME_S}.",
        param="expires_after",
    )


def report_unknown(request: Request, context: ServerContext, unknown: list[str]) -> None:
    """Count and list the form's other fields, or refuse them with `strict_fields`."""
    if not unknown:
        return
    if context.config.strict_fields:
        raise bad_request(
            f"No field is called {unknown[0][:80]!r}; this server runs with --strict-fields.",
            param=unknown[0][:80],
            code="unknown_parameter",
        )
    context.counters.ignored_fields(request.scope["route"].path, len(unknown))
    request.state.ignored_fields = header_value(unknown)


def refuse_other_sites(request: Request) -> None:
    """Refuse a call from a web page of another site, unless the server is open to it.

    Browsers send forms to any address without asking it first, unlike JSON; they name the page's site.

    Raises:
        ApiError: 403.
    """
    origin = request.headers.get("origin")
    if {origin, "*"}.intersection(server_context(request).config.cors_origins):
        return
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise ApiError(403, "This call is not open to web pages of other sites.")
