"""A library whose vectors are those of words, so that results can be predicted."""

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import tokenizers

from engine.api.embeddings import Embeddings
from engine.retrieval.api.parsed_document import Heading, ParsedDocument
from engine.retrieval.library.collection import Collection
from engine.retrieval.library.library import Library
from tests.retrieval.answering.passages import embed


class WordEmbedder:
    """Embeds texts by their words, at once."""

    name = "words"

    def submit(
        self, texts: Sequence[str], *, truncate: int | None = None, **_: object
    ) -> "Future[Embeddings]":
        future: Future[Embeddings] = Future()
        future.set_result(
            Embeddings(self.name, embed(texts), sum(len(one.split()) for one in texts))
        )
        return future

    def tokenizer(self) -> tokenizers.Tokenizer:
        made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0}, unk_token="?"))
        made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        return made


class TextParser:
    """Reads text files in this process, at once; headings are lines with #."""

    longest = 1 << 20

    def parse(self, path: Path) -> ParsedDocument:
        text = path.read_text()
        headings = [
            Heading(len(one[1]), one[2], len(text[: one.start()].encode()))
            for one in re.finditer(r"^(#+) (.+)$", text, re.MULTILINE)
        ]
        return ParsedDocument("text/markdown", text, "file", headings=tuple(headings))

    def close(self) -> None:
        pass


@contextmanager
def collection_of(
    folder: Path, files: Mapping[str, str], name: str = "docs"
) -> Iterator[Collection]:
    """A collection of files with these texts, by name."""
    documents = folder / "documents"
    documents.mkdir(exist_ok=True)
    for file, text in files.items():
        (documents / file).write_text(text)
    with Library(folder / "library", WordEmbedder(), open_parser=TextParser) as library:
        collection = library.create(name)
        collection.add([documents])
        yield collection
