"""`MultipartDecoder`: the parts of a `multipart/form-data` body, piece by piece as the bytes arrive.

It holds no more than the piece that it is given, so that a body of any size takes constant memory.
"""

from dataclasses import dataclass

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from app.server.wire.errors import ApiError, bad_request

MAX_PARTS = 32


@dataclass(frozen=True, slots=True)
class PartBegun:
    """A part begins.

    Attributes:
        name: of the form's field.
        filename: the client's name of the file; None for a plain field.
    """

    name: str
    filename: str | None


@dataclass(frozen=True, slots=True)
class PartData:
    """Bytes of the part that began last."""

    data: bytes


@dataclass(frozen=True, slots=True)
class PartEnded:
    """The part that began last is complete."""


Event = PartBegun | PartData | PartEnded


class MultipartDecoder:
    """Decodes one body."""

    def __init__(self, content_type: str) -> None:
        """Decode a body.

        Args:
            content_type: the request's header.

        Raises:
            ApiError: 415 for another content type, 400 for one without a boundary.
        """
        media, options = parse_options_header(content_type)
        if media != b"multipart/form-data":
            raise ApiError(
                415, "Send the file as a form, with `content-type: multipart/form-data`."
            )
        boundary = options.get(b"boundary", b"")
        if not 1 <= len(boundary) <= 70:
            raise bad_request("The content type has no valid boundary.", param="content-type")
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._on_part_begin,
                "on_part_data": self._on_part_data,
                "on_part_end": self._on_part_end,
                "on_header_field": self._on_header_field,
                "on_header_value": self._on_header_value,
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_end": self._on_end,
            },
        )
        self._events: list[Event] = []
        self._parts = 0
        self._complete = False
        self._header_name, self._header_value = b"", b""
        self._disposition = b""

    def feed(self, data: bytes) -> list[Event]:
        """What further bytes hold.

        Raises:
            ApiError: 400 for a body that is no form.
        """
        try:
            self._parser.write(data)
        except MultipartParseError as error:
            raise bad_request(f"The body is not a valid form: {error}") from None
        events, self._events = self._events, []
        return events

    def finish(self) -> None:
        """Check that the body has ended.

        Raises:
            ApiError: 400 for a body that is cut off.
        """
        if not self._complete:
            raise bad_request("The body ends before the form does.")

    # Callbacks of the parser.

    def _on_part_begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise bad_request(f"The form has more than {MAX_PARTS} parts.")
        self._disposition = b""

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _on_header_end(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = self._header_value
        self._header_name, self._header_value = b"", b""

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        name, filename = options.get(b"name"), options.get(b"filename")
        if name is None:
            raise bad_request("A part of the form has no name.")
        given = None if filename is None else _text(filename)
        self._events.append(PartBegun(_text(name), given))

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._events.append(PartData(data[start:end]))

    def _on_part_end(self) -> None:
        self._events.append(PartEnded())

    def _on_end(self) -> None:
        self._complete = True


def _text(value: bytes) -> str:
    """A parameter as text; browsers and httpx send it as UTF-8, with quotes as percent codes."""
    text = value.decode("utf-8", errors="replace")
    return text.replace("%22", '"').replace("%0D", "").replace("%0A", "")
