"""`ImageReader`: the text in images of chats, by OCR in the confined parser process.

One image is read at a time, by a thread that starts with the first one and ends, together with the
parser process, after `REST_S` without any. What was read is kept for images that come again: a client of
the API sends the images of a conversation with every message of it.
"""

import queue
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from engine.api.errors import EngineUnavailable, InvalidRequest, QueueFull
from engine.api.image import Image
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.ocr import ocr_installed
from engine.retrieval.parsing.parser_limits import ParserLimits

REST_S = 60.0
MAX_WAITING = 64
"""Images that wait at a time; each holds up to 20 MiB."""
MAX_KEPT_CHARS = 4 * 1024 * 1024
"""Characters of texts that are kept."""
_LIMITS = ParserLimits(text_bytes=256 * 1024, cpu_s=120, wall_s=90.0, ocr_factor=1)
"""Shorter than for documents, because somebody waits: a page of text takes a few seconds."""


class ImageParser(Protocol):
    """What `ParserPool` does with images."""

    def parse_bytes(self, name: str, data: bytes) -> ParsedDocument:
        """See `ParserPool.parse_bytes`."""
        ...

    def close(self) -> None:
        """End the parser process."""
        ...


def _open_pool() -> ImageParser:
    # Imported with the first image: a screen starts without the parsers.
    from engine.retrieval.parsing.parser_pool import ParserPool

    return ParserPool(limits=_LIMITS)


@dataclass(frozen=True, slots=True)
class _Task:
    image: Image
    name: str
    key: tuple[str, bytes]
    future: "Future[str]"


class ImageReader:
    """Thread-safe. `close` it once; nothing runs before the first image.

    Args:
        parser: opens the parser, when it is first needed and after each rest.
        installed: whether OCR is.
        rest_s: seconds without an image after which the thread and the process end.
    """

    def __init__(
        self,
        parser: Callable[[], ImageParser] = _open_pool,
        *,
        installed: Callable[[], bool] = ocr_installed,
        rest_s: float = REST_S,
    ) -> None:
        self._new_parser = parser
        self._is_installed = installed
        self._rest_s = rest_s
        self._tasks: queue.Queue[_Task | None] = queue.Queue(MAX_WAITING)
        self._lock = threading.Lock()  # guards all below; held while a task is put into the queue
        self._thread: threading.Thread | None = None
        self._closed = False
        self._texts: OrderedDict[tuple[str, bytes], str] = OrderedDict()
        self._kept_chars = 0

    @property
    def installed(self) -> bool:
        """Whether images can be read."""
        return self._is_installed()

    def read(self, image: Image, *, name: str = "The image", salt: str = "") -> "Future[str]":
        """Begin to read an image. A future that is cancelled before its turn is not read.

        Args:
            image: the image.
            name: what messages call it.
            salt: texts are found again only under the salt that they were read for, so that no caller
                learns by the time it takes what another one sent.

        Returns:
            Its text, which is never blank. It fails with `InvalidRequest` if there is none, or the image
            cannot be decoded.

        Raises:
            QueueFull: too many images wait.
            EngineUnavailable: the reader is closed.
        """
        future: Future[str] = Future()
        key = (salt, image.digest)
        with self._lock:
            if self._closed:
                raise EngineUnavailable("Images are not read any more: the program is ending.")
            known = self._texts.get(key)
            if known is not None:
                self._texts.move_to_end(key)
                future.set_result(known)
                return future
            try:
                self._tasks.put_nowait(_Task(image, name, key, future))
            except queue.Full:
                raise QueueFull(f"{MAX_WAITING} images wait to be read; try again.") from None
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="pravaha-images", daemon=True
                )
                self._thread.start()
        return future

    def close(self) -> None:
        """Cancel what waits. The image that is being read is finished in the background. Idempotent."""
        with self._lock:
            self._closed = True
            while True:
                try:
                    task = self._tasks.get_nowait()
                except queue.Empty:
                    break
                if task is not None:
                    task.future.cancel()
            if self._thread is not None:
                self._tasks.put_nowait(None)

    # The thread.

    def _run(self) -> None:
        parser = self._new_parser()
        try:
            while True:
                try:
                    task = self._tasks.get(timeout=self._rest_s)
                except queue.Empty:
                    with self._lock:
                        if self._tasks.empty():
                            self._thread = None
                            return
                    continue
                if task is None:
                    return
                if task.future.set_running_or_notify_cancel():
                    self._finish(parser, task)
        finally:
            parser.close()

    def _finish(self, parser: ImageParser, task: _Task) -> None:
        try:
            text = self._text(parser, task)
        except Exception as error:
            task.future.set_exception(error)
        else:
            task.future.set_result(text)

    def _text(self, parser: ImageParser, task: _Task) -> str:
        with self._lock:  # perhaps the one before it was the same image
            known = self._texts.get(task.key)
        if known is not None:
            return known
        try:
            text = parser.parse_bytes("image", task.image.data).text
        except Unreadable as error:
            reason = str(error)
            raise InvalidRequest(
                f"{task.name} cannot be read by OCR: {reason[:1].lower()}{reason[1:]}"
            ) from error
        self._keep(task.key, text)
        return text

    def _keep(self, key: tuple[str, bytes], text: str) -> None:
        with self._lock:
            self._texts[key] = text
            self._kept_chars += len(text)
            while self._kept_chars > MAX_KEPT_CHARS:
                _, dropped = self._texts.popitem(last=False)
                self._kept_chars -= len(dropped)
