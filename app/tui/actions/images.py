"""Images on the screen: `@image.png` in a message.

A model that sees gets them with the message. Where it does not, their text is read first, on the thread of
`ImageReader`. The message stays in the prompt meanwhile, and so in the draft: it is sent once its images
are read, unless it was changed or Esc was pressed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from app.slash.images import (
    NamedImage,
    build_remark,
    named_images,
    seen_names,
    way_for,
    with_image_texts,
)
from app.text.safe_text import safe_line
from app.tui.actions.files import FileActions
from app.tui.actions.guarded import guarded
from app.tui.chat_screen import ChatScreen
from app.tui.view.spans import Line, Span
from app.tui.widgets.prompt import Prompt
from engine.api.errors import EngineUnavailable, PravahaError
from engine.conversations.tree import NodeKind, NodeView
from engine.retrieval.answering.image_text import images_read
from engine.retrieval.parsing.image_reader import ImageReader
from engine.vision.routing import Way

Send = Callable[[str, str], Awaitable[None]]


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """A message whose images are being read."""

    text: str
    tree_id: str
    images: Sequence[NamedImage]
    texts: "Sequence[Future[str]]"
    send: Send


class ImageActions:
    """Reads the images of messages.

    Args:
        files: count the tokens of a text.
        reader: None in a replay, where the name of an image is text.
        attached: whether the engine is that of a server.
    """

    def __init__(
        self,
        screen: ChatScreen,
        files: FileActions,
        reader: ImageReader | None,
        *,
        attached: bool,
    ) -> None:
        self._screen = screen
        self._files = files
        self._attached = attached
        self._reader = reader
        self._reading: _Reading | None = None

    @property
    def reading(self) -> bool:
        """Whether a message waits for the text of its images."""
        return self._reading is not None

    def named(self, text: str) -> tuple[NamedImage, ...]:
        """The images that a message names.

        Raises:
            InvalidRequest: one cannot be opened.
        """
        return () if self._reader is None else named_images(text)

    def begin_reading(self, text: str, images: Sequence[NamedImage], *, send: Send) -> bool:
        """Begin to read the text of a message's images, after which it is sent.

        Args:
            send: called with the message as it was typed, and as it is sent.

        Returns:
            False if there is nothing to read: it has no images, or the model sees them.

        Raises:
            PravahaError: nothing here can read them.
        """
        self.cancel()
        if self._reader is None or not images or self._way() == "model":
            return False
        reading = _Reading(
            text,
            self._screen.session.tree_id,
            images,
            [self._reader.read(one.image, name=one.name) for one in images],
            send,
        )
        names = ", ".join(safe_line(one.name) for one in images)
        self._screen.main.query_one(Prompt).hold(text, f"reading {names}")
        self._reading = reading
        self._screen.run_worker(self._send_when_read(reading), group="images", exit_on_error=False)
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
        """The rows below a message: how each of its images was read."""
        if node.kind is not NodeKind.USER:
            return []
        remarks = [build_remark(name, "ocr") for name in images_read(node.text)]
        if node.n_images:
            seen = seen_names(node.text, node.n_images)
            remarks += [build_remark(name, "model") for name in seen]
        return [(Span(safe_line(one), "$faint"),) for one in remarks]

    def _way(self) -> Way:
        model = self._screen.client.snapshot().model
        if model is None:
            raise EngineUnavailable(
                "No model is loaded yet, so it is not known whether it sees images: send it again when "
                "one is."
            )
        return way_for(model, self._reader, attached=self._attached)

    async def _send_when_read(self, reading: _Reading) -> None:
        try:
            texts = [await asyncio.wrap_future(one) for one in reading.texts]
        except PravahaError as error:
            if self._reading is reading:
                self._end()
                self._screen.notify_safely(str(error), "error")
            return
        if self._reading is not reading:
            return
        self._end()
        if self._screen.session.tree_id != reading.tree_id:
            return  # it is the draft of the other conversation
        await guarded(self._screen, self._send(reading, texts))

    async def _send(self, reading: _Reading, texts: Sequence[str]) -> None:
        files = self._files
        model = self._screen.client.snapshot().model
        message = with_image_texts(
            reading.text,
            reading.images,
            texts,
            small=model is not None and model.is_small,
            count=files.count_tokens,
            length=files.length,
        )
        self._screen.main.query_one(Prompt).text = ""
        await reading.send(reading.text, message)

    def _end(self) -> _Reading | None:
        """The reading, which is over."""
        reading, self._reading = self._reading, None
        if reading is not None:
            self._screen.main.query_one(Prompt).release()
        return reading
