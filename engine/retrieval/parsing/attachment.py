"""`attachment_text`: the text of a file that is attached to a mail."""

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.file_type import detect_type
from engine.retrieval.parsing.text_encoding import decode_text
from engine.retrieval.parsing.text_outline import text_outline

_SUFFIXES = {
    "text/csv": ".csv",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "application/json": ".json",
    "message/rfc822": ".eml",
}
_TNEF = b"\x78\x9f\x3e\x22"


def attachment_text(name: str, media_type: str, data: bytes, most: int) -> tuple[Extracted, str]:
    """The text and an empty reason; or no text, and in one sentence why.

    Args:
        name: of the file; may be empty.
        media_type: as the mail gives it, which counts if the name says nothing.
        data: the file.
        most: characters of text.
    """
    try:
        return _read(name if "." in name else name + _SUFFIXES.get(media_type, ""), data, most), ""
    except Unreadable as error:
        return Extracted(""), str(error)


def _read(name: str, data: bytes, most: int) -> Extracted:
    from engine.retrieval.parsing.parsers import extract  # which imports this module's callers

    if not data.strip():
        raise Unreadable("It is empty.")
    if data.startswith(_TNEF):
        raise Unreadable("It is in Outlook's own format (TNEF).")
    file_type = detect_type(name, data)
    kind = file_type.format
    if kind == "image":
        raise Unreadable("It is an image.")
    if kind not in ("text", "markdown", "rst", "rows", "code", "json"):
        found = extract(kind, data, max(most, 0))
        if not found.text.strip():
            raise Unreadable("It has no text.")
        return found
    text = decode_text(data).text
    if len(text) > most:
        raise Unreadable("It is too long.")
    outline = text_outline(text, file_type)
    return Extracted(text, outline.headings, outline.breaks, row_headers=outline.row_headers)
