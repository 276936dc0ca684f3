"""`ChatImages`: the images of a chat's messages, and how the model reads them.

An image is in the request itself (a `data:` URL) or an uploaded file (its id). Others are refused: a server
that fetches what a client names can be made to fetch from its own network. Which way an image is read says
`engine.vision.routing`; its text stands in the message where the image stood, as quoted data.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from app.server.calls.base64_data import decode_base64
from app.server.calls.model import LoadedModel
from app.server.calls.uploaded_file import uploaded_file
from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.wire.errors import bad_request
from app.server.wire.schemas import ChatCompletionRequest, ContentPart, ImagePart, Message, TextPart
from engine.api.errors import InvalidRequest
from engine.api.image import Image, PlacedImage
from engine.retrieval.answering.image_text import image_text
from engine.retrieval.parsing.image_reader import ImageReader
from engine.runtime.engine import AsyncPravahaEngine
from engine.vision.opening import MAX_IMAGES, open_image
from engine.vision.routing import Way, choose_way

_FILE_ID = "file-"
_DATA = "data:"
_MAX_DATA_HEAD = 200


@dataclass(frozen=True, slots=True)
class ChatImage:
    """One image of the request.

    Attributes:
        message, part: the indices of its place.
        name: of its file; of one in a `data:` URL its number.
        image: the image; None once its text was read.
        media_type, width, height: of the image.
        text: what OCR has found; None where the model sees it.
    """

    message: int
    part: int
    name: str
    image: Image | None
    media_type: str
    width: int
    height: int
    text: str | None = None

    def fields(self, way: Way) -> dict[str, Any]:
        """What the response says about it."""
        return {
            "message": self.message,
            "part": self.part,
            "name": self.name,
            "media_type": self.media_type,
            "width": self.width,
            "height": self.height,
            "read_by": way,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class ChatImages:
    """The images of one call, in the order of its messages; at least one, all read the same way.

    `engine` is that of the model which reads them.
    """

    way: Way
    images: tuple[ChatImage, ...]
    engine: AsyncPravahaEngine

    def fields(self) -> dict[str, Any]:
        """The member `images` of the response."""
        return {"images": [one.fields(self.way) for one in self.images]}

    @property
    def seen(self) -> tuple[Image, ...]:
        """What the model gets, in the order of the placeholders; none where their text was read."""
        return tuple(one.image for one in self.images if one.image is not None)

    async def placed(
        self, context: ServerContext, prompt: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[PlacedImage, ...]]:
        """A prompt with the tokens of the images in place of its placeholders, and their places.

        Raises:
            ApiError: 400, an image cannot be decoded, or the model does not take so many.
        """
        if not self.seen:
            return prompt, ()
        async with context.decoding:
            try:
                return await asyncio.to_thread(self.engine.place_images, prompt, self.seen)
            except InvalidRequest as error:
                raise bad_request(str(error), param="messages", code="invalid_image") from error

    def in_messages(self, messages: Sequence[Message], *, small: bool) -> list[Message]:
        """The conversation with texts in place of the images that were read by OCR.

        Args:
            messages: the conversation.
            small: whether a small model reads it.
        """
        texts = {
            (one.message, one.part): image_text(one.name, one.text, small=small)
            for one in self.images
            if one.text is not None
        }
        return [_with_texts(message, index, texts) for index, message in enumerate(messages)]


async def read_images(
    request: Request, context: ServerContext, body: ChatCompletionRequest, model: LoadedModel
) -> ChatImages | None:
    """Open the images of a chat, and read their text if the model does not see them.

    Returns:
        None for a chat without images.

    Raises:
        ApiError: 400 that names the image: its URL is refused, it is damaged or too large, or nothing here
            can read it.
        ClientDisconnected: the client left meanwhile.
        QueueFull: too many images wait.
    """
    parts = list(_image_parts(body.messages))
    if not parts:
        return None
    reader = context.image_reader
    way = _way(model, reader, param=_param(*parts[0][:2]))
    if len(parts) > MAX_IMAGES:
        raise bad_request(
            f"The messages have {len(parts)} images; at most {MAX_IMAGES} are accepted.",
            param="messages",
            code="too_many_images",
        )
    reading = _read_all(context, parts, reader if way == "ocr" else None, body.cache_salt or "")
    images = await while_connected(request, context, reading)
    context.counters.images(way, len(images))
    return ChatImages(way, tuple(images), model.engine)


def refuse_images(messages: Sequence[Message]) -> None:
    """Refuse messages with images, for endpoints that only render or count text.

    Raises:
        ApiError: 400 that names the first one.
    """
    for message, part, _ in _image_parts(messages):
        raise bad_request(
            "Images are accepted in `/v1/chat/completions` only.",
            param=_param(message, part),
            code="images_not_supported",
        )


def _image_parts(messages: Sequence[Message]) -> Iterator[tuple[int, int, ImagePart]]:
    for at, message in enumerate(messages):
        for place, part in enumerate(message.content):
            if isinstance(part, ImagePart):
                yield at, place, part


def _param(message: int, part: int) -> str:
    return f"messages[{message}].content[{part}].image_url"


def _way(model: LoadedModel, reader: ImageReader | None, *, param: str) -> Way:
    try:
        return choose_way(
            model=model.info.name,
            sees_images=model.info.sees_images,
            ocr=reader is not None and reader.installed,
        )
    except InvalidRequest as error:
        raise bad_request(str(error), param=param, code="images_not_supported") from error


async def _read_all(
    context: ServerContext,
    parts: Sequence[tuple[int, int, ImagePart]],
    reader: ImageReader | None,
    salt: str,
) -> list[ChatImage]:
    """The images, one after another; with a reader their texts in their place."""
    left = context.config.max_image_bytes
    found: list[ChatImage] = []
    for number, (message, part, given) in enumerate(parts, start=1):
        param = _param(message, part)
        name, data = await _data(context, given.image_url.url, number, param)
        left -= len(data)
        if left < 0:
            raise bad_request(
                f"The images have more than {context.config.max_image_bytes} bytes together.",
                param=param,
                code="image_too_large",
            )
        try:
            image = open_image(data, name=name)
            text = None
            if reader is not None:
                text = await asyncio.wrap_future(reader.read(image, name=name, salt=salt))
        except InvalidRequest as error:
            raise bad_request(str(error), param=param, code="invalid_image") from error
        found.append(
            ChatImage(
                message,
                part,
                name,
                image if text is None else None,
                image.media_type,
                image.width,
                image.height,
                text,
            )
        )
    return found


async def _data(context: ServerContext, url: str, number: int, param: str) -> tuple[str, bytes]:
    """The name and the bytes of an image.

    Raises:
        ApiError: 400, the URL is of another kind, its base64 is damaged, or there is no such file.
    """
    if url.startswith(_FILE_ID):
        return await asyncio.to_thread(_file, context, url, param)
    if not url.startswith(_DATA):
        raise bad_request(
            "An image must be a `data:` URL or the id of a file of `/v1/files`; this server does not "
            "fetch other URLs.",
            param=f"{param}.url",
            code="invalid_image_url",
        )
    return f"image {number}", await asyncio.to_thread(_decoded, url, param)


def _file(context: ServerContext, file_id: str, param: str) -> tuple[str, bytes]:
    file, path = uploaded_file(context, file_id, f"{param}.url")
    limit = context.config.max_image_bytes
    if file.size > limit:
        raise bad_request(
            f"{file.filename} is larger than {limit} bytes.", param=param, code="image_too_large"
        )
    return file.filename, path.read_bytes()


def _decoded(url: str, param: str) -> bytes:
    """The bytes in a `data:` URL."""
    comma = url.find(",", 0, _MAX_DATA_HEAD)
    head = url[:comma].lower()
    if comma < 0 or not head.startswith("data:image/") or not head.endswith(";base64"):
        raise bad_request(
            "A `data:` URL of an image begins with `data:image/TYPE;base64,`.",
            param=f"{param}.url",
            code="invalid_image_url",
        )
    try:
        return decode_base64(url, comma + 1)
    except ValueError as error:
        raise bad_request(
            "The base64 of the image is damaged.", param=f"{param}.url", code="invalid_image_url"
        ) from error


def _with_texts(message: Message, index: int, texts: dict[tuple[int, int], str]) -> Message:
    """The message with texts in place of images, each in lines of its own."""
    if not any(at == index for at, _ in texts):
        return message
    parts: list[ContentPart] = []
    for place, part in enumerate(message.content):
        text = texts.get((index, place))
        if text is not None:
            before = "\n\n" if parts else ""
            after = "\n\n" if place + 1 < len(message.content) else ""
            part = TextPart(type="text", text=f"{before}{text}{after}")
        parts.append(part)
    return message.model_copy(update={"content": parts})
