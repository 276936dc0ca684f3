"""Reads one file: hash, text and chunks."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tokenizers import Tokenizer

from engine.api.error_text import first_line
from engine.retrieval.api.chunk import Chunk
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.indexing.plain_reader import split
from engine.retrieval.indexing.walking import FoundFile
from engine.retrieval.store.new_document import NewDocument

_BLOCK = 1 << 20


class Parser(Protocol):
    """Reads a file; `ParserPool` is one."""

    def parse(self, path: Path) -> ParsedDocument:
        """The text of a file.

        Raises:
            Unreadable: it has none; the message says why.
        """


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file that was read.

    Attributes:
        file: where it is.
        document: what the store keeps of it.
        chunks: its chunks; None if it cannot be read, or is unchanged.
        unchanged: whether its bytes are those of the stored document.
    """

    file: FoundFile
    document: NewDocument
    chunks: list[Chunk] | None
    unchanged: bool = False


def prepare(
    file: FoundFile, known_hash: str | None, parser: Parser, tokenizer: Tokenizer
) -> Prepared:
    """Read a file; never raises for what is wrong with it.

    Args:
        file: the file.
        known_hash: hash of the stored document of this path.
        parser: reads its text.
        tokenizer: the embedding model's.
    """
    digest = ""
    try:
        digest = content_hash(file.path)
        if digest == known_hash:
            return Prepared(file, _document(file, digest), None, unchanged=True)
        parsed = parser.parse(Path(file.path))
        chunks = split(parsed, tokenizer)
    except (Unreadable, OSError) as error:
        reason = str(error) if isinstance(error, Unreadable) else f"{first_line(error)}."
        return Prepared(file, _document(file, digest, reason=reason), None)
    return Prepared(file, _document(file, digest, parsed=parsed), chunks)


def content_hash(path: str) -> str:
    """Hash of a file's bytes.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.blake2b(digest_size=20)
    with open(path, "rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _document(
    file: FoundFile, digest: str, *, parsed: ParsedDocument | None = None, reason: str | None = None
) -> NewDocument:
    if parsed is None:
        return NewDocument(
            file.path, digest, file.size, file.mtime_ns, reason=reason,
            attributes=dict(file.source.attributes),
        )  # fmt: skip
    return NewDocument(
        file.path,
        digest,
        file.size,
        file.mtime_ns,
        reason=" ".join(parsed.notes) or None,
        media_type=parsed.media_type,
        title=parsed.title,
        spans_of=parsed.spans_of,
        encoding=parsed.encoding,
        text=parsed.text if parsed.spans_of == "text" else None,
        attributes=dict(file.source.attributes),
    )
