"""`decode_image`: the pixels of an image, by Pillow, within limits.

The file is untrusted, and its header may lie: the size that Pillow reads is checked again before a pixel
is decoded.
"""

import io
import warnings
from typing import Any

from engine.api.errors import InvalidRequest
from engine.api.image import MAX_PIXELS, Image

MAX_ASPECT = 200
"""Longer side by shorter side. Processors scale the shorter side to a fixed size, whatever the longer
one then becomes."""

_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP"}


def decode_image(image: Image) -> Any:
    """The image as an RGB `PIL.Image.Image`, turned as its EXIF data says.

    Of an animation, the first frame.

    Raises:
        InvalidRequest: it is damaged or too large.
    """
    from PIL import Image as PilImage
    from PIL import ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # about sizes, which are checked here, and about profiles
            opened = PilImage.open(io.BytesIO(image.data), formats=[_FORMATS[image.media_type]])
            _check_size(*opened.size)
            turned = ImageOps.exif_transpose(opened)
            return turned.convert("RGB")
    except InvalidRequest:
        raise
    except PilImage.DecompressionBombError as error:
        raise _too_large() from error
    except Exception as error:  # decoders raise OSError, SyntaxError, ValueError, struct.error, …
        raise InvalidRequest(
            "An image cannot be decoded: its file is damaged or incomplete.", param="images"
        ) from error


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise _too_large()
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise InvalidRequest(
            f"An image of {width} × {height} pixels is too narrow: one side may be at most "
            f"{MAX_ASPECT} times the other.",
            param="images",
        )


def _too_large() -> InvalidRequest:
    return InvalidRequest(
        f"An image has more than {MAX_PIXELS // 1_000_000} million pixels.", param="images"
    )
