"""`choose_way`: which way a picture of a chat is read.

| the loaded model | the extra `ocr` | way |
|---|---|---|
| sees pictures | either | `model`: the model gets the picture |
| sees none | installed | `ocr`: the model gets the text that is found in the picture |
| sees none | missing | refused |
"""

from typing import Literal

from engine.api.errors import InvalidRequest

Way = Literal["model", "ocr"]


def choose_way(*, model: str, sees_images: bool, ocr: bool) -> Way:
    """The way for all pictures of a message or request.

    Args:
        model: the name of the loaded model.
        sees_images: whether it takes pictures.
        ocr: whether OCR is installed.

    Raises:
        InvalidRequest: there is none; the sentence says what to do.
    """
    if sees_images:
        return "model"
    if ocr:
        return "ocr"
    raise InvalidRequest(
        f"{model} does not see pictures: load a model that does, or run `pip install 'pravaha[ocr]'` to "
        "have their text read."
    )
