"""`KeptParser`: one parser process for many index runs, because each file of a vector store is a run."""

import threading
from pathlib import Path

from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.large_text import LargeText
from engine.retrieval.parsing.parser_pool import ParserPool


class KeptParser:
    """A parser whose process outlives `close`, up to `rest`. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ParserPool | None = None

    def parse(self, path: Path) -> ParsedDocument:
        """See `ParserPool.parse`."""
        return self._started().parse(path)

    @property
    def longest(self) -> int:
        """See `ParserPool.longest`."""
        return self._started().longest

    def open_large(self, path: Path) -> LargeText:
        """See `ParserPool.open_large`."""
        return self._started().open_large(path)

    def close(self) -> None:
        """A run is over; the next one uses the same process."""

    def rest(self) -> None:
        """End the process; the next file starts another one."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _started(self) -> ParserPool:
        with self._lock:
            if self._pool is None:
                self._pool = ParserPool()
            return self._pool
