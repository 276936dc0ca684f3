"""`read_form`: a multipart form with one file, which is written to disk while it arrives."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

from starlette.requests import Request

from app.server.retrieval.file_folder import PartialFile
from app.server.wire.errors import bad_request
from app.server.wire.multipart import Event, MultipartDecoder, PartBegun, PartData, PartEnded

WRITE_BYTES = 1024 * 1024
MAX_FIELD_BYTES = 1024
MAX_FILENAME = 255


@dataclass(slots=True)
class UploadForm:
    """The form as far as it has arrived.

    Attributes:
        filename: the client's name of the file, without a folder; empty if it has none, None before the file.
        fields: the other fields.
        unknown: the names of fields that no one asked for.
    """

    filename: str | None = None
    fields: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


async def read_form(
    request: Request,
    decoder: MultipartDecoder,
    upload: PartialFile,
    *,
    file_field: str,
    fields: Collection[str] = (),
    limit_bytes: int | None = None,
) -> UploadForm:
    """Read the body of a request to its end.

    Args:
        request: the request.
        decoder: of its content type.
        upload: takes the bytes of the file.
        file_field: the field that is the file.
        fields: the other fields that are read.
        limit_bytes: the most bytes of the file; None for the limit of the body alone.

    Raises:
        ApiError: 400 for a form that is not valid, has a field twice, or has no file; 413 for a long file.
        OutOfDisk: there is no room.
    """
    reader = _Reader(upload, file_field, fields, limit_bytes)
    async for data in request.stream():
        for event in decoder.feed(data):
            await reader.take(event)
    decoder.finish()
    if reader.form.filename is None:
        raise bad_request(f"The form has no `{file_field}`.", param=file_field)
    return reader.form


class _Reader:
    """The events of one form, in their order."""

    def __init__(
        self,
        upload: PartialFile,
        file_field: str,
        fields: Collection[str],
        limit_bytes: int | None,
    ) -> None:
        self.form = UploadForm()
        self._upload, self._file_field, self._fields = upload, file_field, fields
        self._limit_bytes = limit_bytes
        self._part: str | None = None
        self._value = bytearray()

    async def take(self, event: Event) -> None:
        match event:
            case PartBegun(name, filename):
                self._begin(name, filename)
            case PartData(data):
                await self._add(data)
            case PartEnded():
                await self._end()

    def _begin(self, name: str, filename: str | None) -> None:
        self._value.clear()
        self._part = name
        if name == self._file_field:
            if self.form.filename is not None:
                raise bad_request(
                    f"The form has `{name}` twice; upload one file at a time.", param=name
                )
            self.form.filename = plain_filename(filename or "")
        elif name not in self._fields:
            self._check_no_member(name)
            self.form.unknown.append(name)
        elif name in self.form.fields:
            raise bad_request(f"The form has `{name}` twice.", param=name)

    def _check_no_member(self, name: str) -> None:
        """Refuse an unknown member of a known object, such as `expires_after[days]`."""
        owner, bracket, _ = name.partition("[")
        if bracket and any(one.startswith(owner + "[") for one in self._fields):
            raise bad_request(f"There is no field `{name}`.", param=name, code="unknown_parameter")

    async def _add(self, data: bytes) -> None:
        is_file = self._part == self._file_field
        if is_file or self._part in self._fields:
            self._value += data
        if is_file and len(self._value) >= WRITE_BYTES:
            await self._write()
        elif not is_file and len(self._value) > MAX_FIELD_BYTES:
            raise bad_request(f"`{self._part}` is too long.", param=self._part)

    async def _end(self) -> None:
        if self._part == self._file_field:
            await self._write()
        elif self._part is not None and self._part in self._fields:
            self.form.fields[self._part] = self._value.decode(errors="replace")
        self._part = None

    async def _write(self) -> None:
        if not self._value:
            return
        if (
            self._limit_bytes is not None
            and self._upload.size + len(self._value) > self._limit_bytes
        ):
            raise bad_request(
                f"A part has at most {self._limit_bytes} bytes.", param=self._file_field
            )
        await asyncio.to_thread(self._upload.write, bytes(self._value))
        self._value.clear()


def plain_filename(given: str) -> str:
    """A client's name of a file without its folder and without what cannot be shown; may be empty."""
    name = given.replace("\\", "/").rpartition("/")[2]
    return "".join(letter for letter in name if letter.isprintable()).strip()[:MAX_FILENAME]
