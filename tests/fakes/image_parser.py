"""`ImageParser`: texts of images by their bytes, in place of OCR."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.image_reader import ImageReader

_TIMEOUT_S = 30.0


class AnyText(dict[bytes, str]):
    """The same text for every image."""

    def __init__(self, text: str = "some words") -> None:
        super().__init__()
        self._text = text

    def get(self, key: bytes, default: object = None) -> str:  # type: ignore[override]
        return self._text


class ImageParser:
    """Used by the reader's thread.

    Attributes:
        read: the bytes of the images that were read, in order.
        opened: how often a reader has opened it.
        closed: set by a reader that closes it.
        began: set when an image is being read.
        failure: raised instead of reading; None reads.
    """

    def __init__(self, texts: Mapping[bytes, str]) -> None:
        self._texts = texts
        self._goes_on = threading.Event()
        self._goes_on.set()
        self.read: list[bytes] = []
        self.opened = 0
        self.closed = threading.Event()
        self.began = threading.Event()
        self.failure: Exception | None = None

    def parse_bytes(self, name: str, data: bytes) -> ParsedDocument:
        self.began.set()
        assert self._goes_on.wait(_TIMEOUT_S)
        self.read.append(data)
        if self.failure is not None:
            raise self.failure
        text = self._texts.get(data)
        if text is None:
            raise Unreadable("It is an image in which no text was found.")
        return ParsedDocument(media_type="image/png", text=text, spans_of="text")

    def close(self) -> None:
        self.closed.set()

    @contextmanager
    def reader(
        self, *, rest_s: float = _TIMEOUT_S, installed: bool = True
    ) -> Iterator[ImageReader]:
        """A reader over this parser."""

        def open_parser() -> "ImageParser":
            self.opened += 1
            return self

        reader = ImageReader(open_parser, installed=lambda: installed, rest_s=rest_s)
        try:
            yield reader
        finally:
            reader.close()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Images are not finished before the end of the block."""
        self.began.clear()
        self._goes_on.clear()
        try:
            yield
        finally:
            self._goes_on.set()
