"""`read_image`: the text in an image, with the extra `ocr`; its models are in its wheel."""

import os
from functools import cache
from importlib.util import find_spec
from typing import Any

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.extracted import Extracted

_NOT_INSTALLED = (
    "It is an image, whose text is read with the extra `ocr`: run `pip install 'pravaha[ocr]'`."
)


def ocr_installed() -> bool:
    """Whether images can be read."""
    return all(find_spec(name) is not None for name in ("rapidocr", "onnxruntime"))


@cache
def _engine() -> Any:
    from rapidocr import RapidOCR

    # Without numbers of threads ONNX Runtime binds them to processors, which the process may not.
    threads = len(os.sched_getaffinity(0))
    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def read_image(data: bytes) -> str:
    """The text in an image, in lines from top to bottom.

    Raises:
        Unreadable: it cannot be decoded.
    """
    try:
        result = _engine()(data)
    except MemoryError:
        raise
    except Exception as error:  # of Pillow, OpenCV or ONNX Runtime
        raise Unreadable("It is a damaged image, or of a format that cannot be decoded.") from error
    return "\n".join(result.txts or ())


def extract_image(data: bytes, most: int) -> Extracted:
    """An image as a document.

    Raises:
        Unreadable: OCR is not installed, or finds no text.
    """
    if not ocr_installed():
        raise Unreadable(_NOT_INSTALLED)
    text = read_image(data)
    if not text.strip():
        raise Unreadable("It is an image in which no text was found.")
    return Extracted(text[:most])
