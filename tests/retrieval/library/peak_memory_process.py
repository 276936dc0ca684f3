"""A process that adds one file and prints its chunks and its peak memory in MiB: `… LIBRARY FILE`."""

import resource
import sys
from pathlib import Path

from engine.retrieval.library.library import Library
from tests.fakes.word_embedder import WordEmbedder


class ForgetfulEmbedder(WordEmbedder):
    """Keeps no texts."""

    def submit(self, texts, *, truncate=None):
        future = super().submit(texts, truncate=truncate)
        self.texts.clear()
        return future


def main(directory: str, path: str) -> None:
    """Add the file."""
    with Library(Path(directory), ForgetfulEmbedder()) as library:
        report = library.open("docs").add([path])
    assert report.failed == []
    print(report.chunks, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


if __name__ == "__main__":
    main(*sys.argv[1:])
