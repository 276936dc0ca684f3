"""`read_files`: the text of files in a request, read by the parsers of collections and of the screen's chat.

A file is in the request itself, in base64, or it is an uploaded one. Nothing is fetched.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request

from app.server.calls.base64_data import decode_base64
from app.server.calls.uploaded_file import uploaded_file
from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.wire.errors import ApiError, bad_request
from engine.api.errors import InvalidRequest
from engine.retrieval.parsing.document_reader import FileText

MAX_FILES = 64
"""Files of one request."""
_DATA = "data:"
_MAX_DATA_HEAD = 300


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file of a request.

    Attributes:
        path: of the member that has it, for errors.
        name: of the file; its ending decides where its contents do not.
        data: its contents in base64, alone or as a `data:` URL; None for an uploaded file.
        file_id: the id of an uploaded file.
    """

    path: str
    name: str
    data: str | None = None
    file_id: str | None = None


async def read_files(
    request: Request, context: ServerContext, files: Sequence[GivenFile]
) -> list[FileText]:
    """The texts of the files, in their order.

    Clients send all files of a conversation with each request: `DocumentReader` keeps what it has read.

    Raises:
        ApiError: 400 that names the file: it is damaged, too large, or has no text.
        ClientDisconnected: the client left meanwhile.
    """
    if not files:
        return []
    if len(files) > MAX_FILES:
        raise bad_request(
            f"The request has {len(files)} files; at most {MAX_FILES} are read.",
            param=files[MAX_FILES].path,
            code="too_many_files",
        )
    return await while_connected(request, context, _read_all(context, files))


async def _read_all(context: ServerContext, files: Sequence[GivenFile]) -> list[FileText]:
    left = context.config.max_image_bytes
    texts = []
    for file in files:
        name, data = await asyncio.to_thread(_contents, context, file, left)
        left -= len(data)
        if left < 0:
            raise _too_large(context, file)
        try:
            texts.append(await asyncio.wrap_future(context.documents.read_bytes(name, data)))
        except InvalidRequest as error:
            raise bad_request(str(error), param=file.path, code="invalid_file") from error
    return texts


def _contents(context: ServerContext, file: GivenFile, limit: int) -> tuple[str, bytes]:
    """The name and the bytes of a file."""
    if file.file_id is not None:
        return _uploaded(context, file, file.file_id, limit)
    data, start = file.data or "", 0
    if data.startswith(_DATA):
        comma = data.find(",", 0, _MAX_DATA_HEAD)
        if comma < 0 or not data[:comma].lower().endswith(";base64"):
            raise bad_request(
                "A `data:` URL of a file begins with `data:TYPE;base64,`.",
                param=file.path,
                code="invalid_file",
            )
        start = comma + 1
    try:
        return file.name, decode_base64(data, start)
    except ValueError as error:
        raise bad_request(
            "The base64 of the file is damaged.", param=file.path, code="invalid_file"
        ) from error


def _uploaded(
    context: ServerContext, file: GivenFile, file_id: str, limit: int
) -> tuple[str, bytes]:
    found, path = uploaded_file(context, file_id, file.path)
    if found.size > limit:
        raise _too_large(context, file)
    return found.filename, path.read_bytes()


def _too_large(context: ServerContext, file: GivenFile) -> ApiError:
    return bad_request(
        f"The files of the request have more than {context.config.max_image_bytes} bytes together.",
        param=file.path,
        code="file_too_large",
    )
