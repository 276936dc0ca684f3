"""`choose_way`: which way an image of a chat is read.

| the loaded model | the extra `ocr` | way |
|---|---|---|
| sees images | either | `model`: the model gets the image |
| sees none | installed | `ocr`: the model gets the text that is found in the image |
| sees none | missing | refused |
"""

from typing import Literal

from engine.api.errors import InvalidRequest

Way = Literal["model", "ocr"]


def choose_way(*, model: str, sees_images: bool, ocr: bool) -> Way:
    """The way for all images of a message or request.

    Args:
        model: the name of the loaded model.
        sees_images: whether it takes images.
        ocr: whether OCR is installed.

    Raises:
        InvalidRequest: there is none; the sentence says what to do.
    """
    if sees_images:
        return "model"
    if ocr:
        return "ocr"
    raise InvalidRequest(
        f"{model} does not see images: load a model that does, or run `pip install 'pravaha[ocr]'` to "
        "have their text read."
    )
