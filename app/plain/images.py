"""Images in line mode: `@image.png` in a message."""

from typing import TYPE_CHECKING

from app.slash.images import NamedImage, ReadMessage, named_images, read_images
from engine.api.errors import EngineUnavailable
from engine.clients.engine_client import EngineClient

if TYPE_CHECKING:
    from engine.retrieval.parsing.image_reader import ImageReader


class PlainImages:
    """Reads the images of messages; every method waits until it is done.

    Args:
        reader: reads the text of images; None reads none.
        client: the engine, for what its model sees and the length of texts.
        attached: whether it is that of a server.
    """

    def __init__(
        self, reader: "ImageReader | None", client: EngineClient, *, attached: bool
    ) -> None:
        self._reader = reader
        self._attached = attached
        self._client = client

    def named(self, text: str) -> tuple[NamedImage, ...]:
        """The images that a message names.

        Raises:
            InvalidRequest: one cannot be opened.
        """
        return named_images(text)

    def read(self, text: str) -> ReadMessage:
        """A message with its images, or with their text.

        Raises:
            PravahaError: one cannot be opened or read.
        """
        images = self.named(text)
        if not images:
            return ReadMessage(text)
        model = self._client.snapshot().model
        if model is None:
            raise EngineUnavailable("No model is loaded: /model NAME loads one.")
        return read_images(
            text,
            images,
            model,
            self._reader,
            attached=self._attached,
            count=lambda one: len(self._client.tokenize(one)),
            length=model.context_length,
        )
