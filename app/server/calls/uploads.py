"""`receive_upload`: the form of `POST /v1/files`, written to disk while it arrives."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.requests import Request

from app.server.calls.retrieval import opened
from app.server.process.context import MAX_UPLOADS, ServerContext
from app.server.retrieval.file_folder import PartialFile
from app.server.retrieval.records import UploadedFile
from app.server.retrieval.service import RetrievalService, new_file_id
from app.server.wire.errors import ApiError, bad_request, retry_hints
from app.server.wire.fields import header_value
from app.server.wire.multipart import Event, MultipartDecoder, PartBegun, PartData, PartEnded

PURPOSES = ("assistants", "user_data", "vision")
MIN_LIFETIME_S, MAX_LIFETIME_S = 3600, 30 * 86_400
WRITE_BYTES = 1024 * 1024
MAX_FIELD_BYTES = 1024
MAX_FILENAME = 255
_UPLOAD_RETRY_S = 2
_FIELDS = ("purpose", "expires_after[anchor]", "expires_after[seconds]")


@dataclass(slots=True)
class _Form:
    """The form as far as it has arrived."""

    filename: str | None = None
    fields: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


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
    if context.uploads.locked():
        raise ApiError(
            429,
            f"{MAX_UPLOADS} files are being uploaded; try again.",
            code="too_many_uploads",
            headers=retry_hints(_UPLOAD_RETRY_S),
        )
    async with context.uploads:
        return await _receive(request, context, service, decoder)


async def _receive(
    request: Request, context: ServerContext, service: RetrievalService, decoder: MultipartDecoder
) -> UploadedFile:
    file_id = new_file_id()
    parts = await opened(context)
    upload = await asyncio.to_thread(parts.folder.begin, file_id)
    try:
        form = await _read_form(request, decoder, upload)
        _report_unknown(request, context, form.unknown)
        if form.filename is None:
            raise bad_request("The form has no `file`.", param="file")
        purpose, lifetime_s = _purpose(form.fields), _lifetime(form.fields)
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


async def _read_form(request: Request, decoder: MultipartDecoder, upload: PartialFile) -> _Form:
    form = _Form()
    part: str | None = None
    value = bytearray()
    async for data in request.stream():
        for event in decoder.feed(data):
            part = await _take(event, form, part, value, upload)
    decoder.finish()
    return form


async def _take(
    event: Event, form: _Form, part: str | None, value: bytearray, upload: PartialFile
) -> str | None:
    """Take one event; the name of the part that is open after it."""
    match event:
        case PartBegun(name, filename):
            value.clear()
            if name == "file":
                _begin_file(form, filename)
            elif name not in _FIELDS:
                form.unknown.append(name)
            elif name in form.fields:
                raise bad_request(f"The form has `{name}` twice.", param=name)
            return name
        case PartData(data):
            if part == "file" or part in _FIELDS:
                value += data
            if part == "file" and len(value) >= WRITE_BYTES:
                await _write(upload, value)
            elif part != "file" and len(value) > MAX_FIELD_BYTES:
                raise bad_request(f"`{part}` is too long.", param=part)
        case PartEnded():
            if part == "file":
                await _write(upload, value)
            elif part in _FIELDS:
                form.fields[part] = value.decode(errors="replace")
            return None
    return part


def _begin_file(form: _Form, filename: str | None) -> None:
    if form.filename is not None:
        raise bad_request("The form has `file` twice; upload one file at a time.", param="file")
    name = (filename or "").replace("\\", "/").rpartition("/")[2]
    name = "".join(letter for letter in name if letter.isprintable()).strip()[:MAX_FILENAME]
    if not name:
        raise bad_request("The file has no name.", param="file")
    form.filename = name


async def _write(upload: PartialFile, value: bytearray) -> None:
    if value:
        await asyncio.to_thread(upload.write, bytes(value))
        value.clear()


def _purpose(fields: dict[str, str]) -> str:
    purpose = fields.get("purpose")
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


def _report_unknown(request: Request, context: ServerContext, unknown: list[str]) -> None:
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
    """Refuse a call from a web page of another site.

    Browsers send forms to any address without asking it first, unlike JSON; they name the page's site.

    Raises:
        ApiError: 403.
    """
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise ApiError(403, "This call is not open to web pages of other sites.")
