"""`read_picture`: the text in a picture, with the extra `ocr`; its models are in its wheel."""

import logging
from functools import cache
from importlib.util import find_spec
from typing import Any

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.extracted import Extracted

_NOT_INSTALLED = (
    "It is a picture, whose text is read with the extra `ocr`: run `pip install 'pravaha[ocr]'`."
)


def ocr_installed() -> bool:
    """Whether pictures can be read."""
    return all(find_spec(name) is not None for name in ("rapidocr", "onnxruntime"))


@cache
def _engine() -> Any:
    from rapidocr import RapidOCR

    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    return RapidOCR()


def read_picture(data: bytes) -> str:
    """The text in a picture, in lines from top to bottom."""
    result = _engine()(data)
    return "\n".join(result.txts or ())


def extract_picture(data: bytes, most: int) -> Extracted:
    """A picture as a document.

    Raises:
        Unreadable: OCR is not installed, or finds no text.
    """
    if not ocr_installed():
        raise Unreadable(_NOT_INSTALLED)
    text = read_picture(data)
    if not text.strip():
        raise Unreadable("It is a picture in which no text was found.")
    return Extracted(text[:most])
