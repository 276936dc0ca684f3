"""Pictures on the screen: `@picture.png` in a message.

Where the model does not see pictures, their text is read first, on the thread of `PictureReader`. The
message stays in the prompt meanwhile, and so in the draft: it is sent once its pictures are read, unless it
was changed or Esc was pressed.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.slash.pictures import NamedPicture, build_remark, named_pictures, with_picture_texts
from app.text.safe_text import safe_line
from app.tui.view.spans import Line, Span
from app.tui.widgets.prompt import Prompt
from engine.api.errors import EngineUnavailable, PravahaError
from engine.conversations.tree import NodeKind, NodeView
from engine.retrieval.answering.picture_text import pictures_read
from engine.retrieval.parsing.picture_reader import PictureReader
from engine.vision.routing import Way, choose_way

if TYPE_CHECKING:
    from app.tui.app import PravahaApp


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """A message whose pictures are being read."""

    text: str
    tree_id: str
    pictures: Sequence[NamedPicture]
    texts: "Sequence[Future[str]]"


class PictureActions:
    """Reads the pictures of messages.

    Args:
        reader: None in a replay, where the name of a picture is text.
    """

    def __init__(self, app: "PravahaApp", reader: PictureReader | None) -> None:
        self._app = app
        self._reader = reader
        self._reading: _Reading | None = None

    @property
    def reading(self) -> bool:
        """Whether a message waits for the text of its pictures."""
        return self._reading is not None

    def takes(self, text: str) -> bool:
        """Begin to read the pictures that a message names, after which it is sent; whether there are any.

        Raises:
            PravahaError: one cannot be opened, or nothing here can read it.
        """
        self.cancel()
        pictures = () if self._reader is None else named_pictures(text)
        if self._reader is None or not pictures:
            return False
        self._way()
        reading = _Reading(
            text,
            self._app.session.tree_id,
            pictures,
            [self._reader.read(one.image, name=one.name) for one in pictures],
        )
        names = ", ".join(safe_line(one.name) for one in pictures)
        self._app.query_one(Prompt).hold(text, f"reading {names}")
        self._reading = reading
        self._app.run_worker(self._send_when_read(reading), group="pictures", exit_on_error=False)
        return True

    def text_changed(self, text: str) -> None:
        """The text in the prompt is `text` now; a message that was changed is not sent."""
        if self._reading is not None and text != self._reading.text:
            self.cancel()

    def cancel(self) -> None:
        """Leave the message in the prompt, unsent."""
        reading = self._end()
        for one in () if reading is None else reading.texts:
            one.cancel()

    def rows_below(self, node: NodeView) -> list[Line]:
        """The rows below a message: how each of its pictures was read."""
        if node.kind is not NodeKind.USER:
            return []
        return [
            (Span(safe_line(build_remark(name, "ocr")), "$faint"),)
            for name in pictures_read(node.text)
        ]

    def _way(self) -> Way:
        model = self._app.client.snapshot().model
        if model is None:
            raise EngineUnavailable(
                "No model is loaded yet, so it is not known whether it sees pictures: send it again when "
                "one is."
            )
        return choose_way(
            model=model.name,
            sees_images=False,
            ocr=self._reader is not None and self._reader.installed,
        )

    async def _send_when_read(self, reading: _Reading) -> None:
        try:
            texts = [await asyncio.wrap_future(one) for one in reading.texts]
        except PravahaError as error:
            if self._reading is reading:
                self._end()
                self._app.notify_safely(str(error), "error")
            return
        if self._reading is not reading:
            return
        self._end()
        if self._app.session.tree_id != reading.tree_id:
            return  # it is the draft of the other conversation
        await self._app.guarded(self._send(reading, texts))

    async def _send(self, reading: _Reading, texts: Sequence[str]) -> None:
        files = self._app.files
        model = self._app.client.snapshot().model
        message = with_picture_texts(
            reading.text,
            reading.pictures,
            texts,
            small=model is not None and model.is_small,
            count=files.count_tokens,
            length=files.length,
        )
        self._app.query_one(Prompt).text = ""
        await self._app.send_read(reading.text, message)

    def _end(self) -> _Reading | None:
        """The reading, which is over."""
        reading, self._reading = self._reading, None
        if reading is not None:
            self._app.query_one(Prompt).release()
        return reading
