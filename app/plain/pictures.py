"""Pictures in line mode: `@picture.png` in a message."""

from typing import TYPE_CHECKING

from app.slash.pictures import NamedPicture, ReadMessage, named_pictures, read_pictures
from engine.api.errors import EngineUnavailable
from engine.clients.engine_client import EngineClient

if TYPE_CHECKING:
    from engine.retrieval.parsing.picture_reader import PictureReader


class PlainPictures:
    """Reads the pictures of messages; every method waits until it is done.

    Args:
        reader: reads the text of pictures; None reads none.
        client: the engine, for what its model sees and the length of texts.
        attached: whether it is that of a server.
    """

    def __init__(
        self, reader: "PictureReader | None", client: EngineClient, *, attached: bool
    ) -> None:
        self._reader = reader
        self._attached = attached
        self._client = client

    def named(self, text: str) -> tuple[NamedPicture, ...]:
        """The pictures that a message names.

        Raises:
            InvalidRequest: one cannot be opened.
        """
        return named_pictures(text)

    def read(self, text: str) -> ReadMessage:
        """A message with its pictures, or with their text.

        Raises:
            PravahaError: one cannot be opened or read.
        """
        pictures = self.named(text)
        if not pictures:
            return ReadMessage(text)
        model = self._client.snapshot().model
        if model is None:
            raise EngineUnavailable("No model is loaded: /model NAME loads one.")
        return read_pictures(
            text,
            pictures,
            model,
            self._reader,
            attached=self._attached,
            count=lambda one: len(self._client.tokenize(one)),
            length=model.context_length,
        )
