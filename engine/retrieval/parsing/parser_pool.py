"""`ParserPool`: files to documents."""

from pathlib import Path

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.languages import language_of
from engine.retrieval.parsing.markdown import markdown_outline
from engine.retrieval.parsing.outline import Outline
from engine.retrieval.parsing.parser_limits import ParserLimits
from engine.retrieval.parsing.regular_file import read_regular_file
from engine.retrieval.parsing.text_encoding import decode_text
from engine.retrieval.parsing.text_file import text_document

_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})


class ParserPool:
    """Parses files. Thread-safe."""

    def __init__(self, max_processes: int = 1, limits: ParserLimits | None = None) -> None:
        """Create a pool; a process is started when the first file needs one."""
        self._max_processes = max_processes
        self._limits = limits or ParserLimits()

    def parse(self, path: Path) -> ParsedDocument:
        """The document in a file.

        Raises:
            Unreadable: it has no text that can be indexed, with the reason.
        """
        data = read_regular_file(path, self._limits.file_bytes)
        decoded = decode_text(data)
        if not decoded.text.strip():
            raise Unreadable("It is empty.")
        if path.suffix.lower() in _MARKDOWN:
            return text_document(decoded, "text/markdown", markdown_outline(decoded.text))
        language = language_of(path.name, decoded.text[:200].partition("\n")[0])
        media_type = f"text/x-{language}" if language else "text/plain"
        return text_document(decoded, media_type, Outline(), language)

    def close(self) -> None:
        """End the processes. Idempotent."""
