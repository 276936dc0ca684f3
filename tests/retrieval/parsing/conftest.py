from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.parser_pool import ParserPool


@pytest.fixture(scope="session")
def pool() -> Iterator[ParserPool]:
    one = ParserPool()
    yield one
    one.close()


@pytest.fixture
def parse(pool: ParserPool, tmp_path: Path) -> Callable[[str, bytes], ParsedDocument]:
    """Parse a file of this name with these bytes, and check what holds for every document."""

    def parsed(name: str, data: bytes) -> ParsedDocument:
        path = tmp_path / name
        path.write_bytes(data)
        document = pool.parse(path)
        check(document, data)
        return document

    return parsed


def check(document: ParsedDocument, data: bytes) -> None:
    """The contract of `ParsedDocument`."""
    whole = data if document.spans_of == "file" else document.text.encode()
    assert whole[document.start :].decode(document.encoding) == document.text
    places = [one.start for one in document.headings]
    for offsets in (places, list(document.breaks), list(document.pages)):
        assert offsets == sorted(offsets)
        for offset in offsets:
            assert document.start <= offset < len(whole)
            whole[offset:].decode(document.encoding)  # not inside a character
