"""Images on the screen: `@image.png` in a message.

A model that sees gets them with the message. Where it does not, their text is read first, on the thread of
`ImageReader`, while the message stays in the prompt (`HeldMessage`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

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
from app.tui.actions.held_message import HeldMessage
from app.tui.chat_screen import ChatScreen
from app.tui.view.spans import Line, Span
from app.tui.widgets.prompt import Prompt
from engine.api.errors import EngineUnavailable
from engine.conversations.tree import NodeKind, NodeView
from engine.retrieval.answering.image_text import images_read
from engine.retrieval.parsing.image_reader import ImageReader
from engine.vision.routing import Way

Send = Callable[[str, str], Awaitable[None]]


class ImageActions:
    """Reads the images of messages.

    Args:
        files: count the tokens of a text.
        reader: None in a replay, where the name of an image is text.
        attached: whether the engine is that of a server.
        held: holds a message while they are read.
    """

    def __init__(
        self,
        screen: ChatScreen,
        files: FileActions,
        reader: ImageReader | None,
        *,
        attached: bool,
        held: HeldMessage,
    ) -> None:
        self._screen = screen
        self._files = files
        self._attached = attached
        self._reader = reader
        self._held = held

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
        self._held.cancel()
        if self._reader is None or not images or self._way() == "model":
            return False
        texts = [self._reader.read(one.image, name=one.name) for one in images]

        async def read() -> list[str]:
            return [await asyncio.wrap_future(one) for one in texts]

        async def send_read(found: list[str]) -> None:
            message = self._with_texts(text, images, found)
            self._screen.main.query_one(Prompt).text = ""
            await send(text, message)

        names = [one.name for one in images]
        self._held.hold(text, names, texts, read=read, send=send_read)
        return True

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

    def _with_texts(self, text: str, images: Sequence[NamedImage], texts: Sequence[str]) -> str:
        """The message with the texts of its images."""
        files = self._files
        model = self._screen.client.snapshot().model
        return with_image_texts(
            text,
            images,
            texts,
            small=model is not None and model.is_small,
            count=files.count_tokens,
            length=files.length,
        )
