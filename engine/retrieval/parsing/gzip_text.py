"""`extract_gzip`: the text in a gzip file, for example a manual page or a change log."""

import zlib

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.markdown import markdown_outline
from engine.retrieval.parsing.outline import Outline
from engine.retrieval.parsing.text_builder import TextTooLong
from engine.retrieval.parsing.text_encoding import decode_text

_MAGIC = b"\x1f\x8b"


def extract_gzip(data: bytes, most: int) -> Extracted:
    """The unpacked text. Archives and other binary files in it are refused.

    Raises:
        Unreadable: there is no text in it.
        TextTooLong: it unpacks to more than is permitted.
        zlib.error: it is damaged.
    """
    unpacked = b""
    while data.startswith(_MAGIC):  # a file may have several parts
        unpacker = zlib.decompressobj(wbits=31)
        unpacked += unpacker.decompress(data, 4 * most - len(unpacked) + 1)
        if unpacker.unconsumed_tail or len(unpacked) > 4 * most:
            raise TextTooLong
        if not unpacker.eof:
            raise zlib.error("it ends too early")
        data = unpacker.unused_data
    text = decode_text(unpacked).text
    if len(text) > most:
        raise TextTooLong
    if not text.strip():
        raise Unreadable("It is empty.")
    outline = markdown_outline(text) if text.lstrip().startswith("# ") else Outline()
    return Extracted(
        text,
        outline.headings,
        outline.breaks,
        title=outline.title,
        row_headers=outline.row_headers,
    )
