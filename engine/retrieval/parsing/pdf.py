"""`extract_pdf`: the text of a PDF page by page, with its bookmarks as headings."""

import logging
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from pypdf import PdfReader
from pypdf.errors import PdfReadError

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.ocr import ocr_installed, read_image
from engine.retrieval.parsing.text_builder import TextBuilder, TextTooLong

_MAX_BOOKMARKS = 2_000
_MAX_LEVEL = 6
_MAX_IMAGES = 4
"""Images of one page that are read; a scanned page is one."""
_NO_TEXT = "It has no text: its pages are images, which are read with the extra `ocr`."


def extract_pdf(data: bytes, most: int) -> Extracted:
    """The text of a PDF. Pages without text are read by OCR if that is installed, and named if not.

    Raises:
        Unreadable: it is protected, or has no text.
        pypdf.errors.PyPdfError: it is damaged beyond repair.
    """
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it reports each repair
    reader = PdfReader(BytesIO(data), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise Unreadable("It is protected by a password.")
    builder = TextBuilder(most)
    texts: list[str] = []
    starts: list[int] = []
    silent: list[int] = []
    for number, page in enumerate(reader.pages, 1):
        text = _page_text(page)
        if not text.strip():
            silent.append(number)
        builder.paragraph()
        starts.append(len(builder))
        builder.mark_page()
        builder.add(text)
        texts.append(text)
    if silent:
        _explain(builder, silent, len(starts))
    for level, title, index in _bookmarks(reader):
        if index < len(starts):
            within = texts[index].find(title)
            builder.heading(level, title, starts[index] + max(within, 0))
    builder.title = _title(reader)
    extracted = builder.extracted()
    return extracted._replace(headings=tuple(sorted(extracted.headings, key=lambda one: one.start)))


def _page_text(page: Any) -> str:
    """The text of a page; of a damaged one, nothing."""
    try:
        text = str(page.extract_text())
    except (MemoryError, RecursionError):
        raise
    except Exception:  # pypdf raises whatever the damage leads to
        text = ""
    if text.strip() or not ocr_installed():
        return text.strip()
    return "\n".join(_images_text(page)).strip()


def _images_text(page: Any) -> Iterator[str]:
    try:
        for image in list(page.images)[:_MAX_IMAGES]:
            yield read_image(image.data)
    except (MemoryError, TextTooLong):
        raise
    except Exception:  # an image in a format that Pillow does not read
        return


def _explain(builder: TextBuilder, silent: list[int], pages: int) -> None:
    if len(silent) == pages:
        raise Unreadable(_NO_TEXT if not ocr_installed() else "It has no text.")
    shown = ", ".join(map(str, silent[:10])) + (", …" if len(silent) > 10 else "")
    builder.notes.append(f"No text was found on {len(silent)} of {pages} pages: {shown}.")


def _bookmarks(reader: PdfReader) -> Iterator[tuple[int, str, int]]:
    """Level, title and index of the page of each bookmark; damaged ones are left out."""
    try:
        stack: list[tuple[Any, int]] = [(reader.outline, 0)]
    except Exception:
        return
    count = 0
    while stack and count < _MAX_BOOKMARKS:
        one, level = stack.pop()
        if isinstance(one, list):
            stack += ((inner, level + 1) for inner in reversed(one))
            continue
        count += 1
        try:
            index = reader.get_destination_page_number(one)
            title = " ".join(str(one.title).split())
        except Exception:  # noqa: S112 - one damaged bookmark of many
            continue
        if index is not None and index >= 0 and title:
            yield min(level, _MAX_LEVEL), title, index


def _title(reader: PdfReader) -> str | None:
    try:
        title = reader.metadata.title if reader.metadata else None
    except (PdfReadError, ValueError, KeyError, AttributeError, TypeError):
        return None
    return str(title).strip() or None if title else None
