"""`Image`: an image of a message, encoded, and `PlacedImage`: its place in a prompt."""

from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Literal

MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
"""The types of images that a chat takes, which are those of the OpenAI API."""

MAX_IMAGES = 64
"""Most images of a prompt."""

MAX_PIXELS = 40_000_000
"""Largest image. Decoded it has three bytes a pixel."""


@dataclass(frozen=True)
class Image:
    """An image as it came: not decoded, so that only the process that computes with it decodes it.

    Attributes:
        data: the bytes of the file.
        media_type: its type, by its content.
        width, height: pixels, of its header.
    """

    data: bytes = field(repr=False)
    media_type: MediaType
    width: int
    height: int

    @cached_property
    def digest(self) -> bytes:
        """32 bytes, BLAKE2b of `data`: equal images have equal KV."""
        return blake2b(self.data, digest_size=32).digest()


@dataclass(frozen=True, slots=True)
class PlacedImage:
    """An image and its tokens in a prompt.

    Attributes:
        image: the image.
        start: position of its first token in the prompt.
        tokens: how many tokens it takes: copies of the model's image token, and the separators that
            the model's processor writes around and between them.
    """

    image: Image
    start: int
    tokens: int
