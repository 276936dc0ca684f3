"""The section around a passage: what is read in its place."""

import os
import sys
from pathlib import Path

from engine.retrieval.api.passage import Passage
from engine.retrieval.store.records import DocumentRecord
from engine.retrieval.store.store import Store


def section_text(store: Store, passage: Passage) -> str:
    """The text of a passage's section.

    A file that has changed since it was indexed is not read: the section is then joined from its chunks,
    which lack the white space between them.

    Raises:
        UnknownDocument: the document was deleted.
    """
    document = store.document(passage.document_id)
    return _text(store, document, passage.section_start, passage.section_end)


def document_text(store: Store, document: DocumentRecord) -> str:
    """The whole text of a document, as `section_text`; a byte order mark is no part of it."""
    return _text(store, document, 0, sys.maxsize).removeprefix("\ufeff")


def _text(store: Store, document: DocumentRecord, start: int, end: int) -> str:
    data = store.extracted_bytes(document.id, start, end)
    if data is not None:
        return data.decode()
    if _is_unchanged(document):
        try:
            return _read(Path(document.path), start, end).decode(document.encoding)
        except (OSError, UnicodeDecodeError):
            pass  # it was changed or deleted in this moment
    return _joined(store, document, start, end)


def _is_unchanged(document: DocumentRecord) -> bool:
    try:
        status = os.stat(document.path)
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (document.size, document.mtime_ns)


def _read(path: Path, start: int, end: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(min(end - start, os.fstat(file.fileno()).st_size))


def _joined(store: Store, document: DocumentRecord, start: int, end: int) -> str:
    parts: list[str] = []
    at = start
    for first, stop, text in store.chunk_texts(document, start, end):
        if stop <= at:
            continue
        if first < at:  # it repeats the end of the chunk before
            data = text.encode(document.encoding, "replace")[at - first :]
            text = data.decode(document.encoding, "replace")
        elif first > at and parts:
            parts.append("\n")
        parts.append(text)
        at = stop
    return "".join(parts)
